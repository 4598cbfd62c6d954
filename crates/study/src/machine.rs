//! A traced machine: its replayed accesses, in a compact form.

use std::path::Path;

use ethermem_trace::{FlowKind, InputError, Trace};
use ethermem_units::{Bytes, Ns, Ps};

/// Largest number of accesses of one trace in memory, 1.2 GB.
pub const ACCESSES_MAX: usize = 50_000_000;
/// Longest part of a trace, 26 days: a quarter of the range of [`Ps`].
const DURATION_PS_MAX: f64 = (1_u64 << 61) as f64;
/// Bytes of a disk's sector, as the kernel counts them.
const SECTOR_BYTES: u64 = 512;

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
    /// True if its disk is its own disk blade.
    pub(crate) own_disks: bool,
}

/// An access, with what a network sees of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) at: Ps,
    /// Block of its first byte, unique among all processes and disks of the machine; of a network
    /// flow, the receiving machine.
    pub(crate) block: u64,
    pub(crate) bytes: u32,
    pub(crate) kind: FlowKind,
    /// True if no thread waits for it.
    pub(crate) prefetched: bool,
    /// The machine whose compute blade has it, if another than this one.
    pub(crate) issuer: Option<u8>,
}

/// The accesses of a page trace within its part.
pub(crate) struct Pages {
    pub(crate) samples: Vec<Sample>,
    /// Time of each since the start of the program.
    pub(crate) times: Vec<Ns>,
    /// End of the part, since the start of the program.
    pub(crate) end: Ns,
    /// Duration of the part, at the replayed speed.
    duration: Ps,
    unrecorded: u64,
}

impl Sample {
    /// A read of a block.
    pub(crate) fn of(block: u64, bytes: u32) -> Sample {
        let (at, kind, prefetched) = (Ps::ZERO, FlowKind::Read, false);
        Sample { at, block, bytes, kind, prefetched, issuer: None }
    }
}

impl Machine {
    /// Reads a part of the trace in `path`; memory is placed in blocks of `block`.
    ///
    /// # Errors
    /// [`InputError`] for a trace that cannot be used, a part without an access, and a part of more
    /// than [`ACCESSES_MAX`].
    pub fn load(path: &Path, part: Part, block: Bytes) -> Result<Machine, InputError> {
        let pages = Pages::load(path, part, block)?;
        if pages.samples.is_empty() {
            let (from, end) = (part.from.0, pages.end.0);
            let problem =
                format!("no access from {from} to {end} ns: must be a part of the trace with one");
            return Err(InputError::file(path, problem));
        }
        Ok(pages.machine(false))
    }

    /// True if it has no access.
    pub(crate) fn is_idle(&self) -> bool {
        self.accesses.is_empty()
    }

    /// True if it has a flow with the compute blade of another machine.
    pub(crate) fn has_peers(&self) -> bool {
        let is_shared =
            |access: &Sample| access.kind == FlowKind::Network || access.issuer.is_some();
        self.accesses.iter().any(is_shared)
    }

    /// Accesses per second.
    pub(crate) fn per_s(&self) -> f64 {
        self.accesses.len() as f64 / self.duration.as_s_f64()
    }
}

impl Pages {
    /// Reads a part of the trace in `path`; memory is placed in blocks of `block`.
    pub(crate) fn load(path: &Path, part: Part, block: Bytes) -> Result<Pages, InputError> {
        let trace = Trace::open(path)?;
        let summary = trace.summary().clone();
        let end = end_of(part, summary.duration);
        let refuse = |problem: String| Err(InputError::file(path, problem));
        let (mut samples, mut times) = (Vec::new(), Vec::new());
        for access in trace {
            let access = access?;
            // The last instant of a trace belongs to it, but the last of a part belongs to the next
            // one.
            let is_in = access.time < end || part.length.is_none();
            if access.time < part.from || !is_in {
                continue;
            }
            if samples.len() == ACCESSES_MAX {
                return refuse(format!(
                    "more than {ACCESSES_MAX} accesses: must be a shorter part of the trace"
                ));
            }
            times.push(access.time);
            samples.push(Sample {
                at: scaled(access.time.0 - part.from.0, part.speed),
                block: block_of(access.process, access.address / block.0),
                bytes: access.bytes.0 as u32,
                kind: access.kind.into(),
                prefetched: access.prefetched,
                issuer: None,
            });
        }
        let (duration, unrecorded) = (duration_of(path, part, end)?, summary.unrecorded_accesses);
        Ok(Pages { samples, times, end, duration, unrecorded })
    }

    /// A part of a machine without a page trace, of which other traces have `span`; `path` is one
    /// of them.
    pub(crate) fn none(path: &Path, part: Part, span: Ns) -> Result<Pages, InputError> {
        let end = end_of(part, span);
        let duration = duration_of(path, part, end)?;
        Ok(Pages { samples: Vec::new(), times: Vec::new(), end, duration, unrecorded: 0 })
    }

    pub(crate) fn machine(self, own_disks: bool) -> Machine {
        let Pages { samples: mut accesses, duration, unrecorded, .. } = self;
        accesses.sort_by_key(|access| access.at);
        // A trace may end with its last access, and gaps wrap around the end.
        let least = accesses.last().map_or(Ps(1), |last| last.at + Ps(1));
        Machine { accesses, duration: duration.max(least), unrecorded, own_disks }
    }
}

fn end_of(part: Part, duration: Ns) -> Ns {
    part.length.map_or(duration, |length| Ns(part.from.0.saturating_add(length.0)).min(duration))
}

/// The replayed time of a part that ends at `end`.
fn duration_of(path: &Path, part: Part, end: Ns) -> Result<Ps, InputError> {
    let ns = end.0.saturating_sub(part.from.0);
    if ns as f64 * 1_000.0 / part.speed > DURATION_PS_MAX {
        let problem = format!("{ns} ns are replayed: must be at most 26 days");
        return Err(InputError::file(path, problem));
    }
    Ok(scaled(ns, part.speed))
}

pub(crate) fn scaled(ns: u64, speed: f64) -> Ps {
    Ps((ns as f64 * 1_000.0 / speed).min(DURATION_PS_MAX) as u64)
}

/// Equal addresses of distinct processes are distinct blocks.
fn block_of(process: u32, index: u64) -> u64 {
    mix(index ^ mix(u64::from(process)))
}

/// Equal places of distinct disks, and of memory, are distinct blocks. A block has whole sectors.
pub(crate) fn disk_block(device: u32, sector: u64, block: Bytes) -> u64 {
    let index = sector / (block.0 / SECTOR_BYTES).max(1);
    mix(index ^ mix(1 << 32 | u64::from(device)))
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the number.
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
