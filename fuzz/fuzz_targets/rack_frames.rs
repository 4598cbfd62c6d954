//! Any frames from another rack's process, and a session that takes them: no panic, a fault ends
//! the session, and what waits stays within the granted windows.
#![no_main]

#[path = "../../crates/rack/tests/support/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    frames::run(input);
});
