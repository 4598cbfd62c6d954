//! The first cycle of an iteration: destinations send requests to sources.

use ethermem_units::Ps;

use super::lists::Candidate;
use super::ports::{End, Thresholds};
use super::queues::Queues;
use super::releases::Releases;
use super::rule::{OPEN, Turn, class};

/// The best request at a source in an iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The least place of all requests; [`u64::MAX`] while there is none.
    place: u64,
    pub(super) pair: u32,
    pub(super) entry: u32,
    pub(super) destination: u16,
}

impl Request {
    pub(super) const NONE: Request = Request { place: u64::MAX, pair: 0, entry: 0, destination: 0 };
}

/// The result of a destination's turn.
pub(super) enum Asked {
    /// The destination made a request.
    Request,
    /// Only a hold kept the destination from a request.
    Held,
    /// Only a release or a notification can make the destination send a request.
    Nothing,
}

/// The data that a turn reads and changes.
pub(super) struct RequestCycle<'a> {
    pub(super) thresholds: Thresholds,
    pub(super) turn: Turn,
    pub(super) ports: u16,
    pub(super) lookahead: Ps,
    /// The limit of outstanding blocks: see [`End::is_full`].
    pub(super) outstanding_limit: u32,
    pub(super) queues: &'a Queues,
    pub(super) sources: &'a mut [End],
    pub(super) destinations: &'a mut [End],
    pub(super) releases: &'a mut Releases,
    /// The best request at each source.
    pub(super) requests: &'a mut [Request],
    /// The sources that have a request, in the order of their first request.
    pub(super) requested: &'a mut Vec<u16>,
    /// Destinations that wait for departures.
    pub(super) full: &'a mut Vec<u16>,
}

impl RequestCycle<'_> {
    /// Lets a destination send a request to its best eligible source.
    #[inline]
    pub(super) fn turn(&mut self, destination: u16) -> Asked {
        let Thresholds { window, ahead, .. } = self.thresholds;
        if self.destinations[usize::from(destination)].free > window + ahead {
            self.put_off(destination);
            return Asked::Nothing;
        }
        let queues = self.queues;
        if self.destinations[usize::from(destination)].is_full(self.outstanding_limit) {
            self.full.push(destination);
            return Asked::Nothing;
        }
        let mut limit = None;
        let mut best = Candidate { priority: u64::MAX, ..Candidate::default() };
        let mut least = u64::MAX;
        let mut held = false;
        for place in 0..queues.candidates.len(destination) {
            let candidate = *queues.candidates.get(destination, place);
            let end = &mut self.sources[usize::from(candidate.source)];
            if end.free > window {
                end.arm(self.lookahead, candidate.source, self.releases);
            } else if end.is_full(self.outstanding_limit) {
                // Departures of the source mark the destination again.
            } else if self.place(destination, &candidate) < least {
                let limit = *limit.get_or_insert_with(|| {
                    self.thresholds.of_destination(queues, self.sources, destination)
                });
                let limit = limit.min(self.threshold_of_source(candidate.source));
                if limit == OPEN || class(candidate.priority) < limit {
                    best = candidate;
                    least = self.place(destination, &best);
                } else {
                    held = true;
                }
            }
        }
        if least < u64::MAX {
            self.ask(destination, &best);
            Asked::Request
        } else if held {
            Asked::Held
        } else {
            Asked::Nothing
        }
    }

    #[inline]
    fn place(&self, destination: u16, candidate: &Candidate) -> u64 {
        self.turn.place(candidate.priority, candidate.source, destination)
    }

    /// True if a destination could make no request in this iteration. It takes part again when it
    /// and a source of one of its candidates are both free.
    #[inline]
    pub(super) fn put_off(&mut self, destination: u16) -> bool {
        let Thresholds { window, ahead, .. } = self.thresholds;
        let ready = self.destinations[usize::from(destination)].free.saturating_sub(ahead);
        let queues = self.queues;
        let sources = (0..queues.candidates.len(destination))
            .map(|at| queues.candidates.get(destination, at));
        let free = |sources: &[End], from: &Candidate| sources[usize::from(from.source)].free;
        if sources.clone().any(|from| free(self.sources, from) <= ready.max(window)) {
            if ready <= window {
                return false;
            }
            self.arm_destination(destination);
            return true;
        }
        for source in sources.map(|from| from.source) {
            self.sources[usize::from(source)].arm(self.lookahead, source, self.releases);
        }
        true
    }

    #[inline]
    fn arm_destination(&mut self, destination: u16) {
        let before = self.lookahead + self.thresholds.ahead;
        let end = &mut self.destinations[usize::from(destination)];
        end.arm(before, destination + self.ports, self.releases);
    }

    /// Wakes a source that holds when the destination that it waits for comes free.
    #[inline]
    fn threshold_of_source(&mut self, source: u16) -> u8 {
        match self.thresholds.of_source(self.queues, self.destinations, source) {
            Some((busy, threshold)) => {
                self.arm_destination(busy);
                threshold
            }
            None => OPEN,
        }
    }

    #[inline]
    fn ask(&mut self, destination: u16, best: &Candidate) {
        let place = self.place(destination, best);
        let rival = &mut self.requests[usize::from(best.source)];
        if rival.place == u64::MAX {
            self.requested.push(best.source);
        }
        if place < rival.place {
            let entry = self.queues.best(best.pair);
            *rival = Request { place, pair: best.pair, entry, destination };
        }
    }
}
