//! How line errors look in one block after the descrambler.

/// The scrambler's taps: an error is repeated this many bits later.
const TAPS: [u32; 3] = [0, 39, 58];

/// Bits that are wrong in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) sync: u8,
    pub(crate) payload: u64,
}

/// Every single line error that reaches a block, with a name. The error is in the block's sync
/// header, in its own payload, or in the payload before it.
pub(crate) fn line_errors() -> Vec<(String, Pattern)> {
    let mut errors = Vec::new();
    for bit in 0..2 {
        errors.push((format!("sync:{bit}"), Pattern { sync: 1 << bit, payload: 0 }));
    }
    for (place, shift) in [("own", 0), ("previous", 64)] {
        for bit in 0..64_u32 {
            let hits = TAPS.map(|tap| (bit + tap).checked_sub(shift).filter(|&hit| hit < 64));
            let payload = hits.into_iter().flatten().fold(0, |payload, hit| payload | (1 << hit));
            if payload != 0 {
                errors.push((format!("{place}:{bit}"), Pattern { sync: 0, payload }));
            }
        }
    }
    errors
}
