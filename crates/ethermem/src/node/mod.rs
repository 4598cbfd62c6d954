//! A memory node: its allocations, its bytes, and the accesses to them.
//!
//! The module is pure: one call is one access at one instant, and no call has a time or a sender.

mod offload;
mod space;

pub(crate) use offload::NodeView;
pub(crate) use space::Node;
