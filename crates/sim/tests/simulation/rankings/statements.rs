//! What README and the documentation say of which fabric is ahead.

use ethermem_sim::metrics::KindStats;

/// A fabric with its settings, as `--fabric` and `--set` take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Contender {
    pub(super) fabric: &'static str,
    pub(super) settings: &'static [&'static str],
}

const fn plain(fabric: &'static str) -> Contender {
    Contender { fabric, settings: &[] }
}

const EDM: Contender = plain("edm");
/// EDM whose messages of a pair may overtake each other.
const RELAXED: Contender = Contender { fabric: "edm", settings: &["fabric.edm.order=relaxed"] };

/// Those that a statement's fabric is ahead of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behind {
    /// Every fabric that can be built, but EDM's artifact.
    Rivals,
    These(&'static [Contender]),
}

/// A number of a run; less is better.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// Its name in the results.
    pub(super) name: &'static str,
    pub(super) of: fn(&KindStats) -> Option<f64>,
}

const SLOWDOWN_MEAN: Number = Number { name: "slowdown_mean", of: |all| all.slowdown_mean };
const SLOWDOWN_P99: Number = Number { name: "slowdown_p99", of: |all| all.slowdown_p99 };
const LATENCY_MEAN: Number = Number { name: "latency_ns_mean", of: |all| all.latency_ns_mean };
const LATENCY_P99: Number = Number { name: "latency_ns_p99", of: |all| all.latency_ns_p99 };

/// One sentence, and where it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement {
    /// Its heading on the page, which documents link to.
    pub(super) id: &'static str,
    pub(super) says: &'static str,
    pub(super) ahead: Contender,
    pub(super) behind: Behind,
    pub(super) number: Number,
    pub(super) load: f64,
    pub(super) read_fraction: f64,
    /// Workloads on which it holds in every run; documents say it of these alone.
    pub(super) holds: &'static [&'static str],
}

const APPLICATIONS: &[&str] = &["hadoop", "spark", "sparksql", "graphlab", "memcached"];

const fn edm_first(
    id: &'static str,
    says: &'static str,
    number: Number,
    load: f64,
    holds: &'static [&'static str],
) -> Statement {
    let (ahead, behind, read_fraction) = (EDM, Behind::Rivals, 0.5);
    Statement { id, says, ahead, behind, number, load, read_fraction, holds }
}

const fn ahead_of_edm(
    id: &'static str,
    says: &'static str,
    ahead: Contender,
    number: Number,
    load: f64,
    holds: &'static [&'static str],
) -> Statement {
    let (behind, read_fraction) = (Behind::These(&[EDM]), 0.5);
    Statement { id, says, ahead, behind, number, load, read_fraction, holds }
}

/// Every sentence that ranks fabrics.
pub(super) const STATEMENTS: &[Statement] = &[
    edm_first(
        "edm-mean-high",
        "At load 0.8 EDM has the least mean slowdown of the fabrics that sustain the load.",
        SLOWDOWN_MEAN,
        0.8,
        &["64 B"],
    ),
    edm_first(
        "edm-p99-high",
        "At load 0.8 EDM has the least 99th percentile of slowdowns.",
        SLOWDOWN_P99,
        0.8,
        &["64 B"],
    ),
    edm_first(
        "edm-ns-high",
        "At load 0.8 EDM has the least mean latency in ns.",
        LATENCY_MEAN,
        0.8,
        &["64 B"],
    ),
    edm_first(
        "edm-ns-applications",
        "At load 0.4 EDM has the least mean latency in ns.",
        LATENCY_MEAN,
        0.4,
        &[],
    ),
    edm_first(
        "edm-p99-ns-applications",
        "At load 0.4 EDM has the least 99th percentile of latencies in ns.",
        LATENCY_P99,
        0.4,
        &[],
    ),
    ahead_of_edm(
        "homa-mean-applications",
        "At load 0.4 Homa has a lower mean slowdown than EDM.",
        plain("homa"),
        SLOWDOWN_MEAN,
        0.4,
        APPLICATIONS,
    ),
    ahead_of_edm(
        "homa-p99-applications",
        "At load 0.4 Homa has a lower 99th percentile of slowdowns than EDM.",
        plain("homa"),
        SLOWDOWN_P99,
        0.4,
        &[],
    ),
    ahead_of_edm(
        "pfabric-mean-applications",
        "At load 0.4 pFabric has a lower mean slowdown than EDM.",
        plain("pfabric"),
        SLOWDOWN_MEAN,
        0.4,
        APPLICATIONS,
    ),
    ahead_of_edm(
        "homa-mean-high",
        "At load 0.8 Homa has a lower mean slowdown than EDM.",
        plain("homa"),
        SLOWDOWN_MEAN,
        0.8,
        &["4 KiB"],
    ),
    ahead_of_edm(
        "homa-p99-high",
        "At load 0.8 Homa has a lower 99th percentile of slowdowns than EDM.",
        plain("homa"),
        SLOWDOWN_P99,
        0.8,
        &["4 KiB"],
    ),
    ahead_of_edm(
        "phost-mean-high",
        "At load 0.8 pHost has a lower mean slowdown than EDM.",
        plain("phost"),
        SLOWDOWN_MEAN,
        0.8,
        &["4 KiB"],
    ),
    ahead_of_edm(
        "relaxed-mean-high",
        "At load 0.8 EDM with `order = \"relaxed\"` has a lower mean slowdown than EDM.",
        RELAXED,
        SLOWDOWN_MEAN,
        0.8,
        &["hadoop"],
    ),
    Statement {
        id: "cxl-writes-low",
        says: "At load 0.4 CXL's writes have a lower mean latency in ns than EDM's.",
        ahead: plain("cxl"),
        behind: Behind::These(&[EDM]),
        number: LATENCY_MEAN,
        load: 0.4,
        read_fraction: 0.0,
        holds: &["64 B"],
    },
];
