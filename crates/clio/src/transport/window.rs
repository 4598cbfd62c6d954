//! The limits of requests in flight to the node, and of answers in flight from it (section 4.4).

use ethermem_units::{Bytes, Ns};

use super::queueing::{Queueing, Verdict};

/// One request in the unit of the congestion window, which may be below one request.
const ONE: u64 = 1 << 20;
/// The smallest window: one request in 64 round trips.
const LEAST: u64 = ONE / 64;
/// A cut leaves at least one part in this number of the window: at most half is lost. There is at
/// most one cut per round trip.
const LEAST_KEPT: u64 = 2;
/// From this window in requests on, a queue may be as long as the target. Below it the allowed
/// queue grows in inverse proportion to the window, up to [`ALLOWED_TIMES`] the target.
const ALLOWED_ONCE: u64 = 32;
const ALLOWED_TIMES: u64 = 8;
/// A loss that does not mean congestion costs one part in this number of the window.
const LOSS_COSTS: u64 = 16;
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
    /// The window before the last cut for a loss; 0 once that was found wrong.
    before_loss: u64,
    /// Set where a path's delays may vary without a queue.
    queueing: Option<Queueing>,
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
            before_loss: 0,
            queueing: None,
        }
    }

    /// As [`CongestionWindow::new`], for a path of any kind: its delays may vary and it may lose
    /// datagrams although no queue stands. Only a delay that all round trips of a round have counts
    /// as a queue, and a loss without a queue costs little.
    #[must_use]
    pub fn of_any_path(requests: u32, requests_max: u32, target: Ns) -> CongestionWindow {
        let queueing = Some(Queueing::new());
        CongestionWindow { queueing, ..CongestionWindow::new(requests, requests_max, target) }
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

    /// Number of requests in flight.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.under_way
    }

    /// Begins anew with a window of `requests`, on a path that may have changed. Requests in flight
    /// still count.
    pub fn restart(&mut self, requests: u32) {
        let most = (self.requests_max / ONE) as u32;
        let queueing = self.queueing.is_some().then(Queueing::new);
        let under_way = self.under_way;
        let fresh = CongestionWindow::new(requests, most, self.target);
        *self = CongestionWindow { queueing, under_way, ..fresh };
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
        let floor = self.least_by_delay();
        let is_at_least = self.requests <= floor || self.requests < ONE;
        if !is_at_least || time <= target {
            self.longer = None;
        } else if self.is_longer(now, most) {
            return;
        }
        let (is_short, time, excess) = match &mut self.queueing {
            None => (time <= target, time, time.saturating_sub(target)),
            Some(queueing) => {
                let path = (self.shortest, allowed(self.target, self.requests));
                match queueing.took(now, time, path, self.requests < ONE) {
                    Verdict::Queue { standing, excess } => (false, standing, excess),
                    Verdict::Free => (true, time, Ns::ZERO),
                    // Until the round ends, the last one counts.
                    Verdict::None if queueing.has_queue() && time > target => return,
                    Verdict::None => (true, time, Ns::ZERO),
                }
            }
        };
        if is_short {
            if self.requests == self.requests_max {
                return;
            }
            let more = ONE * ONE / self.requests.max(ONE);
            self.requests = (self.requests + more).min(self.requests_max);
        } else if self.may_cut(now, time) {
            let less =
                u128::from(self.requests) * u128::from(excess.0) / u128::from(time.0) * 4 / 5;
            self.keep(now, (self.requests - less as u64).max(floor.min(self.requests)));
        }
    }

    /// The smallest window to which delays alone lead. Where one request is in flight, a delay is
    /// not this client's queue. It may be that of very many other clients, which share a node as
    /// the published rule has it, or what idle processors take to wake up. Then losses decide.
    fn least_by_delay(&self) -> u64 {
        if self.queueing.is_some() { ONE } else { LEAST }
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
        let is_congestion = self.queueing.as_mut().is_none_or(Queueing::lost);
        if self.may_cut(now, round_trip) {
            self.before_loss = self.requests;
            let kept = if is_congestion { 0 } else { self.requests - self.requests / LOSS_COSTS };
            self.keep(now, kept);
        }
    }

    /// Records that a request was not lost, but its answer came after another try. What the
    /// supposed loss took from the window comes back (as in the Eifel response, RFC 4015).
    pub fn was_late(&mut self) {
        if let Some(queueing) = &mut self.queueing {
            queueing.was_late();
            self.requests = self.requests.max(self.before_loss);
            self.before_loss = 0;
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

/// The queue that a client with this window may see. It is longer for one with few requests in
/// flight. They are a small part of the queue, so a client that came early, and knows a shorter
/// round trip than the others, is not driven out. (Swift, SIGCOMM 2020, 3.5, scales its target for
/// the same reason.) And where processors halt, a path that has little to do is slower.
fn allowed(target: Ns, requests: u64) -> Ns {
    let whole = (requests / ONE).max(ALLOWED_ONCE / ALLOWED_TIMES);
    Ns(target.0.saturating_mul(ALLOWED_ONCE.max(whole)) / whole)
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
    use std::collections::BTreeMap;

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

    /// Clients with a window each in front of one server, which serves requests one by one. The
    /// way there and back takes `base` and up to `jitter` more, and loses one request in `lost`.
    struct Bottleneck {
        windows: Vec<CongestionWindow>,
        base: u64,
        jitter: u64,
        /// What the way takes longer while nothing else is under way.
        idle: u64,
        service: u64,
        lost_one_in: Option<u64>,
        draws: u64,
        /// Requests by the time of their end: client, when it was sent, and whether it is lost.
        under_way: BTreeMap<(u64, u64), (usize, u64, bool)>,
        free: u64,
        now: u64,
        done: Vec<u64>,
        /// Sum and number of delays in the server's queue.
        queued: (u64, u64),
    }

    impl Bottleneck {
        fn new(clients: usize, most: u32, base: u64, service: u64) -> Bottleneck {
            let window = CongestionWindow::of_any_path(10.min(most), most, Ns(200_000));
            Bottleneck {
                windows: vec![window; clients],
                base,
                jitter: 0,
                idle: 0,
                service,
                lost_one_in: None,
                draws: 7,
                under_way: BTreeMap::new(),
                free: 0,
                now: 0,
                done: vec![0; clients],
                queued: (0, 0),
            }
        }

        fn draw(&mut self, below: u64) -> u64 {
            self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.draws >> 33) % below.max(1)
        }

        fn send(&mut self, client: usize, now: u64) {
            while self.windows[client].has_room(Ns(now)) {
                self.windows[client].sent(Ns(now), Ns(self.base));
                let idle = if self.under_way.is_empty() { self.idle } else { 0 };
                let there = now + self.base / 2 + idle + self.draw(self.jitter / 2 + 1);
                let is_lost = self.lost_one_in.is_some_and(|one| self.draw(one) == 0);
                let end = if is_lost {
                    now + 3 * (self.base + self.jitter)
                } else {
                    let from = self.free.max(there);
                    self.free = from + self.service;
                    self.queued = (self.queued.0 + from - there, self.queued.1 + 1);
                    self.free + self.base / 2 + self.draw(self.jitter / 2 + 1)
                };
                let number = self.draws;
                self.under_way.insert((end, number), (client, now, is_lost));
            }
        }

        /// Runs for a time.
        fn run(&mut self, span: u64) {
            let (mut now, mut kick) = (self.now, self.now);
            let until = now + span;
            while now < until {
                for client in 0..self.windows.len() {
                    self.send(client, now);
                }
                // A client that is paced has nothing in flight, and is looked at by time.
                kick = (kick + self.base / 4).max(now + self.base / 16);
                let next = self.under_way.first_key_value().map_or(kick, |(&(end, _), _)| end);
                now = next.min(kick);
                while let Some(entry) = self.under_way.first_entry().filter(|it| it.key().0 <= now)
                {
                    let ((end, _), (client, sent, is_lost)) = entry.remove_entry();
                    let window = &mut self.windows[client];
                    window.ended();
                    if is_lost {
                        window.lost(Ns(end), Ns(self.base));
                    } else {
                        window.took(Ns(end), Ns(end - sent));
                        self.done[client] += 1;
                    }
                    self.send(client, end);
                }
            }
            self.now = now;
        }

        fn done(&self) -> u64 {
            self.done.iter().sum()
        }
    }

    const MS: u64 = 1_000_000;

    /// Delays that vary by up to ten times the shortest, and losses on top, leave at least half of
    /// what a fixed window gives.
    #[test]
    fn delays_that_vary_and_losses_without_a_queue_do_not_close_the_window() {
        for jitter in [0, MS / 5, MS / 2, 2 * MS, 4 * MS] {
            for lost_one_in in [None, Some(1000), Some(100), Some(20), Some(5)] {
                let mut path = Bottleneck::new(1, 16, 400_000, 1_000);
                (path.jitter, path.lost_one_in) = (jitter, lost_one_in);
                path.run(4_000 * MS);
                let mut fixed = Bottleneck::new(1, 16, 400_000, 1_000);
                (fixed.jitter, fixed.lost_one_in) = (jitter, lost_one_in);
                fixed.windows[0] = CongestionWindow::new(16, 16, Ns(1 << 60));
                // A loss does not cut it.
                fixed.windows[0].cut = Some(Ns(1 << 60));
                fixed.run(4_000 * MS);
                let share = path.done() as f64 / fixed.done() as f64;
                assert!(share >= 0.5, "{jitter} ns, one in {lost_one_in:?}: {share}");
            }
        }
    }

    /// Where processors halt, a path that has little to do is slower than a busy one. One that was
    /// busy once and then idle is used in full again.
    #[test]
    fn a_path_that_is_slow_while_it_is_idle_opens_the_window() {
        let mut path = Bottleneck::new(1, 16, 400_000, 1_000);
        path.run(1_000 * MS);
        path.idle = 500_000;
        for _ in 0..8 {
            path.windows[0].lost(Ns(path.now), Ns(1));
            path.windows[0].requests = ONE;
            path.run(100 * MS);
            assert_eq!(path.windows[0].milli_requests(), 16_000);
        }
    }

    /// Mean delay in the server's queue in ns, Jain's index of the clients, and the share of the
    /// server that they use, after two seconds and for four.
    fn shared(windows: Vec<CongestionWindow>) -> (u64, f64, f64) {
        let (service, clients) = (10_000, windows.len());
        let mut path = Bottleneck::new(clients, 1, 50_000, service);
        path.windows = windows;
        path.run(2_000 * MS);
        let (queued, before) = (path.queued, path.done.clone());
        path.run(4_000 * MS);
        let mean = (path.queued.0 - queued.0) / (path.queued.1 - queued.1);
        let done = path.done.iter().zip(&before).map(|(now, then)| (now - then) as f64);
        let (sum, squares) = done.fold((0.0, 0.0), |(sum, all), x| (sum + x, all + x * x));
        let jain = sum * sum / (squares * clients as f64);
        (mean, jain, sum * service as f64 / (4_000 * MS) as f64)
    }

    /// The queue that clients make themselves is about that of the published rule, whatever their
    /// number: a client does not take the others' queue for its path.
    #[test]
    fn clients_of_one_server_do_not_take_each_others_queue_for_the_path() {
        for clients in [1, 2, 8, 64] {
            let target = Ns(200_000);
            let (plain, _, _) = shared(vec![CongestionWindow::new(10, 256, target); clients]);
            let (queue, jain, used) =
                shared(vec![CongestionWindow::of_any_path(10, 256, target); clients]);
            assert!(queue < plain * 2, "{clients} clients: {queue} ns queued, {plain} by delay");
            assert!(used > 0.95, "{clients} clients use {used}");
            assert!(jain > 0.8, "{clients} clients: {jain}");
        }
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
