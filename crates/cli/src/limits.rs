//! `ethermem limits`: every limit of what people ask for, as the code has it.

use clap::Args;
use ethermem_sim::output::TextTable;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
pub(crate) struct Arguments {
    /// How to print the list
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Limit {
    limit: &'static str,
    least: u64,
    most: u64,
    unit: &'static str,
    what: &'static str,
    beyond: &'static str,
}

const fn limit(
    limit: &'static str,
    range: [u64; 2],
    unit: &'static str,
    what: &'static str,
    beyond: &'static str,
) -> Limit {
    Limit { limit, least: range[0], most: range[1], unit, what, beyond }
}

/// `docs/reference/limits.md` shows this list, and the conformance matrix tries each limit from it.
static LIMITS: [Limit; 14] = [
    limit(
        "pool.access_bytes",
        [1, ethermem::ACCESS_BYTES_MAX],
        "B",
        "a read, a write, a region; all places of a gather or a scatter together",
        "Empty, TooLong",
    ),
    limit(
        "pool.offload_bytes",
        [0, ethermem::OFFLOAD_BYTES_MAX],
        "B",
        "arguments of an operation at a memory node over a network",
        "TooLong",
    ),
    limit(
        "pool.offload_name_bytes",
        [1, ethermem::OFFLOAD_NAME_BYTES_MAX as u64],
        "B",
        "name of an operation that a tenant brings",
        "Offload",
    ),
    limit(
        "kv.key_bytes",
        [0, ethermem_kv::KEY_BYTES_MAX as u64],
        "B",
        "a key of the store",
        "KeyTooLong; -ERR",
    ),
    limit(
        "kv.value_bytes",
        [0, ethermem_kv::VALUE_BYTES_MAX as u64],
        "B",
        "a value of the store",
        "ValueTooLong; -ERR",
    ),
    limit(
        "resp.request_bytes",
        [1, ethermem_resp::REQUEST_BYTES_MAX as u64],
        "B",
        "a request to the key-value server",
        "-ERR, connection closed",
    ),
    limit(
        "resp.request_words",
        [1, ethermem_resp::REQUEST_WORDS_MAX],
        "words",
        "words of a request",
        "-ERR, connection closed",
    ),
    limit(
        "resp.line_bytes",
        [1, ethermem_resp::LINE_BYTES_MAX as u64],
        "B",
        "a request that is one line",
        "-ERR, connection closed",
    ),
    limit(
        "resp.reply_bytes",
        [1, ethermem_resp::REPLY_BYTES_MAX as u64],
        "B",
        "a reply of the key-value server",
        "-ERR",
    ),
    limit(
        "node.processes",
        [0, ethermem_node::PROCESSES_MAX as u64],
        "processes",
        "processes of a memory node",
        "Refused",
    ),
    limit(
        "node.drain_ms_max",
        [0, ethermem_node::DRAIN_MS_MAX],
        "ms",
        "drain_ms_max of a memory node",
        "exit code 2",
    ),
    limit(
        "module.bytes",
        [1, ethermem_node::MODULE_BYTES_MAX as u64],
        "B",
        "a module that a tenant brings",
        "exit code 2",
    ),
    limit(
        "module.fuel",
        [1, ethermem_node::FUEL_MAX],
        "units",
        "fuel of one call of a module",
        "exit code 2",
    ),
    limit(
        "module.memory_bytes",
        [0, ethermem_node::MEMORY_BYTES_MAX],
        "B",
        "memory of one call of a module",
        "exit code 2",
    ),
];

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let row = |limit: &Limit| {
        let (least, most) = (limit.least.to_string(), limit.most.to_string());
        let words = [limit.limit, &least, &most, limit.unit, limit.what, limit.beyond];
        words.map(str::to_owned).to_vec()
    };
    let table = TextTable {
        header: &["limit", "least", "most", "unit", "of", "beyond it"],
        text_columns: &[0, 3, 4, 5],
        optional_columns: &[5],
        rows: LIMITS.iter().map(row).collect(),
    };
    arguments.format.print(&LIMITS, |_, style| table.render(style))
}
