//! Ethernet frames that share a link with memory traffic.

use ethermem_edm::Arbitration;
use ethermem_units::{Blocks, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::config::Background;

/// Bytes of a frame on the line beside itself: preamble and inter-packet gap.
const PREAMBLE_AND_GAP_BYTES: u32 = 20;

/// Poisson arrivals of equal frames into a queue that drains into the slots memory leaves.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    slot: Ps,
    frame: Blocks,
    mean_gap_ps: f64,
    arbitration: Arbitration,
    rng: Xoshiro256PlusPlus,
    next: Ps,
    arrived: u64,
    backlog: Blocks,
    /// The backlog is right at this time.
    at: Ps,
    /// Slots that frames may take before the next item, for those the last item took of them.
    owed: Blocks,
}

impl Frames {
    pub(super) fn new(
        slot: Ps,
        background: &Background,
        arbitration: Arbitration,
        seed: u64,
        stream: u64,
    ) -> Frames {
        let bytes = u64::from(background.frame_bytes + PREAMBLE_AND_GAP_BYTES);
        let frame = ethermem_units::Bytes(bytes).to_blocks();
        let mut frames = Frames {
            slot,
            frame,
            mean_gap_ps: (slot.0 * frame.0) as f64 / background.load,
            arbitration,
            rng: Xoshiro256PlusPlus::seed_from_u64(
                seed ^ (stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
            next: Ps::ZERO,
            arrived: 0,
            backlog: Blocks(0),
            at: Ps::ZERO,
            owed: Blocks(0),
        };
        frames.next = frames.gap();
        frames
    }

    pub(super) fn counts(&self) -> (u64, u64) {
        (self.arrived, self.backlog.0)
    }

    fn gap(&mut self) -> Ps {
        // 53 bits in (0, 1]; libm's logarithm has the same bits on every platform.
        let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        Ps((-libm::log(uniform) * self.mean_gap_ps) as u64)
    }

    /// When an item may start that is ready at `ready` on a link that memory leaves at `free`.
    // Not inlined: most links have no frames, and their path is to stay short.
    #[inline(never)]
    pub(super) fn admit(&mut self, ready: Ps, free: Ps, blocks: Blocks) -> Ps {
        // Until `free` memory held the link: frames only arrived.
        self.arrive_until(free);
        self.at = self.at.max(free);
        if ready > free {
            self.drain_until(ready);
        }
        let mut start = self.at.max(ready);
        if self.arbitration == Arbitration::Fair {
            let turn = Blocks(self.owed.0.min(self.backlog.0));
            self.backlog -= turn;
            start += self.slot * turn.0;
        }
        self.at = start;
        let end = start + self.slot * blocks.0;
        self.arrive_until(end);
        self.owed = if self.backlog.0 > 0 { blocks } else { Blocks(0) };
        start
    }

    fn arrive_until(&mut self, end: Ps) {
        while self.next <= end {
            self.backlog += self.frame;
            self.arrived += 1;
            let gap = self.gap();
            self.next += gap;
        }
    }

    /// Frames have the link to themselves until `end`; a block under way then is finished.
    fn drain_until(&mut self, end: Ps) {
        while self.at < end {
            if self.backlog.0 == 0 {
                if self.next > end {
                    return;
                }
                self.at = self.at.max(self.next);
                let next = self.next;
                self.arrive_until(next);
            }
            let until = end.min(self.next.max(self.at + self.slot));
            let slots = (until - self.at).0.div_ceil(self.slot.0).min(self.backlog.0);
            self.backlog -= Blocks(slots);
            // Frames waited for nobody here, so nothing is owed for what they took.
            self.owed = Blocks(self.owed.0.saturating_sub(slots));
            self.at += self.slot * slots;
            let at = self.at;
            self.arrive_until(at);
        }
    }
}
