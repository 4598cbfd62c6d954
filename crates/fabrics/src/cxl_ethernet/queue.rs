//! The queue of a port: first come, first served, with a limit; it can be paused by a switch.

use std::collections::VecDeque;

use ethermem_engine::topology::PortKind;
use ethermem_frames::{Discipline, PacketId, Packets};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// First come, first served. A port of a switch obeys pause frames; a node does not: it takes them
/// for a signal.
#[derive(Debug)]
pub struct Fifo {
    limit_bytes: u64,
    /// Of 2^32 packets, how many are lost.
    loss: u64,
    draws: SplitMix64,
    obeys: bool,
    paused: bool,
    waiting: VecDeque<PacketId>,
}

impl Fifo {
    /// The queue of a port, with this buffer. Links to nodes lose `loss_ppm` of a million packets.
    pub(super) fn new(kind: PortKind, buffer_bytes: u64, loss_ppm: u32, seed: u64) -> Fifo {
        let loses = kind == PortKind::HostDown;
        let loss = if loses { (u64::from(loss_ppm) << 32) / 1_000_000 } else { 0 };
        Fifo {
            limit_bytes: kind.queue_limit_bytes(buffer_bytes),
            loss,
            draws: SplitMix64::seed_from_u64(seed),
            obeys: kind != PortKind::HostUp,
            paused: false,
            waiting: VecDeque::new(),
        }
    }
}

impl<H: Copy + Send> Discipline<H> for Fifo {
    fn offer(
        &mut self,
        packets: &mut Packets<H>,
        id: PacketId,
        queued_bytes: u64,
        _dropped: &mut Vec<PacketId>,
    ) -> bool {
        let is_lost = self.loss > 0 && self.draws.next_u64() >> 32 < self.loss;
        if is_lost || queued_bytes + packets[id].frame.line_bytes() > self.limit_bytes {
            return false;
        }
        self.waiting.push_back(id);
        true
    }

    #[inline]
    fn passes(&self, _packets: &Packets<H>, _id: PacketId) -> bool {
        self.loss == 0 && !self.paused
    }

    fn take(&mut self, _packets: &Packets<H>) -> Option<PacketId> {
        if self.paused { None } else { self.waiting.pop_front() }
    }

    fn pause(&mut self, paused: bool) {
        self.paused = paused && self.obeys;
    }

    fn is_blocked(&self) -> bool {
        self.paused
    }
}
