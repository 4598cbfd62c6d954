//! Counters of the event-driven form.

/// Counters of what the scheduler did, for reports.
///
/// A matching is a run of iterations. After an iteration that lost a request, another follows at
/// once, in which the loser may try again. The first iteration without a loser, or whose losers
/// have no candidate left, ends the matching: it is maximal. Ports come free and messages arrive
/// meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// Matchings with at least one grant.
    pub matchings: u64,
    /// Matching iterations in which at least one destination made a request.
    pub iterations: u64,
    /// Maximum iterations of a matching.
    pub iterations_max: u64,
    /// Number of grants.
    pub grants: u64,
    /// Maximum grants of an iteration. A port sends, and receives, at most one grant of an
    /// iteration, so this is at most the number of ports. A matching goes on while ports come free,
    /// and under load never ends.
    pub size_max: u64,
    /// Requests that lost at their source.
    pub requests_lost: u64,
    /// Maximum messages that waited at once, in all queues.
    pub waiting_max: u64,
    /// Iterations of the matching in progress; zero while there is none.
    matching_iterations: u64,
}

impl SchedulerStats {
    /// Records an iteration that granted `size` of its requests and lost the `lost` others.
    #[inline]
    pub(super) fn iteration(&mut self, size: u64, lost: u64) {
        self.iterations += 1;
        self.grants += size;
        self.requests_lost += lost;
        self.matchings += u64::from(self.matching_iterations == 0);
        self.matching_iterations += 1;
        self.iterations_max = self.iterations_max.max(self.matching_iterations);
        self.size_max = self.size_max.max(size);
        if lost == 0 {
            self.maximal();
        }
    }

    /// Records that no request is left: the matching is maximal.
    #[inline]
    pub(super) fn maximal(&mut self) {
        self.matching_iterations = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matching_ends_with_the_iteration_that_no_request_loses() {
        let mut stats = SchedulerStats::default();
        for (size, lost) in [(4, 0), (3, 2), (1, 1), (1, 0), (2, 1)] {
            stats.iteration(size, lost);
        }
        // The matchings have 4 grants; 3 + 1 + 1; and 2, whose loser found its source taken.
        stats.maximal();
        stats.iteration(1, 0);
        assert_eq!((stats.matchings, stats.iterations, stats.grants), (4, 6, 12));
        assert_eq!((stats.iterations_max, stats.size_max, stats.requests_lost), (3, 4, 4));
    }
}
