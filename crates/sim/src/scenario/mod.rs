//! Scenarios: a network, its workload, and the measurement, as one TOML file.
//!
//! The keys are read by hand from spanned values, and not derived. So an error names line, key,
//! what was found and what it must be. The reference page can be checked against the exact set of
//! keys.

mod check;
mod program;
mod shipped;
mod workload;

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use crate::config::FabricConfig;
use crate::keys::Lines;
pub use crate::keys::{Key, LINK_GBPS, Setting, SettingError};
use crate::keys::{SET, Source};
use crate::registry::FABRICS;
use crate::workload::{InputError, TraceConfig, WorkloadConfig};
#[doc(hidden)]
pub use check::check_scenario;
pub use shipped::shipped;

/// Maximum bytes of a scenario: a longer file is not a scenario.
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
    /// The run and its measurement.
    pub run: RunConfig,
}

/// The parameters of a run, and which of its messages count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunConfig {
    /// The seed of all randomness.
    pub seed: u64,
    /// Share of the messages that run but are not measured, from the first arrivals.
    pub warmup_fraction: f64,
    /// Share of the messages that run but are not measured, from the last arrivals.
    pub cooldown_fraction: f64,
    /// The length of the run.
    pub length: Length,
}

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The workload's number of messages.
    Given,
    /// As many messages as it takes to know the numbers, whatever the workload's number.
    UntilKnown {
        /// Events over which all attempts together do not go, as far as the next one's can be
        /// told. The first one is made whatever it takes.
        events_max: u64,
    },
}

/// Changes to a scenario's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys that override the file, in order.
    pub settings: Vec<Setting>,
    /// A trace that replaces the workload.
    pub trace: Option<TraceConfig>,
}

impl Scenario {
    /// Reads the scenario in `file`. `fabrics` are the names of the registry, the default first.
    /// Other files that the scenario names are looked up from its folder.
    ///
    /// # Errors
    /// [`InputError`] for a file that cannot be read, and the errors of [`Scenario::parse`].
    pub fn load(file: &Path, fabrics: &[&str]) -> Result<Scenario, InputError> {
        Scenario::load_with(file, &Changes::default(), fabrics)
    }

    /// Reads a scenario as [`Scenario::load`] does, with changes.
    ///
    /// # Errors
    /// The errors of [`Scenario::load`]; a setting is named as `--set`.
    pub fn load_with(
        file: &Path,
        changes: &Changes,
        fabrics: &[&str],
    ) -> Result<Scenario, InputError> {
        let text = read_text(file)?;
        Scenario::parse_with(&text, file, changes, fabrics)
    }

    /// Reads a scenario from its text; errors name it by `file`.
    ///
    /// # Errors
    /// [`InputError`] with the line and key of text that is not TOML, unknown or invalid.
    ///
    /// # Panics
    /// If `fabrics` is empty.
    pub fn parse(text: &str, file: &Path, fabrics: &[&str]) -> Result<Scenario, InputError> {
        Scenario::parse_with(text, file, &Changes::default(), fabrics)
    }

    /// Reads a scenario as [`Scenario::parse`] does, with changes.
    ///
    /// # Errors
    /// The errors of [`Scenario::parse`]; a setting is named as `--set`.
    ///
    /// # Panics
    /// In the cases of [`Scenario::parse`].
    pub fn parse_with(
        text: &str,
        file: &Path,
        changes: &Changes,
        fabrics: &[&str],
    ) -> Result<Scenario, InputError> {
        read(text, file, changes, fabrics).map(|(scenario, _)| scenario)
    }

    /// The default scenario, with changes.
    ///
    /// # Errors
    /// [`InputError`] for a setting that is unknown or invalid.
    ///
    /// # Panics
    /// In the cases of [`Scenario::parse`].
    pub fn default_with(changes: &Changes, fabrics: &[&str]) -> Result<Scenario, InputError> {
        read(DEFAULTS, Path::new("defaults"), changes, fabrics).map(|(scenario, _)| scenario)
    }

    /// The default scenario with the messages of `trace`, all of which are measured.
    ///
    /// # Panics
    /// In the cases of [`Scenario::parse`].
    #[must_use]
    pub fn of_trace(trace: TraceConfig, fabrics: &[&str]) -> Scenario {
        let (defaults, _) = defaults(fabrics);
        let run = RunConfig {
            warmup_fraction: 0.0,
            cooldown_fraction: 0.0,
            length: Length::Given,
            ..defaults.run
        };
        Scenario { workload: WorkloadConfig::Trace(trace), run, ..defaults }
    }

    /// Number of messages, if the scenario gives it. A trace does not, and neither does a run that
    /// ends when its numbers are known.
    #[must_use]
    pub fn messages(&self) -> Option<u64> {
        match (&self.workload, self.run.length) {
            (WorkloadConfig::Poisson(poisson), Length::Given) => Some(poisson.messages),
            (WorkloadConfig::Program(program), _) => Some(program.size(self.fabric.nodes).messages),
            _ => None,
        }
    }

    /// The same scenario with this number of messages. A trace or a program is unchanged.
    #[must_use]
    pub fn with_messages(&self, messages: u64) -> Scenario {
        let mut given = self.clone();
        given.run.length = Length::Given;
        if let WorkloadConfig::Poisson(poisson) = &mut given.workload {
            poisson.messages = messages;
        }
        given
    }

    /// Approximate duration relative to other scenarios of its fabric, without a unit. For a trace
    /// it is unknown, and longer than any other.
    #[must_use]
    pub fn work(&self) -> f64 {
        match &self.workload {
            WorkloadConfig::Poisson(poisson) => {
                let packets = 1.0 + poisson.sizes.mean_bytes() / self.fabric.packet.mtu.0 as f64;
                // Waiting messages cost slightly more.
                poisson.messages as f64 * packets * (1.0 + poisson.load)
            }
            WorkloadConfig::Trace(_) | WorkloadConfig::ExecutionTrace(_) => f64::INFINITY,
            WorkloadConfig::Program(program) => {
                let nodes = self.fabric.nodes;
                let bytes = program.message_bytes_max(nodes).0 as f64;
                let packets = 1.0 + bytes / self.fabric.packet.mtu.0 as f64;
                program.size(nodes).messages as f64 * packets
            }
        }
    }

    /// Every key of a scenario, with its default and its valid values.
    ///
    /// # Panics
    /// In the cases of [`Scenario::parse`].
    #[must_use]
    pub fn keys(fabrics: &[&str]) -> Vec<Key> {
        defaults(fabrics).1
    }
}

/// The text of a scenario, or of a file that varies one. If the file does not exist, the text is
/// the shipped file of this name.
///
/// # Errors
/// [`InputError`] for a file that cannot be read, is too long, or is not UTF-8.
pub fn read_text(file: &Path) -> Result<String, InputError> {
    if let Some((_, text)) = shipped(file) {
        return Ok(text.to_owned());
    }
    let unreadable = |error: std::io::Error| InputError::io(file, "be read", &error);
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(unreadable)?;
    opened.take(SCENARIO_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > SCENARIO_BYTES_MAX {
        let problem = format!("longer than {SCENARIO_BYTES_MAX} B: no scenario");
        return Err(InputError::file(file, problem));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count() as u64;
        InputError::line(file, line, "not UTF-8 text: a scenario is TOML")
    })
}

/// A scenario without keys.
const DEFAULTS: &str = "[run]\n";

fn defaults(fabrics: &[&str]) -> (Scenario, Vec<Key>) {
    let read = read(DEFAULTS, Path::new("defaults"), &Changes::default(), fabrics);
    read.expect("every key has a default")
}

fn read(
    text: &str,
    file: &Path,
    changes: &Changes,
    fabrics: &[&str],
) -> Result<(Scenario, Vec<Key>), InputError> {
    let lines = Lines::new(text, &changes.settings);
    let source =
        Source { file, text: &lines.text, file_bytes: text.len(), keys: RefCell::default() };
    let mut values = DeTable::parse(text).map_err(|error| match error.span() {
        // An error at the end of the text still belongs to the file.
        Some(span) => InputError::line(
            file,
            source.line(span.start),
            format!("not TOML: {}", error.message()),
        ),
        None => InputError::file(file, format!("not TOML: {}", error.message())),
    })?;
    if values.get_ref().is_empty() {
        let problem = "empty: a scenario has at least one key, such as fabric.kind";
        return Err(InputError::file(file, problem));
    }
    lines.apply(values.get_mut());
    // The points of a comparison are read by `compare`; a single run has none.
    values.get_mut().remove("compare");
    let root = source.root(values.get_ref());
    let folder = file.parent().unwrap_or(Path::new(""));
    let (fabric_kind, fabric) =
        FabricConfig::read(&root, fabrics, FABRICS.iter().filter_map(|fabric| fabric.parameters))?;
    let (mut workload, is_auto) = workload::read(&root, &fabric, folder)?;
    if let Some(trace) = &changes.trace {
        workload = WorkloadConfig::Trace(trace.clone());
    }
    let run = workload::read_run(&root, &workload, is_auto)?;
    root.finish()?;
    let keys = source.keys.into_inner();
    check_settings(changes, &keys)?;
    Ok((Scenario { fabric_kind, fabric, workload, run }, keys))
}

/// Refuses a change that would have no effect.
fn check_settings(changes: &Changes, keys: &[Key]) -> Result<(), InputError> {
    for setting in &changes.settings {
        let key = setting.key();
        let refuse = |problem: &str| Err(InputError::file(Path::new(SET), problem));
        if changes.trace.is_some() && key.split('.').next() == Some("workload") {
            return refuse(&format!("{key}: it changes nothing: allowed only without --trace"));
        }
        let inside = |known: &Key| {
            known
                .name
                .strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !keys.iter().any(inside) {
            return refuse(&format!("{key}: unknown key: docs/reference/scenario.md lists all"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
