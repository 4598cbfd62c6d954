//! One direction of a link, whose block slots are assigned in the order of requests.

use std::collections::VecDeque;

use ethermem_units::{Blocks, Ps};

use super::Sharing;
use super::frames::Frames;
use crate::config::{Background, FrameArbitration};
use crate::metrics::{FrameStats, FrameTimes};

/// Slots of a link that memory traffic took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Number of all slots.
    pub total: Blocks,
    /// Number of slots that carried data of messages.
    pub data: Blocks,
}

#[derive(Clone, Copy, Debug)]
struct QueuedItem {
    name: u32,
    start: Ps,
    blocks: Blocks,
    stream: Stream,
}

/// The items that an item must not overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Data, which overtakes no item.
    Data(u16),
    /// An urgent item that must not overtake waiting data of this stream.
    UrgentBehind(u16),
    /// An urgent item: it overtakes all waiting data, and no urgent item.
    Urgent,
}

/// A transmitter. Items of a class leave in the order of requests, each item's blocks back to back.
/// The start of an item is known when it is handed over, so no queue of items is kept. An urgent
/// item goes before the others that have not started, and moves them.
///
/// Ethernet frames that share the link are kept as a backlog of blocks, which is updated when
/// memory requests slots. A frame may come between two items but never into one, and [`Sharing`]
/// says where memory may cut a frame.
#[derive(Clone, Debug)]
pub struct Transmitter {
    slot: Ps,
    /// The time at which the last item's last slot ends.
    free: Ps,
    slots: Slots,
    /// Maximum time that the queued items, including one just handed over, ever took to send.
    backlog_max: Ps,
    /// Sum over items of picoseconds waited times picoseconds of their blocks.
    waited_ps2: u128,
    /// The frames, boxed so that a link without them is small.
    frames: Option<Box<Frames>>,
    /// Waiting items in order: the first starts when the link is next free.
    waiting: VecDeque<QueuedItem>,
    /// Number of blocks of the waiting items.
    waiting_blocks: Blocks,
    /// The time at which the last started item ends.
    started_until: Ps,
    /// Number of data blocks that started since they were last taken: they cannot be put off any
    /// more.
    started_data: Blocks,
}

impl Transmitter {
    /// A link on which a block takes `slot`. Background frames are drawn from `seed` and the number
    /// of the `stream`.
    #[must_use]
    pub fn new(
        slot: Ps,
        background: &Background,
        sharing: Sharing,
        seed: u64,
        stream: u64,
    ) -> Transmitter {
        let frames = (background.load > 0.0)
            .then(|| Box::new(Frames::new(slot, background, sharing, seed, stream)));
        Transmitter {
            slot,
            free: Ps::ZERO,
            slots: Slots::default(),
            backlog_max: Ps::ZERO,
            waited_ps2: 0,
            frames,
            waiting: VecDeque::new(),
            waiting_blocks: Blocks(0),
            started_until: Ps::ZERO,
            started_data: Blocks(0),
        }
    }

    /// A link beside the network's own, without background frames.
    #[must_use]
    pub fn without_frames(slot: Ps) -> Transmitter {
        let arbitration = FrameArbitration::Fair;
        let background = Background { load: 0.0, frame_bytes: 0, arbitration };
        Transmitter::new(slot, &background, Sharing::of_frames(&background), 0, 0)
    }

    /// Sends an item of `blocks`, `data` of which carry data, as soon as it is `ready` and its turn
    /// has come. Returns the time at which its first block starts.
    ///
    /// Items must be handed over in the order in which they become ready.
    #[inline]
    pub fn send(&mut self, ready: Ps, blocks: Blocks, data: Blocks) -> Ps {
        let start = self.append(ready, blocks, data);
        self.backlog_max = self.backlog_max.max(self.free - ready);
        start
    }

    #[inline]
    fn append(&mut self, ready: Ps, blocks: Blocks, data: Blocks) -> Ps {
        let mut start = ready.max(self.free);
        if let Some(frames) = &mut self.frames {
            start = frames.admit(ready, self.free, blocks);
        }
        let length = self.slot * blocks.0;
        self.free = start + length;
        self.count(ready, start, length);
        self.slots.total += blocks;
        self.slots.data += data;
        start
    }

    /// Sends as [`Transmitter::send`] does, but an urgent item goes before waiting data. Each item
    /// that is put off is reported to `moved`, with its `name`.
    #[inline]
    pub fn send_in(
        &mut self,
        ready: Ps,
        (blocks, data): (Blocks, Blocks),
        (name, stream): (u32, Stream),
        moved: impl FnMut(u32, Ps),
    ) -> Ps {
        self.forget_started(ready);
        if !self.waiting.is_empty() && !matches!(stream, Stream::Data(_)) {
            let place = self.place_of(stream);
            if place < self.waiting.len() {
                let start = self.insert(ready, place, blocks, moved);
                self.waiting.insert(place, QueuedItem { name, start, blocks, stream });
                self.waiting_blocks += blocks;
                self.count_queued(ready);
                return start;
            }
        }
        let start = self.append(ready, blocks, data);
        let item = QueuedItem { name, start, blocks, stream };
        if start > ready {
            self.waiting.push_back(item);
            self.waiting_blocks += blocks;
        } else {
            self.start(&item);
        }
        self.count_queued(ready);
        start
    }

    /// The place of an urgent item: behind the last item that it must not overtake.
    fn place_of(&self, stream: Stream) -> usize {
        let blocks_it = |waiting: &QueuedItem| match (waiting.stream, stream) {
            (Stream::Data(data), Stream::UrgentBehind(own)) => data == own,
            (Stream::Data(_), _) => false,
            _ => true,
        };
        self.waiting.iter().rposition(blocks_it).map_or(0, |last| last + 1)
    }

    /// Assigns the slots of the item at `place` to another, and puts off it and all items behind
    /// it.
    fn insert(
        &mut self,
        ready: Ps,
        place: usize,
        blocks: Blocks,
        mut moved: impl FnMut(u32, Ps),
    ) -> Ps {
        let start = self.waiting[place].start;
        let delay = self.slot * blocks.0;
        for waiting in self.waiting.iter_mut().skip(place) {
            waiting.start += delay;
            moved(waiting.name, delay);
        }
        self.waited_ps2 += u128::from(delay.0) * u128::from((self.free - start).0);
        self.free += delay;
        self.count(ready, start, delay);
        self.slots.total += blocks;
        start
    }

    #[inline]
    fn forget_started(&mut self, now: Ps) {
        while let Some(&first) = self.waiting.front().filter(|waiting| waiting.start <= now) {
            self.waiting.pop_front();
            self.waiting_blocks -= first.blocks;
            self.start(&first);
        }
    }

    #[inline]
    fn start(&mut self, item: &QueuedItem) {
        self.started_until = item.start + self.slot * item.blocks.0;
        if matches!(item.stream, Stream::Data(_)) {
            self.started_data += item.blocks;
        }
    }

    /// Updates the maximum backlog. Frames take slots between items, and do not count as queued.
    #[inline]
    fn count_queued(&mut self, ready: Ps) {
        let under_way = self.started_until.saturating_sub(ready);
        let queued = under_way + self.slot * self.waiting_blocks.0;
        self.backlog_max = self.backlog_max.max(queued);
    }

    /// Takes the number of data blocks that have started by `now`, since the last call, of items
    /// sent with [`Transmitter::send_in`].
    #[inline]
    pub fn take_started_data(&mut self, now: Ps) -> Blocks {
        self.forget_started(now);
        std::mem::take(&mut self.started_data)
    }

    /// The time at which the first waiting item starts, unless it is put off.
    #[must_use]
    pub fn next_start(&self) -> Option<Ps> {
        self.waiting.front().map(|waiting| waiting.start)
    }

    #[inline]
    fn count(&mut self, ready: Ps, start: Ps, length: Ps) {
        if start > ready {
            self.waited_ps2 += u128::from((start - ready).0) * u128::from(length.0);
        }
    }

    /// The time of a block.
    #[must_use]
    pub fn slot(&self) -> Ps {
        self.slot
    }

    /// The earliest start of an item that has waited since `ready`, after the last item and the
    /// frames that go before it. Without frames the time may be in the past.
    #[inline]
    pub fn opens(&mut self, ready: Ps) -> Ps {
        match &mut self.frames {
            None => self.free,
            Some(frames) => frames.open(ready, self.free),
        }
    }

    /// The time at which the last item handed over has left.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Ps {
        self.free
    }

    /// Number of blocks of items handed over that have not left, including a started one.
    #[inline]
    #[must_use]
    pub fn backlog(&self, now: Ps) -> Blocks {
        Blocks(self.free.saturating_sub(now).0.div_ceil(self.slot.0))
    }

    /// Time from the start of an item to the start of its last block: the delay of serialisation.
    #[inline]
    #[must_use]
    pub fn tail(&self, blocks: Blocks) -> Ps {
        self.slot * (blocks.0 - 1)
    }

    /// Number of slots that memory traffic took.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// `taken` slots as a share of the slots until `ended`.
    #[must_use]
    pub fn share(&self, taken: Blocks, ended: Ps) -> f64 {
        if ended == Ps::ZERO {
            return 0.0;
        }
        (taken.0 * self.slot.0) as f64 / ended.0 as f64
    }

    /// Maximum number of blocks that were ever queued, including the one being sent.
    #[must_use]
    pub fn queued_max(&self) -> u64 {
        self.backlog_max.0.div_ceil(self.slot.0)
    }

    /// Mean number of blocks that waited, over time.
    #[must_use]
    pub fn queued_share(&self, ended: Ps) -> f64 {
        if ended == Ps::ZERO {
            return 0.0;
        }
        self.waited_ps2 as f64 / self.slot.0 as f64 / ended.0 as f64
    }

    /// The statistics of the Ethernet frames on these links until `ended`; `None` if they have
    /// none.
    #[must_use]
    pub fn frame_stats<'a>(
        links: impl Iterator<Item = &'a Transmitter>,
        ended: Ps,
    ) -> Option<FrameStats> {
        let (mut times, mut quiet) = (FrameTimes::new(), FrameTimes::new());
        let (mut waiting, mut unloaded) = (Blocks(0), None);
        for (link, frames) in links.filter_map(|link| Some((link, link.frames.as_ref()?))) {
            let (with_memory, without, left) = frames.until(link.free, ended);
            times.add(&with_memory);
            quiet.add(&without);
            waiting += left;
            unloaded = Some(frames.unloaded());
        }
        Some(FrameStats::new(&times, &quiet, unloaded?, waiting.0))
    }
}

#[cfg(test)]
mod tests {
    use ethermem_edm::Arbitration;

    use super::*;

    fn link(load: f64, arbitration: Arbitration) -> Transmitter {
        let arbitration_of_frames = FrameArbitration::Fair;
        let background = Background { load, frame_bytes: 1518, arbitration: arbitration_of_frames };
        Transmitter::new(Ps(640), &background, Sharing::in_phy(arbitration), 7, 0)
    }

    #[test]
    fn items_leave_back_to_back_in_the_order_of_asking() {
        let mut link = link(0.0, Arbitration::Fair);
        assert_eq!(link.send(Ps(100), Blocks(10), Blocks(8)), Ps(100));
        assert_eq!(link.send(Ps(200), Blocks(1), Blocks(0)), Ps(6_500));
        assert_eq!(link.send(Ps(9_000), Blocks(2), Blocks(0)), Ps(9_000));
        assert_eq!(link.slots(), Slots { total: Blocks(13), data: Blocks(8) });
        // 6,300 ps are left of ten blocks, and one more block came.
        assert_eq!(link.queued_max(), 11);
        assert_eq!(link.tail(Blocks(10)), Ps(5_760));
    }

    #[test]
    fn an_urgent_item_overtakes_what_waits_but_its_own_stream_and_other_urgent_ones() {
        let mut link = link(0.0, Arbitration::Fair);
        let mut moves = Vec::new();
        let mut send = |blocks, name, stream| {
            let size = (Blocks(blocks), Blocks(0));
            let start = link.send_in(Ps(0), size, (name, stream), |name, delay| {
                moves.push((name, delay.0 / 640));
            });
            (start.0 / 640, std::mem::take(&mut moves))
        };
        assert_eq!(send(10, 1, Stream::Data(7)), (0, vec![]));
        assert_eq!(send(10, 2, Stream::Data(8)), (10, vec![]));
        assert_eq!(send(10, 3, Stream::Data(9)), (20, vec![]));
        assert_eq!(send(1, 4, Stream::Urgent), (10, vec![(2, 1), (3, 1)]));
        // It goes behind the data of stream 8, which now ends at 21.
        assert_eq!(send(2, 5, Stream::UrgentBehind(8)), (21, vec![(3, 2)]));
        // Urgent items keep their order.
        assert_eq!(send(1, 6, Stream::Urgent), (23, vec![(3, 1)]));
        // 34 slots are taken: 10 + 1 + 10 + 2 + 1 + 10.
        assert_eq!(send(1, 7, Stream::UrgentBehind(9)), (34, vec![]));
    }

    /// Offers memory at half the link, two items at a time, and frames at `load`. Returns the mean
    /// wait in slots.
    fn mean_wait_slots(load: f64, arbitration: Arbitration) -> f64 {
        let mut link = link(load, arbitration);
        let items = 20_000u64;
        for item in 0..items {
            link.send(Ps(item / 2 * 40 * 640), Blocks(10), Blocks(8));
        }
        link.waited_ps2 as f64 / 6_400.0 / 640.0 / items as f64
    }

    #[test]
    fn strict_arbitration_adds_less_than_a_slot_and_fair_up_to_a_turn_of_the_frames() {
        // The second of two items waits for the first.
        let alone = mean_wait_slots(0.0, Arbitration::Strict);
        assert!((alone - 5.0).abs() < 1e-9, "{alone}");
        let strict = mean_wait_slots(0.4, Arbitration::Strict) - alone;
        assert!((0.0..1.0).contains(&strict), "{strict}");
        // With frames waiting, ten of their slots come between the two items.
        let fair = mean_wait_slots(0.4, Arbitration::Fair) - alone;
        assert!((1.0..6.0).contains(&fair), "{fair}");
    }
}
