//! dcPIM: hosts match senders to receivers in rounds, as a switch matches its inputs to its
//! outputs. Data of long flows is sent within the match, and short flows are sent at once (SIGCOMM
//! 2022).

mod config;
mod destination;
mod epochs;
mod matching;
mod source;
#[cfg(test)]
mod tests;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Balancing, Layout, PortKind};
use ethermem_frames::{
    Deadlines, End, FlowId, Frame, Levels, Net, Outgoing, Packet, PacketFabric, Path, Purpose,
    Transport,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub use config::DcpimConfig;

use destination::{Destination, Receiver};
use epochs::Epochs;
use matching::Bid;
use source::{Sender, Source, Token};

/// dcPIM on the packet network.
pub type Dcpim = PacketFabric<Hosts>;

/// Rank of all packets without data.
const CONTROL_RANK: u32 = 0;

/// Times and limits, equal for all hosts.
#[derive(Clone, Copy, Debug)]
struct Rules {
    buffer_bytes: u64,
    priorities: u32,
    priority_packets: u32,
    short_packets: u32,
    channels: u32,
    shortest_rounds: u32,
    prompt: bool,
    epochs: Epochs,
    /// Number of full packets that a channel carries in an epoch.
    channel_packets: u32,
    packet_time: Ps,
    window: u32,
    window_timeout: Ps,
    resend: Ps,
    /// Time from the end of an epoch until its last tokens are void.
    token_slack: Ps,
    patience_growth: f64,
    /// True if every receiver has all channels from the start: see [`DcpimConfig`].
    matched: bool,
    /// Data bytes after which a message alone proceeds at a steady pace.
    ramp: Bytes,
}

impl Rules {
    fn new(config: &FabricConfig, layout: &Layout) -> Rules {
        let own = config.of::<DcpimConfig>();
        let path = Path::of::<Hosts>(config, layout);
        let product = path.packet_time * u64::from(path.packets);
        let one_way = layout.one_way(Frame::of(own.header.0));
        let epochs = Epochs::new(own, one_way * 2);
        let channel_time = u64::from(own.channels) * path.packet_time.0;
        let window = own.window.unwrap_or(path.packets);
        let short_packets = own.short_packets.unwrap_or(path.packets);
        let payload = path.data.0 / u64::from(path.packets);
        // With fewer tokens in flight than the path holds, data is sent in bursts.
        let steady = if window + 1 < path.packets { u32::MAX } else { window.max(short_packets) };
        Rules {
            buffer_bytes: own.buffer.0,
            priorities: own.priorities,
            priority_packets: own.priority_packets,
            short_packets,
            channels: own.channels,
            shortest_rounds: own.shortest_rounds,
            prompt: own.prompt,
            epochs,
            channel_packets: (epochs.sending().0 / channel_time).max(1) as u32,
            packet_time: path.packet_time,
            window,
            window_timeout: own.window_timeout.unwrap_or(Ps(product.0 * 11 / 10)),
            resend: own.resend.unwrap_or(product),
            token_slack: one_way + Ps(channel_time),
            patience_growth: own.patience_growth,
            matched: own.matched,
            ramp: Bytes((u64::from(steady) + 1) * payload),
        }
    }

    /// The rank of data of a flow with this many packets.
    fn rank(&self, packets: u32) -> u32 {
        let base = u64::from(self.priority_packets).max(2);
        let (mut rank, mut most) = (1, u64::from(self.priority_packets));
        while u64::from(packets) > most {
            (rank, most) = (rank + 1, most.saturating_mul(base));
        }
        rank.min(self.priorities - 1)
    }
}

/// The transport.
pub struct Hosts {
    rules: Rules,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    random: SplitMix64,
    skew: Ps,
    flows_started: u64,
    tokens_queued: u64,
}

/// Both ends of a flow.
#[derive(Debug, Default)]
pub struct Ends {
    /// The flow's age. It breaks ties, and tells the flow from earlier flows with its id.
    order: u64,
    source: Source,
    destination: Destination,
    deadlines: Deadlines,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// Announces a flow.
    Notification,
    /// Acknowledges the announcement of a flow.
    Noted,
    /// The packet at this position, sent for the token with this number.
    Data(u32, u32),
    /// RTS: a receiver requests channels of a sender.
    Request(Bid),
    /// A sender offers channels to a receiver.
    Grant(Bid),
    /// A receiver accepts channels of a sender.
    Accept(Bid),
    /// A sender has given some of these channels to other receivers.
    Release(Bid),
    /// Allows the source to send a packet.
    Token(Token),
    /// The whole flow has arrived.
    Acknowledgement,
}

impl Hosts {
    fn control(net: &mut Net<'_, Hosts>, flow: FlowId, from: End, header: Header) {
        net.send(flow, Outgoing { from, data_bytes: 0, rank: CONTROL_RANK, header });
    }

    /// Sets the time at which an end of a flow must be checked.
    fn arm(net: &mut Net<'_, Hosts>, flow: FlowId, end: End, at: Ps) {
        let deadline = net.flow_mut(flow).state.deadlines.set(end, at);
        net.arm(flow, deadline);
    }

    /// True if the flow of this age still has this id.
    fn lives(net: &Net<'_, Hosts>, flow: FlowId, order: u64) -> bool {
        let state = &net.flow(flow).state;
        state.order == order && !state.source.done
    }

    /// A random number below `count`.
    fn draw(&mut self, count: usize) -> usize {
        ((u128::from(self.random.next_u64()) * count as u128) >> 64) as usize
    }
}

impl Transport for Hosts {
    type Flow = Ends;
    type Header = Header;
    type Queue = Levels;
    type Parameters = DcpimConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Hosts {
        let nodes = usize::from(layout.nodes());
        Hosts {
            rules: Rules::new(config, layout),
            senders: (0..nodes).map(|_| Sender::default()).collect(),
            receivers: (0..nodes).map(|_| Receiver::default()).collect(),
            random: SplitMix64::seed_from_u64(0),
            skew: config.of::<DcpimConfig>().skew_of(layout),
            flows_started: 0,
            tokens_queued: 0,
        }
    }

    fn seed(&mut self, seed: u64) {
        self.random = SplitMix64::seed_from_u64(seed ^ u64::from_be_bytes(*b"dcpim-01"));
        for node in 0..self.senders.len() {
            let offset = Ps(self.draw(self.skew.0 as usize + 1) as u64);
            (self.senders[node].offset, self.receivers[node].offset) = (offset, offset);
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<DcpimConfig>().header
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
        let flow = net.flow_mut(id);
        flow.state.order = self.flows_started;
        flow.state.source.reset(flow.packets, now, self.rules.resend);
        flow.state.destination.reset(flow.packets);
        flow.state.deadlines = Deadlines::default();
        self.flows_started += 1;
        self.open(net, id);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        let id = packet.flow;
        match packet.header {
            Header::Notification => self.on_notification(net, id),
            Header::Noted => net.flow_mut(id).state.source.noted = true,
            Header::Data(position, number) => self.on_data(net, id, position, number),
            Header::Request(bid) => self.on_request(net, id, bid),
            Header::Grant(bid) => self.on_grant(net, id, bid),
            Header::Accept(bid) => self.on_accept(net, id, bid),
            Header::Release(bid) => self.on_release(net, id, bid),
            Header::Token(token) => self.on_token(net, id, token),
            Header::Acknowledgement => Self::on_acknowledgement(net, id),
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        let now = net.now();
        let (source, destination) = net.flow_mut(flow).state.deadlines.due(now);
        if source {
            self.ask_again(net, flow);
        }
        if destination {
            self.want_again(net, flow);
        }
        let rest = net.flow(flow).state.deadlines.earlier();
        net.arm(flow, rest);
    }

    fn on_wake(&mut self, net: &mut Net<'_, Hosts>, end: End, node: NodeIndex) {
        let now = net.now();
        let wake = match end {
            End::Source => &mut self.senders[usize::from(node)].wake,
            End::Destination => &mut self.receivers[usize::from(node)].wake,
        };
        // An earlier wake has replaced this one.
        if *wake > now {
            return;
        }
        *wake = Ps::MAX;
        match end {
            End::Source => self.run_sender(net, node),
            End::Destination => self.run_receiver(net, node),
        }
    }

    fn feedback_packets(config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        let layout = Layout::new(config, config.packet.stack.unwrap_or(Self::stack()));
        let short = Rules::new(config, &layout).short_packets;
        // The acknowledgements of the announcement and of the whole flow, and a token for each
        // packet.
        if packets <= short.into() { 2 } else { packets + 2 }
    }

    fn steady_after(&self) -> Bytes {
        self.rules.ramp
    }
}

/// True if a flow carries a message's data.
fn is_data(purpose: Purpose) -> bool {
    purpose == Purpose::Data
}
