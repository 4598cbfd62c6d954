//! Invariants of every datagram, shared by the fuzz target and a property test.

use ethermem_wire::clio::{
    ENVELOPE_BYTES, Envelope, EnvelopeError, PacketError, Packets, Protection, RESPONSE_BYTES,
    Reply, Request, RequestPacket, ResponseHead, ResponsePacket, WRITE_BYTES,
};

/// Opens `input` as a datagram with the protection in its second octet. If `sealed`, the CRC is
/// corrected first. The packets are read as requests and as responses. Nothing may panic, and each
/// parsed packet must be emitted as the octets that it came from. Returns the number of parsed
/// packets.
pub(crate) fn check(input: &[u8], sealed: bool) -> usize {
    let mut datagram = input.to_vec();
    if sealed {
        seal(&mut datagram);
    }
    let Ok(opened) = Envelope::open(&datagram) else {
        return 0;
    };
    let mut front = [0; ENVELOPE_BYTES];
    assert_eq!(opened.envelope.emit(&mut front), Ok(ENVELOPE_BYTES));
    assert_eq!(front, datagram[..ENVELOPE_BYTES], "{:?}", opened.envelope);
    let octets = &datagram[opened.packets];
    in_parts(octets);
    let requests = rebuild(octets, Packets::new(octets), RequestPacket::emit);
    let answers = ResponsePacket::packets(octets);
    requests + rebuild(octets, answers, ResponsePacket::emit)
}

/// A packet whose bytes lie elsewhere is read as one that is whole.
fn in_parts(octets: &[u8]) {
    let length = octets.get(2..4).map_or(0, |at| usize::from(u16::from_le_bytes([at[0], at[1]])));
    let whole = octets.get(..length).unwrap_or_default();
    if let Some((packet, data_bytes)) = RequestPacket::parse_write(octets)
        && let Some(Ok(known)) = Packets::new(whole).next()
    {
        let (Request::Write { address, data: here }, Request::Write { address: same, data }) =
            (packet.body, known.body)
        else {
            panic!("{packet:?} and {known:?}");
        };
        assert_eq!((address, here, data_bytes), (same, &[][..], data.len()));
        assert_eq!(RequestPacket { body: known.body, ..packet }, known);
        let mut front = vec![0; WRITE_BYTES];
        assert_eq!(known.emit_before_data(&mut front), Ok(WRITE_BYTES));
        assert_eq!(front, whole[..WRITE_BYTES]);
    }
    if let Some(Ok(known)) = ResponsePacket::packets(whole).next() {
        let head = ResponseHead::parse(whole).expect("its header was read");
        assert_eq!(usize::from(head.length), whole.len());
        assert_eq!(head.with(&whole[RESPONSE_BYTES..]), Ok(known));
        if let Reply::Bytes(bytes) = known.reply {
            let mut front = vec![0; RESPONSE_BYTES];
            let without = ResponsePacket { reply: Reply::Bytes(&[]), ..known };
            assert_eq!(without.emit_before(bytes.len(), &mut front), Ok(RESPONSE_BYTES));
            assert_eq!(front, whole[..RESPONSE_BYTES]);
        }
    }
}

/// Corrects the CRC, so that the parsers behind it are reached.
fn seal(datagram: &mut [u8]) {
    if let Err(EnvelopeError::Corrupt { envelope, .. }) = Envelope::open(datagram) {
        let end = datagram.len() - Protection::Crc.trailer_bytes();
        envelope.seal(datagram, end).expect("the trailer is there");
    }
}

fn rebuild<P, E: core::fmt::Debug>(
    octets: &[u8],
    packets: impl Iterator<Item = Result<P, PacketError>>,
    emit: impl Fn(&P, &mut [u8]) -> Result<usize, E>,
) -> usize {
    let (mut at, mut count, mut ended) = (0, 0, false);
    for packet in packets {
        assert!(!ended, "a packet behind the end");
        let length = octets.get(at + 2..at + 4);
        let length = length.map(|at| usize::from(u16::from_le_bytes([at[0], at[1]])));
        match packet {
            Ok(packet) => {
                let mut written = vec![0; length.expect("a packet has a length")];
                assert_eq!(emit(&packet, &mut written).expect("it came in so many"), written.len());
                assert_eq!(written, octets[at..at + written.len()]);
                (at, count) = (at + written.len(), count + 1);
            }
            Err(PacketError::Refused { .. }) => at += length.expect("a packet has a length"),
            Err(PacketError::Truncated { .. }) => ended = true,
        }
    }
    assert!(ended || at == octets.len(), "{} of {} B were read", at, octets.len());
    count
}
