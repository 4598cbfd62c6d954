//! Any bytes as a trace in every format: messages that a network can carry, then the end or an
//! error of one line.
#![no_main]

use ethermem_sim::workload::{TraceFormat, check_trace};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for format in TraceFormat::ALL {
        check_trace(bytes, format);
    }
});
