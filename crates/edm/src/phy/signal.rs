//! Signals between the two ends of a link that are not messages.

use ethermem_wire::{Block, BlockType};

/// A block as a link carries it, valid or not: two sync bits and the payload, descrambled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBlock {
    /// The two sync bits; 01 and 10 are valid.
    pub sync: u8,
    /// The 64 payload bits.
    pub payload: u64,
}

impl From<Block> for LineBlock {
    fn from(block: Block) -> LineBlock {
        LineBlock { sync: block.sync() as u8, payload: block.payload() }
    }
}

/// Eight error characters. Between /MS/ and /MT/ they abort the message. A switch must abort a
/// chunk when the link that it arrives by fails. The next link works, so its receiver drops the
/// message and must not take this block for corruption. One or two bit errors never make this block
/// of a data block or of another control block.
pub const ABORT: Block = Block::control(BlockType::Control, repeated_character(0x1e));

/// The sequence ordered set of clause 46.3.4 on both columns. This end receives nothing that it can
/// trust, so the link is disabled in both directions.
pub const REMOTE_FAULT: Block = Block::control(BlockType::OrderedOrdered, 0x02 << 16 | 0x02 << 48);

/// The ordered set for a local fault: the PHY reports it in place of what it cannot receive.
pub const LOCAL_FAULT: Block = Block::control(BlockType::OrderedOrdered, 0x01 << 16 | 0x01 << 48);

/// A remote fault with what its sender knows. The first column is the standard's set. The second
/// column has three octets: the number of this failure, the last failure number heard from the peer
/// (0: none), and a state. The state is 2, or 3 from an end that is ready to restart. Without
/// numbers it is [`REMOTE_FAULT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSignal {
    /// The number of the sender's failure: 1 to 255, and then again from 1.
    pub failure: u8,
    /// The receiver's last failure that the sender heard of since its own.
    pub heard: u8,
    /// True if the sender is allowed to restart and was answered.
    pub ready: bool,
}

impl FaultSignal {
    /// The signal as a block.
    #[must_use]
    pub const fn block(self) -> Block {
        let FaultSignal { failure, heard, ready } = self;
        let last = if ready { 3 } else { 2 };
        let second = failure as u64 | (heard as u64) << 8 | last << 16;
        Block::control(BlockType::OrderedOrdered, 0x02 << 16 | second << 32)
    }

    /// The signal of a block; `None` if it is not a remote fault. A fault in one column only means
    /// [`REMOTE_FAULT`], and so does a fault with numbers that no end sends.
    #[must_use]
    pub fn decode(block: Block) -> Option<FaultSignal> {
        let block_type = block.block_type().ok().flatten()?;
        let content = block.payload() >> 8;
        let is_fault = |column: u64| column & 0xff_ffff == 0x02_0000;
        let first = matches!(block_type, BlockType::OrderedControl | BlockType::OrderedStart);
        let (first, second) = match block_type {
            BlockType::OrderedOrdered => (is_fault(content), is_fault(content >> 32)),
            BlockType::ControlOrdered => (false, is_fault(content >> 32)),
            _ => (first && is_fault(content), false),
        };
        let [.., failure, heard, last] = block.payload().to_le_bytes();
        let ready = last == 3;
        let signal = FaultSignal { failure, heard, ready };
        if block_type == BlockType::OrderedOrdered && signal.block() == block {
            return Some(signal);
        }
        let plain = FaultSignal { failure: 0, heard: 0, ready: false };
        (first || second).then_some(plain)
    }
}

/// Eight control characters of seven bits each.
const fn repeated_character(character: u64) -> u64 {
    let mut rest = 0;
    let mut lane = 0;
    while lane < 8 {
        rest |= character << (7 * lane);
        lane += 1;
    }
    rest
}

/// The type of a valid control block.
pub(super) fn standard_type(block: Block) -> Option<BlockType> {
    block.block_type().ok().flatten()
}

/// True if a block has the start of a frame.
pub(super) fn starts_frame(block: Block) -> bool {
    standard_type(block).is_some_and(|block_type| block_type.start_octets().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_standard_blocks() {
        assert!(ABORT.has_error_character());
        assert_eq!(ABORT.payload() >> 8, 0x3c_78f1_e3c7_8f1e & ((1 << 56) - 1));
        let octets = REMOTE_FAULT.payload().to_le_bytes();
        assert_eq!(octets, [0x55, 0, 0, 2, 0, 0, 0, 2]);
        assert_eq!(LOCAL_FAULT.payload().to_le_bytes(), [0x55, 0, 0, 1, 0, 0, 0, 1]);
        assert!(REMOTE_FAULT.block_type().unwrap().unwrap().has_ordered_set());
    }

    #[test]
    fn a_fault_says_what_it_was_told_and_the_standard_says_nothing() {
        for (failure, heard, ready) in [(1, 0, false), (7, 255, true), (255, 2, false)] {
            let signal = FaultSignal { failure, heard, ready };
            assert_eq!(FaultSignal::decode(signal.block()), Some(signal));
            assert_eq!(signal.block().payload() as u32, REMOTE_FAULT.payload() as u32);
        }
        let plain = FaultSignal { failure: 0, heard: 0, ready: false };
        assert_eq!(plain.block(), REMOTE_FAULT);
        for block in [
            REMOTE_FAULT,
            Block::control(BlockType::OrderedControl, 0x02 << 16),
            Block::control(BlockType::ControlOrdered, 0x02 << 48),
            Block::control(BlockType::OrderedOrdered, 0x02 << 16 | 0x01 << 48),
        ] {
            assert_eq!(FaultSignal::decode(block), Some(plain), "{block:?}");
        }
        for block in [LOCAL_FAULT, Block::IDLE, ABORT, Block::data(REMOTE_FAULT.payload())] {
            assert_eq!(FaultSignal::decode(block), None, "{block:?}");
        }
    }
}
