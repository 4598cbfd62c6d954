//! Runs a program with a limit on its local memory, and prints what that cost: `limit MEBIBYTES|all
//! [--pool URL] [--late] [--together] PROGRAM ARGUMENTS...`. With `--late`, pages and prefetched
//! pages have separate random delays, some of them long; with `--together`, few threads that make
//! most faults are kept on one processor with the pager.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use ethermem::Pool;
use ethermem_pager::{Delay, Local, Nothing, Options, Placement, end_as, run};

const USAGE: &str =
    "usage: limit MEBIBYTES|all [--pool URL] [--late] [--together] PROGRAM ARGUMENTS...";

fn late() -> Delay {
    let us = |times: [u64; 4]| times.map(Duration::from_micros).to_vec();
    let runs = [(4096, us([1, 2, 40, 1])), (31 * 4096, us([1, 20, 300, 5]))];
    Delay::Drawn { times: us([1, 1, 3, 60]), runs: runs.into(), seed: 1 }
}

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let local = match words.first().and_then(|word| word.to_str()) {
        Some("all") => Local::All,
        Some(text) if text.parse::<u64>().is_ok() => {
            Local::Bytes(text.parse::<u64>().unwrap_or(0) << 20)
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    words.remove(0);
    let mut options = Options::new(local);
    if words.first().is_some_and(|word| word == "--pool") {
        if let Err(error) = ethermem_pager::hold_signals() {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
        let url = words.drain(..2).next_back().unwrap_or_default();
        match Pool::open(&url.to_string_lossy()) {
            Ok(pool) => options.pool = Some(pool),
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        }
    }
    if words.first().is_some_and(|word| word == "--late") {
        words.remove(0);
        options.delay = late();
    }
    if words.first().is_some_and(|word| word == "--together") {
        words.remove(0);
        options.placement = Placement::Together;
    }
    match run(&words, &options, &mut Nothing) {
        Ok(outcome) => {
            eprintln!("{:?} {:?}", outcome.elapsed, outcome.counts);
            for which in &outcome.by_itself {
                eprintln!("by itself: {which}");
            }
            let code = end_as(outcome.status).unwrap_or(1);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
