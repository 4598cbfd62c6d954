//! Captured packets as transfers between traced machines.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ethermem_trace::{ACCESS_BYTES_MAX, Protocol, Segment};
use ethermem_units::Ns;

use crate::attribution::Transfer;

type End = (IpAddr, u16);

/// The machine of each address.
pub(crate) type Addresses = BTreeMap<IpAddr, u8>;

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    /// Sequence number after the last new octet of TCP.
    next: Option<u32>,
    open: Option<Transfer>,
}

/// Builds transfers from the packets of one capture.
pub(crate) struct Transfers<'a> {
    addresses: &'a Addresses,
    gap: Ns,
    directions: BTreeMap<(End, End, bool), Direction>,
    /// Transfers with their sender.
    ended: Vec<(u8, Transfer)>,
    /// Bytes from or to an address of no traced machine.
    outside_bytes: u64,
}

impl<'a> Transfers<'a> {
    /// A pause longer than `gap` ends a transfer.
    pub(crate) fn new(addresses: &'a Addresses, gap: Ns) -> Transfers<'a> {
        let (directions, ended) = (BTreeMap::new(), Vec::new());
        Transfers { addresses, gap, directions, ended, outside_bytes: 0 }
    }

    /// Adds the next packet, if `is_asked` for its sender and receiver.
    pub(crate) fn add(&mut self, segment: &Segment, is_asked: impl Fn(u8, u8) -> bool) {
        let machine = |end: End| self.addresses.get(&end.0).copied();
        let (Some(from), Some(to)) = (machine(segment.from), machine(segment.to)) else {
            self.outside_bytes += u64::from(segment.bytes);
            return;
        };
        if from == to || !is_asked(from, to) {
            return;
        }
        let is_tcp = matches!(segment.protocol, Protocol::Tcp { .. });
        let direction = self.directions.entry((segment.from, segment.to, is_tcp)).or_default();
        let bytes = direction.new_bytes(segment);
        if bytes == 0 {
            return;
        }
        let at = Ns(segment.at_ns);
        let goes_on = |open: &Transfer| {
            at.0.saturating_sub(open.last.0) <= self.gap.0 && open.bytes + bytes <= ACCESS_BYTES_MAX
        };
        match &mut direction.open {
            Some(open) if goes_on(open) => {
                open.last = open.last.max(at);
                open.bytes += bytes;
            }
            open => {
                let next = Transfer { to, first: at, last: at, bytes };
                self.ended.extend(open.replace(next).map(|ended| (from, ended)));
            }
        }
        // An answer ends what it answers.
        if let Some(other) = self.directions.get_mut(&(segment.to, segment.from, is_tcp)) {
            self.ended.extend(other.open.take().map(|ended| (to, ended)));
        }
    }

    /// All transfers with their senders, and the bytes from or to other addresses.
    pub(crate) fn finish(mut self) -> (Vec<(u8, Transfer)>, u64) {
        for ((from, _, _), direction) in self.directions {
            let from = self.addresses[&from.0];
            self.ended.extend(direction.open.map(|open| (from, open)));
        }
        (self.ended, self.outside_bytes)
    }
}

impl Direction {
    /// Bytes of the packet that no earlier one had.
    fn new_bytes(&mut self, segment: &Segment) -> u64 {
        let Protocol::Tcp { sequence, opens } = segment.protocol else {
            return segment.bytes.into();
        };
        // SYN takes a number of its own.
        let end = sequence.wrapping_add(segment.bytes).wrapping_add(u32::from(opens));
        let last = match self.next {
            Some(next) if !opens => next,
            _ => end.wrapping_sub(segment.bytes),
        };
        let ahead = end.wrapping_sub(last).cast_signed();
        if ahead < 0 {
            return 0;
        }
        self.next = Some(end);
        u64::from(segment.bytes.min(ahead.cast_unsigned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: End = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 80);
    const B: End = (IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 4_000);
    const ELSEWHERE: End = (IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 9, 9)), 80);

    fn tcp(at_ns: u64, from: End, to: End, sequence: u32, bytes: u32) -> Segment {
        let protocol = Protocol::Tcp { sequence, opens: false };
        Segment { at_ns, from, to, protocol, bytes }
    }

    fn of(segments: &[Segment]) -> (Vec<(u8, Transfer)>, u64) {
        let addresses = Addresses::from([(A.0, 0), (B.0, 1)]);
        let mut transfers = Transfers::new(&addresses, Ns(100));
        for segment in segments {
            transfers.add(segment, |_, _| true);
        }
        transfers.finish()
    }

    fn sent(from: u8, first: u64, last: u64, bytes: u64) -> (u8, Transfer) {
        (from, Transfer { to: 1 - from, first: Ns(first), last: Ns(last), bytes })
    }

    #[test]
    fn packets_without_a_pause_are_one_transfer() {
        let segments = [tcp(0, A, B, 0, 10), tcp(100, A, B, 10, 10), tcp(201, A, B, 20, 10)];
        assert_eq!(of(&segments), (vec![sent(0, 0, 100, 20), sent(0, 201, 201, 10)], 0));
    }

    #[test]
    fn an_answer_ends_a_transfer() {
        let segments = [tcp(0, B, A, 0, 4), tcp(10, A, B, 0, 900), tcp(20, B, A, 4, 4)];
        let expected = vec![sent(1, 0, 0, 4), sent(0, 10, 10, 900), sent(1, 20, 20, 4)];
        assert_eq!(of(&segments), (expected, 0));
    }

    #[test]
    fn retransmitted_octets_count_once_also_where_numbers_wrap() {
        let start = u32::MAX - 4;
        let segments = [
            tcp(0, A, B, start, 10),
            tcp(1, A, B, start, 10),
            tcp(2, A, B, start.wrapping_add(5), 10),
        ];
        assert_eq!(of(&segments), (vec![sent(0, 0, 2, 15)], 0));
    }

    #[test]
    fn a_connection_that_reuses_its_ports_counts_anew() {
        let opens = |at_ns, sequence| Segment {
            protocol: Protocol::Tcp { sequence, opens: true },
            ..tcp(at_ns, A, B, 0, 0)
        };
        let segments = [opens(0, 1_000), tcp(1, A, B, 1_001, 10), opens(2, 0), tcp(3, A, B, 1, 10)];
        assert_eq!(of(&segments), (vec![sent(0, 1, 3, 20)], 0));
    }

    #[test]
    fn datagrams_count_each_and_other_addresses_are_counted_apart() {
        let udp = |at_ns, to| Segment { protocol: Protocol::Udp, ..tcp(at_ns, A, to, 0, 7) };
        let segments = [udp(0, B), udp(1, B), udp(2, ELSEWHERE), udp(3, A)];
        assert_eq!(of(&segments), (vec![sent(0, 0, 1, 14)], 7));
    }
}
