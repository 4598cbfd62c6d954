//! One switch, a full-duplex link to every node.

mod frames;
mod tracks;
mod transmitter;

pub use tracks::LinkTracks;
pub use transmitter::{Slots, Stream, Transmitter};

use ethermem_edm::Arbitration;
use ethermem_units::Ps;

use crate::config::FabricConfig;
use crate::message::NodeIndex;
use crate::metrics::{FabricStats, Queue, Utilisation};

/// The transmitters of a single-switch network: every node's uplink, every port's downlink.
#[derive(Clone, Debug)]
pub struct Star {
    /// Node to switch, by node.
    pub up: Vec<Transmitter>,
    /// Switch to node, by node.
    pub down: Vec<Transmitter>,
}

impl Star {
    /// Idle links. Background frames, where configured, are drawn from `seed`.
    #[must_use]
    pub fn new(config: &FabricConfig, arbitration: Arbitration, seed: u64) -> Star {
        let link = |stream: u64| {
            Transmitter::new(
                config.link.block_time(),
                &config.background,
                arbitration,
                seed,
                stream,
            )
        };
        let nodes = u64::from(config.nodes);
        Star { up: (0..nodes).map(link).collect(), down: (nodes..2 * nodes).map(link).collect() }
    }

    /// Nodes of the network.
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

    /// What the links carried until `ended`, as every fabric reports it.
    #[must_use]
    pub fn stats(&self, ended: Ps) -> FabricStats {
        let share = |link: &Transmitter| link.share(ended);
        let mean =
            |links: &[Transmitter]| links.iter().map(share).sum::<f64>() / links.len() as f64;
        let max = |links: &[Transmitter]| links.iter().map(share).fold(0.0, f64::max);
        let utilisation = Utilisation {
            uplink_mean: mean(&self.up),
            uplink_max: max(&self.up),
            downlink_mean: mean(&self.down),
            downlink_max: max(&self.down),
        };
        let all = || self.up.iter().chain(&self.down);
        let (slots, data) = all().fold((0, 0), |(slots, data), link| {
            (slots + link.slots().total.0, data + link.slots().data.0)
        });
        let waited: f64 = self.down.iter().map(|link| link.queued_share(ended)).sum();
        FabricStats {
            load_measured: Some(utilisation.uplink_mean.max(utilisation.downlink_mean)),
            control_overhead: (slots > 0).then(|| 1.0 - data as f64 / slots as f64),
            utilisation: Some(utilisation),
            queue: Some(Queue {
                egress_blocks_max: self.down.iter().map(Transmitter::queued_max).max().unwrap_or(0),
                egress_blocks_mean: waited / self.down.len() as f64,
                egress_blocks_bound: None,
            }),
            matching: None,
            frames: Transmitter::frame_stats(all(), ended),
            notices: Vec::new(),
        }
    }
}
