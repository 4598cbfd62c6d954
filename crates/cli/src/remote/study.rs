//! `ethermem study`: profiles a program, replays it on every fabric, emulates the results.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ethermem_experiments::remote::study::Request;
use ethermem_experiments::remote::{REPEATS, Share, repeats};
use ethermem_experiments::selection::{fabric, link_gbps};
use ethermem_experiments::{Error, Expected, Face, Progress, Runner};
use ethermem_sim::output::TableStyle;
use ethermem_sim::registry::FabricEntry;

use super::{Ran, end, show};
use crate::failure::Failure;
use crate::output::say;
use crate::replay::SetupArguments;
use crate::terminal::{Terminal, runner};

const EXAMPLES: &str = "Examples:\n  \
    ethermem study --out out/query -- ./query\n  \
    ethermem study --local 25%,50% --fabrics edm,tcp --gbps 100 --repeats 5 -- python3 sort.py\n\
    \n\
    The program runs once for its peak, once for each share below 100 %, and twice for each point\n\
    and repeat. The folder gets index.html, results.json, the traces and the completion times.\n\
    What is done is kept: the same command goes on where it was ended, and more shares, fabrics\n\
    and rates can be asked for later. docs/how-to/study-a-program.md explains the numbers.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Fractions of the program's peak that stay local
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',',
          default_value = "10%,25%,50%,75%,100%", value_parser = share)]
    local: Vec<f64>,

    /// Fabrics, in the order of the results; `ethermem fabrics` lists them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',',
          default_value = "edm,cxl,clio,roce,tcp", value_parser = fabric)]
    fabrics: Vec<&'static FabricEntry>,

    /// Data rates of every node's link in Gb/s: 10, 25, 40, 100, 200 or 400
    #[arg(long, value_name = "GBPS,...", value_delimiter = ',', default_value = "40,100,400",
          value_parser = link_gbps)]
    gbps: Vec<u64>,

    /// Least number of runs with a network's delays per point, and of runs without
    #[arg(long, value_name = "COUNT", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(REPEATS))]
    repeats: u32,

    /// Largest number of them: more than --repeats where clock and waits do not tell if a slowdown
    /// is within 5 %, or have intervals wider than a quarter [default: 4 times the least; 1 of 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(REPEATS))]
    repeats_max: Option<u32>,

    /// Folder of the study
    #[arg(long, value_name = "FOLDER", default_value = "out/study")]
    out: PathBuf,

    #[command(flatten)]
    setup: SetupArguments,

    /// Number of concurrent replays; results are equal for every number. Programs run alone
    /// [default: the machine's number of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    ran: Ran,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(Share::Of(share)) => Ok(share),
        _ => Err("must be a share of 1% to 100%".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let request = Request {
        program: arguments.ran.request(),
        shares: arguments.local.clone(),
        fabrics: arguments.fabrics.clone(),
        gbps: arguments.gbps.clone(),
        repeats: repeats(arguments.repeats, arguments.repeats_max)?,
        out: arguments.out.clone(),
        setup: arguments.setup.request(),
    };
    let runner = Runner { face: &Beside, ..runner(arguments.threads) };
    let outcome = match request.run(&runner) {
        Ok(outcome) => outcome,
        Err(Error::Ended(status)) => return end(status),
        Err(error) => return Err(error.into()),
    };
    show(&outcome.table(TableStyle::Plain));
    let page = outcome.write()?;
    Beside.note(&format!("wrote {}", page.display()));
    Ok(ExitCode::SUCCESS)
}

/// The face of a terminal beside a program, whose output streams belong to the program.
struct Beside;

impl Face for Beside {
    fn progress(&self, expected: Expected) -> Box<dyn Progress> {
        Terminal.progress(expected)
    }

    fn note(&self, line: &str) {
        if std::io::stderr().is_terminal() {
            say(format_args!("study: {line}"));
        }
    }
}
