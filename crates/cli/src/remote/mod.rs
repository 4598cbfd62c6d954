//! `ethermem run`, `profile`, `emulate` and `study`: programs that know nothing of remote memory.
//!
//! Standard output and standard error belong to the program. What these commands have to say goes
//! to the file of `--report`, and for people to the terminal, if there is one.

pub(crate) mod emulate;
mod grid_page;
mod network;
mod pictures;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod study;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use bytesize::ByteSize;
use clap::Args;
use ethermem_pager::{Error, Local};
use ethermem_sim::output::{TableStyle, TextTable, to_json};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::say;

/// Memory that may be local: bytes, or a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Share {
    Bytes(u64),
    /// 0 to 1.
    Of(f64),
}

impl Share {
    /// What may be local where a share is of what the program holds at the time.
    fn at_the_time(self) -> Local {
        match self {
            Share::Bytes(bytes) => Local::Bytes(bytes),
            Share::Of(1.0) => Local::All,
            Share::Of(share) => Local::Share(share),
        }
    }
}

const ALLOWED: &str = "a size such as 64MiB, or a share of 1% to 100%";
/// Less than this, and a program can do nothing but wait for pages.
const SMALLEST_BYTES: u64 = 1 << 20;

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        if let Some(percent) = text.strip_suffix('%') {
            return match percent.parse::<f64>() {
                Ok(percent) if (1.0..=100.0).contains(&percent) => Ok(Share::Of(percent / 100.0)),
                _ => Err(format!("allowed is {ALLOWED}")),
            };
        }
        match text.parse::<ByteSize>() {
            Ok(size) => at_least_smallest(size).map(|ByteSize(bytes)| Share::Bytes(bytes)),
            Err(_) => Err(format!("allowed is {ALLOWED}")),
        }
    }
}

fn at_least_smallest(size: ByteSize) -> Result<ByteSize, String> {
    if size.0 >= SMALLEST_BYTES { Ok(size) } else { Err("allowed are 1MiB and more".to_owned()) }
}

/// Memory that a program holds.
fn held(text: &str) -> Result<ByteSize, String> {
    crate::value::size(text).and_then(at_least_smallest)
}

/// What `run`, `profile` and `emulate` take.
#[derive(Args)]
pub(crate) struct Common {
    /// Write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    ran: Ran,
}

/// What is run.
#[derive(Args)]
pub(crate) struct Ran {
    /// Bring only pages that a thread waits for
    #[arg(long)]
    no_prefetch: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Common {
    /// Whether the report can be written, before anything runs.
    fn check(&self) -> Result<(), Failure> {
        self.report.as_deref().map_or(Ok(()), can_be_written)
    }

    /// Writes the report, and shows a terminal its table.
    fn tell<T: Serialize>(&self, report: &T, table: &TextTable<'_>) -> Result<(), Failure> {
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

/// Whether there may be such a file.
fn can_be_written(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::input(format!("cannot write {}: is a directory", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            let (path, folder) = (path.display(), folder.display());
            Err(Failure::input(format!("cannot write {path}: there is no folder {folder}")))
        }
        _ => Ok(()),
    }
}

/// For people alone: a terminal gets it.
fn show(table: &TextTable<'_>) {
    if std::io::stderr().is_terminal() {
        say(format_args!("\n{}", table.render(TableStyle::Plain).trim_end()));
    }
}

fn failed(error: Error) -> Failure {
    Failure::input(error)
}

/// Ends as the program ended, which does not return after a signal.
fn end(status: ExitStatus) -> Result<std::process::ExitCode, Failure> {
    let code = ethermem_pager::end_as(status).map_err(Failure::input)?;
    Ok(std::process::ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Ends as the program ended, after what there was to say of it. Where that failed, a program that
/// failed, too, is seen to have.
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

/// A row for each program that ran without being served.
fn left_out(which: &[String]) -> impl Iterator<Item = Vec<String>> {
    which.iter().map(|which| vec!["ran by itself".to_owned(), which.clone()])
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    ByteSize(bytes).display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn a_share_is_bytes_or_percent() {
        assert_eq!("25%".parse(), Ok(Share::Of(0.25)));
        assert_eq!("64MiB".parse(), Ok(Share::Bytes(64 << 20)));
        for wrong in ["0%", "101%", "4KiB", "much", "%", "-1", ""] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
