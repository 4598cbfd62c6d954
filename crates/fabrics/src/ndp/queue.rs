//! The two queues of a port (section 3.1). Data packets without room are trimmed to their headers;
//! headers and control packets are sent before data.

use std::collections::VecDeque;

use ethermem_frames::{Discipline, Frame, Heading, PacketId, Packets, Trimmed};
use ethermem_units::Blocks;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::Header;

/// The capacities of a port's queues, and their shares of its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Maximum bytes of waiting data packets.
    pub data_bytes: u64,
    /// Maximum bytes of waiting headers and control packets.
    pub header_bytes: u64,
    /// Number of headers sent per data packet while both wait.
    pub headers_per_data: u32,
    /// Probability that an arriving data packet without room is trimmed, and not the last waiting
    /// one.
    pub trim_arriving: f64,
    /// The rest of a trimmed packet.
    pub header: Frame,
}

/// The two queues of a port.
#[derive(Debug)]
pub struct TrimmingQueue {
    limits: Limits,
    data: VecDeque<PacketId>,
    data_bytes: u64,
    headers: VecDeque<PacketId>,
    header_bytes: u64,
    /// Number of consecutive headers sent while data waited.
    in_row: u32,
    trimmed: Trimmed,
    random: SplitMix64,
}

impl TrimmingQueue {
    /// An empty queue, whose choices are drawn from `seed`.
    #[must_use]
    pub fn new(limits: Limits, seed: u64) -> TrimmingQueue {
        TrimmingQueue {
            limits,
            data: VecDeque::new(),
            data_bytes: 0,
            headers: VecDeque::new(),
            header_bytes: 0,
            in_row: 0,
            trimmed: Trimmed::default(),
            random: SplitMix64::seed_from_u64(seed),
        }
    }

    fn trims_arriving(&mut self) -> bool {
        let draw = (self.random.next_u64() >> 11) as f64;
        draw < self.limits.trim_arriving * (1u64 << 53) as f64
    }

    /// The last waiting data packet, if a packet of `line_bytes` has room in its place.
    fn makes_room(&self, packets: &Packets<Header>, line_bytes: u64) -> Option<PacketId> {
        let last = *self.data.back()?;
        let left = self.data_bytes - packets[last].frame.line_bytes();
        (left + line_bytes <= self.limits.data_bytes).then_some(last)
    }

    fn trim(&mut self, packets: &mut Packets<Header>, id: PacketId) -> Blocks {
        self.trimmed.packets += 1;
        packets[id].trim(self.limits.header)
    }

    /// Keeps a packet with the headers. Without room a header turns back, once; a control packet is
    /// lost.
    fn keep_header(&mut self, packets: &mut Packets<Header>, id: PacketId) -> bool {
        let packet = &mut packets[id];
        let line_bytes = packet.frame.line_bytes();
        if self.header_bytes.saturating_add(line_bytes) > self.limits.header_bytes {
            if matches!(packet.header, Header::Data(_)) && packet.heading == Heading::Out {
                packet.heading = Heading::Turning;
            }
            return false;
        }
        self.header_bytes += line_bytes;
        self.headers.push_back(id);
        true
    }
}

impl Discipline<Header> for TrimmingQueue {
    const TRIMS: bool = true;

    fn offer(
        &mut self,
        packets: &mut Packets<Header>,
        id: PacketId,
        _queued_bytes: u64,
        dropped: &mut Vec<PacketId>,
    ) -> bool {
        let (line_bytes, data) = (packets[id].frame.line_bytes(), packets[id].data_bytes > 0);
        if !data {
            return self.keep_header(packets, id);
        }
        if self.data_bytes.saturating_add(line_bytes) > self.limits.data_bytes {
            let last = self.makes_room(packets, line_bytes);
            let Some(last) = last.filter(|_| !self.trims_arriving()) else {
                self.trim(packets, id);
                return self.keep_header(packets, id);
            };
            self.data.pop_back();
            self.data_bytes -= packets[last].frame.line_bytes();
            let blocks = self.trim(packets, last);
            self.trimmed.kept_blocks += blocks;
            if !self.keep_header(packets, last) {
                dropped.push(last);
            }
        }
        self.data_bytes += line_bytes;
        self.data.push_back(id);
        true
    }

    fn trimmed(&mut self) -> Trimmed {
        std::mem::take(&mut self.trimmed)
    }

    fn take(&mut self, packets: &Packets<Header>) -> Option<PacketId> {
        let headers_first = self.data.is_empty() || self.in_row < self.limits.headers_per_data;
        if headers_first && let Some(id) = self.headers.pop_front() {
            self.header_bytes -= packets[id].frame.line_bytes();
            self.in_row = if self.data.is_empty() { 0 } else { self.in_row + 1 };
            return Some(id);
        }
        self.in_row = 0;
        let id = self.data.pop_front()?;
        self.data_bytes -= packets[id].frame.line_bytes();
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethermem_frames::Packet;

    struct Case {
        packets: Packets<Header>,
        queue: TrimmingQueue,
        dropped: Vec<PacketId>,
    }

    /// A queue with room for three full packets and four headers.
    fn case(trim_arriving: f64, headers_per_data: u32) -> Case {
        let header = Frame::of(40);
        let limits = Limits {
            data_bytes: 3 * Frame::of(1_500).line_bytes(),
            header_bytes: 4 * header.line_bytes(),
            headers_per_data,
            trim_arriving,
            header,
        };
        let queue = TrimmingQueue::new(limits, 5);
        Case { packets: Packets::default(), queue, dropped: Vec::new() }
    }

    impl Case {
        fn offer(&mut self, header: Header, data_bytes: u16) -> (PacketId, bool) {
            let frame = Frame::of(40 + if data_bytes > 0 { 16 + u64::from(data_bytes) } else { 0 });
            let packet = Packet { data_bytes, ..Packet::sample_with(0, 1, frame, header) };
            let id = self.packets.insert(packet);
            (id, self.queue.offer(&mut self.packets, id, 0, &mut self.dropped))
        }

        fn data(&mut self) -> (PacketId, bool) {
            self.offer(Header::Data(0), 1_444)
        }

        fn take_all(&mut self) -> Vec<PacketId> {
            std::iter::from_fn(|| self.queue.take(&self.packets)).collect()
        }
    }

    #[test]
    fn a_packet_without_room_or_the_last_that_waits_is_trimmed() {
        for (chance, trimmed, order) in [(1.0, 3, [3, 0, 1, 2]), (0.0, 2, [2, 0, 1, 3])] {
            let mut case = case(chance, 10);
            let ids = [0; 4].map(|_| case.data().0);
            let gone = Frame::of(1_500).line_blocks() - Frame::of(40).line_blocks();
            let kept_blocks = if chance == 0.0 { gone } else { Blocks(0) };
            assert_eq!(case.queue.trimmed(), Trimmed { packets: 1, kept_blocks });
            let packet = &case.packets[ids[trimmed]];
            assert!(packet.trimmed && packet.data_bytes == 0 && packet.rank == 0);
            assert_eq!(packet.frame, Frame::of(40));
            // The header leaves first.
            assert_eq!(case.take_all(), order.map(|place| ids[place]));
        }
    }

    #[test]
    fn half_of_those_trimmed_had_just_come() {
        let mut case = case(0.5, 10);
        let mut arriving = 0;
        for _ in 0..10_000 {
            let (id, _) = case.data();
            arriving += u32::from(case.packets[id].trimmed);
            while case.queue.headers.pop_front().is_some() {}
            case.queue.header_bytes = 0;
        }
        // Binomial, with a standard deviation of 50.
        assert!((4_800..5_200).contains(&arriving), "{arriving}");
    }

    #[test]
    fn headers_leave_first_but_for_a_data_packet_after_so_many() {
        let mut case = case(0.5, 2);
        let data = [case.data().0, case.data().0];
        let control = [0; 4].map(|_| case.offer(Header::Pull(1), 0).0);
        let order = [control[0], control[1], data[0], control[2], control[3], data[1]];
        assert_eq!(case.take_all(), order);
    }

    #[test]
    fn headers_without_room_turn_back_once_and_control_packets_are_lost() {
        let mut case = case(1.0, 10);
        for _ in 0..7 {
            assert!(case.data().1);
        }
        let (turned, kept) = case.data();
        assert_eq!((kept, case.packets[turned].heading), (false, Heading::Turning));
        let (control, kept) = case.offer(Header::Pull(1), 0);
        assert_eq!((kept, case.packets[control].heading), (false, Heading::Out));
        case.packets[turned].heading = Heading::Back;
        let again = case.queue.offer(&mut case.packets, turned, 0, &mut case.dropped);
        assert_eq!((again, case.packets[turned].heading), (false, Heading::Back));
    }

    #[test]
    fn one_that_waited_turns_back_when_it_is_trimmed_for_another() {
        let mut case = case(0.0, 10);
        let ids = [0; 8].map(|_| case.data().0);
        assert_eq!(case.dropped, [ids[6]]);
        assert_eq!(case.packets[ids[6]].heading, Heading::Turning);
        assert_eq!(case.take_all().len(), 7);
    }
}
