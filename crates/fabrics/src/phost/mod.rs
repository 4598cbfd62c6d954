//! pHost: receivers issue tokens to the flow with the fewest remaining packets, and senders spend
//! them on the flow with the fewest. Switches are commodity (CoNEXT 2015).

mod config;
mod destination;
mod source;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Balancing, Layout, PortKind};
use ethermem_frames::{
    Deadlines, End, FlowId, Levels, Net, Outgoing, Packet, PacketFabric, Path, Purpose, Transport,
    Turns,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, NodeIndex};

pub use config::PhostConfig;

use destination::Destination;
use source::{Source, Token};

/// pHost on the packet network.
pub type Phost = PacketFabric<Hosts>;

/// Ranks of packets: announcements, tokens, acknowledgements and requests first, then data.
const CONTROL_RANK: u32 = 0;
const SHORT_RANK: u32 = 1;
const LONG_RANK: u32 = 2;
const RANKS: usize = 3;

/// Times and limits, equal for all flows.
#[derive(Clone, Copy, Debug)]
struct Rules {
    buffer_bytes: u64,
    free_packets: u32,
    short_packets: u32,
    token_lifetime: Ps,
    tokens_unused_max: u32,
    downgrade: Ps,
    downgrade_ends_with_data: bool,
    timeout: Ps,
    timeout_growth: f64,
    /// Time per packet that a destination waits for packets that are sent at once.
    free_wait: Ps,
    /// Data bytes after which a message alone proceeds at a steady pace.
    ramp: Bytes,
}

/// The transport.
pub struct Hosts {
    rules: Rules,
    /// Flows with tokens, by their source.
    senders: Turns,
    /// Flows that want tokens, by their destination.
    receivers: Turns,
    flows_started: u64,
}

/// Both ends of a flow.
#[derive(Debug, Default)]
pub struct Ends {
    /// The flow's age, which breaks ties.
    order: u64,
    source: Source,
    destination: Destination,
    deadlines: Deadlines,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// RTS: announces a flow.
    Announcement,
    /// The packet at this position, sent for the token with this number.
    Data(u32, u32),
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

    /// Sends a source's request, for the first time or again.
    fn request(net: &mut Net<'_, Hosts>, flow: FlowId) {
        Self::control(net, flow, End::Source, Header::Data(0, 0));
    }
}

impl Transport for Hosts {
    type Flow = Ends;
    type Header = Header;
    type Queue = Levels;
    type Parameters = PhostConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Hosts {
        let own = &config.of::<PhostConfig>();
        let path = Path::of::<Hosts>(config, layout);
        let packet_time = path.packet_time;
        let packets = |count: f64| Ps((packet_time.0 as f64 * count) as u64);
        let unused = own.tokens_unused_max.unwrap_or(path.packets.max(own.free_packets));
        // The first data arrives a round trip after its token. With fewer tokens issued by then it
        // is sent in bursts, whose steps differ.
        let steady = if unused < path.packets { u32::MAX } else { own.free_packets };
        let payload = path.data.0 / u64::from(path.packets);
        Hosts {
            rules: Rules {
                buffer_bytes: own.buffer.0,
                free_packets: own.free_packets,
                short_packets: own.short_packets,
                token_lifetime: packets(own.token_lifetime_packets),
                tokens_unused_max: unused,
                downgrade: packets(own.downgrade_packets),
                downgrade_ends_with_data: own.downgrade_ends_with_data,
                timeout: own.timeout,
                timeout_growth: own.timeout_growth,
                free_wait: packets(own.free_wait_packets),
                ramp: Bytes(u64::from(steady) * payload),
            },
            senders: Turns::new(End::Source, layout.nodes()),
            receivers: Turns::new(End::Destination, layout.nodes()),
            flows_started: 0,
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<PhostConfig>().header
    }

    fn balancing() -> Balancing {
        Balancing::Spray
    }

    fn queue(&self, kind: PortKind, _seed: u64) -> Levels {
        Levels::new(RANKS, kind.queue_limit_bytes(self.rules.buffer_bytes))
    }

    fn start(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = net.now();
        let flow = net.flow_mut(id);
        flow.state.order = self.flows_started;
        flow.state.source.reset(flow.packets, now, &self.rules);
        flow.state.destination.reset(flow.packets);
        flow.state.deadlines = Deadlines::default();
        let (node, purpose) = (flow.source, flow.purpose);
        self.flows_started += 1;
        if purpose != Purpose::Data {
            Self::request(net, id);
        } else if net.flow(id).state.source.is_free() {
            self.enlist(net, id);
            self.spend(net, node);
        } else {
            Self::control(net, id, End::Source, Header::Announcement);
        }
        Self::arm(net, id, End::Source, now + self.rules.timeout);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        match packet.header {
            Header::Announcement => self.on_announcement(net, packet.flow),
            Header::Data(position, number) => self.on_data(net, packet.flow, position, number),
            Header::Token(token) => self.on_token(net, packet.flow, token),
            Header::Acknowledgement => self.on_acknowledgement(net, packet.flow),
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
        match end {
            End::Source => {
                self.senders.woken(node);
                self.spend(net, node);
            }
            End::Destination => {
                self.receivers.woken(node);
                self.call(net, node);
            }
        }
    }

    fn feedback_packets(config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        let free = packets <= config.of::<PhostConfig>().free_packets.into();
        if free { 1 } else { packets + 1 }
    }

    fn steady_after(&self) -> Bytes {
        self.rules.ramp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet takes a nanosecond, and three tokens may be unused.
    pub(super) const RULES: Rules = Rules {
        buffer_bytes: 36_864,
        free_packets: 4,
        short_packets: 4,
        token_lifetime: Ps(1_500),
        tokens_unused_max: 3,
        downgrade: Ps(25_000),
        downgrade_ends_with_data: true,
        timeout: Ps(9_000),
        timeout_growth: 2.0,
        free_wait: Ps(2_000),
        ramp: Bytes(0),
    };
}
