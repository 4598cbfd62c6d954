//! Line traces replayed on fabrics, through caches and prefetchers.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use ethermem_lines::prefetch::PrefetchKind;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Setting;
use ethermem_study::lines::{LineError, LineOutcome, LineSetup};
use ethermem_trace::{LineAccess, LineTrace};
use ethermem_units::Bytes;

use crate::error::Error;
use crate::face::Expected;
use crate::replay::within;
use crate::runner::Runner;

/// Allowed number of replayed accesses.
pub const RECORDS: RangeInclusive<u64> = 1..=10_000_000;
/// Allowed speed of the processor.
pub const INSTRUCTIONS_PER_NS: RangeInclusive<f64> = 0.001..=1000.0;
/// Sizes of a cache at the compute node, beside 0.
const CACHE_BYTES: RangeInclusive<u64> = 256..=1 << 30;

/// A trace to replay, fabrics, and what stands in front of them.
#[derive(Clone)]
pub struct Request {
    /// The line trace.
    pub trace: PathBuf,
    /// Fabrics, in the order of the results.
    pub fabrics: Vec<&'static FabricEntry>,
    /// Sizes of the cache at the compute node in bytes; 0 for none.
    pub caches: Vec<u64>,
    /// Prefetchers. Without a cache nothing is prefetched.
    pub prefetch: Vec<PrefetchKind>,
    /// Most accesses of the trace that are replayed, from its start.
    pub records: u64,
    /// Accesses at the start that fill the cache and are left out of the results.
    pub warmup: u64,
    /// Instructions in a nanosecond while the processor's caches hit.
    pub instructions_per_ns: f64,
    /// Data rate of the links in Gb/s.
    pub link_gbps: u64,
    /// Seed of every run.
    pub seed: u64,
    /// Keys of a scenario that describe the network.
    pub settings: Vec<Setting>,
}

impl Request {
    /// Replays the trace on each fabric with each cache and prefetcher.
    ///
    /// # Errors
    ///
    /// When the trace or the setup cannot be used, or when a run fails or is interrupted.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Vec<LineOutcome>, Error> {
        within("records", self.records, &RECORDS)?;
        within("instructions-per-ns", self.instructions_per_ns, &INSTRUCTIONS_PER_NS)?;
        let setups = self.setups();
        for setup in &setups {
            setup.scenario()?;
        }
        let accesses = self.load()?;
        let command = runner.command_with_seed(self.seed);
        let (cost, runs) = (accesses.len() as u64 * setups.len() as u64, setups.len());
        runner.map(&setups, Expected::Runs { cost, runs }, |_, setup, progress| {
            let outcome = setup.replay(&accesses).map_err(|error| failed(error, &command));
            progress.advance(accesses.len() as u64);
            outcome
        })
    }

    fn setups(&self) -> Vec<LineSetup> {
        let mut setups = Vec::new();
        for fabric in &self.fabrics {
            for &cache in &self.caches {
                let nothing = [PrefetchKind::None];
                let prefetch = if cache == 0 { &nothing[..] } else { &self.prefetch };
                setups.extend(prefetch.iter().map(|&prefetch| LineSetup {
                    fabric,
                    link_gbps: self.link_gbps,
                    cache: Bytes(cache),
                    prefetch,
                    instructions_per_ns: self.instructions_per_ns,
                    warmup: self.warmup as usize,
                    seed: self.seed,
                    settings: self.settings.clone(),
                }));
            }
        }
        setups
    }

    /// Reads the accesses that are replayed.
    fn load(&self) -> Result<Vec<LineAccess>, Error> {
        let trace = LineTrace::open(&self.trace)?;
        let accesses: Vec<LineAccess> =
            trace.take(self.records as usize).collect::<Result<_, _>>()?;
        if accesses.len() as u64 <= self.warmup {
            let (path, found) = (self.trace.display(), accesses.len());
            let allowed = "must be more than --warmup";
            return Err(Error::Request(format!("{path}: {found} accesses: {allowed}")));
        }
        Ok(accesses)
    }
}

fn failed(error: LineError, command: &str) -> Error {
    match error {
        LineError::Input(error) => error.into(),
        LineError::Source(error) => error.into(),
        LineError::Cache(what) => Error::Request(format!("--cache: {what}")),
        LineError::Lost(what) => Error::Request(what),
        LineError::Broken(what) => Error::Broken { what, command: command.to_owned() },
    }
}

/// Parses the size of a cache at the compute node, in bytes.
///
/// # Errors
///
/// One line with what is allowed.
pub fn cache(text: &str) -> Result<u64, String> {
    let (least, most) = (CACHE_BYTES.start(), CACHE_BYTES.end());
    let bytes = text.parse::<bytesize::ByteSize>().ok().map(|size| size.0);
    bytes
        .filter(|&bytes| bytes == 0 || bytes.is_power_of_two() && CACHE_BYTES.contains(&bytes))
        .ok_or_else(|| format!("must be 0, or a power of two from {least} to {most}, as 32KiB"))
}

/// Parses the speed of the processor.
///
/// # Errors
///
/// One line with what is allowed.
pub fn instructions_per_ns(text: &str) -> Result<f64, String> {
    let (least, most) = (INSTRUCTIONS_PER_NS.start(), INSTRUCTIONS_PER_NS.end());
    let speed = text.parse::<f64>().ok().filter(|speed| INSTRUCTIONS_PER_NS.contains(speed));
    speed.ok_or_else(|| format!("must be {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_what_the_fabrics_take() {
        for (text, bytes) in [("0", 0), ("256", 256), ("32KiB", 32 << 10), ("1GiB", 1 << 30)] {
            assert_eq!(cache(text), Ok(bytes));
        }
        for wrong in ["", "-1", "128", "100KiB", "2GiB", "much"] {
            let what = "must be 0, or a power of two from 256 to 1073741824, as 32KiB";
            assert_eq!(cache(wrong), Err(what.to_owned()), "{wrong}");
        }
        assert_eq!(instructions_per_ns("3"), Ok(3.0));
        assert_eq!(instructions_per_ns("NaN"), Err("must be 0.001 to 1000".to_owned()));
    }
}
