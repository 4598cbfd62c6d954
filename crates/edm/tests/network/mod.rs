//! A small network in virtual time: hosts with real memories, links that keep order, and a switch.
//! The switch grants in random order and random sizes, as far as the configured order allows.

#[path = "../support/rng.rs"]
mod rng;

use std::collections::{BTreeMap, VecDeque};

use ethermem_edm::{
    Action, Address, Chunk, EdmConfig, Event, Grant, Host, HostConfig, Memory, MemoryRequest,
    MessageId, NodeId, Op, Order, Outbound, Request, StatusCode, SubmitError, Token,
};
use ethermem_units::{Bytes, Ps};
use rng::Rng;

/// Size of each compute node's own region in every memory. Since regions are separate, the order of
/// a node's requests alone decides what they read.
pub(crate) const REGION_BYTES: u64 = 2048;

/// Maximum bytes of a corrupted demand at the switch, so that a run ends.
const LEFT_MAX: u64 = 5_000;

/// The fault rates of a link, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) drop: u64,
    pub(crate) duplicate: u64,
    pub(crate) corrupt: u64,
}

/// An item on a link, with its bytes and the request that it truly belongs to.
#[derive(Clone)]
struct Flying {
    what: What,
    data: Vec<u8>,
    origin: Option<Token>,
}

#[derive(Clone, Copy)]
enum What {
    Out(Outbound),
    Grant(Grant),
}

/// A demand at the switch, which is granted in part, or a request that is not released.
#[derive(Clone)]
struct Demand {
    data_source: NodeId,
    data_destination: NodeId,
    id: MessageId,
    left: u64,
    request: Option<(MemoryRequest, Option<Token>)>,
}

type Served = (Vec<u8>, Option<Token>);

/// The record of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) read: Vec<u8>,
    pub(crate) event: Option<Event>,
    /// The first and the last step in which it acted at the memory node.
    pub(crate) first_effect: Option<u64>,
    pub(crate) last_effect: Option<u64>,
    pub(crate) bytes_stored: u64,
    pub(crate) served: u32,
}

pub(crate) struct Network {
    pub(crate) hosts: Vec<Host>,
    pub(crate) memories: Vec<Memory<Vec<u8>>>,
    pub(crate) records: BTreeMap<Token, Record>,
    pub(crate) now: Ps,
    pub(crate) faults: Faults,
    pub(crate) rng: Rng,
    notifications_max: u8,
    order: Order,
    chunk: u64,
    step: u64,
    up: Vec<VecDeque<Flying>>,
    down: Vec<VecDeque<Flying>>,
    demands: Vec<Demand>,
    /// Number of grants given to a host since it last had nothing to transmit: the switch does not
    /// run far ahead of a link.
    backlog: Vec<usize>,
    /// The bytes read and their request, by memory node, compute node and id.
    responses: BTreeMap<(NodeId, NodeId, MessageId), Served>,
}

/// Byte `offset` of the data of the write with this token.
pub(crate) fn pattern(token: Token, offset: u64) -> u8 {
    Rng(u64::from(token.0) << 32 | offset).next() as u8
}

impl Network {
    pub(crate) fn new(nodes: u16, edm: &EdmConfig, messages_max: usize, seed: u64) -> Network {
        let host =
            |node| Host::new(HostConfig { node: NodeId::at(node), nodes, edm, messages_max });
        let memory_bytes = usize::from(nodes) * REGION_BYTES as usize;
        Network {
            hosts: (0..nodes).map(host).collect(),
            memories: vec![Memory::new(vec![0; memory_bytes]); usize::from(nodes)],
            records: BTreeMap::new(),
            now: Ps::ZERO,
            faults: Faults::default(),
            rng: Rng(seed),
            notifications_max: edm.notifications_max,
            order: edm.order,
            chunk: edm.chunk.0,
            step: 0,
            up: vec![VecDeque::new(); usize::from(nodes)],
            down: vec![VecDeque::new(); usize::from(nodes)],
            demands: Vec::new(),
            backlog: vec![0; usize::from(nodes)],
            responses: BTreeMap::new(),
        }
    }

    pub(crate) fn submit(&mut self, node: NodeId, request: Request) -> Result<(), SubmitError> {
        let result = self.hosts[usize::from(node.number())].submit(self.now, request);
        if result.is_ok() {
            let record = match request.op {
                Op::Read { bytes } => vec![0; bytes.0 as usize],
                Op::ReadModifyWrite { .. } => vec![0; 8],
                Op::Write { .. } => Vec::new(),
            };
            let record = Record { read: record, ..Record::default() };
            assert!(self.records.insert(request.token, record).is_none(), "a token twice");
        }
        result
    }

    /// Performs one random action. Returns false if none was possible.
    pub(crate) fn step(&mut self) -> bool {
        self.step += 1;
        self.now += Ps(self.rng.next() % 1_000);
        let nodes = self.hosts.len();
        let first = self.rng.below(4 * nodes as u64) as usize;
        let happened = (0..4 * nodes).any(|turn| {
            let turn = (first + turn) % (4 * nodes);
            let node = turn % nodes;
            match turn / nodes {
                0 => self.transmit(node),
                1 => self.switch_receives(node),
                2 => self.switch_decides(),
                _ => self.host_receives(node),
            }
        });
        for node in 0..nodes {
            self.hosts[node].on_timer(self.now);
            self.collect(node);
        }
        happened
    }

    /// Polls the events of a host and checks the invariants that hold at any time.
    pub(crate) fn collect(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        while let Some(event) = host.poll_event() {
            let record = self.records.get_mut(&event.token()).expect("a token of ours");
            assert_eq!(record.event, None, "{event:?} is the second");
            record.event = Some(event);
        }
        for peer in (0..self.memories.len() as u16).map(NodeId::at) {
            assert!(host.notifications_active(peer) <= self.notifications_max);
            assert!(host.reads_active(peer) <= self.notifications_max);
        }
    }

    /// True if only a failure can end what is in flight.
    pub(crate) fn is_stuck(&self) -> bool {
        let idle = |host: &Host| host.next_timeout().is_none() && !host.has_outbound();
        let links = self.up.iter().chain(&self.down);
        self.demands.is_empty() && links.flatten().next().is_none() && self.hosts.iter().all(idle)
    }

    /// Lets every link fail and be repaired; the switch has forgotten everything.
    pub(crate) fn fail_all(&mut self) {
        self.up.iter_mut().chain(&mut self.down).for_each(VecDeque::clear);
        self.demands.clear();
        for node in 0..self.hosts.len() {
            self.hosts[node].fail_link(self.now);
            self.collect(node);
            self.hosts[node].restore_link();
        }
    }

    /// Adds a demand. The demands of one pair and kind that the switch holds never exceed X.
    fn add_demand(&mut self, demand: Demand) {
        let write = demand.request.is_none();
        let alike = |other: &&Demand| {
            (other.data_source, other.data_destination, other.id.is_write())
                == (demand.data_source, demand.data_destination, write)
        };
        let alike: Vec<_> = self.demands.iter().filter(alike).collect();
        if self.faults.duplicate + self.faults.corrupt == 0 {
            assert!(alike.iter().all(|other| other.id != demand.id), "an id twice");
            assert!(alike.len() < usize::from(self.notifications_max), "more than X demands");
        }
        self.demands.push(demand);
    }

    fn transmit(&mut self, node: usize) -> bool {
        let Some(outbound) = self.hosts[node].poll_outbound(self.now) else {
            return std::mem::take(&mut self.backlog[node]) > 0;
        };
        let (mut data, mut origin) = (Vec::new(), None);
        if let Outbound::Chunk { chunk, token } = outbound {
            let Chunk { peer, id, offset, bytes, .. } = chunk;
            let span = offset.0..offset.0 + bytes.0;
            if let Some(token) = token {
                assert_eq!(self.records[&token].event, None, "its buffer is the caller's again");
                data = span.map(|offset| pattern(token, offset)).collect();
                origin = Some(token);
            } else {
                let key = (NodeId::at(node as u16), peer, id);
                let (bytes, token) = &self.responses[&key];
                data = bytes[span.start as usize..span.end as usize].to_vec();
                origin = *token;
            }
        }
        if let Outbound::Request(request) = outbound {
            // Only the network's own records find a request's token, by its address.
            origin = Some(Token((request.address.0 >> 32) as u32));
        }
        let flying = Flying { what: What::Out(outbound), data, origin };
        self.put(true, node, flying);
        true
    }

    fn switch_receives(&mut self, node: usize) -> bool {
        let Some(flying) = self.up[node].pop_front() else {
            return false;
        };
        let source = NodeId::at(node as u16);
        let What::Out(outbound) = flying.what else { unreachable!("hosts send no grants") };
        let destination = outbound.peer();
        if usize::from(destination.number()) >= self.hosts.len() {
            return true;
        }
        match outbound {
            Outbound::Notify(notification) => self.add_demand(Demand {
                data_source: source,
                data_destination: destination,
                id: notification.id,
                left: notification.bytes.0,
                request: None,
            }),
            Outbound::Request(request) => self.add_demand(Demand {
                data_source: destination,
                data_destination: source,
                id: request.id,
                left: request.bytes.0.min(LEFT_MAX),
                request: Some((request, flying.origin)),
            }),
            Outbound::Chunk { .. } | Outbound::Status(_) => {
                let what = What::Out(outbound.sent_by(source));
                self.put(false, usize::from(destination.number()), Flying { what, ..flying });
            }
        }
        true
    }

    /// Grants a part of a demand, or releases a request.
    fn switch_decides(&mut self) -> bool {
        if self.demands.is_empty() {
            return false;
        }
        let index = self.rng.below(self.demands.len() as u64) as usize;
        let index = if self.order == Order::Strict { self.first_of_pair(index) } else { index };
        let source = usize::from(self.demands[index].data_source.number());
        if self.backlog[source] + self.down[source].len() > 16 {
            return false;
        }
        let chunk = self.chunk;
        let demand = &mut self.demands[index];
        let Demand { data_source, data_destination, id, left, .. } = *demand;
        if let Some((request, origin)) = demand.request.take() {
            demand.left -= left.min(chunk);
            let what = What::Out(Outbound::Request(request).sent_by(data_destination));
            let flying = Flying { what, data: Vec::new(), origin };
            self.put(false, usize::from(data_source.number()), flying);
        } else {
            let bytes = 1 + self.rng.next() % left.min(chunk);
            self.demands[index].left -= bytes;
            let grant = Grant { peer: data_destination, id, bytes: Bytes(bytes) };
            let flying = Flying { what: What::Grant(grant), data: Vec::new(), origin: None };
            self.put(false, usize::from(data_source.number()), flying);
        }
        if self.demands[index].left == 0 {
            self.demands.remove(index);
        }
        true
    }

    /// The first demand that the pair's order allows, up to `index`. Requests and notifications of
    /// a compute and a memory node keep their order, and responses keep theirs.
    fn first_of_pair(&self, index: usize) -> usize {
        let pair = |demand: &Demand| {
            let (from, to) = (demand.data_source, demand.data_destination);
            let write = demand.id.is_write();
            let released = !write && demand.request.is_none();
            let (compute, memory) = if write { (from, to) } else { (to, from) };
            (compute, memory, released)
        };
        let of = pair(&self.demands[index]);
        self.demands.iter().position(|demand| pair(demand) == of).expect("at least itself")
    }

    fn host_receives(&mut self, node: usize) -> bool {
        let Some(Flying { what, data, origin }) = self.down[node].pop_front() else {
            return false;
        };
        let now = self.now;
        let host = &mut self.hosts[node];
        let action = match what {
            What::Grant(grant) => {
                self.backlog[node] += 1;
                host.on_grant(now, grant);
                None
            }
            What::Out(Outbound::Request(request)) => host.on_request(now, request),
            What::Out(Outbound::Chunk { chunk, .. }) => host.on_chunk(now, chunk),
            What::Out(Outbound::Status(status)) => {
                host.on_status(now, status);
                None
            }
            What::Out(Outbound::Notify(_)) => unreachable!("the switch keeps notifications"),
        };
        match action {
            Some(Action::Serve(request)) => self.serve(node, request, origin),
            Some(Action::Store(chunk)) => self.store(node, &chunk, &data, origin),
            Some(Action::Deliver { token, offset, bytes }) => {
                let record = self.records.get_mut(&token).expect("a token of ours");
                assert_eq!(record.event, None, "delivered to {token:?}, which had ended");
                if self.faults.corrupt == 0 {
                    assert_eq!(Some(token), origin, "delivered to another message");
                    let at = offset.0 as usize..(offset.0 + bytes.0) as usize;
                    record.read[at].copy_from_slice(&data);
                }
            }
            None => {}
        }
        true
    }

    fn serve(&mut self, node: usize, request: MemoryRequest, origin: Option<Token>) {
        let MemoryRequest { peer, id, bytes, modify, .. } = request;
        let address = Address(request.address.0 & 0xffff_ffff);
        let memory = &mut self.memories[node];
        let result = match modify {
            Some(modify) => {
                memory.modify(address, modify).map(|done| done.old.to_le_bytes().to_vec())
            }
            None => memory.read(address, bytes.0 as usize).map(<[u8]>::to_vec),
        };
        let data = match result {
            Ok(data) => data,
            Err(error) => {
                self.hosts[node].refuse(peer, id, StatusCode::from(error));
                Vec::new()
            }
        };
        self.effect(origin);
        self.responses.insert((NodeId::at(node as u16), peer, id), (data, origin));
    }

    fn store(&mut self, node: usize, chunk: &Chunk, data: &[u8], origin: Option<Token>) {
        let address = Address(chunk.address.0 & 0xffff_ffff);
        let code = match self.memories[node].write(address, data) {
            Ok(()) => StatusCode::Ok,
            Err(error) => StatusCode::from(error),
        };
        self.hosts[node].on_written(self.now, chunk, code);
        self.effect(origin);
        if let Some(record) = origin.and_then(|token| self.records.get_mut(&token)) {
            record.bytes_stored += data.len() as u64;
        }
    }

    fn effect(&mut self, origin: Option<Token>) {
        if let Some(record) = origin.and_then(|token| self.records.get_mut(&token)) {
            record.first_effect.get_or_insert(self.step);
            record.last_effect = Some(self.step);
        }
    }

    /// Puts an item on a link, subject to its faults.
    fn put(&mut self, up: bool, node: usize, mut flying: Flying) {
        let Faults { drop, duplicate, corrupt } = self.faults;
        if self.rng.below(100) < drop {
            return;
        }
        if self.rng.below(100) < corrupt {
            flying.what = self.corrupt(flying.what);
        }
        let copies = 1 + usize::from(self.rng.below(100) < duplicate);
        let link = if up { &mut self.up[node] } else { &mut self.down[node] };
        for _ in 0..copies {
            link.push_back(flying.clone());
        }
    }

    /// Sets one field to an arbitrary value.
    fn corrupt(&mut self, mut what: What) -> What {
        let anything = self.rng.next();
        let node = NodeId::at(anything as u16 % 5);
        let id = MessageId(anything as u8);
        let bytes = Bytes(if anything & 1 << 40 == 0 { anything } else { anything % 300 });
        let flag = anything & 1 << 41 == 0;
        match (&mut what, self.rng.below(3)) {
            (What::Grant(grant), 0) => grant.peer = node,
            (What::Grant(grant), 1) => grant.id = id,
            (What::Grant(grant), _) => grant.bytes = bytes,
            (What::Out(Outbound::Request(request)), 0) => request.peer = node,
            (What::Out(Outbound::Request(request)), 1) => request.id = id,
            (What::Out(Outbound::Request(request)), _) => request.bytes = bytes,
            (What::Out(Outbound::Status(status)), 0) => status.member = anything as u8,
            (What::Out(Outbound::Status(status)), 1) => status.id = id,
            (What::Out(Outbound::Status(status)), _) => status.peer = node,
            (What::Out(Outbound::Chunk { chunk, .. }), 0) => chunk.id = id,
            (What::Out(Outbound::Chunk { chunk, .. }), 1) => chunk.last = flag,
            (What::Out(Outbound::Chunk { chunk, .. }), _) => chunk.offset = bytes,
            (What::Out(Outbound::Notify(notification)), _) => {
                notification.bytes = Bytes(1 + anything % LEFT_MAX);
            }
        }
        what
    }
}
