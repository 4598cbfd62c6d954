//! Loads and stores over a bad network, against an oracle of memory.
//!
//! Goal: what a host reads is what it wrote, each request is executed once, and every access ends.
//!
//! Method: one host with many accesses in flight, loads and masked stores to a few lines, so that
//! the small cache evicts all the time. A load must return the line as it was at one instant
//! between its request and its response, whole: as it was when it was asked for, or after one of
//! the stores that were sent meanwhile. At the end all is flushed, and the memory nodes must have
//! what was written.

use std::collections::BTreeMap;

use crate::world::{CALM, Faults, KINDS, Network, SECTION_LINES, Setup};
use ethermem_cxl::agent::{Req, ReqOpcode, Rwd, S2m, Tag};
use ethermem_cxl::cache::{CacheConfig, Eviction};
use ethermem_cxl::compute::{Event, MaintenanceKind};
use ethermem_cxl::memory::Backpressure;
use ethermem_cxl::retry::Retransmission;
use ethermem_units::Ps;
use ethermem_wire::cxl::{ByteMask, LineAddress, LineData};
use proptest::prelude::*;

/// A load that is under way: the values that its line has had since.
struct Load {
    line: u64,
    values: Vec<LineData>,
}

struct Host {
    network: Network,
    setup: Setup,
    truth: Vec<LineData>,
    loads: BTreeMap<u16, Load>,
    stores: BTreeMap<u16, u64>,
    next_tag: u16,
    left: u32,
    in_flight_max: usize,
}

impl Host {
    fn new(seed: u64, setup: Setup, faults: Faults, accesses: u32, in_flight_max: usize) -> Host {
        let lines = setup.sections * SECTION_LINES as usize;
        Host {
            network: Network::new(seed, &setup, faults),
            setup,
            truth: vec![[0; 64]; lines],
            loads: BTreeMap::new(),
            stores: BTreeMap::new(),
            next_tag: 0,
            left: accesses,
            in_flight_max,
        }
    }

    fn begin(&mut self) {
        while self.left > 0 && self.loads.len() + self.stores.len() < self.in_flight_max {
            self.left -= 1;
            self.next_tag = self.next_tag.wrapping_add(1);
            let tag = self.next_tag;
            let line = self.network.draw(self.truth.len() as u64);
            let now = self.network.now;
            let address = line * 64;
            if self.network.draw(2) == 0 {
                self.loads.insert(tag, Load { line, values: vec![self.truth[line as usize]] });
                let req = Req { opcode: ReqOpcode::MemRd, tag: Tag(tag), address };
                self.network.compute.on_req(now, req).unwrap();
            } else {
                let whole = self.network.draw(3) == 0;
                let mask = if whole { u64::MAX } else { self.network.draw(u64::MAX) };
                let data = std::array::from_fn(|_| self.network.draw(256) as u8);
                self.stores.insert(tag, line);
                ByteMask(mask).merge(&data, &mut self.truth[line as usize]);
                let value = self.truth[line as usize];
                let loads = self.loads.values_mut().filter(|load| load.line == line);
                loads.for_each(|load| load.values.push(value));
                let rwd = Rwd { tag: Tag(tag), address, mask: ByteMask(mask), data };
                self.network.compute.on_rwd(now, &rwd).unwrap();
            }
            self.end();
        }
    }

    fn end(&mut self) {
        while let Some(response) = self.network.compute.poll_response() {
            match response.message {
                S2m::Drs { tag, data, poison } => {
                    let load = self.loads.remove(&tag.0).expect("a load has one response");
                    assert!(!poison, "line {} is poisoned", load.line);
                    assert!(load.values.contains(&data), "line {} was never so", load.line);
                }
                S2m::Ndr(tag) => {
                    self.stores.remove(&tag.0).expect("a store has one response");
                }
            }
        }
    }

    /// Until nothing is left, and all is flushed.
    fn run(&mut self) {
        let end = Ps(1_000_000 * crate::world::US);
        loop {
            self.begin();
            self.end();
            if self.left == 0 && self.loads.is_empty() && self.stores.is_empty() {
                break;
            }
            assert!(self.network.step() && self.network.now < end, "an access hangs");
        }
        let (first, last) = (LineAddress::new(0).unwrap(), LineAddress::new(u64::from(u32::MAX)));
        let (now, kind) = (self.network.now, MaintenanceKind::Invalidate);
        self.network.compute.begin_maintenance(now, kind, first..=last.unwrap()).unwrap();
        let maintained = loop {
            match self.network.compute.poll_event() {
                Some(event) => break event,
                None => assert!(self.network.step() && self.network.now < end, "a flush hangs"),
            }
        };
        assert_eq!(maintained, Event::Maintained(MaintenanceKind::Invalidate));
        self.network.compute.check();
        for line in 0..self.truth.len() as u64 {
            let stored = self.network.stored(&self.setup, line);
            assert_eq!(stored, self.truth[line as usize], "line {line}");
        }
        // What is still under way changes nothing any more.
        for _ in 0..10_000 {
            if self.network.now >= end || !self.network.step() {
                break;
            }
        }
        let (sent, executed) = self.network.sent_and_executed();
        assert_eq!(sent, executed, "each request is executed once");
        assert_eq!(self.network.compute.in_flight(), (0, 0));
    }
}

fn setup(cache_lines: u32, eviction: Eviction, retransmission: Retransmission) -> Setup {
    let mut setup = Setup::new();
    setup.compute.retransmission = retransmission;
    let config = CacheConfig { bytes: cache_lines * 64, ways: 2, fetches_max: 4, eviction };
    setup.compute.cache = (cache_lines > 0).then_some(config);
    setup
}

#[test]
fn a_good_network() {
    for cache_lines in [0, 4, 64] {
        let setup = setup(cache_lines, Eviction::Acknowledged, Retransmission::Selective);
        let mut host = Host::new(1, setup, CALM, 3_000, 64);
        host.run();
        let resent = host.network.compute.requester_counters(ethermem_cxl::compute::NodeIndex(0));
        assert_eq!(resent.unwrap().resent, [0; 3], "nothing was lost, so nothing goes again");
    }
}

/// As many accesses as may be are in flight: 256 loads, 256 stores, whichever comes first.
#[test]
fn as_many_in_flight_as_there_are_credits() {
    let setup = setup(16, Eviction::Posted, Retransmission::Selective);
    let faults = Faults { lost: 20, way_us_max: 5, ..CALM };
    Host::new(2, setup, faults, 6_000, 256).run();
}

#[test]
fn one_to_thirty_percent_lost() {
    for kind in KINDS {
        for lost in [10, 100, 300] {
            let setup = setup(4, Eviction::Acknowledged, kind);
            Host::new(lost, setup, Faults { lost, ..CALM }, 600, 32).run();
        }
    }
}

#[test]
fn a_fifo_that_overflows_is_made_up_for() {
    for backpressure in [Backpressure::None, Backpressure::Pfc, Backpressure::Congestion] {
        let mut setup = setup(0, Eviction::Posted, Retransmission::Selective);
        (setup.fifo_entries, setup.fifo_threshold, setup.backpressure) = (16, 8, backpressure);
        let faults = Faults { drain_ns: 60, ..CALM };
        let mut host = Host::new(3, setup, faults, 4_000, 200);
        host.run();
        let counters = host.network.memories[0].node.counters();
        assert!(counters.dropped[4] > 0, "{backpressure:?}: the FIFO was full: {counters:?}");
        let (rate, _) = host.network.compute.rate();
        assert_eq!(counters.pauses > 0, backpressure == Backpressure::Pfc);
        assert_eq!(counters.congestion > 0, backpressure == Backpressure::Congestion);
        assert!(backpressure != Backpressure::None || rate.0 == 100_000);
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    (0..200_u64, 0..300_u64, 0..100_u64, 1..60_u64, 1..2_000_u64, 1..40_u64).prop_map(
        |(lost, doubled, damaged, way_us_max, memory_ns_max, drain_ns)| Faults {
            lost,
            doubled,
            damaged,
            way_us_max,
            memory_ns_max,
            drain_ns,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// A failure prints the seed and all else that makes the run.
    #[test]
    fn whatever_the_network_does_memory_is_memory(
        seed: u64,
        faults in faults(),
        cache_lines in prop::sample::select(vec![0_u32, 4, 16, 64]),
        posted: bool,
        go_back: bool,
        memories in 1_usize..4,
        uncached in 0_usize..5,
        window in prop::sample::select(vec![1_u32, 3, 16, 512]),
        in_flight in 1_usize..100,
    ) {
        let eviction = if posted { Eviction::Posted } else { Eviction::Acknowledged };
        let mut setup = setup(cache_lines, eviction, KINDS[usize::from(go_back)]);
        (setup.memories, setup.uncached_from) = (memories, 4 - uncached);
        setup.compute.window = window;
        Host::new(seed, setup, faults, 300, in_flight).run();
    }
}
