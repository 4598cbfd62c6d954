//! Layout of a shard in its memory node. A shard is the part of a store on one memory node: its
//! header, tables of buckets, and regions that blocks are cut from.
//!
//! | offset | words | what |
//! |---|---|---|
//! | 0 | 1 | [`MAGIC`] |
//! | 8 | 40 | offset of the table with 2^n buckets, 0 where there is none |
//! | 328 | 1 | how many keys there are |
//! | 336 | 1 | buckets of the table before the last that were moved to the last |
//! | 344 | 2 | what of the newest region was not yet cut into blocks: from, to |
//! | 360 | 1 | bytes of all regions |
//! | 368 | 1 | bytes of the blocks that were given out |
//! | 376 | 161 | first free block of each class |
//!
//! A word of `tables` is written once. A bucket is one word: a [`crate::link::Link`] to the first
//! record of its chain, or one of [`UNSET`], [`EMPTY`] and [`MOVED`].

use ethermem::Address;

use crate::link::{CLASSES, Class};

/// Marks a shard of a store, and the version of its layout.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"emkv\x02\0\0\0");

/// The bucket is not yet moved from the previous table; in the first table, it is empty.
pub(crate) const UNSET: u64 = 0;
/// The bucket has no record.
pub(crate) const EMPTY: u64 = 1;
/// The bucket has moved to the next table.
pub(crate) const MOVED: u64 = 2;

/// Number of tables, indexed by the logarithm of their number of buckets.
pub(crate) const TABLES: usize = 40;
pub(crate) const TABLES_AT: u64 = 8;
pub(crate) const COUNT_AT: u64 = TABLES_AT + 8 * TABLES as u64;
pub(crate) const MOVED_AT: u64 = COUNT_AT + 8;
pub(crate) const UNCUT_AT: u64 = MOVED_AT + 8;
pub(crate) const HEAP_BYTES_AT: u64 = UNCUT_AT + 16;
pub(crate) const GIVEN_BYTES_AT: u64 = HEAP_BYTES_AT + 8;
/// Length in bytes of the counters, from [`COUNT_AT`] on.
pub(crate) const STATISTICS_BYTES: u64 = GIVEN_BYTES_AT + 8 - COUNT_AT;
pub(crate) const FREE_AT: u64 = GIVEN_BYTES_AT + 8;
pub(crate) const SHARD_BYTES: u64 = FREE_AT + 8 * CLASSES as u64;

/// Offset of the link to a class's first free block.
pub(crate) const fn free_at(class: Class) -> u64 {
    FREE_AT + 8 * class.number() as u64
}

/// The tables of a shard that are in use: the last one, and the previous one while some of its
/// buckets may not have been moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Base-2 logarithm of the number of buckets of the last table.
    pub(crate) log2: u32,
    last: u64,
    before: Option<u64>,
}

impl Tables {
    /// Decodes the words of the header; `None` if there is no table.
    pub(crate) fn parse(words: &[u8]) -> Option<Tables> {
        let mut offsets = words.chunks_exact(8).take(TABLES).map(|octets| {
            let octets = octets.try_into().expect("chunks of 8 B");
            Some(u64::from_le_bytes(octets)).filter(|&offset| offset != 0)
        });
        let mut found = None;
        let mut before = None;
        for log2 in 0.. {
            let Some(offset) = offsets.next() else { break };
            match offset {
                Some(last) => found = Some(Tables { log2, last, before }),
                None if found.is_some() => break,
                None => {}
            }
            before = offset;
        }
        found
    }

    /// Address of a hash's bucket in the last table.
    pub(crate) fn bucket(&self, memory: u16, hash: u64) -> Address {
        bucket(memory, self.last, self.log2, hash)
    }

    /// Address of a hash's bucket in the previous table.
    pub(crate) fn bucket_before(&self, memory: u16, hash: u64) -> Option<Address> {
        self.before.map(|before| bucket(memory, before, self.log2 - 1, hash))
    }

    /// Number of keys in a table of this size above which it grows. Buckets cost little, and every
    /// record before the wanted one costs a round trip.
    pub(crate) fn keys_max(&self) -> u64 {
        1 << (self.log2 - 1)
    }

    /// True if a larger table is possible.
    pub(crate) fn may_grow(&self) -> bool {
        (self.log2 as usize) + 1 < TABLES
    }
}

fn bucket(memory: u16, table: u64, log2: u32, hash: u64) -> Address {
    let index = hash & ((1 << log2) - 1);
    Address::new(memory, table + 8 * index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_table_and_the_one_before_are_found() {
        let words = |set: &[(usize, u64)]| {
            let mut words = vec![0_u64; TABLES];
            set.iter().for_each(|&(at, offset)| words[at] = offset);
            words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
        };
        assert_eq!(Tables::parse(&words(&[])), None);
        let first = Tables::parse(&words(&[(4, 4096)])).unwrap();
        assert_eq!((first.log2, first.bucket(2, 0x35)), (4, Address::new(2, 4096 + 40)));
        assert_eq!(first.bucket_before(2, 0x35), None);
        let third = Tables::parse(&words(&[(4, 4096), (5, 8192), (6, 12288)])).unwrap();
        assert_eq!((third.log2, third.bucket(0, 0x35)), (6, Address(12288 + 8 * 0x35)));
        assert_eq!(third.bucket_before(0, 0x35), Some(Address(8192 + 8 * 0x15)));
    }

    #[test]
    fn behind_the_last_table_of_the_row_none_counts() {
        let words = |set: &[usize]| -> Vec<u8> {
            (0..TABLES).flat_map(|at| u64::from(set.contains(&at)).to_le_bytes()).collect()
        };
        assert_eq!(Tables::parse(&words(&[4, 5, 7])).unwrap().log2, 5);
        assert_eq!(Tables::parse(&words(&[39])).unwrap().log2, 39);
    }

    #[test]
    fn a_table_has_half_as_many_keys_as_buckets_and_the_longest_is_the_last() {
        for log2 in 1..TABLES as u32 {
            let tables = Tables { log2, last: 4096, before: None };
            assert_eq!(tables.keys_max() * 2, 1 << log2);
            assert_eq!(tables.may_grow(), log2 < 39, "2^{log2}");
        }
    }
}
