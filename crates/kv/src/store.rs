//! Stores: the shards on the memory nodes, and the state shared by a program's clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ethermem::{Address, Pending, Permissions, Pool, Thread};

use crate::client::{Client, Job};
use crate::error::Error;
use crate::layout::{
    COUNT_AT, GIVEN_BYTES_AT, HEAP_BYTES_AT, MAGIC, SHARD_BYTES, STATISTICS_BYTES, TABLES_AT,
};
use crate::link::Link;
use crate::node::KeyValue;
use crate::record::word;

/// The side that walks the index. All clients of a store see equal data, whatever each chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// The client: a round trip for the bucket and one for each record on the way.
    Client,
    /// The memory node: one round trip in all.
    Node,
}

/// Layout of a store. The default suits most uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of memory nodes, from the first on; all if `None`.
    pub memory_nodes: Option<u16>,
    /// Initial number of buckets per memory node: a power of two. Tables grow by themselves.
    pub buckets: u64,
    /// Seed of the hash of keys. A program with untrusted keys draws it at random, so that they
    /// cannot be chosen to share a bucket.
    pub hash_seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { memory_nodes: None, buckets: 1024, hash_seed: 0 }
    }
}

/// A key that a scan met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Bytes of the key.
    pub bytes: Vec<u8>,
    /// The tag of its value.
    pub tag: u64,
}

/// Result of one step of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Cursor of the next step; 0 at the end.
    pub cursor: u64,
    /// Keys that were met.
    pub keys: Vec<Key>,
}

/// Memory use of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of keys.
    pub keys: u64,
    /// Bytes of all regions that blocks are cut from.
    pub heap_bytes: u64,
    /// Bytes of blocks that hold records or are held by a client.
    pub used_bytes: u64,
}

impl Statistics {
    /// Adds the counters of a shard, from its header.
    pub(crate) fn add(&mut self, words: &[u8]) {
        let at = |at: u64| word(words, (at - COUNT_AT) as usize);
        self.keys = self.keys.saturating_add_signed(at(COUNT_AT) as i64);
        self.heap_bytes += at(HEAP_BYTES_AT);
        self.used_bytes += at(GIVEN_BYTES_AT);
    }
}

/// A read of a store's statistics in flight, which may be dropped.
#[derive(Debug)]
pub struct Look {
    open: Vec<Pending<Vec<u8>>>,
    seen: Statistics,
}

impl Look {
    /// Takes the statistics, once all of them have arrived.
    ///
    /// # Errors
    /// Errors of the pool, for any of the memory nodes.
    pub fn poll_result(&mut self) -> Option<Result<Statistics, ethermem::Error>> {
        while let Some(read) = self.open.last_mut() {
            let result = read.poll_result()?;
            self.open.pop();
            match result {
                Ok(words) => self.seen.add(&words),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(self.seen))
    }
}

/// A key-value store on a pool; see the crate. Clones share one store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// State shared by all clients.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    thread: Thread,
    /// Address of each shard's header, which includes its memory node.
    pub(crate) shards: Vec<Address>,
    pub(crate) hash_seed: u64,
    /// For each shard: true while a client adds memory for blocks.
    pub(crate) is_extended: Vec<AtomicBool>,
    /// True if `left` has content.
    has_left: AtomicBool,
    left: Mutex<Left>,
}

/// Resources that dropped clients held.
#[derive(Default)]
pub(crate) struct Left {
    /// Free blocks with their shards.
    pub(crate) blocks: Vec<(usize, Link)>,
    /// Changes whose outcome is not known yet.
    pub(crate) jobs: Vec<Job>,
}

impl Store {
    /// Creates an empty store on the memory nodes of a pool.
    ///
    /// # Errors
    /// [`Error::BadConfig`]; [`Error::Pool`] if there is too little memory.
    pub async fn create(pool: &Pool, config: Config) -> Result<Store, Error> {
        let thread = pool.thread()?;
        let (_, memories) = pool.nodes();
        let used = config.memory_nodes.unwrap_or(memories);
        if used == 0 || used > memories {
            let what = format!("{used} memory nodes");
            return Err(Error::BadConfig { what, allowed: format!("1 to {memories}") });
        }
        let buckets = config.buckets;
        if !buckets.is_power_of_two() || !(2..=1 << 30).contains(&buckets) {
            let what = format!("{buckets} buckets");
            return Err(Error::BadConfig { what, allowed: "a power of two, 2 to 2^30".to_owned() });
        }
        pool.register_once(KeyValue::NAME, Arc::new(KeyValue::of_one_space()));
        let mut shards = Vec::with_capacity(used.into());
        for memory in 0..used {
            let rw = Permissions::READ_WRITE;
            let table = thread.alloc_on(memory, 8 * buckets, rw).await?;
            let header = thread.alloc_on(memory, SHARD_BYTES, rw).await?;
            let table_at = TABLES_AT + 8 * u64::from(buckets.ilog2());
            header.write(table_at, &table.address().offset().to_le_bytes()).await?;
            header.write(0, &MAGIC.to_le_bytes()).await?;
            shards.push(header.address());
        }
        let shared = Shared {
            pool: pool.clone(),
            thread,
            is_extended: shards.iter().map(|_| AtomicBool::new(false)).collect(),
            shards,
            hash_seed: config.hash_seed,
            has_left: AtomicBool::new(false),
            left: Mutex::default(),
        };
        Ok(Store { shared: Arc::new(shared) })
    }

    /// A client on the next compute node in round-robin order.
    #[must_use]
    pub fn client(&self, index: Index) -> Client {
        let compute = self.shared.pool.next_compute();
        self.client_on(compute, index).expect("the pool's own turn names a node that is there")
    }

    /// A client on the given compute node.
    ///
    /// # Errors
    /// [`ethermem::Error::NoSuchNode`].
    pub fn client_on(&self, compute: u16, index: Index) -> Result<Client, Error> {
        let thread = self.shared.thread.fork_on(compute)?;
        Ok(Client::new(self.shared.clone(), thread, index))
    }

    /// Begins to read the store's statistics, beside its clients. The result is an error if its
    /// memory is gone, or while a memory node does not respond.
    #[must_use]
    pub fn look(&self) -> Look {
        let Shared { thread, shards, .. } = &*self.shared;
        let read = |header: &Address| thread.read(header.add(COUNT_AT), STATISTICS_BYTES);
        Look { open: shards.iter().map(read).collect(), seen: Statistics::default() }
    }

    /// The pool of the store.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }
}

impl Shared {
    /// Takes over what a dropped client leaves.
    pub(crate) fn leave(&self, blocks: Vec<(usize, Link)>, job: Option<Job>) {
        if blocks.is_empty() && job.is_none() {
            return;
        }
        let mut left = self.left();
        left.blocks.extend(blocks);
        left.jobs.extend(job);
        self.has_left.store(true, Ordering::Release);
    }

    /// Takes what dropped clients have left, if there is anything.
    pub(crate) fn take_left(&self) -> Option<Left> {
        if !self.has_left.swap(false, Ordering::AcqRel) {
            return None;
        }
        Some(std::mem::take(&mut *self.left()))
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
