//! Connections: a socket with its session.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ethermem_kv::Client;
use mio::net::TcpStream;

use crate::info::State;
use crate::session::Talk;
use crate::transport::Transport;

/// Time within which a client must authenticate.
const NAMED_WITHIN: Duration = Duration::from_secs(10);
/// Time within which a client must accept some of its pending replies.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// A connected client.
pub(crate) struct Connection {
    transport: Transport,
    pub(crate) talk: Talk,
    /// True if the socket may have data to read.
    pub(crate) is_readable: bool,
    /// True if the peer has closed its side.
    pub(crate) is_at_end: bool,
    /// True if it is in the queue of connections with work.
    pub(crate) is_queued: bool,
    /// True if the connection has failed.
    is_lost: bool,
    pub(crate) accepted: Instant,
    /// Time when the client last accepted data, or had none to accept.
    took: Instant,
}

impl Connection {
    pub(crate) fn new(
        (transport, from): (Transport, SocketAddr),
        client: Client,
        id: u64,
    ) -> Connection {
        let (mut talk, now) = (Talk::new(client, id), Instant::now());
        talk.peer.address = Some(from.ip());
        Connection {
            transport,
            talk,
            is_readable: true,
            is_at_end: false,
            is_queued: false,
            is_lost: false,
            accepted: now,
            took: now,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.transport.stream()
    }

    /// Closes the sending side.
    pub(crate) fn say_goodbye(&mut self) {
        self.transport.say_goodbye();
    }

    /// True if the client must authenticate first.
    pub(crate) fn is_stranger(&self, state: &State) -> bool {
        self.talk.peer.is_stranger(state)
    }

    /// Gives the connection up if authentication or accepting replies takes too long; returns
    /// whether it did.
    pub(crate) fn expire(&mut self, state: &State, now: Instant) -> bool {
        let is_slow = self.is_stranger(state) && now.duration_since(self.accepted) > NAMED_WITHIN;
        let is_stuck = self.has_unsent() && now.duration_since(self.took) > TAKEN_WITHIN;
        self.is_lost |= is_slow || is_stuck;
        is_slow || is_stuck
    }

    /// Reads available data up to a bound, unless earlier data is still unprocessed.
    pub(crate) fn read(&mut self) {
        let talk = &mut self.talk;
        if !self.is_readable || talk.is_blocked() || talk.is_over || talk.may_execute {
            return;
        }
        let room = talk.requests.room();
        let length = room.len();
        match self.transport.read(room) {
            // All earlier data has been executed.
            Ok(0) => talk.is_over = true,
            Ok(bytes) => {
                talk.requests.fill(bytes);
                // A socket that returned less than requested is empty, unless the peer has closed
                // it.
                let may_have_more = bytes == length || !self.transport.reads_all_at_once();
                self.is_readable = may_have_more || self.is_at_end;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_lost = true,
        }
    }

    /// Sends as much as the socket accepts.
    pub(crate) fn write(&mut self) {
        let replies = &mut self.talk.replies;
        let now = Instant::now();
        loop {
            if self.is_lost {
                return;
            }
            let unsent = replies.unsent();
            let written = match unsent.is_empty() {
                true => self.transport.flush().map(|()| 0),
                false => self.transport.write(unsent),
            };
            match written {
                Ok(0) if unsent.is_empty() => {
                    self.took = now;
                    return;
                }
                Ok(0) => self.is_lost = true,
                Ok(bytes) => {
                    replies.sent(bytes);
                    self.took = now;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_lost = true,
            }
        }
    }

    /// True if the connection can be removed.
    pub(crate) fn is_done(&self) -> bool {
        self.is_lost || (self.talk.is_over && !self.has_unsent())
    }

    /// True if replies are unsent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.is_lost && (!self.talk.replies.unsent().is_empty() || self.transport.has_unsent())
    }

    /// True if it has work that needs no data from the peer.
    pub(crate) fn has_work(&self) -> bool {
        let talk = &self.talk;
        !talk.is_over && !talk.is_blocked() && (self.is_readable || talk.may_execute)
    }
}
