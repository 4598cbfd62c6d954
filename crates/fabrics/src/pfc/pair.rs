//! A queue pair: what one node sends to another, message after message, at one rate.

use std::collections::VecDeque;

use ethermem_frames::{Deadlines, FlowId};
use ethermem_units::Ps;

use super::dcqcn::{Reaction, Rules};

/// One direction between two nodes, with both its ends. It outlives messages, and so does its rate.
#[derive(Debug)]
pub(super) struct QueuePair {
    /// The standing flow whose deadline is the earlier one of both ends.
    pub(super) timer: FlowId,
    pub(super) deadlines: Deadlines,
    /// Messages with packets to send, in order, with the generations of their flows.
    pub(super) messages: VecDeque<(FlowId, u32)>,
    /// The next packet of the first one.
    pub(super) next: u32,
    /// True if a packet waits at the interface.
    pub(super) waiting: bool,
    /// The time from which on the rate allows the next packet.
    pub(super) opens: Ps,
    pub(super) reaction: Reaction,
    /// The time before which the receiver sends no notification.
    pub(super) notify_after: Ps,
    /// Writes that have arrived and are not acknowledged, and those whose acknowledgement is on its
    /// way.
    owed: VecDeque<FlowId>,
    acknowledged: VecDeque<FlowId>,
}

impl QueuePair {
    pub(super) fn new(timer: FlowId, rules: &Rules) -> QueuePair {
        QueuePair {
            timer,
            deadlines: Deadlines::default(),
            messages: VecDeque::new(),
            next: 0,
            waiting: false,
            opens: Ps::ZERO,
            reaction: Reaction::new(rules),
            notify_after: Ps::ZERO,
            owed: VecDeque::new(),
            acknowledged: VecDeque::new(),
        }
    }

    /// True if it has nothing to send.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && !self.waiting
    }

    /// Takes the next packet of the first message, which has `packets`. Returns its position.
    pub(super) fn take(&mut self, packets: u32) -> u32 {
        let position = self.next;
        self.next += 1;
        if self.next == packets {
            self.drop_first();
        }
        self.waiting = true;
        position
    }

    /// Removes the first message: it is sent or lost.
    pub(super) fn drop_first(&mut self) {
        self.messages.pop_front();
        self.next = 0;
    }

    /// Records a write that has arrived. Returns how many are not acknowledged.
    pub(super) fn owe(&mut self, message: FlowId) -> usize {
        self.owed.push_back(message);
        self.owed.len()
    }

    /// All writes that are not acknowledged are, by a packet that names the last of them. Returns
    /// their number and that one.
    pub(super) fn acknowledge(&mut self) -> Option<(u32, FlowId)> {
        let last = *self.owed.back()?;
        let count = self.owed.len() as u32;
        self.acknowledged.append(&mut self.owed);
        Some((count, last))
    }

    /// The next write whose acknowledgement has arrived.
    pub(super) fn next_acknowledged(&mut self) -> FlowId {
        self.acknowledged.pop_front().expect("an acknowledgement counts what was acknowledged")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        alpha_initial: 1.0,
        gain: 0.5,
        alpha_timer: Ps(1),
        increase_timer: Ps(1),
        byte_counter: 1,
        recovery_stages: 1,
        additive: 0.1,
        hyper: 0.1,
        rate_min: 0.1,
    };

    #[test]
    fn an_acknowledgement_covers_all_that_has_arrived() {
        let mut pair = QueuePair::new(9, &RULES);
        assert_eq!(pair.acknowledge(), None);
        assert_eq!([pair.owe(3), pair.owe(4)], [1, 2]);
        assert_eq!(pair.acknowledge(), Some((2, 4)));
        assert_eq!((pair.owe(5), pair.acknowledge()), (1, Some((1, 5))));
        assert_eq!([(); 3].map(|()| pair.next_acknowledged()), [3, 4, 5]);
        assert_eq!(pair.acknowledge(), None);
    }

    #[test]
    fn messages_follow_each_other() {
        let mut pair = QueuePair::new(9, &RULES);
        pair.messages.extend([(1, 0), (2, 0)]);
        assert_eq!([pair.take(2), pair.take(2)], [0, 1]);
        assert_eq!(pair.messages, [(2, 0)]);
        assert_eq!(pair.take(3), 0);
        pair.drop_first();
        assert!(pair.messages.is_empty() && pair.next == 0);
    }
}
