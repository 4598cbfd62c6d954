//! Datagrams of the memory node. Every packet survives emission and parsing, and other octets are
//! refused.

#[path = "support/clio_invariants.rs"]
mod clio_invariants;
#[path = "support/clio_samples.rs"]
mod clio_samples;

use clio_samples::{envelopes, requests, responses};
use ethermem_wire::clio::{
    ClioOpcode, ENVELOPE_BYTES, Envelope, EnvelopeError, FieldBytes, Malformed, NoRoom, OPCODES,
    PacketError, Packets, REQUEST_BYTES, RESPONSE_BYTES, ResponsePacket,
};
use proptest::prelude::*;

fn datagram(envelope: &Envelope, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = vec![0; ENVELOPE_BYTES];
    envelope.emit(&mut octets).expect("there is room");
    packets.iter().for_each(|packet| octets.extend_from_slice(packet));
    let end = octets.len();
    octets.resize(end + envelope.protection.trailer_bytes(), 0);
    assert_eq!(envelope.seal(&mut octets, end), Ok(octets.len()));
    octets
}

fn written<E: std::fmt::Debug>(emit: impl Fn(&mut [u8]) -> Result<usize, E>) -> Vec<u8> {
    let mut octets = vec![0; 256];
    let length = emit(&mut octets).expect("samples are short");
    octets.truncate(length);
    octets
}

#[test]
fn packets_of_a_datagram_come_out_as_they_went_in() {
    let (requests, responses) = (requests(), responses());
    for envelope in envelopes() {
        let packets: Vec<_> = requests.iter().map(|p| written(|into| p.emit(into))).collect();
        let octets = datagram(&envelope, &packets);
        let opened = Envelope::open(&octets).expect("a whole datagram");
        assert_eq!(opened.envelope, envelope);
        let found: Result<Vec<_>, _> = Packets::new(&octets[opened.packets]).collect();
        assert_eq!(found.as_ref(), Ok(&requests));

        let packets: Vec<_> = responses.iter().map(|p| written(|into| p.emit(into))).collect();
        let octets = datagram(&envelope, &packets);
        let opened = Envelope::open(&octets).expect("a whole datagram");
        let found: Result<Vec<_>, _> = ResponsePacket::packets(&octets[opened.packets]).collect();
        assert_eq!(found.as_ref(), Ok(&responses));
        assert!(clio_invariants::check(&octets, false) >= responses.len());
    }
}

/// Number of bytes of the fields of fixed length, and whether a rest follows.
fn fixed(fields: &[ethermem_wire::clio::Field]) -> (usize, bool) {
    fields.iter().fold((0, false), |(bytes, rest), field| match field.bytes {
        FieldBytes::Number(more) => (bytes + usize::from(more), rest),
        _ => (bytes, true),
    })
}

#[test]
fn bodies_are_as_long_as_the_table_says() {
    let fits = |body: usize, (fixed, rest): (usize, bool)| {
        if rest { body >= fixed } else { body == fixed }
    };
    let mut seen = Vec::new();
    for packet in requests() {
        let row = packet.body.opcode().row();
        let body = written(|into| packet.emit(into)).len() - REQUEST_BYTES;
        assert!(fits(body, fixed(row.request)), "{}: {body} B", row.name);
        seen.push(row.opcode);
    }
    seen.dedup();
    let asked = OPCODES.iter().map(|row| row.opcode).filter(|op| *op != ClioOpcode::Nack);
    assert!(asked.eq(seen), "a sample of every request, in the order of the table");
    for packet in responses().iter().filter(|packet| packet.reply.status().is_done()) {
        let row = ClioOpcode::try_from(packet.opcode).expect("a sample").row();
        let body = written(|into| packet.emit(into)).len() - RESPONSE_BYTES;
        assert!(fits(body, fixed(row.response)), "{}: {body} B", row.name);
    }
}

#[test]
fn a_datagram_that_is_cut_short_is_refused() {
    for envelope in envelopes() {
        let whole = datagram(&envelope, &[written(|into| requests()[0].emit(into))]);
        for length in 0..whole.len() {
            let opened = Envelope::open(&whole[..length]);
            // Where the datagram has no check of its own, a packet shows the cut.
            let refused = opened.map_or(true, |opened| {
                Packets::new(&whole[opened.packets]).any(|packet| packet.is_err())
                    || length == ENVELOPE_BYTES + envelope.protection.trailer_bytes()
            });
            assert!(refused || envelope.protection as u8 == 2, "{length} B of {envelope:?}");
        }
    }
}

#[test]
fn a_body_longer_or_shorter_than_its_opcode_takes_is_refused_by_number() {
    for packet in requests() {
        let (_, rest) = fixed(packet.body.opcode().row().request);
        if rest {
            continue;
        }
        for change in [-1, 1] {
            let mut octets = written(|into| packet.emit(into));
            let length = octets.len().wrapping_add_signed(change);
            if length < REQUEST_BYTES {
                continue;
            }
            octets.resize(length, 0);
            octets[2..4].copy_from_slice(&(length as u16).to_le_bytes());
            let problem = Malformed::Length(length - REQUEST_BYTES);
            let (request, attempt) = (packet.request, packet.attempt);
            let opcode = packet.body.opcode() as u8;
            let expected = PacketError::Refused { request, attempt, opcode, problem };
            assert_eq!(Packets::new(&octets).next(), Some(Err(expected)));
        }
    }
}

#[test]
fn no_room_says_how_much_it_takes() {
    for packet in requests() {
        let needed = written(|into| packet.emit(into)).len();
        for room in [0, needed - 1] {
            assert_eq!(packet.emit(&mut vec![0; room]), Err(NoRoom { needed, room }));
        }
    }
    let whole = requests()[1];
    let data = vec![0; 65_536];
    let body = ethermem_wire::clio::Request::Write { address: 0, data: &data };
    let long = ethermem_wire::clio::RequestPacket { body, ..whole };
    let needed = data.len() + 8 + REQUEST_BYTES;
    assert_eq!(long.emit(&mut vec![0; 70_000]), Err(NoRoom { needed, room: 65_535 }));
}

#[test]
fn a_wrong_bit_never_passes_the_crc() {
    let envelope = envelopes()[1];
    let whole = datagram(&envelope, &[written(|into| requests()[1].emit(into))]);
    for bit in 16..whole.len() * 8 {
        let mut octets = whole.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        let opened = Envelope::open(&octets);
        assert!(matches!(opened, Err(EnvelopeError::Corrupt { .. })), "bit {bit}: {opened:?}");
    }
}

proptest! {
    #[test]
    fn any_octets_are_refused_or_come_out_as_they_went_in(
        protection in 0..4_u8,
        rest in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let octets = [vec![1, protection], rest].concat();
        clio_invariants::check(&octets, true);
    }

    #[test]
    fn samples_with_some_octets_changed_are_refused_or_come_out_as_they_went_in(
        which in any::<prop::sample::Index>(),
        answers in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let packets: Vec<_> = if answers {
            responses().iter().map(|packet| written(|into| packet.emit(into))).collect()
        } else {
            requests().iter().map(|packet| written(|into| packet.emit(into))).collect()
        };
        let envelope = envelopes()[which.index(3)];
        let mut octets = datagram(&envelope, &packets[which.index(packets.len())..]);
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        clio_invariants::check(&octets, true);
    }
}
