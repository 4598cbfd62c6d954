//! The memory node's address translator (section III.C): from a compute node and its CMem page to
//! a page of the pool (MPMem). A TLB as a CAM is asked first; the complete table is in the pool's
//! memory, indexed by a hash of both.

use ethermem_wire::cxl::{LineAddress, Mac, translation_hash};
use thiserror::Error;

/// Entries in a bucket of the table: 16 B each, so that a bucket is a line.
const BUCKET_ENTRIES: usize = 4;
/// Most buckets in which an entry can be.
const PROBES_MAX: usize = 8;

/// What a translator is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslatorConfig {
    /// Lines of a page: a power of two. 2 MiB are 32,768.
    pub page_lines: u64,
    /// Entries of the TLB.
    pub tlb_entries: usize,
    /// Buckets of the table, of four entries each: a power of two.
    pub buckets: usize,
}

/// Why a page cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// The compute node has this page already.
    #[error("page {page:#x} of {node} is mapped already")]
    Mapped {
        /// The compute node.
        node: Mac,
        /// Its page.
        page: u64,
    },
    /// All buckets in which the entry could be are full.
    #[error("no room in the page table for page {page:#x} of {node}")]
    Full {
        /// The compute node.
        node: Mac,
        /// Its page.
        page: u64,
    },
}

/// Why a translator cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TranslatorConfigError {
    /// The page's size is no power of two.
    #[error("page of {0} lines: must be a power of two")]
    Page(u64),
    /// There must be a power of two of buckets.
    #[error("{0} buckets: must be a power of two")]
    Buckets(usize),
}

/// Where a line is in the pool, and what finding it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The line of the pool; `None` if the compute node maps none there.
    pub line: Option<LineAddress>,
    /// Lines of the table that were read: 0 for a TLB hit.
    pub table_reads: u8,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslatorCounters {
    /// Translations by the TLB.
    pub tlb_hits: u64,
    /// Translations by the table.
    pub tlb_misses: u64,
    /// Lines of the table that were read.
    pub table_reads: u64,
    /// Addresses that were not mapped.
    pub unmapped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    node: Mac,
    page: u64,
    frame: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    entries: [Option<Entry>; BUCKET_ENTRIES],
    /// Entries that did not fit here and are in a later bucket: a search goes on if there are any.
    overflown: u16,
}

/// The translator of one memory node.
#[derive(Clone, Debug)]
pub struct Translator {
    page_lines: u64,
    buckets: Box<[Bucket]>,
    /// Most recently used first.
    tlb: Box<[Option<Entry>]>,
    counters: TranslatorCounters,
}

impl Translator {
    /// A translator that maps nothing. All its memory is reserved here.
    ///
    /// # Errors
    /// [`TranslatorConfigError`].
    pub fn new(config: TranslatorConfig) -> Result<Translator, TranslatorConfigError> {
        if !config.page_lines.is_power_of_two() {
            return Err(TranslatorConfigError::Page(config.page_lines));
        }
        if !config.buckets.is_power_of_two() {
            return Err(TranslatorConfigError::Buckets(config.buckets));
        }
        Ok(Translator {
            page_lines: config.page_lines,
            buckets: vec![Bucket::default(); config.buckets].into(),
            tlb: vec![None; config.tlb_entries].into(),
            counters: TranslatorCounters::default(),
        })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> TranslatorCounters {
        self.counters
    }

    /// Maps a page of a compute node to a page of the pool.
    ///
    /// # Errors
    /// [`MapError`]; nothing was changed.
    pub fn map(&mut self, node: Mac, page: u64, frame: u64) -> Result<(), MapError> {
        if self.search(node, page).0.is_some() {
            return Err(MapError::Mapped { node, page });
        }
        let probes = PROBES_MAX.min(self.buckets.len());
        let is_free = |&probe: &usize| {
            let bucket = &self.buckets[self.place(node, page, probe)];
            bucket.entries.iter().any(Option::is_none)
        };
        let free = (0..probes).find(is_free).ok_or(MapError::Full { node, page })?;
        for probe in 0..free {
            let place = self.place(node, page, probe);
            self.buckets[place].overflown += 1;
        }
        let place = self.place(node, page, free);
        let entry = self.buckets[place].entries.iter_mut().find(|entry| entry.is_none());
        if let Some(entry) = entry {
            *entry = Some(Entry { node, page, frame });
        }
        Ok(())
    }

    /// Doubles the table; the TLB stays as it is.
    pub(crate) fn grow(&mut self) {
        let twice = vec![Bucket::default(); 2 * self.buckets.len()].into();
        let before = core::mem::replace(&mut self.buckets, twice);
        for entry in before.iter().flat_map(|bucket| bucket.entries).flatten() {
            // A bucket's entries go to two buckets, so the chains become no longer, unless hashes
            // are equal: then it grows again.
            while self.map(entry.node, entry.page, entry.frame).is_err() {
                self.grow();
            }
        }
    }

    /// Ends the mapping of a page, and gives the page of the pool that it had. The TLB forgets it,
    /// too.
    pub fn unmap(&mut self, node: Mac, page: u64) -> Option<u64> {
        let (found, reads) = self.search(node, page);
        let entry = found?;
        for probe in 0..reads {
            let place = self.place(node, page, probe);
            let bucket = &mut self.buckets[place];
            if probe + 1 == reads {
                let slot = bucket.entries.iter_mut().find(|slot| **slot == Some(entry));
                slot.into_iter().for_each(|slot| *slot = None);
            } else {
                bucket.overflown -= 1;
            }
        }
        for cached in self.tlb.iter_mut().filter(|cached| **cached == Some(entry)) {
            *cached = None;
        }
        Some(entry.frame)
    }

    /// Where a line of a compute node is in the pool.
    pub fn translate(&mut self, node: Mac, line: LineAddress) -> Translation {
        let (page, offset) = (line.number() / self.page_lines, line.number() % self.page_lines);
        let is_it = |entry: &Option<Entry>| entry.is_some_and(|e| e.node == node && e.page == page);
        let (entry, table_reads) = match self.tlb.iter().position(is_it) {
            Some(at) => {
                self.counters.tlb_hits += 1;
                self.tlb[..=at].rotate_right(1);
                (self.tlb[0], 0)
            }
            None => {
                self.counters.tlb_misses += 1;
                let (entry, reads) = self.search(node, page);
                if entry.is_some() && !self.tlb.is_empty() {
                    self.tlb.rotate_right(1);
                    self.tlb[0] = entry;
                }
                (entry, reads as u8)
            }
        };
        self.counters.table_reads += u64::from(table_reads);
        self.counters.unmapped += u64::from(entry.is_none());
        let line = |entry: Entry| LineAddress::new(entry.frame * self.page_lines + offset).ok();
        Translation { line: entry.and_then(line), table_reads }
    }

    /// The entry of a page, and how many buckets were read for it.
    fn search(&self, node: Mac, page: u64) -> (Option<Entry>, usize) {
        let probes = PROBES_MAX.min(self.buckets.len());
        for probe in 0..probes {
            let bucket = &self.buckets[self.place(node, page, probe)];
            let mut entries = bucket.entries.iter().flatten();
            if let Some(entry) = entries.find(|entry| entry.node == node && entry.page == page) {
                return (Some(*entry), probe + 1);
            }
            if bucket.overflown == 0 {
                return (None, probe + 1);
            }
        }
        (None, probes)
    }

    fn place(&self, node: Mac, page: u64, probe: usize) -> usize {
        (translation_hash(node, page) as usize).wrapping_add(probe) & (self.buckets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn node(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    fn translator(buckets: usize, tlb_entries: usize) -> Translator {
        Translator::new(TranslatorConfig { page_lines: 8, tlb_entries, buckets }).unwrap()
    }

    #[test]
    fn a_page_is_found_by_the_table_first_and_by_the_tlb_then() {
        let mut translator = translator(16, 2);
        translator.map(node(1), 5, 9).unwrap();
        let line = LineAddress::new(5 * 8 + 3).unwrap();
        let found = LineAddress::new(9 * 8 + 3).ok();
        for table_reads in [1, 0, 0] {
            let translation = translator.translate(node(1), line);
            assert_eq!(translation, Translation { line: found, table_reads });
        }
        // The other compute node has nothing there.
        assert_eq!(translator.translate(node(2), line).line, None);
        assert_eq!(
            translator.map(node(1), 5, 1).unwrap_err().to_string(),
            "page 0x5 of 02:00:00:00:00:01 is mapped already"
        );
        assert_eq!(translator.unmap(node(1), 5), Some(9));
        assert_eq!(translator.translate(node(1), line).line, None, "the TLB forgot it");
        let counters = translator.counters();
        assert_eq!((counters.tlb_hits, counters.tlb_misses, counters.unmapped), (2, 3, 2));
    }

    #[test]
    fn a_table_that_is_full_says_so() {
        let mut translator = translator(2, 0);
        (0..8).for_each(|page| translator.map(node(1), page, page).unwrap());
        let full = MapError::Full { node: node(1), page: 8 };
        assert_eq!(translator.map(node(1), 8, 8), Err(full));
        assert!(translator.unmap(node(1), 3).is_some());
        assert_eq!(translator.map(node(1), 8, 8), Ok(()));
    }

    #[test]
    fn a_table_that_grows_keeps_what_it_has() {
        let mut translator = translator(1, 2);
        for page in 0..1_000 {
            while translator.map(node(1), page, 3 * page).is_err() {
                translator.grow();
            }
        }
        for page in 0..1_000 {
            let line = LineAddress::new(page * 8 + 5).unwrap();
            let found = translator.translate(node(1), line).line;
            assert_eq!(found.map(LineAddress::number), Some(3 * page * 8 + 5));
        }
        assert!(translator.buckets.len() <= 1_024, "{} buckets", translator.buckets.len());
    }

    proptest! {
        /// Small tables, so that buckets overflow.
        #[test]
        fn the_table_is_a_map(
            buckets in prop::sample::select(vec![1_usize, 2, 4, 16]),
            tlb_entries in 0_usize..5,
            steps in proptest::collection::vec((0_u8..3, 0_u8..3, 0_u64..30, any::<u16>()), 0..300),
        ) {
            let mut translator = translator(buckets, tlb_entries);
            let mut model = BTreeMap::new();
            for (step, who, page, frame) in steps {
                let (who, frame) = (node(who), u64::from(frame));
                match step {
                    0 => match translator.map(who, page, frame) {
                        Ok(()) => prop_assert_eq!(model.insert((who, page), frame), None),
                        Err(MapError::Mapped { .. }) => {
                            prop_assert!(model.contains_key(&(who, page)));
                        }
                        Err(MapError::Full { .. }) => prop_assert!(model.len() >= 4),
                    },
                    1 => prop_assert_eq!(translator.unmap(who, page), model.remove(&(who, page))),
                    _ => {
                        let line = LineAddress::new(page * 8 + 5).unwrap();
                        let found = translator.translate(who, line).line;
                        let frame = model.get(&(who, page));
                        prop_assert_eq!(found.map(LineAddress::number), frame.map(|f| f * 8 + 5));
                    }
                }
            }
        }
    }
}
