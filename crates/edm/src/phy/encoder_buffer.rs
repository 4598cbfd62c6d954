//! The buffer at the encoder's output and its back-pressure.

use ethermem_wire::Block;

/// Number of slots from the transmitter's ready signal until the requested block arrives. It is the
/// 4 cycles of section 3.2.3, and also the size of the buffer.
pub const ENCODER_LATENCY_SLOTS: usize = 4;

const CAPACITY: u32 = ENCODER_LATENCY_SLOTS as u32;
const OLDEST: u8 = 1 << (CAPACITY - 1);
const MASK: u8 = (1 << CAPACITY) - 1;

/// The encoder's output that no slot has carried yet: blocks of frames and, in order, the gaps
/// between frames.
///
/// The encoder is asked only while the stored and the requested blocks fit together, so the buffer
/// cannot overflow. Every answer takes its place, gaps included. So stored and requested blocks
/// cover a full latency whenever the encoder is paused. The encoder then does not run dry in a
/// frame when slots come back.
#[derive(Clone, Debug)]
pub(super) struct EncoderBuffer {
    /// The buffered blocks; `None` is a gap.
    blocks: [Option<Block>; ENCODER_LATENCY_SLOTS],
    head: usize,
    len: u32,
    /// The slots in which a block was requested; the last one is bit 0.
    asked: u8,
}

impl EncoderBuffer {
    pub(super) const fn new() -> EncoderBuffer {
        EncoderBuffer { blocks: [None; ENCODER_LATENCY_SLOTS], head: 0, len: 0, asked: 0 }
    }

    /// Begins a slot; `block` is the encoder's answer to the request of a latency ago.
    pub(super) fn accept(&mut self, block: Option<Block>) {
        let due = self.asked & OLDEST != 0;
        self.asked = self.asked << 1 & MASK;
        assert!(due || block.is_none(), "the encoder sent a block that it was not asked for");
        if due {
            let tail = (self.head + self.len as usize) % ENCODER_LATENCY_SLOTS;
            self.blocks[tail] = block;
            self.len += 1;
        }
    }

    /// The next item, if it is a frame's block.
    pub(super) fn head(&self) -> Option<Block> {
        if self.len > 0 { self.blocks[self.head] } else { None }
    }

    /// Takes the next item: a frame's block, or a slot of a gap, which memory may use.
    pub(super) fn take(&mut self) -> Option<Block> {
        if self.len == 0 {
            return None;
        }
        let block = self.blocks[self.head];
        self.head = (self.head + 1) % ENCODER_LATENCY_SLOTS;
        self.len -= 1;
        block
    }

    /// Ends a slot. Returns whether the encoder may produce a block for the slot a latency later.
    pub(super) fn ask(&mut self) -> bool {
        let room = self.len + self.asked.count_ones() < CAPACITY;
        self.asked |= u8::from(room);
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_encoder_fills_the_buffer_and_no_more_and_resumes_without_a_bubble() {
        let mut buffer = EncoderBuffer::new();
        let mut asked = [false; 64];
        let mut sent = 0;
        let mut received = 0;
        for slot in 0..64 {
            let answer = slot >= 4 && asked[slot - 4];
            buffer.accept(answer.then(|| Block::data(sent)));
            sent += u64::from(answer);
            // Memory takes slots 20 to 39.
            if !(20..40).contains(&slot) {
                let block = buffer.take();
                assert_eq!(block, (slot >= 4).then(|| Block::data(received)), "slot {slot}");
                received += u64::from(block.is_some());
            }
            asked[slot] = buffer.ask();
        }
        assert_eq!(received, 64 - 4 - 20);
    }

    #[test]
    #[should_panic(expected = "not asked for")]
    fn an_encoder_that_ignores_the_back_pressure_is_found_out() {
        let mut buffer = EncoderBuffer::new();
        buffer.accept(Some(Block::data(0)));
    }
}
