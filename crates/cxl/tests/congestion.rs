//! Congestion control, explored exhaustively.
//!
//! Goal: no sequence of PFC frames leads out of the rates, or into a phase without an exit; under
//! a constant limit the rate enters a band in bounded time and stays in it.
//!
//! Method: all states are visited that a control can reach when a PFC frame may come in any
//! microsecond, with the published times and a line of a few steps of exploration. The band is
//! found on the same states, each followed until it repeats itself. A model checker's "eventually"
//! does not say that there is a way out of every state; a search of the whole graph does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeSet, HashMap};

use ethermem_cxl::rate::{ControlConfig, Mbps, Phase, RateControl, Signal};
use ethermem_units::Ps;

const US: Ps = Ps(1_000_000);

/// Rates are whole multiples of a step, so that a line of 12 steps has few of them.
fn config(line: u32) -> ControlConfig {
    ControlConfig {
        line: Mbps(line),
        floor: Mbps(1),
        initial: Mbps(line),
        step: Mbps(1),
        ..ControlConfig::published()
    }
}

type Key = (Phase, u32, u32, u8, u32, Option<Ps>, Ps);

/// A control and its time.
#[derive(Clone)]
struct Point {
    control: RateControl,
    now: Ps,
}

impl Point {
    fn key(&self) -> Key {
        self.control.state(self.now)
    }

    /// A microsecond later, with or without a PFC frame at its end.
    fn later(&self, pfc: bool) -> Point {
        let (mut control, now) = (self.control.clone(), self.now + US);
        control.on_timer(now);
        if pfc {
            control.on_pfc(now);
        }
        Point { control, now }
    }
}

/// All states that can be reached, each with the numbers of those that follow it without and with
/// a PFC frame.
struct Graph {
    points: Vec<Point>,
    next: Vec<[usize; 2]>,
}

fn explore(config: ControlConfig) -> Graph {
    let mut numbers: HashMap<Key, usize> = HashMap::new();
    let mut graph = Graph { points: Vec::new(), next: Vec::new() };
    for initial in config.floor.0..=config.line.0 {
        let control = RateControl::new(ControlConfig { initial: Mbps(initial), ..config }).unwrap();
        number(&mut numbers, &mut graph.points, Point { control, now: Ps::ZERO });
    }
    let mut at = 0;
    while at < graph.points.len() {
        let next = [false, true].map(|pfc| {
            let later = graph.points[at].later(pfc);
            number(&mut numbers, &mut graph.points, later)
        });
        graph.next.push(next);
        at += 1;
    }
    graph
}

fn number(numbers: &mut HashMap<Key, usize>, points: &mut Vec<Point>, point: Point) -> usize {
    *numbers.entry(point.key()).or_insert_with(|| {
        points.push(point);
        points.len() - 1
    })
}

/// The published line and floor: 100 and 1 Gb/s, in whole steps of exploration.
#[test]
fn rates_stay_between_floor_and_line_in_every_state() {
    let graph = explore(config(100));
    for point in &graph.points {
        let (phase, current, target, speedups, ..) = point.key();
        assert!((1..=100).contains(&current) && (1..=100).contains(&target), "{:?}", point.key());
        assert!(speedups < 5, "{:?}", point.key());
        let recovers = [Phase::PfcResponse, Phase::FastRecovery, Phase::RecoveryPfcResponse];
        assert!(!recovers.contains(&phase) || current <= target, "{:?}", point.key());
    }
    assert!(graph.points.len() > 100_000, "{} states", graph.points.len());
}

/// In Mb/s, as published: from every whole rate, every kind of cut and step stays in bounds. With
/// the test above, which has every order of them, no sequence leads out.
#[test]
fn no_rounding_leads_out_of_the_rates() {
    let published = ControlConfig::published();
    let bounds = |control: &RateControl| {
        let (_, current, target, ..) = control.state(Ps::ZERO);
        assert!((1_000..=100_000).contains(&current), "{control:?}");
        assert!((1_000..=100_000).contains(&target), "{control:?}");
    };
    for initial in published.floor.0..=published.line.0 {
        let config = ControlConfig { initial: Mbps(initial), ..published };
        let mut control = RateControl::new(config).unwrap();
        // Halved twice, one step of recovery, cut twice by a quarter, recovered, explored, taken
        // back, and halved out of guessing.
        let frames = [0, 15, 80, 95];
        for at in frames {
            control.on_pfc(Ps(at * US.0));
            bounds(&control);
        }
        for at in [145, 156, 167, 178, 189, 200, 400, 440, 480] {
            control.on_timer(Ps(at * US.0));
            bounds(&control);
        }
        for at in [481, 492] {
            control.on_pfc(Ps(at * US.0));
            bounds(&control);
        }
    }
}

/// Figure 3: these ways from phase to phase, by timer (`false`) or by PFC frame (`true`), and no
/// others. From exploration to the stable phase is our rule for the line rate.
#[test]
fn phases_follow_each_other_as_in_figure_3() {
    use Phase::{
        FastRecovery, IncrementExploration, IncrementGuessing, PfcResponse, RecoveryPfcResponse,
        Stable,
    };
    let graph = explore(config(12));
    let mut seen = BTreeSet::new();
    for point in &graph.points {
        let before = point.control.phase();
        let mut timed = point.control.clone();
        timed.on_timer(point.now + US);
        let mut signalled = timed.clone();
        let acted = signalled.on_pfc(point.now + US) == Signal::Acted;
        seen.insert((before as u8, timed.phase() as u8, false));
        if acted {
            seen.insert((timed.phase() as u8, signalled.phase() as u8, true));
        }
    }
    let stays = Phase::ALL.map(|phase| (phase, phase, false));
    let ways = [
        (Stable, PfcResponse, true),
        (PfcResponse, PfcResponse, true),
        (PfcResponse, FastRecovery, false),
        (FastRecovery, Stable, false),
        (FastRecovery, RecoveryPfcResponse, true),
        (RecoveryPfcResponse, RecoveryPfcResponse, true),
        (RecoveryPfcResponse, FastRecovery, false),
        (Stable, IncrementExploration, false),
        (IncrementExploration, IncrementGuessing, true),
        (IncrementExploration, Stable, false),
        (IncrementGuessing, Stable, false),
        (IncrementGuessing, PfcResponse, true),
    ];
    let all = stays.into_iter().chain(ways);
    let expected: BTreeSet<_> = all.map(|(from, to, pfc)| (from as u8, to as u8, pfc)).collect();
    assert_eq!(seen, expected);
}

/// Without PFC frames every state leads to the stable phase at line rate. It takes at most: t1,
/// five t3 and t4, then for each step to the line rate t5, and one t5 at the line rate.
#[test]
fn every_state_has_a_way_out() {
    let line = 12;
    let graph = explore(config(line));
    let most = 50 + 5 * 11 + 200 + u64::from(line) * 40 + 40;
    let mut longest = 0;
    for (start, point) in graph.points.iter().enumerate() {
        let mut at = start;
        let mut us = 0;
        while graph.next[at][0] != at {
            at = graph.next[at][0];
            us += 1;
            assert!(us <= most, "no way out of {:?}", point.key());
        }
        longest = longest.max(us);
        let end = &graph.points[at].control;
        assert_eq!((end.phase(), end.rate()), (Phase::Stable, Mbps(line)));
    }
    assert!(longest > most - 100, "the bound is near: {longest} of {most} us");
}

/// PFC frames without end lead to the floor: at most t2 between two that act, and each takes a
/// quarter at least.
#[test]
fn frames_without_end_lead_to_the_floor() {
    let graph = explore(config(12));
    for (start, point) in graph.points.iter().enumerate() {
        let mut at = start;
        for _ in 0..10 * 14 {
            at = graph.next[at][1];
        }
        let end = &graph.points[at].control;
        assert_eq!(end.rate(), Mbps(1), "from {:?}", point.key());
    }
}

/// What the link does: a PFC frame in every microsecond from the `delay`th on in which the rate is
/// above the limit. Numbers of states are doubled by how long it has been above.
fn band(graph: &Graph, limit: u32, delay: usize) -> (u32, u32, u64) {
    let width = delay + 1;
    let count = graph.points.len() * width;
    let rate = |state: usize| graph.points[state / width].control.rate().0;
    let step = |state: usize| {
        let (at, above) = (state / width, state % width);
        let is_above = rate(state) > limit;
        let pfc = is_above && above == delay;
        let next = graph.next[at][usize::from(pfc)];
        let above = if is_above { (above + 1).min(delay) } else { 0 };
        next * width + above
    };
    // Each state leads to one cycle; the band is what the rates on cycles are.
    let mut seen = vec![0_u32; count];
    let (mut low, mut high) = (u32::MAX, 0);
    for start in (0..count).step_by(width) {
        let (mut at, mark) = (start, start as u32 / width as u32 + 1);
        while seen[at] == 0 {
            seen[at] = mark;
            at = step(at);
        }
        if seen[at] == mark {
            let first = at;
            loop {
                (low, high) = (low.min(rate(at)), high.max(rate(at)));
                at = step(at);
                if at == first {
                    break;
                }
            }
        }
    }
    (
        low,
        high,
        longest(graph.points.len(), width, &step, |state| (low..=high).contains(&rate(state))),
    )
}

/// The longest time until a state's rate is in the band for good.
fn longest(
    points: usize,
    width: usize,
    step: &impl Fn(usize) -> usize,
    inside: impl Fn(usize) -> bool,
) -> u64 {
    // Time to the last state outside, found from the end of each way: 0 is unknown.
    let mut times = vec![0_u64; points * width];
    let mut most = 0;
    for start in (0..points * width).step_by(width) {
        let mut way = Vec::new();
        let mut at = start;
        let mut on_way = std::collections::HashSet::new();
        while times[at] == 0 && on_way.insert(at) {
            way.push(at);
            at = step(at);
        }
        // What is on a cycle is inside for good.
        let mut after = if times[at] == 0 { 1 } else { times[at] };
        for &state in way.iter().rev() {
            after = if after == 1 && inside(state) { 1 } else { after + 1 };
            times[state] = after;
        }
        most = most.max(times[start] - 1);
    }
    most
}

/// The band is one step wide: the limit, and a step above it while exploration finds out.
///
/// The time to it: each fast recovery that meets a frame aims at 7/8 of a rate above the limit, so
/// there are as many as it takes from the line to the limit, and two for the first cut and the
/// last one; each takes t1 + 5 t3. Then t4, and exploration by a step in each t5.
#[test]
fn under_a_constant_limit_the_rate_enters_a_band_and_stays() {
    let line = 20;
    let graph = explore(config(line));
    for delay in [0, 4, 9] {
        for limit in 1..=line {
            let (low, high, us) = band(&graph, limit, delay);
            assert_eq!((low, high), (limit, line.min(limit + 1)), "delay {delay} us");
            let cuts = std::iter::successors(Some(line), |rate| Some(rate * 7 / 8));
            let rounds = cuts.take_while(|&rate| rate > limit).count() as u64 + 2;
            let most = rounds * (50 + 5 * 11) + 200 + 40 * (u64::from(limit) + 1);
            assert!(us <= most, "limit {limit}, delay {delay} us: {us} of {most} us");
        }
    }
}

/// A sender and a queue that is drained at a constant rate, in steps of 0.1 us: the memory node's
/// FIFO of 64 B entries, which signals every 5 us while it is above its threshold. Returns the
/// least, the mean and the highest rate of the second half of 40 ms.
fn with_a_queue(limit_mbps: u32, initial: u32, threshold_entries: u64) -> (u32, f64, u32) {
    let config = ControlConfig { initial: Mbps(initial), ..ControlConfig::published() };
    let mut control = RateControl::new(config).unwrap();
    let (step, steps) = (Ps(100_000), 400_000);
    // In bits times 10: 0.1 us of 1 Mb/s is a tenth of a bit.
    let threshold = threshold_entries * 512 * 10;
    let (mut queue, mut signalled) = (0_u64, None::<Ps>);
    let (mut low, mut high, mut sum) = (u32::MAX, 0, 0_u64);
    for turn in 0..steps {
        let now = step * turn;
        control.on_timer(now);
        let rate = control.rate().0;
        queue = (queue + u64::from(rate)).saturating_sub(u64::from(limit_mbps));
        if queue > threshold && signalled.is_none_or(|last| now >= last + Ps(5_000_000)) {
            signalled = Some(now);
            control.on_pfc(now);
        }
        if turn >= steps / 2 {
            (low, high, sum) = (low.min(rate), high.max(rate), sum + u64::from(rate));
        }
    }
    (low, sum as f64 / (steps / 2) as f64, high)
}

/// With a queue between rate and signal, and the 50 entries of Figure 12, the band is two steps
/// wide, a step on either side of the limit; what is sent on average is 98 % of the limit at least,
/// whatever the rate was at first.
#[test]
fn with_a_queue_the_band_is_a_step_on_either_side_of_the_limit() {
    for limit_gbps in [10, 25, 41, 60, 90] {
        for initial in [1_000, 41_000, 100_000] {
            let limit = limit_gbps * 1_000;
            let (low, mean, high) = with_a_queue(limit, initial, 50);
            let run = format!("limit {limit_gbps} Gb/s from {initial} Mb/s: {low} to {high}");
            assert!(low > limit - 1_000 && high <= limit + 1_000, "{run}");
            assert!(mean >= 0.98 * f64::from(limit), "{run}, mean {mean}");
        }
    }
}
