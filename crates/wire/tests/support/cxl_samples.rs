//! A frame of every packet, with values that tell its octets apart; the dissector's test reads
//! them from golden/wire.

use ethermem_wire::cxl::{
    AccessId, ByteMask, Congestion, Failure, Frame, LineAddress, LineData, Mac, Negative, Packet,
    Request, RequestPacket, Response, ResponsePacket, Sequence,
};

pub(crate) const COMPUTE: Mac = Mac([0x02, 0, 0, 0, 0, 0x0c]);
pub(crate) const MEMORY: Mac = Mac([0x02, 0, 0, 0, 0, 0x0d]);

pub(crate) fn data() -> LineData {
    std::array::from_fn(|at| 0x80 + at as u8)
}

/// The name of each sample, and its frame.
pub(crate) fn frames() -> Vec<(&'static str, Frame)> {
    let line = LineAddress::new(0xa9_8765_4321).expect("a line of 40 bits");
    let request = |sequence, request| {
        let (sequence, id) = (Sequence(sequence), AccessId(0x5a));
        Packet::Request(RequestPacket { sequence, id, line, request })
    };
    let response = |sequence, response| ResponsePacket {
        sequence: Sequence(sequence),
        id: AccessId(0xa5),
        response,
    };
    let negative = Negative { nak: Sequence(0xffff_fffe), sack: Sequence(1) };
    let alone = |sequence, of| Packet::Response(response(sequence, of));
    let packets = [
        ("read_request", request(0x0403_0201, Request::Read)),
        ("write_request", request(0x0403_0202, Request::Write(data()))),
        (
            "masked_write_request",
            request(u32::MAX, Request::MaskedWrite(ByteMask(0x8000_0000_ffff_0001), data())),
        ),
        ("read_response", alone(0x0403_0201, Response::Read(Ok(data())))),
        ("read_response_unmapped", alone(7, Response::Read(Err(Failure::Unmapped)))),
        ("read_response_poison", alone(8, Response::Read(Err(Failure::Poison)))),
        ("write_response", alone(0x0403_0202, Response::Write(Ok(())))),
        ("write_response_unmapped", alone(9, Response::Write(Err(Failure::Unmapped)))),
        ("sack_nak", Packet::Negative(negative)),
        ("sack_nak_ack_of_read", Packet::Merged(negative, response(3, Response::Read(Ok(data()))))),
        ("sack_nak_ack_of_write", Packet::Merged(negative, response(4, Response::Write(Ok(()))))),
        ("congestion", Packet::Congestion(Congestion { number: 0x0403_0201, entries: 0x0102 })),
    ];
    let frame = |(name, packet): (_, Packet)| {
        let is_request = matches!(packet, Packet::Request(_));
        let (to, from) = if is_request { (MEMORY, COMPUTE) } else { (COMPUTE, MEMORY) };
        (name, Frame { to, from, packet })
    };
    packets.into_iter().map(frame).collect()
}

/// The octets of a frame on the link, with its check sequence.
pub(crate) fn on_the_link(frame: &Frame) -> Vec<u8> {
    let mut octets = vec![0; 128];
    let length = frame.emit_with_fcs(&mut octets).expect("frames are short");
    octets.truncate(length);
    octets
}
