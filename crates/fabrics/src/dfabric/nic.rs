//! The NIC pool: tails of TxQs are loaded, NICs read packets and send them, and write what they
//! receive.

use ethermem_dfabric::address::Node;
use ethermem_dfabric::nic::NicId;
use ethermem_dfabric::poller::PollMode;
use ethermem_dfabric::small_queue::ChargeEnd;
use ethermem_dfabric::switch_node::Action;
use ethermem_engine::engine::Sim;
use ethermem_engine::topology::{Frame, Transmitter};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::dfabric::{Descriptor, DescriptorKind};
use ethermem_workload::Kind;
use rand_xoshiro::rand_core::Rng;

use super::config::IntraRack;
use super::meter::User;
use super::rack::{Nic, Rack, RackId, Transfer, TxQ, What, node_of};
use super::{Dfabric, Event};

/// The time at which the last block of a frame has left; the link is then free after the gap.
fn last_block(link: &Transmitter, start: Ps, frame: Frame) -> Ps {
    start + link.slot() * u64::from(frame.tail)
}

/// When the next load begins of a poller in turn whose last load ended at `last`: one follows the
/// other, whether they find anything or not.
fn next_load(now: Ps, last: Ps, load: Ps) -> Ps {
    last + load * (now - last).0.div_ceil(load.0)
}

impl Dfabric {
    /// A node's stack has a packet: its descriptor is stored at the head of a TxQ.
    pub(super) fn post(&mut self, sim: &mut Sim<Event>, rack: RackId, packet: u32) {
        let descriptor = self.packets[packet].descriptor;
        let queue = self.racks[usize::from(rack)].tx_of(&descriptor);
        self.racks[usize::from(rack)].tx[queue as usize].outbox.push_back(descriptor.words());
        self.drain(sim, rack, queue);
    }

    /// Moves descriptors into the ring, and polls it.
    fn drain(&mut self, sim: &mut Sim<Event>, rack: RackId, queue: u32) {
        let now = sim.now();
        let of = &mut self.racks[usize::from(rack)];
        let tx = &mut of.tx[queue as usize];
        while let Some(words) = tx.outbox.pop_front() {
            if !tx.ring.push(words) {
                tx.outbox.push_front(words);
                break;
            }
            tx.stored.push_back(now);
        }
        if tx.ring.is_empty() {
            return;
        }
        match self.rules.poll {
            PollMode::Concurrent => {
                if tx.loading || !of.switch.poll_queue(queue) {
                    return;
                }
                tx.loading = true;
                sim.at(now + self.times.load, Event::Tail(rack, queue));
            }
            PollMode::InTurn => self.turn(sim, rack),
        }
    }

    /// Polling in turn goes on, if a queue has an entry.
    fn turn(&mut self, sim: &mut Sim<Event>, rack: RackId) {
        let now = sim.now();
        let of = &mut self.racks[usize::from(rack)];
        let has = |tx: &TxQ| !tx.ring.is_empty() && !tx.blocked;
        if of.turn.is_some() || !of.tx.iter().any(has) {
            return;
        }
        // What the poller loaded while no queue had anything: nothing.
        let load = self.times.load;
        let begin = if self.rules.at_best { now } else { next_load(now, of.turned, load) };
        let mut skipped = (begin - of.turned).0 / load.0 % of.tx.len() as u64;
        let queue = loop {
            let Some(queue) = of.switch.poll() else { return };
            let is_it = if self.rules.at_best { has(&of.tx[queue as usize]) } else { skipped == 0 };
            if is_it {
                break queue;
            }
            skipped = skipped.saturating_sub(1);
            let Rack { switch, pool, .. } = of;
            switch.on_tail(pool, queue, None);
        };
        of.turn = Some(queue);
        sim.at(begin + load, Event::Tail(rack, queue));
    }

    /// The SN has the tail of a TxQ.
    pub(super) fn tail(&mut self, sim: &mut Sim<Event>, rack: RackId, queue: u32) {
        let now = sim.now();
        let of = &mut self.racks[usize::from(rack)];
        let tx = &mut of.tx[queue as usize];
        tx.loading = false;
        (of.turn, of.turned) = (None, now);
        let is_found = tx.stored.front().is_some_and(|stored| *stored + self.times.load <= now);
        if is_found {
            tx.stored.pop_front();
        }
        let words = if is_found { tx.ring.pop() } else { None };
        let Rack { switch, pool, .. } = of;
        let action = switch.on_tail(pool, queue, words);
        of.tx[queue as usize].blocked = action == Action::Waits;
        self.act(sim, rack, action);
        self.drain(sim, rack, queue);
        if self.rules.poll == PollMode::InTurn {
            self.turn(sim, rack);
        }
    }

    fn act(&mut self, sim: &mut Sim<Event>, rack: RackId, action: Action) {
        let now = sim.now();
        let of = &mut self.racks[usize::from(rack)];
        match action {
            Action::ToNic { nic, flush, .. } => {
                if let Some((node, buffer)) = flush {
                    of.flush(node.0, buffer);
                }
                sim.at(now + self.times.to_nic, Event::Doorbell(rack, nic.0));
            }
            Action::ToRx { queue, descriptor, flush, .. } => {
                if let Some((node, buffer)) = flush {
                    of.flush(node.0, buffer);
                }
                let packet = descriptor.cookie as u32;
                let is_within = of.has(descriptor.source);
                if is_within {
                    self.packets[packet].memory = of.memory_of(descriptor.reference);
                }
                self.packets[packet].descriptor = descriptor;
                let took = if is_within { self.times.pass } else { self.times.from_nic };
                sim.at(now + took, Event::Stored(rack, queue, packet));
                if is_within {
                    self.discharge(sim, &descriptor, ChargeEnd::Taken);
                }
            }
            // A refusal is counted, and breaks the invariants at the end of the run.
            Action::Idle
            | Action::Waits
            | Action::Unreachable { .. }
            | Action::Dropped { .. }
            | Action::Refused { .. } => {}
        }
    }

    /// A NIC was told of one more descriptor.
    pub(super) fn doorbell(&mut self, sim: &mut Sim<Event>, rack: RackId, nic: u16) {
        self.racks[usize::from(rack)].nics[usize::from(nic)].told += 1;
        self.read_packets(sim, rack, nic);
    }

    /// The DMA engine of a NIC reads packets, some of them at once.
    fn read_packets(&mut self, sim: &mut Sim<Event>, rack: RackId, nic: u16) {
        let most = u64::from(self.rules.dma_reads);
        let of = &mut self.racks[usize::from(rack)];
        loop {
            let state = &of.nics[usize::from(nic)];
            let Nic { told, reading: number, sent, .. } = *state;
            if number == told || number - sent == most {
                return;
            }
            let after = (number - sent) as usize;
            let work = of.switch.nics().peek(NicId(nic), after).expect("it was told of it");
            let memory = of.memory_of(work.reference);
            let transfer = Transfer {
                kind: Kind::Read,
                port: of.nic_port(nic),
                memory,
                bytes: work.length.into(),
                what: What::Read { nic, number },
                message: None,
                read: None,
                user: User::nics(node_of(work.source) - of.first),
            };
            of.transfer(sim, transfer);
            let state = &mut of.nics[usize::from(nic)];
            state.reading += 1;
            state.has.push_back(false);
        }
    }

    /// A NIC has a packet.
    pub(super) fn read(&mut self, sim: &mut Sim<Event>, rack: RackId, (nic, number): (u16, u64)) {
        let state = &mut self.racks[usize::from(rack)].nics[usize::from(nic)];
        state.has[(number - state.sent) as usize] = true;
        self.transmit(sim, rack, nic);
    }

    /// A NIC sends its first packet, if it has it and its link is free.
    fn transmit(&mut self, sim: &mut Sim<Event>, rack: RackId, nic: u16) {
        let of = &mut self.racks[usize::from(rack)];
        let state = &mut of.nics[usize::from(nic)];
        if state.sending || state.has.front() != Some(&true) {
            return;
        }
        state.sending = true;
        let work = of.switch.nics().peek(NicId(nic), 0).expect("its data was read");
        let packet = work.cookie as u32;
        let sent = &self.packets[packet];
        let (frame, data) = (sent.frame(), Bytes(sent.data.into()).to_blocks());
        let link = &mut self.up[self.first_nic[usize::from(rack)] + usize::from(nic)];
        let start = link.send(sim.now(), frame.line_blocks(), data);
        self.counts.sent += 1;
        if let Some(message) = sent.leaves {
            sim.leaves(message, start);
        }
        sim.at(link.free(), Event::Sent(rack, nic));
        let at = last_block(link, start, frame) + self.up_latency + self.rules.core;
        sim.at(at, Event::AtCore(packet));
    }

    /// A NIC has sent its first packet.
    pub(super) fn sent(&mut self, sim: &mut Sim<Event>, rack: RackId, nic: u16) {
        let of = &mut self.racks[usize::from(rack)];
        let Rack { switch, pool, .. } = of;
        let (work, freed) = switch.on_sent(pool, NicId(nic)).expect("it was sending");
        of.released(freed.expect("the switch node held it"));
        let state = &mut of.nics[usize::from(nic)];
        state.sending = false;
        state.has.pop_front();
        state.sent += 1;
        self.transmit(sim, rack, nic);
        self.read_packets(sim, rack, nic);
        self.retry(sim, rack);
        self.discharge(sim, &work, ChargeEnd::Taken);
        self.feed(sim, rack);
    }

    /// There is room in a queue, or in the pool: descriptors that wait go on.
    pub(super) fn retry(&mut self, sim: &mut Sim<Event>, rack: RackId) {
        loop {
            let Rack { switch, pool, .. } = &mut self.racks[usize::from(rack)];
            let Some(action) = switch.retry(pool) else { return };
            self.act(sim, rack, action);
            if let Action::ToNic { work: went, .. } | Action::ToRx { descriptor: went, .. } = action
            {
                let of = &mut self.racks[usize::from(rack)];
                let queue = of.tx_of(&went);
                of.tx[queue as usize].blocked = false;
                self.drain(sim, rack, queue);
            }
        }
    }

    /// A packet is at the switch between the racks.
    pub(super) fn at_core(&mut self, sim: &mut Sim<Event>, packet: u32) {
        let sent = &self.packets[packet];
        let (rack, nic) = sent.path;
        let frame = sent.frame();
        let link = &mut self.down[self.first_nic[usize::from(rack)] + usize::from(nic)];
        let queued = link.backlog(sim.now()).0 * ethermem_units::BLOCK_PAYLOAD_BYTES;
        let is_lost = self.loss > 0 && self.draws.next_u64() >> 32 < self.loss;
        if is_lost || queued + frame.line_bytes() > self.rules.port_bytes.0 {
            self.counts.dropped += 1;
            self.packets.remove(packet);
            return;
        }
        let data = Bytes(sent.data.into()).to_blocks();
        let start = link.send(sim.now(), frame.line_blocks(), data);
        let at = last_block(link, start, frame) + self.down_latency;
        sim.at(at, Event::AtNic(packet));
    }

    /// A packet is whole at a NIC, which writes it into the next Buffer of its RX queue.
    pub(super) fn at_nic(&mut self, sim: &mut Sim<Event>, packet: u32) {
        let (rack, nic) = self.packets[packet].path;
        let at_best = self.rules.at_best;
        let of = &mut self.racks[usize::from(rack)];
        let Some(buffer) = of.receive_buffer(nic) else {
            self.counts.dropped += 1;
            self.packets.remove(packet);
            return;
        };
        self.counts.delivered += 1;
        let received = &mut self.packets[packet];
        let sent = received.descriptor;
        received.descriptor = Descriptor {
            kind: DescriptorKind::Received,
            reference: buffer,
            length: received.bytes(),
            cookie: packet.into(),
            ..sent
        };
        let memory = if at_best { of.device(received.number) } else { of.memory_of(buffer) };
        received.memory = memory;
        of.nics[usize::from(nic)].landing.push_back((packet, false));
        let transfer = Transfer {
            kind: Kind::Write,
            port: of.nic_port(nic),
            memory,
            bytes: received.bytes().into(),
            what: What::Written { packet },
            message: None,
            read: None,
            user: User::nics(node_of(sent.destination) - of.first),
        };
        of.transfer(sim, transfer);
    }

    /// A received packet is in its Buffer: completions are in the order of arrival.
    pub(super) fn written(&mut self, sim: &mut Sim<Event>, packet: u32) {
        let (rack, nic) = self.packets[packet].path;
        let state = &mut self.racks[usize::from(rack)].nics[usize::from(nic)];
        for landing in &mut state.landing {
            landing.1 |= landing.0 == packet;
        }
        while let Some(&(packet, true)) = state.landing.front() {
            state.landing.pop_front();
            state.completions.push_back(packet);
        }
        self.complete(sim, rack, nic);
    }

    /// The SN takes the completions of a NIC, one behind the other.
    pub(super) fn complete(&mut self, sim: &mut Sim<Event>, rack: RackId, nic: u16) {
        loop {
            let of = &mut self.racks[usize::from(rack)];
            let Some(&packet) = of.nics[usize::from(nic)].completions.front() else { return };
            let words = self.packets[packet].descriptor.words();
            let Rack { switch, pool, .. } = of;
            let action = switch.on_completion(pool, &words);
            let state = &mut of.nics[usize::from(nic)];
            state.stalled = action == Action::Waits;
            if state.stalled {
                return;
            }
            state.completions.pop_front();
            self.act(sim, rack, action);
        }
    }

    /// There is room in an RxQ again.
    pub(super) fn consumed(&mut self, sim: &mut Sim<Event>, rack: RackId, queue: u32) {
        let of = &mut self.racks[usize::from(rack)];
        of.switch.on_consumed(queue);
        for nic in 0..of.nics.len() {
            if self.racks[usize::from(rack)].nics[nic].stalled {
                self.complete(sim, rack, nic as u16);
            }
        }
        if self.rules.intra_rack != IntraRack::Lines {
            self.retry(sim, rack);
        }
    }

    /// A node of a rack, by its number there.
    pub(super) fn member(&self, node: u16) -> (RackId, Node) {
        let rack = self.rack_of[usize::from(node)];
        (rack, Node(node - self.racks[usize::from(rack)].first))
    }
}
