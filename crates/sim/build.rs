//! Gives the simulator a digest of all its sources, which is part of the identity of a sweep's
//! points. It also lists the shipped files of the repository.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const PREFIX: &str = "ethermem-";

/// Folders and files of the repository that are shipped with the program.
const SHIPPED: [&str; 4] =
    ["scenarios", "sweeps", "golden/figure6-7", "golden/figure8/published.csv"];

fn main() {
    digest();
    ship();
}

/// Writes a list of the path and the text of every shipped file.
fn ship() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository is there");
    let mut files = Vec::new();
    for path in SHIPPED {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
        collect(&root.join(path), &mut files);
    }
    let mut list = String::from("&[\n");
    for file in files {
        let ends = file.extension().and_then(|end| end.to_str());
        if !matches!(ends, Some("toml" | "csv")) {
            continue;
        }
        let name = file.strip_prefix(&root).expect("it was found there").display().to_string();
        writeln!(list, "({name:?}, include_str!({file:?})),").expect("a string takes everything");
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("Cargo says where");
    fs::write(Path::new(&out).join("shipped.rs"), list).expect("the folder is writable");
}

fn digest() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = own.parent().expect("a crate lies in a folder");
    let manifest = fs::read_to_string(own.join("Cargo.toml")).expect("a crate has a manifest");
    let used = manifest.lines().filter_map(|line| line.strip_prefix(PREFIX));
    let used = used.map(|rest| rest.split(['.', ' ', '=']).next().unwrap_or(rest));
    let mut watched: Vec<PathBuf> = used
        .chain(["sim"])
        .flat_map(|name| ["src", "Cargo.toml"].map(|part| crates.join(name).join(part)))
        .collect();
    // The lock file has the versions of all libraries.
    watched.push(crates.join("../Cargo.lock"));
    let mut files = Vec::new();
    for path in &watched {
        println!("cargo::rerun-if-changed={}", path.display());
        collect(path, &mut files);
    }
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(crates).expect("it was found there");
        let bytes = fs::read(&file).expect("a source can be read");
        hash.update(format!("{}\0{}\0", name.display(), bytes.len()));
        hash.update(bytes);
    }
    let mut digits = String::new();
    for byte in hash.finalize() {
        write!(digits, "{byte:02x}").expect("a string takes everything");
    }
    println!("cargo::rustc-env=ETHERMEM_SOURCES={digits}");
}

/// All files at `path` and below, in the order of their names. A missing path has none, as in a
/// package without a lock file.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_owned());
    }
    let entries = fs::read_dir(path).into_iter().flatten();
    let mut entries: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for entry in entries {
        collect(&entry, files);
    }
}
