//! Switches, and full-duplex links between them and the nodes.

mod backlog;
mod frame;
mod frames;
mod layout;
mod sharing;
mod timing;
mod tracks;
mod transmitter;

pub use backlog::Backlog;
pub use frame::{FRAME_OVERHEAD_BYTES, Frame, GAP_BYTES, PREAMBLE_BYTES};
pub use layout::{Layout, PortId, PortKind, Tier};
pub use sharing::Sharing;
pub use timing::{LinkTiming, MAC, STANDARD_PCS};
pub use tracks::LinkTracks;
pub use transmitter::{Slots, Stream, Transmitter};

use ethermem_units::{Blocks, Ps};
use ethermem_workload::NodeIndex;

use crate::config::FabricConfig;
pub use crate::config::{Balancing, LeafSpine, Switching, Topology};
use crate::metrics::{FabricStats, Queue, Utilisation};

/// The transmitters of a single-switch network: every node's uplink, and every port's downlink.
#[derive(Clone, Debug)]
pub struct Star {
    /// The links from the nodes to the switch, by node.
    pub up: Vec<Transmitter>,
    /// The links from the switch to the nodes, by node.
    pub down: Vec<Transmitter>,
}

impl Star {
    /// A network of idle links. Background frames, where configured, are drawn from `seed`.
    #[must_use]
    pub fn new(config: &FabricConfig, sharing: Sharing, seed: u64) -> Star {
        let link = |stream: u64| {
            Transmitter::new(config.link.block_time(), &config.background, sharing, seed, stream)
        };
        let nodes = u64::from(config.nodes);
        Star { up: (0..nodes).map(link).collect(), down: (nodes..2 * nodes).map(link).collect() }
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.up.len() as u16
    }

    /// The uplink of a node.
    #[inline]
    pub fn up(&mut self, node: NodeIndex) -> &mut Transmitter {
        &mut self.up[usize::from(node)]
    }

    /// The downlink to a node.
    #[inline]
    pub fn down(&mut self, node: NodeIndex) -> &mut Transmitter {
        &mut self.down[usize::from(node)]
    }

    /// The links' traffic until `ended`, as every fabric reports it.
    #[must_use]
    pub fn stats(&self, ended: Ps) -> FabricStats {
        fn uses(links: &[Transmitter]) -> Vec<LinkUse<'_>> {
            let whole = |link| LinkUse { link, ordered: None, taken: link.slots().total };
            links.iter().map(whole).collect()
        }
        link_stats(&uses(&self.up), &uses(&self.down), ended)
    }
}

/// A link, and the backlog in front of it.
#[derive(Clone, Copy, Debug)]
pub struct LinkUse<'l> {
    /// The transmitter, which records what it was given.
    pub link: &'l Transmitter,
    /// The backlog in front of it, if the transmitter does not order it itself.
    pub ordered: Option<&'l Backlog>,
    /// Slots taken until the end of the run, where items may come after it.
    pub taken: Blocks,
}

impl LinkUse<'_> {
    fn waiting_max(&self) -> u64 {
        let ordered = self.ordered.map_or(0, |backlog| backlog.max().0);
        self.link.queued_max().max(ordered)
    }

    fn waiting_mean(&self, ended: Ps) -> f64 {
        self.link.queued_share(ended) + self.ordered.map_or(0.0, |backlog| backlog.mean(ended))
    }
}

/// The traffic of the nodes' links until `ended`, as every fabric reports it.
#[must_use]
pub fn link_stats(up: &[LinkUse<'_>], down: &[LinkUse<'_>], ended: Ps) -> FabricStats {
    let share = |of: &LinkUse<'_>| of.link.share(of.taken, ended);
    let mean = |links: &[LinkUse<'_>]| links.iter().map(share).sum::<f64>() / links.len() as f64;
    let max = |links: &[LinkUse<'_>]| links.iter().map(share).fold(0.0, f64::max);
    let utilisation = Utilisation {
        uplink_mean: mean(up),
        uplink_max: max(up),
        downlink_mean: mean(down),
        downlink_max: max(down),
    };
    let (slots, data) = up.iter().chain(down).fold((0, 0), |(slots, data), of| {
        (slots + of.link.slots().total.0, data + of.link.slots().data.0)
    });
    let waited: f64 = down.iter().map(|of| of.waiting_mean(ended)).sum();
    FabricStats {
        load_measured: Some(utilisation.uplink_mean.max(utilisation.downlink_mean)),
        control_overhead: (slots > 0).then(|| 1.0 - data as f64 / slots as f64),
        utilisation: Some(utilisation),
        queue: Some(Queue {
            egress_blocks_max: down.iter().map(LinkUse::waiting_max).max().unwrap_or(0),
            egress_blocks_mean: waited / down.len() as f64,
            egress_blocks_bound: None,
        }),
        frames: Transmitter::frame_stats(up.iter().chain(down).map(|of| of.link), ended),
        ..FabricStats::default()
    }
}
