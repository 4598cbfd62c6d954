//! The hardware's tool flow: Python in `rtl/flow`, which builds the model and runs it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::Error;

/// File that identifies the root of the repository.
const MARK: &str = "rtl/flow/system.py";
/// Number of nodes: a compute node and a memory node.
const NODES: &str = "2";
/// Environment variable with the path of the model's waves.
const WAVES: &str = "WAVES";

/// A repository whose RTL runs.
pub(crate) struct Flow {
    root: PathBuf,
}

/// Values that the model measured, by name.
pub(crate) struct Measured(BTreeMap<String, u64>);

impl Flow {
    /// The repository at `given`, or the nearest one above the working directory.
    pub(crate) fn find(given: Option<&Path>) -> Result<Flow, Error> {
        let is_root = |folder: &&Path| folder.join(MARK).is_file();
        if let Some(folder) = given {
            let root = Some(folder).filter(is_root).map(Path::to_path_buf);
            let said = format!("--rtl {}: no {MARK} there; must be", folder.display());
            return root
                .map(|root| Flow { root })
                .ok_or_else(|| Error::Request(format!("{said} the root of the repository")));
        }
        let here = std::env::current_dir().map_err(|error| Error::Machine(error.to_string()))?;
        let root = here.ancestors().find(is_root).map(Path::to_path_buf);
        let said = format!("no {MARK} in {} or above it", here.display());
        root.map(|root| Flow { root })
            .ok_or_else(|| Error::Request(format!("{said}; --rtl names the repository")))
    }

    /// Runs the model with `arguments`, `stdin` as its standard input, and writes its waves to a
    /// file if one is given. The first run builds the model; with waves it is a different one.
    pub(crate) fn run(
        &self,
        arguments: &[&str],
        stdin: &str,
        waves: Option<&Path>,
    ) -> Result<Measured, Error> {
        let mut command = Command::new("python3");
        command.current_dir(&self.root).env("PYTHONPATH", "rtl").env_remove(WAVES);
        if let Some(file) = waves {
            command.env(WAVES, file);
        }
        command.args(["scripts/python_env.py", "rtl", "python", "-m", "flow.system", NODES]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error| Error::Machine(format!("python3, which builds the RTL: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        let mut input = child.stdin.take().expect("it was piped");
        // A model that stops early reports the reason, and reads no more.
        let written = input.write_all(stdin.as_bytes());
        drop(input);
        let output = child.wait_with_output().map_err(failed)?;
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default();
        if !output.status.success() || written.is_err() || last.starts_with("SKIPPED") {
            let why = why(output.status, last);
            return Err(Error::Machine(format!("the RTL did not run: {why}")));
        }
        Ok(Measured::of(last))
    }
}

/// The reason why there is no result, from the status and the last line.
fn why(status: ExitStatus, last: &str) -> String {
    match status.code() {
        None => format!("ended by {status}"),
        Some(_) if last.is_empty() => "it says why above".to_owned(),
        Some(_) => last.to_owned(),
    }
}

/// Absolute path of the file for waves; an unusable one is refused before anything is built.
pub(crate) fn waves_file(given: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    let Some(path) = given else { return Ok(None) };
    let refused = |error| {
        let said = format!("--fst {}: {error}", path.display());
        Error::Request(format!("{said}; must be a file that can be written"))
    };
    File::create(path).map_err(refused)?;
    path.canonicalize().map(Some).map_err(refused)
}

impl Measured {
    fn of(line: &str) -> Measured {
        let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
        Measured(
            pairs.filter_map(|(name, value)| Some((name.into(), value.parse().ok()?))).collect(),
        )
    }

    /// A number that the model always reports.
    pub(crate) fn get(&self, name: &str) -> Result<u64, Error> {
        let found = self.0.get(name).copied();
        found.ok_or_else(|| Error::Machine(format!("the RTL did not say {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_name_and_what_is_missing_is_named() {
        let measured = Measured::of("operations=3 cycles=70 file=x");
        assert_eq!(measured.get("cycles").unwrap(), 70);
        let Err(Error::Machine(said)) = measured.get("file") else { panic!("it is no number") };
        assert!(said.contains("file"));
    }

    #[test]
    #[cfg(unix)]
    fn what_a_signal_ended_says_nothing_above() {
        use std::os::unix::process::ExitStatusExt;
        let (killed, failed) = (ExitStatus::from_raw(15), ExitStatus::from_raw(2 << 8));
        assert_eq!(why(killed, "cycles=7"), "ended by signal: 15 (SIGTERM)");
        assert_eq!(why(failed, ""), "it says why above");
        assert_eq!(why(failed, "SKIPPED: perl"), "SKIPPED: perl");
    }

    #[test]
    fn a_folder_without_the_flow_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let Err(Error::Request(said)) = Flow::find(Some(folder.path())) else {
            panic!("nothing is there")
        };
        assert!(said.contains("--rtl") && said.contains(MARK));
    }
}
