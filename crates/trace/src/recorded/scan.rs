//! Properties of every file of another tool, whatever its octets: checked by fuzz targets and by
//! proptest.

use std::path::Path;

use super::{DiskTrace, NetworkTrace};
use crate::check::check_error;

/// Reads `octets` as a trace of blktrace, and returns the number of accesses.
///
/// # Panics
/// When an access is out of order, empty or ends before it begins, or an error is not one line.
pub fn check_disk_trace(octets: &[u8]) -> u64 {
    match DiskTrace::of(octets, Path::new("fuzzed")) {
        Ok(DiskTrace { accesses, .. }) => {
            assert!(accesses.is_sorted_by_key(|access| access.issued_ns));
            for access in &accesses {
                assert!(access.bytes > 0, "{access:?}");
                assert!(access.completed_ns.is_none_or(|end| end >= access.issued_ns));
            }
            accesses.len() as u64
        }
        Err(error) => {
            check_error(&error.to_string());
            0
        }
    }
}

/// Reads `octets` as a capture, and returns the number of packets with data before its end or its
/// first error.
///
/// # Panics
/// When there is a packet after an error, or an error is not one line.
pub fn check_network_trace(octets: &[u8]) -> u64 {
    let trace = match NetworkTrace::of(octets, Path::new("fuzzed")) {
        Ok(trace) => trace,
        Err(error) => {
            check_error(&error.to_string());
            return 0;
        }
    };
    let (mut segments, mut failed) = (0, false);
    for segment in trace {
        assert!(!failed, "a packet after an error");
        match segment {
            Ok(_) => segments += 1,
            Err(error) => {
                check_error(&error.to_string());
                failed = true;
            }
        }
    }
    segments
}
