//! Repeats the choice of the CRC-8 polynomial: all 256 of degree 8 against every line error that
//! reaches a control block.

#[path = "support/errors.rs"]
mod errors;

use ethermem_wire::{EdmControl, SubType};

/// x^8 + x^5 + x^4 + x^2 + x + 1, without x^8.
const CHOSEN: u8 = 0x37;
/// First bit of the CRC-8's codeword in a block: the sub-type.
const CODEWORD_AT: usize = 8;
/// Rows that sum to zero over every codeword of the block types' code, which is its own dual.
const PARITY_ROWS: [u8; 4] = [0x1e, 0x2d, 0x4b, 0x87];

/// What each payload bit adds to the checks of a block: eight bits of CRC, four of the type's code,
/// four of the sub-type's code. The checks detect an error if its sum is not zero.
fn syndromes(polynomial: u8) -> [u16; 64] {
    let parity = |octet: u8| {
        PARITY_ROWS
            .iter()
            .enumerate()
            .fold(0, |sum, (row, mask)| sum | (((octet & mask).count_ones() as u16 & 1) << row))
    };
    let mut syndromes = [0; 64];
    let mut power = 1_u8;
    for bit in (CODEWORD_AT..64).rev() {
        syndromes[bit] = u16::from(power);
        let carry = power >> 7;
        power = (power << 1) ^ (carry * polynomial);
    }
    for bit in 0..8 {
        syndromes[bit] |= parity(1 << bit) << 8;
        syndromes[bit + 8] |= parity(1 << bit) << 12;
    }
    syndromes
}

fn sum(syndromes: &[u16; 64], mut payload: u64) -> u16 {
    let mut sum = 0;
    while payload != 0 {
        sum ^= syndromes[payload.trailing_zeros() as usize];
        payload &= payload - 1;
    }
    sum
}

/// True if the CRC alone detects every error of one, two and three bits in its codeword.
fn sees_three_bits(syndromes: &[u16; 64]) -> bool {
    let bits: Vec<u16> = syndromes[CODEWORD_AT..].iter().map(|sum| sum & 0xff).collect();
    let mut seen = [false; 256];
    for &bit in &bits {
        if bit == 0 || std::mem::replace(&mut seen[usize::from(bit)], true) {
            return false;
        }
    }
    let mut pairs = bits.iter().enumerate().flat_map(|(i, a)| bits[..i].iter().map(move |b| a ^ b));
    pairs.all(|pair| !seen[usize::from(pair)])
}

/// Number of triples of line errors that pass all checks; `None` if a single error or a pair
/// passes.
fn missed_threes(syndromes: &[u16; 64]) -> Option<usize> {
    let patterns = errors::line_errors().into_iter().map(|(_, pattern)| pattern.payload);
    let sums: Vec<u16> =
        patterns.filter(|&payload| payload != 0).map(|payload| sum(syndromes, payload)).collect();
    let mut seen = vec![false; 1 << 16];
    for &sum in &sums {
        if sum == 0 || std::mem::replace(&mut seen[usize::from(sum)], true) {
            return None;
        }
    }
    let pairs = sums.iter().enumerate().flat_map(|(i, a)| sums[..i].iter().map(move |b| a ^ b));
    // Each triple is counted once for each of its three pairs.
    Some(pairs.filter(|&pair| seen[usize::from(pair)]).count() / 3)
}

#[test]
fn the_chosen_polynomial_is_the_best() {
    let mut candidates: Vec<(usize, u8)> = (0..=255_u8)
        .map(|polynomial| (polynomial, syndromes(polynomial)))
        .filter(|(_, syndromes)| sees_three_bits(syndromes))
        .filter_map(|(polynomial, syndromes)| Some((missed_threes(&syndromes)?, polynomial)))
        .collect();
    candidates.sort_unstable();
    assert_eq!(candidates.len(), 47, "polynomials that see all errors of two line bits");
    assert_eq!(candidates[..2], [(218, CHOSEN), (227, 0x91)], "of 295,240 threes");
}

#[test]
fn a_burst_of_three_is_no_missed_three() {
    let syndromes = syndromes(CHOSEN);
    for burst in [0b1_u128, 0b11, 0b101, 0b111] {
        // The burst moves from the payload before, bits 0..64, into the block's own payload, bits
        // 64..128.
        for at in 0..128 - (burst.ilog2()) {
            let line = burst << at;
            let error = ((line ^ (line << 39) ^ (line << 58)) >> 64) as u64;
            assert!(error == 0 || sum(&syndromes, error) != 0, "{burst:#b} at {at}");
        }
    }
}

#[test]
fn the_model_is_the_code() {
    // A block's checks are affine. A bit of content changes the CRC equally for all contents, and
    // this change is the bit's syndrome.
    let syndromes = syndromes(CHOSEN);
    for content in [0, 0xff_ffff_ffff, 0x5a_1234_a5a5] {
        let block = EdmControl::new(SubType::Grant, content).encode();
        for bit in 0..40 {
            let other = EdmControl::new(SubType::Grant, content ^ (1 << bit)).encode();
            let changed = block.payload() ^ other.payload();
            assert_eq!(changed.count_ones() - 1, (changed >> 56).count_ones());
            assert_eq!(sum(&syndromes, changed), 0, "bit {bit} of {content:#x}");
        }
    }
    for sub_type in SubType::ALL {
        let changed = EdmControl::new(SubType::Grant, 0).encode().payload()
            ^ EdmControl::new(sub_type, 0).encode().payload();
        assert_eq!(sum(&syndromes, changed), 0, "{sub_type:?}");
    }
}
