//! The messages and their blocks.

mod chunk;
mod parts;
mod request;
mod single;

use thiserror::Error;

pub use chunk::{AcknowledgedWrite, PostedWrite, ReadResponse};
pub(crate) use parts::MD_BYTES;
pub use parts::MessageBlocks;
pub use request::{ReadRequest, RmwRequest};
pub use single::{Grant, GrantKind, Notification, Status, StatusCode, WriteKind};

use crate::control::{EdmControl, SubType};
use crate::field::{MessageId, NodeId};
use crate::layout;
use crate::opcode::{Opcode, OpcodeBits, RmwKind};
use parts::Parts;

/// Any message of EDM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message<'a> {
    /// /N/.
    Notification(Notification),
    /// /G/.
    Grant(Grant),
    /// /MST/.
    Status(Status),
    /// RREQ.
    ReadRequest(ReadRequest),
    /// RMWREQ.
    RmwRequest(RmwRequest),
    /// RRES.
    ReadResponse(ReadResponse<'a>),
    /// WREQ, posted.
    PostedWrite(PostedWrite<'a>),
    /// WREQ, acknowledged.
    AcknowledgedWrite(AcknowledgedWrite<'a>),
}

/// Why blocks with correct CRC-8s are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// An opcode that this version does not know; its request is answered with
    /// [`StatusCode::BadOpcode`].
    #[error("opcode {} of message {} with node {} is not assigned", opcode.bits(), id.0,
            peer.number())]
    Opcode {
        /// The opcode as it arrived.
        opcode: OpcodeBits,
        /// The node to answer, if the opcode is a request's.
        peer: NodeId,
        /// The message id to answer, if the opcode is a request's.
        id: MessageId,
    },
    /// The CRC-16 or CRC-32 over several blocks does not match.
    #[error("CRC of a memory message is {found:#x}, should be {computed:#x}")]
    Crc {
        /// The CRC in /MT/.
        found: u32,
        /// The CRC computed over the message.
        computed: u32,
    },
    /// The number of /MD/ blocks does not fit the opcode.
    #[error("{opcode:?} with {found} data blocks")]
    BlockCount {
        /// The opcode in /MS/.
        opcode: Opcode,
        /// The number of /MD/ blocks found.
        found: usize,
    },
    /// A block other than /N/, /G/ and /MST/ stands alone.
    #[error("{0:?} is no message of one block")]
    NotSingle(SubType),
    /// Reserved bits are set, as a later version may do.
    #[error("reserved bits are set")]
    Reserved,
    /// A length of zero, or a length that has another encoding.
    #[error("length is zero or not in its shortest form")]
    Length,
    /// A status code that this version does not know.
    #[error("status code {0} is not assigned")]
    StatusCode(u8),
    /// A chunk without data, or above [`crate::MAX_CHUNK_BYTES`].
    #[error("chunk of {0} B")]
    ChunkLength(usize),
    /// Octets after the end of the data are set.
    #[error("padding is not zero")]
    Padding,
}

impl DecodeError {
    /// True if bits changed on the line, so that the link must be disabled. The other errors are
    /// made by the sender, and would be repeated.
    #[must_use]
    pub const fn is_corruption(&self) -> bool {
        matches!(self, DecodeError::Crc { .. } | DecodeError::BlockCount { .. })
    }

    fn check_crc(found: u32, computed: u32) -> Result<(), DecodeError> {
        if found == computed { Ok(()) } else { Err(DecodeError::Crc { found, computed }) }
    }
}

/// The contents between /MS/ and /MT/, as they arrived.
#[derive(Clone, Copy)]
pub(crate) struct Framed<'a> {
    ms: u64,
    blocks: &'a [[u8; MD_BYTES]],
    mt: u64,
}

impl Framed<'_> {
    fn unexpected_count(&self, opcode: Opcode) -> DecodeError {
        DecodeError::BlockCount { opcode, found: self.blocks.len() }
    }
}

impl<'a> Message<'a> {
    /// The blocks to send, in order.
    #[must_use]
    pub fn blocks(&self) -> MessageBlocks<'a> {
        MessageBlocks::new(match *self {
            Message::Notification(message) => Parts::Single(message.to_control()),
            Message::Grant(message) => Parts::Single(message.to_control()),
            Message::Status(message) => Parts::Single(message.to_control()),
            Message::ReadRequest(message) => Parts::Framed(message.to_frame()),
            Message::RmwRequest(message) => Parts::Framed(message.to_frame()),
            Message::ReadResponse(message) => Parts::Framed(message.to_frame()),
            Message::PostedWrite(message) => Parts::Framed(message.to_frame()),
            Message::AcknowledgedWrite(message) => Parts::Framed(message.to_frame()),
        })
    }

    /// Decodes the message in one control block.
    ///
    /// # Errors
    /// [`DecodeError`] for /MS/ and /MT/, and for contents that are not a message.
    pub fn decode_single(control: EdmControl) -> Result<Message<'static>, DecodeError> {
        let content = control.content();
        match control.sub_type() {
            SubType::Notification => Notification::from_content(content).map(Message::Notification),
            SubType::Grant => Grant::from_content(content).map(Message::Grant),
            SubType::Single => Status::from_content(content).map(Message::Status),
            other => Err(DecodeError::NotSingle(other)),
        }
    }

    /// Decodes the message in the contents of /MS/, the octets of the /MD/ blocks and the contents
    /// of /MT/.
    ///
    /// # Errors
    /// [`DecodeError`] when a check fails or the contents are not a message.
    pub fn decode_framed(
        ms: u64,
        blocks: &'a [[u8; 8]],
        mt: u64,
    ) -> Result<Message<'a>, DecodeError> {
        let framed = Framed { ms, blocks, mt };
        let bits = OpcodeBits::from_low_bits(layout::OPCODE.get(ms) as u8);
        let Ok(opcode) = Opcode::try_from(bits) else {
            let (peer, id) = single::party(ms);
            return Err(DecodeError::Opcode { opcode: bits, peer, id });
        };
        let rmw = |kind| RmwRequest::from_framed(kind, framed).map(Message::RmwRequest);
        match opcode {
            Opcode::Read => ReadRequest::from_framed(framed).map(Message::ReadRequest),
            Opcode::ReadResponse => ReadResponse::from_framed(framed).map(Message::ReadResponse),
            Opcode::PostedWrite => PostedWrite::from_framed(framed).map(Message::PostedWrite),
            Opcode::AcknowledgedWrite => {
                AcknowledgedWrite::from_framed(framed).map(Message::AcknowledgedWrite)
            }
            Opcode::CompareAndSwap => rmw(RmwKind::CompareAndSwap),
            Opcode::FetchAndAdd => rmw(RmwKind::FetchAndAdd),
            Opcode::Swap => rmw(RmwKind::Swap),
            Opcode::And => rmw(RmwKind::And),
            Opcode::Or => rmw(RmwKind::Or),
            Opcode::Xor => rmw(RmwKind::Xor),
        }
    }
}
