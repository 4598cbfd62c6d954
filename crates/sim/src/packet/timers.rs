//! Deadlines of flows, of which nearly none is ever reached.

use std::collections::VecDeque;

use ethermem_units::Ps;

use super::FlowId;

/// Deadlines in the order they were set, which is their order in time as long as all timeouts are
/// equal. Those of flows that have ended fall out without an event; one event, for the head,
/// serves all.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: VecDeque<Entry>,
    /// An event for the head, or for one before it, is pending.
    pub(crate) pending: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Ps,
    pub(crate) flow: FlowId,
    pub(crate) generation: u32,
}

impl Timers {
    /// Takes an entry that is not before those it has; false when it is.
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

    /// The head, when its time has come.
    pub(crate) fn pop_due(&mut self, now: Ps) -> Option<Entry> {
        self.queue.front().filter(|head| head.at <= now)?;
        self.queue.pop_front()
    }

    /// When the next event is due: at the first entry that has not ended.
    pub(crate) fn next(&mut self, ended: impl Fn(Entry) -> bool) -> Option<Ps> {
        while self.queue.front().is_some_and(|&head| ended(head)) {
            self.queue.pop_front();
        }
        self.queue.front().map(|head| head.at)
    }
}
