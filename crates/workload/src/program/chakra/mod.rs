//! Execution traces of Chakra, which ASTRA-sim runs, as programs: a file a node.

mod graph;
mod record;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ethermem_files::InputError;

use super::graph::Program;

/// Maximum bytes of a file: its nodes must fit the memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The execution traces of a program, one of each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionTraceConfig {
    /// Start of the files' names: `PREFIX.0.et` is the trace of node 0, as ASTRA-sim has it.
    pub prefix: PathBuf,
}

impl ExecutionTraceConfig {
    /// The name in scenarios and results.
    pub const NAME: &str = "execution-trace";

    /// The file of a node.
    #[must_use]
    pub fn file(&self, node: u16) -> PathBuf {
        let mut name = self.prefix.as_os_str().to_owned();
        name.push(format!(".{node}.et"));
        PathBuf::from(name)
    }

    /// Reads the traces of so many nodes.
    ///
    /// # Errors
    /// [`InputError`] with the file, and the offset of what cannot be a part of the program.
    pub fn program(&self, nodes: u16) -> Result<Program, InputError> {
        let files: Vec<PathBuf> = (0..nodes).map(|node| self.file(node)).collect();
        let contents = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        program(&files, &contents)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, InputError> {
    let unreadable = |error: std::io::Error| InputError::io(path, "be read", &error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let problem = format!("longer than {FILE_BYTES_MAX} B: must be at most that");
        return Err(InputError::file(path, problem));
    }
    Ok(bytes)
}

/// The program of the traces with these names and contents, by node.
fn program(files: &[PathBuf], contents: &[Vec<u8>]) -> Result<Program, InputError> {
    let mut traces = Vec::with_capacity(files.len());
    for (file, bytes) in files.iter().zip(contents) {
        traces.push(graph::Trace { file, nodes: record::nodes(file, bytes)? });
    }
    graph::program(&traces)
}

/// Reads bytes as the traces of two nodes: the first half of them, and the second.
///
/// # Panics
/// If an accepted trace is no program, or an error has more than one line.
pub fn check_execution_trace(bytes: &[u8]) {
    let files = [PathBuf::from("fuzzed.0.et"), PathBuf::from("fuzzed.1.et")];
    let (one, other) = bytes.split_at(bytes.len() / 2);
    match program(&files, &[one.to_vec(), other.to_vec()]) {
        Ok(program) => {
            assert_eq!(program.nodes(), 2);
            let mut run = super::ProgramRun::new(&program);
            while let Some((step, _)) = run.next_step() {
                run.end(step).expect("a step under way");
            }
            assert!(run.is_complete(), "a step waits for itself");
        }
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }
}
