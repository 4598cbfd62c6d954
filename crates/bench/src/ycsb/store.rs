//! One interface for both stores: objects, and a key-value store.

use std::sync::Arc;

use ethermem::{Error, Pool, Thread};
use ethermem_kv as kv;

use super::config::{Extent, StoreKind, WriteEnd, YcsbConfig};
use super::mix::Action;
use super::objects::{self, Objects};
use super::zipfian::fnv_hash;
use crate::error::BenchError;

/// Records per bucket of a table after loading, so that it does not need to grow.
const BUCKET_RECORDS: u64 = 2;
/// Largest initial number of buckets of a memory node.
const BUCKETS_MAX: u64 = 1 << 24;

/// All records of a run.
pub(crate) enum Store {
    Objects { objects: Arc<Objects>, owner: Thread },
    Kv { store: kv::Store, index: kv::Index },
}

/// One client's access to the records.
pub(crate) enum Client {
    Objects(objects::Client),
    Kv(Box<kv::Client>),
}

impl Store {
    /// Allocates room for the records of a run.
    pub(crate) async fn open(pool: &Pool, config: &YcsbConfig) -> Result<Store, BenchError> {
        let failed = |error| BenchError::Failed { url: config.pool.clone(), op: "open", error };
        let index = match config.store {
            StoreKind::Objects => {
                let owner = pool.thread().map_err(failed)?;
                let objects = Arc::new(Objects::open(pool, &owner, config).await?);
                return Ok(Store::Objects { objects, owner });
            }
            StoreKind::KvClient => kv::Index::Client,
            StoreKind::KvNode => kv::Index::Node,
        };
        check(config)?;
        let (_, memories) = pool.nodes();
        let buckets = config.slots().div_ceil(u64::from(memories)).div_ceil(BUCKET_RECORDS);
        let buckets = buckets.next_power_of_two().clamp(2, BUCKETS_MAX);
        let layout = kv::Config { buckets, hash_seed: config.seed, ..kv::Config::default() };
        let store = kv::Store::create(pool, layout).await;
        let store = store.map_err(|error| full(config, pool_error(error)))?;
        Ok(Store::Kv { store, index })
    }

    /// A client on a compute node.
    pub(crate) fn client(&self, compute: u16) -> Client {
        let known = "the node is one of the pool's";
        match self {
            Store::Objects { objects, owner } => {
                let thread = owner.fork_on(compute).expect(known);
                Client::Objects(objects::Client { objects: objects.clone(), thread })
            }
            Store::Kv { store, index } => {
                Client::Kv(Box::new(store.client_on(compute, *index).expect(known)))
            }
        }
    }

    pub(crate) fn is_remote(&self, record: u64) -> bool {
        match self {
            Store::Objects { objects, .. } => objects.is_remote(record),
            Store::Kv { .. } => true,
        }
    }
}

/// Refuses what a key-value store does not support.
fn check(config: &YcsbConfig) -> Result<(), BenchError> {
    let store = config.store.name();
    let refused = |what: &str, why: &str| {
        Err(BenchError::Refused(format!("{what}: store {store} {why}; allowed with objects")))
    };
    if config.workload.share(Action::Scan) > 0.0 {
        return refused(&format!("workload {}", config.workload), "keeps no order to scan in");
    }
    if config.reads == Extent::Field {
        return refused("reads field", "reads whole values");
    }
    if config.updates == Extent::Field {
        return refused("updates field", "writes whole values");
    }
    if config.writes == WriteEnd::InMemory {
        return refused("writes in-memory", "writes by several messages");
    }
    if config.local_to_remote.is_some() {
        return refused("local-to-remote", "is in the pool alone");
    }
    Ok(())
}

/// The error of a pool without room for the records.
pub(crate) fn full(config: &YcsbConfig, error: Error) -> BenchError {
    let (records, bytes) = (config.slots(), config.record_bytes);
    BenchError::Load {
        url: config.pool.clone(),
        needed: format!(
            "{records} records of {bytes} B need more than {} B in all, with keys, table and what \
             waits to be used again (memory_bytes is of each memory node)",
            records * bytes
        ),
        error,
    }
}

/// The run makes all keys and values itself, so an error is the pool's.
fn pool_error(error: kv::Error) -> Error {
    match error {
        kv::Error::Pool(error) => error,
        other => Error::Violated { what: other.to_string() },
    }
}

/// The key of a record, named as in YCSB.
fn key(record: u64) -> Vec<u8> {
    format!("user{}", fnv_hash(record)).into_bytes()
}

/// Checks that a record exists exactly if the run has inserted it.
fn there(is_there: bool, record: u64) -> Result<(), Error> {
    if is_there {
        return Ok(());
    }
    let what = format!("the store and its client disagree on whether record {record} is there");
    Err(Error::Violated { what })
}

impl Client {
    pub(crate) async fn insert(&mut self, record: u64, data: &[u8]) -> Result<(), Error> {
        match self {
            Client::Objects(client) => client.insert(record, data).await,
            // After a lost insert that was done, the record exists already.
            Client::Kv(client) => client.put(&key(record), data).await.map_err(pool_error),
        }
    }

    pub(crate) async fn update(
        &mut self,
        record: u64,
        from: u64,
        data: &[u8],
    ) -> Result<(), Error> {
        match self {
            Client::Objects(client) => client.update(record, from, data).await,
            Client::Kv(client) => {
                let updated = client.update(&key(record), data).await.map_err(pool_error)?;
                there(updated, record)
            }
        }
    }

    pub(crate) async fn read(
        &mut self,
        record: u64,
        from: u64,
        bytes: u64,
    ) -> Result<Vec<u8>, Error> {
        match self {
            Client::Objects(client) => client.read(record, from, bytes).await,
            Client::Kv(client) => {
                let found = client.read(&key(record)).await.map_err(pool_error)?;
                there(found.is_some(), record)?;
                Ok(found.map(|value| value.bytes).unwrap_or_default())
            }
        }
    }

    /// Reads records as [`objects::Client::scan`].
    pub(crate) async fn scan(
        &mut self,
        record: u64,
        count: u64,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        match self {
            Client::Objects(client) => client.scan(record, count).await,
            Client::Kv(_) => unreachable!("refused before the run"),
        }
    }
}
