//! The table of schemes: every URL that opens a pool, and every parameter.
//!
//! A row is data, even in a build that leaves its backend out: errors and `docs/reference/urls.md`
//! are made from it.

use crate::backends;
use crate::scheme::{Open, Parameter, Scheme, Unless, Values};

/// The schemes of this crate, in the order in which people see them.
pub static SCHEMES: [&Scheme; 5] = [&LOCAL, &SIM, &NODE, &UDP, &RING];

#[cfg(feature = "remote")]
const OPEN_NODE: Option<Open> = Some(backends::remote::open_node);
#[cfg(feature = "remote")]
const OPEN_UDP: Option<Open> = Some(backends::remote::open_udp);
#[cfg(feature = "remote")]
const OPEN_RING: Option<Open> = Some(backends::remote::open_ring);
#[cfg(not(feature = "remote"))]
const OPEN_NODE: Option<Open> = None;
#[cfg(not(feature = "remote"))]
const OPEN_UDP: Option<Open> = None;
#[cfg(not(feature = "remote"))]
const OPEN_RING: Option<Open> = None;
#[cfg(feature = "sim")]
const OPEN_SIM: Option<Open> = Some(backends::sim::open);
#[cfg(not(feature = "sim"))]
const OPEN_SIM: Option<Open> = None;

static LOCAL: Scheme = Scheme {
    name: "local",
    forms: &["local:"],
    about: "memory of this process, shared by its threads",
    feature: None,
    parameters: &[Parameter {
        name: "memory_bytes",
        values: bytes(1, u64::MAX),
        unless_said: Unless::Number(64 << 30),
        about: "memory of the pool",
    }],
    more_parameters: None,
    wraps: false,
    open: Some(backends::local::open),
};

static SIM: Scheme = Scheme {
    name: "sim",
    forms: &["sim:FABRIC"],
    about: "compute and memory nodes on a simulated fabric, in the fabric's own time",
    feature: Some("sim"),
    parameters: &[
        Parameter {
            name: "memory_bytes",
            values: bytes(1, u64::MAX),
            unless_said: Unless::Words("64 GiB over all memory nodes"),
            about: "memory of each memory node",
        },
        Parameter {
            name: "memory_nodes",
            values: Values::Number { unit: "nodes", least: 1, most: 511 },
            unless_said: Unless::Words("half of the nodes"),
            about: "memory nodes, fewer than all nodes; the others are compute nodes",
        },
    ],
    more_parameters: Some(
        "any key of a scenario; the tables `fabric`, `workload`, `run` and the fabric's own may be \
         left out",
    ),
    wraps: false,
    open: OPEN_SIM,
};

static NODE: Scheme = Scheme {
    name: "node",
    forms: &["node://HOST:PORT"],
    about: "a memory node, by UDP or raw Ethernet, whichever has the shorter round trips",
    feature: Some("remote"),
    parameters: &[
        CACHE_BYTES,
        DATAGRAM,
        INCAST,
        KEY,
        LINE_BYTES,
        POLL,
        PLACE,
        TENANT,
        TIMEOUT,
        WINDOW,
    ],
    more_parameters: None,
    wraps: false,
    open: OPEN_NODE,
};

static UDP: Scheme = Scheme {
    name: "udp",
    forms: &["udp://HOST:PORT"],
    about: "a memory node of an ordinary network, by UDP",
    feature: Some("remote"),
    parameters: &[
        CACHE_BYTES,
        DATAGRAM,
        INCAST,
        KEY,
        LINE_BYTES,
        POLL,
        TENANT,
        TIMEOUT,
        VIA,
        WINDOW,
    ],
    more_parameters: None,
    wraps: false,
    open: OPEN_UDP,
};

static RING: Scheme = Scheme {
    name: "ring",
    forms: &["ring://INTERFACE", "ring://INTERFACE/MAC"],
    about: "a memory node by raw Ethernet: the one that answers, or the one at an address",
    feature: Some("remote"),
    parameters: &REMOTE,
    more_parameters: None,
    wraps: false,
    open: OPEN_RING,
};

const REMOTE: [Parameter; 9] =
    [CACHE_BYTES, DATAGRAM, INCAST, KEY, LINE_BYTES, POLL, TENANT, TIMEOUT, WINDOW];

// The smallest cache is a page. Building a cache of 1 GiB takes no time; twice as much has no use
// in front of a node of some GiB.
const CACHE_BYTES: Parameter = Parameter {
    name: "cache_bytes",
    values: Values::Size { least: 4096, most: 1 << 30 },
    unless_said: Unless::Words("no cache"),
    about: "a write-back cache in this process, for memory that one process uses",
};
const LINE_BYTES: Parameter = Parameter {
    name: "line_bytes",
    values: Values::Size { least: 64, most: 4096 },
    unless_said: Unless::Number(64),
    about: "what a miss of the cache fetches; at most a quarter of `cache_bytes`, which must be \
            given",
};

const DATAGRAM: Parameter = Parameter {
    name: "datagram_bytes",
    values: bytes(256, 65_507),
    unless_said: Unless::Words("what the path carries in one piece, which is searched"),
    about: "longest datagram",
};
const INCAST: Parameter = Parameter {
    name: "incast_bytes",
    values: bytes(65_536, 1 << 40),
    unless_said: Unless::Number(4 << 20),
    about: "most bytes of answers in flight",
};
const KEY: Parameter = Parameter {
    name: "key",
    values: Values::Text("FILE"),
    unless_said: Unless::Words("datagrams in clear, which a node allows on its own machine alone"),
    about: "a tenant's key, made by `ethermem keygen`: datagrams are encrypted",
};
const POLL: Parameter = Parameter {
    name: "poll_us",
    values: Values::Number { unit: "us", least: 0, most: 60_000_000 },
    unless_said: Unless::Number(1_000),
    about: "how long a waiting thread polls before it sleeps; a busy CPU for 10 us or so less",
};
const PLACE: Parameter = Parameter {
    name: "ring",
    values: Values::Text("INTERFACE[:PORT][/MAC]"),
    unless_said: Unless::Words("the interface by which the host is reached"),
    about: "where the node is looked for on raw Ethernet",
};
const TENANT: Parameter = Parameter {
    name: "tenant",
    values: Values::Number { unit: "", least: 0, most: 65_535 },
    unless_said: Unless::Words("the key's, or 0"),
    about: "whose quota counts; the key says it, too, and without one it is 0",
};
// A node remembers requests for five seconds, so no request is tried for longer.
const TIMEOUT: Parameter = Parameter {
    name: "timeout_ms",
    values: Values::Number { unit: "ms", least: 10, most: 4_500 },
    unless_said: Unless::Number(2_000),
    about: "how long an operation, or the opening, is tried",
};
const VIA: Parameter = Parameter {
    name: "via",
    values: Values::Text("INTERFACE[,INTERFACE...]"),
    unless_said: Unless::Words("the interface that the routes give"),
    about: "up to eight interfaces of this machine that are used together; each has a window",
};
const WINDOW: Parameter = Parameter {
    name: "window",
    values: Values::Number { unit: "requests", least: 1, most: 65_535 },
    unless_said: Unless::Number(256),
    about: "most requests in flight",
};

const fn bytes(least: u64, most: u64) -> Values {
    Values::Number { unit: "B", least, most }
}
