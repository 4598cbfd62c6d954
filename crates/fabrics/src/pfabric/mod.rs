//! pFabric: switches send and keep the packets of the message with the fewest remaining ones. Hosts
//! send at line rate and repair losses by timeouts (SIGCOMM 2013).

mod config;
mod queue;
mod sender;

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_frames::{
    End, FlowId, Net, Outgoing, Packet, PacketFabric, Path, Purpose, Received, Transport,
};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::Kind;

pub use config::PfabricConfig;

pub use queue::PriorityQueue;
use sender::{Retry, Rules, Sender};

/// pFabric on the packet network.
pub type Pfabric = PacketFabric<Hosts>;

/// The transport.
pub struct Hosts {
    rules: Rules,
    buffer_bytes: u64,
    acknowledgement_rank: u32,
    timeout: Ps,
    /// Time of a memory node before it answers a request.
    memory_access: Ps,
    /// Data bytes after which a window that began small has reached the path's.
    ramp: Bytes,
}

/// Both ends of a flow.
#[derive(Debug, Default)]
pub struct Ends {
    sender: Sender,
    received: Received,
}

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// The packet at this position.
    Data(u32),
    /// Asks which packets have arrived.
    Probe,
    /// All packets before this position have arrived, and the packet that is answered.
    Acknowledgement(u32, Option<u32>),
}

/// Time that the queues of the longest path take to drain, all of them full.
fn full_queues(layout: &Layout, buffer_bytes: u64) -> Ps {
    let hosts = &[PortKind::HostUp, PortKind::HostDown][..];
    let core = &[PortKind::LeafUp, PortKind::SpineDown][..];
    let blocks = Bytes(buffer_bytes).to_blocks().0;
    let kinds = hosts.iter().chain(if layout.spines() > 0 { core } else { &[] });
    kinds.map(|&kind| layout.slot(kind) * blocks).sum()
}

impl Hosts {
    fn pump(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        while let Some((position, again)) = net.flow_mut(flow).state.sender.take(&self.rules) {
            net.count_again(u64::from(again), 0);
            let data_bytes = net.data_bytes(flow, position);
            Self::send(net, flow, data_bytes, Header::Data(position));
        }
    }

    /// Sends a packet with the priority of its flow's remaining bytes.
    fn send(net: &mut Net<'_, Hosts>, flow: FlowId, data_bytes: u64, header: Header) {
        let rank = match net.flow(flow).purpose {
            Purpose::Request { .. } => 0,
            // The rank is in bytes: whole packets, or the last one alone.
            Purpose::Data => {
                let opened = net.flow(flow);
                let whole = u64::from(opened.state.sender.remaining()) * net.data_bytes(flow, 0);
                whole.min(opened.bytes) as u32
            }
        };
        net.send(flow, Outgoing { from: End::Source, data_bytes, rank, header });
    }

    fn rearm(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        let request = net.flow(flow).purpose != Purpose::Data;
        let access = if request { self.memory_access } else { Ps::ZERO };
        let deadline = net.now() + self.timeout + access;
        net.arm(flow, deadline);
    }

    fn on_data(&self, net: &mut Net<'_, Hosts>, flow: FlowId, position: Option<u32>) {
        let opened = net.flow_mut(flow);
        let (purpose, packets) = (opened.purpose, opened.packets);
        let received = &mut opened.state.received;
        let new = position.is_some_and(|position| received.insert(position));
        let complete = new && received.count() == packets;
        let before = received.first_missing();
        if complete {
            net.deliver(flow);
        }
        if purpose == Purpose::Data {
            let header = Header::Acknowledgement(before, position);
            let rank = self.acknowledgement_rank;
            net.send(flow, Outgoing { from: End::Destination, data_bytes: 0, rank, header });
        }
    }

    fn on_ack(
        &mut self,
        net: &mut Net<'_, Hosts>,
        flow: FlowId,
        before: u32,
        position: Option<u32>,
    ) {
        let sender = &mut net.flow_mut(flow).state.sender;
        if sender.done() {
            return;
        }
        let advanced = sender.acknowledge(before, position, &self.rules);
        if sender.done() {
            net.settle(flow);
            return;
        }
        if advanced {
            self.rearm(net, flow);
        }
        self.pump(net, flow);
    }
}

impl Transport for Hosts {
    type Flow = Ends;
    type Header = Header;
    type Queue = PriorityQueue;
    type Parameters = PfabricConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Hosts {
        let own = &config.of::<PfabricConfig>();
        let path = Path::of::<Hosts>(config, layout);
        let buffer_bytes = own.buffer.map_or(2 * path.line_bytes, |buffer| buffer.0);
        let full_queues = full_queues(layout, buffer_bytes);
        let initial = own.window_packets_initial.unwrap_or(path.packets);
        let max = own.window_packets_max.unwrap_or(initial + initial / 4);
        Hosts {
            rules: Rules {
                window_initial: initial.into(),
                window_max: max.max(initial).into(),
                probe_after: own.probe_after,
            },
            buffer_bytes,
            acknowledgement_rank: if own.acknowledgements_first { 0 } else { u32::MAX },
            timeout: own.timeout.unwrap_or(path.round_trip + full_queues),
            memory_access: config.memory_access,
            ramp: Bytes(2 * path.data.0),
        }
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<PfabricConfig>().header
    }

    fn queue(&self, _kind: PortKind, _seed: u64) -> PriorityQueue {
        PriorityQueue::new(self.buffer_bytes)
    }

    fn start(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        let opened = net.flow_mut(flow);
        let packets = opened.packets;
        opened.state.sender.reset(packets, &self.rules);
        opened.state.received.reset(packets);
        self.pump(net, flow);
        self.rearm(net, flow);
    }

    fn on_packet(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        match packet.header {
            Header::Data(position) => self.on_data(net, packet.flow, Some(position)),
            Header::Probe => self.on_data(net, packet.flow, None),
            Header::Acknowledgement(before, position) => {
                self.on_ack(net, packet.flow, before, position);
            }
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        net.count_again(0, 1);
        let opened = net.flow_mut(flow);
        let request = opened.purpose != Purpose::Data;
        match opened.state.sender.time_out(&self.rules) {
            // A request is as short as a probe, and only its response answers it.
            Retry::Probe if !request => Self::send(net, flow, 0, Header::Probe),
            Retry::Probe => Self::send(net, flow, 0, Header::Data(0)),
            Retry::Data => self.pump(net, flow),
        }
        self.rearm(net, flow);
    }

    fn feedback_packets(_config: &FabricConfig, _kind: Kind, packets: u64) -> u64 {
        packets
    }

    fn steady_after(&self) -> Bytes {
        self.ramp
    }
}
