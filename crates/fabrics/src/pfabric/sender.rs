//! The end host's minimal rate control: a window that starts at a bandwidth-delay product, and a
//! timeout (section 4.3).

use ethermem_frames::Received;

/// Window and timeout of all flows; their defaults follow from the network's round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    pub(super) window_initial: f64,
    pub(super) window_max: f64,
    /// Number of consecutive timeouts after which a flow only probes.
    pub(super) probe_after: u32,
}

/// The sender of one flow.
#[derive(Debug, Default)]
pub(super) struct Sender {
    packets: u32,
    acked: Received,
    /// All unacknowledged packets before this one were sent since the last timeout.
    next: u32,
    in_flight: u32,
    sent_end: u32,
    window: f64,
    threshold: f64,
    timeouts: u32,
}

/// What a flow sends after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// The packets that its window allows, from the first missing one.
    Data,
    /// A packet without data, until an answer arrives.
    Probe,
}

impl Sender {
    pub(super) fn reset(&mut self, packets: u32, rules: &Rules) {
        self.acked.reset(packets);
        self.packets = packets;
        (self.next, self.in_flight, self.sent_end, self.timeouts) = (0, 0, 0, 0);
        self.window = rules.window_initial;
        self.threshold = f64::INFINITY;
    }

    /// The next packet that the window allows, and whether it was sent before.
    #[inline]
    pub(super) fn take(&mut self, rules: &Rules) -> Option<(u32, bool)> {
        if self.in_flight >= self.window as u32 || self.timeouts >= rules.probe_after {
            return None;
        }
        let position = self.acked.next_missing(self.next);
        if position >= self.packets {
            return None;
        }
        let again = position < self.sent_end;
        self.next = position + 1;
        self.sent_end = self.sent_end.max(self.next);
        self.in_flight += 1;
        Some((position, again))
    }

    /// Processes an acknowledgement of all packets before `before`, and of the packet `position`,
    /// if there is one. Returns true if the first missing packet has changed.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        before: u32,
        position: Option<u32>,
        rules: &Rules,
    ) -> bool {
        self.timeouts = 0;
        let first = self.acked.first_missing();
        if let Some(position) = position {
            self.acknowledge_one(position, rules);
        }
        while self.acked.first_missing() < before {
            self.acknowledge_one(self.acked.first_missing(), rules);
        }
        self.acked.first_missing() > first
    }

    #[inline]
    fn acknowledge_one(&mut self, position: u32, rules: &Rules) {
        if !self.acked.insert(position) {
            return;
        }
        if position < self.next {
            self.in_flight -= 1;
        }
        self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        self.window = self.window.min(rules.window_max);
    }

    /// Handles a timeout: all packets in flight are considered lost, and slow start restarts.
    pub(super) fn time_out(&mut self, rules: &Rules) -> Retry {
        self.threshold = (self.window / 2.0).max(2.0);
        self.window = 1.0;
        self.in_flight = 0;
        self.next = self.acked.first_missing();
        self.timeouts += 1;
        if self.timeouts >= rules.probe_after { Retry::Probe } else { Retry::Data }
    }

    /// Number of packets that are not acknowledged.
    #[inline]
    pub(super) fn remaining(&self) -> u32 {
        self.packets - self.acked.count()
    }

    #[inline]
    pub(super) fn done(&self) -> bool {
        self.acked.count() == self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { window_initial: 4.0, window_max: 5.0, probe_after: 3 };

    fn sender(packets: u32) -> Sender {
        let mut sender = Sender::default();
        sender.reset(packets, &RULES);
        sender
    }

    fn take_all(sender: &mut Sender) -> Vec<u32> {
        std::iter::from_fn(|| sender.take(&RULES)).map(|(position, _)| position).collect()
    }

    #[test]
    fn a_lost_packet_holds_its_place_in_the_window_and_others_go_on() {
        let mut sender = sender(20);
        assert_eq!(take_all(&mut sender), [0, 1, 2, 3]);
        // Packet 0 is lost. The window grows to its maximum, 5.
        assert!(!sender.acknowledge(0, Some(1), &RULES));
        assert_eq!(take_all(&mut sender), [4, 5]);
        assert!(!sender.acknowledge(0, Some(2), &RULES));
        assert_eq!(take_all(&mut sender), [6]);
        assert_eq!(sender.remaining(), 18);
    }

    #[test]
    fn a_timeout_sends_what_is_missing_and_nothing_else() {
        let mut sender = sender(6);
        take_all(&mut sender);
        sender.acknowledge(0, Some(1), &RULES);
        sender.acknowledge(0, Some(3), &RULES);
        take_all(&mut sender);
        assert_eq!(sender.time_out(&RULES), Retry::Data);
        assert_eq!(sender.take(&RULES), Some((0, true)));
        assert_eq!(sender.take(&RULES), None);
        // 5 had arrived before the timeout, and did not count as in flight after it.
        assert!(!sender.acknowledge(0, Some(5), &RULES));
        assert!(sender.acknowledge(2, Some(0), &RULES));
        assert_eq!(take_all(&mut sender), [2, 4]);
        assert!(sender.acknowledge(6, None, &RULES));
        assert!(sender.done());
    }

    #[test]
    fn after_some_timeouts_in_a_row_a_flow_probes_until_it_is_answered() {
        let mut sender = sender(6);
        take_all(&mut sender);
        assert_eq!([sender.time_out(&RULES), sender.time_out(&RULES)], [Retry::Data; 2]);
        assert_eq!(sender.time_out(&RULES), Retry::Probe);
        assert_eq!(sender.take(&RULES), None);
        sender.acknowledge(0, None, &RULES);
        assert_eq!(take_all(&mut sender), [0]);
    }
}
