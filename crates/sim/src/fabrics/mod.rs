//! The fabrics, one file or folder each.

pub mod edm;
pub mod ideal;
pub mod output_queued;
pub mod raw_ethernet;
