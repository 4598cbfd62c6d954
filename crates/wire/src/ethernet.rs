//! An Ethernet frame as blocks: /S/, data, /T/.

use core::iter::FusedIterator;

use thiserror::Error;

use crate::block::{Block, BlockType};
use crate::crc;

const BLOCK_BYTES: usize = 8;
/// Octets after the start character: six of preamble and the SFD, low byte first.
const PREAMBLE: [u8; 7] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];
const FCS_BYTES: usize = 4;

/// The frame check sequence of a frame that has none yet; it is sent low byte first.
#[must_use]
pub fn frame_check_sequence(frame: &[u8]) -> u32 {
    crc::frame(frame)
}

/// True if the last four bytes of a frame are its check sequence.
#[must_use]
pub fn has_valid_fcs(frame: &[u8]) -> bool {
    frame
        .split_last_chunk::<FCS_BYTES>()
        .is_some_and(|(frame, &fcs)| frame_check_sequence(frame) == u32::from_le_bytes(fcs))
}

/// The blocks of a frame that starts on lane 0. The caller adds the gap after it.
#[derive(Clone, Debug)]
pub struct FrameBlocks<'a> {
    /// The rest of the frame; `None` after /T/.
    rest: Option<&'a [u8]>,
    started: bool,
}

impl<'a> FrameBlocks<'a> {
    /// The blocks of `frame`, which reaches from the destination address to the FCS.
    #[must_use]
    pub const fn new(frame: &'a [u8]) -> FrameBlocks<'a> {
        FrameBlocks { rest: Some(frame), started: false }
    }
}

/// Packs up to seven octets into the low bytes of a number.
fn pack(octets: &[u8]) -> u64 {
    octets.iter().rev().fold(0, |packed, &octet| packed << 8 | u64::from(octet))
}

impl Iterator for FrameBlocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let rest = self.rest?;
        if !self.started {
            self.started = true;
            return Some(Block::control(BlockType::Start, pack(&PREAMBLE)));
        }
        if let Some((octets, rest)) = rest.split_first_chunk::<BLOCK_BYTES>() {
            self.rest = Some(rest);
            return Some(Block::data(u64::from_le_bytes(*octets)));
        }
        self.rest = None;
        let terminate = BlockType::terminate(rest.len()).expect("fewer than eight octets are left");
        Some(Block::control(terminate, pack(rest)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left =
            self.rest.map_or(0, |rest| usize::from(!self.started) + rest.len() / BLOCK_BYTES + 1);
        (left, Some(left))
    }
}

impl ExactSizeIterator for FrameBlocks<'_> {}
impl FusedIterator for FrameBlocks<'_> {}

/// Why blocks are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The frame does not fit the buffer.
    #[error("frame of more than {0} B")]
    TooLong(usize),
    /// The frame does not begin with six octets of preamble and the SFD.
    #[error("preamble or SFD is wrong")]
    Preamble,
    /// The frame ended with a block other than /T/.
    #[error("frame ended without /T/")]
    Aborted,
}

/// Collects a frame's blocks into its bytes until the /T/ arrives. It holds frames of up to `BYTES`
/// bytes less the seven bytes of the preamble.
#[derive(Clone, Debug)]
pub struct FrameAssembler<const BYTES: usize> {
    octets: [u8; BYTES],
    count: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    Open,
    /// The frame is open, but already too long.
    Overflown,
}

impl<const BYTES: usize> Default for FrameAssembler<BYTES> {
    fn default() -> Self {
        FrameAssembler { octets: [0; BYTES], count: 0, state: State::Between }
    }
}

impl<const BYTES: usize> FrameAssembler<BYTES> {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next block that [`crate::Deframer`] passed on. Returns the frame when the block
    /// ends one. A frame may also start on lane 4. The FCS is not checked here.
    ///
    /// # Errors
    /// At most one [`FrameError`] a frame, at its end.
    pub fn push(&mut self, block: Block) -> Result<Option<&[u8]>, FrameError> {
        let octets = block.payload().to_le_bytes();
        let Ok(Some(block_type)) = block.block_type() else {
            self.append(&octets);
            return Ok(None);
        };
        if let Some(count) = block_type.start_octets() {
            let interrupted = self.state != State::Between;
            (self.state, self.count) = (State::Open, 0);
            self.append(&octets[BLOCK_BYTES - count..]);
            return if interrupted { Err(FrameError::Aborted) } else { Ok(None) };
        }
        if self.state == State::Between {
            return Ok(None);
        }
        let Some(count) = block_type.terminate_octets() else {
            self.state = State::Between;
            return Err(FrameError::Aborted);
        };
        self.append(&octets[1..=count]);
        let state = core::mem::replace(&mut self.state, State::Between);
        if state == State::Overflown {
            return Err(FrameError::TooLong(BYTES.saturating_sub(PREAMBLE.len())));
        }
        let frame = self.octets[..self.count].strip_prefix(&PREAMBLE);
        frame.map(Some).ok_or(FrameError::Preamble)
    }

    fn append(&mut self, octets: &[u8]) {
        if self.state != State::Open {
            return;
        }
        match self.octets.get_mut(self.count..self.count + octets.len()) {
            Some(room) => {
                room.copy_from_slice(octets);
                self.count += octets.len();
            }
            None => self.state = State::Overflown,
        }
    }
}
