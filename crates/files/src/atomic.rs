use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::OutputError;

/// A file that takes its name when it is whole. It is written beside its target and renamed by
/// [`AtomicFile::commit`]; a drop before the commit removes it. A path that names a device or a
/// pipe is written directly, as a rename would replace it.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    // This field stands before `part`, so that the file is closed before its name is removed.
    file: BufWriter<File>,
    part: Option<Part>,
}

#[derive(Debug)]
struct Part {
    name: TempPath,
    target: PathBuf,
}

impl AtomicFile {
    /// Opens a part file in the folder of `path`.
    ///
    /// # Errors
    /// [`OutputError`] when the folder is missing or not writable, or when `path` is a folder.
    pub fn create(path: &Path) -> Result<AtomicFile, OutputError> {
        AtomicFile::open(path).map_err(|reason| OutputError::new(path, reason))
    }

    /// The name that the file will take.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, whole and on the disk.
    ///
    /// # Errors
    /// [`OutputError`] when the last bytes do not fit, or when the name cannot be taken.
    pub fn commit(self) -> Result<(), OutputError> {
        let AtomicFile { path, file, part } = self;
        AtomicFile::finish(file, part).map_err(|reason| OutputError::new(&path, reason))
    }

    fn open(path: &Path) -> io::Result<AtomicFile> {
        let direct =
            |file| AtomicFile { path: path.to_owned(), file: BufWriter::new(file), part: None };
        // The path is resolved through a link, so that the link stays and its target is replaced.
        let target = match path.canonicalize() {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        match target.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                return File::options().write(true).open(path).map(direct);
            }
            _ => {}
        }
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
        }
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (file, name) = part_in(folder)?;
        let part = Part { name, target };
        Ok(AtomicFile { part: Some(part), ..direct(file) })
    }

    fn finish(file: BufWriter<File>, part: Option<Part>) -> io::Result<()> {
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let Some(part) = part else {
            return Ok(());
        };
        // A full disk may show only at this call.
        file.sync_all()?;
        drop(file);
        part.name.persist(part.target).map_err(|failed| failed.error)
    }
}

/// Makes a new file of a random name. In a container every process may have the number of a killed
/// process. The target's name may have the maximum length, so nothing can be appended to it.
fn part_in(folder: &Path) -> io::Result<(File, TempPath)> {
    let mut name = tempfile::Builder::new();
    name.prefix(".ethermem-").suffix(".part");
    // The file's mode is the usual one; a temporary file would be private to its owner.
    Ok(name.make_in(folder, |path| File::create_new(path))?.into_parts())
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::write_file;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_takes_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "the old one, which is longer").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the old one, which is longer");
        assert_eq!(names(folder.path()).len(), 2);
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("result.json")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    /// A killed process leaves its part. The next process may have its number, may write the same
    /// file, and may be one of several that do.
    #[test]
    fn what_a_killed_process_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        let leftovers: Vec<AtomicFile> =
            (0..3).map(|_| AtomicFile::create(&path).unwrap()).collect();
        let number = std::process::id();
        fs::write(folder.path().join(format!(".result.json.{number}.part")), "").unwrap();
        assert_eq!(names(folder.path()).len(), 4);
        write_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()).len(), 5);
        drop(leftovers);
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_name_may_be_as_long_as_the_file_system_has_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        write_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain), "others may read it as any other file");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("result.json");
        let line = AtomicFile::create(&path).unwrap_err().to_string();
        assert!(line.starts_with(&format!("cannot write {}: ", path.display())), "{line}");
        assert!(line.contains("No such file or directory"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn a_parent_that_is_a_file_and_a_target_that_is_a_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(AtomicFile::create(&folder.path().join("file").join("below")).is_err());
        assert!(AtomicFile::create(folder.path()).is_err());
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_one_line_with_the_file_and_the_reason() {
        let line = write_file(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert_eq!(line, "cannot write /dev/full: No space left on device (os error 28)");
        assert!(!Path::new("/dev/full").is_file(), "still a device");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }
}
