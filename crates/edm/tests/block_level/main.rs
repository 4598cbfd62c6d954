//! Memory messages on links of 66-bit blocks, and what faults of links, switches and nodes do.
//!
//! Every run is decided by its seed, which a failure prints.

mod damage;
mod edges;
mod ethernet;
mod history;
mod kills;
mod links;
mod opcodes;
#[path = "../support/property.rs"]
mod property;
#[path = "../support/rng.rs"]
mod rng;
mod start;
mod switches;
mod traffic;

use property::cases;

impl rng::Rng {
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
