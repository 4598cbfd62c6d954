use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A time or a duration in picoseconds. 64 bits hold 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ps(pub u64);

impl Ps {
    /// The start of every run.
    pub const ZERO: Ps = Ps(0);
    /// A time later than every event.
    pub const MAX: Ps = Ps(u64::MAX);

    /// A time of whole nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Ps {
        Ps(ns * 1_000)
    }

    /// The nearest picosecond to `ns`; `None` when `ns` is negative, not finite or too large.
    #[must_use]
    pub fn from_ns_f64(ns: f64) -> Option<Ps> {
        let ps = (ns * 1_000.0).round();
        // 2^63 ps is 106 days: past it, sums of two times could wrap.
        (ps.is_finite() && (0.0..9.2e18).contains(&ps)).then_some(Ps(ps as u64))
    }

    /// The time in nanoseconds, for reports.
    #[must_use]
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// The time in seconds, for reports.
    #[must_use]
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self - earlier`, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Ps) -> Ps {
        Ps(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ps {
    type Output = Ps;
    #[inline]
    fn add(self, other: Ps) -> Ps {
        Ps(self.0.checked_add(other.0).expect("time overflowed 2^64 ps"))
    }
}

impl AddAssign for Ps {
    #[inline]
    fn add_assign(&mut self, other: Ps) {
        *self = *self + other;
    }
}

impl Sub for Ps {
    type Output = Ps;
    #[inline]
    fn sub(self, other: Ps) -> Ps {
        Ps(self.0.checked_sub(other.0).expect("a duration ran backwards"))
    }
}

impl Mul<u64> for Ps {
    type Output = Ps;
    #[inline]
    fn mul(self, count: u64) -> Ps {
        Ps(self.0.checked_mul(count).expect("time overflowed 2^64 ps"))
    }
}

impl Sum for Ps {
    fn sum<I: Iterator<Item = Ps>>(times: I) -> Ps {
        times.fold(Ps::ZERO, Add::add)
    }
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ns", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A time or a duration in nanoseconds, for code that runs on machines and not in a simulation. 64
/// bits hold 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ns(pub u64);

impl Ns {
    /// A duration of zero.
    pub const ZERO: Ns = Ns(0);

    /// `self - earlier`, or zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Ns) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }

    /// `self + later`, or the greatest time where the sum does not fit. It is for numbers from
    /// outside.
    #[must_use]
    pub const fn saturating_add(self, later: Ns) -> Ns {
        Ns(self.0.saturating_add(later.0))
    }
}

impl Add for Ns {
    type Output = Ns;
    #[inline]
    fn add(self, other: Ns) -> Ns {
        Ns(self.0.checked_add(other.0).expect("time overflowed 2^64 ns"))
    }
}

/// A count of clock cycles. The clock is named where the count is turned into time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

impl Add for Cycles {
    type Output = Cycles;
    fn add(self, other: Cycles) -> Cycles {
        Cycles(self.0.checked_add(other.0).expect("cycle count overflowed"))
    }
}

impl Mul<u64> for Cycles {
    type Output = Cycles;
    fn mul(self, count: u64) -> Cycles {
        Cycles(self.0.checked_mul(count).expect("cycle count overflowed"))
    }
}

impl Sum for Cycles {
    fn sum<I: Iterator<Item = Cycles>>(cycles: I) -> Cycles {
        cycles.fold(Cycles(0), Add::add)
    }
}

/// A clock, described by its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time of one cycle.
    pub period: Ps,
}

impl Clock {
    /// The time that `cycles` of this clock take.
    #[inline]
    #[must_use]
    pub fn duration(self, cycles: Cycles) -> Ps {
        self.period * cycles.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_round_to_the_nearest_picosecond() {
        assert_eq!(Ps::from_ns_f64(2.56), Some(Ps(2_560)));
        assert_eq!(Ps::from_ns_f64(0.0004), Some(Ps(0)));
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e17] {
            assert_eq!(Ps::from_ns_f64(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_cycle_count_becomes_time_by_its_clock() {
        let clock = Clock { period: Ps(2_560) };
        assert_eq!(clock.duration(Cycles(42)), Ps(107_520));
    }

    #[test]
    #[should_panic(expected = "a duration ran backwards")]
    fn time_does_not_run_backwards() {
        let _ = Ps(1) - Ps(2);
    }

    #[test]
    #[should_panic(expected = "time overflowed")]
    fn time_does_not_wrap() {
        let _ = Ps::MAX + Ps(1);
    }

    #[test]
    fn times_print_in_nanoseconds() {
        assert_eq!(Ps(299_520).to_string(), "299.520 ns");
    }
}
