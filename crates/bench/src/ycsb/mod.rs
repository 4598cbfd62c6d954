//! YCSB: its generators, its core workloads, its two phases.

mod config;
mod inserted;
mod mix;
mod objects;
mod run;
mod settings;
mod store;
mod values;
mod zipfian;

pub use config::{
    CLIENTS_MAX, Extent, LOCAL_LATENCY, LocalToRemote, OPERATIONS_MAX, RECORD_BYTES_MAX,
    RECORDS_MAX, StoreKind, WriteEnd, YcsbConfig,
};
pub use mix::{Action, Distribution, SCAN_RECORDS_MAX, Workload};
pub use run::{ALL, CacheUse, LinkUse, YcsbResult, run};
pub use settings::Settings;
pub use zipfian::{Latest, ScrambledZipfian, ZIPFIAN_CONSTANT, Zipfian, fnv_hash};
