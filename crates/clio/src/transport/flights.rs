//! Requests in flight, by their numbers.

use std::collections::{BTreeMap, VecDeque};

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{ClioOpcode, RequestId};

use super::operation::{OperationId, Part};
use super::paths::PathId;

/// Maximum numbers between the oldest unanswered request and a new one: this many windows, and some
/// more. A request further away waits, so that the ring stays small.
const SPAN_WINDOWS: usize = 4;
const SPAN_MIN: usize = 4096;

/// A request that was sent and has no answer.
pub(super) struct Flight {
    pub(super) operation: OperationId,
    pub(super) part: Part,
    pub(super) opcode: ClioOpcode,
    /// Number of retries.
    pub(super) retries: u32,
    /// Number of retries since the node last said that it works on the request, and the time since
    /// when it does.
    pub(super) unheard: u32,
    pub(super) working: Option<Ns>,
    pub(super) began: Ns,
    /// The time `began` on the node's clock, or earlier.
    pub(super) began_there: Ns,
    /// When the first try was sent. An answer names its try, so this one's round trip is known
    /// even if it takes longer than the next tries waited.
    pub(super) first_sent: Ns,
    pub(super) first_path: PathId,
    /// The path of the last try, in whose window it counts.
    pub(super) path: PathId,
    /// The last try: when it was sent on the client's clock, and (or earlier) on the node's; its
    /// datagram; and its deadline on the node's clock.
    pub(super) sent: Ns,
    pub(super) sent_there: Ns,
    pub(super) sequence: u64,
    pub(super) dead: Ns,
    /// The time at which the request is checked again.
    pub(super) due: Ns,
    pub(super) answer: Bytes,
    /// True if it counts in the windows. While the node works on it, it does not count until it is
    /// retried.
    pub(super) counts: bool,
    /// The request that each try of it acknowledges, since any try may be lost.
    pub(super) acknowledged: RequestId,
}

impl Flight {
    /// The try that an answer names, if its time is known.
    pub(super) fn tried_as(&self, attempt: u8) -> Option<Tried> {
        // A try's number has eight bits.
        let is_first = attempt == 0 && self.retries <= u32::from(u8::MAX);
        if attempt == self.retries as u8 {
            Some(Tried { path: self.path, sent: self.sent, is_last: true })
        } else {
            let first = Tried { path: self.first_path, sent: self.first_sent, is_last: false };
            is_first.then_some(first)
        }
    }
}

/// One try of a request.
pub(super) struct Tried {
    pub(super) path: PathId,
    pub(super) sent: Ns,
    pub(super) is_last: bool,
}

/// The requests in flight. Numbers are consecutive, so a number is a place in a ring.
pub(super) struct Flights {
    ring: VecDeque<Option<Flight>>,
    /// Requests that may take any time, and so have no place in the ring.
    aside: BTreeMap<u64, Flight>,
    /// The number of the ring's first place. Its request, if there is one, is in flight.
    first: u64,
    count: usize,
    span_max: usize,
    /// No request is due before this time.
    due: Ns,
}

impl Flights {
    /// A table for a window of this many requests.
    pub(super) fn new(window_max: usize) -> Flights {
        let span_max = window_max * SPAN_WINDOWS + SPAN_MIN;
        Flights {
            ring: VecDeque::new(),
            aside: BTreeMap::new(),
            first: 0,
            count: 0,
            span_max,
            due: Ns(u64::MAX),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// True if another request may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.ring.len() < self.span_max
    }

    /// Adds a request whose number is above all earlier ones.
    pub(super) fn insert(&mut self, request: u64, flight: Flight) {
        if self.ring.is_empty() {
            self.first = request;
        }
        let place = usize::try_from(request - self.first).expect("numbers follow each other");
        debug_assert!(place >= self.ring.len(), "a number is used once");
        // The numbers between belong to requests without an answer.
        while self.ring.len() < place {
            self.ring.push_back(None);
        }
        self.due = self.due.min(flight.due);
        self.ring.push_back(Some(flight));
        self.count += 1;
    }

    pub(super) fn get(&self, request: u64) -> Option<&Flight> {
        let found = self.place(request).and_then(|place| self.ring.get(place)?.as_ref());
        if found.is_some() || self.aside.is_empty() { found } else { self.aside.get(&request) }
    }

    /// The oldest request in flight that does not take any time.
    pub(super) fn oldest(&self) -> Option<&Flight> {
        self.ring.front()?.as_ref()
    }

    pub(super) fn get_mut(&mut self, request: u64) -> Option<&mut Flight> {
        if !self.aside.is_empty() && self.aside.contains_key(&request) {
            return self.aside.get_mut(&request);
        }
        let place = self.place(request)?;
        self.ring.get_mut(place)?.as_mut()
    }

    fn place(&self, request: u64) -> Option<usize> {
        usize::try_from(request.checked_sub(self.first)?).ok()
    }

    /// Removes a request that is not in flight any more.
    pub(super) fn remove(&mut self, request: u64) -> Option<Flight> {
        let flight = self.take(request).or_else(|| self.aside.remove(&request))?;
        self.count -= 1;
        Some(flight)
    }

    /// Moves a request that may take any time out of the ring, so that it blocks no other.
    pub(super) fn set_aside(&mut self, request: u64) {
        if let Some(flight) = self.take(request) {
            self.aside.insert(request, flight);
        }
    }

    fn take(&mut self, request: u64) -> Option<Flight> {
        let place = self.place(request)?;
        let flight = self.ring.get_mut(place)?.take()?;
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first += 1;
        }
        Some(flight)
    }

    /// The numbers of all requests in order, and some that are not in flight.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let aside: Vec<u64> = self.aside.keys().copied().collect();
        aside.into_iter().chain(self.first..self.first + self.ring.len() as u64)
    }

    /// Sets the time at which a request is checked again.
    pub(super) fn look_at(&mut self, request: u64, at: Ns) {
        self.get_mut(request).expect("it is under way").due = at;
        self.due = self.due.min(at);
    }

    /// The time before which no request is due; `None` if there is none in flight.
    pub(super) fn due(&self) -> Option<Ns> {
        (self.count > 0).then_some(self.due)
    }

    /// Records that all due requests were checked, and the time of the next check.
    pub(super) fn looked(&mut self, next: Ns) {
        self.due = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(due: u64) -> Flight {
        Flight {
            operation: OperationId(1),
            part: Part { from: 0, bytes: 8, place: 0 },
            opcode: ClioOpcode::Read,
            retries: 0,
            unheard: 0,
            working: None,
            began: Ns(0),
            began_there: Ns(0),
            first_sent: Ns(0),
            first_path: PathId::ONLY,
            path: PathId::ONLY,
            sent: Ns(0),
            sent_there: Ns(0),
            sequence: 0,
            dead: Ns(0),
            due: Ns(due),
            answer: Bytes(24),
            counts: true,
            acknowledged: RequestId::NONE,
        }
    }

    #[test]
    fn a_number_finds_its_request_until_it_is_removed_and_never_after() {
        let mut flights = Flights::new(1);
        assert_eq!((flights.due(), flights.count(), flights.numbers().count()), (None, 0, 0));
        for (request, due) in [(5, 50), (6, 40), (9, 60)] {
            flights.insert(request, flight(due));
        }
        let numbers = |flights: &Flights| flights.numbers().collect::<Vec<_>>();
        assert_eq!(
            (flights.count(), numbers(&flights), flights.due()),
            (3, vec![5, 6, 7, 8, 9], Some(Ns(40)))
        );
        for nobody in [0, 4, 7, 8, 10, u64::MAX] {
            assert!(flights.get(nobody).is_none() && flights.remove(nobody).is_none(), "{nobody}");
        }
        assert_eq!(flights.remove(6).map(|flight| flight.due), Some(Ns(40)));
        assert_eq!((numbers(&flights).len(), flights.get(9).map(|f| f.due)), (5, Some(Ns(60))));
        assert!(flights.remove(5).is_some() && flights.remove(5).is_none());
        assert_eq!((numbers(&flights), flights.count()), (vec![9], 1));
        flights.look_at(9, Ns(30));
        assert_eq!(flights.due(), Some(Ns(30)));
        assert!(flights.remove(9).is_some());
        assert_eq!((flights.due(), flights.count()), (None, 0));
        flights.insert(20, flight(7));
        assert_eq!(numbers(&flights), [20]);
    }

    #[test]
    fn one_that_is_set_aside_is_found_and_holds_up_no_other() {
        let mut flights = Flights::new(1);
        (1..=2).for_each(|request| flights.insert(request, flight(request)));
        flights.set_aside(1);
        for request in 3..3 * SPAN_MIN as u64 {
            assert!(flights.has_room());
            flights.insert(request, flight(0));
            flights.remove(request - 1);
            assert_eq!(flights.count(), 2);
        }
        assert_eq!(flights.numbers().next(), Some(1));
        flights.look_at(1, Ns(0));
        assert_eq!(flights.get(1).map(|flight| flight.due), Some(Ns(0)));
        flights.set_aside(1);
        assert!(flights.remove(1).is_some() && flights.remove(1).is_none());
        assert_eq!(flights.count(), 1);
    }

    #[test]
    fn one_that_has_no_answer_holds_up_others_before_the_ring_is_long() {
        let mut flights = Flights::new(1);
        flights.insert(1, flight(0));
        let mut request = 1;
        while flights.has_room() {
            request += 1;
            flights.insert(request, flight(0));
            flights.remove(request);
        }
        assert_eq!(request as usize, SPAN_WINDOWS + SPAN_MIN);
        flights.remove(1);
        assert!(flights.has_room());
    }
}
