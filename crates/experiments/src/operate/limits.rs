//! Every limit of requests, as defined in the code.

use ethermem_rack::nics::{frame, session};
use ethermem_sim::output::{TableStyle, TextTable};
use serde::Serialize;

/// A limit of requests.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limit {
    /// Name of the limit.
    pub limit: &'static str,
    /// Smallest allowed value.
    pub least: u64,
    /// Largest allowed value.
    pub most: u64,
    /// Unit of both values.
    pub unit: &'static str,
    /// Quantity that is limited.
    pub what: &'static str,
    /// Error of a request beyond the limit.
    pub beyond: &'static str,
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

/// Every limit. `docs/reference/limits.md` shows this list, and the conformance matrix tests each
/// limit from it.
pub static LIMITS: [Limit; 17] = [
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
        "ValueTooLong; -ERR, connection closed",
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
        [1, ethermem_node::MODULE_FUEL_MAX],
        "units",
        "fuel_max and offload_fuel_max of a memory node, for a call of a module",
        "exit code 2",
    ),
    limit(
        "module.memory_bytes",
        [0, ethermem_node::MODULE_MEMORY_BYTES_MAX],
        "B",
        "memory_max of a module and offload_memory_max of a memory node",
        "exit code 2",
    ),
    limit(
        "rack.nics",
        [1, frame::SUBFLOWS_MAX as u64],
        "NICs",
        "NICs of a rack that joins others",
        "exit code 2",
    ),
    limit(
        "rack.streams",
        [0, session::STREAMS_MAX as u64],
        "streams",
        "connections from a rack to another one over their NICs",
        "the kernel connects",
    ),
    limit(
        "rack.windows_bytes",
        [0, session::WINDOWS_BYTES_MAX],
        "B",
        "windows of the connections from another rack, together",
        "windows stay narrow",
    ),
];

/// The limits for people.
#[must_use]
pub fn table(limits: &[Limit], style: TableStyle) -> String {
    let row = |limit: &Limit| {
        let (least, most) = (limit.least.to_string(), limit.most.to_string());
        let words = [limit.limit, &least, &most, limit.unit, limit.what, limit.beyond];
        words.map(str::to_owned).to_vec()
    };
    TextTable {
        header: &["limit", "least", "most", "unit", "of", "beyond it"],
        text_columns: &[0, 3, 4, 5],
        optional_columns: &[5],
        rows: limits.iter().map(row).collect(),
    }
    .render(style)
}
