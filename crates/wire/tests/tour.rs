//! The blocks that the tour of the documentation shows are those of the encoder.

use ethermem_units::Bytes;
use ethermem_wire::{
    Address, Address40, ChunkData, ChunkIndex, Message, MessageId, NodeId, ReadRequest,
    ReadResponse, Scrambler,
};

/// The read of the tour: node 0 reads 64 B of node 1, as the first message of this pair.
fn request(peer: u16) -> ReadRequest {
    let peer = NodeId::new(peer).expect("nine bits");
    let address = Address::Short(Address40::new(0x12_3400).expect("40 bits"));
    let id = MessageId::new(false, 1, 0);
    ReadRequest::new(peer, id, address, Bytes(64)).expect("a read of 64 B")
}

/// The blocks of a message as the pages print them: sync header, then the payload from its last bit
/// to its first.
fn shown(message: &Message<'_>) -> Vec<String> {
    let sync = |block: ethermem_wire::Block| block.to_bits() as u8 & 0b11;
    message.blocks().map(|block| format!("{:02b} {:016x}", sync(block), block.payload())).collect()
}

fn holds(page: &str, blocks: &[String]) {
    let path = format!("{}/../../docs/tour/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a page of the tour");
    for block in blocks {
        assert!(text.contains(block), "{path} lacks {block} of {blocks:?}");
    }
}

#[test]
fn the_request_has_two_blocks() {
    let sent = shown(&Message::ReadRequest(request(1)));
    assert_eq!(sent.len(), 2);
    holds("3-block.md", &sent);
}

#[test]
fn the_scrambler_makes_the_line_of_them() {
    let mut scrambler = Scrambler::new(u64::MAX);
    let message = Message::ReadRequest(request(1));
    let line: Vec<String> = message
        .blocks()
        .map(|block| format!("{:016x}", scrambler.scramble(block.payload())))
        .collect();
    holds("3-block.md", &line);
}

#[test]
fn the_switch_changes_the_node_and_its_check() {
    let released = shown(&Message::ReadRequest(request(0)));
    holds("5-switch.md", &released);
}

#[test]
fn the_response_has_ten_blocks() {
    let octets: Vec<u8> = (0..64).collect();
    let response = ReadResponse {
        source: NodeId::new(1).expect("nine bits"),
        id: MessageId::new(false, 1, 0),
        index: ChunkIndex::new(0).expect("15 bits"),
        last: true,
        data: ChunkData::new(&octets).expect("a chunk's size"),
    };
    let blocks = shown(&Message::ReadResponse(response));
    assert_eq!(blocks.len(), 10);
    holds("6-memory.md", &[blocks[0].clone(), blocks[1].clone(), blocks[9].clone()]);
}
