//! Any bytes as a file of blktrace and as a capture of tcpdump: what they hold, then the end or an
//! error of one line.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    ethermem_trace::check_disk_trace(bytes);
    ethermem_trace::check_network_trace(bytes);
});
