//! Line traces replayed: latencies that follow from the fabrics, and hits that two independent
//! caches agree on.

use ethermem_lines::prefetch::PrefetchKind;
use ethermem_lines::{LINE_BYTES, TrafficKind};
use ethermem_sim::registry::find;
use ethermem_study::lines::{LineOutcome, LineSetup};
use ethermem_trace::LineAccess;
use ethermem_units::Bytes;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const ADDRESS: u64 = 0x7f12_3456_7000;

fn setup(fabric: &str, cache: u64, prefetch: PrefetchKind) -> LineSetup {
    LineSetup {
        fabric: find(fabric).expect("it is registered"),
        link_gbps: 100,
        cache: Bytes(cache),
        prefetch,
        instructions_per_ns: 1.0,
        warmup: 0,
        seed: 1,
        settings: Vec::new(),
    }
}

fn replay(setup: &LineSetup, accesses: &[LineAccess]) -> LineOutcome {
    setup.replay(accesses).unwrap_or_else(|error| panic!("{}: {error:?}", setup.fabric.name))
}

/// Loads of these lines, each `apart` instructions after the one before.
fn loads(lines: impl IntoIterator<Item = u64>, apart: u64) -> Vec<LineAccess> {
    let kind = TrafficKind::Load;
    let address = |line| ADDRESS + line * LINE_BYTES;
    let numbered = (1..).zip(lines);
    numbered
        .map(|(n, line)| LineAccess { instructions: n * apart, address: address(line), kind })
        .collect()
}

#[test]
fn hits_take_what_the_papers_cache_takes() {
    // Four lines, again and again: all but the first four accesses hit.
    let accesses = loads((0..1000).map(|n| n % 4), 2_000);
    // 355 ns between processor and agent, and Table II's 16 cycles of 4 ns.
    for (fabric, hit_ns) in [("cxl-ethernet", 419.0), ("cxl", 64.0), ("edm", 64.0)] {
        let setup = LineSetup { warmup: 4, ..setup(fabric, 32 << 10, PrefetchKind::None) };
        let outcome = replay(&setup, &accesses);
        assert_eq!((outcome.loads, outcome.load_hit_rate), (996, Some(1.0)), "{fabric}");
        assert_eq!(outcome.load_latency_ns_mean, Some(hit_ns), "{fabric}");
        assert_eq!((outcome.memory_reads, outcome.memory_writes), (0, 0), "{fabric}");
        // 2,000 instructions at one a nanosecond, and the load; a local one takes 94 ns.
        assert_eq!(outcome.duration_ns, 996.0 * (2_000.0 + hit_ns), "{fabric}");
        assert_eq!(outcome.slowdown, Some((2_000.0 + hit_ns) / 2_094.0), "{fabric}");
    }
}

#[test]
fn without_a_cache_each_load_is_a_message_of_the_fabric() {
    let accesses = loads(0..500, 1);
    for fabric in ["cxl-ethernet", "cxl", "edm"] {
        let outcome = replay(&setup(fabric, 0, PrefetchKind::None), &accesses);
        assert_eq!((outcome.loads, outcome.load_hit_rate), (500, Some(0.0)), "{fabric}");
        assert_eq!(outcome.memory_reads, 500, "{fabric}");
        // One load at a time: the fabric is idle, so a load takes what a message takes alone.
        let mean = outcome.load_latency_ns_mean.expect("there are loads");
        assert!((100.0..3_000.0).contains(&mean), "{fabric}: {mean}");
        assert!(outcome.duration_ns >= 500.0 * mean, "{fabric}: loads follow each other");
        let cached = replay(&setup(fabric, 32 << 10, PrefetchKind::None), &accesses);
        assert_eq!(cached.load_hit_rate, Some(0.0), "{fabric}: no line comes twice");
        assert_eq!(cached.memory_reads, 500, "{fabric}");
    }
}

/// A random mix of all kinds, with lines that come again.
fn mixed(seed: u64, lines: u64, accesses: u64) -> Vec<LineAccess> {
    let mut draws = SplitMix64::seed_from_u64(seed);
    let access = |n| {
        let drawn = draws.next_u64();
        let kind = TrafficKind::ALL[(drawn >> 32) as usize % 3];
        let address = ADDRESS + (drawn % lines) * (drawn >> 40) % lines * LINE_BYTES;
        LineAccess { instructions: n * 20_000, address: address / LINE_BYTES * LINE_BYTES, kind }
    };
    (0..accesses).map(access).collect()
}

/// The protocol's cache, with its bytes and frames, and the tags in front of other fabrics, are
/// different code. Far apart, accesses meet the same state in both.
#[test]
fn the_caches_of_the_protocol_and_of_the_replay_hit_alike() {
    for (seed, cache, lines) in [(1, 256, 12), (2, 1024, 40), (3, 4096, 200), (4, 32 << 10, 1500)] {
        let accesses = mixed(seed, lines, 3_000);
        let of = |fabric| replay(&setup(fabric, cache, PrefetchKind::None), &accesses);
        let (inside, front) = (of("cxl-ethernet"), of("edm"));
        let what = format!("seed {seed}, cache of {cache} B");
        assert_eq!(inside.load_hit_rate, front.load_hit_rate, "{what}");
        assert_eq!(inside.store_hits, front.store_hits, "{what}");
        assert_eq!(inside.write_back_hits, front.write_back_hits, "{what}");
        // The fabric counts at its memory node, the replay counts its messages.
        assert_eq!(inside.memory_reads, front.memory_reads, "{what}");
        assert_eq!(inside.memory_writes, front.memory_writes, "{what}");
        let rate = front.load_hit_rate.expect("there are loads");
        assert!((0.05..0.95).contains(&rate), "{what}: {rate} shows both hits and misses");
        assert!(front.memory_writes > 0, "{what}");
    }
}

#[test]
fn a_row_of_lines_is_prefetched_and_loads_wait_less() {
    // A row through 32 pages, a line each microsecond.
    let accesses = loads(0..2048, 1_000);
    for fabric in ["cxl-ethernet", "cxl", "edm"] {
        let of = |prefetch| replay(&setup(fabric, 32 << 10, prefetch), &accesses);
        let none = of(PrefetchKind::None);
        assert_eq!((none.prefetches, none.prefetched_used), (0, 0), "{fabric}");
        for kind in [PrefetchKind::NextLine, PrefetchKind::Stride, PrefetchKind::BestOffset] {
            let outcome = of(kind);
            let what = format!("{fabric}, {}", kind.name());
            assert!(outcome.load_latency_ns_mean < none.load_latency_ns_mean, "{what}");
            assert!(outcome.slowdown < none.slowdown, "{what}");
            // A page of 64 lines begins with misses: one, or three until a stride is known.
            let used = outcome.prefetched_used as f64 / outcome.loads as f64;
            assert!(used > 0.7, "{what}: {used}");
            assert!(outcome.prefetches >= outcome.prefetched_used, "{what}");
            let memory = outcome.memory_reads;
            assert!((2048..2048 + 64 * 32).contains(&memory), "{what}: {memory} lines read");
        }
    }
}

#[test]
fn stores_are_posted_and_the_queue_is_bounded() {
    let kind = TrafficKind::Store;
    let store = |n| LineAccess { instructions: 0, address: ADDRESS + n * LINE_BYTES, kind };
    let accesses: Vec<LineAccess> = (0..16).map(store).collect();
    let few = replay(&setup("edm", 0, PrefetchKind::None), &accesses);
    assert_eq!((few.loads, few.stores, few.duration_ns), (0, 16, 0.0));
    assert_eq!((few.slowdown, few.load_hit_rate), (None, None));
    // The seventeenth waits for one of them.
    let accesses: Vec<LineAccess> = (0..17).map(store).collect();
    assert!(replay(&setup("edm", 0, PrefetchKind::None), &accesses).duration_ns > 100.0);
}

#[test]
fn a_replay_gives_the_same_result_each_time() {
    let accesses = mixed(7, 300, 2_000);
    for fabric in ["cxl-ethernet", "cxl", "edm"] {
        let setup = setup(fabric, 4096, PrefetchKind::BestOffset);
        assert_eq!(replay(&setup, &accesses), replay(&setup, &accesses), "{fabric}");
    }
}
