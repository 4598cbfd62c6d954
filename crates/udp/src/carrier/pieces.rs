//! Reassembly of datagrams that arrive in pieces.

use std::cmp::Reverse;
use std::ops::Range;

use ethermem_units::Ns;
use ethermem_wire::clio::{Mac, Piece, Station};

use super::socket::DATAGRAM_BYTES_MAX;

/// How long pieces wait for the others. A sender sends all pieces without a pause, and retransmits
/// none. An older piece may be from an earlier life of its sender, with an equal number.
const KEEP: Ns = Ns(1_000_000_000);

/// Reassembly buffers of fixed size: for `places` datagrams of up to 65,507 B at once. When all are
/// taken, the MAC address that has most of them loses its oldest one, as if the network had lost
/// it. So no sender can take the others' places.
pub struct Pieces {
    places: Box<[Assembly]>,
    /// Octets of each place, one after the other; the system provides no memory for unused ones.
    octets: Box<[u8]>,
    turn: u64,
    /// Range of the datagram completed last.
    whole: Range<usize>,
}

/// A partially received datagram.
#[derive(Clone, Copy, Default)]
struct Assembly {
    of: Option<Datagram>,
    /// Bit set of the pieces received.
    came: u128,
    /// Time of the last piece, for expiry and eviction.
    at: Ns,
    turn: u64,
}

impl Assembly {
    /// True if it still waits for pieces.
    fn waits(&self, now: Ns) -> bool {
        self.of.is_some() && now.saturating_sub(self.at) < KEEP
    }
}

/// Identity of a datagram, and its division into pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Datagram {
    from: Station,
    number: u32,
    count: u8,
    total: u16,
    each: usize,
}

impl Datagram {
    fn is_same(&self, other: &Datagram) -> bool {
        (self.from, self.number) == (other.from, other.number)
    }
}

/// Result of adding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The datagram is complete with this many octets, valid until the next piece
    /// ([`Pieces::whole`]).
    Whole(usize),
    /// More pieces are missing, or this one is a duplicate.
    Part,
    /// The piece is inconsistent in itself, or with earlier ones.
    Contradiction,
}

impl Pieces {
    /// Buffers for `places` datagrams at once, at least one.
    #[must_use]
    pub fn new(places: usize) -> Pieces {
        let places = places.max(1);
        Pieces {
            places: vec![Assembly::default(); places].into(),
            octets: vec![0; places * DATAGRAM_BYTES_MAX].into(),
            turn: 0,
            whole: 0..0,
        }
    }

    /// Adds a piece; `now` is from any monotonic clock.
    pub fn add(&mut self, now: Ns, from: Station, piece: Piece, octets: &[u8]) -> Added {
        let Some((range, each)) = piece.place(octets.len()) else {
            return Added::Contradiction;
        };
        if usize::from(piece.total) > DATAGRAM_BYTES_MAX {
            return Added::Contradiction;
        }
        let Piece { number, count, total, .. } = piece;
        let datagram = Datagram { from, number, count, total, each };
        self.turn += 1;
        let is_of = |place: &Assembly| {
            place.of.is_some_and(|known| known.is_same(&datagram)) && place.waits(now)
        };
        let found = self.places.iter().position(is_of);
        let at = found.unwrap_or_else(|| self.make_room(now));
        let place = &mut self.places[at];
        if found.is_none() {
            *place = Assembly { of: Some(datagram), ..Assembly::default() };
        } else if place.of != Some(datagram) {
            return Added::Contradiction;
        }
        (place.at, place.turn) = (now, self.turn);
        let start = at * DATAGRAM_BYTES_MAX;
        self.octets[start..][range].copy_from_slice(octets);
        place.came |= 1 << piece.index;
        if place.came.count_ones() < u32::from(count) {
            return Added::Part;
        }
        place.of = None;
        self.whole = start..start + usize::from(total);
        Added::Whole(total.into())
    }

    /// The datagram completed last.
    pub fn whole(&mut self) -> &mut [u8] {
        &mut self.octets[self.whole.clone()]
    }

    /// A free place, or else the oldest place of the address that has most of them.
    fn make_room(&self, now: Ns) -> usize {
        if let Some(free) = self.places.iter().position(|place| !place.waits(now)) {
            return free;
        }
        let mac = |place: &Assembly| -> Option<Mac> { place.of.map(|of| of.from.mac) };
        let held = |by| self.places.iter().filter(|place| mac(place) == by).count();
        let places = self.places.iter().enumerate();
        let gives_way = places.max_by_key(|(_, place)| (held(mac(place)), Reverse(place.turn)));
        gives_way.expect("there are places").0
    }
}

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::{Mac, Port};

    use super::*;

    const PLACES: usize = 16;
    const NOW: Ns = Ns(5);

    fn station(port: u64) -> Station {
        Station { mac: Mac([2, 0, 0, 0, 0, 1]), port: Port(port) }
    }

    fn piece(number: u32, index: u8) -> Piece {
        Piece { number, index, count: 3, total: 10 }
    }

    const PARTS: [&[u8]; 3] = [b"0123", b"4567", b"89"];

    #[test]
    fn pieces_make_their_datagram_in_any_order_and_twice() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut pieces = Pieces::new(PLACES);
            for (at, index) in order.into_iter().enumerate() {
                for again in [false, true] {
                    let added =
                        pieces.add(NOW, station(1), piece(7, index), PARTS[usize::from(index)]);
                    if at == 2 && !again {
                        assert_eq!(added, Added::Whole(10), "{order:?}");
                        assert_eq!(pieces.whole(), b"0123456789", "{order:?}");
                    } else {
                        assert_eq!(added, Added::Part, "{order:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn datagrams_of_other_senders_and_numbers_are_others() {
        let mut pieces = Pieces::new(PLACES);
        for (from, number) in [(1, 7), (2, 7), (1, 8)] {
            for index in [0, 1] {
                let octets = PARTS[usize::from(index)];
                assert_eq!(
                    pieces.add(NOW, station(from), piece(number, index), octets),
                    Added::Part
                );
            }
        }
        let whole = pieces.add(NOW, station(2), piece(7, 2), PARTS[2]);
        assert_eq!((whole, &*pieces.whole()), (Added::Whole(10), &b"0123456789"[..]));
    }

    #[test]
    fn the_longest_datagrams_come_together_between_each_others_pieces() {
        const EACH: usize = 1024;
        let mut pieces = Pieces::new(PLACES);
        let octets = |number: u8, index: u8| -> Vec<u8> {
            let least = usize::from(index) * EACH;
            (least..DATAGRAM_BYTES_MAX.min(least + EACH)).map(|at| number ^ at as u8).collect()
        };
        for index in 0..64 {
            for number in 1..4 {
                let total = DATAGRAM_BYTES_MAX as u16;
                let piece = Piece { number: number.into(), index, count: 64, total };
                let added = pieces.add(NOW, station(1), piece, &octets(number, index));
                if index < 63 {
                    assert_eq!(added, Added::Part, "{number}, {index}");
                    continue;
                }
                assert_eq!(added, Added::Whole(DATAGRAM_BYTES_MAX), "{number}");
                let sent: Vec<u8> = (0..64).flat_map(|index| octets(number, index)).collect();
                assert!(*pieces.whole() == *sent, "{number} has octets of another");
            }
        }
    }

    #[test]
    fn a_piece_that_contradicts_the_others_changes_nothing() {
        let mut pieces = Pieces::new(PLACES);
        assert_eq!(pieces.add(NOW, station(1), piece(7, 0), PARTS[0]), Added::Part);
        let longer = Piece { total: 11, ..piece(7, 1) };
        assert_eq!(pieces.add(NOW, station(1), longer, b"4567"), Added::Contradiction);
        assert_eq!(pieces.add(NOW, station(1), piece(7, 1), b"456"), Added::Contradiction);
        let absurd = Piece { number: 9, index: 0, count: 2, total: u16::MAX };
        assert_eq!(pieces.add(NOW, station(1), absurd, &[0; 40_000]), Added::Contradiction);
        assert_eq!(pieces.add(NOW, station(1), piece(7, 1), PARTS[1]), Added::Part);
        assert!(matches!(pieces.add(NOW, station(1), piece(7, 2), PARTS[2]), Added::Whole(_)));
    }

    #[test]
    fn of_too_many_datagrams_those_that_wait_for_longest_are_lost() {
        let mut pieces = Pieces::new(PLACES);
        let many = PLACES as u32 + 1;
        for number in 0..many {
            assert_eq!(pieces.add(NOW, station(1), piece(number, 0), PARTS[0]), Added::Part);
        }
        for number in [many - 1, 0] {
            assert_eq!(pieces.add(NOW, station(1), piece(number, 1), PARTS[1]), Added::Part);
            let last = pieces.add(NOW, station(1), piece(number, 2), PARTS[2]);
            assert_eq!(matches!(last, Added::Whole(_)), number > 0, "{number}");
        }
    }

    #[test]
    fn a_station_that_begins_many_takes_no_place_of_others() {
        let mut pieces = Pieces::new(PLACES);
        let other = |last| Station { mac: Mac([2, 0, 0, 0, 0, last]), port: Port(1) };
        for last in [2, 3] {
            assert_eq!(pieces.add(NOW, other(last), piece(7, 0), PARTS[0]), Added::Part);
        }
        // The pieces come from one address, but many ports.
        for port in 0..1000 {
            assert_eq!(pieces.add(NOW, station(port), piece(1, 0), PARTS[0]), Added::Part);
        }
        assert_eq!(pieces.add(NOW, other(4), piece(7, 0), PARTS[0]), Added::Part);
        for last in [2, 3, 4] {
            assert_eq!(pieces.add(NOW, other(last), piece(7, 1), PARTS[1]), Added::Part);
            let whole = pieces.add(NOW, other(last), piece(7, 2), PARTS[2]);
            assert_eq!((whole, &*pieces.whole()), (Added::Whole(10), &b"0123456789"[..]));
        }
    }

    /// A restarted sender may reuse a number.
    #[test]
    fn pieces_that_are_too_old_are_in_no_datagram() {
        let mut pieces = Pieces::new(PLACES);
        assert_eq!(pieces.add(NOW, station(1), piece(7, 0), b"old!"), Added::Part);
        let young = Ns(NOW.0 + KEEP.0 - 1);
        assert_eq!(pieces.add(young, station(1), piece(7, 1), b"old!"), Added::Part);
        let late = Ns(young.0 + KEEP.0);
        for index in [1, 2] {
            let part = PARTS[usize::from(index)];
            assert_eq!(pieces.add(late, station(1), piece(7, index), part), Added::Part);
        }
        assert_eq!(pieces.add(late, station(1), piece(7, 0), PARTS[0]), Added::Whole(10));
        assert_eq!(pieces.whole(), b"0123456789");
    }
}
