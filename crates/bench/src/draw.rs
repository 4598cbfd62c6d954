//! Random draws: one seed, and a stream for each client.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of draws. Equal seed and client give equal draws on every machine.
#[derive(Clone, Debug)]
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// The draws of a client.
    #[must_use]
    pub fn new(seed: u64, client: u64) -> Draws {
        // SplitMix64 spreads the seed, so neighbouring clients get unrelated streams.
        Draws(Xoshiro256PlusPlus::seed_from_u64(seed ^ super::ycsb::fnv_hash(client)))
    }

    /// A draw from 0 inclusive to 1 exclusive.
    pub fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 / STEPS
    }

    /// A draw from 0 inclusive to `end` exclusive.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "a draw from nothing");
        // The bias is at most `end` in 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }
}
