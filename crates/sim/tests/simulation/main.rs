//! The simulator as a whole: fabrics, engine, workload and statistics together.

mod contention;
mod cxl;
mod determinism;
mod egress;
mod fastpass;
mod invariants;
mod ird;
mod packets;
mod queueing;
mod snapshots;
mod support;
mod unloaded;
