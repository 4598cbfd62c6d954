//! Scenarios, sweeps and published values that are shipped with the program, for use without the
//! repository: `ethermem sim load-64b` runs in any folder.

use std::path::{Component, Path, PathBuf};

/// The path in the repository and the text of each shipped file; the build script lists them.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The path and text of the shipped file for `file`, if no file of that name exists. `file` is a
/// path as in the repository (`scenarios/load-64b.toml`), or the name of a scenario or a sweep
/// (`load-64b.toml`, `load-64b`).
#[must_use]
pub fn shipped(file: &Path) -> Option<(&'static str, &'static str)> {
    if !matches!(file.try_exists(), Ok(false)) {
        return None;
    }
    let whole = in_repository(file)?;
    let by_name = |folder: &str| Path::new(folder).join(&whole).with_extension("toml");
    let mut names = vec![whole.clone()];
    if whole.components().count() == 1 && whole.extension().is_none_or(|end| end == "toml") {
        names.extend(["scenarios", "sweeps"].map(by_name));
    }
    let found = |name: &PathBuf| SHIPPED.iter().find(|(path, _)| Path::new(path) == name);
    names.iter().find_map(found).copied()
}

/// The path as seen from the root of the repository. A path that leads out of an unknown folder is
/// taken to start in one of the repository's folders.
fn in_repository(file: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in file.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::compare::Comparison;
    use crate::registry::FABRIC_NAMES;
    use crate::scenario::Scenario;
    use crate::sweep::Sweep;

    #[test]
    fn all_of_the_repository_come_with_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut there = BTreeSet::new();
        for folder in ["scenarios", "sweeps"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                there.insert(format!("{folder}/{name}"));
            }
        }
        let of = |(path, _): &(&str, &str)| !path.starts_with("golden/");
        let known = SHIPPED.iter().filter(|one| of(one)).map(|(path, _)| (*path).to_owned());
        assert_eq!(known.collect::<BTreeSet<_>>(), there);
    }

    /// The tests of this package run in its folder, which has none of these files.
    #[test]
    fn they_are_found_where_the_repository_is_not() {
        for (path, text) in SHIPPED {
            let with_dot = Path::new(".").join(path);
            for written in [Path::new(path), &with_dot] {
                assert_eq!(shipped(written), Some((*path, *text)));
            }
        }
        for name in ["load-64b", "load-64b.toml", "scenarios/../scenarios/load-64b.toml"] {
            assert_eq!(shipped(Path::new(name)).unwrap().0, "scenarios/load-64b.toml", "{name}");
            assert!(Scenario::load(Path::new(name), FABRIC_NAMES).is_ok(), "{name}");
        }
        // Both name further files.
        assert!(Comparison::load(Path::new("figure8b"), &[], None).unwrap().is_some());
        assert!(Sweep::load(Path::new("load"), &[]).is_ok());
        for name in ["no", "load-64b.csv", "src/load-64b.toml", "/scenarios/load-64b.toml", ""] {
            assert_eq!(shipped(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn a_file_that_is_there_goes_first() {
        assert_eq!(shipped(Path::new("src")), None);
    }
}
