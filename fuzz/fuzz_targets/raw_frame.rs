//! Frames of raw Ethernet, of any octets: what is read is written as it was, and pieces of a
//! datagram never make another than one that was cut so.
#![no_main]

use ethermem_udp::{Added, DATAGRAM_BYTES_MAX, Pieces};
use ethermem_units::Ns;
use ethermem_wire::clio::{Frame, FrameBody, Mac, PIECE_FRAME_BYTES, Piece, Port, Station};

fn read(octets: &[u8], now: Ns, pieces: &mut Pieces) {
    let Ok((frame, range)) = Frame::parse(octets) else { return };
    assert!(!frame.from.mac.is_multicast());
    let mut written = [0; PIECE_FRAME_BYTES];
    let bytes = u16::try_from(range.len()).expect("its length has two octets");
    let front = frame.emit(bytes, &mut written).expect("there is room");
    assert_eq!((front, &written[..front]), (range.start, &octets[..front]));
    if let FrameBody::Piece(piece) = frame.body {
        let total = usize::from(piece.total);
        if let Added::Whole(bytes) = pieces.add(now, frame.from, piece, &octets[range]) {
            assert_eq!((bytes, pieces.whole().len()), (total, total));
        }
    }
}

libfuzzer_sys::fuzz_target!(|input: (Vec<Vec<u8>>, Vec<u8>, u16, Vec<u8>)| {
    let (frames, datagram, each, order) = input;
    let mut pieces = Pieces::new(16);
    let now = Ns(1 << 40);
    // Whatever came before, and comes between, is of other stations.
    let from = Station { mac: Mac([2; 6]), port: Port(u64::MAX) };
    for (at, octets) in (0..).zip(&frames) {
        // Some are too old by the end.
        read(octets, Ns(at << 29).min(now), &mut pieces);
    }
    let each = usize::from(each).clamp(1, 60_000);
    let parts: Vec<&[u8]> = datagram.chunks(each).collect();
    let (Ok(count), Ok(total)) = (u8::try_from(parts.len()), u16::try_from(datagram.len())) else {
        return;
    };
    if !(2..=128).contains(&count) || datagram.len() > DATAGRAM_BYTES_MAX {
        return;
    }
    let mut came = vec![false; parts.len()];
    let all = order.iter().map(|at| usize::from(*at) % parts.len()).chain(0..parts.len());
    for index in all {
        let piece = Piece { number: 1, index: index as u8, count, total };
        let added = pieces.add(now, from, piece, parts[index]);
        came[index] = true;
        if came.iter().all(|came| *came) {
            assert_eq!(added, Added::Whole(datagram.len()));
            assert_eq!(pieces.whole(), datagram);
            return;
        }
        assert_eq!(added, Added::Part);
    }
});
