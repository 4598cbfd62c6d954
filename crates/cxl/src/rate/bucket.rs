//! The token bucket that keeps a sender to its rate (section IV, "Network").

use ethermem_units::Ps;

use super::control::Mbps;

/// One bit in the bucket's unit: Mb/s times picoseconds, so that no rate and no time is rounded.
const BIT: u64 = 1_000_000;

/// A token bucket: within any time `t` it lets at most its depth and `rate * t` pass.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    tokens: u64,
    depth: u64,
    rate: Mbps,
    now: Ps,
}

impl TokenBucket {
    /// A full bucket of `depth_bytes`, at least the longest frame with its preamble and gap.
    #[must_use]
    pub fn new(depth_bytes: u32, rate: Mbps) -> TokenBucket {
        let depth = cost(u64::from(depth_bytes));
        TokenBucket { tokens: depth, depth, rate, now: Ps::ZERO }
    }

    /// Lets time pass at the rate that was set, then sets another one.
    ///
    /// # Panics
    /// If `now` is before an earlier call's.
    pub fn set_rate(&mut self, now: Ps, rate: Mbps) {
        let elapsed = (now - self.now).0;
        let gained = u128::from(elapsed) * u128::from(self.rate.0);
        let room = self.depth - self.tokens;
        self.tokens += u64::try_from(gained).map_or(room, |gained| gained.min(room));
        (self.now, self.rate) = (now, rate);
    }

    /// Takes tokens for so many bytes on the link; `false`, and none taken, where there are too
    /// few.
    pub fn take(&mut self, link_bytes: usize) -> bool {
        match self.tokens.checked_sub(cost(link_bytes as u64)) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }

    /// When there are tokens for so many bytes at the rate that is set; never, for more bytes than
    /// the bucket's depth.
    #[must_use]
    pub fn ready_at(&self, link_bytes: usize) -> Option<Ps> {
        let cost = cost(link_bytes as u64);
        let missing = cost.saturating_sub(self.tokens);
        let ps = missing.div_ceil(u64::from(self.rate.0.max(1)));
        (cost <= self.depth).then(|| self.now + Ps(ps))
    }
}

fn cost(bytes: u64) -> u64 {
    bytes * 8 * BIT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 113 B at 41 Gb/s: 904 bits / 41 Gb/s = 22048.78 ps, so 22049.
    #[test]
    fn the_time_of_a_frame_is_exact() {
        let mut bucket = TokenBucket::new(113, Mbps(41_000));
        assert!(bucket.take(113));
        assert!(!bucket.take(1));
        assert_eq!(bucket.ready_at(113), Some(Ps(22_049)));
        bucket.set_rate(Ps(22_048), Mbps(41_000));
        assert!(!bucket.take(113));
        bucket.set_rate(Ps(22_049), Mbps(41_000));
        assert!(bucket.take(113));
        assert_eq!(bucket.ready_at(114), None);
    }

    /// No interval has more than the depth and what the rate gives; a saturated sender gets all of
    /// it, to a frame.
    #[test]
    fn a_sender_gets_its_rate_and_no_more() {
        for rate in [1_000, 33_333, 41_000, 100_000] {
            let mut bucket = TokenBucket::new(256, Mbps(rate));
            let (mut now, mut sent) = (Ps::ZERO, Vec::new());
            while now < Ps(10_000_000) {
                bucket.set_rate(now, Mbps(rate));
                assert!(bucket.take(113));
                sent.push(now);
                now = bucket.ready_at(113).unwrap();
            }
            for (first, &from) in sent.iter().enumerate() {
                for (last, &to) in sent.iter().enumerate().skip(first) {
                    let bits = (last - first + 1) as u64 * 113 * 8;
                    assert!(bits * BIT <= cost(256) + (to - from).0 * u64::from(rate), "{rate}");
                }
            }
            let bits = sent.len() as u64 * 113 * 8;
            assert!((bits + 113 * 8) * BIT >= cost(256) + 10_000_000 * u64::from(rate), "{rate}");
        }
    }

    #[test]
    fn a_long_rest_fills_the_bucket_and_no_more() {
        let mut bucket = TokenBucket::new(200, Mbps(100_000));
        bucket.set_rate(Ps(u64::MAX / 2), Mbps(100_000));
        assert!(bucket.take(200));
        assert!(!bucket.take(1));
    }
}
