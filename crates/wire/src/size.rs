//! The number of blocks that each item takes on a link: simulator and scheduler share these
//! numbers.

use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes};

use crate::field::{AddressWidth, MAX_CHUNK_BYTES};
use crate::message::WriteKind;
use crate::opcode::RmwKind;

/// /N/.
pub const NOTIFICATION_BLOCKS: Blocks = Blocks(1);
/// /G/.
pub const GRANT_BLOCKS: Blocks = Blocks(1);
/// /MST/: an acknowledgement or an error.
pub const STATUS_BLOCKS: Blocks = Blocks(1);

/// /MS/ and /MT/.
const FRAMING: u64 = 2;
/// Start character, six octets of preamble and the SFD.
const PREAMBLE_BYTES: u64 = 8;
/// Minimum mean gap between two frames, including the terminate character.
const GAP_BYTES: u64 = 12;

/// The kind of message that a chunk is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkKind {
    /// WREQ without a response.
    PostedWrite,
    /// WREQ with a response.
    AcknowledgedWrite,
    /// RRES.
    ReadResponse,
}

impl ChunkKind {
    /// The kind of a write's chunks.
    #[must_use]
    pub const fn of_write(kind: WriteKind) -> ChunkKind {
        match kind {
            WriteKind::Posted => ChunkKind::PostedWrite,
            WriteKind::Acknowledged => ChunkKind::AcknowledgedWrite,
        }
    }
}

/// RREQ: two blocks, or three with a 64-bit address.
#[must_use]
pub const fn read_request_blocks(width: AddressWidth) -> Blocks {
    Blocks(FRAMING + address_blocks(width))
}

/// RMWREQ: three blocks, four for a compare-and-swap; one more with a 64-bit address.
#[must_use]
pub const fn rmw_request_blocks(kind: RmwKind, width: AddressWidth) -> Blocks {
    Blocks(FRAMING + address_blocks(width) + kind.operand_count() as u64)
}

/// Blocks of a chunk of `data` bytes with its framing: 10 for 64 B, 11 if the chunk is
/// acknowledged.
///
/// # Panics
/// Unless `data` is between 1 B and [`MAX_CHUNK_BYTES`].
#[must_use]
pub const fn chunk_blocks(kind: ChunkKind, data: Bytes) -> Blocks {
    assert!(data.0 > 0 && data.0 <= MAX_CHUNK_BYTES as u64, "chunk size out of range");
    let head = match kind {
        ChunkKind::PostedWrite | ChunkKind::ReadResponse => 0,
        ChunkKind::AcknowledgedWrite => 1,
    };
    Blocks(FRAMING + head + data.to_blocks().0)
}

/// Blocks of all chunks of a message of `data` bytes; each chunk has `chunk` bytes except the last.
///
/// # Panics
/// Unless `chunk` is between 1 B and [`MAX_CHUNK_BYTES`].
#[must_use]
pub const fn message_blocks(kind: ChunkKind, data: Bytes, chunk: Bytes) -> Blocks {
    let full = chunk_blocks(kind, chunk).0 * (data.0 / chunk.0);
    match data.0 % chunk.0 {
        0 => Blocks(full),
        rest => Blocks(full + chunk_blocks(kind, Bytes(rest)).0),
    }
}

/// Blocks of an Ethernet frame from /S/ to /T/. `frame` counts from the destination address to the
/// FCS.
#[must_use]
pub const fn frame_blocks(frame: Bytes) -> Blocks {
    Blocks(1 + frame.0 / BLOCK_PAYLOAD_BYTES + 1)
}

/// Blocks of an Ethernet frame and the gap after it, if each frame starts on lane 0 and no gap is
/// under its minimum. [`InterPacketGap`] models a transmitter that does better.
#[must_use]
pub const fn frame_blocks_with_gap(frame: Bytes) -> Blocks {
    Bytes(PREAMBLE_BYTES + frame.0 + GAP_BYTES).to_blocks()
}

/// The deficit idle count of IEEE 802.3 46.3.1.4 for starts on lane 0. Single gaps may be up to
/// seven octets short so that the mean gap is the minimum. So the line carries a frame every `20 +
/// frame` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterPacketGap {
    deficit_bytes: u64,
}

impl InterPacketGap {
    /// Blocks of the next frame and of the gap after it.
    pub const fn frame_blocks_with_gap(&mut self, frame: Bytes) -> Blocks {
        let bytes = PREAMBLE_BYTES + frame.0 + GAP_BYTES;
        let past_block = bytes % BLOCK_PAYLOAD_BYTES;
        if self.deficit_bytes + past_block < BLOCK_PAYLOAD_BYTES {
            self.deficit_bytes += past_block;
            Blocks(bytes / BLOCK_PAYLOAD_BYTES)
        } else {
            self.deficit_bytes -= BLOCK_PAYLOAD_BYTES - past_block;
            Blocks(bytes / BLOCK_PAYLOAD_BYTES + 1)
        }
    }
}

const fn address_blocks(width: AddressWidth) -> u64 {
    match width {
        AddressWidth::Bits40 => 0,
        AddressWidth::Bits64 => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_by_hand() {
        assert_eq!(read_request_blocks(AddressWidth::Bits40), Blocks(2));
        assert_eq!(read_request_blocks(AddressWidth::Bits64), Blocks(3));
        assert_eq!(rmw_request_blocks(RmwKind::CompareAndSwap, AddressWidth::Bits40), Blocks(4));
        assert_eq!(rmw_request_blocks(RmwKind::Xor, AddressWidth::Bits64), Blocks(4));
        for (kind, bytes, blocks) in [
            (ChunkKind::PostedWrite, 64, 10),
            (ChunkKind::ReadResponse, 64, 10),
            (ChunkKind::AcknowledgedWrite, 64, 11),
            (ChunkKind::ReadResponse, 1, 3),
            (ChunkKind::ReadResponse, 65, 11),
            (ChunkKind::PostedWrite, 256, 34),
        ] {
            assert_eq!(chunk_blocks(kind, Bytes(bytes)), Blocks(blocks), "{kind:?} {bytes} B");
        }
        assert_eq!(message_blocks(ChunkKind::PostedWrite, Bytes(513), Bytes(256)), Blocks(71));
        assert_eq!(message_blocks(ChunkKind::PostedWrite, Bytes(512), Bytes(256)), Blocks(68));
    }

    #[test]
    fn a_frame_takes_its_octets_and_a_gap() {
        // 8 + 64 + 12 = 84 octets are 10.5 blocks.
        assert_eq!(frame_blocks(Bytes(64)), Blocks(10));
        assert_eq!(frame_blocks_with_gap(Bytes(64)), Blocks(11));
        assert_eq!(frame_blocks(Bytes(1518)), Blocks(191));
        assert_eq!(frame_blocks_with_gap(Bytes(1518)), Blocks(193));
    }

    #[test]
    fn the_mean_gap_is_the_minimum() {
        for frame in 64..=128 {
            let mut gap = InterPacketGap::default();
            let blocks: u64 = (0..8).map(|_| gap.frame_blocks_with_gap(Bytes(frame)).0).sum();
            assert_eq!(blocks, frame + 20, "eight frames of {frame} B");
        }
    }

    #[test]
    #[should_panic(expected = "chunk size out of range")]
    fn an_empty_chunk_has_no_size() {
        let _ = chunk_blocks(ChunkKind::PostedWrite, Bytes(0));
    }
}
