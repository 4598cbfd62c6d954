//! `ethermem replay`.

mod setup;

use std::path::PathBuf;

use clap::Args;
use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::run::label_of;
use ethermem_sim::scenario::Scenario;
use ethermem_sim::topology::Topology;
use ethermem_study::{Offered, Outcome, Plan, Prefetched, Replay, network, write_completions};
use ethermem_trace::CompletionWriter;
use ethermem_units::BitsPerSecond;

pub(crate) use self::setup::Setup;

use crate::failure::Failure;
use crate::output::RowFormat;
use crate::progress::Progress;
use crate::runner::{Job, run_all, threads_default, typed_command};
use crate::selection::{fabric, link_gbps};

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem replay redis.parquet --fabric edm,pfabric\n  \
    ethermem replay redis.parquet spark.parquet --fabric tcp --scope rack --link-gbps 40\n  \
    ethermem replay redis.parquet --fabric edm --out result.parquet --format json\n\
    \n\
    Traces are those of page accesses: docs/reference/trace.md. Each traced machine is split into\n\
    a compute, a memory and a disk blade, its memory is spread over the memory blades of its\n\
    cluster, and the network holds as many clusters as it has room for: OSDI 2016, section 4.\n\
    Arrivals do not wait for what came before, so a link can be asked for more than it carries;\n\
    the result then says so. docs/how-to/replay-a-trace.md explains the numbers.")]
pub(crate) struct Arguments {
    /// Page traces, one a machine; with fewer than machines in a cluster they are dealt in turn
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    /// Fabrics to run on, in the order of the results; `ethermem fabrics` lists them
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_value = "edm",
          value_parser = fabric)]
    fabric: Vec<&'static FabricEntry>,

    #[command(flatten)]
    setup: Setup,

    /// Data rate of every node's link in Gb/s: 10, 25, 40, 100, 200 or 400
    #[arg(long, alias = "gbps", value_name = "GBPS", default_value = "100",
          value_parser = link_gbps)]
    link_gbps: u64,

    /// Fabrics to run at once; the results are the same bytes, whatever it is [default: as many as
    /// the machine runs threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Write the completion time of every access to this Parquet file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: RowFormat,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let setup = &arguments.setup;
    let plan = setup.plan(arguments.link_gbps);
    let machines =
        arguments.traces.iter().map(|path| setup.load(path)).collect::<Result<Vec<_>, _>>()?;
    let replay = Replay::draw(&plan, &machines).map_err(Failure::Input)?;
    let completions = arguments.out.as_deref().map(CompletionWriter::create).transpose()?;

    let folder = tempfile::tempdir().map_err(|error| {
        Failure::Input(format!("no folder for the messages of the replay: {error}"))
    })?;
    let messages = folder.path().join("messages.parquet");
    let networks = arguments
        .fabric
        .iter()
        .map(|fabric| network(&plan, fabric, &messages))
        .collect::<Result<Vec<_>, _>>()?;
    let link = BitsPerSecond::from_gbps(plan.link_gbps).map_err(Failure::input)?;
    let (offered, prefetched) = replay.write(&messages, link)?;

    let name = arguments.name();
    let command = typed_command(setup.seed);
    let jobs: Vec<Job<'_>> = arguments
        .fabric
        .iter()
        .zip(&networks)
        .map(|(fabric, (scenario, _))| Job {
            fabric,
            scenario,
            scenario_name: &name,
            label: label_of(&name),
            command: command.clone(),
            cost: offered.messages,
            ways: true,
        })
        .collect();
    let progress = Progress::of_runs(offered.messages * jobs.len() as u64, jobs.len());
    let threads = arguments.threads.map_or_else(threads_default, usize::from);
    let runs = run_all(&jobs, threads, &progress);
    progress.clear();

    let mut outcomes = Vec::new();
    for (run, network) in runs?.into_iter().zip(&networks) {
        outcomes.push(outcome(&plan, &replay, (offered, &prefetched), network, run));
    }
    if let Some(writer) = completions {
        write_completions(writer, &outcomes, replay.embedding(), &command)?;
    }
    arguments.format.print(&outcomes[..], Outcome::table, Outcome::csv)
}

/// What a run came to, with all that its reader must know.
pub(crate) fn outcome(
    plan: &Plan,
    replay: &Replay<'_>,
    (offered, prefetched): (Offered, &Prefetched),
    (scenario, notice): &(Scenario, Option<String>),
    mut run: RunResult,
) -> Outcome {
    run.notices.extend(replay.notices(&offered));
    run.notices.extend(notice.clone());
    let topology = match scenario.fabric.topology {
        Topology::SingleSwitch => "single-switch",
        Topology::LeafSpine(_) => "leaf-spine",
    };
    Outcome::of(plan, replay.embedding(), (offered, prefetched.clone()), topology, run)
}

impl Arguments {
    /// What people call the traces.
    fn name(&self) -> String {
        let names = self.traces.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    }
}
