//! Fastpass: a central arbiter decides when every frame leaves (Perry et al., SIGCOMM 2014).
//!
//! The arbiter is a server on a switch port of its own. A host with a message requests timeslots,
//! and the arbiter answers with an allocation to the node that holds the data. Requests and
//! allocations are frames of minimum size, one per message and one per allocation. They queue on
//! the arbiter's link in both directions as other frames do. The arbiter decides in zero time. At
//! the start of every timeslot it joins free senders and free receivers, fewest remaining timeslots
//! first. It stops when no two free ends want each other. Alternatively it decides all timeslots of
//! an epoch at once, and assigns a spine to each packet. A read's request travels with its demand
//! and its allocation.

mod arbiter;
mod config;
mod epochs;
mod links;
mod paths;
mod timeslots;

use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::{FabricStats, Matching};
use ethermem_engine::topology::PortId;
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use super::framing::{Framing, Medium, Size};
use arbiter::{Arbiter, Decided, Decides};
use config::epoch_timeslots;
pub use config::{FastpassConfig, Starts};
use epochs::Demand;
use links::Links;

/// The data of a message, from its demand to its end.
struct Flow {
    source: NodeIndex,
    destination: NodeIndex,
    kind: Kind,
    order: u64,
    /// Number of bytes without an allocated timeslot.
    unallocated: u64,
    /// Number of bytes that have not reached their egress.
    missing: u64,
}

/// An item that crosses the network.
#[derive(Clone, Copy)]
pub enum Item {
    /// A message's demand, on its way to the arbiter.
    Demand(Handle),
    /// An allocation for this many bytes of a message, on its way to the node that holds them.
    Allocation(Handle, u32),
    /// The allocation of an epoch, on its way to its node.
    Schedule(u32),
    /// A frame with this many bytes.
    Data(Handle, u16),
}

/// The events of the fabric.
#[derive(Clone, Copy)]
pub enum Event {
    /// An item came through a port to the switch behind it, and takes this spine, if any.
    AtSwitch(PortId, u8, Item),
    /// A message's demand is at the arbiter.
    DemandAtArbiter(Handle),
    /// A timeslot or an epoch begins.
    Decide,
    /// A message's node can hand its transmitter the next frame of the allocated bytes. If the
    /// arbiter chose the spine, it is here.
    Send(Handle, u32, Option<u8>),
}

/// The frames that a node sends in an epoch.
#[derive(Default)]
struct Schedule {
    node: NodeIndex,
    /// The start of its first timeslot, if it is equal for all nodes.
    start: Option<Ps>,
    frames: Vec<Scheduled>,
}

struct Scheduled {
    handle: Handle,
    bytes: u16,
    timeslot: u8,
    spine: Option<u8>,
}

/// The network, and its arbiter.
pub struct Fastpass {
    medium: Medium,
    slot: Ps,
    memory_access: Ps,
    timeslot: Ps,
    timeslot_bytes: u64,
    /// Maximum timeslots of one allocation.
    timeslots: u8,
    /// Time from an epoch's decision to its first timeslot, if it is equal for all nodes.
    lead: Option<Ps>,
    links: Links,
    arbiter: Arbiter,
    flows: Vec<Option<Flow>>,
    /// The schedules on their way to their nodes; the others are kept for their memory.
    schedules: Vec<Schedule>,
    schedules_free: Vec<u32>,
    /// The schedules of the epoch that is being decided, by node.
    deciding: Vec<Option<u32>>,
    /// The spines of the pairs joined in a timeslot.
    spines: Vec<u8>,
    submitted: u64,
    asked_bytes: u64,
    sent_bytes: u64,
    delivered_bytes: u64,
}

impl Fastpass {
    fn flow(&self, handle: Handle) -> &Flow {
        self.flows[handle as usize].as_ref().expect("it has not ended")
    }

    fn arm(&mut self, sim: &mut Sim<Event>) {
        if !self.arbiter.armed && self.arbiter.decides.open() > 0 {
            self.arbiter.armed = true;
            sim.at(self.arbiter.next_at.max(sim.now()), Event::Decide);
        }
    }

    /// Adds a demand.
    fn demand(&mut self, handle: Handle) {
        let flow = self.flow(handle);
        let demand = Demand {
            timeslots: flow.unallocated.div_ceil(self.timeslot_bytes),
            order: flow.order,
            handle,
            source: flow.source,
            destination: flow.destination,
        };
        self.arbiter.decides.insert(demand);
    }

    fn decide(&mut self, sim: &mut Sim<Event>) {
        let now = sim.now();
        self.arbiter.armed = false;
        let timeslots = match self.arbiter.decides {
            Decides::Timeslots(_) => {
                self.decide_timeslot(sim);
                1
            }
            Decides::Epochs(..) => {
                self.decide_epoch(sim);
                u64::from(self.timeslots)
            }
        };
        self.arbiter.next_at = now + self.timeslot * timeslots;
        self.arm(sim);
    }

    /// Decides a matching, each of whose ends are used for a whole allocation.
    fn decide_timeslot(&mut self, sim: &mut Sim<Event>) {
        let now = sim.now();
        let mut allocations = Vec::new();
        let Decides::Timeslots(timeslots) = &mut self.arbiter.decides else { unreachable!() };
        timeslots.join(now, |demand| {
            let timeslots = demand.timeslots.min(self.timeslots.into());
            let flow = self.flows[demand.handle as usize].as_mut().expect("it has a demand");
            let bytes = flow.unallocated.min(timeslots * self.timeslot_bytes);
            flow.unallocated -= bytes;
            allocations.push(Item::Allocation(demand.handle, bytes as u32));
            let left = demand.timeslots - timeslots;
            let left = (left > 0).then_some(Demand { timeslots: left, ..demand });
            (now + self.timeslot * timeslots, left)
        });
        self.arbiter.decided.count(allocations.len() as u64);
        for allocation in allocations {
            self.tell(sim, allocation);
        }
    }

    /// Decides a matching for each timeslot of the epoch, and an allocation for every node that
    /// sends.
    fn decide_epoch(&mut self, sim: &mut Sim<Event>) {
        let start = self.lead.map(|lead| sim.now() + lead);
        for timeslot in 0..self.timeslots {
            let Decides::Epochs(epochs, paths) = &mut self.arbiter.decides else { unreachable!() };
            let joined = epochs.join();
            if joined.is_empty() {
                break;
            }
            self.arbiter.decided.count(joined.len() as u64);
            if let Some(paths) = paths {
                let ends = joined.iter().map(|demand| (demand.source, demand.destination));
                paths.assign(timeslot.into(), ends, &mut self.spines);
            }
            for (at, demand) in joined.iter().enumerate() {
                let flow = self.flows[demand.handle as usize].as_mut().expect("it has a demand");
                let bytes = flow.unallocated.min(self.timeslot_bytes);
                flow.unallocated -= bytes;
                let id = *self.deciding[usize::from(demand.source)].get_or_insert_with(|| {
                    self.schedules_free.pop().unwrap_or_else(|| {
                        self.schedules.push(Schedule::default());
                        self.schedules.len() as u32 - 1
                    })
                });
                let schedule = &mut self.schedules[id as usize];
                (schedule.node, schedule.start) = (demand.source, start);
                schedule.frames.push(Scheduled {
                    handle: demand.handle,
                    bytes: bytes as u16,
                    timeslot,
                    spine: paths.is_some().then(|| self.spines[at]),
                });
            }
        }
        for node in 0..self.deciding.len() {
            if let Some(id) = self.deciding[node].take() {
                self.tell(sim, Item::Schedule(id));
            }
        }
    }

    /// Sends an allocation.
    fn tell(&mut self, sim: &mut Sim<Event>, allocation: Item) {
        let order = match allocation {
            Item::Allocation(handle, _) => self.flow(handle).order,
            _ => self.arbiter.decided.rounds,
        };
        let spine = self.links.spine(self.links.arbiter(), order);
        let ready = sim.now() + self.medium.request;
        let at = self.links.send_from_arbiter(ready, self.medium.control());
        sim.at(at, Event::AtSwitch(self.links.arbiter_beside(), spine, allocation));
    }

    /// Handles an epoch's allocation at its node; the node has processed it `at`.
    fn follow(&mut self, sim: &mut Sim<Event>, id: u32, at: Ps) {
        let mut schedule = std::mem::take(&mut self.schedules[id as usize]);
        for frame in schedule.frames.drain(..) {
            let access = match self.flow(frame.handle).kind {
                Kind::Write => Ps::ZERO,
                Kind::Read | Kind::ReadModifyWrite => self.memory_access,
            };
            let begins = schedule.start.unwrap_or(at + access);
            let send = (begins + self.timeslot * u64::from(frame.timeslot)).max(at + access);
            sim.at(send, Event::Send(frame.handle, frame.bytes.into(), frame.spine));
        }
        self.schedules[id as usize] = schedule;
        self.schedules_free.push(id);
    }

    /// Sends a frame of an allocation; the next one follows without a gap.
    fn send(&mut self, sim: &mut Sim<Event>, handle: Handle, allocated: u32, spine: Option<u8>) {
        let bytes = u64::from(allocated).min(self.timeslot_bytes);
        let Flow { source: node, kind, order, .. } = *self.flow(handle);
        let size = self.medium.data(bytes);
        let ready = sim.now() + self.medium.generate;
        if kind != Kind::Write {
            sim.at_memory(handle, sim.now());
        }
        let start = self.links.start_up(node, ready, size);
        sim.leaves(handle, start);
        self.sent_bytes += bytes;
        let spine = spine.unwrap_or_else(|| self.links.spine(node, order));
        let data = Item::Data(handle, bytes as u16);
        sim.at(self.links.at_switch(start, size), Event::AtSwitch(node, spine, data));
        let left = allocated - bytes as u32;
        if left > 0 {
            let next = start + self.slot * size.line.0;
            let next = next.saturating_sub(self.medium.generate);
            sim.at(next, Event::Send(handle, left, None));
        }
    }

    /// Lets a switch forward an item that came through a port.
    #[inline]
    fn forward(&mut self, sim: &mut Sim<Event>, port: PortId, spine: u8, item: Item) {
        let control = self.medium.control();
        let (to, size) = match item {
            Item::Demand(_) => (self.links.arbiter_beside(), control),
            Item::Allocation(handle, _) => (self.flow(handle).source, control),
            Item::Schedule(id) => (self.schedules[id as usize].node, control),
            Item::Data(handle, bytes) => {
                (self.flow(handle).destination, self.medium.data(bytes.into()))
            }
        };
        if let Some(core) = self.links.core_port(port, to, spine) {
            let at = self.links.cross(core, sim.now(), size);
            return sim.at(at, Event::AtSwitch(core, spine, item));
        }
        match item {
            Item::Demand(handle) => {
                let whole = self.links.down_to_arbiter(sim.now(), size);
                sim.at(whole + self.medium.receive, Event::DemandAtArbiter(handle));
            }
            Item::Allocation(handle, bytes) => {
                let write = self.flow(handle).kind == Kind::Write;
                let access = if write { Ps::ZERO } else { self.memory_access };
                let whole = self.links.down(to, sim.now(), size);
                let at = whole + self.medium.receive + access;
                sim.at(at, Event::Send(handle, bytes, None));
            }
            Item::Schedule(id) => {
                let whole = self.links.down(to, sim.now(), size);
                self.follow(sim, id, whole + self.medium.receive);
            }
            Item::Data(handle, bytes) => {
                let whole = self.links.down(to, sim.now(), size);
                self.deliver(sim, handle, bytes, whole);
            }
        }
    }

    fn deliver(&mut self, sim: &mut Sim<Event>, handle: Handle, bytes: u16, whole: Ps) {
        self.delivered_bytes += u64::from(bytes);
        let flow = self.flows[handle as usize].as_mut().expect("it has not ended");
        flow.missing -= u64::from(bytes);
        if flow.missing == 0 {
            self.flows[handle as usize] = None;
            sim.finish(handle, whole + self.medium.take);
        }
    }
}

impl Fabric for Fastpass {
    type Event = Event;
    type Parameters = FastpassConfig;
    const LEAF_SPINE: bool = true;

    fn build(config: &FabricConfig, seed: u64) -> Fastpass {
        let own = config.of::<FastpassConfig>();
        let medium = Medium::of(config, Framing::Mac);
        let slot = config.link.block_time();
        let links = Links::new(config, medium, seed);
        let epoch = epoch_timeslots(config);
        Fastpass {
            medium,
            slot,
            memory_access: config.memory_access,
            timeslot: slot * own.timeslot.to_blocks().0,
            timeslot_bytes: medium.frame_data(own.timeslot),
            timeslots: epoch.unwrap_or(own.allocation_timeslots),
            lead: (own.starts == Starts::Together).then(|| links.told() + config.memory_access),
            arbiter: Arbiter {
                decides: Decides::new(config),
                next_at: Ps::ZERO,
                armed: false,
                decided: Decided::default(),
            },
            flows: Vec::new(),
            schedules: Vec::new(),
            schedules_free: Vec::new(),
            deciding: vec![None; config.nodes.into()],
            spines: Vec::new(),
            submitted: 0,
            asked_bytes: 0,
            sent_bytes: 0,
            delivered_bytes: 0,
            links,
        }
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let (at, bytes) = (handle as usize, message.bytes.0);
        if at >= self.flows.len() {
            self.flows.resize_with(at + 1, || None);
        }
        self.flows[at] = Some(Flow {
            source: message.data_source(),
            destination: message.data_destination(),
            kind: message.kind,
            order: self.submitted,
            unallocated: bytes,
            missing: bytes,
        });
        self.submitted += 1;
        self.asked_bytes += bytes;
        let (node, control) = (message.compute, self.medium.control());
        let start = self.links.start_up(node, sim.now() + self.medium.request, control);
        let spine = self.links.spine(node, self.submitted);
        let demand = Event::AtSwitch(node, spine, Item::Demand(handle));
        sim.at(self.links.at_switch(start, control), demand);
    }

    #[inline]
    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::AtSwitch(port, spine, item) => self.forward(sim, port, spine, item),
            Event::DemandAtArbiter(handle) => {
                self.demand(handle);
                self.arm(sim);
            }
            Event::Decide => self.decide(sim),
            Event::Send(handle, allocated, spine) => self.send(sim, handle, allocated, spine),
        }
    }

    fn period(&self) -> Bytes {
        Bytes(self.timeslot_bytes * u64::from(self.timeslots))
    }

    /// The arbiter's leaf is nearer to the arbiter than other leaves, so its pairs have twins of
    /// their own.
    fn twin(&self, compute: NodeIndex, memory: NodeIndex) -> (NodeIndex, NodeIndex) {
        let layout = self.links.layout();
        let (rack, arbiter) = (layout.rack_nodes(), self.links.arbiter_beside());
        let beside = |node| layout.same_rack(node, arbiter);
        // The first nodes of the arbiter's rack and of two other racks.
        let racks = layout.nodes().div_ceil(rack);
        let first = |after: NodeIndex| (arbiter / rack + after) % racks * rack;
        match (layout.same_rack(compute, memory), beside(compute), beside(memory)) {
            (true, true, _) => (first(0), first(0) + 1),
            // The last rack may have a single node.
            (true, false, _) if first(1) + 1 == layout.nodes() => (first(2), first(2) + 1),
            (true, false, _) => (first(1), first(1) + 1),
            (false, true, _) => (first(0), first(1)),
            (false, false, true) => (first(1), first(0)),
            (false, false, false) => (first(1), first(2)),
        }
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let medium = Medium::of(config, Framing::Mac);
        let frame = medium.frame_data(config.of::<FastpassConfig>().timeslot);
        let (data, frames) = medium.data_blocks(bytes, frame);
        let control = medium.control().line.0 as f64;
        let most =
            epoch_timeslots(config).unwrap_or(config.of::<FastpassConfig>().allocation_timeslots);
        let allocations = frames.div_ceil(most.into()) as f64 * control;
        match kind {
            Kind::Write => LinkBlocks {
                compute_uplink: control + data,
                compute_downlink: allocations,
                memory_downlink: data,
                memory_uplink: 0.0,
            },
            Kind::Read | Kind::ReadModifyWrite => LinkBlocks {
                compute_uplink: control,
                compute_downlink: data,
                memory_downlink: allocations,
                memory_uplink: data,
            },
        }
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        let moved = (self.asked_bytes, self.sent_bytes, self.delivered_bytes);
        let open = self.arbiter.decides.open();
        if moved.0 != moved.1 || moved.1 != moved.2 || open > 0 {
            return Err(Violation(format!(
                "{} B asked for, {} B sent, {} B delivered, {open} demands open",
                moved.0, moved.1, moved.2
            )));
        }
        let decided = &self.arbiter.decided;
        Ok(FabricStats {
            matching: Some(Matching {
                rounds: decided.rounds,
                grants: decided.joined,
                iterations_mean: 1.0,
                iterations_max: 1,
                size_mean: decided.joined as f64 / decided.rounds.max(1) as f64,
                size_max: decided.size_max,
            }),
            ..self.links.stats(ended)
        })
    }
}
