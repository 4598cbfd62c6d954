//! The networks whose delays a program experiences.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ethermem_pager::{Delay, Network};
use ethermem_trace::{CompletionTimes, FlowKind};

use crate::error::Error;

/// The paper's ranges (OSDI'16, Section 5).
const GRID_LATENCIES_US: [f64; 4] = [1.0, 3.0, 5.0, 10.0];
const GRID_GBPS: [f64; 3] = [10.0, 40.0, 100.0];

/// Networks to try: all latencies with all rates, or the times of a file.
#[derive(Clone, Debug)]
pub struct Networks {
    /// Times from a fault to the first byte of its page, in microseconds.
    pub latencies_us: Vec<f64>,
    /// Data rates in Gb/s. If the list is empty, bytes take no time.
    pub gbps: Vec<f64>,
    /// File of completion times, as a replay writes it.
    pub latency_from: Option<PathBuf>,
    /// Fabric in that file, if it has several.
    pub fabric: Option<String>,
    /// Seed of the draws.
    pub seed: u64,
}

/// Parses a latency in microseconds.
///
/// # Errors
///
/// One line with what is allowed.
pub fn latency(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1e6)
}

/// Parses a data rate in Gb/s.
///
/// # Errors
///
/// One line with what is allowed.
pub fn rate(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1e6)
}

fn between(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (low..=high).contains(&value) => Ok(value),
        _ => Err(format!("must be {low} to {high}")),
    }
}

/// A network, with the properties by which the cheapest is chosen.
pub(crate) struct Tried {
    pub(crate) network: Network,
    pub(crate) latency_us: Option<f64>,
    pub(crate) gbps: Option<f64>,
}

impl Networks {
    /// The networks to try; those of the paper if `grid` is set and none is named.
    pub(crate) fn list(&self, grid: bool) -> Result<Vec<Tried>, Error> {
        if let Some(path) = &self.latency_from {
            return Ok(vec![drawn(path, self.fabric.as_deref(), self.seed)?]);
        }
        let or = |given: &[f64], default: &[f64]| {
            if given.is_empty() && grid { default.to_vec() } else { given.to_vec() }
        };
        let latencies = or(&self.latencies_us, &GRID_LATENCIES_US);
        if latencies.is_empty() {
            let allowed = "--latency-us, --latency-from or --grid";
            return Err(Error::Request(format!("no network is named; must be one of {allowed}")));
        }
        let rates: Vec<Option<f64>> = or(&self.gbps, &GRID_GBPS).into_iter().map(Some).collect();
        let rates = if rates.is_empty() { vec![None] } else { rates };
        let pairs = latencies.iter().flat_map(|latency| rates.iter().map(|rate| (*latency, *rate)));
        Ok(pairs.map(|(latency, rate)| fixed(latency, rate)).collect())
    }
}

pub(super) fn fixed(latency_us: f64, gbps: Option<f64>) -> Tried {
    let latency = Duration::from_secs_f64(latency_us / 1e6);
    let name = match gbps {
        Some(gbps) => format!("{latency_us} us, {gbps} Gb/s"),
        None => format!("{latency_us} us"),
    };
    let bits_per_second = gbps.map(|gbps| gbps * 1e9);
    let delay = Delay::Fixed { latency, bits_per_second };
    Tried { network: Network { name, delay }, latency_us: Some(latency_us), gbps }
}

pub(super) fn drawn(path: &Path, fabric: Option<&str>, seed: u64) -> Result<Tried, Error> {
    let file = CompletionTimes::open(path, fabric)?;
    let name = file.fabric().to_owned();
    let mut times = Vec::new();
    let mut runs: BTreeMap<u64, Vec<Duration>> = BTreeMap::new();
    for completion in file {
        let completion = completion?;
        if completion.kind == FlowKind::Read {
            let of_kind = match completion.prefetched {
                true => runs.entry(completion.bytes.0).or_default(),
                false => &mut times,
            };
            of_kind.push(Duration::from_nanos(completion.completion.0.div_ceil(1000)));
        }
    }
    if times.is_empty() {
        let path = path.display();
        return Err(Error::Request(format!("{path}: no reads of {name}: must be at least one")));
    }
    let delay = Delay::Drawn { times, runs, seed };
    Ok(Tried { network: Network { name, delay }, latency_us: None, gbps: None })
}
