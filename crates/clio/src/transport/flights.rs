//! Requests under way, by their numbers.

use std::collections::{BTreeMap, VecDeque};

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{ClioOpcode, RequestId};

use super::operation::{OperationId, Part};

/// Requests that follow the oldest without an answer, in windows, and some more: none goes that
/// would be further from it, so that its place here is small.
const SPAN_WINDOWS: usize = 4;
const SPAN_MIN: usize = 4096;

/// A request that was sent, and has no answer.
pub(super) struct Flight {
    pub(super) operation: OperationId,
    pub(super) part: Part,
    pub(super) opcode: ClioOpcode,
    /// Tries after the first.
    pub(super) retries: u32,
    /// The same since the node has said that it works on it, and since when it does.
    pub(super) unheard: u32,
    pub(super) working: Option<Ns>,
    pub(super) began: Ns,
    /// The same on the node's clock, or before.
    pub(super) began_there: Ns,
    /// Of the last try: when, on our clock and, or before, on the node's; in which datagram; and
    /// when it is dead, on the node's clock.
    pub(super) sent: Ns,
    pub(super) sent_there: Ns,
    pub(super) sequence: u64,
    pub(super) dead: Ns,
    /// When it is looked at again.
    pub(super) due: Ns,
    pub(super) answer: Bytes,
    /// Whether it counts in the windows: not from the node's word that it works on it until it is
    /// asked for again.
    pub(super) counts: bool,
    /// What it acknowledges in each of its tries, since any may be lost.
    pub(super) acknowledged: RequestId,
}

/// See the module. Numbers follow each other, so a number is a place in a ring.
pub(super) struct Flights {
    ring: VecDeque<Option<Flight>>,
    /// Those that may take however long, so that they have no place in the ring.
    aside: BTreeMap<u64, Flight>,
    /// The number of the ring's first place, whose request is under way if there is one.
    first: u64,
    count: usize,
    span_max: usize,
    /// None is due before.
    due: Ns,
}

impl Flights {
    /// For a window of so many.
    pub(super) fn new(window_max: u32) -> Flights {
        let span_max = window_max as usize * SPAN_WINDOWS + SPAN_MIN;
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

    /// Whether another may go.
    pub(super) fn has_room(&self) -> bool {
        self.ring.len() < self.span_max
    }

    /// A request of a number above all before goes.
    pub(super) fn insert(&mut self, request: u64, flight: Flight) {
        if self.ring.is_empty() {
            self.first = request;
        }
        let place = usize::try_from(request - self.first).expect("numbers follow each other");
        debug_assert!(place >= self.ring.len(), "a number is used once");
        // Between them are numbers of what has no answer.
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

    /// It is not under way any more.
    pub(super) fn remove(&mut self, request: u64) -> Option<Flight> {
        let flight = self.take(request).or_else(|| self.aside.remove(&request))?;
        self.count -= 1;
        Some(flight)
    }

    /// It may take however long: it holds up no other by its place.
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

    /// The numbers of all, in their order, and some that are not under way.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        let aside: Vec<u64> = self.aside.keys().copied().collect();
        aside.into_iter().chain(self.first..self.first + self.ring.len() as u64)
    }

    /// It is looked at again then.
    pub(super) fn look_at(&mut self, request: u64, at: Ns) {
        self.get_mut(request).expect("it is under way").due = at;
        self.due = self.due.min(at);
    }

    /// No one need be looked at before; `None` is for ever.
    pub(super) fn due(&self) -> Option<Ns> {
        (self.count > 0).then_some(self.due)
    }

    /// All were looked at that were due, and the next is then.
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
