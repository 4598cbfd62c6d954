//! Flows that wait for a turn, the most urgent first.

use std::collections::BTreeSet;

use super::FlowId;

/// What a flow has to go, and its age, which decides between equals.
pub type Rank = (u32, u64);

/// Shortest remaining first.
pub type Ranked = BTreeSet<(Rank, FlowId)>;
