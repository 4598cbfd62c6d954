//! The DRAM cache against memory: any order of loads, stores, fills, flushes and changes of owner.
//! A load never returns a byte older than the last store before it. A failure prints the seed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use ethermem_dfabric::address::{RegionId, SectionId};
use ethermem_dfabric::cache::{CacheConfig, CacheConfigError, DramCache, Fetch, Line, Lookup};
use ethermem_wire::dfabric::FabricAddress;
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const LINE_BYTES: u64 = 4096;
const BUFFERS: u64 = 24;
const NODES: usize = 2;

/// A bulk read: it reads memory at one instant between its begin and its end.
struct Reading {
    fetch: Fetch,
    buffer: u64,
    read: Option<u64>,
    /// What memory had when each load that waits for it began.
    waiting: Vec<u64>,
}

#[derive(Default)]
struct Port {
    cache: Option<DramCache>,
    /// The data of the cache, by line: the version of its Buffer.
    lines: BTreeMap<Line, u64>,
    readings: Vec<Reading>,
}

struct World {
    random: Xoshiro256StarStar,
    /// By Buffer: its version in memory, and the node that holds it.
    memory: Vec<(u64, usize)>,
    ports: Vec<Port>,
    hits: u64,
}

fn address(buffer: u64) -> FabricAddress {
    // Buffers of two Regions, the second not cached.
    let region = RegionId((buffer / (BUFFERS - 4)) as u32);
    SectionId::of_region(region, 3).address(buffer * LINE_BYTES)
}

fn config(ways: u32, fetches_max: u32) -> CacheConfig {
    let capacity_bytes = 4 * u64::from(ways) * LINE_BYTES;
    CacheConfig { capacity_bytes, ways, line_bytes: LINE_BYTES, filter_bytes: 256, fetches_max }
}

impl World {
    fn new(seed: u64, ways: u32, fetches_max: u32) -> World {
        let port = |_| {
            let mut cache = DramCache::new(config(ways, fetches_max)).unwrap();
            cache.add_region(RegionId(0), LINE_BYTES).unwrap();
            Port { cache: Some(cache), ..Port::default() }
        };
        World {
            random: Xoshiro256StarStar::seed_from_u64(seed),
            memory: (0..BUFFERS).map(|buffer| (0, buffer as usize % NODES)).collect(),
            ports: (0..NODES).map(port).collect(),
            hits: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn load(&mut self, buffer: u64) {
        let (version, holder) = self.memory[buffer as usize];
        let packet = if self.below(8) == 0 { 64 } else { 4096 };
        let byte = self.below(LINE_BYTES);
        let at = FabricAddress::new(address(buffer).number() + byte).unwrap();
        let port = &mut self.ports[holder];
        match port.cache.as_mut().unwrap().load(at, packet) {
            Lookup::Hit(line) => {
                assert_eq!(port.lines.get(&line), Some(&version), "a stale byte of {buffer}");
                self.hits += 1;
            }
            Lookup::Miss { fetch, buffer: first } => {
                assert_eq!(first, address(buffer));
                assert!(packet >= 256 && buffer < BUFFERS - 4, "{buffer} is not to be cached");
                port.lines.remove(&fetch.line);
                let waiting = vec![version];
                port.readings.push(Reading { fetch, buffer, read: None, waiting });
            }
            Lookup::Pending(fetch) => {
                let reading = port.readings.iter_mut().find(|reading| reading.fetch == fetch);
                let reading = reading.expect("the read is under way");
                assert_eq!(reading.buffer, buffer);
                reading.waiting.push(version);
                // The read may have read memory before this load began.
                if let Some(read) = reading.read {
                    assert!(read >= version, "a stale byte of {buffer}");
                }
            }
            // It reads memory itself.
            Lookup::Bypass => {}
        }
    }

    fn store(&mut self, buffer: u64) {
        let holder = self.memory[buffer as usize].1;
        let at = FabricAddress::new(address(buffer).number() + 64).unwrap();
        self.ports[holder].cache.as_mut().unwrap().store(at);
        self.memory[buffer as usize].0 += 1;
    }

    /// The Buffer is freed or passed on; the next holder writes what the first must not see.
    fn hand_over(&mut self, buffer: u64) {
        let holder = self.memory[buffer as usize].1;
        self.ports[holder].cache.as_mut().unwrap().flush(address(buffer));
        self.memory[buffer as usize].1 = (holder + 1) % NODES;
    }

    fn read(&mut self, node: usize) {
        let count = self.ports[node].readings.len() as u64;
        if count == 0 {
            return;
        }
        let at = self.below(count) as usize;
        let (memory, port) = (&self.memory, &mut self.ports[node]);
        if port.readings[at].read.is_none() {
            port.readings[at].read = Some(memory[port.readings[at].buffer as usize].0);
            return;
        }
        let reading = port.readings.swap_remove(at);
        let read = reading.read.unwrap();
        assert!(reading.waiting.iter().all(|began| read >= *began), "a waiting load is stale");
        if port.cache.as_mut().unwrap().filled(reading.fetch) {
            port.lines.insert(reading.fetch.line, read);
        }
        assert!(!port.cache.as_mut().unwrap().filled(reading.fetch), "a read ends once");
    }

    fn step(&mut self) {
        let (what, buffer) = (self.below(32), self.below(BUFFERS));
        match what {
            0..=15 => self.load(buffer),
            16..=18 => self.store(buffer),
            19 | 20 => self.hand_over(buffer),
            21 if self.below(32) == 0 => {
                let node = self.below(NODES as u64) as usize;
                let cache = self.ports[node].cache.as_mut().unwrap();
                cache.remove_region(RegionId(0));
                assert_eq!(cache.load(address(0), 4096), Lookup::Bypass);
                cache.add_region(RegionId(0), LINE_BYTES).unwrap();
            }
            _ => {
                let node = self.below(NODES as u64) as usize;
                self.read(node);
            }
        }
        self.ports.iter().for_each(|port| port.cache.as_ref().unwrap().check());
    }
}

proptest! {
    #[test]
    fn no_load_returns_a_stale_byte(
        seed in any::<u64>(),
        ways in 1..5_u32,
        fetches_max in 1..9_u32,
    ) {
        let mut world = World::new(seed, ways, fetches_max);
        (0..3_000).for_each(|_| world.step());
        prop_assert!(world.hits > 50, "{} hits show nothing", world.hits);
    }
}

#[test]
fn a_cache_of_the_paper_has_its_ways_and_evicts_the_least_recently_used() {
    let published = CacheConfig {
        capacity_bytes: 2 << 30,
        ways: 4,
        line_bytes: 4096,
        filter_bytes: 256,
        fetches_max: 16,
    };
    let mut cache = DramCache::new(published).unwrap();
    cache.add_region(RegionId(0), 4096).unwrap();
    // 131,072 sets: Buffers 131,072 apart are of one set, which is one in each half of a Region.
    cache.add_region(RegionId(1), 4096).unwrap();
    cache.add_region(RegionId(2), 4096).unwrap();
    let of_set = |way: u64| FabricAddress::new((way << 17) * 4096).unwrap();
    for way in 0..4 {
        let Lookup::Miss { fetch, .. } = cache.load(of_set(way), 4096) else { panic!("{way}") };
        assert!(cache.filled(fetch));
    }
    assert!(matches!(cache.load(of_set(0), 4096), Lookup::Hit(_)));
    let Lookup::Miss { fetch, .. } = cache.load(of_set(4), 4096) else { panic!("a fifth") };
    assert!(cache.filled(fetch));
    assert!(matches!(cache.load(of_set(0), 4096), Lookup::Hit(_)));
    assert!(matches!(cache.load(of_set(1), 4096), Lookup::Miss { .. }), "it made room");
    let counters = cache.counters();
    assert_eq!((counters.hits, counters.misses, counters.evicted), (2, 6, 2));
}

#[test]
fn a_small_packet_and_another_granularity_are_not_cached() {
    let mut cache = DramCache::new(config(2, 4)).unwrap();
    let wrong = CacheConfigError::Granularity { buffer_bytes: 2048, line_bytes: 4096 };
    assert_eq!(cache.add_region(RegionId(0), 2048), Err(wrong));
    cache.add_region(RegionId(0), 4096).unwrap();
    assert_eq!(cache.load(address(0), 255), Lookup::Bypass);
    assert!(matches!(cache.load(address(0), 256), Lookup::Miss { .. }));
    for (capacity_bytes, ways, line_bytes) in [(4096, 0, 4096), (3 * 4096, 1, 4096), (1, 1, 32)] {
        let wrong = CacheConfig { capacity_bytes, ways, line_bytes, ..config(1, 1) };
        assert!(DramCache::new(wrong).is_err(), "{wrong:?}");
    }
}
