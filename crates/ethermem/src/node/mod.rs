//! A memory node: what is allocated to whom, its bytes, and what is done to them.
//!
//! It is pure: one call is one access, at one instant, and nobody says when or from where.

mod offload;
mod space;

pub(crate) use offload::NodeView;
pub(crate) use space::Node;
