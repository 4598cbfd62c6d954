//! Any bytes as execution traces of two nodes: an error of one line, or a program that ends.
#![no_main]

use ethermem_sim::workload::program::check_execution_trace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check_execution_trace(bytes);
});
