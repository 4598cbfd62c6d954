//! A memory node: the timing of its fast path, over the page table and TLB of the real node.

use std::collections::VecDeque;

use ethermem_clio::memory::{AddressMap, HashKey, MemoryConfig, PageSize, SpaceId};
use ethermem_frames::FlowId;
use ethermem_units::{Bytes, Ps};
use ethermem_wire::clio::Permissions;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::ClioConfig;

/// Clio's page size. No byte of a page exists here.
const PAGE: PageSize = PageSize::Mib4;

/// A request on the fast path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) flow: FlowId,
    /// The generation of the flow's entry: the flow may have ended meanwhile.
    pub(super) generation: u32,
    pub(super) part: u32,
    pub(super) attempt: u8,
}

/// A memory node with its fast path.
pub(super) struct MemoryNode {
    map: AddressMap,
    /// The first address of the pages of each process, by space.
    starts: Vec<u64>,
    draws: SplitMix64,
    /// The time at which the next packet can enter the fast path.
    free: Ps,
    /// The time at which the last packet leaves it: packets leave in order.
    last: Ps,
    /// Packets on the fast path, and the ones behind it that wait for memory.
    entered: VecDeque<(Ps, Work)>,
    reading: VecDeque<(Ps, Work)>,
}

impl MemoryNode {
    /// A node whose pages have all been touched.
    pub(super) fn new(rules: &ClioConfig, seed: u64) -> MemoryNode {
        let pages = u64::from(rules.processes) * u64::from(rules.pages);
        let config = MemoryConfig {
            // Twice the used memory: a range of nearly all pages might fit no page table.
            memory: Bytes(2 * pages * PAGE.bytes()),
            page: PAGE,
            tlb_entries: rules.tlb_entries,
            fault_buffer_pages: 1,
        };
        let mut draws = SplitMix64::seed_from_u64(seed);
        let key = HashKey([draws.next_u64(), draws.next_u64()]);
        let mut map = AddressMap::new(&config, key).expect("the scenario was checked");
        let mut starts = Vec::with_capacity(rules.processes.into());
        for space in (0..rules.processes).map(SpaceId) {
            let bytes = u64::from(rules.pages) * PAGE.bytes();
            let allocated = map.allocate(space, bytes, None, Permissions::READ_WRITE);
            let start = allocated.expect("there is a page of memory for each").address;
            for page in 0..u64::from(rules.pages) {
                map.refill(PAGE.bytes(), |_, _, _| {});
                let address = start + page * PAGE.bytes();
                map.translate(space, address, Permissions::READ_WRITE).expect("it is its own");
            }
            starts.push(start);
        }
        MemoryNode {
            map,
            starts,
            draws,
            free: Ps::ZERO,
            last: Ps::ZERO,
            entered: VecDeque::new(),
            reading: VecDeque::new(),
        }
    }

    /// Processes a packet of this many bytes to a random page. Returns when it leaves the fast
    /// path.
    pub(super) fn enter(
        &mut self,
        rules: &ClioConfig,
        now: Ps,
        bytes: u64,
        memory_access: Ps,
        work: Work,
    ) -> Ps {
        let start = self.free.max(now);
        self.free = start + rules.clock * bytes.div_ceil(rules.width.0);
        let translation = if self.misses(rules) { memory_access } else { Ps::ZERO };
        let ready = self.free + translation + self.jitter(rules);
        self.last = self.last.max(ready);
        self.entered.push_back((self.last, work));
        self.last
    }

    /// Reads memory after the fast path. Returns when memory has answered.
    pub(super) fn read(&mut self, now: Ps, memory_access: Ps, work: Work) -> Ps {
        self.reading.push_back((now + memory_access, work));
        now + memory_access
    }

    /// The next request that leaves the fast path by now.
    pub(super) fn leaves(&mut self, now: Ps) -> Option<Work> {
        pop_due(&mut self.entered, now)
    }

    /// The next request that memory has answered by now.
    pub(super) fn has_read(&mut self, now: Ps) -> Option<Work> {
        pop_due(&mut self.reading, now)
    }

    /// Translates the address of an access. Returns true for a miss of the TLB.
    fn misses(&mut self, rules: &ClioConfig) -> bool {
        let process = self.below(rules.processes.into());
        let page = self.below(rules.pages.into());
        let address = self.starts[process as usize] + page * PAGE.bytes();
        let before = self.map.counters().table_accesses;
        let space = SpaceId(process as u16);
        self.map.translate(space, address, Permissions::READ_WRITE).expect("it is its own");
        self.map.counters().table_accesses > before
    }

    fn jitter(&mut self, rules: &ClioConfig) -> Ps {
        if rules.jitter == Ps::ZERO {
            return Ps::ZERO;
        }
        // 53 bits in (0, 1]; libm's logarithm has equal bits on every platform.
        let uniform = ((self.draws.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        Ps((-libm::log(uniform) * rules.jitter.0 as f64) as u64)
    }

    /// A random number below `most`; without a choice it costs no draw.
    fn below(&mut self, most: u64) -> u64 {
        if most == 1 {
            return 0;
        }
        ((u128::from(self.draws.next_u64()) * u128::from(most)) >> 64) as u64
    }
}

fn pop_due(queue: &mut VecDeque<(Ps, Work)>, now: Ps) -> Option<Work> {
    queue
        .front()
        .is_some_and(|&(at, _)| at <= now)
        .then(|| queue.pop_front())?
        .map(|(_, work)| work)
}
