//! Invariants of the grant scheduler for any input. Matchings are maximal, FCFS starves no message,
//! and a failed port takes only its own messages with it. The hold, which the published scheduler
//! lacks, has the effect that it is there for.

#[path = "../../units/tests/support/property.rs"]
mod property;

use std::collections::{BTreeMap, BTreeSet};

use ethermem_edm::sched::{Demand, Flow, Grant, NotifyError, Scheduler, SchedulerConfig};
use ethermem_edm::{EdmConfig, Order, Policy};
use ethermem_units::{Bytes, Ps};
use proptest::prelude::*;

/// A block time at 100 Gb/s, and a scheduler fast enough to iterate many times in a message.
const SLOT: Ps = Ps(640);
const CYCLE: Ps = Ps(10);

fn config(ports: u16, policy: Policy, order: Order) -> SchedulerConfig {
    let edm = EdmConfig { policy, order, ..EdmConfig::default() };
    SchedulerConfig::new(ports, &edm, CYCLE, SLOT)
}

fn write(source: u16, destination: u16, bytes: u32, tag: u32) -> Demand {
    Demand { source, destination, flow: Flow::WriteRequest, bytes, tag }
}

/// Steps a scheduler until it has nothing to do, or to `until`; reports every grant.
fn run(scheduler: &mut Scheduler, now: &mut Ps, until: Ps, mut granted: impl FnMut(Grant)) {
    while let Some(wake) = scheduler.next_wake().filter(|&wake| wake <= until) {
        *now = (*now).max(wake);
        scheduler.step(*now, &mut granted);
    }
}

fn all_grants(scheduler: &mut Scheduler) -> Vec<Grant> {
    let mut grants = Vec::new();
    run(scheduler, &mut Ps::ZERO.clone(), Ps::MAX, |grant| grants.push(grant));
    grants
}

/// Demands for distinct messages among `ports`, at most X per pair and flow.
fn demands(ports: u16, most: usize, bytes: u32) -> impl Strategy<Value = Vec<Demand>> {
    let one = (0..ports, 1..ports, any::<bool>(), 1..=bytes);
    prop::collection::vec(one, 1..most).prop_map(move |drawn| {
        let mut active: BTreeMap<(u16, u16, Flow), u32> = BTreeMap::new();
        let mut demands = Vec::new();
        for (tag, (source, step, read, bytes)) in drawn.into_iter().enumerate() {
            let destination = (source + step) % ports;
            let flow = if read { Flow::ReadResponse } else { Flow::WriteRequest };
            let active = active.entry((source, destination, flow)).or_default();
            if *active < 3 {
                *active += 1;
                demands.push(Demand { source, destination, flow, bytes, tag: tag as u32 });
            }
        }
        demands
    })
}

proptest! {
    #![proptest_config(property::cases(300))]

    /// Without a hold, and with all ports free at first, the first matching continues until no
    /// message is left with both of its ends free.
    #[test]
    fn a_matching_is_maximal_when_its_iterations_end(demands in demands(12, 150, 4_000)) {
        for policy in [Policy::Fcfs, Policy::SrptPublished] {
            let config = SchedulerConfig {
                lookahead_iterations: 1,
                ahead_blocks: 0,
                ..config(12, policy, Order::Relaxed)
            };
            // 12 iterations of 30 ps are over before the shortest chunk, of 1,920 ps, is.
            let horizon = SLOT * 3 - config.lookahead();
            let mut scheduler = Scheduler::new(config);
            for demand in &demands {
                scheduler.notify(*demand).expect("within X");
            }
            let (mut sources, mut destinations) = (BTreeSet::new(), BTreeSet::new());
            run(&mut scheduler, &mut Ps::ZERO.clone(), horizon, |grant| {
                assert!(sources.insert(grant.source), "port {} sends twice", grant.source);
                assert!(destinations.insert(grant.destination), "port receives twice");
            });
            for demand in &demands {
                prop_assert!(
                    sources.contains(&demand.source) || destinations.contains(&demand.destination),
                    "{policy:?}: {demand:?} was left with both ends free"
                );
            }
        }
    }

    /// Under every policy and order, each message is granted its bytes in chunks, and then nothing.
    #[test]
    fn all_that_is_asked_for_is_granted_once_and_to_the_byte(
        demands in demands(9, 120, 6_000),
        policy in prop::sample::select(
            &[
                Policy::Fcfs,
                Policy::Srpt,
                Policy::SrptPublished,
                Policy::SrptClasses,
                Policy::Auto,
            ][..],
        ),
        order in prop::sample::select(&[Order::Pair, Order::Strict, Order::Relaxed][..]),
    ) {
        let mut scheduler = Scheduler::new(config(9, policy, order));
        let mut left = BTreeMap::new();
        for demand in &demands {
            scheduler.notify(*demand).expect("within X");
            left.insert(demand.tag, demand.bytes);
        }
        prop_assert_eq!(scheduler.waiting(), demands.len());
        for grant in all_grants(&mut scheduler) {
            let rest = left.get_mut(&grant.tag).expect("granted after its last grant");
            prop_assert!(grant.bytes == (*rest).min(256), "{grant:?} of {rest} B");
            *rest -= grant.bytes;
            prop_assert_eq!(grant.last, *rest == 0);
            if grant.last {
                left.remove(&grant.tag);
            }
        }
        prop_assert!(left.is_empty(), "never granted: {left:?}");
        prop_assert_eq!(scheduler.waiting(), 0);
    }

    /// FCFS: while a message waits, one of its ports is taken by a message that shares it. Or both
    /// are free, and its destination's request went in vain to the source of an older message,
    /// which took one older still. So the wait of a message is bounded by the time in which other
    /// chunks pass one port with their iterations. These are the chunks of messages that share a
    /// port with it, and of older messages.
    #[test]
    fn fcfs_starves_nobody(demands in demands(8, 100, 2_000)) {
        let config = config(8, Policy::Fcfs, Order::Relaxed);
        let mut scheduler = Scheduler::new(config.clone());
        for demand in &demands {
            scheduler.notify(*demand).expect("within X");
        }
        let cost = |demand: &Demand| {
            let chunks = demand.bytes.div_ceil(256);
            config.busy_time(256) * u64::from(chunks) + config.iteration() * 2
        };
        let finished: BTreeMap<u32, Ps> = all_grants(&mut scheduler)
            .iter()
            .filter(|grant| grant.last)
            .map(|grant| (grant.tag, grant.at))
            .collect();
        for (at, demand) in demands.iter().enumerate() {
            let shares = |other: &&Demand| {
                other.source == demand.source || other.destination == demand.destination
            };
            let before: Ps = demands[..=at].iter().map(cost).sum();
            let shared: Ps = demands.iter().filter(shares).map(cost).sum();
            let bound = before + shared;
            prop_assert!(finished[&demand.tag] <= bound, "{demand:?} at {}", finished[&demand.tag]);
        }
    }

    /// A port fails in the middle. Its waiting messages are dropped, each reported once with its
    /// remaining bytes, and all others are granted in full.
    #[test]
    fn a_failed_port_drops_its_messages_and_no_others(
        demands in demands(7, 100, 3_000),
        port in 0..7u16,
        after in 0..60_000u64,
        policy in prop::sample::select(
            &[Policy::Fcfs, Policy::Srpt, Policy::SrptPublished, Policy::SrptClasses][..],
        ),
    ) {
        let mut scheduler = Scheduler::new(config(7, policy, Order::Pair));
        let mut left = BTreeMap::new();
        for demand in &demands {
            scheduler.notify(*demand).expect("within X");
            left.insert(demand.tag, demand.bytes);
        }
        let mut now = Ps::ZERO;
        let by_tag: BTreeMap<u32, &Demand> = demands.iter().map(|d| (d.tag, d)).collect();
        run(&mut scheduler, &mut now, Ps(after), |grant| {
            *left.get_mut(&grant.tag).expect("a message") -= grant.bytes;
        });
        left.retain(|_, bytes| *bytes > 0);
        let concerns = |demand: &Demand| demand.source == port || demand.destination == port;
        let mut expected = left.clone();
        expected.retain(|tag, _| concerns(by_tag[tag]));
        let mut dropped = BTreeMap::new();
        scheduler.fail_port(port, |demand| {
            assert!(dropped.insert(demand.tag, demand.bytes).is_none(), "dropped twice");
        });
        prop_assert_eq!(&dropped, &expected);
        left.retain(|tag, _| !dropped.contains_key(tag));
        let refused = scheduler.notify(write(port, (port + 1) % 7, 64, 900));
        prop_assert_eq!(refused, Err(NotifyError::PortFailed));
        run(&mut scheduler, &mut now, Ps::MAX, |grant| {
            assert!(grant.source != port && grant.destination != port, "{grant:?}");
            *left.get_mut(&grant.tag).expect("not dropped") -= grant.bytes;
        });
        prop_assert!(left.values().all(|&bytes| bytes == 0), "left: {left:?}");
        // Back in service, the port is granted at once.
        scheduler.restore_port(port);
        scheduler.notify(write(port, (port + 1) % 7, 64, 901)).expect("restored");
        let mut granted = Vec::new();
        run(&mut scheduler, &mut now, Ps::MAX, |grant| granted.push(grant.tag));
        prop_assert_eq!(granted, [901]);
    }
}

/// Two long messages keep ports 0 and 1 busy in turns; a short message needs both. Returns when the
/// short one is granted, and when the last chunk of either long one is.
fn short_between_two_long(policy: Policy) -> (Ps, Ps) {
    let mut scheduler = Scheduler::new(config(4, policy, Order::Pair));
    let mut now = Ps::ZERO;
    let mut granted = BTreeMap::new();
    // Half a chunk (17 slots) lies between the two, so that source 0 and destination 1 are never
    // free at one instant.
    let inputs = [
        (Ps::ZERO, write(0, 2, 20 * 256, 0)),
        (SLOT * 17, write(3, 1, 20 * 256, 1)),
        (SLOT * 40, write(0, 1, 64, 2)),
    ];
    for (at, demand) in inputs {
        run(&mut scheduler, &mut now, at - Ps(1).min(at), |grant| {
            granted.insert(grant.tag, grant.at);
        });
        now = at;
        scheduler.notify(demand).expect("within X");
    }
    run(&mut scheduler, &mut now, Ps::MAX, |grant| {
        granted.insert(grant.tag, grant.at);
    });
    (granted[&2], granted[&0].min(granted[&1]))
}

#[test]
fn the_published_rule_starves_a_short_message_and_the_hold_does_not() {
    let (short, long) = short_between_two_long(Policy::SrptPublished);
    // Greedy: whichever port comes free returns to its long message, 20 chunks of 34 slots.
    assert!(short > long, "granted at {short}, the long ones until {long}");
    let (short, long) = short_between_two_long(Policy::Srpt);
    // Held: source 0 comes free at 68 slots, destination 1 at 51, and the first of them waits for
    // the other. One iteration and the lookahead come on top.
    assert!(short < SLOT * 70, "granted at {short}");
    assert!(long > SLOT * (19 * 34), "{long}");
}

#[test]
fn the_published_rule_looks_at_remaining_bytes_alone() {
    // 600 B are left of a message of 6,000 B when a message of 700 B arrives. Published, the rest
    // goes first. The default weighs a delay by the size that it delays: the 700 B go first.
    for (policy, first) in [(Policy::SrptPublished, 0), (Policy::Srpt, 1)] {
        // There is no buffer ahead, so that both sources are free when the destination chooses.
        let config = SchedulerConfig { ahead_blocks: 0, ..config(3, policy, Order::Pair) };
        let mut scheduler = Scheduler::new(config);
        let (mut now, mut grants) = (Ps::ZERO, Vec::new());
        scheduler.notify(write(0, 2, 6_000, 0)).expect("room");
        // 21 chunks are granted, 624 B are left.
        run(&mut scheduler, &mut now, SLOT * (34 * 20 + 10), |grant| grants.push(grant.tag));
        assert_eq!(grants.len(), 21);
        scheduler.notify(write(1, 2, 700, 1)).expect("room");
        grants.clear();
        run(&mut scheduler, &mut now, Ps::MAX, |grant| grants.push(grant.tag));
        assert_eq!(grants[0], first, "{policy:?}: {grants:?}");
    }
}

#[test]
fn a_matching_of_full_queues_takes_logarithmic_iterations() {
    // Every destination has a message of every source, in random order. PIM with random priorities
    // settles at least a constant share of the unmatched ports in each iteration. So it takes about
    // log2 N iterations, and the mean is held to log2 N + 2.
    let mut state = 1u64;
    let mut draw = |end: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    for ports in [8u16, 32, 128] {
        let rounds = 20;
        let mut iterations = 0;
        for _ in 0..rounds {
            let config = SchedulerConfig {
                lookahead_iterations: 1,
                ahead_blocks: 0,
                ..config(ports, Policy::Fcfs, Order::Pair)
            };
            // 34 slots: no port comes free while the matching is made.
            let horizon = config.busy_time(256) - config.lookahead();
            let mut scheduler = Scheduler::new(config);
            let n = u64::from(ports);
            let mut pairs: Vec<(u16, u16)> = (0..ports)
                .flat_map(|s| (0..ports).filter(move |&d| d != s).map(move |d| (s, d)))
                .collect();
            for at in (1..pairs.len()).rev() {
                pairs.swap(at, draw(at as u64 + 1) as usize);
            }
            for (tag, (source, destination)) in pairs.into_iter().enumerate() {
                scheduler.notify(write(source, destination, 256, tag as u32)).expect("room");
            }
            run(&mut scheduler, &mut Ps::ZERO.clone(), horizon, |_| {});
            iterations += scheduler.stats().iterations;
            // Maximal: at most one port is left on each side, and these two have only each other.
            assert!(scheduler.stats().grants + 1 >= n, "{} of {n}", scheduler.stats().grants);
        }
        let mean = iterations as f64 / f64::from(rounds);
        let log2 = f64::from(ports).log2();
        assert!(mean > 1.5 && mean < log2 + 2.0, "{ports} ports: {mean} iterations");
    }
}

#[test]
fn a_control_debt_is_paid_by_idle_slots_only() {
    // A write of four chunks goes from 0 to 1, and control blocks cross the uplink of 0 while it is
    // busy. Up to 32 pass free; each further one moves the release by a slot.
    let gap_after = |blocks: u32| {
        let mut scheduler = Scheduler::new(config(3, Policy::Srpt, Order::Pair));
        let (mut now, mut grants) = (Ps::ZERO, Vec::new());
        scheduler.notify(write(0, 1, 1_024, 0)).expect("room");
        run(&mut scheduler, &mut now, Ps(100), |grant| grants.push(grant.at));
        scheduler.charge_source(now, 0, blocks);
        run(&mut scheduler, &mut now, Ps::MAX, |grant| grants.push(grant.at));
        (grants[1] - grants[0], grants[2] - grants[1])
    };
    let chunk = SLOT * 34;
    assert_eq!(gap_after(0), (chunk, chunk));
    assert_eq!(gap_after(32), (chunk, chunk));
    assert_eq!(gap_after(33), (chunk + SLOT, chunk));
    assert_eq!(gap_after(50), (chunk + SLOT * 18, chunk));
}

#[test]
fn a_destination_is_granted_ahead_by_its_buffer_and_no_further() {
    // Three sources share one destination: a grant comes when at most 16 blocks of the last are to
    // come.
    let mut scheduler = Scheduler::new(config(4, Policy::Fcfs, Order::Pair));
    for source in 1..4 {
        scheduler.notify(write(source, 0, 256, u32::from(source))).expect("room");
    }
    let at: Vec<Ps> = all_grants(&mut scheduler).iter().map(|grant| grant.at).collect();
    // The first grant follows an iteration of 30 ps. Its 34 slots end at 34, so the next is 18
    // later; then every 34.
    let first = Ps(30);
    assert_eq!(at, [first, first + SLOT * 18, first + SLOT * 52]);
}

#[test]
fn a_grant_frees_the_room_of_a_notification() {
    let mut scheduler = Scheduler::new(config(2, Policy::Fcfs, Order::Pair));
    for tag in 0..3 {
        scheduler.notify(write(0, 1, 64, tag)).expect("X is 3");
    }
    assert_eq!(scheduler.notify(write(0, 1, 64, 3)), Err(NotifyError::PairFull));
    // The other flow of the pair has its own room.
    let read = Demand { flow: Flow::ReadResponse, ..write(0, 1, 64, 4) };
    scheduler.notify(read).expect("responses are counted apart");
    let mut now = Ps::ZERO;
    run(&mut scheduler, &mut now, Ps(0), |grant| assert!(grant.last));
    scheduler.notify(write(0, 1, 64, 3)).expect("one has left");
    for bad in [write(0, 0, 64, 9), write(0, 2, 64, 9), write(0, 1, 0, 9), write(0, 1, 1 << 22, 9)]
    {
        assert_eq!(scheduler.notify(bad), Err(NotifyError::Invalid));
    }
    assert_eq!(scheduler.config().chunk, Bytes(256));
}
