//! Idealised receiver-driven transport (EDM, section 4.3).
//!
//! A receiver knows of its messages at once when they are submitted. It issues credit, one frame's
//! worth at a time, to the message with the fewest bytes left. Credits are paced by the time that
//! their data takes on the receiver's link, and at most a window of data is outstanding. So data
//! never over-commits the link. A sender answers one receiver at a time: credits of other receivers
//! wait at the sender, and the link time that these receivers reserved stays unused. A read's
//! credit is its request, for the receiver of the data is the requester.

mod config;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::FabricStats;
use ethermem_engine::topology::Star;
use ethermem_units::{Blocks, Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use super::framing::{Medium, Size};
pub use config::IrdConfig;

/// The data of a message on its way to its receiver.
struct Flow {
    sender: NodeIndex,
    receiver: NodeIndex,
    kind: Kind,
    /// Its number in the order of submission, which breaks ties.
    order: u64,
    /// Number of bytes without a credit.
    uncredited: u64,
    /// Number of bytes that have not arrived.
    missing: u64,
}

/// The rank of a message at either end: bytes left, then age.
type Rank = (u64, u64);

#[derive(Default)]
struct Receiver {
    /// Messages with bytes that have no credit.
    waiting: BTreeSet<(Rank, Handle)>,
    /// The time at which its link has room for data requested now.
    next_at: Ps,
    /// Number of blocks requested and not arrived.
    outstanding: Blocks,
    /// True if an event will check it again.
    armed: bool,
}

#[derive(Default)]
struct Sender {
    /// Credits that wait for the uplink.
    credits: BinaryHeap<Reverse<(Rank, Handle, u16)>>,
    busy: bool,
}

/// The events of the fabric.
#[derive(Clone, Copy)]
pub enum Event {
    /// A receiver's link has room for more.
    Pace(NodeIndex),
    /// A credit for bytes of a message is at its egress port.
    CreditAtEgress(Handle, Credit),
    /// A credit is at the sender.
    CreditAtSender(Handle, Credit),
    /// A sender can hand its transmitter the next frame.
    SenderFree(NodeIndex),
    /// Data of a message is at its egress port.
    DataAtEgress(Handle, u16),
    /// Data of a message is at the receiver.
    DataAtReceiver(Handle, u16),
}

/// A credit, which requests bytes of a message.
#[derive(Clone, Copy)]
pub struct Credit {
    bytes: u16,
    /// Number of bytes of the message left to request, including these.
    left: u32,
}

/// The network of the transport.
pub struct Ird {
    medium: Medium,
    slot: Ps,
    memory_access: Ps,
    window: Blocks,
    links: Star,
    receivers: Vec<Receiver>,
    senders: Vec<Sender>,
    flows: Vec<Option<Flow>>,
    submitted: u64,
    asked_bytes: u64,
    answered_bytes: u64,
    delivered_bytes: u64,
}

impl Ird {
    /// Issues the next credit of a receiver, if its link and its window have room.
    fn call(&mut self, sim: &mut Sim<Event>, node: NodeIndex) {
        let receiver = &mut self.receivers[usize::from(node)];
        if receiver.armed || receiver.outstanding >= self.window {
            return;
        }
        let Some(&(rank, handle)) = receiver.waiting.first() else { return };
        if sim.now() < receiver.next_at {
            receiver.armed = true;
            sim.at(receiver.next_at, Event::Pace(node));
            return;
        }
        receiver.waiting.pop_first();
        let flow = self.flows[handle as usize].as_mut().expect("it waits");
        let bytes = flow.uncredited.min(self.medium.data_max);
        let credit = Credit { bytes: bytes as u16, left: flow.uncredited as u32 };
        flow.uncredited -= bytes;
        if flow.uncredited > 0 {
            receiver.waiting.insert(((flow.uncredited, rank.1), handle));
        }
        let size = self.medium.data(bytes);
        receiver.outstanding += size.line;
        receiver.next_at = sim.now() + self.slot * size.line.0;
        if !receiver.waiting.is_empty() {
            receiver.armed = true;
            sim.at(receiver.next_at, Event::Pace(node));
        }
        let ready = sim.now() + self.medium.request;
        let at = self.medium.up(self.links.up(node), ready, self.medium.control());
        sim.at(at, Event::CreditAtEgress(handle, credit));
    }

    /// Answers the credit of the message with the fewest bytes left.
    fn answer(&mut self, sim: &mut Sim<Event>, node: NodeIndex) {
        let sender = &mut self.senders[usize::from(node)];
        let Some(Reverse((_, handle, bytes))) = sender.credits.pop() else {
            sender.busy = false;
            return;
        };
        sender.busy = true;
        let size = self.medium.data(u64::from(bytes));
        let ready = sim.now() + self.medium.generate;
        let link = self.links.up(node);
        let start = link.send(ready, size.line, size.data);
        sim.leaves(handle, start);
        self.answered_bytes += u64::from(bytes);
        // The next frame follows this one without a gap.
        let end = start + self.slot * size.line.0;
        sim.at(end.saturating_sub(self.medium.generate).max(sim.now()), Event::SenderFree(node));
        sim.at(self.medium.after_up(start, size, self.slot), Event::DataAtEgress(handle, bytes));
    }

    fn down(&mut self, sim: &Sim<Event>, node: NodeIndex, size: Size) -> Ps {
        let start = self.links.down(node).send(sim.now(), size.line, size.data);
        self.medium.after_down(start, size, self.slot)
    }

    fn take_credit(&mut self, sim: &mut Sim<Event>, handle: Handle, credit: Credit) {
        let flow = self.flows[handle as usize].as_ref().expect("it was called for");
        let (node, rank) = (flow.sender, (u64::from(credit.left), flow.order));
        if flow.kind != Kind::Write {
            sim.at_memory(handle, sim.now());
        }
        let sender = &mut self.senders[usize::from(node)];
        sender.credits.push(Reverse((rank, handle, credit.bytes)));
        if !sender.busy {
            self.answer(sim, node);
        }
    }

    fn take_data(&mut self, sim: &mut Sim<Event>, handle: Handle, bytes: u16) {
        let flow = self.flows[handle as usize].as_mut().expect("it was called for");
        let node = flow.receiver;
        flow.missing -= u64::from(bytes);
        if flow.missing == 0 {
            self.flows[handle as usize] = None;
            sim.finish(handle, sim.now());
        }
        self.delivered_bytes += u64::from(bytes);
        let line = self.medium.data(u64::from(bytes)).line;
        self.receivers[usize::from(node)].outstanding -= line;
        self.call(sim, node);
    }
}

impl Fabric for Ird {
    type Event = Event;
    type Parameters = IrdConfig;

    fn build(config: &FabricConfig, seed: u64) -> Ird {
        let medium = Medium::of(config, config.of::<IrdConfig>().framing);
        let slot = config.link.block_time();
        let full = medium.data(medium.data_max);
        let round_trip = medium.crossing(medium.control(), slot, medium.request, medium.receive)
            + config.memory_access
            + medium.crossing(full, slot, medium.generate, medium.take);
        let window = match config.of::<IrdConfig>().window {
            Some(bytes) => bytes.to_blocks(),
            None => Blocks(round_trip.0.div_ceil(slot.0)) + full.line,
        };
        let nodes = usize::from(config.nodes);
        Ird {
            medium,
            slot,
            memory_access: config.memory_access,
            window,
            links: Star::new(config, medium.sharing(config), seed),
            receivers: (0..nodes).map(|_| Receiver::default()).collect(),
            senders: (0..nodes).map(|_| Sender::default()).collect(),
            flows: Vec::new(),
            submitted: 0,
            asked_bytes: 0,
            answered_bytes: 0,
            delivered_bytes: 0,
        }
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let at = handle as usize;
        if at >= self.flows.len() {
            self.flows.resize_with(at + 1, || None);
        }
        let (order, bytes) = (self.submitted, message.bytes.0);
        let node = message.data_destination();
        self.flows[at] = Some(Flow {
            sender: message.data_source(),
            receiver: node,
            kind: message.kind,
            order,
            uncredited: bytes,
            missing: bytes,
        });
        self.submitted += 1;
        self.asked_bytes += bytes;
        self.receivers[usize::from(node)].waiting.insert(((bytes, order), handle));
        self.call(sim, node);
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::Pace(node) => {
                self.receivers[usize::from(node)].armed = false;
                self.call(sim, node);
            }
            Event::CreditAtEgress(handle, credit) => {
                let flow = self.flows[handle as usize].as_ref().expect("it was called for");
                let access = if flow.kind == Kind::Write { Ps::ZERO } else { self.memory_access };
                let node = flow.sender;
                let whole = self.down(sim, node, self.medium.control());
                let at = whole + self.medium.receive + access;
                sim.at(at, Event::CreditAtSender(handle, credit));
            }
            Event::CreditAtSender(handle, credit) => self.take_credit(sim, handle, credit),
            Event::SenderFree(node) => self.answer(sim, node),
            Event::DataAtEgress(handle, bytes) => {
                let flow = self.flows[handle as usize].as_ref().expect("it was called for");
                let node = flow.receiver;
                let whole = self.down(sim, node, self.medium.data(u64::from(bytes)));
                sim.at(whole + self.medium.take, Event::DataAtReceiver(handle, bytes));
            }
            Event::DataAtReceiver(handle, bytes) => self.take_data(sim, handle, bytes),
        }
    }

    fn period(&self) -> Bytes {
        Bytes(self.medium.data_max)
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let medium = Medium::of(config, config.of::<IrdConfig>().framing);
        let (data, frames) = medium.data_blocks(bytes, medium.data_max);
        let credits = (frames * medium.control().line.0) as f64;
        match kind {
            Kind::Write => LinkBlocks {
                compute_uplink: data,
                memory_downlink: data,
                memory_uplink: credits,
                compute_downlink: credits,
            },
            Kind::Read | Kind::ReadModifyWrite => LinkBlocks {
                compute_uplink: credits,
                memory_downlink: credits,
                memory_uplink: data,
                compute_downlink: data,
            },
        }
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        let moved = (self.asked_bytes, self.answered_bytes, self.delivered_bytes);
        if moved.0 != moved.1 || moved.1 != moved.2 {
            return Err(Violation(format!(
                "{} B asked for, {} B sent, {} B delivered",
                moved.0, moved.1, moved.2
            )));
        }
        let open =
            |receiver: &Receiver| receiver.outstanding != Blocks(0) || !receiver.waiting.is_empty();
        if let Some(node) = self.receivers.iter().position(open) {
            return Err(Violation(format!("node {node} has credit outstanding")));
        }
        Ok(self.links.stats(ended))
    }
}
