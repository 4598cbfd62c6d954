//! The next outgoing datagram, and the frames that carry it.

use std::ops::Range;

use ethermem_wire::clio::{
    FRAME_BYTES, Frame, FrameBody, PIECE_FRAME_BYTES, PIECES_MAX, Piece, Station,
};
use nix::errno::Errno;

use super::socket::DATAGRAM_BYTES_MAX;

/// Ethernet's shortest frame in octets without its FCS: the kernel does not pad.
pub(super) const FRAME_BYTES_MIN: usize = 60;
/// Offset of the datagram, after room for a piece's headers.
const FRONT: usize = PIECE_FRAME_BYTES;

/// The datagram that is being filled.
pub(super) struct Outgoing {
    octets: Box<[u8]>,
    /// Number of the next datagram that is sent in pieces.
    number: u32,
}

/// Source and destination of frames.
#[derive(Clone, Copy)]
pub(super) struct Route {
    pub(super) to: Station,
    pub(super) from: Station,
    /// Capacity in octets of a frame to `from`.
    pub(super) carries_back: u16,
    /// Capacity in octets of a frame to `to`, for a datagram or a piece.
    pub(super) carries: usize,
}

impl Route {
    pub(super) fn frame(&self, body: FrameBody) -> Frame {
        Frame { to: self.to, from: self.from, carries: self.carries_back, body }
    }
}

/// A datagram that was not sent, or not entirely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsent {
    pub(super) problem: Errno,
    /// True if the datagram is unmodified, so that it may be sent another way.
    pub(super) is_intact: bool,
}

impl Outgoing {
    /// Numbers continue from one that an earlier life of the sender probably did not use.
    pub(super) fn new(number: u32) -> Outgoing {
        Outgoing { octets: vec![0; FRONT + DATAGRAM_BYTES_MAX].into(), number }
    }

    /// Buffer for the datagram.
    pub(super) fn place(&mut self) -> &mut [u8] {
        &mut self.octets[FRONT..]
    }

    /// Sends it in one frame if that has the capacity, otherwise in pieces.
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
            // A later piece's header overwrites octets of the piece before.
            send(self.frame(&route.frame(FrameBody::Piece(piece)), part))
                .map_err(|problem| Unsent { problem, is_intact: index == 0 })?;
        }
        Ok(())
    }

    /// A frame with those octets of the datagram. The header overwrites octets that were sent
    /// before, so a piece is not copied. The padding of a short frame follows the datagram.
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

    /// The last piece may have one octet; its padding has no octets of earlier datagrams.
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
