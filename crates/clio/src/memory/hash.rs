//! Which bucket of the page table a page is in.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::page::PageKey;

/// A secret that no client knows, so that none can choose pages that meet in one bucket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u64; 2]);

impl core::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// Pages that follow each other within a run are in buckets that follow each other: a range then
/// burdens each bucket alike, where single pages would meet by chance. Runs begin anywhere, and are
/// too short for a client to know two pages of one bucket.
const RUN_BITS: u32 = 6;

impl HashKey {
    /// The bucket of a page among `mask + 1`, a power of two.
    pub(crate) fn bucket(self, page: PageKey, mask: u64) -> usize {
        run(self.hasher(), page.bits(), mask)
    }

    /// The same for numbers of which the last counts something.
    pub(crate) fn place(self, what: (u16, u64), number: u64, mask: u64) -> usize {
        let mut hasher = self.hasher();
        hasher.write_u16(what.0);
        hasher.write_u64(what.1);
        run(hasher, number, mask)
    }

    fn hasher(self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

fn run(mut hasher: SipHasher13, number: u64, mask: u64) -> usize {
    hasher.write_u64(number >> RUN_BITS);
    let within = number & ((1 << RUN_BITS) - 1);
    (hasher.finish().wrapping_add(within) & mask) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SpaceId;

    const KEY: HashKey = HashKey([1, 2]);

    #[test]
    fn a_run_is_in_buckets_that_follow_each_other() {
        let bucket = |page| KEY.bucket(PageKey::new(SpaceId(3), page), 1023);
        for page in 64..127 {
            assert_eq!((bucket(page) + 1) % 1024, bucket(page + 1));
        }
        assert_ne!((bucket(127) + 1) % 1024, bucket(128), "runs begin anywhere");
    }

    #[test]
    fn spaces_and_keys_part_pages() {
        let at = |key: HashKey, space| key.bucket(PageKey::new(SpaceId(space), 64), u64::MAX >> 1);
        assert_ne!(at(KEY, 1), at(KEY, 2));
        assert_ne!(at(KEY, 1), at(HashKey([1, 3]), 1));
    }
}
