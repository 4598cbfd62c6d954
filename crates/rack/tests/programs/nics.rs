//! The process of a rack's NICs, and the launcher of a rack's programs, as programs that tests and
//! measurements start: `serve FILE`, `inside FILE` with the program's hop in memory, and
//! `run FILE PROGRAM...`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use ethermem_rack::{Config, nics, run};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let config = Config::read(Path::new(&words[2])).expect("a rack's file");
    let started = match words[1].to_str() {
        Some("serve") => {
            let stop = AtomicBool::new(false);
            nics::serve(&config, &stop, &mut |notice| eprintln!("{notice}")).expect("it serves");
            return ExitCode::SUCCESS;
        }
        Some("inside") => {
            let own = std::env::current_exe().expect("this program");
            let words = [own.into(), "serve".into(), words[2].clone()];
            run(&Config { others: Vec::new(), ..config }, &words)
        }
        _ => run(&config, &words[3..]),
    };
    let (report, status) = started.expect("it starts");
    eprint!("{}", report.table());
    ExitCode::from(u8::try_from(status.code().unwrap_or(137)).unwrap_or(1))
}
