//! A message of every kind and form, with fields at the ends of their ranges.

use core::num::NonZeroU16;

use ethermem_units::Bytes;
use ethermem_wire::{
    AcknowledgedWrite, Address, Address40, ChunkData, ChunkIndex, Grant, GrantKind, Length,
    Message, MessageId, NodeId, Notification, OpcodeBits, PostedWrite, ReadRequest, ReadResponse,
    RmwKind, RmwOperation, RmwRequest, Status, StatusCode, WriteKind,
};

/// The octets 0, 1, 2, ...: each octet shows its own place.
pub(crate) static PATTERN: [u8; 256] = {
    let mut octets = [0; 256];
    let mut index = 0;
    while index < 256 {
        octets[index] = index as u8;
        index += 1;
    }
    octets
};

const WIDE: u64 = 0xfedc_ba98_7654_3210;

fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("nine bits")
}

fn index(number: u16) -> ChunkIndex {
    ChunkIndex::new(number).expect("15 bits")
}

fn data(bytes: usize) -> ChunkData<'static> {
    ChunkData::new(&PATTERN[..bytes]).expect("a chunk's size")
}

fn short(number: u64) -> Address {
    Address::Short(Address40::new(number).expect("40 bits"))
}

/// Every sample.
pub(crate) fn samples() -> Vec<Message<'static>> {
    let mut samples = singles();
    samples.extend(requests());
    samples.extend(chunks());
    samples
}

fn singles() -> Vec<Message<'static>> {
    let mut samples = Vec::new();
    for (destination, id, bytes, kind) in [
        (0, 0, 1, WriteKind::Posted),
        (511, 255, 65_535, WriteKind::Acknowledged),
        (5, 170, 65_537, WriteKind::Posted),
        (143, 1, 4_194_240, WriteKind::Acknowledged),
    ] {
        let demand = Length::covering(Bytes(bytes)).expect("in range");
        let (destination, id) = (node(destination), MessageId(id));
        samples.push(Message::Notification(Notification { destination, id, demand, kind }));
    }
    for (peer, id, bytes, kind) in
        [(0, 0, 1, GrantKind::Write), (511, 255, 65_535, GrantKind::Response)]
    {
        let bytes = NonZeroU16::new(bytes).expect("not zero");
        samples.push(Message::Grant(Grant { peer: node(peer), id: MessageId(id), kind, bytes }));
    }
    for (code, opcode) in StatusCode::ALL.into_iter().zip([4, 15, 1, 8, 1, 9, 4, 13]) {
        let opcode = OpcodeBits::from_low_bits(opcode);
        let (peer, id) = (node(300), MessageId(0x5a));
        samples.push(Message::Status(Status { opcode, peer, id, code }));
    }
    samples
}

fn requests() -> Vec<Message<'static>> {
    let mut samples = Vec::new();
    for (peer, id, address, bytes) in [
        (0, 0, short(0), 1),
        (511, 255, short((1 << 40) - 1), 65_535),
        (5, 170, short(0x12_3456_789a), 65_600),
        (5, 170, Address::Long(WIDE), 64),
        (143, 1, Address::Long(u64::MAX), 65_537),
        (143, 1, Address::Long(0), 4_194_240),
    ] {
        let request = ReadRequest::new(node(peer), MessageId(id), address, Bytes(bytes));
        samples.push(Message::ReadRequest(request.expect("a read that the form can say")));
    }
    for kind in RmwKind::ALL {
        for address in [short(0xab_cdef_0128), Address::Long(WIDE)] {
            let operation = RmwOperation::new(kind, [WIDE, !WIDE]);
            let (peer, id) = (node(42), MessageId(kind.opcode() as u8));
            samples.push(Message::RmwRequest(RmwRequest { peer, id, address, operation }));
        }
    }
    samples
}

fn chunks() -> Vec<Message<'static>> {
    let mut samples = Vec::new();
    for (bytes, chunk, last) in [(1, 0, true), (8, 0x7fff, false), (64, 1, true), (256, 2, false)] {
        let (source, id) = (node(511 - bytes as u16), MessageId(bytes as u8));
        let (index, data) = (index(chunk), data(bytes));
        samples.push(Message::ReadResponse(ReadResponse { source, id, index, last, data }));
        let address = WIDE.rotate_left(u32::from(chunk));
        samples.push(Message::AcknowledgedWrite(AcknowledgedWrite {
            source,
            id,
            index,
            last,
            address,
            data,
        }));
        let address = Address40::new(address >> 24).expect("40 bits are left");
        samples.push(Message::PostedWrite(PostedWrite { address, data }));
    }
    samples
}
