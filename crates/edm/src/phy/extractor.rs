//! The receiver: it takes memory messages out and passes whole frames up.

use ethermem_wire::{
    Block, BlockType, DecodeError, DeframeError, Deframer, Event, FrameAssembler, FrameError,
    Message, has_valid_fcs,
};

use super::frame_buffer::{FRAME_BYTES_MAX, FrameBuffer};
use super::signal::{FaultSignal, standard_type, starts_frame};

/// Octets after the start character, which the assembler keeps until the frame ends.
const PREAMBLE_BYTES: usize = 7;

/// A sign that bits changed on the line, so that the link must be disabled (section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    /// A block or a message that no sender sends.
    #[error(transparent)]
    Block(DeframeError),
    /// A frame with a wrong check sequence.
    #[error("frame check sequence is wrong")]
    FrameCheckSequence,
    /// A frame whose preamble is damaged.
    #[error("preamble or SFD is wrong")]
    Preamble,
}

/// The event of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxEvent<'a> {
    /// There is nothing for the memory side.
    None,
    /// A message, whose last block arrived in this slot.
    Message(Message<'a>),
    /// The blocks are valid, but this version does not know their message. The link stays up.
    Refused(DecodeError),
    /// The far end receives nothing that it can trust: the link must be disabled.
    RemoteFault,
    /// The link must be disabled. What was in flight on it is dropped.
    Corrupt(Corruption),
}

/// One slot's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxSlot<'a> {
    /// The block for the decoder: a frame's blocks in consecutive slots, idles otherwise.
    pub decoder: Block,
    /// The event for the memory side.
    pub event: RxEvent<'a>,
}

/// Dropped frames and messages, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxCounters {
    /// Frames that their sender aborted, or that were in progress when an error came.
    pub frames_aborted: u64,
    /// Frames longer than [`FRAME_BYTES_MAX`].
    pub frames_too_long: u64,
    /// Frames with a wrong check sequence or preamble.
    pub frames_corrupt: u64,
    /// Messages that their sender aborted.
    pub messages_aborted: u64,
}

/// Sorts the blocks of a link, one per slot; the module's documentation describes it.
#[derive(Clone, Debug)]
pub struct RxExtractor {
    deframer: Deframer,
    /// The octets of the frame, kept for the check. In hardware the check runs along with the
    /// blocks.
    assembler: Box<FrameAssembler<{ FRAME_BYTES_MAX + PREAMBLE_BYTES }>>,
    frames: FrameBuffer,
    /// True while blocks of the frame in progress are kept.
    in_frame: bool,
    counters: RxCounters,
}

impl Default for RxExtractor {
    fn default() -> RxExtractor {
        RxExtractor::new()
    }
}

impl RxExtractor {
    /// A receiver between messages and frames. All memory that it will use is reserved here.
    #[must_use]
    pub fn new() -> RxExtractor {
        RxExtractor {
            deframer: Deframer::new(),
            assembler: Box::default(),
            frames: FrameBuffer::new(),
            in_frame: false,
            counters: RxCounters::default(),
        }
    }

    /// Dropped frames and messages, by cause.
    #[must_use]
    pub const fn counters(&self) -> &RxCounters {
        &self.counters
    }

    /// Forgets all that is in progress, because the link was disabled.
    pub fn reset(&mut self) {
        self.deframer = Deframer::new();
        self.abort_frame();
        self.frames.clear();
    }

    /// Runs one slot with the two sync bits and the payload that the descrambler returned.
    pub fn slot(&mut self, sync: u8, payload: u64) -> RxSlot<'_> {
        let mut corruption = None;
        let mut standard = None;
        let block = Block::from_line(sync, payload);
        // The receiver is split here, so that the borrow of a message leaves the frame side usable.
        let RxExtractor { deframer, assembler, frames, in_frame, counters } = self;
        let mut event = match deframer.push_line(sync, payload) {
            Ok(None) => RxEvent::None,
            Ok(Some(Event::Message(message))) => RxEvent::Message(message),
            Ok(Some(Event::Ethernet(block))) => {
                standard = Some(block);
                let fault = FaultSignal::decode(block).is_some();
                if fault { RxEvent::RemoteFault } else { RxEvent::None }
            }
            Err(DeframeError::InsideMessage(BlockType::Control))
                if block.is_ok_and(Block::has_error_character) =>
            {
                counters.messages_aborted += 1;
                RxEvent::None
            }
            Err(DeframeError::Message(error)) if !error.is_corruption() => RxEvent::Refused(error),
            Err(error) => {
                corruption = Some(Corruption::Block(error));
                RxEvent::None
            }
        };
        if let Some(block) = standard {
            let mut frame = FrameSide { assembler, frames, in_frame, counters };
            corruption = frame.take(block).err();
        }
        if let Some(corruption) = corruption {
            drop_frame(frames, in_frame, counters);
            event = RxEvent::Corrupt(corruption);
        }
        if !*in_frame && standard.is_none_or(|block| !ends_frame(block)) {
            frames.pass_gap();
        }
        let up = frames.pop();
        // Ordered sets pass while no frame goes up; all other blocks become idles.
        let other = standard.filter(|&block| has_ordered_set(block));
        RxSlot { decoder: up.or(other).unwrap_or(Block::IDLE), event }
    }

    fn abort_frame(&mut self) {
        drop_frame(&mut self.frames, &mut self.in_frame, &mut self.counters);
    }
}

/// Drops the frame in progress, if any.
fn drop_frame(frames: &mut FrameBuffer, in_frame: &mut bool, counters: &mut RxCounters) {
    frames.drop_partial();
    counters.frames_aborted += u64::from(std::mem::take(in_frame));
}

/// The parts of the receiver that a frame's blocks pass through.
struct FrameSide<'a> {
    assembler: &'a mut FrameAssembler<{ FRAME_BYTES_MAX + PREAMBLE_BYTES }>,
    frames: &'a mut FrameBuffer,
    in_frame: &'a mut bool,
    counters: &'a mut RxCounters,
}

impl FrameSide<'_> {
    fn take(&mut self, block: Block) -> Result<(), Corruption> {
        if starts_frame(block) {
            // The assembler's content was counted when its error occurred.
            let _interrupted = self.assembler.push(block);
            self.frames.drop_partial();
            *self.in_frame = true;
            self.frames.push(block);
            return Ok(());
        }
        if !*self.in_frame {
            return Ok(());
        }
        self.frames.push(block);
        let whole = match self.assembler.push(block) {
            Ok(None) => return Ok(()),
            Ok(Some(frame)) if has_valid_fcs(frame) => Ok(()),
            Ok(Some(_)) => Err(None),
            Err(error) => Err(Some(error)),
        };
        *self.in_frame = false;
        if whole.is_ok() {
            self.frames.commit();
            return Ok(());
        }
        self.frames.drop_partial();
        match whole {
            Ok(()) => Ok(()),
            Err(Some(FrameError::TooLong(_))) => {
                self.counters.frames_too_long += 1;
                Ok(())
            }
            Err(Some(FrameError::Aborted)) => {
                self.counters.frames_aborted += 1;
                Ok(())
            }
            Err(Some(FrameError::Preamble)) => {
                self.counters.frames_corrupt += 1;
                Err(Corruption::Preamble)
            }
            Err(None) => {
                self.counters.frames_corrupt += 1;
                Err(Corruption::FrameCheckSequence)
            }
        }
    }
}

fn ends_frame(block: Block) -> bool {
    standard_type(block).is_some_and(|block_type| block_type.terminate_octets().is_some())
}

fn has_ordered_set(block: Block) -> bool {
    standard_type(block).is_some_and(BlockType::has_ordered_set) && !starts_frame(block)
}
