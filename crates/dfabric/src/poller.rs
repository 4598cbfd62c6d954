//! Polling of TxQs: whose tail is loaded next (sections 4.3 and 6.4).
//!
//! A poll is one load of an entry; the world says when it ends. Concurrent polling has one load a
//! queue under way, polling in turn has one in all: Table 4 compares the two.

/// How tails are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PollMode {
    /// Each queue's as soon as its last load has ended.
    #[default]
    Concurrent,
    /// One after the other: fewer transactions, and a queue waits for all others.
    InTurn,
}

/// What polling has cost, and found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollCounters {
    /// Loads of tails.
    pub loads: u64,
    /// Loads that found an entry.
    pub found: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Loading,
    /// What was found waits for room elsewhere.
    Blocked,
    /// The queue's node is gone.
    Closed,
}

/// Polls a set of queues, numbered from 0.
#[derive(Clone, Debug)]
pub struct Poller {
    mode: PollMode,
    loads_max: u32,
    queues: Box<[State]>,
    under_way: u32,
    next: usize,
    counters: PollCounters,
}

impl Poller {
    /// A poller of so many queues, with at most `loads_max` loads under way.
    ///
    /// # Panics
    /// If no load may be under way.
    #[must_use]
    pub fn new(queues: u32, mode: PollMode, loads_max: u32) -> Poller {
        assert!(loads_max > 0, "a poller without loads finds nothing");
        let loads_max = if mode == PollMode::InTurn { 1 } else { loads_max };
        let queues = vec![State::default(); queues as usize].into();
        Poller { mode, loads_max, queues, under_way: 0, next: 0, counters: PollCounters::default() }
    }

    /// How tails are loaded.
    #[must_use]
    pub fn mode(&self) -> PollMode {
        self.mode
    }

    /// What polling has cost.
    #[must_use]
    pub fn counters(&self) -> PollCounters {
        self.counters
    }

    /// The next queue whose tail is to be loaded; `None` until a load ends or a queue opens.
    pub fn poll(&mut self) -> Option<u32> {
        if self.under_way >= self.loads_max {
            return None;
        }
        let count = self.queues.len();
        let mut turns = (0..count).map(|after| (self.next + after) % count);
        let queue = turns.find(|&queue| self.queues[queue] == State::Idle)?;
        self.next = (queue + 1) % count;
        self.queues[queue] = State::Loading;
        self.under_way += 1;
        self.counters.loads += 1;
        Some(queue as u32)
    }

    /// Loads the tail of this queue next, whichever queue's turn it is: a world that knows which
    /// queues have entries leaves out the loads that find none. False if the queue is not polled
    /// now, or too many loads are under way.
    pub fn poll_queue(&mut self, queue: u32) -> bool {
        let is_idle = self.queues.get(queue as usize) == Some(&State::Idle);
        if !is_idle || self.under_way >= self.loads_max {
            return false;
        }
        self.queues[queue as usize] = State::Loading;
        self.next = (queue as usize + 1) % self.queues.len();
        self.under_way += 1;
        self.counters.loads += 1;
        true
    }

    /// A load has ended. Returns false if none of the queue was under way.
    pub fn loaded(&mut self, queue: u32, has_entry: bool) -> bool {
        let Some(state) = self.queues.get_mut(queue as usize) else { return false };
        if *state != State::Loading {
            return false;
        }
        *state = State::Idle;
        self.under_way -= 1;
        self.counters.found += u64::from(has_entry);
        true
    }

    /// The queue is not polled until [`Poller::unblock`]: its entry waits.
    pub fn block(&mut self, queue: u32) {
        self.change(queue, State::Idle, State::Blocked);
    }

    /// The queue is polled again.
    pub fn unblock(&mut self, queue: u32) {
        self.change(queue, State::Blocked, State::Idle);
    }

    /// The queue is not polled until [`Poller::open`]; a load under way is forgotten.
    pub fn close(&mut self, queue: u32) {
        let Some(state) = self.queues.get_mut(queue as usize) else { return };
        self.under_way -= u32::from(*state == State::Loading);
        *state = State::Closed;
    }

    /// The queue's node has joined.
    pub fn open(&mut self, queue: u32) {
        self.change(queue, State::Closed, State::Idle);
    }

    fn change(&mut self, queue: u32, from: State, to: State) {
        if let Some(state) = self.queues.get_mut(queue as usize).filter(|state| **state == from) {
            *state = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(poller: &mut Poller) -> Vec<u32> {
        std::iter::from_fn(|| poller.poll()).collect()
    }

    #[test]
    fn concurrent_polling_has_a_load_a_queue_and_polling_in_turn_one_in_all() {
        let mut poller = Poller::new(4, PollMode::Concurrent, 64);
        assert_eq!(all(&mut poller), [0, 1, 2, 3]);
        assert!(poller.loaded(2, true) && !poller.loaded(2, true) && !poller.loaded(9, true));
        assert_eq!(all(&mut poller), [2]);
        assert_eq!(poller.counters(), PollCounters { loads: 5, found: 1 });
        let mut poller = Poller::new(3, PollMode::InTurn, 64);
        for turn in [0, 1, 2, 0] {
            assert_eq!(all(&mut poller), [turn]);
            assert!(poller.loaded(turn, false));
        }
        assert_eq!(all(&mut Poller::new(9, PollMode::Concurrent, 2)), [0, 1]);
        assert_eq!(all(&mut Poller::new(0, PollMode::InTurn, 1)), []);
    }

    #[test]
    fn a_queue_can_be_polled_out_of_turn_once_at_a_time() {
        let mut poller = Poller::new(3, PollMode::Concurrent, 2);
        assert!(poller.poll_queue(2) && !poller.poll_queue(2) && !poller.poll_queue(9));
        assert_eq!(poller.poll(), Some(0), "the turn goes on behind it");
        assert!(!poller.poll_queue(1), "two loads are under way");
        assert!(poller.loaded(2, true) && poller.poll_queue(1));
        assert_eq!(poller.counters(), PollCounters { loads: 3, found: 1 });
    }

    #[test]
    fn blocked_and_closed_queues_are_not_polled() {
        let mut poller = Poller::new(3, PollMode::InTurn, 1);
        assert_eq!(poller.poll(), Some(0));
        poller.loaded(0, true);
        poller.block(0);
        assert_eq!(poller.poll(), Some(1));
        poller.close(1);
        assert!(!poller.loaded(1, true), "the queue was closed meanwhile");
        assert_eq!(poller.poll(), Some(2));
        poller.loaded(2, false);
        assert_eq!(poller.poll(), Some(2));
        poller.loaded(2, false);
        poller.unblock(0);
        poller.unblock(1);
        assert_eq!(poller.poll(), Some(0));
        poller.loaded(0, false);
        poller.open(1);
        assert_eq!(poller.poll(), Some(1));
    }
}
