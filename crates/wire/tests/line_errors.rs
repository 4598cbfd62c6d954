//! A whole line: blocks through scrambler, errors, descrambler and receiver. With up to two wrong
//! bits on the line, no message is wrong, and every lost message raises an error.

#[path = "support/samples.rs"]
mod samples;

use ethermem_wire::{
    Block, DeframeError, Deframer, Descrambler, EdmControl, Event, FrameAssembler, FrameBlocks,
    Message, Scrambler, SubType, frame_check_sequence, has_valid_fcs,
};

type Line = Vec<(u8, u64)>;

const SCRAMBLER_START: u64 = 0x0123_4567_89ab_cdef;

fn frame() -> Vec<u8> {
    let mut frame = vec![0x3c; 60];
    frame.extend(frame_check_sequence(&frame).to_le_bytes());
    frame
}

/// Messages of every kind, in the gaps and between the blocks of a frame.
fn traffic() -> Vec<Block> {
    let short = |message: &Message<'_>| message.blocks().len() <= 4;
    let messages = samples::samples().into_iter().filter(short);
    let frame = frame();
    let mut frames = FrameBlocks::new(&frame);
    let mut blocks = vec![Block::IDLE];
    for message in messages.step_by(2) {
        blocks.extend(message.blocks());
        blocks.extend(frames.next());
    }
    blocks.extend(frames);
    blocks.push(Block::IDLE);
    blocks
}

fn scramble(blocks: &[Block]) -> Line {
    let mut scrambler = Scrambler::new(SCRAMBLER_START);
    let line = blocks.iter().map(|block| (block.sync() as u8, scrambler.scramble(block.payload())));
    line.collect()
}

/// What a receiver delivered before the first error, and whether there was one.
#[derive(Clone, Default)]
struct Receiver {
    deframer: Deframer<8>,
    assembler: FrameAssembler<80>,
    messages: Vec<Vec<Block>>,
    frames: usize,
    failed: bool,
}

impl Receiver {
    fn push(&mut self, sync: u8, payload: u64) {
        match self.deframer.push_line(sync, payload) {
            Ok(Some(Event::Message(message))) => self.messages.push(message.blocks().collect()),
            Ok(Some(Event::Ethernet(block))) => match self.assembler.push(block) {
                Ok(Some(frame)) if has_valid_fcs(frame) => self.frames += 1,
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => self.failed = true,
            },
            Ok(None) => {}
            Err(error) => {
                assert!(error.is_corruption(), "{error} would leave the link up");
                self.failed = true;
            }
        }
    }
}

fn receive(line: &[(u8, u64)], mut receiver: Receiver, mut descrambler: Descrambler) -> Receiver {
    for &(sync, payload) in line {
        if receiver.failed {
            break;
        }
        receiver.push(sync, descrambler.descramble(payload));
    }
    receiver
}

fn flip(line: &mut Line, bit: usize) {
    let (sync, payload) = &mut line[bit / 66];
    match bit % 66 {
        bit @ 0..2 => *sync ^= 1 << bit,
        bit => *payload ^= 1 << (bit - 2),
    }
}

/// The receiver and the descrambler before each block of an undisturbed line.
fn snapshots(line: &Line) -> Vec<(Receiver, Descrambler)> {
    let (mut receiver, mut descrambler) = (Receiver::default(), Descrambler::new(SCRAMBLER_START));
    let snapshot = |&(sync, payload): &(u8, u64)| {
        let before = (receiver.clone(), descrambler);
        receiver.push(sync, descrambler.descramble(payload));
        before
    };
    line.iter().map(snapshot).collect()
}

/// Checks that delivered messages are the sent ones, in order, and that a missing one raised an
/// error.
fn assert_honest(sent: &Receiver, received: &Receiver, bits: &[usize]) {
    let mut rest = sent.messages.iter();
    for message in &received.messages {
        assert!(rest.any(|sent| sent == message), "bits {bits:?} made {message:?}");
    }
    if !received.failed {
        assert_eq!(sent.messages.len(), received.messages.len(), "bits {bits:?} lost a message");
        assert_eq!(sent.frames, received.frames, "bits {bits:?} lost a frame");
    }
}

fn check_errors(apart_max: usize) -> (usize, usize) {
    let mut line = scramble(&traffic());
    let whole = Receiver::default();
    let whole = receive(&line, whole, Descrambler::new(SCRAMBLER_START));
    assert!(!whole.failed && whole.frames == 1 && whole.messages.len() > 10);
    let snapshots = snapshots(&line);
    let (mut cases, mut detected) = (0, 0);
    for first in 0..line.len() * 66 {
        flip(&mut line, first);
        for second in (first + 1..line.len() * 66).take(apart_max).map(Some).chain([None]) {
            second.into_iter().for_each(|bit| flip(&mut line, bit));
            let (receiver, descrambler) = snapshots[first / 66].clone();
            let received = receive(&line[first / 66..], receiver, descrambler);
            let bits: Vec<usize> = [first].into_iter().chain(second).collect();
            assert_honest(&whole, &received, &bits);
            cases += 1;
            detected += usize::from(received.failed);
            second.into_iter().for_each(|bit| flip(&mut line, bit));
        }
        flip(&mut line, first);
    }
    (cases, detected)
}

#[test]
fn no_single_line_error_is_believed() {
    let (cases, detected) = check_errors(0);
    // Only idles and the unused bits of standard control blocks may change unseen.
    assert!(cases - detected < 4 * 66, "{detected} of {cases} detected");
}

#[test]
fn no_pair_of_line_errors_is_believed() {
    // The errors are up to two blocks apart: farther apart, the first is detected before the second
    // comes.
    let (cases, detected) = check_errors(132);
    assert!(detected * 100 > cases * 95, "{detected} of {cases} detected");
}

#[test]
fn data_that_looks_like_a_message_passes_with_both_sync_bits_wrong_but_fails_the_frame() {
    // The promise ends here: the block itself shows no error, but the frame's check does.
    let grant = EdmControl::new(SubType::Grant, 64 << 21).encode();
    let mut frame = vec![0; 60];
    frame[16..24].copy_from_slice(&grant.payload().to_le_bytes());
    frame.extend(frame_check_sequence(&frame).to_le_bytes());
    let blocks: Vec<Block> = FrameBlocks::new(&frame).collect();
    assert_eq!(blocks[3], Block::data(grant.payload()));

    let mut receiver = Receiver::default();
    for (index, block) in blocks.iter().enumerate() {
        let flipped = if index == 3 { 0b11 } else { 0 };
        receiver.push(block.sync() as u8 ^ flipped, block.payload());
    }
    assert_eq!(receiver.messages.len(), 1);
    assert!(receiver.failed && receiver.frames == 0);
}

#[test]
fn data_that_looks_like_a_message_inside_a_chunk_is_caught() {
    let grant = EdmControl::new(SubType::Grant, 64 << 21).encode();
    let mut deframer = Deframer::<8>::new();
    assert_eq!(deframer.push(EdmControl::new(SubType::Start, 2).encode()), Ok(None));
    assert!(matches!(deframer.push(grant), Err(DeframeError::InsideMessage(_))));
}
