//! Programs that know nothing of remote memory: run, profiled, emulated and studied.
//!
//! If a measured program fails, the experiment ends with [`Error::Ended`] and the program's status.

pub mod emulate;
mod grid_page;
pub mod lines;
pub mod network;
mod pictures;
pub mod profile;
pub mod run;
pub mod study;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::Path;

use bytesize::ByteSize;
use ethermem_pager::{Local, Repeats};

use crate::error::Error;

/// Allowed number of runs with delays, and of runs without.
pub const REPEATS: RangeInclusive<i64> = 1..=1000;

/// Largest number of repeats for one that is asked for, if none is given.
const REPEATS_GROW: u32 = 4;

/// Repeats from the least number, and the largest where that is given.
///
/// # Errors
///
/// When the largest is below the least.
pub fn repeats(least: u32, most: Option<u32>) -> Result<Repeats, Error> {
    // Who asks for one run wants a quick look.
    let grown = if least == 1 { 1 } else { least.saturating_mul(REPEATS_GROW) };
    let most = most.unwrap_or(grown.min(*REPEATS.end() as u32));
    if most < least {
        let problem = format!("--repeats-max = {most}: must be at least --repeats = {least}");
        return Err(Error::Request(problem));
    }
    Ok(Repeats { least, most })
}

/// A program that runs with a part of its memory remote.
#[derive(Clone, Debug)]
pub struct Program {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// True if pages are prefetched.
    pub prefetch: bool,
}

/// Memory that may be local: bytes, or a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// This many bytes.
    Bytes(u64),
    /// A fraction, 0 to 1, of the program's peak.
    Of(f64),
}

impl Share {
    /// Local memory, where a fraction is of what the program holds at the time, but at least
    /// `least_bytes`.
    pub(crate) fn at_the_time(self, least_bytes: u64) -> Local {
        match self {
            Share::Bytes(bytes) => Local::Bytes(bytes),
            Share::Of(1.0) => Local::All,
            Share::Of(of) => Local::Share { of, least_bytes },
        }
    }
}

const ALLOWED: &str = "a size such as 64MiB, or a share of 1% to 100%";
/// With less local memory in bytes, a program does nothing but wait for pages.
const SMALLEST_BYTES: u64 = 1 << 20;

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        if let Some(percent) = text.strip_suffix('%') {
            return match percent.parse::<f64>() {
                Ok(percent) if (1.0..=100.0).contains(&percent) => Ok(Share::Of(percent / 100.0)),
                _ => Err(format!("must be {ALLOWED}")),
            };
        }
        match text.parse::<ByteSize>() {
            Ok(ByteSize(bytes)) if bytes >= SMALLEST_BYTES => Ok(Share::Bytes(bytes)),
            Ok(_) => Err("must be at least 1MiB".to_owned()),
            Err(_) => Err(format!("must be {ALLOWED}")),
        }
    }
}

/// Parses an amount of memory that a program holds, in bytes.
///
/// # Errors
///
/// One line with what is allowed.
pub fn held(text: &str) -> Result<u64, String> {
    match text.parse::<ByteSize>() {
        Ok(ByteSize(bytes)) if bytes >= SMALLEST_BYTES => Ok(bytes),
        Ok(_) => Err("must be at least 1MiB".to_owned()),
        Err(_) => Err("must be a size such as 64MiB".to_owned()),
    }
}

/// Checks that such a file can be created.
///
/// # Errors
///
/// When its folder is missing, or when the path is a folder.
pub fn can_be_written(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::Request(format!("cannot write {}: is a directory", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            let (path, folder) = (path.display(), folder.display());
            Err(Error::Request(format!("cannot write {path}: there is no folder {folder}")))
        }
        _ => Ok(()),
    }
}

/// A row for each program that ran without being served.
fn left_out(which: &[String]) -> impl Iterator<Item = Vec<String>> {
    which.iter().map(|which| vec!["ran by itself".to_owned(), which.clone()])
}

/// An amount of bytes for people.
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
