//! Clio's transport and memory node (ASPLOS 2022) on the packet network.
//!
//! Requests need no connection; each packet of a request is executed alone, in any order, and the
//! response is the acknowledgement. Clients hold all state of the transport. Their windows and
//! retries come from `ethermem_clio::transport`, which `udp:` pools run; memory nodes translate
//! with its page table and TLB.

mod client;
mod config;
mod node;

pub use config::{CLIO_STACK, ClioConfig};

use ethermem_engine::FabricConfig;
use ethermem_engine::topology::{Layout, PortKind};
use ethermem_frames::{
    DropTail, End, FlowId, Net, Outgoing, Packet, PacketFabric, Path, Purpose, Received, Transport,
};
use ethermem_units::{Bytes, Ns, Ps};
use ethermem_workload::{Kind, NodeIndex};

use client::{Clients, Try};
use node::{MemoryNode, Work};

/// Clio on the packet network.
pub type Clio = PacketFabric<Hosts>;

/// The transport, clients and memory nodes.
pub struct Hosts {
    rules: ClioConfig,
    memory_access: Ps,
    seed: u64,
    clients: Clients,
    /// The memory nodes, by node; a node becomes one at its first request.
    nodes: Vec<Option<Box<MemoryNode>>>,
}

/// A message, or the response to one.
#[derive(Debug, Default)]
pub struct Ends {
    /// Number of packets that carry its data: each is a request of its own.
    parts: u32,
    /// The first part that was not sent.
    next: u32,
    tries: Vec<Try>,
    answered: Received,
    /// The time at which it is checked.
    look: Ns,
    /// True if all parts were answered; in a response, if all of it has arrived.
    done: bool,
    /// The parts that the memory node has executed.
    executed: Received,
    /// Parts of a read that memory has answered before the response is opened.
    read: Vec<Header>,
    /// The response of a request, or the request of a response, once it exists.
    other: Option<FlowId>,
}

impl Ends {
    fn reset(&mut self, parts: u32) {
        self.parts = parts;
        self.next = 0;
        self.tries.clear();
        self.answered.reset(parts);
        self.look = Ns(u64::MAX);
        self.done = false;
        self.executed.reset(parts);
        self.read.clear();
        self.other = None;
    }
}

/// The header of a packet: the part of its message that it is or answers, and the try.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    part: u32,
    attempt: u8,
}

impl Hosts {
    /// Handles a request that is whole at the memory node.
    fn on_request(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        let flow = net.flow(packet.flow);
        let work = Work {
            flow: packet.flow,
            generation: flow.generation,
            part: packet.header.part,
            attempt: packet.header.attempt,
        };
        let at = packet.destination;
        let (rules, seed) = (&self.rules, self.seed ^ u64::from(at));
        let node = self.nodes[usize::from(at)]
            .get_or_insert_with(|| Box::new(MemoryNode::new(rules, seed)));
        let bytes = packet.frame.line_bytes();
        let leaves = node.enter(rules, net.now(), bytes, self.memory_access, work);
        net.wake(End::Destination, at, leaves);
    }

    /// Executes a request that has passed the fast path.
    fn execute(&mut self, net: &mut Net<'_, Hosts>, at: NodeIndex, work: Work) {
        let Work { flow: id, part, attempt, .. } = work;
        let flow = net.flow_mut(id);
        if flow.generation != work.generation || flow.state.done {
            return;
        }
        let new = flow.state.executed.insert(part);
        let executed = flow.state.executed.count();
        match flow.purpose {
            Purpose::Data => {
                if new && executed == flow.state.parts {
                    net.deliver(id);
                }
                let header = Header { part, attempt };
                net.send(id, Outgoing { from: End::Destination, data_bytes: 0, rank: 0, header });
            }
            // The network opens the response when memory has answered.
            Purpose::Request { .. } if new && executed == 1 => {
                flow.state.read.push(Header { part, attempt });
                net.deliver(id);
            }
            Purpose::Request { .. } => {
                let node = self.nodes[usize::from(at)].as_mut().expect("it was asked");
                let read = node.read(net.now(), self.memory_access, work);
                net.wake(End::Destination, at, read);
            }
        }
    }

    /// Answers a later part of a read, after memory has answered.
    fn respond(net: &mut Net<'_, Hosts>, work: Work) {
        let request = net.flow_mut(work.flow);
        if request.generation != work.generation || request.state.done {
            return;
        }
        let header = Header { part: work.part, attempt: work.attempt };
        match request.state.other {
            Some(response) => Self::answer(net, response, header),
            None => request.state.read.push(header),
        }
    }

    fn answer(net: &mut Net<'_, Hosts>, response: FlowId, header: Header) {
        let data_bytes = net.data_bytes(response, header.part);
        net.send(response, Outgoing { from: End::Source, data_bytes, rank: 0, header });
    }

    /// Handles an answer that is whole at the client.
    fn on_answer(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        let flow = net.flow(packet.flow);
        let asked = flow.state.other.filter(|_| flow.purpose == Purpose::Data);
        let request = asked.unwrap_or(packet.flow);
        // A repeated response may arrive when the request's entry is already reused.
        if !flow.state.done && self.clients.on_answer(net, request, packet.header) {
            if asked.is_some() {
                net.flow_mut(packet.flow).state.done = true;
                net.deliver(packet.flow);
                net.settle(packet.flow);
            }
            net.settle(request);
        }
        self.clients.go_on(net, packet.destination, packet.source);
    }
}

impl Transport for Hosts {
    type Flow = Ends;
    type Header = Header;
    type Queue = DropTail;
    type Parameters = ClioConfig;

    fn new(config: &FabricConfig, layout: &Layout) -> Hosts {
        let rules = *config.of::<ClioConfig>();
        let path = Path::of::<Hosts>(config, layout);
        let access = rules.clock * config.packet.mtu.0.div_ceil(rules.width.0);
        let round_trip = path.round_trip + access + config.memory_access;
        let product = round_trip.0.div_ceil(path.packet_time.0) as u32;
        let in_flight = round_trip * 2 + rules.queueing_target;
        let carried = Bytes(in_flight.0 / config.link.block_time().0 * 8);
        Hosts {
            rules,
            memory_access: config.memory_access,
            seed: 0,
            clients: Clients::new(
                rules,
                rules.window_initial.unwrap_or(product),
                rules.incast.unwrap_or(carried),
                layout.nodes(),
            ),
            nodes: (0..layout.nodes()).map(|_| None).collect(),
        }
    }

    fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn header_bytes(config: &FabricConfig) -> Bytes {
        config.of::<ClioConfig>().header
    }

    fn stack() -> Ps {
        CLIO_STACK
    }

    fn queue(&self, kind: PortKind, _seed: u64) -> DropTail {
        let limit_bytes = kind.queue_limit_bytes(self.rules.buffer.0);
        DropTail { limit_bytes, ..DropTail::ENDLESS }
    }

    fn start(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let request = net.flow(id).request;
        if !net.flow(id).is_response() {
            return self.clients.begin(net, id);
        }
        let asked = &mut net.flow_mut(request).state;
        asked.other = Some(id);
        let read = std::mem::take(&mut asked.read);
        let own = &mut net.flow_mut(id).state;
        own.other = Some(request);
        own.done = false;
        for &header in &read {
            Self::answer(net, id, header);
        }
        net.flow_mut(request).state.read = read;
    }

    fn on_packet(&mut self, net: &mut Net<'_, Hosts>, packet: &Packet<Header>) {
        let flow = net.flow(packet.flow);
        let answers = flow.purpose == Purpose::Data && flow.state.other.is_some();
        if answers || packet.destination == flow.source {
            self.on_answer(net, packet);
        } else {
            self.on_request(net, packet);
        }
    }

    fn on_timer(&mut self, net: &mut Net<'_, Hosts>, flow: FlowId) {
        self.clients.on_timer(net, flow);
    }

    fn on_wake(&mut self, net: &mut Net<'_, Hosts>, _end: End, at: NodeIndex) {
        let now = net.now();
        let node = |hosts: &mut Hosts| {
            hosts.nodes[usize::from(at)].as_mut().map(|node| (node.leaves(now), node.has_read(now)))
        };
        while let Some((left, read)) = node(self).filter(|(left, read)| left.or(*read).is_some()) {
            if let Some(work) = left {
                self.execute(net, at, work);
            }
            if let Some(work) = read {
                Self::respond(net, work);
            }
        }
    }

    /// The client waits for the whole response, so nothing ends here.
    fn on_answered(&mut self, _net: &mut Net<'_, Hosts>, _request: FlowId) {}

    fn feedback_packets(_config: &FabricConfig, kind: Kind, packets: u64) -> u64 {
        match kind {
            Kind::Write => packets,
            // Every read has the first one; the others are additional.
            Kind::Read | Kind::ReadModifyWrite => packets - 1,
        }
    }
}
