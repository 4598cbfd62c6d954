//! One queue of descriptors in memory that two share: one producer, one consumer, no lock (4.3).
//!
//! An entry has four words. Bit 63 of the first one is the phase, which changes with each lap, so
//! that one load of the tail entry shows if it is there. The producer stores the first word last.
//! The consumer's position is apart from the entries: the producer loads it only when the queue
//! looks full. `model/tests/ring.rs` runs this file in the orders of two threads.

use crate::sync::{AtomicU64, Ordering};

/// Words of an entry.
pub const ENTRY_WORDS: usize = 4;
/// The bit of an entry's first word that says in which lap it was stored.
pub const PHASE_BIT: u64 = 1 << 63;

/// The memory of a queue: entries, a power of two of them, and the consumer's position.
#[derive(Clone, Copy, Debug)]
pub struct RingMemory<'a> {
    entries: &'a [AtomicU64],
    consumed: &'a AtomicU64,
}

/// The consumer's position cannot be: it is behind what was seen, or ahead of the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFault {
    /// The position that memory has.
    pub says: u64,
    /// The position that was seen last.
    pub was: u64,
    /// The producer's position.
    pub produced: u64,
}

/// Why a descriptor was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The queue is full.
    Full,
    /// The other end is broken, or lies: the queue must be closed.
    Fault(RingFault),
}

impl<'a> RingMemory<'a> {
    /// A queue in these words: all but the last are entries, the last is the position.
    /// `None` if they are no power of two of entries, and one word.
    #[must_use]
    pub fn new(words: &'a [AtomicU64]) -> Option<RingMemory<'a>> {
        let (consumed, entries) = words.split_last()?;
        let count = entries.len() / ENTRY_WORDS;
        let is_whole = count * ENTRY_WORDS == entries.len() && count.is_power_of_two();
        is_whole.then_some(RingMemory { entries, consumed })
    }

    /// Number of entries.
    #[must_use]
    pub fn depth(&self) -> u64 {
        (self.entries.len() / ENTRY_WORDS) as u64
    }

    fn entry(&self, position: u64) -> &'a [AtomicU64] {
        let at = (position & (self.depth() - 1)) as usize * ENTRY_WORDS;
        &self.entries[at..at + ENTRY_WORDS]
    }

    /// The phase of a lap: set in the first, so that zeros are no entry.
    fn phase(&self, position: u64) -> u64 {
        if position & self.depth() == 0 { PHASE_BIT } else { 0 }
    }
}

/// The end that stores descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Producer {
    /// Entries stored since the start.
    head: u64,
    /// The consumer's position when it was loaded last.
    seen: u64,
}

impl Producer {
    /// Entries that were stored.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Stores a descriptor's words at the head. The phase bit of the first word is the queue's.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push(
        &mut self,
        memory: &RingMemory<'_>,
        words: [u64; ENTRY_WORDS],
    ) -> Result<(), PushError> {
        if self.head - self.seen == memory.depth() {
            self.look(memory).map_err(PushError::Fault)?;
            if self.head - self.seen == memory.depth() {
                return Err(PushError::Full);
            }
        }
        let entry = memory.entry(self.head);
        for (word, value) in entry.iter().zip(words).skip(1) {
            word.store(value, Ordering::Relaxed);
        }
        let first = words[0] & !PHASE_BIT | memory.phase(self.head);
        entry[0].store(first, Ordering::Release);
        self.head += 1;
        Ok(())
    }

    /// Loads the consumer's position. Returns the number of entries that were not consumed.
    ///
    /// # Errors
    /// [`RingFault`].
    pub fn look(&mut self, memory: &RingMemory<'_>) -> Result<u64, RingFault> {
        let says = memory.consumed.load(Ordering::Acquire);
        if says < self.seen || says > self.head {
            return Err(RingFault { says, was: self.seen, produced: self.head });
        }
        self.seen = says;
        Ok(self.head - says)
    }
}

/// The end that takes descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consumer {
    /// Entries taken since the start.
    tail: u64,
}

impl Consumer {
    /// Entries that were taken.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Takes the entry at the tail; `None` if none is there. The words are copied once: what the
    /// producer changes later has no effect.
    pub fn pop(&mut self, memory: &RingMemory<'_>) -> Option<[u64; ENTRY_WORDS]> {
        let entry = memory.entry(self.tail);
        let first = entry[0].load(Ordering::Acquire);
        if first & PHASE_BIT != memory.phase(self.tail) {
            return None;
        }
        let mut words = [first & !PHASE_BIT; ENTRY_WORDS];
        for (value, word) in words.iter_mut().zip(entry).skip(1) {
            *value = word.load(Ordering::Relaxed);
        }
        self.tail += 1;
        memory.consumed.store(self.tail, Ordering::Release);
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a queue of this depth.
    fn words(depth: usize) -> Vec<AtomicU64> {
        (0..depth * ENTRY_WORDS + 1).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn entries_come_in_order_over_many_laps_and_a_full_queue_refuses() {
        crate::sync::check(|| {
            let words = words(2);
            let memory = RingMemory::new(&words).unwrap();
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            assert_eq!(consumer.pop(&memory), None);
            for lap in 0..5_u64 {
                for at in 0..2 {
                    let entry = [2 * lap + at, 7, 8, u64::MAX];
                    assert_eq!(producer.push(&memory, entry), Ok(()));
                }
                assert_eq!(producer.push(&memory, [9; 4]), Err(PushError::Full));
                assert_eq!(producer.look(&memory), Ok(2));
                for at in 0..2 {
                    assert_eq!(consumer.pop(&memory), Some([2 * lap + at, 7, 8, u64::MAX]));
                }
                assert_eq!(consumer.pop(&memory), None);
            }
            assert_eq!((producer.head(), consumer.tail()), (10, 10));
        });
    }

    #[test]
    fn the_phase_bit_is_the_queues_whatever_the_producer_stores() {
        crate::sync::check(|| {
            let words = words(1);
            let memory = RingMemory::new(&words).unwrap();
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            for word in [u64::MAX, 0, PHASE_BIT, 5] {
                producer.push(&memory, [word; 4]).unwrap();
                let taken = consumer.pop(&memory).unwrap();
                assert_eq!(taken, [word & !PHASE_BIT, word, word, word]);
                assert_eq!(consumer.pop(&memory), None);
            }
        });
    }

    #[test]
    fn a_position_that_cannot_be_is_a_fault() {
        crate::sync::check(|| {
            let words = words(2);
            let memory = RingMemory::new(&words).unwrap();
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            (0..2).for_each(|_| producer.push(&memory, [1; 4]).unwrap());
            consumer.pop(&memory).unwrap();
            assert_eq!(producer.look(&memory), Ok(1));
            for says in [3, 0, u64::MAX] {
                memory.consumed.store(says, Ordering::Release);
                let fault = RingFault { says, was: 1, produced: 2 };
                assert_eq!(producer.look(&memory), Err(fault));
            }
            producer.push(&memory, [1; 4]).unwrap();
            let full = producer.push(&memory, [1; 4]);
            assert!(matches!(full, Err(PushError::Fault(_))), "{full:?}");
        });
    }

    #[test]
    fn a_queue_has_a_power_of_two_of_entries() {
        crate::sync::check(|| {
            for (count, fits) in
                [(0, false), (1, false), (5, true), (9, true), (13, false), (17, true)]
            {
                let words: Vec<_> = (0..count).map(|_| AtomicU64::new(0)).collect();
                assert_eq!(RingMemory::new(&words).is_some(), fits, "{count} words");
            }
        });
    }
}
