//! Memory messages on links of 66-bit blocks, and what faults of links, switches and nodes do.
//!
//! Every run is decided by its seed, which a failure prints.

mod damage;
mod edges;
mod ethernet;
mod history;
mod kills;
mod links;
#[path = "../support/rng.rs"]
mod rng;
mod switches;
mod traffic;

use proptest::prelude::ProptestConfig;

/// So many cases, or as many as `PROPTEST_CASES` says: a number in the code alone would hide it.
fn cases(usual: u32) -> ProptestConfig {
    let said = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig::default();
    ProptestConfig { cases: if said { config.cases } else { usual }, ..config }
}

impl rng::Rng {
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
