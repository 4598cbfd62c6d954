//! The verdict on whether a run has settled, so that a longer run would have the same numbers.

mod backlog;
mod batches;
mod warmup;

use std::ops::Range;

use ethermem_units::Ps;
use ethermem_workload::{Kind, Message};
use serde::Serialize;

use backlog::{Backlog, Growth};
use batches::{BATCHES, Batches, Interval};
use warmup::Groups;

/// Largest half-width of the 95 % confidence interval of a settled mean, as a share of the mean.
pub const MEAN_PRECISION: f64 = 0.03;
/// Largest half-width of the interval of a settled 99th percentile, as a share of it.
pub const P99_PRECISION: f64 = 0.05;
/// Shortest span of the arrivals, in mean unloaded latencies.
const SPAN_MIN: f64 = 20.0;
/// Steady backlog of a queue at load 0.9, in mean service times weighted by bytes:
/// `load / (2 (1 - load))` (Pollaczek and Khinchine). A run of few long messages may still be
/// approaching it, so growth up to this is not an overload.
const STEADY_BACKLOG: f64 = 4.5;
/// Growth of the backlog of a run that is shorter than [`SPAN_MIN`], in mean unloaded latencies,
/// that shows an overload. Messages that are merely under way grow the backlog by less.
const SHORT_GROWTH: f64 = 2.0;

/// The validity of a run's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SteadyState {
    /// The numbers are those of a longer run, within what [`Steady`] says.
    Settled,
    /// The run is too short to say.
    Unsettled,
    /// More bytes arrive than end. Latencies grow with the length of the run and are not a property
    /// of the fabric.
    NotSustained,
}

/// The verdict on whether a run of synthetic messages has settled, and the evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Steady {
    /// The validity of the numbers.
    pub state: SteadyState,
    /// The reason why the run has not settled; `None` if it has.
    pub why: Option<String>,
    /// The requested load without the growth of the backlog: the load that ended while messages
    /// arrived. `None` for a run that is too short.
    pub load_carried: Option<f64>,
    /// Growth of the backlog over the last three quarters of the arrivals, as a share of the bytes
    /// that arrived then. `None` for a run that is too short.
    pub backlog_growth: Option<f64>,
    /// Number of messages of the warm-up by MSER-5 (White, Cobb and Spratt, 2000); `None` if the
    /// warm-up does not end within the first half of the run.
    pub warmup_messages: Option<u64>,
    /// Correlation of the mean slowdown of a batch with that of the next one, of 20 batches.
    pub batch_correlation: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean slowdown, from 20 batches.
    pub slowdown_mean_ci95_half_width: Option<f64>,
    /// Half the width of the 95 % confidence interval of the 99th percentile of slowdowns.
    pub slowdown_p99_ci95_half_width: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean latency.
    pub latency_ns_mean_ci95_half_width: Option<f64>,
    /// Half the width of the 95 % confidence interval of the 99th percentile of latencies.
    pub latency_ns_p99_ci95_half_width: Option<f64>,
    /// The largest of the four half-widths, each over its limit: 3 % of a mean, 5 % of a 99th
    /// percentile. Above 1 the run is too short, by about the square of this.
    pub imprecision: Option<f64>,
}

impl Steady {
    /// The notice for a reader of the numbers; `None` for a run that has settled.
    #[must_use]
    pub fn notice(&self, load_requested: Option<f64>) -> Option<String> {
        let why = self.why.as_ref()?;
        Some(match (self.state, load_requested) {
            (SteadyState::NotSustained, Some(load)) => {
                format!("load {load} is not sustained: {why}")
            }
            (SteadyState::NotSustained, None) => format!("not sustained: {why}"),
            _ => format!("not settled: {why}"),
        })
    }
}

#[cfg(test)]
impl Steady {
    /// A run at 0.9 that carries 0.7.
    pub(crate) fn sample() -> Steady {
        Steady {
            state: SteadyState::NotSustained,
            why: Some(over(Some(0.7))),
            load_carried: Some(0.7),
            backlog_growth: Some(0.222),
            warmup_messages: None,
            batch_correlation: Some(0.9),
            slowdown_mean_ci95_half_width: Some(1.0),
            slowdown_p99_ci95_half_width: Some(2.0),
            latency_ns_mean_ci95_half_width: Some(300.0),
            latency_ns_p99_ci95_half_width: Some(600.0),
            imprecision: Some(10.0),
        }
    }
}

/// Observes the messages of a run as they end, in constant memory.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    measured: Range<u64>,
    backlog: Backlog,
    groups: Groups,
    slowdowns: Batches,
    latencies_ns: Batches,
    alone: [Alone; Kind::ALL.len()],
}

/// Unloaded latencies of the messages of a kind.
#[derive(Clone, Copy, Debug)]
struct Alone {
    messages: u64,
    sum_ps: f64,
    least_ps: f64,
    bytes: f64,
    weighted_ps: f64,
}

impl Alone {
    const NONE: Alone =
        Alone { messages: 0, sum_ps: 0.0, least_ps: f64::INFINITY, bytes: 0.0, weighted_ps: 0.0 };

    #[inline]
    fn record(&mut self, bytes: u64, alone: Ps) {
        let (bytes, alone_ps) = (bytes as f64, alone.0 as f64);
        self.messages += 1;
        self.sum_ps += alone_ps;
        self.least_ps = self.least_ps.min(alone_ps);
        self.bytes += bytes;
        self.weighted_ps += bytes * alone_ps;
    }

    /// Unloaded latency above that of the shortest message, summed over bytes.
    fn longer_ps(&self) -> f64 {
        if self.messages == 0 { 0.0 } else { self.weighted_ps - self.bytes * self.least_ps }
    }
}

impl Watch {
    /// A watch of a run that measures the messages with these indices, at least one.
    pub(super) fn new(measured: Range<u64>) -> Watch {
        Watch {
            backlog: Backlog::new(),
            groups: Groups::new(measured.end),
            slowdowns: Batches::new(),
            latencies_ns: Batches::new(),
            alone: [Alone::NONE; Kind::ALL.len()],
            measured,
        }
    }

    #[inline]
    pub(super) fn record(&mut self, message: &Message, finished: Ps, alone: Ps) {
        let latency = finished - message.arrival;
        let slowdown = latency.0 as f64 / alone.0 as f64;
        self.backlog.record(message.bytes.0, message.arrival, finished);
        self.groups.record(message.index, slowdown);
        self.alone[message.kind as usize].record(message.bytes.0, alone);
        if self.measured.contains(&message.index) {
            let Range { start, end } = self.measured;
            let place = u128::from(message.index - start) * BATCHES as u128;
            let batch = (place / u128::from(end - start)) as usize;
            self.slowdowns.record(batch, slowdown);
            self.latencies_ns.record(batch, latency.as_ns_f64());
        }
    }

    /// A message that will never end.
    pub(super) fn record_lost(&mut self, message: &Message) {
        self.backlog.record_lost(message.bytes.0, message.arrival);
    }

    /// The findings, for a run with this requested load.
    pub(super) fn finish(&self, load_requested: Option<f64>) -> Steady {
        let growth = self.backlog.growth();
        let intervals = Intervals {
            slowdown_mean: self.slowdowns.mean(),
            slowdown_p99: self.slowdowns.percentile(990),
            latency_mean: self.latencies_ns.mean(),
            latency_p99: self.latencies_ns.percentile(990),
        };
        let carried = growth.map(|growth| 1.0 - growth.share.max(0.0));
        let is_over = growth.is_some_and(|growth| self.is_over(growth));
        let carried = load_requested
            .filter(|_| self.is_long() || is_over)
            .zip(carried)
            .map(|(load, share)| load * share);
        let why = if is_over { Some(over(carried)) } else { self.too_short(growth, &intervals) };
        let half_width = |interval: Option<Interval>| interval.map(|of| of.half_width);
        Steady {
            state: match why {
                None => SteadyState::Settled,
                Some(_) if is_over => SteadyState::NotSustained,
                Some(_) => SteadyState::Unsettled,
            },
            why,
            load_carried: carried,
            backlog_growth: growth.map(|growth| growth.share),
            warmup_messages: self.groups.warmed_up().map(|(messages, _)| messages),
            batch_correlation: self.slowdowns.correlation(),
            slowdown_mean_ci95_half_width: half_width(intervals.slowdown_mean),
            slowdown_p99_ci95_half_width: half_width(intervals.slowdown_p99),
            latency_ns_mean_ci95_half_width: half_width(intervals.latency_mean),
            latency_ns_p99_ci95_half_width: half_width(intervals.latency_p99),
            imprecision: intervals.imprecision(),
        }
    }

    /// Span of the arrivals in mean unloaded latencies.
    fn span(&self) -> f64 {
        let messages: u64 = self.alone.iter().map(|kind| kind.messages).sum();
        let mean_ps = self.alone.iter().map(|kind| kind.sum_ps).sum::<f64>() / messages as f64;
        self.backlog.last_arrival().0 as f64 / mean_ps.max(1.0)
    }

    fn is_long(&self) -> bool {
        self.span() >= SPAN_MIN
    }

    /// True if the backlog grows by more than chance, and by more than the steady backlog of a
    /// sustained load.
    fn is_over(&self, growth: Growth) -> bool {
        let bytes: f64 = self.alone.iter().map(|kind| kind.bytes).sum();
        let service_ps = self.alone.iter().map(Alone::longer_ps).sum::<f64>() / bytes.max(1.0);
        let grown_ps = growth.share * self.backlog.last_arrival().0 as f64;
        let is_shown = self.is_long() || growth.share * self.span() > SHORT_GROWTH;
        growth.is_certain && is_shown && grown_ps > STEADY_BACKLOG * service_ps
    }

    /// The reason why the run is too short for a verdict; `None` if it is not.
    fn too_short(&self, growth: Option<Growth>, intervals: &Intervals) -> Option<String> {
        if !self.is_long() || growth.is_none() {
            let span = self.span();
            return Some(format!("arrivals span {span:.1} of {SPAN_MIN} message times"));
        }
        let imprecision = intervals.imprecision();
        let Some((imprecision, mean)) = imprecision.zip(intervals.slowdown_mean) else {
            return Some(format!("some of the {BATCHES} batches of messages are empty"));
        };
        if imprecision > 1.0 {
            return intervals.imprecise();
        }
        let correlation = self.slowdowns.correlation().unwrap_or(0.0);
        if correlation > Batches::correlation_allowed() {
            return Some(format!(
                "the mean slowdowns of {BATCHES} batches are correlated by {correlation:.2}"
            ));
        }
        match self.groups.warmed_up() {
            None => Some("the warm-up does not end within the first half (MSER-5)".to_owned()),
            Some((messages, steady)) if (mean.value / steady - 1.0).abs() > MEAN_PRECISION => {
                Some(format!("the warm-up takes {messages} messages (MSER-5)"))
            }
            Some(_) => None,
        }
    }
}

fn over(load_carried: Option<f64>) -> String {
    let carries = load_carried.map_or_else(String::new, |load| format!("it carries {load:.3}, "));
    format!("{carries}and latencies grow with the length of the run")
}

/// The intervals that decide whether a run is long enough.
struct Intervals {
    slowdown_mean: Option<Interval>,
    slowdown_p99: Option<Interval>,
    latency_mean: Option<Interval>,
    latency_p99: Option<Interval>,
}

impl Intervals {
    /// The intervals with their names and limits.
    fn all(&self) -> Option<[(&'static str, Interval, f64); 4]> {
        Some([
            ("mean slowdown", self.slowdown_mean?, MEAN_PRECISION),
            ("p99 slowdown", self.slowdown_p99?, P99_PRECISION),
            ("mean latency", self.latency_mean?, MEAN_PRECISION),
            ("p99 latency", self.latency_p99?, P99_PRECISION),
        ])
    }

    /// See [`Steady::imprecision`].
    fn imprecision(&self) -> Option<f64> {
        let shares = self.all()?.map(|(_, interval, asked)| interval.relative() / asked);
        Some(shares.into_iter().fold(0.0, f64::max))
    }

    /// A description of the least precise interval.
    fn imprecise(&self) -> Option<String> {
        let share = |of: &(&str, Interval, f64)| of.1.relative() / of.2;
        let worst =
            self.all()?.into_iter().max_by(|one, other| share(one).total_cmp(&share(other)));
        let (name, interval, asked) = worst?;
        let percent = interval.relative() * 100.0;
        Some(format!("{name} is known to {percent:.1} %, of {:.0} %", asked * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;
    use ethermem_workload::Kind;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    /// An M/D/1 queue: messages of 1 ns alone, behind each other, at `load`.
    fn queue(load: f64, messages: u64, seed: u64) -> Steady {
        let cut = messages / 20;
        let mut watch = Watch::new(cut..messages - cut);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut at, mut free) = (0.0, Ps::ZERO);
        for index in 0..messages {
            let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            at -= libm::log(uniform) * 1_000.0 / load;
            let arrival = Ps(at as u64);
            free = free.max(arrival) + Ps(1_000);
            let bytes = Bytes(64);
            let kind = Kind::Write;
            let message = Message { index, arrival, kind, compute: 0, memory: 1, bytes };
            watch.record(&message, free, Ps(1_000));
        }
        watch.finish(Some(load))
    }

    #[test]
    fn a_long_run_under_load_settles_near_the_closed_form() {
        let steady = queue(0.7, 400_000, 1);
        assert_eq!((steady.state, &steady.why), (SteadyState::Settled, &None));
        assert_eq!(steady.notice(Some(0.7)), None);
        assert!((steady.load_carried.expect("long") - 0.7).abs() < 0.001, "{steady:?}");
    }

    #[test]
    fn a_short_run_says_what_is_not_known() {
        let steady = queue(0.7, 2_000, 1);
        assert_eq!(steady.state, SteadyState::Unsettled);
        let notice = steady.notice(Some(0.7)).expect("it has one");
        assert!(notice.starts_with("not settled: ") && notice.contains("is known to"), "{notice}");
        assert!(steady.imprecision.expect("known") > 1.0);
    }

    #[test]
    fn more_than_the_server_carries_is_not_sustained_and_the_load_that_is_has_a_name() {
        for seed in 1..=20 {
            let steady = queue(1.25, 20_000, seed);
            assert_eq!(steady.state, SteadyState::NotSustained, "{steady:?}");
            assert!((steady.load_carried.expect("long") - 1.0).abs() < 0.02, "{steady:?}");
        }
        let notice = queue(1.25, 20_000, 1).notice(Some(1.25)).expect("it has one");
        assert!(notice.starts_with("load 1.25 is not sustained: it carries "), "{notice}");
    }

    #[test]
    fn a_load_that_is_sustained_is_hardly_ever_said_not_to_be() {
        let runs = (1..=200).map(|seed| queue(0.95, 20_000, seed).state);
        let wrong = runs.filter(|&state| state == SteadyState::NotSustained).count();
        assert!(wrong <= 6, "{wrong} of 200");
    }

    /// Messages that take 1 us alone, through one server of 10 ns each; the arrivals span `span`
    /// unloaded latencies.
    fn pipe(load: f64, span: f64, seed: u64) -> Steady {
        let messages = (span * 100.0 * load) as u64;
        let mut watch = Watch::new(0..messages);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut at, mut free) = (0.0, Ps::ZERO);
        for index in 0..messages {
            let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            at -= libm::log(uniform) * 10_000.0 / load;
            let arrival = Ps(at as u64);
            free = free.max(arrival) + Ps(10_000);
            let (kind, bytes) = (Kind::Write, Bytes(64));
            let message = Message { index, arrival, kind, compute: 0, memory: 1, bytes };
            watch.record(&message, free + Ps(990_000), Ps(1_000_000));
        }
        watch.finish(Some(load))
    }

    #[test]
    fn an_overload_shows_in_a_run_that_is_too_short_for_its_latencies() {
        for seed in 1..=20 {
            for span in [6.0, 12.0, 19.0] {
                let over = pipe(1.8, span, seed);
                assert_eq!(over.state, SteadyState::NotSustained, "{span}, seed {seed}: {over:?}");
                let carried = over.load_carried.expect("it is over");
                assert!((0.8..1.25).contains(&carried), "{span}, seed {seed}: {carried}");
                let below = pipe(0.8, span, seed);
                assert_eq!(below.state, SteadyState::Unsettled, "{span}, seed {seed}: {below:?}");
            }
        }
    }

    #[test]
    fn a_run_shorter_than_its_messages_is_no_steady_state() {
        let mut watch = Watch::new(0..1_000);
        for index in 0..1_000 {
            let (arrival, bytes) = (Ps(index * 10), Bytes(64));
            let kind = Kind::Read;
            let message = Message { index, arrival, kind, compute: 0, memory: 1, bytes };
            watch.record(&message, arrival + Ps(2_800_000), Ps(2_800_000));
        }
        let steady = watch.finish(Some(0.5));
        assert_eq!(steady.state, SteadyState::Unsettled);
        assert!(steady.why.expect("why").contains("of 20 message times"));
    }
}
