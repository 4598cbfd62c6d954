//! Scenarios: a network, what it is asked for, and how it is measured, as one TOML file.
//!
//! The keys are read by hand from spanned values, not derived: an error then names line, key, what
//! was found and what is allowed, and the reference page can be held to exactly the keys known.

mod check;
mod fabric;
mod table;
mod workload;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use crate::config::FabricConfig;
use crate::workload::{InputError, TraceConfig, WorkloadConfig};
#[doc(hidden)]
pub use check::check_scenario;
pub use table::Key;
use table::Source;

/// Longest scenario: what is longer is some other file.
const SCENARIO_BYTES_MAX: u64 = 1 << 20;

/// A validated scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The fabric's name in the registry.
    pub fabric_kind: String,
    /// The network.
    pub fabric: FabricConfig,
    /// The messages.
    pub workload: WorkloadConfig,
    /// How they are run and measured.
    pub run: RunConfig,
}

/// How a run is made and which of its messages count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunConfig {
    /// Of all randomness.
    pub seed: u64,
    /// Share of the messages, the first to arrive, that run but are not measured.
    pub warmup_fraction: f64,
    /// Share of the messages, the last to arrive, that run but are not measured.
    pub cooldown_fraction: f64,
}

impl Scenario {
    /// Reads the scenario in `file`. `fabrics` are the names of the registry, the default first;
    /// other files that the scenario names are looked up from its folder.
    ///
    /// # Errors
    /// [`InputError`] for a file that cannot be read and as [`Scenario::parse`].
    pub fn load(file: &Path, fabrics: &[&str]) -> Result<Scenario, InputError> {
        let unreadable = |error: std::io::Error| InputError::io(file, "be read", &error);
        let mut bytes = Vec::new();
        let opened = File::open(file).map_err(unreadable)?;
        opened.take(SCENARIO_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > SCENARIO_BYTES_MAX {
            let problem = format!("longer than {SCENARIO_BYTES_MAX} B: no scenario");
            return Err(InputError::file(file, problem));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count() as u64;
            InputError::line(file, line, "not UTF-8 text: a scenario is TOML")
        })?;
        Scenario::parse(&text, file, fabrics)
    }

    /// Reads a scenario from its text; `file` is what errors call it.
    ///
    /// # Errors
    /// [`InputError`] with the line and key of what is not TOML, not known or not allowed.
    ///
    /// # Panics
    /// When `fabrics` is empty.
    pub fn parse(text: &str, file: &Path, fabrics: &[&str]) -> Result<Scenario, InputError> {
        read(text, file, fabrics).map(|(scenario, _)| scenario)
    }

    /// All defaults, but the messages of `trace`, measured whole.
    ///
    /// # Panics
    /// As [`Scenario::parse`].
    #[must_use]
    pub fn of_trace(trace: TraceConfig, fabrics: &[&str]) -> Scenario {
        let (defaults, _) = defaults(fabrics);
        let run = RunConfig { warmup_fraction: 0.0, cooldown_fraction: 0.0, ..defaults.run };
        Scenario { workload: WorkloadConfig::Trace(trace), run, ..defaults }
    }

    /// Every key that a scenario may have, with its default and what is allowed.
    ///
    /// # Panics
    /// As [`Scenario::parse`].
    #[must_use]
    pub fn keys(fabrics: &[&str]) -> Vec<Key> {
        defaults(fabrics).1
    }
}

fn defaults(fabrics: &[&str]) -> (Scenario, Vec<Key>) {
    let read = read("[run]\n", Path::new("defaults"), fabrics);
    read.expect("every key has a default")
}

fn read(text: &str, file: &Path, fabrics: &[&str]) -> Result<(Scenario, Vec<Key>), InputError> {
    let source = Source { file, text, keys: Default::default() };
    let values = DeTable::parse(text).map_err(|error| match error.span() {
        Some(span) => source.error(span.start, format!("not TOML: {}", error.message())),
        None => InputError::file(file, format!("not TOML: {}", error.message())),
    })?;
    if values.get_ref().is_empty() {
        let problem = "empty: a scenario has at least one key, such as fabric.kind";
        return Err(InputError::file(file, problem));
    }
    let root = source.root(values.get_ref());
    let folder = file.parent().unwrap_or(Path::new(""));
    let (fabric_kind, fabric) = fabric::read(&root, fabrics)?;
    let workload = workload::read(&root, &fabric, folder)?;
    let run = workload::read_run(&root, &workload)?;
    root.finish()?;
    let scenario = Scenario { fabric_kind, fabric, workload, run };
    Ok((scenario, source.keys.into_inner()))
}

#[cfg(test)]
mod tests;
