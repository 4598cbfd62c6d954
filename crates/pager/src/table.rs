//! The pager's state of each page of one address space.

use rustc_hash::FxHashMap;

use crate::protocol::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
/// Pages whose entries are stored together: those of 2 MiB.
const CHUNK_PAGES: usize = 512;
const CHUNK_BYTES: u64 = CHUNK_PAGES as u64 * PAGE;

/// A slot index that means none.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Location of a page's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// In the program's memory if the program has touched it, else all zeroes. The pager has never
    /// taken it out.
    #[default]
    Unknown,
    /// The program discarded the content: zeroes when touched again. Until then the page must not
    /// be taken out, because the kernel drops the content only after its event was read.
    Removed,
    /// In the program's memory, put there by the pager; `slot` has its content at that time.
    Resident,
    /// In the standby list, at `standby`; `slot` may have an earlier content.
    Standby,
    /// In the store, at `slot`.
    Stored,
}

/// State of one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) state: State,
    /// True if the page is in the queue of the program's pages.
    pub(crate) queued: bool,
    /// True if the kernel refused to move the page, because it was shared or in use.
    pub(crate) refused: bool,
    /// Level in the queue of the program's pages.
    pub(crate) level: u8,
    /// When it last left the program's memory, in pages that left.
    pub(crate) left: u32,
    /// Place in the standby list.
    pub(crate) standby: u32,
    /// Slot in the store, or [`NO_SLOT`].
    pub(crate) slot: u32,
    /// Hash of the content at `slot`.
    pub(crate) hash: u128,
}

impl Page {
    /// True if the pager has the page's content.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.state, State::Stored | State::Standby)
    }
}

impl Default for Page {
    fn default() -> Page {
        Page {
            state: State::Unknown,
            queued: false,
            refused: false,
            level: 0,
            left: 0,
            standby: 0,
            slot: NO_SLOT,
            hash: 0,
        }
    }
}

/// The pages of one address space, by address. A page without an entry is [`Page::default`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    chunks: FxHashMap<u64, Box<[Page]>>,
}

fn place(page: u64) -> (u64, usize) {
    (page / CHUNK_BYTES, (page % CHUNK_BYTES / PAGE) as usize)
}

impl Table {
    /// State of the page at `page`.
    pub(crate) fn get(&self, page: u64) -> Page {
        let (chunk, index) = place(page);
        self.chunks.get(&chunk).map_or_else(Page::default, |pages| pages[index])
    }

    /// Entry of the page at `page`, created if absent.
    pub(crate) fn entry(&mut self, page: u64) -> &mut Page {
        let (chunk, index) = place(page);
        let pages = self
            .chunks
            .entry(chunk)
            .or_insert_with(|| vec![Page::default(); CHUNK_PAGES].into_boxed_slice());
        &mut pages[index]
    }

    /// Removes the pages of `start..end`, and passes each that had an entry to `forget`.
    pub(crate) fn take(&mut self, start: u64, end: u64, mut forget: impl FnMut(u64, Page)) {
        for chunk in self.chunks_in(start, end) {
            let base = chunk * CHUNK_BYTES;
            let (first, last) = (start.max(base), end.min(base + CHUNK_BYTES));
            let Some(pages) = self.chunks.get_mut(&chunk) else { continue };
            for page in (first..last).step_by(PAGE_BYTES) {
                let entry = std::mem::take(&mut pages[place(page).1]);
                if entry.state != State::Unknown || entry.slot != NO_SLOT || entry.queued {
                    forget(page, entry);
                }
            }
            if last - first == CHUNK_BYTES {
                self.chunks.remove(&chunk);
            }
        }
    }

    /// The chunks that have entries in `start..end`, found without visiting each address of a long
    /// range.
    fn chunks_in(&self, start: u64, end: u64) -> Vec<u64> {
        let (first, last) = (start / CHUNK_BYTES, end.div_ceil(CHUNK_BYTES));
        if last - first <= self.chunks.len() as u64 {
            return (first..last).filter(|chunk| self.chunks.contains_key(chunk)).collect();
        }
        self.chunks.keys().copied().filter(|chunk| (first..last).contains(chunk)).collect()
    }

    /// Forgets which pages the kernel refused to move: a fork shares pages anew, and what is shared
    /// can be unshared.
    pub(crate) fn retry_refused(&mut self) {
        self.chunks.values_mut().flatten().for_each(|page| page.refused = false);
    }

    /// Every entry.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, Page)> + '_ {
        self.chunks.iter().flat_map(|(chunk, pages)| {
            let base = chunk * CHUNK_BYTES;
            (base..).step_by(PAGE_BYTES).zip(pages.iter().copied())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, CHUNK_PAGES, PAGE, Page, State, Table};

    fn marked(pages: &[u64]) -> Table {
        let mut table = Table::default();
        for page in pages {
            table.entry(*page).state = State::Stored;
        }
        table
    }

    #[test]
    fn a_range_is_taken_whole_and_nothing_beside_it() {
        let pages = [0, PAGE, CHUNK_BYTES - PAGE, CHUNK_BYTES, 3 * CHUNK_BYTES];
        for (start, end, expected) in [
            (PAGE, CHUNK_BYTES, vec![PAGE, CHUNK_BYTES - PAGE]),
            (0, 1 << 46, pages.to_vec()),
            (2 * PAGE, 3 * PAGE, vec![]),
        ] {
            let mut table = marked(&pages);
            let mut taken = Vec::new();
            table.take(start, end, |page, _| taken.push(page));
            taken.sort_unstable();
            assert_eq!(taken, expected);
            let left = pages.iter().filter(|page| table.get(**page).state == State::Stored).count();
            assert_eq!(left + taken.len(), pages.len());
        }
    }

    #[test]
    fn a_page_is_kept_where_the_pager_has_its_content() {
        let states = [State::Unknown, State::Removed, State::Resident, State::Standby];
        let kept = |state| Page { state, ..Page::default() }.is_kept();
        assert_eq!(states.map(kept), [false, false, false, true]);
        assert!(kept(State::Stored));
    }

    #[test]
    fn each_page_has_its_entry_and_what_is_taken_is_told_if_there_was_anything() {
        let mut table = Table::default();
        let pages: Vec<u64> = (0..3 * CHUNK_PAGES as u64).map(|at| at * PAGE).collect();
        for (at, &page) in pages.iter().enumerate() {
            let entry = table.entry(page);
            entry.hash = at as u128;
            match at % 4 {
                0 => entry.state = State::Removed,
                1 => entry.slot = 7,
                2 => entry.queued = true,
                // A read of the table only.
                _ => {}
            }
        }
        let mut told: Vec<(u64, u128)> =
            table.pages().map(|(page, entry)| (page, entry.hash)).collect();
        told.sort_unstable();
        let all = pages.iter().enumerate().map(|(at, &page)| (page, at as u128));
        assert!(told.into_iter().eq(all), "each page once, at its address");
        let (start, end) = (CHUNK_BYTES / 2, 2 * CHUNK_BYTES + CHUNK_BYTES / 2);
        let mut taken = Vec::new();
        table.take(start, end, |page, entry| taken.push((page, entry.hash)));
        taken.sort_unstable();
        let within = pages
            .iter()
            .enumerate()
            .filter(|(at, page)| (start..end).contains(*page) && at % 4 != 3);
        assert!(taken.into_iter().eq(within.map(|(at, &page)| (page, at as u128))));
        for (at, &page) in pages.iter().enumerate() {
            let left = if (start..end).contains(&page) { 0 } else { at as u128 };
            assert_eq!(table.get(page).hash, left, "{page:x}");
        }
        assert_eq!(table.chunks.len(), 2, "a chunk that is taken whole is gone");
    }
}
