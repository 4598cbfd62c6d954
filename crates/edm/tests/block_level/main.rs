//! Memory messages on links of 66-bit blocks, and what faults of links, switches and nodes do.
//!
//! Every run is decided by its seed, which a failure prints.

mod damage;
mod edges;
mod ethernet;
mod history;
mod kills;
mod links;
mod rng;
mod switches;
mod traffic;
