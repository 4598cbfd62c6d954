//! `ethermem bench micro`.

use clap::Args;
use ethermem_bench::micro::{self, MicroConfig, MicroOp, MicroResult};
use ethermem_sim::output::{TableStyle, TextTable};

use super::{chosen, failure};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Format;
use crate::value::bytes;

/// Of reads and writes, unless somebody says otherwise.
const BYTES: u64 = 64;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem bench micro --pool local: --op read --bytes 64\n  \
    ethermem bench micro --pool 'sim:edm?nodes=2' --pool 'sim:roce?nodes=2' \\\n    \
    --op read,write --bytes 64,1024 --depth 1,16 --format json\n\
    \n\
    Times are the fabric's on sim: and the machine's on local:, where an operation is done when\n\
    it is asked for, so that the depth changes little. With one pool, op, length and depth JSON\n\
    is an object, otherwise a list.")]
pub(crate) struct Arguments {
    /// URL of a pool, as programs open it; repeat it for more
    #[arg(long = "pool", value_name = "URL", required = true)]
    pools: Vec<String>,

    /// What is done: read, write, cas, fetch-add, lock
    #[arg(long = "op", value_name = "OP,OP", value_delimiter = ',', default_value = "read")]
    ops: Vec<MicroOp>,

    /// How long reads and writes are [default: 64; the others are of 8 B]
    #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', value_parser = bytes)]
    bytes: Vec<u64>,

    /// How many are under way at once
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    depth: Vec<u32>,

    /// How many are measured; a tenth as many go before
    #[arg(long, value_name = "N", default_value = "10000")]
    operations: u64,

    /// Seed of every random draw
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut results = Vec::new();
    for config in configs(arguments) {
        let result = micro::run(&config, interrupt::flag());
        results.push(result.map_err(|error| failure(&error))?);
    }
    match (results.as_slice(), arguments.format) {
        ([result], Format::Json) => arguments.format.print(result, |_, _| String::new()),
        (results, _) => arguments.format.print(results, table),
    }
}

/// Every point, in the order in which the lists have them.
fn configs(arguments: &Arguments) -> Vec<MicroConfig> {
    let mut configs = Vec::new();
    for pool in &arguments.pools {
        for &op in &arguments.ops {
            let usual = [op.fixed_bytes().unwrap_or(BYTES)];
            let asked: &[u64] = if arguments.bytes.is_empty() { &usual } else { &arguments.bytes };
            for &bytes in asked {
                for &depth in &arguments.depth {
                    let (pool, seed) = (pool.clone(), arguments.seed);
                    let operations = arguments.operations;
                    configs.push(MicroConfig { pool, op, bytes, depth, operations, seed });
                }
            }
        }
    }
    configs
}

fn table(results: &[MicroResult], style: TableStyle) -> String {
    let header = ["pool", "op", "bytes", "depth", "mean ns", "p50", "p99", "operations/s"];
    let row = |result: &MicroResult| {
        let times = [result.mean_ns, result.p50_ns, result.p99_ns].map(|ns| format!("{ns:.1}"));
        let head = [result.pool.clone(), result.op.to_string()];
        let numbers = [result.bytes.to_string(), result.depth.to_string()];
        let rate = format!("{:.0}", result.operations_per_s);
        head.into_iter().chain(numbers).chain(times).chain([rate]).collect()
    };
    let rows = results.iter().map(row).collect();
    let table = TextTable { header: &header, text_columns: &[0, 1], optional_columns: &[], rows };
    let lost: u64 = results.iter().map(|result| result.lost).sum();
    let lost = if lost > 0 { format!("{lost} operations were lost\n") } else { String::new() };
    let choices = results.iter().map(|result| (&result.pool, &result.choice));
    table.render(style) + &lost + &chosen(choices)
}
