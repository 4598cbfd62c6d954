//! TLS handshakes, by a machine thread of their own: the one that serves never waits for a peer
//! that is slow or silent, nor for the cryptography of its first words.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError, TrySendError};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::{ServerConfig, ServerConnection};
use slab::Slab;

use crate::transport::Transport;

/// A handshake takes no longer.
const DEADLINE: Duration = Duration::from_secs(5);
/// Handshakes at once, and as many that wait to begin.
const MOST: usize = 512;
const WAKER: Token = Token(usize::MAX);
const TICK: Duration = Duration::from_millis(100);

/// What has come of a peer.
pub(crate) enum Shaken {
    Done(Transport, SocketAddr),
    /// It was too slow.
    TimedOut,
    /// It spoke something else, or went away.
    Failed,
}

/// The side of the server; the thread ends with it.
pub(crate) struct Handshakes {
    /// Peers that begin.
    to: SyncSender<(TcpStream, SocketAddr)>,
    waker: Arc<Waker>,
    shaken: Receiver<Shaken>,
}

impl Handshakes {
    /// Begins the thread. `wakes` is called with every outcome.
    pub(crate) fn start(
        config: Arc<ServerConfig>,
        wakes: impl Fn() + Send + 'static,
    ) -> io::Result<Handshakes> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (to, peers) = mpsc::sync_channel(MOST);
        let (outcomes, shaken) = mpsc::channel();
        let tell = move |shaken| {
            let told: Result<(), _> = Sender::send(&outcomes, shaken);
            wakes();
            told.is_ok()
        };
        let hall = Hall { poll, config, peers, shaking: Slab::new() };
        let thread = std::thread::Builder::new().name("kv-tls".to_owned());
        thread.spawn(move || hall.run(tell))?;
        Ok(Handshakes { to, waker, shaken })
    }

    /// Takes a peer; false where too many are at it, and the peer is let go.
    pub(crate) fn begin(&self, stream: TcpStream, from: SocketAddr) -> bool {
        let taken = self.to.try_send((stream, from));
        // It looks by itself soon, if it cannot be woken.
        let _ = self.waker.wake();
        !matches!(taken, Err(TrySendError::Full(_) | TrySendError::Disconnected(_)))
    }

    /// The next outcome, if there is one.
    pub(crate) fn next(&self) -> Option<Shaken> {
        self.shaken.try_recv().ok()
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        // The thread finds the channel closed, with the next tick at the latest.
        let _ = self.waker.wake();
    }
}

/// One that is at it.
struct Shaking {
    stream: TcpStream,
    session: ServerConnection,
    from: SocketAddr,
    until: Instant,
}

/// The side of the thread.
struct Hall {
    poll: Poll,
    config: Arc<ServerConfig>,
    peers: Receiver<(TcpStream, SocketAddr)>,
    shaking: Slab<Shaking>,
}

impl Hall {
    fn run(mut self, tell: impl Fn(Shaken) -> bool) {
        let mut events = Events::with_capacity(MOST);
        loop {
            match self.poll.poll(&mut events, Some(TICK)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
            let mut ended = Vec::new();
            for event in events.iter().filter(|event| event.token() != WAKER) {
                ended.extend(self.go_on(event.token().0));
            }
            while self.shaking.len() < MOST {
                match self.peers.try_recv() {
                    Ok((stream, from)) => ended.extend(self.welcome(stream, from)),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            let now = Instant::now();
            let late = self.shaking.iter().filter(|(_, one)| one.until <= now);
            let late: Vec<usize> = late.map(|(at, _)| at).collect();
            ended.extend(late.into_iter().map(|at| {
                self.shaking.remove(at);
                Shaken::TimedOut
            }));
            if !ended.into_iter().all(&tell) {
                return;
            }
        }
    }

    fn welcome(&mut self, mut stream: TcpStream, from: SocketAddr) -> Option<Shaken> {
        let Ok(session) = ServerConnection::new(self.config.clone()) else {
            return Some(Shaken::Failed);
        };
        let entry = self.shaking.vacant_entry();
        let (at, both) = (entry.key(), Interest::READABLE | Interest::WRITABLE);
        if self.poll.registry().register(&mut stream, Token(at), both).is_err() {
            return Some(Shaken::Failed);
        }
        let until = Instant::now() + DEADLINE;
        entry.insert(Shaking { stream, session, from, until });
        self.go_on(at)
    }

    /// Goes on with one, and takes it out once it has ended.
    fn go_on(&mut self, at: usize) -> Option<Shaken> {
        let shaken = self.shaking.get_mut(at)?.go_on();
        if matches!(shaken, Ok(false)) {
            return None;
        }
        let mut one = self.shaking.remove(at);
        // It is closed with the stream at the latest.
        let _ = self.poll.registry().deregister(&mut one.stream);
        Some(match shaken {
            Ok(_) => Shaken::Done(Transport::tls(one.stream, one.session), one.from),
            Err(_) => Shaken::Failed,
        })
    }
}

impl Shaking {
    /// Whether the handshake is over.
    fn go_on(&mut self) -> io::Result<bool> {
        while self.session.is_handshaking() {
            if self.session.wants_write() {
                match self.session.write_tls(&mut self.stream) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    written => written?,
                };
                continue;
            }
            match self.session.read_tls(&mut self.stream) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                read => read?,
            };
            if let Err(error) = self.session.process_new_packets() {
                self.refuse(&error);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
        Ok(true)
    }

    /// Tells the peer why, in its own words: an alert, or a line for one that speaks no TLS.
    fn refuse(&mut self, error: &rustls::Error) {
        // Whether it is heard or not, the connection ends.
        if matches!(error, rustls::Error::InvalidMessage(_)) {
            let _ = self.stream.write(b"-ERR this port takes TLS alone\r\n");
        } else {
            let _ = self.session.write_tls(&mut self.stream);
        }
    }
}
