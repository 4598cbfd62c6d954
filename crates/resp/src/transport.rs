//! The byte stream of a connection: the socket itself, or TLS over it.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::ServerConnection;

/// A byte stream that never blocks.
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// TLS after its handshake.
pub(crate) struct Tls {
    stream: TcpStream,
    session: ServerConnection,
}

impl Transport {
    pub(crate) fn tls(stream: TcpStream, session: ServerConnection) -> Transport {
        Transport::Tls(Box::new(Tls { stream, session }))
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(tls) => &mut tls.stream,
        }
    }

    /// True if a read that fills only part of its buffer has left nothing behind. TLS returns only
    /// the records that it has read so far, and more may be in the socket.
    pub(crate) fn reads_all_at_once(&self) -> bool {
        matches!(self, Transport::Plain(_))
    }

    /// True if written bytes wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.session.wants_write())
    }

    /// Closes the sending side, if the peer still listens.
    pub(crate) fn say_goodbye(&mut self) {
        if let Transport::Tls(tls) = self {
            tls.session.send_close_notify();
            // A peer that misses the alert sees the end of the stream.
            let _ = tls.send();
        }
    }
}

impl Tls {
    /// Sends as much as the socket accepts.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.stream)?;
        }
        Ok(())
    }
}

impl Read for Tls {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A missing close alert counts as an end, as without TLS: requests carry their
                // length.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if self.session.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            let processed = self.session.process_new_packets();
            // The peer receives an alert, if there is one.
            let sent = self.send();
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            sent.or_else(|error| match error.kind() {
                ErrorKind::WouldBlock => Ok(()),
                _ => Err(error),
            })?;
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        let written = self.session.writer().write(bytes)?;
        match self.send() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ if written == 0 && !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
            _ => Ok(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl Read for Transport {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.read(room),
            Transport::Tls(tls) => tls.read(room),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.write(bytes),
            Transport::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Transport::Plain(_) => Ok(()),
            Transport::Tls(tls) => tls.flush(),
        }
    }
}
