//! Round trips tell whether a queue stands on the path, or only that its delays vary.

use ethermem_units::Ns;

/// Round trips of which the shortest is the standing delay of the path. A queue that stands delays
/// all of them; a path whose delays vary, and a machine that pauses, does not.
const ROUND: u32 = 16;
/// With less than one request in flight, so many round trips take long enough.
const ROUND_SLOW: u32 = 8;
/// A standing delay may exceed the shortest round trip by this many mean deviations. The shortest
/// of 16 delays that vary at random is nearer to the shortest of all; that of a queue is not.
const DEVIATIONS: u64 = 3;
/// Weights of a new value in moving averages: 1 / 16, and 1 / 128 for losses.
const DELAY_SHIFT: u32 = 4;
const LOSS_SHIFT: u32 = 7;
/// A loss rate, in parts of [`LOSS_ONE`], from which losses mean congestion although no queue
/// stands: 35 %.
const LOSS_ONE: u64 = 1 << 16;
const LOSS_MOST: u64 = LOSS_ONE * 35 / 100;

/// The round trips of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queueing {
    /// Round trips of the present round, its first one's end, and the shortest of them.
    trips: u32,
    began: Ns,
    standing: Ns,
    mean: Option<Ns>,
    deviation: Ns,
    losses: u64,
    /// The last round's excess over what is allowed; zero if no queue stood.
    excess: Ns,
}

/// What a round trip says at the end of its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The round goes on.
    None,
    /// No queue stands.
    Free,
    /// A queue stands: the standing delay, and its excess over what is allowed.
    Queue { standing: Ns, excess: Ns },
}

impl Queueing {
    pub(super) fn new() -> Queueing {
        Queueing {
            trips: 0,
            began: Ns::ZERO,
            standing: Ns(u64::MAX),
            mean: None,
            deviation: Ns::ZERO,
            losses: 0,
            excess: Ns::ZERO,
        }
    }

    /// Records a round trip. The path's shortest is `shortest`, and a queue of `target` is allowed.
    pub(super) fn took(
        &mut self,
        now: Ns,
        time: Ns,
        (shortest, target): (Ns, Ns),
        is_slow: bool,
    ) -> Verdict {
        self.losses -= self.losses >> LOSS_SHIFT;
        let mean = self.mean.unwrap_or(time);
        let apart = mean.0.abs_diff(time.0);
        let deviation = self.deviation.0;
        self.deviation = Ns(deviation - (deviation >> DELAY_SHIFT) + (apart >> DELAY_SHIFT));
        self.mean = Some(Ns(mean.0 - (mean.0 >> DELAY_SHIFT) + (time.0 >> DELAY_SHIFT)));
        if self.trips == 0 {
            (self.began, self.standing) = (now, time);
        }
        self.trips += 1;
        self.standing = self.standing.min(time);
        let least = if is_slow { ROUND_SLOW } else { ROUND };
        if self.trips < least || now.saturating_sub(self.began) < shortest {
            return Verdict::None;
        }
        self.trips = 0;
        let varies = Ns(self.deviation.0.saturating_mul(DEVIATIONS));
        let allowed = shortest.saturating_add(target.max(varies));
        self.excess = self.standing.saturating_sub(allowed);
        if self.excess == Ns::ZERO {
            Verdict::Free
        } else {
            Verdict::Queue { standing: self.standing, excess: self.excess }
        }
    }

    /// Records a loss. Returns whether it means congestion.
    pub(super) fn lost(&mut self) -> bool {
        self.losses += (LOSS_ONE - self.losses) >> LOSS_SHIFT;
        self.excess > Ns::ZERO || self.losses > LOSS_MOST
    }

    /// Takes back the last loss: the answer was late.
    pub(super) fn was_late(&mut self) {
        self.losses = self.losses.saturating_sub((LOSS_ONE - self.losses) >> LOSS_SHIFT);
    }

    /// True if a queue stood in the last round.
    pub(super) fn has_queue(&self) -> bool {
        self.excess > Ns::ZERO
    }
}
