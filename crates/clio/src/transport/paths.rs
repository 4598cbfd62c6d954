//! The paths of one client to its node, and the choice of a path for the next datagram.
//!
//! Each path has its own window, round trips, length of datagrams and state. A path is *up* or
//! *down*. A path that is up is *suspect* while it owes an answer for longer than its time until a
//! retry; nothing new is sent on it while another path is up and not suspect. It goes down once
//! another path has answered what was sent much later, or when the carrier cannot send on it. A
//! path that is down carries only probes, until it answers one. A client with a single path has
//! none of this: its path is always up.

use ethermem_units::Ns;

use super::path::PathSearch;
use super::round_trips::RoundTrips;
use super::window::CongestionWindow;

/// Maximum number of paths of a client.
pub const PATHS_MAX: usize = 8;
/// A path is down once another path answered what was sent this many retry timeouts later than the
/// path's oldest unanswered request, within the bounds below.
const SILENT_TIMEOUTS: u64 = 4;
const SILENT_MIN: Ns = Ns(5_000_000);
const SILENT_MAX: Ns = Ns(50_000_000);
/// Time between two probes of a path that is down: it begins with the minimum and doubles.
const PROBE_MIN: Ns = Ns(20_000_000);
const PROBE_MAX: Ns = Ns(250_000_000);
/// A path that was up for less than this goes on with the longer time between probes.
const STEADY_AFTER: Ns = Ns(1_000_000_000);
/// Thousandths of a request.
const MILLI: u128 = 1000;

/// The number of a path of a client, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u8);

impl PathId {
    /// The path of a client with a single one.
    pub const ONLY: PathId = PathId(0);

    /// The path with this index.
    ///
    /// # Panics
    /// If the index is not below [`PATHS_MAX`].
    #[must_use]
    pub fn new(at: usize) -> PathId {
        assert!(at < PATHS_MAX, "path {at}: must be below {PATHS_MAX}");
        PathId(at as u8)
    }

    /// The path's index.
    #[must_use]
    pub fn at(self) -> usize {
        self.0.into()
    }
}

/// Facts of a path, for inspection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathReport {
    /// True if the path carries operations.
    pub is_up: bool,
    /// Requests in flight on it.
    pub under_way: u64,
    /// Its congestion window, in thousandths of a request.
    pub window_milli_requests: u64,
    /// Smoothed time of its round trips.
    pub round_trip: Ns,
    /// Tries of requests that were sent on it.
    pub tries: u64,
    /// How often it went down.
    pub falls: u64,
    /// How often it came up, for the first time or again.
    pub rises: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Up { since: Ns, is_suspect: bool },
    Down,
}

/// A path, and what is known of it.
pub(super) struct Path {
    pub(super) search: PathSearch,
    pub(super) trips: RoundTrips,
    pub(super) congestion: CongestionWindow,
    state: State,
    /// The time of the oldest request that is owed an answer. Any later answer counts.
    asked: Option<Ns>,
    /// The latest time at which something was sent that was answered.
    confirmed: Ns,
    /// The time of the last request.
    used: Ns,
    /// The time at which a probe finds out if a path that is down or suspect answers.
    probe_at: Option<Ns>,
    probe_wait: Ns,
    tries: u64,
    falls: u64,
    rises: u64,
}

impl Path {
    pub(super) fn new(search: PathSearch, trips: RoundTrips, congestion: CongestionWindow) -> Path {
        Path {
            search,
            trips,
            congestion,
            state: State::Down,
            asked: None,
            confirmed: Ns::ZERO,
            used: Ns::ZERO,
            probe_at: Some(Ns::ZERO),
            probe_wait: PROBE_MIN,
            tries: 0,
            falls: 0,
            rises: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// True if the path carries operations before any path that is suspect or down.
    fn is_good(&self) -> bool {
        matches!(self.state, State::Up { is_suspect: false, .. })
    }

    /// Records that something was sent that is owed an answer.
    pub(super) fn asks(&mut self, now: Ns) {
        self.asked.get_or_insert(now);
        self.used = now;
        self.tries += 1;
    }

    /// Records that a request was probably lost. On a path that is down, it says nothing more.
    pub(super) fn loses(&mut self, now: Ns) {
        if self.is_up() {
            self.congestion.lost(now, self.trips.smoothed());
        }
    }

    /// Records that what was sent at `sent` was answered.
    pub(super) fn confirms(&mut self, sent: Ns) {
        self.confirmed = self.confirmed.max(sent);
    }

    /// The silence after which another path's answers show that this path is down.
    fn silence_max(&self) -> Ns {
        let timeout = self.trips.retry_after(0);
        let times = Ns(timeout.0.saturating_mul(SILENT_TIMEOUTS));
        times.clamp(SILENT_MIN, SILENT_MAX).max(timeout)
    }

    /// Expected time until a further request is answered, if it is sent now.
    fn expected(&self) -> u128 {
        let trip = u128::from(self.trips.smoothed().0);
        let window = u128::from(self.congestion.milli_requests().max(1));
        trip + trip * u128::from(self.congestion.under_way()) * MILLI / window
    }

    /// Requests that the path carries in a second, in thousandths.
    fn milli_rate(&self) -> u128 {
        let window = u128::from(self.congestion.milli_requests().max(1));
        window * 1_000_000_000 / u128::from(self.trips.smoothed().0.max(1))
    }

    fn fall(&mut self, now: Ns) {
        let State::Up { since, .. } = self.state else { return };
        let was_steady = now.saturating_sub(since) >= STEADY_AFTER;
        self.probe_wait = if was_steady { PROBE_MIN } else { longer(self.probe_wait) };
        (self.state, self.asked, self.falls) = (State::Down, None, self.falls + 1);
        self.probe_at = Some(now.saturating_add(self.probe_wait));
    }

    fn rise(&mut self, now: Ns, trips: RoundTrips, requests: u32) {
        (self.state, self.rises) = (State::Up { since: now, is_suspect: false }, self.rises + 1);
        if self.falls > 0 {
            self.trips = trips;
            self.congestion.restart(requests);
            self.search.doubt();
        }
    }
}

fn longer(wait: Ns) -> Ns {
    Ns(wait.0 * 2).min(PROBE_MAX)
}

/// All paths of a client.
pub(super) struct Paths {
    paths: Vec<Path>,
    /// Round trips before any was measured.
    trips: RoundTrips,
    window_initial: u32,
}

impl Paths {
    /// Paths that are down until the node answers on them. A single one is up at once. `None` if
    /// their number is not allowed.
    pub(super) fn new(
        mut paths: Vec<Path>,
        trips: RoundTrips,
        window_initial: u32,
    ) -> Option<Paths> {
        if let [only] = paths.as_mut_slice() {
            only.state = State::Up { since: Ns::ZERO, is_suspect: false };
            only.probe_at = None;
        }
        let is_allowed = (1..=PATHS_MAX).contains(&paths.len());
        is_allowed.then_some(Paths { paths, trips, window_initial })
    }

    /// True if there is no choice.
    pub(super) fn is_single(&self) -> bool {
        self.paths.len() == 1
    }

    pub(super) fn get(&self, id: PathId) -> &Path {
        &self.paths[id.at()]
    }

    pub(super) fn get_mut(&mut self, id: PathId) -> &mut Path {
        &mut self.paths[id.at()]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter()
    }

    pub(super) fn report(&self, id: PathId) -> PathReport {
        let path = self.get(id);
        PathReport {
            is_up: path.is_up(),
            under_way: path.congestion.under_way(),
            window_milli_requests: path.congestion.milli_requests(),
            round_trip: path.trips.smoothed(),
            tries: path.tries,
            falls: path.falls,
            rises: path.rises,
        }
    }

    /// Finds out which paths owe answers for too long. Returns a path that is down from now on.
    pub(super) fn judge(&mut self, now: Ns) -> Option<PathId> {
        if self.is_single() {
            return None;
        }
        let mut fell = None;
        for at in 0..self.paths.len() {
            let others = (0..self.paths.len()).filter(|&other| other != at);
            let later = others.map(|other| self.paths[other].confirmed).max().unwrap_or(Ns::ZERO);
            let path = &mut self.paths[at];
            let (State::Up { is_suspect, .. }, Some(asked)) = (&mut path.state, path.asked) else {
                continue;
            };
            let silent = now.saturating_sub(asked);
            if !*is_suspect && silent > path.trips.retry_after(0) {
                (*is_suspect, path.probe_at) = (true, Some(now));
            }
            if fell.is_none() && later >= asked.saturating_add(path.silence_max()) {
                path.fall(now);
                fell = Some(PathId::new(at));
            }
        }
        fell
    }

    /// Records that the carrier cannot send on a path. Returns true if the path was up.
    pub(super) fn fails(&mut self, now: Ns, id: PathId) -> bool {
        let was_up = !self.is_single() && self.get(id).is_up();
        if was_up {
            self.get_mut(id).fall(now);
        }
        was_up
    }

    /// Records that something arrived from the node.
    pub(super) fn heard(&mut self, now: Ns, id: PathId) {
        let (trips, requests) = (self.trips, self.window_initial);
        let path = self.get_mut(id);
        path.asked = (path.congestion.under_way() > 0).then_some(now);
        match &mut path.state {
            State::Up { is_suspect, .. } => *is_suspect = false,
            State::Down => path.rise(now, trips, requests),
        }
        path.probe_at = None;
    }

    /// The first time at which a path is probed for an answer, and that path.
    pub(super) fn probe_due(&self) -> Option<(Ns, PathId)> {
        let due = |(at, path): (usize, &Path)| path.probe_at.map(|due| (due, PathId::new(at)));
        self.paths.iter().enumerate().filter_map(due).min()
    }

    /// Records that the path is probed now.
    pub(super) fn probed(&mut self, now: Ns, id: PathId) {
        let path = self.get_mut(id);
        path.probe_at = None;
        if !path.is_up() {
            path.probe_at = Some(now.saturating_add(path.probe_wait));
            path.probe_wait = longer(path.probe_wait);
        }
    }

    /// The first time at which a window of less than one request allows one, where nothing else is
    /// in flight.
    pub(super) fn paced(&self) -> Option<Ns> {
        let good = self.any_good();
        let usable = self.paths.iter().filter(|path| path.is_good() == good);
        usable.filter_map(|path| path.congestion.next()).min()
    }

    fn any_good(&self) -> bool {
        self.paths.iter().any(Path::is_good)
    }

    /// The path with room for a new request on which it is expected to be answered soonest. Where
    /// `backlog` requests that wait would all be answered by faster paths before a slower path
    /// answers one, they wait for the faster ones. `None`: nothing new is sent now.
    pub(super) fn with_room(&self, now: Ns, backlog: u64) -> Option<PathId> {
        let open = |&at: &usize| self.paths[at].congestion.has_room(now);
        if !self.any_good() {
            return self.longest_unused(open);
        }
        let good = (0..self.paths.len()).filter(|&at| self.paths[at].is_good());
        let found = good.filter(open).min_by_key(|&at| self.paths[at].expected())?;
        self.is_worth(found, backlog).then(|| PathId::new(found))
    }

    /// The path for what is sent without regard to windows: the best with room, or else the best.
    pub(super) fn for_retry(&self, now: Ns) -> PathId {
        if !self.any_good() {
            return self.longest_unused(|_| true).expect("there is a path");
        }
        let good = (0..self.paths.len()).filter(|&at| self.paths[at].is_good());
        let order = |&at: &usize| {
            let path = &self.paths[at];
            (!path.congestion.has_room(now), path.expected())
        };
        PathId::new(good.min_by_key(order).expect("one is good"))
    }

    /// With no path known to work, all of them are tried in turn.
    fn longest_unused(&self, may: impl Fn(&usize) -> bool) -> Option<PathId> {
        let may = (0..self.paths.len()).filter(|at| may(at));
        may.min_by_key(|&at| self.paths[at].used).map(PathId::new)
    }

    fn is_worth(&self, found: usize, backlog: u64) -> bool {
        let trip = self.paths[found].trips.smoothed();
        let faster = self.paths.iter().filter(|path| {
            path.is_good() && path.congestion.under_way() > 0 && path.trips.smoothed() < trip
        });
        let (mut rate, mut fastest) = (0, trip);
        for path in faster {
            rate += path.milli_rate();
            fastest = fastest.min(path.trips.smoothed());
        }
        if rate == 0 {
            return true;
        }
        let drained = u128::from(backlog) * MILLI * 1_000_000_000 / rate;
        u128::from(trip.0) <= u128::from(fastest.0) + drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;

    fn paths(count: usize) -> Paths {
        let trips = RoundTrips::new(Ns(40 * US), Ns(100_000 * US));
        let path = |_| {
            let window = CongestionWindow::of_any_path(10, 64, Ns(200 * US));
            Path::new(PathSearch::new(1200, 1200), trips, window)
        };
        Paths::new((0..count).map(path).collect(), trips, 10).expect("so many may be")
    }

    /// Paths that have answered, with round trips of these times.
    fn up(times: &[u64]) -> Paths {
        let mut paths = paths(times.len());
        for (at, &time) in times.iter().enumerate() {
            paths.heard(Ns(1), PathId::new(at));
            paths.paths[at].trips.took(Ns(time * US));
        }
        paths
    }

    fn send(paths: &mut Paths, now: u64, at: usize) {
        paths.paths[at].asks(Ns(now));
        paths.paths[at].congestion.sent(Ns(now), Ns(100 * US));
    }

    #[test]
    fn before_any_answer_all_paths_are_tried_in_turn() {
        let mut paths = paths(3);
        let order: Vec<usize> = (1..=6)
            .map(|now| {
                let path = paths.for_retry(Ns(now)).at();
                send(&mut paths, now, path);
                path
            })
            .collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        paths.heard(Ns(9), PathId::new(1));
        assert_eq!(paths.with_room(Ns(9), 1), Some(PathId::new(1)), "the one that answered");
    }

    #[test]
    fn the_path_with_most_room_is_taken_and_equal_ones_are_used_equally() {
        let mut paths = up(&[100, 100]);
        let mut sent = [0, 0];
        while let Some(path) = paths.with_room(Ns(5), 1000) {
            send(&mut paths, 5, path.at());
            sent[path.at()] += 1;
        }
        assert_eq!(sent, [10, 10]);
    }

    #[test]
    fn one_operation_never_waits_on_a_slow_path_and_a_long_backlog_uses_it() {
        let mut paths = up(&[100, 400]);
        for now in 0..10 {
            assert_eq!(paths.with_room(Ns(now), 1), Some(PathId::new(0)));
            send(&mut paths, now, 0);
        }
        // The fast path is full and answers ten requests in 100 us: 30 of them by the time of one
        // round trip of the slow path after the fast path's own.
        assert_eq!(paths.with_room(Ns(20), 29), None);
        assert_eq!(paths.with_room(Ns(20), 30), Some(PathId::new(1)));
    }

    #[test]
    fn a_silent_path_is_suspect_first_and_down_when_another_answers_what_came_later() {
        let mut paths = up(&[100, 100]);
        send(&mut paths, 0, 0);
        // The first round trip counts half of itself as variation: 100 us and 4 times 50.
        assert_eq!(paths.judge(Ns(300 * US)), None);
        assert!(paths.paths[0].is_good());
        assert_eq!(paths.judge(Ns(300 * US + 1)), None);
        assert!(!paths.paths[0].is_good() && paths.paths[0].is_up());
        assert_eq!(paths.for_retry(Ns(400 * US)), PathId::new(1));
        assert_eq!(paths.probe_due(), Some((Ns(300 * US + 1), PathId::new(0))));
        // An answer to what was sent too early is no evidence, whenever it arrives.
        paths.paths[1].confirms(Ns(4_999 * US));
        assert_eq!(paths.judge(Ns(9_000 * US)), None);
        paths.paths[1].confirms(Ns(5_000 * US));
        assert_eq!(paths.judge(Ns(9_000 * US)), Some(PathId::new(0)));
        assert!(!paths.paths[0].is_up());
        assert_eq!(paths.judge(Ns(9_000 * US)), None, "it falls once");
        paths.heard(Ns(10_000 * US), PathId::new(0));
        assert!(paths.paths[0].is_good());
        assert_eq!(paths.paths[0].congestion.under_way(), 1, "what is in flight still counts");
    }

    #[test]
    fn where_all_paths_are_silent_none_goes_down() {
        let mut paths = up(&[100, 100]);
        send(&mut paths, 0, 0);
        send(&mut paths, 10, 1);
        assert_eq!(paths.judge(Ns(3_000_000 * US)), None);
        assert!(paths.paths.iter().all(|path| path.is_up() && !path.is_good()));
        assert_eq!(paths.for_retry(Ns(3_000_000 * US)), PathId::new(0), "the longer unused");
    }

    #[test]
    fn a_path_that_is_down_is_probed_less_and_less_often() {
        let mut paths = up(&[100, 100]);
        let (steady, down) = (STEADY_AFTER.0 + 1, PathId::new(0));
        assert!(paths.fails(Ns(steady), down) && !paths.fails(Ns(steady), down));
        let mut waits = Vec::new();
        let mut now = steady;
        for _ in 0..6 {
            let (due, path) = paths.probe_due().expect("it is probed");
            assert_eq!(path, down);
            waits.push((due.0 - now) / 1_000_000);
            now = due.0;
            paths.probed(due, path);
        }
        assert_eq!(waits, [20, 20, 40, 80, 160, 250]);
        // It returns for a moment only: its next probe comes late.
        paths.heard(Ns(now), down);
        assert_eq!(paths.probe_due(), None);
        assert!(paths.fails(Ns(now + 1000), down));
        assert_eq!(paths.probe_due(), Some((Ns(now + 1000 + 250_000_000), down)));
    }

    #[test]
    fn a_single_path_is_always_up() {
        let mut paths = paths(1);
        send(&mut paths, 0, 0);
        assert_eq!(paths.judge(Ns(u64::MAX)), None);
        assert!(!paths.fails(Ns(5), PathId::ONLY) && paths.paths[0].is_good());
    }
}
