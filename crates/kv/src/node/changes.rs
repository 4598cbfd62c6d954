//! The changes of a request: they are buffered until everything that can fail has been done.

use std::collections::BTreeMap;

use ethermem::Address;

/// The writes of one transaction. Their order is invisible outside of the request.
#[derive(Default)]
pub(super) struct Changes {
    words: BTreeMap<u64, [u8; 8]>,
    /// Whole records, in blocks that look free to clients. The request does not read them again.
    records: Vec<(Address, Vec<u8>)>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.records.is_empty()
    }

    /// The pending value of a word.
    pub(super) fn word(&self, at: Address) -> Option<u64> {
        self.words.get(&at.0).copied().map(u64::from_le_bytes)
    }

    pub(super) fn set_word(&mut self, at: Address, word: u64) {
        self.words.insert(at.0, word.to_le_bytes());
    }

    pub(super) fn set_record(&mut self, at: Address, bytes: Vec<u8>) {
        // The first word of a free block is its list's link, but not once the block is in use.
        self.words.remove(&at.0);
        self.records.push((at, bytes));
    }

    /// All pending writes.
    pub(super) fn writes(&self) -> Vec<(Address, &[u8])> {
        let words = self.words.iter().map(|(&at, word)| (Address(at), &word[..]));
        let records = self.records.iter().map(|(at, bytes)| (*at, &bytes[..]));
        words.chain(records).collect()
    }

    /// Discards the pending changes.
    pub(super) fn forget(&mut self) {
        self.words.clear();
        self.records.clear();
    }
}
