//! A memory node behind a socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem_clio::node::Node;
use ethermem_units::Ns;

use crate::seal::NodeSeal;
use crate::socket::{self, DATAGRAM_BYTES_MAX};

/// Memory that is made ready for page faults at a time: some microseconds of work.
const TEND_BYTES: u64 = 64 << 10;
/// Datagrams, or looks at an empty socket, between two looks at what is not urgent.
const TEND_EVERY: u32 = 64;
/// Longest sleep, so that a lease or the end of the server is seen.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// What happened to datagrams outside of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Answers that the socket did not take: their clients ask again.
    pub answers_dropped: u64,
    /// Times that the server went to sleep.
    pub sleeps: u64,
}

/// How a node's datagrams are protected.
pub enum Protect {
    /// As the node checks them by itself: for datagrams that do not leave the machine.
    Node,
    /// By encryption.
    Seal(Box<NodeSeal>),
}

/// A memory node and the socket it answers on. One thread: the node's fast path takes no lock.
pub struct Server<B> {
    node: Node<B>,
    protect: Protect,
    socket: UdpSocket,
    started: Instant,
    counters: ServerCounters,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Server<B> {
    /// Binds the socket of a node.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn bind(node: Node<B>, protect: Protect, address: SocketAddr) -> io::Result<Server<B>> {
        let socket = socket::bind(address)?;
        let counters = ServerCounters::default();
        Ok(Server { node, protect, socket, started: Instant::now(), counters })
    }

    /// Where it is reached.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Its node, to look at.
    #[must_use]
    pub fn node(&self) -> &Node<B> {
        &self.node
    }

    /// The same, before it runs.
    pub fn node_mut(&mut self) -> &mut Node<B> {
        &mut self.node
    }

    /// What happened outside of the node.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }

    /// Answers until it is told to stop. It polls without a pause, and sleeps when nothing came for
    /// `poll_for`: waking up takes tens of microseconds.
    ///
    /// # Errors
    /// Those of the socket that are not a datagram's.
    pub fn run(&mut self, poll_for: Duration, stop: &AtomicBool) -> io::Result<()> {
        let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
        let mut answer = vec![0; DATAGRAM_BYTES_MAX];
        let (mut quiet_since, mut turns) = (Instant::now(), 0_u32);
        while !stop.load(Ordering::Relaxed) {
            let came = self.serve_one(&mut datagram, &mut answer)?;
            turns += 1;
            if turns < TEND_EVERY {
                continue;
            }
            turns = 0;
            let more = self.node.tend(self.now(), TEND_BYTES);
            if came || more {
                quiet_since = Instant::now();
            } else if quiet_since.elapsed() >= poll_for {
                self.counters.sleeps += 1;
                socket::wait(&self.socket, SLEEP_MAX);
            }
        }
        Ok(())
    }

    /// Whether a datagram was there.
    fn serve_one(&mut self, datagram: &mut [u8], answer: &mut [u8]) -> io::Result<bool> {
        let (bytes, from) = match self.socket.recv_from(datagram) {
            Ok(came) => came,
            Err(error) if socket::is_nothing(&error) => {
                std::hint::spin_loop();
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let (now, datagram) = (self.now(), &mut datagram[..bytes]);
        let bytes = match &mut self.protect {
            Protect::Node => self.node.on_datagram(now, datagram, answer),
            Protect::Seal(seal) => self.node.on_sealed(now, datagram, answer, &mut **seal),
        };
        // Whatever the socket has against an answer, it is as if the network had lost it.
        if bytes > 0 && self.socket.send_to(&answer[..bytes], from).is_err() {
            self.counters.answers_dropped += 1;
        }
        Ok(true)
    }

    /// The node's clock, which begins at 1: 0 is "not known".
    fn now(&self) -> Ns {
        Ns(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1))
    }
}
