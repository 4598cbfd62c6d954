//! A folder for output that is removed again when no output was written into it.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::OutputError;

/// A folder for output, with the folders around it that were made for it. A drop removes those of
/// them that are still empty.
#[derive(Debug)]
pub struct MadeFolder {
    path: PathBuf,
    /// The innermost folder first.
    made: Vec<PathBuf>,
}

impl MadeFolder {
    /// Makes `path` and the folders around it, unless they exist.
    ///
    /// # Errors
    /// [`OutputError`] when a folder cannot be made. The folders that were made are removed.
    pub fn make(path: &Path) -> Result<MadeFolder, OutputError> {
        let missing = path.ancestors().take_while(|folder| !folder.exists());
        let made = missing.filter(|folder| !folder.as_os_str().is_empty());
        let folder = MadeFolder { path: path.to_owned(), made: made.map(Path::to_owned).collect() };
        fs::create_dir_all(path).map_err(|reason| match reason.kind() {
            // It exists, and is something else.
            ErrorKind::AlreadyExists => {
                let what = "is not a folder: must be one, or a new name";
                OutputError::new(path, Error::new(reason.kind(), what))
            }
            _ => OutputError::new(path, reason),
        })?;
        Ok(folder)
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        // A folder that is missing or not empty stays as it is.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stay_only_with_something_in_them() {
        let there = tempfile::tempdir().unwrap();
        let (outer, inner) = (there.path().join("a"), there.path().join("a/b"));
        drop(MadeFolder::make(&inner).unwrap());
        assert!(!outer.exists());
        let made = MadeFolder::make(&inner).unwrap();
        fs::write(made.path().join("file"), "").unwrap();
        drop(made);
        assert!(inner.join("file").exists());
        drop(MadeFolder::make(there.path()).unwrap());
        assert!(there.path().is_dir(), "it was there before");
    }

    #[test]
    fn what_was_made_on_the_way_to_an_error_is_removed() {
        let there = tempfile::tempdir().unwrap();
        fs::write(there.path().join("file"), "").unwrap();
        let error = MadeFolder::make(&there.path().join("file/b")).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        let error = MadeFolder::make(&there.path().join("file")).unwrap_err().to_string();
        assert!(error.ends_with("file: is not a folder: must be one, or a new name"), "{error}");
        let long = there.path().join("a").join("n".repeat(300));
        assert!(MadeFolder::make(&long).is_err());
        assert!(!there.path().join("a").exists());
    }
}
