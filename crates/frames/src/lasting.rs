//! One direction of a connection that outlives messages: a byte stream with many in a packet.
//!
//! The stream has a memory header before each message. A packet is packed when it has its turn at
//! the interface, from all that waits then. Nothing waits for a packet to be full.

use std::collections::{BTreeSet, VecDeque};

use ethermem_engine::keys::{Table, packets, timeout_us};
use ethermem_units::Ps;
use ethermem_workload::InputError;

use super::{Deadlines, FlowId};

/// The way in which messages use connections, and in which connections acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// True if connections outlive messages; false if each message has its own.
    pub lasting: bool,
    /// Number of packets that one acknowledgement covers, while they come in order.
    pub ack_packets: u32,
    /// Maximum time for which an acknowledgement waits for another packet.
    pub ack_delay: Ps,
}

impl Default for ConnectionConfig {
    fn default() -> ConnectionConfig {
        ConnectionConfig { lasting: true, ack_packets: 2, ack_delay: Ps::from_ns(10_000) }
    }
}

impl ConnectionConfig {
    /// Reads its keys from a transport's table.
    ///
    /// # Errors
    /// [`InputError`] with the invalid key.
    pub fn read(table: &Table<'_>) -> Result<ConnectionConfig, InputError> {
        let default = ConnectionConfig::default();
        let lasting = table.choice("connections", &[("lasting", true), ("per-message", false)])?;
        for (key, of) in
            [("ack_packets", true), ("ack_delay_us", true), ("window_packets_initial", false)]
        {
            let name = if of { "lasting" } else { "per-message" };
            table.only(key, &format!("with connections = \"{name}\""), lasting == of)?;
        }
        let acknowledged = ConnectionConfig {
            lasting,
            ack_packets: packets(table, "ack_packets", default.ack_packets)?,
            ack_delay: timeout_us(table, "ack_delay_us", default.ack_delay)?,
        };
        // A flow of one message is acknowledged packet by packet.
        Ok(if lasting { acknowledged } else { ConnectionConfig::PER_MESSAGE })
    }

    /// A connection for each message, and an acknowledgement for each packet.
    pub const PER_MESSAGE: ConnectionConfig =
        ConnectionConfig { lasting: false, ack_packets: 1, ack_delay: Ps::ZERO };
}

/// One direction of a connection, with both its ends.
#[derive(Debug)]
pub(crate) struct Lasting {
    /// The other direction, whose packets carry the acknowledgements of this one.
    pub(crate) reverse: FlowId,
    /// True if a response will come in this direction, behind which nothing may wait.
    pub(crate) promised: bool,
    /// The times of the sender's timeout and of the receiver's acknowledgement.
    pub(crate) deadlines: Deadlines,
    /// Messages of the stream, with their bytes in it, until their last byte is acknowledged.
    messages: VecDeque<(FlowId, u64)>,
    /// Number of these that have arrived.
    arrived: usize,
    /// The first of these that is not in packets as a whole, and its bytes that are.
    unsent: usize,
    packed: u64,
    /// Packets that were sent and are not acknowledged; the first one's position is `acked`.
    segments: VecDeque<Segment>,
    acked: u32,
    /// The position that the receiver expects next.
    expected: u32,
    /// Positions beyond it that have arrived.
    beyond: BTreeSet<u32>,
    /// Number of packets that the receiver has not acknowledged yet.
    owed: u32,
    /// True if the last packet was marked.
    marked: bool,
}

/// A packet of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Bytes of the stream in it.
    pub(crate) bytes: u64,
    /// Bytes of these that are data of messages.
    pub(crate) data_bytes: u64,
    /// Number of messages that end in it.
    ends: usize,
}

/// An acknowledgement that a receiver owes: all packets before `before` have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) before: u32,
    pub(crate) marked: bool,
}

/// What follows from a packet's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The acknowledgement of earlier packets, if the marks change with this one.
    pub(crate) earlier: Option<Answer>,
    /// Number of messages that are whole now.
    pub(crate) whole: usize,
    /// When this packet is acknowledged.
    pub(crate) answer: When,
}

/// The time of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At once, by a packet of its own: the sender learns of a gap or of its end.
    Now(Answer),
    /// At the receiver's next turn, with all packets that have arrived by then.
    InTurn,
    /// After the delay, unless more arrives.
    Later,
}

impl Lasting {
    pub(crate) fn new(reverse: FlowId) -> Lasting {
        Lasting {
            reverse,
            promised: false,
            deadlines: Deadlines::default(),
            messages: VecDeque::new(),
            arrived: 0,
            unsent: 0,
            packed: 0,
            segments: VecDeque::new(),
            acked: 0,
            expected: 0,
            beyond: BTreeSet::new(),
            owed: 0,
            marked: false,
        }
    }

    /// Appends a message that has `bytes` in the stream.
    pub(crate) fn append(&mut self, message: FlowId, bytes: u64) {
        self.messages.push_back((message, bytes));
    }

    /// True if every message is acknowledged, and none is promised.
    pub(crate) fn is_idle(&self) -> bool {
        self.messages.is_empty() && !self.promised
    }

    /// True if a part of a message is in no packet yet.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent < self.messages.len()
    }

    /// Packs the next packet, of at most `bytes_max`. A message begins with a header of
    /// `header_bytes`. The messages of which it has data are added to `carried`.
    pub(crate) fn pack(&mut self, bytes_max: u64, header_bytes: u64, carried: &mut Vec<FlowId>) {
        let mut segment = Segment::default();
        while segment.bytes < bytes_max
            && let Some(&(message, total)) = self.messages.get(self.unsent)
        {
            let part = (total - self.packed).min(bytes_max - segment.bytes);
            let headers = header_bytes.saturating_sub(self.packed).min(part);
            if part > headers {
                carried.push(message);
            }
            segment.bytes += part;
            segment.data_bytes += part - headers;
            self.packed += part;
            if self.packed == total {
                segment.ends += 1;
                self.unsent += 1;
                self.packed = 0;
            }
        }
        self.segments.push_back(segment);
    }

    /// The packet at this position, which is not acknowledged.
    pub(crate) fn segment(&self, position: u32) -> Segment {
        self.segments[(position - self.acked) as usize]
    }

    /// Handles an acknowledgement of the next `newly` packets. Returns how many messages at the
    /// front are acknowledged as a whole.
    pub(crate) fn acknowledge(&mut self, newly: u32) -> usize {
        self.acked += newly;
        self.segments.drain(..newly as usize).map(|segment| segment.ends).sum()
    }

    /// Removes the message at the front, which is acknowledged as a whole.
    pub(crate) fn pop_acknowledged(&mut self) -> FlowId {
        self.arrived -= 1;
        self.unsent -= 1;
        self.messages.pop_front().expect("an acknowledged message was sent").0
    }

    /// Handles a packet that arrived. One acknowledgement covers `ack_packets` in order; a gap, its
    /// end and a change of the marks are told at once (RFC 5681, 4.2; RFC 8257, 3.2).
    pub(crate) fn arrive(&mut self, position: u32, marked: bool, ack_packets: u32) -> Arrival {
        let earlier = (marked != self.marked && self.owed > 0).then(|| self.answer());
        self.marked = marked;
        self.owed += 1;
        if position != self.expected {
            if position > self.expected {
                self.beyond.insert(position);
            }
            return Arrival { earlier, whole: 0, answer: When::Now(self.answer()) };
        }
        let in_order = self.beyond.is_empty();
        let mut whole = 0;
        loop {
            whole += self.segment(self.expected).ends;
            self.expected += 1;
            if !self.beyond.remove(&self.expected) {
                break;
            }
        }
        let answer = match (in_order, self.owed >= ack_packets) {
            (false, _) => When::Now(self.answer()),
            (true, true) => When::InTurn,
            (true, false) => When::Later,
        };
        Arrival { earlier, whole, answer }
    }

    /// The next message that has arrived whole.
    pub(crate) fn next_whole(&mut self) -> FlowId {
        self.arrived += 1;
        self.messages[self.arrived - 1].0
    }

    /// True if the receiver owes an acknowledgement.
    pub(crate) fn owes(&self) -> bool {
        self.owed > 0
    }

    /// The acknowledgement of all that has arrived, which is no longer owed.
    pub(crate) fn answer(&mut self) -> Answer {
        self.owed = 0;
        Answer { before: self.expected, marked: self.marked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: u64 = 16;

    /// Packs a packet; returns the messages of which it has data.
    fn pack(stream: &mut Lasting, bytes_max: u64) -> Vec<FlowId> {
        let mut carried = Vec::new();
        stream.pack(bytes_max, HEADER, &mut carried);
        carried
    }

    fn acknowledge(stream: &mut Lasting, newly: u32) -> Vec<FlowId> {
        (0..stream.acknowledge(newly)).map(|_| stream.pop_acknowledged()).collect()
    }

    #[test]
    fn a_packet_takes_what_waits_and_a_message_may_need_many() {
        let mut stream = Lasting::new(1);
        stream.append(7, HEADER + 64);
        stream.append(8, HEADER);
        stream.append(9, HEADER + 100);
        // 80 B, 16 B and 24 B of the third: its header, and 8 of its data.
        assert_eq!(pack(&mut stream, 120), [7, 9]);
        assert_eq!(stream.segment(0), Segment { bytes: 120, data_bytes: 72, ends: 2 });
        assert_eq!(pack(&mut stream, 120), [9]);
        assert_eq!(stream.segment(1), Segment { bytes: 92, data_bytes: 92, ends: 1 });
        assert!(!stream.has_unsent());
        assert_eq!(stream.arrive(0, false, 2).whole, 2);
        assert_eq!([stream.next_whole(), stream.next_whole()], [7, 8]);
        assert_eq!(acknowledge(&mut stream, 1), [7, 8]);
        assert_eq!(stream.arrive(1, false, 2).whole, 1);
        assert_eq!(stream.next_whole(), 9);
        assert_eq!(acknowledge(&mut stream, 1), [9]);
    }

    #[test]
    fn gaps_and_marks_are_told_at_once_and_the_rest_by_twos() {
        let mut stream = Lasting::new(1);
        for message in 0..9 {
            stream.append(message, 50);
            pack(&mut stream, 50);
        }
        let later = |whole| Arrival { earlier: None, whole, answer: When::Later };
        assert_eq!(stream.arrive(0, false, 2), later(1));
        assert_eq!(stream.arrive(1, false, 2).answer, When::InTurn);
        assert_eq!(stream.answer(), Answer { before: 2, marked: false });
        assert_eq!(stream.arrive(2, false, 2), later(1));
        // The next one is marked: the one before was not, and is acknowledged so.
        let earlier = Some(Answer { before: 3, marked: false });
        let marked = Arrival { earlier, whole: 1, answer: When::Later };
        assert_eq!(stream.arrive(3, true, 2), marked);
        // The packet at 4 is missing, twice; then both later ones are whole with it.
        let told = |before| When::Now(Answer { before, marked: true });
        assert_eq!(stream.arrive(5, true, 2).answer, told(4));
        assert_eq!(stream.arrive(6, true, 2).answer, told(4));
        let filled = Arrival { earlier: None, whole: 3, answer: told(7) };
        assert_eq!(stream.arrive(4, true, 2), filled);
        // A packet that comes again is acknowledged at once, too.
        assert_eq!(stream.arrive(5, true, 2).answer, told(7));
        assert!(!stream.owes());
    }

    proptest! {
        /// Any messages, in packets of any size that arrive in any order and often twice, are whole
        /// once each and in order.
        #[test]
        fn every_message_arrives_once_and_in_order(
            sizes in prop::collection::vec(0..500u64, 1..40),
            bytes_max in 1..200u64,
            picks in prop::collection::vec(any::<prop::sample::Index>(), 1..400),
            covered in 1..5u32,
        ) {
            let mut stream = Lasting::new(1);
            for (message, bytes) in sizes.iter().enumerate() {
                stream.append(message as FlowId, HEADER + bytes);
            }
            let mut packets = 0;
            while stream.has_unsent() {
                pack(&mut stream, bytes_max);
                packets += 1;
            }
            let carried: u64 = (0..packets).map(|at| stream.segment(at).data_bytes).sum();
            prop_assert_eq!(carried, sizes.iter().sum::<u64>());
            let mut whole = Vec::new();
            let random = picks.iter().map(|pick| pick.index(packets as usize) as u32);
            for position in random.chain(0..packets) {
                let arrival = stream.arrive(position, position % 3 == 0, covered);
                whole.extend((0..arrival.whole).map(|_| stream.next_whole()));
            }
            let all: Vec<FlowId> = (0..sizes.len() as FlowId).collect();
            prop_assert_eq!(&whole, &all);
            prop_assert_eq!(acknowledge(&mut stream, packets), all);
        }
    }
}
