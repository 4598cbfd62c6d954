//! Messages with correct checks and arbitrary fields.

use crc::{CRC_16_IBM_SDLC, CRC_32_ISCSI, Crc};
use ethermem_wire::{Block, EdmControl, Opcode, OpcodeBits, SubType};

static CRC32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
static CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);

const NODE_BITS: u64 = 0x1ff << 4;

/// A message with correct CRCs around any content.
pub(crate) fn sealed(ms: u64, words: &[u64], wide: bool) -> impl Iterator<Item = Block> {
    let opcode = Opcode::try_from(OpcodeBits::from_low_bits(ms as u8));
    let end_to_end = match opcode {
        Ok(Opcode::ReadResponse | Opcode::PostedWrite | Opcode::AcknowledgedWrite) => ms,
        _ => ms & !NODE_BITS,
    };
    // The bits of /MS/ above its content serve as the tail.
    let tail = ms >> 40;
    let mut covered = end_to_end.to_le_bytes()[..5].to_vec();
    covered.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let mt = if wide {
        covered.push(tail as u8);
        (tail & 0xff) | (u64::from(CRC32.checksum(&covered)) << 8)
    } else {
        covered.extend(&tail.to_le_bytes()[..3]);
        tail | (u64::from(CRC16.checksum(&covered)) << 24)
    };
    let start = EdmControl::new(SubType::Start, ms).encode();
    let end = EdmControl::new(SubType::Terminate, mt).encode();
    let data = words.iter().map(|&word| Block::data(word)).collect::<Vec<_>>();
    core::iter::once(start).chain(data).chain([end])
}
