//! RoCEv2 over plain Ethernet: the host stack of Table 1, go-back-N, and switches that drop.
//!
//! Senders have no rate control: a queue pair sends at the rate of its link, its packets in turn
//! with other pairs' packets at its interface.

mod config;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_frames::{
    DropTail, End, FlowId, Left, Net, Outgoing, Packet, PacketFabric, Purpose, Transport,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::Kind;

pub use config::RoceConfig;

use crate::budget::ROCE_STACK;

/// RoCEv2 on the packet network.
pub type Roce = PacketFabric<GoBackN>;

/// The transport.
pub struct GoBackN {
    rules: RoceConfig,
    /// Time of a memory node before it answers a request.
    memory_access: Ps,
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// The next packet to send.
    next: u32,
    /// One past the last packet ever sent.
    sent_end: u32,
    /// All packets before this one have arrived, as far as the sender knows.
    acked: u32,
    /// True if a packet waits at the interface.
    waiting: bool,
    done: bool,
    /// The packet that the receiver accepts next.
    expected: u32,
    /// True if the receiver has requested that packet.
    asked: bool,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// The packet at this position.
    Data(u32),
    /// All packets before this position have arrived.
    Acknowledgement(u32),
    /// NAK: this position is expected, and another arrived.
    Missing(u32),
}

impl GoBackN {
    /// Sends the next packet, unless one waits at the interface.
    fn pump(net: &mut Net<'_, GoBackN>, id: FlowId) {
        let flow = net.flow_mut(id);
        let position = flow.state.next;
        if flow.state.waiting || flow.state.done || position == flow.packets {
            return;
        }
        let again = position < flow.state.sent_end;
        flow.state.next += 1;
        flow.state.sent_end = flow.state.sent_end.max(position + 1);
        flow.state.waiting = true;
        net.count_again(again.into(), 0);
        let data_bytes = net.data_bytes(id, position);
        let header = Header::Data(position);
        net.send(id, Outgoing { from: End::Source, data_bytes, rank: 0, header });
    }

    fn answer(net: &mut Net<'_, GoBackN>, id: FlowId, header: Header) {
        net.send(id, Outgoing { from: End::Destination, data_bytes: 0, rank: 0, header });
    }

    fn on_data(&self, net: &mut Net<'_, GoBackN>, id: FlowId, position: u32) {
        let flow = net.flow_mut(id);
        let (purpose, packets) = (flow.purpose, flow.packets);
        let ends = &mut flow.state;
        let expected = ends.expected;
        if position > expected {
            if !std::mem::replace(&mut ends.asked, true) {
                Self::answer(net, id, Header::Missing(expected));
            }
            return;
        }
        let again = position < expected;
        if !again {
            ends.expected += 1;
            ends.asked = false;
        }
        let expected = ends.expected;
        if !again && expected == packets {
            net.deliver(id);
        }
        // Duplicates are acknowledged, too: a sender that goes back learns where to continue.
        let due = again || expected == packets || expected.is_multiple_of(self.rules.ack_packets);
        if due && purpose == Purpose::Data {
            Self::answer(net, id, Header::Acknowledgement(expected));
        }
    }

    fn on_ack(net: &mut Net<'_, GoBackN>, id: FlowId, before: u32) {
        let flow = net.flow_mut(id);
        let ends = &mut flow.state;
        if before <= ends.acked {
            return;
        }
        ends.acked = before;
        ends.next = ends.next.max(before);
        if before == flow.packets {
            Self::settle(net, id);
        }
    }

    fn settle(net: &mut Net<'_, GoBackN>, id: FlowId) {
        if !std::mem::replace(&mut net.flow_mut(id).state.done, true) {
            net.settle(id);
        }
    }
}

impl Transport for GoBackN {
    type Flow = Ends;
    type Header = Header;
    type Queue = DropTail;
    type Parameters = RoceConfig;
    const PACES: bool = true;

    fn new(config: &FabricConfig, _layout: &Layout) -> GoBackN {
        GoBackN { rules: *config.of::<RoceConfig>(), memory_access: config.memory_access }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<RoceConfig>().header
    }

    fn stack() -> Ps {
        ROCE_STACK
    }

    fn queue(&self, kind: PortKind, _seed: u64) -> DropTail {
        let limit_bytes = kind.queue_limit_bytes(self.rules.buffer.0);
        DropTail { limit_bytes, ..DropTail::ENDLESS }
    }

    fn start(&mut self, net: &mut Net<'_, GoBackN>, flow: FlowId) {
        net.flow_mut(flow).state = Ends::default();
        Self::pump(net, flow);
    }

    fn on_left(&mut self, net: &mut Net<'_, GoBackN>, left: Left) {
        if !net.flow(left.flow).state.done {
            net.arm(left.flow, left.start + left.line);
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, GoBackN>, id: FlowId) {
        let flow = net.flow_mut(id);
        let sent = std::mem::take(&mut flow.state.waiting);
        if flow.state.next == flow.packets {
            if sent {
                let request = flow.purpose != Purpose::Data;
                let access = if request { self.memory_access } else { Ps::ZERO };
                let deadline = net.now() + self.rules.timeout + access;
                return net.arm(id, deadline);
            }
            flow.state.next = flow.state.acked;
            net.count_again(0, 1);
        }
        Self::pump(net, id);
    }

    fn on_answered(&mut self, net: &mut Net<'_, GoBackN>, request: FlowId) {
        Self::settle(net, request);
    }

    fn on_packet(&mut self, net: &mut Net<'_, GoBackN>, packet: &Packet<Header>) {
        match packet.header {
            Header::Data(position) => self.on_data(net, packet.flow, position),
            Header::Acknowledgement(before) => Self::on_ack(net, packet.flow, before),
            Header::Missing(expected) => {
                let flow = net.flow_mut(packet.flow);
                // An answer that was overtaken by a later one is ignored.
                if expected >= flow.state.acked {
                    flow.state.acked = expected;
                    flow.state.next = expected;
                    Self::pump(net, packet.flow);
                }
            }
        }
    }

    fn feedback_packets(config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        packets.div_ceil(config.of::<RoceConfig>().ack_packets.into())
    }
}
