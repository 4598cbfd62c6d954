//! The time of a round trip, and the timeout that follows from it (RFC 6298).

use ethermem_units::Ps;

/// A timeout that follows a measured round trip doubles at most so often.
const DOUBLINGS_MAX: u32 = 6;
/// A timeout without a sample doubles more often. The least timeout may be far below the round
/// trip, and no sample comes before the timeout is above it.
const DOUBLINGS_UNMEASURED_MAX: u32 = 12;

/// Moving averages of round trips between two nodes, and the back-off of their timeout.
///
/// All streams of a pair share one value, so that a short stream begins with what earlier ones have
/// measured. A segment that was sent twice gives no sample: its acknowledgement may be of either
/// copy. Until a segment that was sent once is acknowledged, the timeout stays doubled (Karn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    smoothed: Option<Ps>,
    variation: Ps,
    least: Ps,
    doublings: u32,
}

impl RoundTrips {
    /// An estimator without a sample; no timeout is below `least`.
    #[must_use]
    pub const fn new(least: Ps) -> RoundTrips {
        RoundTrips { smoothed: None, variation: Ps::ZERO, least, doublings: 0 }
    }

    /// Records the round trip of a segment that was sent once.
    pub fn took(&mut self, time: Ps) {
        self.doublings = 0;
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(time), Ps(time.0 / 2));
            return;
        };
        let apart = smoothed.0.abs_diff(time.0);
        self.variation = Ps(self.variation.0 - self.variation.0 / 4 + apart / 4);
        self.smoothed = Some(Ps(smoothed.0 - smoothed.0 / 8 + time.0 / 8));
    }

    /// How often the timeout of a segment that is sent now is doubled.
    #[must_use]
    pub fn doublings(&self) -> u32 {
        self.doublings
    }

    /// The timeout after so many doublings. The variation counts as at least an eighth of the round
    /// trip: equal samples alone would let the first late answer time out.
    #[must_use]
    pub fn timeout(&self, doublings: u32) -> Ps {
        let measured = self
            .smoothed
            .map_or(Ps::ZERO, |smoothed| smoothed + Ps(self.variation.0.max(smoothed.0 / 8)) * 4);
        Ps(measured.max(self.least).0 << doublings)
    }

    /// A timeout that was doubled so often was too short. Segments that time out together double it
    /// once.
    pub fn back_off(&mut self, doublings: u32) {
        let most = match self.smoothed {
            Some(_) => DOUBLINGS_MAX,
            None => DOUBLINGS_UNMEASURED_MAX,
        };
        if self.doublings <= doublings {
            self.doublings = (self.doublings + 1).min(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_average_and_its_variation() {
        let mut trips = RoundTrips::new(Ps(1_000));
        assert_eq!(trips.timeout(0), Ps(1_000));
        trips.took(Ps(8_000));
        // The first sample varies by half of itself.
        assert_eq!(trips.timeout(0), Ps(8_000 + 4 * 4_000));
        (0..100).for_each(|_| trips.took(Ps(8_000)));
        assert_eq!(trips.timeout(0), Ps(8_000 + 4 * 1_000));
        (0..100).for_each(|_| trips.took(Ps(10)));
        assert_eq!(trips.timeout(0), Ps(1_000));
    }

    #[test]
    fn back_off_ends_with_a_sample_and_counts_together_what_times_out_together() {
        let mut trips = RoundTrips::new(Ps(1_000));
        let used = trips.doublings();
        (0..5).for_each(|_| trips.back_off(used));
        assert_eq!((trips.doublings(), trips.timeout(trips.doublings())), (1, Ps(2_000)));
        (0..99).for_each(|_| trips.back_off(trips.doublings()));
        assert_eq!(trips.timeout(trips.doublings()), Ps(4_096_000));
        trips.took(Ps(80));
        assert_eq!(trips.timeout(trips.doublings()), Ps(1_000));
        (0..99).for_each(|_| trips.back_off(trips.doublings()));
        assert_eq!(trips.timeout(trips.doublings()), Ps(64_000));
    }
}
