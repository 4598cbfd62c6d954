//! Requests under way, their retries, and what came of them.

mod answers;
mod transmit;

use std::collections::VecDeque;

use ethermem_units::Ns;
use ethermem_wire::clio::{
    ENVELOPE_BYTES, Epoch, NodeFacts, ProcessId, REQUEST_BYTES, RESPONSE_BYTES, Request, RequestId,
};

use super::config::{ClientConfig, ClientConfigError, DATAGRAM_BYTES_MAX};
use super::flights::{Flight, Flights};
use super::node_clock::NodeClock;
use super::operation::{Ask, Completed, Operation, OperationError, OperationId};
use super::operations::Operations;
use super::path::PathSearch;
use super::round_trips::RoundTrips;
use super::window::{CongestionWindow, IncastWindow};

/// Address and data of a write take so much of a request that its answer does not.
const WRITE_ADDRESS_BYTES: usize = 8;
/// Requests that may be under way before the node was heard: as TCP begins (RFC 6928).
const WINDOW_INITIAL: u32 = 10;

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
    /// Duplicate or unsolicited responses.
    pub ignored: u64,
    /// Datagrams whose check failed.
    pub corrupt: u64,
}

/// See the module above.
pub struct Client {
    config: ClientConfig,
    facts: Option<NodeFacts>,
    clock: NodeClock,
    path: PathSearch,
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
    /// When answers were looked for last, and none was there; `None`: the client is told of each at
    /// once.
    looked: Option<Ns>,
    /// Requests whose answers came, and since when the first waits to say so.
    acknowledge: VecDeque<RequestId>,
    acknowledge_since: Ns,
    events: VecDeque<Event>,
    counters: ClientCounters,
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
            path: PathSearch::new(config.datagram_bytes_base, config.datagram_bytes_max),
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
            looked: None,
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

    /// The longest datagram of operations: what the path is known to carry.
    #[must_use]
    pub fn datagram_bytes(&self) -> usize {
        self.path.carries()
    }

    /// Whether probes are under way that may find out that the path carries longer ones.
    #[must_use]
    pub fn searches_path(&self) -> bool {
        self.path.is_searched()
    }

    /// What carries datagrams has come to know that the path takes no longer ones than this.
    pub fn narrow_path(&mut self, now: Ns, datagram_bytes: usize) {
        self.path.narrow(now, datagram_bytes);
    }

    /// Asks for anything but a write or what the transport does by itself (`Hello`,
    /// `Acknowledge` and `Probe`). The operation may go as soon as there is room.
    pub fn submit(&mut self, process: ProcessId, request: Request<'static>) -> OperationId {
        let id = self.begin(Operation::new(process, Ask::Short(request)));
        if let Request::Read { bytes: 0, .. } = request {
            self.fail(id, OperationError::Length(0));
        }
        id
    }

    /// Asks to read several places, addresses and how many bytes from each, as one operation: the
    /// bytes of one after those of the other. One that is refused fails it.
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

    /// Asks to write.
    pub fn submit_write(&mut self, process: ProcessId, address: u64, data: Vec<u8>) -> OperationId {
        let bytes = data.len() as u64;
        let id = self.begin(Operation::new(process, Ask::Write { address, data }));
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
        let ask = Ask::Offload { name: name.to_owned(), arguments };
        let id = self.begin(Operation::new(process, ask));
        let front = ENVELOPE_BYTES + REQUEST_BYTES + 1 + name.len();
        let room = DATAGRAM_BYTES_MAX - front - self.config.protection.trailer_bytes();
        if bytes > room || name.len() > usize::from(u8::MAX) {
            self.fail(id, OperationError::Length(bytes as u64));
        }
        id
    }

    /// No answer is there that the client was not told of. What looks for answers now and then says
    /// so each time, or the time that one waits for it is taken for the way's.
    pub fn looked(&mut self, now: Ns) {
        self.looked = Some(now);
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
        [self.flights.due(), paced, acknowledge, self.probe_due()].into_iter().flatten().min()
    }

    /// The life of the node that is spoken to: [`Epoch::UNKNOWN`] until it has said which, and
    /// again once another one was heard of.
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

    /// Ends an operation of which nothing is under way.
    fn fail(&mut self, operation: OperationId, error: OperationError) {
        self.waiting.retain(|&waiting| waiting != operation);
        if self.operations.remove(operation).is_some() {
            self.events.push_back(Event { operation, outcome: Err(error) });
        }
    }

    /// Most data of a request and of an answer.
    fn part_bytes_max(&self) -> u64 {
        let header = (REQUEST_BYTES + WRITE_ADDRESS_BYTES).max(RESPONSE_BYTES);
        let room = (self.config.packets_bytes(self.path.carries()) - header) as u64;
        self.facts.map_or(room, |facts| room.min(facts.data_bytes_max.into()))
    }

    /// A request is not under way any more; its operation is not told.
    fn land(&mut self, request: u64) -> Option<Flight> {
        let flight = self.flights.remove(request)?;
        if flight.counts {
            self.congestion.ended();
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
