//! The rules for every message from a process. They stand here a second time, page by page and
//! without the pager's code, so that both must be wrong alike for a false message to pass.

use std::collections::BTreeSet;

use ethermem_pager::claim::{Facts, decode, judge, memory_of};
use ethermem_pager::protocol::{
    BATCH_PAGES, EXECUTES, FORKED, Hello, INJECTED, OVER, PAGE_BYTES, PROOF, SPAWNS, STARTED,
    VERSION,
};

const PAGE: u64 = PAGE_BYTES as u64;
/// Bound of the agent's own memory and of its image, in pages.
const OWN_PAGES_MAX: u64 = 4096;
/// End of the user's address range.
const END: u64 = 1 << 56;

/// Properties and name of a mapping in the kernel's text, and whether a claim may name it.
const MAPPINGS: [(&str, &str, bool); 11] = [
    ("rw-p 00000000 00:00 0", "", true),
    ("rw-p 00000000 00:00 0", "[heap]", true),
    ("rw-p 00000000 00:00 0", "[anon:a name - rw-p]", true),
    ("rwxp 00000000 00:00 0", "", true),
    ("r--p 00000000 00:00 0", "", false),
    ("---p 00000000 00:00 0", "", false),
    ("rw-s 00000000 00:00 0", "", false),
    ("rw-s 00000000 00:01 2054", "/dev/zero (deleted)", false),
    ("rw-p 00001000 fe:00 77", "/tmp/[heap]", false),
    ("rw-p 00001000 fe:00 77", "[anon:lie]", false),
    ("rw-p 00000000 00:00 0", "[stack]", false),
];

/// A message, and what the kernel knows of its sender.
#[derive(Debug)]
pub(crate) struct Said<'s> {
    /// The message.
    pub(crate) bytes: &'s [u8],
    /// True if length, version and kind are corrected, so that the later checks are reached.
    pub(crate) is_near: bool,
    /// For each address field, an optional page of the mappings and an offset from it.
    pub(crate) places: [Option<(u16, i8)>; 6],
    /// Mappings in order: pages before it, pages of it, index in [`MAPPINGS`].
    pub(crate) mappings: &'s [(u8, u8, u8)],
    pub(crate) userfault: Option<bool>,
    pub(crate) is_challenged: bool,
}

/// Checks that the message is accepted exactly when it can be true, and returns its kind if so.
pub(crate) fn check(said: &Said<'_>) -> Option<u32> {
    let (maps, pages) = mapped(said.mappings);
    let memory = memory_of(&maps);
    let found: BTreeSet<u64> =
        memory.iter().flat_map(|range| (range.start..range.end).step_by(PAGE_BYTES)).collect();
    assert_eq!(found, pages, "{maps}");
    let mut bytes = said.bytes.to_vec();
    if said.is_near {
        bytes.resize(size_of::<Hello>(), 0);
        let kind = u32::from(bytes[4] % 8);
        bytes[..4].copy_from_slice(&VERSION.to_ne_bytes());
        bytes[4..8].copy_from_slice(&kind.to_ne_bytes());
    }
    let Ok(mut hello) = decode(&bytes) else {
        let version = bytes.first_chunk().map(|first| u32::from_ne_bytes(*first));
        assert!(bytes.len() != size_of::<Hello>() || version != Some(VERSION));
        return None;
    };
    let all: Vec<u64> = pages.iter().copied().collect();
    let Hello { staging, probe, own_start, own_end, image_start, image_end, .. } = &mut hello;
    let fields = [staging, probe, own_start, own_end, image_start, image_end];
    for (field, place) in fields.into_iter().zip(said.places) {
        if let (Some((page, beside)), false) = (place, all.is_empty()) {
            let page = all[usize::from(page) % all.len()];
            *field = page.wrapping_add_signed(i64::from(beside) * 1024);
        }
    }
    let facts =
        Facts { userfault: said.userfault, is_challenged: said.is_challenged, memory: &memory };
    let judged = judge(&hello, &facts);
    assert_eq!(judged.is_ok(), is_possible(&hello, said, &pages), "{hello:?}: {judged:?}");
    judged.ok().map(|()| hello.kind)
}

/// The text of `/proc/PID/maps`, and the pages of it that a claim may name.
fn mapped(mappings: &[(u8, u8, u8)]) -> (String, BTreeSet<u64>) {
    let (mut text, mut pages, mut at) = (String::new(), BTreeSet::new(), 16 * PAGE);
    for (gap, length, kind) in mappings.iter().take(64) {
        let start = at + u64::from(*gap) * PAGE;
        let end = start + (u64::from(*length) + 1) * PAGE;
        let (what, name, is_own) = MAPPINGS[usize::from(*kind) % MAPPINGS.len()];
        text.push_str(&format!("{start:x}-{end:x} {what}    {name}\n"));
        if is_own {
            pages.extend((start..end).step_by(PAGE_BYTES));
        }
        at = end;
    }
    (text, pages)
}

fn is_possible(hello: &Hello, said: &Said<'_>, pages: &BTreeSet<u64>) -> bool {
    let Hello { version, kind, error, reserved, thread, staging, probe, secret, .. } = *hello;
    let Hello { own_start, own_end, image_start, image_end, .. } = *hello;
    let brings_file = (kind == STARTED || kind == INJECTED) && error == 0;
    if version != VERSION
        || reserved != 0
        || error > 4095
        || said.userfault != Some(brings_file)
        || said.is_challenged != (kind == PROOF)
    {
        return false;
    }
    let are_mapped = |start: u64, count: u64| {
        start.is_multiple_of(PAGE)
            && (0..count).all(|page| {
                start.checked_add(page * PAGE).is_some_and(|page| pages.contains(&page))
            })
    };
    let numbers = [staging, probe, own_start, own_end, image_start, image_end];
    let is_silent = |numbers: &[u64]| error == 0 && numbers.iter().all(|number| *number == 0);
    match kind {
        STARTED | FORKED | INJECTED => {
            let own = own_end.saturating_sub(own_start);
            let image = image_end.saturating_sub(image_start);
            let has_none = (image_start, image_end) == (0, 0);
            let is_image = image_start > 0
                && (1..=OWN_PAGES_MAX * PAGE).contains(&image)
                && image_end <= END
                && [image_start, image_end].iter().all(|place| place.is_multiple_of(PAGE));
            are_mapped(staging, BATCH_PAGES as u64)
                && are_mapped(probe, 1)
                && (1..=OWN_PAGES_MAX).contains(&(own / PAGE))
                && own.is_multiple_of(PAGE)
                && are_mapped(own_start, own / PAGE)
                && (has_none || (kind != STARTED && is_image))
        }
        EXECUTES | SPAWNS | OVER => is_silent(&numbers) && secret == [0, 0],
        PROOF => is_silent(&numbers) && thread == 0,
        _ => false,
    }
}
