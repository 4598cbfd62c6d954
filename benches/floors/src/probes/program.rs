//! Floors and peers that need C: compiled when they are first measured.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::{Cpus, Probe, ProbeError, Server};
use crate::measure::{Round, Samples};

/// What a program ends with where the machine lacks what it needs.
const EXIT_LACKING: i32 = 77;

/// A program in C.
pub(crate) struct Program {
    name: &'static str,
    source: &'static str,
    libraries: &'static [&'static str],
    needs: &'static str,
    built: OnceLock<Result<Built, String>>,
}

struct Built {
    executable: PathBuf,
    _folder: TempDir,
}

/// AF_PACKET with a ring.
pub(crate) static RING: Program = Program {
    name: "ring",
    source: include_str!("../../programs/ring.c"),
    libraries: &[],
    needs: "a C compiler and the headers of Linux",
    built: OnceLock::new(),
};

/// libfabric's one-sided operations.
pub(crate) static FI_RMA: Program = Program {
    name: "fi_rma",
    source: include_str!("../../programs/fi_rma.c"),
    libraries: &["-lfabric"],
    needs: "a C compiler and libfabric with its headers (libfabric-dev)",
    built: OnceLock::new(),
};

const SAMPLES_H: &str = include_str!("../../programs/samples.h");

impl Program {
    fn executable(&self) -> Result<&Path, ProbeError> {
        let built = self.built.get_or_init(|| self.build().map_err(|error| error.to_string()));
        match built {
            Ok(built) => Ok(&built.executable),
            Err(problem) => {
                Err(ProbeError::Lacking(format!("{} needs {}: {problem}", self.name, self.needs)))
            }
        }
    }

    fn build(&self) -> Result<Built, ProbeError> {
        let folder = TempDir::new()?;
        let source = folder.path().join(self.name).with_extension("c");
        std::fs::write(&source, self.source)?;
        std::fs::write(folder.path().join("samples.h"), SAMPLES_H)?;
        let executable = folder.path().join(self.name);
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut command = Command::new(&compiler);
        command.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(&executable).arg(&source);
        let output = command.args(self.libraries).output();
        let output =
            output.map_err(|error| ProbeError::Failed(format!("`{compiler}`: {error}")))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let error = errors.lines().find(|line| line.contains("error"));
            return Err(ProbeError::Failed(error.unwrap_or("it does not compile").to_owned()));
        }
        Ok(Built { executable, _folder: folder })
    }
}

/// One set of arguments of a program.
pub(crate) struct Run {
    pub(crate) program: &'static Program,
    /// Those before the count.
    pub(crate) before: Vec<String>,
    /// Operations under way, for programs that are told.
    pub(crate) window: Option<u32>,
    /// Operations of a sample.
    pub(crate) batch: u64,
}

impl Probe for Run {
    fn round(&self, cpus: Cpus, samples: u32) -> Result<Round, ProbeError> {
        let mut command = Command::new(self.program.executable()?);
        command.args(&self.before).arg(samples.to_string());
        command.args(self.window.map(|window| window.to_string()));
        command.args([cpus.client.to_string(), cpus.server.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Server::start(&mut command, cpus.client)?;
        let (mut octets, mut errors) = (Vec::new(), String::new());
        running.0.stdout.take().expect("piped").read_to_end(&mut octets)?;
        running.0.stderr.take().expect("piped").read_to_string(&mut errors)?;
        let status = running.0.wait()?;
        let problem = || {
            let line = errors.lines().next().unwrap_or("it ended without a word");
            format!("{}: {line}", self.program.name)
        };
        match status.code() {
            Some(0) => {}
            Some(EXIT_LACKING) => return Err(ProbeError::Lacking(problem())),
            _ => return Err(ProbeError::Failed(problem())),
        }
        let (numbers, _) = octets.as_chunks();
        if numbers.len() != samples as usize {
            let got = numbers.len();
            return Err(ProbeError::Failed(format!("{}: {got} samples", self.program.name)));
        }
        let mut histogram = Samples::new();
        numbers.iter().for_each(|ns| histogram.add_ns(u32::from_le_bytes(*ns).into()));
        Ok(match self.batch {
            1 => histogram.one_by_one(),
            batch => histogram.in_batches(batch),
        })
    }
}
