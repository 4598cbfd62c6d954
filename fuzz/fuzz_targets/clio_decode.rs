//! Any bytes as a datagram of the memory node, its CRC right or not: no panic, and each packet is
//! written as the octets it came from.
#![no_main]

#[path = "../../crates/wire/tests/support/clio_invariants.rs"]
mod clio_invariants;

libfuzzer_sys::fuzz_target!(|input: (bool, &[u8])| {
    let (sealed, octets) = input;
    clio_invariants::check(octets, sealed);
});
