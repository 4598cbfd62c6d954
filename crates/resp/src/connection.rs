//! Connections: a socket, and the session behind it.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ethermem_kv::Client;
use mio::net::TcpStream;

use crate::info::State;
use crate::session::Talk;
use crate::transport::Transport;

/// A client names the password within this.
const NAMED_WITHIN: Duration = Duration::from_secs(10);
/// A client takes some of the replies that wait for it within this.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// A client that is connected.
pub(crate) struct Connection {
    transport: Transport,
    pub(crate) talk: Talk,
    /// There may be something to read.
    pub(crate) is_readable: bool,
    /// Nothing will come behind what has come.
    pub(crate) is_at_end: bool,
    /// It is in the list of those that have something to do.
    pub(crate) is_queued: bool,
    /// It cannot be reached.
    is_lost: bool,
    pub(crate) accepted: Instant,
    /// When it took something, or there was nothing to take.
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

    /// Says that nothing follows.
    pub(crate) fn say_goodbye(&mut self) {
        self.transport.say_goodbye();
    }

    /// Whether it must name the password first.
    pub(crate) fn is_stranger(&self, state: &State) -> bool {
        self.talk.peer.is_stranger(state)
    }

    /// Gives it up, where it takes too long with the password or with replies; whether it does.
    pub(crate) fn expire(&mut self, state: &State, now: Instant) -> bool {
        let is_slow = self.is_stranger(state) && now.duration_since(self.accepted) > NAMED_WITHIN;
        let is_stuck = self.has_unsent() && now.duration_since(self.took) > TAKEN_WITHIN;
        self.is_lost |= is_slow || is_stuck;
        is_slow || is_stuck
    }

    /// Reads what is there, up to a bound, unless what came before is not done with.
    pub(crate) fn read(&mut self) {
        let talk = &mut self.talk;
        if !self.is_readable || talk.is_blocked() || talk.is_over || talk.may_execute {
            return;
        }
        let room = talk.requests.room();
        let length = room.len();
        match self.transport.read(room) {
            // What came before has been executed.
            Ok(0) => talk.is_over = true,
            Ok(bytes) => {
                talk.requests.fill(bytes);
                // A socket that gave less has no more, unless its end is behind.
                let may_have_more = bytes == length || !self.transport.reads_all_at_once();
                self.is_readable = may_have_more || self.is_at_end;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_lost = true,
        }
    }

    /// Sends what the other side takes.
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

    /// Whether it can be forgotten.
    pub(crate) fn is_done(&self) -> bool {
        self.is_lost || (self.talk.is_over && !self.has_unsent())
    }

    /// Whether the other side has not read all.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.is_lost && (!self.talk.replies.unsent().is_empty() || self.transport.has_unsent())
    }

    /// Whether it goes on without the other side.
    pub(crate) fn has_work(&self) -> bool {
        let talk = &self.talk;
        !talk.is_over && !talk.is_blocked() && (self.is_readable || talk.may_execute)
    }
}
