//! The frame that a MAC puts on the line for a payload (IEEE 802.3, clauses 3 and 4).

use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes};

/// Minimum bytes of a frame, header and FCS included.
const FRAME_BYTES_MIN: u64 = 64;
/// Bytes of Ethernet header and FCS.
pub const FRAME_OVERHEAD_BYTES: u64 = 18;
/// Bytes of the preamble with the start delimiter.
pub const PREAMBLE_BYTES: u64 = 8;
/// Bytes of the inter-packet gap.
pub const GAP_BYTES: u64 = 12;

/// The sizes of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of blocks that it takes on a link and in a buffer, with preamble and gap.
    pub line: u16,
    /// Number of blocks after its first until it is whole, excluding the inter-frame gap.
    pub tail: u16,
}

impl Frame {
    /// The frame of minimum size.
    pub const LEAST: Frame = Frame { line: 11, tail: 8 };

    /// The frame with `payload_bytes`, which an MTU bounds.
    #[inline]
    #[must_use]
    pub fn of(payload_bytes: u64) -> Frame {
        let bytes = (payload_bytes + FRAME_OVERHEAD_BYTES).max(FRAME_BYTES_MIN);
        let whole = Bytes(PREAMBLE_BYTES + bytes).to_blocks();
        let line = Bytes(PREAMBLE_BYTES + bytes + GAP_BYTES).to_blocks();
        Frame { line: line.0 as u16, tail: (whole.0 - 1) as u16 }
    }

    /// Number of blocks that it takes on a link, with preamble and gap.
    #[inline]
    #[must_use]
    pub const fn line_blocks(self) -> Blocks {
        Blocks(self.line as u64)
    }

    /// Bytes that it takes on a link and in a buffer: a switch stores whole cells.
    #[inline]
    #[must_use]
    pub const fn line_bytes(self) -> u64 {
        self.line as u64 * BLOCK_PAYLOAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_least_size_and_are_counted_with_preamble_and_gap() {
        // 64 B and 8 B of preamble are 9 blocks; 12 B of gap make it 10.5.
        assert_eq!(Frame::of(0), Frame { line: 11, tail: 8 });
        assert_eq!(Frame::of(0), Frame::LEAST);
        assert_eq!(Frame::of(46), Frame::of(0));
        // 65 B: 9.1 blocks, with the gap 10.6.
        assert_eq!(Frame::of(47), Frame { line: 11, tail: 9 });
        // 1518 + 8 = 190.75 blocks, 1538 = 192.25.
        assert_eq!(Frame::of(1_500), Frame { line: 193, tail: 190 });
        assert_eq!(Frame::of(1_500).line_bytes(), 1_544);
    }
}
