use std::ops::Range;

use ethermem_units::Ps;
use ethermem_workload::{Kind, Message};

use super::FabricStats;
use super::kind::KindRecorder;
use super::result::{Kinds, RunFacts, RunResult};
use super::steady::Watch;

/// The messages of a run that are measured, by their index. The others load the fabric all the
/// same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    measured: Range<u64>,
}

impl Window {
    /// Every message.
    pub const ALL: Window = Window { measured: 0..u64::MAX };

    /// All of `messages_total` except the first `warmup` and the last `cooldown`. If no message is
    /// left, the result says so.
    #[must_use]
    pub fn cut(messages_total: u64, warmup: u64, cooldown: u64) -> Window {
        Window { measured: warmup..messages_total.saturating_sub(cooldown) }
    }

    /// The range of measured indices, if it is bounded and not empty.
    fn bounded(&self) -> Option<Range<u64>> {
        let Range { start, end } = self.measured;
        (start < end && end < u64::MAX).then_some(start..end)
    }

    /// True if the message with this index is measured.
    #[inline]
    #[must_use]
    pub fn contains(&self, index: u64) -> bool {
        self.measured.contains(&index)
    }
}

/// Records every message of a run as it ends, in the order of the run's events. So sums have the
/// same bits for one seed. Memory does not grow with the number of messages.
#[derive(Clone, Debug)]
pub struct Recorder {
    window: Window,
    kinds: [KindRecorder; Kind::ALL.len()],
    finished: u64,
    lost: u64,
    payload_bytes: u64,
    arrivals: Span,
    arrivals_measured: Span,
    /// Apart, for it is large, and traces have none.
    steady: Option<Box<Watch>>,
}

impl Recorder {
    /// A recorder that also determines whether the run settles. The messages arrive at a constant
    /// rate, and the window is bounded.
    #[must_use]
    pub fn of_steady_arrivals(window: Window) -> Recorder {
        let steady = window.bounded().map(|measured| Box::new(Watch::new(measured)));
        Recorder { steady, ..Recorder::new(window) }
    }

    /// A recorder without messages.
    #[must_use]
    pub fn new(window: Window) -> Recorder {
        Recorder {
            window,
            kinds: std::array::from_fn(|_| KindRecorder::new()),
            finished: 0,
            lost: 0,
            payload_bytes: 0,
            arrivals: Span::EMPTY,
            arrivals_measured: Span::EMPTY,
            steady: None,
        }
    }

    /// Records that `message` ended at `finished`; alone in the fabric it takes `alone` from its
    /// arrival.
    ///
    /// # Panics
    /// If it ended before it arrived, or takes no time alone: the engine is broken.
    #[inline]
    pub fn record(&mut self, message: &Message, finished: Ps, alone: Ps) {
        self.finished += 1;
        self.payload_bytes += message.bytes.0;
        self.arrivals.include(message.arrival);
        if let Some(steady) = &mut self.steady {
            steady.record(message, finished, alone);
        }
        if self.window.contains(message.index) {
            self.arrivals_measured.include(message.arrival);
            let latency = finished - message.arrival;
            self.kinds[message.kind as usize].record(message.bytes.0, latency, alone);
        }
    }

    /// Records that `message` will never end.
    pub fn lost(&mut self, message: &Message) {
        self.lost += 1;
        self.arrivals.include(message.arrival);
        if let Some(steady) = &mut self.steady {
            steady.record_lost(message);
        }
    }

    /// Number of messages that ended so far, measured or not.
    #[must_use]
    pub fn messages_finished(&self) -> u64 {
        self.finished
    }

    /// Number of messages reported lost so far.
    #[must_use]
    pub fn messages_lost(&self) -> u64 {
        self.lost
    }

    /// The result of the run.
    ///
    /// # Panics
    /// If a started message was neither recorded nor lost: a mean must not silently cover only the
    /// finished messages.
    #[must_use]
    pub fn finish(self, facts: RunFacts, fabric: FabricStats) -> RunResult {
        assert_eq!(
            facts.messages_started,
            self.finished + self.lost,
            "{} messages finished and {} were lost, seed {}",
            self.finished,
            self.lost,
            facts.seed
        );
        let mut all = KindRecorder::new();
        for kind in &self.kinds {
            all.add(kind);
        }
        let [read, write, rmw] = &self.kinds;
        let mut notices = facts.notices;
        notices.extend(fabric.notices);
        if all.messages == 0 && self.finished > 0 {
            notices.push("no message was measured: warm-up and cool-down cover the run".to_owned());
        }
        let steady = self.steady.map(|watch| watch.finish(facts.load_requested));
        let unsettled = steady.as_ref().and_then(|steady| steady.notice(facts.load_requested));
        notices.extend(unsettled);
        let goodput_gbps = if facts.simulated > Ps::ZERO {
            // Bits per picosecond are Tb/s.
            self.payload_bytes as f64 * 8.0 / facts.simulated.0 as f64 * 1_000.0
        } else {
            0.0
        };
        RunResult {
            fabric: facts.fabric,
            label: facts.label,
            scenario: facts.scenario,
            seed: facts.seed,
            commit: facts.commit,
            messages_started: facts.messages_started,
            messages_finished: self.finished,
            messages_lost: self.lost,
            messages_measured: all.messages,
            warmup_ns: self.arrivals.lead(&self.arrivals_measured).as_ns_f64(),
            cooldown_ns: self.arrivals.trail(&self.arrivals_measured).as_ns_f64(),
            simulated_ns: facts.simulated.as_ns_f64(),
            load_requested: facts.load_requested,
            load_measured: fabric.load_measured,
            payload_goodput_gbps: goodput_gbps,
            payload_goodput_gbps_per_node: goodput_gbps / f64::from(facts.nodes.max(1)),
            control_overhead: fabric.control_overhead,
            steady,
            program: None,
            kinds: Kinds {
                read: read.stats(),
                write: write.stats(),
                rmw: (rmw.messages > 0).then(|| rmw.stats()),
                all: all.stats(),
            },
            utilisation: fabric.utilisation,
            queue: fabric.queue,
            matching: fabric.matching,
            frames: fabric.frames,
            packets: fabric.packets,
            memories: fabric.memories,
            notices,
            events: facts.events,
            wall_s: facts.wall_s,
            ways: Vec::new(),
        }
    }
}

/// The first and the last of a set of times.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: Ps,
    last: Ps,
}

impl Span {
    const EMPTY: Span = Span { first: Ps::MAX, last: Ps::ZERO };

    #[inline]
    fn include(&mut self, at: Ps) {
        self.first = self.first.min(at);
        self.last = self.last.max(at);
    }

    /// The part of this span before `inner`; zero if `inner` is empty.
    fn lead(&self, inner: &Span) -> Ps {
        if inner.first > inner.last { Ps::ZERO } else { inner.first - self.first }
    }

    /// The part of this span after `inner`; zero if `inner` is empty.
    fn trail(&self, inner: &Span) -> Ps {
        if inner.first > inner.last { Ps::ZERO } else { self.last - inner.last }
    }
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;

    use super::*;

    fn message(index: u64, kind: Kind, arrival: Ps) -> Message {
        Message { index, arrival, kind, compute: 0, memory: 1, bytes: Bytes(64) }
    }

    fn facts(messages_started: u64) -> RunFacts {
        RunFacts { messages_started, nodes: 2, simulated: Ps::from_ns(10), ..RunFacts::default() }
    }

    #[test]
    fn four_messages_by_hand() {
        let mut recorder = Recorder::new(Window::ALL);
        let alone = Ps(300_000);
        for (index, kind, latency) in [
            (0, Kind::Read, 300_000),
            (1, Kind::Write, 450_000),
            (2, Kind::Read, 600_000),
            (3, Kind::Read, 330_000),
        ] {
            let arrival = Ps(index * 1_000);
            recorder.record(&message(index, kind, arrival), arrival + Ps(latency), alone);
        }
        let result = recorder.finish(facts(4), FabricStats::default());
        let read = &result.kinds.read;
        assert_eq!((read.messages, read.bytes), (3, 192));
        assert_eq!(read.latency_ns_mean, Some(410.0));
        assert_eq!(read.latency_ns_max, Some(600.0));
        assert_eq!(read.slowdown_mean, Some((1.0 + 2.0 + 1.1) / 3.0));
        assert_eq!(read.slowdown_p50, Some(1.1));
        assert_eq!((read.slowdown_min, read.slowdown_max), (Some(1.0), Some(2.0)));
        assert_eq!((read.slowdown_p99, read.latency_ns_p99), (Some(2.0), Some(600.0)));
        let write = &result.kinds.write;
        assert_eq!((write.slowdown_p50, write.latency_ns_p50), (Some(1.5), Some(450.0)));
        assert_eq!(result.kinds.rmw, None);
        assert_eq!(result.kinds.all.messages, 4);
        assert_eq!(result.kinds.all.slowdown_mean, Some((1.0 + 2.0 + 1.1 + 1.5) / 4.0));
        // 4 x 64 B in 10 ns are 204.8 Gb/s.
        assert_eq!(result.payload_goodput_gbps, 204.8);
        assert_eq!(result.payload_goodput_gbps_per_node, 102.4);
    }

    #[test]
    fn a_kind_without_messages_has_no_numbers() {
        let result = Recorder::new(Window::ALL).finish(facts(0), FabricStats::default());
        assert_eq!(result.kinds.read.slowdown_mean, None);
        assert_eq!(result.kinds.all.latency_ns_p99, None);
        assert!(result.notices.is_empty());
    }

    #[test]
    fn the_ends_of_a_run_are_run_but_not_measured() {
        let mut recorder = Recorder::new(Window::cut(10, 2, 3));
        for index in 0..10 {
            let arrival = Ps(1_000 * (index + 1));
            if index == 9 {
                recorder.lost(&message(index, Kind::Write, arrival));
            } else {
                let message = message(index, Kind::Write, arrival);
                recorder.record(&message, arrival + Ps(index * 100), Ps(100));
            }
        }
        let result = recorder.finish(facts(10), FabricStats::default());
        assert_eq!(
            (result.messages_finished, result.messages_lost, result.messages_measured),
            (9, 1, 5)
        );
        assert_eq!((result.warmup_ns, result.cooldown_ns), (2.0, 3.0));
        let all = &result.kinds.all;
        assert_eq!((all.slowdown_min, all.slowdown_max), (Some(2.0), Some(6.0)));
    }

    #[test]
    fn a_window_of_nothing_is_said() {
        let mut recorder = Recorder::new(Window::cut(2, 1, 1));
        for index in 0..2 {
            recorder.record(&message(index, Kind::Read, Ps(0)), Ps(5), Ps(5));
        }
        let result = recorder.finish(facts(2), FabricStats::default());
        assert_eq!(result.messages_measured, 0);
        assert_eq!((result.warmup_ns, result.cooldown_ns), (0.0, 0.0));
        assert!(result.notices[0].contains("no message was measured"), "{:?}", result.notices);
    }

    #[test]
    #[should_panic(expected = "1 messages finished and 0 were lost")]
    fn a_message_that_went_missing_stops_the_run() {
        let mut recorder = Recorder::new(Window::ALL);
        recorder.record(&message(0, Kind::Read, Ps(0)), Ps(5), Ps(5));
        let _ = recorder.finish(facts(2), FabricStats::default());
    }
}
