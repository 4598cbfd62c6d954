//! Requests under way, their retries, and what came of them.

use std::collections::VecDeque;

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    AcknowledgedIds, ClioStatus, ENVELOPE_BYTES, Envelope, EnvelopeError, Epoch, NodeFacts,
    ProcessId, REQUEST_BYTES, RESPONSE_BYTES, Reply, Request, RequestId, RequestPacket,
    ResponsePacket,
};

use super::config::{ClientConfig, ClientConfigError, DATAGRAM_BYTES_MAX};
use super::flights::{Flight, Flights};
use super::node_clock::NodeClock;
use super::operation::{Ask, Completed, Operation, OperationError, OperationId, Part};
use super::operations::Operations;
use super::round_trips::RoundTrips;
use super::window::{CongestionWindow, IncastWindow};
use crate::node::Busy;

/// Address and data of a write take so much of a request that its answer does not.
const WRITE_ADDRESS_BYTES: usize = 8;
/// A datagram lives so many times as long as an answer is waited for, and so long at least.
const LIFE_TRIPS: u64 = 4;
const LIFE_MIN: Ns = Ns(10_000_000);
/// A node that works on a request is asked for its result after such a share of the time so far,
/// and so late at most.
const WORK_SHARE: u64 = 8;
const ASK_AGAIN_MAX: Ns = Ns(5_000_000);
/// Requests that may be under way before the node was heard: as TCP begins (RFC 6928).
const WINDOW_INITIAL: u32 = 10;
/// Acknowledgements in a packet of their own, at most.
const ACKNOWLEDGED_MAX: usize = 16;

/// An operation has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which.
    pub operation: OperationId,
    /// How.
    pub outcome: Result<Completed, OperationError>,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Requests that were sent for the first time.
    pub requests: u64,
    /// Requests that were sent again.
    pub retries: u64,
    /// Answers that were taken.
    pub answers: u64,
    /// Answers to requests that had theirs, or that are none.
    pub ignored: u64,
    /// Datagrams whose check failed.
    pub corrupt: u64,
}

/// See the module above.
pub struct Client {
    config: ClientConfig,
    facts: Option<NodeFacts>,
    clock: NodeClock,
    trips: RoundTrips,
    congestion: CongestionWindow,
    incast: IncastWindow,
    sequence: u64,
    /// The end of life of the last datagram, which never goes back.
    life_end: Ns,
    next_request: u64,
    /// That asks what the node is; nothing else goes before its answer.
    hello: Option<OperationId>,
    operations: Operations,
    /// Operations with parts that were not sent, in their order.
    waiting: VecDeque<OperationId>,
    flights: Flights,
    /// Requests whose answers came, and since when the first waits to say so.
    acknowledge: VecDeque<RequestId>,
    acknowledge_since: Ns,
    events: VecDeque<Event>,
    counters: ClientCounters,
}

/// A datagram as it grows.
struct Draft<'a> {
    into: &'a mut [u8],
    used: usize,
    /// Where its packets must end.
    end: usize,
    /// What the answers will take of theirs.
    answers: usize,
    envelope: Envelope,
}

impl Client {
    /// A client that has not spoken to its node yet.
    ///
    /// # Errors
    /// [`ClientConfigError`].
    pub fn new(config: ClientConfig) -> Result<Client, ClientConfigError> {
        config.check()?;
        Ok(Client {
            config,
            facts: None,
            clock: NodeClock::default(),
            trips: RoundTrips::new(config.retry_after_min, config.retry_after_max),
            congestion: CongestionWindow::new(
                WINDOW_INITIAL,
                config.window_max,
                config.queueing_target,
            ),
            incast: IncastWindow::new(config.incast_window),
            sequence: 0,
            life_end: Ns::ZERO,
            next_request: 0,
            hello: None,
            operations: Operations::default(),
            waiting: VecDeque::new(),
            flights: Flights::new(config.window_max),
            acknowledge: VecDeque::new(),
            acknowledge_since: Ns::ZERO,
            events: VecDeque::new(),
            counters: ClientCounters::default(),
        })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> ClientCounters {
        self.counters
    }

    /// Requests that were sent, and have no answer.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.flights.count()
    }

    /// What the node is, once it has said so.
    #[must_use]
    pub fn facts(&self) -> Option<NodeFacts> {
        self.facts
    }

    /// The congestion window, in thousandths of a request.
    #[must_use]
    pub fn window_milli_requests(&self) -> u64 {
        self.congestion.milli_requests()
    }

    /// Asks for anything but a write or what the transport does by itself (`Hello` and
    /// `Acknowledge`). The operation may go as soon as there is room.
    pub fn submit(&mut self, process: ProcessId, request: Request<'static>) -> OperationId {
        let id = self.begin(process, Ask::Short(request));
        if let Request::Read { bytes: 0, .. } = request {
            self.fail(id, OperationError::Length(0));
        }
        id
    }

    /// Asks to write.
    pub fn submit_write(&mut self, process: ProcessId, address: u64, data: Vec<u8>) -> OperationId {
        let bytes = data.len() as u64;
        let id = self.begin(process, Ask::Write { address, data });
        if bytes == 0 || bytes > u64::from(u32::MAX) {
            self.fail(id, OperationError::Length(bytes));
        }
        id
    }

    /// Asks to run an operation at the node. Its datagram, and that of the answer, may be longer
    /// than others: what carries them cuts them.
    pub fn submit_offload(
        &mut self,
        process: ProcessId,
        name: &str,
        arguments: Vec<u8>,
    ) -> OperationId {
        let bytes = arguments.len();
        let id = self.begin(process, Ask::Offload { name: name.to_owned(), arguments });
        let front = ENVELOPE_BYTES + REQUEST_BYTES + 1 + name.len();
        let room = DATAGRAM_BYTES_MAX - front - self.config.protection.trailer_bytes();
        if bytes > room || name.len() > usize::from(u8::MAX) {
            self.fail(id, OperationError::Length(bytes as u64));
        }
        id
    }

    /// An operation that has ended.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.operations.release(event.operation);
        Some(event)
    }

    /// When [`Client::poll_transmit`] has something to send that it has not now, if no datagram
    /// comes before. To be asked after each call of another method.
    #[must_use]
    pub fn next_wake(&self) -> Option<Ns> {
        let paced = if self.waiting.is_empty() { None } else { self.congestion.next() };
        let acknowledge = (!self.acknowledge.is_empty()).then(|| self.acknowledge_due());
        [self.flights.due(), paced, acknowledge].into_iter().flatten().min()
    }

    /// The next datagram, written into `into`; 0 is none for now. To be called until it is, after
    /// each call of another method and when [`Client::next_wake`] has come. By AES-GCM the datagram
    /// is still to be sealed, and has room for the tag.
    ///
    /// # Panics
    /// If `into` is shorter than the longest datagram; where operations run at the node, than the
    /// longest that UDP carries.
    pub fn poll_transmit(&mut self, now: Ns, into: &mut [u8]) -> usize {
        assert!(into.len() >= self.config.datagram_bytes_max, "room for the longest datagram");
        if self.waiting.is_empty() && self.next_wake().is_none_or(|wake| wake > now) {
            return 0;
        }
        let end = ENVELOPE_BYTES + self.config.packets_bytes_max();
        let (envelope, sequence) = (self.envelope(now), self.sequence);
        let mut draft = Draft { into, used: ENVELOPE_BYTES, end, answers: 0, envelope };
        self.send_again(now, &mut draft);
        self.send_new(now, &mut draft);
        self.send_acknowledgements(now, &mut draft);
        let used = draft.used;
        if used == ENVELOPE_BYTES {
            return 0;
        }
        self.sequence = sequence + 1;
        self.life_end = envelope.clock;
        self.counters.datagrams += 1;
        let sealed = envelope.emit(into).and_then(|_| envelope.seal(into, used));
        sealed.expect("room was left for envelope and trailer")
    }

    /// A datagram came, with no check of its own or with a CRC.
    pub fn on_datagram(&mut self, now: Ns, datagram: &[u8]) {
        match Envelope::open(datagram) {
            Ok(opened) if opened.envelope.protection == self.config.protection => {
                self.on_packets(now, &opened.envelope, &datagram[opened.packets]);
            }
            Err(EnvelopeError::Corrupt { .. }) => self.counters.corrupt += 1,
            Ok(_) | Err(_) => self.counters.ignored += 1,
        }
    }

    /// The packets of a datagram that was checked.
    pub fn on_packets(&mut self, now: Ns, envelope: &Envelope, packets: &[u8]) {
        if self.epoch() == envelope.epoch {
            self.clock.hear(now, envelope.clock);
        }
        for packet in ResponsePacket::packets(packets) {
            match packet {
                Ok(packet) => self.on_answer(now, envelope, &packet),
                Err(_) => self.counters.ignored += 1,
            }
        }
    }

    fn epoch(&self) -> Epoch {
        self.facts.map_or(Epoch::UNKNOWN, |facts| facts.epoch)
    }

    fn begin(&mut self, process: ProcessId, ask: Ask) -> OperationId {
        if self.facts.is_none() && self.hello.is_none() {
            let hello = Operation::new(ProcessId(0), Ask::Short(Request::Hello));
            let hello = self.operations.insert(hello);
            self.hello = Some(hello);
            self.waiting.push_front(hello);
        }
        let id = self.operations.insert(Operation::new(process, ask));
        self.waiting.push_back(id);
        id
    }

    /// Ends an operation of which nothing is under way.
    fn fail(&mut self, operation: OperationId, error: OperationError) {
        self.waiting.retain(|&waiting| waiting != operation);
        if self.operations.remove(operation).is_some() {
            self.events.push_back(Event { operation, outcome: Err(error) });
        }
    }

    fn envelope(&self, now: Ns) -> Envelope {
        let most = self.facts.map_or(0, |facts| u64::from(facts.lifetime_us_max) * 1000);
        // A node remembers each change for a life, so a life is no longer than the way may take.
        // Less than it allows: its clock may be behind what an earlier datagram was given.
        let way = self.trips.retry_after(0).0.saturating_mul(LIFE_TRIPS).max(LIFE_MIN.0);
        let life = Ns(way.min(most / 4 * 3));
        let end = self.clock.at(now).map(|node| node.saturating_add(life));
        Envelope {
            protection: self.config.protection,
            tenant: self.config.tenant,
            epoch: self.epoch(),
            sender: self.config.sender,
            sequence: self.sequence,
            clock: end.unwrap_or(Ns::ZERO).max(self.life_end),
        }
    }

    /// Most data of a request and of an answer.
    fn part_bytes_max(&self) -> u64 {
        let header = (REQUEST_BYTES + WRITE_ADDRESS_BYTES).max(RESPONSE_BYTES);
        let room = (self.config.packets_bytes_max() - header) as u64;
        self.facts.map_or(room, |facts| room.min(facts.data_bytes_max.into()))
    }

    fn acknowledge_due(&self) -> Ns {
        self.acknowledge_since.saturating_add(self.config.retry_after_min)
    }

    /// Sends what has waited for its answer long enough, and gives up what has done so for too
    /// long.
    fn send_again(&mut self, now: Ns, draft: &mut Draft<'_>) {
        if self.flights.due().is_none_or(|due| due > now) {
            return;
        }
        let mut next = Ns(u64::MAX);
        for request in self.flights.numbers() {
            let Some(flight) = self.flights.get(request) else { continue };
            if flight.due <= now {
                let operation = self.operations.get(flight.operation);
                let failed = operation.expect("a flight is of an operation").error.is_some();
                if failed || now.saturating_sub(flight.began) >= self.config.give_up_after {
                    self.give_up(now, request);
                } else if !self.try_again(now, request, draft) {
                    // The rest is due still, in the next datagram.
                    return;
                }
            }
            next = next.min(self.flights.get(request).map_or(next, |flight| flight.due));
        }
        self.flights.looked(next);
    }

    /// False where it does not fit the datagram.
    fn try_again(&mut self, now: Ns, request: u64, draft: &mut Draft<'_>) -> bool {
        let flight = self.flights.get(request).expect("what is due is under way");
        let (operation, retries) = (flight.operation, flight.retries + 1);
        let asked = (request, retries as u8);
        if !self.put(draft, (operation, flight.part), asked, flight.acknowledged) {
            return false;
        }
        let flight = self.flights.get_mut(request).expect("it is under way");
        let was_heard = flight.working.is_some() && flight.unheard == 0;
        flight.unheard += 1;
        let due = now.saturating_add(self.trips.retry_after(flight.unheard));
        (flight.sent, flight.sequence) = (now, draft.envelope.sequence);
        (flight.dead, flight.retries) = (draft.envelope.clock, retries);
        self.flights.look_at(request, due);
        self.counters.retries += 1;
        if !was_heard {
            self.congestion.lost(now, self.trips.smoothed());
        }
        true
    }

    /// A request has had its time.
    fn give_up(&mut self, now: Ns, request: u64) {
        let flight = self.flights.get(request).expect("what is due is under way");
        let known = self.clock.at(now).unwrap_or(Ns::ZERO);
        if flight.opcode.is_repeatable() || known > flight.dead {
            return self.lose(request);
        }
        // Until no copy of it can act, it is not lost.
        let rest = flight.dead.saturating_sub(known).0;
        self.flights.look_at(request, now.saturating_add(Ns(rest + rest / 1000 + 1)));
    }

    fn send_new(&mut self, now: Ns, draft: &mut Draft<'_>) {
        let most = self.part_bytes_max();
        while let Some(&id) = self.waiting.front() {
            // Before the node is known, only that goes which asks what it is.
            if self.facts.is_none() && self.hello != Some(id) {
                return;
            }
            let operation = self.operations.get(id).expect("what waits has not ended");
            let part = operation.next_part(most).filter(|_| operation.error.is_none());
            let Some(part) = part else {
                self.waiting.pop_front();
                self.settle(id);
                continue;
            };
            let opcode = operation.request(part).opcode();
            let answer = Bytes(self.answer_bytes(operation, part) as u64);
            let request = self.next_request + 1;
            let acknowledged = self.acknowledge.front().copied().unwrap_or(RequestId::NONE);
            let room = self.congestion.has_room(now)
                && self.incast.has_room(answer)
                && self.flights.has_room();
            if !room || !self.put(draft, (id, part), (request, 0), acknowledged) {
                return;
            }
            self.acknowledge.pop_front();
            self.next_request = request;
            self.counters.requests += 1;
            self.congestion.sent(now, self.trips.smoothed());
            self.incast.sent(answer);
            let operation = self.operations.get_mut(id).expect("it waits");
            operation.cut += part.bytes;
            operation.open += 1;
            if operation.next_part(most).is_none() {
                self.waiting.pop_front();
            }
            let flight = Flight {
                operation: id,
                part,
                opcode,
                retries: 0,
                unheard: 0,
                working: None,
                began: now,
                sent: now,
                sequence: draft.envelope.sequence,
                dead: draft.envelope.clock,
                due: now.saturating_add(self.trips.retry_after(0)),
                answer,
                acknowledged,
            };
            self.flights.insert(request, flight);
        }
    }

    /// Acknowledges what no request did in time.
    fn send_acknowledgements(&mut self, now: Ns, draft: &mut Draft<'_>) {
        if self.acknowledge.is_empty() || now < self.acknowledge_due() {
            return;
        }
        let count = self.acknowledge.len().min(ACKNOWLEDGED_MAX);
        let mut octets = [0; ACKNOWLEDGED_MAX * 8];
        for (place, id) in octets.chunks_exact_mut(8).zip(&self.acknowledge) {
            place.copy_from_slice(&id.0.to_le_bytes());
        }
        let ids = AcknowledgedIds::new(&octets[..count * 8]).expect("whole numbers");
        let packet = RequestPacket {
            attempt: 0,
            process: ProcessId(0),
            request: RequestId(self.next_request + 1),
            acknowledged: RequestId::NONE,
            body: Request::Acknowledge(ids),
        };
        if let Ok(bytes) = packet.emit(&mut draft.into[draft.used..draft.end]) {
            draft.used += bytes;
            self.next_request += 1;
            self.acknowledge.drain(..count);
            self.acknowledge_since = now;
        }
    }

    /// Puts a request into the datagram; false where it, or its answer, does not fit.
    fn put(
        &self,
        draft: &mut Draft<'_>,
        (id, part): (OperationId, Part),
        (request, attempt): (u64, u8),
        acknowledged: RequestId,
    ) -> bool {
        let operation = self.operations.get(id).expect("what is sent has not ended");
        let answer = self.answer_bytes(operation, part);
        let empty = draft.used == ENVELOPE_BYTES;
        if draft.answers + answer > self.config.packets_bytes_max()
            || (operation.goes_alone() && !empty)
        {
            return false;
        }
        let packet = RequestPacket {
            attempt,
            process: operation.process,
            request: RequestId(request),
            acknowledged,
            body: operation.request(part),
        };
        let end = if operation.goes_alone() {
            draft.into.len() - self.config.protection.trailer_bytes()
        } else {
            draft.end
        };
        let Ok(bytes) = packet.emit(&mut draft.into[draft.used..end]) else {
            return false;
        };
        draft.used += bytes;
        draft.answers += answer;
        if operation.goes_alone() {
            draft.end = draft.used;
        }
        true
    }

    /// Octets of a part's answer, at most.
    fn answer_bytes(&self, operation: &Operation, part: Part) -> usize {
        let most = self.config.packets_bytes_max() - RESPONSE_BYTES;
        RESPONSE_BYTES + operation.answer_bytes(part, most as u64) as usize
    }

    fn on_answer(&mut self, now: Ns, envelope: &Envelope, packet: &ResponsePacket<'_>) {
        if let Reply::Refused(ClioStatus::Corrupt, sequence) = packet.reply {
            return self.on_nack(now, sequence);
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
        if packet.attempt == flight.retries as u8 {
            let time = now.saturating_sub(flight.sent);
            self.trips.took(time);
            self.congestion.took(now, time);
        }
        if let Reply::Refused(status @ (ClioStatus::Busy | ClioStatus::Expired), why) = packet.reply
            && (status, why) != (ClioStatus::Busy, Busy::Ending as u64)
        {
            let working = (status, why) == (ClioStatus::Busy, Busy::Running as u64);
            let again = if working {
                self.works(now, request)
            } else {
                self.trips.retry_after(flight.retries)
            };
            return self.flights.look_at(request, now.saturating_add(again));
        }
        let right = packet.opcode == flight.opcode as u8;
        let operation = self.operations.get_mut(id).expect("a flight is of an operation");
        if !right || !operation.take(part, &packet.reply) {
            self.counters.ignored += 1;
            return;
        }
        self.counters.answers += 1;
        if let (true, Reply::Facts(facts)) = (hello, packet.reply) {
            self.facts = Some(facts);
            self.clock.hear(now, envelope.clock);
        }
        let flight = self.land(request).expect("it was under way");
        if !flight.opcode.is_repeatable() {
            if self.acknowledge.is_empty() {
                self.acknowledge_since = now;
            }
            self.acknowledge.push_back(packet.request);
        }
        self.settle(id);
    }

    /// The node works on a request, so it is not given up; after how long to ask again: a share of
    /// how long it has worked already.
    fn works(&mut self, now: Ns, request: u64) -> Ns {
        let trip = self.trips.smoothed();
        let flight = self.flights.get_mut(request).expect("it is under way");
        (flight.began, flight.unheard) = (now, 0);
        let since = *flight.working.get_or_insert(now);
        Ns((now.saturating_sub(since).0 / WORK_SHARE).clamp(trip.0, ASK_AGAIN_MAX.0.max(trip.0)))
    }

    /// A datagram of ours was changed on its way: what was in it goes at once.
    fn on_nack(&mut self, now: Ns, sequence: u64) {
        for request in self.flights.numbers() {
            let hit = self.flights.get(request).filter(|flight| flight.sequence == sequence);
            if let Some(due) = hit.map(|flight| flight.due) {
                self.flights.look_at(request, now.min(due));
            }
        }
    }

    /// A request is not under way any more.
    fn land(&mut self, request: u64) -> Option<Flight> {
        let flight = self.flights.remove(request)?;
        self.congestion.ended();
        self.incast.ended(flight.answer);
        let operation = self.operations.get_mut(flight.operation).expect("it has a flight");
        operation.open -= 1;
        Some(flight)
    }

    fn lose(&mut self, request: u64) {
        let id = self.land(request).expect("it was under way").operation;
        let operation = self.operations.get_mut(id).expect("it had a flight");
        operation.error.get_or_insert(OperationError::Lost);
        if self.hello == Some(id) {
            self.operations.remove(id);
            self.operations.release(id);
            self.hello = None;
            // Nobody is there: nothing of what waits has gone.
            let waiting: Vec<OperationId> = self.waiting.drain(..).collect();
            waiting.into_iter().for_each(|id| self.fail(id, OperationError::Lost));
        } else {
            self.settle(id);
        }
    }

    /// Tells the outcome of an operation that has one.
    fn settle(&mut self, id: OperationId) {
        let most = self.part_bytes_max();
        let Some(operation) = self.operations.get_mut(id) else { return };
        let Some(outcome) = operation.outcome(most) else { return };
        // Of what failed, parts may be left that will not be sent.
        let waits = operation.next_part(most).is_some();
        self.operations.remove(id);
        if waits {
            self.waiting.retain(|&waiting| waiting != id);
        }
        if self.hello == Some(id) {
            self.hello = None;
            self.operations.release(id);
        } else {
            self.events.push_back(Event { operation: id, outcome });
        }
    }

    /// The node lives another life: whatever was under way is over, and what it said of itself.
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

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::{Protection, SenderId, TenantId};

    use super::*;

    #[test]
    fn a_place_is_another_operations_once_its_event_was_polled_and_not_before() {
        let mut client = Client::new(ClientConfig {
            sender: SenderId(1),
            tenant: TenantId(1),
            protection: Protection::Carrier,
            datagram_bytes_max: 1472,
            window_max: 1,
            incast_window: Bytes(1472),
            queueing_target: Ns(0),
            retry_after_min: Ns(1),
            retry_after_max: Ns(1),
            give_up_after: Ns(2),
        })
        .expect("a client can be so");
        let mut empty = || client.submit(ProcessId(1), Request::Read { address: 64, bytes: 0 });
        let (one, other) = (empty(), empty());
        assert_ne!(one.place(), other.place(), "the first has ended, and nobody knows it yet");
        let ended = [client.poll_event(), client.poll_event()].map(|e| e.expect("two").operation);
        assert_eq!(ended, [one, other]);
        let next = client.submit(ProcessId(1), Request::Fence);
        assert!([one, other].map(OperationId::place).contains(&next.place()));
    }
}
