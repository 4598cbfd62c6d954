//! Partial configurations of a run, as files and flags give them.

use serde::{Deserialize, Serialize};

use super::config::{Extent, LocalToRemote, StoreKind, WriteEnd, YcsbConfig};
use super::mix::{Distribution, Workload};

/// Settings of a run; absent ones default to those of [`YcsbConfig::new`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Value of [`YcsbConfig::workload`].
    pub workload: Option<Workload>,
    /// Value of [`YcsbConfig::distribution`].
    pub distribution: Option<Distribution>,
    /// Value of [`YcsbConfig::store`].
    pub store: Option<StoreKind>,
    /// Value of [`YcsbConfig::records`].
    pub records: Option<u64>,
    /// Value of [`YcsbConfig::operations`].
    pub operations: Option<u64>,
    /// Value of [`YcsbConfig::warmup_operations`].
    pub warmup_operations: Option<u64>,
    /// Value of [`YcsbConfig::clients`].
    pub clients: Option<u32>,
    /// Value of [`YcsbConfig::seed`].
    pub seed: Option<u64>,
    /// Value of [`YcsbConfig::record_bytes`].
    pub record_bytes: Option<u64>,
    /// Value of [`YcsbConfig::field_bytes`].
    pub field_bytes: Option<u64>,
    /// Value of [`YcsbConfig::reads`].
    pub reads: Option<Extent>,
    /// Value of [`YcsbConfig::updates`].
    pub updates: Option<Extent>,
    /// Value of [`YcsbConfig::writes`].
    pub writes: Option<WriteEnd>,
    /// Value of [`YcsbConfig::local_to_remote`].
    pub local_to_remote: Option<LocalToRemote>,
}

impl Settings {
    /// These settings, completed by `other`.
    #[must_use]
    pub fn or(self, other: &Settings) -> Settings {
        Settings {
            workload: self.workload.or(other.workload),
            distribution: self.distribution.or(other.distribution),
            store: self.store.or(other.store),
            records: self.records.or(other.records),
            operations: self.operations.or(other.operations),
            warmup_operations: self.warmup_operations.or(other.warmup_operations),
            clients: self.clients.or(other.clients),
            seed: self.seed.or(other.seed),
            record_bytes: self.record_bytes.or(other.record_bytes),
            field_bytes: self.field_bytes.or(other.field_bytes),
            reads: self.reads.or(other.reads),
            updates: self.updates.or(other.updates),
            writes: self.writes.or(other.writes),
            local_to_remote: self.local_to_remote.or(other.local_to_remote),
        }
    }

    /// The run of a workload on a pool, unless the settings contain a workload.
    #[must_use]
    pub fn config(&self, pool: &str, workload: Workload) -> YcsbConfig {
        let workload = self.workload.unwrap_or(workload);
        let usual = YcsbConfig::new(pool, workload);
        let operations = self.operations.unwrap_or(usual.operations);
        let record_bytes = self.record_bytes.unwrap_or(usual.record_bytes);
        // A record of another length is one field by default.
        let store = self.store.unwrap_or(usual.store);
        // A key-value store has only whole values.
        let updates = if store == StoreKind::Objects { usual.updates } else { Extent::Record };
        let divides = record_bytes.is_multiple_of(usual.field_bytes);
        let field_bytes = if divides { usual.field_bytes } else { record_bytes };
        YcsbConfig {
            distribution: self.distribution.unwrap_or(usual.distribution),
            store,
            records: self.records.unwrap_or(usual.records),
            operations,
            warmup_operations: self.warmup_operations.unwrap_or(operations / 10),
            clients: self.clients.unwrap_or(usual.clients),
            seed: self.seed.unwrap_or(usual.seed),
            record_bytes,
            field_bytes: self.field_bytes.unwrap_or(field_bytes),
            reads: self.reads.unwrap_or(usual.reads),
            updates: self.updates.unwrap_or(updates),
            writes: self.writes.unwrap_or(usual.writes),
            local_to_remote: self.local_to_remote.or(usual.local_to_remote),
            ..usual
        }
    }
}
