//! The clocked and the event-driven scheduler make equal decisions at equal times.
//!
//! Both get equal notifications at equal clock cycles, and their grants must be equal, cycle for
//! cycle. The tests also check every schedule. No port is granted twice at once, each message is
//! granted exactly its bytes, streams are first-in-first-out, and a schedule ends.

#[path = "../../units/tests/support/property.rs"]
mod property;

use std::collections::{BTreeMap, BTreeSet};

use ethermem_edm::sched::{CycleGrant, CycleScheduler, Demand, Flow, Scheduler, SchedulerConfig};
use ethermem_edm::{EdmConfig, Order, Policy};
use ethermem_units::{Bytes, Ps};
use proptest::prelude::*;

const CYCLE: Ps = Ps(10);

#[derive(Clone, Debug)]
struct Case {
    config: SchedulerConfig,
    /// (cycle, demand), in order of cycles.
    demands: Vec<(u64, Demand)>,
    /// Control blocks that pass: (cycle, port, blocks, uplink), in order of cycles.
    control: Vec<(u64, u16, u32, bool)>,
    /// Number of cycles from a grant until its data arrives, and from there until it leaves its
    /// egress.
    delays: Vec<(u64, u64)>,
}

/// Data in flight: (cycle, whether it leaves, grant).
type UnderWay = BTreeSet<(u64, bool, CycleGrant)>;

impl Case {
    fn set_out(&self, under_way: &mut UnderWay, grant: CycleGrant) {
        let at = grant.at_cycle as usize + usize::from(grant.source);
        let (to_switch, at_egress) = self.delays[at % self.delays.len()];
        under_way.insert((grant.at_cycle + to_switch, false, grant));
        under_way.insert((grant.at_cycle + to_switch + at_egress, true, grant));
    }
}

/// Takes an item that is due by `cycle`: whether it leaves, and its grant.
fn due(under_way: &mut UnderWay, cycle: u64) -> Option<(bool, CycleGrant)> {
    let first = under_way.first().filter(|&&(at, ..)| at <= cycle)?;
    let (_, leaves, grant) = *first;
    under_way.pop_first();
    Some((leaves, grant))
}

fn config(
    ports: u16,
    policy: Policy,
    order: Order,
    (lookahead, ahead): (u8, u32),
    slot: u64,
) -> SchedulerConfig {
    let edm = EdmConfig {
        chunk: Bytes(128),
        notifications_max: 3,
        policy,
        order,
        ..EdmConfig::default()
    };
    SchedulerConfig {
        lookahead_iterations: lookahead,
        ahead_blocks: ahead,
        ..SchedulerConfig::new(ports, &edm, CYCLE, CYCLE * slot)
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let policies = prop_oneof![
        Just(Policy::Fcfs),
        Just(Policy::Srpt),
        Just(Policy::SrptPublished),
        Just(Policy::SrptClasses),
        Just(Policy::Auto)
    ];
    let orders = prop_oneof![Just(Order::Pair), Just(Order::Relaxed)];
    let sizes = prop_oneof![3 => 1..=64u32, 2 => 65..=600u32, 1 => 1_000..=4_000u32];
    let demand = (0..40u64, any::<(u16, u16, bool)>(), sizes);
    let control = (0..400u64, any::<u16>(), 1..4u32, any::<bool>());
    let late = prop::option::of(1..1_000u32);
    // A chunk has 18 blocks.
    let window = prop::option::of(18..60u32);
    let shape = (2..9u16, policies, orders, (1..4u8, 0..25u32), 1..3u64, 0..12u32, late);
    let drawn = (prop::collection::vec(demand, 1..120), prop::collection::vec(control, 0..200));
    let delays = prop::collection::vec((0..60u64, 0..60u64), 1..8);
    (shape, drawn, (window, delays)).prop_map(|(shape, (drawn, mut control), (egress, delays))| {
        let (ports, policy, order, window, slot, control_blocks_free, late_bytes_min) = shape;
        let mut cycle = 0;
        let demands = drawn
            .into_iter()
            .enumerate()
            .map(|(tag, (gap, (a, b, read), bytes))| {
                // Three in four demands arrive in the cycle of the previous one.
                cycle += if gap < 30 { 0 } else { gap - 25 };
                let source = a % ports;
                let destination = (source + 1 + b % (ports - 1)) % ports;
                let flow = if read { Flow::ReadResponse } else { Flow::WriteRequest };
                (cycle, Demand { source, destination, flow, bytes, tag: tag as u32 })
            })
            .collect();
        for (_, port, ..) in &mut control {
            *port %= ports;
        }
        control.sort_by_key(|&(cycle, ..)| cycle);
        let mut config = config(ports, policy, order, window, slot);
        config.control_blocks_free = config.control_blocks_free.map(|_| control_blocks_free);
        config.late_bytes_min = late_bytes_min;
        config.egress_window_blocks = egress;
        Case { config, demands, control, delays }
    })
}

/// Runs the clocked form; returns which demands were accepted, and the grants.
fn run_cycles(case: &Case) -> (Vec<bool>, Vec<CycleGrant>) {
    let mut scheduler = CycleScheduler::new(case.config.clone());
    let (mut accepted, mut grants) = (Vec::new(), Vec::new());
    let (mut next, mut next_control) = (0, 0);
    let total: u64 = case.demands.iter().map(|(_, d)| u64::from(d.bytes)).sum();
    let last = case.demands.last().map_or(0, |&(cycle, _)| cycle);
    // Twice the time to send everything over one port, and every iteration of every chunk.
    let end = last + 4 * (total / 8 + 4 * total / 128 + 4 * case.demands.len() as u64) + 2_000;
    // The end also includes the time that every grant may be in flight.
    let end = end + 120 * (total / 128 + case.demands.len() as u64);
    let mut under_way = UnderWay::new();
    while scheduler.cycle() < end {
        while next < case.demands.len() && case.demands[next].0 == scheduler.cycle() {
            accepted.push(scheduler.notify(case.demands[next].1).is_ok());
            next += 1;
        }
        while next_control < case.control.len() && case.control[next_control].0 == scheduler.cycle()
        {
            let (_, port, blocks, uplink) = case.control[next_control];
            if uplink {
                scheduler.charge_source(port, blocks);
            } else {
                scheduler.charge_destination(port, blocks);
            }
            next_control += 1;
        }
        while let Some((leaves, grant)) = due(&mut under_way, scheduler.cycle()) {
            let blocks = case.config.chunk_blocks(grant.bytes);
            if leaves {
                scheduler.on_departed(grant.destination, blocks);
            } else {
                scheduler.on_sent(grant.source, blocks);
            }
        }
        let granted = scheduler.tick();
        granted.iter().for_each(|&grant| case.set_out(&mut under_way, grant));
        grants.extend(granted);
    }
    (accepted, grants)
}

/// Runs the event-driven form on the demands that the clocked one accepted.
fn run_events(case: &Case, accepted: &[bool]) -> Vec<CycleGrant> {
    let mut scheduler = Scheduler::new(SchedulerConfig {
        // The two forms free a queue slot at different cycles of an iteration.
        notifications_max: 200,
        ..case.config.clone()
    });
    let mut grants = Vec::new();
    let mut demands =
        case.demands.iter().zip(accepted).filter(|(_, accepted)| **accepted).peekable();
    let mut control = case.control.iter().peekable();
    let mut under_way = UnderWay::new();
    let mut now = Ps::ZERO;
    loop {
        let input = demands.peek().map(|((cycle, _), _)| *cycle).into_iter();
        let input = input.chain(control.peek().map(|(cycle, ..)| *cycle));
        let input = input.chain(under_way.first().map(|&(cycle, ..)| cycle)).min();
        let next = input.map(|cycle| CYCLE * cycle).into_iter().chain(scheduler.next_wake()).min();
        // A wake-up in the past means now: the time of the last input.
        let Some(next) = next else { break };
        now = now.max(next);
        while demands.peek().is_some_and(|((cycle, _), _)| CYCLE * *cycle <= now) {
            let ((_, demand), _) = demands.next().expect("peeked");
            scheduler.notify(*demand).expect("room for all");
        }
        while let Some(&(_, port, blocks, uplink)) =
            control.next_if(|(cycle, ..)| CYCLE * *cycle <= now)
        {
            if uplink {
                scheduler.charge_source(now, port, blocks);
            } else {
                scheduler.charge_destination(now, port, blocks);
            }
        }
        while let Some((leaves, grant)) = due(&mut under_way, now.0 / CYCLE.0) {
            let blocks = case.config.chunk_blocks(grant.bytes);
            if leaves {
                scheduler.on_departed(grant.destination, blocks);
            } else {
                scheduler.on_sent(grant.source, blocks);
            }
        }
        let mut batch = Vec::new();
        scheduler.step(now, |grant| {
            batch.push(CycleGrant {
                at_cycle: grant.at.0 / CYCLE.0,
                source: grant.source,
                destination: grant.destination,
                tag: grant.tag,
                bytes: grant.bytes,
                first: grant.first,
                last: grant.last,
            });
        });
        batch.sort_by_key(|grant| grant.source);
        batch.iter().for_each(|&grant| case.set_out(&mut under_way, grant));
        grants.extend(batch);
    }
    grants
}

fn check_schedule(case: &Case, accepted: &[bool], grants: &[CycleGrant]) {
    let mut left: BTreeMap<u32, u32> = BTreeMap::new();
    for ((_, demand), _) in case.demands.iter().zip(accepted).filter(|(_, a)| **a) {
        left.insert(demand.tag, demand.bytes);
    }
    let mut free: BTreeMap<(bool, u16), u64> = BTreeMap::new();
    let mut finished: BTreeMap<(u16, u16, bool), u32> = BTreeMap::new();
    for grant in grants {
        let busy = case.config.busy_time(grant.bytes).0 / CYCLE.0;
        // A source is never granted twice at once; a destination is at most its buffer ahead.
        let ahead = case.config.ahead().0 / CYCLE.0;
        for (end, ahead) in [((false, grant.source), 0), ((true, grant.destination), ahead)] {
            let from = free.get(&end).copied().unwrap_or(0);
            assert!(grant.at_cycle + ahead >= from, "port {end:?} granted too early: {grant:?}");
            free.insert(end, grant.at_cycle.max(from) + busy);
        }
        let demand = case.demands[grant.tag as usize].1;
        let rest = left.get_mut(&grant.tag).expect("granted only while queued");
        assert_eq!(grant.first, *rest == demand.bytes, "{grant:?}");
        *rest -= grant.bytes;
        assert_eq!(grant.last, *rest == 0, "{grant:?}");
        if grant.last {
            left.remove(&grant.tag);
            let stream = (grant.source, grant.destination, demand.flow == Flow::ReadResponse);
            let before = finished.insert(stream, grant.tag);
            if case.config.order == Order::Pair {
                assert!(before.is_none_or(|b| b < grant.tag), "{stream:?} out of order");
            }
        }
    }
    assert!(left.is_empty(), "never granted: {left:?}");
    check_windows(case, grants);
}

/// Checks that no end ever has more outstanding than its window.
fn check_windows(case: &Case, grants: &[CycleGrant]) {
    let Some(window) = case.config.egress_window_blocks else { return };
    let mut outstanding: BTreeMap<(bool, u16), u32> = BTreeMap::new();
    let mut under_way = UnderWay::new();
    for &grant in grants {
        let blocks = |grant: CycleGrant| case.config.chunk_blocks(grant.bytes);
        let end = |leaves, grant: CycleGrant| {
            (leaves, if leaves { grant.destination } else { grant.source })
        };
        // A grant is decided before the cycle in its record; what passed by then may count.
        while let Some((leaves, passed)) = due(&mut under_way, grant.at_cycle) {
            *outstanding.get_mut(&end(leaves, passed)).expect("granted") -= blocks(passed);
        }
        for leaves in [false, true] {
            let outstanding = outstanding.entry(end(leaves, grant)).or_default();
            *outstanding += blocks(grant);
            assert!(*outstanding <= window, "{outstanding} of {window} blocks: {grant:?}");
        }
        case.set_out(&mut under_way, grant);
    }
}

proptest! {
    #![proptest_config(property::cases(400))]
    #[test]
    fn both_forms_grant_the_same_in_the_same_cycle(case in cases()) {
        let (accepted, by_cycle) = run_cycles(&case);
        check_schedule(&case, &accepted, &by_cycle);
        let by_event = run_events(&case, &accepted);
        prop_assert_eq!(by_event, by_cycle);
    }
}

#[test]
fn a_lone_message_is_granted_an_iteration_after_its_notification_and_then_back_to_back() {
    let case = Case {
        config: config(2, Policy::Srpt, Order::Pair, (1, 0), 1),
        demands: vec![(
            7,
            Demand { source: 0, destination: 1, flow: Flow::WriteRequest, bytes: 300, tag: 0 },
        )],
        control: Vec::new(),
        delays: vec![(0, 0)],
    };
    let (_, grants) = run_cycles(&case);
    let at: Vec<_> = grants.iter().map(|g| (g.at_cycle, g.bytes)).collect();
    // 128 B are 16 blocks and two of framing: the next chunk's first bit follows 18 slots later.
    assert_eq!(at, [(10, 128), (28, 128), (46, 44)]);
}

#[test]
fn a_lone_message_takes_one_step_a_chunk() {
    let config = SchedulerConfig::new(2, &EdmConfig::default(), CYCLE, CYCLE);
    let chunk = config.chunk.0 as u32;
    let mut scheduler = Scheduler::new(config);
    let demand =
        Demand { source: 0, destination: 1, flow: Flow::WriteRequest, bytes: 20 * chunk, tag: 0 };
    scheduler.notify(demand).unwrap();
    let (mut steps, mut grants) = (0, 0);
    while let Some(wake) = scheduler.next_wake() {
        scheduler.step(wake, |_| grants += 1);
        steps += 1;
    }
    assert_eq!((steps, grants), (20, 20));
}

#[test]
fn a_write_waits_for_the_release_of_the_read_before_it() {
    // Node 0 reads from 1, then writes to 1. Port 0's downlink is busy with a long message. So the
    // read is released late, and the write could overtake it.
    let read = Demand { source: 1, destination: 0, flow: Flow::ReadResponse, bytes: 64, tag: 1 };
    let write = Demand { source: 0, destination: 1, flow: Flow::WriteRequest, bytes: 64, tag: 2 };
    let long = Demand { source: 2, destination: 0, flow: Flow::WriteRequest, bytes: 128, tag: 0 };
    for (order, first_of_pair) in [(Order::Pair, 1), (Order::Relaxed, 2)] {
        let case = Case {
            config: config(3, Policy::Fcfs, order, (1, 0), 1),
            demands: vec![(0, long), (4, read), (4, write)],
            control: Vec::new(),
            delays: vec![(0, 0)],
        };
        let (_, grants) = run_cycles(&case);
        let order: Vec<_> = grants.iter().map(|g| g.tag).filter(|&tag| tag != 0).collect();
        assert_eq!(order[0], first_of_pair, "{grants:?}");
    }
}

#[test]
fn a_message_that_waited_longer_than_it_takes_goes_before_shorter_ones() {
    // Ten messages of 700 B would all go before the one of 1,000 B, whose patience ends after 187.
    let write = |source, bytes, tag| Demand {
        source,
        destination: 0,
        flow: Flow::WriteRequest,
        bytes,
        tag,
    };
    let demands: Vec<_> = std::iter::once(write(1, 1_000, 0))
        .chain((1..=10).map(|tag| write(2 + tag as u16 % 5, 700, tag)))
        .map(|demand| (0, demand))
        .collect();
    for (late_bytes_min, place) in [(None, 10), (Some(1_001), 10), (Some(1_000), 2)] {
        let config = config(7, Policy::Srpt, Order::Pair, (1, 0), 1);
        let config = SchedulerConfig { late_bytes_min, ..config };
        let case =
            Case { config, demands: demands.clone(), control: Vec::new(), delays: vec![(0, 0)] };
        let (_, grants) = run_cycles(&case);
        let ended: Vec<_> = grants.iter().filter(|g| g.last).map(|g| g.tag).collect();
        assert_eq!(ended.iter().position(|&tag| tag == 0), Some(place), "{late_bytes_min:?}");
    }
}
