//! What arrives from the node: answers, negative acknowledgements, and another epoch of the node.

use core::mem::replace;

use ethermem_units::Ns;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, ENVELOPE_BYTES, Envelope, EnvelopeError, Epoch, RESPONSE_BYTES, Reply,
    ResponsePacket,
};

use super::super::flights::Tried;
use super::super::node_clock::NodeClock;
use super::super::operation::{OperationError, OperationId, Sink};
use super::super::paths::PathId;
use super::{Client, Landing};
use crate::node::Busy;

/// While a node works on a request, the client asks for the result again after this share of the
/// time so far, within bounds.
const WORK_SHARE: u64 = 8;
const ASK_AGAIN_MAX: Ns = Ns(5_000_000);

impl Client {
    /// Processes a datagram with the carrier's check or with a CRC, of a client with a single path.
    pub fn on_datagram(&mut self, now: Ns, datagram: &[u8]) {
        self.on_datagram_from(now, PathId::ONLY, datagram);
    }

    /// As [`Client::on_datagram`], for a datagram that came by a path.
    pub fn on_datagram_from(&mut self, now: Ns, path: PathId, datagram: &[u8]) {
        self.on_datagram_into(now, path, datagram, None);
    }

    /// As [`Client::on_datagram_from`], with the buffer of a read.
    pub fn on_datagram_into(
        &mut self,
        now: Ns,
        path: PathId,
        datagram: &[u8],
        landing: Option<&mut Landing<'_>>,
    ) {
        match Envelope::open(datagram) {
            Ok(opened) if opened.envelope.protection == self.config.protection => {
                let packets = &datagram[opened.packets];
                self.on_packets_into(now, path, &opened.envelope, packets, landing);
            }
            Err(EnvelopeError::Corrupt { .. }) => self.counters.corrupt += 1,
            Ok(_) | Err(_) => self.counters.ignored += 1,
        }
    }

    /// Processes the packets of a checked datagram, of a client with a single path.
    pub fn on_packets(&mut self, now: Ns, envelope: &Envelope, packets: &[u8]) {
        self.on_packets_from(now, PathId::ONLY, envelope, packets);
    }

    /// As [`Client::on_packets`], for a datagram that came by a path.
    pub fn on_packets_from(&mut self, now: Ns, path: PathId, envelope: &Envelope, packets: &[u8]) {
        self.on_packets_into(now, path, envelope, packets, None);
    }

    /// As [`Client::on_packets_from`], with the buffer of a read.
    pub fn on_packets_into(
        &mut self,
        now: Ns,
        path: PathId,
        envelope: &Envelope,
        packets: &[u8],
        mut landing: Option<&mut Landing<'_>>,
    ) {
        self.hears(now, path, envelope);
        for packet in ResponsePacket::packets(packets) {
            match packet {
                Ok(packet) => {
                    let landing = landing.as_deref_mut();
                    let sink = |id| landing.map_or(Sink::Own, |landing| landing.sink(id));
                    self.on_answer(now, path, envelope, &packet, sink);
                }
                Err(_) => self.counters.ignored += 1,
            }
        }
        self.heard(now, path, envelope);
    }

    pub(super) fn hears(&mut self, now: Ns, path: PathId, envelope: &Envelope) {
        if self.epoch() == envelope.epoch {
            self.clock.hear(now, envelope.clock);
            self.silence.heard(now);
            self.paths.heard(now, path);
        }
    }

    pub(super) fn heard(&mut self, now: Ns, path: PathId, envelope: &Envelope) {
        // The first answer tells the epoch, and answers leave less in flight.
        if self.epoch() == envelope.epoch {
            self.paths.heard(now, path);
        }
    }

    /// Learns from the time when an answered try was sent.
    fn learn_trip(&mut self, now: Ns, tried: &Tried) {
        let time = now.saturating_sub(tried.sent);
        let least = self.looked.map_or(time, |looked| looked.saturating_sub(tried.sent));
        let path = self.paths.get_mut(tried.path);
        path.trips.took(time);
        path.confirms(tried.sent);
        if !tried.is_last {
            path.congestion.was_late();
        }
        path.congestion.took_between(now, least.min(time), time);
    }

    pub(super) fn on_answer<'s>(
        &mut self,
        now: Ns,
        path: PathId,
        envelope: &Envelope,
        packet: &ResponsePacket<'_>,
        sink: impl FnOnce(OperationId) -> Sink<'s>,
    ) {
        if let Reply::Refused(ClioStatus::Corrupt, sequence) = packet.reply {
            return self.on_nack(now, sequence);
        }
        if packet.opcode == ClioOpcode::Probe as u8 {
            return self.on_probe(now, path, envelope, packet);
        }
        let request = packet.request.0;
        let Some(flight) = self.flights.get(request) else {
            self.counters.ignored += 1;
            return;
        };
        if let Reply::Refused(ClioStatus::WrongEpoch, _) = packet.reply {
            return self.restart(envelope.epoch);
        }
        let (id, part) = (flight.operation, flight.part);
        let hello = self.hello == Some(id);
        if !hello && envelope.epoch != self.epoch() {
            self.counters.ignored += 1;
            return;
        }
        let (heard, opcode) = (flight.sent_there, flight.opcode);
        let is_last = packet.attempt == flight.retries as u8;
        if let Some(tried) = flight.tried_as(packet.attempt) {
            self.learn_trip(now, &tried);
        }
        if let Reply::Refused(status @ (ClioStatus::Busy | ClioStatus::Expired), why) = packet.reply
            && (status, why) != (ClioStatus::Busy, Busy::Ending as u64)
        {
            if status == ClioStatus::Expired && is_last && envelope.clock < heard {
                self.clock_fell_back(now, envelope.clock);
                if self.flights.get(request).is_none() {
                    return;
                }
            }
            let works = (status, why) == (ClioStatus::Busy, Busy::Running as u64);
            return self.ask_later(now, request, works);
        }
        let right = packet.opcode == opcode as u8;
        let operation = self.operations.get_mut(id).expect("a flight is of an operation");
        if !right || !operation.take(part, &packet.reply, sink(id)) {
            self.counters.ignored += 1;
            return;
        }
        self.counters.answers += 1;
        if let (true, Reply::Facts(facts)) = (hello, packet.reply) {
            self.facts = Some(facts);
            self.clock.hear(now, envelope.clock);
        }
        operation.open -= 1;
        let open = operation.open;
        let flight = self.land(request).expect("it was under way");
        if !flight.opcode.is_repeatable() {
            if self.acknowledge.is_empty() {
                self.acknowledge_since = now;
            }
            self.acknowledge.push_back(packet.request);
        }
        if open == 0 {
            self.settle(id);
        }
    }

    /// Processes the answer to a probe, which is as long as the probe's datagram.
    fn on_probe(
        &mut self,
        now: Ns,
        path: PathId,
        envelope: &Envelope,
        packet: &ResponsePacket<'_>,
    ) {
        let Reply::Padding(zeros) = packet.reply else {
            self.counters.ignored += 1;
            return;
        };
        if envelope.epoch != self.epoch() || packet.request.0 > self.next_request {
            self.counters.ignored += 1;
            return;
        }
        let trailer = self.config.protection.trailer_bytes();
        let bytes = ENVELOPE_BYTES + RESPONSE_BYTES + usize::from(zeros) + trailer;
        let path = self.paths.get_mut(path);
        path.search.heard(now, packet.request.0, bytes, path.trips.retry_after(0));
    }

    /// Records that the node works on a request, so the request is not given up. Returns the time
    /// until the next retry: a share of the time that the node has worked already.
    fn works(&mut self, now: Ns, request: u64) -> Ns {
        let there = self.clock.at(now).unwrap_or(Ns::ZERO);
        let flight = self.flights.get_mut(request).expect("it is under way");
        let trip = self.paths.get(flight.path).trips.smoothed();
        (flight.began, flight.began_there, flight.unheard) = (now, there, 0);
        self.flights.set_aside(request);
        let flight = self.flights.get_mut(request).expect("it is under way");
        let since = *flight.working.get_or_insert(now);
        Ns((now.saturating_sub(since).0 / WORK_SHARE).clamp(trip.0, ASK_AGAIN_MAX.0.max(trip.0)))
    }

    /// Handles a request that the node works on, or does not execute now: it is retried later.
    fn ask_later(&mut self, now: Ns, request: u64, works: bool) {
        self.is_not_under_way(request);
        let again = if works {
            self.works(now, request)
        } else {
            let flight = self.flights.get(request).expect("it is tried again");
            self.paths.get(flight.path).trips.retry_after(flight.retries)
        };
        self.flights.look_at(request, now.saturating_add(again));
    }

    /// Removes from the windows a request that will be retried later. Until then it is not in
    /// flight, and blocks no other.
    fn is_not_under_way(&mut self, request: u64) {
        let flight = self.flights.get_mut(request).expect("it is tried again");
        let (counted, answer) = (replace(&mut flight.counts, false), flight.answer);
        let on = flight.path;
        if counted {
            self.paths.get_mut(on).congestion.ended();
            self.incast.ended(answer);
        }
    }

    /// Handles a node clock that is behind the estimate: the clock stood still, as on a suspended
    /// machine, or was slow. The deadlines of sent datagrams are then far ahead on that clock, and
    /// the node refuses them until its clock catches up. Meanwhile no datagram gets an earlier
    /// deadline, so the node forgets no request while a copy may act. Where the deadlines are
    /// further ahead than any operation is tried, changes are not retried, and the client follows
    /// the clock as it is.
    fn clock_fell_back(&mut self, now: Ns, clock: Ns) {
        self.clock = NodeClock::default();
        self.clock.hear(now, clock);
        if self.life_end <= clock.saturating_add(self.config.give_up_after) {
            return;
        }
        self.life_end = Ns::ZERO;
        for request in self.flights.numbers() {
            if self.flights.get(request).is_some_and(|flight| !flight.opcode.is_repeatable()) {
                self.lose(request);
            }
        }
    }

    /// Handles a datagram that was changed on its way: its requests are retried at once.
    fn on_nack(&mut self, now: Ns, sequence: u64) {
        for request in self.flights.numbers() {
            let hit = self.flights.get(request).filter(|flight| flight.sequence == sequence);
            if let Some(due) = hit.map(|flight| flight.due) {
                self.flights.look_at(request, now.min(due));
            }
        }
    }

    /// Handles a restart of the node: everything in flight and the node's facts are void.
    fn restart(&mut self, epoch: Epoch) {
        for request in self.flights.numbers() {
            self.land(request);
        }
        self.waiting.clear();
        for id in self.operations.names() {
            self.fail(id, OperationError::Restarted(epoch));
        }
        self.acknowledge.clear();
        (self.facts, self.hello) = (None, None);
        (self.clock, self.life_end) = (NodeClock::default(), Ns::ZERO);
    }
}
