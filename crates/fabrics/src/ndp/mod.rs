//! NDP: switches with tiny buffers trim packets to their headers. So receivers know of all packets
//! sent to them, and pull them at the rate of their link (Handley et al., SIGCOMM 2017).

mod config;
mod interface;
mod pulls;
mod queue;
mod sender;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Balancing, Layout, PortKind};
use ethermem_frames::{
    Discipline, End, FlowId, Frame, Heading, Net, Outgoing, Pacers, Packet, PacketFabric, PacketId,
    Packets, Path, Purpose, Received, Transport, Trimmed,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

pub use config::NdpConfig;
use interface::{AGAIN, CONTROL, NEW};
pub use interface::{HostQueue, Interface};

pub use pulls::PullOrder;
use pulls::Pulls;
pub use queue::{Limits, TrimmingQueue};
use sender::Sender;

/// NDP on the packet network.
pub type Ndp = PacketFabric<Hosts>;

/// The transport.
pub struct Hosts {
    limits: Limits,
    host_queue: HostQueue,
    window_initial: u32,
    timeout: Ps,
    pulls: Pulls,
    /// The pacers: one pull per packet time, whichever flow it is for.
    pacers: Pacers,
}

/// Both ends of a flow.
#[derive(Debug, Default)]
pub struct Ends {
    sender: Sender,
    received: Received,
    /// Number of pulls that were sent.
    pulled: u32,
    /// Number of pulls that wait for their turn.
    waiting: u32,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// The packet at this position.
    Data(u32),
    /// The packet at this position has arrived. If it is also a pull, the count of packets pulled
    /// so far.
    Acknowledgement(u32, Option<u32>),
    /// The header of the packet at this position has arrived without data; the count is as above.
    Missing(u32, Option<u32>),
    /// A pull: the count of packets pulled so far.
    Pull(u32),
}

impl Hosts {
    /// Sends up to `count` packets; returns how many it has sent.
    fn pump(net: &mut Net<'_, Hosts>, id: FlowId, count: u32) -> u32 {
        for sent in 0..count {
            let Some((position, again)) = net.flow_mut(id).state.sender.take() else { return sent };
            net.count_again(again.into(), 0);
            let data_bytes = net.data_bytes(id, position);
            let header = Header::Data(position);
            // Requests have no data to trim: they are headers from the start.
            let rank = match (data_bytes, again) {
                (0, _) => CONTROL,
                (_, true) => AGAIN,
                (_, false) => NEW,
            };
            net.send(id, Outgoing { from: End::Source, data_bytes, rank, header });
        }
        count
    }

    fn rearm(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let deadline = net.now() + self.timeout;
        net.arm(id, deadline);
    }

    fn answer(net: &mut Net<'_, Hosts>, id: FlowId, header: Header) {
        net.send(id, Outgoing { from: End::Destination, data_bytes: 0, rank: CONTROL, header });
    }

    /// Handles the arrival of a packet or of its header.
    fn on_data(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, position: u32, trimmed: bool) {
        let flow = net.flow_mut(id);
        let (node, purpose, packets) = (flow.destination, flow.purpose, flow.packets);
        let received = &mut flow.state.received;
        let completes = !trimmed && received.insert(position) && received.count() == packets;
        let complete = received.count() == packets;
        if completes {
            net.deliver(id);
            // The waiting pulls would find no packet to send.
            if std::mem::take(&mut net.flow_mut(id).state.waiting) > 0 {
                self.pulls.remove(node, id);
            }
        }
        if purpose != Purpose::Data {
            // The response answers the request.
            return;
        }
        let pull = if complete { None } else { self.pull_or_wait(net, node, id) };
        let header = if trimmed {
            Header::Missing(position, pull)
        } else {
            Header::Acknowledgement(position, pull)
        };
        Self::answer(net, id, header);
    }

    /// A pull for this flow, if no pull waits and one may be sent now; otherwise the pull waits.
    fn pull_or_wait(
        &mut self,
        net: &mut Net<'_, Hosts>,
        node: NodeIndex,
        id: FlowId,
    ) -> Option<u32> {
        if self.pacers.ready(net, node) && self.pulls.is_empty(node) {
            return Some(self.pull(net, node, id));
        }
        let waiting = &mut net.flow_mut(id).state.waiting;
        *waiting += 1;
        if *waiting == 1 {
            self.pulls.push(node, id);
        }
        None
    }

    /// The pull that is sent to a flow now. It occupies the receiver as long as a packet of the
    /// flow occupies its link.
    fn pull(&mut self, net: &mut Net<'_, Hosts>, node: NodeIndex, id: FlowId) -> u32 {
        let (now, line) = (net.now(), net.line(net.data_bytes(id, 0)));
        self.pacers.take(node, now, line);
        let state = &mut net.flow_mut(id).state;
        state.pulled += 1;
        state.pulled
    }

    /// Lets packets go by a pull, which came with an answer or alone.
    fn on_pull(net: &mut Net<'_, Hosts>, id: FlowId, pulled: Option<u32>) {
        let Some(count) = pulled else { return };
        let new = net.flow_mut(id).state.sender.pull(count);
        let sent = Self::pump(net, id, new);
        net.flow_mut(id).state.sender.keep(new - sent);
    }

    /// Handles an answer at the source of a flow that waits for it.
    fn on_answer(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, packet: &Packet<Header>) {
        let sender = &mut net.flow_mut(id).state.sender;
        if sender.done() {
            return;
        }
        match packet.header {
            Header::Acknowledgement(position, pulled) => {
                if sender.acknowledge(position) {
                    return Self::settle(net, id);
                }
                Self::on_pull(net, id, pulled);
            }
            Header::Missing(position, pulled) => {
                let due = sender.miss(position);
                Self::on_pull(net, id, pulled);
                Self::pump(net, id, due.into());
            }
            Header::Pull(count) => Self::on_pull(net, id, Some(count)),
            Header::Data(position) => {
                if sender.returned(position) {
                    Self::pump(net, id, 1);
                }
            }
        }
        self.rearm(net, id);
    }

    fn settle(net: &mut Net<'_, Hosts>, id: FlowId) {
        net.flow_mut(id).state.sender.finish();
        net.settle(id);
    }
}

/// The queue of a port.
#[derive(Debug)]
pub enum PortQueue {
    /// Of a host's interface.
    Host(Interface),
    /// Of a switch.
    Switch(TrimmingQueue),
}

impl Discipline<Header> for PortQueue {
    const TRIMS: bool = true;

    #[inline]
    fn offer(
        &mut self,
        packets: &mut Packets<Header>,
        id: PacketId,
        queued_bytes: u64,
        dropped: &mut Vec<PacketId>,
    ) -> bool {
        match self {
            PortQueue::Host(queue) => queue.offer(packets, id, queued_bytes, dropped),
            PortQueue::Switch(queue) => queue.offer(packets, id, queued_bytes, dropped),
        }
    }

    #[inline]
    fn passes(&self, packets: &Packets<Header>, id: PacketId) -> bool {
        match self {
            PortQueue::Host(queue) => queue.passes(packets, id),
            PortQueue::Switch(queue) => queue.passes(packets, id),
        }
    }

    fn trimmed(&mut self) -> Trimmed {
        match self {
            PortQueue::Host(queue) => queue.trimmed(),
            PortQueue::Switch(queue) => queue.trimmed(),
        }
    }

    #[inline]
    fn take(&mut self, packets: &Packets<Header>) -> Option<PacketId> {
        match self {
            PortQueue::Host(queue) => queue.take(packets),
            PortQueue::Switch(queue) => queue.take(packets),
        }
    }
}

impl Transport for Hosts {
    type Flow = Ends;
    type Header = Header;
    type Queue = PortQueue;
    type Parameters = NdpConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Hosts {
        let own = &config.of::<NdpConfig>();
        let path = Path::of::<Hosts>(config, layout);
        let data_bytes = u64::from(own.queue_packets) * path.line_bytes / u64::from(path.packets);
        Hosts {
            limits: Limits {
                data_bytes,
                header_bytes: own.header_queue.map_or(data_bytes, |bytes| bytes.0),
                headers_per_data: own.headers_per_data,
                trim_arriving: own.trim_arriving,
                header: Frame::of(own.header.0),
            },
            host_queue: own.host_queue,
            window_initial: own.window_packets_initial.unwrap_or(path.packets + own.queue_packets),
            timeout: own.timeout,
            pulls: Pulls::new(own.pull_order, config.nodes),
            pacers: Pacers::new(End::Destination, config.nodes),
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<NdpConfig>().header
    }

    fn balancing() -> Balancing {
        Balancing::Permute
    }

    fn queue(&self, kind: PortKind, seed: u64) -> PortQueue {
        match kind {
            PortKind::HostUp => PortQueue::Host(Interface::new(self.host_queue)),
            _ => PortQueue::Switch(TrimmingQueue::new(self.limits, seed)),
        }
    }

    fn start(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow_mut(id);
        let packets = flow.packets;
        flow.state.sender.reset(packets);
        flow.state.received.reset(packets);
        (flow.state.pulled, flow.state.waiting) = (0, 0);
        Self::pump(net, id, self.window_initial);
        self.rearm(net, id);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        match packet.header {
            Header::Data(position) if packet.heading == Heading::Out => {
                self.on_data(net, packet.flow, position, packet.trimmed);
            }
            _ => self.on_answer(net, packet.flow, packet),
        }
    }

    fn on_wake(&mut self, net: &mut Net<'_, Hosts>, _end: End, node: NodeIndex) {
        self.pacers.woken(node);
        let missing = |id: FlowId| {
            let flow = net.flow(id);
            flow.packets - flow.state.received.count()
        };
        let Some(id) = self.pulls.pop(node, missing) else { return };
        let count = self.pull(net, node, id);
        let waiting = &mut net.flow_mut(id).state.waiting;
        *waiting -= 1;
        if *waiting > 0 {
            self.pulls.push(node, id);
        }
        Self::answer(net, id, Header::Pull(count));
        if !self.pulls.is_empty(node) {
            // The next pull waits: the node is woken when its link has had room for this one.
            let _ = self.pacers.ready(net, node);
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let count = net.flow_mut(id).state.sender.time_out();
        net.count_again(0, 1);
        Self::pump(net, id, count);
        self.rearm(net, id);
    }

    fn on_answered(&mut self, net: &mut Net<'_, Hosts>, request: FlowId) {
        Self::settle(net, request);
    }

    fn feedback_packets(_config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        packets
    }
}
