//! The queues of a port that may be paused: marks by RED, no drops, two classes.

use std::collections::VecDeque;

use ethermem_frames::{Discipline, PacketId, Packets, UNPAUSED_RANK};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The probability of a mark, by the bytes that a packet finds in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Kmin: queue in bytes up to which no packet is marked.
    pub least_bytes: u64,
    /// Kmax: queue in bytes from which on all packets are marked.
    pub most_bytes: u64,
    /// Pmax: the probability just below Kmax.
    pub chance_max: f64,
}

impl Red {
    /// Parameters with which no packet is marked.
    pub const NEVER: Red = Red { least_bytes: u64::MAX, most_bytes: u64::MAX, chance_max: 0.0 };

    fn chance(&self, queued_bytes: u64) -> f64 {
        if queued_bytes <= self.least_bytes {
            return 0.0;
        }
        if queued_bytes >= self.most_bytes {
            return 1.0;
        }
        let over = (queued_bytes - self.least_bytes) as f64;
        self.chance_max * over / (self.most_bytes - self.least_bytes) as f64
    }
}

/// First in, first out, in two classes. Acknowledgements and notifications go before data; only
/// data is paused and marked.
#[derive(Debug)]
pub struct LosslessQueue {
    red: Red,
    control: VecDeque<PacketId>,
    data: VecDeque<PacketId>,
    paused: bool,
    random: SplitMix64,
}

impl LosslessQueue {
    /// An empty queue, whose marks are drawn from `seed`.
    #[must_use]
    pub fn new(red: Red, seed: u64) -> LosslessQueue {
        let (control, data) = (VecDeque::new(), VecDeque::new());
        LosslessQueue { red, control, data, paused: false, random: SplitMix64::seed_from_u64(seed) }
    }

    fn marks(&mut self, queued_bytes: u64) -> bool {
        let chance = self.red.chance(queued_bytes);
        if chance <= 0.0 {
            return false;
        }
        ((self.random.next_u64() >> 11) as f64) < chance * (1u64 << 53) as f64
    }
}

impl<H: Copy> Discipline<H> for LosslessQueue {
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        queued_bytes: u64,
        _dropped: &mut Vec<PacketId>,
    ) -> bool {
        let packet = &mut packets[id];
        if packet.rank == UNPAUSED_RANK {
            self.control.push_back(id);
        } else {
            packet.marked |= self.marks(queued_bytes);
            self.data.push_back(id);
        }
        true
    }

    fn take(&mut self, _packets: &Packets<H>) -> Option<PacketId> {
        let data = if self.paused { None } else { Some(&mut self.data) };
        self.control.pop_front().or_else(|| data?.pop_front())
    }

    fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    fn is_blocked(&self) -> bool {
        self.paused && self.control.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_a_mark_grows_from_kmin_and_is_one_at_kmax() {
        let red = Red { least_bytes: 1_000, most_bytes: 3_000, chance_max: 0.02 };
        let chances = [0, 1_000, 1_500, 2_500, 3_000, 9_000].map(|queued| red.chance(queued));
        assert_eq!(chances, [0.0, 0.0, 0.005, 0.015, 1.0, 1.0]);
        assert_eq!(Red::NEVER.chance(1 << 40), 0.0);
    }
}
