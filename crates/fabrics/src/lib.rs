//! The fabrics, one file or folder each. `registry` lists them.

pub mod budget;
pub mod clio;
pub mod cxl;
pub mod cxl_ethernet;
pub mod dcpim;
pub mod dctcp;
pub mod dfabric;
pub mod edm;
pub mod edm_artifact;
pub mod fastpass;
mod framing;
#[cfg(test)]
mod given;
pub mod homa;
pub mod ideal;
pub mod ird;
pub mod ndp;
pub mod output_queued;
pub mod pfabric;
pub mod pfc;
pub mod phost;
pub mod raw_ethernet;
pub mod roce;
pub mod tcp;
pub mod tor_rack;

pub use framing::Framing;
