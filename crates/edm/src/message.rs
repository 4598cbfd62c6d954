//! What hosts, switch and memory exchange, at the level of messages, grants and chunks.
//!
//! In every type that travels, `peer` is the other end as seen by who holds the value: the
//! destination while it is sent, the source once it is received. [`Outbound::sent_by`] turns it.

use ethermem_units::Bytes;
use ethermem_wire::Length;
pub use ethermem_wire::{
    ChunkKind, MessageId, NodeId, OpcodeBits, RMW_BYTES, RmwKind, RmwOperation, StatusCode,
    WriteKind,
};

/// The caller's own handle of a request: returned in events, never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A byte address in the memory of a memory node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// Most bytes of one message.
pub const MESSAGE_BYTES_MAX: Bytes = Length::MAX.bytes();

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
        /// Posted: it is complete when its last chunk is handed to the transmitter.
        /// Acknowledged: when the memory node says that it was applied.
        kind: WriteKind,
    },
    /// Changes one 8-byte word atomically (RMWREQ, answered by an RRES with the old word).
    ReadModifyWrite {
        /// What it does, with its operands.
        operation: RmwOperation,
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
    /// One of [`RmwKind`]'s, unless this version does not know it.
    pub opcode: OpcodeBits,
    /// See [`RmwOperation::operands`].
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

impl Grant {
    /// How many bytes of a message of `message_bytes` this grant allows when `left` of them have
    /// not been granted. The switch counts the demand as the wire says it, rounded up by
    /// [`Length`], so the last grant may be for more than there is. `None` for no bytes, and for
    /// more than that explains.
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
    /// The message.
    pub id: MessageId,
    /// What it is a part of.
    pub kind: ChunkKind,
    /// Which of the writes that share the id: 0 unless batched, 0 in a response.
    pub member: u8,
    /// Of its first byte in the message (in the member, where several share the id).
    pub offset: Bytes,
    /// Data bytes.
    pub bytes: Bytes,
    /// Whether the message (the member) ends with it.
    pub last: bool,
    /// Of its first byte at the memory node.
    pub address: Address,
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
