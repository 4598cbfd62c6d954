//! Memory messages on links of 66-bit blocks, under faults of links, switches and nodes.
//!
//! The seed decides a whole run; a failure prints it.

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
