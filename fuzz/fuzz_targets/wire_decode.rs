//! Any blocks into the receiver: no panic, and each message is sent as the blocks it came from.
#![no_main]

#[path = "../../crates/wire/tests/support/invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    invariants::check(input);
});
