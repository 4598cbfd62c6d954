//! Datagrams in raw Ethernet frames, through a ring shared with the kernel.

use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use ethermem_ring::{Alarm, Field, Filter, Interface, Ring, Waiter};
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

/// Number of frames without a datagram that one poll skips.
const FRAMES_A_LOOK: u32 = 64;
/// Interval of discovery questions.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long to wait for other nodes after the first answer.
const OTHERS_WITHIN: Duration = Duration::from_millis(40);
/// Largest number of nodes in an error; answers from further addresses are dropped.
const NODES_MAX: usize = 16;
/// Datagrams in reassembly at once: 4 MiB for a node, and 1 MiB for a client.
const NODE_PIECES: usize = 64;
const CLIENT_PIECES: usize = 16;

/// The carrier over raw Ethernet.
pub(crate) struct RingCarrier {
    ring: Ring,
    interface: Interface,
    port: Port,
    /// A node's claim on its port.
    claim: Option<Claim>,
    /// For a client: the only node whose frames it accepts.
    node: Station,
    /// Capacity in octets of a frame to the node, as the node last reported.
    node_carries: u16,
    /// Capacity in octets of a frame to this station, for a datagram or a piece.
    carries: u16,
    taken: Taken,
    /// Sender of the current datagram, and the capacity of a frame to it.
    from: Station,
    from_carries: u16,
    pieces: Box<Pieces>,
    /// Origin of the clock that expires pieces.
    started: Instant,
    outgoing: Outgoing,
    sent: Option<Sent>,
    malformed: u64,
    overrun: u64,
}

/// Ensures that no other node of this machine has the port on this interface. Frames to two nodes
/// would be answered by both, and the kernel does not know the protocol's ports. So the claim is a
/// socket name in this network namespace.
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

/// The datagram received last, until it is handed over.
enum Taken {
    Nothing,
    /// It is in the frame that the ring holds.
    Frame(Range<usize>),
    /// It was reassembled from pieces.
    Whole,
}

/// Nodes that answered, each once, with the capacity of frames to it.
type Answered = Vec<(Mac, u16)>;

/// Places of these nodes.
fn places(asked: &RingPlace, mut found: Answered) -> Vec<RingPlace> {
    found.sort_unstable();
    found.iter().map(|&(mac, _)| RingPlace { mac: Some(mac), ..asked.clone() }).collect()
}

/// All nodes that answer at a place within a time; at most one if it has a MAC address.
///
/// # Errors
/// [`RingError`]: this machine cannot send the question.
pub fn nodes_at(place: &RingPlace, most: Duration) -> Result<Vec<RingPlace>, RingError> {
    let (_, found) = RingCarrier::find(place, most)?;
    Ok(places(place, found))
}

const NOBODY: Station = Station { mac: Mac::BROADCAST, port: Port(0) };

impl RingCarrier {
    /// The carrier of a node at a place.
    pub(crate) fn of_node(place: &RingPlace) -> Result<RingCarrier, RingError> {
        let (interface, port) = (interface(&place.interface)?, Port(place.port.into()));
        let taken = |error| RingError::Taken(interface.name.clone(), place.port, error);
        let claim = Claim::new(&interface, port).map_err(taken)?;
        RingCarrier::open(interface, port, Some(claim))
    }

    /// The carrier to the node at a place, or to a node that answers within `most`.
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

    /// A client's carrier, and all nodes that answer at a place.
    fn find(place: &RingPlace, most: Duration) -> Result<(RingCarrier, Answered), RingError> {
        let interface = interface(&place.interface)?;
        let own = Mac(interface.mac);
        if place.mac == Some(own) && !interface.is_loopback {
            return Err(RingError::Itself(own));
        }
        // Clients' ports are above all ports that operators choose.
        let port = getrandom::u64().map_err(RingError::Random)? | 1 << 63;
        let mut carrier = RingCarrier::open(interface, Port(port), None)?;
        // The loopback has no broadcast address, and all its stations share one address.
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

    /// Place of the node.
    pub(crate) fn place(&self) -> RingPlace {
        RingPlace {
            interface: self.interface.name.clone(),
            port: u16::try_from(self.port.0).unwrap_or(0),
            mac: Some(Mac(self.interface.mac)),
        }
    }

    /// Capacity in octets of a frame to the node.
    pub(crate) fn carries(&self) -> usize {
        self.carries.min(self.node_carries).into()
    }

    /// A handle to sleep on. The frame that is held must be released first.
    pub(crate) fn waiter(&self) -> Waiter {
        self.ring.waiter()
    }

    /// Number of malformed frames.
    pub(crate) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Number of frames for which the ring had no room.
    pub(crate) fn overrun(&mut self) -> u64 {
        self.overrun += u64::from(self.ring.drops().unwrap_or(0));
        self.overrun
    }

    /// Checks whether the interface was replaced, was down, or has another MTU or address. If so,
    /// it reopens the ring on the interface, and returns true.
    pub(crate) fn mend(&mut self) -> bool {
        let Ok(found) = self.ring.interface(&self.interface.name) else {
            return false;
        };
        let Interface { is_up, .. } = self.interface;
        let is_same = Interface { is_up, ..found.clone() } == self.interface;
        if is_same && self.ring.is_bound() {
            return false;
        }
        // Traffic in clear is allowed on the loopback, but not on another interface with its name.
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

    /// The nodes that answer, each once, with the capacity of frames to it. One is enough if the
    /// question went to a MAC address.
    fn ask(&mut self, to: Station, most: Duration) -> Answered {
        let (began, waiter, alarm) = (Instant::now(), self.waiter(), Alarm::new());
        let mut found = Answered::new();
        let mut until = most;
        let mut asked: Option<Instant> = None;
        while began.elapsed() < until && found.len() < NODES_MAX {
            if asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
                self.send_short(to, FrameBody::Question);
                asked = Some(Instant::now());
            }
            let Some(octets) = self.ring.take() else {
                waiter.wait(&alarm, Duration::from_millis(1));
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

    /// Sends a frame without a datagram.
    fn send_short(&mut self, to: Station, body: FrameBody) {
        let mut octets = [0; FRAME_BYTES_MIN];
        let frame = self.route(to, self.carries).frame(body);
        frame.emit(0, &mut octets).expect("it is short");
        // An error counts as a loss in the network.
        let _ = self.ring.send(&octets);
    }

    /// Sends to a station that accepts frames of this capacity.
    fn transmit(&mut self, to: Station, carries: u16, bytes: usize) {
        let mut sent = self.sent.unwrap_or_default();
        let mut result = self.send_datagram(to, carries, bytes);
        if let Err(Unsent { problem: Errno::EMSGSIZE, is_intact }) = result {
            // The interface's MTU has changed since it was read.
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

    /// Handles the received frame, and returns the length of a datagram in it or completed by it.
    fn look(&mut self) -> Option<usize> {
        let octets = self.ring.held()?;
        let parsed = Frame::parse(octets).ok();
        // A broadcast frame can only be a discovery question.
        let is_for_us = |(frame, _): &(Frame, _)| {
            frame.body == FrameBody::Question || !frame.to.mac.is_multicast()
        };
        let Some((frame, range)) = parsed.filter(is_for_us) else {
            self.malformed += 1;
            return None;
        };
        let is_node = self.claim.is_some();
        if !is_node {
            // A client drops frames of any station other than its node.
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
                // Only a node answers questions.
                if is_node {
                    self.send_short(frame.from, FrameBody::Answer);
                }
                None
            }
            // This is a late answer, after the first.
            FrameBody::Answer => None,
        }
    }
}

/// Capacity in octets of a frame on the interface.
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
                // The held frame is released, so that a read frame does not wake a sleeper.
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
