//! Several paths: which one carries the next datagram, and what happens when one goes down.

use ethermem_units::Ns;

use super::super::path::Probe;
use super::super::paths::{PathId, PathReport};
use super::Client;

impl Client {
    /// The path of the next datagram. It changes with every datagram, so ask before each
    /// [`Client::poll_transmit_on`]. `None` if there is nothing to send now.
    pub fn next_path(&mut self, now: Ns) -> Option<PathId> {
        if self.paths.is_single() {
            return Some(PathId::ONLY);
        }
        while let Some(down) = self.paths.judge(now) {
            self.send_elsewhere(now, down);
        }
        if let Some((_, path)) = self.next_probe_due().filter(|(due, _)| *due <= now) {
            return Some(path);
        }
        let acknowledge = (!self.acknowledge.is_empty()).then(|| self.acknowledge_due());
        let times = [self.flights.due(), acknowledge, self.given_up_at()];
        if times.into_iter().flatten().any(|due| due <= now) {
            return Some(self.paths.for_retry(now));
        }
        let waiting = *self.waiting.front()?;
        let front = self.operations.get(waiting).expect("what waits has not ended");
        let parts = front.unsent_parts(self.part_bytes_max(PathId::ONLY));
        self.paths.with_room(now, parts + self.waiting.len() as u64 - 1)
    }

    /// Records that the carrier cannot send on a path: its interface is down, or has no route. What
    /// is in flight on it is sent on another path. Returns true if the path was up.
    pub fn path_failed(&mut self, now: Ns, path: PathId) -> bool {
        let was_up = self.paths.fails(now, path);
        if was_up {
            self.send_elsewhere(now, path);
        }
        was_up
    }

    /// Facts of a path, for inspection.
    #[must_use]
    pub fn path_report(&self, path: PathId) -> PathReport {
        self.paths.report(path)
    }

    /// The congestion windows of all paths together, in thousandths of a request.
    #[must_use]
    pub fn window_milli_requests(&self) -> u64 {
        self.paths.iter().map(|path| path.congestion.milli_requests()).sum()
    }

    /// Maximum bytes of operations' datagrams: what the shortest path that is up is known to carry.
    #[must_use]
    pub fn datagram_bytes(&self) -> usize {
        let up = self.paths.iter().filter(|path| path.is_up());
        let carried = up.map(|path| path.search.carries()).min();
        carried.unwrap_or(self.config.datagram_bytes_base)
    }

    /// True while probes are in flight that may find that a path carries longer datagrams.
    #[must_use]
    pub fn searches_path(&self) -> bool {
        self.paths.iter().any(|path| path.is_up() && path.search.is_searched())
    }

    /// Records the carrier's report that a client's single path takes no datagram longer than this.
    pub fn narrow_path(&mut self, now: Ns, datagram_bytes: usize) {
        self.paths.get_mut(PathId::ONLY).search.narrow(now, datagram_bytes);
    }

    /// Makes all requests in flight on a path that is down due now, for another path.
    fn send_elsewhere(&mut self, now: Ns, down: PathId) {
        for request in self.flights.numbers() {
            let flight = self.flights.get(request).filter(|flight| flight.path == down);
            if let Some(due) = flight.filter(|flight| flight.counts).map(|flight| flight.due) {
                self.flights.look_at(request, now.min(due));
            }
        }
    }

    /// The time at which a probe is due, once the node is known.
    pub(super) fn probe_due(&self) -> Option<Ns> {
        self.next_probe_due().map(|(due, _)| due)
    }

    /// The first probe that is due, of a path's length or of its life. A path is probed for its
    /// life only while operations are in progress, so an idle client sends nothing.
    fn next_probe_due(&self) -> Option<(Ns, PathId)> {
        self.facts?;
        let ids = || self.paths.iter().enumerate();
        let lengths = ids().filter(|(_, path)| path.is_up()).filter_map(|(at, path)| {
            let due = path.search.due()?;
            Some((due, PathId::new(at)))
        });
        let is_busy = self.flights.count() > 0 || !self.waiting.is_empty();
        let life = if is_busy { self.paths.probe_due() } else { None };
        lengths.chain(life).min()
    }

    /// The probe that a path sends now.
    pub(super) fn next_probe(&mut self, now: Ns, id: PathId, request: u64) -> Option<Probe> {
        if self.paths.probe_due().is_some_and(|(due, of)| of == id && due <= now) {
            self.paths.probed(now, id);
            self.paths.get_mut(id).asks(now);
            return Some(Probe::Short);
        }
        let path = self.paths.get_mut(id);
        if !path.is_up() {
            return None;
        }
        let trips = path.trips;
        let probe = path.search.next(now, request, |silent| trips.retry_after(silent));
        if probe == Some(Probe::Short) {
            path.asks(now);
        }
        probe
    }
}
