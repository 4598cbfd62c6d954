//! How the traces write a line.

use std::fmt::Write as _;

use ethermem_wire::cxl::LineData;

/// A line as digits, the byte at the highest address first; `-` is none.
pub(crate) fn hex(data: Option<&LineData>) -> String {
    data.map_or("-".into(), |data| {
        data.iter().rev().fold(String::with_capacity(128), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}
