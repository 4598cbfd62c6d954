//! What programs do to data, how long their chains are, and what cannot be a program.

use std::collections::{BTreeMap, BTreeSet};

use ethermem_units::{Bytes, Ps};
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::Kind;

/// One picosecond a byte; computations take what they take.
fn cost(work: &Work) -> Ps {
    match work {
        Work::Message { bytes, .. } => Ps(bytes.0),
        Work::Compute { duration, .. } => *duration,
    }
}

/// Runs a program in a random order. `on_end` gets each step as it ends.
fn run(program: &Program, seed: u64, mut on_end: impl FnMut(&Step)) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut run = ProgramRun::new(program);
    let mut under_way = Vec::new();
    loop {
        under_way.extend(std::iter::from_fn(|| run.next_step()));
        let count = under_way.len() as u64;
        if count == 0 {
            break;
        }
        let (id, step) = under_way.swap_remove((random.next_u64() % count) as usize);
        on_end(&step);
        run.end(id).unwrap();
        assert_eq!(run.end(id), Err(StepFault(id.0)));
    }
    assert!(run.is_complete() && run.ended() == program.steps().len());
}

fn ends(step: &Step) -> Option<(u16, u16, u64)> {
    match step.work {
        Work::Message { compute, memory, bytes, .. } => Some((compute, memory, bytes.0)),
        Work::Compute { .. } => None,
    }
}

/// By node and part of the vector: whose contributions the node's sum has. A message adds the
/// sender's sum at the time when it leaves; as a sum is sent only after what it waits for, the time
/// of its end is as good.
type Sums = BTreeMap<(u16, u32), BTreeSet<u16>>;

/// Runs an allreduce whose messages carry `parts(tag, bytes)`.
fn sums(program: &Program, seed: u64, all: u32, parts: impl Fn(&Step) -> Vec<u32>) -> Sums {
    let nodes = program.nodes();
    let own = |node: u16| (0..all).map(move |part| ((node, part), BTreeSet::from([node])));
    let mut sums: Sums = (0..nodes).flat_map(own).collect();
    run(program, seed, |step| {
        let Some((from, to, _)) = ends(step) else { return };
        for part in parts(step) {
            let sent = sums[&(from, part)].clone();
            let sum = sums.get_mut(&(to, part)).unwrap();
            let is_whole = sent.len() == usize::from(nodes);
            // A whole sum replaces; an incomplete one is added, and must share nothing with it.
            assert!(is_whole || sum.is_disjoint(&sent), "part {part} is added twice: {step:?}");
            sum.extend(sent);
        }
    });
    sums
}

proptest! {
    #![proptest_config(crate::property::cases(64))]

    #[test]
    fn after_an_allreduce_every_node_has_the_whole_sum_of_every_part(
        seed in any::<u64>(),
        (groups, group_nodes) in (2..6_u16, 2..6_u16),
        more in 0..100_u64,
    ) {
        let nodes = groups * group_nodes;
        let bytes = Bytes(u64::from(nodes) + more);
        let ring = ring_allreduce(nodes, bytes).unwrap();
        let all = u32::from(nodes);
        let of_ring = sums(&ring, seed, all, |step| vec![step.tag]);
        let hierarchical = hierarchical_allreduce(groups, group_nodes, bytes).unwrap();
        // Inside a group, a message carries the parts of all groups from its tag on.
        let is_inside = |step: &Step| {
            ends(step).is_some_and(|(from, to, _)| from / group_nodes == to / group_nodes)
        };
        let of_groups = sums(&hierarchical, seed, all, |step| {
            let parts = if is_inside(step) { u32::from(groups) } else { 1 };
            (step.tag..step.tag + parts).collect()
        });
        for sum in of_ring.values().chain(of_groups.values()) {
            prop_assert_eq!(sum.len(), usize::from(nodes));
        }
        // Every node sends (n - 1) / n of the vector twice: the least that is possible.
        let least = 2 * (u64::from(nodes) - 1) * bytes.0;
        prop_assert_eq!(ring.bytes().0, least);
    }

    #[test]
    fn a_step_ends_after_all_that_it_depends_on(seed in any::<u64>(), count in 1..60_u32) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut builder = Builder::new(4);
        let mut before: Vec<Vec<StepId>> = Vec::new();
        for number in 0..count {
            let after: Vec<_> = (0..number)
                .filter(|_| random.next_u32().is_multiple_of(8))
                .map(StepId)
                .collect();
            builder.compute((number % 4) as u16, Ps(1), number, &after).unwrap();
            before.push(after);
        }
        let mut ended = BTreeSet::new();
        run(&builder.build(), seed, |step| {
            assert!(before[step.tag as usize].iter().all(|step| ended.contains(step)));
            ended.insert(StepId(step.tag));
        });
    }
}

#[test]
fn chains_are_as_long_as_the_algorithms_say() {
    let bytes = Bytes(1200);
    // Ring: 2 (n - 1) rounds of 1/n.
    let ring = ring_allreduce(12, bytes).unwrap();
    assert_eq!((ring.critical_path(cost), ring.steps().len()), (Ps(22 * 100), 2 * 11 * 12));
    // 3 groups of 4: 3 rounds of 300, 4 rounds of 100, 3 rounds of 300.
    let groups = hierarchical_allreduce(3, 4, bytes).unwrap();
    assert_eq!(groups.critical_path(cost), Ps(900 + 400 + 900));
    assert_eq!(all_to_all(5, bytes).unwrap().critical_path(cost), Ps(4 * 1200));
    assert_eq!(gather(5, 3, bytes).unwrap().critical_path(cost), Ps(1200));
    let shape = |nodes, shape| broadcast(nodes, 2, bytes, shape).unwrap().critical_path(cost);
    assert_eq!(shape(5, BroadcastShape::Flat), Ps(1200));
    // Rank 7 gets it from 3, which gets it from 1, which gets it from 0.
    assert_eq!(shape(8, BroadcastShape::Tree), Ps(3 * 1200));
}

#[test]
fn every_pair_of_an_all_to_all_has_one_message_and_a_broadcast_reaches_all() {
    let mut pairs = BTreeSet::new();
    run(&all_to_all(7, Bytes(10)).unwrap(), 1, |step| {
        let (from, to, _) = ends(step).unwrap();
        assert!(pairs.insert((from, to)));
    });
    assert_eq!(pairs.len(), 7 * 6);
    for shape in [BroadcastShape::Flat, BroadcastShape::Tree] {
        let mut have = BTreeSet::from([4]);
        run(&broadcast(13, 4, Bytes(10), shape).unwrap(), 2, |step| {
            let (from, to, _) = ends(step).unwrap();
            assert!(have.contains(&from) && have.insert(to), "{shape:?}");
        });
        assert_eq!(have.len(), 13);
    }
}

#[test]
fn a_superstep_waits_for_all_messages_of_the_one_before() {
    let graph = Supersteps { nodes: 4, supersteps: 12, compute: Ps(7), bytes: Bytes(100) };
    let program = graph.program().unwrap();
    assert_eq!(program.critical_path(cost), Ps(12 * 107));
    let mut got = [[0; 4]; 12];
    run(&program, 3, |step| match step.work {
        Work::Message { memory, .. } => got[step.tag as usize][usize::from(memory)] += 1,
        Work::Compute { node, .. } => {
            let before = (step.tag as usize).checked_sub(1);
            assert!(before.is_none_or(|before| got[before][usize::from(node)] == 3));
        }
    });
    assert_eq!(got, [[3; 4]; 12]);
}

#[test]
fn a_shuffle_has_so_many_messages_under_way_and_reduces_at_the_end() {
    let shuffle = Shuffle {
        mappers: 3,
        reducers: 1,
        map: Ps(50),
        reduce: Ps(20),
        bytes: Bytes(1050),
        message_bytes: Bytes(100),
        in_flight: 2,
    };
    let program = shuffle.program().unwrap();
    // 11 messages, two at a time: five rounds of 100, then the eleventh of 50 behind the ninth.
    assert_eq!(program.critical_path(cost), Ps(50 + 5 * 100 + 50 + 20));
    assert_eq!(program.bytes(), Bytes(3 * 1050));
    let mut state = ProgramRun::new(&program);
    let maps: Vec<_> = std::iter::from_fn(|| state.next_step()).collect();
    assert_eq!(maps.len(), 3);
    state.end(maps[0].0).unwrap();
    let sent: Vec<_> = std::iter::from_fn(|| state.next_step()).map(|(_, step)| step.tag).collect();
    assert_eq!(sent, [0, 1]);
    let mut ended = 0;
    run(&program, 4, |step| {
        let is_reduce = matches!(step.work, Work::Compute { node: 3, .. });
        assert!(!is_reduce || ended == 3 + 33);
        ended += 1;
    });
}

#[test]
fn a_client_has_so_many_requests_under_way_and_servers_share_them() {
    let store = KeyValue {
        clients: 2,
        servers: 3,
        requests: 3000,
        in_flight: 4,
        value_bytes: Bytes(32),
        reads: 0.75,
        serve: Ps(5),
        think: Ps(3),
    };
    let program = store.program(9).unwrap();
    assert_eq!(program, store.program(9).unwrap(), "a seed means one program");
    assert_ne!(program, store.program(10).unwrap());
    let (mut by_server, mut reads) = ([0_u32; 5], 0);
    let mut state = ProgramRun::new(&program);
    assert_eq!(std::iter::from_fn(|| state.next_step()).count(), 2 * 4);
    run(&program, 5, |step| {
        if let Work::Message { kind, memory, .. } = step.work {
            by_server[usize::from(memory)] += 1;
            reads += u32::from(kind == Kind::Read);
        }
    });
    assert_eq!(by_server[..2], [0, 0]);
    // 6,000 requests: 2,000 a server and 4,500 reads, within five standard deviations.
    assert!(by_server[2..].iter().all(|&count| count.abs_diff(2000) < 5 * 37), "{by_server:?}");
    assert!(reads.abs_diff(4500) < 5 * 34, "{reads}");
    assert_eq!(program.critical_path(cost), Ps(750 * (3 + 5 + 32)));
}

#[test]
fn what_is_no_program_is_refused_with_the_reason() {
    let text = |result: Result<Program, ProgramError>| result.unwrap_err().to_string();
    assert_eq!(text(ring_allreduce(1, Bytes(9))), "1 nodes: must be at least 2");
    let small = "bytes = 3: must be at least 1 B for each node's chunk";
    assert_eq!(text(ring_allreduce(4, Bytes(3))), small);
    assert_eq!(text(gather(4, 4, Bytes(1))), "node 4: must be below 4");
    assert_eq!(text(broadcast(4, 9, Bytes(1), BroadcastShape::Flat)), "node 9: must be below 4");
    assert_eq!(text(all_to_all(4, Bytes(0))), "step 0: a message has at least 1 B");
    assert!(hierarchical_allreduce(1 << 9, 1 << 9, Bytes(1 << 30)).is_err());
    let mut builder = Builder::new(2);
    assert_eq!(builder.send(1, 1, Bytes(1), 0, &[]), Err(ProgramError::SameNode(0)));
    let later = ProgramError::Later { step: 0, on: 0 };
    assert_eq!(builder.send(0, 1, Bytes(1), 0, &[StepId(0)]), Err(later));
    let first = builder.send(0, 1, Bytes(1), 0, &[]).unwrap();
    builder.send(1, 0, Bytes(1), 0, &[first, first]).unwrap();
    let program = builder.build();
    assert_eq!((program.waits_for(StepId(1)), program.followers(first)), (1, &[StepId(1)][..]));
    let store = KeyValue {
        clients: 1,
        servers: 1,
        requests: 1,
        in_flight: 1,
        value_bytes: Bytes(1),
        reads: 2.0,
        serve: Ps(0),
        think: Ps(0),
    };
    assert_eq!(text(store.program(1)), "reads = 2: must be a share from 0 to 1");
    assert!(KeyValue { in_flight: 0, reads: 0.5, ..store }.program(1).is_err());
    let mut run = ProgramRun::new(&program);
    assert_eq!(run.end(StepId(0)), Err(StepFault(0)));
    assert_eq!(run.end(StepId(7)), Err(StepFault(7)));
}
