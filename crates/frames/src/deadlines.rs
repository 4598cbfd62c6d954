//! The deadlines of both ends of a flow; the network keeps only the earlier one.

use ethermem_units::Ps;

use super::transport::End;

/// The time at which each end of a flow must be checked; `Ps::MAX` for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    source: Ps,
    destination: Ps,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines { source: Ps::MAX, destination: Ps::MAX }
    }
}

impl Deadlines {
    /// Sets the deadline of one end. Returns the earlier of both deadlines, for the network.
    #[inline]
    pub fn set(&mut self, end: End, at: Ps) -> Ps {
        match end {
            End::Source => self.source = at,
            End::Destination => self.destination = at,
        }
        self.earlier()
    }

    /// The earlier of both deadlines.
    #[inline]
    #[must_use]
    pub fn earlier(&self) -> Ps {
        self.source.min(self.destination)
    }

    /// True for the source's and for the destination's deadline if it has come. Such a deadline is
    /// cleared.
    pub fn due(&mut self, now: Ps) -> (bool, bool) {
        let due = |at: &mut Ps| {
            let due = *at <= now;
            if due {
                *at = Ps::MAX;
            }
            due
        };
        (due(&mut self.source), due(&mut self.destination))
    }
}

/// Maximum time that [`backed_off`] returns: no run lasts as long.
const WAIT_MAX: Ps = Ps(1 << 60);

/// The next wait of an end that received nothing: `times` as long as before.
#[must_use]
pub fn backed_off(wait: Ps, times: f64) -> Ps {
    Ps((wait.0 as f64 * times).min(WAIT_MAX.0 as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_grows_and_stays_a_time() {
        assert_eq!(backed_off(Ps(9_000), 2.0), Ps(18_000));
        assert_eq!(backed_off(Ps(9_000), 1.0), Ps(9_000));
        assert_eq!(backed_off(WAIT_MAX, 16.0), WAIT_MAX);
    }

    #[test]
    fn the_earlier_counts_and_each_comes_once() {
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.set(End::Source, Ps(9)), Ps(9));
        assert_eq!(deadlines.set(End::Destination, Ps(5)), Ps(5));
        assert_eq!(deadlines.due(Ps(7)), (false, true));
        assert_eq!(deadlines.set(End::Destination, Ps::MAX), Ps(9));
        assert_eq!(deadlines.due(Ps(9)), (true, false));
        assert_eq!(deadlines.due(Ps(99)), (false, false));
    }
}
