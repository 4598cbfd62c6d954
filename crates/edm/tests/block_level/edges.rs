//! Memory messages and Ethernet frames share a link. Every frame arrives bit for bit and in
//! consecutive slots, every message arrives as it was sent, and neither starves.

use ethermem_edm::Arbitration;
use ethermem_edm::phy::{
    ABORT, Corruption, FRAME_BYTES_MAX, GAP_SLOTS, MemorySource, REMOTE_FAULT, RxCounters, RxEvent,
    RxExtractor, TxArbiter, Unit,
};
use ethermem_units::Bytes;
use ethermem_wire::{
    Address40, Block, BlockType, ChunkData, ChunkKind, FrameAssembler, FrameBlocks, Message,
    PostedWrite, chunk_blocks, frame_blocks,
};
use proptest::prelude::*;

use crate::cases;
use crate::ethernet::{Encoder, frame};
use crate::messages::{Units, message};
use crate::rng::Rng;

/// Blocks of the longest unit: an acknowledged write of 256 B.
const LONGEST: u64 = chunk_blocks(ChunkKind::AcknowledgedWrite, Bytes(256)).0;

/// The decoder and the MAC of the receiver: they require frames in consecutive slots.
#[derive(Default)]
struct Decoder {
    assembler: FrameAssembler<16_384>,
    in_frame: bool,
    frames: Vec<Vec<u8>>,
}

impl Decoder {
    fn hear(&mut self, block: Block) {
        let block_type = block.block_type().expect("in range");
        assert!(
            !self.in_frame || block_type.is_none_or(|found| found.terminate_octets().is_some()),
            "a frame is interrupted by {block:?}"
        );
        self.in_frame = match block_type {
            None => self.in_frame,
            Some(found) => found.start_octets().is_some(),
        };
        if let Some(frame) = self.assembler.push(block).expect("in range") {
            self.frames.push(frame.to_vec());
        }
    }
}

fn run(seed: u64, arbitration: Arbitration, frame_share: u64, frame_bytes_max: u64) {
    let mut rng = Rng(seed);
    let data: Vec<Vec<u8>> = (0..120)
        .map(|_| {
            let length = 1 + rng.below(256) as usize;
            rng.bytes(length)
        })
        .collect();
    let messages: Vec<Message<'_>> = data.iter().map(|data| message(&mut rng, data)).collect();
    let sent: Vec<Vec<u8>> = (0..20)
        .map(|_| {
            let bytes = 64 + rng.below(frame_bytes_max - 63) as usize;
            frame(&mut rng, bytes)
        })
        .collect();

    let (mut encoder, mut units) = (Encoder::default(), Units::default());
    let (mut transmitter, mut receiver) = (TxArbiter::new(arbitration), RxExtractor::new());
    let mut decoder = Decoder::default();
    let (mut messages_in, mut frames_in) = (messages.iter(), sent.iter());
    let mut received: Vec<Vec<Block>> = Vec::new();
    let mut quiet = 0;
    while quiet < 1_200 {
        if encoder.is_idle() && rng.percent(frame_share) {
            frames_in.next().into_iter().for_each(|frame| encoder.send(frame));
        }
        if rng.percent(10) {
            messages_in
                .next()
                .into_iter()
                .for_each(|message| units.push(message.blocks().collect()));
        }
        let slot = transmitter.slot(encoder.arrive(), &mut units);
        encoder.hear(slot.encoder_ready);
        let arrived = receiver.slot(slot.line.sync() as u8, slot.line.payload());
        decoder.hear(arrived.decoder);
        match arrived.event {
            RxEvent::None => {}
            RxEvent::Message(message) => received.push(message.blocks().collect()),
            other => panic!("{other:?} on a clean link, seed {seed}"),
        }
        let done = messages_in.len() == 0 && frames_in.len() == 0;
        quiet = if done && encoder.is_idle() && units.is_empty() { quiet + 1 } else { 0 };
    }
    assert_eq!(decoder.frames, sent, "frames, seed {seed}");
    let of_kind = |single: bool, of: &[Vec<Block>]| -> Vec<Vec<Block>> {
        of.iter().filter(|blocks| (blocks.len() == 1) == single).cloned().collect()
    };
    let expected: Vec<Vec<Block>> =
        messages.iter().map(|message| message.blocks().collect()).collect();
    for single in [true, false] {
        assert_eq!(of_kind(single, &received), of_kind(single, &expected), "seed {seed}");
    }
    assert_eq!(*receiver.counters(), Default::default(), "seed {seed}");
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn frames_and_messages_arrive_as_they_were_sent(
        seed: u64,
        strict: bool,
        frame_share in 1u64..100,
        frame_bytes_max in prop_oneof![Just(64u64), 64u64..300, Just(1_518), Just(9_018)],
    ) {
        let arbitration = if strict { Arbitration::Strict } else { Arbitration::Fair };
        run(seed, arbitration, frame_share, frame_bytes_max);
    }
}

/// A memory side that always has framed units of `LONGEST` blocks, or single blocks.
struct Backlog {
    single: bool,
    left: u64,
}

impl MemorySource for Backlog {
    fn head(&mut self) -> Option<Unit> {
        Some(if self.single { Unit::Single } else { Unit::Framed })
    }

    fn take(&mut self) -> (Block, bool) {
        let length = if self.single { 1 } else { LONGEST };
        self.left = if self.left == 0 { length } else { self.left } - 1;
        (Block::data(u64::MAX), self.left == 0)
    }
}

fn is_memory(block: Block) -> bool {
    block == Block::data(u64::MAX)
}

#[test]
fn two_backlogs_share_the_slots_within_a_unit_and_use_all_of_them() {
    for single in [true, false] {
        for frame_bytes in [64, 1_518, 9_018] {
            let mut rng = Rng(frame_bytes as u64);
            let frame = frame(&mut rng, frame_bytes);
            let mut encoder = Encoder::default();
            let mut transmitter = TxArbiter::new(Arbitration::Fair);
            let mut memory = Backlog { single, left: 0 };
            let (mut used, mut of_frames, mut idle, mut frames) = (0_u64, 0_u64, 0_u64, 0_u64);
            for slot in 0..40_100 {
                if encoder.is_idle() {
                    (0..20).for_each(|_| encoder.send(&frame));
                }
                let out = transmitter.slot(encoder.arrive(), &mut memory);
                encoder.hear(out.encoder_ready);
                if slot < 100 {
                    continue;
                }
                if out.line.is_idle() {
                    idle += 1;
                } else if is_memory(out.line) {
                    used += 1;
                } else {
                    of_frames += 1;
                    let block_type = out.line.block_type().expect("in range");
                    frames += u64::from(block_type.is_some_and(|b| b.terminate_octets().is_some()));
                }
                // A frame's gap counts as the frame's own time, even if memory uses its slots.
                let gaps = (frames + 1) * u64::from(GAP_SLOTS);
                let half = (slot - 99) / 2;
                assert!(used + idle + LONGEST >= half, "memory has {used} of {half} slots");
                assert!(of_frames + gaps + LONGEST >= half, "frames have {of_frames} of {half}");
                assert!(idle <= gaps, "{idle} idle slots in {frames} frames");
            }
            assert!(frames > 0, "no frame of {frame_bytes} B passed");
            let share = 40_000 / (2 * frame_blocks(Bytes(frame_bytes as u64)).0 + 3);
            assert!(frames + 2 >= share, "{frames} frames of {frame_bytes} B, not {share}");
        }
    }
}

/// Number of slots that a unit waits for its first block. It arrives one slot after a chunk, `at`
/// slots after a backlog of frames began. The chunk then is in progress, or about to be.
fn wait_of_memory(arbitration: Arbitration, single: bool, frame_bytes: usize, at: u64) -> u64 {
    let mut rng = Rng(at);
    let frame = frame(&mut rng, frame_bytes);
    let mut encoder = Encoder::default();
    let mut transmitter = TxArbiter::new(arbitration);
    let mut units = Units::default();
    let chunk: Vec<Block> = vec![Block::data(u64::MAX); LONGEST as usize];
    let mark = Block::control(BlockType::Edm, 0);
    let mut unit = vec![mark];
    if !single {
        unit.extend(&chunk[1..]);
    }
    for slot in 0.. {
        if encoder.is_idle() {
            (0..3).for_each(|_| encoder.send(&frame));
        }
        if slot == at {
            units.push(chunk.clone());
        }
        if slot == at + 1 {
            units.push(unit.clone());
        }
        let out = transmitter.slot(encoder.arrive(), &mut units);
        encoder.hear(out.encoder_ready);
        if out.line == mark {
            return slot - at - 1;
        }
    }
    unreachable!("the unit leaves");
}

#[test]
fn memory_waits_for_a_unit_and_what_frames_are_owed_but_never_for_a_frame() {
    let (fair, strict) = (Arbitration::Fair, Arbitration::Strict);
    for frame_bytes in [1_518, 9_018] {
        for at in 0..400 {
            let wait = |arbitration, single| wait_of_memory(arbitration, single, frame_bytes, at);
            assert!(wait(fair, true) <= LONGEST, "single at {at}");
            assert!(wait(fair, false) < 2 * LONGEST, "chunk at {at}");
            assert!(wait(strict, true) < LONGEST, "single, strict, at {at}");
            assert!(wait(strict, false) < LONGEST, "chunk, strict, at {at}");
        }
    }
    assert_eq!(wait_of_memory(fair, true, 1_518, 50), LONGEST);
    assert_eq!(wait_of_memory(fair, false, 1_518, 50), 2 * LONGEST - 1);
}

/// Maximum number of slots from a frame's first block at the transmitter to its last block on the
/// line. The frame competes with a backlog of chunks or of single blocks.
fn time_of_a_frame(single: bool, frame_bytes: usize, at: u64) -> u64 {
    let mut rng = Rng(at);
    let frame = frame(&mut rng, frame_bytes);
    let mut encoder = Encoder::default();
    let mut transmitter = TxArbiter::new(Arbitration::Fair);
    let mut memory = Backlog { single, left: 0 };
    let mut arrived = None;
    for slot in 0.. {
        if slot == at {
            encoder.send(&frame);
        }
        let block = encoder.arrive();
        if block.is_some() && arrived.is_none() {
            arrived = Some(slot);
        }
        let out = transmitter.slot(block, &mut memory);
        encoder.hear(out.encoder_ready);
        let end = out.line.block_type().expect("in range");
        if end.is_some_and(|found| found.terminate_octets().is_some()) {
            return slot + 1 - arrived.expect("a frame ends after it began");
        }
    }
    unreachable!("the frame leaves");
}

#[test]
fn a_frame_takes_at_most_twice_its_slots_and_a_unit() {
    for frame_bytes in [64, 1_518, 9_018] {
        let blocks = frame_blocks(Bytes(frame_bytes as u64)).0;
        let times =
            (0..80).flat_map(|at| [true, false].map(|s| time_of_a_frame(s, frame_bytes, at)));
        let worst = times.max().expect("in range");
        assert!(worst <= 2 * blocks + LONGEST, "{worst} slots for {blocks} blocks");
        assert!(worst > blocks, "a backlog of memory costs a frame something");
    }
}

/// What a receiver makes of `blocks` and of the idles after them: its events, its frames, and its
/// counters.
fn hear(blocks: impl IntoIterator<Item = Block>) -> (Vec<String>, Vec<Vec<u8>>, RxCounters) {
    let (mut receiver, mut decoder) = (RxExtractor::new(), Decoder::default());
    let mut events = Vec::new();
    for block in blocks.into_iter().chain(std::iter::repeat_n(Block::IDLE, 2_500)) {
        let slot = receiver.slot(block.sync() as u8, block.payload());
        decoder.hear(slot.decoder);
        match slot.event {
            RxEvent::None => {}
            RxEvent::Message(_) => events.push("message".to_string()),
            other => events.push(format!("{other:?}")),
        }
    }
    (events, decoder.frames, *receiver.counters())
}

#[test]
fn a_frame_with_an_error_is_dropped_whole_and_ends_the_link() {
    let mut rng = Rng(7);
    let frame = frame(&mut rng, 200);
    let mut blocks: Vec<Block> = FrameBlocks::new(&frame).collect();
    blocks[5] = Block::data(blocks[5].payload() ^ 1 << 17);
    let (events, frames, counters) = hear(blocks);
    let expected = RxEvent::Corrupt(Corruption::FrameCheckSequence);
    assert_eq!(events, [format!("{expected:?}")]);
    assert_eq!((frames.len(), counters.frames_corrupt), (0, 1));
}

#[test]
fn a_frame_that_its_sender_gave_up_is_dropped_and_the_link_stays() {
    let mut rng = Rng(8);
    let frame = frame(&mut rng, 200);
    let given_up = FrameBlocks::new(&frame).take(9).chain([ABORT]);
    let (events, frames, counters) = hear(given_up.chain(FrameBlocks::new(&frame)));
    assert_eq!((events.len(), frames, counters.frames_aborted), (0, vec![frame], 1));
}

#[test]
fn a_frame_longer_than_the_buffer_is_dropped_and_counted() {
    let mut rng = Rng(9);
    for (bytes, passes) in [(FRAME_BYTES_MAX, true), (FRAME_BYTES_MAX + 1, false), (20_000, false)]
    {
        let (frame, next) = (frame(&mut rng, bytes), frame(&mut rng, 64));
        let both = FrameBlocks::new(&frame).chain([Block::IDLE]).chain(FrameBlocks::new(&next));
        let (events, frames, counters) = hear(both);
        let expected = if passes { vec![frame, next] } else { vec![next] };
        assert!(events.is_empty() && frames == expected, "{bytes} B");
        assert_eq!(counters.frames_too_long, u64::from(!passes), "{bytes} B");
    }
}

#[test]
fn a_message_that_its_sender_gave_up_is_dropped_and_the_link_stays() {
    let mut rng = Rng(10);
    let data = rng.bytes(64);
    let address = Address40::new(64).expect("in range");
    let write = PostedWrite { address, data: ChunkData::new(&data).expect("in range") };
    let message = Message::PostedWrite(write);
    let given_up = message.blocks().take(5).chain([ABORT]);
    let (events, _, counters) = hear(given_up.chain(message.blocks()));
    assert_eq!((events.as_slice(), counters.messages_aborted), (&["message".to_string()][..], 1));
}

#[test]
fn a_remote_fault_is_heard_and_goes_up() {
    let mut receiver = RxExtractor::new();
    let slot = receiver.slot(REMOTE_FAULT.sync() as u8, REMOTE_FAULT.payload());
    assert_eq!((slot.decoder, slot.event), (REMOTE_FAULT, RxEvent::RemoteFault));
}

#[test]
fn a_frame_that_the_link_cut_is_dropped_to_its_end() {
    let mut rng = Rng(11);
    let (long, next) = (frame(&mut rng, 1_518), frame(&mut rng, 64));
    for (down, slots) in (8..140).flat_map(|down| [1, 3, 50].map(|slots| (down, slots))) {
        let (mut encoder, mut units) = (Encoder::default(), Units::default());
        let mut transmitter = TxArbiter::new(Arbitration::Fair);
        let (mut receiver, mut decoder) = (RxExtractor::new(), Decoder::default());
        encoder.send(&long);
        encoder.send(&next);
        for slot in 0..600 {
            let from_encoder = encoder.arrive();
            let out = if (down..down + slots).contains(&slot) {
                receiver.reset();
                transmitter.slot_without(from_encoder, REMOTE_FAULT)
            } else {
                let out = transmitter.slot(from_encoder, &mut units);
                let arrived = receiver.slot(out.line.sync() as u8, out.line.payload());
                assert_eq!(arrived.event, RxEvent::None, "{slots} slots from slot {down} on");
                decoder.hear(arrived.decoder);
                out
            };
            encoder.hear(out.encoder_ready);
        }
        assert_eq!(decoder.frames, [&next[..]], "{slots} slots from slot {down} on");
    }
}
