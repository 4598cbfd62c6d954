//! The packets of a flow that have arrived.

/// A set of positions, and the first one that is missing.
#[derive(Clone, Debug, Default)]
pub struct Received {
    words: Vec<u64>,
    first_missing: u32,
    count: u32,
}

impl Received {
    /// Clears the set for a flow of `packets`, and reuses its memory.
    pub fn reset(&mut self, packets: u32) {
        self.words.clear();
        self.words.resize(packets.div_ceil(u64::BITS) as usize, 0);
        self.first_missing = 0;
        self.count = 0;
    }

    /// Adds a packet. Returns false if it had arrived before.
    #[inline]
    pub fn insert(&mut self, position: u32) -> bool {
        let word = &mut self.words[(position / u64::BITS) as usize];
        let bit = 1 << (position % u64::BITS);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.count += 1;
        if position == self.first_missing {
            self.first_missing = self.next_missing(position + 1);
        }
        true
    }

    /// The first position from `from` on that has not arrived.
    #[inline]
    #[must_use]
    pub fn next_missing(&self, from: u32) -> u32 {
        let mut index = (from / u64::BITS) as usize;
        let Some(&word) = self.words.get(index) else { return from };
        let mut missing = !word & (u64::MAX << (from % u64::BITS));
        while missing == 0 {
            index += 1;
            let Some(&word) = self.words.get(index) else { break };
            missing = !word;
        }
        index as u32 * u64::BITS + if missing == 0 { 0 } else { missing.trailing_zeros() }
    }

    /// True if a packet has arrived.
    #[must_use]
    pub fn contains(&self, position: u32) -> bool {
        self.words[(position / u64::BITS) as usize] >> (position % u64::BITS) & 1 == 1
    }

    /// The first position that has not arrived; past the last one when all have.
    #[inline]
    #[must_use]
    pub fn first_missing(&self) -> u32 {
        self.first_missing
    }

    /// Number of packets that have arrived.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set(positions in prop::collection::vec(0..200u32, 0..300)) {
            let mut received = Received::default();
            received.reset(7);
            received.insert(3);
            received.reset(200);
            let mut model = std::collections::BTreeSet::new();
            for position in positions {
                prop_assert_eq!(received.insert(position), model.insert(position));
                let missing = |from| (from..).find(|at| !model.contains(at)).expect("some");
                prop_assert_eq!(received.first_missing().min(200), missing(0).min(200));
                let next = received.next_missing(position).min(200);
                prop_assert_eq!(next, missing(position).min(200));
                prop_assert_eq!(received.count() as usize, model.len());
                prop_assert!(received.contains(position));
            }
        }
    }
}
