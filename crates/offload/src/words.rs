//! The encoding of arguments and results: little-endian words, then bytes.

pub(super) fn encode(words: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(rest);
    bytes
}

pub(super) fn decode<const WORDS: usize>(bytes: &[u8]) -> Option<([u64; WORDS], &[u8])> {
    let (head, rest) = bytes.split_at_checked(WORDS * 8)?;
    let mut words = [0; WORDS];
    for (word, octets) in words.iter_mut().zip(head.chunks_exact(8)) {
        *word = u64::from_le_bytes(octets.try_into().expect("chunks of 8 B"));
    }
    Some((words, rest))
}
