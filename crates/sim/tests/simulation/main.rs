//! The simulator as a whole: fabrics, engine, workload and statistics together.

mod ahead;
mod alone;
mod clio;
mod connections;
mod contention;
mod cxl;
mod cxl_congestion;
mod cxl_ethernet;
mod determinism;
mod dfabric;
mod dfabric_figures;
mod dfabric_published;
mod edm_artifact;
mod egress;
mod fastpass;
mod headroom;
mod hosts;
mod invariants;
mod ird;
mod loss;
mod lossless;
mod ndp;
mod packets;
mod programs;
mod programs_page;
#[path = "../../../units/tests/support/property.rs"]
mod property;
mod queueing;
mod rankings;
mod receiver_driven;
mod snapshots;
mod steady;
mod support;
mod unloaded;
mod web_search;
