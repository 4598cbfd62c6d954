//! What a point is known by.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::scenario::Scenario;
use crate::workload::{InputError, WorkloadConfig};

/// SHA-256 of all that a point's result depends on: the program, the fabric, every key of the
/// scenario with its seed and its sizes, and the bytes of its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity([u8; 32]);

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Makes identities; reads each trace once.
pub(super) struct Identities<'p> {
    program: &'p str,
    traces: BTreeMap<PathBuf, String>,
}

impl<'p> Identities<'p> {
    pub(super) fn new(program: &'p str) -> Identities<'p> {
        Identities { program, traces: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, fabric: &str, scenario: &Scenario) -> Result<Identity, InputError> {
        // Derived, so that no field of a scenario can be forgotten; the program's version, which is
        // part of the hash, covers a change of its form.
        let mut text = format!("{}\0{fabric}\0{scenario:?}", self.program);
        if let WorkloadConfig::Trace(trace) = &scenario.workload {
            let known = self.traces.get(&trace.path).cloned();
            let digest = match known {
                Some(digest) => digest,
                None => file_digest(&trace.path)?,
            };
            text.push('\0');
            text.push_str(&digest);
            self.traces.insert(trace.path.clone(), digest);
        }
        Ok(Identity(Sha256::digest(text).into()))
    }
}

/// SHA-256 of a file in hexadecimal digits.
pub(crate) fn file_digest(path: &Path) -> Result<String, InputError> {
    let unreadable = |error: std::io::Error| InputError::io(path, "be read", &error);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let bytes = file.read(&mut buffer).map_err(unreadable)?;
        if bytes == 0 {
            break;
        }
        hash.update(&buffer[..bytes]);
    }
    let mut digits = String::new();
    for byte in hash.finalize() {
        write!(digits, "{byte:02x}").expect("a string takes everything");
    }
    Ok(digits)
}

impl Identity {
    /// The identity of a program that has no version of its own: the bytes of its file.
    ///
    /// # Errors
    /// [`InputError`] when the file cannot be read.
    pub fn of_program(path: &Path) -> Result<String, InputError> {
        file_digest(path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::fabrics::FABRIC_NAMES;
    use crate::scenario::Changes;

    fn scenario(settings: &[&str]) -> Scenario {
        let settings = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        Scenario::default_with(&Changes { settings, trace: None }, FABRIC_NAMES).unwrap()
    }

    #[test]
    fn whatever_changes_a_result_changes_the_identity() {
        let of = |program: &str, fabric: &str, settings: &[&str]| {
            Identities::new(program).of(fabric, &scenario(settings)).unwrap()
        };
        let base = of("1.0", "edm", &[]);
        assert_eq!(base, of("1.0", "edm", &["run.seed=1"]), "as it is by default");
        let others = [
            of("1.1", "edm", &[]),
            of("1.0", "ideal", &[]),
            of("1.0", "edm", &["run.seed=2"]),
            of("1.0", "edm", &["workload.load=0.8000001"]),
            of("1.0", "edm", &["fabric.edm.policy=fcfs"]),
            of("1.0", "edm", &["fabric.propagation_ns=11"]),
            of("1.0", "edm", &["workload.message_bytes=65"]),
        ];
        let different: BTreeSet<Identity> = others.into_iter().chain([base]).collect();
        assert_eq!(different.len(), 8);
        assert_eq!(base.to_string().len(), 64);
    }

    #[test]
    fn a_trace_counts_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let set = format!("workload={{kind = 'trace', trace = '{}'}}", path.display());
        let mut seen = BTreeSet::new();
        for text in ["one", "two", "one"] {
            fs::write(&path, text).unwrap();
            let scenario = scenario(&[&set]);
            seen.insert(Identities::new("1").of("edm", &scenario).unwrap());
        }
        assert_eq!(seen.len(), 2);
        fs::remove_file(&path).unwrap();
        let gone = Identities::new("1").of("edm", &scenario(&[&set])).unwrap_err();
        assert!(gone.to_string().contains("t.csv: cannot be read: "), "{gone}");
    }
}
