//! Frames between the processes of two racks: a header of 32 B, little-endian, and a body.
//!
//! A *chunk* is a frame with a number of its own. It is kept until the other process has it, and
//! goes by another subflow if its subflow is left. All other frames belong to one subflow.

use thiserror::Error;

use crate::offer::Address;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 32;
/// Most bytes of a stream in one chunk.
pub const DATA_BYTES_MAX: usize = 64 << 10;
/// Most subflows of a session.
pub const SUBFLOWS_MAX: usize = 16;
/// Bytes of the two addresses of an `Open`.
pub const OPEN_BYTES: usize = 16;
/// Bytes of one subflow's entry in an `Ack`.
pub const ACK_ENTRY_BYTES: usize = 16;
/// Most bytes of a frame of the handshake.
const HELLO_BYTES_MAX: usize = 256;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The connecting process names its rack, the session and the subflow.
    Hello = 1,
    /// The accepting process proves that it has the key.
    Challenge = 2,
    /// The connecting process proves it.
    Proof = 3,
    /// The subflow may be used.
    Ready = 4,
    /// Chunks that have arrived, by subflow.
    Ack = 5,
    /// A request for an `Ack`.
    Probe = 6,
    /// A chunk: a program connects to an address of the other rack.
    Open = 7,
    /// A chunk: the address has accepted.
    Opened = 8,
    /// A chunk: the address has refused.
    Refused = 9,
    /// A chunk: bytes of a stream, from a position on.
    Data = 10,
    /// A chunk: the stream ends at a position.
    Fin = 11,
    /// A chunk: the stream is reset.
    Reset = 12,
    /// A chunk: the position up to which the receiver of a stream has room.
    Credit = 13,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        use Kind::{
            Ack, Challenge, Credit, Data, Fin, Hello, Open, Opened, Probe, Proof, Ready, Refused,
            Reset,
        };
        let all = [
            Hello, Challenge, Proof, Ready, Ack, Probe, Open, Opened, Refused, Data, Fin, Reset,
            Credit,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// True if frames of this kind have a number and are kept until they have arrived.
    #[must_use]
    pub fn is_chunk(self) -> bool {
        self as u8 >= Kind::Open as u8
    }

    fn is_length(self, bytes: usize) -> bool {
        match self {
            Kind::Hello | Kind::Challenge | Kind::Proof => bytes <= HELLO_BYTES_MAX,
            Kind::Ack => {
                bytes.is_multiple_of(ACK_ENTRY_BYTES) && bytes <= ACK_ENTRY_BYTES * SUBFLOWS_MAX
            }
            Kind::Open => bytes == OPEN_BYTES,
            Kind::Data => (1..=DATA_BYTES_MAX).contains(&bytes),
            _ => bytes == 0,
        }
    }
}

/// What another rack's process sent and never may. The session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The kind of a frame is unknown, or not allowed at this point.
    #[error("frame of kind {0}: not allowed here")]
    Kind(u8),
    /// A body has a length that its kind cannot have.
    #[error("frame of kind {kind}: {bytes} B, which that kind cannot have")]
    Length {
        /// The kind's number.
        kind: u8,
        /// The body's length.
        bytes: u64,
    },
    /// A chunk's number is far ahead of all that have arrived.
    #[error("chunk {0}: too far ahead")]
    Number(u64),
    /// The stream was never opened, or is opened twice.
    #[error("stream {0}: not open, or open already")]
    Stream(u32),
    /// Bytes of a stream overlap others, lie behind its end, or exceed the room for them.
    #[error("stream {stream}: bytes at {position} cannot be there")]
    Position {
        /// The stream.
        stream: u32,
        /// Where the bytes begin.
        position: u64,
    },
    /// More bytes lie behind gaps of streams than missing chunks can explain.
    #[error("stream {0}: its gaps are no missing chunks")]
    Gap(u32),
    /// So many chunks were sent and not acknowledged that no process would take another one.
    #[error("{0} chunks: not acknowledged")]
    Unacknowledged(u64),
    /// More chunks are acknowledged than were sent, or on a subflow that does not exist.
    #[error("acknowledgement of {chunks} chunks on subflow {subflow}: not so many were sent")]
    Ack {
        /// The subflow.
        subflow: u32,
        /// The chunks.
        chunks: u64,
    },
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The frame's kind.
    pub kind: Kind,
    /// Bytes of the body.
    pub body_bytes: usize,
    /// The stream, or 0.
    pub stream: u32,
    /// The chunk's number, or 0.
    pub chunk: u64,
    /// A position of the stream, or 0.
    pub position: u64,
}

fn four(from: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([from[at], from[at + 1], from[at + 2], from[at + 3]])
}

fn eight(from: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(four(from, at)) | u64::from(four(from, at + 4)) << 32
}

impl Header {
    /// Reads a header, and checks what can be checked without a session.
    ///
    /// # Errors
    /// [`Fault::Kind`], [`Fault::Length`].
    pub fn parse(from: &[u8; HEADER_BYTES]) -> Result<Header, Fault> {
        let kind = Kind::of(from[0]).ok_or(Fault::Kind(from[0]))?;
        let body_bytes = four(from, 4) as usize;
        if !kind.is_length(body_bytes) {
            return Err(Fault::Length { kind: from[0], bytes: body_bytes as u64 });
        }
        let (stream, chunk, position) = (four(from, 8), eight(from, 16), eight(from, 24));
        Ok(Header { kind, body_bytes, stream, chunk, position })
    }

    /// The header as bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut to = [0; HEADER_BYTES];
        to[0] = self.kind as u8;
        to[4..8].copy_from_slice(&(self.body_bytes as u32).to_le_bytes());
        to[8..12].copy_from_slice(&self.stream.to_le_bytes());
        to[16..24].copy_from_slice(&self.chunk.to_le_bytes());
        to[24..32].copy_from_slice(&self.position.to_le_bytes());
        to
    }

    /// A whole frame.
    #[must_use]
    pub fn frame(&self, body: &[u8]) -> Vec<u8> {
        debug_assert_eq!(body.len(), self.body_bytes);
        [&self.bytes()[..], body].concat()
    }
}

/// The body of an `Open`.
#[must_use]
pub fn open_body(client: Address, server: Address) -> [u8; OPEN_BYTES] {
    let mut body = [0; OPEN_BYTES];
    let fields = [client.ip, client.port, server.ip, server.port];
    for (place, field) in body.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    body
}

/// The client and the server of an `Open`.
#[must_use]
pub fn parse_open(body: &[u8]) -> Option<(Address, Address)> {
    let body: &[u8; OPEN_BYTES] = body.try_into().ok()?;
    let field =
        |at: usize| u32::from_le_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    let of = |at: usize| Address { ip: field(at), port: field(at + 4) };
    let is_port = |address: &Address| (1..=u32::from(u16::MAX)).contains(&address.port);
    Some((of(0), of(8))).filter(|(client, server)| is_port(client) && is_port(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_returns_what_was_put_in() {
        let header = Header {
            kind: Kind::Data,
            body_bytes: 5,
            stream: 7,
            chunk: 1 << 40,
            position: u64::MAX - 1,
        };
        assert_eq!(Header::parse(&header.bytes()), Ok(header));
        let (client, server) = (Address { ip: 1, port: 2 }, Address { ip: 3, port: 65_535 });
        assert_eq!(parse_open(&open_body(client, server)), Some((client, server)));
        assert_eq!(parse_open(&open_body(client, Address { ip: 3, port: 65_536 })), None);
    }

    #[test]
    fn lengths_at_their_limits() {
        let parse = |kind: Kind, body_bytes: usize| {
            let header = Header { kind, body_bytes, stream: 0, chunk: 0, position: 0 };
            Header::parse(&header.bytes()).is_ok()
        };
        assert!(parse(Kind::Data, 1) && parse(Kind::Data, DATA_BYTES_MAX));
        assert!(!parse(Kind::Data, 0) && !parse(Kind::Data, DATA_BYTES_MAX + 1));
        assert!(parse(Kind::Ack, 256) && !parse(Kind::Ack, 272) && !parse(Kind::Ack, 15));
        assert!(parse(Kind::Open, 16) && !parse(Kind::Open, 17) && !parse(Kind::Fin, 1));
        assert_eq!(Header::parse(&[0; HEADER_BYTES]), Err(Fault::Kind(0)));
        assert_eq!(Header::parse(&[14; HEADER_BYTES]), Err(Fault::Kind(14)));
    }
}
