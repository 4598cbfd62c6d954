//! TLS handshakes, on a thread of their own. The serving thread thus never waits for a peer that is
//! slow or silent, nor for a handshake's cryptography.

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

/// Time limit of a handshake.
const DEADLINE: Duration = Duration::from_secs(5);
/// Largest number of concurrent handshakes, and of those that wait to begin. Beyond it the oldest
/// gives way, so that silent peers keep no other peer out.
const MOST: usize = 512;
const WAKER: Token = Token(usize::MAX);
const TICK: Duration = Duration::from_millis(100);

/// Result of a handshake.
pub(crate) enum Shaken {
    Done(Transport, SocketAddr),
    /// The handshake exceeded its time limit.
    TimedOut,
    /// The peer failed to speak TLS, or disconnected.
    Failed,
}

/// The server's side; dropping it ends the thread.
pub(crate) struct Handshakes {
    /// Accepted peers whose handshake begins.
    to: SyncSender<(TcpStream, SocketAddr)>,
    waker: Arc<Waker>,
    shaken: Receiver<Shaken>,
}

impl Handshakes {
    /// Starts the thread. It calls `wakes` with every result.
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

    /// Hands a peer over. Returns false if too many handshakes are in progress, and the peer is
    /// dropped.
    pub(crate) fn begin(&self, stream: TcpStream, from: SocketAddr) -> bool {
        let taken = self.to.try_send((stream, from));
        // The thread also polls by itself, in case the wake-up fails.
        let _ = self.waker.wake();
        !matches!(taken, Err(TrySendError::Full(_) | TrySendError::Disconnected(_)))
    }

    /// The next result, if there is one.
    pub(crate) fn next(&self) -> Option<Shaken> {
        self.shaken.try_recv().ok()
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        // The thread notices the closed channel at the next tick at the latest.
        let _ = self.waker.wake();
    }
}

/// A handshake in progress.
struct Shaking {
    stream: TcpStream,
    session: ServerConnection,
    from: SocketAddr,
    until: Instant,
}

/// The thread's side.
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
            // Each peer that begins is heard once more before as many others have begun.
            for _ in 0..MOST / 2 {
                match self.peers.try_recv() {
                    Ok((stream, from)) => {
                        ended.extend(self.make_room());
                        ended.extend(self.welcome(stream, from));
                    }
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

    /// Ends the oldest handshake if there is no room for another one.
    fn make_room(&mut self) -> Option<Shaken> {
        if self.shaking.len() < MOST {
            return None;
        }
        let (at, _) = self.shaking.iter().min_by_key(|(_, one)| one.until)?;
        self.shaking.remove(at);
        Some(Shaken::TimedOut)
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

    /// Continues a handshake, and removes it once it has ended.
    fn go_on(&mut self, at: usize) -> Option<Shaken> {
        let shaken = self.shaking.get_mut(at)?.go_on();
        if matches!(shaken, Ok(false)) {
            return None;
        }
        let mut one = self.shaking.remove(at);
        // Closing the stream would also deregister it.
        let _ = self.poll.registry().deregister(&mut one.stream);
        Some(match shaken {
            Ok(_) => Shaken::Done(Transport::tls(one.stream, one.session), one.from),
            Err(_) => Shaken::Failed,
        })
    }
}

impl Shaking {
    /// Continues the handshake; returns true once it is complete.
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

    /// Tells the peer the reason: by an alert, or by a line of text to a peer that does not speak
    /// TLS.
    fn refuse(&mut self, error: &rustls::Error) {
        // Sending is best effort, because the connection ends anyway.
        if matches!(error, rustls::Error::InvalidMessage(_)) {
            let _ = self.stream.write(b"-ERR this port takes TLS alone\r\n");
        } else {
            let _ = self.session.write_tls(&mut self.stream);
        }
    }
}
