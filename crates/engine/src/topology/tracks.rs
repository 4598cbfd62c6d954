//! The rows of a timeline on which links are drawn, common to all fabrics.

use ethermem_workload::NodeIndex;

use crate::output::{Timeline, TrackId};

/// A row for every link, by its node.
#[derive(Clone, Debug)]
pub struct LinkTracks {
    up: Vec<TrackId>,
    down: Vec<TrackId>,
}

impl LinkTracks {
    /// Creates the rows.
    #[must_use]
    pub fn new(timeline: &mut Timeline, nodes: u16) -> LinkTracks {
        LinkTracks { up: timeline.rows("uplinks", nodes), down: timeline.rows("downlinks", nodes) }
    }

    /// The row of a node's uplink.
    #[must_use]
    pub fn up(&self, node: NodeIndex) -> TrackId {
        self.up[usize::from(node)]
    }

    /// The row of the downlink to a node.
    #[must_use]
    pub fn down(&self, node: NodeIndex) -> TrackId {
        self.down[usize::from(node)]
    }
}
