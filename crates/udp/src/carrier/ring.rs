//! Datagrams in frames of raw Ethernet, through a ring that is shared with the kernel.

use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use ethermem_ring::{Field, Filter, Interface, Ring, Waiter};
use ethermem_units::Ns;
use ethermem_wire::clio::{
    CARRIES_MIN, ETHER_TYPE, FRAME_MARK, FRAME_MARK_AT, FRAME_TO_AT, Frame, FrameBody, Mac, Port,
    Station,
};
use nix::errno::Errno;

use super::outgoing::{FRAME_BYTES_MIN, Outgoing, Route, Unsent};
use super::pieces::{Added, Pieces};
use super::place::{MTU_MIN, OVERHEAD, RingError, RingPlace, interface};
use super::socket::{DATAGRAM_BYTES_MAX, room_to_send};
use super::{Carrier, Sent};

/// Frames that one look passes over for a datagram.
const FRAMES_A_LOOK: u32 = 64;
/// Between two questions who is there.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long others may take longer than the first who answers.
const OTHERS_WITHIN: Duration = Duration::from_millis(40);
/// Nodes that an error names: who answers under more addresses is not kept.
const NODES_MAX: usize = 16;
/// Datagrams in pieces at once: of a node's clients, 4 MiB; and of a client's node, 1 MiB.
const NODE_PIECES: usize = 64;
const CLIENT_PIECES: usize = 16;

/// See the module.
pub(crate) struct RingCarrier {
    ring: Ring,
    interface: Interface,
    port: Port,
    /// Of a node.
    claim: Option<Claim>,
    /// Of a client: the only one it hears.
    node: Station,
    /// What a frame to the node may bring, as it said last.
    node_carries: u16,
    /// What a frame here may bring of a datagram, or of a piece of one.
    carries: u16,
    taken: Taken,
    /// From whom that is, and what a frame there may bring.
    from: Station,
    from_carries: u16,
    pieces: Box<Pieces>,
    /// By which pieces age.
    started: Instant,
    outgoing: Outgoing,
    sent: Option<Sent>,
    malformed: u64,
    overrun: u64,
}

/// No other node of this machine has the port of the interface of this index. Frames to two nodes
/// would be answered by both, and the kernel knows nothing of our ports, so a name that is this
/// network's own stands for each.
struct Claim {
    index: u32,
    _name: UnixDatagram,
}

impl Claim {
    fn new(interface: &Interface, port: Port) -> std::io::Result<Claim> {
        let name = format!("ethermem-ring-{}-{}", interface.index, port.0);
        let name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        Ok(Claim { index: interface.index, _name: name })
    }
}

/// What came last, and was not yet handed over.
enum Taken {
    Nothing,
    /// In the frame that the ring holds.
    Frame(Range<usize>),
    /// The same, of pieces.
    Whole,
}

/// Who answered, each once, with what its frames bring.
type Answered = Vec<(Mac, u16)>;

/// Where they are.
fn places(asked: &RingPlace, mut found: Answered) -> Vec<RingPlace> {
    found.sort_unstable();
    found.iter().map(|&(mac, _)| RingPlace { mac: Some(mac), ..asked.clone() }).collect()
}

/// All nodes that answer at a place within a time: one, where it has an address.
///
/// # Errors
/// [`RingError`]: this machine cannot ask.
pub fn nodes_at(place: &RingPlace, most: Duration) -> Result<Vec<RingPlace>, RingError> {
    let (_, found) = RingCarrier::find(place, most)?;
    Ok(places(place, found))
}

const NOBODY: Station = Station { mac: Mac::BROADCAST, port: Port(0) };

impl RingCarrier {
    /// Of a node that is reached at a place.
    pub(crate) fn of_node(place: &RingPlace) -> Result<RingCarrier, RingError> {
        let (interface, port) = (interface(&place.interface)?, Port(place.port.into()));
        let taken = |error| RingError::Taken(interface.name.clone(), place.port, error);
        let claim = Claim::new(&interface, port).map_err(taken)?;
        RingCarrier::open(interface, port, Some(claim))
    }

    /// To the node at a place, or to the one that answers, which is waited for.
    pub(crate) fn to_node(place: &RingPlace, most: Duration) -> Result<RingCarrier, RingError> {
        let (mut carrier, mut found) = RingCarrier::find(place, most)?;
        if found.len() > 1 {
            return Err(RingError::Several(places(place, found)));
        }
        let Some((mac, carries)) = found.pop() else {
            let name = &carrier.interface.name;
            return Err(match carrier.ring.interface(name) {
                Ok(Interface { is_up: false, name, .. }) => RingError::Down(name, most),
                _ => RingError::Silent(most),
            });
        };
        carrier.node = Station { mac, port: Port(place.port.into()) };
        carrier.node_carries = carries;
        Ok(carrier)
    }

    /// A client's, and all that answer at a place.
    fn find(place: &RingPlace, most: Duration) -> Result<(RingCarrier, Answered), RingError> {
        let interface = interface(&place.interface)?;
        let own = Mac(interface.mac);
        if place.mac == Some(own) && !interface.is_loopback {
            return Err(RingError::Itself(own));
        }
        // Above all ports that operators choose.
        let port = getrandom::u64().map_err(RingError::Random)? | 1 << 63;
        let mut carrier = RingCarrier::open(interface, Port(port), None)?;
        // On the loopback nobody has the address of everybody, and all have the same one.
        let everybody = if carrier.interface.is_loopback { own } else { Mac::BROADCAST };
        let to = Station { mac: place.mac.unwrap_or(everybody), port: Port(place.port.into()) };
        let found = carrier.ask(to, most);
        Ok((carrier, found))
    }

    fn open(
        interface: Interface,
        port: Port,
        claim: Option<Claim>,
    ) -> Result<RingCarrier, RingError> {
        let ring = open_ring(&interface, port, claim.is_some())?;
        let pieces = if claim.is_some() { NODE_PIECES } else { CLIENT_PIECES };
        let number = getrandom::u32().map_err(RingError::Random)?;
        Ok(RingCarrier {
            ring,
            carries: carries(&interface),
            interface,
            port,
            claim,
            node: NOBODY,
            node_carries: CARRIES_MIN,
            taken: Taken::Nothing,
            from: NOBODY,
            from_carries: CARRIES_MIN,
            pieces: Box::new(Pieces::new(pieces)),
            started: Instant::now(),
            outgoing: Outgoing::new(number),
            sent: None,
            malformed: 0,
            overrun: 0,
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

    /// Octets of a datagram that a frame to the node may bring.
    pub(crate) fn carries(&self) -> usize {
        self.carries.min(self.node_carries).into()
    }

    /// What to sleep on. Nothing is held while somebody sleeps.
    pub(crate) fn waiter(&self) -> Waiter {
        self.ring.waiter()
    }

    /// Frames that are none, but look as if.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Frames for which the ring had no room.
    pub(crate) fn overrun(&mut self) -> u64 {
        self.overrun += u64::from(self.ring.drops().unwrap_or(0));
        self.overrun
    }

    /// Looks whether the interface is another one by now, or of another MTU or address, or was away
    /// meanwhile, and if so begins anew on it. Whether it did.
    pub(crate) fn mend(&mut self) -> bool {
        let Ok(found) = self.ring.interface(&self.interface.name) else {
            return false;
        };
        let Interface { is_up, .. } = self.interface;
        let is_same = Interface { is_up, ..found.clone() } == self.interface;
        if is_same && self.ring.is_bound() {
            return false;
        }
        // What may be on the loopback in clear may not be on an interface that has its name.
        if found.is_loopback != self.interface.is_loopback || found.mtu < MTU_MIN {
            return false;
        }
        let is_claimed = self.claim.as_ref().is_none_or(|claim| claim.index == found.index);
        let claim = (!is_claimed).then(|| Claim::new(&found, self.port)).transpose();
        let (Ok(claim), Ok(ring)) = (claim, open_ring(&found, self.port, self.claim.is_some()))
        else {
            return false;
        };
        self.overrun();
        self.claim = claim.or(self.claim.take());
        (self.ring, self.carries, self.interface) = (ring, carries(&found), found);
        self.taken = Taken::Nothing;
        true
    }

    /// Those that answer, each once, with what its frames bring; one is enough where it was asked
    /// for by its address.
    fn ask(&mut self, to: Station, most: Duration) -> Answered {
        let (began, waiter) = (Instant::now(), self.waiter());
        let mut found = Answered::new();
        let mut until = most;
        let mut asked: Option<Instant> = None;
        while began.elapsed() < until && found.len() < NODES_MAX {
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                self.send_short(to, FrameBody::Question);
                asked = Some(Instant::now());
            }
            let Some(octets) = self.ring.take() else {
                waiter.wait(Duration::from_millis(1));
                continue;
            };
            let Ok((Frame { from, carries, body: FrameBody::Answer, .. }, _)) =
                Frame::parse(octets)
            else {
                continue;
            };
            let is_asked = to.mac == Mac::BROADCAST || from.mac == to.mac;
            let is_known = found.iter().any(|(mac, _)| *mac == from.mac);
            if from.port != to.port || !is_asked || is_known {
                continue;
            }
            if found.is_empty() {
                until = until.min(began.elapsed() + OTHERS_WITHIN);
            }
            found.push((from.mac, carries));
            if from.mac == to.mac {
                break;
            }
        }
        self.ring.release();
        found
    }

    fn route(&self, to: Station, carries: u16) -> Route {
        let from = Station { mac: Mac(self.interface.mac), port: self.port };
        Route { to, from, carries_back: self.carries, carries: carries.min(self.carries).into() }
    }

    /// A frame without a datagram.
    fn send_short(&mut self, to: Station, body: FrameBody) {
        let mut octets = [0; FRAME_BYTES_MIN];
        let frame = self.route(to, self.carries).frame(body);
        frame.emit(0, &mut octets).expect("it is short");
        // Whatever hinders it, it is as if the network had lost it.
        let _ = self.ring.send(&octets);
    }

    /// To somebody whose frames bring so much.
    fn transmit(&mut self, to: Station, carries: u16, bytes: usize) {
        let mut sent = self.sent.unwrap_or_default();
        let mut result = self.send_datagram(to, carries, bytes);
        if let Err(Unsent { problem: Errno::EMSGSIZE, is_intact }) = result {
            // The interface has another MTU than when it was looked at.
            if let Ok(found) = self.ring.interface(&self.interface.name) {
                self.carries = self.carries.min(self::carries(&found));
                if is_intact {
                    result = self.send_datagram(to, carries, bytes);
                }
            }
        }
        match result {
            Ok(()) => sent.bytes += bytes as u64,
            Err(Unsent { problem, .. }) => {
                sent.refused += 1;
                sent.problem = Some(problem);
            }
        }
        self.sent = Some(sent);
    }

    fn send_datagram(&mut self, to: Station, carries: u16, bytes: usize) -> Result<(), Unsent> {
        let route = self.route(to, carries);
        self.outgoing.send(&route, bytes, |octets| self.ring.send(octets))
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
        let is_node = self.claim.is_some();
        if !is_node {
            // Whoever else speaks to a client is not the node.
            if frame.from != self.node {
                return None;
            }
            self.node_carries = frame.carries;
        }
        match frame.body {
            FrameBody::Datagram => {
                let bytes = range.len();
                (self.from, self.from_carries) = (frame.from, frame.carries);
                self.taken = Taken::Frame(range);
                Some(bytes)
            }
            FrameBody::Piece(piece) => {
                let now = Ns(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX));
                match self.pieces.add(now, frame.from, piece, &octets[range]) {
                    Added::Whole(bytes) => {
                        (self.from, self.from_carries) = (frame.from, frame.carries);
                        self.taken = Taken::Whole;
                        Some(bytes)
                    }
                    Added::Part => None,
                    Added::Contradiction => {
                        self.malformed += 1;
                        None
                    }
                }
            }
            FrameBody::Question => {
                // A client is asked nothing.
                if is_node {
                    self.send_short(frame.from, FrameBody::Answer);
                }
                None
            }
            // One of those that came after the first.
            FrameBody::Answer => None,
        }
    }
}

/// What one frame of the interface brings of a datagram.
fn carries(interface: &Interface) -> u16 {
    let most = interface.mtu.saturating_sub(OVERHEAD).min(DATAGRAM_BYTES_MAX);
    u16::try_from(most).unwrap_or(u16::MAX).max(CARRIES_MIN)
}

fn open_ring(interface: &Interface, port: Port, is_node: bool) -> Result<Ring, RingError> {
    let ring = Ring::open(interface, ETHER_TYPE, &filter(port, is_node))?;
    room_to_send(&ring).map_err(|error| RingError::Interface(interface.name.clone(), error))?;
    Ok(ring)
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
        Some((datagram, self.outgoing.place()))
    }

    fn reply(&mut self, bytes: usize) {
        self.transmit(self.from, self.from_carries, bytes);
    }

    fn place(&mut self) -> &mut [u8] {
        self.outgoing.place()
    }

    fn push(&mut self, bytes: usize) {
        self.transmit(self.node, self.node_carries, bytes);
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
