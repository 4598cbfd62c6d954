//! Where bytes are while compute nodes have caches, and that nothing of it is lost.

use ethermem_pool::{Address, Permissions, Reply, Segments};
use ethermem_wire::RmwOperation;

use super::*;
use crate::table::SCHEMES;

const RW: Permissions = Permissions::READ_WRITE;
const OWNER: Asker = Asker { process: ProcessId(1), compute: 0 };

/// A simulated pool, and operations on it one by one.
struct World {
    sim: Sim,
    next: usize,
}

impl World {
    fn new(url: &str) -> World {
        let config = Url::read(&SCHEMES, url).and_then(|url| url::config(&url));
        let sim = config.and_then(|config| Sim::new(&config));
        World { sim: sim.unwrap_or_else(|error| panic!("{url}: {error}")), next: 0 }
    }

    fn begin(&mut self, asker: Asker, op: Op) -> OpId {
        self.next += 1;
        let id = OpId::new(self.next);
        assert_eq!(self.sim.begin(id, asker, op), None);
        id
    }

    fn run(&mut self, asker: Asker, op: Op) -> Outcome {
        let id = self.begin(asker, op);
        let mut ended = Ended::default();
        while ended.operations.is_empty() {
            assert_eq!(self.sim.progress(&mut ended), Progress::Ended);
        }
        let (ended, outcome) = ended.operations.pop().expect("one has ended");
        assert_eq!(ended, id, "nothing else is under way");
        outcome
    }

    fn done(&mut self, asker: Asker, op: Op) -> Reply {
        self.run(asker, op).expect("it is allowed")
    }

    fn alloc(&mut self, bytes: u64) -> Address {
        let op = Op::Alloc { memory: 0, bytes, permissions: RW };
        let Reply::Address(address) = self.done(OWNER, op) else { panic!("no address") };
        address
    }

    fn write(&mut self, asker: Asker, address: Address, data: &[u8]) {
        let op = Op::Write(place(address, data.len() as u64), data.to_vec());
        assert_eq!(self.done(asker, op), Reply::Done);
    }

    fn read(&mut self, asker: Asker, address: Address, bytes: u64) -> Vec<u8> {
        let read = self.done(asker, Op::Read(place(address, bytes)));
        let Reply::Bytes(bytes) = read else { panic!("no bytes") };
        bytes
    }

    /// The bytes at the memory node, whatever is in caches.
    fn at_node(&self, address: Address, bytes: u64) -> &[u8] {
        self.sim.nodes[0].read(OWNER.process, address, bytes).expect("it is the owner's")
    }

    fn counters(&self) -> LineCounters {
        self.sim.line_counters().expect("there are caches")
    }
}

fn place(address: Address, bytes: u64) -> Segments {
    Segments::from_slice(&[ethermem_pool::Segment { address, bytes }])
}

fn plus(address: Address, bytes: u64) -> Address {
    Address(address.0 + bytes)
}

#[test]
fn a_dirty_line_is_at_its_memory_node_once_it_is_flushed() {
    for flush in [Op::Flush, Op::Fence] {
        let mut world = World::new("sim:cxl-ethernet?nodes=2");
        let region = world.alloc(4096);
        let data: Vec<u8> = (1..=100).collect();
        world.write(OWNER, plus(region, 10), &data);
        assert_eq!(world.at_node(region, 4096), [0; 4096], "the write is in the cache alone");
        // The lines lack bytes, so they are fetched, and the written bytes stay.
        assert_eq!(world.read(OWNER, plus(region, 9), 102), [&[0], &data[..], &[0]].concat());
        assert_eq!(world.at_node(region, 4096), [0; 4096]);
        assert_eq!(world.done(OWNER, flush), Reply::Done);
        assert_eq!(world.at_node(plus(region, 10), 100), data);
        let counters = world.counters();
        assert_eq!((counters.write_misses, counters.read_misses, counters.evictions), (2, 2, 0));
        Backend::end(&mut world.sim, End::Closed).expect("nothing is left over");
    }
}

#[test]
fn a_line_that_must_go_is_at_its_memory_node() {
    // One set of four ways: the fifth line replaces the first.
    let mut world = World::new("sim:cxl-ethernet?nodes=2&cache_bytes=256");
    let region = world.alloc(4096);
    (0..4).for_each(|line| world.write(OWNER, plus(region, 64 * line), &[7; 64]));
    assert_eq!(world.at_node(region, 256), [0; 256]);
    world.write(OWNER, plus(region, 256), &[7; 64]);
    assert_eq!(world.at_node(region, 64), [7; 64]);
    assert_eq!(world.at_node(plus(region, 64), 256), [0; 256]);
    assert_eq!(world.counters().evictions, 1);
}

#[test]
fn a_region_of_two_compute_nodes_is_not_cached() {
    let mut world = World::new("sim:cxl-ethernet?nodes=4&memory_nodes=1");
    let region = world.alloc(4096);
    world.write(OWNER, region, &[5; 64]);
    let other = Asker { compute: 1, ..OWNER };
    assert_eq!(world.read(other, region, 64), [5; 64], "the first node's line was written back");
    let before = world.counters();
    world.write(OWNER, region, &[6; 64]);
    assert_eq!(world.read(other, region, 64), [6; 64]);
    assert_eq!(world.at_node(region, 64), [6; 64]);
    assert_eq!(world.counters(), before, "no access goes through a cache");
}

#[test]
fn a_region_of_two_processes_is_not_cached() {
    let mut world = World::new("sim:cxl-ethernet?nodes=2");
    let region = world.alloc(4096);
    world.write(OWNER, region, &[5; 64]);
    let with = ProcessId(2);
    let all = ethermem_pool::Segment { address: region, bytes: 4096 };
    let op = Op::Share { region: all, with, permissions: RW };
    assert_eq!(world.done(OWNER, op), Reply::Done);
    assert_eq!(world.at_node(region, 64), [5; 64]);
    let other = Asker { process: with, compute: 0 };
    let before = world.counters();
    world.write(other, region, &[6; 8]);
    assert_eq!(world.read(OWNER, region, 9), [6, 6, 6, 6, 6, 6, 6, 6, 5]);
    assert_eq!(world.counters(), before, "no access goes through a cache");
}

#[test]
fn memory_that_is_freed_and_allocated_anew_is_zero() {
    let mut world = World::new("sim:cxl-ethernet?nodes=2&memory_bytes=8192");
    for _ in 0..3 {
        let region = world.alloc(8192);
        assert_eq!(world.read(OWNER, region, 8192), [0; 8192]);
        world.write(OWNER, region, &[9; 8192]);
        assert_eq!(world.done(OWNER, Op::Free(region, 8192)), Reply::Done);
        let read = world.run(OWNER, Op::Read(place(region, 8)));
        assert!(matches!(read, Err(Error::Unmapped { .. })), "{read:?}");
    }
}

#[test]
fn hits_take_415_ns_on_average() {
    let mut world = World::new("sim:cxl-ethernet?nodes=2");
    let region = world.alloc(4096);
    world.write(OWNER, region, &[1; 64]);
    let mut took = |op: Op| {
        let before = world.sim.now();
        world.done(OWNER, op);
        world.sim.now() - before
    };
    // 177.5 ns twice between processor and agent, and Table II's 16 and 14 cycles of 4 ns.
    assert_eq!(took(Op::Read(place(region, 64))), Ps::from_ns(355 + 16 * 4));
    assert_eq!(took(Op::Write(place(region, 64), vec![2; 64])), Ps::from_ns(355 + 14 * 4));
}

/// Eight threads on two compute nodes, whose parts of three regions meet within lines. Each thread
/// knows its own bytes. One region is used by both compute nodes.
#[test]
fn random_operations_read_what_they_wrote() {
    for (seed, keys) in
        [(1, "cache_bytes=256"), (2, "cache_bytes=1024"), (3, "loss_ppm=50000"), (4, "load=0.3")]
    {
        let url = format!("sim:cxl-ethernet?nodes=6&memory_nodes=1&{keys}");
        random_operations(&url, seed);
    }
}

const THREADS: usize = 8;
/// Bytes of a thread in a region: no multiple of a line.
const PART_BYTES: usize = 200;

/// What an operation must give.
enum Expected {
    Anything,
    Bytes(Vec<u8>),
    Word(u64),
}

/// Threads with an operation each under way, and what each of them knows.
struct Threads {
    world: World,
    draws: SplitMix64,
    regions: [Address; 3],
    known: Vec<[[u8; PART_BYTES]; 3]>,
    under_way: Vec<Option<Expected>>,
}

impl Threads {
    fn below(&mut self, most: usize) -> usize {
        (self.draws.next_u64() % most as u64) as usize
    }

    /// The thread's next operation, and what it must give.
    fn draw(&mut self, thread: usize, compute: u16) -> (Op, Expected) {
        // The threads of compute node 0 have the second region, those of 1 the third.
        let region = if self.below(20) == 0 { 0 } else { 1 + usize::from(compute) };
        let from = self.below(PART_BYTES);
        let bytes = 1 + self.below(PART_BYTES - from);
        let base = plus(self.regions[region], (thread * PART_BYTES) as u64);
        let places = place(plus(base, from as u64), bytes as u64);
        let (kind, drawn) = (self.below(16), self.draws.next_u64());
        let mine = &mut self.known[thread][region];
        match kind {
            0 => (Op::Flush, Expected::Anything),
            1 => (Op::Fence, Expected::Anything),
            2..4 => {
                let at = from / 8 * 8;
                let word = mine[at..].first_chunk_mut().expect("a part has whole words");
                let (old, add) = (u64::from_le_bytes(*word), RmwOperation::FetchAndAdd(drawn));
                *word = add.apply(old).to_le_bytes();
                (Op::Modify(plus(base, at as u64), add), Expected::Word(old))
            }
            4..9 => {
                let data: Vec<u8> = (0..bytes).map(|at| (drawn >> (at % 57)) as u8).collect();
                mine[from..from + bytes].copy_from_slice(&data);
                (Op::Write(places, data), Expected::Anything)
            }
            _ => (Op::Read(places), Expected::Bytes(mine[from..from + bytes].to_vec())),
        }
    }

    /// Runs until an operation has ended, and compares.
    fn progress(&mut self, what: &str) {
        let mut ended = Ended::default();
        assert_eq!(self.world.sim.progress(&mut ended), Progress::Ended, "{what}");
        for (id, outcome) in ended.operations {
            let expected = self.under_way[id.place()].take().expect("it was under way");
            let reply = outcome.unwrap_or_else(|error| panic!("{error}: {what}"));
            match expected {
                Expected::Bytes(bytes) => assert_eq!(reply, Reply::Bytes(bytes), "{what}"),
                Expected::Word(word) => assert_eq!(reply, Reply::Word(word), "{what}"),
                Expected::Anything => {}
            }
        }
    }
}

fn random_operations(url: &str, seed: u64) {
    let mut world = World::new(url);
    let regions = [4096; 3].map(|bytes| world.alloc(bytes));
    let mut threads = Threads {
        world,
        draws: SplitMix64::seed_from_u64(seed),
        regions,
        known: vec![[[0; PART_BYTES]; 3]; THREADS],
        under_way: (0..THREADS).map(|_| None).collect(),
    };
    for step in 0..6_000 {
        let what = format!("step {step} of {url}, seed {seed}");
        let thread = threads.below(THREADS);
        if threads.under_way[thread].is_some() {
            threads.progress(&what);
            continue;
        }
        let compute = (thread % 2) as u16;
        let (op, expected) = threads.draw(thread, compute);
        let asker = Asker { compute, ..OWNER };
        assert_eq!(threads.world.sim.begin(OpId::new(thread), asker, op), None);
        threads.under_way[thread] = Some(expected);
    }
    while threads.under_way.iter().any(Option::is_some) {
        threads.progress(url);
    }
    let Threads { mut world, known, .. } = threads;
    for compute in 0..2 {
        assert_eq!(world.done(Asker { compute, ..OWNER }, Op::Flush), Reply::Done);
    }
    for (thread, parts) in known.iter().enumerate() {
        for (region, part) in regions.iter().zip(parts) {
            let at = plus(*region, (thread * PART_BYTES) as u64);
            assert_eq!(world.at_node(at, PART_BYTES as u64), part, "thread {thread} of {url}");
        }
    }
    let counters = world.counters();
    let used = [counters.read_hits, counters.read_misses, counters.write_hits];
    assert!(used.iter().all(|count| *count > 0), "{counters:?}");
    Backend::end(&mut world.sim, End::Closed).expect("nothing is left over");
}
