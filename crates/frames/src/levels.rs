//! Strict priorities, of which commodity switches have a few.

use std::collections::VecDeque;

use super::{Discipline, Packet, PacketId, Packets};

/// A queue with priority levels. The lowest rank leaves first, each level in the order of arrival.
/// A packet without room replaces the last arrival of the least urgent level below its own.
#[derive(Clone, Debug)]
pub struct Levels {
    limit_bytes: u64,
    levels: Vec<VecDeque<PacketId>>,
}

impl Levels {
    /// A queue with this many levels, which together keep at most `limit_bytes`, including the rest
    /// of the frame being sent. `u64::MAX` means no limit. Ranks past the last level belong to the
    /// last.
    #[must_use]
    pub fn new(levels: usize, limit_bytes: u64) -> Levels {
        Levels { limit_bytes, levels: vec![VecDeque::new(); levels] }
    }

    fn level<H>(&self, packet: &Packet<H>) -> usize {
        (packet.rank as usize).min(self.levels.len() - 1)
    }
}

impl<H: Copy> Discipline<H> for Levels {
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        queued_bytes: u64,
        dropped: &mut Vec<PacketId>,
    ) -> bool {
        let level = self.level(&packets[id]);
        let line_bytes = packets[id].frame.line_bytes();
        let mut queued_bytes = queued_bytes;
        while queued_bytes.saturating_add(line_bytes) > self.limit_bytes {
            let mut under = self.levels[level + 1..].iter_mut().rev();
            let Some(last) = under.find_map(VecDeque::pop_back) else { return false };
            queued_bytes -= packets[last].frame.line_bytes();
            dropped.push(last);
        }
        self.levels[level].push_back(id);
        true
    }

    #[inline]
    fn passes(&self, packets: &Packets<H>, id: PacketId) -> bool {
        packets[id].frame.line_bytes() <= self.limit_bytes
    }

    fn take(&mut self, _packets: &Packets<H>) -> Option<PacketId> {
        self.levels.iter_mut().find_map(VecDeque::pop_front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    fn offer(queue: &mut Levels, packets: &mut Packets<()>, rank: u32, queued: u64) -> Offer {
        let id = packets.insert(Packet::sample(0, rank, Frame::of(1_500)));
        let mut dropped = Vec::new();
        let kept = queue.offer(packets, id, queued, &mut dropped);
        Offer { id, kept, dropped }
    }

    struct Offer {
        id: PacketId,
        kept: bool,
        dropped: Vec<PacketId>,
    }

    #[test]
    fn the_most_urgent_level_leaves_first_in_its_own_order() {
        let (mut queue, mut packets) = (Levels::new(3, u64::MAX), Packets::default());
        let offered = [2, 1, 9, 0, 1].map(|rank| offer(&mut queue, &mut packets, rank, 0).id);
        let taken: Vec<_> = std::iter::from_fn(|| queue.take(&packets)).collect();
        assert_eq!(taken, [3, 1, 4, 0, 2].map(|place| offered[place]));
    }

    #[test]
    fn a_full_queue_drops_the_last_of_the_least_urgent_level_under_the_new_one() {
        let full = Frame::of(1_500).line_bytes();
        let (mut queue, mut packets) = (Levels::new(3, 4 * full), Packets::default());
        // One packet is being sent.
        for (place, rank) in [2, 1, 2].into_iter().enumerate() {
            assert!(offer(&mut queue, &mut packets, rank, (place as u64 + 1) * full).kept);
        }
        let equal = offer(&mut queue, &mut packets, 2, 4 * full);
        assert!(!equal.kept && equal.dropped.is_empty());
        for (rank, victim) in [(1, Some(2)), (0, Some(0)), (1, None), (0, Some(4))] {
            let offer = offer(&mut queue, &mut packets, rank, 4 * full);
            assert_eq!(
                (offer.kept, offer.dropped),
                (victim.is_some(), victim.into_iter().collect())
            );
        }
    }
}
