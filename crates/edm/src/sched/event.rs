//! The event-driven form.

use ethermem_units::Ps;

use super::late::Alarms;
use super::ports::{End, Thresholds};
use super::queues::Queues;
use super::releases::Releases;
use super::request::{Asked, Request, RequestCycle};
use super::rule::{Demand, Flow, Grant, NotifyError, Ranking, SchedulerConfig, TailEstimate};
use super::slab::Entry;
use super::stats::SchedulerStats;
use crate::Policy;

/// The grant scheduler, driven by events: call [`Scheduler::notify`] when a notification has been
/// inserted, and [`Scheduler::step`] at the time [`Scheduler::next_wake`] says.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    lookahead: Ps,
    ahead: Ps,
    /// How long a whole chunk keeps its ports.
    chunk_time: Ps,
    queues: Queues,
    alarms: Alarms,
    tail: Option<TailEstimate>,
    holds: bool,
    sources: Vec<End>,
    destinations: Vec<End>,
    releases: Releases,
    /// Destinations whose request may have changed.
    dirty: Vec<u16>,
    /// Destinations with no request but for a hold. Any change may lift one, so each step looks
    /// at them again, and a step is due once something changed.
    held: Vec<u16>,
    held_stale: bool,
    /// The iteration under way ends here; the next one starts no earlier.
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
    /// When the configuration has under 2 or over 512 ports, no lookahead or a chunk of 0.
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
            queues: Queues::new(config.ports, config.order, config.notifications_max, ranking),
            alarms: Alarms::default(),
            tail: (config.policy == Policy::Auto).then(TailEstimate::new),
            holds: matches!(config.policy, Policy::Srpt | Policy::Auto),
            sources: vec![End::FREE; n],
            destinations: vec![End::FREE; n],
            releases: Releases::new(2 * n),
            dirty: Vec::with_capacity(n),
            held: Vec::with_capacity(n),
            held_stale: false,
            iteration_end: Ps::ZERO,
            requests: vec![Request::NONE; n],
            requested: Vec::with_capacity(n),
            stats: SchedulerStats::default(),
            config,
        }
    }

    /// What it was built from.
    #[must_use]
    pub fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> SchedulerStats {
        self.stats
    }

    /// Messages waiting for grants now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Inserts a notification; it takes part in iterations that start from now on.
    ///
    /// # Errors
    /// [`NotifyError`] when the demand cannot be queued; nothing has changed then.
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

    /// Control blocks passed the uplink of a source.
    #[inline]
    pub fn charge_source(&mut self, now: Ps, port: u16, blocks: u32) {
        self.sources[usize::from(port)].charge(now, blocks, &self.config);
    }

    /// Control blocks passed the downlink of a destination.
    #[inline]
    pub fn charge_destination(&mut self, now: Ps, port: u16, blocks: u32) {
        self.destinations[usize::from(port)].charge(now, blocks, &self.config);
    }

    /// When to call [`Scheduler::step`] next; `None` while nothing can happen without a
    /// notification. May be in the past: then at once.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        if !self.dirty.is_empty() || (self.held_stale && !self.held.is_empty()) {
            return Some(self.iteration_end);
        }
        self.releases.first().map(|at| at.max(self.iteration_end))
    }

    /// One matching iteration that starts now. Does nothing while an iteration is under way.
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
    }

    /// An iteration has granted something: what else waits may be late by now.
    #[inline]
    fn mark_late(&mut self) {
        self.alarms.set_unseen(self.iteration_end);
        while let Some(message) = self.alarms.pop_until(self.iteration_end) {
            if let Some(destination) = self.queues.set_late(message) {
                self.mark_dirty(destination);
            }
        }
    }

    /// Takes a port out of service: its messages leave the queues, each said by its tag, and no
    /// grant names it until [`Scheduler::restore_port`].
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
        self.sources[usize::from(port)].failed = true;
        self.destinations[usize::from(port)].failed = true;
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

    /// First cycle: every destination asks its best eligible source.
    fn request(&mut self, now: Ps) {
        let Scheduler { queues, sources, destinations, releases, dirty, held, .. } = self;
        let (window, ports) = (now + self.lookahead, self.config.ports);
        let mut cycle = RequestCycle {
            thresholds: Thresholds { holds: self.holds, window, ahead: self.ahead },
            ports,
            lookahead: self.lookahead,
            queues,
            sources,
            destinations,
            releases,
            requests: &mut self.requests,
            requested: &mut self.requested,
        };
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

    /// Second and third cycle: the source takes its best request; both ports become busy.
    #[inline]
    fn grant(&mut self, source: u16) -> Grant {
        let request = std::mem::replace(&mut self.requests[usize::from(source)], Request::NONE);
        let Request { pair, entry, destination, .. } = request;
        let Entry { remaining, tag, flow, started, .. } = *self.queues.entry(entry);
        let chunk = self.config.chunk.0 as u32;
        let (bytes, busy) = if remaining >= chunk {
            (chunk, self.chunk_time)
        } else {
            (remaining, self.config.busy_time(remaining))
        };
        let from = &mut self.sources[usize::from(source)];
        let to = &mut self.destinations[usize::from(destination)];
        let earliest = to.free.saturating_sub(self.ahead);
        let at = self.iteration_end.max(from.free).max(earliest);
        from.take(at, busy, self.config.slot);
        to.take(at, busy, self.config.slot);
        let last = self.queues.take(pair, entry, bytes);
        if flow == Flow::ReadResponse && !started {
            // Writes of the same compute-memory pair may have become eligible.
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
