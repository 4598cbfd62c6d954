//! EDM: the host, switch and scheduler of `ethermem-edm`, on simulated links.
//!
//! The state machines decide; this file gives them time. It adds the stage latencies of
//! [`ethermem_edm::budget`], the serialisation of every item, and the free slots of its
//! transmitter. A chunk moves in one event per hop.

mod bound;
mod config;
mod flight;
mod switch;
mod tracks;

use std::collections::VecDeque;

use ethermem_edm::{
    Action, Address, Event as HostEvent, FailReason, Host, HostConfig, MESSAGE_BYTES_MAX, NodeId,
    Op, Request, RmwOperation, Status, StatusCode, SubmitError, Switch, Token, WriteKind,
    budget as edm,
};
use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Loss, Sim, Violation};
use ethermem_engine::metrics::{FabricStats, Matching};
use ethermem_engine::output::Timeline;
use ethermem_engine::topology::{Sharing, Star};
use ethermem_units::{Bytes, Cycles, Ps};
use ethermem_wire::ChunkKind;
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use ethermem_engine::topology::LinkTiming;
use flight::{Flights, Item, Payload};
use tracks::Tracks;

pub use config::{EdmParameters, scheduler_clock};
pub use ethermem_edm::EdmConfig;

/// Maximum requests that a host holds; further ones wait in the application.
const HOST_MESSAGES_MAX: usize = 4_096;

/// Number of messages of a run before an address is reused: 2^40 B further, long after it is free.
const ADDRESS_SLOTS: u64 = 1 << 18;

/// EDM's hosts and switch, on simulated links.
pub struct Edm {
    delays: Delays,
    hosts: Vec<Host>,
    switch: Switch,
    links: Star,
    /// Items on links or in pipelines, by index.
    flights: Flights,
    nodes: Vec<Node>,
    chunk: Bytes,
    step_at: Ps,
    granted: Bytes,
    delivered: Bytes,
    queue_blocks_bound: u64,
    violation: Option<String>,
    tracks: Option<Tracks>,
    /// The message of each address that a request names, if the run is watched.
    handles: Vec<Handle>,
}

/// The state of a node, beside its host.
#[derive(Default)]
struct Node {
    /// Requests for which the host had no room.
    backlog: VecDeque<Request>,
    /// The time at which the last grant leaves the grant queue: grants leave in order.
    grants_until: Ps,
    timer_set: bool,
    /// True if an event at the next start of an item on its downlink is scheduled.
    departure_set: bool,
    /// The source of each chunk on its way here whose arrival is an event.
    arriving: Vec<u16>,
}

impl Node {
    /// Records the arrival of a chunk of `source`.
    #[inline]
    fn arrived(&mut self, source: u16) {
        let place = self.arriving.iter().position(|&from| from == source);
        self.arriving.swap_remove(place.expect("a chunk that arrives was on its way"));
    }
}

/// The position of an item, or a due action.
#[derive(Clone, Copy)]
pub enum Event {
    /// A control message is whole, identified and inserted at the switch.
    AtSwitch(u32),
    /// The first block of a chunk, or a control message, is at its egress transmitter.
    AtEgress(u32),
    /// An item is whole at its host, and processed.
    AtHost(u32),
    /// A matching iteration is due.
    Step,
    /// The first item that waits for a downlink starts, unless it was put off.
    Departure(NodeIndex),
    /// A read timer may have expired.
    Timer(NodeIndex),
}

/// Sums of the budget's stages between two events.
struct Delays {
    hop: Ps,
    generate_request: Ps,
    insert: Ps,
    generate_grant: Ps,
    forward: Ps,
    grant_to_data: Ps,
    request_to_data: Ps,
    receive_data: Ps,
}

impl Delays {
    fn new(config: &FabricConfig) -> Delays {
        let timing = LinkTiming::of(config);
        let sum = |stages: &[Cycles]| timing.cycles(stages.iter().copied().sum());
        Delays {
            hop: timing.hop(edm::PCS),
            generate_request: sum(&[edm::GENERATE_REQUEST]),
            insert: sum(&[edm::IDENTIFY, edm::INSERT]),
            generate_grant: sum(&[edm::GENERATE_GRANT]),
            forward: sum(&[edm::FORWARD]),
            grant_to_data: sum(&[edm::RECEIVE_GRANT, edm::GRANT_QUEUE, edm::GENERATE_DATA]),
            request_to_data: sum(&[edm::RECEIVE_REQUEST, edm::GRANT_QUEUE, edm::GENERATE_DATA])
                + config.memory_access,
            receive_data: sum(&[edm::RECEIVE_DATA]),
        }
    }
}

impl Edm {
    /// Transmits everything that a host has ready.
    #[inline]
    fn pump(&mut self, sim: &mut Sim<Event>, node: NodeIndex) {
        let now = sim.now();
        while let Some(outbound) = self.hosts[usize::from(node)].poll_outbound(now) {
            let item = Item::from_host(node, outbound);
            let (blocks, _) = item.size();
            let Edm { links, flights, delays, tracks, .. } = self;
            let link = links.up(node);
            let name = (flights.next(), item.stream(item.to));
            let start = link.send_in(now, item.size(), name, |name, by| flights.put_off(name, by));
            if let Payload::Chunk(_, Some(token)) = item.payload {
                sim.leaves(token.0, start);
            }
            if let Some(tracks) = tracks {
                tracks.up(sim.timeline(), &item, start, start + link.tail(blocks));
            }
            let first = start + delays.hop;
            if item.data > 0 {
                let due = first + delays.forward;
                sim.at(due, Event::AtEgress(flights.insert(Item { due, ..item })));
            } else {
                let due = first + link.tail(blocks) + delays.insert;
                sim.at(due, Event::AtSwitch(flights.insert(Item { due, ..item })));
            }
        }
        self.settle(sim, node);
    }

    /// Processes the requests that ended at a host.
    fn settle(&mut self, sim: &mut Sim<Event>, node: NodeIndex) {
        while let Some(event) = self.hosts[usize::from(node)].poll_event() {
            match event {
                HostEvent::ReadDone { token }
                | HostEvent::RmwDone { token }
                | HostEvent::WriteApplied { token } => sim.finish(token.0, sim.now()),
                // A posted write ends when its data is at the memory node.
                HostEvent::WriteSent { .. } => {}
                HostEvent::Failed { token, why } => {
                    let timeout = why == FailReason::Timeout;
                    sim.lose(token.0, if timeout { Loss::Timeout } else { Loss::Fault });
                }
            }
            if let Some(request) = self.nodes[usize::from(node)].backlog.pop_front() {
                self.submit_to_host(sim, node, request);
            }
        }
    }

    fn submit_to_host(&mut self, sim: &mut Sim<Event>, node: NodeIndex, request: Request) {
        let host = &mut self.hosts[usize::from(node)];
        match host.submit(sim.now(), request) {
            Ok(()) => {
                let node_state = &mut self.nodes[usize::from(node)];
                if !node_state.timer_set
                    && let Some(at) = host.next_timeout()
                {
                    node_state.timer_set = true;
                    sim.at(at, Event::Timer(node));
                }
            }
            Err(SubmitError::Full) => {
                self.nodes[usize::from(node)].backlog.push_back(request);
            }
            Err(_) => sim.lose(request.token.0, Loss::Fault),
        }
    }

    fn at_host(&mut self, sim: &mut Sim<Event>, flight: u32) {
        let now = sim.now();
        let due = self.flights.get(flight).due;
        if due > now {
            sim.at(due, Event::AtHost(flight));
            return;
        }
        let item = self.flights.take(flight);
        let to = item.to;
        let host = &mut self.hosts[usize::from(to)];
        match item.payload {
            Payload::Chunk(chunk, token) => {
                self.nodes[usize::from(to)].arrived(item.from);
                self.delivered += chunk.bytes;
                if let Some(Action::Store(stored)) = host.on_chunk(now, chunk) {
                    host.on_written(now, &stored, StatusCode::Ok);
                    // A posted write ends when its last data is stored.
                    if let (Some(token), true) = (token, stored.last) {
                        sim.finish(token.0, now);
                    }
                }
            }
            // The memory itself is not simulated: its access time is in the delay.
            Payload::Request(request) => {
                if let Some(&handle) = self.handles.get(request.address_slot()) {
                    sim.at_memory(handle, now);
                }
                let _served = host.on_request(now, request.into());
            }
            Payload::Grant(grant) => host.on_grant(now, grant),
            Payload::Status(status) => {
                host.on_status(now, Status { peer: NodeId::at(item.from), ..status });
            }
            Payload::Notify(_) => unreachable!("a notification ends at the switch"),
        }
        self.pump(sim, to);
    }

    fn break_off(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}

impl Fabric for Edm {
    type Event = Event;
    type Parameters = EdmParameters;
    const FORGETS: bool = true;
    /// Maximum bytes that a length on the wire can state.
    const MESSAGE_BYTES_MAX: u64 = MESSAGE_BYTES_MAX.0;

    fn build(config: &FabricConfig, seed: u64) -> Edm {
        let nodes = config.nodes;
        let host = |node| {
            Host::new(HostConfig {
                node: NodeId::at(node),
                nodes,
                edm: config.of::<EdmParameters>(),
                messages_max: HOST_MESSAGES_MAX,
            })
        };
        let scheduler = bound::scheduler(config);
        Edm {
            queue_blocks_bound: bound::egress_blocks(
                &scheduler,
                config.of::<EdmParameters>().batching,
            ),
            delays: Delays::new(config),
            hosts: (0..nodes).map(host).collect(),
            switch: Switch::new(scheduler),
            links: Star::new(
                config,
                Sharing::in_phy(config.of::<EdmParameters>().arbitration),
                seed,
            ),
            flights: Flights::default(),
            nodes: (0..nodes).map(|_| Node::default()).collect(),
            chunk: config.of::<EdmParameters>().chunk,
            step_at: Ps::MAX,
            granted: Bytes(0),
            delivered: Bytes(0),
            violation: None,
            tracks: None,
            handles: Vec::new(),
        }
    }

    fn draw_on(&mut self, timeline: &mut Timeline) {
        self.tracks = Some(Tracks::new(timeline, self.hosts.len() as u16));
    }

    fn submit_delay(&self) -> Ps {
        self.delays.generate_request
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let op = match message.kind {
            Kind::Read => Op::Read { bytes: message.bytes },
            Kind::Write => Op::Write { bytes: message.bytes, kind: WriteKind::Posted },
            Kind::ReadModifyWrite => {
                Op::ReadModifyWrite { operation: RmwOperation::FetchAndAdd(1) }
            }
        };
        let slot = message.index % ADDRESS_SLOTS;
        if sim.is_watched() {
            let slot = slot as usize;
            self.handles.resize(self.handles.len().max(slot + 1), handle);
            self.handles[slot] = handle;
        }
        let request = Request {
            token: Token(handle),
            peer: NodeId::at(message.memory),
            // Every message has its own bytes of memory.
            address: Address(slot * MESSAGE_BYTES_MAX.0),
            op,
            fence: false,
        };
        self.submit_to_host(sim, message.compute, request);
        self.pump(sim, message.compute);
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::AtSwitch(flight) => self.at_switch(sim, flight),
            Event::AtEgress(flight) => self.at_egress(sim, flight),
            Event::AtHost(flight) => self.at_host(sim, flight),
            Event::Step => self.step(sim),
            Event::Departure(node) => {
                self.nodes[usize::from(node)].departure_set = false;
                self.on_departures(sim, node);
                self.schedule_step(sim);
            }
            Event::Timer(node) => {
                let host = &mut self.hosts[usize::from(node)];
                host.on_timer(sim.now());
                let next = host.next_timeout();
                self.nodes[usize::from(node)].timer_set = next.is_some();
                if let Some(at) = next {
                    sim.at(at, Event::Timer(node));
                }
                self.pump(sim, node);
            }
        }
    }

    fn period(&self) -> Bytes {
        self.chunk
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let chunk = config.of::<EdmParameters>().chunk;
        let chunks = bytes.0.div_ceil(chunk.0) as f64;
        let grant = ethermem_wire::GRANT_BLOCKS.0 as f64;
        let data = |kind| ethermem_wire::message_blocks(kind, bytes, chunk).0 as f64;
        match kind {
            Kind::Write => LinkBlocks {
                compute_uplink: ethermem_wire::NOTIFICATION_BLOCKS.0 as f64
                    + data(ChunkKind::PostedWrite),
                compute_downlink: grant * chunks,
                memory_uplink: 0.0,
                memory_downlink: data(ChunkKind::PostedWrite),
            },
            Kind::Read | Kind::ReadModifyWrite => {
                let request = flight::request_blocks(kind == Kind::ReadModifyWrite).0 as f64;
                LinkBlocks {
                    compute_uplink: request,
                    compute_downlink: data(ChunkKind::ReadResponse),
                    memory_uplink: data(ChunkKind::ReadResponse),
                    memory_downlink: request + grant * (chunks - 1.0),
                }
            }
        }
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        let fail = |what: String| Err(Violation(what));
        if let Some(what) = &self.violation {
            return fail(what.clone());
        }
        if self.granted != self.delivered {
            return fail(format!("granted {:?}, delivered {:?}", self.granted, self.delivered));
        }
        let (waiting, open) = (self.switch.scheduler().waiting(), self.switch.circuits_open());
        if waiting > 0 || open > 0 || self.flights.len() > 0 {
            return fail(format!(
                "left behind: {waiting} notifications, {open} circuits, {} items",
                self.flights.len()
            ));
        }
        let mut stats = self.links.stats(ended);
        let scheduler = self.switch.scheduler().stats();
        let mean = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        let (joined, ports) = (scheduler.size_max, self.nodes.len() as u64);
        if joined > ports {
            return fail(format!("an iteration joined {joined} pairs of {ports} ports"));
        }
        stats.matching = Some(Matching {
            rounds: scheduler.matchings,
            grants: scheduler.grants,
            iterations_mean: mean(scheduler.iterations, scheduler.matchings),
            iterations_max: scheduler.iterations_max,
            size_mean: mean(scheduler.grants, scheduler.iterations),
            size_max: scheduler.size_max,
        });
        if let Some(queue) = &mut stats.queue {
            let (max, bound) = (queue.egress_blocks_max, self.queue_blocks_bound);
            if max > bound {
                return fail(format!("an egress queue held {max} blocks, {bound} at most"));
            }
            queue.egress_blocks_bound = Some(bound);
        }
        Ok(stats)
    }
}
