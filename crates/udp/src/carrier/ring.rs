//! Datagrams in frames of raw Ethernet, through a ring that is shared with the kernel.

use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use ethermem_packet::{Field, Filter, Interface, Ring, Waiter};
use ethermem_wire::clio::{
    ETHER_TYPE, FRAME_BYTES, FRAME_MARK, FRAME_MARK_AT, FRAME_TO_AT, Frame, FrameBody, Mac,
    PIECE_FRAME_BYTES, PIECES_MAX, Piece, Port, Station,
};
use nix::errno::Errno;

use super::pieces::{Added, Pieces};
use super::place::{MTU_MIN, RingError, RingPlace, interface};
use super::socket::DATAGRAM_BYTES_MAX;
use super::{Carrier, Sent};

/// Frames that one look passes over for a datagram.
const FRAMES_A_LOOK: u32 = 64;
/// Ethernet's shortest frame, without the check behind it: the kernel fills none up.
const FRAME_BYTES_MIN: usize = 60;
/// Between two questions who is there, and how long others may take longer than the first.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Where an outgoing datagram begins: before it is room for what stands in front of a piece.
const FRONT: usize = PIECE_FRAME_BYTES;
/// What frames have in front beyond addresses and EtherType, which the MTU does not count.
const OVERHEAD: usize = PIECE_FRAME_BYTES - 14;

/// See the module.
pub(crate) struct RingCarrier {
    ring: Ring,
    interface: Interface,
    port: Port,
    is_node: bool,
    /// Of a node: no other one of this machine has its interface and port.
    _claim: Option<UnixDatagram>,
    /// Of a client.
    node: Station,
    /// Octets of a datagram that a frame may bring.
    carries: usize,
    taken: Taken,
    /// From whom that is.
    from: Station,
    pieces: Box<Pieces>,
    outgoing: Box<[u8]>,
    /// Names datagrams that go in pieces.
    number: u32,
    sent: Option<Sent>,
    malformed: u64,
}

/// What came last, and was not yet handed over.
enum Taken {
    Nothing,
    /// In the frame that the ring holds.
    Frame(Range<usize>),
    /// The same, of pieces.
    Whole,
}

const NOBODY: Station = Station { mac: Mac::BROADCAST, port: Port(0) };

impl RingCarrier {
    /// Of a node that is reached at a place.
    pub(crate) fn of_node(place: &RingPlace) -> Result<RingCarrier, RingError> {
        let interface = interface(&place.interface)?;
        let claim = claim(&interface, place.port)?;
        let carrier = RingCarrier::open(interface, Port(place.port.into()), true)?;
        Ok(RingCarrier { _claim: Some(claim), ..carrier })
    }

    /// To the node at a place, or to the one that answers, which is waited for.
    pub(crate) fn to_node(place: &RingPlace, most: Duration) -> Result<RingCarrier, RingError> {
        let interface = interface(&place.interface)?;
        let own = Mac(interface.mac);
        if place.mac == Some(own) && !interface.is_loopback {
            return Err(RingError::Itself(own));
        }
        // Above all ports that operators choose.
        let port = getrandom::u64().map_err(RingError::Random)? | 1 << 63;
        let mut carrier = RingCarrier::open(interface, Port(port), false)?;
        // On the loopback nobody has the address of everybody, and all have the same one.
        let everybody = if carrier.interface.is_loopback { own } else { Mac::BROADCAST };
        let to = Station { mac: place.mac.unwrap_or(everybody), port: Port(place.port.into()) };
        let mut found = carrier.ask(to, most)?;
        if found.len() > 1 {
            found.sort_unstable();
            let place = |&(mac, _): &(Mac, u16)| RingPlace { mac: Some(mac), ..place.clone() };
            return Err(RingError::Several(found.iter().map(place).collect()));
        }
        let (mac, carries) = found.pop().ok_or(RingError::Silent(most))?;
        carrier.node = Station { mac, port: to.port };
        carrier.carries = carrier.carries.min(carries.into());
        Ok(carrier)
    }

    fn open(interface: Interface, port: Port, is_node: bool) -> Result<RingCarrier, RingError> {
        let ring = Ring::open(&interface, ETHER_TYPE, &filter(port, is_node))?;
        Ok(RingCarrier {
            ring,
            carries: carries(&interface),
            interface,
            port,
            is_node,
            _claim: None,
            node: NOBODY,
            taken: Taken::Nothing,
            from: NOBODY,
            pieces: Box::default(),
            outgoing: vec![0; FRONT + DATAGRAM_BYTES_MAX].into(),
            number: 0,
            sent: None,
            malformed: 0,
        })
    }

    /// Where it is.
    pub(crate) fn place(&self) -> RingPlace {
        RingPlace {
            interface: self.interface.name.clone(),
            port: u16::try_from(self.port.0).unwrap_or(0),
            mac: Some(Mac(self.interface.mac)),
        }
    }

    /// Octets of a datagram that a frame may bring there.
    pub(crate) fn carries(&self) -> usize {
        self.carries
    }

    /// What to sleep on. Nothing is held while somebody sleeps.
    pub(crate) fn waiter(&self) -> Waiter {
        self.ring.waiter()
    }

    /// Frames that are none, but look as if.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Looks whether the interface is another one by now, or of another MTU or address, and if so
    /// begins anew on it. Whether it did.
    pub(crate) fn mend(&mut self) -> bool {
        let Ok(found) = self.ring.interface(&self.interface.name) else {
            return false;
        };
        let Interface { is_up, .. } = self.interface;
        if (Interface { is_up, ..found.clone() }) == self.interface {
            return false;
        }
        let Ok(ring) = Ring::open(&found, ETHER_TYPE, &filter(self.port, self.is_node)) else {
            return false;
        };
        (self.ring, self.carries, self.interface) = (ring, carries(&found), found);
        self.taken = Taken::Nothing;
        true
    }

    /// Those that answer, each once, with what its frames bring; one is enough where it was asked
    /// for by its address.
    fn ask(&mut self, to: Station, most: Duration) -> Result<Vec<(Mac, u16)>, RingError> {
        let (began, waiter) = (Instant::now(), self.waiter());
        let mut found: Vec<(Mac, u16)> = Vec::new();
        let mut until = most;
        let mut asked: Option<Instant> = None;
        while began.elapsed() < until {
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                self.send_short(to, FrameBody::Question);
                asked = Some(Instant::now());
            }
            while let Some(frame) = self.ring.take() {
                let Ok((Frame { from, body: FrameBody::Answer { carries }, .. }, _)) =
                    Frame::parse(frame)
                else {
                    continue;
                };
                let is_known = found.iter().any(|(mac, _)| *mac == from.mac);
                // Anybody may say that he is a node: not that its frames carry nothing.
                let carries_enough = usize::from(carries) >= MTU_MIN - OVERHEAD;
                if from.port != to.port || is_known || !carries_enough {
                    continue;
                }
                if found.is_empty() {
                    until = until.min(began.elapsed() + ASK_EVERY * 2);
                }
                found.push((from.mac, carries));
                if from.mac == to.mac {
                    return Ok(found);
                }
            }
            self.ring.release();
            waiter.wait(Duration::from_millis(1));
        }
        Ok(found)
    }

    fn own(&self) -> Station {
        Station { mac: Mac(self.interface.mac), port: self.port }
    }

    /// A frame without a datagram.
    fn send_short(&mut self, to: Station, body: FrameBody) {
        let mut octets = [0; FRAME_BYTES_MIN];
        let frame = Frame { to, from: self.own(), body };
        frame.emit(0, &mut octets).expect("it is short");
        // Whatever hinders it, it is as if the network had lost it.
        let _ = self.ring.send(&octets);
    }

    fn transmit(&mut self, to: Station, bytes: usize) {
        let mut sent = self.sent.unwrap_or_default();
        let mut result = self.send_datagram(to, bytes);
        if result == Err(Errno::EMSGSIZE) {
            // The interface has another MTU than when it was looked at.
            if let Ok(found) = self.ring.interface(&self.interface.name) {
                self.carries = self.carries.min(carries(&found));
                result = self.send_datagram(to, bytes);
            }
        }
        match result {
            Ok(()) => sent.bytes += bytes as u64,
            Err(problem) => {
                sent.refused += 1;
                sent.problem = Some(problem);
            }
        }
        self.sent = Some(sent);
    }

    /// As it is where a frame carries it, else in pieces.
    fn send_datagram(&mut self, to: Station, bytes: usize) -> Result<(), Errno> {
        let from = self.own();
        if bytes <= self.carries {
            let frame = Frame { to, from, body: FrameBody::Datagram };
            return self.send_frame(&frame, FRAME_BYTES, 0..bytes);
        }
        let count = u8::try_from(bytes.div_ceil(self.carries)).map_err(|_| Errno::EMSGSIZE)?;
        if count > PIECES_MAX {
            return Err(Errno::EMSGSIZE);
        }
        self.number = self.number.wrapping_add(1);
        for index in 0..count {
            let piece = Piece {
                number: self.number,
                index,
                count,
                total: u16::try_from(bytes).map_err(|_| Errno::EMSGSIZE)?,
            };
            let start = usize::from(index) * self.carries;
            let range = start..bytes.min(start + self.carries);
            let frame = Frame { to, from, body: FrameBody::Piece(piece) };
            self.send_frame(&frame, PIECE_FRAME_BYTES, range)?;
        }
        Ok(())
    }

    /// With those octets of the outgoing datagram. What stands in front takes the place of octets
    /// that went before, so a piece is not copied.
    fn send_frame(&mut self, frame: &Frame, front: usize, part: Range<usize>) -> Result<(), Errno> {
        let bytes = u16::try_from(part.len()).map_err(|_| Errno::EMSGSIZE)?;
        let octets = &mut self.outgoing[FRONT + part.start - front..FRONT + part.end];
        frame.emit(bytes, octets).expect("there is room in front");
        self.ring.send(octets)
    }

    /// Looks at the frame that was taken. Its datagram's octets, if it has one or completes one.
    fn look(&mut self) -> Option<usize> {
        let octets = self.ring.held()?;
        let parsed = Frame::parse(octets).ok();
        // What is for everybody can only ask who is there.
        let is_for_us = |(frame, _): &(Frame, _)| {
            frame.body == FrameBody::Question || !frame.to.mac.is_multicast()
        };
        let Some((frame, range)) = parsed.filter(is_for_us) else {
            self.malformed += 1;
            return None;
        };
        match frame.body {
            FrameBody::Datagram => {
                let bytes = range.len();
                (self.from, self.taken) = (frame.from, Taken::Frame(range));
                Some(bytes)
            }
            FrameBody::Piece(piece) => match self.pieces.add(frame.from, piece, &octets[range]) {
                Added::Whole(bytes) => {
                    (self.from, self.taken) = (frame.from, Taken::Whole);
                    Some(bytes)
                }
                Added::Part => None,
                Added::Contradiction => {
                    self.malformed += 1;
                    None
                }
            },
            FrameBody::Question => {
                // A client is asked nothing.
                if self.is_node {
                    let carries = u16::try_from(self.carries).expect("a datagram is below 64 KiB");
                    self.send_short(frame.from, FrameBody::Answer { carries });
                }
                None
            }
            // One of those that came after the first.
            FrameBody::Answer { .. } => None,
        }
    }
}

/// Has that port of an interface until it is dropped. Frames to two nodes would be answered by
/// both, and the kernel knows nothing of our ports, so a name that is this network's own stands for
/// each.
fn claim(interface: &Interface, port: u16) -> Result<UnixDatagram, RingError> {
    let name = format!("ethermem-ring-{}-{port}", interface.index);
    let taken = |error| RingError::Taken(interface.name.clone(), port, error);
    let name = SocketAddr::from_abstract_name(name).map_err(taken)?;
    UnixDatagram::bind_addr(&name).map_err(taken)
}

/// What one frame of the interface brings of a datagram.
fn carries(interface: &Interface) -> usize {
    interface.mtu.saturating_sub(OVERHEAD).clamp(1, DATAGRAM_BYTES_MAX)
}

fn filter(port: Port, is_node: bool) -> Filter {
    let to = port.0.to_le_bytes();
    let [a, b, c, d, e, f, g, h] = to;
    let fields = vec![
        Field::Half(FRAME_MARK_AT, FRAME_MARK),
        Field::Word(FRAME_TO_AT, [a, b, c, d]),
        Field::Word(FRAME_TO_AT + 4, [e, f, g, h]),
    ];
    Filter { fields, broadcast: is_node }
}

impl Carrier for RingCarrier {
    #[inline]
    fn receive(&mut self) -> std::io::Result<Option<usize>> {
        for _ in 0..FRAMES_A_LOOK {
            if self.ring.take().is_none() {
                return Ok(None);
            }
            if let Some(bytes) = self.look() {
                return Ok(Some(bytes));
            }
        }
        self.ring.release();
        Ok(None)
    }

    fn next(&mut self) -> Option<(&mut [u8], &mut [u8])> {
        let datagram = match std::mem::replace(&mut self.taken, Taken::Nothing) {
            Taken::Frame(range) => &mut self.ring.held()?[range],
            Taken::Whole => self.pieces.whole(),
            Taken::Nothing => {
                // Who sleeps now must not be woken by a frame that was read.
                self.ring.release();
                return None;
            }
        };
        Some((datagram, &mut self.outgoing[FRONT..]))
    }

    fn reply(&mut self, bytes: usize) {
        self.transmit(self.from, bytes);
    }

    fn place(&mut self) -> &mut [u8] {
        &mut self.outgoing[FRONT..]
    }

    fn push(&mut self, bytes: usize) {
        self.transmit(self.node, bytes);
    }

    fn gathers(&self) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        self.sent.is_none()
    }

    fn is_full(&self) -> bool {
        false
    }

    fn flush(&mut self) -> Sent {
        self.sent.take().unwrap_or_default()
    }
}
