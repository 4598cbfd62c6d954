//! Completed inserts: YCSB's acknowledged counter.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Numbers of inserted records, and the highest below which all inserts have completed.
#[derive(Debug)]
pub(crate) struct Inserted {
    next: AtomicU64,
    last: AtomicU64,
    /// Completed records above one that is not.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Inserted {
    /// State after `loaded` records were loaded, at least one.
    pub(crate) fn new(loaded: u64) -> Inserted {
        let (next, last) = (AtomicU64::new(loaded), AtomicU64::new(loaded - 1));
        Inserted { next, last, ahead: Mutex::default() }
    }

    /// Number for a new record.
    pub(crate) fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Records that an insert has completed.
    pub(crate) fn end(&self, record: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.insert(record);
        let mut last = self.last.load(Ordering::Relaxed);
        while ahead.remove(&(last + 1)) {
            last += 1;
        }
        self.last.store(last, Ordering::Release);
    }

    /// The last record before which all inserts have completed.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_there_when_all_before_it_are() {
        let inserted = Inserted::new(10);
        assert_eq!((inserted.begin(), inserted.begin(), inserted.begin()), (10, 11, 12));
        for (ended, last) in [(11, 9), (12, 9), (10, 12)] {
            inserted.end(ended);
            assert_eq!(inserted.last(), last, "{ended}");
        }
    }
}
