//! Any bytes as a message of an agent, and any facts about its sender: no panic, and what is
//! believed names whole pages of the sender's own memory alone.
#![no_main]

use std::ops::Range;

use ethermem_pager::claim::{Facts, decode, judge, names_addresses};
use ethermem_pager::protocol::{BATCH_PAGES, Hello, PAGE_BYTES};

const PAGE: u64 = PAGE_BYTES as u64;

/// True if each page of `range` is in one of `memory`.
fn is_own(range: Range<u64>, memory: &[Range<u64>]) -> bool {
    let mut pages = range.step_by(PAGE_BYTES);
    pages.all(|page| memory.iter().any(|part| part.start <= page && page + PAGE <= part.end))
}

libfuzzer_sys::fuzz_target!(|input: (&[u8], [u64; 6], bool, Option<bool>)| {
    let (bytes, lengths, is_challenged, userfault) = input;
    // Some of the addresses that the message names are its own, so that some are believed.
    let mut message = [0; size_of::<Hello>()];
    let length = bytes.len().min(message.len());
    message[..length].copy_from_slice(&bytes[..length]);
    let given = if length == bytes.len() { &message[..] } else { bytes };
    let Ok(hello) = decode(given) else { return };
    let starts = [hello.staging, hello.probe, hello.own_start];
    let mut memory: Vec<_> = starts
        .iter()
        .zip(lengths)
        .map(|(start, length)| {
            let start = start / PAGE * PAGE;
            start..start.saturating_add(length % (1 << 20) / PAGE * PAGE)
        })
        .collect();
    memory.sort_by_key(|part| part.start);
    let facts = Facts { userfault, is_challenged, memory: &memory };
    if judge(&hello, &facts).is_ok() && names_addresses(&hello) {
        let staging = hello.staging..hello.staging + BATCH_PAGES as u64 * PAGE;
        for range in [staging, hello.probe..hello.probe + PAGE, hello.own_start..hello.own_end] {
            assert!(!range.is_empty() && range.start % PAGE == 0, "{hello:?}");
            assert!(is_own(range, &memory), "{hello:?} {memory:?}");
        }
    }
});
