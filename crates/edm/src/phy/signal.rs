//! What the two ends of a link tell each other without a message.

use ethermem_wire::{Block, BlockType};

/// A block as a link carries it, right or wrong: two sync bits and the payload, descrambled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBlock {
    /// The two bits in front; 01 and 10 are valid.
    pub sync: u8,
    /// The 64 bits after them.
    pub payload: u64,
}

impl From<Block> for LineBlock {
    fn from(block: Block) -> LineBlock {
        LineBlock { sync: block.sync() as u8, payload: block.payload() }
    }
}

/// Eight error characters. Between /MS/ and /MT/: the sender gives the message up, as a switch must
/// when the link that a chunk came by fails under it. The next link is sound, so its receiver drops
/// the message and must not take this for corruption. No error of one or two bits makes this block
/// of a data block or of another control block.
pub const ABORT: Block = Block::control(BlockType::Control, repeated_character(0x1e));

/// The sequence ordered set of clause 46.3.4 on both columns: this end receives nothing it can
/// trust, so the link is disabled in both directions.
pub const REMOTE_FAULT: Block = Block::control(BlockType::OrderedOrdered, 0x02 << 16 | 0x02 << 48);

/// Eight control characters of seven bits.
const fn repeated_character(character: u64) -> u64 {
    let mut rest = 0;
    let mut lane = 0;
    while lane < 8 {
        rest |= character << (7 * lane);
        lane += 1;
    }
    rest
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
        assert!(REMOTE_FAULT.block_type().unwrap().unwrap().has_ordered_set());
    }
}
