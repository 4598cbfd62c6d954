//! The rules that both forms of the scheduler share: demands, grants, priorities, the hold.

use ethermem_units::{Bytes, Ps};

use crate::{EdmConfig, Order, Policy};

/// Scheduler clock cycles of one matching iteration: request, grant, mark busy (section 3.1.2).
pub(crate) const CYCLES_PER_ITERATION: u64 = 3;

/// Number of bits of a notification's sequence number in a priority. 2^42 notifications last 10
/// hours at 100 million a second.
const SEQUENCE_BITS: u32 = 42;
/// Maximum bytes of a demand.
const DEMAND_BYTES_MAX: u64 = (1 << 22) - 1;
/// Number of fraction bits of the logarithms whose sum is a rank.
const LOG_FRACTION_BITS: u32 = 3;

/// Half units of a message's own time on the link, after which the message is late.
const PATIENCE_HALVES: u64 = 3;
/// Reduction of the rank of a late message, in rank units: one size class.
const LATE_BONUS: u32 = 2 << LOG_FRACTION_BITS;

/// Number of bits of a weighted rank below its size class. A class is a whole octave of the mean.
const CLASS_BITS_BELOW: u32 = LOG_FRACTION_BITS + 1;

/// The least class of [`Ranking::Classes`]. All messages under 128 B are one class, so that there
/// are 16 classes.
const CLASS_LEAST: u32 = 6;

/// A destination holds for a message whose class is at least this far below its rival's.
const HOLD_MARGIN: u8 = 1;
/// The threshold of a port that is neither busy nor holding: above every class.
pub(super) const OPEN: u8 = u8::MAX;

/// One of a pair's two independent streams. The data of both flows from `source` to `destination`.
/// A response answers the destination's request, while a write is the source's own. So they belong
/// to different compute-memory pairs, and no order holds between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// RRES: the destination is the compute node; the first grant is the request itself.
    ReadResponse = 0,
    /// WREQ: the source is the compute node.
    WriteRequest = 1,
}

/// A notification as the scheduler sees it: an /N/, or an RREQ/RMWREQ that stands for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Port whose uplink will carry the data.
    pub source: u16,
    /// Port whose downlink will carry the data.
    pub destination: u16,
    /// The stream of the message.
    pub flow: Flow,
    /// Data bytes to send: 1 to 4 MiB - 1.
    pub bytes: u32,
    /// The caller's name for the message, which every grant returns.
    pub tag: u32,
}

/// Permission for one chunk: the circuit `source` to `destination` for the length of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The earliest time at which the /G/, or the released request, may leave the scheduler.
    pub at: Ps,
    /// Port that sends.
    pub source: u16,
    /// Port that receives.
    pub destination: u16,
    /// The stream of the message.
    pub flow: Flow,
    /// The tag of the demand.
    pub tag: u32,
    /// Data bytes allowed, at most a chunk.
    pub bytes: u32,
    /// True for the message's first grant. For a [`Flow::ReadResponse`], release the request in
    /// place of a /G/.
    pub first: bool,
    /// True for the message's last grant: the message has left the notification queue.
    pub last: bool,
}

/// Why a notification could not be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyError {
    /// The pair has X active messages in this flow: its host broke the limit. Do not retry.
    PairFull,
    /// A port is out of range, source and destination are equal, or the size is 0 or over 4 MiB -
    /// 1.
    Invalid,
    /// One of the two ports has failed, or the sender has not heard of the failure yet. A retry can
    /// help once the ports are joined again.
    PortFailed,
}

/// The parameters of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// Number of switch ports: 2 to 512.
    pub ports: u16,
    /// Time of one cycle of the scheduler's clock.
    pub cycle: Ps,
    /// Time of one block slot of a link.
    pub slot: Ps,
    /// Maximum data bytes of a grant.
    pub chunk: Bytes,
    /// Number of slots that a chunk takes beside its data blocks (its /MS/ and /MT/).
    pub chunk_overhead_blocks: u32,
    /// Maximum active notifications per pair and flow (X).
    pub notifications_max: u8,
    /// The priority among messages.
    pub policy: Policy,
    /// The order within a pair.
    pub order: Order,
    /// Number of iterations before its release at which a port takes part in the matching, so that
    /// it does not idle while it is matched. At least 1.
    pub lookahead_iterations: u8,
    /// A destination may be granted to another source while at most this many blocks of its last
    /// grant are still to come. They meet in the egress buffer, which so makes up for ports that
    /// come free at different instants. 0: as published, no buffer.
    pub ahead_blocks: u32,
    /// Maximum blocks that are granted towards a destination and have not left its egress. As many
    /// may be granted to a source and not be sent. At least a chunk's blocks. `None`: no limit, and
    /// departures need not be reported.
    pub egress_window_blocks: Option<u32>,
    /// Number of control blocks that may pass a port in a row of grants before they lengthen it.
    /// They find room in the egress buffer and the host's grant queue, and later in the port's idle
    /// slots. `None`: as published, control blocks do not count.
    pub control_blocks_free: Option<u32>,
    /// Minimum bytes of messages that can become late. A late message goes before others of its
    /// size; it is late once it has waited 1.5 times its own time on the link. `None`: no message
    /// becomes late, as published, and where no message waits behind others of its pair.
    pub late_bytes_min: Option<u32>,
}

/// The default of [`SchedulerConfig::late_bytes_min`]. Shorter messages are the majority, and
/// seldom wait for more than a few messages that are shorter still.
const LATE_BYTES_MIN: u32 = 64 << 10;

/// The default of [`SchedulerConfig::control_blocks_free`]: about as much as a destination may be
/// ahead.
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

    /// Duration of one matching iteration.
    #[must_use]
    pub fn iteration(&self) -> Ps {
        self.cycle * CYCLES_PER_ITERATION
    }

    /// Time before its release at which a port is matched.
    #[must_use]
    pub fn lookahead(&self) -> Ps {
        self.iteration() * u64::from(self.lookahead_iterations)
    }

    /// Time before its last granted block at which a destination is granted again.
    #[must_use]
    pub fn ahead(&self) -> Ps {
        self.slot * u64::from(self.ahead_blocks)
    }

    /// Time for which a chunk of `bytes` occupies both its ports: l/B with its framing.
    #[must_use]
    #[inline]
    pub fn busy_time(&self, bytes: u32) -> Ps {
        self.slot * u64::from(self.chunk_blocks(bytes))
    }

    /// Number of blocks of a chunk of `bytes` with its framing.
    #[must_use]
    #[inline]
    pub fn chunk_blocks(&self, bytes: u32) -> u32 {
        Bytes(u64::from(bytes)).to_blocks().0 as u32 + self.chunk_overhead_blocks
    }

    /// Maximum number of outstanding blocks at which an end may be granted a chunk: a chunk of any
    /// length then fits its window.
    #[must_use]
    pub(super) fn outstanding_limit(&self) -> u32 {
        let longest = self.chunk_blocks(self.chunk.0 as u32);
        self.egress_window_blocks.map_or(u32::MAX, |window| window - longest)
    }

    /// Time that a message may wait until it is late; `None` if it never becomes late.
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

/// Number of control blocks that passed a port since it was last idle, up to the free number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlDebt(u32);

impl ControlDebt {
    pub(super) const NONE: ControlDebt = ControlDebt(0);

    /// Adds `blocks` that passed a busy port. Returns by how many blocks its release moves.
    #[inline]
    pub(super) fn charge(&mut self, blocks: u32, free: Option<u32>) -> u32 {
        let Some(limit) = free else { return 0 };
        let debt = self.0 + blocks;
        self.0 = debt.min(limit);
        debt - self.0
    }

    /// Pays off `blocks` idle slots of the port.
    #[inline]
    pub(super) fn pay(&mut self, blocks: u64) {
        self.0 = u64::from(self.0).saturating_sub(blocks) as u32;
    }
}

/// How a policy ranks messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranking {
    /// First come, first served.
    Arrival,
    /// By remaining bytes, as published.
    Remaining,
    /// By remaining bytes times size.
    Weighted,
    /// By the size class alone, with turns: see [`Turn`].
    Classes,
}

impl Ranking {
    /// The ranking with which a policy starts.
    pub(super) fn of(policy: Policy) -> Ranking {
        match policy {
            Policy::Fcfs | Policy::Auto => Ranking::Arrival,
            Policy::Srpt => Ranking::Weighted,
            Policy::SrptPublished => Ranking::Remaining,
            Policy::SrptClasses => Ranking::Classes,
        }
    }
}

/// The precedence among candidates of one class, in one iteration: source XOR destination XOR a
/// counter of cycles. No two values at an end are equal. When all pairs have messages, the first
/// ones of all ends form a permutation, and each pair is first in its turn. Other rankings have no
/// equal priorities and take no turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    counter: u16,
    mask: u16,
}

impl Turn {
    /// The turn of the iteration that starts in the cycle of `now`.
    #[inline]
    pub(super) fn of(config: &SchedulerConfig, now: Ps) -> Turn {
        if config.policy == Policy::SrptClasses {
            let counter = (now.0 / config.cycle.0) as u16;
            Turn { counter, mask: config.ports.next_power_of_two() - 1 }
        } else {
            Turn { counter: 0, mask: 0 }
        }
    }

    /// The place of a pair's candidate among the candidates of one end.
    #[inline]
    pub(super) fn place(self, priority: u64, source: u16, destination: u16) -> u64 {
        priority | u64::from((source ^ destination ^ self.counter) & self.mask)
    }
}

/// The properties of a message that its priority depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    /// Number of bytes not granted yet.
    pub(super) remaining: u32,
    /// Total number of bytes.
    pub(super) size: u32,
    /// The message's place in the order of arrival.
    pub(super) sequence: u64,
    /// True if it has waited longer than [`SchedulerConfig::patience`].
    pub(super) late: bool,
}

/// A message's place in every order: the smaller goes first. No two are equal, except in
/// [`Ranking::Classes`], which leaves the bits below the class to [`Turn`].
///
/// [`Ranking::Weighted`] is `remaining * size`, each as its logarithm to an eighth of an octave.
/// The goal is the mean slowdown, not the mean time, so the weight of a delay is one over the size.
/// Such a rank takes 9 bits and an adder, and changes seldom; arrival orders equal ranks. A late
/// message ranks as if it were smaller.
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

/// The logarithm of a positive number in eighths, with a linear fraction: exact at powers of two.
#[inline]
fn log2(value: u32) -> u32 {
    let whole = value.ilog2();
    let mantissa = (u64::from(value) << LOG_FRACTION_BITS >> whole) as u32;
    (whole << LOG_FRACTION_BITS) + mantissa - (1 << LOG_FRACTION_BITS)
}

/// The size class of a weighted priority: whole octaves of the mean of both logarithms. Under FCFS
/// all messages are one class.
#[inline]
pub(super) fn class(priority: u64) -> u8 {
    (priority >> (SEQUENCE_BITS + CLASS_BITS_BELOW)) as u8
}

/// The threshold of a port that could wait for a message of `priority`: it takes only messages of a
/// class below this.
#[inline]
pub(super) fn hold_threshold(priority: u64) -> u8 {
    class(priority) + HOLD_MARGIN
}

/// Tells a heavy tail from a light one by the sizes of the last notifications, as `Policy::Auto`
/// needs. `E[x^2] / E[x]^2` over a window is 1 for equal sizes, 2 for exponential ones, and 5 to 30
/// for the application workloads.
#[derive(Clone, Debug)]
pub(super) struct TailEstimate {
    count: u32,
    sum: u64,
    sum_squares: u128,
    ranking: Ranking,
}

/// Number of notifications per estimate.
const TAIL_WINDOW: u32 = 256;
/// Value of `E[x^2] / E[x]^2` at which SRPT begins.
const TAIL_HEAVY_RATIO: u128 = 2;

impl TailEstimate {
    pub(super) fn new() -> TailEstimate {
        TailEstimate { count: 0, sum: 0, sum_squares: 0, ranking: Ranking::Arrival }
    }

    /// Adds one size; returns the ranking from now on.
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
        // Equal bytes remain, but of a larger message: its delay weighs less.
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
