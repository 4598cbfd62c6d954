//! What hosts, switch and memory exchange, at the level of messages, grants and chunks.
//!
//! In every type that travels, `peer` is the other end as seen by who holds the value: the
//! destination while it is sent, the source once it is received. [`Outbound::sent_by`] turns it.

use ethermem_units::Bytes;

/// A node, by the switch port it hangs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// The caller's own handle of a request: returned in events, never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A byte address in the memory of a memory node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// Most bytes of one message: a 16-bit length in units of 64 B.
pub const MESSAGE_BYTES_MAX: Bytes = Bytes((4 << 20) - 64);
/// Bytes of an atomic's operand and of its result.
pub const RMW_BYTES: Bytes = Bytes(8);

/// Names one message between two nodes while it is in use: 8 bits on the wire.
///
/// Bit 7 is the class: 0 for a read or RMW (and its response), 1 for a write. Both ends of a pair
/// choose ids of their own, so a grant (peer, id) would be ambiguous at a node that both reads and
/// is read from, were it not for the class. Bits 0 to 2 are the row of the message state table,
/// bits 3 to 6 a generation that tells the users of a row apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8);

impl MessageId {
    /// Rows that 3 bits can name.
    pub const ROWS: usize = 8;

    const CLASS_WRITE: u8 = 0x80;

    /// The id of a class, a row (0 to 7) and a generation (modulo 16).
    #[inline]
    #[must_use]
    pub(crate) const fn new(write: bool, generation: u8, row: u8) -> MessageId {
        let class = if write { MessageId::CLASS_WRITE } else { 0 };
        MessageId(class | (generation & 0xf) << 3 | row & 7)
    }

    /// Whether it names a write of its sender; otherwise a read, an RMW or their response.
    #[inline]
    #[must_use]
    pub const fn is_write(self) -> bool {
        self.0 & MessageId::CLASS_WRITE != 0
    }

    /// Whether it is a later user of the row of `before`. Generations are compared as serial
    /// numbers: up to 8 ahead is later, otherwise it is the same id or an older one.
    #[inline]
    #[must_use]
    pub(crate) const fn is_after(self, before: MessageId) -> bool {
        let ahead = (self.0 >> 3).wrapping_sub(before.0 >> 3) & 0xf;
        1 <= ahead && ahead <= 8
    }

    /// Counts the users of its row, modulo 16.
    #[inline]
    #[must_use]
    pub(crate) const fn generation(self) -> u8 {
        self.0 >> 3 & 0xf
    }

    /// The row of the message state table.
    #[inline]
    #[must_use]
    pub(crate) const fn row(self) -> usize {
        (self.0 & 7) as usize
    }
}

/// When a write counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// When its last chunk is handed to the transmitter.
    Posted,
    /// When the memory node says that it was applied.
    Applied,
}

/// What an atomic does to the 8-byte word at its address; the result is the word before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RmwOpcode {
    /// Stores operand 1 if the word equals operand 0.
    CompareAndSwap = 1,
    /// Adds operand 0, modulo 2^64.
    FetchAndAdd = 2,
    /// Stores operand 0.
    Swap = 3,
    /// Bitwise and with operand 0.
    And = 4,
    /// Bitwise or with operand 0.
    Or = 5,
    /// Bitwise exclusive or with operand 0.
    Xor = 6,
}

impl RmwOpcode {
    /// Every opcode, by its code.
    pub const ALL: [RmwOpcode; 6] = [
        RmwOpcode::CompareAndSwap,
        RmwOpcode::FetchAndAdd,
        RmwOpcode::Swap,
        RmwOpcode::And,
        RmwOpcode::Or,
        RmwOpcode::Xor,
    ];

    /// The code on the wire: 1 to 6. Zero is none, so that a cleared field is no opcode.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The opcode of a code, `None` for one that is not known.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<RmwOpcode> {
        match code {
            1..=6 => Some(RmwOpcode::ALL[code as usize - 1]),
            _ => None,
        }
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Gets `bytes` from the peer (RREQ, answered by an RRES).
    Read {
        /// 1 to [`MESSAGE_BYTES_MAX`].
        bytes: Bytes,
    },
    /// Puts `bytes` into the peer's memory (WREQ).
    Write {
        /// 1 to [`MESSAGE_BYTES_MAX`].
        bytes: Bytes,
        /// When it is complete.
        ack: Ack,
    },
    /// Changes one 8-byte word atomically (RMWREQ, answered by an RRES with the old word).
    ReadModifyWrite {
        /// What it does.
        opcode: RmwOpcode,
        /// Compare-and-swap takes (expected, new); the others use the first only.
        operands: [u64; 2],
    },
}

/// One access of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Returned in its event.
    pub token: Token,
    /// The memory node.
    pub peer: NodeId,
    /// Where it acts in the peer's memory.
    pub address: Address,
    /// What it does.
    pub op: Op,
    /// Under [`crate::Order::Relaxed`]: after all earlier requests to this peer, and before all
    /// later ones. [`crate::Order::Pair`] orders all of them anyway.
    pub fence: bool,
}

/// Why a request was not taken. Nothing of it remains in the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// All message entries are in use. Retry after an event was polled.
    #[error("all message entries are in use; retry after the next completion")]
    Full,
    /// The peer is this node or does not exist. A retry cannot help.
    #[error("the peer is this node or does not exist")]
    BadPeer,
    /// No bytes, or more than [`MESSAGE_BYTES_MAX`]. A retry cannot help.
    #[error("a message carries 1 to {} bytes", MESSAGE_BYTES_MAX.0)]
    BadLength,
    /// The own link or the peer failed. Retry after it was restored.
    #[error("the link or the peer is down; retry after it was restored")]
    LinkDown,
}

/// Why a request failed. Whether a write or an RMW took effect is then unknown, except for
/// [`FailReason::Remote`] with a code other than [`StatusCode::Incomplete`]: it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// No response within the read timeout: the NULL response.
    Timeout,
    /// A part of the response did not arrive.
    Incomplete,
    /// Grants came faster than they could be kept.
    GrantsLost,
    /// The peer was declared failed.
    PeerDown,
    /// The own link was declared failed.
    LinkDown,
    /// The memory node refused it.
    Remote(StatusCode),
}

/// How a request ended. Every accepted request yields exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The whole response has arrived.
    ReadDone {
        /// The request.
        token: Token,
    },
    /// The old word has arrived.
    RmwDone {
        /// The request.
        token: Token,
    },
    /// The last chunk of a posted write was handed to the transmitter.
    WriteSent {
        /// The request.
        token: Token,
    },
    /// The memory node acknowledged the write.
    WriteApplied {
        /// The request.
        token: Token,
    },
    /// It did not end well; a read's NULL response.
    Failed {
        /// The request.
        token: Token,
        /// Why.
        why: FailReason,
    },
}

impl Event {
    /// The request that ended.
    #[must_use]
    pub const fn token(self) -> Token {
        match self {
            Event::ReadDone { token }
            | Event::RmwDone { token }
            | Event::WriteSent { token }
            | Event::WriteApplied { token }
            | Event::Failed { token, .. } => token,
        }
    }
}

/// RREQ or RMWREQ: a demand for its response and, at the memory node, the response's first grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRequest {
    /// The other end.
    pub peer: NodeId,
    /// Chosen by the compute node, of the read class.
    pub id: MessageId,
    /// Where to read.
    pub address: Address,
    /// Bytes of the response; [`RMW_BYTES`] for an atomic.
    pub bytes: Bytes,
    /// Set for an RMWREQ.
    pub modify: Option<Modify>,
}

/// The modify step of an RMWREQ. The opcode is as received: it may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modify {
    /// See [`RmwOpcode::code`].
    pub opcode: u8,
    /// See [`Op::ReadModifyWrite`].
    pub operands: [u64; 2],
}

/// /N/: the demand of a write, or of several that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The memory node.
    pub peer: NodeId,
    /// Of the write class.
    pub id: MessageId,
    /// Data bytes to be granted.
    pub bytes: Bytes,
    /// Writes that share it: each is framed as a message of its own inside the grants.
    pub members: u8,
}

/// /G/: the right to send `bytes` of a message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where the data goes.
    pub peer: NodeId,
    /// A write of this node, or a read of the peer.
    pub id: MessageId,
    /// At most a chunk.
    pub bytes: Bytes,
}

/// What a chunk is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Data of a write.
    WriteRequest {
        /// Which of the writes that share the id: 0 unless batched.
        member: u8,
        /// Whether the writer waits for a [`Status`] after the last chunk.
        ack: Ack,
    },
    /// Data of a read or the result of an atomic.
    ReadResponse,
}

/// A contiguous run of /MS/ ... /MT/ blocks: part of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The other end.
    pub peer: NodeId,
    /// The message.
    pub id: MessageId,
    /// What it is a part of.
    pub kind: ChunkKind,
    /// Of its first byte in the message (in the member, where several share the id).
    pub offset: Bytes,
    /// Data bytes.
    pub bytes: Bytes,
    /// Whether the message (the member) ends with it.
    pub last: bool,
    /// Of its first byte at the memory node.
    pub address: Address,
}

/// How the memory node took a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StatusCode {
    /// The write is in memory.
    Applied = 0,
    /// The address, or the end of the access, is outside the memory.
    BadAddress = 1,
    /// An atomic's address is not a multiple of 8.
    Misaligned = 2,
    /// The opcode of an RMWREQ is not known.
    UnknownOpcode = 3,
    /// A part of the write did not arrive; what did arrive may be in memory.
    Incomplete = 4,
    /// The memory node had no room to keep the request's grants.
    Overloaded = 5,
}

impl StatusCode {
    /// Every code, by its number on the wire.
    pub const ALL: [StatusCode; 6] = [
        StatusCode::Applied,
        StatusCode::BadAddress,
        StatusCode::Misaligned,
        StatusCode::UnknownOpcode,
        StatusCode::Incomplete,
        StatusCode::Overloaded,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The status of a number, `None` for one that is not known.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<StatusCode> {
        if (code as usize) < StatusCode::ALL.len() {
            Some(StatusCode::ALL[code as usize])
        } else {
            None
        }
    }
}

/// The acknowledgement of a write, or the refusal of any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The other end.
    pub peer: NodeId,
    /// The message.
    pub id: MessageId,
    /// Which of the writes that share the id.
    pub member: u8,
    /// How it was taken.
    pub code: StatusCode,
}

/// What a host transmits next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outbound {
    /// RREQ or RMWREQ.
    Request(MemoryRequest),
    /// /N/.
    Notify(Notification),
    /// Data, on the circuit of a grant.
    Chunk {
        /// Its header.
        chunk: Chunk,
        /// The write whose buffer holds the bytes; `None` for a response, whose bytes were read
        /// from memory when its request arrived.
        token: Option<Token>,
    },
    /// An acknowledgement or a refusal.
    Status(Status),
}

impl Outbound {
    /// The node it goes to.
    #[must_use]
    pub const fn peer(&self) -> NodeId {
        match self {
            Outbound::Request(request) => request.peer,
            Outbound::Notify(notification) => notification.peer,
            Outbound::Chunk { chunk, .. } => chunk.peer,
            Outbound::Status(status) => status.peer,
        }
    }

    /// The same, as its receiver sees it: `peer` is the sender, and no token.
    #[must_use]
    pub fn sent_by(mut self, sender: NodeId) -> Outbound {
        match &mut self {
            Outbound::Request(request) => request.peer = sender,
            Outbound::Notify(notification) => notification.peer = sender,
            Outbound::Chunk { chunk, token } => {
                chunk.peer = sender;
                *token = None;
            }
            Outbound::Status(status) => status.peer = sender,
        }
        self
    }
}

/// Bytes that the world must move because of what a host received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Memory node: read (or modify) now, keep the bytes for the response's chunks. Where memory
    /// refuses, call [`crate::Host::refuse`].
    Serve(MemoryRequest),
    /// Memory node: write a chunk now, then call [`crate::Host::on_written`] with the result.
    Store(Chunk),
    /// Compute node: bytes of a response.
    Deliver {
        /// The request.
        token: Token,
        /// Of the first byte in the response.
        offset: Bytes,
        /// How many.
        bytes: Bytes,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_class_row_and_generation_apart() {
        let mut seen = [false; 256];
        for write in [false, true] {
            for generation in 0..16 {
                for row in 0..8 {
                    let id = MessageId::new(write, generation, row);
                    assert_eq!(id.is_write(), write);
                    assert_eq!(id.row(), usize::from(row));
                    assert!(!std::mem::replace(&mut seen[usize::from(id.0)], true));
                }
            }
        }
        assert!(seen.iter().all(|&used| used));
    }

    #[test]
    fn codes_turn_back_into_what_they_encode() {
        for code in 0..=u8::MAX {
            let opcode = RmwOpcode::from_code(code);
            assert_eq!(opcode.is_some(), (1..=6).contains(&code), "opcode {code}");
            assert!(opcode.is_none_or(|opcode| opcode.code() == code));
            let status = StatusCode::from_code(code);
            assert_eq!(status.is_some(), code <= 5, "status {code}");
            assert!(status.is_none_or(|status| status.code() == code));
        }
    }
}
