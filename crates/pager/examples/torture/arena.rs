//! Pages whose expected content follows from the last operation on them.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc;

pub(crate) const PAGE_BYTES: usize = 4096;
const WORDS: usize = PAGE_BYTES / 8;

/// Pages of private memory at addresses that may change. Shared memory beside them holds the
/// version of each, from which its expected content follows.
pub(crate) struct Arena {
    /// Address of each page.
    places: Vec<*mut u64>,
    /// Number of times each page was written; 0 for a page of zeroes.
    versions: &'static [AtomicU32],
    seed: u64,
}

/// Maps fresh memory, and panics if that fails.
pub(crate) fn map(bytes: usize, kind: i32) -> *mut u64 {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping replaces no other.
    let place = unsafe { libc::mmap(null_mut(), bytes, rights, kind | libc::MAP_ANONYMOUS, -1, 0) };
    assert_ne!(place, libc::MAP_FAILED, "memory");
    place.cast()
}

fn expected(seed: u64, page: usize, version: u32, word: usize) -> u64 {
    if version == 0 {
        return 0;
    }
    let mixed = seed ^ (page as u64) << 40 ^ u64::from(version) << 10 ^ word as u64;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl Arena {
    pub(crate) fn new(pages: usize, seed: u64) -> Arena {
        let start = map(pages * PAGE_BYTES, libc::MAP_PRIVATE);
        // SAFETY: the address is inside of the mapping.
        let places = (0..pages).map(|page| unsafe { start.add(page * WORDS) }).collect();
        let versions = map(pages * 4, libc::MAP_SHARED).cast::<AtomicU32>();
        // SAFETY: the mapping is never unmapped, and zeroes are valid counters.
        let versions = unsafe { std::slice::from_raw_parts(versions, pages) };
        Arena { places, versions, seed }
    }

    pub(crate) fn pages(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn place(&self, page: usize) -> *mut u64 {
        self.places[page]
    }

    pub(crate) fn moved(&mut self, page: usize, place: *mut u64) {
        self.places[page] = place;
    }

    fn version(&self, page: usize) -> u32 {
        self.versions[page].load(Ordering::Relaxed)
    }

    /// Content of the page after one more write.
    pub(crate) fn next(&mut self, page: usize) -> [u64; WORDS] {
        let version = self.version(page) + 1;
        self.versions[page].store(version, Ordering::Relaxed);
        self.content(page)
    }

    /// Content that the page must have.
    pub(crate) fn content(&self, page: usize) -> [u64; WORDS] {
        std::array::from_fn(|word| expected(self.seed, page, self.version(page), word))
    }

    /// Records that the page is all zeroes from now on.
    pub(crate) fn cleared(&mut self, page: usize) {
        self.versions[page].store(0, Ordering::Relaxed);
    }

    pub(crate) fn write_page(&mut self, page: usize) {
        let content = self.next(page);
        // SAFETY: every place is a mapped page of this arena.
        unsafe { self.places[page].copy_from_nonoverlapping(content.as_ptr(), WORDS) };
    }

    pub(crate) fn check_word(&self, page: usize, word: usize) -> Result<(), String> {
        // SAFETY: as above.
        let found = unsafe { self.places[page].add(word).read_volatile() };
        let expected = expected(self.seed, page, self.version(page), word);
        if found == expected {
            return Ok(());
        }
        let (place, version) = (self.places[page], self.version(page));
        Err(format!(
            "page {page} at {place:p}, version {version}, word {word}: \
             {found:016x} instead of {expected:016x}"
        ))
    }

    pub(crate) fn check_page(&self, page: usize) -> Result<(), String> {
        (0..WORDS).try_for_each(|word| self.check_word(page, word))
    }

    /// Checks a copy of the page.
    pub(crate) fn check_copy(&self, page: usize, copy: &[u64; WORDS]) -> Result<(), String> {
        if *copy == self.content(page) {
            return Ok(());
        }
        Err(format!("page {page} was read wrong by the kernel"))
    }

    /// A copy of the expectations for a child, as they are before the fork.
    pub(crate) fn expectations(&self) -> &'static [AtomicU32] {
        let versions = map(self.pages() * 4, libc::MAP_SHARED).cast::<AtomicU32>();
        // SAFETY: as in `new`.
        let versions = unsafe { std::slice::from_raw_parts(versions, self.pages()) };
        for (new, old) in versions.iter().zip(self.versions) {
            new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        versions
    }

    /// Replaces the child's expectations by the copy.
    pub(crate) fn adopt(&mut self, versions: &'static [AtomicU32]) {
        self.versions = versions;
    }

    /// Unmaps the parent's copy.
    pub(crate) fn drop_expectations(versions: &'static [AtomicU32]) {
        let place = versions.as_ptr().cast_mut().cast();
        // SAFETY: `expectations` made the mapping, and nothing in this process uses it.
        unsafe { libc::munmap(place, size_of_val(versions)) };
    }
}
