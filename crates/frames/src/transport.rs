//! The transport that a packet fabric brings, as a pure state machine for both ends.

use ethermem_engine::config::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::engine::{LineCaches, LineCounters, Loss, Sim};
use ethermem_engine::topology::{Balancing, Layout, PortKind, Tier};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, NodeIndex};

use super::network::{Event, Network};
use super::{Discipline, Flow, FlowId, Frame, Packet, PauseLimits};

/// A transport. One value serves all hosts. State of a flow is in its [`Transport::Flow`]; state of
/// a host is kept by the transport, indexed by node.
///
/// It is given the time, reads no clock, and acts only through [`Net`]. It reports every flow once
/// as delivered, at its destination, and once as settled, at its source.
pub trait Transport: Sized + Send + 'static {
    /// The state of a flow, for both its ends. [`Transport::start`] resets it.
    type Flow: Default + Send;
    /// The fields of its packets that the network does not use.
    type Header: Copy + Send;
    /// The discipline of every port.
    type Queue: Discipline<Self::Header>;
    /// The parameters: see [`Fabric::Parameters`](ethermem_engine::engine::Fabric::Parameters).
    type Parameters: Parameters;

    /// The idle transport on a network.
    fn new(config: &FabricConfig, layout: &Layout) -> Self;

    /// Sets the seed of its random draws, if it has any.
    fn seed(&mut self, _seed: u64) {}

    /// True if it is told which packets leave its sources, to send at its own pace.
    const PACES: bool = false;

    /// Bytes of its headers in every packet, behind the MAC's and before the memory header.
    fn header_bytes(config: &FabricConfig) -> Bytes;

    /// Time of a host's stack for a packet in either direction, if the scenario has no value.
    fn stack() -> Ps {
        Ps::ZERO
    }

    /// [`Transport::stack`], if it depends on the configuration.
    fn stack_of(_config: &FabricConfig) -> Ps {
        Self::stack()
    }

    /// The balancing of its packets over spines, if the scenario has no value.
    fn balancing() -> Balancing {
        Balancing::Ecmp
    }

    /// The queue of a port. `seed` is for its random draws and differs from port to port.
    fn queue(&self, kind: PortKind, seed: u64) -> Self::Queue;

    /// The limits of the switch behind ports of this kind; `None` where links are never paused.
    fn pause_limits(&self, _kind: PortKind) -> Option<PauseLimits> {
        None
    }

    /// Bytes of the buffer that the links into a switch share, beside the headroom of each.
    fn shared_bytes(&self, _tier: Tier) -> u64 {
        0
    }

    /// Time of a message before it is submitted: see
    /// [`Fabric::submit_delay`](ethermem_engine::engine::Fabric::submit_delay).
    fn submit_delay(&self) -> Ps {
        Ps::ZERO
    }

    /// Starts the flow of a message that was just submitted.
    fn begin(&mut self, net: &mut Net<'_, Self>, flow: FlowId, _kind: Kind) {
        self.start(net, flow);
    }

    /// Starts a flow that was opened: its source may send.
    fn start(&mut self, net: &mut Net<'_, Self>, flow: FlowId);

    /// Handles a packet that is whole at its destination, which is either end of its flow.
    fn on_packet(&mut self, net: &mut Net<'_, Self>, packet: &Packet<Self::Header>);

    /// Handles the deadline of a flow that has not settled.
    fn on_timer(&mut self, _net: &mut Net<'_, Self>, _flow: FlowId) {}

    /// Handles a wake that it requested for a node.
    fn on_wake(&mut self, _net: &mut Net<'_, Self>, _end: End, _node: NodeIndex) {}

    /// If it paces: handles a packet of a flow's source that leaves its interface, now or, from a
    /// queue in order, later.
    fn on_left(&mut self, _net: &mut Net<'_, Self>, _left: Left) {}

    /// Handles the first packet of a response: the request has arrived, so its source forgets it.
    fn on_answered(&mut self, net: &mut Net<'_, Self>, request: FlowId) {
        net.settle(request);
    }

    /// Handles a pause frame that arrived at a node's interface, or the end of the pause.
    fn on_pause(&mut self, _net: &mut Net<'_, Self>, _node: NodeIndex, _paused: bool) {}

    /// The caches of its compute nodes: see
    /// [`Fabric::caches`](ethermem_engine::engine::Fabric::caches).
    fn caches(&mut self) -> Option<&mut dyn LineCaches> {
        None
    }

    /// What happened in them.
    fn line_counters(&self) -> Option<LineCounters> {
        None
    }

    /// Number of blocks that a message puts on the links, if its packets have sizes of their own.
    fn blocks(_config: &FabricConfig, _kind: Kind, _bytes: Bytes) -> Option<LinkBlocks> {
        None
    }

    /// Number of data bytes after which its timing repeats, if not those of a full packet.
    fn period(&self) -> Option<Bytes> {
        None
    }

    /// Checks what it knows at the end of a run, when nothing is under way.
    ///
    /// # Errors
    /// A text that says which invariant does not hold.
    fn close(&self) -> Result<(), String> {
        Ok(())
    }

    /// Number of packets without data that it sends for `packets` of data, against their direction
    /// and without a read's request. They count as load beside the data.
    fn feedback_packets(_config: &FabricConfig, _kind: Kind, _packets: u64) -> u64 {
        0
    }

    /// Number of packets that one acknowledgement covers, if messages share packets. Each packet
    /// then carries a part of a connection's byte stream, which has a memory header before each
    /// message.
    fn streams(_config: &FabricConfig) -> Option<u32> {
        None
    }

    /// Data bytes after which a message alone proceeds at a steady pace: slow start has ended.
    fn steady_after(&self) -> Bytes {
        Bytes(0)
    }
}

/// The end of a flow that sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The source, which sends data or a request.
    Source,
    /// The destination, which sends an acknowledgement, token or grant.
    Destination,
}

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<H> {
    /// The sending end.
    pub from: End,
    /// Number of bytes of message data in it.
    pub data_bytes: u64,
    /// The priority: see [`Packet::rank`].
    pub rank: u32,
    /// The transport's own fields.
    pub header: H,
}

/// A packet that leaves an interface.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// The flow whose source sent it.
    pub flow: FlowId,
    /// The time at which its first block leaves.
    pub start: Ps,
    /// Time that it takes on the link.
    pub line: Ps,
    /// Number of bytes that it takes on the link.
    pub bytes: u64,
}

/// The network and the time, as a transport sees them.
pub struct Net<'n, T: Transport> {
    pub(super) sim: &'n mut Sim<Event>,
    pub(super) network: &'n mut Network<T>,
}

impl<T: Transport> Net<'_, T> {
    /// The current time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Ps {
        self.sim.now()
    }

    /// The flow with this id.
    #[inline]
    #[must_use]
    pub fn flow(&self, flow: FlowId) -> &Flow<T::Flow> {
        &self.network.flows[flow]
    }

    /// The flow with this id, to change its state.
    #[inline]
    pub fn flow_mut(&mut self, flow: FlowId) -> &mut Flow<T::Flow> {
        &mut self.network.flows[flow]
    }

    /// Number of data bytes of the packet at this position of a flow.
    #[inline]
    #[must_use]
    pub fn data_bytes(&self, flow: FlowId, position: u32) -> u64 {
        self.part_bytes(self.network.flows[flow].bytes, position)
    }

    /// Number of data bytes of the packet at this position of a flow of `bytes`.
    #[inline]
    #[must_use]
    pub fn part_bytes(&self, bytes: u64, position: u32) -> u64 {
        let most = self.network.sizes.payload_max;
        (bytes - u64::from(position) * most).min(most)
    }

    /// Number of packets that carry a flow of `bytes`.
    #[must_use]
    pub fn packets(&self, bytes: u64) -> u32 {
        self.network.sizes.packets(bytes) as u32
    }

    /// Gives a packet to the interface of one end of a flow.
    #[inline]
    pub fn send(&mut self, flow: FlowId, outgoing: Outgoing<T::Header>) {
        self.network.send(self.sim, flow, outgoing);
    }

    /// Gives a packet with a frame of its own size to the interface of one end of a flow.
    #[inline]
    pub fn send_frame(&mut self, flow: FlowId, frame: Frame, outgoing: Outgoing<T::Header>) {
        self.network.send_frame(self.sim, flow, frame, outgoing);
    }

    /// Opens a flow of no message, which lasts as long as the network: for packets of many
    /// messages.
    pub fn open_standing(&mut self, source: NodeIndex, destination: NodeIndex) -> FlowId {
        self.network.open_standing(source, destination)
    }

    /// Maximum bytes of a connection's stream in one packet.
    #[inline]
    #[must_use]
    pub fn stream_max(&self) -> u64 {
        self.network.sizes.stream_max()
    }

    /// Bytes of a message in a connection's stream: its memory header and its data.
    #[inline]
    #[must_use]
    pub fn stream_bytes(&self, flow: FlowId) -> u64 {
        self.network.sizes.memory_header + self.network.flows[flow].bytes
    }

    /// Gives a packet with `bytes` of a connection's stream to the interface of its source. Data of
    /// the messages of `beginning` leaves with it for the first time.
    pub fn send_stream(
        &mut self,
        connection: FlowId,
        bytes: u64,
        beginning: impl Iterator<Item = FlowId>,
        outgoing: Outgoing<T::Header>,
    ) {
        if self.sim.is_watched() {
            let flows = &self.network.flows;
            let carries = |&flow: &FlowId| flows[flow].bytes > 0;
            self.network.riding.clear();
            self.network.riding.extend(beginning.filter(carries).map(|flow| flows[flow].handle));
        }
        let frame = self.network.sizes.stream(bytes);
        self.network.send_frame(self.sim, connection, frame, outgoing);
    }

    /// Wakes the transport for a flow at `deadline`, in place of its earlier deadline.
    #[inline]
    pub fn arm(&mut self, flow: FlowId, deadline: Ps) {
        self.network.arm(self.sim, flow, deadline);
    }

    /// Cancels the deadline of a flow.
    #[inline]
    pub fn disarm(&mut self, flow: FlowId) {
        self.network.flows[flow].deadline = Ps::MAX;
    }

    /// Wakes the transport at `at` for one end of a node's activity, independent of other wakes.
    #[inline]
    pub fn wake(&mut self, end: End, node: NodeIndex, at: Ps) {
        self.sim.at(at, Event::Wake(end, node));
    }

    /// Reports that the destination has the whole flow: a message ends, or a request is answered.
    pub fn deliver(&mut self, flow: FlowId) {
        self.network.deliver(self.sim, flow);
    }

    /// Reports that a message has ended at `at`, which may be later than now, and that its flow's
    /// destination waits for nothing more.
    pub fn end(&mut self, flow: FlowId, at: Ps) {
        self.network.end(self.sim, flow, at);
    }

    /// Reports that a message will never end, and that its flow's destination waits for nothing.
    pub fn lose(&mut self, flow: FlowId, loss: Loss) {
        self.sim.lose(self.network.flows[flow].handle, loss);
        self.network.flows.receive(flow);
    }

    /// Reports that a message's request is at its memory node.
    #[inline]
    pub fn at_memory(&mut self, flow: FlowId) {
        let now = self.sim.now();
        self.sim.at_memory(self.network.flows[flow].handle, now);
    }

    /// Reports that data of a message leaves its node.
    #[inline]
    pub fn leaves(&mut self, flow: FlowId) {
        let now = self.sim.now();
        self.sim.leaves(self.network.flows[flow].handle, now);
    }

    /// Reports that the source sends no more of the flow and waits for nothing.
    pub fn settle(&mut self, flow: FlowId) {
        self.network.flows.settle(flow);
    }

    /// Number of bytes that wait in front of a node's uplink, or are being sent.
    #[must_use]
    pub fn uplink_bytes(&self, node: NodeIndex) -> u64 {
        self.network.queued_bytes(node, self.sim.now())
    }

    /// The time at which everything that a node's interface was given has left.
    #[inline]
    #[must_use]
    pub fn interface_free(&self, node: NodeIndex) -> Ps {
        self.network.interface_free(node, self.sim.now())
    }

    /// Time that a packet with this much data takes on a node's link.
    #[inline]
    #[must_use]
    pub fn line(&self, data_bytes: u64) -> Ps {
        self.network.line(data_bytes)
    }

    /// Counts retransmitted packets and expired timeouts.
    pub fn count_again(&mut self, packets: u64, timeouts: u64) {
        self.network.counts.retransmitted += packets;
        self.network.counts.timeouts += timeouts;
    }
}

/// The sizes of a transport's packets.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Maximum data bytes of a packet.
    pub payload_max: u64,
    /// Bytes of a packet's headers behind the MAC's, including the memory header.
    data_header: u64,
    /// Bytes of a memory header.
    memory_header: u64,
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
            memory_header: config.packet.memory_header.0,
            full: Frame::of(data_header + payload_max),
            control: Frame::of(control_header),
        }
    }

    /// The frame of a packet with this much data. A request has no data but a memory header.
    #[inline]
    pub(super) fn data(&self, bytes: u64) -> Frame {
        if bytes == self.payload_max { self.full } else { Frame::of(self.data_header + bytes) }
    }

    /// Maximum bytes of a connection's stream in one packet.
    #[inline]
    pub(super) fn stream_max(&self) -> u64 {
        self.payload_max + self.memory_header
    }

    /// The frame of a packet with this many bytes of a connection's stream.
    #[inline]
    pub(super) fn stream(&self, bytes: u64) -> Frame {
        Frame::of(self.data_header - self.memory_header + bytes)
    }

    /// Blocks of a message's packets.
    pub(super) fn data_blocks(&self, bytes: u64) -> u64 {
        let packets = self.packets(bytes);
        let rest = bytes - (packets - 1) * self.payload_max;
        (packets - 1) * u64::from(self.full.line) + u64::from(self.data(rest).line)
    }

    /// Blocks of a message's part of full packets of a connection's stream.
    pub(super) fn stream_blocks(&self, bytes: u64) -> f64 {
        let share = (self.memory_header + bytes) as f64 / self.stream_max() as f64;
        share * f64::from(self.full.line)
    }

    /// The frame of a packet without a memory header.
    #[inline]
    pub(super) fn control(&self) -> Frame {
        self.control
    }

    /// Number of packets for `bytes` of data.
    pub(super) fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.payload_max).max(1)
    }
}

/// The scale of a transport's parameters: the longest path of an idle network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Time from the first block of a full packet to the last block of its answer.
    pub round_trip: Ps,
    /// Time that a full packet takes on a node's link.
    pub packet_time: Ps,
    /// The bandwidth-delay product, in full packets.
    pub packets: u32,
    /// Number of data bytes of these packets.
    pub data: Bytes,
    /// Number of bytes that these packets take in a buffer.
    pub line_bytes: u64,
}

impl Path {
    /// The path of a transport's packets.
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
