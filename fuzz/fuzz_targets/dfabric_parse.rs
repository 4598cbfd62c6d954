//! Any octets as an entry of a queue of DFabric, and as a packet of a stream: no panic, and what is
//! read is written as the octets it came from.
#![no_main]

#[path = "../../crates/wire/tests/support/dfabric_invariants.rs"]
mod dfabric_invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    dfabric_invariants::check(input);
});
