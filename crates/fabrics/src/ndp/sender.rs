//! The order of a source's packets: a first window without pulls, then a packet per pull (section
//! 3.2).

use std::collections::VecDeque;

use ethermem_frames::Received;

/// The sender of one flow.
#[derive(Debug, Default)]
pub(super) struct Sender {
    packets: u32,
    acked: Received,
    /// The first packet that was never sent.
    next: u32,
    /// Packets to be retransmitted, before any other.
    again: VecDeque<u32>,
    /// Number of packets that were sent, and neither acknowledged nor known to be missing.
    in_flight: u32,
    /// Number of pulls that are still to come for answered packets.
    expected: u32,
    /// Number of pulls that have arrived, by their own count.
    pulled: u32,
    /// Number of pulls that arrived before the answers that they belong to: on another path.
    early: u32,
    /// Number of these that found no packet to send.
    unused: u32,
    /// True if it waits for nothing more.
    done: bool,
}

impl Sender {
    /// Begins a flow of `packets`.
    pub(super) fn reset(&mut self, packets: u32) {
        self.packets = packets;
        self.acked.reset(packets);
        self.again.clear();
        (self.next, self.in_flight, self.expected, self.pulled) = (0, 0, 0, 0);
        (self.early, self.unused) = (0, 0);
        self.done = false;
    }

    /// The next packet to send, and whether it was sent before.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(u32, bool)> {
        let again = loop {
            match self.again.pop_front() {
                Some(position) if self.acked.contains(position) => {}
                other => break other,
            }
        };
        let position = again.or_else(|| (self.next < self.packets).then_some(self.next))?;
        if again.is_none() {
            self.next += 1;
        }
        self.in_flight += 1;
        Some((position, again.is_some()))
    }

    /// Records a packet that has arrived. Returns true if it was the last one.
    #[inline]
    pub(super) fn acknowledge(&mut self, position: u32) -> bool {
        self.answered();
        self.unused = self.unused.min(self.early);
        self.acked.insert(position) && self.acked.count() == self.packets
    }

    /// Records a packet whose header has arrived without its data. Returns true if a packet must be
    /// sent now: the pull for it came first, and had nothing to send.
    #[inline]
    pub(super) fn miss(&mut self, position: u32) -> bool {
        self.answered();
        self.put_back(position);
        let due = self.unused > 0;
        self.unused = self.unused.saturating_sub(1).min(self.early);
        due
    }

    fn answered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.early > 0 {
            self.early -= 1;
        } else {
            self.expected += 1;
        }
    }

    /// Records a packet that was sent back. Returns true if another must be sent without a pull,
    /// because no pull will come: no packet is in flight, and no answered packet waits for a pull.
    pub(super) fn returned(&mut self, position: u32) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.put_back(position);
        self.in_flight == 0 && self.expected == 0
    }

    fn put_back(&mut self, position: u32) {
        if !self.acked.contains(position) {
            self.again.push_back(position);
        }
    }

    /// Records the count of pulls that were sent to it; returns how many of them are new.
    #[inline]
    pub(super) fn pull(&mut self, count: u32) -> u32 {
        let new = count.saturating_sub(self.pulled);
        self.pulled += new;
        self.early += new.saturating_sub(self.expected);
        self.expected = self.expected.saturating_sub(new);
        new
    }

    /// Records pulls that found no packet to send. Those that came before their answers are kept
    /// for these.
    pub(super) fn keep(&mut self, pulls: u32) {
        self.unused = (self.unused + pulls).min(self.early);
    }

    /// Handles a timeout. Packets that are neither acknowledged nor known to be missing are
    /// considered lost. Returns how many packets go without a pull, at least one.
    pub(super) fn time_out(&mut self) -> u32 {
        let unknown =
            |&position: &u32| !self.acked.contains(position) && !self.again.contains(&position);
        let lost: Vec<u32> = (self.acked.first_missing()..self.next).filter(unknown).collect();
        for &position in lost.iter().rev() {
            self.again.push_front(position);
        }
        (self.in_flight, self.expected) = (0, 0);
        (self.early, self.unused) = (0, 0);
        (lost.len() as u32).max(1)
    }

    pub(super) fn done(&self) -> bool {
        self.done
    }

    pub(super) fn finish(&mut self) {
        self.done = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(packets: u32, first: u32) -> Sender {
        let mut sender = Sender::default();
        sender.reset(packets);
        assert_eq!(take(&mut sender, first), (0..first.min(packets)).collect::<Vec<_>>());
        sender
    }

    fn take(sender: &mut Sender, count: u32) -> Vec<u32> {
        (0..count).map_while(|_| sender.take()).map(|(position, _)| position).collect()
    }

    #[test]
    fn what_is_missing_goes_before_what_is_new() {
        let mut sender = sender(6, 4);
        sender.miss(2);
        sender.miss(0);
        assert_eq!(sender.take(), Some((2, true)));
        // The packet arrived after all, by another copy.
        assert!(!sender.acknowledge(0));
        assert_eq!(sender.take(), Some((4, false)));
        for position in [1, 3, 4, 2] {
            assert!(!sender.acknowledge(position));
        }
        assert_eq!((sender.take(), sender.take()), (Some((5, false)), None));
        assert!(sender.acknowledge(5));
    }

    #[test]
    fn pulls_are_counted_by_their_receiver() {
        let mut sender = sender(9, 4);
        // The second pull is late or lost.
        assert_eq!([1, 3, 2, 3, 4].map(|count| sender.pull(count)), [1, 2, 0, 0, 1]);
    }

    #[test]
    fn what_is_returned_goes_at_once_only_when_nothing_else_brings_a_pull() {
        let mut sender = sender(3, 3);
        assert!(!sender.returned(1), "two are under way");
        sender.miss(0);
        assert!(!sender.returned(2), "a pull is to come for the first");
        assert_eq!(sender.pull(1), 1);
        assert_eq!(take(&mut sender, 1), [1]);
        assert!(sender.returned(1), "nothing is");
        assert_eq!(take(&mut sender, 9), [0, 2, 1]);
    }

    #[test]
    fn a_pull_that_overtakes_its_answer_waits_for_it() {
        // Between racks, the answer and the pull behind it take different spines.
        let mut sender = sender(1, 1);
        assert_eq!((sender.pull(1), sender.take()), (1, None));
        sender.keep(1);
        assert!(sender.miss(0), "no other pull comes");
        assert_eq!(take(&mut sender, 9), [0]);
        // The pull of the second copy comes behind its answer.
        assert!(!sender.miss(0));
        assert_eq!((sender.pull(2), take(&mut sender, 9)), (1, vec![0]));
        // A pull that found a packet owes nothing, and neither does that of a packet that arrived.
        let mut sender = self::sender(3, 2);
        assert_eq!((sender.pull(1), take(&mut sender, 1)), (1, vec![2]));
        sender.keep(0);
        assert!(!sender.miss(0));
        assert_eq!((sender.pull(2), take(&mut sender, 1)), (1, vec![0]));
        sender.keep(0);
        assert_eq!((sender.pull(3), sender.take()), (1, None));
        sender.keep(1);
        assert!(!sender.acknowledge(1));
        assert!(!sender.acknowledge(2));
        assert!(!sender.miss(0), "its pull is still to come");
    }

    #[test]
    fn a_timeout_sends_what_nothing_is_known_of() {
        let mut sender = sender(6, 5);
        sender.acknowledge(0);
        sender.miss(1);
        sender.acknowledge(3);
        assert_eq!(sender.time_out(), 2);
        assert_eq!(take(&mut sender, 9), [2, 4, 1, 5]);
        // All packets were answered, and the pull was lost.
        let mut sender = self::sender(3, 1);
        sender.miss(0);
        assert_eq!(sender.time_out(), 1);
    }
}
