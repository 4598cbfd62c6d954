//! Frames of CXL over Ethernet: lengths, every wrong bit, every refusal, arbitrary octets.

#[path = "support/cxl_invariants.rs"]
mod cxl_invariants;
#[path = "support/cxl_samples.rs"]
mod cxl_samples;

use cxl_samples::{COMPUTE, MEMORY, data, frames, on_the_link};
use ethermem_wire::cxl::{
    Frame, FrameFault, Mac, NoRoom, Packet, UnknownCommand, UnknownStatus, format_of,
};
use ethermem_wire::frame_check_sequence;
use proptest::prelude::*;

/// Figure 5: "excluding preambles and CRC, a total of 89 bytes". A masked write has 8 B more for
/// its mask, and a frame shorter than 60 B is padded.
#[test]
fn lengths_are_those_of_the_table() {
    let lengths: Vec<(&str, usize, usize)> = frames()
        .iter()
        .map(|(name, frame)| (*name, frame.packet.octets(), on_the_link(frame).len() - 4))
        .collect();
    assert_eq!(
        lengths,
        [
            ("read_request", 25, 60),
            ("write_request", 89, 89),
            ("masked_write_request", 97, 97),
            ("read_response", 85, 85),
            ("read_response_unmapped", 85, 85),
            ("read_response_poison", 85, 85),
            ("write_response", 21, 60),
            ("write_response_unmapped", 21, 60),
            ("sack_nak", 23, 60),
            ("sack_nak_ack_of_read", 94, 94),
            ("sack_nak_ack_of_write", 30, 60),
            ("congestion", 21, 60),
        ]
    );
    for (name, frame) in frames() {
        let format = format_of(frame.packet.command());
        // The table has the longer form; the one that acknowledges a write is 64 B shorter.
        let short = if name == "sack_nak_ack_of_write" { 64 } else { 0 };
        assert_eq!(format.octets() - short, frame.packet.octets(), "{name}");
        // Preamble 8 B, check sequence 4 B, gap 12 B.
        assert_eq!(frame.packet.link_octets(), on_the_link(&frame).len() + 20, "{name}");
    }
}

#[test]
fn what_is_written_is_read() {
    for (name, frame) in frames() {
        let octets = on_the_link(&frame);
        assert_eq!(Frame::parse_with_fcs(&octets), Ok(frame), "{name}");
        assert!(cxl_invariants::check(&octets, false), "{name}");
    }
}

#[test]
fn every_one_or_two_wrong_bits_are_caught() {
    for (name, frame) in frames() {
        let octets = on_the_link(&frame);
        let bits = octets.len() * 8;
        for one in 0..bits {
            let mut wrong = octets.clone();
            wrong[one / 8] ^= 1 << (one % 8);
            let check = Err(FrameFault::Check(octets.len()));
            assert_eq!(Frame::parse_with_fcs(&wrong), check, "{name}: bit {one}");
        }
    }
    // The remainder of an error depends only on its place, so the longest frame stands for all.
    let octets = on_the_link(&frames()[2].1);
    let (body, bits) = (octets.len() - 4, octets.len() * 8);
    let remainder = |bit: usize| {
        let mut wrong = octets.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let sent = u32::from_le_bytes(wrong[body..].try_into().expect("four octets"));
        frame_check_sequence(&wrong[..body]) ^ sent
    };
    let mut remainders: Vec<u32> = (0..bits).map(remainder).collect();
    remainders.sort_unstable();
    assert!(remainders.windows(2).all(|pair| pair[0] != pair[1]), "two bits cancel each other");
}

#[test]
fn a_frame_that_is_cut_off_is_refused_at_every_octet() {
    for (name, frame) in frames() {
        let octets = on_the_link(&frame);
        let whole = octets.len() - 4;
        for cut in 0..whole {
            let refused = Frame::parse(&octets[..cut]);
            let fields = frame.packet.octets();
            let expected = match cut < fields {
                true => FrameFault::Short(cut),
                false => FrameFault::Length { octets: cut, must_be: whole },
            };
            assert_eq!(refused, Err(expected), "{name}: {cut} B");
        }
        let long = Frame::parse(&octets[..=whole]);
        let must_be = whole;
        assert_eq!(long, Err(FrameFault::Length { octets: whole + 1, must_be }), "{name}");
    }
}

#[test]
fn what_is_no_frame_is_told_why() {
    let wrong = |name: &str, at: usize, octet: u8| {
        let frames = frames();
        let (_, frame) = frames.iter().find(|(sample, _)| *sample == name).expect("a sample");
        let mut octets = on_the_link(frame);
        octets[at] = octet;
        let end = octets.len() - 4;
        Frame::parse(&octets[..end]).expect_err("it is wrong")
    };
    assert_eq!(wrong("read_request", 13, 0xb5), FrameFault::Foreign(0x88b5));
    let group = Mac([3, 0, 0, 0, 0, 0x0c]);
    assert_eq!(wrong("read_request", 6, 3), FrameFault::Source(group));
    assert_eq!(wrong("read_request", 14, 4), FrameFault::Command(UnknownCommand(4)));
    let as_write = FrameFault::Short(60);
    assert_eq!(wrong("read_request", 14, 2), as_write);
    assert_eq!(wrong("read_response", 20, 3), FrameFault::Status(UnknownStatus(3)));
    assert_eq!(wrong("read_response", 20, 1), FrameFault::DataOfFailure);
    assert_eq!(wrong("write_response", 20, 9), FrameFault::Status(UnknownStatus(9)));
    assert_eq!(wrong("sack_nak_ack_of_write", 23, 0x83), FrameFault::Acked(0x83));
    let before = FrameFault::SackBeforeNak { nak: 0xffff_fffe, sack: 0xffff_fffe };
    let equal = |at, octet| {
        let mut octets = on_the_link(&frames()[8].1);
        octets[19..23].copy_from_slice(&[0xff; 4]);
        octets[at] = octet;
        Frame::parse(&octets[..60])
    };
    assert_eq!(equal(19, 0xfe), Err(before));
    let text = FrameFault::Length { octets: 61, must_be: 60 }.to_string();
    assert_eq!(text, "frame of 61 B: must be 60 B");
    assert_eq!((MEMORY.is_multicast(), COMPUTE.is_multicast()), (false, false));
}

#[test]
fn no_room_says_how_much_it_takes() {
    for (name, frame) in frames() {
        let needed = on_the_link(&frame).len();
        let room = needed - 1;
        assert_eq!(frame.emit_with_fcs(&mut vec![0; room]), Err(NoRoom { needed, room }), "{name}");
        let (needed, room) = (needed - 4, needed - 5);
        assert_eq!(frame.emit(&mut vec![0; room]), Err(NoRoom { needed, room }), "{name}");
    }
}

/// IEEE 802.3 leaves padding open, and some senders fill it with old data.
#[test]
fn what_pads_a_frame_does_not_matter() {
    let (_, frame) = frames()[0];
    let mut octets = on_the_link(&frame);
    octets.truncate(60);
    octets[25..].copy_from_slice(&data()[..35]);
    assert_eq!(Frame::parse(&octets), Ok(frame));
    assert!(matches!(frame.packet, Packet::Request(_)));
}

proptest! {
    #[test]
    fn any_octets_are_refused_or_come_out_as_they_went_in(
        sealed: bool,
        rest in proptest::collection::vec(any::<u8>(), 0..110),
        command in 0_u8..0x90,
    ) {
        let head = [&[2; 12][..], &[0x88, 0xb6, command]].concat();
        cxl_invariants::check(&[head, rest].concat(), sealed);
    }

    #[test]
    fn samples_with_some_octets_changed_are_refused_or_come_out_as_they_went_in(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let samples = frames();
        let mut octets = on_the_link(&samples[which.index(samples.len())].1);
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        cxl_invariants::check(&octets, true);
    }
}
