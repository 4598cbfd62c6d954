//! The datagram that goes next, and the frames in which it goes.

use std::ops::Range;

use ethermem_wire::clio::{
    FRAME_BYTES, Frame, FrameBody, PIECE_FRAME_BYTES, PIECES_MAX, Piece, Station,
};
use nix::errno::Errno;

use super::socket::DATAGRAM_BYTES_MAX;

/// Ethernet's shortest frame, without the check behind it: the kernel fills none up.
pub(super) const FRAME_BYTES_MIN: usize = 60;
/// Where the datagram begins: before it is room for what stands in front of a piece.
const FRONT: usize = PIECE_FRAME_BYTES;

/// See the module.
pub(super) struct Outgoing {
    octets: Box<[u8]>,
    /// Names datagrams that go in pieces.
    number: u32,
}

/// Whence frames go, and where to.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) to: Station,
    pub(super) from: Station,
    /// What a frame to `from` may bring.
    pub(super) carries_back: u16,
    /// What a frame to `to` may bring of a datagram, or of a piece of one.
    pub(super) carries: usize,
}

impl Route {
    pub(super) fn frame(&self, body: FrameBody) -> Frame {
        Frame { to: self.to, from: self.from, carries: self.carries_back, body }
    }
}

/// A datagram that did not go, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsent {
    pub(super) problem: Errno,
    /// Whether the datagram is as it was, so that it may be sent in another way.
    pub(super) is_intact: bool,
}

impl Outgoing {
    /// Numbers go on from one that the sender's earlier life is not likely to have used.
    pub(super) fn new(number: u32) -> Outgoing {
        Outgoing { octets: vec![0; FRONT + DATAGRAM_BYTES_MAX].into(), number }
    }

    /// Where it is written.
    pub(super) fn place(&mut self) -> &mut [u8] {
        &mut self.octets[FRONT..]
    }

    /// Sends it as it is where a frame carries it, else in pieces.
    pub(super) fn send(
        &mut self,
        route: &Route,
        bytes: usize,
        mut send: impl FnMut(&[u8]) -> Result<(), Errno>,
    ) -> Result<(), Unsent> {
        if bytes <= route.carries {
            let sent = send(self.frame(&route.frame(FrameBody::Datagram), 0..bytes));
            return sent.map_err(|problem| Unsent { problem, is_intact: true });
        }
        let too_long = Unsent { problem: Errno::EMSGSIZE, is_intact: true };
        let count = u8::try_from(bytes.div_ceil(route.carries)).map_err(|_| too_long)?;
        let total = u16::try_from(bytes).map_err(|_| too_long)?;
        if count > PIECES_MAX {
            return Err(too_long);
        }
        self.number = self.number.wrapping_add(1);
        for index in 0..count {
            let piece = Piece { number: self.number, index, count, total };
            let start = usize::from(index) * route.carries;
            let part = start..bytes.min(start + route.carries);
            // What stands in front of a later one is where octets of the one before were.
            send(self.frame(&route.frame(FrameBody::Piece(piece)), part))
                .map_err(|problem| Unsent { problem, is_intact: index == 0 })?;
        }
        Ok(())
    }

    /// With those octets of the datagram. What stands in front takes the place of octets that went
    /// before, so a piece is not copied; what fills a short frame up follows the datagram.
    fn frame(&mut self, frame: &Frame, part: Range<usize>) -> &[u8] {
        let front = match frame.body {
            FrameBody::Piece(_) => PIECE_FRAME_BYTES,
            _ => FRAME_BYTES,
        };
        let bytes = u16::try_from(part.len()).expect("a datagram is below 64 KiB");
        let (start, end) = (FRONT + part.start - front, FRONT + part.end);
        let filled = end.max(start + FRAME_BYTES_MIN).min(self.octets.len());
        frame.emit(bytes, &mut self.octets[start..end]).expect("there is room in front");
        self.octets[end..filled].fill(0);
        &self.octets[start..filled]
    }
}

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::{CARRIES_MIN, Mac, Port};

    use super::*;

    const CARRIES: usize = CARRIES_MIN as usize;

    fn route() -> Route {
        let station = |last, port| Station { mac: Mac([2, 0, 0, 0, 0, last]), port: Port(port) };
        let (to, from) = (station(1, 7400), station(2, 1 << 63));
        Route { to, from, carries_back: 1468, carries: CARRIES }
    }

    fn outgoing(bytes: usize) -> Outgoing {
        let mut outgoing = Outgoing::new(u32::MAX);
        outgoing.place().fill(0xee);
        outgoing.place()[..bytes].iter_mut().zip(0_u32..).for_each(|(o, at)| *o = at as u8);
        outgoing
    }

    /// The last piece may be of one octet; what fills it up is nothing of earlier datagrams.
    #[test]
    fn every_frame_is_as_long_as_ethernets_shortest_and_filled_with_zeros() {
        for bytes in [1, 21, 22, CARRIES, CARRIES + 1, 2 * CARRIES + 13, 2 * CARRIES + 14, 65_507] {
            let (mut outgoing, mut whole) = (outgoing(bytes), Vec::new());
            let sent = outgoing.send(&route(), bytes, |octets| {
                assert!(octets.len() >= FRAME_BYTES_MIN, "{bytes}");
                let (frame, part) = Frame::parse(octets).unwrap();
                assert!(octets[part.end..].iter().all(|octet| *octet == 0), "{bytes}");
                if let FrameBody::Piece(piece) = frame.body {
                    assert_eq!(piece.number, 0);
                    assert_eq!(piece.place(part.len()).unwrap().0.start, whole.len());
                }
                assert_eq!(frame, Frame { body: frame.body, ..route().frame(frame.body) });
                whole.extend_from_slice(&octets[part]);
                Ok(())
            });
            assert_eq!(sent, Ok(()), "{bytes}");
            let expected: Vec<u8> = (0..bytes as u32).map(|at| at as u8).collect();
            assert!(whole == expected, "{bytes}");
        }
    }

    #[test]
    fn what_is_refused_is_intact_until_a_frame_of_it_went() {
        let bytes = 3 * CARRIES;
        for fails in 0..3 {
            let (mut outgoing, mut at) = (outgoing(bytes), 0);
            let before = outgoing.place()[..bytes].to_vec();
            let sent = outgoing.send(&route(), bytes, |_| {
                at += 1;
                if at == fails + 1 { Err(Errno::EMSGSIZE) } else { Ok(()) }
            });
            let is_intact = fails == 0;
            assert_eq!(sent, Err(Unsent { problem: Errno::EMSGSIZE, is_intact }), "{fails}");
            assert_eq!(outgoing.place()[..bytes] == before, is_intact, "{fails}");
        }
        let shorter = Route { carries: 100, ..route() };
        let too_long = Err(Unsent { problem: Errno::EMSGSIZE, is_intact: true });
        assert_eq!(outgoing(65_507).send(&shorter, 65_507, |_| Ok(())), too_long);
    }
}
