//! Configuration of a YCSB run.

use std::fmt;
use std::str::FromStr;

use ethermem_units::Ps;
use serde::{Deserialize, Serialize};

use super::mix::{Action, Distribution, Workload};
use crate::error::BenchError;

/// Latency of DRAM at the compute node, as in EDM's evaluation.
pub const LOCAL_LATENCY: Ps = Ps::from_ns(82);
/// Largest number of records: their numbers and addresses stay exact in every distribution.
pub const RECORDS_MAX: u64 = 1 << 32;
/// Largest number of operations.
pub const OPERATIONS_MAX: u64 = 1 << 40;
/// Longest record in bytes.
pub const RECORD_BYTES_MAX: u64 = 1 << 20;
/// Largest number of clients.
pub const CLIENTS_MAX: u32 = 4096;

/// Store that holds the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// Objects whose addresses the clients know: one read or one write per operation.
    Objects,
    /// A key-value store whose clients walk its index: several round trips per operation.
    KvClient,
    /// A key-value store whose memory nodes walk its index: one round trip per operation.
    KvNode,
}

impl StoreKind {
    /// Name in arguments and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StoreKind::Objects => "objects",
            StoreKind::KvClient => "kv-client",
            StoreKind::KvNode => "kv-node",
        }
    }
}

/// Part of a record that an operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// One random field.
    Field,
    /// The whole record.
    Record,
}

/// Completion of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteEnd {
    /// The write completes when its last byte is at the memory node, as the fabric reports.
    AtNode,
    /// The write completes in the memory node's DRAM: [`LOCAL_LATENCY`] later, as for a local
    /// write.
    InMemory,
}

/// Ratio of objects at the compute node to objects at the memory nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LocalToRemote {
    /// Parts at the compute node.
    pub local: u32,
    /// Parts at the memory nodes.
    pub remote: u32,
}

impl FromStr for LocalToRemote {
    type Err = String;

    fn from_str(text: &str) -> Result<LocalToRemote, String> {
        let parts = text.split_once(':').and_then(|(local, remote)| {
            let ratio = LocalToRemote { local: local.parse().ok()?, remote: remote.parse().ok()? };
            let total = u64::from(ratio.local) + u64::from(ratio.remote);
            (1..=1_000_000).contains(&total).then_some(ratio)
        });
        parts.ok_or_else(|| format!("`{text}`: must be two counts such as 50:50 or 100:10"))
    }
}

impl fmt::Display for LocalToRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.local, self.remote)
    }
}

impl TryFrom<String> for LocalToRemote {
    type Error = String;

    fn try_from(text: String) -> Result<LocalToRemote, String> {
        text.parse()
    }
}

impl From<LocalToRemote> for String {
    fn from(ratio: LocalToRemote) -> String {
        ratio.to_string()
    }
}

/// Configuration of a YCSB run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct YcsbConfig {
    /// URL of the pool.
    pub pool: String,
    /// Core workload.
    pub workload: Workload,
    /// Distribution of requests over records; by default the workload's.
    pub distribution: Distribution,
    /// Store that holds the records.
    pub store: StoreKind,
    /// Number of records loaded.
    pub records: u64,
    /// Number of measured operations.
    pub operations: u64,
    /// Number of warm-up operations before them.
    pub warmup_operations: u64,
    /// Number of clients, each with one operation in flight.
    pub clients: u32,
    /// Seed of all draws.
    pub seed: u64,
    /// Length of a record in bytes.
    pub record_bytes: u64,
    /// Length of a field in bytes.
    pub field_bytes: u64,
    /// Part that a read moves: YCSB's `readallfields`.
    pub reads: Extent,
    /// Part that an update moves: YCSB's `writeallfields`.
    pub updates: Extent,
    /// Completion of an update or an insert.
    pub writes: WriteEnd,
    /// Ratio of objects at the compute node; by default none is there.
    pub local_to_remote: Option<LocalToRemote>,
}

impl YcsbConfig {
    /// YCSB's default run: ten fields of 100 B, reads of all, updates of one; a tenth of the
    /// operations as warm-up; one client.
    #[must_use]
    pub fn new(pool: &str, workload: Workload) -> YcsbConfig {
        YcsbConfig {
            pool: pool.to_owned(),
            workload,
            distribution: workload.distribution(),
            store: StoreKind::Objects,
            records: 10_000,
            operations: 100_000,
            warmup_operations: 10_000,
            clients: 1,
            seed: 1,
            record_bytes: 1000,
            field_bytes: 100,
            reads: Extent::Record,
            updates: Extent::Field,
            writes: WriteEnd::AtNode,
            local_to_remote: None,
        }
    }

    /// Checks that the run is allowed.
    ///
    /// # Errors
    /// [`BenchError::Refused`] with what is wrong and what is allowed.
    pub fn check(&self) -> Result<(), BenchError> {
        let within = |name: &str, found: u64, least: u64, most: u64| {
            if (least..=most).contains(&found) {
                return Ok(());
            }
            Err(BenchError::Refused(format!("{name} {found}: must be {least} to {most}")))
        };
        within("records", self.records, 2, RECORDS_MAX)?;
        within("operations", self.operations, 1, OPERATIONS_MAX)?;
        within("warmup", self.warmup_operations, 0, OPERATIONS_MAX)?;
        within("clients", self.clients.into(), 1, CLIENTS_MAX.into())?;
        within("record-bytes", self.record_bytes, 1, RECORD_BYTES_MAX)?;
        within("field-bytes", self.field_bytes, 1, self.record_bytes)?;
        if !self.record_bytes.is_multiple_of(self.field_bytes) {
            return Err(BenchError::Refused(format!(
                "field-bytes {}: must be a divisor of record-bytes {}",
                self.field_bytes, self.record_bytes
            )));
        }
        Ok(())
    }

    /// Length in bytes of an operation of this extent.
    pub(crate) fn bytes(&self, extent: Extent) -> u64 {
        match extent {
            Extent::Field => self.field_bytes,
            Extent::Record => self.record_bytes,
        }
    }

    /// Number of operations including warm-up.
    pub(crate) fn operations_total(&self) -> u64 {
        self.warmup_operations + self.operations
    }

    /// Room for loaded records and for inserts: more than twice the expected number, which fewer
    /// than one run in 10^18 exceeds.
    pub(crate) fn slots(&self) -> u64 {
        let share = self.workload.share(Action::Insert);
        if share == 0.0 {
            return self.records;
        }
        let total = self.operations_total();
        self.records + ((total as f64 * share * 2.0) as u64 + 64).min(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
        let good = || YcsbConfig::new("local:", Workload::A);
        assert_eq!(good().check(), Ok(()));
        for (config, told) in [
            (YcsbConfig { records: 1, ..good() }, "records 1: must be 2 to 4294967296"),
            (YcsbConfig { clients: 0, ..good() }, "clients 0: must be 1 to 4096"),
            (
                YcsbConfig { field_bytes: 300, ..good() },
                "field-bytes 300: must be a divisor of record-bytes 1000",
            ),
        ] {
            assert_eq!(config.check(), Err(BenchError::Refused(told.to_owned())));
        }
    }

    #[test]
    fn ratios() {
        assert_eq!("100:10".parse(), Ok(LocalToRemote { local: 100, remote: 10 }));
        for wrong in ["", "1", "0:0", "1:x", "-1:2", "1:2:3"] {
            let told = format!("`{wrong}`: must be two counts such as 50:50 or 100:10");
            assert_eq!(wrong.parse::<LocalToRemote>(), Err(told));
        }
    }
}
