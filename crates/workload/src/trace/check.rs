//! Invariants of every trace, whatever its bytes are: fuzz targets and proptest check them.

use std::path::Path;

use ethermem_files::ParquetInput;
use ethermem_units::Ps;

use super::TraceFormat;
use super::parquet::ParquetTrace;
use super::text::TextTrace;
use crate::message::MessageSource;
use crate::{InputError, MESSAGE_BYTES_MAX};

const NODES: u16 = 16;

/// Reads `bytes` as a trace. Returns the number of messages before its end or its first error.
///
/// # Panics
/// If a message cannot exist in a network, or an error has more than one line or does not begin
/// with the file's name.
pub fn check_trace(bytes: &[u8], format: TraceFormat) -> u64 {
    let file = Path::new("fuzzed");
    match format {
        TraceFormat::Parquet => {
            let bytes = bytes::Bytes::copy_from_slice(bytes);
            let opened = ParquetInput::new(bytes, file);
            check_opened(opened.and_then(|input| ParquetTrace::of(input, NODES)))
        }
        TraceFormat::Csv | TraceFormat::EdmArtifact => {
            check_opened(TextTrace::new(bytes, file, format, NODES))
        }
    }
}

fn check_opened(opened: Result<impl MessageSource, InputError>) -> u64 {
    match opened {
        Ok(source) => check_messages(source),
        Err(error) => {
            check_error(&error.to_string());
            0
        }
    }
}

fn check_messages(mut source: impl MessageSource) -> u64 {
    let (mut messages, mut last) = (0, Ps::ZERO);
    loop {
        match source.next_message() {
            Ok(None) => return messages,
            Ok(Some(message)) => {
                assert_eq!(message.index, messages);
                assert!(message.arrival >= last, "time ran back at {message:?}");
                assert!(message.compute < NODES && message.memory < NODES, "{message:?}");
                assert_ne!(message.compute, message.memory);
                assert!((1..=MESSAGE_BYTES_MAX).contains(&message.bytes.0), "{message:?}");
                messages += 1;
                last = message.arrival;
            }
            Err(error) => {
                check_error(&error.0);
                return messages;
            }
        }
    }
}

fn check_error(error: &str) {
    assert!(error.starts_with("fuzzed:"), "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
}
