//! The event-driven form of the scheduler.

use ethermem_units::Ps;

use super::late::Alarms;
use super::ports::{End, Holds, Thresholds};
use super::queues::Queues;
use super::releases::Releases;
use super::request::{Asked, Request, RequestCycle};
use super::rule::{Demand, Flow, Grant, NotifyError, Ranking, SchedulerConfig, TailEstimate, Turn};
use super::slab::Entry;
use super::stats::SchedulerStats;
use crate::Policy;

/// The grant scheduler, driven by events. Call [`Scheduler::notify`] when a notification was
/// inserted, and [`Scheduler::step`] at the time that [`Scheduler::next_wake`] gives.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    lookahead: Ps,
    ahead: Ps,
    /// Time for which a whole chunk occupies its ports.
    chunk_time: Ps,
    chunk_blocks: u32,
    outstanding_limit: u32,
    queues: Queues,
    alarms: Alarms,
    tail: Option<TailEstimate>,
    holds: Holds,
    sources: Vec<End>,
    destinations: Vec<End>,
    releases: Releases,
    /// Destinations whose request may have changed.
    dirty: Vec<u16>,
    /// Destinations that make no request only because of a hold. Any change may lift a hold, so
    /// each step examines them again, and a step is due once something changed.
    held: Vec<u16>,
    held_stale: bool,
    /// Destinations whose window was found full since they were last taken.
    full: Vec<u16>,
    /// End of the iteration in progress; the next one starts no earlier.
    iteration_end: Ps,
    /// Best request at each source in this iteration, and the sources that have one.
    requests: Vec<Request>,
    requested: Vec<u16>,
    stats: SchedulerStats,
}

impl Scheduler {
    /// A scheduler with all ports free.
    ///
    /// # Panics
    /// If the configuration has fewer than 2 or more than 512 ports, no lookahead or a chunk of 0.
    #[must_use]
    pub fn new(config: SchedulerConfig) -> Scheduler {
        assert!((2..=512).contains(&config.ports), "2 to 512 ports, not {}", config.ports);
        assert!(config.lookahead_iterations >= 1 && config.chunk.0 >= 1, "no lookahead or chunk");
        let n = usize::from(config.ports);
        let chunk_time = config.busy_time(config.chunk.0 as u32);
        let ranking = Ranking::of(config.policy);
        Scheduler {
            lookahead: config.lookahead(),
            ahead: config.ahead(),
            chunk_time,
            chunk_blocks: config.chunk_blocks(config.chunk.0 as u32),
            outstanding_limit: config.outstanding_limit(),
            queues: Queues::new(config.ports, config.order, config.notifications_max, ranking),
            alarms: Alarms::default(),
            tail: (config.policy == Policy::Auto).then(TailEstimate::new),
            holds: Holds::of(config.policy),
            sources: vec![End::FREE; n],
            destinations: vec![End::FREE; n],
            releases: Releases::new(2 * n),
            dirty: Vec::with_capacity(n),
            held: Vec::with_capacity(n),
            held_stale: false,
            full: Vec::with_capacity(n),
            iteration_end: Ps::ZERO,
            requests: vec![Request::NONE; n],
            requested: Vec::with_capacity(n),
            stats: SchedulerStats::default(),
            config,
        }
    }

    /// The configuration of the scheduler.
    #[must_use]
    pub fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// Counts of what the scheduler did so far.
    #[must_use]
    pub fn stats(&self) -> SchedulerStats {
        self.stats
    }

    /// Number of messages that wait for grants.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Inserts a notification; it takes part in iterations that start from now on.
    ///
    /// # Errors
    /// [`NotifyError`] when the demand cannot be queued; the state is then unchanged.
    pub fn notify(&mut self, demand: Demand) -> Result<(), NotifyError> {
        self.config.check(&demand)?;
        let (s, d) = (usize::from(demand.source), usize::from(demand.destination));
        if self.sources[s].failed || self.destinations[d].failed {
            return Err(NotifyError::PortFailed);
        }
        let message = self.queues.insert(&demand)?;
        if let Some(patience) = self.config.patience(demand.bytes) {
            self.alarms.add(patience, message);
        }
        if let Some(tail) = &mut self.tail {
            let ranking = tail.observe(demand.bytes);
            if ranking != self.queues.ranking {
                self.queues.set_ranking(ranking);
            }
        }
        self.stats.waiting_max = self.stats.waiting_max.max(self.queues.waiting() as u64);
        self.mark_dirty(demand.destination);
        Ok(())
    }

    /// Charges control blocks that passed the uplink of a source.
    #[inline]
    pub fn charge_source(&mut self, now: Ps, port: u16, blocks: u32) {
        self.sources[usize::from(port)].charge(now, blocks, &self.config);
    }

    /// Charges control blocks that passed the downlink of a destination.
    #[inline]
    pub fn charge_destination(&mut self, now: Ps, port: u16, blocks: u32) {
        self.destinations[usize::from(port)].charge(now, blocks, &self.config);
    }

    /// Records that granted blocks have arrived from a source, or never will.
    #[inline]
    pub fn on_sent(&mut self, source: u16, blocks: u32) {
        if self.sources[usize::from(source)].pass(blocks, self.outstanding_limit) {
            let Scheduler { queues, destinations, dirty, .. } = self;
            for place in 0..queues.peers.len(source) {
                mark(destinations, dirty, queues.peers.get(source, place).destination);
            }
            self.held_stale = true;
        }
    }

    /// Records blocks for a destination that arrived beyond what was granted.
    #[inline]
    pub fn on_exceeded(&mut self, destination: u16, blocks: u32) {
        self.destinations[usize::from(destination)].exceed(blocks);
    }

    /// Records that granted blocks have left the egress of a destination, or never will.
    #[inline]
    pub fn on_departed(&mut self, destination: u16, blocks: u32) {
        if self.destinations[usize::from(destination)].pass(blocks, self.outstanding_limit) {
            self.mark_dirty(destination);
        }
    }

    /// True if a destination waits for departures before it is granted again.
    #[inline]
    #[must_use]
    pub fn is_full(&self, destination: u16) -> bool {
        self.destinations[usize::from(destination)].full
    }

    /// Takes a destination that was found full since the last call. Its departures may not have
    /// been reported yet.
    #[inline]
    pub fn poll_full(&mut self) -> Option<u16> {
        self.full.pop()
    }

    /// Number of granted blocks that have not come from their sources, and number that have not
    /// left their egress.
    #[must_use]
    pub fn outstanding_blocks(&self) -> (u64, u64) {
        let sum = |ends: &[End]| ends.iter().map(|end| u64::from(end.outstanding())).sum();
        (sum(&self.sources), sum(&self.destinations))
    }

    /// The time of the next [`Scheduler::step`]; `None` while only a notification can cause a
    /// grant. A time in the past means at once.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        if !self.dirty.is_empty() || (self.held_stale && !self.held.is_empty()) {
            return Some(self.iteration_end);
        }
        self.releases.first().map(|at| at.max(self.iteration_end))
    }

    /// Runs one matching iteration that starts now. Does nothing while an iteration is in progress.
    pub fn step(&mut self, now: Ps, mut granted: impl FnMut(Grant)) {
        if now < self.iteration_end {
            return;
        }
        self.release_ports(now);
        while let Some(destination) = self.held.pop() {
            self.mark_dirty(destination);
        }
        self.held_stale = false;
        self.request(now);
        if self.requested.is_empty() {
            self.stats.maximal();
            return;
        }
        let size = self.requested.len();
        self.stats.iteration(size as u64, (self.dirty.len() - size) as u64);
        self.iteration_end = now + self.config.iteration();
        self.held_stale = true;
        let mut requested = std::mem::take(&mut self.requested);
        for source in requested.drain(..) {
            granted(self.grant(source));
        }
        self.requested = requested;
        self.mark_late();
        self.put_off_looks();
        if self.dirty.is_empty() && self.held.is_empty() {
            self.stats.maximal();
        }
    }

    /// Marks waiting messages as late, after an iteration that granted something.
    #[inline]
    fn mark_late(&mut self) {
        self.alarms.set_unseen(self.iteration_end);
        while let Some(message) = self.alarms.pop_until(self.iteration_end) {
            if let Some(destination) = self.queues.set_late(message) {
                self.mark_dirty(destination);
            }
        }
    }

    /// Takes a port out of service until [`Scheduler::restore_port`]. Its messages leave the
    /// queues, each reported with its tag, and no grant names the port. Blocks granted to it and
    /// towards it no longer count: their arrival and departure must not be reported. The caller
    /// must take back what it was granted towards others ([`Scheduler::on_departed`]).
    pub fn fail_port(&mut self, port: u16, mut dropped: impl FnMut(Demand)) {
        self.queues.clear_port(port, |source, destination, entry| {
            dropped(Demand {
                source,
                destination,
                flow: entry.flow,
                bytes: entry.remaining,
                tag: entry.tag,
            });
        });
        self.sources[usize::from(port)].fail();
        self.destinations[usize::from(port)].fail();
    }

    /// Puts a failed port back into service, free.
    pub fn restore_port(&mut self, port: u16) {
        self.sources[usize::from(port)].failed = false;
        self.destinations[usize::from(port)].failed = false;
    }

    #[inline]
    fn mark_dirty(&mut self, destination: u16) {
        self.held_stale = true;
        mark(&mut self.destinations, &mut self.dirty, destination);
    }

    /// Marks the destinations that a released port may now serve.
    fn release_ports(&mut self, now: Ps) {
        let Scheduler { queues, sources, destinations, dirty, releases, .. } = self;
        let ports = self.config.ports;
        while let Some(release) = releases.pop_until(now) {
            let end = release.end();
            if end >= ports {
                destinations[usize::from(end - ports)].armed = false;
                mark(destinations, dirty, end - ports);
            } else {
                sources[usize::from(end)].armed = false;
                for place in 0..queues.peers.len(end) {
                    mark(destinations, dirty, queues.peers.get(end, place).destination);
                }
            }
        }
    }

    /// The data of an iteration that starts at `at`, and the destinations that take part.
    #[inline]
    fn cycle(&mut self, at: Ps) -> (RequestCycle<'_>, &mut Vec<u16>, &mut Vec<u16>) {
        let window = at + self.lookahead;
        let cycle = RequestCycle {
            thresholds: Thresholds { holds: self.holds, window, ahead: self.ahead },
            turn: Turn::of(&self.config, at),
            ports: self.config.ports,
            lookahead: self.lookahead,
            outstanding_limit: self.outstanding_limit,
            queues: &self.queues,
            sources: &mut self.sources,
            destinations: &mut self.destinations,
            releases: &mut self.releases,
            requests: &mut self.requests,
            requested: &mut self.requested,
            full: &mut self.full,
        };
        (cycle, &mut self.dirty, &mut self.held)
    }

    /// Puts off destinations that took part and cannot make a request in the next iteration. Most
    /// granted destinations and those that lost to them are such. Without them the next iteration
    /// may be empty.
    #[inline]
    fn put_off_looks(&mut self) {
        let (mut cycle, dirty, _) = self.cycle(self.iteration_end);
        dirty.retain(|&destination| {
            let looks = !cycle.put_off(destination);
            cycle.destinations[usize::from(destination)].dirty = looks;
            looks
        });
    }

    /// First cycle: every destination sends a request to its best eligible source.
    fn request(&mut self, now: Ps) {
        self.full.clear();
        let (mut cycle, dirty, held) = self.cycle(now);
        let mut kept = 0;
        for at in 0..dirty.len() {
            let destination = dirty[at];
            match cycle.turn(destination) {
                Asked::Request => {
                    dirty[kept] = destination;
                    kept += 1;
                    continue;
                }
                Asked::Held => held.push(destination),
                Asked::Nothing => {}
            }
            cycle.destinations[usize::from(destination)].dirty = false;
        }
        dirty.truncate(kept);
    }

    /// Second and third cycle: the source takes its best request, and both ports become busy.
    #[inline]
    fn grant(&mut self, source: u16) -> Grant {
        let request = std::mem::replace(&mut self.requests[usize::from(source)], Request::NONE);
        let Request { pair, entry, destination, .. } = request;
        let Entry { remaining, tag, flow, started, .. } = *self.queues.entry(entry);
        let chunk = self.config.chunk.0 as u32;
        let (bytes, taken) = if remaining >= chunk {
            (chunk, (self.chunk_time, self.chunk_blocks))
        } else {
            (remaining, (self.config.busy_time(remaining), self.config.chunk_blocks(remaining)))
        };
        let from = &mut self.sources[usize::from(source)];
        let to = &mut self.destinations[usize::from(destination)];
        let earliest = to.free.saturating_sub(self.ahead);
        let at = self.iteration_end.max(from.free).max(earliest);
        from.take(at, taken, self.config.slot);
        to.take(at, taken, self.config.slot);
        let last = self.queues.take(pair, entry, bytes);
        if flow == Flow::ReadResponse && !started {
            // Writes of this compute-memory pair may have become eligible.
            self.mark_dirty(source);
        }
        Grant { at, source, destination, flow, tag, bytes, first: !started, last }
    }
}

#[inline]
fn mark(destinations: &mut [End], dirty: &mut Vec<u16>, destination: u16) {
    if !std::mem::replace(&mut destinations[usize::from(destination)].dirty, true) {
        dirty.push(destination);
    }
}
