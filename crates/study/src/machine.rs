//! A traced machine: its replayed accesses, in a compact form.

use std::path::Path;

use ethermem_trace::{AccessKind, InputError, Trace};
use ethermem_units::{Bytes, Ns, Ps};

/// Largest number of accesses of one trace in memory, 1.2 GB.
pub const ACCESSES_MAX: usize = 50_000_000;
/// Longest part of a trace, 26 days: a quarter of the range of [`Ps`].
const DURATION_PS_MAX: f64 = (1_u64 << 61) as f64;

/// The replayed part of a trace, and its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Start of the part.
    pub from: Ns,
    /// Length of the part; `None` extends to the end of the trace.
    pub length: Option<Ns>,
    /// Speed of the machine relative to the traced one.
    pub speed: f64,
}

/// The accesses of a machine within its part of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub(crate) accesses: Vec<Sample>,
    /// Duration of the part, at the replayed speed.
    pub(crate) duration: Ps,
    /// Number of accesses that are missing from the trace.
    pub(crate) unrecorded: u64,
}

/// An access, with what a network sees of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) at: Ps,
    /// Block of memory of its first byte, unique among all processes of the machine.
    pub(crate) block: u64,
    pub(crate) bytes: u32,
    pub(crate) kind: AccessKind,
    /// True if no thread waits for it.
    pub(crate) prefetched: bool,
}

impl Machine {
    /// Reads a part of the trace in `path`; memory is placed in blocks of `block`.
    ///
    /// # Errors
    /// [`InputError`] for a trace that cannot be used, a part without an access, and a part of more
    /// than [`ACCESSES_MAX`].
    pub fn load(path: &Path, part: Part, block: Bytes) -> Result<Machine, InputError> {
        let trace = Trace::open(path)?;
        let summary = trace.summary().clone();
        let end = part.length.map_or(summary.duration, |length| {
            Ns(part.from.0.saturating_add(length.0)).min(summary.duration)
        });
        let refuse = |problem: String| Err(InputError::file(path, problem));
        let mut accesses = Vec::new();
        for access in trace {
            let access = access?;
            // The last instant of a trace belongs to it, but the last of a part belongs to the next
            // one.
            let is_in = access.time < end || part.length.is_none();
            if access.time < part.from || !is_in {
                continue;
            }
            if accesses.len() == ACCESSES_MAX {
                return refuse(format!(
                    "more than {ACCESSES_MAX} accesses: must be a shorter part of the trace"
                ));
            }
            accesses.push(Sample {
                at: scaled(access.time.0 - part.from.0, part.speed),
                block: block_of(access.process, access.address / block.0),
                bytes: access.bytes.0 as u32,
                kind: access.kind,
                prefetched: access.prefetched,
            });
        }
        let ns = end.0.saturating_sub(part.from.0);
        if ns as f64 * 1_000.0 / part.speed > DURATION_PS_MAX {
            return refuse(format!("{ns} ns are replayed: must be 26 days"));
        }
        if accesses.is_empty() {
            let (from, end) = (part.from.0, end.0);
            return refuse(format!(
                "no access from {from} to {end} ns: must be a part of the trace with one"
            ));
        }
        // A trace may end with its last access, and gaps wrap around the end.
        let last = accesses[accesses.len() - 1].at;
        let duration = scaled(ns, part.speed).max(last + Ps(1));
        Ok(Machine { accesses, duration, unrecorded: summary.unrecorded_accesses })
    }

    /// Accesses per second.
    pub(crate) fn per_s(&self) -> f64 {
        self.accesses.len() as f64 / self.duration.as_s_f64()
    }
}

fn scaled(ns: u64, speed: f64) -> Ps {
    Ps((ns as f64 * 1_000.0 / speed).min(DURATION_PS_MAX) as u64)
}

/// Equal addresses of distinct processes are distinct blocks.
fn block_of(process: u32, index: u64) -> u64 {
    mix(index ^ mix(u64::from(process)))
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the number.
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
