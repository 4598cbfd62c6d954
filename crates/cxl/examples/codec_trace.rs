//! Writes frames, one a line, and what they say, for the equivalence test of the RTL's emitter and
//! parser. Standard input has the parameters on one line: `FRAMES SEED`.
//!
//! A line is `OCTETS SENT FAULT ENTRIES NUMBER DATA MASK STATUS LINE ID SEQUENCE ACKED_READ SACK
//! NAK COMMAND FROM TO`: the octets without check sequence, 1 if they are what is sent, the fault
//! or 0, and the fields, which are 0 where the packet has none or the frame is at fault. Numbers
//! are hexadecimal.
//!
//! Half of the frames are as they are sent. Others have octets changed, cut off or added, or any
//! content.

#[path = "support/hex.rs"]
mod hex;
#[path = "../../edm/tests/support/rng.rs"]
mod rng;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};

use ethermem_wire::cxl::{
    AccessId, ByteMask, Congestion, Failure, Frame, FrameFault, LineAddress, LineData, Mac,
    Negative, Packet, Request, RequestPacket, Response, ResponsePacket, Sequence,
};

use hex::hex;
use rng::Rng;

/// Longer than any frame of the protocol.
const OCTETS_MAX: u64 = 200;

fn data(rng: &mut Rng) -> LineData {
    let mut data = [0; 64];
    for word in data.chunks_exact_mut(8) {
        word.copy_from_slice(&rng.next().to_le_bytes());
    }
    data
}

fn response(rng: &mut Rng) -> ResponsePacket {
    let failure = match rng.below(4) {
        0 => Some(Failure::Unmapped),
        1 => Some(Failure::Poison),
        _ => None,
    };
    let response = match rng.below(2) {
        0 => Response::Read(failure.map_or_else(|| Ok(data(rng)), Err)),
        _ => Response::Write(failure.map_or(Ok(()), Err)),
    };
    ResponsePacket {
        sequence: Sequence(rng.next() as u32),
        id: AccessId(rng.next() as u8),
        response,
    }
}

fn negative(rng: &mut Rng) -> Negative {
    let nak = Sequence(rng.next() as u32);
    Negative { nak, sack: nak.plus(1 + rng.below(1 << 31) as u32 / 2) }
}

fn packet(rng: &mut Rng) -> Packet {
    match rng.below(7) {
        0..3 => {
            let request = match rng.below(3) {
                0 => Request::Read,
                1 => Request::Write(data(rng)),
                _ => Request::MaskedWrite(ByteMask(rng.next()), data(rng)),
            };
            let sequence = Sequence(rng.next() as u32);
            let line = LineAddress::new(rng.next() % LineAddress::LINES).expect("40 bits");
            Packet::Request(RequestPacket {
                sequence,
                id: AccessId(rng.next() as u8),
                line,
                request,
            })
        }
        3 => Packet::Response(response(rng)),
        4 => Packet::Negative(negative(rng)),
        5 => Packet::Merged(negative(rng), response(rng)),
        _ => {
            Packet::Congestion(Congestion { number: rng.next() as u32, entries: rng.next() as u16 })
        }
    }
}

/// Changes what a frame says, or how long it is.
fn spoil(octets: &mut Vec<u8>, rng: &mut Rng) {
    match rng.below(6) {
        0 => octets.truncate(rng.below(octets.len() as u64) as usize + 1),
        1 => {
            let longer = rng.below(OCTETS_MAX - octets.len() as u64) as usize + 1;
            octets.resize(octets.len() + longer, rng.next() as u8);
        }
        2 => octets.iter_mut().skip(20).for_each(|octet| *octet = rng.next() as u8),
        // Of header, command, status or acknowledged command, most likely.
        _ => {
            for _ in 0..=rng.below(2) {
                let at = rng.below(octets.len().min(32) as u64) as usize;
                octets[at] = match rng.below(3) {
                    0 => octets[at] ^ 1 << rng.below(8),
                    1 => rng.below(4) as u8 | 0x80,
                    _ => rng.below(6) as u8,
                };
            }
        }
    }
}

fn fault(fault: &FrameFault) -> u8 {
    match fault {
        FrameFault::Check(_) => unreachable!("the check sequence is the MAC's"),
        FrameFault::Short(_) => 1,
        FrameFault::Foreign(_) => 2,
        FrameFault::Source(_) => 3,
        FrameFault::Command(_) => 4,
        FrameFault::Length { .. } => 5,
        FrameFault::Status(_) => 6,
        FrameFault::Acked(_) => 7,
        FrameFault::DataOfFailure => 8,
        FrameFault::SackBeforeNak { .. } => 9,
    }
}

/// Fields of a response: data, status, identifier, sequence number.
fn answer(packet: &ResponsePacket) -> (LineData, u8, u8, u32) {
    let (data, failure) = match packet.response {
        Response::Read(Ok(data)) => (data, None),
        Response::Read(Err(failure)) => ([0; 64], Some(failure)),
        Response::Write(done) => ([0; 64], done.err()),
    };
    (data, failure.map_or(0, |failure| failure as u8), packet.id.0, packet.sequence.0)
}

fn number(mac: Mac) -> u64 {
    let mut octets = [0; 8];
    octets[..6].copy_from_slice(&mac.0);
    u64::from_le_bytes(octets)
}

fn fields(frame: &Frame) -> String {
    let (mut line, mut mask, mut acked_read) = (0, 0, 0);
    let (mut data, mut status, mut id, mut sequence) = ([0; 64], 0, 0, 0);
    let (mut nak, mut sack, mut count, mut entries) = (0, 0, 0, 0);
    match &frame.packet {
        Packet::Request(packet) => {
            (id, sequence, line) = (packet.id.0, packet.sequence.0, packet.line.number());
            match packet.request {
                Request::Read => {}
                Request::Write(bytes) => data = bytes,
                Request::MaskedWrite(bits, bytes) => (mask, data) = (bits.0, bytes),
            }
        }
        Packet::Response(packet) => (data, status, id, sequence) = answer(packet),
        Packet::Negative(negative) => (nak, sack) = (negative.nak.0, negative.sack.0),
        Packet::Merged(negative, packet) => {
            (nak, sack) = (negative.nak.0, negative.sack.0);
            (data, status, id, sequence) = answer(packet);
            acked_read = u8::from(matches!(packet.response, Response::Read(_)));
        }
        Packet::Congestion(packet) => (count, entries) = (packet.number, packet.entries),
    }
    let (command, data) = (frame.packet.command() as u8, hex(Some(&data)));
    let (from, to) = (number(frame.from), number(frame.to));
    format!(
        "{entries:x} {count:x} {data} {mask:x} {status:x} {line:x} {id:x} {sequence:x} \
         {acked_read:x} {sack:x} {nak:x} {command:x} {from:x} {to:x}"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let words: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    let [frames, seed] = words?[..] else { return Err("expected FRAMES SEED".into()) };
    let mut rng = Rng(seed);
    let mut out = BufWriter::new(io::stdout().lock());
    for _ in 0..frames {
        let mut mac = || Mac(rng.next().to_le_bytes()[..6].try_into().expect("six octets"));
        let (to, mut from) = (mac(), mac());
        from.0[0] &= 0xfe;
        let frame = Frame { to, from, packet: packet(&mut rng) };
        let mut octets = vec![0; OCTETS_MAX as usize];
        let length = frame.emit(&mut octets)?;
        octets.truncate(length);
        let sent = rng.below(2) != 0;
        if !sent {
            spoil(&mut octets, &mut rng);
        }
        let text = octets.iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "{octet:02x}");
            text
        });
        let sent = u8::from(sent);
        match Frame::parse(&octets) {
            Ok(frame) => writeln!(out, "{text} {sent} 0 {}", fields(&frame))?,
            Err(at_fault) => {
                writeln!(out, "{text} {sent} {}{}", fault(&at_fault), " 0".repeat(14))?
            }
        }
    }
    out.flush()?;
    Ok(())
}
