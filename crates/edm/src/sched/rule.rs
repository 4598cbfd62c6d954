//! What both forms of the scheduler share: demands, grants, priorities, the hold.

use ethermem_units::{Bytes, Ps};

use crate::{EdmConfig, Order, Policy};

/// Scheduler clock cycles of one matching iteration: request, grant, mark busy (section 3.1.2).
pub(crate) const CYCLES_PER_ITERATION: u64 = 3;

/// Bits of a notification's sequence number in a priority; 2^42 notifications last 10 hours at
/// 100 million a second.
const SEQUENCE_BITS: u32 = 42;
/// Most bytes of a demand.
const DEMAND_BYTES_MAX: u64 = (1 << 22) - 1;
/// Fraction bits of the logarithms that a rank is the sum of.
const LOG_FRACTION_BITS: u32 = 3;

/// Halves of its own time on the link after which a message is late.
const PATIENCE_HALVES: u64 = 3;
/// What being late takes off a rank, in its units: one size class.
const LATE_BONUS: u32 = 2 << LOG_FRACTION_BITS;

/// Bits of a weighted rank below its size class, which is whole octaves of the mean.
const CLASS_BITS_BELOW: u32 = LOG_FRACTION_BITS + 1;

/// The least class of [`Ranking::Classes`]: what is under 128 B is one class, so that there are 16.
const CLASS_LEAST: u32 = 6;

/// A destination holds for a message whose class is at least this far below its rival's.
const HOLD_MARGIN: u8 = 1;
/// The threshold of a port that is neither busy nor holding: above every class.
pub(super) const OPEN: u8 = u8::MAX;

/// Which of a pair's two independent streams a message belongs to. The data of both flows from
/// `source` to `destination`, yet a response answers the destination's request and a write is the
/// source's own, so they belong to different compute-memory pairs and owe each other no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// RRES: the destination is the compute node; the first grant is the request itself.
    ReadResponse = 0,
    /// WREQ: the source is the compute node.
    WriteRequest = 1,
}

/// A notification as the scheduler sees it: an /N/, or an RREQ/RMWREQ standing for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Port whose uplink will carry the data.
    pub source: u16,
    /// Port whose downlink will carry the data.
    pub destination: u16,
    /// The stream it belongs to.
    pub flow: Flow,
    /// Data bytes wanted: 1 to 4 MiB - 1.
    pub bytes: u32,
    /// The caller's name for the message; comes back in every grant.
    pub tag: u32,
}

/// Permission for one chunk: the circuit `source` to `destination` for its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When the /G/, or the released request, may leave the scheduler.
    pub at: Ps,
    /// Port that sends.
    pub source: u16,
    /// Port that receives.
    pub destination: u16,
    /// The stream of the message.
    pub flow: Flow,
    /// From the demand.
    pub tag: u32,
    /// Data bytes allowed, at most a chunk.
    pub bytes: u32,
    /// The message's first: for a [`Flow::ReadResponse`], release the request instead of a /G/.
    pub first: bool,
    /// The message's last: it has left the notification queue.
    pub last: bool,
}

/// A notification that could not be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyError {
    /// The pair has X active already in this flow: its host broke the limit. Do not retry.
    PairFull,
    /// A port out of range, source equal to destination, or a size of 0 or over 4 MiB - 1.
    Invalid,
    /// One of the two ports has failed, or the sender has yet to hear of it. A retry can help once
    /// they are joined again.
    PortFailed,
}

/// What a scheduler is built from.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// Switch ports: 2 to 512.
    pub ports: u16,
    /// One cycle of the scheduler's clock.
    pub cycle: Ps,
    /// One block slot of a link.
    pub slot: Ps,
    /// Most data bytes of a grant.
    pub chunk: Bytes,
    /// Slots that a chunk takes beside its data blocks (its /MS/ and /MT/).
    pub chunk_overhead_blocks: u32,
    /// Active notifications per pair and flow (X).
    pub notifications_max: u8,
    /// Priority.
    pub policy: Policy,
    /// Order within a pair.
    pub order: Order,
    /// A port takes part in the matching this many iterations before it comes free, so that it
    /// does not idle while it is matched. At least 1.
    pub lookahead_iterations: u8,
    /// A destination is granted to a next source while at most this many blocks of its last one
    /// are still to come: they meet in the egress buffer, which so makes up for ports that come
    /// free at different instants. 0: as published, no buffer.
    pub ahead_blocks: u32,
    /// Blocks that may be granted towards a destination and not have departed from its egress, and
    /// as many that a source may be granted and not have sent: at least a chunk's. `None`: they are
    /// not limited, and departures need not be said.
    pub egress_window_blocks: Option<u32>,
    /// Control blocks that may pass a port in a row of grants before they lengthen it: they find
    /// room in the egress buffer and the host's grant queue, and later in the port's idle slots.
    /// `None`: as published, they are not counted.
    pub control_blocks_free: Option<u32>,
    /// Messages of at least so many bytes go before others of their size once they have waited
    /// half again as long as they take on the link. `None`: none does, as published, and where no
    /// message waits behind others of its pair.
    pub late_bytes_min: Option<u32>,
}

/// See [`SchedulerConfig::late_bytes_min`]: shorter messages seldom wait for more than a few that
/// are shorter still, and are most of all.
const LATE_BYTES_MIN: u32 = 64 << 10;

/// See [`SchedulerConfig::control_blocks_free`]: about as much as a destination may be ahead.
const CONTROL_BLOCKS_FREE: u32 = 32;

impl SchedulerConfig {
    /// The scheduler of an EDM switch whose PCS clock is `pcs_cycle`.
    #[must_use]
    pub fn new(ports: u16, edm: &EdmConfig, pcs_cycle: Ps, slot: Ps) -> SchedulerConfig {
        let published = edm.policy == Policy::SrptPublished;
        let by_class = edm.policy == Policy::SrptClasses;
        let counts_late = !published && !by_class && edm.order != Order::Relaxed;
        SchedulerConfig {
            ports,
            cycle: edm.scheduler_clock.unwrap_or(pcs_cycle),
            slot,
            chunk: edm.chunk,
            chunk_overhead_blocks: 2,
            notifications_max: edm.notifications_max,
            policy: edm.policy,
            order: edm.order,
            lookahead_iterations: edm.lookahead_iterations,
            ahead_blocks: if published { 0 } else { edm.ahead_blocks },
            egress_window_blocks: edm.egress_window_blocks,
            control_blocks_free: (!published).then_some(CONTROL_BLOCKS_FREE),
            late_bytes_min: counts_late.then_some(LATE_BYTES_MIN),
        }
    }

    /// How long one matching iteration takes.
    #[must_use]
    pub fn iteration(&self) -> Ps {
        self.cycle * CYCLES_PER_ITERATION
    }

    /// How long before it comes free a port is matched.
    #[must_use]
    pub fn lookahead(&self) -> Ps {
        self.iteration() * u64::from(self.lookahead_iterations)
    }

    /// How long before its last granted block a destination is granted again.
    #[must_use]
    pub fn ahead(&self) -> Ps {
        self.slot * u64::from(self.ahead_blocks)
    }

    /// How long a chunk of `bytes` keeps both its ports: l/B with its framing.
    #[must_use]
    #[inline]
    pub fn busy_time(&self, bytes: u32) -> Ps {
        self.slot * u64::from(self.chunk_blocks(bytes))
    }

    /// Blocks of a chunk of `bytes` with its framing.
    #[must_use]
    #[inline]
    pub fn chunk_blocks(&self, bytes: u32) -> u32 {
        Bytes(u64::from(bytes)).to_blocks().0 as u32 + self.chunk_overhead_blocks
    }

    /// The most blocks that an end may have outstanding and be granted a chunk: one of any length
    /// then fits its window.
    #[must_use]
    pub(super) fn outstanding_limit(&self) -> u32 {
        let longest = self.chunk_blocks(self.chunk.0 as u32);
        self.egress_window_blocks.map_or(u32::MAX, |window| window - longest)
    }

    /// How long a message may wait until it is late; `None` for ever.
    #[must_use]
    #[inline]
    pub fn patience(&self, bytes: u32) -> Option<Ps> {
        let own = self.slot * Bytes(u64::from(bytes)).to_blocks().0;
        let counts = self.late_bytes_min.is_some_and(|least| bytes >= least);
        counts.then(|| Ps(own.0 * PATIENCE_HALVES / 2))
    }

    pub(super) fn check(&self, demand: &Demand) -> Result<(), NotifyError> {
        let valid = demand.source < self.ports
            && demand.destination < self.ports
            && demand.source != demand.destination
            && (1..=DEMAND_BYTES_MAX).contains(&u64::from(demand.bytes));
        valid.then_some(()).ok_or(NotifyError::Invalid)
    }
}

/// The control blocks that passed a port since it was last idle, up to what is free of charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlDebt(u32);

impl ControlDebt {
    pub(super) const NONE: ControlDebt = ControlDebt(0);

    /// `blocks` more passed a busy port: by how many its release moves.
    #[inline]
    pub(super) fn charge(&mut self, blocks: u32, free: Option<u32>) -> u32 {
        let Some(limit) = free else { return 0 };
        let debt = self.0 + blocks;
        self.0 = debt.min(limit);
        debt - self.0
    }

    /// The port had `blocks` slots to itself.
    #[inline]
    pub(super) fn pay(&mut self, blocks: u64) {
        self.0 = u64::from(self.0).saturating_sub(blocks) as u32;
    }
}

/// Whether a policy ranks by remaining bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranking {
    /// First come, first served.
    Arrival,
    /// By remaining bytes, as published.
    Remaining,
    /// By remaining bytes times size.
    Weighted,
    /// By the size class alone: see [`Turn`].
    Classes,
}

impl Ranking {
    /// The ranking a policy starts with.
    pub(super) fn of(policy: Policy) -> Ranking {
        match policy {
            Policy::Fcfs | Policy::Auto => Ranking::Arrival,
            Policy::Srpt => Ranking::Weighted,
            Policy::SrptPublished => Ranking::Remaining,
            Policy::SrptClasses => Ranking::Classes,
        }
    }
}

/// Who goes first among candidates of one class, in one iteration: source XOR destination XOR a
/// counter of cycles. At either end no two are equal; when all have something to send, the first
/// of all ends together are a permutation; and each pair is first in its turn. Other rankings have
/// no equals and take no turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    counter: u16,
    mask: u16,
}

impl Turn {
    /// Of the iteration that starts in the cycle of `now`.
    #[inline]
    pub(super) fn of(config: &SchedulerConfig, now: Ps) -> Turn {
        if config.policy == Policy::SrptClasses {
            let counter = (now.0 / config.cycle.0) as u16;
            Turn { counter, mask: config.ports.next_power_of_two() - 1 }
        } else {
            Turn { counter: 0, mask: 0 }
        }
    }

    /// The place of a pair's candidate among those of one end.
    #[inline]
    pub(super) fn place(self, priority: u64, source: u16, destination: u16) -> u64 {
        priority | u64::from((source ^ destination ^ self.counter) & self.mask)
    }
}

/// What of a message its priority depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    /// Bytes to be granted yet.
    pub(super) remaining: u32,
    /// Bytes in all.
    pub(super) size: u32,
    /// Place in the order of arrival.
    pub(super) sequence: u64,
    /// It has waited longer than [`SchedulerConfig::patience`].
    pub(super) late: bool,
}

/// A message's place in every order: the smaller goes first. No two are equal, but in
/// [`Ranking::Classes`], which leaves the bits below the class to [`Turn`].
///
/// [`Ranking::Weighted`] is `remaining * size`, each as its logarithm to an eighth of an octave:
/// what counts is the mean slowdown, not the mean time, and a delay weighs one over the size. A
/// rank so takes 9 bits and an adder, and changes seldom; arrival orders what is equal. What is
/// late ranks as if it were smaller.
#[inline]
pub(super) fn priority(ranking: Ranking, message: Ranked) -> u64 {
    let Ranked { remaining, size, sequence, late } = message;
    debug_assert!(sequence < 1 << SEQUENCE_BITS);
    match ranking {
        Ranking::Arrival => sequence,
        Ranking::Remaining => u64::from(remaining) << SEQUENCE_BITS | sequence,
        Ranking::Weighted => {
            let rank = log2(remaining) + log2(size);
            let rank = if late { rank.saturating_sub(LATE_BONUS) } else { rank };
            u64::from(rank) << SEQUENCE_BITS | sequence
        }
        Ranking::Classes => {
            let class = (log2(remaining) + log2(size)) >> CLASS_BITS_BELOW;
            u64::from(class.max(CLASS_LEAST)) << (SEQUENCE_BITS + CLASS_BITS_BELOW)
        }
    }
}

/// The logarithm of a positive number in eighths, its fraction linear: exact at powers of two.
#[inline]
fn log2(value: u32) -> u32 {
    let whole = value.ilog2();
    let mantissa = (u64::from(value) << LOG_FRACTION_BITS >> whole) as u32;
    (whole << LOG_FRACTION_BITS) + mantissa - (1 << LOG_FRACTION_BITS)
}

/// The size class of a weighted priority: whole octaves of the mean of both logarithms. All of FCFS
/// is one class.
#[inline]
pub(super) fn class(priority: u64) -> u8 {
    (priority >> (SEQUENCE_BITS + CLASS_BITS_BELOW)) as u8
}

/// What a port that could wait for a message of `priority` demands of anything else: a class
/// below this.
#[inline]
pub(super) fn hold_threshold(priority: u64) -> u8 {
    class(priority) + HOLD_MARGIN
}

/// Tells a heavy tail from a light one by the sizes of the last notifications, as `Policy::Auto`
/// needs: `E[x^2] / E[x]^2` over a window is 1 for equal sizes, 2 for exponential ones, and 5 to 30
/// for the application workloads.
#[derive(Clone, Debug)]
pub(super) struct TailEstimate {
    count: u32,
    sum: u64,
    sum_squares: u128,
    ranking: Ranking,
}

/// Notifications per estimate.
const TAIL_WINDOW: u32 = 256;
/// `E[x^2] / E[x]^2` at which SRPT begins.
const TAIL_HEAVY_RATIO: u128 = 2;

impl TailEstimate {
    pub(super) fn new() -> TailEstimate {
        TailEstimate { count: 0, sum: 0, sum_squares: 0, ranking: Ranking::Arrival }
    }

    /// Takes one size in; says the ranking from here on.
    pub(super) fn observe(&mut self, bytes: u32) -> Ranking {
        self.count += 1;
        self.sum += u64::from(bytes);
        self.sum_squares += u128::from(bytes) * u128::from(bytes);
        if self.count == TAIL_WINDOW {
            let mean_square = u128::from(self.sum) * u128::from(self.sum);
            let heavy = self.sum_squares * u128::from(TAIL_WINDOW) > TAIL_HEAVY_RATIO * mean_square;
            let ranking = if heavy { Ranking::Weighted } else { Ranking::Arrival };
            *self = TailEstimate { ranking, ..TailEstimate::new() };
        }
        self.ranking
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_goes_first_and_equals_go_by_arrival() {
        let rank = |remaining, size, sequence| {
            priority(Ranking::Weighted, Ranked { remaining, size, sequence, late: false })
        };
        assert!(rank(64, 64, 9) < rank(72, 72, 1));
        assert!(rank(64, 64, 1) < rank(64, 64, 2));
        // As much left, but of a larger message: its delay weighs less.
        assert!(rank(64, 64, 9) < rank(64, 128, 1));
        let arrived = |size, sequence| {
            priority(Ranking::Arrival, Ranked { remaining: size, size, sequence, late: false })
        };
        assert!(arrived(9_999, 1) < arrived(64, 2));
    }

    #[test]
    fn a_late_message_ranks_as_one_of_half_its_size() {
        let rank = |size, late| {
            priority(Ranking::Weighted, Ranked { remaining: size, size, sequence: 7, late })
        };
        assert_eq!(rank(1 << 20, true), rank(1 << 19, false));
        assert_eq!(class(rank(1 << 20, true)) + 1, class(rank(1 << 20, false)));
        assert_eq!(rank(1, true), rank(1, false));
    }

    #[test]
    fn patience_is_half_again_the_time_on_the_link_and_small_messages_have_no_end_of_it() {
        let config = SchedulerConfig::new(2, &EdmConfig::default(), Ps(330), Ps(640));
        assert_eq!(config.patience(LATE_BYTES_MIN - 1), None);
        assert_eq!(config.patience(1 << 20), Some(Ps(640 * (1 << 17) * 3 / 2)));
        let published = EdmConfig { policy: Policy::SrptPublished, ..EdmConfig::default() };
        let config = SchedulerConfig::new(2, &published, Ps(330), Ps(640));
        assert_eq!(config.patience(1 << 20), None);
    }

    #[test]
    fn a_rank_never_rises_as_a_message_shrinks() {
        let mut before = u32::MAX;
        for remaining in (1..=DEMAND_BYTES_MAX as u32).rev().step_by(37) {
            let rank = log2(remaining);
            assert!(rank <= before && rank < 22 << LOG_FRACTION_BITS, "{remaining} B");
            before = rank;
        }
        assert_eq!([log2(1), log2(2), log2(3), log2(1 << 21)], [0, 8, 12, 168]);
    }

    #[test]
    fn classes_are_octaves_and_fcfs_has_one() {
        let ranked =
            |bytes, sequence| Ranked { remaining: bytes, size: bytes, sequence, late: false };
        let of = |bytes| class(priority(Ranking::Weighted, ranked(bytes, 77)));
        assert_eq!(of(64), of(127));
        assert_eq!(of(64) + 1, of(128));
        assert_eq!(class(priority(Ranking::Arrival, ranked(64, 1 << 41))), 0);
    }

    #[test]
    fn equal_classes_take_turns_and_all_first_ones_together_are_a_permutation() {
        let edm = EdmConfig { policy: Policy::SrptClasses, ..EdmConfig::default() };
        let config = SchedulerConfig::new(8, &edm, Ps(10), Ps(10));
        let of = |remaining, size, sequence| {
            priority(Ranking::Classes, Ranked { remaining, size, sequence, late: true })
        };
        assert_eq!(of(1, 64, 1), of(127, 127, 9));
        assert_eq!(class(of(128, 128, 0)), class(of(64, 64, 0)) + 1);
        for cycle in 0..16 {
            let turn = Turn::of(&config, Ps(10 * cycle));
            let first = |d| (0..8).min_by_key(|&s| turn.place(of(64, 64, 0), s, d)).expect("8");
            let mut firsts = (0..8).map(first).collect::<Vec<u16>>();
            assert_eq!(firsts[0], cycle as u16 % 8);
            firsts.sort_unstable();
            assert_eq!(firsts, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
        let exact = SchedulerConfig { policy: Policy::Srpt, ..config };
        assert_eq!(Turn::of(&exact, Ps(70)).place(77, 1, 2), 77);
    }

    #[test]
    fn the_tail_of_equal_sizes_is_light_and_of_a_mixture_heavy() {
        let mut tail = TailEstimate::new();
        for _ in 0..TAIL_WINDOW {
            tail.observe(64);
        }
        assert_eq!(tail.observe(64), Ranking::Arrival);
        let mut tail = TailEstimate::new();
        for n in 0..TAIL_WINDOW {
            tail.observe(if n % 10 == 0 { 1_000_000 } else { 5_840 });
        }
        assert_eq!(tail.observe(5_840), Ranking::Weighted);
    }
}
