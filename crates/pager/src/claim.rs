//! Judges whether a message from a process can be true.
//!
//! The module is pure: bytes and facts in, a decision out. `door.rs` gathers the facts from the
//! kernel.

use std::ops::Range;

use crate::memory_map;
use crate::protocol::{
    BATCH_PAGES, EXECUTES, FORKED, Hello, INJECTED, OVER, PAGE_BYTES, PROOF, SPAWNS, STARTED,
    VERSION,
};

const PAGE: u64 = PAGE_BYTES as u64;
const STAGING_BYTES: u64 = (BATCH_PAGES * PAGE_BYTES) as u64;
/// Bound of the agent's own memory in bytes; its image and its stack are far smaller.
const OWN_BYTES_MAX: u64 = 16 << 20;
const ERROR_MAX: u32 = 4095;

/// The reason why a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lie {
    /// The message has the wrong length, which is given in bytes.
    #[error("a message of {0} bytes")]
    Length(usize),
    /// The version is another agent's.
    #[error("an agent of version {0}")]
    Version(u32),
    /// The kind does not exist, or is not valid now.
    #[error("a message of kind {0} that is not expected")]
    Kind(u32),
    /// The kind requires a userfaultfd and has none, or the reverse.
    #[error("a message of kind {0} with a wrong file, or none")]
    File(u32),
    /// An address is not page-aligned, or not in the sender's memory.
    #[error("an address that is not its own: {0}")]
    Address(&'static str),
    /// A field that this kind of message does not use is not 0.
    #[error("a field that means nothing here: {0}")]
    Field(&'static str),
}

/// What the kernel knows of a message and its sender.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// True if the message came with a userfaultfd; `None` if it came with another kind of file.
    pub userfault: Option<bool>,
    /// True if the sender was asked for a proof.
    pub is_challenged: bool,
    /// The sender's private, anonymous memory, in order of address.
    pub memory: &'f [Range<u64>],
}

/// The private, anonymous, writable memory of a process, in order of address, from the text of its
/// `/proc/PID/maps`. A message may name only this memory.
#[must_use]
pub fn memory_of(maps: &str) -> Vec<Range<u64>> {
    memory_map::writable(maps)
}

/// Decodes a message.
///
/// # Errors
///
/// When the bytes are not a message of this version.
pub fn decode(bytes: &[u8]) -> Result<Hello, Lie> {
    if bytes.len() != size_of::<Hello>() {
        return Err(Lie::Length(bytes.len()));
    }
    // SAFETY: the length was checked, and any bytes are a value of a structure of integers.
    let hello = unsafe { bytes.as_ptr().cast::<Hello>().read_unaligned() };
    if hello.version == VERSION { Ok(hello) } else { Err(Lie::Version(hello.version)) }
}

/// True if judging `hello` requires the sender's memory map.
#[must_use]
pub fn names_addresses(hello: &Hello) -> bool {
    matches!(hello.kind, STARTED | FORKED | INJECTED)
}

/// Checks whether `hello` can be true of a process of which the kernel knows `facts`.
///
/// # Errors
///
/// When it cannot be true.
pub fn judge(hello: &Hello, facts: &Facts<'_>) -> Result<(), Lie> {
    let is_expected = match hello.kind {
        PROOF => facts.is_challenged,
        STARTED | FORKED | INJECTED | EXECUTES | SPAWNS | OVER => !facts.is_challenged,
        _ => false,
    };
    if !is_expected {
        return Err(Lie::Kind(hello.kind));
    }
    let may_have_file = matches!(hello.kind, STARTED | INJECTED) && hello.error == 0;
    if facts.userfault != Some(may_have_file) {
        return Err(Lie::File(hello.kind));
    }
    if hello.reserved != 0 || hello.error > ERROR_MAX {
        return Err(Lie::Field("error"));
    }
    if names_addresses(hello) {
        return addresses(hello, facts.memory);
    }
    let says = Hello { version: hello.version, kind: hello.kind, ..Hello::default() };
    let allowed = match hello.kind {
        PROOF => Hello { secret: hello.secret, ..says },
        _ => Hello { thread: hello.thread, ..says },
    };
    if *hello == allowed { Ok(()) } else { Err(Lie::Field("of another kind")) }
}

fn addresses(hello: &Hello, memory: &[Range<u64>]) -> Result<(), Lie> {
    let areas = [
        ("staging", hello.staging, hello.staging.checked_add(STAGING_BYTES)),
        ("probe", hello.probe, hello.probe.checked_add(PAGE)),
        ("own", hello.own_start, Some(hello.own_end)),
    ];
    for (name, start, end) in areas {
        if !end.is_some_and(|end| is_within(start..end, memory)) {
            return Err(Lie::Address(name));
        }
    }
    // The agent's image includes code, which is not the writable mapping.
    let image = hello.image_start..hello.image_end;
    let is_image = match hello.kind {
        STARTED => image == (0..0),
        _ => image == (0..0) || is_sound(&image),
    };
    if is_image { Ok(()) } else { Err(Lie::Address("image")) }
}

/// True for a page-aligned range of user addresses of bounded size.
fn is_sound(range: &Range<u64>) -> bool {
    const END: u64 = 1 << 56;
    let is_whole = range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE);
    let is_some = range.start < range.end && range.start > 0 && range.end <= END;
    is_whole && is_some && range.end - range.start <= OWN_BYTES_MAX
}

/// True if all of `range` is mapped; `memory` is in order of address.
fn is_within(range: Range<u64>, memory: &[Range<u64>]) -> bool {
    if !is_sound(&range) {
        return false;
    }
    let mut from = range.start;
    let first = memory.partition_point(|part| part.end <= from);
    for part in &memory[first..] {
        if part.start > from {
            return false;
        }
        from = part.end;
        if from >= range.end {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: [Range<u64>; 3] =
        [0x1000..0x2000, 0x10_0000..0x14_0000, 0x7000_0000..0x7001_0000];

    fn truth(kind: u32) -> Hello {
        let says = Hello { version: VERSION, kind, ..Hello::default() };
        match kind {
            PROOF => Hello { secret: [1, 2], ..says },
            EXECUTES | SPAWNS | OVER => Hello { thread: 7, ..says },
            _ => Hello {
                staging: 0x10_0000,
                probe: 0x1000,
                own_start: 0x7000_0000,
                own_end: 0x7001_0000,
                ..says
            },
        }
    }

    fn facts(kind: u32) -> Facts<'static> {
        Facts {
            userfault: Some(matches!(kind, STARTED | INJECTED)),
            is_challenged: kind == PROOF,
            memory: &MEMORY,
        }
    }

    #[test]
    fn the_truth_is_believed_and_each_field_that_lies_is_not() {
        for kind in STARTED..=PROOF {
            let (hello, facts) = (truth(kind), facts(kind));
            assert_eq!(judge(&hello, &facts), Ok(()), "{hello:?}");
            let files = [None, Some(!facts.userfault.expect("known"))];
            for userfault in files {
                assert_eq!(judge(&hello, &Facts { userfault, ..facts }), Err(Lie::File(kind)));
            }
            let is_challenged = !facts.is_challenged;
            assert_eq!(judge(&hello, &Facts { is_challenged, ..facts }), Err(Lie::Kind(kind)));
            assert!(judge(&Hello { reserved: 1, ..hello }, &facts).is_err());
            assert!(judge(&Hello { kind: kind + PROOF + 1, ..hello }, &facts).is_err());
        }
    }

    #[test]
    fn addresses_are_the_processs_own() {
        // Null, odd, between mappings, too near to an end, behind all of them, at the last byte.
        const LIES: [u64; 9] =
            [0, 1, 0x1800, 0x3000, 0x13_f000, 0x7002_0000, 1 << 47, u64::MAX - 0xfff, u64::MAX];
        for kind in [STARTED, FORKED, INJECTED] {
            let (hello, facts) = (truth(kind), facts(kind));
            let refused = |hello: Hello| judge(&hello, &facts).is_err();
            for lie in LIES {
                assert!(refused(Hello { staging: lie, ..hello }), "staging {lie:x}");
                assert!(refused(Hello { own_start: lie, ..hello }), "own start {lie:x}");
                assert!(refused(Hello { own_end: lie, ..hello }), "own end {lie:x}");
                assert!(refused(Hello { image_start: 1, image_end: lie, ..hello }), "{lie:x}");
                assert!(refused(Hello { image_end: lie | 1, ..hello }), "image {lie:x}");
                let is_mapped = lie == 0x13_f000;
                assert!(is_mapped || refused(Hello { probe: lie, ..hello }), "probe {lie:x}");
            }
            assert!(judge(&hello, &Facts { memory: &[], ..facts }).is_err());
        }
    }

    #[test]
    fn only_whole_messages_of_this_version_are_read() {
        let hello = truth(STARTED);
        // SAFETY: the structure consists of integers without gaps.
        let bytes: [u8; size_of::<Hello>()] = unsafe { std::mem::transmute(hello) };
        assert_eq!(decode(&bytes), Ok(hello));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), Err(Lie::Length(length)));
        }
        let mut other = bytes;
        other[0] ^= 1;
        assert!(matches!(decode(&other), Err(Lie::Version(_))));
    }

    #[test]
    fn an_error_is_one_of_the_kernels() {
        for kind in [STARTED, FORKED, INJECTED] {
            let facts = Facts { userfault: Some(false), ..facts(kind) };
            for (error, good) in [(1, true), (ERROR_MAX, true), (ERROR_MAX + 1, false)] {
                let judged = judge(&Hello { error, ..truth(kind) }, &facts);
                assert_eq!(judged.is_ok(), good, "{kind}: {error}");
            }
        }
    }

    #[test]
    fn a_place_is_of_whole_pages_in_the_users_half_and_not_large() {
        const END: u64 = 1 << 56;
        for range in [PAGE..2 * PAGE, PAGE..PAGE + OWN_BYTES_MAX, END - PAGE..END] {
            assert!(is_sound(&range), "{range:x?}");
        }
        for range in [
            0..PAGE,
            PAGE..PAGE,
            Range { start: 2 * PAGE, end: PAGE },
            PAGE + 1..3 * PAGE,
            PAGE..2 * PAGE + 1,
            PAGE..2 * PAGE + OWN_BYTES_MAX,
            END - PAGE..END + PAGE,
        ] {
            assert!(!is_sound(&range), "{range:x?}");
        }
        // Adjacent mappings count as one.
        let memory = [PAGE..2 * PAGE, 2 * PAGE..3 * PAGE, 4 * PAGE..5 * PAGE];
        for (range, mapped) in [
            (PAGE..2 * PAGE, true),
            (PAGE..3 * PAGE, true),
            (2 * PAGE..3 * PAGE, true),
            (PAGE..4 * PAGE, false),
            (2 * PAGE..5 * PAGE, false),
            (3 * PAGE..4 * PAGE, false),
            (4 * PAGE..5 * PAGE, true),
            (4 * PAGE..6 * PAGE, false),
        ] {
            assert_eq!(is_within(range.clone(), &memory), mapped, "{range:x?}");
        }
    }

    #[test]
    fn an_image_is_said_by_whoever_was_written_into_a_process() {
        for kind in [STARTED, FORKED, INJECTED] {
            let image = Hello { image_start: PAGE, image_end: 3 * PAGE, ..truth(kind) };
            assert_eq!(judge(&image, &facts(kind)).is_ok(), kind != STARTED, "{kind}");
        }
    }
}
