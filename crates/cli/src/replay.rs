//! `ethermem replay`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ethermem_sim::fabrics::FabricEntry;
use ethermem_sim::run::label_of;
use ethermem_sim::scenario::Setting;
use ethermem_sim::topology::Topology;
use ethermem_study::{
    Arrivals, Blades, Machine, Outcome, Part, Plan, Replay, Scope, network, write_completions,
};
use ethermem_trace::CompletionWriter;
use ethermem_units::{BitsPerSecond, Bytes, Ns};

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

    /// Blades of a cluster, a multiple of 3: a compute, a memory and a disk blade for each machine
    #[arg(long, value_name = "BLADES", default_value = "15", value_parser = blades)]
    cluster: Blades,

    /// Nodes of the network that clusters are embedded in
    #[arg(long, value_name = "NODES", default_value = "144",
          value_parser = clap::value_parser!(u16).range(3..=512))]
    embed: u16,

    /// Nodes of a rack
    #[arg(long, value_name = "NODES", default_value = "16",
          value_parser = clap::value_parser!(u16).range(1..=512))]
    rack_nodes: u16,

    /// Where the blades of a cluster are
    #[arg(long, value_name = "SCOPE", default_value = "datacenter")]
    scope: ScopeName,

    /// Data rate of every node's link in Gb/s: 10, 25, 40, 100, 200 or 400
    #[arg(long, alias = "gbps", value_name = "GBPS", default_value = "100",
          value_parser = link_gbps)]
    link_gbps: u64,

    /// How accesses of a trace become arrivals
    #[arg(long, value_name = "HOW", default_value = "drawn")]
    arrivals: ArrivalsName,

    /// About how many accesses are simulated, of all clusters together
    #[arg(long, value_name = "COUNT", default_value = "100000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    messages: u64,

    /// Leave out what was before this time of each trace, in ms
    #[arg(long, value_name = "MS", default_value = "0", value_parser = ms)]
    from_ms: Ns,

    /// Use so much of each trace, in ms [default: to its end]
    #[arg(long, value_name = "MS", value_parser = ms)]
    length_ms: Option<Ns>,

    /// How many times faster machines are than those that were traced
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,

    /// Memory is spread over memory blades in blocks of so many KiB
    #[arg(long, value_name = "KIB", default_value = "2048",
          value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    block_kib: u64,

    /// Seed of every random draw, 0 to 2^64 - 1
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Set a key of the network's scenario, scenarios/study-clos.toml, as if its file said so:
    /// fabric.packet.forwarding_ns=100. Repeat it for more keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// Within one rack
    Rack,
    /// Anywhere in the network
    Datacenter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalsName {
    /// Sizes and gaps of each pair of blades drawn from those of the trace, as the study does
    Drawn,
    /// As in the trace, each machine from an instant drawn for it
    AsTraced,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = arguments.plan();
    let part =
        Part { from: arguments.from_ms, length: arguments.length_ms, speed: arguments.speed };
    let load = |path: &PathBuf| Machine::load(path, part, Bytes(arguments.block_kib << 10));
    let machines = arguments.traces.iter().map(load).collect::<Result<Vec<_>, _>>()?;
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
    let offered = replay.write(&messages, link)?;

    let name = arguments.name();
    let command = typed_command(plan.seed);
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
    for (mut run, (scenario, notice)) in runs?.into_iter().zip(&networks) {
        run.notices.extend(replay.notices(&offered));
        run.notices.extend(notice.clone());
        let topology = match scenario.fabric.topology {
            Topology::SingleSwitch => "single-switch",
            Topology::LeafSpine(_) => "leaf-spine",
        };
        outcomes.push(Outcome::of(&plan, replay.embedding(), offered, topology, run));
    }
    if let Some(writer) = completions {
        write_completions(writer, &outcomes, replay.embedding(), &command)?;
    }
    arguments.format.print(&outcomes[..], Outcome::table, Outcome::csv)
}

impl Arguments {
    fn plan(&self) -> Plan {
        Plan {
            blades: self.cluster,
            nodes: self.embed,
            rack_nodes: self.rack_nodes,
            scope: match self.scope {
                ScopeName::Rack => Scope::Rack,
                ScopeName::Datacenter => Scope::Datacenter,
            },
            link_gbps: self.link_gbps,
            arrivals: match self.arrivals {
                ArrivalsName::Drawn => Arrivals::Drawn,
                ArrivalsName::AsTraced => Arrivals::AsTraced,
            },
            messages: self.messages,
            seed: self.seed,
            settings: self.settings.clone(),
        }
    }

    /// What people call the traces.
    fn name(&self) -> String {
        let names = self.traces.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    }
}

fn blades(text: &str) -> Result<Blades, String> {
    let count = text.parse().map_err(|_| "allowed are multiples of 3".to_owned())?;
    Blades::of(count)
}

/// A time in ms, to the nanosecond.
fn ms(text: &str) -> Result<Ns, String> {
    let ms = text.parse::<f64>().ok().filter(|ms| (0.0..=1e12).contains(ms));
    let ns = ms.map(|ms| Ns((ms * 1e6).round() as u64));
    ns.ok_or_else(|| "allowed are 0 to 1000000000000".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (1e-6..=1e6).contains(speed));
    speed.ok_or_else(|| "allowed are 0.000001 to 1000000".to_owned())
}
