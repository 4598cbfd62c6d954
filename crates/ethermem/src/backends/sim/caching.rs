//! What compute nodes of a simulated fabric may cache, and which operations must find none of it
//! in a cache.
//!
//! A region is cached by the one compute node that uses it, on behalf of the process that has
//! allocated it. An operation that needs the region's bytes at its memory node is a *pass*: it
//! waits for the accesses in flight, empties the cache of the region's lines, and holds back other
//! accesses to the region until it has ended. Passes are done one after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ethermem_pool::{Address, Asker, OpId, ProcessId, Segment};
use ethermem_sim::engine::LineRange;

/// A region, by its memory node and its first offset.
pub(super) type Key = (u16, u64);

/// A region that may be cached.
struct Region {
    bytes: u64,
    process: ProcessId,
    /// The compute node that caches it; `None` before its first access.
    compute: Option<u16>,
    /// True if two compute nodes, or two processes, have mapped it: it is never cached again.
    is_shared: bool,
    /// Accesses through the cache that are under way.
    open: u32,
    /// Passes that wait for it, or are under way.
    passes: u32,
}

/// What a pass does to its regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// They are cached again afterwards.
    Restored,
    /// They are gone.
    Freed,
    /// They are shared, with another process.
    Shared,
    /// They are shared: another compute node uses them. The operation begins anew then.
    Mapped,
}

/// An operation that must find none of its regions in a cache.
struct Pass {
    id: OpId,
    regions: Vec<Key>,
    after: After,
    is_cleaning: bool,
}

/// How an access reaches its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Past the caches.
    Plain,
    /// Through the cache of its compute node.
    Cached(Key),
    /// Not before a pass has ended.
    Blocked,
    /// Past the caches, once the cache of another compute node has none of it.
    Mapped(Key),
}

/// Regions and passes.
#[derive(Default)]
pub(super) struct Caching {
    regions: BTreeMap<Key, Region>,
    passes: VecDeque<Pass>,
    /// Operations that wait for passes.
    blocked: VecDeque<OpId>,
    /// Compute nodes that have cached anything.
    used: BTreeSet<u16>,
}

impl Caching {
    /// A region was allocated.
    pub(super) fn add(&mut self, process: ProcessId, region: Segment) {
        let Segment { address, bytes } = region;
        let (memory, offset) = (address.memory(), address.offset());
        // An operation of the node may have freed what was here.
        let end = (memory, offset + bytes.max(1));
        while let Some((&at, old)) = self.regions.range(..end).next_back()
            && at.0 == memory
            && at.1 + old.bytes > offset
        {
            self.regions.remove(&at);
        }
        let new = Region { bytes, process, compute: None, is_shared: false, open: 0, passes: 0 };
        self.regions.insert((memory, offset), new);
    }

    /// Drops regions of a process at a memory node that are no more.
    pub(super) fn retain(
        &mut self,
        process: ProcessId,
        memory: u16,
        is_there: impl Fn(Segment) -> bool,
    ) {
        self.regions.retain(|&(at, offset), region| {
            let segment = Segment { address: Address::new(at, offset), bytes: region.bytes };
            at != memory || region.process != process || is_there(segment)
        });
    }

    /// How a permitted access of a process reaches its memory.
    pub(super) fn way(&self, asker: Asker, place: Segment) -> Way {
        let (memory, offset) = (place.address.memory(), place.address.offset());
        let Some((&key, region)) = self.regions.range(..=(memory, offset)).next_back() else {
            return Way::Plain;
        };
        let contains = key.0 == memory && offset + place.bytes <= key.1 + region.bytes;
        if !contains || region.is_shared || region.process != asker.process {
            return Way::Plain;
        }
        if region.passes > 0 {
            return Way::Blocked;
        }
        match region.compute {
            Some(compute) if compute != asker.compute => Way::Mapped(key),
            _ => Way::Cached(key),
        }
    }

    /// An access through the cache begins.
    pub(super) fn opens(&mut self, key: Key, compute: u16) {
        self.used.insert(compute);
        let region = self.regions.get_mut(&key).expect("its way was asked for");
        region.compute = Some(compute);
        region.open += 1;
    }

    /// An access through the cache has ended.
    pub(super) fn closes(&mut self, key: Key) {
        let region = self.regions.get_mut(&key);
        region.expect("a region with open accesses stays").open -= 1;
    }

    /// True if a compute node may have dirty lines.
    pub(super) fn has_used(&self, compute: u16) -> bool {
        self.used.contains(&compute)
    }

    /// The region that begins at an address, if a cache may have any of it.
    pub(super) fn at(&self, process: ProcessId, address: Address) -> Vec<Key> {
        let key = (address.memory(), address.offset());
        let is_cached = |region: &&Region| !region.is_shared && region.process == process;
        self.regions.get(&key).filter(is_cached).map(|_| key).into_iter().collect()
    }

    /// The regions of a process at a memory node that may be cached.
    pub(super) fn of(&self, process: ProcessId, memory: u16) -> Vec<Key> {
        let regions = self.regions.range((memory, 0)..=(memory, u64::MAX));
        let is_cached = |region: &Region| region.process == process && !region.is_shared;
        regions.filter(|(_, region)| is_cached(region)).map(|(&key, _)| key).collect()
    }

    /// Lets an operation wait for passes.
    pub(super) fn block(&mut self, id: OpId) {
        self.blocked.push_back(id);
    }

    /// Queues a pass.
    pub(super) fn pass(&mut self, id: OpId, regions: Vec<Key>, after: After) {
        for key in &regions {
            if let Some(region) = self.regions.get_mut(key) {
                region.passes += 1;
            }
        }
        self.passes.push_back(Pass { id, regions, after, is_cleaning: false });
    }

    /// The pass that may empty caches now: its operation, and the ranges of each compute node.
    pub(super) fn next_pass(&mut self) -> Option<(OpId, BTreeMap<u16, Vec<LineRange>>)> {
        let pass = self.passes.front_mut().filter(|pass| !pass.is_cleaning)?;
        let regions = pass.regions.iter().filter_map(|key| Some((key, self.regions.get(key)?)));
        let mut ranges: BTreeMap<u16, Vec<LineRange>> = BTreeMap::new();
        for (&(memory, address), region) in regions {
            if region.open > 0 {
                return None;
            }
            let range = LineRange { memory, address, bytes: region.bytes.max(1) };
            if let Some(compute) = region.compute {
                ranges.entry(compute).or_default().push(range);
            }
        }
        pass.is_cleaning = true;
        Some((pass.id, ranges))
    }

    /// What the pass of an operation is for, if it has one.
    pub(super) fn pass_of(&self, id: OpId) -> Option<After> {
        self.passes.front().filter(|pass| pass.id == id).map(|pass| pass.after)
    }

    /// The pass of an operation ends; `done` says that the operation has done its work. Returns
    /// the operations that may go on.
    pub(super) fn end_pass(&mut self, id: OpId, done: bool) -> VecDeque<OpId> {
        if self.pass_of(id).is_none() {
            return VecDeque::new();
        }
        let pass = self.passes.pop_front().expect("it was seen");
        for key in pass.regions {
            let Some(region) = self.regions.get_mut(&key) else { continue };
            region.passes -= 1;
            match pass.after {
                After::Restored => {}
                After::Shared | After::Mapped => region.is_shared |= done,
                After::Freed if done => {
                    self.regions.remove(&key);
                }
                After::Freed => {}
            }
        }
        std::mem::take(&mut self.blocked)
    }

    /// Nothing is under way any more.
    pub(super) fn clear(&mut self) {
        self.passes.clear();
        self.blocked.clear();
        for region in self.regions.values_mut() {
            (region.open, region.passes) = (0, 0);
        }
    }
}
