//! The transmitter: which block goes out in a slot.

use ethermem_wire::Block;

use super::encoder_buffer::EncoderBuffer;
use super::signal::starts_frame;
use crate::Arbitration;

/// What the memory side sends without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// /N/, /G/ or /MST/.
    Single,
    /// /MS/ to /MT/: a request or a chunk. Nothing may stand between its blocks.
    Framed,
}

/// The memory side of a transmitter.
pub trait MemorySource {
    /// What goes next, the most urgent first; `None` while nothing waits.
    fn head(&mut self) -> Option<Unit>;

    /// The next block of the unit that [`MemorySource::head`] named, and whether it is the unit's
    /// last. Called again in each of the following slots until then; a unit may not run dry.
    fn take(&mut self) -> (Block, bool);
}

/// The memory side of a link that is down: nothing.
struct Silent;

impl MemorySource for Silent {
    fn head(&mut self) -> Option<Unit> {
        None
    }

    fn take(&mut self) -> (Block, bool) {
        unreachable!("nothing was named")
    }
}

/// Slots without data that the gap of 12 octets between two frames can take: so long, frames are
/// not done but between two of them.
pub const GAP_SLOTS: u32 = 2;

/// What a slot carries, and what it tells the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxSlot {
    /// Towards the scrambler.
    pub line: Block,
    /// The encoder may produce a block now; it is handed over
    /// [`super::ENCODER_LATENCY_SLOTS`] slots later. Otherwise it holds, and so do the MAC and
    /// the application above it.
    pub encoder_ready: bool,
}

/// Decides slot by slot between memory blocks and those of Ethernet frames.
///
/// [`Arbitration::Fair`]: single blocks alternate with a frame's blocks; after a unit of k blocks,
/// which nothing may interrupt, frames may take up to k slots before the next such unit. The gap
/// between two frames counts as taken, though single blocks use its slots, and what frames are owed
/// is forgotten once they offered nothing for longer than a gap. [`Arbitration::Strict`]: memory
/// whenever it has something.
#[derive(Clone, Debug)]
pub struct TxArbiter {
    arbitration: Arbitration,
    frames: EncoderBuffer,
    /// Within a framed unit.
    open: bool,
    /// The last slot carried memory.
    memory_was_last: bool,
    /// Slots that frames may take before the next framed unit. At most the longest unit's blocks.
    owed: u32,
    /// Slots in a row in which frames offered nothing.
    unused: u32,
    /// What frames offer is the rest of one whose start was dropped.
    cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Memory,
    Frame,
    Idle,
}

impl TxArbiter {
    /// A transmitter with nothing under way.
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

    /// A slot that carries `line`, since the link is down or about to come up. Memory sends
    /// nothing, and the unit under way is forgotten. What frames offer is dropped; the frame of
    /// which a part was, to its end, also when the link is up by then: its rest would be no frame.
    pub fn slot_without(&mut self, from_encoder: Option<Block>, line: Block) -> TxSlot {
        self.open = false;
        let slot = self.slot(from_encoder, &mut Silent);
        self.cut = true;
        TxSlot { line, ..slot }
    }

    /// One slot. `from_encoder` is what the encoder was asked for a latency ago: a frame's block,
    /// `None` for the idles between frames. Within a frame it answers whenever it was asked; a MAC
    /// that runs dry must have it send [`super::ABORT`].
    ///
    /// # Panics
    /// If the encoder hands over a block that it was not asked for.
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
