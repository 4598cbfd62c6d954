//! Connections: a socket, and the session behind it.

use std::io::{self, Read, Write};

use ethermem_kv::Client;
use mio::net::TcpStream;

use crate::session::Talk;

/// A client that is connected.
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) talk: Talk,
    /// There may be something to read.
    pub(crate) is_readable: bool,
    /// Nothing will come behind what has come.
    pub(crate) is_at_end: bool,
    /// It is in the list of those that have something to do.
    pub(crate) is_queued: bool,
    /// It cannot be reached.
    is_lost: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, client: Client, id: u64) -> Connection {
        Connection {
            stream,
            talk: Talk::new(client, id),
            is_readable: true,
            is_at_end: false,
            is_queued: false,
            is_lost: false,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Reads what is there, up to a bound, unless what came before is not done with.
    pub(crate) fn read(&mut self) {
        let talk = &mut self.talk;
        if !self.is_readable || talk.is_blocked() || talk.is_over || talk.may_execute {
            return;
        }
        let room = talk.requests.room();
        let length = room.len();
        match self.stream.read(room) {
            // What came before has been executed.
            Ok(0) => talk.is_over = true,
            Ok(bytes) => {
                talk.requests.fill(bytes);
                // A stream that gave less has no more, unless its end is behind.
                self.is_readable = bytes == length || self.is_at_end;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_lost = true,
        }
    }

    /// Sends what the other side takes.
    pub(crate) fn write(&mut self) {
        let replies = &mut self.talk.replies;
        while !replies.unsent().is_empty() && !self.is_lost {
            match self.stream.write(replies.unsent()) {
                Ok(0) => self.is_lost = true,
                Ok(bytes) => replies.sent(bytes),
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
        !self.is_lost && !self.talk.replies.unsent().is_empty()
    }

    /// Whether it goes on without the other side.
    pub(crate) fn has_work(&self) -> bool {
        let talk = &self.talk;
        !talk.is_over && !talk.is_blocked() && (self.is_readable || talk.may_execute)
    }
}
