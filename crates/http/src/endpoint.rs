//! The listening socket and its connections, on the thread that calls [`Endpoint::serve`].

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::connection::{Asked, Connection, Reply, Stream};

/// All connections are polled whenever one of them wakes the thread: they are few.
const ANY: Token = Token(0);
const EVENTS: usize = 64;

/// Limits for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of concurrent connections, at least 2. Another one ends the oldest.
    pub connections_max: usize,
    /// Largest head of a request in octets.
    pub head_bytes_max: usize,
    /// Time limit for sending the request.
    pub ask_within: Duration,
    /// Time limit for reading the response.
    pub take_within: Duration,
    /// Time limit for closing the connection afterwards.
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

/// A listening socket with its connections.
pub struct Endpoint {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    limits: Limits,
    /// Connections, the oldest first.
    connections: VecDeque<Connection<TcpStream>>,
    /// True if more connections may be waiting to be accepted.
    accept_more: bool,
}

impl Stream for TcpStream {
    fn end_writing(&mut self) {
        // If the peer has disconnected, the next read reports it.
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Endpoint {
    /// Listens on an address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn bind(address: SocketAddr, limits: Limits) -> io::Result<Endpoint> {
        let mut listener = TcpListener::bind(address)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, ANY, Interest::READABLE)?;
        let (events, connections) = (Events::with_capacity(EVENTS), VecDeque::new());
        Ok(Endpoint { poll, events, listener, limits, connections, accept_more: false })
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Waits for clients for at most `wait`, and then serves all connections without blocking on
    /// any client.
    ///
    /// # Errors
    /// When polling fails. Errors of a client end only its connection.
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

    /// Time to the next deadline, at most `most`.
    fn wait(&self, most: Duration) -> Duration {
        let Some(next) = self.connections.iter().map(Connection::until).min() else {
            return most;
        };
        // The added millisecond prevents rounding down to before the deadline.
        let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        left.min(most)
    }

    /// Accepts new connections, but only so many that each gets a turn before it must give way.
    fn accept(&mut self, now: Instant) {
        self.accept_more = true;
        for _ in 0..self.limits.connections_max / 2 {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // The client disconnected at once.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                // None is waiting, or the system has no room for one: the next call retries.
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
