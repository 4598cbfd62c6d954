//! The time of a round trip, and the time after which a request without an answer is retried.

use ethermem_units::Ns;

/// The variation counts as at least this part of a round trip. A full queue keeps round trips equal
/// for a while, so that the measured variation goes to nothing; the next longer round trip would
/// then be taken for a loss. TCP has a least timeout of a second for this.
const VARIATION_SHARE: u64 = 8;

/// Moving averages of round trips and of their variation, as in TCP (RFC 6298).
#[derive(Clone, Copy, Debug)]
pub struct RoundTrips {
    smoothed: Option<Ns>,
    variation: Ns,
    least: Ns,
    most: Ns,
}

impl RoundTrips {
    /// An estimator; `least` and `most` bound the time until a retry.
    #[must_use]
    pub fn new(least: Ns, most: Ns) -> RoundTrips {
        RoundTrips { smoothed: None, variation: Ns::ZERO, least, most }
    }

    /// Records the time of a round trip.
    pub fn took(&mut self, time: Ns) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(time), Ns(time.0 / 2));
            return;
        };
        let apart = smoothed.0.abs_diff(time.0);
        self.variation = Ns(self.variation.0 - self.variation.0 / 4 + apart / 4);
        self.smoothed = Some(Ns(smoothed.0 - smoothed.0 / 8 + time.0 / 8));
    }

    /// The smoothed time of a round trip.
    #[must_use]
    pub fn smoothed(&self) -> Ns {
        self.smoothed.unwrap_or(self.least)
    }

    /// The time from the last try to the next one, after `tries` tries. It doubles with each.
    #[must_use]
    pub fn retry_after(&self, tries: u32) -> Ns {
        let first = match self.smoothed {
            Some(smoothed) => {
                let variation = self.variation.max(Ns(smoothed.0 / VARIATION_SHARE));
                smoothed.saturating_add(Ns(variation.0.saturating_mul(4)))
            }
            None => self.least,
        };
        let doubled = first.max(self.least).0.saturating_mul(1 << tries.min(16));
        Ns(doubled).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_follow_the_average_and_how_it_varies_within_bounds() {
        let mut trips = RoundTrips::new(Ns(1_000), Ns(100_000));
        assert_eq!(trips.retry_after(0), Ns(1_000));
        trips.took(Ns(8_000));
        assert_eq!((trips.smoothed(), trips.retry_after(0)), (Ns(8_000), Ns(24_000)));
        (0..100).for_each(|_| trips.took(Ns(8_000)));
        // However equal they are, one that is half longer is no loss.
        assert_eq!((trips.retry_after(0), trips.retry_after(1)), (Ns(12_000), Ns(24_000)));
        assert_eq!((trips.retry_after(5), trips.retry_after(99)), (Ns(100_000), Ns(100_000)));
        (0..100).for_each(|_| trips.took(Ns(10)));
        assert_eq!(trips.retry_after(0), Ns(1_000));
    }
}
