//! `ethermem bench ycsb`.

use std::path::{Path, PathBuf};

use clap::Args;
use ethermem_bench::ycsb::{self, LocalToRemote, Settings, Workload};
use ethermem_experiments::bench::figure::{self, Outcome};
use ethermem_experiments::bench::ycsb::{run as run_pools, table};
use ethermem_experiments::words::{bytes, name};

use crate::failure::Failure;
use crate::files::Files;
use crate::output::Format;
use crate::terminal::runner;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem bench ycsb --pool local: --workload A --records 100000 --operations 1000000\n  \
    ethermem bench ycsb --pool 'sim:edm?nodes=2' --pool 'sim:cxl?nodes=2' --workload A,B,C,F\n  \
    ethermem bench ycsb scenarios/figure7.toml --out out/figure7\n\
    \n\
    Times are the fabric's on sim: and the machine's on local:. Every record that is read is held\n\
    against what was written. With one pool and workload JSON is an object, otherwise a list.\n\
    docs/how-to/measure-a-pool.md says what the workloads are.")]
pub(crate) struct Arguments {
    /// TOML file of pools and points to run; docs/how-to/measure-a-pool.md explains its format
    #[arg(value_name = "SCENARIO", required_unless_present = "pools")]
    scenario: Option<PathBuf>,

    /// URL of a pool, as programs open it; repeat it for more
    #[arg(long = "pool", value_name = "URL", conflicts_with = "scenario")]
    pools: Vec<String>,

    /// Core workloads: A, B, C, D, E, F
    #[arg(
        long = "workload",
        value_name = "A,B",
        value_delimiter = ',',
        default_value = "A",
        conflicts_with = "scenario"
    )]
    workloads: Vec<Workload>,

    /// Distribution of requests over records: zipfian, latest, uniform [default: the workload's]
    #[arg(long, value_name = "NAME", value_parser = name::<ycsb::Distribution>)]
    distribution: Option<ycsb::Distribution>,

    /// Store of the records: objects, whose addresses the clients know; or a key-value store whose
    /// index the client walks (kv-client) or the node (kv-node) [default: objects]
    #[arg(long, value_name = "NAME", value_parser = name::<ycsb::StoreKind>)]
    store: Option<ycsb::StoreKind>,

    /// Number of loaded records [default: 10000]
    #[arg(long, value_name = "N")]
    records: Option<u64>,

    /// Number of measured operations [default: 100000]
    #[arg(long, value_name = "N")]
    operations: Option<u64>,

    /// Number of warm-up operations [default: a tenth of the measured ones]
    #[arg(long, value_name = "N")]
    warmup: Option<u64>,

    /// Number of clients, each with one operation in flight, on the compute nodes in round-robin
    /// order [default: 1]
    #[arg(long, value_name = "N")]
    clients: Option<u32>,

    /// Seed of every random draw [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Length of a record in bytes [default: 1000]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    record_bytes: Option<u64>,

    /// Length of a field in bytes [default: 100, or the record's if 100 does not divide it]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    field_bytes: Option<u64>,

    /// Part that a read moves: record, field [default: record]
    #[arg(long, value_name = "EXTENT", value_parser = name::<ycsb::Extent>)]
    reads: Option<ycsb::Extent>,

    /// Part that an update moves: record, field [default: field; for kv-client and kv-node record]
    #[arg(long, value_name = "EXTENT", value_parser = name::<ycsb::Extent>)]
    updates: Option<ycsb::Extent>,

    /// Completion of a write: at-node, or in-memory, 82 ns of DRAM later [default: at-node]
    #[arg(long, value_name = "WHEN", value_parser = name::<ycsb::WriteEnd>)]
    writes: Option<ycsb::WriteEnd>,

    /// Ratio of objects in the compute node's DRAM, at 82 ns, to objects in the pool: 50:50
    /// [default: none local]
    #[arg(long, value_name = "L:R")]
    local_to_remote: Option<LocalToRemote>,

    /// Write a page of tables and figures into this folder; only with a scenario
    #[arg(long, value_name = "FOLDER", conflicts_with = "pools")]
    out: Option<PathBuf>,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings = arguments.settings();
    if let Some(scenario) = &arguments.scenario {
        return of_scenario(arguments, scenario, &settings);
    }
    let results = run_pools(&arguments.pools, &arguments.workloads, &settings, &runner(None))?;
    match (results.as_slice(), arguments.format) {
        ([result], Format::Json) => arguments.format.print(result, |_, _| String::new()),
        (results, _) => arguments.format.print(results, table),
    }
}

fn of_scenario(arguments: &Arguments, scenario: &Path, settings: &Settings) -> Result<(), Failure> {
    let files = Files::default().reading("the scenario", Some(scenario));
    files.writing_page("--out", arguments.out.as_deref()).check()?;
    let mut outcome = figure::run(scenario, settings, arguments.out.as_deref(), &runner(None))?;
    arguments.format.print(&outcome, Outcome::text)?;
    arguments.format.name_page(outcome.write()?.as_deref())
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            workload: None,
            distribution: self.distribution,
            store: self.store,
            records: self.records,
            operations: self.operations,
            warmup_operations: self.warmup,
            clients: self.clients,
            seed: self.seed,
            record_bytes: self.record_bytes,
            field_bytes: self.field_bytes,
            reads: self.reads,
            updates: self.updates,
            writes: self.writes,
            local_to_remote: self.local_to_remote,
        }
    }
}
