//! The clocked form of the scheduler: the reference model of the hardware.
//!
//! It uses plain arrays and exhaustive comparisons, as registers and comparators would. On purpose
//! it shares only the rules with the event-driven form, and no data structure.

use super::rule::{
    CYCLES_PER_ITERATION, ControlDebt, Demand, Flow, NotifyError, OPEN, Ranked, Ranking,
    SchedulerConfig, TailEstimate, Turn, class, hold_threshold, priority,
};
use crate::{Order, Policy};
use ethermem_units::Ps;

/// A grant, timed by clock cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CycleGrant {
    /// First cycle in which the /G/ or the request may leave.
    pub at_cycle: u64,
    /// Port that sends.
    pub source: u16,
    /// Port that receives.
    pub destination: u16,
    /// The tag of the demand.
    pub tag: u32,
    /// Number of data bytes allowed.
    pub bytes: u32,
    /// True for the message's first grant.
    pub first: bool,
    /// True for the message's last grant.
    pub last: bool,
}

#[derive(Clone, Debug)]
struct WaitingMessage {
    demand: Demand,
    remaining: u32,
    sequence: u64,
    started: bool,
    /// First cycle in which it is late; `None` until an iteration has seen the message.
    late_from: Option<u64>,
    late: bool,
}

impl WaitingMessage {
    /// The source and the destination.
    fn ends(&self) -> (usize, usize) {
        (usize::from(self.demand.source), usize::from(self.demand.destination))
    }
}

/// One end of a port. Hardware keeps the distance to `free_at` in a down-counter.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    free_at: u64,
    debt: ControlDebt,
    /// Number of granted blocks that have not passed.
    outstanding: u32,
}

impl Port {
    fn charge(&mut self, cycle: u64, blocks: u32, config: &SchedulerConfig) {
        if self.free_at > cycle {
            let late = self.debt.charge(blocks, config.control_blocks_free);
            self.free_at += u64::from(late) * (config.slot.0 / config.cycle.0);
        }
    }

    fn take(&mut self, start: u64, (busy, blocks): (u64, u32), slot: u64) {
        self.outstanding += blocks;
        self.debt.pay(start.saturating_sub(self.free_at) / slot);
        self.free_at = self.free_at.max(start) + busy;
    }
}

/// A number of control blocks on one link.
#[derive(Clone, Copy, Debug)]
struct Charge {
    cycle: u64,
    port: u16,
    blocks: u32,
    uplink: bool,
}

/// The precedence of a message: its place at its ends, then whether its flow is the second of its
/// pair, then its sequence. All but the first matter only for equal classes.
type Precedence = (u64, bool, u64);

/// The three clock cycles of an iteration, with the values latched between them.
#[derive(Clone, Debug)]
enum Phase {
    /// Every destination chooses. The scheduler stays here while no destination has an eligible
    /// message.
    Request,
    /// Every source chooses among its requests. A request is its place and the sequence of its
    /// message.
    Grant(Vec<(Precedence, u64)>),
    /// The matched ports become busy and the messages shrink. Messages are found by sequence,
    /// because others may have been inserted since the request.
    MarkBusy(Vec<u64>),
}

/// The grant scheduler, with one call per clock cycle. A slot must be a whole number of cycles.
#[derive(Debug)]
pub struct CycleScheduler {
    config: SchedulerConfig,
    cycle: u64,
    phase: Phase,
    /// One queue per destination, in order of arrival.
    queues: Vec<Vec<WaitingMessage>>,
    sources: Vec<Port>,
    destinations: Vec<Port>,
    /// Control blocks that passed since the request cycle; they count once the ports are marked
    /// busy.
    charges: Vec<Charge>,
    sequence: u64,
    tail: TailEstimate,
    ranking: Ranking,
    /// By source and destination: true if the write goes first where a response and a write have
    /// one class.
    write_next: Vec<bool>,
}

impl CycleScheduler {
    /// A scheduler with all ports free, before cycle 0.
    ///
    /// # Panics
    /// When a slot is not a whole number of cycles.
    #[must_use]
    pub fn new(config: SchedulerConfig) -> CycleScheduler {
        assert!(config.slot.0.is_multiple_of(config.cycle.0), "a slot is whole cycles");
        let n = usize::from(config.ports);
        CycleScheduler {
            cycle: 0,
            phase: Phase::Request,
            queues: vec![Vec::new(); n],
            sources: vec![Port::default(); n],
            destinations: vec![Port::default(); n],
            charges: Vec::new(),
            sequence: 0,
            tail: TailEstimate::new(),
            ranking: Ranking::of(config.policy),
            write_next: vec![false; n * n],
            config,
        }
    }

    /// The cycle of the next [`CycleScheduler::tick`].
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Inserts a notification in the next cycle.
    ///
    /// # Errors
    /// [`NotifyError`] when the demand cannot be queued; the state is then unchanged.
    pub fn notify(&mut self, demand: Demand) -> Result<(), NotifyError> {
        self.config.check(&demand)?;
        let queue = &mut self.queues[usize::from(demand.destination)];
        let active = queue
            .iter()
            .filter(|w| w.demand.source == demand.source && w.demand.flow == demand.flow)
            .count();
        if active >= usize::from(self.config.notifications_max) {
            return Err(NotifyError::PairFull);
        }
        queue.push(WaitingMessage {
            demand,
            remaining: demand.bytes,
            sequence: self.sequence,
            started: false,
            late_from: None,
            late: false,
        });
        self.sequence += 1;
        if self.config.policy == Policy::Auto {
            self.ranking = self.tail.observe(demand.bytes);
        }
        Ok(())
    }

    /// Charges control blocks to the uplink of a source in the next cycle.
    pub fn charge_source(&mut self, port: u16, blocks: u32) {
        self.charge(Charge { cycle: self.cycle, port, blocks, uplink: true });
    }

    /// Charges control blocks to the downlink of a destination in the next cycle.
    pub fn charge_destination(&mut self, port: u16, blocks: u32) {
        self.charge(Charge { cycle: self.cycle, port, blocks, uplink: false });
    }

    /// Records that granted blocks have arrived from a source.
    pub fn on_sent(&mut self, source: u16, blocks: u32) {
        self.sources[usize::from(source)].outstanding -= blocks;
    }

    /// Records blocks for a destination that arrived beyond what was granted.
    pub fn on_exceeded(&mut self, destination: u16, blocks: u32) {
        self.destinations[usize::from(destination)].outstanding += blocks;
    }

    /// Records that granted blocks have left the egress of a destination.
    pub fn on_departed(&mut self, destination: u16, blocks: u32) {
        self.destinations[usize::from(destination)].outstanding -= blocks;
    }

    fn charge(&mut self, charge: Charge) {
        self.charges.push(charge);
        if matches!(self.phase, Phase::Request) {
            self.apply_charges();
        }
    }

    fn apply_charges(&mut self) {
        for Charge { cycle, port, blocks, uplink } in self.charges.drain(..) {
            let ports = if uplink { &mut self.sources } else { &mut self.destinations };
            ports[usize::from(port)].charge(cycle, blocks, &self.config);
        }
    }

    /// Runs one clock cycle. Returns the grants decided in this cycle, by source port.
    pub fn tick(&mut self) -> Vec<CycleGrant> {
        let mut grants = Vec::new();
        self.phase = match std::mem::replace(&mut self.phase, Phase::Request) {
            Phase::Request => {
                let requests = self.requests();
                if requests.is_empty() {
                    Phase::Request
                } else {
                    self.set_late_from();
                    Phase::Grant(requests)
                }
            }
            Phase::Grant(requests) => Phase::MarkBusy(self.accepted(&requests)),
            Phase::MarkBusy(accepted) => {
                grants = accepted.iter().map(|&sequence| self.mark_busy(sequence)).collect();
                grants.sort_by_key(|grant| grant.source);
                self.apply_charges();
                self.mark_late();
                Phase::Request
            }
        };
        self.cycle += 1;
        grants
    }

    fn rank(&self, waiting: &WaitingMessage) -> u64 {
        let WaitingMessage { demand, remaining, sequence, late, .. } = *waiting;
        priority(self.ranking, Ranked { remaining, size: demand.bytes, sequence, late })
    }

    /// Starts the patience of messages: it runs from the end of the first iteration that saw a
    /// message and granted something.
    fn set_late_from(&mut self) {
        let seen = self.cycle + CYCLES_PER_ITERATION;
        for waiting in self.queues.iter_mut().flatten() {
            if let Some(patience) = self.config.patience(waiting.demand.bytes) {
                let patience = patience.0.div_ceil(self.config.cycle.0);
                waiting.late_from.get_or_insert(seen + patience);
            }
        }
    }

    /// Marks, at the end of an iteration, the messages that are late in the next one.
    fn mark_late(&mut self) {
        for waiting in self.queues.iter_mut().flatten() {
            waiting.late = waiting.late_from.is_some_and(|from| self.cycle + 1 >= from);
        }
    }

    /// True if the order of the message's pair allows a grant.
    fn in_order(&self, waiting: &WaitingMessage) -> bool {
        if self.config.order == Order::Relaxed {
            return true;
        }
        let Demand { source, destination, flow, .. } = waiting.demand;
        let earlier = |other: &&WaitingMessage| other.sequence < waiting.sequence;
        let same_stream = self.queues[usize::from(destination)]
            .iter()
            .filter(earlier)
            .any(|other| other.demand.source == source && other.demand.flow == flow);
        // A write waits until the earlier requests of its compute-memory pair were released.
        let unreleased = flow == Flow::WriteRequest
            && self.queues[usize::from(source)].iter().filter(earlier).any(|other| {
                other.demand.source == destination
                    && other.demand.flow == Flow::ReadResponse
                    && !other.started
            });
        !same_stream && !unreleased
    }

    fn eligible(&self) -> impl Iterator<Item = &WaitingMessage> {
        self.queues.iter().flatten().filter(|waiting| self.in_order(waiting))
    }

    fn window(&self) -> u64 {
        self.config.lookahead().0 / self.config.cycle.0
    }

    fn source_ready(&self, port: usize) -> bool {
        self.sources[port].free_at <= self.cycle + self.window()
    }

    fn destination_ready(&self, port: usize) -> bool {
        self.destinations[port].free_at <= self.cycle + self.window() + self.ahead()
    }

    /// True if a chunk fits both windows. A port never holds for a window.
    fn has_room(&self, source: usize, destination: usize) -> bool {
        let most = self.sources[source].outstanding.max(self.destinations[destination].outstanding);
        most <= self.config.outstanding_limit()
    }

    fn ahead(&self) -> u64 {
        self.config.ahead().0 / self.config.cycle.0
    }

    fn place(&self, waiting: &WaitingMessage) -> Precedence {
        let Demand { source, destination, flow, .. } = waiting.demand;
        let now = Ps(self.config.cycle.0 * self.cycle);
        let write_next = self.write_next[self.index_of(source, destination)];
        let turn = Turn::of(&self.config, now);
        let second = (flow == Flow::WriteRequest) != write_next;
        (turn.place(self.rank(waiting), source, destination), second, waiting.sequence)
    }

    fn index_of(&self, source: u16, destination: u16) -> usize {
        usize::from(source) * usize::from(self.config.ports) + usize::from(destination)
    }

    /// The class below which a free port takes messages: see the event-driven form.
    fn thresholds(&self) -> (Vec<u8>, Vec<u8>) {
        match self.config.policy {
            Policy::Srpt | Policy::Auto => self.thresholds_by_head(),
            Policy::SrptClasses => self.thresholds_by_class(),
            Policy::Fcfs | Policy::SrptPublished => {
                let n = usize::from(self.config.ports);
                (vec![OPEN; n], vec![OPEN; n])
            }
        }
    }

    /// A port holds for a message that is of the least class at both its ends, while the other end
    /// is busy.
    fn thresholds_by_class(&self) -> (Vec<u8>, Vec<u8>) {
        let n = usize::from(self.config.ports);
        let (mut sources, mut destinations) = (vec![OPEN; n], vec![OPEN; n]);
        let (mut source_least, mut destination_least) = (vec![u64::MAX; n], vec![u64::MAX; n]);
        for waiting in self.eligible() {
            let (s, d) = waiting.ends();
            source_least[s] = source_least[s].min(self.rank(waiting));
            destination_least[d] = destination_least[d].min(self.rank(waiting));
        }
        for waiting in self.eligible() {
            let (s, d) = waiting.ends();
            let rank = self.rank(waiting);
            if rank != source_least[s] || rank != destination_least[d] {
                continue;
            }
            if !self.destination_ready(d) {
                sources[s] = hold_threshold(rank);
            }
            if !self.source_ready(s) {
                destinations[d] = hold_threshold(rank);
            }
        }
        (sources, destinations)
    }

    /// A port holds for a message that is the best of both its ends, while the other end is busy.
    fn thresholds_by_head(&self) -> (Vec<u8>, Vec<u8>) {
        let n = usize::from(self.config.ports);
        let (mut sources, mut destinations) = (vec![OPEN; n], vec![OPEN; n]);
        let (mut source_heads, mut destination_heads) = (vec![None; n], vec![None; n]);
        for waiting in self.eligible() {
            let rank = self.rank(waiting);
            for head in [
                &mut source_heads[usize::from(waiting.demand.source)],
                &mut destination_heads[usize::from(waiting.demand.destination)],
            ] {
                if head.is_none_or(|(least, _)| rank < least) {
                    *head = Some((rank, waiting.demand));
                }
            }
        }
        for (rank, demand) in source_heads.into_iter().flatten() {
            let (s, d) = (usize::from(demand.source), usize::from(demand.destination));
            if destination_heads[d] != Some((rank, demand)) {
                continue;
            }
            if !self.destination_ready(d) {
                sources[s] = hold_threshold(rank);
            }
            if !self.source_ready(s) {
                destinations[d] = hold_threshold(rank);
            }
        }
        (sources, destinations)
    }

    fn requests(&self) -> Vec<(Precedence, u64)> {
        let (source_limits, destination_limits) = self.thresholds();
        let mut best: Vec<Option<(Precedence, u64)>> = vec![None; self.queues.len()];
        for waiting in self.eligible() {
            let (s, d) = waiting.ends();
            let (rank, place) = (self.rank(waiting), self.place(waiting));
            let limit = source_limits[s].min(destination_limits[d]);
            let eligible = self.source_ready(s)
                && self.destination_ready(d)
                && self.has_room(s, d)
                && (limit == OPEN || class(rank) < limit);
            if eligible && best[d].is_none_or(|(least, _)| place < least) {
                best[d] = Some((place, waiting.sequence));
            }
        }
        best.into_iter().flatten().collect()
    }

    fn accepted(&self, requests: &[(Precedence, u64)]) -> Vec<u64> {
        let mut best: Vec<Option<(Precedence, u64)>> = vec![None; self.queues.len()];
        for &(place, sequence) in requests {
            let (s, _) = self.find(sequence).ends();
            if best[s].is_none_or(|(least, _)| place < least) {
                best[s] = Some((place, sequence));
            }
        }
        best.into_iter().flatten().map(|(_, sequence)| sequence).collect()
    }

    fn find(&self, sequence: u64) -> &WaitingMessage {
        let mut all = self.queues.iter().flatten();
        all.find(|waiting| waiting.sequence == sequence).expect("a latched message is queued")
    }

    fn mark_busy(&mut self, sequence: u64) -> CycleGrant {
        let demand = self.find(sequence).demand;
        let (s, d) = (usize::from(demand.source), usize::from(demand.destination));
        let pair = self.index_of(demand.source, demand.destination);
        self.write_next[pair] = demand.flow == Flow::ReadResponse;
        let queue = &mut self.queues[d];
        let at = queue.iter().position(|w| w.sequence == sequence).expect("found above");
        let waiting = &mut queue[at];
        let bytes = waiting.remaining.min(self.config.chunk.0 as u32);
        let first = !std::mem::replace(&mut waiting.started, true);
        waiting.remaining -= bytes;
        let last = waiting.remaining == 0;
        if last {
            queue.remove(at);
        }
        // The grant leaves in the next cycle. It waits until the source is free, and until the
        // destination will be free within its egress buffer's time.
        let earliest = self.destinations[d].free_at.saturating_sub(self.ahead());
        let at_cycle = self.sources[s].free_at.max(earliest).max(self.cycle + 1);
        let busy = self.config.busy_time(bytes).0.div_ceil(self.config.cycle.0);
        let slot = self.config.slot.0 / self.config.cycle.0;
        let taken = (busy, self.config.chunk_blocks(bytes));
        self.sources[s].take(at_cycle, taken, slot);
        self.destinations[d].take(at_cycle, taken, slot);
        CycleGrant {
            at_cycle,
            source: demand.source,
            destination: demand.destination,
            tag: demand.tag,
            bytes,
            first,
            last,
        }
    }
}
