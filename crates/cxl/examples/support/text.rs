//! How the traces write packets: numbers in hexadecimal, and `-` for nothing.

use ethermem_wire::cxl::{Request, RequestPacket, Response, ResponsePacket};

use crate::hex::hex;

/// `SEQUENCE ASK ID LINE MASK DATA`.
pub(crate) fn request(packet: &RequestPacket) -> String {
    format!("{:x} {}", packet.sequence.0, request_word(packet))
}

/// `ASK ID LINE MASK DATA`: reads, writes of whole lines and masked ones are 0, 1 and 2.
pub(crate) fn request_word(packet: &RequestPacket) -> String {
    let RequestPacket { id, line, request, .. } = packet;
    let (ask, mask, data) = match request {
        Request::Read => (0, 0, None),
        Request::Write(data) => (1, 0, Some(data)),
        Request::MaskedWrite(mask, data) => (2, mask.0, Some(data)),
    };
    format!("{ask} {:x} {:x} {mask:x} {}", id.0, line.number(), hex(data))
}

/// `SEQUENCE IS_READ ID STATUS DATA`.
pub(crate) fn response(packet: &ResponsePacket) -> String {
    format!("{:x} {}", packet.sequence.0, response_word(packet))
}

/// `IS_READ ID STATUS DATA`.
pub(crate) fn response_word(packet: &ResponsePacket) -> String {
    let (is_read, failure, data) = match &packet.response {
        Response::Read(Ok(data)) => (1, None, Some(data)),
        Response::Read(Err(failure)) => (1, Some(failure), None),
        Response::Write(outcome) => (0, outcome.as_ref().err(), None),
    };
    let status = failure.map_or(0, |failure| *failure as u8);
    format!("{is_read} {:x} {status} {}", packet.id.0, hex(data))
}
