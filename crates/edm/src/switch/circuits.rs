//! Virtual circuits: for every port, where its next granted bytes go.

/// Grants of one port that may be unused at once: a round trip of the shortest chunks at 400 Gb/s
/// is about 300.
const OPEN_MAX: usize = 512;

#[derive(Clone, Copy, Debug, Default)]
struct Circuit {
    destination: u16,
    /// A grant is at most a chunk.
    bytes_left: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    head: u16,
    len: u16,
}

/// A first-in-first-out list of circuits a source port: hosts serve grants in order.
#[derive(Clone, Debug)]
pub(super) struct Circuits {
    rings: Vec<Ring>,
    slots: Vec<Circuit>,
}

impl Circuits {
    pub(super) fn new(ports: u16) -> Circuits {
        Circuits {
            rings: vec![Ring::default(); ports.into()],
            slots: vec![Circuit::default(); usize::from(ports) * OPEN_MAX],
        }
    }

    /// A grant of `bytes` was issued.
    ///
    /// # Panics
    /// When more are open than a round trip can hold: the source stopped sending and its port was
    /// not failed.
    #[inline]
    pub(super) fn open(&mut self, source: u16, destination: u16, bytes: u32) {
        let ring = &mut self.rings[usize::from(source)];
        assert!(usize::from(ring.len) < OPEN_MAX, "port {source} left {OPEN_MAX} grants unused");
        let at = (usize::from(ring.head) + usize::from(ring.len)) % OPEN_MAX;
        self.slots[usize::from(source) * OPEN_MAX + at] =
            Circuit { destination, bytes_left: bytes as u16 };
        ring.len += 1;
    }

    /// Data of a granted message came: where it goes. `None` when it exceeds its grant.
    #[inline]
    pub(super) fn use_up(&mut self, source: u16, bytes: u64) -> Option<u16> {
        let ring = &mut self.rings[usize::from(source)];
        if ring.len == 0 {
            return None;
        }
        let slot = usize::from(source) * OPEN_MAX + usize::from(ring.head);
        let circuit = &mut self.slots[slot];
        if bytes > u64::from(circuit.bytes_left) {
            return None;
        }
        circuit.bytes_left -= bytes as u16;
        if circuit.bytes_left == 0 {
            ring.len -= 1;
            // An empty ring starts over, so that the slots in use stay few and in the cache.
            ring.head = if ring.len == 0 { 0 } else { (ring.head + 1) % OPEN_MAX as u16 };
        }
        Some(circuit.destination)
    }

    /// Forgets every circuit from a port, and to it.
    pub(super) fn clear(&mut self, port: u16) {
        self.rings[usize::from(port)] = Ring::default();
        for source in 0..self.rings.len() {
            let ring = self.rings[source];
            let mut kept = 0;
            for n in 0..usize::from(ring.len) {
                let from = (usize::from(ring.head) + n) % OPEN_MAX;
                let circuit = self.slots[source * OPEN_MAX + from];
                if circuit.destination != port {
                    let to = (usize::from(ring.head) + kept) % OPEN_MAX;
                    self.slots[source * OPEN_MAX + to] = circuit;
                    kept += 1;
                }
            }
            self.rings[source].len = kept as u16;
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
    fn a_cleared_port_takes_its_circuits_with_it_and_no_others() {
        let mut circuits = Circuits::new(4);
        circuits.open(0, 1, 8);
        circuits.open(0, 2, 8);
        circuits.open(0, 1, 8);
        circuits.open(1, 2, 8);
        circuits.clear(1);
        assert_eq!(circuits.open_total(), 1);
        assert_eq!(circuits.use_up(0, 8), Some(2));
    }
}
