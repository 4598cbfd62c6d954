//! Any octets as a frame of CXL over Ethernet, its check sequence right or not: no panic, and each
//! frame that is read is written as the octets it came from.
#![no_main]

#[path = "../../crates/wire/tests/support/cxl_invariants.rs"]
mod cxl_invariants;

libfuzzer_sys::fuzz_target!(|input: (bool, &[u8])| {
    let (sealed, octets) = input;
    cxl_invariants::check(octets, sealed);
});
