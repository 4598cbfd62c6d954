//! Contents of records: a function of key and offset, so that reads can be checked.

/// Generates bytes `from..from + into.len()` of the record `key`. An update writes the existing
/// bytes again, as with YCSB's `dataintegrity`.
pub(crate) fn fill(key: u64, from: u64, into: &mut [u8]) {
    let mut at = from;
    let mut rest = into;
    while !rest.is_empty() {
        let (word, skipped) = (word(key, at / 8).to_le_bytes(), (at % 8) as usize);
        let bytes = (8 - skipped).min(rest.len());
        rest[..bytes].copy_from_slice(&word[skipped..skipped + bytes]);
        rest = &mut rest[bytes..];
        at += bytes as u64;
    }
}

/// True if `found` equals those bytes.
pub(crate) fn are(key: u64, from: u64, found: &[u8]) -> bool {
    let mut at = from;
    let mut rest = found;
    while !rest.is_empty() {
        let (word, skipped) = (word(key, at / 8).to_le_bytes(), (at % 8) as usize);
        let bytes = (8 - skipped).min(rest.len());
        if rest[..bytes] != word[skipped..skipped + bytes] {
            return false;
        }
        rest = &rest[bytes..];
        at += bytes as u64;
    }
    true
}

fn word(key: u64, index: u64) -> u64 {
    // Odd multipliers make neighbouring keys and offsets differ in all bytes.
    (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (index + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_of_the_whole() {
        let mut whole = [0; 100];
        fill(7, 0, &mut whole);
        for from in 0..100 {
            for to in from..=100 {
                let mut part = vec![0; to - from];
                fill(7, from as u64, &mut part);
                assert_eq!(part, whole[from..to]);
                assert!(are(7, from as u64, &part));
            }
        }
    }

    #[test]
    fn another_key_another_place_or_another_bit_is_seen() {
        let mut whole = [0; 64];
        fill(7, 0, &mut whole);
        assert!(!are(8, 0, &whole) && !are(7, 8, &whole));
        for at in 0..64 {
            whole[at] ^= 1;
            assert!(!are(7, 0, &whole));
            whole[at] ^= 1;
        }
        assert!(!are(7, 0, &[0; 8]));
    }
}
