//! What a request is to change. Offsets of words and bytes of records wait here until all that can
//! fail has been done.

use std::collections::BTreeMap;

use ethermem::Address;

/// The writes of one transaction, in no order: only the request itself could tell one.
#[derive(Default)]
pub(super) struct Changes {
    words: BTreeMap<u64, [u8; 8]>,
    /// Whole records, in blocks that are free as far as others know. They are not read again.
    records: Vec<(Address, Vec<u8>)>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.records.is_empty()
    }

    /// A word that is to be changed.
    pub(super) fn word(&self, at: Address) -> Option<u64> {
        self.words.get(&at.0).copied().map(u64::from_le_bytes)
    }

    pub(super) fn set_word(&mut self, at: Address, word: u64) {
        self.words.insert(at.0, word.to_le_bytes());
    }

    pub(super) fn set_record(&mut self, at: Address, bytes: Vec<u8>) {
        // The first word of a free block names the next one, and no more once it is in use.
        self.words.remove(&at.0);
        self.records.push((at, bytes));
    }

    /// All of them.
    pub(super) fn writes(&self) -> Vec<(Address, &[u8])> {
        let words = self.words.iter().map(|(&at, word)| (Address(at), &word[..]));
        let records = self.records.iter().map(|(at, bytes)| (*at, &bytes[..]));
        words.chain(records).collect()
    }

    /// Nothing is to be changed.
    pub(super) fn forget(&mut self) {
        self.words.clear();
        self.records.clear();
    }
}
