//! Any bytes as a page trace, a line trace, and completion times: rows that their writers would
//! take, then the end or an error of one line.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ethermem_trace::check_page_trace(bytes);
    ethermem_trace::check_line_trace(bytes);
    ethermem_trace::check_completion_times(bytes);
});
