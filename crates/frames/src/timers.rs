//! Deadlines of flows, of which hardly any is ever reached.

use std::collections::VecDeque;

use ethermem_units::Ps;

use super::FlowId;

/// Deadlines in the order in which they were set, which is their order in time while all timeouts
/// are equal. Deadlines of ended flows are dropped without an event; one event, for the head,
/// serves all.
#[derive(Debug)]
pub(crate) struct Timers {
    queue: VecDeque<Entry>,
    /// The time of the first pending event, which is not after the head; `Ps::MAX` for none.
    pending: Ps,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { queue: VecDeque::new(), pending: Ps::MAX }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Ps,
    pub(crate) flow: FlowId,
    pub(crate) generation: u32,
}

impl Timers {
    /// Adds an entry. Returns false if it is before the entries in the list.
    pub(crate) fn push(&mut self, entry: Entry, ended: impl Fn(Entry) -> bool) -> bool {
        while self.queue.front().is_some_and(|&head| ended(head)) {
            self.queue.pop_front();
        }
        if self.queue.back().is_some_and(|last| last.at > entry.at) {
            return false;
        }
        self.queue.push_back(entry);
        true
    }

    /// The head, if its time has come.
    pub(crate) fn pop_due(&mut self, now: Ps) -> Option<Entry> {
        self.queue.front().filter(|head| head.at <= now)?;
        self.queue.pop_front()
    }

    /// Handles an event. Returns the time of the next one, at the first entry that has not ended,
    /// unless one is pending.
    pub(crate) fn next(&mut self, now: Ps, ended: impl Fn(Entry) -> bool) -> Option<Ps> {
        while self.queue.front().is_some_and(|&head| ended(head)) {
            self.queue.pop_front();
        }
        if self.pending <= now {
            self.pending = Ps::MAX;
        }
        let at = self.queue.front()?.at;
        self.needs_event(at).then_some(at)
    }

    /// True if an event at `at` must be scheduled. A pending event may be later, if it is for an
    /// entry that has ended and had a longer timeout.
    pub(crate) fn needs_event(&mut self, at: Ps) -> bool {
        let sooner = at < self.pending;
        self.pending = self.pending.min(at);
        sooner
    }
}
