//! What a connection's bytes go through: the socket itself, or TLS over it.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::ServerConnection;

/// See the module. Neither side is ever waited for.
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// TLS whose handshake is over.
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

    /// Whether a read that fills no more than a part of its room has left nothing behind. TLS
    /// gives what was in the records that it has read so far, and more may wait in the socket.
    pub(crate) fn reads_all_at_once(&self) -> bool {
        matches!(self, Transport::Plain(_))
    }

    /// Whether bytes that were written wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.session.wants_write())
    }

    /// Says that nothing follows, if the other side listens.
    pub(crate) fn say_goodbye(&mut self) {
        if let Transport::Tls(tls) = self {
            tls.session.send_close_notify();
            // Whoever does not hear it sees the end of the stream.
            let _ = tls.send();
        }
    }
}

impl Tls {
    /// Sends what the other side takes.
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
                // An end without a word is an end, as it is without TLS: requests say their length.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if self.session.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            let processed = self.session.process_new_packets();
            // The other side is told what was wrong, if there was something.
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
