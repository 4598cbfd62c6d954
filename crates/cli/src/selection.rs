//! Arguments that say which messages run on which network.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use ethermem_sim::compare::Comparison;
use ethermem_sim::registry::{self, FABRIC_NAMES, FabricEntry};
use ethermem_sim::run::label_of;
use ethermem_sim::scenario::{Changes, LINK_GBPS, Scenario, Setting, shipped};
use ethermem_sim::workload::{InputError, TraceConfig, TraceFormat};

use crate::failure::Failure;

/// Which messages, on which network.
#[derive(Args, Clone, Debug)]
pub(crate) struct Selection {
    /// Scenario: a TOML file; docs/reference/scenario.md lists its keys
    #[arg(value_name = "SCENARIO", required_unless_present = "trace")]
    scenario: Option<PathBuf>,

    /// Run the messages of this trace instead of the scenario's; without a scenario everything
    /// else has its default
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// How the trace is written [default: by its extension, .csv or .parquet]
    #[arg(long, value_name = "FORMAT", requires = "trace", value_parser = trace_format)]
    trace_format: Option<TraceFormat>,

    /// Seed of every random draw, 0 to 2^64 - 1 [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Set a key of the scenario, as if its file said so: fabric.edm.chunk_bytes=128. A word needs
    /// no quotes, no value takes the key out, files are looked up from the scenario's folder.
    /// Repeat it for more keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
}

/// A scenario with its changes, and what people call it.
pub(crate) struct Selected {
    pub(crate) scenario: Scenario,
    /// The scenario or trace, as it was given.
    pub(crate) name: String,
}

impl Selection {
    pub(crate) fn read(&self) -> Result<Selected, Failure> {
        if let Some(file) = &self.scenario {
            note_shipped(file);
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

    /// The table `[compare]` of the scenario, where it has one, and what people call the scenario.
    pub(crate) fn comparison(&self) -> Result<Option<(String, Comparison)>, Failure> {
        let Some(file) = &self.scenario else { return Ok(None) };
        let Some(comparison) = Comparison::load(file, &self.settings, self.seed)? else {
            return Ok(None);
        };
        note_shipped(file);
        if let Some(trace) = &self.trace {
            let problem = "the scenario's table [compare] has messages of its own";
            return Err(Failure::input(format!("--trace {}: {problem}", trace.display())));
        }
        Ok(Some((file.display().to_string(), comparison)))
    }

    /// These arguments as they were given.
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

    /// What `--set` says of a run, and not of a comparison.
    pub(crate) fn settings_of_scenario(&self) -> Vec<String> {
        let of_scenario = |set: &&Setting| !set.key().starts_with("compare.");
        self.settings.iter().filter(of_scenario).map(ToString::to_string).collect()
    }

    fn trace_config(&self, path: &Path) -> Result<TraceConfig, InputError> {
        let format = self.trace_format.or_else(|| TraceFormat::of_path(path)).ok_or_else(|| {
            let problem = "its extension names no format: allowed are .csv, .parquet, or any with \
                           --trace-format";
            InputError::file(path, problem)
        })?;
        Ok(TraceConfig { path: path.to_owned(), format })
    }
}

impl Selected {
    /// What tells its runs from those of another scenario.
    pub(crate) fn label(&self) -> String {
        label_of(&self.name)
    }
}

/// Says so where a file of the program's own is taken, as there is none of that name.
pub(crate) fn note_shipped(file: &Path) {
    if let Some((path, _)) = shipped(file) {
        let what = format!("note: {}: no such file; it is {path} of the program", file.display());
        let _ = std::io::stderr().write_all(format!("{what}\n").as_bytes());
    }
}

/// The fabric of a name, for clap.
pub(crate) fn fabric(name: &str) -> Result<&'static FabricEntry, String> {
    registry::find(name).ok_or_else(|| format!("allowed are {}", FABRIC_NAMES.join(", ")))
}

/// The trace format of a name, for clap.
pub(crate) fn trace_format(name: &str) -> Result<TraceFormat, String> {
    let format = TraceFormat::ALL.into_iter().find(|format| format.name() == name);
    format.ok_or_else(|| {
        let names = TraceFormat::ALL.map(TraceFormat::name);
        format!("allowed are {}", names.join(", "))
    })
}

/// A rate that a link may have, for clap.
pub(crate) fn link_gbps(text: &str) -> Result<u64, String> {
    let gbps = text.parse().ok().filter(|gbps| LINK_GBPS.contains(gbps));
    gbps.ok_or_else(|| format!("allowed are {}", LINK_GBPS.map(|gbps| gbps.to_string()).join(", ")))
}
