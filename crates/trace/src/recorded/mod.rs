//! What other tools recorded of a machine: blktrace of its disks, tcpdump of its network.

mod disk;
mod network;
mod octets;
mod packet;
mod scan;

pub use disk::{DiskAccess, DiskTrace, disk_files};
pub use network::NetworkTrace;
pub use packet::{Protocol, Segment};
pub use scan::{check_disk_trace, check_network_trace};
