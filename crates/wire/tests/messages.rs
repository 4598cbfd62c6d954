//! Messages and blocks are one to one, and the encoder makes as many blocks as the sizes say.

#[path = "support/invariants.rs"]
mod invariants;
#[path = "support/samples.rs"]
mod samples;

use std::num::NonZeroU16;

use ethermem_units::{Blocks, Bytes};
use ethermem_wire::{
    AcknowledgedWrite, Address, Address40, Block, BlockType, ChunkData, ChunkIndex, ChunkKind,
    ControlError, DecodeError, DeframeError, Deframer, EdmControl, Event, FieldError, GRANT_BLOCKS,
    Grant, GrantKind, Length, MAX_CHUNK_BYTES, Message, MessageId, NOTIFICATION_BLOCKS, NodeId,
    Notification, OpcodeBits, PostedWrite, ReadRequest, ReadResponse, RmwKind, RmwOperation,
    RmwRequest, STATUS_BLOCKS, Status, StatusCode, SubType, WriteKind, chunk_blocks,
    read_request_blocks, rmw_request_blocks,
};
use proptest::prelude::*;

fn sized(message: &Message<'_>) -> Blocks {
    let bytes = |data: ChunkData<'_>| Bytes(data.bytes().len() as u64);
    match message {
        Message::Notification(_) => NOTIFICATION_BLOCKS,
        Message::Grant(_) => GRANT_BLOCKS,
        Message::Status(_) => STATUS_BLOCKS,
        Message::ReadRequest(read) => read_request_blocks(read.address().width()),
        Message::RmwRequest(rmw) => rmw_request_blocks(rmw.operation.kind(), rmw.address.width()),
        Message::ReadResponse(chunk) => chunk_blocks(ChunkKind::ReadResponse, bytes(chunk.data)),
        Message::PostedWrite(chunk) => chunk_blocks(ChunkKind::PostedWrite, bytes(chunk.data)),
        Message::AcknowledgedWrite(chunk) => {
            chunk_blocks(ChunkKind::AcknowledgedWrite, bytes(chunk.data))
        }
    }
}

fn check(message: &Message<'_>) {
    invariants::decodes_to_itself(message);
    let sent = message.blocks().count() as u64;
    assert_eq!(Blocks(sent), sized(message), "{message:?}");
    assert_eq!(message.blocks().len() as u64, sent);
}

#[test]
fn samples_survive_and_take_their_size() {
    samples::samples().iter().for_each(check);
}

fn party() -> impl Strategy<Value = (NodeId, MessageId)> {
    (0..512_u16, any::<u8>())
        .prop_map(|(node, id)| (NodeId::new(node).expect("nine bits"), MessageId(id)))
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        (0..1_u64 << 40)
            .prop_map(|number| Address::Short(Address40::new(number).expect("40 bits"))),
        any::<u64>().prop_map(Address::Long),
    ]
}

/// Lengths at every scale.
fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![1..=64_u64, 1..=70_000_u64, 1..=Length::MAX.bytes().0].prop_map(Bytes)
}

proptest! {
    #[test]
    fn single_blocks_survive(
        (peer, id) in party(), bytes in bytes(), chunk in 1..=u16::MAX, flag: bool,
        opcode: u8, code in 0..5_usize,
    ) {
        let kind = if flag { WriteKind::Posted } else { WriteKind::Acknowledged };
        let demand = Length::covering(bytes).expect("in range");
        check(&Message::Notification(Notification { destination: peer, id, demand, kind }));
        let kind = if flag { GrantKind::Write } else { GrantKind::Response };
        let bytes = NonZeroU16::new(chunk).expect("from one");
        check(&Message::Grant(Grant { peer, id, kind, bytes }));
        let (opcode, code) = (OpcodeBits::from_low_bits(opcode), StatusCode::ALL[code]);
        check(&Message::Status(Status { opcode, peer, id, code }));
    }

    #[test]
    fn requests_survive(
        (peer, id) in party(), address in address(), bytes in bytes(),
        kind in 0..6_usize, operands: [u64; 2],
    ) {
        match ReadRequest::new(peer, id, address, bytes) {
            Ok(read) => {
                check(&Message::ReadRequest(read));
                prop_assert!(read.demand().bytes() >= bytes);
            }
            Err(error) => {
                prop_assert_eq!(error, FieldError::InexactLength(bytes));
                prop_assert!(bytes.0 > 65_535 && bytes.0 % 64 != 0);
            }
        }
        let operation = RmwOperation::new(RmwKind::ALL[kind], operands);
        check(&Message::RmwRequest(RmwRequest { peer, id, address, operation }));
    }

    #[test]
    fn chunks_survive(
        (source, id) in party(), address: u64, index in 0..1_u16 << 15, last: bool,
        octets in prop::collection::vec(any::<u8>(), 1..300),
    ) {
        let data = ChunkData::new(&octets).expect("a chunk's size");
        let index = ChunkIndex::new(index).expect("15 bits");
        check(&Message::ReadResponse(ReadResponse { source, id, index, last, data }));
        let write = AcknowledgedWrite { source, id, index, last, address, data };
        check(&Message::AcknowledgedWrite(write));
        let address = Address40::new(address >> 24).expect("40 bits are left");
        check(&Message::PostedWrite(PostedWrite { address, data }));
    }

    #[test]
    fn any_blocks_keep_the_invariants(input in prop::collection::vec(any::<u8>(), 0..600)) {
        invariants::check(&input);
    }
}

#[test]
fn sealed_instructions_reach_messages() {
    // Opcodes 1, 2 and 3 with zero, one and two data blocks: without them the check above would be
    // empty.
    let read = 1_u64 | 64 << 21;
    for (operation, word, words) in [(4, read | 7 << 40, 1), (4, 2, 1), (4, 3, 2), (5, 10, 1)] {
        let mut input = vec![operation | words << 3];
        input.extend(word.to_le_bytes());
        input.extend([0; 18]);
        let found = invariants::check(&input);
        // A length in bytes with an excess is not canonical.
        assert_eq!(found, usize::from(word >> 40 == 0), "word {word:#x}");
    }
}

#[test]
fn the_longest_chunk_fits_the_receiver() {
    let octets = [0xa5; MAX_CHUNK_BYTES];
    let data = ChunkData::new(&octets).expect("a chunk's size");
    let (source, id, index) = (NodeId::default(), MessageId(0), ChunkIndex::default());
    let write = AcknowledgedWrite { source, id, index, last: true, address: u64::MAX, data };
    check(&Message::AcknowledgedWrite(write));
}

#[test]
fn a_switch_rewrites_the_peer_and_the_end_to_end_check_holds() {
    for sample in samples::samples() {
        let peer = NodeId::new(77).expect("nine bits");
        let released = match sample {
            Message::ReadRequest(read) => Message::ReadRequest(read.with_peer(peer)),
            Message::RmwRequest(rmw) => Message::RmwRequest(RmwRequest { peer, ..rmw }),
            _ => continue,
        };
        // Only /MS/ differs, so the switch rewrites no other block.
        assert!(released.blocks().skip(1).eq(sample.blocks().skip(1)), "{sample:?}");
        assert_ne!(released.blocks().next(), sample.blocks().next());
        check(&released);
    }
}

#[test]
fn receivers_refuse_what_senders_do_not_send() {
    let mut deframer = Deframer::<4>::new();
    let control = |sub_type, content| EdmControl::new(sub_type, content).encode();
    let start = control(SubType::Start, 1 | 64 << 21);
    let end = control(SubType::Terminate, 0);

    assert_eq!(deframer.push(end), Err(DeframeError::EndWithoutStart));
    assert_eq!(deframer.push(Block::data(0)), Err(DeframeError::StrayData));
    for inside in [start, control(SubType::Grant, 1 << 21)] {
        assert_eq!(deframer.push(start), Ok(None));
        let expected = DeframeError::InsideMessage(BlockType::Edm);
        assert_eq!(deframer.push(inside), Err(expected));
        assert_eq!(deframer.push(end), Err(DeframeError::EndWithoutStart));
    }
    assert_eq!(deframer.push(start), Ok(None));
    let expected = DeframeError::InsideMessage(BlockType::Control);
    assert_eq!(deframer.push(Block::IDLE), Err(expected));

    assert_eq!(deframer.push(start), Ok(None));
    (0..4).for_each(|word| assert_eq!(deframer.push(Block::data(word)), Ok(None)));
    assert_eq!(deframer.push(Block::data(4)), Err(DeframeError::TooLong(4)));

    assert_eq!(deframer.push(start), Ok(None));
    assert!(matches!(deframer.push_line(0b11, 0), Err(DeframeError::Sync(_))));
    assert_eq!(deframer.push(end), Err(DeframeError::EndWithoutStart));

    assert_eq!(deframer.push(control(SubType::Start, 15 | 3 << 4 | 9 << 13)), Ok(None));
    let Err(error) = deframer.push(end) else { panic!("opcode 15 passed") };
    let peer = NodeId::new(3).expect("nine bits");
    let opcode = OpcodeBits::from_low_bits(15);
    let expected = DecodeError::Opcode { opcode, peer, id: MessageId(9) };
    assert_eq!(error, DeframeError::Message(expected));
    assert!(!error.is_corruption(), "it is answered, and the link stays up");

    let broken = Block::control(BlockType::Edm, (end.payload() >> 8) ^ (1 << 20));
    let Err(error) = deframer.push(broken) else { panic!("a broken block passed") };
    assert!(matches!(error, DeframeError::Control(ControlError::Crc { .. })));
    assert!(error.is_corruption());
    assert_eq!(deframer.push(Block::IDLE), Ok(Some(Event::Ethernet(Block::IDLE))));
}

/// True if contents with correct CRCs make a message; the tail is above the 40 bits of `ms`.
fn passes(wide: bool, ms: u64, words: &[u64]) -> bool {
    let operation = if wide { 4 } else { 5 };
    let mut input = vec![operation | (words.len() as u8) << 3];
    input.extend(ms.to_le_bytes());
    for word in words {
        input.push(0);
        input.extend(word.to_le_bytes());
    }
    invariants::check(&input) == 1
}

#[test]
fn reserved_bits_must_be_zero() {
    let tail = 40;
    let cases = [
        ("read, 64-bit", true, 1 | 64 << 21, vec![7], vec![38, 39, tail + 6, tail + 7]),
        ("add, 64-bit", true, 9, vec![7, 1], (21..tail + 8).collect()),
        ("add, 40-bit", false, 9, vec![1], vec![21, 22, 23]),
        ("response", true, 2 | 1 << 21, vec![0xff], (tail..tail + 8).collect()),
        ("posted write", true, 3 | 1 << 4, vec![0xff], vec![7]),
        ("acknowledged write", true, 4 | 1 << 4, vec![0, 0xff], vec![]),
    ];
    for (name, wide, ms, words, reserved) in cases {
        assert!(passes(wide, ms, &words), "{name}");
        for bit in reserved {
            assert!(!passes(wide, ms ^ (1 << bit), &words), "{name}, bit {bit}");
        }
    }
    for bit in (0..4).chain(21..25) {
        assert!(!passes(true, 4 | 1 << 4, &[1 << bit, 0xff]), "acknowledged write, bit {bit}");
    }
}

#[test]
fn padding_must_be_zero() {
    for bit in 8..64 {
        assert!(!passes(true, 2 | 1 << 21, &[0xff | 1 << bit]), "response, bit {bit}");
        assert!(passes(true, 2, &[0xff | 1 << bit]), "all eight octets are data");
    }
}
