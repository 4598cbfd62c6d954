//! A port: a discipline in front of a transmitter.

use ethermem_engine::topology::{Backlog, Transmitter};
use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes, Ps};

use super::{Discipline, Packet, PacketId, Packets};

/// A packet that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) id: PacketId,
    /// The times at which its first block leaves, and its last.
    pub(crate) start: Ps,
    pub(crate) end: Ps,
    /// The time at which it is whole at its next decision.
    pub(crate) whole: Ps,
}

/// A discipline in front of a transmitter.
#[derive(Debug)]
pub(crate) struct Port<Q> {
    pub(crate) link: Transmitter,
    pub(crate) queue: Q,
    /// Time from the end of a frame to its next decision.
    pub(crate) latency: Ps,
    /// Number of packets that the discipline keeps.
    held: u32,
    /// Number of packets that lost their data here.
    pub(crate) trimmed: u64,
    /// True if an event at the end of the current frame is pending.
    pub(crate) waking: bool,
    backlog: Backlog,
    /// The latest end of a message that this port has seen, and the slots it had taken by then.
    /// What hosts send after the last message does not count as the run's load.
    finished: Ps,
    taken: Blocks,
}

impl<Q> Port<Q> {
    pub(crate) fn new(link: Transmitter, queue: Q, latency: Ps) -> Port<Q> {
        let backlog = Backlog::new(link.slot());
        let (finished, taken) = (Ps::ZERO, Blocks(0));
        let (held, trimmed, waking) = (0, 0, false);
        Port { link, queue, latency, held, trimmed, waking, backlog, finished, taken }
    }

    /// Number of bytes that wait or are still to be sent.
    pub(crate) fn queued_bytes(&self, now: Ps) -> u64 {
        (self.backlog.blocks() + self.link.backlog(now)).0 * BLOCK_PAYLOAD_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Number of slots taken until `finished`, the end of the last message.
    pub(crate) fn taken(&self, finished: Ps) -> Blocks {
        if self.finished == finished { self.taken } else { self.taken_by(finished) }
    }

    /// Number of slots taken until `finished`, if nothing was sent since.
    fn taken_by(&self, finished: Ps) -> Blocks {
        let total = self.link.slots().total.0;
        Blocks(total.saturating_sub(self.link.backlog(finished).0))
    }

    /// Records the end of a message, if nothing was sent since.
    #[inline]
    pub(crate) fn finish(&mut self, finished: Ps) {
        if self.finished != finished {
            self.taken = self.taken_by(finished);
            self.finished = finished;
        }
    }

    /// The backlog of this port, if it orders packets itself.
    pub(crate) fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Offers a packet that has arrived. `Ok` returns the packet if it starts, or nothing if it
    /// waits; `Err` means that it is dropped. Other packets that were dropped for it are in
    /// `dropped`.
    #[inline]
    pub(crate) fn offer<H>(
        &mut self,
        now: Ps,
        packets: &mut Packets<H>,
        id: PacketId,
        dropped: &mut Vec<PacketId>,
    ) -> Result<Option<Sent>, ()>
    where
        H: Copy,
        Q: Discipline<H>,
    {
        let free = if Q::IN_ORDER { self.link.free() } else { self.link.opens(now) };
        let idle = self.held == 0 && !self.waking && free <= now;
        if !Q::IN_ORDER && idle && self.queue.passes(packets, id) {
            let packet = &packets[id];
            self.backlog.pass_through(packet.frame.line_blocks());
            return Ok(Some(self.start(now, id, packet)));
        }
        let queued = self.queued_bytes(now);
        let kept = self.queue.offer(packets, id, queued, dropped);
        if Q::IN_ORDER {
            return if kept { Ok(Some(self.start(now, id, &packets[id]))) } else { Err(()) };
        }
        if Q::TRIMS {
            let trimmed = self.queue.trimmed();
            self.trimmed += trimmed.packets;
            self.backlog.remove(now, trimmed.kept_blocks);
        }
        for &id in dropped.iter() {
            self.leave(now, &packets[id]);
        }
        if !kept {
            return Err(());
        }
        let packet = &packets[id];
        self.held += 1;
        self.backlog.add(now, packet.frame.line_blocks(), free);
        if self.waking || free > now { Ok(None) } else { Ok(self.next(now, packets)) }
    }

    /// The link is free: starts the next packet, if one waits.
    #[inline]
    pub(crate) fn next<H: Copy>(&mut self, now: Ps, packets: &Packets<H>) -> Option<Sent>
    where
        Q: Discipline<H>,
    {
        let id = self.queue.take(packets)?;
        let packet = &packets[id];
        self.leave(now, packet);
        Some(self.start(now, id, packet))
    }

    fn leave<H>(&mut self, now: Ps, packet: &Packet<H>) {
        self.held -= 1;
        self.backlog.remove(now, packet.frame.line_blocks());
    }

    #[inline]
    fn start<H>(&mut self, now: Ps, id: PacketId, packet: &Packet<H>) -> Sent {
        let data = Bytes(packet.data_bytes.into()).to_blocks();
        let start = self.link.send(now, packet.frame.line_blocks(), data);
        let end = start + self.link.tail(Blocks(u64::from(packet.frame.tail) + 1));
        Sent { id, start, end, whole: end + self.latency }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::{DropTail, Frame};
    use ethermem_engine::config::{Background, FrameArbitration};
    use ethermem_engine::topology::Sharing;

    /// First in, first out; the discipline keeps the order, and not the link.
    #[derive(Default)]
    struct Kept(VecDeque<PacketId>);

    impl Discipline<()> for Kept {
        fn offer(
            &mut self,
            _: &mut Packets<()>,
            id: PacketId,
            _: u64,
            _: &mut Vec<PacketId>,
        ) -> bool {
            self.0.push_back(id);
            true
        }

        fn take(&mut self, _: &Packets<()>) -> Option<PacketId> {
            self.0.pop_front()
        }
    }

    const SLOT: Ps = Ps(640);
    const LATENCY: Ps = Ps(5_000);

    fn packet(packets: &mut Packets<()>) -> PacketId {
        packets.insert(Packet::sample(0, 0, Frame::of(100)))
    }

    fn port<Q>(queue: Q) -> Port<Q> {
        port_beside(0.0, queue)
    }

    /// A port whose link carries other frames, too, which come after memory.
    fn port_beside<Q>(load: f64, queue: Q) -> Port<Q> {
        let arbitration = FrameArbitration::Strict;
        let background = Background { load, frame_bytes: 1_518, arbitration };
        let link = Transmitter::new(SLOT, &background, Sharing::of_frames(&background), 1, 0);
        Port::new(link, queue, LATENCY)
    }

    /// Mean wait, in service times, of Poisson arrivals at `load`.
    fn mean_wait<Q: Discipline<()>>(queue: Q, load: f64, arrivals: u32) -> f64 {
        let (mut packets, mut port, mut dropped) = (Packets::default(), port(queue), Vec::new());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
        let service = (SLOT * Frame::of(100).line_blocks().0).0 as f64;
        let unloaded = SLOT * u64::from(Frame::of(100).tail) + LATENCY;
        let wait = |arrived: &mut VecDeque<Ps>, sent: Sent| {
            let since = arrived.pop_front().expect("it arrived");
            (sent.whole - unloaded - since).0 as f64
        };
        let (id, mut arrived) = (packet(&mut packets), VecDeque::new());
        let (mut at, mut waited) = (0.0, 0.0);
        for _ in 0..arrivals {
            at -= libm::log(((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64) * service
                / load;
            let now = Ps(at as u64);
            while !port.is_empty() && port.link.free() <= now {
                let free = port.link.free();
                let sent = port.next(free, &packets).expect("one waits");
                waited += wait(&mut arrived, sent);
            }
            arrived.push_back(now);
            if let Some(sent) = port.offer(now, &mut packets, id, &mut dropped).expect("kept") {
                waited += wait(&mut arrived, sent);
            }
        }
        waited / f64::from(arrivals) / service
    }

    #[test]
    fn a_port_is_an_m_d_1_queue() {
        // The formula of Pollaczek and Khinchine. Over n arrivals the mean wait has a relative
        // standard deviation of some 2 / sqrt(n) / (1 - load): 0.2 % and 0.3 %.
        for (load, arrivals) in [(0.5, 4_000_000), (0.7, 6_000_000)] {
            let expected = load / (2.0 * (1.0 - load));
            let in_order = mean_wait(DropTail::ENDLESS, load, arrivals);
            let ordered = mean_wait(Kept::default(), load, arrivals);
            for mean in [in_order, ordered] {
                assert!((mean / expected - 1.0).abs() < 0.01, "{mean} for {expected} at {load}");
            }
        }
    }

    #[test]
    fn what_comes_during_another_frame_is_chosen_among_when_that_ends() {
        let mut port = port_beside(0.9, crate::Levels::new(2, u64::MAX));
        let (mut packets, mut dropped) = (Packets::default(), Vec::new());
        let [late, urgent] = [1, 0]
            .map(|rank| packets.insert(Packet { rank, ..Packet::sample(0, 0, Frame::of(100)) }));
        // Two packets at some instant, the less urgent one first: a frame is in flight most times.
        let mut waited = 0;
        for round in 1..=100 {
            let now = Ps(round * 1_000_000);
            let started = port.offer(now, &mut packets, late, &mut dropped).expect("kept");
            if started.is_some() {
                continue;
            }
            waited += 1;
            let opens = port.link.opens(now);
            assert!(opens > now && opens <= now + SLOT * 193, "{opens} for {now}");
            let started = port.offer(now, &mut packets, urgent, &mut dropped).expect("kept");
            assert_eq!(started, None);
            let first = port.next(opens, &packets).expect("two wait");
            assert_eq!((first.id, first.start), (urgent, opens));
            let second = port.next(port.link.free(), &packets).expect("one waits");
            assert_eq!(second.id, late);
        }
        assert!(waited > 50, "{waited} of 100 met a frame");
    }

    #[test]
    fn the_tail_is_dropped_and_what_is_behind_k_is_marked() {
        let line = Frame::of(100).line_bytes();
        let mut port = port(DropTail { limit_bytes: 4 * line, mark_bytes: 2 * line });
        let (mut packets, mut dropped) = (Packets::default(), Vec::new());
        let mut offer = |now: Ps| {
            let id = packet(&mut packets);
            let kept = port.offer(now, &mut packets, id, &mut dropped).is_ok();
            (kept, packets[id].marked)
        };
        let offers: Vec<_> = (0..5).map(|_| offer(Ps(0))).collect();
        let clear = (true, false);
        assert_eq!(offers, [clear, clear, clear, (true, true), (false, false)]);
        // One packet has left.
        assert_eq!(offer(SLOT * Frame::of(100).line_blocks().0), (true, true));
    }
}
