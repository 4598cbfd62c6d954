//! Results that a study keeps, so that a repeated command continues.

use std::path::{Path, PathBuf};

use ethermem_pager::Repeats;
use ethermem_sim::output::{OutputError, to_json, write_file};
use ethermem_sim::report::ReportInput;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::folder::Folder;
use crate::replay::Setup;
use crate::runner::Runner;

const INPUTS: &str = "inputs.json";

/// Everything on which kept files depend, besides the fraction, the fabric and the rate in their
/// names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Command of the program, quoted for a shell.
    pub program: String,
    /// True if pages are prefetched.
    pub prefetch: bool,
    /// Least number of runs with delays per point, and of runs without.
    pub repeats: u32,
    /// Largest number of them.
    pub repeats_max: u32,
    /// Options of the replay, as text.
    pub replay: String,
    /// Version of this command.
    pub version: String,
    /// Commit of this command, if known.
    pub commit: Option<String>,
}

impl Inputs {
    pub(super) fn of(
        program: String,
        prefetch: bool,
        repeats: Repeats,
        setup: &Setup,
        runner: &Runner<'_>,
    ) -> Inputs {
        Inputs {
            program,
            prefetch,
            repeats: repeats.least,
            repeats_max: repeats.most,
            replay: setup.words(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: runner.commit.map(str::to_owned),
        }
    }

    /// Name of the first input that differs.
    fn differs(&self, other: &Inputs) -> Option<&'static str> {
        let pairs = [
            ("program", self.program == other.program),
            ("--no-prefetch", self.prefetch == other.prefetch),
            ("--repeats", self.repeats == other.repeats),
            ("--repeats-max", self.repeats_max == other.repeats_max),
            ("replay", self.replay == other.replay),
            ("version", (&self.version, &self.commit) == (&other.version, &other.commit)),
        ];
        pairs.into_iter().find(|(_, same)| !same).map(|(name, _)| name)
    }
}

/// The folder of a study.
pub(super) struct Kept {
    path: PathBuf,
    folder: Folder,
}

impl Kept {
    /// Creates the folder, or continues in one with equal inputs.
    pub(super) fn open(path: &Path, inputs: &Inputs) -> Result<Kept, Error> {
        let kept = Kept { path: path.to_owned(), folder: Folder::prepare(path)? };
        match kept.read::<Inputs>(INPUTS)?.map(|there| there.differs(inputs)) {
            Some(None) => {}
            Some(Some(name)) => {
                return Err(Error::Request(format!(
                    "{} holds a study of another {name}: must be the same inputs, or another \
                     folder for --out",
                    path.display()
                )));
            }
            None => {}
        }
        Ok(kept)
    }

    /// Binds the folder to these inputs, once there is something to keep.
    pub(super) fn begin(&self, inputs: &Inputs) -> Result<(), Error> {
        self.write(INPUTS, inputs)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Content kept under this name.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let path = self.path(name);
        let refused = |problem: &dyn std::fmt::Display| {
            let path = path.display();
            Error::Request(format!("{path}: {problem}; must be a file of this command, or none"))
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| refused(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(&error)),
        }
    }

    pub(super) fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        Ok(write_file(&self.path(name), to_json(value).as_bytes())?)
    }

    /// Content kept under this name; if absent, it is made and kept.
    pub(super) fn or_make<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(there) = self.read(name)? {
            return Ok(there);
        }
        let made = make()?;
        self.write(name, &made)?;
        Ok(made)
    }

    pub(super) fn write_page<T: Serialize>(
        self,
        results: &T,
        page: &ReportInput,
    ) -> Result<PathBuf, OutputError> {
        self.folder.write(results, page)
    }
}

#[cfg(test)]
mod tests {
    use super::{Inputs, Kept};

    fn inputs(repeats: u32) -> Inputs {
        Inputs {
            program: "./query".to_owned(),
            prefetch: true,
            repeats,
            repeats_max: 12,
            replay: "--cluster 15".to_owned(),
            version: "1".to_owned(),
            commit: None,
        }
    }

    #[test]
    fn what_is_kept_is_not_made_again_and_other_inputs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/study");
        let kept = Kept::open(&path, &inputs(3)).unwrap();
        kept.begin(&inputs(3)).unwrap();
        let made: u32 = kept.or_make::<u32>("n.json", || Ok(7)).unwrap();
        assert_eq!(made, 7);
        drop(kept);
        let kept = Kept::open(&path, &inputs(3)).unwrap();
        let again = kept.or_make::<u32>("n.json", || panic!("kept"));
        assert_eq!(again.unwrap(), 7);
        drop(kept);
        let refused = Kept::open(&path, &inputs(4)).err().map(|failure| format!("{failure:?}"));
        assert!(refused.unwrap().contains("another --repeats: must be the same inputs"));
        std::fs::write(path.join("n.json"), "{").unwrap();
        let kept = Kept::open(&path, &inputs(3)).unwrap();
        let broken = kept.read::<u32>("n.json").unwrap_err();
        assert!(format!("{broken:?}").contains("n.json: "), "{broken:?}");
    }
}
