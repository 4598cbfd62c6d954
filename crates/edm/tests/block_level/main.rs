//! Memory messages on links of 66-bit blocks, and what faults of links, switches and nodes do.
//!
//! Every run is decided by its seed, which a failure prints.

mod damage;
#[path = "../support/draws.rs"]
mod draws;
mod edges;
mod ethernet;
mod history;
mod kills;
mod links;
mod messages;
mod opcodes;
#[path = "../../../units/tests/support/property.rs"]
mod property;
#[path = "../support/rng.rs"]
mod rng;
mod start;
mod switches;
mod traffic;

use property::cases;
