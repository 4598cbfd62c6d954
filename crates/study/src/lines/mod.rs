//! Line traces replayed on a fabric, through a cache at the compute node, with a prefetcher.
//!
//! One compute node with one memory node. The program's loads wait: an access begins once the
//! instructions before it have run, and every earlier load has its line. Fetches for stores,
//! write-backs and prefetches do not hold the program up, until [`POSTED_MAX`] of a kind are under
//! way. So the program's time follows from the fabric, which really runs every message.
//!
//! On a fabric whose compute nodes have caches of their own, accesses have addresses, and those
//! caches are in the path. Elsewhere, a cache of the same shape stands in front of the fabric.

mod cache;
mod outcome;
mod replay;

use ethermem_lines::prefetch::PrefetchKind;
use ethermem_sim::keys::refuse_own;
use ethermem_sim::registry::{FABRIC_NAMES, FabricEntry};
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::InputError;
use ethermem_trace::LineAccess;
use ethermem_units::{Bytes, Ps};

pub use outcome::{LineOutcome, Totals};

/// Ways of the cache at the compute node: CXL over Ethernet, section IV.
const WAYS: u64 = 4;
/// The fabric whose compute nodes have caches, and the key of their size.
const HAS_CACHES: (&str, &str) = ("cxl-ethernet", "fabric.cxl_ethernet.cache_bytes");
/// Most fetches for stores, and as many write-backs and prefetches, that are under way at once: the
/// entries of a core's queue between its second cache and the memory. Our choice.
pub const POSTED_MAX: usize = 16;
/// Time of a hit in a cache that stands in front of a fabric without caches: 16 cycles of 4 ns, as
/// a read hit takes (CXL over Ethernet, Table II).
const HIT: Ps = Ps::from_ns(64);
/// Time of the lookup before a miss leaves such a cache: two cycles.
const LOOKUP: Ps = Ps::from_ns(8);
/// Time of a load from the memory of the program's own machine: CXL over Ethernet, Table I, local
/// access of a host's DDR.
pub const LOCAL: Ps = Ps::from_ns(94);

/// What is replayed on, and how.
#[derive(Clone)]
pub struct LineSetup {
    /// The fabric.
    pub fabric: &'static FabricEntry,
    /// Rate of both links in Gb/s.
    pub link_gbps: u64,
    /// Size of the cache at the compute node: 0 for none, or a power of two from 256 B.
    pub cache: Bytes,
    /// The prefetcher in front of that cache.
    pub prefetch: PrefetchKind,
    /// Instructions that the processor runs in a nanosecond while its caches hit.
    pub instructions_per_ns: f64,
    /// Accesses at the start that are left out of the results; they fill the cache.
    pub warmup: usize,
    /// Seed of the fabric.
    pub seed: u64,
    /// Keys of the scenario that describe the network.
    pub settings: Vec<Setting>,
}

/// The reason why a trace cannot be replayed.
#[derive(Debug)]
pub enum LineError {
    /// A setting cannot be used.
    Input(InputError),
    /// The size of the cache cannot be used.
    Cache(String),
    /// The fabric refuses the network.
    Source(ethermem_sim::SourceError),
    /// The fabric lost an access.
    Lost(String),
    /// The fabric's invariants are violated.
    Broken(String),
}

impl LineSetup {
    /// The scenario of two nodes. Settings come last.
    ///
    /// # Errors
    /// [`InputError`] for a setting that is unknown or not allowed.
    pub fn scenario(&self) -> Result<Scenario, InputError> {
        let (name, cache_key) = HAS_CACHES;
        let keys = ["fabric.kind", "fabric.nodes", "fabric.link_gbps", "run.seed", cache_key];
        refuse_own(&self.settings, &keys)?;
        let mut own = vec![
            format!("fabric.kind={}", self.fabric.name),
            "fabric.nodes=2".to_owned(),
            format!("fabric.link_gbps={}", self.link_gbps),
            format!("run.seed={}", self.seed),
        ];
        if self.fabric.name == name {
            own.push(format!("{cache_key}={}", self.cache.0));
        }
        let mut settings: Vec<Setting> =
            own.iter().map(|text| text.parse().expect("a key and its value")).collect();
        settings.extend(self.settings.iter().cloned());
        let changes = Changes { settings, trace: None };
        Scenario::default_with(&changes, FABRIC_NAMES)
    }

    /// Replays accesses, in their order.
    ///
    /// # Errors
    /// [`LineError`].
    pub fn replay(&self, accesses: &[LineAccess]) -> Result<LineOutcome, LineError> {
        let scenario = self.scenario().map_err(LineError::Input)?;
        let live = self.fabric.live(&scenario, false).map_err(LineError::Source)?;
        let totals = replay::Replay::new(self, live)?.run(accesses)?;
        Ok(LineOutcome::of(self, totals))
    }
}
