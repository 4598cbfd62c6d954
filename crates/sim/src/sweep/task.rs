//! A point as it is given to another thread, process or machine.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::identity::Identities;
use super::{Point, Record, Sweep};
use crate::registry::{self, FABRIC_NAMES};
use crate::run::{RunFailure, RunOptions, run, shell_line};
use crate::scenario::{Changes, Scenario, Setting};
use crate::workload::InputError;

/// Everything that a run of a point needs, except the files that its scenario names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The path of the scenario's file, from the root: files that it names are looked up from its
    /// folder.
    scenario: String,
    /// The text of the scenario.
    text: String,
    settings: Vec<String>,
    fabric: String,
    seed: u64,
    /// The identity of the point, where the sweep was read.
    point: String,
}

/// Why a task has no record.
#[derive(Debug, thiserror::Error)]
pub enum TaskFailure {
    /// The task cannot be run here.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The run of the task failed.
    #[error(transparent)]
    Run(#[from] RunFailure),
}

impl Sweep {
    /// The task that runs `point` elsewhere.
    ///
    /// # Errors
    /// [`InputError`] when the current folder is unknown.
    pub fn task(&self, point: &Point) -> Result<Task, InputError> {
        let absolute = std::path::absolute(&self.scenario)
            .map_err(|error| InputError::io(&self.scenario, "be found", &error))?;
        Ok(Task {
            scenario: absolute.display().to_string(),
            text: self.text.clone(),
            settings: self.settings_of(point).collect(),
            fabric: point.fabric.name.to_owned(),
            seed: point.scenario.run.seed,
            point: point.identity.to_string(),
        })
    }

    /// The command that runs `point` alone.
    #[must_use]
    pub fn command(&self, point: &Point) -> String {
        let settings: Vec<String> = self.settings_of(point).collect();
        let (fabric, seed) = (point.fabric.name, point.scenario.run.seed);
        command(&self.scenario.display().to_string(), &settings, fabric, seed)
    }

    fn settings_of(&self, point: &Point) -> impl Iterator<Item = String> {
        let axes = self.axes.iter().zip(&point.values);
        let axes = axes.map(|(key, value)| format!("{key}={value}"));
        self.settings.iter().map(ToString::to_string).chain(axes)
    }
}

fn command(scenario: &str, settings: &[String], fabric: &str, seed: u64) -> String {
    let mut words = vec!["sim", scenario];
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let seed = seed.to_string();
    words.extend(["--fabric", fabric, "--seed", &seed]);
    shell_line(words.into_iter())
}

impl Task {
    /// The command that runs the task.
    #[must_use]
    pub fn command(&self) -> String {
        command(&self.scenario, &self.settings, &self.fabric, self.seed)
    }

    /// Runs the task, until `interrupt` is set.
    ///
    /// # Errors
    /// [`TaskFailure`]; also if this program, or a file that the scenario names, differs from the
    /// sweep's. The record would then not be the requested one.
    pub fn run(&self, interrupt: &AtomicBool) -> Result<Record, TaskFailure> {
        let file = Path::new(&self.scenario);
        let wrong = |problem: String| InputError::file(file, problem);
        let settings = self.settings.iter().map(|setting| setting.parse());
        let settings: Vec<Setting> = settings
            .collect::<Result<_, _>>()
            .map_err(|error: crate::scenario::SettingError| wrong(error.to_string()))?;
        let changes = Changes { settings, trace: None };
        let mut scenario = Scenario::parse_with(&self.text, file, &changes, FABRIC_NAMES)?;
        scenario.run.seed = self.seed;
        let fabric = registry::find(&self.fabric)
            .ok_or_else(|| wrong(format!("fabric {}: not known here", self.fabric)))?;
        let identity = Identities::new().of(fabric.name, &scenario)?;
        if identity.to_string() != self.point {
            let problem = "another point here than where the sweep was started: ethermem or the \
                           trace differs";
            return Err(wrong(problem.to_owned()).into());
        }
        let options = RunOptions {
            fabric,
            label: String::new(),
            scenario_name: self.scenario.clone(),
            commit: None,
            interrupt,
            progress: &|_| {},
            messages: None,
            timeline: None,
            ways: false,
        };
        Ok(Record::new(identity, &run(&scenario, options)?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sweep(folder: &Path) -> Sweep {
        fs::write(folder.join("base.toml"), "[fabric]\nnodes = 8\nkind = 'ideal'\n").unwrap();
        let text = "scenario = 'base.toml'\nfabrics = ['edm']\nseeds = [7]\n\
                    [vary]\nworkload.messages = [100, 200]\n";
        fs::write(folder.join("w.toml"), text).unwrap();
        let set = "workload.load=0.3".parse().unwrap();
        Sweep::load(&folder.join("w.toml"), &[set]).unwrap()
    }

    #[test]
    fn a_task_runs_its_point_wherever_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = sweep(folder.path());
        let point = &sweep.points[1];
        let sent = serde_json::to_string(&sweep.task(point).unwrap()).unwrap();
        // Everything it needs of the scenario's file is in the task.
        fs::remove_file(folder.path().join("base.toml")).unwrap();
        let task: Task = serde_json::from_str(&sent).unwrap();
        let record = task.run(&AtomicBool::new(false)).unwrap();
        assert_eq!(record.point, point.identity.to_string());
        let started = super::super::METRICS.iter().position(|m| m.name == "messages_started");
        assert_eq!(record.value(started.unwrap()), Some(200.0));
        let command = sweep.command(point);
        assert!(command.starts_with("ethermem sim ") && command.contains("base.toml"), "{command}");
        let set = "--set 'workload.load=0.3' --set 'workload.messages=200' --fabric edm --seed 7";
        assert!(command.ends_with(set) && task.command().ends_with(set), "{command}");
    }

    #[test]
    fn a_task_of_another_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = sweep(folder.path());
        let task = sweep.task(&sweep.points[0]).unwrap();
        let other = Task { point: "0".repeat(64), ..task.clone() };
        let error = other.run(&AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("base.toml: another point here than "), "{error}");
        let unknown = Task { fabric: "emd".to_owned(), ..task };
        let error = unknown.run(&AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.ends_with("fabric emd: not known here"), "{error}");
    }
}
