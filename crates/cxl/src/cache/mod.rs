//! The cache of a compute node (sections III.B and IV): set-associative, write-back, never shared.
//!
//! A write miss with room allocates without fetching. So a line may have bytes that are not valid:
//! each byte has a valid and a dirty bit, and a read of a line that lacks bytes fetches the line
//! and merges. The cache sends nothing: it says which line to fetch and which victim to write.

mod array;
mod bytes;
mod fetches;

use std::collections::VecDeque;

use ethermem_wire::cxl::{ByteMask, LINE_BYTES, LineAddress, LineData};
use thiserror::Error;

use array::Array;
pub use array::LineState;
pub(crate) use array::Place;
use fetches::Fetches;

/// What a cache is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes of data: 32 KiB (section IV).
    pub bytes: u32,
    /// Ways of a set: 4 (section IV).
    pub ways: u32,
    /// Most lines that are fetched at once.
    pub fetches_max: u32,
    /// When a write that replaces a dirty line ends.
    pub eviction: Eviction,
}

impl CacheConfig {
    /// The published cache; 64 fetches at once are our choice.
    #[must_use]
    pub const fn published() -> CacheConfig {
        CacheConfig { bytes: 32 << 10, ways: 4, fetches_max: 64, eviction: Eviction::Acknowledged }
    }
}

/// When a write that replaces a dirty line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// Once the memory node has acknowledged the dirty line. Table II has this: 268 cycles.
    #[default]
    Acknowledged,
    /// At once: the retry buffer keeps the dirty line until it is acknowledged.
    Posted,
}

/// Why a cache cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CacheConfigError {
    /// The number of ways is out of range.
    #[error("{0} ways: must be 1 to 32")]
    Ways(u32),
    /// The number of sets is no power of two.
    #[error("{bytes} B of {ways} ways: must be a power of two of sets of 64 B lines")]
    Sets {
        /// Bytes of data.
        bytes: u32,
        /// Ways of a set.
        ways: u32,
    },
    /// Nothing could be fetched.
    #[error("{0} fetches at once: must be 1 to 65535")]
    Fetches(u32),
}

/// A dirty line that must be written to its memory node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The line.
    pub line: LineAddress,
    /// Its dirty bytes.
    pub mask: ByteMask,
    /// Its data; bytes outside the mask do not matter.
    pub data: LineData,
}

/// What came of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// All bytes are here.
    Hit(LineData),
    /// The line must be fetched, after the victim was sent. Its number names the fetch.
    Miss {
        /// The number of the fetch, for [`Cache::fill`].
        fetch: u32,
        /// The line that had to go.
        victim: Option<Victim>,
    },
    /// The line is being fetched already: the read waits for it, too.
    Merged,
    /// Nothing was changed; the read must come again after a fetch has ended.
    Stalled,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStep {
    /// The line was here, or is being fetched.
    Hit,
    /// A way was free or clean, and has the line now.
    Allocated,
    /// A dirty line had to go; its way has the new line now.
    Replaced(Victim),
    /// Nothing was changed; the write must come again after a fetch has ended.
    Stalled,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Reads of lines that were here.
    pub read_hits: u64,
    /// Reads that fetched.
    pub read_misses: u64,
    /// Reads that waited for another one's fetch.
    pub read_merges: u64,
    /// Misses of lines that were in the cache in part.
    pub partial_misses: u64,
    /// Writes to lines that were here.
    pub write_hits: u64,
    /// Writes that allocated a line without a victim.
    pub write_allocations: u64,
    /// Writes that allocated a line whose victim was dirty.
    pub write_replacements: u64,
    /// Dirty lines that had to go.
    pub evictions: u64,
}

/// The cache. `W` is what the caller keeps for a read that waits for a fetch.
#[derive(Clone, Debug)]
pub struct Cache<W> {
    array: Array,
    fetches: Fetches<W>,
    /// Places with dirty lines, in the order in which they became dirty, and places whose dirty
    /// line has gone since. Each is in the list once.
    written: VecDeque<Place>,
    counters: CacheCounters,
}

impl<W: Copy> Cache<W> {
    /// An empty cache, for so many reads that wait at once. All its memory is reserved here.
    ///
    /// # Errors
    /// [`CacheConfigError`].
    pub fn new(config: CacheConfig, waiting_max: u32) -> Result<Cache<W>, CacheConfigError> {
        let CacheConfig { bytes, ways, fetches_max, .. } = config;
        if !(1..=32).contains(&ways) {
            return Err(CacheConfigError::Ways(ways));
        }
        let sets = bytes / (ways * LINE_BYTES as u32);
        let whole = u64::from(sets) * u64::from(ways) * LINE_BYTES as u64;
        if !sets.is_power_of_two() || whole != u64::from(bytes) {
            return Err(CacheConfigError::Sets { bytes, ways });
        }
        if !(1..=65_535).contains(&fetches_max) {
            return Err(CacheConfigError::Fetches(fetches_max));
        }
        Ok(Cache {
            array: Array::new(sets, ways),
            fetches: Fetches::new(fetches_max, waiting_max),
            written: VecDeque::with_capacity((sets * ways) as usize),
            counters: CacheCounters::default(),
        })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        self.counters
    }

    /// The state of a line.
    #[must_use]
    pub fn state(&self, line: LineAddress) -> LineState {
        self.array.find(line).map_or(LineState::Invalid, |place| self.array.state(place))
    }

    /// The valid and the dirty bytes of a line.
    #[must_use]
    pub fn masks(&self, line: LineAddress) -> (ByteMask, ByteMask) {
        let place = self.array.find(line);
        place.map_or((ByteMask::EMPTY, ByteMask::EMPTY), |place| {
            (self.array.valid(place), self.array.dirty(place))
        })
    }

    /// Reads a line. `waiter` is kept if the read must wait.
    pub fn read(&mut self, line: LineAddress, waiter: W) -> ReadStep {
        let found = self.array.find(line);
        if let Some(place) = found {
            if self.array.valid(place).is_full() {
                let data = *self.array.data(place);
                self.array.touch(place);
                self.counters.read_hits += 1;
                return ReadStep::Hit(data);
            }
            if self.array.is_fetching(place) {
                if !self.fetches.join(place, waiter) {
                    return ReadStep::Stalled;
                }
                self.array.touch(place);
                self.counters.read_merges += 1;
                return ReadStep::Merged;
            }
        }
        let room =
            if self.fetches.is_full() { None } else { found.or_else(|| self.array.room_for(line)) };
        let Some(place) = room else { return ReadStep::Stalled };
        let Some(fetch) = self.fetches.begin(place, waiter) else { return ReadStep::Stalled };
        let victim = match found {
            Some(_) => {
                self.counters.partial_misses += 1;
                None
            }
            None => self.replace(place, line),
        };
        self.array.set_fetching(place, true);
        self.array.touch(place);
        self.counters.read_misses += 1;
        ReadStep::Miss { fetch, victim }
    }

    /// Writes bytes of a line.
    pub fn write(&mut self, line: LineAddress, mask: ByteMask, data: &LineData) -> WriteStep {
        let (place, step) = match self.place_to_write(line) {
            Ok(found) => found,
            Err(stalled) => return stalled,
        };
        mask.merge(data, self.array.data_mut(place));
        self.wrote(place, mask);
        step
    }

    /// Finds or makes the place of a line that is written.
    fn place_to_write(&mut self, line: LineAddress) -> Result<(Place, WriteStep), WriteStep> {
        if let Some(place) = self.array.find(line) {
            self.counters.write_hits += 1;
            return Ok((place, WriteStep::Hit));
        }
        let place = self.array.room_for(line).ok_or(WriteStep::Stalled)?;
        Ok((
            place,
            match self.replace(place, line) {
                Some(victim) => {
                    self.counters.write_replacements += 1;
                    WriteStep::Replaced(victim)
                }
                None => {
                    self.counters.write_allocations += 1;
                    WriteStep::Allocated
                }
            },
        ))
    }

    fn wrote(&mut self, place: Place, mask: ByteMask) {
        self.array.mark(place, mask);
        if !mask.is_empty() && !self.array.list(place) {
            self.written.push_back(place);
        }
        self.array.touch(place);
    }

    fn replace(&mut self, place: Place, line: LineAddress) -> Option<Victim> {
        let victim = self.clean(place);
        self.counters.evictions += u64::from(victim.is_some());
        self.array.place_line(place, line);
        victim
    }

    /// What of a place must be written; its line is clean then.
    fn clean(&mut self, place: Place) -> Option<Victim> {
        let line = self.array.line(place)?;
        let mask = self.array.take_dirty(place);
        (!mask.is_empty()).then(|| Victim { line, mask, data: *self.array.data(place) })
    }

    /// A fetch has ended: with the line, whose bytes go where none are valid, or without, and then
    /// only written bytes stay. [`Cache::poll_filled`] gives the reads that waited.
    ///
    /// # Panics
    /// If there is no such fetch.
    pub fn fill(&mut self, fetch: u32, fetched: Option<&LineData>) {
        let place = self.fetches.end(fetch);
        self.array.set_fetching(place, false);
        if let Some(fetched) = fetched {
            self.array.fill(place, fetched);
        } else if self.array.valid(place).is_empty() {
            self.array.free(place);
        }
    }

    /// A read that waited for a fetch that has ended, and the line, if it came.
    pub fn poll_filled(&mut self, fetch: u32) -> Option<(W, Option<LineData>)> {
        let (waiter, place) = self.fetches.poll_waiter(fetch)?;
        Some((waiter, self.array.valid(place).is_full().then(|| *self.array.data(place))))
    }

    /// How many ways there are: the places that [`Cache::clean_at`] takes.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.array.places()
    }

    /// The line at a place, and whether it is being fetched.
    #[must_use]
    pub fn line_at(&self, place: u32) -> Option<(LineAddress, bool)> {
        let place = Place(place);
        self.array.line(place).map(|line| (line, self.array.is_fetching(place)))
    }

    /// Cleans a place for a flush; with `drop`, frees it too unless its line is being fetched.
    /// What it gives must be written.
    pub fn clean_at(&mut self, place: u32, drop: bool) -> Option<Victim> {
        let place = Place(place);
        let victim = self.clean(place);
        if drop && self.array.line(place).is_some() && !self.array.is_fetching(place) {
            self.array.free(place);
        }
        victim
    }

    /// Asserts the invariants: a line is in one way, dirty bytes are valid, a free way has neither,
    /// and the order of use is one of all ways. For tests, and for a simulator's end.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.array.check();
    }
}

#[cfg(test)]
mod tests;
