//! Where things are, and who may do what there.

pub use ethermem_clio::Address;
pub(crate) use ethermem_clio::OFFSET_MAX;
pub use ethermem_wire::clio::{Permissions, ProcessId};
