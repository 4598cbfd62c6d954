//! Requests of a later version.

use ethermem_edm::phy::LineBlock;
use ethermem_edm::port::BlockSwitch;
use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{Arbitration, EdmConfig};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::{
    Address, Address40, Block, EdmControl, Message, MessageId, NodeId, OpcodeBits, ReadRequest,
    RmwKind, RmwOperation, RmwRequest, Status, StatusCode,
};

const SLOT: Ps = Ps(640);
const SENDER: NodeId = NodeId::at(0);
const PEER: NodeId = NodeId::at(1);
const ID: MessageId = MessageId(9);

/// The blocks of a request with its opcode changed.
fn with_opcode(message: &Message<'_>, opcode: u8) -> Vec<Block> {
    let mut blocks: Vec<Block> = message.blocks().collect();
    let start = EdmControl::decode(blocks[0]).expect("/MS/");
    let content = start.content() & !0xf | u64::from(opcode);
    blocks[0] = EdmControl::new(start.sub_type(), content).encode();
    blocks
}

/// The blocks with which a switch answers blocks of one node.
fn answers(blocks: &[Block]) -> Vec<Block> {
    let config = SchedulerConfig::new(2, &EdmConfig::default(), Ps(2_560), SLOT);
    let mut switch = BlockSwitch::new(&config, Arbitration::Fair);
    let mut back = Vec::new();
    for slot in 0..1_000 {
        let now = SLOT * slot;
        let block = blocks.get(slot as usize).copied().unwrap_or(Block::IDLE);
        switch.receive(now, SENDER, Some(LineBlock::from(block)));
        switch.receive(now, PEER, Some(LineBlock::from(Block::IDLE)));
        switch.schedule(now);
        back.push(switch.transmit(now, SENDER, None).line);
        let on = switch.transmit(now, PEER, None).line;
        assert!(on.is_idle(), "{on:?} went on to the peer");
    }
    assert!(switch.is_up(SENDER), "what a later version sends is no corruption");
    back.retain(|block| !block.is_idle());
    back
}

#[test]
fn an_unassigned_opcode_is_answered_with_status_1() {
    let address = Address::Short(Address40::new(64).expect("40 bits"));
    let read = ReadRequest::new(PEER, ID, address, Bytes(64)).expect("a read");
    let operation = RmwOperation::new(RmwKind::Swap, [5, 0]);
    let rmw = RmwRequest { peer: PEER, id: ID, address, operation };
    for request in [Message::ReadRequest(read), Message::RmwRequest(rmw)] {
        for opcode in [0, 5, 6, 7, 14, 15] {
            let status = Status {
                opcode: OpcodeBits::from_low_bits(opcode),
                peer: PEER,
                id: ID,
                code: StatusCode::BadOpcode,
            };
            let expected: Vec<Block> = Message::Status(status).blocks().collect();
            assert_eq!(answers(&with_opcode(&request, opcode)), expected, "opcode {opcode}");
        }
    }
}

#[test]
fn a_flood_of_them_is_answered_one_by_one() {
    let address = Address::Short(Address40::new(64).expect("40 bits"));
    let read = ReadRequest::new(PEER, ID, address, Bytes(64)).expect("a read");
    let one = with_opcode(&Message::ReadRequest(read), 7);
    let many: Vec<Block> = one.iter().copied().cycle().take(900).collect();
    assert_eq!(answers(&many).len(), 450, "a status for each, none of them waits");
}
