//! What a fabric of packets brings: its transport, as a pure state machine for both ends.

use ethermem_engine::config::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::engine::Sim;
use ethermem_engine::topology::{Balancing, Layout, PortKind, Tier};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

use super::network::{Event, Network};
use super::{Discipline, Flow, FlowId, Frame, Packet, PauseLimits};

/// A transport. One value serves all hosts; what belongs to a flow is in its
/// [`Transport::Flow`], what belongs to a host the transport keeps by node.
///
/// It is given the time and reads no clock, and acts through [`Net`] alone. Of every flow it says
/// once that it was delivered, at its destination, and once that it has settled, at its source.
pub trait Transport: Sized + Send + 'static {
    /// State of a flow, of both its ends. [`Transport::start`] resets it.
    type Flow: Default + Send;
    /// What its packets carry beside what the network looks at.
    type Header: Copy + Send;
    /// What every port does with its packets.
    type Queue: Discipline<Self::Header>;
    /// See [`Fabric::Parameters`](ethermem_engine::engine::Fabric::Parameters).
    type Parameters: Parameters;

    /// The transport on a network, idle.
    fn new(config: &FabricConfig, layout: &Layout) -> Self;

    /// Takes the seed of its random draws, if it has any.
    fn seed(&mut self, _seed: u64) {}

    /// Whether it is told what leaves its sources, to send at a pace of its own.
    const PACES: bool = false;

    /// Bytes of its headers in every packet, behind the MAC's and before the memory header.
    fn header_bytes(config: &FabricConfig) -> Bytes;

    /// What a host's stack takes for a packet, either way, where the scenario does not say.
    fn stack() -> Ps {
        Ps::ZERO
    }

    /// How its packets are spread over spines, where the scenario does not say.
    fn balancing() -> Balancing {
        Balancing::Ecmp
    }

    /// The queue of a port; `seed`, another one at each port, is for its random draws.
    fn queue(&self, kind: PortKind, seed: u64) -> Self::Queue;

    /// What the switch behind ports of this kind allows; `None` where nothing pauses them.
    fn pause_limits(&self, _kind: PortKind) -> Option<PauseLimits> {
        None
    }

    /// What the links into a switch share, beside the headroom of each.
    fn shared_bytes(&self, _tier: Tier) -> u64 {
        0
    }

    /// A flow is opened: its source may send.
    fn start(&mut self, net: &mut Net<'_, Self>, flow: FlowId);

    /// A packet is whole at its destination, which is either end of its flow.
    fn on_packet(&mut self, net: &mut Net<'_, Self>, packet: &Packet<Self::Header>);

    /// The deadline of a flow that has not settled has come.
    fn on_timer(&mut self, _net: &mut Net<'_, Self>, _flow: FlowId) {}

    /// A node is woken, as it asked for.
    fn on_wake(&mut self, _net: &mut Net<'_, Self>, _end: End, _node: NodeIndex) {}

    /// Where it paces: a packet of a flow's source leaves its interface, now or, from a queue in
    /// order, later.
    fn on_left(&mut self, _net: &mut Net<'_, Self>, _left: Left) {}

    /// The response to a request is arriving: the request has, so its source forgets it.
    fn on_answered(&mut self, net: &mut Net<'_, Self>, request: FlowId) {
        net.settle(request);
    }

    /// Packets without data that it sends beside the data and a read's request, for `packets` of
    /// data and against their direction: what counts as load beside the data.
    fn feedback_packets(_config: &FabricConfig, _kind: Kind, _packets: u64) -> u64 {
        0
    }

    /// Data bytes after which a message alone goes at a steady pace: slow start has ended.
    fn steady_after(&self) -> Bytes {
        Bytes(0)
    }
}

/// Which end of a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its source, data or a request.
    Source,
    /// Its destination, an acknowledgement, token or grant.
    Destination,
}

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<H> {
    /// Who sends it.
    pub from: End,
    /// Message data in it.
    pub data_bytes: u64,
    /// See [`Packet::rank`].
    pub rank: u32,
    /// The transport's own fields.
    pub header: H,
}

/// A packet that leaves an interface.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Whose source sent it.
    pub flow: FlowId,
    /// When its first block leaves.
    pub start: Ps,
    /// How long it takes the link.
    pub line: Ps,
    /// Bytes that it takes of it.
    pub bytes: u64,
}

/// The network and the time, as a transport sees them.
pub struct Net<'n, T: Transport> {
    pub(super) sim: &'n mut Sim<Event>,
    pub(super) network: &'n mut Network<T>,
}

impl<T: Transport> Net<'_, T> {
    /// The time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Ps {
        self.sim.now()
    }

    /// A flow.
    #[inline]
    #[must_use]
    pub fn flow(&self, flow: FlowId) -> &Flow<T::Flow> {
        &self.network.flows[flow]
    }

    /// A flow, to change its state.
    #[inline]
    pub fn flow_mut(&mut self, flow: FlowId) -> &mut Flow<T::Flow> {
        &mut self.network.flows[flow]
    }

    /// Data bytes of the packet at this position of a flow.
    #[inline]
    #[must_use]
    pub fn data_bytes(&self, flow: FlowId, position: u32) -> u64 {
        self.part_bytes(self.network.flows[flow].bytes, position)
    }

    /// The same of a flow of `bytes`.
    #[inline]
    #[must_use]
    pub fn part_bytes(&self, bytes: u64, position: u32) -> u64 {
        let most = self.network.sizes.payload_max;
        (bytes - u64::from(position) * most).min(most)
    }

    /// Packets that carry a flow of `bytes`.
    #[must_use]
    pub fn packets(&self, bytes: u64) -> u32 {
        self.network.sizes.packets(bytes) as u32
    }

    /// Hands a packet to the interface of one end of a flow.
    #[inline]
    pub fn send(&mut self, flow: FlowId, outgoing: Outgoing<T::Header>) {
        self.network.send(self.sim, flow, outgoing);
    }

    /// Wakes the transport for a flow at `deadline`, and no more at the one before.
    #[inline]
    pub fn arm(&mut self, flow: FlowId, deadline: Ps) {
        self.network.arm(self.sim, flow, deadline);
    }

    /// Wakes the transport no more for a flow.
    #[inline]
    pub fn disarm(&mut self, flow: FlowId) {
        self.network.flows[flow].deadline = Ps::MAX;
    }

    /// Wakes the transport for one end of what a node does at `at`, whatever else it is woken for.
    #[inline]
    pub fn wake(&mut self, end: End, node: NodeIndex, at: Ps) {
        self.sim.at(at, Event::Wake(end, node));
    }

    /// The destination has all of the flow: a message ends, a request is answered.
    pub fn deliver(&mut self, flow: FlowId) {
        self.network.deliver(self.sim, flow);
    }

    /// The source sends no more of the flow and waits for nothing.
    pub fn settle(&mut self, flow: FlowId) {
        self.network.flows.settle(flow);
    }

    /// Bytes that wait in front of a node's uplink, or are being sent.
    #[must_use]
    pub fn uplink_bytes(&self, node: NodeIndex) -> u64 {
        self.network.queued_bytes(node, self.sim.now())
    }

    /// When all that a node's interface was handed has left.
    #[inline]
    #[must_use]
    pub fn interface_free(&self, node: NodeIndex) -> Ps {
        self.network.interface_free(node, self.sim.now())
    }

    /// How long a packet with this much data takes a node's link.
    #[inline]
    #[must_use]
    pub fn line(&self, data_bytes: u64) -> Ps {
        self.network.line(data_bytes)
    }

    /// Counts packets that are sent once more, and deadlines that ran out.
    pub fn count_again(&mut self, packets: u64, timeouts: u64) {
        self.network.counts.retransmitted += packets;
        self.network.counts.timeouts += timeouts;
    }
}

/// Sizes of a transport's packets.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Most data bytes of a packet.
    pub payload_max: u64,
    /// Headers of a packet behind the MAC's, with the memory header.
    data_header: u64,
    full: Frame,
    control: Frame,
}

impl Sizes {
    pub(super) fn of<T: Transport>(config: &FabricConfig) -> Sizes {
        let control_header = T::header_bytes(config).0;
        let data_header = control_header + config.packet.memory_header.0;
        let payload_max = config.packet.mtu.0.saturating_sub(data_header).max(1);
        Sizes {
            payload_max,
            data_header,
            full: Frame::of(data_header + payload_max),
            control: Frame::of(control_header),
        }
    }

    /// The frame of a packet with this much data; a request has none, and names memory.
    #[inline]
    pub(super) fn data(&self, bytes: u64) -> Frame {
        if bytes == self.payload_max { self.full } else { Frame::of(self.data_header + bytes) }
    }

    /// The frame of a packet that names no memory.
    #[inline]
    pub(super) fn control(&self) -> Frame {
        self.control
    }

    /// Packets for `bytes` of data.
    pub(super) fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.payload_max).max(1)
    }
}

/// What a transport's parameters scale with: the longest path of a network, nothing else on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// From the first block of a full packet to the last of its answer.
    pub round_trip: Ps,
    /// What a full packet takes of a node's link.
    pub packet_time: Ps,
    /// The bandwidth-delay product, in full packets.
    pub packets: u32,
    /// Their data.
    pub data: Bytes,
    /// What they take of a buffer.
    pub line_bytes: u64,
}

impl Path {
    /// That of a transport's packets.
    #[must_use]
    pub fn of<T: Transport>(config: &FabricConfig, layout: &Layout) -> Path {
        let sizes = Sizes::of::<T>(config);
        let round_trip = layout.one_way(sizes.full) + layout.one_way(sizes.control);
        let slots = round_trip.0.div_ceil(config.link.block_time().0);
        let packets = slots.div_ceil(sizes.full.line.into());
        Path {
            round_trip,
            packet_time: config.link.block_time() * u64::from(sizes.full.line),
            packets: packets as u32,
            data: Bytes(packets * sizes.payload_max),
            line_bytes: packets * sizes.full.line_bytes(),
        }
    }
}
