//! The folder of a report, made before the runs so that a bad one is found at once.

use std::fs;
use std::path::{Path, PathBuf};

use ethermem_sim::output::{AtomicFile, OutputError};

/// Folders that were made for a report. Dropped, those that are still empty go again.
pub(super) struct Folder {
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes `path` and sees whether a file can be written there.
    pub(super) fn prepare(path: &Path) -> Result<Folder, OutputError> {
        let missing = path.ancestors().take_while(|folder| !folder.exists());
        let made = missing.filter(|folder| !folder.as_os_str().is_empty());
        let folder = Folder { made: made.map(Path::to_owned).collect() };
        fs::create_dir_all(path).map_err(|reason| OutputError { path: path.to_owned(), reason })?;
        drop(AtomicFile::create(&path.join("index.html"))?);
        Ok(folder)
    }

    /// Keeps them, for they have something in them.
    pub(super) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The innermost first; one that is not empty, or not there, stays as it is.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}
