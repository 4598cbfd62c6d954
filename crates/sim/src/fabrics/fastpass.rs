//! Fastpass: a central arbiter says when every frame leaves (Perry et al., SIGCOMM 2014).
//!
//! The arbiter is a server on a switch port of its own. A host asks it for timeslots when it has a
//! message, and it answers with an allocation to the node that holds the data: frames of the least
//! size, one a message and one an allocation, that queue on its link in both directions like any
//! other. It decides in no time: at the start of every timeslot it joins free senders and free
//! receivers until no two that want each other are left, fewest timeslots left first. A read's
//! request travels with its demand and its allocation.

use std::collections::BTreeSet;

use ethermem_edm::Arbitration;
use ethermem_units::{BitsPerSecond, Bytes, Ps};

use super::framing::{Framing, Medium, Size};
use crate::FabricConfig;
use crate::engine::{Fabric, Handle, Sim, Violation};
use crate::message::{Kind, Message, NodeIndex};
use crate::metrics::{FabricStats, Matching};
use crate::topology::{Star, Transmitter};
use crate::workload::LinkBlocks;

/// Parameters of `fabric.kind = "fastpass"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastpassConfig {
    /// Rate of the arbiter's link; `None` for that of the others.
    pub arbiter_link: Option<BitsPerSecond>,
    /// What a timeslot takes of a link: one frame, with preamble and gap.
    pub timeslot: Bytes,
    /// Most timeslots of one allocation.
    pub allocation_timeslots: u8,
}

impl Default for FastpassConfig {
    fn default() -> FastpassConfig {
        FastpassConfig { arbiter_link: None, timeslot: Bytes(1_538), allocation_timeslots: 8 }
    }
}

/// Data of a message, from its demand to its end.
struct Flow {
    source: NodeIndex,
    destination: NodeIndex,
    kind: Kind,
    order: u64,
    /// Bytes that no timeslot was allocated for.
    unallocated: u64,
    /// Bytes that have not reached their egress.
    missing: u64,
}

/// Where what is.
#[derive(Clone, Copy)]
pub enum Event {
    /// A message's demand is at the port of the arbiter.
    DemandAtEgress(Handle),
    /// It is at the arbiter.
    DemandAtArbiter(Handle),
    /// A timeslot begins.
    Timeslot,
    /// An allocation for so many bytes is at the port of the data's node.
    AllocationAtEgress(Handle, u32),
    /// Its node can hand its transmitter the next frame of so many bytes allocated.
    Send(Handle, u32),
    /// A frame is at its egress port.
    DataAtEgress(Handle, u16),
}

#[derive(Default)]
struct Decided {
    rounds: u64,
    size_max: u64,
    allocations: u64,
}

/// Demands and who is taken until when.
struct Arbiter {
    /// By destination: timeslots left, age, message.
    demands: Vec<BTreeSet<(u64, u64, Handle)>>,
    /// Messages with a demand.
    open: usize,
    source_free: Vec<Ps>,
    destination_free: Vec<Ps>,
    /// The destination that is looked at first.
    first: usize,
    /// No timeslot begins before.
    next_at: Ps,
    armed: bool,
    decided: Decided,
}

/// See the module.
pub struct Fastpass {
    medium: Medium,
    slot: Ps,
    arbiter_slot: Ps,
    memory_access: Ps,
    timeslot: Ps,
    timeslot_bytes: u64,
    allocation_timeslots: u64,
    links: Star,
    to_arbiter: Transmitter,
    from_arbiter: Transmitter,
    arbiter: Arbiter,
    flows: Vec<Option<Flow>>,
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
        if !self.arbiter.armed && self.arbiter.open > 0 {
            self.arbiter.armed = true;
            sim.at(self.arbiter.next_at.max(sim.now()), Event::Timeslot);
        }
    }

    /// Takes a demand, or what is left of one.
    fn demand(&mut self, handle: Handle) {
        let flow = self.flow(handle);
        let timeslots = flow.unallocated.div_ceil(self.timeslot_bytes);
        let (order, destination) = (flow.order, usize::from(flow.destination));
        self.arbiter.demands[destination].insert((timeslots, order, handle));
        self.arbiter.open += 1;
    }

    /// A maximal matching of those free, from another destination on every time.
    fn decide(&mut self, sim: &mut Sim<Event>) {
        let now = sim.now();
        self.arbiter.armed = false;
        self.arbiter.next_at = now + self.timeslot;
        let nodes = self.arbiter.demands.len();
        let mut size = 0;
        for step in 0..nodes {
            let destination = (self.arbiter.first + step) % nodes;
            if self.arbiter.destination_free[destination] > now {
                continue;
            }
            let free = |flow: &Flow| self.arbiter.source_free[usize::from(flow.source)] <= now;
            let mut demands = self.arbiter.demands[destination].iter();
            let Some(&demand) = demands.find(|(_, _, handle)| free(self.flow(*handle))) else {
                continue;
            };
            self.allocate(sim, destination, demand);
            size += 1;
        }
        self.arbiter.first = (self.arbiter.first + 1) % nodes;
        let decided = &mut self.arbiter.decided;
        decided.rounds += u64::from(size > 0);
        decided.allocations += size;
        decided.size_max = decided.size_max.max(size);
        self.arm(sim);
    }

    fn allocate(&mut self, sim: &mut Sim<Event>, to: usize, demand: (u64, u64, Handle)) {
        let (timeslots, _, handle) = demand;
        self.arbiter.demands[to].remove(&demand);
        self.arbiter.open -= 1;
        let timeslots = timeslots.min(self.allocation_timeslots);
        let flow = self.flows[handle as usize].as_mut().expect("it has a demand");
        let bytes = flow.unallocated.min(timeslots * self.timeslot_bytes);
        flow.unallocated -= bytes;
        let (source, more) = (usize::from(flow.source), flow.unallocated > 0);
        let until = sim.now() + self.timeslot * timeslots;
        self.arbiter.source_free[source] = until;
        self.arbiter.destination_free[to] = until;
        if more {
            self.demand(handle);
        }
        let ready = sim.now() + self.medium.request;
        let at = self.medium.up(&mut self.from_arbiter, ready, self.medium.control());
        sim.at(at, Event::AllocationAtEgress(handle, bytes as u32));
    }

    /// Sends a frame of an allocation; its next one follows without a gap.
    fn send(&mut self, sim: &mut Sim<Event>, handle: Handle, allocated: u32) {
        let bytes = u64::from(allocated).min(self.timeslot_bytes);
        let (node, size) = (self.flow(handle).source, self.medium.data(bytes));
        let ready = sim.now() + self.medium.generate;
        if self.flow(handle).kind != Kind::Write {
            sim.at_memory(handle, sim.now());
        }
        let start = self.links.up(node).send(ready, size.line, size.data);
        sim.leaves(handle, start);
        self.sent_bytes += bytes;
        let egress = self.medium.after_up(start, size, self.slot);
        sim.at(egress, Event::DataAtEgress(handle, bytes as u16));
        let left = allocated - bytes as u32;
        if left > 0 {
            let next = start + self.slot * size.line.0;
            sim.at(next.saturating_sub(self.medium.generate), Event::Send(handle, left));
        }
    }

    fn down(&mut self, sim: &Sim<Event>, node: NodeIndex, size: Size) -> Ps {
        let start = self.links.down(node).send(sim.now(), size.line, size.data);
        self.medium.after_down(start, size, self.slot)
    }

    fn deliver(&mut self, sim: &mut Sim<Event>, handle: Handle, bytes: u16) {
        let size = self.medium.data(u64::from(bytes));
        let whole = self.down(sim, self.flow(handle).destination, size);
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

    fn build(config: &FabricConfig, seed: u64) -> Fastpass {
        let own = config.fastpass;
        let medium = Medium::of(config, Framing::Mac);
        let slot = config.link.block_time();
        let arbiter_slot = own.arbiter_link.unwrap_or(config.link).block_time();
        let nodes = usize::from(config.nodes);
        Fastpass {
            medium,
            slot,
            arbiter_slot,
            memory_access: config.memory_access,
            timeslot: slot * own.timeslot.to_blocks().0,
            timeslot_bytes: medium.frame_data(own.timeslot),
            allocation_timeslots: own.allocation_timeslots.into(),
            links: Star::new(config, Arbitration::Fair, seed),
            to_arbiter: Transmitter::without_frames(arbiter_slot),
            from_arbiter: Transmitter::without_frames(arbiter_slot),
            arbiter: Arbiter {
                demands: vec![BTreeSet::new(); nodes],
                open: 0,
                source_free: vec![Ps::ZERO; nodes],
                destination_free: vec![Ps::ZERO; nodes],
                first: 0,
                next_at: Ps::ZERO,
                armed: false,
                decided: Decided::default(),
            },
            flows: Vec::new(),
            submitted: 0,
            asked_bytes: 0,
            sent_bytes: 0,
            delivered_bytes: 0,
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
        let ready = sim.now() + self.medium.request;
        let link = self.links.up(message.compute);
        sim.at(self.medium.up(link, ready, self.medium.control()), Event::DemandAtEgress(handle));
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        let control = self.medium.control();
        match event {
            Event::DemandAtEgress(handle) => {
                let start = self.to_arbiter.send(sim.now(), control.line, control.data);
                let whole = self.medium.after_down(start, control, self.arbiter_slot);
                sim.at(whole + self.medium.receive, Event::DemandAtArbiter(handle));
            }
            Event::DemandAtArbiter(handle) => {
                self.demand(handle);
                self.arm(sim);
            }
            Event::Timeslot => self.decide(sim),
            Event::AllocationAtEgress(handle, bytes) => {
                let flow = self.flow(handle);
                let access = if flow.kind == Kind::Write { Ps::ZERO } else { self.memory_access };
                let whole = self.down(sim, flow.source, control);
                sim.at(whole + self.medium.receive + access, Event::Send(handle, bytes));
            }
            Event::Send(handle, allocated) => self.send(sim, handle, allocated),
            Event::DataAtEgress(handle, bytes) => self.deliver(sim, handle, bytes),
        }
    }

    fn period(&self) -> Bytes {
        Bytes(self.timeslot_bytes * self.allocation_timeslots)
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let medium = Medium::of(config, Framing::Mac);
        let frame = medium.frame_data(config.fastpass.timeslot);
        let (data, frames) = medium.data_blocks(bytes, frame);
        let control = medium.control().line.0 as f64;
        let timeslots = u64::from(config.fastpass.allocation_timeslots);
        let allocations = frames.div_ceil(timeslots) as f64 * control;
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
        if moved.0 != moved.1 || moved.1 != moved.2 || self.arbiter.open > 0 {
            return Err(Violation(format!(
                "{} B asked for, {} B sent, {} B delivered, {} demands open",
                moved.0, moved.1, moved.2, self.arbiter.open
            )));
        }
        let decided = &self.arbiter.decided;
        Ok(FabricStats {
            matching: Some(Matching {
                rounds: decided.rounds,
                grants: decided.allocations,
                iterations_mean: 1.0,
                iterations_max: 1,
                size_mean: decided.allocations as f64 / decided.rounds.max(1) as f64,
                size_max: decided.size_max,
            }),
            ..self.links.stats(ended)
        })
    }
}
