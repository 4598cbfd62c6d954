//! Which memory is cached, and under which line numbers.
//!
//! Only regions that a process of this pool has allocated, and has not shared, are cached. Each has
//! line numbers of its own, which are never given to another region: a line of a region that is
//! gone can therefore never be found again.

use std::collections::BTreeMap;

use ethermem_pool::{Address, Permissions, ProcessId, Segment};
use ethermem_wire::cxl::{LINE_BYTES, LineAddress};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) const LINE: u64 = LINE_BYTES as u64;

/// First and last line of a range.
pub(super) type Lines = (u64, u64);

/// A cached region.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) process: ProcessId,
    /// Address of its first byte, and length in bytes.
    pub(super) from: u64,
    pub(super) bytes: u64,
    pub(super) permissions: Permissions,
    /// Line number of its first byte.
    pub(super) first: u64,
    /// Lines, counted from its first one, that hold a lock's word. They are not cached.
    words: FxHashSet<u64>,
}

/// A part of an access within one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) line: LineAddress,
    /// Offset of its first byte in the line.
    pub(super) from: usize,
    pub(super) bytes: usize,
    /// The line holds a lock's word.
    pub(super) is_word: bool,
}

impl Region {
    fn lines(&self) -> u64 {
        self.bytes.div_ceil(LINE)
    }

    /// Address behind its last line. The regions of a memory node are whole pages, so it is the
    /// process's up to there.
    pub(super) fn to(&self) -> u64 {
        self.from + self.lines() * LINE
    }

    /// The first part of `bytes` bytes from an address in the region on.
    pub(super) fn part(&self, address: u64, bytes: u64) -> Part {
        let offset = address - self.from;
        let from = offset % LINE;
        let line = LineAddress::new(self.first + offset / LINE).expect("its numbers were reserved");
        let bytes = bytes.min(LINE - from) as usize;
        let is_word = !self.words.is_empty() && self.words.contains(&(offset / LINE));
        Part { line, from: from as usize, bytes, is_word }
    }
}

/// The cached regions of all processes.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// By process and first byte.
    all: BTreeMap<(u32, u64), Region>,
    /// By first line: the key in `all`.
    by_line: BTreeMap<u64, (u32, u64)>,
    counts: FxHashMap<u32, usize>,
    /// The next line number that no region has.
    next: u64,
}

impl Regions {
    /// Adds a region that was allocated. Without room for its line numbers it is not cached.
    pub(super) fn add(
        &mut self,
        process: ProcessId,
        at: Address,
        bytes: u64,
        permissions: Permissions,
    ) {
        let first = self.next;
        let lines = bytes.div_ceil(LINE);
        if !at.0.is_multiple_of(LINE) || lines > LineAddress::LINES - first {
            return;
        }
        self.next += lines;
        let (from, words) = (at.0, FxHashSet::default());
        let region = Region { process, from, bytes, permissions, first, words };
        match self.all.insert((process.0, from), region) {
            Some(before) => drop(self.by_line.remove(&before.first)),
            None => *self.counts.entry(process.0).or_default() += 1,
        }
        self.by_line.insert(first, (process.0, from));
    }

    /// The region that holds all of these bytes.
    pub(super) fn find(&self, process: ProcessId, address: Address, bytes: u64) -> Option<&Region> {
        let mut below = self.all.range((process.0, 0)..=(process.0, address.0));
        let (_, region) = below.next_back()?;
        (address.0.checked_add(bytes)? <= region.to()).then_some(region)
    }

    /// The keys of all regions that hold any of these bytes.
    pub(super) fn touched(&self, process: ProcessId, segment: Segment) -> Vec<(u32, u64)> {
        let (from, to) = (segment.address.0, segment.address.0.saturating_add(segment.bytes));
        let below = self.all.range((process.0, 0)..(process.0, to));
        // Regions do not overlap, so that their ends are in the order of their beginnings.
        let touched = below.rev().take_while(|(_, region)| region.to() > from);
        touched.map(|(&key, _)| key).collect()
    }

    /// The lines of these bytes, as far as they are cached.
    pub(super) fn lines(&self, process: ProcessId, segment: Segment) -> Vec<Lines> {
        let lines = |key| {
            let region = &self.all[&key];
            let from = segment.address.0.max(region.from) - region.from;
            let to = segment.address.0.saturating_add(segment.bytes).min(region.to()) - region.from;
            (to > from).then(|| (region.first + from / LINE, region.first + (to - 1) / LINE))
        };
        self.touched(process, segment).into_iter().filter_map(lines).collect()
    }

    /// All lines of the regions that hold any of these bytes.
    pub(super) fn whole(&self, process: ProcessId, segment: Segment) -> Vec<Lines> {
        let lines = |key| {
            let region: &Region = &self.all[&key];
            (region.first, region.first + region.lines() - 1)
        };
        self.touched(process, segment).into_iter().map(lines).collect()
    }

    /// The region of a line, and the address of the line's first byte. `None` if the region is
    /// gone.
    pub(super) fn at_line(&self, line: u64) -> Option<(&Region, u64)> {
        let (_, key) = self.by_line.range(..=line).next_back()?;
        let region = self.all.get(key)?;
        let offset = line - region.first;
        (offset < region.lines()).then(|| (region, region.from + offset * LINE))
    }

    /// The region with this first byte and length.
    pub(super) fn exact(&self, process: ProcessId, at: Address, bytes: u64) -> Option<(u32, u64)> {
        let region = self.all.get(&(process.0, at.0))?;
        (region.bytes == bytes).then_some((process.0, at.0))
    }

    pub(super) fn remove(&mut self, key: (u32, u64)) -> Option<Lines> {
        let region = self.all.remove(&key)?;
        self.by_line.remove(&region.first);
        if let Some(count) = self.counts.get_mut(&key.0) {
            *count -= 1;
        }
        Some((region.first, region.first + region.lines() - 1))
    }

    /// Removes every region of a process.
    pub(super) fn remove_all(&mut self, process: ProcessId) {
        let keys = self.all.range((process.0, 0)..=(process.0, u64::MAX)).map(|(&key, _)| key);
        for key in keys.collect::<Vec<_>>() {
            self.remove(key);
        }
    }

    pub(super) fn has(&self, process: ProcessId) -> bool {
        self.counts.get(&process.0).is_some_and(|&count| count > 0)
    }

    /// The processes that have cached regions.
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessId> {
        self.counts.iter().filter(|(_, count)| **count > 0).map(|(&process, _)| ProcessId(process))
    }

    /// Never caches the line of a lock's word again.
    pub(super) fn uncache_word(&mut self, process: ProcessId, word: Address) {
        for key in self.touched(process, Segment { address: word, bytes: 8 }) {
            let region = self.all.get_mut(&key).expect("it was found");
            let offset = word.0.saturating_sub(region.from);
            region.words.insert(offset / LINE);
            region.words.insert((offset + 7) / LINE);
        }
    }

    /// Over half of all line numbers are spent: a good time to number all regions anew.
    pub(super) fn is_worn(&self) -> bool {
        self.next > LineAddress::LINES / 2
    }

    /// Gives every region new numbers, so that none of its lines is found any more. Returns whether
    /// the numbers begin anew, and the cache must be cleared.
    pub(super) fn renumber(&mut self) -> bool {
        let lines: u64 = self.all.values().map(Region::lines).sum();
        let wraps = lines > LineAddress::LINES - self.next;
        if wraps {
            self.next = 0;
        }
        self.by_line.clear();
        for (&key, region) in &mut self.all {
            region.first = self.next;
            self.by_line.insert(region.first, key);
            self.next += region.lines();
        }
        wraps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProcessId = ProcessId(1);

    fn segment(address: u64, bytes: u64) -> Segment {
        Segment { address: Address(address), bytes }
    }

    #[test]
    fn a_region_is_found_by_its_bytes_and_by_its_lines() {
        let mut regions = Regions::default();
        regions.add(ONE, Address(8192), 100, Permissions::READ);
        regions.add(ONE, Address(4096), 4096, Permissions::READ);
        let found =
            |address, bytes| regions.find(ONE, Address(address), bytes).map(|region| region.from);
        assert_eq!(found(4096, 4096), Some(4096));
        assert_eq!((found(4095, 1), found(4096, 4097), found(8192, 128)), (None, None, Some(8192)));
        assert_eq!((found(8192, 129), found(u64::MAX, 2)), (None, None));
        assert!(regions.find(ProcessId(2), Address(4096), 1).is_none());
        assert_eq!(regions.lines(ONE, segment(0, u64::MAX)), [(0, 1), (2, 65)]);
        assert_eq!(regions.lines(ONE, segment(8191, 2)), [(0, 0), (65, 65)]);
        assert!(regions.lines(ONE, segment(8320, 8)).is_empty());
        assert_eq!(regions.whole(ONE, segment(8191, 2)), [(0, 1), (2, 65)]);
        assert!(regions.whole(ONE, segment(8320, 8)).is_empty());
        let at = |line| regions.at_line(line).map(|(_, address)| address);
        assert_eq!(
            [at(0), at(1), at(2), at(65), at(66)],
            [Some(8192), Some(8256), Some(4096), Some(8128), None]
        );
        let part = regions.find(ONE, Address(8250), 10).unwrap().part(8250, 10);
        let line = LineAddress::new(0).unwrap();
        assert_eq!(part, Part { line, from: 58, bytes: 6, is_word: false });
    }

    #[test]
    fn numbers_are_never_given_twice_until_all_begin_anew() {
        let mut regions = Regions::default();
        regions.add(ONE, Address(4096), 4096, Permissions::READ);
        assert_eq!(regions.remove((1, 4096)), Some((0, 63)));
        assert!(!regions.has(ONE) && regions.at_line(3).is_none());
        regions.add(ONE, Address(4096), 64, Permissions::READ);
        regions.uncache_word(ONE, Address(4100));
        let word = |regions: &Regions| regions.find(ONE, Address(4096), 1).unwrap().part(4096, 1);
        assert_eq!((word(&regions).line.number(), word(&regions).is_word), (64, true));
        assert!(!regions.renumber());
        assert_eq!((word(&regions).line.number(), word(&regions).is_word), (65, true));
        regions.next = LineAddress::LINES;
        regions.add(ONE, Address(1 << 20), 64, Permissions::READ);
        assert!(regions.find(ONE, Address(1 << 20), 1).is_none(), "no number is left");
        assert!(regions.is_worn() && regions.renumber());
        assert_eq!(word(&regions).line.number(), 0);
    }
}
