//! `ethermem bench micro`.

use clap::Args;
use ethermem_bench::micro::MicroOp;
use ethermem_experiments::bench::micro::{Request, table};
use ethermem_experiments::words::bytes;

use crate::failure::Failure;
use crate::output::Format;
use crate::terminal::runner;

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

    /// Operations to measure: read, write, cas, fetch-add, lock
    #[arg(long = "op", value_name = "OP,OP", value_delimiter = ',', default_value = "read")]
    ops: Vec<MicroOp>,

    /// Lengths of reads and writes in bytes [default: 64; the others have 8 B]
    #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', value_parser = bytes)]
    bytes: Vec<u64>,

    /// Numbers of operations in flight
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    depth: Vec<u32>,

    /// Number of measured operations; a tenth as many are warm-up
    #[arg(long, value_name = "N", default_value = "10000")]
    operations: u64,

    /// Seed of every random draw
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request {
        pools: arguments.pools.clone(),
        ops: arguments.ops.clone(),
        bytes: arguments.bytes.clone(),
        depth: arguments.depth.clone(),
        operations: arguments.operations,
        seed: arguments.seed,
    };
    let results = request.run(&runner(None))?;
    match (results.as_slice(), arguments.format) {
        ([result], Format::Json) => arguments.format.print(result, |_, _| String::new()),
        (results, _) => arguments.format.print(results, table),
    }
}
