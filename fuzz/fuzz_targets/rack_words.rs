//! Any stores into the words that both ends of a rack's connection share, before any call of either
//! end: no panic, and no position outside of the ring.
#![no_main]

#[path = "../../crates/rack/tests/support/words.rs"]
mod words;

libfuzzer_sys::fuzz_target!(|steps: Vec<(u8, u64)>| words::run(steps));
