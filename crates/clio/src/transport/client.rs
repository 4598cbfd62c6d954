//! The client: requests in flight, their retries, and their results.

mod answers;
mod landing;
mod lent;
mod multipath;
mod transmit;

use std::collections::VecDeque;

use ethermem_units::Ns;
use ethermem_wire::clio::{
    ENVELOPE_BYTES, Epoch, NodeFacts, ProcessId, REQUEST_BYTES, RESPONSE_BYTES, Request, RequestId,
};

use super::config::{ClientConfig, ClientConfigError, DATAGRAM_BYTES_MAX};
use super::flights::{Flight, Flights};
use super::node_clock::NodeClock;
use super::operation::{Ask, Completed, Operation, OperationError, OperationId, WriteData};
use super::operations::Operations;
use super::path::PathSearch;
use super::paths::{Path, PathId, Paths};
use super::round_trips::RoundTrips;
use super::silence::Silence;
use super::window::{CongestionWindow, IncastWindow};
pub use landing::{FRONT_BYTES, Landing};
pub use lent::Loan;

/// Octets of a write's request for its address and length, which its answer does not have.
const WRITE_ADDRESS_BYTES: usize = 8;
/// Maximum memory that is kept for the next write.
const SPARE_BYTES_MAX: usize = 16 << 20;
/// Maximum requests in flight before the node was heard: TCP's initial window (RFC 6928).
const WINDOW_INITIAL: u32 = 10;

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The operation that ended.
    pub operation: OperationId,
    /// The result of the operation.
    pub outcome: Result<Completed, OperationError>,
}

/// The lengths of datagrams that a path carries, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLengths {
    /// Length that the path carries for certain.
    pub base: usize,
    /// Maximum length that the path may carry.
    pub most: usize,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Requests that were sent for the first time.
    pub requests: u64,
    /// Requests that were sent again.
    pub retries: u64,
    /// Answers that were accepted.
    pub answers: u64,
    /// Duplicate or unsolicited responses.
    pub ignored: u64,
    /// Datagrams whose check failed.
    pub corrupt: u64,
}

/// A client of one memory node, as the module `transport` describes it.
pub struct Client {
    config: ClientConfig,
    facts: Option<NodeFacts>,
    clock: NodeClock,
    paths: Paths,
    incast: IncastWindow,
    sequence: u64,
    /// The deadline of the last datagram, which never decreases.
    life_end: Ns,
    next_request: u64,
    /// The operation that asks for the node's facts; no other is sent before its answer.
    hello: Option<OperationId>,
    operations: Operations,
    /// Operations with parts that were not sent, in order, but for lent writes that wait for their
    /// callers.
    waiting: VecDeque<OperationId>,
    flights: Flights,
    silence: Silence,
    /// The last time at which the caller found no waiting answer. `None`: the caller passes on each
    /// answer at once.
    looked: Option<Ns>,
    /// Requests whose answers arrived. The time since the first of them waits to be acknowledged is
    /// beside.
    acknowledge: VecDeque<RequestId>,
    acknowledge_since: Ns,
    events: VecDeque<Event>,
    counters: ClientCounters,
    /// Memory of a write that has ended, for the next one.
    spare: Vec<u8>,
}

impl Client {
    /// A client that has not contacted its node yet.
    ///
    /// # Errors
    /// [`ClientConfigError`].
    pub fn new(config: ClientConfig) -> Result<Client, ClientConfigError> {
        let (base, most) = (config.datagram_bytes_base, config.datagram_bytes_max);
        Client::with_paths(config, &[PathLengths { base, most }])
    }

    /// A client with several paths to its node, each with datagrams of its own lengths. The lengths
    /// of `config` must be the shortest base and the longest maximum of them. Windows of `config`
    /// are for each path.
    ///
    /// # Errors
    /// [`ClientConfigError`].
    pub fn with_paths(
        config: ClientConfig,
        lengths: &[PathLengths],
    ) -> Result<Client, ClientConfigError> {
        config.check()?;
        let trips = RoundTrips::new(config.retry_after_min, config.retry_after_max);
        let path = |lengths: &PathLengths| {
            let (most, target) = (config.window_max, config.queueing_target);
            let window = CongestionWindow::of_any_path(WINDOW_INITIAL, most, target);
            Path::new(PathSearch::new(lengths.base, lengths.most), trips, window)
        };
        let paths = Paths::new(lengths.iter().map(path).collect(), trips, WINDOW_INITIAL)
            .ok_or(ClientConfigError::Paths(lengths.len()))?;
        Ok(Client {
            config,
            facts: None,
            clock: NodeClock::default(),
            paths,
            incast: IncastWindow::new(config.incast_window),
            sequence: 0,
            life_end: Ns::ZERO,
            next_request: 0,
            hello: None,
            operations: Operations::default(),
            waiting: VecDeque::new(),
            flights: Flights::new(config.window_max as usize * lengths.len()),
            silence: Silence::default(),
            looked: None,
            acknowledge: VecDeque::new(),
            acknowledge_since: Ns::ZERO,
            events: VecDeque::new(),
            counters: ClientCounters::default(),
            spare: Vec::new(),
        })
    }

    /// Counts since the start.
    #[must_use]
    pub fn counters(&self) -> ClientCounters {
        self.counters
    }

    /// Number of requests that were sent and have no answer.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.flights.count()
    }

    /// The facts of the node, once it has sent them.
    #[must_use]
    pub fn facts(&self) -> Option<NodeFacts> {
        self.facts
    }

    /// Submits a request other than a write and the transport's own (`Hello`, `Acknowledge` and
    /// `Probe`). The operation is sent as soon as there is room.
    pub fn submit(&mut self, process: ProcessId, request: Request<'static>) -> OperationId {
        let id = self.begin(Operation::new(process, Ask::Short(request)));
        if let Request::Read { bytes: 0, .. } = request {
            self.fail(id, OperationError::Length(0));
        }
        id
    }

    /// Submits a read into a buffer of the caller: answers that arrive with a [`Landing`] go there,
    /// and [`Completed::Landed`] has the others.
    pub fn submit_read_into(
        &mut self,
        process: ProcessId,
        address: u64,
        bytes: u32,
    ) -> OperationId {
        let id = self.begin(Operation::read_into(process, address, bytes));
        if bytes == 0 {
            self.fail(id, OperationError::Length(0));
        }
        id
    }

    /// Submits a read of several places as one operation. A place is an address and a number of
    /// bytes; the result has their bytes in order. One refused place fails the operation.
    pub fn submit_gather(
        &mut self,
        process: ProcessId,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> OperationId {
        match Operation::gather(process, places) {
            Some(operation) => self.begin(operation),
            None => self.submit(process, Request::Read { address: 0, bytes: 0 }),
        }
    }

    /// Submits a write.
    pub fn submit_write(&mut self, process: ProcessId, address: u64, data: Vec<u8>) -> OperationId {
        let bytes = data.len() as u64;
        let ask = Ask::Write { address, bytes, data: WriteData::whole(data) };
        let id = self.begin(Operation::new(process, ask));
        if bytes == 0 || bytes > u64::from(u32::MAX) {
            self.fail(id, OperationError::Length(bytes));
        }
        id
    }

    /// As [`Client::submit_write`], with a copy of the data, in memory of an earlier write: new
    /// memory of a long write costs more than the copy.
    pub fn submit_write_from(
        &mut self,
        process: ProcessId,
        address: u64,
        data: &[u8],
    ) -> OperationId {
        let mut copy = core::mem::take(&mut self.spare);
        copy.clear();
        copy.extend_from_slice(data);
        self.submit_write(process, address, copy)
    }

    /// Submits an operation that runs at the node. Its datagram and the answer's may be longer than
    /// others: their carrier splits them.
    pub fn submit_offload(
        &mut self,
        process: ProcessId,
        name: &str,
        arguments: Vec<u8>,
    ) -> OperationId {
        let bytes = arguments.len();
        let ask = Ask::Offload { name: name.to_owned(), arguments };
        let id = self.begin(Operation::new(process, ask));
        let front = ENVELOPE_BYTES + REQUEST_BYTES + 1 + name.len();
        let room = DATAGRAM_BYTES_MAX - front - self.config.protection.trailer_bytes();
        if bytes > room || name.len() > usize::from(u8::MAX) {
            self.fail(id, OperationError::Length(bytes as u64));
        }
        id
    }

    /// Records that no answer waits at `now`. A caller that polls for answers must report each
    /// empty poll. Otherwise the time that an answer waits for it counts as the path's.
    pub fn looked(&mut self, now: Ns) {
        self.looked = Some(now);
    }

    /// The next operation that has ended.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.operations.release(event.operation);
        Some(event)
    }

    /// The time at which [`Client::poll_transmit`] has more to send, if no datagram arrives before.
    /// Ask again after each call of another method.
    #[must_use]
    pub fn next_wake(&self) -> Option<Ns> {
        self.next_wake_with(Ns::ZERO)
    }

    /// As [`Client::next_wake`], for a caller that does not retransmit before `resends`.
    #[must_use]
    pub fn next_wake_with(&self, resends: Ns) -> Option<Ns> {
        let is_quiet = self.paths.is_single() || self.flights.count() == 0;
        let may_pace = is_quiet && !self.waiting.is_empty();
        let paced = if may_pace { self.paths.paced() } else { None };
        let acknowledge = (!self.acknowledge.is_empty()).then(|| self.acknowledge_due());
        let probe = self.probe_due();
        let flights = self.flights.due().map(|due| due.max(resends));
        [flights, paced, acknowledge, probe, self.given_up_at()].into_iter().flatten().min()
    }

    /// The epoch of the node. It is [`Epoch::UNKNOWN`] until the node has sent it, and again after
    /// another epoch was seen.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.facts.map_or(Epoch::UNKNOWN, |facts| facts.epoch)
    }

    fn begin(&mut self, operation: Operation) -> OperationId {
        if self.facts.is_none() && self.hello.is_none() {
            let hello = Operation::new(ProcessId(0), Ask::Short(Request::Hello));
            let hello = self.operations.insert(hello);
            self.hello = Some(hello);
            self.waiting.push_front(hello);
        }
        let id = self.operations.insert(operation);
        self.waiting.push_back(id);
        id
    }

    /// Ends an operation without requests in flight.
    fn fail(&mut self, operation: OperationId, error: OperationError) {
        self.waiting.retain(|&waiting| waiting != operation);
        self.end(operation, error);
    }

    /// Ends an operation that neither waits nor has requests in flight.
    fn end(&mut self, operation: OperationId, error: OperationError) {
        if let Some(ended) = self.operations.remove(operation) {
            self.reuse(ended);
            self.events.push_back(Event { operation, outcome: Err(error) });
        }
    }

    /// Maximum data bytes of a request and of an answer on a path.
    fn part_bytes_max(&self, path: PathId) -> u64 {
        let header = (REQUEST_BYTES + WRITE_ADDRESS_BYTES).max(RESPONSE_BYTES);
        let carries = self.paths.get(path).search.carries();
        let room = (self.config.packets_bytes(carries) - header) as u64;
        self.facts.map_or(room, |facts| room.min(facts.data_bytes_max.into()))
    }

    /// Removes a request from those in flight, without a change to its operation.
    fn land(&mut self, request: u64) -> Option<Flight> {
        let flight = self.flights.remove(request)?;
        if flight.counts {
            self.paths.get_mut(flight.path).congestion.ended();
            self.incast.ended(flight.answer);
        }
        Some(flight)
    }

    fn lose(&mut self, request: u64) {
        let id = self.land(request).expect("it was under way").operation;
        let operation = self.operations.get_mut(id).expect("it had a flight");
        operation.open -= 1;
        operation.error.get_or_insert(OperationError::Lost);
        if self.hello == Some(id) {
            self.operations.remove(id);
            self.operations.release(id);
            self.hello = None;
            // The node does not answer: of the waiting operations nothing was sent.
            let waiting: Vec<OperationId> = self.waiting.drain(..).collect();
            waiting.into_iter().for_each(|id| self.end(id, OperationError::Lost));
        } else {
            self.settle(id);
        }
    }

    /// Keeps the memory of an operation that has ended, if it is the longest.
    fn reuse(&mut self, ended: Operation) {
        let memory = ended.into_memory();
        if (self.spare.capacity() + 1..=SPARE_BYTES_MAX).contains(&memory.capacity()) {
            self.spare = memory;
        }
    }

    /// Reports the outcome of an operation that has one.
    fn settle(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get_mut(id) else { return };
        let Some(outcome) = operation.outcome() else { return };
        // A failed operation may have parts left, which are never sent.
        let waits = operation.waits;
        if let Some(ended) = self.operations.remove(id) {
            self.reuse(ended);
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_another_operations_once_its_event_was_polled_and_not_before() {
        let mut client = Client::new(ClientConfig::least()).expect("a client can be so");
        let mut empty = || client.submit(ProcessId(1), Request::Read { address: 64, bytes: 0 });
        let (one, other) = (empty(), empty());
        assert_ne!(one.place(), other.place(), "the first has ended, and nobody knows it yet");
        let ended = [client.poll_event(), client.poll_event()].map(|e| e.expect("two").operation);
        assert_eq!(ended, [one, other]);
        let next = client.submit(ProcessId(1), Request::Fence);
        assert!([one, other].map(OperationId::place).contains(&next.place()));
    }
}
