//! Ethernet frames that share a link with memory traffic.

use std::collections::VecDeque;

use ethermem_edm::Arbitration;
use ethermem_units::{Blocks, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::sharing::Cut;
use super::{GAP_BYTES, PREAMBLE_BYTES, Sharing};
use crate::config::Background;
use crate::metrics::FrameTimes;

/// A fragment that another follows: the preamble, 60 B of the frame, four of mCRC, and what is
/// left of a block (IEEE 802.3br, clause 99: a fragment has at least 64 B).
const FRAGMENT_BLOCKS_MIN: u64 = 9;
/// The last fragment: 64 B with its FCS, the gap of 12 B, and what is left of a block.
const LAST_FRAGMENT_BLOCKS_MIN: u64 = 11;
/// Behind a fragment that another follows: mCRC and gap, 16 B.
const FRAGMENT_END: Blocks = Blocks(2);
/// Before a fragment that is not the first: preamble with SMD-C and fragment count, 8 B.
const FRAGMENT_START: Blocks = Blocks(1);

/// Poisson arrivals of equal frames into a queue, which drains into the slots that memory leaves.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    slot: Ps,
    frame: Blocks,
    mean_gap_ps: f64,
    sharing: Sharing,
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
    /// Number of slots that frames may take before the next item, for the slots that items took
    /// from them.
    owed: Blocks,
}

impl Frames {
    pub(super) fn new(
        slot: Ps,
        background: &Background,
        sharing: Sharing,
        seed: u64,
        stream: u64,
    ) -> Frames {
        let bytes = PREAMBLE_BYTES + u64::from(background.frame_bytes) + GAP_BYTES;
        let frame = ethermem_units::Bytes(bytes).to_blocks();
        let mut frames = Frames {
            slot,
            frame,
            mean_gap_ps: (slot.0 * frame.0) as f64 / background.load,
            sharing,
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
        // Of a frame in flight at the end, the blocks that left count.
        frames.sharing.cut = Cut::Block;
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
        let start = self.open(ready, free);
        let end = start + self.slot * blocks.0;
        self.arrive_until(end);
        self.owed = match self.sharing.cut {
            _ if self.backlog.0 == 0 => Blocks(0),
            Cut::Block => blocks,
            // What is less than a frame is kept for the next turn.
            Cut::Fragment | Cut::End => self.owed + blocks,
        };
        start
    }

    /// When an item that waits since `ready` may start on a link that memory leaves at `free`:
    /// behind the frames that go before it, which are sent.
    #[inline(never)]
    pub(super) fn open(&mut self, ready: Ps, free: Ps) -> Ps {
        // Until `free` memory held the link: frames only arrived.
        self.arrive_until(free);
        self.at = self.at.max(free);
        if ready > free {
            self.drain_until(ready);
        }
        let mut start = self.at.max(ready);
        if self.sharing.turns == Arbitration::Fair {
            let owed = self.owed.0.min(self.backlog.0);
            let turn = match self.sharing.cut {
                Cut::Block => Blocks(owed),
                Cut::Fragment | Cut::End => Blocks(owed - owed % self.frame.0),
            };
            self.send(start, turn);
            self.owed -= turn;
            start += self.slot * turn.0;
        }
        self.at = start;
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

    /// Number of blocks left of the first waiting frame.
    fn first_left(&self) -> u64 {
        // All frames are equal, so the backlog tells how much of the first frame is left.
        self.backlog.0 - self.frame.0 * (self.waiting.len() as u64).saturating_sub(1)
    }

    /// Sends this many blocks of the backlog, from `start` on.
    fn send(&mut self, start: Ps, blocks: Blocks) {
        let mut left = self.first_left();
        self.backlog -= blocks;
        while left <= blocks.0
            && let Some(arrived) = self.waiting.pop_front()
        {
            self.times.record(start + self.slot * left - arrived);
            left += self.frame.0;
        }
    }

    /// Lets frames use the link alone until memory comes at `end`. The frame in flight then
    /// continues as far as it must.
    fn drain_until(&mut self, end: Ps) {
        while self.at < end {
            if self.backlog.0 == 0 {
                if self.next > end {
                    return;
                }
                self.at = self.at.max(self.next);
                let next = self.next;
                self.arrive_until(next);
                if self.at >= end {
                    return;
                }
            }
            let (slots, is_cut) = self.sent_before(end);
            self.send(self.at, Blocks(slots));
            // Frames delayed no item here, so these slots are not owed for.
            self.owed = Blocks(self.owed.0.saturating_sub(slots));
            self.at += self.slot * slots;
            if is_cut {
                self.at += self.slot * FRAGMENT_END.0;
                self.backlog += FRAGMENT_START;
            }
            let at = self.at;
            self.arrive_until(at);
        }
    }

    /// The next blocks of the first frame, or of several: all that go before memory, which comes at
    /// `end`, or those until the next arrival; and whether a frame is cut behind them.
    fn sent_before(&self, end: Ps) -> (u64, bool) {
        let slots_until = |time: Ps| (time - self.at).0.div_ceil(self.slot.0);
        let left = self.first_left();
        match self.sharing.cut {
            Cut::Block => {
                let until = end.min(self.next.max(self.at + self.slot));
                (slots_until(until).min(self.backlog.0), false)
            }
            Cut::End => (left, false),
            Cut::Fragment => {
                let fragment = slots_until(end).max(FRAGMENT_BLOCKS_MIN);
                let is_cut = left >= fragment + LAST_FRAGMENT_BLOCKS_MIN;
                (if is_cut { fragment } else { left }, is_cut)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FrameArbitration;
    use crate::metrics::FrameStats;

    const SLOT: Ps = Ps(640);

    fn frames(load: f64, arbitration: Arbitration) -> Frames {
        let background =
            Background { load, frame_bytes: 1518, arbitration: FrameArbitration::default() };
        Frames::new(SLOT, &background, Sharing::in_phy(arbitration), 7, 0)
    }

    /// Beside memory in frames, with a first one at `first`.
    fn whole_frames_at(first: Ps, arbitration: FrameArbitration) -> Frames {
        let background = Background { load: 1e-9, frame_bytes: 1518, arbitration };
        let frames = Frames::new(SLOT, &background, Sharing::of_frames(&background), 7, 0);
        Frames { next: first, ..frames }
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
    fn memory_in_frames_waits_for_the_end_of_the_frame_in_flight() {
        for arbitration in [FrameArbitration::Fair, FrameArbitration::Strict] {
            let mut frames = whole_frames_at(Ps(1_000), arbitration);
            // It comes 99 blocks into the frame, and waits for the other 94.
            let start = frames.admit(Ps(64_000), Ps::ZERO, Blocks(10));
            assert_eq!(start, Ps(1_000) + SLOT * 193);
            let whole = stats(&frames, start + SLOT * 10, start + SLOT * 10);
            assert_eq!((whole.sent, whole.waiting_blocks), (1, 0));
            assert_eq!(whole.latency_ns_mean, Some((SLOT * 193).as_ns_f64()));
        }
    }

    #[test]
    fn a_preempted_frame_goes_on_as_a_fragment_of_its_own() {
        let mut frames = whole_frames_at(Ps(1_000), FrameArbitration::Preemptive);
        // Behind 99 blocks come two of mCRC and gap.
        let start = frames.admit(Ps(64_000), Ps::ZERO, Blocks(10));
        assert_eq!(start, Ps(1_000) + SLOT * (99 + 2));
        // Then the other 94, and one of a preamble.
        let end = start + SLOT * 10;
        let cut = stats(&frames, end, end + SLOT * 94);
        assert_eq!((cut.sent, cut.waiting_blocks), (0, 1));
        let whole = stats(&frames, end, end + SLOT * 95);
        assert_eq!(whole.latency_ns_mean, Some((SLOT * (193 + 2 + 10 + 1)).as_ns_f64()));
    }

    #[test]
    fn no_fragment_is_shorter_than_64_bytes() {
        // Ready after so many blocks of the frame; it starts after so many.
        for (ready, starts) in [(1, 9 + 2), (9, 9 + 2), (10, 10 + 2), (182, 182 + 2), (183, 193)] {
            let mut frames = whole_frames_at(Ps(0), FrameArbitration::Preemptive);
            let start = frames.admit(SLOT * ready, Ps::ZERO, Blocks(10));
            assert_eq!(start, SLOT * starts, "ready after {ready} blocks");
        }
    }

    #[test]
    fn whole_frames_take_turns_once_enough_slots_are_owed() {
        let mut frames = whole_frames_at(Ps(0), FrameArbitration::Fair);
        // Items of 50 blocks, back to back: after four of them 200 blocks are owed.
        let mut free = frames.admit(Ps(0), Ps::ZERO, Blocks(50)) + SLOT * 50;
        for item in 2..=4 {
            assert_eq!(frames.admit(Ps(0), free, Blocks(50)), free, "item {item}");
            free += SLOT * 50;
        }
        assert_eq!(frames.admit(Ps(0), free, Blocks(50)), free + SLOT * 193);
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
