//! The values that hosts, switch and memory exchange, at the level of messages, grants and chunks.
//!
//! In every type that travels, `peer` is the other end as seen by the holder of the value. It is
//! the destination while the value is sent, and the source once it is received.
//! [`Outbound::sent_by`] converts.

use ethermem_units::Bytes;
use ethermem_wire::Length;
pub use ethermem_wire::{
    ChunkKind, MessageId, NodeId, OpcodeBits, RMW_BYTES, RmwKind, RmwOperation, StatusCode,
    WriteKind,
};

/// The caller's handle of a request: returned in events, never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A byte address in the memory of a memory node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// Maximum bytes of one message.
pub const MESSAGE_BYTES_MAX: Bytes = Length::MAX.bytes();

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Gets `bytes` from the peer (RREQ, answered by an RRES).
    Read {
        /// Bytes to read: 1 to [`MESSAGE_BYTES_MAX`].
        bytes: Bytes,
    },
    /// Puts `bytes` into the peer's memory (WREQ).
    Write {
        /// Bytes to write: 1 to [`MESSAGE_BYTES_MAX`].
        bytes: Bytes,
        /// A posted write is complete when its last chunk is handed to the transmitter. An
        /// acknowledged write is complete when the memory node reports that it was applied.
        kind: WriteKind,
    },
    /// Changes one 8-byte word atomically (RMWREQ, answered by an RRES with the old word).
    ReadModifyWrite {
        /// The operation, with its operands.
        operation: RmwOperation,
    },
}

/// One access of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// A handle that is returned in the request's event.
    pub token: Token,
    /// The memory node.
    pub peer: NodeId,
    /// The address in the peer's memory.
    pub address: Address,
    /// The operation.
    pub op: Op,
    /// Under [`crate::Order::Relaxed`]: the request acts after all earlier requests to this peer,
    /// and before all later ones. [`crate::Order::Pair`] orders fences in any case.
    pub fence: bool,
}

/// Why a request was refused. The host keeps nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// All message entries are in use. Retry after an event was polled.
    #[error("all message entries are in use; retry after the next completion")]
    Full,
    /// The peer is this node or does not exist. A retry cannot help.
    #[error("the peer is this node or does not exist")]
    BadPeer,
    /// Zero bytes, or more than [`MESSAGE_BYTES_MAX`]. A retry cannot help.
    #[error("a message carries 1 to {} bytes", MESSAGE_BYTES_MAX.0)]
    BadLength,
    /// This host's link or the peer failed. Retry after it was restored.
    #[error("the link or the peer is down; retry after it was restored")]
    LinkDown,
}

/// Why a request failed. It is then unknown whether a write or an RMW took effect. The exception is
/// [`FailReason::Remote`] with a code other than [`StatusCode::Incomplete`]: the request then had
/// no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// No response arrived within the read timeout: the NULL response.
    Timeout,
    /// A part of the response did not arrive.
    Incomplete,
    /// Grants arrived faster than the host could keep them.
    GrantsLost,
    /// The peer was declared failed.
    PeerDown,
    /// This host's link was declared failed.
    LinkDown,
    /// The memory node refused the request.
    Remote(StatusCode),
}

/// How a request ended. Every accepted request yields exactly one event.
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
    /// The request failed; this is also a read's NULL response.
    Failed {
        /// The request.
        token: Token,
        /// Why the request failed.
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
    /// The id, which the compute node chose in the read class.
    pub id: MessageId,
    /// The address to read from.
    pub address: Address,
    /// Bytes of the response; [`RMW_BYTES`] for an atomic.
    pub bytes: Bytes,
    /// The modification of an RMWREQ; `None` for an RREQ.
    pub modify: Option<Modify>,
}

/// The modify step of an RMWREQ. The opcode is as received, so it may be unassigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modify {
    /// An opcode of [`RmwKind`], or one that this version does not know.
    pub opcode: OpcodeBits,
    /// The operands: see [`RmwOperation::operands`].
    pub operands: [u64; 2],
}

/// /N/: the demand of a write, or of several writes that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The memory node.
    pub peer: NodeId,
    /// The id, of the write class.
    pub id: MessageId,
    /// Data bytes to be granted.
    pub bytes: Bytes,
    /// Number of writes that share it; inside the grants each is framed as a message of its own.
    pub members: u8,
}

/// /G/: the right to send `bytes` of a message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The node that the data goes to.
    pub peer: NodeId,
    /// The id of a write of this node, or of a read of the peer.
    pub id: MessageId,
    /// Data bytes allowed, at most a chunk.
    pub bytes: Bytes,
}

impl Grant {
    /// The bytes of a message of `message_bytes` that this grant allows when `left` of them are not
    /// granted. The switch counts the demand as on the wire, rounded up by [`Length`], so the last
    /// grant may be for more than is left. `None` for zero bytes, and for more than rounding
    /// explains.
    pub(crate) fn usable(self, message_bytes: u32, left: u32) -> Option<u32> {
        let excess = self.bytes.0.saturating_sub(left.into());
        let usable = (self.bytes.0 - excess) as u32;
        let is_rounding = |demand: Length| excess <= demand.bytes().0 - u64::from(message_bytes);
        let explained =
            excess == 0 || Length::covering(Bytes(message_bytes.into())).is_ok_and(is_rounding);
        (usable > 0 && explained).then_some(usable)
    }
}

/// A contiguous run of /MS/ ... /MT/ blocks: part of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The other end.
    pub peer: NodeId,
    /// The id of the message.
    pub id: MessageId,
    /// The kind of message that the chunk is part of.
    pub kind: ChunkKind,
    /// Index of the write among those that share the id: 0 unless batched, 0 in a response.
    pub member: u8,
    /// Offset of the chunk's first byte in the message, or in the member where several share the
    /// id.
    pub offset: Bytes,
    /// Number of data bytes.
    pub bytes: Bytes,
    /// True if the message (the member) ends with this chunk.
    pub last: bool,
    /// Address of the chunk's first byte at the memory node.
    pub address: Address,
}

/// The acknowledgement of a write, or the refusal of any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The other end.
    pub peer: NodeId,
    /// The id of the message.
    pub id: MessageId,
    /// Index of the write among those that share the id.
    pub member: u8,
    /// How the request ended.
    pub code: StatusCode,
}

/// A message that a host transmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outbound {
    /// RREQ or RMWREQ.
    Request(MemoryRequest),
    /// /N/.
    Notify(Notification),
    /// Data that a grant allows.
    Chunk {
        /// The header of the chunk.
        chunk: Chunk,
        /// The write whose buffer holds the bytes; `None` for a response, whose bytes were read
        /// from memory when its request arrived.
        token: Option<Token>,
    },
    /// An acknowledgement or a refusal.
    Status(Status),
}

impl Outbound {
    /// The destination.
    #[must_use]
    pub const fn peer(&self) -> NodeId {
        match self {
            Outbound::Request(request) => request.peer,
            Outbound::Notify(notification) => notification.peer,
            Outbound::Chunk { chunk, .. } => chunk.peer,
            Outbound::Status(status) => status.peer,
        }
    }

    /// The message as its receiver sees it: `peer` is the sender, and there is no token.
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

/// Bytes that the caller must move because of a message that a host received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Memory node: read (or modify) now, and keep the bytes for the response's chunks. If memory
    /// refuses, call [`crate::Host::refuse`].
    Serve(MemoryRequest),
    /// Memory node: write a chunk now, then call [`crate::Host::on_written`] with the result.
    Store(Chunk),
    /// Compute node: bytes of a response.
    Deliver {
        /// The request.
        token: Token,
        /// Offset of the first byte in the response.
        offset: Bytes,
        /// Number of bytes.
        bytes: Bytes,
    },
}
