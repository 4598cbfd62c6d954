//! The links of a network with an arbiter: links of its nodes, links between switches, and its own.

use ethermem_engine::FabricConfig;
use ethermem_engine::metrics::FabricStats;
use ethermem_engine::topology::{Balancing, Layout, PortId, Sharing, Star, Transmitter};
use ethermem_frames::{Spray, ecmp_spine};
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::{FastpassConfig, Medium, Size};

/// All links, with the layout of the network.
pub(super) struct Links {
    medium: Medium,
    layout: Layout,
    star: Star,
    /// Links from leaves to spines and back, in the layout's numbering.
    core: Vec<Transmitter>,
    /// The node whose switch has the arbiter.
    arbiter_beside: NodeIndex,
    to_arbiter: Transmitter,
    from_arbiter: Transmitter,
    slot: Ps,
    arbiter_slot: Ps,
    /// The spray of each node and, behind them, of the arbiter; empty if flows keep their spine.
    spray: Vec<Spray>,
}

impl Links {
    pub(super) fn new(config: &FabricConfig, medium: Medium, seed: u64) -> Links {
        let FastpassConfig { arbiter_link, arbiter_beside, .. } = *config.of::<FastpassConfig>();
        let layout = Layout::new(config, Ps::ZERO);
        let slot = config.link.block_time();
        let arbiter_slot = arbiter_link.unwrap_or(config.link).block_time();
        let sharing = Sharing::of_frames(&config.background);
        let core = |port: PortId| {
            let slot = layout.slot(layout.kind(port));
            Transmitter::new(slot, &config.background, sharing, seed, port.into())
        };
        let balancing = layout.balancing().unwrap_or(Balancing::Spray);
        let sprays = layout.spines() > 0 && balancing != Balancing::Ecmp;
        let spray = |node| Spray::new(layout.spines(), balancing, seed ^ u64::from(node));
        Links {
            medium,
            star: Star::new(config, sharing, seed),
            core: (2 * config.nodes..layout.ports()).map(core).collect(),
            arbiter_beside,
            to_arbiter: Transmitter::without_frames(arbiter_slot),
            from_arbiter: Transmitter::without_frames(arbiter_slot),
            slot,
            arbiter_slot,
            spray: (0..if sprays { config.nodes + 1 } else { 0 }).map(spray).collect(),
            layout,
        }
    }

    /// The spine of a frame without an assigned one; `message` is what ECMP hashes.
    pub(super) fn spine(&mut self, sender: NodeIndex, message: u64) -> u8 {
        match self.spray.get_mut(usize::from(sender)) {
            Some(spray) => spray.next_spine(),
            None => ecmp_spine(message, self.layout.spines()),
        }
    }

    /// The sender number of the arbiter for [`Links::spine`].
    pub(super) fn arbiter(&self) -> NodeIndex {
        self.layout.nodes()
    }

    /// The node whose switch has the arbiter.
    pub(super) fn arbiter_beside(&self) -> NodeIndex {
        self.arbiter_beside
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Hands a frame to a node's uplink; returns its start.
    pub(super) fn start_up(&mut self, node: NodeIndex, ready: Ps, size: Size) -> Ps {
        self.star.up(node).send(ready, size.line, size.data)
    }

    /// The time at which a frame with this start is at the switch of its node.
    pub(super) fn at_switch(&self, start: Ps, size: Size) -> Ps {
        self.medium.after_up(start, size, self.slot)
    }

    /// Hands a frame to the arbiter's uplink; returns the time at which it is at its switch.
    pub(super) fn send_from_arbiter(&mut self, ready: Ps, size: Size) -> Ps {
        self.medium.up(&mut self.from_arbiter, ready, size)
    }

    /// The port between switches at which a frame that came through `port` waits next; `None` if it
    /// is at its egress.
    #[inline]
    pub(super) fn core_port(&self, port: PortId, to: NodeIndex, spine: u8) -> Option<PortId> {
        let next = self.layout.next(port, to, spine);
        next.filter(|&next| next >= 2 * self.layout.nodes())
    }

    /// Sends a frame from switch to switch; returns the time at which it is at the next.
    #[inline]
    pub(super) fn cross(&mut self, port: PortId, now: Ps, size: Size) -> Ps {
        let kind = self.layout.kind(port);
        let link = &mut self.core[usize::from(port - 2 * self.layout.nodes())];
        let start = link.send(now, size.line, size.data);
        start + size.until_forwarded(self.layout.slot(kind)) + self.layout.latency(kind)
    }

    /// Sends a frame from its egress to its node; returns the time at which it is whole there.
    #[inline]
    pub(super) fn down(&mut self, node: NodeIndex, now: Ps, size: Size) -> Ps {
        let start = self.star.down(node).send(now, size.line, size.data);
        self.medium.after_down(start, size, self.slot)
    }

    /// Sends a frame from its egress to the arbiter; returns the time at which it is whole there.
    pub(super) fn down_to_arbiter(&mut self, now: Ps, size: Size) -> Ps {
        let start = self.to_arbiter.send(now, size.line, size.data);
        self.medium.after_down(start, size, self.arbiter_slot)
    }

    /// Time from an epoch's decision until every node has its allocation: a frame per node on the
    /// arbiter's link, the longest way, and a frame of data before it at either switch.
    pub(super) fn told(&self) -> Ps {
        let (control, full) = (self.medium.control(), self.medium.data(self.medium.data_max));
        let line = self.arbiter_slot * (control.line.0 * u64::from(self.layout.nodes()));
        let way = self.layout.one_way(ethermem_frames::Frame::of(0));
        line + way + self.slot * (full.line.0 * 2) + self.medium.request + self.medium.receive
    }

    pub(super) fn stats(&self, ended: Ps) -> FabricStats {
        let all = self.star.up.iter().chain(&self.star.down).chain(&self.core);
        let frames = Transmitter::frame_stats(all, ended);
        FabricStats { frames, ..self.star.stats(ended) }
    }
}
