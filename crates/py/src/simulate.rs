//! One run.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use ethermem_sim::output::{MessageWriter, to_json};
use ethermem_sim::registry::{self, FABRIC_NAMES};
use ethermem_sim::run::{RunOptions, label_of, run};
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use pyo3::prelude::*;

use crate::attended::attended;
use crate::error::Failure;

/// Parameters of a run.
struct Request {
    /// Scenario in TOML; `None` to read it from the file `name`.
    text: Option<String>,
    name: String,
    settings: Vec<String>,
    fabric: Option<String>,
    seed: Option<u64>,
    messages: Option<PathBuf>,
    /// Command that repeats the call.
    command: String,
}

/// Runs a scenario: `text`, or else the file `name`. Returns the result as the command prints it,
/// and the distributions of latency by kind, both as JSON.
#[pyfunction]
#[pyo3(signature = (text, name, settings, fabric, seed, messages, command))]
#[expect(clippy::too_many_arguments, reason = "the package names them")]
pub(crate) fn simulate(
    py: Python<'_>,
    text: Option<String>,
    name: String,
    settings: Vec<String>,
    fabric: Option<String>,
    seed: Option<u64>,
    messages: Option<PathBuf>,
    command: String,
) -> PyResult<(String, String)> {
    let request = Request { text, name, settings, fabric, seed, messages, command };
    attended(py, None, move |interrupt| request.run(interrupt))
}

impl Request {
    fn run(&self, interrupt: &AtomicBool) -> Result<(String, String), Failure> {
        let scenario = self.scenario()?;
        let fabric = self.fabric.as_ref().unwrap_or(&scenario.fabric_kind);
        let fabric = registry::find(fabric).ok_or_else(|| {
            let allowed = FABRIC_NAMES.join(", ");
            Failure::Input(format!("fabric = {fabric:?}: must be one of {allowed}"))
        })?;
        let messages = self.messages.as_deref().map(MessageWriter::create).transpose()?;
        let options = RunOptions {
            fabric,
            label: label_of(&self.name),
            scenario_name: self.name.clone(),
            commit: option_env!("ETHERMEM_COMMIT").map(str::to_owned),
            interrupt,
            progress: &|_| {},
            messages,
            timeline: None,
            ways: false,
        };
        let result =
            run(&scenario, options).map_err(|failure| Failure::of_run(&failure, &self.command))?;
        let kinds = &result.kinds;
        let rmw = kinds.rmw.as_ref().map(|rmw| &rmw.latency_cdf);
        let cdfs = serde_json::json!({
            "read": kinds.read.latency_cdf,
            "write": kinds.write.latency_cdf,
            "rmw": rmw,
            "all": kinds.all.latency_cdf,
        });
        Ok((to_json(&result), cdfs.to_string()))
    }

    fn scenario(&self) -> Result<Scenario, Failure> {
        let settings = self.settings.iter().map(|setting| setting.parse());
        let settings: Vec<Setting> = settings.collect::<Result<_, _>>()?;
        let changes = Changes { settings, trace: None };
        let file = self.name.as_ref();
        let mut scenario = match &self.text {
            Some(text) => Scenario::parse_with(text, file, &changes, FABRIC_NAMES)?,
            None => Scenario::load_with(file, &changes, FABRIC_NAMES)?,
        };
        if let Some(seed) = self.seed {
            scenario.run.seed = seed;
        }
        Ok(scenario)
    }
}
