//! The listening socket and its connections, on the thread that calls [`Endpoint::serve`].

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::connection::{Asked, Connection, Reply, Stream};

/// All connections are looked at whenever one of them wakes the thread: they are few.
const ANY: Token = Token(0);
const EVENTS: usize = 64;

/// Bounds on what clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time; at least 2. One more ends the one that is there longest.
    pub connections_max: usize,
    /// Octets of the head of a request.
    pub head_bytes_max: usize,
    /// The time a client has to send its request.
    pub ask_within: Duration,
    /// The time it has to take the answer.
    pub take_within: Duration,
    /// The time it has to close the connection after that.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 64,
            head_bytes_max: 8 << 10,
            ask_within: Duration::from_secs(5),
            take_within: Duration::from_secs(10),
            linger: Duration::from_secs(1),
        }
    }
}

/// See the module.
pub struct Endpoint {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    limits: Limits,
    /// The one that is there longest first.
    connections: VecDeque<Connection<TcpStream>>,
    /// There may be more to accept.
    accept_more: bool,
}

impl Stream for TcpStream {
    fn end_writing(&mut self) {
        // The peer may have gone; the next read says so.
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Endpoint {
    /// Listens.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Endpoint> {
        let mut listener = TcpListener::bind(address)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, ANY, Interest::READABLE)?;
        let (events, connections) = (Events::with_capacity(EVENTS), VecDeque::new());
        Ok(Endpoint { poll, events, listener, limits, connections, accept_more: false })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Connections that are open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Waits for clients for at most `wait`, and then answers what is there without waiting for
    /// any client.
    ///
    /// # Errors
    /// The system cannot wait. Errors of a client end its connection alone.
    pub fn serve(
        &mut self,
        wait: Duration,
        mut answer: impl FnMut(Asked<'_>) -> Reply,
    ) -> io::Result<()> {
        let wait = if self.accept_more { Duration::ZERO } else { self.wait(wait) };
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let now = Instant::now();
        let limits = self.limits;
        self.accept(now);
        self.connections.retain_mut(|client| client.advance(now, &limits, &mut answer));
        Ok(())
    }

    /// Until the next deadline, if that is earlier.
    fn wait(&self, most: Duration) -> Duration {
        let Some(next) = self.connections.iter().map(Connection::until).min() else {
            return most;
        };
        // A part of a millisecond would be rounded away, and the deadline not yet there.
        let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        left.min(most)
    }

    /// Takes new connections, but no more than leave each a turn before it must give way.
    fn accept(&mut self, now: Instant) {
        self.accept_more = true;
        for _ in 0..self.limits.connections_max / 2 {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // A client that went away at once.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                // None is there, or the system has no room for one: the next call tries again.
                Err(_) => {
                    self.accept_more = false;
                    return;
                }
            };
            let both = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut stream, ANY, both).is_err() {
                continue;
            }
            if self.connections.len() >= self.limits.connections_max {
                self.connections.pop_front();
            }
            self.connections.push_back(Connection::new(stream, now, &self.limits));
        }
    }
}
