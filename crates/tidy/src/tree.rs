use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that a walk without git skips: outputs of builds, runs and tools.
const GENERATED: [&str; 8] =
    [".git", "target", "out", ".venv", "corpus", "artifacts", "coverage", "__pycache__"];

/// One file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path relative to the root, with `/`.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Content, if it is UTF-8.
    pub text: Option<String>,
}

impl File {
    /// The file name's extension; empty if it has none.
    #[must_use]
    pub fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// Content; empty if it is not UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or("")
    }

    /// True for golden vectors, published data and fuzzing seeds, which are kept unchanged.
    #[must_use]
    pub fn is_data(&self) -> bool {
        let data = ["golden/", "workloads/", "fuzz/seeds/"];
        let code = self.path.starts_with("workloads/apps/");
        !code && data.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// The files of the repository, sorted by path.
#[derive(Clone, Debug)]
pub struct Tree {
    files: BTreeMap<String, File>,
    tracked: bool,
}

impl Tree {
    /// The tracked files under `root` that are on disk; every file, if there is no git.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn open(root: &Path) -> io::Result<Tree> {
        let listed = tracked_paths(root);
        let tracked = listed.is_some();
        let paths = match listed {
            Some(paths) => paths,
            None => walk(root)?,
        };
        let mut files = BTreeMap::new();
        for path in paths {
            let on_disk = root.join(&path);
            // A file deleted but not yet committed is still listed; links and submodules are not
            // files.
            if !on_disk.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let bytes = std::fs::read(on_disk)?;
            let size_bytes = bytes.len() as u64;
            let text = String::from_utf8(bytes).ok();
            files.insert(path.clone(), File { path, size_bytes, text });
        }
        Ok(Tree { files, tracked })
    }

    /// A tree in memory, from pairs of path and content.
    #[must_use]
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tree {
        let file = |(path, text): (&str, &str)| File {
            path: path.to_owned(),
            size_bytes: text.len() as u64,
            text: Some(text.to_owned()),
        };
        let files = files.into_iter().map(file).map(|file| (file.path.clone(), file)).collect();
        Tree { files, tracked: true }
    }

    /// True if git listed the files.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// Every Rust file.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.extension() == "rs" && !file.is_data())
    }

    /// Every Markdown file.
    pub fn markdown(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.extension() == "md")
    }

    /// The file at `path`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// True if `path` is a file, or a folder with a file in it; the root is the empty path.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        path.is_empty() || self.files.contains_key(path) || self.under(path).next().is_some()
    }

    /// Every file below the folder `folder`.
    pub fn under(&self, folder: &str) -> impl Iterator<Item = &File> {
        let folder = format!("{folder}/");
        self.files().filter(move |file| file.path.starts_with(&folder))
    }
}

/// `path` resolved against the folder `base`, without `.` and `..`; `None` if it leaves the root.
pub(crate) fn join(base: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The folder of `path`; empty for the root.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Output of git in the folder `root`; `None` if it fails.
pub(crate) fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A git hook sets these variables, and they would point outside of `root`.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    let output = command.args(arguments).current_dir(root).output().ok()?;
    output.status.success().then_some(())?;
    String::from_utf8(output.stdout).ok()
}

fn tracked_paths(root: &Path) -> Option<Vec<String>> {
    let paths = git(root, &["ls-files", "-z"])?;
    Some(paths.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let name = entry.file_name();
            if !entry.file_type()?.is_dir() {
                paths.push(path.to_string_lossy().replace('\\', "/"));
            } else if !GENERATED.iter().any(|generated| name == *generated) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_manifest_is_found_with_git_and_without() {
        let manifest = "Cargo.toml".to_owned();
        assert!(walk(&root()).unwrap().contains(&manifest));
        assert_eq!(Tree::open(&root()).unwrap().get(&manifest).unwrap().extension(), "toml");
    }

    #[test]
    fn a_walk_leaves_out_what_a_build_makes() {
        let paths = walk(&root()).unwrap();
        let generated = |path: &&String| path.starts_with("target/") || path.starts_with(".git/");
        assert_eq!(paths.iter().find(generated), None);
    }

    #[test]
    fn paths_join_from_a_folder_and_do_not_leave_the_root() {
        assert_eq!(join("docs/a", "../b/./c.md").as_deref(), Some("docs/b/c.md"));
        assert_eq!(join("", "../x"), None);
        assert_eq!((folder("a/b/c"), folder("c")), ("a/b", ""));
    }

    #[test]
    fn a_folder_is_contained_and_a_prefix_of_a_name_is_not() {
        let tree = Tree::from_files([("docs/guide.md", "")]);
        assert!(tree.contains("docs") && tree.contains("docs/guide.md"));
        assert!(!tree.contains("doc") && !tree.contains("docs/guide"));
    }
}
