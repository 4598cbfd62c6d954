//! A message taken apart into its blocks, and the checks over several of them.

use core::iter::FusedIterator;

use ethermem_units::BLOCK_PAYLOAD_BYTES;

use crate::block::Block;
use crate::control::{EdmControl, SubType};
use crate::crc;
use crate::layout;

/// Octets of an /MD/ block.
pub(crate) const MD_BYTES: usize = BLOCK_PAYLOAD_BYTES as usize;
/// Maximum number of /MD/ blocks before the data: a 64-bit address and two operands.
const HEAD_MAX: usize = 3;

/// The contents of a message's blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parts<'a> {
    Single(EdmControl),
    Framed(Frame<'a>),
}

/// A message between /MS/ and /MT/.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) ms: u64,
    head: [u64; HEAD_MAX],
    head_count: usize,
    data: &'a [u8],
    pub(crate) mt: u64,
}

impl<'a> Frame<'a> {
    /// A frame with the /MS/ content `ms`, the words of `head` and then `data`. The caller sets its
    /// /MT/.
    pub(crate) fn new(ms: u64, head: &[u64], data: &'a [u8]) -> Frame<'a> {
        let mut words = [0; HEAD_MAX];
        words[..head.len()].copy_from_slice(head);
        Frame { ms, head: words, head_count: head.len(), data, mt: 0 }
    }

    fn md_count(&self) -> usize {
        self.head_count + self.data.len().div_ceil(MD_BYTES)
    }

    /// The octets of an /MD/ block; the last block is padded with zeros.
    fn md(&self, index: usize) -> [u8; MD_BYTES] {
        let Some(data_index) = index.checked_sub(self.head_count) else {
            return self.head[index].to_le_bytes();
        };
        let rest = &self.data[data_index * MD_BYTES..];
        let mut octets = [0; MD_BYTES];
        let count = rest.len().min(MD_BYTES);
        octets[..count].copy_from_slice(&rest[..count]);
        octets
    }

    /// Sets an /MT/ of one octet and the CRC-32 over everything before it.
    pub(crate) fn seal32(mut self, tail_octet: u64) -> Frame<'a> {
        let blocks = (0..self.md_count()).map(|index| self.md(index));
        let crc = crc32(self.ms, blocks, tail_octet as u8);
        self.mt = layout::TAIL_OCTET.put(tail_octet) | layout::CRC32.put(u64::from(crc));
        self
    }

    /// Sets an /MT/ of 24 bits and the CRC-16 over everything before it.
    pub(crate) fn seal16(mut self, tail_bits: u64) -> Frame<'a> {
        let blocks = (0..self.md_count()).map(|index| self.md(index));
        let crc = crc16(self.ms, blocks, tail_bits);
        self.mt = layout::RMW_ADDRESS_HIGH.put(tail_bits) | layout::CRC16.put(u64::from(crc));
        self
    }
}

/// The octets of a 40-bit content in line order.
fn content_octets(content: u64) -> [u8; 5] {
    let [a, b, c, d, e, ..] = content.to_le_bytes();
    [a, b, c, d, e]
}

/// CRC-32C over the content of /MS/, the /MD/ blocks and the first content octet of /MT/, in line
/// order.
pub(crate) fn crc32(ms: u64, blocks: impl Iterator<Item = [u8; MD_BYTES]>, tail_octet: u8) -> u32 {
    let mut digest = crc::chunk();
    digest.update(&content_octets(ms));
    blocks.for_each(|octets| digest.update(&octets));
    digest.update(&[tail_octet]);
    digest.finalize()
}

/// CRC-16 over the content of /MS/, the /MD/ blocks and the first 24 content bits of /MT/, in line
/// order.
pub(crate) fn crc16(ms: u64, blocks: impl Iterator<Item = [u8; MD_BYTES]>, tail_bits: u64) -> u16 {
    let mut digest = crc::operands();
    digest.update(&content_octets(ms));
    blocks.for_each(|octets| digest.update(&octets));
    digest.update(&content_octets(tail_bits)[..3]);
    digest.finalize()
}

/// The blocks of a message in line order.
#[derive(Clone, Debug)]
pub struct MessageBlocks<'a> {
    parts: Parts<'a>,
    next: usize,
}

impl<'a> MessageBlocks<'a> {
    pub(crate) fn new(parts: Parts<'a>) -> MessageBlocks<'a> {
        MessageBlocks { parts, next: 0 }
    }

    fn total(&self) -> usize {
        match &self.parts {
            Parts::Single(_) => 1,
            Parts::Framed(frame) => frame.md_count() + 2,
        }
    }
}

impl Iterator for MessageBlocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let (index, total) = (self.next, self.total());
        if index == total {
            return None;
        }
        self.next += 1;
        Some(match &self.parts {
            Parts::Single(control) => control.encode(),
            Parts::Framed(frame) if index == 0 => {
                EdmControl::new(SubType::Start, frame.ms).encode()
            }
            Parts::Framed(frame) if index == total - 1 => {
                EdmControl::new(SubType::Terminate, frame.mt).encode()
            }
            Parts::Framed(frame) => Block::data(u64::from_le_bytes(frame.md(index - 1))),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.total() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for MessageBlocks<'_> {}
impl FusedIterator for MessageBlocks<'_> {}
