//! Invariants of every entry and every packet, shared by the fuzz target and a property test.

use ethermem_wire::dfabric::{
    DESCRIPTOR_BYTES, Descriptor, DescriptorWords, Header, PHASE_BIT, SECTION_BYTES,
};

/// Reads `input` as an entry of a queue and as a packet of a stream. Nothing may panic, and what is
/// read must be written as the octets that it came from. Returns whether either was read.
pub(crate) fn check(input: &[u8]) -> bool {
    let entry = input.first_chunk::<DESCRIPTOR_BYTES>().is_some_and(check_entry);
    let packet = Header::parse(input);
    if let Ok((header, data)) = packet {
        let mut written = [0; 32];
        let length = header.emit(&mut written).expect("a header has at most 32 B");
        assert_eq!(length, header.octets());
        assert_eq!((&written[..length], data), input.split_at(length), "{header:?}");
    }
    entry || packet.is_ok()
}

fn check_entry(octets: &[u8; DESCRIPTOR_BYTES]) -> bool {
    let mut words: DescriptorWords = [0; 4];
    for (word, octets) in words.iter_mut().zip(octets.chunks_exact(8)) {
        *word = u64::from_le_bytes(octets.try_into().expect("a word has 8 B"));
    }
    let Ok(descriptor) = Descriptor::parse(&words) else { return false };
    words[0] &= !PHASE_BIT;
    assert_eq!(descriptor.words(), words, "{descriptor:?}");
    let end = descriptor.reference.number() % SECTION_BYTES + u64::from(descriptor.length);
    assert!(end <= SECTION_BYTES, "{descriptor:?} crosses a Section");
    true
}
