//! Chunks: RRES and WREQ. Their content ends in a CRC-32C. Their length follows from the number of
//! /MD/ blocks and the count of valid octets in the last one.

use crate::field::{Address40, ChunkData, ChunkIndex, MAX_CHUNK_BYTES, MessageId, NodeId};
use crate::layout;
use crate::message::parts::{self, Frame, MD_BYTES};
use crate::message::single::{check_reserved, party, put_party};
use crate::message::{DecodeError, Framed};
use crate::opcode::Opcode;

/// RRES: a chunk of what was read, or the word before a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadResponse<'a> {
    /// The memory node, which sends the response end to end.
    pub source: NodeId,
    /// The request it answers.
    pub id: MessageId,
    /// The number of the chunk within the response.
    pub index: ChunkIndex,
    /// True in the last chunk of the response.
    pub last: bool,
    /// The bytes that were read.
    pub data: ChunkData<'a>,
}

/// WREQ without a response. It holds all that the memory node needs, so the node keeps no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostedWrite<'a> {
    /// Byte address of the chunk's first byte.
    pub address: Address40,
    /// The bytes to write.
    pub data: ChunkData<'a>,
}

/// WREQ whose last chunk is answered with a status; one block longer than a posted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AcknowledgedWrite<'a> {
    /// The compute node, which sends the write end to end.
    pub source: NodeId,
    /// The id of the write.
    pub id: MessageId,
    /// The number of the chunk within the write.
    pub index: ChunkIndex,
    /// True in the last chunk of the write.
    pub last: bool,
    /// Byte address of the chunk's first byte.
    pub address: u64,
    /// The bytes to write.
    pub data: ChunkData<'a>,
}

/// Number of valid octets in the last /MD/ block; 0 stands for all eight.
fn tail_count(data: ChunkData<'_>) -> u64 {
    (data.bytes().len() % MD_BYTES) as u64
}

/// Takes the first `tail` octets of the last block and all octets of the blocks before it. The
/// other octets must be zero.
fn take_data(blocks: &[[u8; MD_BYTES]], tail: u64) -> Result<ChunkData<'_>, DecodeError> {
    let padding = (MD_BYTES - tail as usize) % MD_BYTES;
    let octets = blocks.as_flattened();
    let (data, padding) = octets.split_at(octets.len().saturating_sub(padding));
    if padding.iter().any(|&octet| octet != 0) {
        return Err(DecodeError::Padding);
    }
    ChunkData::new(data).map_err(|_| DecodeError::ChunkLength(data.len()))
}

fn check_chunk(framed: Framed<'_>) -> Result<(), DecodeError> {
    // This check comes before the CRC, so that the work on a hostile sequence of blocks is bounded.
    if framed.blocks.len() > MAX_CHUNK_BYTES / MD_BYTES + 1 {
        return Err(DecodeError::ChunkLength(framed.blocks.len() * MD_BYTES));
    }
    let tail_octet = layout::TAIL_OCTET.get(framed.mt) as u8;
    let computed = parts::crc32(framed.ms, framed.blocks.iter().copied(), tail_octet);
    DecodeError::check_crc(layout::CRC32.get(framed.mt) as u32, computed)
}

fn chunk_index(bits: u64) -> ChunkIndex {
    ChunkIndex::new(bits as u16).expect("the field is 15 bits wide")
}

impl<'a> ReadResponse<'a> {
    pub(crate) fn to_frame(self) -> Frame<'a> {
        let ms = layout::OPCODE.put(Opcode::ReadResponse as u64)
            | put_party(self.source, self.id)
            | layout::RRES_TAIL.put(tail_count(self.data))
            | layout::RRES_LAST.put(u64::from(self.last))
            | layout::RRES_INDEX.put(u64::from(self.index.number()));
        Frame::new(ms, &[], self.data.bytes()).seal32(0)
    }

    pub(crate) fn from_framed(framed: Framed<'a>) -> Result<Self, DecodeError> {
        check_chunk(framed)?;
        check_reserved(framed.mt, &[layout::TAIL_OCTET])?;
        let (source, id) = party(framed.ms);
        Ok(ReadResponse {
            source,
            id,
            index: chunk_index(layout::RRES_INDEX.get(framed.ms)),
            last: layout::RRES_LAST.get(framed.ms) == 1,
            data: take_data(framed.blocks, layout::RRES_TAIL.get(framed.ms))?,
        })
    }
}

impl<'a> PostedWrite<'a> {
    pub(crate) fn to_frame(self) -> Frame<'a> {
        let address = self.address.number();
        let ms = layout::OPCODE.put(Opcode::PostedWrite as u64)
            | layout::WREQ_TAIL.put(tail_count(self.data))
            | layout::WREQ_ADDRESS_LOW.put(address & 0xffff_ffff);
        Frame::new(ms, &[], self.data.bytes()).seal32(address >> 32)
    }

    pub(crate) fn from_framed(framed: Framed<'a>) -> Result<Self, DecodeError> {
        check_chunk(framed)?;
        check_reserved(framed.ms, &[layout::WREQ_LAST])?;
        let high = layout::TAIL_OCTET.get(framed.mt);
        let address = Address40::new(high << 32 | layout::WREQ_ADDRESS_LOW.get(framed.ms));
        Ok(PostedWrite {
            address: address.expect("the fields are 40 bits wide together"),
            data: take_data(framed.blocks, layout::WREQ_TAIL.get(framed.ms))?,
        })
    }
}

impl<'a> AcknowledgedWrite<'a> {
    pub(crate) fn to_frame(self) -> Frame<'a> {
        let ms = layout::OPCODE.put(Opcode::AcknowledgedWrite as u64)
            | layout::WREQ_TAIL.put(tail_count(self.data))
            | layout::WREQ_LAST.put(u64::from(self.last))
            | layout::WREQ_ADDRESS_LOW.put(self.address & 0xffff_ffff);
        let head = layout::ACK_SOURCE.put(u64::from(self.source.number()))
            | layout::ACK_ID.put(u64::from(self.id.0))
            | layout::ACK_INDEX.put(u64::from(self.index.number()))
            | layout::ACK_ADDRESS_HIGH.put(self.address >> 40);
        Frame::new(ms, &[head], self.data.bytes()).seal32(self.address >> 32 & 0xff)
    }

    pub(crate) fn from_framed(framed: Framed<'a>) -> Result<Self, DecodeError> {
        let Some((&head, blocks)) = framed.blocks.split_first() else {
            return Err(framed.unexpected_count(Opcode::AcknowledgedWrite));
        };
        check_chunk(framed)?;
        let head = u64::from_le_bytes(head);
        check_reserved(head, &[layout::ACK_RESERVED, layout::ACK_RESERVED_HIGH])?;
        let source = NodeId::new(layout::ACK_SOURCE.get(head) as u16);
        Ok(AcknowledgedWrite {
            source: source.expect("the field is nine bits wide"),
            id: MessageId(layout::ACK_ID.get(head) as u8),
            index: chunk_index(layout::ACK_INDEX.get(head)),
            last: layout::WREQ_LAST.get(framed.ms) == 1,
            address: layout::ACK_ADDRESS_HIGH.get(head) << 40
                | layout::TAIL_OCTET.get(framed.mt) << 32
                | layout::WREQ_ADDRESS_LOW.get(framed.ms),
            data: take_data(blocks, layout::WREQ_TAIL.get(framed.ms))?,
        })
    }
}
