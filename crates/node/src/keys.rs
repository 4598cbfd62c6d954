//! The keys of `node.toml`, as the reference page has them.

/// A key of `node.toml`, as the reference page describes it.
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Allowed values, with their unit.
    pub values: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Effect of the key.
    pub meaning: &'static str,
}

const fn key(
    name: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, values, default, meaning }
}

/// The keys of the file itself, in the order of the reference page.
pub const KEYS: [Key; 14] = [
    key(
        "memory",
        "size: bytes, or a string with a unit",
        "must be said",
        "what it serves, in whole pages",
    ),
    key(
        "page",
        "`\"4KiB\"`, `\"64KiB\"`, `\"2MiB\"`, `\"4MiB\"`",
        "`\"64KiB\"`",
        "what is allocated and protected as one",
    ),
    key(
        "listen",
        "address and UDP port",
        "`\"127.0.0.1:7400\"`",
        "where it is reached; port 0 is any that is free; without `listen`, a node with `ring` has \
         no UDP",
    ),
    key(
        "ring",
        "interface, or `\"INTERFACE:PORT\"`",
        "no raw Ethernet",
        "the interface on which it is reached by frames of raw Ethernet, which needs CAP_NET_RAW; \
         the port, 7400 by default, tells nodes on one interface apart",
    ),
    key(
        "insecure",
        "boolean",
        "`false`",
        "neither authenticates nor encrypts; loopback addresses and `ring = \"lo\"` alone are \
         allowed then, and no `[[tenant]]`",
    ),
    key(
        "lease_s",
        "seconds, 0 to 1,000,000,000",
        "`60`",
        "a process that is not heard of for so long ends, and its memory is taken back; 0 is never",
    ),
    key(
        "poll_ms",
        "milliseconds",
        "`1`",
        "it goes to sleep after so long without a datagram; until then one CPU is busy; at once \
         where requests come less than ten times a second",
    ),
    key(
        "drain_ms_max",
        "milliseconds, 0 to 600,000",
        "`2000`",
        "at its end it answers what is under way for so long at most",
    ),
    key("huge_pages", "boolean", "`true`", "asks for huge pages of 2 MiB; what it got is said"),
    key(
        "numa_node",
        "number of a NUMA node",
        "wherever the system likes",
        "its CPUs serve, and its memory is served",
    ),
    key(
        "metrics_listen",
        "address and TCP port",
        "no metrics",
        "answers `/metrics` for Prometheus and `/status` for `ethermem node status`; in clear, to \
         whoever asks",
    ),
    key(
        "control",
        "path, from the file's own folder",
        "none",
        "a Unix socket for `ethermem node processes`, which root and the node's own user may use",
    ),
    key(
        "log_format",
        "`\"text\"`, `\"json\"`",
        "`\"text\"`",
        "the form of logs, on the standard error",
    ),
    key(
        "log_level",
        "`\"error\"`, `\"warn\"`, `\"info\"`",
        "`\"info\"`",
        "what is logged, and what is worse",
    ),
];

/// The keys of a `[[tenant]]`.
pub const TENANT_KEYS: [Key; 9] = [
    key("name", "text", "must be said", "what it is called in metrics and logs; each has another"),
    key(
        "key_file",
        "path, from the file's own folder",
        "must be said",
        "its key, made by `ethermem keygen`; the key says the tenant's number",
    ),
    key(
        "memory_max",
        "size: bytes, or a string with a unit",
        "all",
        "most memory of all its processes",
    ),
    key("pages_max", "pages", "all", "the same in pages; the smaller counts"),
    key("processes_max", "processes, 0 to 65,535", "`65535`", "most processes at once"),
    key(
        "operations_per_s_max",
        "requests a second, 1 or more",
        "any",
        "most requests a second, and as many at once after a second's rest; one more waits at its \
         client until its turn, or until that gives it up",
    ),
    key(
        "offload_fuel_max",
        "units of fuel, 1 to 1,000,000,000,000",
        "what the module may have",
        "most fuel of a call of a WebAssembly module, whatever the module itself may have",
    ),
    key(
        "offload_memory_max",
        "size up to `\"4GiB\"`: bytes, or a string with a unit",
        "what the module may have",
        "most memory of such a call, beside the node's",
    ),
    key(
        "offloads_max",
        "modules, 0 to 65,535",
        "`0`",
        "most WebAssembly modules that its clients bring to the node",
    ),
];

/// The keys of an `[offload.NAME]`.
pub const OFFLOAD_KEYS: [Key; 5] = [
    key(
        "file",
        "path, from the file's own folder",
        "must be said",
        "the WebAssembly module, in its binary form",
    ),
    key(
        "own_space",
        "boolean",
        "`false`",
        "it acts in an address space of its own, one for each tenant, and not in the caller's",
    ),
    key("fuel_max", "units of fuel, 1 to 1,000,000,000,000", "`100000000`", "most fuel of a call"),
    key(
        "memory_max",
        "size up to `\"4GiB\"`: bytes, or a string with a unit",
        "`\"4MiB\"`",
        "most memory of a call, beside the node's",
    ),
    key("tenants", "list of names of tenants", "all", "who may call it"),
];
