//! Ethernet frames that share a link with memory traffic.

use std::collections::VecDeque;

use ethermem_edm::Arbitration;
use ethermem_units::{Blocks, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{GAP_BYTES, PREAMBLE_BYTES};
use crate::config::Background;
use crate::metrics::FrameTimes;

/// Poisson arrivals of equal frames into a queue, which drains into the slots that memory leaves.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    slot: Ps,
    frame: Blocks,
    mean_gap_ps: f64,
    arbitration: Arbitration,
    rng: Xoshiro256PlusPlus,
    next: Ps,
    backlog: Blocks,
    /// Arrival times of the frames in the backlog.
    waiting: VecDeque<Ps>,
    times: FrameTimes,
    /// The time at which the link would have sent all frames, without memory traffic.
    quiet_until: Ps,
    quiet: FrameTimes,
    /// The time at which the backlog is valid.
    at: Ps,
    /// Number of slots that frames may take before the next item, for the slots that the last item
    /// took from them.
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
        let bytes = PREAMBLE_BYTES + u64::from(background.frame_bytes) + GAP_BYTES;
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
            backlog: Blocks(0),
            waiting: VecDeque::new(),
            times: FrameTimes::new(),
            quiet_until: Ps::ZERO,
            quiet: FrameTimes::new(),
            at: Ps::ZERO,
            owed: Blocks(0),
        };
        frames.next = frames.gap();
        frames
    }

    /// The frame statistics until `ended`, on a link that memory leaves at `free`: with memory
    /// traffic, without it, and the number of blocks that still wait.
    pub(super) fn until(&self, free: Ps, ended: Ps) -> (FrameTimes, FrameTimes, Blocks) {
        let mut frames = self.clone();
        frames.arrive_until(free);
        frames.at = frames.at.max(free);
        frames.drain_until(ended);
        (frames.times, frames.quiet, frames.backlog)
    }

    /// Time of a frame on an idle link.
    pub(super) fn unloaded(&self) -> Ps {
        self.slot * self.frame.0
    }

    fn gap(&mut self) -> Ps {
        // 53 bits in (0, 1]; libm's logarithm has equal bits on every platform.
        let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        Ps((-libm::log(uniform) * self.mean_gap_ps) as u64)
    }

    /// The start of an item that is ready at `ready`, on a link that memory leaves at `free`.
    // It is not inlined: most links have no frames, and their path must stay short.
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
            self.send(start, turn);
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
            self.waiting.push_back(self.next);
            let quiet_end = self.quiet_until.max(self.next) + self.slot * self.frame.0;
            self.quiet.record(quiet_end - self.next);
            self.quiet_until = quiet_end;
            let gap = self.gap();
            self.next += gap;
        }
    }

    /// Sends this many blocks of the backlog, from `start` on.
    fn send(&mut self, start: Ps, blocks: Blocks) {
        // All frames are equal, so the backlog tells how much of the first frame is left.
        let later = Blocks(self.frame.0 * (self.waiting.len() as u64).saturating_sub(1));
        let mut left = self.backlog.0 - later.0;
        self.backlog -= blocks;
        while left <= blocks.0
            && let Some(arrived) = self.waiting.pop_front()
        {
            self.times.record(start + self.slot * left - arrived);
            left += self.frame.0;
        }
    }

    /// Lets frames use the link alone until `end`; a block in progress then is finished.
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
            self.send(self.at, Blocks(slots));
            // Frames delayed no item here, so these slots are not owed for.
            self.owed = Blocks(self.owed.0.saturating_sub(slots));
            self.at += self.slot * slots;
            let at = self.at;
            self.arrive_until(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::FrameStats;

    const SLOT: Ps = Ps(640);

    fn frames(load: f64, arbitration: Arbitration) -> Frames {
        Frames::new(SLOT, &Background { load, frame_bytes: 1518 }, arbitration, 7, 0)
    }

    /// Frames that arrive at these times; the last one is far ahead.
    fn frames_at(first: Ps, arbitration: Arbitration) -> Frames {
        Frames { next: first, ..frames(1e-9, arbitration) }
    }

    fn stats(frames: &Frames, free: Ps, ended: Ps) -> FrameStats {
        let (times, quiet, waiting) = frames.until(free, ended);
        FrameStats::new(&times, &quiet, frames.unloaded(), waiting.0)
    }

    #[test]
    fn a_frame_that_memory_cuts_takes_its_blocks_and_those_of_memory() {
        let mut frames = frames_at(Ps(1_000), Arbitration::Strict);
        let start = frames.admit(Ps(64_000), Ps::ZERO, Blocks(10));
        // 99 of its 193 blocks began before memory was ready.
        assert_eq!(start, Ps(1_000) + SLOT * 99);
        let end = start + SLOT * 10;
        let cut = stats(&frames, end, end + SLOT * 93);
        assert_eq!((cut.sent, cut.waiting_blocks, cut.latency_ns_mean), (0, 1, None));
        let whole = stats(&frames, end, end + SLOT * 94);
        assert_eq!((whole.sent, whole.waiting_blocks), (1, 0));
        assert_eq!(whole.latency_ns_mean, Some((SLOT * (193 + 10)).as_ns_f64()));
        assert_eq!(whole.latency_ns_mean_without_memory, Some(whole.unloaded_ns));
        let slowdown = whole.slowdown_p99.expect("a frame was sent");
        assert!((slowdown - 203.0 / 193.0).abs() < 1e-12, "{slowdown}");
    }

    #[test]
    fn a_turn_of_the_frames_counts_as_sent() {
        let mut frames = frames_at(Ps(0), Arbitration::Fair);
        let first = frames.admit(Ps(0), Ps::ZERO, Blocks(10));
        assert_eq!(first, Ps(0));
        // Ten blocks of the frame come between the two items, 183 after them.
        let second = frames.admit(Ps(0), SLOT * 10, Blocks(20));
        assert_eq!(second, SLOT * 20);
        let end = SLOT * 40;
        let whole = stats(&frames, end, end + SLOT * 183);
        assert_eq!(whole.latency_ns_mean, Some((SLOT * (193 + 30)).as_ns_f64()));
    }

    #[test]
    fn without_memory_frames_wait_for_each_other_alone() {
        let ended = Ps::from_ns(10_000_000);
        let found = stats(&frames(0.4, Arbitration::Fair), Ps::ZERO, ended);
        assert!(found.sent > 30_000, "{found:?}");
        // M/D/1: load / (2 (1 - load)) of a frame's time waiting. The tolerance is 2 % for this
        // many frames.
        let expected = 1.0 + 0.4 / (2.0 * 0.6);
        let mean = found.slowdown_mean.expect("frames were sent");
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} for {expected}");
        let quiet = found.latency_ns_mean_without_memory.expect("frames arrived");
        // Blocks keep to slots, arrivals do not.
        assert!((found.latency_ns_mean.expect("sent") - quiet).abs() < 0.64, "{found:?}");
    }
}
