//! Selection of messages and their network.

use std::path::{Path, PathBuf};

use ethermem_sim::compare::Comparison;
use ethermem_sim::registry::{self, FABRIC_NAMES, FabricEntry};
use ethermem_sim::run::label_of;
use ethermem_sim::scenario::{Changes, LINK_GBPS, Scenario, Setting, shipped};
use ethermem_sim::workload::{InputError, TraceConfig, TraceFormat};

use crate::error::Error;
use crate::face::Face;

/// Messages to run, and their network.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Path of a scenario, or the name of a built-in one.
    pub scenario: Option<PathBuf>,
    /// Trace whose messages run instead of the scenario's.
    pub trace: Option<PathBuf>,
    /// Format of the trace; `None` selects it by its extension.
    pub trace_format: Option<TraceFormat>,
    /// Seed of every random draw; `None` is the scenario's.
    pub seed: Option<u64>,
    /// Keys that override the scenario's.
    pub settings: Vec<Setting>,
}

/// A scenario with its changes, and its name for people.
pub(crate) struct Selected {
    pub(crate) scenario: Scenario,
    /// The scenario or trace as given.
    pub(crate) name: String,
}

impl Selection {
    pub(crate) fn read(&self, face: &dyn Face) -> Result<Selected, Error> {
        if let Some(file) = &self.scenario {
            note_shipped(file, face);
        }
        let trace = self.trace.as_deref().map(|path| self.trace_config(path)).transpose()?;
        let changes = Changes { settings: self.settings.clone(), trace };
        let mut scenario = match &self.scenario {
            Some(file) => Scenario::load_with(file, &changes, FABRIC_NAMES)?,
            None => Scenario::default_with(&changes, FABRIC_NAMES)?,
        };
        if let Some(seed) = self.seed {
            scenario.run.seed = seed;
        }
        let given = self.trace.as_ref().or(self.scenario.as_ref());
        let name = given.map(|path| path.display().to_string()).unwrap_or_default();
        Ok(Selected { scenario, name })
    }

    /// The table `[compare]` of the scenario, if it has one, and the scenario's name for people.
    pub(crate) fn comparison(
        &self,
        face: &dyn Face,
    ) -> Result<Option<(String, Comparison)>, Error> {
        let Some(file) = &self.scenario else { return Ok(None) };
        let Some(comparison) = Comparison::load(file, &self.settings, self.seed)? else {
            return Ok(None);
        };
        note_shipped(file, face);
        if let Some(trace) = &self.trace {
            let problem = "the scenario's table [compare] has messages of its own";
            return Err(Error::Request(format!("--trace {}: {problem}", trace.display())));
        }
        Ok(Some((file.display().to_string(), comparison)))
    }

    /// These arguments as given.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        words.extend(self.scenario.iter().map(|path| path.display().to_string()));
        if let Some(trace) = &self.trace {
            words.extend(["--trace".to_owned(), trace.display().to_string()]);
        }
        if let Some(format) = self.trace_format {
            words.extend(["--trace-format".to_owned(), format.name().to_owned()]);
        }
        if let Some(seed) = self.seed {
            words.extend(["--seed".to_owned(), seed.to_string()]);
        }
        let set = self.settings.iter().map(ToString::to_string);
        words.extend(set.flat_map(|setting| ["--set".to_owned(), setting]));
        words
    }

    /// Settings of `--set` that concern a run, not a comparison.
    pub(crate) fn settings_of_scenario(&self) -> Vec<String> {
        let of_scenario = |set: &&Setting| !set.key().starts_with("compare.");
        self.settings.iter().filter(of_scenario).map(ToString::to_string).collect()
    }

    fn trace_config(&self, path: &Path) -> Result<TraceConfig, InputError> {
        let format = self.trace_format.or_else(|| TraceFormat::of_path(path)).ok_or_else(|| {
            let problem = "its extension names no format: must be .csv, .parquet, or any with \
                           --trace-format";
            InputError::file(path, problem)
        })?;
        Ok(TraceConfig { path: path.to_owned(), format })
    }
}

impl Selected {
    /// Label that distinguishes its runs from those of another scenario.
    pub(crate) fn label(&self) -> String {
        label_of(&self.name)
    }
}

/// Notes that a built-in file is used, if `file` does not exist.
pub fn note_shipped(file: &Path, face: &dyn Face) {
    if let Some((path, _)) = shipped(file) {
        let file = file.display();
        face.note(&format!("note: {file}: no such file; it is {path} of the program"));
    }
}

/// The fabric with this name.
///
/// # Errors
///
/// One line with what is allowed.
pub fn fabric(name: &str) -> Result<&'static FabricEntry, String> {
    registry::find(name).ok_or_else(|| format!("must be one of {}", FABRIC_NAMES.join(", ")))
}

/// The trace format with this name.
///
/// # Errors
///
/// One line with what is allowed.
pub fn trace_format(name: &str) -> Result<TraceFormat, String> {
    let format = TraceFormat::ALL.into_iter().find(|format| format.name() == name);
    format.ok_or_else(|| {
        let names = TraceFormat::ALL.map(TraceFormat::name);
        format!("must be one of {}", names.join(", "))
    })
}

/// Parses an allowed link rate in Gb/s.
///
/// # Errors
///
/// One line with what is allowed.
pub fn link_gbps(text: &str) -> Result<u64, String> {
    let gbps = text.parse().ok().filter(|gbps| LINK_GBPS.contains(gbps));
    let names = || LINK_GBPS.map(|gbps| gbps.to_string()).join(", ");
    gbps.ok_or_else(|| format!("must be one of {}", names()))
}
