//! `ethermem run`, `profile`, `emulate` and `study`: unmodified programs on remote memory.
//!
//! Standard output and standard error belong to the program. The output of these commands goes to
//! the file of `--report` and, for people, to the terminal, if there is one.

pub(crate) mod emulate;
mod network;
pub(crate) mod profile;
pub(crate) mod rack;
pub(crate) mod run;
pub(crate) mod study;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitStatus;

use clap::Args;
use ethermem_experiments::remote::{Program, can_be_written};
use ethermem_sim::output::to_json;
use serde::Serialize;

use crate::failure::Failure;
use crate::files::Files;
use crate::output::say;

/// Arguments shared by `run`, `profile` and `emulate`.
#[derive(Args)]
pub(crate) struct Common {
    /// Write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    ran: Ran,
}

/// The program to run.
#[derive(Args)]
pub(crate) struct Ran {
    /// Do not prefetch: bring only pages that a thread waits for
    #[arg(long)]
    no_prefetch: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Ran {
    fn request(&self) -> Program {
        Program { words: self.program.clone(), prefetch: !self.no_prefetch }
    }
}

impl Common {
    /// Checks that the report can be written, and is none of the other files, before anything runs.
    fn check(&self, files: Files) -> Result<(), Failure> {
        files.writing("--report", self.report.as_deref()).check()?;
        Ok(self.report.as_deref().map_or(Ok(()), can_be_written)?)
    }

    /// Writes the report, and shows its table on a terminal.
    fn tell<T: Serialize>(&self, report: &T, table: &str) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            let write = std::fs::write(path, to_json(report));
            write.map_err(|error| {
                Failure::input(format!("cannot write {}: {error}", path.display()))
            })?;
        }
        show(table);
        Ok(())
    }
}

/// Shows a table on the terminal, if there is one.
fn show(table: &str) {
    if std::io::stderr().is_terminal() {
        say(format_args!("\n{}", table.trim_end()));
    }
}

/// Ends as the program ended; after a signal this does not return.
fn end(status: ExitStatus) -> Result<std::process::ExitCode, Failure> {
    let code = ethermem_pager::end_as(status).map_err(Failure::input)?;
    Ok(std::process::ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Ends as the program ended, after its report. If the report failed, a failed program's status
/// still takes precedence.
fn end_after(
    told: Result<(), Failure>,
    status: ExitStatus,
) -> Result<std::process::ExitCode, Failure> {
    match told {
        Err(failure) if !status.success() => {
            failure.report();
            end(status)
        }
        told => told.and_then(|()| end(status)),
    }
}
