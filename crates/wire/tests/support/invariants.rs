//! Invariants of every sequence of blocks, shared by the fuzz target and a property test.

mod sealed;

use ethermem_wire::{Block, Deframer, EdmControl, Event, FrameAssembler, Message, SubType};

use sealed::sealed;

const MD_BLOCKS: usize = 20;

/// A receiver, and the blocks of the message in progress beside it.
#[derive(Default)]
struct Link {
    deframer: Deframer<MD_BLOCKS>,
    assembler: FrameAssembler<96>,
    blocks: Vec<Block>,
    messages: usize,
}

/// Reads `input` as instructions for blocks and sends the blocks to a receiver. The receiver must
/// not panic, and each message it delivers must be encoded as the blocks that were sent. Returns
/// the number of messages.
///
/// An instruction is nine bytes: what to make, and 64 bits of content. Random bits would hardly
/// ever pass a CRC, so most instructions compute it.
pub(crate) fn check(input: &[u8]) -> usize {
    let mut link = Link::default();
    let mut instructions = input.chunks_exact(9);
    while let Some(&[operation, ref word @ ..]) = instructions.next() {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes are left"));
        let argument = operation >> 3;
        match operation & 7 {
            0 | 1 => link.push(argument & 3, word),
            2 | 3 => {
                let sub_type = SubType::ALL[usize::from(argument) % SubType::ALL.len()];
                link.push_block(EdmControl::new(sub_type, word).encode());
            }
            kind => {
                let count = usize::from(argument) % (MD_BLOCKS + 2);
                let words: Vec<u64> = instructions
                    .by_ref()
                    .take(count)
                    .map(|bytes| u64::from_le_bytes(bytes[1..].try_into().expect("eight bytes")))
                    .collect();
                sealed(word, &words, kind & 1 == 0).for_each(|block| link.push_block(block));
            }
        }
    }
    link.messages
}

impl Link {
    fn push_block(&mut self, block: Block) {
        self.push(block.sync() as u8, block.payload());
    }

    fn push(&mut self, sync: u8, payload: u64) {
        let event = self.deframer.push_line(sync, payload);
        let Ok(block) = Block::from_line(sync, payload) else {
            assert!(event.is_err(), "an invalid sync header passed");
            return;
        };
        if EdmControl::decode(block).is_ok_and(|control| control.sub_type() != SubType::Terminate) {
            self.blocks.clear();
        }
        self.blocks.push(block);
        match event {
            Ok(Some(Event::Message(message))) => {
                assert!(message.blocks().eq(self.blocks.iter().copied()), "{message:?}");
                decodes_to_itself(&message);
                self.messages += 1;
            }
            Ok(Some(Event::Ethernet(passed))) => {
                assert_eq!(passed, block);
                let decoded = EdmControl::decode(block);
                assert!(decoded.is_err(), "an EDM block went to Ethernet");
                let _ = self.assembler.push(block);
            }
            Ok(None) | Err(_) => {}
        }
    }
}

/// True if a fresh receiver decodes a message's blocks to that message.
pub(crate) fn decodes_to_itself(message: &Message<'_>) {
    let mut deframer = Deframer::<{ ethermem_wire::MD_BLOCKS_MAX }>::new();
    let mut left = message.blocks().len();
    for block in message.blocks() {
        left -= 1;
        let event = deframer.push(block);
        if left == 0 {
            assert_eq!(event, Ok(Some(Event::Message(*message))));
        } else {
            assert_eq!(event, Ok(None), "{message:?} is over too early");
        }
    }
}
