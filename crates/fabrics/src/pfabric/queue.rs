//! A port's queue: priority dequeue, priority drop, and the rule against starvation (section 4.2).

use ethermem_frames::{Discipline, FlowId, PacketId, Packets};
use ethermem_workload::NodeIndex;

/// The packets of one port, in the order of arrival.
#[derive(Clone, Debug)]
pub struct PriorityQueue {
    limit_bytes: u64,
    bytes: u64,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    rank: u32,
    flow: FlowId,
    source: NodeIndex,
    line_bytes: u16,
    id: PacketId,
}

impl PriorityQueue {
    /// A queue that keeps at most `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: u64) -> PriorityQueue {
        PriorityQueue { limit_bytes, bytes: 0, waiting: Vec::new() }
    }

    fn remove(&mut self, place: usize) -> PacketId {
        let gone = self.waiting.remove(place);
        self.bytes -= u64::from(gone.line_bytes);
        gone.id
    }

    /// The place of the least urgent packet; of several, the last to arrive.
    fn worst(&self) -> Option<usize> {
        let places = self.waiting.iter().enumerate();
        places.max_by_key(|(place, waiting)| (waiting.rank, *place)).map(|(place, _)| place)
    }
}

impl<H> Discipline<H> for PriorityQueue {
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        _queued_bytes: u64,
        dropped: &mut Vec<PacketId>,
    ) -> bool {
        let packet = &packets[id];
        let line_bytes = packet.frame.line_bytes();
        while self.bytes + line_bytes > self.limit_bytes {
            match self.worst() {
                Some(worst) if self.waiting[worst].rank > packet.rank => {
                    dropped.push(self.remove(worst));
                }
                _ => return false,
            }
        }
        self.bytes += line_bytes;
        let (rank, flow, source) = (packet.rank, packet.flow, packet.source);
        self.waiting.push(Waiting { rank, flow, source, line_bytes: line_bytes as u16, id });
        true
    }

    #[inline]
    fn passes(&self, packets: &Packets<H>, id: PacketId) -> bool {
        packets[id].frame.line_bytes() <= self.limit_bytes
    }

    fn take(&mut self, _packets: &Packets<H>) -> Option<PacketId> {
        // The first arrival of the most urgent packets determines the flow. The flow's first packet
        // is taken, which may have been sent when more of the flow remained.
        let mut best = *self.waiting.first()?;
        let mut first = 0;
        for (place, waiting) in self.waiting.iter().enumerate().skip(1) {
            if best.rank == 0 {
                break;
            }
            if waiting.rank < best.rank {
                (best, first) = (*waiting, place);
            }
        }
        let same = |at: &Waiting| at.flow == best.flow && at.source == best.source;
        let first = self.waiting[..first].iter().position(same).unwrap_or(first);
        Some(self.remove(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethermem_frames::{Frame, Packet};

    struct Case {
        packets: Packets<()>,
        queue: PriorityQueue,
        dropped: Vec<PacketId>,
    }

    /// A queue with room for three full frames.
    fn case() -> Case {
        let queue = PriorityQueue::new(3 * Frame::of(1_500).line_bytes());
        Case { packets: Packets::default(), queue, dropped: Vec::new() }
    }

    impl Case {
        fn offer(&mut self, flow: FlowId, rank: u32, payload: u64) -> (PacketId, bool) {
            let packet = Packet::sample(flow, rank, Frame::of(payload));
            let id = self.packets.insert(packet);
            (id, self.queue.offer(&mut self.packets, id, 0, &mut self.dropped))
        }

        fn take(&mut self) -> Option<PacketId> {
            self.queue.take(&self.packets)
        }
    }

    #[test]
    fn the_most_urgent_flow_leaves_first_in_its_own_order() {
        let mut case = case();
        let (long, _) = case.offer(1, 9_000, 1_500);
        let (early, _) = case.offer(2, 5_000, 1_500);
        let (late, _) = case.offer(2, 4_000, 1_500);
        assert_eq!([case.take(), case.take(), case.take()], [early, late, long].map(Some));
        assert_eq!(case.take(), None);
    }

    #[test]
    fn a_full_queue_drops_the_least_urgent_of_all() {
        let mut case = case();
        let (long, _) = case.offer(1, 9_000, 1_500);
        let (_, kept) = case.offer(2, 5_000, 1_500);
        assert!(kept);
        let (longest, _) = case.offer(3, 9_000, 1_500);
        assert!(!case.offer(4, 9_000, 1_500).1);
        assert!(case.dropped.is_empty());
        // Of equal packets the last to arrive is dropped.
        assert!(case.offer(5, 1_000, 1_500).1);
        assert_eq!(case.dropped, [longest]);
        assert!(case.offer(6, 1_000, 0).1);
        assert_eq!(case.dropped, [longest, long]);
        // The long packet left room for more than the short one.
        assert!(case.offer(7, 9_000, 0).1);
        assert_eq!(case.dropped.len(), 2);
    }
}
