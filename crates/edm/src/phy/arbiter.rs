//! The transmitter's arbiter, which decides which block leaves in a slot.

use ethermem_wire::Block;

use super::encoder_buffer::EncoderBuffer;
use super::signal::starts_frame;
use crate::Arbitration;

/// A sequence of blocks that the memory side sends without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// /N/, /G/ or /MST/.
    Single,
    /// /MS/ to /MT/: a request or a chunk. No other block may come between its blocks.
    Framed,
}

/// The memory side of a transmitter.
pub trait MemorySource {
    /// The kind of the next unit, the most urgent first; `None` while no unit waits.
    fn head(&mut self) -> Option<Unit>;

    /// The next block of the unit that [`MemorySource::head`] named, and whether it is the unit's
    /// last. It is called in each following slot until the last block; a unit must not run dry.
    fn take(&mut self) -> (Block, bool);
}

/// The memory side of a link that is down: it sends nothing.
struct Silent;

impl MemorySource for Silent {
    fn head(&mut self) -> Option<Unit> {
        None
    }

    fn take(&mut self) -> (Block, bool) {
        unreachable!("nothing was named")
    }
}

/// Maximum number of slots that the gap of 12 octets between two frames takes. Frames without a
/// longer pause count as continuous.
pub const GAP_SLOTS: u32 = 2;

/// The block of a slot, and the signal to the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxSlot {
    /// The block for the scrambler.
    pub line: Block,
    /// True if the encoder may produce a block now; it arrives [`super::ENCODER_LATENCY_SLOTS`]
    /// slots later. Otherwise the encoder pauses, and so do the MAC and the application above it.
    pub encoder_ready: bool,
}

/// Decides slot by slot between memory blocks and blocks of Ethernet frames.
///
/// [`Arbitration::Fair`]: single blocks alternate with a frame's blocks. After a unit of k blocks,
/// which is never interrupted, frames may take up to k slots before the next such unit. The gap
/// between two frames counts as taken, though single blocks use its slots. The slots owed to frames
/// expire once no frame was offered for longer than a gap. [`Arbitration::Strict`]: memory goes
/// whenever a unit waits.
#[derive(Clone, Debug)]
pub struct TxArbiter {
    arbitration: Arbitration,
    frames: EncoderBuffer,
    /// True inside a framed unit.
    open: bool,
    /// True if the last slot carried a memory block.
    memory_was_last: bool,
    /// Number of slots that frames may take before the next framed unit: at most the longest unit's
    /// blocks.
    owed: u32,
    /// Number of consecutive slots in which no frame block was offered.
    unused: u32,
    /// True while the offered blocks are the rest of a frame whose start was dropped.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Memory,
    Frame,
    Idle,
}

impl TxArbiter {
    /// A transmitter with an idle line.
    #[must_use]
    pub const fn new(arbitration: Arbitration) -> TxArbiter {
        TxArbiter {
            arbitration,
            frames: EncoderBuffer::new(),
            open: false,
            memory_was_last: false,
            owed: 0,
            unused: 0,
            cut: false,
        }
    }

    /// Runs a slot that carries `line`, since the link is down or about to come up. Memory sends
    /// nothing, and the unit in progress is forgotten. Frame blocks are dropped. A frame that lost
    /// a part is dropped to its end, even if the link is up by then: its rest is not a frame.
    pub fn slot_without(&mut self, from_encoder: Option<Block>, line: Block) -> TxSlot {
        self.open = false;
        let slot = self.slot(from_encoder, &mut Silent);
        self.cut = true;
        TxSlot { line, ..slot }
    }

    /// Runs one slot. `from_encoder` is what the encoder was asked for a latency ago: a frame's
    /// block, or `None` for the idles between frames. Within a frame it answers every request; a
    /// MAC that runs dry must make it send [`super::ABORT`].
    ///
    /// # Panics
    /// If the encoder delivers a block that was not requested.
    pub fn slot(&mut self, from_encoder: Option<Block>, memory: &mut impl MemorySource) -> TxSlot {
        self.frames.accept(from_encoder);
        self.cut &= !self.frames.head().is_some_and(starts_frame);
        let frame_waits = self.frames.head().is_some() && !self.cut;
        let choice = self.choose(frame_waits, memory);
        let line = match choice {
            Choice::Memory => {
                if !frame_waits {
                    self.frames.take();
                }
                let (block, last) = memory.take();
                self.open = !last;
                block
            }
            Choice::Frame => self.frames.take().expect("a frame's block waits"),
            Choice::Idle => {
                self.frames.take();
                Block::IDLE
            }
        };
        self.account(frame_waits, choice);
        TxSlot { line, encoder_ready: self.frames.ask() }
    }

    fn choose(&self, frame_waits: bool, memory: &mut impl MemorySource) -> Choice {
        if self.open {
            return Choice::Memory;
        }
        let otherwise = if frame_waits { Choice::Frame } else { Choice::Idle };
        let Some(unit) = memory.head() else {
            return otherwise;
        };
        let may_send = self.owed == 0
            || self.arbitration == Arbitration::Strict
            || unit == Unit::Single && !(frame_waits && self.memory_was_last);
        if may_send { Choice::Memory } else { otherwise }
    }

    fn account(&mut self, frame_waits: bool, choice: Choice) {
        let memory = choice == Choice::Memory;
        self.memory_was_last = memory;
        self.unused = if frame_waits { 0 } else { (self.unused + 1).min(GAP_SLOTS + 1) };
        if self.unused > GAP_SLOTS {
            self.owed = 0;
        } else if memory && frame_waits {
            self.owed += 1;
        } else {
            self.owed = self.owed.saturating_sub(1);
        }
    }
}
