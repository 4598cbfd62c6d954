//! Datagrams that came in pieces, until they are whole.

use ethermem_wire::clio::{Piece, Station};

use super::socket::DATAGRAM_BYTES_MAX;

/// Datagrams that may be in pieces at once. Whoever sends more loses the one that waits for
/// longest, as if the network had lost it: what is kept does not grow with senders.
const PLACES: usize = 16;

/// See the module. Its size is fixed.
pub struct Pieces {
    places: Box<[Place]>,
    turn: u64,
    /// Where the datagram is that became whole last, and its octets.
    whole: (usize, usize),
}

struct Place {
    of: Option<Datagram>,
    octets: Box<[u8]>,
    /// Which pieces came.
    came: u128,
    /// When one came last.
    used: u64,
}

/// Which datagram, and how it is cut.
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

/// What a piece made of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// All of it is there: so many octets, until the next piece comes ([`Pieces::whole`]).
    Whole(usize),
    /// Others are to come, or it was there before.
    Part,
    /// It contradicts those that came before.
    Contradiction,
}

impl Default for Pieces {
    fn default() -> Pieces {
        let place = || Place {
            of: None,
            octets: vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice(),
            came: 0,
            used: 0,
        };
        Pieces { places: (0..PLACES).map(|_| place()).collect(), turn: 0, whole: (0, 0) }
    }
}

impl Pieces {
    /// Takes a piece.
    pub fn add(&mut self, from: Station, piece: Piece, octets: &[u8]) -> Added {
        let Some((range, each)) = piece.place(octets.len()) else {
            return Added::Contradiction;
        };
        if usize::from(piece.total) > DATAGRAM_BYTES_MAX {
            return Added::Contradiction;
        }
        let Piece { number, count, total, .. } = piece;
        let datagram = Datagram { from, number, count, total, each };
        self.turn += 1;
        let is_of = |place: &Place| place.of.is_some_and(|known| known.is_same(&datagram));
        let found = self.places.iter().position(is_of);
        let at = found.unwrap_or_else(|| self.oldest());
        let place = &mut self.places[at];
        if found.is_none() {
            (place.of, place.came) = (Some(datagram), 0);
        } else if place.of != Some(datagram) {
            return Added::Contradiction;
        }
        place.used = self.turn;
        place.octets[range].copy_from_slice(octets);
        place.came |= 1 << piece.index;
        if place.came.count_ones() < u32::from(count) {
            return Added::Part;
        }
        (place.of, place.used) = (None, 0);
        self.whole = (at, total.into());
        Added::Whole(total.into())
    }

    /// The datagram that became whole last.
    pub fn whole(&mut self) -> &mut [u8] {
        let (at, bytes) = self.whole;
        &mut self.places[at].octets[..bytes]
    }

    fn oldest(&self) -> usize {
        let places = self.places.iter().enumerate();
        places.min_by_key(|(_, place)| place.used).expect("there are places").0
    }
}

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::{Mac, Port};

    use super::*;

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
            let mut pieces = Pieces::default();
            for (at, index) in order.into_iter().enumerate() {
                for again in [false, true] {
                    let added = pieces.add(station(1), piece(7, index), PARTS[usize::from(index)]);
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
        let mut pieces = Pieces::default();
        for (from, number) in [(1, 7), (2, 7), (1, 8)] {
            for index in [0, 1] {
                let octets = PARTS[usize::from(index)];
                assert_eq!(pieces.add(station(from), piece(number, index), octets), Added::Part);
            }
        }
        let whole = pieces.add(station(2), piece(7, 2), PARTS[2]);
        assert_eq!((whole, &*pieces.whole()), (Added::Whole(10), &b"0123456789"[..]));
    }

    #[test]
    fn a_piece_that_contradicts_the_others_changes_nothing() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.add(station(1), piece(7, 0), PARTS[0]), Added::Part);
        let longer = Piece { total: 11, ..piece(7, 1) };
        assert_eq!(pieces.add(station(1), longer, b"4567"), Added::Contradiction);
        assert_eq!(pieces.add(station(1), piece(7, 1), b"456"), Added::Contradiction);
        let absurd = Piece { number: 9, index: 0, count: 2, total: u16::MAX };
        assert_eq!(pieces.add(station(1), absurd, &[0; 40_000]), Added::Contradiction);
        assert_eq!(pieces.add(station(1), piece(7, 1), PARTS[1]), Added::Part);
        assert!(matches!(pieces.add(station(1), piece(7, 2), PARTS[2]), Added::Whole(_)));
    }

    #[test]
    fn of_too_many_datagrams_those_that_wait_for_longest_are_lost() {
        let mut pieces = Pieces::default();
        let many = PLACES as u32 + 1;
        for number in 0..many {
            assert_eq!(pieces.add(station(1), piece(number, 0), PARTS[0]), Added::Part);
        }
        for number in [many - 1, 0] {
            assert_eq!(pieces.add(station(1), piece(number, 1), PARTS[1]), Added::Part);
            let last = pieces.add(station(1), piece(number, 2), PARTS[2]);
            assert_eq!(matches!(last, Added::Whole(_)), number > 0, "{number}");
        }
    }
}
