//! Any octets as an entry or a packet of DFabric, and the golden vectors of both.

#[path = "support/dfabric_invariants.rs"]
mod dfabric_invariants;
#[path = "support/golden_file.rs"]
mod golden_file;

use std::fmt::Write as _;

use ethermem_wire::dfabric::{
    Acknowledgement, Descriptor, DescriptorKind, FIELDS, FabricAddress, Header, Identity, Segment,
};
use proptest::prelude::*;

const ENDS: (Identity, Identity) = (Identity(0x0a00_0002), Identity(0x0a00_0001));

fn descriptor(kind: DescriptorKind) -> Descriptor {
    let (destination, source) = ENDS;
    let reference = FabricAddress::new(0x1234_5678_9000).expect("below 2^48");
    let (length, subflow, cookie) = (4096, 3, 0x0123_4567_89ab_cdef);
    Descriptor { kind, reference, length, destination, source, subflow, cookie }
}

fn headers() -> [(&'static str, Header); 3] {
    let (destination, source) = ENDS;
    let (stream, subflow, number) = (7, 3, 0xffff_fffe);
    let segment = |length, is_last| {
        Header::Segment(Segment { destination, source, stream, subflow, number, length, is_last })
    };
    let (next, room, later) = (number, 64, 1 << 63 | 5);
    let (destination, source) = (source, destination);
    let ack = Acknowledgement { destination, source, stream, subflow, next, room, later };
    let ack = Header::Acknowledgement(ack);
    [
        ("segment", segment(4072, false)),
        ("last_segment", segment(1, true)),
        ("acknowledgement", ack),
    ]
}

#[test]
fn golden_layout() {
    let mut vectors = String::from("field,word,first_bit,bits\n");
    for field in &FIELDS {
        writeln!(vectors, "{},{},{},{}", field.name, field.word, field.first_bit, field.bits)
            .expect("a string takes all");
    }
    golden_file::compare("dfabric_layout.csv", &vectors);
}

#[test]
fn golden_samples() {
    let mut vectors = String::from("format,what,contents\n");
    let kinds = [
        DescriptorKind::Transfer,
        DescriptorKind::Send,
        DescriptorKind::Receive,
        DescriptorKind::Sent,
        DescriptorKind::Received,
        DescriptorKind::Failed,
    ];
    for kind in kinds {
        let sample = descriptor(kind);
        let what = format!("{sample:?}").replace(',', ";");
        let words = sample.words().map(|word| format!("{word:016x}")).join(" ");
        writeln!(vectors, "descriptor,{what},{words}").expect("a string takes all");
    }
    for (name, header) in headers() {
        let mut octets = [0; 32];
        let length = header.emit(&mut octets).expect("a header has at most 32 B");
        let what = format!("{header:?}").replace(',', ";");
        write!(vectors, "{name},{what},").expect("a string takes all");
        for octet in &octets[..length] {
            write!(vectors, "{octet:02x}").expect("a string takes all");
        }
        vectors.push('\n');
    }
    golden_file::compare("dfabric_samples.csv", &vectors);
}

/// Octets of a sample with a few of them replaced, so that many are nearly right.
fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
    let samples: Vec<Vec<u8>> = headers()
        .into_iter()
        .map(|(_, header)| {
            let mut octets = vec![0; 32];
            let length = header.emit(&mut octets).expect("a header has at most 32 B");
            let data = if let Header::Segment(segment) = header { segment.length } else { 0 };
            octets.resize(length + data as usize, 0xdd);
            octets
        })
        .chain([descriptor(DescriptorKind::Transfer).words().map(u64::to_le_bytes).concat()])
        .collect();
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (prop::sample::select(samples), changes, any::<bool>()).prop_map(
        |(mut octets, changes, cut)| {
            for (at, octet) in changes {
                let at = at.index(octets.len().min(32));
                octets[at] = octet;
            }
            octets.truncate(octets.len() - usize::from(cut));
            octets
        },
    )
}

proptest! {
    #[test]
    fn any_octets_are_read_as_they_would_be_written(octets in any::<Vec<u8>>()) {
        dfabric_invariants::check(&octets);
    }

    #[test]
    fn samples_with_changes_are_read_as_they_would_be_written(octets in nearly_right()) {
        dfabric_invariants::check(&octets);
    }
}

#[test]
fn the_samples_are_read() {
    assert!(dfabric_invariants::check(
        &descriptor(DescriptorKind::Transfer).words().map(u64::to_le_bytes).concat()
    ));
}
