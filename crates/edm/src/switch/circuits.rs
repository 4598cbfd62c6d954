//! Virtual circuits: the destination of every port's next granted bytes.

use ethermem_units::Bytes;

/// Number of grants per port that have room from the start, a power of two. A round trip of the
/// shortest chunks at 400 Gb/s has about 300. Far links, slow memory and a transmitter that is
/// shared with Ethernet frames leave more open; the rings then grow.
const OPEN_USUAL: usize = 512;

/// Number of slots of a ring in use at first, a power of two. A ring passes through all of its
/// slots, so only as many as needed are used.
const OPEN_FIRST: usize = 64;

/// Number of slots from the end of one ring to the next: a cache line, so that rings do not begin
/// in equal sets of a cache.
const GAP: usize = 16;

/// The destination of a circuit whose port has failed: its data is dropped.
const NOWHERE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Circuit {
    destination: u16,
    /// Number of granted bytes left, at most a chunk.
    bytes_left: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    head: u32,
    len: u32,
}

/// A first-in-first-out list of circuits per source port, because hosts serve grants in order.
#[derive(Debug)]
pub(super) struct Circuits {
    rings: Vec<Ring>,
    /// The rings' slots: `room` for every ring, and a gap.
    slots: Vec<Circuit>,
    room: usize,
    /// Number of slots that each ring passes through, a power of two.
    capacity: usize,
}

impl Circuits {
    pub(super) fn new(ports: u16) -> Circuits {
        Circuits {
            rings: vec![Ring::default(); ports.into()],
            slots: vec![Circuit::default(); usize::from(ports) * (OPEN_USUAL + GAP)],
            room: OPEN_USUAL,
            capacity: OPEN_FIRST,
        }
    }

    /// Opens a circuit for a grant of `bytes`.
    #[inline]
    pub(super) fn open(&mut self, source: u16, destination: u16, bytes: u32) {
        if self.rings[usize::from(source)].len as usize == self.capacity {
            self.grow();
        }
        let ring = &mut self.rings[usize::from(source)];
        let place = ring.head + ring.len;
        ring.len += 1;
        let slot = self.slot(source, place);
        self.slots[slot] = Circuit { destination, bytes_left: bytes as u16 };
    }

    /// The index of the circuit at a place of a port's ring.
    #[inline]
    fn slot(&self, source: u16, place: u32) -> usize {
        usize::from(source) * (self.room + GAP) + (place as usize & (self.capacity - 1))
    }

    /// Doubles the number of slots of all rings.
    #[cold]
    fn grow(&mut self) {
        if self.capacity == self.room {
            let room = 2 * self.room;
            let mut slots = vec![Circuit::default(); self.rings.len() * (room + GAP)];
            for source in 0..self.rings.len() {
                let from = source * (self.room + GAP);
                let to = source * (room + GAP);
                slots[to..to + self.room].copy_from_slice(&self.slots[from..from + self.room]);
            }
            self.slots = slots;
            self.room = room;
        }
        for (source, ring) in self.rings.iter().enumerate() {
            // Circuits that wrapped to the first slot move behind the last one.
            let first = source * (self.room + GAP);
            let again = (ring.head + ring.len) as usize;
            let again = again.saturating_sub(self.capacity);
            self.slots.copy_within(first..first + again, first + self.capacity);
        }
        self.capacity *= 2;
    }

    /// The destination of a port's next data. `None` when nothing is granted to the port, or when
    /// the destination has failed.
    pub(super) fn next(&self, source: u16) -> Option<u16> {
        let ring = self.rings[usize::from(source)];
        let circuit = self.slots[self.slot(source, ring.head)];
        (ring.len > 0 && circuit.destination != NOWHERE).then_some(circuit.destination)
    }

    /// Number of blocks by which a chunk of `bytes` and the rest of its grant exceed the granted
    /// blocks. Each chunk has `overhead` blocks of framing, and a batch has one chunk per member.
    /// Summed over a grant, this is the excess of all its chunks.
    #[inline]
    pub(super) fn excess_blocks(&self, source: u16, bytes: u64, overhead: u32) -> u32 {
        let ring = self.rings[usize::from(source)];
        let granted = u64::from(self.slots[self.slot(source, ring.head)].bytes_left);
        if ring.len == 0 || bytes >= granted {
            return 0;
        }
        let blocks = |bytes: u64| Bytes(bytes).to_blocks().0 as u32;
        blocks(bytes) + blocks(granted - bytes) - blocks(granted) + overhead
    }

    /// True if the oldest grant of a port allows `bytes`.
    #[inline]
    pub(super) fn allows(&self, source: u16, bytes: u64) -> bool {
        let ring = self.rings[usize::from(source)];
        let left = self.slots[self.slot(source, ring.head)].bytes_left;
        ring.len > 0 && bytes <= u64::from(left)
    }

    /// Uses up granted bytes that arrived; returns their destination. `None` when the data must be
    /// dropped: it exceeds its grant, or the destination has failed.
    #[inline]
    pub(super) fn use_up(&mut self, source: u16, bytes: u64) -> Option<u16> {
        let Ring { head, len } = self.rings[usize::from(source)];
        if len == 0 {
            return None;
        }
        let slot = self.slot(source, head);
        let circuit = &mut self.slots[slot];
        if bytes > u64::from(circuit.bytes_left) {
            return None;
        }
        circuit.bytes_left -= bytes as u16;
        let Circuit { destination, bytes_left } = *circuit;
        if bytes_left == 0 {
            let ring = &mut self.rings[usize::from(source)];
            ring.len -= 1;
            // An empty ring restarts at the first slot, so that the used slots stay few and in the
            // cache.
            ring.head = if ring.len == 0 { 0 } else { (head + 1) & (self.capacity as u32 - 1) };
        }
        (destination != NOWHERE).then_some(destination)
    }

    /// Skips the oldest grant of a port, or the rest of it, which stays unused. Returns its bytes
    /// and, unless that port has failed, its destination. `None` without a grant.
    pub(super) fn skip(&mut self, source: u16) -> Option<(u32, Option<u16>)> {
        let Ring { head, len } = self.rings[usize::from(source)];
        if len == 0 {
            return None;
        }
        let Circuit { destination, bytes_left } = self.slots[self.slot(source, head)];
        let ring = &mut self.rings[usize::from(source)];
        ring.head = (head + 1) & (self.capacity as u32 - 1);
        ring.len -= 1;
        Some((bytes_left.into(), (destination != NOWHERE).then_some(destination)))
    }

    /// Forgets every circuit from a port. Circuits to it keep their places and lead nowhere: their
    /// sources do not know yet, and their data must not take the next circuit. Reports where the
    /// port's own circuits led, and the bytes that will not come by them.
    pub(super) fn fail(&mut self, port: u16, mut lost: impl FnMut(u16, u32)) {
        let Ring { head, len } = self.rings[usize::from(port)];
        for n in 0..len {
            let Circuit { destination, bytes_left } = self.slots[self.slot(port, head + n)];
            if destination != NOWHERE {
                lost(destination, bytes_left.into());
            }
        }
        self.rings[usize::from(port)] = Ring::default();
        for source in 0..self.rings.len() as u16 {
            let Ring { head, len } = self.rings[usize::from(source)];
            for n in 0..len {
                let slot = self.slot(source, head + n);
                if self.slots[slot].destination == port {
                    self.slots[slot].destination = NOWHERE;
                }
            }
        }
    }

    pub(super) fn open_total(&self) -> u64 {
        self.rings.iter().map(|ring| u64::from(ring.len)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_follows_its_grants_in_order_and_never_beyond_them() {
        let mut circuits = Circuits::new(4);
        circuits.open(0, 1, 256);
        circuits.open(0, 2, 64);
        assert_eq!(circuits.use_up(0, 200), Some(1));
        assert_eq!(circuits.use_up(0, 57), None);
        assert_eq!(circuits.use_up(0, 56), Some(1));
        assert_eq!(circuits.use_up(0, 64), Some(2));
        assert_eq!(circuits.use_up(0, 1), None);
        assert_eq!(circuits.open_total(), 0);
    }

    #[test]
    fn the_chunks_of_a_batch_exceed_their_grant_by_their_framing() {
        let mut circuits = Circuits::new(4);
        assert_eq!(circuits.excess_blocks(0, 8, 2), 0);
        // 256 B are 34 blocks as one chunk, 40 as four of 64 B, 37 as 129 and 127 B.
        for (members, excess) in [(vec![256], 0), (vec![64; 4], 6), (vec![129, 127], 3)] {
            circuits.open(0, 1, 256);
            let total: u32 = members
                .iter()
                .map(|&bytes| {
                    let excess = circuits.excess_blocks(0, bytes, 2);
                    assert_eq!(circuits.use_up(0, bytes), Some(1));
                    excess
                })
                .sum();
            assert_eq!(total, excess, "{members:?}");
        }
    }

    #[test]
    fn circuits_to_a_failed_port_lead_nowhere_and_keep_their_places() {
        let mut circuits = Circuits::new(4);
        circuits.open(0, 1, 8);
        circuits.open(0, 2, 8);
        circuits.open(0, 1, 8);
        circuits.open(1, 2, 8);
        let mut lost = Vec::new();
        circuits.fail(1, |to, bytes| lost.push((to, bytes)));
        assert_eq!(lost, [(2, 8)]);
        assert_eq!(circuits.open_total(), 3);
        assert_eq!(circuits.next(0), None);
        assert_eq!(circuits.use_up(0, 8), None);
        assert_eq!(circuits.next(0), Some(2));
        assert_eq!(circuits.use_up(0, 8), Some(2));
        assert_eq!(circuits.skip(0), Some((8, None)), "its own grant to 1");
        assert_eq!((circuits.skip(0), circuits.open_total()), (None, 0));
        circuits.open(0, 2, 64);
        assert_eq!(circuits.use_up(0, 24), Some(2));
        lost.clear();
        circuits.fail(0, |to, bytes| lost.push((to, bytes)));
        assert_eq!((lost, circuits.open_total()), (vec![(2, 40)], 0));
    }
    #[test]
    fn more_than_the_usual_are_kept_in_order() {
        let mut circuits = Circuits::new(3);
        // The ring's head must not be at the start of its memory.
        for _ in 0..2 {
            circuits.open(1, 0, 8);
        }
        assert_eq!(circuits.use_up(1, 8), Some(0));
        for n in 0..5 * OPEN_USUAL {
            circuits.open(1, if n % 3 == 0 { 2 } else { 0 }, 8);
        }
        assert_eq!(circuits.use_up(1, 8), Some(0));
        for n in 0..5 * OPEN_USUAL {
            assert_eq!(circuits.use_up(1, 8), Some(if n % 3 == 0 { 2 } else { 0 }), "{n}");
        }
        assert_eq!(circuits.use_up(1, 8), None);
    }
}
