//! Properties of every trace, whatever its bytes: checked by the fuzz target and by proptest.

use std::path::Path;

use ethermem_files::ParquetInput;

use crate::{CompletionTimes, LineTrace, Trace};

/// Reads `bytes` as a trace, and returns the number of accesses before its end or its first error.
///
/// # Panics
/// When an access is one that the writer would refuse, or an error is more than one line or does
/// not begin with the file's name.
pub fn check_page_trace(bytes: &[u8]) -> u64 {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let input = ParquetInput::new(bytes, Path::new("fuzzed"));
    let trace = match input.and_then(Trace::of) {
        Ok(trace) => trace,
        Err(error) => {
            check_error(&error.to_string());
            return 0;
        }
    };
    let duration = trace.summary().duration;
    let (mut accesses, mut failed, mut latest) = (0, false, ethermem_units::Ns::ZERO);
    for access in trace {
        assert!(!failed, "an access after an error");
        match access {
            Ok(access) => {
                assert!(access.check().is_ok(), "{access:?}");
                assert!(latest <= access.time && access.time <= duration, "{access:?}");
                latest = access.time;
                accesses += 1;
            }
            Err(error) => {
                check_error(&error.to_string());
                failed = true;
            }
        }
    }
    accesses
}

/// Reads `bytes` as completion times, and returns their number before the end or the first error.
///
/// # Panics
/// As [`check_page_trace`].
pub fn check_completion_times(bytes: &[u8]) -> u64 {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let input = ParquetInput::new(bytes, Path::new("fuzzed"));
    let times = match input.and_then(|input| CompletionTimes::of(input, None)) {
        Ok(times) => times,
        Err(error) => {
            check_error(&error.to_string());
            return 0;
        }
    };
    let mut completions = 0;
    for completion in times {
        match completion {
            Ok(completion) => {
                assert!(completion.bytes.0 > 0, "{completion:?}");
                completions += 1;
            }
            Err(error) => check_error(&error.to_string()),
        }
    }
    completions
}

/// Reads `bytes` as a line trace, and returns the number of accesses before its end or its first
/// error.
///
/// # Panics
/// As [`check_page_trace`].
pub fn check_line_trace(bytes: &[u8]) -> u64 {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let input = ParquetInput::new(bytes, Path::new("fuzzed"));
    let trace = match input.and_then(LineTrace::of) {
        Ok(trace) => trace,
        Err(error) => {
            check_error(&error.to_string());
            return 0;
        }
    };
    let total = trace.summary().instructions;
    let (mut accesses, mut latest) = (0, 0);
    for access in trace {
        match access {
            Ok(access) => {
                assert!(access.check().is_ok(), "{access:?}");
                assert!(latest <= access.instructions && access.instructions <= total);
                latest = access.instructions;
                accesses += 1;
            }
            Err(error) => check_error(&error.to_string()),
        }
    }
    accesses
}

pub(crate) fn check_error(error: &str) {
    assert!(error.starts_with("fuzzed:"), "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
}
