//! A client with several paths to its node, over links that lose, slow down, die and return. The
//! links and their faults are virtual, and one seed determines a run: `CLIO_SEED=… cargo test -p
//! ethermem-clio --test paths` repeats it alone.

#[path = "support/links.rs"]
mod links;

use std::collections::BTreeMap;

use ethermem_clio::transport::{Completed, PathId};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::Request;
use links::{Link, MS, US, World, word};

const REGION: u64 = 64 << 10;
/// Reads in flight, which exceed what any set of these links carries.
const DEPTH: usize = 400;

/// A world whose paths are all up.
fn ready(seed: u64, links: &[Link]) -> (World, u64) {
    let mut world = World::new(seed, links);
    let address = world.begin(REGION);
    world.load(address, DEPTH, 50 * MS);
    (world, address)
}

/// Bytes in 100 ms over such links.
fn carried(links: &[Link]) -> u64 {
    let (mut world, address) = ready(1, links);
    world.load(address, DEPTH, 100 * MS).0
}

fn seeds(most: u64) -> Vec<u64> {
    match std::env::var("CLIO_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=most).collect(),
    }
}

/// Says the seed of a run that fails.
struct Said(u64);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("CLIO_SEED={} repeats it", self.0);
        }
    }
}

#[test]
fn equal_links_carry_together_what_they_carry_alone() {
    let one = carried(&[Link::GIGABIT]);
    // 1 Gb/s for 100 ms is 12.5 MB with all headers and retries.
    assert!((8_000_000..12_500_000).contains(&one), "{one}");
    for (links, least) in [(2, 19), (4, 36), (8, 72)] {
        let all = carried(&vec![Link::GIGABIT; links]);
        assert!(all * 10 >= one * least, "{links} links: {all}, one: {one}");
    }
}

#[test]
fn unequal_links_carry_together_what_they_carry_alone() {
    let one = carried(&[Link::GIGABIT]);
    let rates = [8, 8, 16, 32].map(|ns_per_octet| Link { ns_per_octet, ..Link::GIGABIT });
    let all = carried(&rates);
    // The sum of the rates is 2.75 times one.
    assert!(all * 100 >= one * 250, "{all}, one: {one}");
}

#[test]
fn a_path_four_times_slower_adds_its_rate_and_delays_no_single_operation() {
    let fast = Link::GIGABIT;
    let slow = Link { ns_per_octet: 32, way: 4 * fast.way, ..fast };
    let (one, both) = (carried(&[fast]), carried(&[fast, slow]));
    assert!(both * 100 >= one * 115, "{both} of at most 1.25 times {one}");
    let (mut world, address) = ready(1, &[fast, slow]);
    let before = world.tries(1);
    for _ in 0..1000 {
        let began = world.now;
        world.client.submit(world.process, Request::Read { address, bytes: 64 });
        assert!(world.next_event().outcome.is_ok());
        assert!(world.now - began < 4 * fast.way, "{} ns", world.now - began);
    }
    assert!(world.tries(1) - before <= 10, "{} of 1000", world.tries(1) - before);
}

#[test]
fn losses_on_one_path_leave_the_other_path_its_rate() {
    let one = carried(&[Link::GIGABIT]);
    for (lost, least) in [(10, 150), (50, 130), (300, 95)] {
        let both = carried(&[Link::GIGABIT, Link { lost, ..Link::GIGABIT }]);
        assert!(both * 100 >= one * least, "{lost} of 1000: {both}, one: {one}");
    }
}

/// A silent death: datagrams vanish and no error is reported.
#[test]
fn a_path_that_dies_is_left_within_100_ms_and_a_path_that_returns_is_used() {
    for seed in seeds(8) {
        let _said = Said(seed);
        let (mut world, address) = ready(seed, &[Link::GIGABIT; 4]);
        let dies = world.now + world.draw(20 * MS);
        let dead = world.draw(4) as usize;
        world.change_at(dies, dead, |link| link.is_up = false);
        let (_, longest) = world.load(address, DEPTH, 120 * MS);
        assert!(longest < 5 * MS, "{longest} ns without an answer");
        let report = world.client.path_report(PathId::new(dead));
        assert!(!report.is_up && report.falls == 1 && report.under_way == 0, "{report:?}");
        let tries = world.tries(dead);
        let (without, _) = world.load(address, DEPTH, 100 * MS);
        assert!(world.tries(dead) - tries < 10, "only probes");
        let returns = world.now;
        world.change_at(returns, dead, |link| link.is_up = true);
        world.load(address, DEPTH, 300 * MS);
        assert!(world.client.path_report(PathId::new(dead)).is_up);
        let (with, _) = world.load(address, DEPTH, 100 * MS);
        assert!(with * 100 > without * 125, "{with} after {without}");
    }
}

/// What was in flight on a path is sent elsewhere at once where the system says that it is down.
#[test]
fn a_path_that_the_system_refuses_is_left_at_once() {
    let (mut world, address) = ready(3, &[Link::GIGABIT; 2]);
    world.reports = true;
    let dies = world.now + 5 * MS;
    world.change_at(dies, 1, |link| link.is_up = false);
    let (_, longest) = world.load(address, DEPTH, 50 * MS);
    assert!(longest < MS, "{longest} ns without an answer");
    let report = world.client.path_report(PathId::new(1));
    assert!(!report.is_up && report.falls == 1, "{report:?}");
}

#[test]
fn a_path_whose_rate_falls_is_left_and_operations_on_it_end_elsewhere() {
    let (mut world, address) = ready(4, &[Link::GIGABIT; 2]);
    let falls = world.now;
    // 1 Mb/s: a datagram of 1,170 B takes 9.4 ms, and the queue up to a second.
    world.change_at(falls, 0, |link| (link.ns_per_octet, link.queue) = (8_000, 1000 * MS));
    let one = carried(&[Link::GIGABIT]);
    let (_, longest) = world.load(address, DEPTH, 100 * MS);
    assert!(longest < 5 * MS, "{longest}");
    let (after, _) = world.load(address, DEPTH, 100 * MS);
    assert!(after * 100 >= one * 85, "{after}, one: {one}");
}

#[test]
fn a_node_is_found_by_any_path_and_after_all_paths_died() {
    let dead = Link { is_up: false, ..Link::GIGABIT };
    let (mut world, address) = ready(5, &[dead, dead, Link::GIGABIT]);
    assert!(world.tries(2) > 100);
    let dies = world.now;
    world.change_at(dies, 2, |link| link.is_up = false);
    world.client.submit(world.process, Request::Read { address, bytes: 64 });
    let returns = dies + 700 * MS;
    world.change_at(returns, 1, |link| link.is_up = true);
    assert!(world.next_event().outcome.is_ok());
    assert!(world.now - returns < 300 * MS, "{} ms", (world.now - returns) / MS);
}

#[test]
fn an_idle_client_sends_nothing_on_a_path_that_is_down() {
    let (mut world, _) = ready(6, &[Link::GIGABIT; 2]);
    world.links[1].is_up = false;
    world.client.path_failed(ethermem_units::Ns(world.now), PathId::new(1));
    let tries = world.tries(1);
    let end = world.now + 60_000 * MS;
    world.run_until(end);
    assert_eq!(world.tries(1), tries);
}

/// What one operation of the mixed test is expected to give.
enum Expected {
    Nothing,
    Bytes(Vec<u8>),
    Before,
}

/// Writes, reads and atomics, while links lose, copy, reorder, die and return at random. Every read
/// is compared with a model, and each atomic has acted exactly once.
#[test]
fn operations_are_done_once_whatever_path_their_tries_take() {
    for seed in seeds(30) {
        let _said = Said(seed);
        let faulty = Link { jitter: 400 * US, lost: 30, doubled: 30, ..Link::GIGABIT };
        let slow = Link { ns_per_octet: 200, way: 300 * US, ..faulty };
        let mut world = World::new(seed, &[faulty, slow, faulty]);
        let address = world.begin(REGION);
        for link in 0..3 {
            let mut at = world.now;
            for is_up in [false, true, false, true] {
                at += 20 * MS + world.draw(100 * MS);
                world.change_at(at, link, |link| link.is_up = is_up);
            }
        }
        world.reports = seed % 2 == 0;
        mixed(&mut world, address, 4000);
    }
}

fn mixed(world: &mut World, address: u64, operations: u64) {
    const SLOT: u64 = 2048;
    let (mut model, mut sum, mut befores) = (vec![0; REGION as usize], 0, Vec::new());
    let mut open = BTreeMap::new();
    let mut free: Vec<u64> = (1..REGION / SLOT).collect();
    for at in 0..operations {
        // Pauses, so that links die and return while the client is idle, too.
        if world.draw(500) == 0 {
            let end = world.now + world.draw(60 * MS);
            while !open.is_empty() {
                end_one(world, &mut open, &mut free, &mut befores);
            }
            world.run_until(end.max(world.now));
        }
        let bytes = 1 + world.draw(SLOT - 1);
        if world.draw(3) == 0 {
            let operation = RmwOperation::FetchAndAdd(1);
            let id = world.client.submit(world.process, Request::Modify { address, operation });
            open.insert(id, (0, Expected::Before));
            sum += 1;
        } else {
            let slot = free.pop().expect("fewer are open than there are");
            let from = (slot * SLOT) as usize..(slot * SLOT + bytes) as usize;
            let place = address + slot * SLOT;
            if world.draw(2) == 0 {
                model[from.clone()].fill(at as u8);
                let data = model[from].to_vec();
                let id = world.client.submit_write(world.process, place, data);
                open.insert(id, (slot, Expected::Nothing));
            } else {
                let read = Request::Read { address: place, bytes: bytes as u32 };
                let id = world.client.submit(world.process, read);
                open.insert(id, (slot, Expected::Bytes(model[from].to_vec())));
            }
        }
        while open.len() >= 20 {
            end_one(world, &mut open, &mut free, &mut befores);
        }
    }
    while !open.is_empty() {
        end_one(world, &mut open, &mut free, &mut befores);
    }
    befores.sort_unstable();
    assert_eq!(befores, (0..sum).collect::<Vec<u64>>(), "each addition acted once");
}

fn end_one(
    world: &mut World,
    open: &mut BTreeMap<ethermem_clio::transport::OperationId, (u64, Expected)>,
    free: &mut Vec<u64>,
    befores: &mut Vec<u64>,
) {
    let event = world.next_event();
    let (slot, expected) = open.remove(&event.operation).expect("it ends once");
    match expected {
        Expected::Nothing => assert_eq!(event.outcome, Ok(Completed::Done)),
        Expected::Bytes(bytes) => assert_eq!(event.outcome, Ok(Completed::Bytes(bytes))),
        Expected::Before => return befores.push(word(event.outcome)),
    }
    free.push(slot);
}
