//! The spine of a node's next packet, where packets of a flow take several spines.

use ethermem_engine::topology::Balancing;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The spine of the flow with this number; all spines are equally likely. ECMP chooses it by a hash
/// of addresses and ports.
#[must_use]
pub fn ecmp_spine(flow: u64, spines: u16) -> u8 {
    if spines < 2 {
        return 0;
    }
    (SplitMix64::seed_from_u64(flow).next_u64() % u64::from(spines)) as u8
}

/// The spines of one node, in the order in which its packets take them.
#[derive(Clone, Debug)]
pub struct Spray {
    order: Vec<u8>,
    next: usize,
    /// Draws the order again after every round; `None` if the order is fixed.
    random: Option<SplitMix64>,
}

impl Spray {
    /// The spines in turn, or in an order drawn from `seed` for each round.
    #[must_use]
    pub fn new(spines: u16, balancing: Balancing, seed: u64) -> Spray {
        let random = (balancing == Balancing::Permute).then(|| SplitMix64::seed_from_u64(seed));
        let order = (0..spines).map(|spine| spine as u8).collect();
        let mut spray = Spray { order, next: 0, random };
        spray.permute();
        spray
    }

    /// The spine of the next packet.
    #[inline]
    pub fn next_spine(&mut self) -> u8 {
        self.next += 1;
        if self.next >= self.order.len() {
            self.next = 0;
            self.permute();
        }
        self.order[self.next]
    }

    /// Permutes the spines (Fisher and Yates).
    fn permute(&mut self) {
        let Some(random) = &mut self.random else { return };
        for last in (1..self.order.len()).rev() {
            let other = random.next_u64() % (last as u64 + 1);
            self.order.swap(last, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_takes_every_spine_and_permuted_rounds_differ() {
        let rounds = |balancing| -> Vec<Vec<u8>> {
            let mut spray = Spray::new(4, balancing, 7);
            // The first place of the first round is skipped.
            for _ in 0..3 {
                spray.next_spine();
            }
            (0..200).map(|_| (0..4).map(|_| spray.next_spine()).collect()).collect()
        };
        let (in_turn, permuted) = (rounds(Balancing::Spray), rounds(Balancing::Permute));
        assert!(in_turn.iter().all(|round| *round == [0, 1, 2, 3]));
        let mut different = std::collections::BTreeSet::new();
        for mut round in permuted {
            different.insert(round.clone());
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3]);
        }
        assert_eq!(different.len(), 24, "of 200 rounds every order is one");
    }

    #[test]
    fn flows_are_spread_over_all_spines_and_not_in_turn() {
        let mut flows = [0_i64; 4];
        let mut repeated = 0;
        for flow in 0..40_000 {
            flows[usize::from(ecmp_spine(flow, 4))] += 1;
            repeated += i64::from(ecmp_spine(flow, 4) == ecmp_spine(flow + 1, 4));
        }
        // Binomial: 10,000 of each are expected, with a standard deviation of 87.
        for count in flows.into_iter().chain([repeated]) {
            assert!((count - 10_000).abs() < 4 * 87, "{flows:?} {repeated}");
        }
    }
}
