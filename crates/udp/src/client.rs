//! A client of a memory node behind a network.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ethermem_clio::transport::{
    Client, ClientConfig, ClientConfigError, Landing, Loan, PathLengths,
};
use ethermem_ring::{Alarm, Maker};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Protection, SenderId, TenantId};
use thiserror::Error;

use crate::carrier::paths::{self, BoundBy, InterfaceError};
use crate::carrier::place::{RingError, RingPlace};
use crate::carrier::socket;
use crate::carrier::train::Trains;
use crate::carrier::{Carrier, PathsCarrier, RingCarrier, UdpCarrier, is_passing};
use crate::patience::{Patience, Wait};
use crate::seal::{ClientSeal, TenantKey};

/// Length in octets that every path is assumed to carry (`BASE_PLPMTU` of RFC 8899).
const DATAGRAM_BYTES_BASE: usize = 1200;
/// Number of receive calls in one turn, so that results are not delayed.
const TURN_RECEIVES: usize = 16;
/// Shortest response that is received in its reader's buffer: looking at it first is a call of the
/// system, which takes as long as a copy of this many octets.
const LANDED_BYTES_MIN: usize = 8 << 10;
/// Number of polls per clock read: some microseconds.
const LOOKS_EACH_CLOCK: u32 = 8;
/// Allowed excess over the shortest round trip, which covers other work of the machine.
const QUEUEING_TARGET: Ns = Ns(200_000);
/// Smallest retransmission timeout; a later response only causes a duplicate request.
const RETRY_AFTER_MIN: Ns = Ns(40_000);
const RETRY_AFTER_MAX: Ns = Ns(100_000_000);

/// A node's place, and the carrier to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePlace {
    /// By UDP.
    Udp(SocketAddr),
    /// By UDP over several interfaces of this machine.
    Via {
        /// Address of the node.
        node: SocketAddr,
        /// Names of the interfaces.
        interfaces: Vec<String>,
    },
    /// By raw Ethernet, which needs CAP_NET_RAW.
    Ring(RingPlace),
}

/// Options of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Place of the node.
    pub node: NodePlace,
    /// Tenant whose quota is used.
    pub tenant: TenantId,
    /// The tenant's key; without one, datagrams are in clear.
    pub key: Option<TenantKey>,
    /// Longest datagram in octets; `None` is the path's measured MTU.
    pub datagram_bytes_max: Option<usize>,
    /// Largest number of requests in flight.
    pub window: u32,
    /// Largest number of response bytes in flight.
    pub incast_window: Bytes,
    /// How long an operation is tried.
    pub give_up_after: Duration,
}

/// The reason why a client cannot be created.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The socket failed, or there is no route.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The node cannot be reached over raw Ethernet.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
    /// The transport's configuration is not allowed.
    #[error(transparent)]
    Config(#[from] ClientConfigError),
}

/// This process is a fork of the one that made the client. It has copies of the key and of the next
/// datagram number. Using them would seal two datagrams with one number, so nothing is sent or
/// received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is the parent process's, and nothing goes by it after a fork")]
pub struct Forked;

/// The transport to one node, with its socket.
///
/// Submit operations to [`Driver::client`], then call [`Driver::turn`] until they have completed.
pub struct Driver {
    speaker: Speaker,
    carrier: AnyCarrier,
    patience: Patience,
    alarm: Arc<Alarm>,
    maker: Arc<Maker>,
}

/// The carrier of one driver.
enum AnyCarrier {
    Udp(Box<UdpCarrier>),
    Paths(Box<PathsCarrier>),
    Ring(Box<RingCarrier>),
}

/// The protocol, with any carrier.
struct Speaker {
    client: Client,
    seal: Option<ClientSeal>,
    started: Instant,
    /// Time when something was last sent or received.
    active: Ns,
    /// Number of fruitless polls since the last response.
    looks: u32,
}

impl Driver {
    /// A client with a socket of its own. Over UDP nothing is sent yet. Over raw Ethernet it waits
    /// for the node to be found, at most as long as an operation is tried.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(options: &ClientOptions) -> Result<Driver, ConnectError> {
        let maker = Arc::new(Maker::new());
        let (carrier, paths_bytes) = AnyCarrier::connect(options)?;
        // A length that the user gives is taken as known for the path.
        let given =
            options.datagram_bytes_max.map(|bytes| PathLengths { base: bytes, most: bytes });
        let of_system = |&most: &usize| PathLengths { base: most.min(DATAGRAM_BYTES_BASE), most };
        let lengths: Vec<PathLengths> =
            paths_bytes.iter().map(|bytes| given.unwrap_or_else(|| of_system(bytes))).collect();
        let datagram_bytes_max = lengths.iter().map(|path| path.most).max().unwrap_or(0);
        let sender = SenderId(getrandom::u64().map_err(ConnectError::Random)?);
        let seal = options.key.map(|key| ClientSeal::new(options.tenant, &key, sender));
        let config = ClientConfig {
            sender,
            tenant: options.tenant,
            protection: if seal.is_some() { Protection::Gcm } else { Protection::Carrier },
            datagram_bytes_max,
            datagram_bytes_base: lengths.iter().map(|path| path.base).min().unwrap_or(0),
            window_max: options.window,
            incast_window: Bytes(options.incast_window.0.max(datagram_bytes_max as u64)),
            queueing_target: QUEUEING_TARGET,
            retry_after_min: RETRY_AFTER_MIN,
            retry_after_max: RETRY_AFTER_MAX.min(duration_ns(options.give_up_after / 2)),
            give_up_after: duration_ns(options.give_up_after),
        };
        let speaker = Speaker {
            client: Client::with_paths(config, &lengths)?,
            seal,
            started: Instant::now(),
            active: Ns::ZERO,
            looks: 0,
        };
        let alarm = Arc::new(Alarm::new());
        Ok(Driver { speaker, carrier, patience: Patience::new(), alarm, maker })
    }

    /// The transport: for operations, their results, and inspection.
    pub fn client(&mut self) -> &mut Client {
        &mut self.speaker.client
    }

    /// Time of the transport's clock.
    #[must_use]
    pub fn now(&self) -> Ns {
        self.speaker.now()
    }

    /// Identity of the process that created it.
    #[must_use]
    pub fn maker(&self) -> &Arc<Maker> {
        &self.maker
    }

    fn check_maker(&self) -> io::Result<()> {
        if self.maker.is_here() { Ok(()) } else { Err(io::Error::other(Forked)) }
    }

    /// A handle to sleep on while idle: it becomes readable when a response arrives.
    #[must_use]
    pub fn sleeper(&self) -> Sleeper {
        let waiter = match &self.carrier {
            AnyCarrier::Udp(udp) => Waiter::Udp(udp.socket().clone()),
            AnyCarrier::Paths(paths) => Waiter::Paths(paths.waiter()),
            AnyCarrier::Ring(ring) => Waiter::Ring(ring.waiter()),
        };
        Sleeper { waiter, alarm: Arc::clone(&self.alarm) }
    }

    /// Over UDP, the local address of its datagrams.
    #[must_use]
    pub fn from(&self) -> Option<SocketAddr> {
        match &self.carrier {
            AnyCarrier::Udp(udp) => udp.socket().local_addr().ok(),
            AnyCarrier::Paths(_) | AnyCarrier::Ring(_) => None,
        }
    }

    /// The kernel's support of trains. None is used if one datagram fills a call, or over raw
    /// Ethernet.
    #[must_use]
    pub fn trains(&self) -> Trains {
        match &self.carrier {
            AnyCarrier::Udp(udp) => udp.trains(),
            AnyCarrier::Paths(paths) => paths.trains(),
            AnyCarrier::Ring(_) => Trains::NONE,
        }
    }

    /// How each socket of a driver of several interfaces is bound, in their order.
    #[must_use]
    pub fn bound(&self) -> Vec<BoundBy> {
        match &self.carrier {
            AnyCarrier::Paths(paths) => paths.bound(),
            AnyCarrier::Udp(_) | AnyCarrier::Ring(_) => Vec::new(),
        }
    }

    /// Sends what may be sent.
    ///
    /// # Errors
    /// Errors of the socket itself; [`Forked`].
    pub fn send(&mut self) -> io::Result<()> {
        self.send_from(None)
    }

    /// As [`Driver::send`], with the data of a write that its caller waits for.
    ///
    /// # Errors
    /// As [`Driver::send`].
    pub fn send_from(&mut self, loan: Option<Loan<'_>>) -> io::Result<()> {
        self.check_maker()?;
        match &mut self.carrier {
            AnyCarrier::Udp(udp) => self.speaker.send(&mut **udp, loan),
            AnyCarrier::Paths(paths) => self.speaker.send(&mut **paths, loan),
            AnyCarrier::Ring(ring) => self.speaker.send(&mut **ring, loan),
        }
    }

    /// Handles pending responses, and sends what may be sent. Returns whether there was a response.
    ///
    /// # Errors
    /// Errors of the socket itself; [`Forked`].
    pub fn turn(&mut self) -> io::Result<bool> {
        self.turn_into(None)
    }

    /// As [`Driver::turn`], with the buffer of a read that its caller waits for. Over UDP, long
    /// responses that are not encrypted are received there, without a copy.
    ///
    /// # Errors
    /// As [`Driver::turn`].
    pub fn turn_into(&mut self, landing: Option<&mut Landing<'_>>) -> io::Result<bool> {
        self.turn_with(landing, None)
    }

    /// As [`Driver::turn`], with the data of a write that its caller waits for: they are sent from
    /// its memory.
    ///
    /// # Errors
    /// As [`Driver::turn`].
    pub fn turn_from(&mut self, loan: Loan<'_>) -> io::Result<bool> {
        self.turn_with(None, Some(loan))
    }

    fn turn_with(
        &mut self,
        landing: Option<&mut Landing<'_>>,
        loan: Option<Loan<'_>>,
    ) -> io::Result<bool> {
        self.check_maker()?;
        let came = match &mut self.carrier {
            AnyCarrier::Udp(udp) => self.speaker.turn(&mut **udp, landing, loan)?,
            AnyCarrier::Paths(paths) => self.speaker.turn(&mut **paths, landing, loan)?,
            AnyCarrier::Ring(ring) => self.speaker.turn(&mut **ring, landing, loan)?,
        };
        if came {
            self.patience.interrupt();
        }
        Ok(came)
    }

    /// What a thread does that waits for a response, after a [`Driver::turn`] without one.
    #[inline]
    pub fn fruitless(&mut self) -> Wait {
        self.patience.fruitless()
    }

    /// The thread that waits for a response sleeps now.
    #[inline]
    pub fn sleeps(&mut self) {
        self.patience.sleep();
    }

    /// Time since something was last sent or received.
    #[must_use]
    pub fn idle(&self) -> Duration {
        Duration::from_nanos(self.now().saturating_sub(self.speaker.active).0)
    }

    /// Time until the next timer, if no response arrives; `None` is for ever. While the thread
    /// gives way, a response has at least the time that other work of the machine may take.
    #[must_use]
    pub fn rest(&self) -> Option<Duration> {
        let now = self.now();
        let late = if self.patience.gives_way() { QUEUEING_TARGET } else { Ns::ZERO };
        let wake = self.speaker.client.next_wake_with(now.saturating_add(late))?;
        Some(Duration::from_nanos(wake.saturating_sub(now).0))
    }
}

impl AnyCarrier {
    /// Connects, and returns for each path the longest datagram that the system knows it to carry
    /// in one piece.
    fn connect(options: &ClientOptions) -> Result<(AnyCarrier, Vec<usize>), ConnectError> {
        let node = match &options.node {
            NodePlace::Udp(node) => *node,
            NodePlace::Via { node, interfaces } => {
                let paths = PathsCarrier::open(*node, interfaces, options.datagram_bytes_max)?;
                let bytes = paths.carries();
                return Ok((AnyCarrier::Paths(Box::new(paths)), bytes));
            }
            NodePlace::Ring(place) => {
                let ring = RingCarrier::to_node(place, options.give_up_after)?;
                let bytes = ring.carries();
                return Ok((AnyCarrier::Ring(Box::new(ring)), vec![bytes]));
            }
        };
        let socket = connected(node)?;
        let path_bytes = socket::path_bytes(&socket)?;
        let bytes = options.datagram_bytes_max.unwrap_or(path_bytes);
        let trains = Trains::for_datagrams(&socket, bytes);
        let udp = Box::new(UdpCarrier::to_node(socket, trains));
        Ok((AnyCarrier::Udp(udp), vec![path_bytes]))
    }
}

impl Speaker {
    fn now(&self) -> Ns {
        duration_ns(self.started.elapsed())
    }

    fn send(&mut self, carrier: &mut impl Carrier, loan: Option<Loan<'_>>) -> io::Result<()> {
        self.active = self.now();
        self.send_at(self.active, carrier, loan)
    }

    fn send_at(
        &mut self,
        now: Ns,
        carrier: &mut impl Carrier,
        loan: Option<Loan<'_>>,
    ) -> io::Result<()> {
        // A router has reported on an earlier datagram.
        if self.client.searches_path()
            && let Some(bytes) = carrier.path_bytes()
        {
            self.client.narrow_path(now, bytes);
        }
        while let Some(path) = self.client.next_path(now) {
            carrier.choose(path);
            let refers = self.seal.is_none() && carrier.refers();
            let datagram = carrier.place();
            let (bytes, rest): (usize, &[u8]) = if refers {
                self.client.poll_transmit_parts(now, path, datagram, loan)
            } else {
                (self.client.poll_transmit_lent(now, path, datagram, loan), &[])
            };
            if bytes == 0 {
                break;
            }
            if !rest.is_empty() {
                carrier.push_with(bytes, rest).check()?;
                self.leave_failed(now, carrier);
                continue;
            }
            if let Some(seal) = &self.seal {
                seal.seal(&mut datagram[..bytes]).expect("the transport writes datagrams");
            }
            carrier.push(bytes);
            // A datagram that cannot be part of a train need not wait. A path probe must not wait,
            // or the train would be tested.
            let gathers = carrier.gathers() && Trains::may_have(bytes);
            if !gathers || carrier.is_full() || self.client.searches_path() {
                carrier.flush().check()?;
                self.leave_failed(now, carrier);
            }
        }
        if carrier.is_empty() {
            return Ok(());
        }
        carrier.flush().check()?;
        if self.leave_failed(now, carrier) {
            return self.send_at(now, carrier, loan);
        }
        Ok(())
    }

    /// Tells the transport which paths the system refused, and returns whether there were any. It
    /// leaves each of them at once, so a caller that sends again comes to an end.
    fn leave_failed(&mut self, now: Ns, carrier: &mut impl Carrier) -> bool {
        let mut failed = false;
        while let Some(path) = carrier.failed() {
            failed |= self.client.path_failed(now, path);
        }
        failed
    }

    fn turn(
        &mut self,
        carrier: &mut impl Carrier,
        mut landing: Option<&mut Landing<'_>>,
        loan: Option<Loan<'_>>,
    ) -> io::Result<bool> {
        let was_passed = loan.is_some_and(|loan| self.client.lend(loan.operation));
        let (mut came, mut all) = (false, false);
        for _ in 0..TURN_RECEIVES {
            match self.receive(carrier, landing.as_deref_mut()) {
                Ok(true) => {
                    came = true;
                    // Polling for more than is in flight costs as much as sending.
                    all = self.client.under_way() == 0;
                }
                Ok(false) => all = true,
                Err(error) if is_passing(&error) => all = true,
                Err(error) => return Err(error),
            }
            if all {
                break;
            }
        }
        self.looks = if came { 0 } else { self.looks.wrapping_add(1) };
        if came {
            if all {
                self.client.looked(self.active);
            }
            self.send_at(self.active, carrier, loan)?;
        } else if was_passed {
            self.send(carrier, loan)?;
        } else if self.looks.is_multiple_of(LOOKS_EACH_CLOCK) {
            let now = self.now();
            self.client.looked(now);
            if self.client.next_wake().is_some_and(|wake| wake <= now) {
                self.active = now;
                self.send_at(now, carrier, loan)?;
            }
        }
        Ok(came)
    }

    /// Receives and handles responses. Returns false if there are none.
    fn receive(
        &mut self,
        carrier: &mut impl Carrier,
        mut landing: Option<&mut Landing<'_>>,
    ) -> io::Result<bool> {
        let lands = self.seal.is_none() && carrier.lands();
        let place = landing.as_ref().filter(|_| lands).and_then(|landing| {
            let place = self.client.next_landing(landing.operation)?;
            (place.len() >= LANDED_BYTES_MIN).then_some(place)
        });
        if let (Some(landing), Some(place)) = (&mut landing, place) {
            return self.receive_around(carrier, landing, place);
        }
        let received = carrier.receive()?.is_some();
        if received {
            self.hear(carrier, landing);
        }
        Ok(received)
    }

    /// As [`Speaker::receive`], where the response of a place of the read's buffer comes next,
    /// unless the network has lost or reordered some. Whatever comes is received there.
    fn receive_around(
        &mut self,
        carrier: &mut impl Carrier,
        landing: &mut Landing<'_>,
        place: Range<usize>,
    ) -> io::Result<bool> {
        let to = &mut landing.to[place.clone()];
        let Some(bytes) = carrier.receive_around(to)? else { return Ok(false) };
        let front = carrier.front();
        if self.client.awaits(landing.operation, front, bytes) == Some(place) {
            self.active = self.now();
            self.client.on_landed(self.active, carrier.came_by(), front, to);
        } else {
            carrier.put_back(to);
            self.hear(carrier, Some(landing));
        }
        Ok(true)
    }

    /// Handles responses, which may be forged.
    fn hear(&mut self, carrier: &mut impl Carrier, mut landing: Option<&mut Landing<'_>>) {
        let now = self.now();
        self.active = now;
        let path = carrier.came_by();
        while let Some((answer, _)) = carrier.next() {
            let landing = landing.as_deref_mut();
            match &mut self.seal {
                None => self.client.on_datagram_into(now, path, answer, landing),
                Some(seal) => {
                    if let Some(sealed) = seal.open(answer) {
                        let packets = &answer[sealed.packets];
                        let envelope = &sealed.envelope;
                        self.client.on_packets_into(now, path, envelope, packets, landing);
                    }
                }
            }
        }
    }
}

/// Waits for responses without the client.
#[derive(Clone, Debug)]
pub struct Sleeper {
    waiter: Waiter,
    alarm: Arc<Alarm>,
}

#[derive(Clone, Debug)]
enum Waiter {
    Udp(Arc<UdpSocket>),
    Paths(Arc<paths::Waiter>),
    Ring(ethermem_ring::Waiter),
}

impl Sleeper {
    /// Sleeps until a response arrives, or for at most `most`.
    pub fn sleep(&self, most: Duration) {
        match &self.waiter {
            Waiter::Ring(ring) => ring.wait(&self.alarm, most),
            Waiter::Udp(_) | Waiter::Paths(_) => {
                self.alarm.sleep(self.descriptor(), None, most);
            }
        }
    }

    /// The descriptor that becomes readable when a response arrives.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.waiter {
            Waiter::Udp(socket) => socket.as_fd(),
            Waiter::Paths(paths) => paths.as_fd(),
            Waiter::Ring(ring) => ring.descriptor(),
        }
    }
}

fn connected(node: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match node {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = socket::bind(any)?;
    socket.connect(node)?;
    Ok(socket)
}

fn duration_ns(duration: Duration) -> Ns {
    Ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
