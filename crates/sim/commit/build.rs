//! Tells the program the commit that it is built from, if it is built in a checkout of this
//! project. The build scripts of the programs share this file.

use std::path::Path;
use std::process::Command;

pub(crate) fn tell() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The answer includes whether the tree differs from the commit, so every change triggers a
    // rerun.
    for watched in ["Cargo.lock", "Cargo.toml", "crates", "scenarios", "workloads"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    for watched in ["HEAD", "logs/HEAD", "index"] {
        if let Some(path) = git(&root, &["rev-parse", "--git-path", watched]) {
            println!("cargo::rerun-if-changed={}", root.join(path).display());
        }
    }
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    if let Some(commit) = commit(&root) {
        version = format!("{version} ({commit})");
        println!("cargo::rustc-env=ETHERMEM_COMMIT={commit}");
    }
    println!("cargo::rustc-env=ETHERMEM_VERSION={version}");
}

/// The commit, followed by `-dirty` if tracked files differ from it. `None` without git, and if the
/// sources lie in the checkout of another project.
fn commit(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    git(root, &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
