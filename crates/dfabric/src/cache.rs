//! Tags of the DRAM cache in a node's CXL port (section 4.6, Figure 6).
//!
//! The tags are apart from the data, so that one read gets a whole set's. A line is one Buffer of a
//! configured Region. Loads fill by bulk reads; stores go around. The data is the world's, by
//! [`Line`]: a hit says that the line there is what memory has.

use ethermem_wire::dfabric::FabricAddress;
use thiserror::Error;

use crate::address::{RegionId, SectionId};

/// What a cache is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes of data: 2 GB in the paper's Table 3.
    pub capacity_bytes: u64,
    /// Ways of a set.
    pub ways: u32,
    /// Bytes of a line: the Buffer size of the cached Regions, 4 KB in section 6.1.
    pub line_bytes: u64,
    /// Packets with fewer bytes are not cached.
    pub filter_bytes: u32,
    /// Most bulk reads at once.
    pub fetches_max: u32,
}

/// Why a cache cannot be built, or a Region not be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CacheConfigError {
    /// The line's size is no Buffer size.
    #[error("line of {0} B: must be a power of two from 64 B to 2 MiB")]
    Line(u64),
    /// The number of sets is no power of two.
    #[error("{sets} sets of {ways} ways: must be a power of two of sets with 1 to 64 ways")]
    Sets {
        /// Lines divided by ways.
        sets: u64,
        /// Ways of a set.
        ways: u32,
    },
    /// The Region has Buffers of another size.
    #[error("Buffers of {buffer_bytes} B: must be of {line_bytes} B, the size of a line")]
    Granularity {
        /// Size of the Region's Buffers.
        buffer_bytes: u64,
        /// Size of a line.
        line_bytes: u64,
    },
}

/// Where a line of the cache is: its set times the ways, plus its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u32);

/// A bulk read that is under way. A line's later read has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fetch {
    /// The line that is filled.
    pub line: Line,
    number: u32,
}

/// What a load finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The line is there.
    Hit(Line),
    /// It is not: the Buffer at this address is to be read in bulk. An old line made room.
    Miss {
        /// The read.
        fetch: Fetch,
        /// The Buffer's first byte.
        buffer: FabricAddress,
    },
    /// The Buffer is being read: the load ends with that read.
    Pending(Fetch),
    /// The load goes to memory.
    Bypass,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Loads that hit.
    pub hits: u64,
    /// Loads that began a bulk read.
    pub misses: u64,
    /// Loads that joined a bulk read.
    pub joined: u64,
    /// Loads that went to memory.
    pub bypassed: u64,
    /// Lines that made room for others.
    pub evicted: u64,
    /// Lines that were flushed, or written around.
    pub invalidated: u64,
    /// Bulk reads whose line was written or flushed before they ended.
    pub doomed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Invalid,
    Valid,
    Filling,
    /// Filling, and what comes is not kept: memory has changed since the read began.
    Doomed,
}

#[derive(Clone, Copy, Debug)]
struct Tag {
    /// The Buffer's address over the line's size.
    buffer: u64,
    state: State,
    /// 0 is the most recently used way of its set.
    age: u8,
    fetch: u32,
}

/// The tags of one cache.
#[derive(Clone, Debug)]
pub struct DramCache {
    config: CacheConfig,
    tags: Box<[Tag]>,
    sets: u64,
    /// By Region: cached.
    regions: Vec<bool>,
    fetches: u32,
    counters: CacheCounters,
}

impl DramCache {
    /// An empty cache without Regions.
    ///
    /// # Errors
    /// [`CacheConfigError`].
    pub fn new(config: CacheConfig) -> Result<DramCache, CacheConfigError> {
        let CacheConfig { line_bytes, ways, capacity_bytes, .. } = config;
        if !line_bytes.is_power_of_two() || !(64..=2 << 20).contains(&line_bytes) {
            return Err(CacheConfigError::Line(line_bytes));
        }
        let sets = (capacity_bytes / line_bytes).checked_div(u64::from(ways)).unwrap_or(0);
        if !sets.is_power_of_two() || !(1..=64).contains(&ways) || sets > 1 << 24 {
            return Err(CacheConfigError::Sets { sets, ways });
        }
        let tag = |at: u64| Tag {
            buffer: 0,
            state: State::Invalid,
            age: (at % u64::from(ways)) as u8,
            fetch: 0,
        };
        let tags = (0..sets * u64::from(ways)).map(tag).collect();
        let counters = CacheCounters::default();
        Ok(DramCache { config, tags, sets, regions: Vec::new(), fetches: 0, counters })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// Bulk reads under way.
    #[must_use]
    pub fn fetches(&self) -> u32 {
        self.fetches
    }

    /// The driver lets a Region be cached, whose Buffers have this size.
    ///
    /// # Errors
    /// [`CacheConfigError::Granularity`].
    pub fn add_region(
        &mut self,
        region: RegionId,
        buffer_bytes: u64,
    ) -> Result<(), CacheConfigError> {
        let line_bytes = self.config.line_bytes;
        if buffer_bytes != line_bytes {
            return Err(CacheConfigError::Granularity { buffer_bytes, line_bytes });
        }
        let at = region.0 as usize;
        if self.regions.len() <= at {
            self.regions.resize(at + 1, false);
        }
        self.regions[at] = true;
        Ok(())
    }

    /// A Region is cached no longer; all of its lines are flushed.
    pub fn remove_region(&mut self, region: RegionId) {
        if let Some(is_cached) = self.regions.get_mut(region.0 as usize) {
            *is_cached = false;
        }
        for at in 0..self.tags.len() {
            let address = FabricAddress::new(self.tags[at].buffer * self.config.line_bytes);
            if address.is_ok_and(|address| SectionId::of(address).region() == region) {
                self.invalidate(at);
            }
        }
    }

    fn is_cached(&self, address: FabricAddress) -> bool {
        let region = SectionId::of(address).region();
        self.regions.get(region.0 as usize).copied().unwrap_or(false)
    }

    fn set(&self, buffer: u64) -> std::ops::Range<usize> {
        let ways = self.config.ways as usize;
        let first = (buffer & (self.sets - 1)) as usize * ways;
        first..first + ways
    }

    fn find(&self, buffer: u64) -> Option<usize> {
        self.set(buffer).find(|&at| {
            let tag = &self.tags[at];
            tag.state != State::Invalid && tag.buffer == buffer
        })
    }

    /// A load of a byte, of a packet with so many bytes: the port saw its descriptor.
    pub fn load(&mut self, address: FabricAddress, packet_bytes: u32) -> Lookup {
        if packet_bytes < self.config.filter_bytes || !self.is_cached(address) {
            self.counters.bypassed += 1;
            return Lookup::Bypass;
        }
        let buffer = address.number() / self.config.line_bytes;
        let Some(at) = self.find(buffer) else { return self.miss(buffer) };
        let (line, number) = (Line(at as u32), self.tags[at].fetch);
        match self.tags[at].state {
            State::Valid => {
                self.counters.hits += 1;
                self.touch(at);
                Lookup::Hit(line)
            }
            State::Filling => {
                self.counters.joined += 1;
                Lookup::Pending(Fetch { line, number })
            }
            State::Doomed | State::Invalid => {
                self.counters.bypassed += 1;
                Lookup::Bypass
            }
        }
    }

    fn miss(&mut self, buffer: u64) -> Lookup {
        let free = self.set(buffer).find(|&at| self.tags[at].state == State::Invalid);
        let at = free.or_else(|| {
            let idle = self.set(buffer).filter(|&at| self.tags[at].state == State::Valid);
            idle.max_by_key(|&at| self.tags[at].age)
        });
        let at = at.filter(|_| self.fetches < self.config.fetches_max);
        let address = FabricAddress::new(buffer * self.config.line_bytes);
        let (Some(at), Ok(address)) = (at, address) else {
            self.counters.bypassed += 1;
            return Lookup::Bypass;
        };
        self.counters.misses += 1;
        self.counters.evicted += u64::from(self.tags[at].state == State::Valid);
        self.fetches += 1;
        let tag = &mut self.tags[at];
        (tag.buffer, tag.state, tag.fetch) = (buffer, State::Filling, tag.fetch.wrapping_add(1));
        let fetch = Fetch { line: Line(at as u32), number: tag.fetch };
        self.touch(at);
        Lookup::Miss { fetch, buffer: address }
    }

    /// A bulk read has ended. True if the line is kept; what was read goes to the loads that wait
    /// either way.
    pub fn filled(&mut self, fetch: Fetch) -> bool {
        let Some(tag) = self.tags.get_mut(fetch.line.0 as usize) else { return false };
        let is_open = matches!(tag.state, State::Filling | State::Doomed);
        if !is_open || tag.fetch != fetch.number {
            return false;
        }
        let is_kept = tag.state == State::Filling;
        tag.state = if is_kept { State::Valid } else { State::Invalid };
        self.fetches -= 1;
        is_kept
    }

    /// A store: it goes to memory, and a copy here is invalid from now on.
    pub fn store(&mut self, address: FabricAddress) {
        self.flush(address);
    }

    /// Flushes the Buffer with this byte: it was freed, or its reference was passed on. No line is
    /// dirty, so nothing is written.
    pub fn flush(&mut self, address: FabricAddress) {
        if let Some(at) = self.find(address.number() / self.config.line_bytes) {
            self.invalidate(at);
        }
    }

    fn invalidate(&mut self, at: usize) {
        let tag = &mut self.tags[at];
        match tag.state {
            State::Valid => {
                tag.state = State::Invalid;
                self.counters.invalidated += 1;
            }
            State::Filling => {
                tag.state = State::Doomed;
                self.counters.doomed += 1;
            }
            State::Doomed | State::Invalid => {}
        }
    }

    fn touch(&mut self, at: usize) {
        let age = self.tags[at].age;
        let set = self.set(self.tags[at].buffer);
        for tag in &mut self.tags[set] {
            tag.age += u8::from(tag.age < age);
        }
        self.tags[at].age = 0;
    }

    /// Asserts the invariants: a Buffer is in one way, of its own set; ages are an order; the count
    /// of bulk reads is right.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        let ways = self.config.ways as usize;
        let is_open = |tag: &&Tag| matches!(tag.state, State::Filling | State::Doomed);
        let open = self.tags.iter().filter(is_open).count();
        assert_eq!(open, self.fetches as usize, "bulk reads under way");
        for (set, tags) in self.tags.chunks_exact(ways).enumerate() {
            let ages = tags.iter().fold(0_u64, |ages, tag| ages | 1 << tag.age);
            assert_eq!(ages, u64::MAX >> (64 - ways), "ages of set {set}");
            for (at, tag) in tags.iter().enumerate().filter(|(_, tag)| tag.state != State::Invalid)
            {
                assert_eq!(tag.buffer & (self.sets - 1), set as u64, "{tag:?} in set {set}");
                assert_eq!(self.find(tag.buffer), Some(set * ways + at), "{tag:?} is in two ways");
            }
        }
    }
}
