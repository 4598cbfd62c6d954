//! Ethernet frames as blocks, with memory messages between these.

#[path = "support/samples.rs"]
mod samples;

use ethermem_units::{Blocks, Bytes};
use ethermem_wire::{
    Block, BlockType, DeframeError, Deframer, Event, FrameAssembler, FrameBlocks, FrameError,
    frame_blocks, frame_check_sequence, has_valid_fcs,
};

fn frame(bytes: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = samples::PATTERN.into_iter().cycle().take(bytes - 4).collect();
    frame.extend(frame_check_sequence(&frame).to_le_bytes());
    frame
}

#[test]
fn a_frame_survives_its_blocks() {
    for bytes in 64..=140 {
        let frame = frame(bytes);
        assert!(has_valid_fcs(&frame));
        let blocks: Vec<Block> = FrameBlocks::new(&frame).collect();
        assert_eq!(Blocks(blocks.len() as u64), frame_blocks(Bytes(bytes as u64)));
        assert_eq!(FrameBlocks::new(&frame).len(), blocks.len());
        let mut assembler = FrameAssembler::<147>::new();
        let (end, body) = blocks.split_last().expect("a frame has blocks");
        for &block in body {
            assert_eq!(assembler.push(block), Ok(None));
        }
        assert_eq!(assembler.push(*end), Ok(Some(frame.as_slice())));
    }
}

#[test]
fn a_frame_is_laid_out_as_the_standard_does() {
    let frame = frame(66);
    let blocks: Vec<Block> = FrameBlocks::new(&frame).collect();
    assert_eq!(blocks[0].payload(), 0xd555_5555_5555_5578);
    assert_eq!(blocks[1], Block::data(0x0706_0504_0302_0100));
    let tail = u64::from(u16::from_le_bytes([frame[64], frame[65]]));
    assert_eq!(blocks[9], Block::control(BlockType::Terminate2, tail));
    // CRC catalogues give this check value for CRC-32.
    assert_eq!(frame_check_sequence(b"123456789"), 0xcbf4_3926);
    assert!(!has_valid_fcs(&[1, 2, 3]));
}

#[test]
fn a_start_on_lane_four_is_taken() {
    // The block C0..C3 S4 with three octets of preamble; everything after it is shifted by four
    // octets.
    let frame = frame(64);
    let mut octets = vec![0x55, 0x55, 0x55, 0xd5];
    octets.extend(&frame);
    let mut assembler = FrameAssembler::<128>::new();
    let start = Block::control(BlockType::ControlStart, 0x55_5555 << 32);
    assert_eq!(assembler.push(start), Ok(None));
    let (body, tail) = octets.as_chunks::<8>();
    for &octets in body {
        assert_eq!(assembler.push(Block::data(u64::from_le_bytes(octets))), Ok(None));
    }
    let rest = tail.iter().rev().fold(0, |rest, &octet| (rest << 8) | u64::from(octet));
    let end = Block::control(BlockType::Terminate4, rest);
    assert_eq!(assembler.push(end), Ok(Some(frame.as_slice())));
}

#[test]
fn broken_frames_are_errors() {
    let frame = frame(64);
    let blocks: Vec<Block> = FrameBlocks::new(&frame).collect();
    let mut assembler = FrameAssembler::<70>::new();
    let results: Vec<_> = blocks.iter().map(|&block| assembler.push(block).err()).collect();
    assert_eq!(results[9], Some(FrameError::TooLong(63)));
    assert!(results[..9].iter().all(Option::is_none));

    let mut assembler = FrameAssembler::<71>::new();
    assert_eq!(assembler.push(blocks[0]), Ok(None));
    assert_eq!(assembler.push(blocks[0]), Err(FrameError::Aborted));
    assert_eq!(assembler.push(Block::IDLE), Err(FrameError::Aborted));
    assert_eq!(assembler.push(Block::IDLE), Ok(None));
    assert_eq!(assembler.push(Block::control(BlockType::Start, 0)), Ok(None));
    assert_eq!(assembler.push(blocks[9]), Err(FrameError::Preamble));
}

#[test]
fn messages_preempt_a_frame_anywhere() {
    let frame = frame(100);
    let messages = samples::samples();
    let mut deframer = Deframer::<40>::new();
    let mut assembler = FrameAssembler::<128>::new();
    let mut sent = messages.iter();
    let (mut received, mut frames) = (0, 0);
    while sent.len() > 0 {
        for block in FrameBlocks::new(&frame) {
            let Ok(Some(Event::Ethernet(passed))) = deframer.push(block) else {
                panic!("{block:?} of a frame did not pass");
            };
            if let Some(bytes) = assembler.push(passed).expect("a good frame") {
                assert_eq!(bytes, frame);
                frames += 1;
            }
            let Some(message) = sent.next() else { continue };
            for block in message.blocks() {
                if let Some(event) = deframer.push(block).expect("a good message") {
                    assert_eq!(event, Event::Message(*message));
                    received += 1;
                }
            }
        }
    }
    assert_eq!(received, messages.len());
    assert_eq!(frames, messages.len().div_ceil(FrameBlocks::new(&frame).len()));
}

#[test]
fn a_receiver_follows_the_sequence_of_frames() {
    let start = Block::control(BlockType::Start, 0xd5_5555_5555_5555);
    let end = Block::control(BlockType::Terminate0, 0);
    let abort = Block::control(BlockType::Control, 0x1e);
    let fault = Block::control(BlockType::OrderedControl, 0x01_0000);
    let wrong = |found, in_frame| Err(DeframeError::FrameSequence { found, in_frame });
    let mut deframer = Deframer::<4>::new();
    for (block, outcome) in [
        (end, wrong(BlockType::Terminate0, false)),
        (fault, Ok(Some(Event::Ethernet(fault)))),
        (start, Ok(Some(Event::Ethernet(start)))),
        (start, wrong(BlockType::Start, true)),
        (Block::IDLE, wrong(BlockType::Control, true)),
        (start, Ok(Some(Event::Ethernet(start)))),
        (abort, Ok(Some(Event::Ethernet(abort)))),
        (Block::data(0), Err(DeframeError::StrayData)),
        (Block::IDLE, Ok(Some(Event::Ethernet(Block::IDLE)))),
    ] {
        assert_eq!(deframer.push(block), outcome, "{block:?}");
    }
}
