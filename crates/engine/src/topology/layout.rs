//! The ports of a network, the times of the links between them, and the routes.

use ethermem_units::{BitsPerSecond, Blocks, Ps};
use ethermem_workload::NodeIndex;

use super::{Frame, LinkTiming, MAC, STANDARD_PCS};
use crate::config::{Balancing, FabricConfig, Switching, Topology};

/// A transmitter of a node's interface or of a switch's port.
pub type PortId = u16;

/// The place of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A node's network interface, towards its switch.
    HostUp,
    /// A switch's port to a node.
    HostDown,
    /// A leaf's port to a spine.
    LeafUp,
    /// A spine's port to a leaf.
    SpineDown,
}

impl PortKind {
    /// Limit of a port's queue, if a switch's port holds `buffer_bytes`. A node's interface is
    /// backed by the node's memory, and has no limit.
    #[must_use]
    pub fn queue_limit_bytes(self, buffer_bytes: u64) -> u64 {
        if self == PortKind::HostUp { u64::MAX } else { buffer_bytes }
    }
}

/// The place of a switch in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// A leaf, or the only switch: it has nodes of its own.
    Leaf,
    /// A spine, which joins leaves.
    Spine,
}

/// The route of packets that arrive through a port. They go to a node of `rack`; otherwise to the
/// port `base` plus terms of their spine and their destination's rack.
///
/// One formula serves every kind of port, because the kind is unpredictable: a branch on it is
/// mispredicted almost once per hop.
#[derive(Clone, Copy, Debug)]
struct Hop {
    rack: u16,
    base: u16,
    spine_factor: u16,
    rack_factor: u16,
}

/// The rack of no node, and the value past the last port.
const NOWHERE: u16 = u16::MAX;

/// The ports of a network, in this order: every node's interface, the port to every node, every
/// leaf's ports to all spines, every spine's ports to all leaves.
#[derive(Clone, Debug)]
pub struct Layout {
    nodes: u16,
    rack_nodes: u16,
    racks: u16,
    /// The rack of each node: a lookup is cheaper than a division per hop.
    rack_of: Vec<u16>,
    /// The hop of each port.
    hops: Vec<Hop>,
    /// Number of spines; 0 for a single switch.
    spines: u16,
    balancing: Option<Balancing>,
    switching: Switching,
    host_slot: Ps,
    core_slot: Ps,
    /// Time from a frame's last block leaving a port to its next decision, by kind of port.
    latencies: [Ps; 4],
    /// Time from the end of a pause frame to the stop of a port, by kind of the stopped port.
    pause_latencies: [Ps; 4],
}

impl Layout {
    /// The network of a configuration whose hosts take `stack` per packet in each direction.
    #[must_use]
    pub fn new(config: &FabricConfig, stack: Ps) -> Layout {
        let timing = LinkTiming::of(config);
        let forward = timing.cycles(MAC) * 2 + config.packet.forwarding;
        let host = timing.cycles(MAC) + stack;
        let hop = timing.hop(STANDARD_PCS);
        let (rack_nodes, spines, core_propagation, balancing, core_link) = match config.topology {
            Topology::SingleSwitch => (config.nodes, 0, config.propagation, None, None),
            Topology::LeafSpine(clos) => {
                (clos.rack_nodes, clos.spines, clos.propagation, clos.balancing, clos.link)
            }
        };
        let core_hop = LinkTiming { propagation: core_propagation, ..timing }.hop(STANDARD_PCS);
        let core = core_hop + forward;
        let pause = [hop, hop, core_hop, core_hop].map(|hop| hop + timing.cycles(MAC) * 2);
        let host_slot = config.link.block_time();
        let full_bisection = Ps(host_slot.0 * u64::from(spines) / u64::from(rack_nodes));
        let mut layout = Layout {
            nodes: config.nodes,
            rack_nodes,
            racks: config.nodes.div_ceil(rack_nodes),
            rack_of: (0..config.nodes).map(|node| node / rack_nodes).collect(),
            hops: Vec::new(),
            spines,
            balancing,
            switching: config.packet.switching,
            host_slot,
            core_slot: core_link.map_or(full_bisection, BitsPerSecond::block_time),
            pause_latencies: pause,
            latencies: [host + hop + forward, hop + host, core, core],
        };
        layout.hops = (0..layout.ports()).map(|port| layout.hop(port)).collect();
        layout
    }

    fn hop(&self, port: PortId) -> Hop {
        let core = 2 * self.nodes;
        let spines_down = core + self.racks * self.spines;
        let (rack, base, spine_factor, rack_factor) = match self.kind(port) {
            PortKind::HostUp => {
                let rack = self.rack_of(port);
                (rack, core + rack * self.spines, 1, 0)
            }
            PortKind::HostDown => (NOWHERE, NOWHERE, 0, 0),
            // The spine follows from the port.
            PortKind::LeafUp => {
                (NOWHERE, spines_down + (port - core) % self.spines * self.racks, 0, 1)
            }
            PortKind::SpineDown => ((port - spines_down) % self.racks, NOWHERE, 0, 0),
        };
        Hop { rack, base, spine_factor, rack_factor }
    }

    /// Number of ports.
    #[must_use]
    pub fn ports(&self) -> u16 {
        2 * self.nodes + 2 * self.racks * self.spines
    }

    /// Number of nodes, and so of ports of each of the first two kinds.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Number of nodes of a rack; all nodes on a single switch.
    #[must_use]
    pub fn rack_nodes(&self) -> u16 {
        self.rack_nodes
    }

    /// Number of spines that a packet between racks can take; 0 for a single switch.
    #[must_use]
    pub fn spines(&self) -> u16 {
        self.spines
    }

    /// The balancing of packets over spines; `None` for the transport's own way.
    #[must_use]
    pub fn balancing(&self) -> Option<Balancing> {
        self.balancing
    }

    /// The place of a port.
    #[must_use]
    pub fn kind(&self, port: PortId) -> PortKind {
        match port {
            _ if port < self.nodes => PortKind::HostUp,
            _ if port < 2 * self.nodes => PortKind::HostDown,
            _ if port < 2 * self.nodes + self.racks * self.spines => PortKind::LeafUp,
            _ => PortKind::SpineDown,
        }
    }

    /// Number of switches. Leaves, or the only switch, come first, then spines.
    #[must_use]
    pub fn switches(&self) -> u16 {
        self.racks + self.spines
    }

    /// The place of a switch.
    #[must_use]
    pub fn tier(&self, switch: u16) -> Tier {
        if switch < self.racks { Tier::Leaf } else { Tier::Spine }
    }

    /// The number of links into a switch, by kind. The links of the last rack are as many as of any
    /// other.
    #[must_use]
    pub fn links_into(&self, tier: Tier) -> Vec<(PortKind, u16)> {
        match tier {
            Tier::Leaf if self.spines == 0 => vec![(PortKind::HostUp, self.nodes)],
            Tier::Leaf => {
                vec![(PortKind::HostUp, self.rack_nodes), (PortKind::SpineDown, self.spines)]
            }
            Tier::Spine => vec![(PortKind::LeafUp, self.racks)],
        }
    }

    /// The switch behind a port, or no switch for a port to a node.
    #[inline]
    #[must_use]
    pub fn switch_behind(&self, port: PortId) -> u16 {
        let core = 2 * self.nodes;
        let spines_down = core + self.racks * self.spines;
        match port {
            _ if port < self.nodes => self.rack_of(port),
            _ if port < spines_down => self.racks + (port - core) % self.spines,
            _ => (port - spines_down) % self.racks,
        }
    }

    /// The two ends of a port between leaf and spine, for display.
    #[must_use]
    pub fn name(&self, port: PortId) -> String {
        let core = port - 2 * self.nodes;
        let leaf_up = self.racks * self.spines;
        if core < leaf_up {
            return format!("leaf {} to spine {}", core / self.spines, core % self.spines);
        }
        let core = core - leaf_up;
        format!("spine {} to leaf {}", core / self.racks, core % self.racks)
    }

    /// Time of a block on the link behind ports of this kind.
    #[must_use]
    pub fn slot(&self, kind: PortKind) -> Ps {
        match kind {
            PortKind::HostUp | PortKind::HostDown => self.host_slot,
            PortKind::LeafUp | PortKind::SpineDown => self.core_slot,
        }
    }

    /// Time from a frame's last block leaving such a port to its next decision.
    #[must_use]
    pub fn latency(&self, kind: PortKind) -> Ps {
        self.latencies[kind as usize]
    }

    /// Time before a frame is whole behind a port at which the next port may begin to send it.
    #[inline]
    #[must_use]
    pub fn lead(&self, through: PortId, next: PortId, frame: Frame) -> Ps {
        match self.switching {
            Switching::StoreAndForward => Ps::ZERO,
            Switching::CutThrough => self.lead_between(self.kind(through), self.kind(next), frame),
        }
    }

    fn lead_between(&self, through: PortKind, next: PortKind, frame: Frame) -> Ps {
        if self.switching == Switching::StoreAndForward {
            return Ps::ZERO;
        }
        let tail = u64::from(frame.tail);
        let behind_head = tail - u64::from(Frame::LEAST.tail);
        (self.slot(through) * behind_head).min(self.slot(next) * tail)
    }

    /// Time from a pause frame's last block leaving the far end to the stop of a port of this kind:
    /// two MACs and the link.
    #[must_use]
    pub fn pause_latency(&self, kind: PortKind) -> Ps {
        self.pause_latencies[kind as usize]
    }

    /// The port of the other direction of this link.
    #[must_use]
    pub fn reverse(&self, port: PortId) -> PortId {
        let core = 2 * self.nodes;
        let spines_down = core + self.racks * self.spines;
        match self.kind(port) {
            PortKind::HostUp => port + self.nodes,
            PortKind::HostDown => port - self.nodes,
            PortKind::LeafUp => {
                let (leaf, spine) = ((port - core) / self.spines, (port - core) % self.spines);
                spines_down + spine * self.racks + leaf
            }
            PortKind::SpineDown => {
                let down = port - spines_down;
                let (spine, leaf) = (down / self.racks, down % self.racks);
                core + leaf * self.spines + spine
            }
        }
    }

    /// The port through which a packet came to a switch's port.
    #[inline]
    #[must_use]
    pub fn previous(
        &self,
        port: PortId,
        source: NodeIndex,
        destination: NodeIndex,
        spine: u8,
    ) -> PortId {
        let mut before = source;
        loop {
            match self.next(before, destination, spine) {
                Some(next) if next != port => before = next,
                _ => return before,
            }
        }
    }

    /// The port at which a packet for `destination` that came through `port` waits next; `None` if
    /// it is there.
    #[inline]
    #[must_use]
    pub fn next(&self, port: PortId, destination: NodeIndex, spine: u8) -> Option<PortId> {
        let Hop { rack, base, spine_factor, rack_factor } = self.hops[usize::from(port)];
        let to = self.rack_of(destination);
        let on = base.wrapping_add(spine_factor * u16::from(spine)).wrapping_add(rack_factor * to);
        let next = if rack == to { self.nodes + destination } else { on };
        (next != NOWHERE).then_some(next)
    }

    /// True if two nodes are on one leaf.
    #[inline]
    #[must_use]
    pub fn same_rack(&self, one: NodeIndex, other: NodeIndex) -> bool {
        self.rack_of(one) == self.rack_of(other)
    }

    #[inline]
    fn rack_of(&self, node: NodeIndex) -> u16 {
        self.rack_of[usize::from(node)]
    }

    /// Two nodes at the distance of the given ones; all pairs of that distance have one twin.
    #[must_use]
    pub fn twin(&self, one: NodeIndex, other: NodeIndex) -> (NodeIndex, NodeIndex) {
        if self.same_rack(one, other) { (0, 1) } else { (0, self.rack_nodes) }
    }

    /// The longest time of a frame from one node to another, on an idle network.
    #[must_use]
    pub fn one_way(&self, frame: Frame) -> Ps {
        let farthest: &[PortKind] = if self.racks > 1 {
            &[PortKind::HostUp, PortKind::LeafUp, PortKind::SpineDown, PortKind::HostDown]
        } else {
            &[PortKind::HostUp, PortKind::HostDown]
        };
        let hop =
            |&kind: &PortKind| self.slot(kind) * Blocks(frame.tail.into()).0 + self.latency(kind);
        let stored: Ps = farthest.iter().map(hop).sum();
        let lead = |pair: &[PortKind]| self.lead_between(pair[0], pair[1], frame);
        stored - farthest.windows(2).map(lead).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(keys: &str) -> Layout {
        let text = format!("[fabric]\n{keys}\n");
        let config = FabricConfig::parse(&text, "dctcp", std::iter::empty());
        Layout::new(&config.expect("a configuration"), Ps::ZERO)
    }

    fn path(layout: &Layout, source: u16, destination: u16, spine: u8) -> Vec<PortId> {
        let mut ports = vec![source];
        while let Some(next) = layout.next(ports[ports.len() - 1], destination, spine) {
            ports.push(next);
        }
        ports
    }

    #[test]
    fn one_switch_has_a_port_for_every_node() {
        let layout = layout("nodes = 5");
        assert_eq!(layout.ports(), 10);
        assert_eq!(path(&layout, 1, 4, 0), [1, 5 + 4]);
        assert_eq!(layout.twin(3, 2), (0, 1));
    }

    #[test]
    fn racks_are_joined_by_every_spine() {
        let layout = layout("nodes = 144\ntopology = \"leaf-spine\"");
        // 144 nodes, and 9 leaves with 4 spines, each pair with two ports.
        assert_eq!(layout.ports(), 2 * 144 + 2 * 36);
        assert_eq!(path(&layout, 17, 30, 3), [17, 144 + 30]);
        // The route is from rack 1 by spine 3 to rack 8.
        assert_eq!(path(&layout, 17, 140, 3), [17, 288 + 4 + 3, 324 + 3 * 9 + 8, 144 + 140]);
        let long = path(&layout, 17, 140, 3);
        for hop in long.windows(2) {
            assert_eq!(layout.previous(hop[1], 17, 140, 3), hop[0]);
        }
        // Packets from node 17 to 140 leave by the links on which packets come back.
        let back: Vec<_> = path(&layout, 140, 17, 3).into_iter().rev().collect();
        let reversed: Vec<_> = long.iter().map(|&port| layout.reverse(port)).collect();
        assert_eq!(reversed, back);
        let core = path(&layout, 17, 140, 3)[1..3].to_vec();
        let names = core.into_iter().map(|port| layout.name(port)).collect::<Vec<_>>();
        assert_eq!(names, ["leaf 1 to spine 3", "spine 3 to leaf 8"]);
        assert_eq!(layout.twin(17, 30), (0, 1));
        assert_eq!(layout.twin(17, 32), (0, 16));
        for port in 0..layout.ports() {
            let kind = match port {
                0..144 => PortKind::HostUp,
                144..288 => PortKind::HostDown,
                288..324 => PortKind::LeafUp,
                _ => PortKind::SpineDown,
            };
            assert_eq!(layout.kind(port), kind, "{port}");
        }
        // A packet that comes through a port is in the switch that has the next port.
        assert_eq!(layout.switches(), 9 + 4);
        let tiers = [1, 9 + 3, 8].map(|switch| layout.tier(switch));
        assert_eq!(tiers, [Tier::Leaf, Tier::Spine, Tier::Leaf]);
        let behind = long[..3].iter().map(|&port| layout.switch_behind(port)).collect::<Vec<_>>();
        assert_eq!(behind, [1, 9 + 3, 8]);
        assert_eq!(layout.links_into(Tier::Spine), [(PortKind::LeafUp, 9)]);
        // 16 nodes at 100 Gb/s over 4 spines: 400 Gb/s.
        assert_eq!(layout.slot(PortKind::LeafUp), Ps(160));
    }

    #[test]
    fn the_longest_way_counts_every_hop() {
        let frame = Frame::of(1_500);
        let star = layout("nodes = 4").one_way(frame);
        // The frame takes Table 1's one-way budget for raw Ethernet, and is stored twice.
        assert_eq!(star, Ps(557_440 + 2 * 190 * 640));
        let clos = layout("nodes = 144\ntopology = \"leaf-spine\"").one_way(frame);
        // There are two more switches, each with its link, at four times the rate.
        let hop = Ps((2 * 3 + 2 * 3) * 2_560) + Ps::from_ns(2 * 19 + 10 + 400);
        assert_eq!(clos, star + (hop + Ps(190 * 160)) * 2);
        let keys = "nodes = 144\ntopology = \"leaf-spine\"\n[fabric.packet]\n\
                    switching = \"cut-through\"";
        // Cut through saves all of the frame towards the faster link, then all but the least
        // frame's 9 blocks.
        let cut = layout(keys).one_way(frame);
        assert_eq!(clos - cut, Ps(190 * 160 + 2 * (190 - 8) * 160));
    }
}
