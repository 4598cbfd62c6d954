//! Homa: messages begin without a grant. Receivers grant the rest to the messages with the fewest
//! remaining packets, and choose the priorities of everything they receive (SIGCOMM 2018).

mod config;
mod downlink;
mod priorities;
mod receiver;
mod sender;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Balancing, Layout, PortKind};
use ethermem_frames::{
    Deadlines, End, FlowId, Levels, Net, Outgoing, Packet, PacketFabric, Path, Purpose, Rank,
    Ranked, Transport, Turns,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

pub use config::HomaConfig;

use downlink::Downlink;
use priorities::Priorities;
use receiver::Receiver;
use sender::Sender;

/// Homa on the packet network.
pub type Homa = PacketFabric<Hosts>;

/// Rank of grants and of all other packets without data.
const CONTROL_RANK: u32 = 0;
/// Rank of requests, which are as short as grants.
const REQUEST_RANK: u32 = 0;

/// Times and limits, equal for all messages.
#[derive(Clone, Copy, Debug)]
struct Rules {
    buffer_bytes: u64,
    priorities: u32,
    payload: u64,
    /// Number of packets of RTTbytes.
    unscheduled: u32,
    overcommitment: Option<u32>,
    resend: Ps,
    /// Number of a client's open requests above which their responses send a single packet without
    /// a grant (section 3.6).
    incast_requests: u32,
    packet_time: Ps,
    round_trip: Ps,
    /// Data bytes after which a message alone proceeds at a steady pace.
    ramp: Bytes,
}

/// The transport.
pub struct Hosts {
    rules: Rules,
    /// Messages with data to send, by their sender.
    senders: Turns,
    /// Messages that want grants, by their receiver.
    granting: Vec<Ranked>,
    /// By receiver: number of packets that were granted and have not arrived.
    outstanding: Vec<u32>,
    /// The messages that are granted now; reused to avoid reallocation.
    active: Vec<(Rank, FlowId)>,
    priorities: Vec<Priorities>,
    /// By client: number of requests without a whole response.
    requests: Vec<u32>,
    /// By receiver: when its link was last idle.
    downlinks: Vec<Downlink>,
    messages_started: u64,
}

/// Both ends of a message.
#[derive(Debug, Default)]
pub struct Ends {
    /// The message's age, which breaks ties.
    order: u64,
    /// True if it answers a request.
    response: bool,
    /// True for a request beyond the client's limit.
    beyond_limit: bool,
    sender: Sender,
    receiver: Receiver,
    deadlines: Deadlines,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// The packet at this position.
    Data(u32),
    /// GRANT: all packets before the first number may be sent; newly granted ones have the second
    /// number as rank.
    Grant(u32, u32),
    /// RESEND: the packets from the first up to the second number are missing.
    Resend(u32, u32),
    /// BUSY: the packets will come, or the requested data is in flight.
    Busy,
    /// RESEND of the response: asks whether the message has arrived.
    Ask,
    /// The response to a message of data: it has arrived.
    Response,
}

fn unscheduled_packets(config: &FabricConfig, path: &Path) -> u32 {
    let payload = path.data.0 / u64::from(path.packets);
    let bytes = config.of::<HomaConfig>().unscheduled.map_or(path.data.0, |bytes| bytes.0);
    bytes.div_ceil(payload).max(1) as u32
}

impl Hosts {
    fn control(net: &mut Net<'_, Hosts>, flow: FlowId, from: End, header: Header) {
        net.send(flow, Outgoing { from, data_bytes: 0, rank: CONTROL_RANK, header });
    }

    /// Number of packets that a message sends without a grant. The response to a request beyond its
    /// client's limit sends one.
    fn unscheduled_of(&self, net: &Net<'_, Hosts>, id: FlowId) -> u32 {
        let flow = net.flow(id);
        let limited = flow.is_response() && net.flow(flow.request).state.beyond_limit;
        flow.packets.min(if limited { 1 } else { self.rules.unscheduled })
    }

    /// Sets the time at which an end of a message must be checked.
    fn arm(net: &mut Net<'_, Hosts>, flow: FlowId, end: End, at: Ps) {
        let deadline = net.flow_mut(flow).state.deadlines.set(end, at);
        net.arm(flow, deadline);
    }
}

impl Transport for Hosts {
    type Flow = Ends;
    type Header = Header;
    type Queue = Levels;
    type Parameters = HomaConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Hosts {
        let own = &config.of::<HomaConfig>();
        let path = Path::of::<Hosts>(config, layout);
        let payload = path.data.0 / u64::from(path.packets);
        let unscheduled = unscheduled_packets(config, &path);
        // With less data than the path holds it is sent in bursts, whose steps differ.
        let steady = if unscheduled < path.packets { u32::MAX } else { 2 * unscheduled };
        let nodes = usize::from(layout.nodes());
        let priorities = Priorities::new(own);
        let fits = own.buffer.0 / path.line_bytes;
        Hosts {
            rules: Rules {
                buffer_bytes: own.buffer.0,
                priorities: own.priorities,
                payload,
                unscheduled,
                overcommitment: own.overcommitment,
                resend: own.resend,
                incast_requests: own.incast_requests.unwrap_or(fits.max(1) as u32),
                packet_time: path.packet_time,
                round_trip: path.round_trip,
                ramp: Bytes(u64::from(steady) * payload),
            },
            senders: Turns::new(End::Source, layout.nodes()),
            granting: vec![Ranked::new(); nodes],
            outstanding: vec![0; nodes],
            active: Vec::new(),
            priorities: vec![priorities; nodes],
            requests: vec![0; nodes],
            downlinks: vec![Downlink::default(); nodes],
            messages_started: 0,
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<HomaConfig>().header
    }

    fn balancing() -> Balancing {
        Balancing::Spray
    }

    fn queue(&self, kind: PortKind, _seed: u64) -> Levels {
        let limit = kind.queue_limit_bytes(self.rules.buffer_bytes);
        Levels::new(self.rules.priorities as usize, limit)
    }

    fn start(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let unscheduled = self.unscheduled_of(net, id);
        let flow = net.flow_mut(id);
        let (node, purpose) = (flow.source, flow.purpose);
        let rank = self.priorities[usize::from(flow.destination)].unscheduled(flow.bytes);
        flow.state.order = self.messages_started;
        flow.state.response = flow.is_response();
        flow.state.sender.reset(unscheduled, rank, now);
        flow.state.receiver.reset(flow.packets, unscheduled);
        flow.state.deadlines = Deadlines::default();
        self.messages_started += 1;
        if purpose == Purpose::Data {
            self.enlist(net, id);
            self.transmit(net, node);
        } else {
            let open = &mut self.requests[usize::from(node)];
            *open += 1;
            net.flow_mut(id).state.beyond_limit = *open > self.rules.incast_requests;
            Self::request(net, id);
        }
        Self::arm(net, id, End::Source, now + self.rules.resend);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        let id = packet.flow;
        self.downlinks[usize::from(packet.destination)].arrive(net.now(), self.rules.packet_time);
        match packet.header {
            Header::Data(position) => self.on_data(net, id, position),
            Header::Grant(end, rank) => self.on_grant(net, id, end, rank),
            Header::Resend(from, end) => self.on_resend(net, id, from, end),
            Header::Busy if packet.source == net.flow(id).source => Self::on_receiver_busy(net, id),
            Header::Busy => Self::on_sender_busy(net, id),
            Header::Ask => self.on_ask(net, id),
            Header::Response => self.finish(net, id),
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        let now = net.now();
        let (sender, receiver) = net.flow_mut(flow).state.deadlines.due(now);
        if sender {
            self.ask(net, flow);
        }
        if receiver {
            self.ask_again(net, flow);
        }
        let rest = net.flow(flow).state.deadlines.earlier();
        net.arm(flow, rest);
    }

    fn on_wake(&mut self, net: &mut Net<'_, Hosts>, _end: End, node: NodeIndex) {
        self.senders.woken(node);
        self.transmit(net, node);
    }

    fn feedback_packets(config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        let layout = Layout::new(config, config.packet.stack.unwrap_or(Self::stack()));
        let path = Path::of::<Hosts>(config, &layout);
        packets.saturating_sub(unscheduled_packets(config, &path).into()) + 1
    }

    fn steady_after(&self) -> Bytes {
        self.rules.ramp
    }
}
