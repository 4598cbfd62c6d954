//! The hash that assigns each page to a bucket of the page table.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::page::PageKey;

/// A secret that no client knows, so that a client cannot choose pages that collide in one bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl core::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// Logarithm of the length of a run of requests: consecutive numbers of a run have consecutive
/// places.
const REQUEST_RUN_BITS: u32 = 6;

impl HashKey {
    /// The bucket of a page among `mask + 1`, a power of two.
    ///
    /// A run has as many pages as there are buckets, with one page in each. So a long range loads
    /// all buckets alike, where single pages or shorter runs would collide by chance. A run begins
    /// in a random bucket and never has two pages of one bucket, so a client knows no two pages
    /// that collide.
    pub(crate) fn bucket(self, page: PageKey, mask: u64) -> usize {
        run(self.hasher(), page.bits(), run_bits(mask), mask)
    }

    /// Number of pages from this one on whose buckets are consecutive: to the end of the page's
    /// run.
    pub(crate) fn left_of_run(page: PageKey, mask: u64) -> u64 {
        mask + 1 - (page.bits() & mask)
    }

    /// The place of a number whose low bits count consecutive items.
    pub(crate) fn place(self, what: (u16, u64), number: u64, mask: u64) -> usize {
        let mut hasher = self.hasher();
        hasher.write_u16(what.0);
        hasher.write_u64(what.1);
        run(hasher, number, REQUEST_RUN_BITS, mask)
    }

    fn hasher(self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

/// Logarithm of the length of a run of pages.
fn run_bits(mask: u64) -> u32 {
    mask.count_ones()
}

fn run(mut hasher: SipHasher13, number: u64, run_bits: u32, mask: u64) -> usize {
    hasher.write_u64(number >> run_bits);
    let within = number & ((1 << run_bits) - 1);
    (hasher.finish().wrapping_add(within) & mask) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SpaceId;

    const KEY: HashKey = HashKey([1, 2]);

    #[test]
    fn a_run_is_in_buckets_that_follow_each_other() {
        let key = |page| PageKey::new(SpaceId(3), page);
        let bucket = |page| KEY.bucket(key(page), 1023);
        for page in 1024..2047 {
            assert_eq!((bucket(page) + 1) % 1024, bucket(page + 1));
        }
        assert_ne!((bucket(2047) + 1) % 1024, bucket(2048), "runs begin anywhere");
        let left = |page| HashKey::left_of_run(key(page), 1023);
        assert_eq!((left(1024), left(2047), left(2048)), (1024, 1, 1024));
    }

    #[test]
    fn spaces_and_keys_part_pages() {
        let at = |key: HashKey, space| key.bucket(PageKey::new(SpaceId(space), 64), (1 << 30) - 1);
        assert_ne!(at(KEY, 1), at(KEY, 2));
        assert_ne!(at(KEY, 1), at(HashKey([1, 3]), 1));
    }
}
