//! The folder of a page, made before the runs so that an unusable one is found at once.

use std::path::{Path, PathBuf};

use ethermem_sim::output::{AtomicFile, MadeFolder, OutputError, to_json, write_file};
use ethermem_sim::report::{Origin, ReportInput, write_report};
use serde::Serialize;

use crate::runner::{Runner, threads_default};

/// A folder for a page. If no page is written, the parts of it that were created are removed again.
#[derive(Debug)]
pub(crate) struct Folder(MadeFolder);

impl Folder {
    /// Creates `path` and checks that a file can be written there.
    pub(crate) fn prepare(path: &Path) -> Result<Folder, OutputError> {
        let folder = MadeFolder::make(path)?;
        drop(AtomicFile::create(&path.join("index.html"))?);
        Ok(Folder(folder))
    }

    /// Writes the results as JSON and the page, and returns the page's path.
    pub(crate) fn write<T: Serialize + ?Sized>(
        self,
        results: &T,
        page: &ReportInput,
    ) -> Result<PathBuf, OutputError> {
        write_file(&self.0.path().join("results.json"), to_json(results).as_bytes())?;
        write_report(self.0.path(), page)
    }
}

/// Origin of the numbers on a page that `command` repeats.
pub(crate) fn origin(runner: &Runner<'_>, command: String, seed: u64) -> Origin {
    Origin {
        command,
        seed,
        commit: runner.commit.map(str::to_owned),
        machine: format!("{}, {} threads", std::env::consts::ARCH, threads_default()),
        versions: vec![("ethermem".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
    }
}
