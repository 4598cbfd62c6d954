//! The identity of a point.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::scenario::Scenario;
use crate::workload::{InputError, WorkloadConfig};

/// The digest of the simulator's sources and of the versions of its libraries. All programs built
/// from them share it, and so share their finished points.
const SOURCES: &str = env!("ETHERMEM_SOURCES");

/// SHA-256 of everything that a point's result depends on: the simulator, the fabric, every key of
/// the scenario with its seed and sizes, and the bytes of its traces, wherever they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity([u8; 32]);

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Computes identities; reads each trace once.
pub(super) struct Identities<'s> {
    sources: &'s str,
    traces: BTreeMap<PathBuf, String>,
}

impl Identities<'_> {
    pub(super) fn new() -> Identities<'static> {
        Identities { sources: SOURCES, traces: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, fabric: &str, scenario: &Scenario) -> Result<Identity, InputError> {
        let mut scenario = scenario.clone();
        let mut trace_digest = String::new();
        if let WorkloadConfig::Trace(trace) = &mut scenario.workload {
            let path = std::mem::take(&mut trace.path);
            trace_digest = match self.traces.get(&path) {
                Some(digest) => digest.clone(),
                None => file_digest(&path)?,
            };
            self.traces.insert(path, trace_digest.clone());
        }
        if let WorkloadConfig::ExecutionTrace(traces) = &mut scenario.workload {
            for node in 0..scenario.fabric.nodes {
                trace_digest.push_str(&file_digest(&traces.file(node))?);
            }
            traces.prefix = PathBuf::new();
        }
        // The text is derived, so that no field of a scenario can be forgotten. The hash includes
        // the sources, which cover a change of the text's form.
        let text = format!("{}\0{fabric}\0{scenario:?}\0{trace_digest}", self.sources);
        Ok(Identity(Sha256::digest(text).into()))
    }
}

/// SHA-256 of a file in hexadecimal digits.
fn file_digest(path: &Path) -> Result<String, InputError> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::registry::FABRIC_NAMES;
    use crate::scenario::Changes;

    fn scenario(settings: &[&str]) -> Scenario {
        let settings = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        Scenario::default_with(&Changes { settings, trace: None }, FABRIC_NAMES).unwrap()
    }

    #[test]
    fn whatever_changes_a_result_changes_the_identity() {
        let of = |sources: &str, fabric: &str, settings: &[&str]| {
            let mut identities = Identities { sources, traces: BTreeMap::new() };
            identities.of(fabric, &scenario(settings)).unwrap()
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
        assert_eq!(SOURCES.len(), 64);
    }

    #[test]
    fn execution_traces_count_by_their_bytes_too() {
        let folder = tempfile::tempdir().unwrap();
        let set = |prefix: &str| {
            let trace = folder.path().join(prefix);
            scenario(&[
                "fabric.nodes=2",
                &format!(
                    "workload={{kind = 'program', program.name = 'execution-trace', \
                     program.trace = '{}'}}",
                    trace.display()
                ),
            ])
        };
        let of = |prefix: &str| Identities::new().of("edm", &set(prefix));
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        for (name, text) in [("a.0.et", "x"), ("a.1.et", "y"), ("b.0.et", "x"), ("b.1.et", "y")] {
            write(name, text);
        }
        assert_eq!(of("a").unwrap(), of("b").unwrap());
        write("b.1.et", "z");
        assert_ne!(of("a").unwrap(), of("b").unwrap());
        assert!(of("c").unwrap_err().to_string().contains("c.0.et: cannot be read"));
    }

    #[test]
    fn a_trace_counts_by_its_bytes_wherever_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let set = |path: &Path| {
            scenario(&[&format!("workload={{kind = 'trace', trace = '{}'}}", path.display())])
        };
        let of = |path: &Path| Identities::new().of("edm", &set(path));
        let mut seen = BTreeSet::new();
        for text in ["one", "two", "one"] {
            fs::write(&path, text).unwrap();
            seen.insert(of(&path).unwrap());
        }
        assert_eq!(seen.len(), 2);
        let moved = folder.path().join("moved.csv");
        fs::rename(&path, &moved).unwrap();
        assert!(!seen.insert(of(&moved).unwrap()));
        let gone = of(&path).unwrap_err();
        assert!(gone.to_string().contains("t.csv: cannot be read: "), "{gone}");
    }
}
