//! No error turns one control block into another. The tests apply every error pattern to real
//! blocks.

#[path = "support/errors.rs"]
mod errors;

use errors::{Pattern, line_errors};
use ethermem_wire::{Block, BlockType, DeframeError, Deframer, EdmControl, SubType, SyncHeader};

const CONTENTS: [u64; 4] = [0, 0xff_ffff_ffff, 0x01_2345_6789, 0xa5_5a0f_f033];

/// What a receiver makes of a block alone.
#[derive(Debug, PartialEq)]
enum Seen {
    Detected,
    /// Both sync bits are wrong; the block sequence decides whether a data block may stand there.
    Data,
    Standard(BlockType),
    Edm(EdmControl),
}

fn receive(block: Block, error: Pattern) -> Seen {
    let sync = block.sync() as u8 ^ error.sync;
    let Ok(block) = Block::from_line(sync, block.payload() ^ error.payload) else {
        return Seen::Detected;
    };
    match block.block_type() {
        Ok(None) => Seen::Data,
        Ok(Some(BlockType::Edm)) => EdmControl::decode(block).map_or(Seen::Detected, Seen::Edm),
        Ok(Some(standard)) => Seen::Standard(standard),
        Err(_) => Seen::Detected,
    }
}

fn edm_blocks() -> impl Iterator<Item = Block> {
    let contents = CONTENTS.into_iter();
    contents.flat_map(|content| {
        SubType::ALL.into_iter().map(move |sub_type| EdmControl::new(sub_type, content).encode())
    })
}

fn standard_blocks() -> impl Iterator<Item = Block> {
    let types = BlockType::ALL.into_iter().filter(|&block_type| block_type != BlockType::Edm);
    types.flat_map(|block_type| {
        // One of the payloads would be an EDM block if its type were zero.
        let edm = EdmControl::new(SubType::Notification, CONTENTS[3]).encode().payload() >> 8;
        [0, u64::MAX, edm].into_iter().map(move |rest| Block::control(block_type, rest))
    })
}

fn sum(a: Pattern, b: Pattern) -> Pattern {
    Pattern { sync: a.sync ^ b.sync, payload: a.payload ^ b.payload }
}

fn bits() -> Vec<Pattern> {
    let sync = (0..2).map(|bit| Pattern { sync: 1 << bit, payload: 0 });
    sync.chain((0..64).map(|bit| Pattern { sync: 0, payload: 1 << bit })).collect()
}

fn patterns() -> Vec<Pattern> {
    line_errors().into_iter().map(|(_, pattern)| pattern).collect()
}

/// Every sum of one or two of `patterns`.
fn up_to_two(patterns: &[Pattern]) -> impl Iterator<Item = Pattern> {
    patterns.iter().enumerate().flat_map(move |(i, &a)| {
        std::iter::once(a).chain(patterns[..i].iter().map(move |&b| sum(a, b)))
    })
}

fn assert_detected(block: Block, error: Pattern) {
    let expected = if error.sync == 0b11 { Seen::Data } else { Seen::Detected };
    assert_eq!(receive(block, error), expected, "{block:?} with {error:x?}");
}

#[test]
fn an_edm_block_with_up_to_three_wrong_bits_is_detected() {
    let bits = bits();
    for block in edm_blocks() {
        for (i, &a) in bits.iter().enumerate() {
            assert_detected(block, a);
            up_to_two(&bits[..i]).for_each(|pair| assert_detected(block, sum(a, pair)));
        }
    }
}

#[test]
fn an_edm_block_with_up_to_two_line_errors_is_detected() {
    let patterns = patterns();
    assert_eq!(patterns.len(), 2 + 64 + 58);
    for block in edm_blocks() {
        up_to_two(&patterns).for_each(|error| assert_detected(block, error));
    }
}

#[test]
fn a_standard_block_never_becomes_another_type() {
    let (bits, lines) = (bits(), patterns());
    for block in standard_blocks() {
        let own = block.block_type().expect("a known type").expect("a control block");
        let mut seen_standard = 0;
        for error in up_to_two(&bits).chain(up_to_two(&lines)) {
            match receive(block, error) {
                Seen::Detected => {}
                Seen::Data => assert_eq!(error.sync, 0b11),
                Seen::Standard(seen) => {
                    assert_eq!(seen, own, "{block:?} with {error:x?}");
                    seen_standard += 1;
                }
                Seen::Edm(seen) => panic!("{block:?} with {error:x?} became {seen:?}"),
            }
        }
        // Errors past the type are left to the frame check sequence.
        assert!(seen_standard > 0);
    }
}

#[test]
fn a_data_block_becomes_a_control_block_only_by_both_sync_bits() {
    // The worst case is data that equals a notification bit for bit.
    let edm = EdmControl::new(SubType::Notification, CONTENTS[3]).encode();
    let data = Block::data(edm.payload());
    for error in up_to_two(&bits()).chain(up_to_two(&patterns())) {
        let seen = receive(data, error);
        if error.sync == 0b11 {
            assert!(matches!(seen, Seen::Edm(_)));
        } else if error.sync != 0 {
            assert_eq!(seen, Seen::Detected);
        } else {
            assert_eq!(seen, Seen::Data);
        }
    }
}

#[test]
fn an_edm_block_that_became_data_is_stray() {
    for block in edm_blocks() {
        let mut deframer = Deframer::<4>::new();
        let flipped = deframer.push_line(SyncHeader::Data as u8, block.payload());
        assert_eq!(flipped, Err(DeframeError::StrayData));
    }
}
