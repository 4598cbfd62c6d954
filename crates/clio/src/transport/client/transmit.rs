//! Datagrams to the node: new requests, retries and acknowledgements, as many as a datagram holds.

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    AcknowledgedIds, ClioOpcode, ENVELOPE_BYTES, Envelope, ProcessId, Protection, REQUEST_BYTES,
    RESPONSE_BYTES, Request, RequestId, RequestPacket,
};

use super::super::config::ClientConfig;
use super::super::flights::Flight;
use super::super::operation::{Operation, OperationError, OperationId, Part};
use super::super::path::Probe;
use super::super::paths::PathId;
use super::{Client, Loan};

/// A datagram lives for this many answer timeouts, and at least for the minimum below.
const LIFE_TRIPS: u64 = 4;
const LIFE_MIN: Ns = Ns(10_000_000);
/// Number of tries without an answer after which the path may carry less than before.
const UNHEARD_MAX: u32 = 3;
/// Fewest bytes of a write that stay in their operation. Below, a copy costs less than a longer
/// call of the system.
const OUTSIDE_BYTES_MIN: usize = 8 << 10;
/// Maximum acknowledgements in a packet of their own.
const ACKNOWLEDGED_MAX: usize = 16;

/// A datagram that is being written.
struct Draft<'a> {
    into: &'a mut [u8],
    path: PathId,
    used: usize,
    /// Octet at which its packets must end.
    end: usize,
    /// Octets that the answers will take in their datagram.
    answers: usize,
    /// The data of a long write may stay in its operation.
    refers: bool,
    rest: Option<(OperationId, Part)>,
    /// The data of the write whose caller this is.
    loan: Option<Loan<'a>>,
    envelope: Envelope,
}

impl Client {
    /// Writes the next datagram of a client with a single path; see [`Client::poll_transmit_on`].
    ///
    /// # Panics
    /// As [`Client::poll_transmit_on`].
    pub fn poll_transmit(&mut self, now: Ns, into: &mut [u8]) -> usize {
        self.poll_transmit_on(now, PathId::ONLY, into)
    }

    /// Writes the next datagram for a path into `into`; returns its length, or 0 if there is none
    /// for now. Call it with the path of [`Client::next_path`] until it returns 0, after each call
    /// of another method and at [`Client::next_wake`]. An AES-GCM datagram still has to be sealed,
    /// and has room for the tag.
    ///
    /// # Panics
    /// If `into` is shorter than the longest datagram. Where operations run at the node, that is
    /// the longest that UDP carries.
    pub fn poll_transmit_on(&mut self, now: Ns, path: PathId, into: &mut [u8]) -> usize {
        self.transmit(now, path, into, false, None).0
    }

    /// As [`Client::poll_transmit_on`], by the caller of a write that lends its data.
    ///
    /// # Panics
    /// As [`Client::poll_transmit_on`].
    pub fn poll_transmit_lent(
        &mut self,
        now: Ns,
        path: PathId,
        into: &mut [u8],
        loan: Option<Loan<'_>>,
    ) -> usize {
        self.transmit(now, path, into, false, loan).0
    }

    /// As [`Client::poll_transmit_lent`], for a carrier that sends octets of several places as one
    /// datagram: the data of a long write stay where they are. Returns the length in `into`, and
    /// the octets that follow. With a CRC, or for encryption, there are none.
    ///
    /// # Panics
    /// As [`Client::poll_transmit_on`].
    pub fn poll_transmit_parts<'d>(
        &'d mut self,
        now: Ns,
        path: PathId,
        into: &mut [u8],
        loan: Option<Loan<'d>>,
    ) -> (usize, &'d [u8]) {
        let refers = self.config.protection == Protection::Carrier;
        let (bytes, rest) = self.transmit(now, path, into, refers, loan);
        let data = |(id, part)| self.operations.get(id)?.data(part, Loan::of(loan, id));
        (bytes, rest.and_then(data).unwrap_or_default())
    }

    fn transmit(
        &mut self,
        now: Ns,
        path: PathId,
        into: &mut [u8],
        refers: bool,
        loan: Option<Loan<'_>>,
    ) -> (usize, Option<(OperationId, Part)>) {
        assert!(into.len() >= self.config.datagram_bytes_max, "room for the longest datagram");
        if self.waiting.is_empty() && self.next_wake().is_none_or(|wake| wake > now) {
            return (0, None);
        }
        if let Some(bytes) = self.send_probe(now, path, into) {
            return (bytes, None);
        }
        let carries = self.paths.get(path).search.carries();
        let end = ENVELOPE_BYTES + self.config.packets_bytes(carries);
        let envelope = self.envelope(now, path);
        let used = ENVELOPE_BYTES;
        let (answers, rest) = (0, None);
        let mut draft = Draft { into, path, used, end, answers, refers, rest, loan, envelope };
        self.give_up_waiting(now);
        self.send_again(now, &mut draft);
        self.send_new(now, &mut draft);
        self.send_acknowledgements(now, &mut draft);
        let (used, rest) = (draft.used, draft.rest);
        if used == ENVELOPE_BYTES {
            return (0, None);
        }
        (self.finish(envelope, into, used), rest)
    }

    /// Completes a datagram whose packets are written.
    fn finish(&mut self, envelope: Envelope, into: &mut [u8], used: usize) -> usize {
        self.sequence = envelope.sequence + 1;
        self.life_end = envelope.clock;
        self.counters.datagrams += 1;
        let sealed = envelope.emit(into).and_then(|_| envelope.seal(into, used));
        sealed.expect("room was left for envelope and trailer")
    }

    fn send_probe(&mut self, now: Ns, path: PathId, into: &mut [u8]) -> Option<usize> {
        self.probe_due().filter(|&due| due <= now)?;
        let request = self.next_request + 1;
        let probe = self.next_probe(now, path, request)?;
        let bytes = match probe {
            Probe::Long(bytes) => self.config.packets_bytes(bytes),
            Probe::Short => REQUEST_BYTES,
        };
        let packet = RequestPacket {
            attempt: 0,
            process: ProcessId(0),
            request: RequestId(request),
            acknowledged: RequestId::NONE,
            body: Request::Probe { padding: (bytes - REQUEST_BYTES) as u16 },
        };
        let envelope = self.envelope(now, path);
        let written = packet.emit(&mut into[ENVELOPE_BYTES..][..bytes]);
        let used = ENVELOPE_BYTES + written.expect("a probe is as long as its place");
        self.next_request = request;
        Some(self.finish(envelope, into, used))
    }

    fn envelope(&self, now: Ns, path: PathId) -> Envelope {
        let most = self.facts.map_or(0, |facts| u64::from(facts.lifetime_us_max) * 1000);
        // A node remembers each change for the lifetime of its datagram, so a lifetime is only as
        // long as the way may take. It is below the node's maximum, since the node's clock may be
        // behind an earlier datagram's deadline.
        let timeout = self.paths.get(path).trips.retry_after(0);
        let way = timeout.0.saturating_mul(LIFE_TRIPS).max(LIFE_MIN.0);
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

    pub(super) fn acknowledge_due(&self) -> Ns {
        self.acknowledge_since.saturating_add(self.config.retry_after_min)
    }

    /// Retries requests that have waited long enough, and gives up requests that have waited too
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
                let late = now.saturating_sub(flight.began) >= self.config.give_up_after;
                if failed || late || self.may_be_forgotten(now, flight) {
                    self.give_up(now, request);
                } else if self.is_elsewhere(request, draft) {
                    // Its caller sends it. Here it is only given up.
                    let flight = self.flights.get(request).expect("it is under way");
                    next = next.min(flight.began.saturating_add(self.config.give_up_after));
                    continue;
                } else if !self.try_again(now, request, draft) {
                    // The rest stays due, for the next datagram.
                    return;
                }
            }
            next = next.min(self.flights.get(request).map_or(next, |flight| flight.due));
        }
        self.flights.looked(next);
    }

    /// True if the node may have executed a request and forgotten it since. The client's clock does
    /// not show it if it stood still: while the machine slept, or was a stopped virtual machine.
    fn may_be_forgotten(&self, now: Ns, flight: &Flight) -> bool {
        let there = self.clock.at(now).unwrap_or(Ns::ZERO);
        let passed = there.saturating_sub(flight.began_there);
        !flight.opcode.is_repeatable() && passed >= self.config.give_up_after
    }

    /// Returns true if the data of a request that is due are not at hand, and records it.
    fn is_elsewhere(&mut self, request: u64, draft: &Draft<'_>) -> bool {
        let Some(flight) = self.flights.get(request) else { return false };
        let (id, part) = (flight.operation, flight.part);
        let operation = self.operations.get_mut(id).expect("a flight is of an operation");
        let is_elsewhere = operation.data(part, Loan::of(draft.loan, id)).is_none();
        operation.is_overdue |= is_elsewhere;
        is_elsewhere
    }

    /// Retries a request. Returns false if it does not fit the datagram.
    fn try_again(&mut self, now: Ns, request: u64, draft: &mut Draft<'_>) -> bool {
        let flight = self.flights.get(request).expect("what is due is under way");
        let retries = flight.retries + 1;
        let operation = self.operations.get(flight.operation);
        let operation = operation.expect("what is sent has not ended");
        let tried = (flight.operation, operation, flight.part);
        let asked = (request, retries as u8);
        if draft.put(&self.config, tried, asked, flight.acknowledged).is_none() {
            return false;
        }
        let flight = self.flights.get_mut(request).expect("it is under way");
        let was_heard = flight.working.is_some() && flight.unheard == 0;
        let (before, counts, answer) = (flight.path, flight.counts, flight.answer);
        flight.unheard += 1;
        let unheard = flight.unheard;
        (flight.sent, flight.sequence) = (now, draft.envelope.sequence);
        flight.sent_there = self.clock.at(now).unwrap_or(Ns::ZERO);
        (flight.dead, flight.retries) = (draft.envelope.clock, retries);
        (flight.path, flight.counts) = (draft.path, true);
        if unheard >= UNHEARD_MAX {
            self.paths.get_mut(before).search.doubt();
        }
        if !was_heard {
            self.paths.get_mut(before).loses(now);
        }
        if counts && before != draft.path {
            self.paths.get_mut(before).congestion.ended();
        }
        let path = self.paths.get_mut(draft.path);
        if !counts || before != draft.path {
            path.congestion.sent(now, path.trips.smoothed());
        }
        if !counts {
            self.incast.sent(answer);
        }
        path.asks(now);
        let due = now.saturating_add(path.trips.retry_after(unheard));
        self.flights.look_at(request, due);
        self.counters.retries += 1;
        true
    }

    /// Gives up a request whose time is over.
    fn give_up(&mut self, now: Ns, request: u64) {
        let flight = self.flights.get(request).expect("what is due is under way");
        let known = self.clock.at(now).unwrap_or(Ns::ZERO);
        if flight.opcode.is_repeatable() || known > flight.dead {
            return self.lose(request);
        }
        // While a copy of it can act, the request is not lost.
        let rest = flight.dead.saturating_sub(known).0;
        self.flights.look_at(request, now.saturating_add(Ns(rest + rest / 1000 + 1)));
    }

    /// The time at which the first operation that waits is given up, if the node stays silent.
    pub(super) fn given_up_at(&self) -> Option<Ns> {
        // Few have parts in flight, by which their time is counted: the first, and lent writes.
        let mut waiting = self.waiting.iter().filter_map(|&id| self.operations.get(id));
        let since = waiting.find(|operation| operation.open == 0)?.waits_since?;
        Some(since.max(self.silence.since()).saturating_add(self.config.give_up_after))
    }

    /// Gives up operations that wait longer than is allowed for a node that says nothing. The
    /// window of such a node is small. If each of them were sent first, each would take its time
    /// after the other.
    fn give_up_waiting(&mut self, now: Ns) {
        for &id in self.waiting.iter().rev() {
            let operation = self.operations.get_mut(id).expect("what waits has not ended");
            if operation.waits_since.is_some() {
                break;
            }
            operation.waits_since = Some(now);
        }
        // What may have arrived since the last look is no silence.
        let looked = self.looked.unwrap_or(now);
        if self.hello.is_some() || self.given_up_at().is_none_or(|at| at > looked) {
            return;
        }
        let patience = self.config.give_up_after;
        for id in core::mem::take(&mut self.waiting) {
            let operation = self.operations.get(id).expect("what waits has not ended");
            let since = operation.waits_since.unwrap_or(looked);
            if operation.open == 0 && looked.saturating_sub(since) >= patience {
                self.end(id, OperationError::Lost);
            } else {
                self.waiting.push_back(id);
            }
        }
    }

    fn send_new(&mut self, now: Ns, draft: &mut Draft<'_>) {
        while let Some(&id) = self.waiting.front() {
            // Before the node is known, only the request for its facts is sent.
            if self.facts.is_none() && self.hello != Some(id) {
                return;
            }
            let Some(open) = self.send_parts(now, id, draft) else { return };
            self.waiting.pop_front();
            if let Some(operation) = self.operations.get_mut(id) {
                operation.waits = false;
            }
            if open == 0 {
                self.settle(id);
            }
        }
    }

    /// Sends the unsent parts of an operation whose data are at hand. Returns the number of parts
    /// in flight; `None` where there is no room for all of them.
    fn send_parts(&mut self, now: Ns, id: OperationId, draft: &mut Draft<'_>) -> Option<usize> {
        let most = self.part_bytes_max(draft.path);
        let path = self.paths.get_mut(draft.path);
        let (trip, timeout) = (path.trips.smoothed(), path.trips.retry_after(0));
        let began_there = self.clock.at(now).unwrap_or(Ns::ZERO);
        let due = now.saturating_add(timeout);
        let operation = self.operations.get_mut(id).expect("what waits has not ended");
        while operation.error.is_none()
            && let Some(part) = operation.next_part(most)
        {
            if operation.data(part, Loan::of(draft.loan, id)).is_none() {
                break;
            }
            let answer = Bytes(answer_bytes(&self.config, operation, part) as u64);
            let (request, acknowledged) = (self.next_request + 1, self.acknowledge.front());
            let acknowledged = acknowledged.copied().unwrap_or(RequestId::NONE);
            let room = path.congestion.has_room(now)
                && self.incast.has_room(answer)
                && self.flights.has_room();
            if !room {
                return None;
            }
            let opcode =
                draft.put(&self.config, (id, operation, part), (request, 0), acknowledged)?;
            self.acknowledge.pop_front();
            self.next_request = request;
            self.counters.requests += 1;
            path.congestion.sent(now, trip);
            path.asks(now);
            self.incast.sent(answer);
            self.silence.sent(now, self.flights.count() == 0);
            operation.give_out(part);
            let flight = Flight {
                operation: id,
                part,
                opcode,
                retries: 0,
                unheard: 0,
                working: None,
                began: now,
                began_there,
                first_sent: now,
                first_path: draft.path,
                path: draft.path,
                sent: now,
                sent_there: began_there,
                sequence: draft.envelope.sequence,
                dead: draft.envelope.clock,
                due,
                answer,
                counts: true,
                acknowledged,
            };
            self.flights.insert(request, flight);
        }
        Some(operation.open)
    }

    /// Acknowledges results that no request acknowledged in time.
    fn send_acknowledgements(&mut self, now: Ns, draft: &mut Draft<'_>) {
        let is_whole = draft.rest.is_some();
        if is_whole || self.acknowledge.is_empty() || now < self.acknowledge_due() {
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
}

impl Draft<'_> {
    /// Writes a request into the datagram, and returns its opcode; `None` where the request or its
    /// answer does not fit, or its data are not at hand.
    fn put(
        &mut self,
        config: &ClientConfig,
        (id, operation, part): (OperationId, &Operation, Part),
        (request, attempt): (u64, u8),
        acknowledged: RequestId,
    ) -> Option<ClioOpcode> {
        let answer = answer_bytes(config, operation, part);
        let (empty, alone) = (self.used == ENVELOPE_BYTES, operation.goes_alone());
        // A part that was cut when the path carried more is sent as it is.
        let most = if empty { ENVELOPE_BYTES + config.packets_bytes_max() } else { self.end };
        let is_whole = self.rest.is_some() || (alone && !empty);
        if ENVELOPE_BYTES + self.answers + answer > most || is_whole {
            return None;
        }
        let data = operation.data(part, Loan::of(self.loan, id))?;
        let packet = RequestPacket {
            attempt,
            process: operation.process,
            request: RequestId(request),
            acknowledged,
            body: operation.request(part, data),
        };
        if self.refers && empty && data.len() >= OUTSIDE_BYTES_MIN {
            let written = packet.emit_before_data(&mut self.into[self.used..]).ok()?;
            // The path's length holds for all of the datagram.
            if self.used + written + data.len() > most {
                return None;
            }
            self.used += written;
            self.answers += answer;
            self.rest = Some((id, part));
            return Some(packet.body.opcode());
        }
        let end = if alone { self.into.len() - config.protection.trailer_bytes() } else { most };
        self.used += packet.emit(&mut self.into[self.used..end]).ok()?;
        self.answers += answer;
        self.end = if alone { self.used } else { self.end.max(self.used) };
        Some(packet.body.opcode())
    }
}

/// Maximum octets of a part's answer.
fn answer_bytes(config: &ClientConfig, operation: &Operation, part: Part) -> usize {
    let most = config.packets_bytes_max() - RESPONSE_BYTES;
    RESPONSE_BYTES + operation.answer_bytes(part, most as u64) as usize
}
