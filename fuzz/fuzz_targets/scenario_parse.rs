//! Any text as a scenario: an error of one line, or a scenario that can be run.
#![no_main]

use ethermem_sim::scenario::check_scenario;

libfuzzer_sys::fuzz_target!(|text: &str| {
    check_scenario(text);
});
