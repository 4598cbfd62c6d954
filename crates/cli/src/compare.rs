//! `ethermem compare`: one workload, or the points of a comparison, on several fabrics.

mod page;
mod points;
mod published;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ethermem_sim::compare::{Compared, Comparison, Place, runs_page};
use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::runs_table;
use ethermem_sim::registry::{self, FabricEntry};
use ethermem_sim::report::ReportInput;

use self::page::Page;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Progress;
use crate::runner::{Job, run_all, threads_default};
use crate::selection::{Selection, fabric};

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem compare scenarios/app-spark.toml --fabrics edm,raw-ethernet,ideal\n  \
    ethermem compare --trace messages.parquet --fabrics edm,raw-ethernet --format json\n  \
    ethermem compare scenarios/figure8a.toml\n  \
    ethermem compare scenarios/figure8b.toml --method published --out out/figure8b\n\
    \n\
    Every fabric gets the same messages at the same times: load is what they put on the links of\n\
    the scenario's own fabric. A scenario with a table [compare] holds several points and their\n\
    fabrics; docs/how-to/compare-fabrics.md says how to write one. --out writes index.html, one\n\
    page that needs no other file, and results.json, what --format json prints; both are whole or\n\
    not there.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// Fabrics to run on, in the order of the results; `ethermem fabrics` lists them [default:
    /// those of the scenario's table compare]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = fabric)]
    fabrics: Vec<&'static FabricEntry>,

    /// Fabrics to run at once; the results are the same bytes, whatever it is [default: as many as
    /// the machine runs threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How a scenario's points are measured
    #[arg(long, value_name = "METHOD", default_value = "steady")]
    method: Method,

    /// Only this experiment of the scenario's table compare; repeat it for more [default: all]
    #[arg(long = "experiment", value_name = "NAME")]
    experiments: Vec<String>,

    /// Write a page of tables and figures into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,

    /// Refused: a timeline is of one run
    #[arg(long, value_name = "FILE", hide = true)]
    perfetto: Option<PathBuf>,

    /// Refused: messages are those of one run
    #[arg(long, value_name = "FILE", hide = true)]
    messages: Option<PathBuf>,
}

/// How the points of a scenario are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Every message run to its end, over its time alone
    Steady,
    /// As the published values were made, by the scenario's table compare.published
    Published,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    for (flag, file) in [("perfetto", &arguments.perfetto), ("messages", &arguments.messages)] {
        if file.is_some() {
            let instead = format!("use `ethermem sim` with --fabric NAME --{flag} FILE");
            return Err(Failure::input(format!("--{flag} is of one fabric: {instead}")));
        }
    }
    if let Some((name, mut comparison)) = arguments.selection.comparison()? {
        arguments.retain_experiments(&mut comparison)?;
        return match arguments.method {
            Method::Steady => points::run(arguments, &name, &comparison),
            Method::Published => published::run(arguments, &name, &comparison),
        };
    }
    if arguments.method == Method::Published {
        let problem = "allowed with a scenario that has a table [compare.published]";
        return Err(Failure::input(format!("--method published: {problem}")));
    }
    if let Some(name) = arguments.experiments.first() {
        let problem = "allowed with a scenario that has a table [compare]";
        return Err(Failure::input(format!("--experiment {name}: {problem}")));
    }
    if arguments.fabrics.is_empty() {
        let problem = "--fabrics is not set, and the scenario has no table [compare]: allowed are \
                       names such as edm,raw-ethernet";
        return Err(Failure::input(problem));
    }
    one_point(arguments)
}

/// One workload: that of a scenario without a table `[compare]`, or a trace.
fn one_point(arguments: &Arguments) -> Result<(), Failure> {
    let selected = arguments.selection.read()?;
    let scenario = &selected.scenario;
    let jobs: Vec<Job<'_>> =
        arguments.fabrics.iter().map(|fabric| Job::typed(&selected, fabric)).collect();
    let page = Page::prepare(arguments)?;
    let runs = jobs.len() as u64;
    let progress = Progress::of_messages(scenario.messages().map(|messages| messages * runs));
    let results = run_all(&jobs, arguments.threads(), &progress);
    progress.clear();
    let results = results?;
    arguments.format.print(&results, |results, style| runs_table(results, style))?;
    let Some(page) = page else { return Ok(()) };
    let rows: Vec<Compared> = results.iter().map(compared).collect();
    let own = registry::find(&scenario.fabric_kind).expect("a scenario names a fabric");
    let baseline = baseline_of(own, &arguments.fabrics).name;
    page.write(&selected.name, scenario.run.seed, &results, |repeat| ReportInput {
        lead: "The same messages at the same times on every fabric, each run to its end."
            .to_owned(),
        ..runs_page(&rows, baseline, repeat)
    })
}

fn compared(result: &RunResult) -> Compared {
    let place = Place {
        experiment: String::new(),
        point: String::new(),
        fabric: result.fabric.clone(),
        published: None,
        why: String::new(),
    };
    Compared { place, load_asked: None, same_messages: result.clone(), own_blocks: None }
}

/// What the others are held against: the scenario's own fabric, or the first where it is not
/// compared.
fn baseline_of(
    own: &'static FabricEntry,
    compared: &[&'static FabricEntry],
) -> &'static FabricEntry {
    if compared.iter().any(|fabric| fabric.name == own.name) { own } else { compared[0] }
}

impl Arguments {
    fn threads(&self) -> usize {
        self.threads.map_or_else(threads_default, usize::from)
    }

    /// Leaves the experiments that are asked for.
    fn retain_experiments(&self, comparison: &mut Comparison) -> Result<(), Failure> {
        if self.experiments.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> =
            comparison.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        if let Some(name) = self.experiments.iter().find(|name| !known.contains(&name.as_str())) {
            let problem = format!("--experiment {name}: allowed are {}", known.join(", "));
            return Err(Failure::input(problem));
        }
        comparison.experiments.retain(|experiment| self.experiments.contains(&experiment.name));
        Ok(())
    }
}
