//! The line errors that the CRC-32C of a chunk and the CRC-16 of a read-modify-write detect.

use crc::{CRC_16_IBM_SDLC, CRC_32_ISCSI};
use ethermem_wire::MAX_CHUNK_BYTES;

/// The scrambler's polynomial. k line errors in the middle of a message are this polynomial times a
/// polynomial of k terms.
const SCRAMBLER: u128 = (1 << 58) | (1 << 39) | 1;
const CRC32C: u64 = (1 << 32) | CRC_32_ISCSI.poly as u64;
const CRC16: u64 = (1 << 16) | CRC_16_IBM_SDLC.poly as u64;

/// Number of bits of a chunk's codeword: content of /MS/, data, an octet and the CRC of /MT/.
const fn chunk_bits(data_bytes: usize) -> usize {
    40 + 8 * data_bytes.next_multiple_of(8) + 40
}

fn degree(polynomial: u128) -> u32 {
    127 - polynomial.leading_zeros()
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        while a != 0 && degree(a) >= degree(b) {
            a ^= b << (degree(a) - degree(b));
        }
        (a, b) = (b, a);
    }
    a
}

/// x^0, x^1, ... modulo a polynomial.
fn powers(polynomial: u64, count: usize) -> Vec<u64> {
    let top = 1 << degree(u128::from(polynomial));
    let step = |power: &u64| {
        let shifted = power << 1;
        Some(if shifted & top == 0 { shifted } else { shifted ^ polynomial })
    };
    std::iter::successors(Some(1), step).take(count).collect()
}

#[test]
fn the_scrambler_takes_nothing_from_the_crcs() {
    // The two polynomials have no common factor. So a multiple of the scrambler's polynomial is one
    // of the CRC's only if the other factor is: the CRC detects k line errors exactly if it detects
    // k bit errors.
    assert_eq!(gcd(SCRAMBLER, u128::from(CRC32C)), 1);
    assert_eq!(gcd(SCRAMBLER, u128::from(CRC16)), 1);
    // (x + 1)(x^2 + x + 1) and (x + 1)(x^3 + x + 1).
    assert_eq!(gcd(0b1001, 0b1_1101), 0b11, "the test's own arithmetic");
}

#[test]
fn up_to_three_line_errors_are_seen_in_every_message() {
    // Two errors: no power of x occurs twice. One and three: the factor x + 1 gives every codeword
    // an even number of ones.
    let rmw_bits = 40 + 2 * 64 + 40;
    for (polynomial, bits) in [(CRC32C, chunk_bits(MAX_CHUNK_BYTES + 8)), (CRC16, rmw_bits)] {
        assert_eq!(polynomial.count_ones() % 2, 0);
        assert!(powers(polynomial, bits)[1..].iter().all(|&power| power != 1), "{polynomial:#x}");
    }
}

#[test]
fn up_to_five_line_errors_are_seen_in_chunks_of_256_bytes() {
    // Four errors, moved so that one is at x^0, would give 1 + x^a = x^b + x^c.
    let powers = powers(CRC32C, chunk_bits(256 + 8));
    let mut with_one: Vec<u64> = powers[1..].iter().map(|power| power ^ 1).collect();
    with_one.sort_unstable();
    for (i, b) in powers.iter().enumerate().skip(2) {
        for c in &powers[1..i] {
            assert!(with_one.binary_search(&(b ^ c)).is_err(), "a codeword of weight four");
        }
    }
}
