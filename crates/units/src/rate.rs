use std::fmt;

use crate::{BLOCK_PAYLOAD_BITS, Blocks, Bytes, Ps};

const PS_PER_S: u64 = 1_000_000_000_000;

/// A link's data rate in bits per second, as the 64 payload bits of a block see it. A block of a
/// 100 Gb/s link takes 640 ps; the line itself runs at 66/64 of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitsPerSecond(u64);

/// The refused rate, in bits per second: zero, or its block time is not a whole number of
/// picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateError(pub u64);

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s: a 64-bit block must take a whole number of picoseconds", self.0)
    }
}

impl std::error::Error for RateError {}

impl BitsPerSecond {
    /// A rate at which a block takes a whole number of picoseconds, so that times stay exact.
    ///
    /// # Errors
    /// [`RateError`] for zero and for rates such as 30 Gb/s (2133.3 ps a block).
    pub const fn new(bits_per_second: u64) -> Result<BitsPerSecond, RateError> {
        if bits_per_second == 0 || !(BLOCK_PAYLOAD_BITS * PS_PER_S).is_multiple_of(bits_per_second)
        {
            return Err(RateError(bits_per_second));
        }
        Ok(BitsPerSecond(bits_per_second))
    }

    /// A rate in whole Gb/s.
    ///
    /// # Errors
    /// The errors of [`BitsPerSecond::new`].
    pub const fn from_gbps(gbps: u64) -> Result<BitsPerSecond, RateError> {
        match gbps.checked_mul(1_000_000_000) {
            Some(rate) => BitsPerSecond::new(rate),
            None => Err(RateError(u64::MAX)),
        }
    }

    /// The rate in Gb/s, for reports.
    #[must_use]
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time that one block takes on the line: 640 ps at 100 Gb/s.
    #[inline]
    #[must_use]
    pub const fn block_time(self) -> Ps {
        Ps(BLOCK_PAYLOAD_BITS * PS_PER_S / self.0)
    }

    /// The time that `blocks` take on the line.
    #[inline]
    #[must_use]
    pub fn blocks_time(self, blocks: Blocks) -> Ps {
        self.block_time() * blocks.0
    }

    /// The time that `bytes` take on the line without framing, rounded up to a picosecond.
    #[must_use]
    pub fn bytes_time(self, bytes: Bytes) -> Ps {
        let bits = u128::from(bytes.0) * 8;
        let ps = (bits * u128::from(PS_PER_S)).div_ceil(u128::from(self.0));
        Ps(u64::try_from(ps).expect("time overflowed 2^64 ps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_times_of_the_ethernet_rates_are_exact() {
        for (gbps, ps) in
            [(10, 6_400), (25, 2_560), (40, 1_600), (100, 640), (200, 320), (400, 160)]
        {
            let rate = BitsPerSecond::from_gbps(gbps).expect("an Ethernet rate");
            assert_eq!(rate.block_time(), Ps(ps), "{gbps} Gb/s");
            assert_eq!(rate.bytes_time(Bytes(8)), Ps(ps), "{gbps} Gb/s");
        }
    }

    #[test]
    fn a_rate_with_a_fractional_block_time_is_refused() {
        for gbps in [0, 30, 70] {
            assert!(BitsPerSecond::from_gbps(gbps).is_err(), "{gbps} Gb/s");
        }
    }
}
