//! The event-driven form.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_units::Ps;

use super::queues::{Candidate, Queues};
use super::rule::{
    ControlDebt, Demand, Grant, NotifyError, OPEN, Ranking, SchedulerConfig, TailEstimate, class,
    hold_threshold,
};
use crate::Policy;

/// What the scheduler did, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// Matching iterations in which at least one destination made a request.
    pub iterations: u64,
    /// Grants given: the sum of the sizes of all matchings.
    pub grants: u64,
    /// Requests that lost at their source.
    pub requests_lost: u64,
    /// Most messages waiting at once, in all queues.
    pub waiting_max: u64,
}

/// One end of a port: its uplink as a source, or its downlink as a destination.
#[derive(Clone, Copy, Debug)]
struct End {
    /// When the port's last chunk, and what was charged to it since, has passed.
    free: Ps,
    debt: ControlDebt,
    /// A wake-up at its release is queued.
    armed: bool,
    failed: bool,
}

/// A time and an end, in one word: an end is a port, plus the number of ports for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u64);

impl Release {
    const END_BITS: u32 = 10;

    #[inline]
    fn new(at: Ps, end: u16) -> Release {
        // 54 bits of picoseconds are five hours.
        assert!(at.0 >> (u64::BITS - Release::END_BITS) == 0, "a run of over five hours");
        Release(at.0 << Release::END_BITS | u64::from(end))
    }

    #[inline]
    fn at(self) -> Ps {
        Ps(self.0 >> Release::END_BITS)
    }

    #[inline]
    fn end(self) -> u16 {
        self.0 as u16 & ((1 << Release::END_BITS) - 1)
    }
}

/// What came of a destination's turn in the first cycle.
enum Asked {
    /// It asked a source.
    Request,
    /// Only a hold kept it from asking.
    Held,
    /// Nothing but a release or a notification can make it ask.
    Nothing,
}

impl End {
    const FREE: End = End { free: Ps::ZERO, debt: ControlDebt::NONE, armed: false, failed: false };

    #[inline]
    fn charge(&mut self, now: Ps, blocks: u32, config: &SchedulerConfig) {
        if self.free > now {
            let late = self.debt.charge(blocks, config.control_blocks_free);
            self.free += config.slot * u64::from(late);
        }
    }

    /// Takes the port from `start` for `busy`.
    #[inline]
    fn take(&mut self, start: Ps, busy: Ps, slot: Ps) {
        self.debt.pay(start.saturating_sub(self.free).0 / slot.0);
        self.free = self.free.max(start) + busy;
    }
}

/// The grant scheduler, driven by events: call [`Scheduler::notify`] when a notification has been
/// inserted, and [`Scheduler::step`] at the time [`Scheduler::next_wake`] says.
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    lookahead: Ps,
    ahead: Ps,
    queues: Queues,
    tail: Option<TailEstimate>,
    holds: bool,
    sources: Vec<End>,
    destinations: Vec<End>,
    /// Releases to look at, the earliest first.
    releases: BinaryHeap<Reverse<Release>>,
    /// Destinations whose request may have changed, and whether each is among them.
    dirty: Vec<u16>,
    is_dirty: Vec<bool>,
    /// Destinations with no request but for a hold. Any change may lift one, so each step looks
    /// at them again, and a step is due once something changed.
    held: Vec<u16>,
    held_stale: bool,
    /// The iteration under way ends here; the next one starts no earlier.
    iteration_end: Ps,
    /// Best request at each source in this iteration, and the sources that have one.
    requests: Vec<Option<(Candidate, u16)>>,
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
        let ranking = Ranking::of(config.policy);
        Scheduler {
            lookahead: config.lookahead(),
            ahead: config.ahead(),
            queues: Queues::new(config.ports, config.order, config.notifications_max, ranking),
            tail: (config.policy == Policy::Auto).then(TailEstimate::new),
            holds: matches!(config.policy, Policy::Srpt | Policy::Auto),
            sources: vec![End::FREE; n],
            destinations: vec![End::FREE; n],
            releases: BinaryHeap::with_capacity(2 * n),
            dirty: Vec::with_capacity(n),
            is_dirty: vec![false; n],
            held: Vec::with_capacity(n),
            held_stale: false,
            iteration_end: Ps::ZERO,
            requests: vec![None; n],
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
        self.queues.insert(&demand)?;
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
        self.releases.peek().map(|Reverse(release)| release.at().max(self.iteration_end))
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
            return;
        }
        self.stats.iterations += 1;
        self.iteration_end = now + self.config.iteration();
        self.held_stale = true;
        let mut requested = std::mem::take(&mut self.requested);
        for source in requested.drain(..) {
            let request = self.requests[usize::from(source)].take();
            let (candidate, destination) = request.expect("a requested source has a request");
            granted(self.grant(&candidate, destination));
        }
        self.requested = requested;
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

    fn mark_dirty(&mut self, destination: u16) {
        self.held_stale = true;
        if !std::mem::replace(&mut self.is_dirty[usize::from(destination)], true) {
            self.dirty.push(destination);
        }
    }

    /// Marks the destinations that a released port may now serve.
    fn release_ports(&mut self, now: Ps) {
        let ports = self.config.ports;
        while let Some(&Reverse(release)) = self.releases.peek() {
            if release.at() > now {
                break;
            }
            self.releases.pop();
            let end = release.end();
            if end >= ports {
                self.destinations[usize::from(end - ports)].armed = false;
                self.mark_dirty(end - ports);
            } else {
                self.sources[usize::from(end)].armed = false;
                for at in 0..self.queues.peers(end).len() {
                    let destination = self.queues.peers(end)[at];
                    self.mark_dirty(destination);
                }
            }
        }
    }

    fn arm_source(&mut self, port: u16) {
        let end = &mut self.sources[usize::from(port)];
        if !std::mem::replace(&mut end.armed, true) {
            let at = end.free.saturating_sub(self.lookahead);
            self.releases.push(Reverse(Release::new(at, port)));
        }
    }

    fn arm_destination(&mut self, port: u16) {
        let end = &mut self.destinations[usize::from(port)];
        if !std::mem::replace(&mut end.armed, true) {
            let release = end.free.saturating_sub(self.lookahead + self.ahead);
            self.releases.push(Reverse(Release::new(release, port + self.config.ports)));
        }
    }

    /// First cycle: every destination asks its best eligible source.
    fn request(&mut self, now: Ps) {
        let window = now + self.lookahead;
        let mut kept = 0;
        for at in 0..self.dirty.len() {
            let destination = self.dirty[at];
            match self.request_of(window, destination) {
                Asked::Request => {
                    self.dirty[kept] = destination;
                    kept += 1;
                    continue;
                }
                Asked::Held => self.held.push(destination),
                Asked::Nothing => {}
            }
            self.is_dirty[usize::from(destination)] = false;
        }
        self.dirty.truncate(kept);
    }

    /// Makes a destination's request.
    fn request_of(&mut self, window: Ps, destination: u16) -> Asked {
        if self.queues.candidates(destination).is_empty() {
            return Asked::Nothing;
        }
        if self.destinations[usize::from(destination)].free > window + self.ahead {
            self.arm_destination(destination);
            return Asked::Nothing;
        }
        let limit = self.destination_threshold(window, destination);
        let mut best: Option<Candidate> = None;
        let mut held = false;
        for at in 0..self.queues.candidates(destination).len() {
            let candidate = self.queues.candidates(destination)[at];
            if self.sources[usize::from(candidate.source)].free > window {
                self.arm_source(candidate.source);
            } else if best.is_none_or(|best| candidate.priority < best.priority) {
                let limit = limit.min(self.source_threshold(window, candidate.source));
                if limit == OPEN || class(candidate.priority) < limit {
                    best = Some(candidate);
                } else {
                    held = true;
                }
            }
        }
        let Some(best) = best else {
            return if held { Asked::Held } else { Asked::Nothing };
        };
        let rival = &mut self.requests[usize::from(best.source)];
        match rival {
            None => {
                *rival = Some((best, destination));
                self.requested.push(best.source);
            }
            Some((other, _)) => {
                self.stats.requests_lost += 1;
                if best.priority < other.priority {
                    *rival = Some((best, destination));
                }
            }
        }
        Asked::Request
    }

    /// The class below which a free destination takes messages: bounded while its best message is
    /// also the best of a source that is still busy, so that the two meet when it comes free.
    #[inline]
    fn destination_threshold(&self, window: Ps, destination: u16) -> u8 {
        if !self.holds {
            return OPEN;
        }
        let head = self.queues.destination_head(destination);
        let source = usize::from(head.peer);
        let waits = self.sources[source].free > window
            && self.queues.source_head(head.peer).peer == destination;
        if waits { hold_threshold(head.priority) } else { OPEN }
    }

    /// The same for a free source, whose best message is also the best of a busy destination.
    #[inline]
    fn source_threshold(&mut self, window: Ps, source: u16) -> u8 {
        if !self.holds {
            return OPEN;
        }
        let head = self.queues.source_head(source);
        let destination = usize::from(head.peer);
        let waits = self.destinations[destination].free > window + self.ahead
            && self.queues.destination_head(head.peer).peer == source;
        if !waits {
            return OPEN;
        }
        self.arm_destination(head.peer);
        hold_threshold(head.priority)
    }

    /// Second and third cycle: the source takes its best request; both ports become busy.
    fn grant(&mut self, candidate: &Candidate, destination: u16) -> Grant {
        let source = candidate.source;
        let entry = *self.queues.entry(candidate.entry);
        let bytes = entry.remaining.min(self.config.chunk.0 as u32);
        let (from, to) = (usize::from(source), usize::from(destination));
        let busy = self.config.busy_time(bytes);
        let earliest = self.destinations[to].free.saturating_sub(self.ahead);
        let at = self.iteration_end.max(self.sources[from].free).max(earliest);
        self.sources[from].take(at, busy, self.config.slot);
        self.destinations[to].take(at, busy, self.config.slot);
        let last = self.queues.take(source, destination, candidate.entry, bytes);
        if entry.flow == super::Flow::ReadResponse && !entry.started {
            // Writes of the same compute-memory pair may have become eligible.
            self.mark_dirty(source);
        }
        self.stats.grants += 1;
        Grant {
            at,
            source,
            destination,
            flow: entry.flow,
            tag: entry.tag,
            bytes,
            first: !entry.started,
            last,
        }
    }
}
