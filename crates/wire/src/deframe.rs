//! From a link's blocks to messages: the receiver's block state machine.

use thiserror::Error;

use crate::block::{Block, BlockType, InvalidSync, SyncHeader, UnknownBlockType};
use crate::control::{ControlError, EdmControl, SubType};
use crate::field::MAX_CHUNK_BYTES;
use crate::message::{DecodeError, MD_BYTES, Message};

/// Number of /MD/ blocks of the longest chunk: a page and the header word of an acknowledged write.
pub const MD_BLOCKS_MAX: usize = MAX_CHUNK_BYTES / MD_BYTES + 1;

/// What a received block is, or what it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A block for the Ethernet PCS above: idles, ordered sets, a frame's blocks.
    Ethernet(Block),
    /// A complete message. Towards the PCS its blocks become idles.
    Message(Message<'a>),
}

/// A violation of the line's rules. The chunk in progress, if any, is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeframeError {
    /// The sync header is neither control nor data.
    #[error(transparent)]
    Sync(#[from] InvalidSync),
    /// The type octet of a control block is not assigned.
    #[error(transparent)]
    Type(#[from] UnknownBlockType),
    /// An EDM control block failed its check.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A control block other than /MT/ between /MS/ and /MT/.
    #[error("block of type {0:?} inside a memory message")]
    InsideMessage(BlockType),
    /// An /MT/ without an /MS/.
    #[error("/MT/ without /MS/")]
    EndWithoutStart,
    /// More /MD/ blocks than the receiver's buffer holds.
    #[error("memory message of more than {0} data blocks")]
    TooLong(usize),
    /// A data block in neither a message nor a frame.
    #[error("data block outside of message and frame")]
    StrayData,
    /// A block that cannot be in a frame, or a block that cannot be outside one.
    #[error("block of type {found:?} {} a frame", if *.in_frame { "inside" } else { "outside of" })]
    FrameSequence {
        /// The block.
        found: BlockType,
        /// True if a frame was open.
        in_frame: bool,
    },
    /// The blocks are intact, but they are not a message.
    #[error(transparent)]
    Message(#[from] DecodeError),
}

impl DeframeError {
    /// True if bits changed on the line, so that the link must be disabled.
    #[must_use]
    pub const fn is_corruption(&self) -> bool {
        match self {
            DeframeError::Message(error) => error.is_corruption(),
            _ => true,
        }
    }
}

/// A receiver that takes the blocks of a link in order. It extracts memory messages, which may come
/// anywhere between the blocks of an Ethernet frame, and passes the other blocks on. `MD_BLOCKS`
/// bounds the messages that it accepts and is all of its memory.
#[derive(Clone, Debug)]
pub struct Deframer<const MD_BLOCKS: usize = MD_BLOCKS_MAX> {
    /// The content of /MS/ while a message is open; otherwise `None`.
    start: Option<u64>,
    blocks: [[u8; MD_BYTES]; MD_BLOCKS],
    block_count: usize,
    in_frame: bool,
}

impl<const MD_BLOCKS: usize> Default for Deframer<MD_BLOCKS> {
    fn default() -> Self {
        Deframer {
            start: None,
            blocks: [[0; MD_BYTES]; MD_BLOCKS],
            block_count: 0,
            in_frame: false,
        }
    }
}

impl<const MD_BLOCKS: usize> Deframer<MD_BLOCKS> {
    /// A receiver between messages and frames.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next block as the descrambler returns it. `None` while a message is incomplete.
    ///
    /// # Errors
    /// The errors of [`Deframer::push`], and an error for an invalid sync header.
    pub fn push_line(&mut self, sync: u8, payload: u64) -> Result<Option<Event<'_>>, DeframeError> {
        match Block::from_line(sync, payload) {
            Ok(block) => self.push(block),
            Err(error) => {
                self.start = None;
                Err(error.into())
            }
        }
    }

    /// Takes the next block. `None` while a message is incomplete.
    ///
    /// # Errors
    /// [`DeframeError`] when the block may not come here or completes no valid message.
    pub fn push(&mut self, block: Block) -> Result<Option<Event<'_>>, DeframeError> {
        if block.sync() == SyncHeader::Data {
            return self.push_data(block);
        }
        // Any control block ends an open message, complete or not.
        let start = self.start.take();
        let block_type = match block.block_type()? {
            Some(BlockType::Edm) => return self.push_edm(block, start),
            Some(standard) => standard,
            None => unreachable!("data blocks were taken above"),
        };
        if start.is_some() {
            return Err(DeframeError::InsideMessage(block_type));
        }
        self.push_standard(block, block_type)
    }

    fn push_data(&mut self, block: Block) -> Result<Option<Event<'_>>, DeframeError> {
        if self.start.is_some() {
            let Some(slot) = self.blocks.get_mut(self.block_count) else {
                self.start = None;
                return Err(DeframeError::TooLong(MD_BLOCKS));
            };
            *slot = block.payload().to_le_bytes();
            self.block_count += 1;
            return Ok(None);
        }
        if self.in_frame { Ok(Some(Event::Ethernet(block))) } else { Err(DeframeError::StrayData) }
    }

    fn push_edm(
        &mut self,
        block: Block,
        start: Option<u64>,
    ) -> Result<Option<Event<'_>>, DeframeError> {
        let control = EdmControl::decode(block)?;
        match (start, control.sub_type()) {
            (Some(ms), SubType::Terminate) => {
                let blocks = &self.blocks[..self.block_count];
                let message = Message::decode_framed(ms, blocks, control.content())?;
                Ok(Some(Event::Message(message)))
            }
            (None, SubType::Terminate) => Err(DeframeError::EndWithoutStart),
            (Some(_), _) => Err(DeframeError::InsideMessage(BlockType::Edm)),
            (None, SubType::Start) => {
                self.start = Some(control.content());
                self.block_count = 0;
                Ok(None)
            }
            (None, _) => Ok(Some(Event::Message(Message::decode_single(control)?))),
        }
    }

    fn push_standard(
        &mut self,
        block: Block,
        block_type: BlockType,
    ) -> Result<Option<Event<'_>>, DeframeError> {
        let in_frame = self.in_frame;
        self.in_frame = block_type.start_octets().is_some();
        let ends_frame = block_type.terminate_octets().is_some() || block.has_error_character();
        let allowed = if in_frame { ends_frame } else { block_type.terminate_octets().is_none() };
        if allowed {
            Ok(Some(Event::Ethernet(block)))
        } else {
            Err(DeframeError::FrameSequence { found: block_type, in_frame })
        }
    }
}
