//! The limits of requests in flight to the node, and of answers in flight from it (section 4.4).

use ethermem_units::{Bytes, Ns};

/// One request in the unit of the congestion window, which may be below one request.
const ONE: u64 = 1 << 20;
/// The smallest window: one request in 64 round trips.
const LEAST: u64 = ONE / 64;
/// A cut leaves at least one part in this number of the window: at most half is lost. There is at
/// most one cut per round trip.
const LEAST_KEPT: u64 = 2;
/// If all round trips with less than one request in flight were too long for this time, the path
/// has become longer: no queue of this client explains it.
const LONGER_AFTER: Ns = Ns(2_000_000_000);

/// The congestion window, controlled by delay. It grows by one request per round trip while round
/// trips are short. It shrinks in proportion to the excess of long ones.
#[derive(Clone, Copy, Debug)]
pub struct CongestionWindow {
    requests: u64,
    requests_max: u64,
    /// Maximum excess of a round trip over the shortest one.
    target: Ns,
    shortest: Ns,
    /// The time since when all round trips with less than one request in flight were too long, and
    /// the shortest of these.
    longer: Option<(Ns, Ns)>,
    cut: Option<Ns>,
    under_way: u64,
    /// With a window below one request: the earliest time of the next request.
    next: Ns,
}

impl CongestionWindow {
    /// A window with `requests` at first and at most `requests_max`. Round trips may exceed the
    /// shortest one by `target`.
    #[must_use]
    pub fn new(requests: u32, requests_max: u32, target: Ns) -> CongestionWindow {
        CongestionWindow {
            requests: u64::from(requests.min(requests_max)) * ONE,
            requests_max: u64::from(requests_max) * ONE,
            target,
            shortest: Ns(u64::MAX),
            longer: None,
            cut: None,
            under_way: 0,
            next: Ns::ZERO,
        }
    }

    /// True if a request may be sent.
    #[must_use]
    pub fn has_room(&self, now: Ns) -> bool {
        if self.requests < ONE {
            self.under_way == 0 && now >= self.next
        } else {
            (self.under_way + 1) * ONE <= self.requests
        }
    }

    /// The time of the next request, if the window delays it although none is in flight.
    #[must_use]
    pub fn next(&self) -> Option<Ns> {
        (self.requests < ONE && self.under_way == 0).then_some(self.next)
    }

    /// Records that a request is sent for the first time.
    pub fn sent(&mut self, now: Ns, round_trip: Ns) {
        self.under_way += 1;
        if self.requests < ONE {
            let apart = u128::from(round_trip.0) * u128::from(ONE) / u128::from(self.requests);
            self.next = now.saturating_add(Ns(u64::try_from(apart).unwrap_or(u64::MAX)));
        }
    }

    /// Records that a request is not in flight any more.
    pub fn ended(&mut self) {
        self.under_way -= 1;
    }

    /// Records the time of a round trip.
    pub fn took(&mut self, now: Ns, time: Ns) {
        self.took_between(now, time, time);
    }

    /// Records a round trip with bounds of its time: an answer may have waited to be polled. Only
    /// time that is known to be the path's counts as too long.
    pub fn took_between(&mut self, now: Ns, least: Ns, most: Ns) {
        self.shortest = self.shortest.min(most);
        let target = self.shortest.saturating_add(self.target);
        let time = least;
        if self.requests >= ONE || time <= target {
            self.longer = None;
        } else if self.is_longer(now, most) {
            return;
        }
        if time <= target {
            if self.requests == self.requests_max {
                return;
            }
            let more = ONE * ONE / self.requests.max(ONE);
            self.requests = (self.requests + more).min(self.requests_max);
        } else if self.may_cut(now, time) {
            let over = u128::from(time.0 - target.0);
            let less = u128::from(self.requests) * over / u128::from(time.0) * 4 / 5;
            self.keep(now, self.requests - less as u64);
        }
    }

    /// Records a round trip that was too long with less than one request in flight. Returns true if
    /// the path has become longer. From then on the shortest such round trip is the reference.
    fn is_longer(&mut self, now: Ns, time: Ns) -> bool {
        let (since, shortest) = self.longer.unwrap_or((now, time));
        let shortest = shortest.min(time);
        self.longer = Some((since, shortest));
        if now.saturating_sub(since) < LONGER_AFTER {
            return false;
        }
        (self.shortest, self.longer) = (shortest, None);
        true
    }

    /// Records that a request was probably lost.
    pub fn lost(&mut self, now: Ns, round_trip: Ns) {
        if self.may_cut(now, round_trip) {
            self.keep(now, 0);
        }
    }

    fn may_cut(&self, now: Ns, round_trip: Ns) -> bool {
        self.cut.is_none_or(|cut| now.saturating_sub(cut) >= round_trip)
    }

    fn keep(&mut self, now: Ns, requests: u64) {
        self.requests = requests.max(self.requests / LEAST_KEPT).max(LEAST);
        self.cut = Some(now);
    }

    /// The window in thousandths of a request.
    #[must_use]
    pub fn milli_requests(&self) -> u64 {
        self.requests * 1000 / ONE
    }
}

/// The incast window. The lengths of answers are known from the requests, so their bytes are
/// counted before they arrive.
#[derive(Clone, Copy, Debug)]
pub struct IncastWindow {
    most: Bytes,
    under_way: Bytes,
}

impl IncastWindow {
    /// A window for this many bytes of answers.
    #[must_use]
    pub fn new(most: Bytes) -> IncastWindow {
        IncastWindow { most, under_way: Bytes(0) }
    }

    /// True if a request with an answer of this length may be sent. One request may always be in
    /// flight.
    #[must_use]
    pub fn has_room(&self, answer: Bytes) -> bool {
        self.under_way + answer <= self.most || self.under_way == Bytes(0)
    }

    /// Records that a request is sent for the first time.
    pub fn sent(&mut self, answer: Bytes) {
        self.under_way += answer;
    }

    /// Records that a request is not in flight any more.
    pub fn ended(&mut self, answer: Bytes) {
        self.under_way -= answer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> CongestionWindow {
        CongestionWindow::new(10, 64, Ns(10_000))
    }

    #[test]
    fn short_round_trips_add_a_request_a_round_trip_up_to_the_most() {
        let mut window = window();
        (0..10).for_each(|_| window.took(Ns(0), Ns(5_000)));
        assert!((10_900..=11_000).contains(&window.milli_requests()), "{window:?}");
        (0..10_000).for_each(|_| window.took(Ns(0), Ns(5_000)));
        assert_eq!(window.milli_requests(), 64_000);
    }

    #[test]
    fn long_ones_cut_it_once_a_round_trip_and_below_one_request_it_paces() {
        let mut window = CongestionWindow::new(10, 64, Ns(8_000));
        window.took(Ns(0), Ns(2_000));
        window.requests = 10 * ONE;
        window.took(Ns(0), Ns(20_000));
        assert_eq!(window.milli_requests(), 6_000, "two fifths of ten less; at most half");
        window.took(Ns(10_000), Ns(20_000));
        assert_eq!(window.milli_requests(), 6_000);
        (1..=4).for_each(|turn| window.lost(Ns(turn * 100_000), Ns(20_000)));
        let milli = window.milli_requests();
        assert!((374..=375).contains(&milli), "{milli}");
        let now = Ns(500_000);
        assert!(window.has_room(now));
        window.sent(now, Ns(20_000));
        window.ended();
        let next = window.next().expect("it is below one");
        assert!((53_000..54_000).contains(&(next.0 - now.0)), "20 us by 0.375: {next:?}");
        assert!(!window.has_room(Ns(next.0 - 1)) && window.has_room(next));
        (5..100).for_each(|turn| window.lost(Ns(turn * 100_000), Ns(20_000)));
        assert!(window.requests >= LEAST);
    }

    /// Another route, or a node that was moved. The network is otherwise idle, and every round trip
    /// takes the path's own time.
    #[test]
    fn a_path_that_became_longer_is_used_in_full_again() {
        let mut window = CongestionWindow::new(10, 256, Ns(200_000));
        let mut now = 0;
        let mut took = |window: &mut CongestionWindow, count, time| {
            (0..count).for_each(|_| {
                now += time;
                window.took(Ns(now), Ns(time));
            });
        };
        took(&mut window, 10_000, 50_000);
        took(&mut window, 1_000, 400_000);
        assert!(window.milli_requests() < 1_000, "it may be a queue: {window:?}");
        took(&mut window, 40_000, 400_000);
        assert_eq!(window.milli_requests(), 256_000);
        // A short round trip counts at once.
        took(&mut window, 1, 50_000);
        took(&mut window, 1_000, 400_000);
        assert!(window.milli_requests() < 1_000, "{window:?}");
    }

    /// The time that an answer waited for its client says nothing about the path. Only time that is
    /// known to be the path's counts.
    #[test]
    fn the_time_that_nobody_looked_is_not_the_ways() {
        let mut window = window();
        window.took(Ns(0), Ns(5_000));
        (1..3_000).for_each(|n| window.took_between(Ns(n << 20), Ns(0), Ns(1 << 20)));
        assert_eq!((window.milli_requests(), window.shortest), (64_000, Ns(5_000)));
        window.took_between(Ns(1 << 40), Ns(20_000), Ns(1 << 20));
        assert_eq!(window.milli_requests(), 51_200, "a quarter of it is too long");
        window.took_between(Ns(2 << 40), Ns(0), Ns(4_000));
        assert_eq!(window.shortest, Ns(4_000));
    }

    #[test]
    fn answers_under_way_are_bounded_but_for_one() {
        let mut window = IncastWindow::new(Bytes(10_000));
        window.sent(Bytes(6_000));
        assert!(!window.has_room(Bytes(4_001)) && window.has_room(Bytes(4_000)));
        window.ended(Bytes(6_000));
        assert!(window.has_room(Bytes(20_000)), "what is longer goes alone");
    }
}
