//! Stores: the shards on the memory nodes, and what the clients of one program share.

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

/// Who walks the index. All clients of a store see the same, whatever each of them chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// The client: a round trip for the bucket and one for each record on the way.
    Client,
    /// The memory node: one round trip for all.
    Node,
}

/// How a store is laid out. The default is right for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many memory nodes it uses, from the first; all if `None`.
    pub memory_nodes: Option<u16>,
    /// How many buckets each memory node begins with: a power of two. Tables grow by themselves.
    pub buckets: u64,
    /// Of the hash of keys. Whoever takes keys from strangers draws it, so that they cannot choose
    /// keys of one bucket.
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
    /// The key.
    pub bytes: Vec<u8>,
    /// The tag of its value.
    pub tag: u64,
}

/// A step of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// What to go on from; 0 at the end.
    pub cursor: u64,
    /// What was met.
    pub keys: Vec<Key>,
}

/// What a store takes of its memory nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Keys.
    pub keys: u64,
    /// Bytes of all regions that blocks are cut from.
    pub heap_bytes: u64,
    /// Of those, bytes of blocks that hold records or are in a client's hands.
    pub used_bytes: u64,
}

impl Statistics {
    /// Adds those of a shard, whose header says so.
    pub(crate) fn add(&mut self, words: &[u8]) {
        let at = |at: u64| word(words, (at - COUNT_AT) as usize);
        self.keys = self.keys.saturating_add_signed(at(COUNT_AT) as i64);
        self.heap_bytes += at(HEAP_BYTES_AT);
        self.used_bytes += at(GIVEN_BYTES_AT);
    }
}

/// A look at a store that is under way. Nobody need wait for it.
#[derive(Debug)]
pub struct Look {
    open: Vec<Pending<Vec<u8>>>,
    seen: Statistics,
}

impl Look {
    /// What was seen, once all of it was; once.
    ///
    /// # Errors
    /// As the pool's, of any of the memory nodes.
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

/// A key-value store on a pool; see the crate. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// What all clients know.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    thread: Thread,
    /// The header of each shard; the memory node is that of its address.
    pub(crate) shards: Vec<Address>,
    pub(crate) hash_seed: u64,
    /// Whether `left` has something.
    has_left: AtomicBool,
    left: Mutex<Left>,
}

/// What clients that are gone had in their hands.
#[derive(Default)]
pub(crate) struct Left {
    /// By shard.
    pub(crate) blocks: Vec<(usize, Link)>,
    /// Operations whose end is not known yet.
    pub(crate) jobs: Vec<Job>,
}

impl Store {
    /// Makes an empty store on the memory nodes of a pool.
    ///
    /// # Errors
    /// [`Error::BadConfig`], and [`Error::Pool`] where there is no memory.
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
            return Err(Error::BadConfig { what, allowed: "powers of two, 2 to 2^30".to_owned() });
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
            shards,
            hash_seed: config.hash_seed,
            has_left: AtomicBool::new(false),
            left: Mutex::default(),
        };
        Ok(Store { shared: Arc::new(shared) })
    }

    /// A client on the next of the compute nodes in turn.
    #[must_use]
    pub fn client(&self, index: Index) -> Client {
        let compute = self.shared.pool.next_compute();
        self.client_on(compute, index).expect("the pool's own turn names a node that is there")
    }

    /// A client on a compute node.
    ///
    /// # Errors
    /// [`ethermem::Error::NoSuchNode`].
    pub fn client_on(&self, compute: u16, index: Index) -> Result<Client, Error> {
        let thread = self.shared.thread.fork_on(compute)?;
        Ok(Client::new(self.shared.clone(), thread, index))
    }

    /// Begins to look at the store, beside its clients. The result is an error once its memory is
    /// gone, or while a memory node does not answer.
    #[must_use]
    pub fn look(&self) -> Look {
        let Shared { thread, shards, .. } = &*self.shared;
        let read = |header: &Address| thread.read(header.add(COUNT_AT), STATISTICS_BYTES);
        Look { open: shards.iter().map(read).collect(), seen: Statistics::default() }
    }

    /// The pool that it is on.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }
}

impl Shared {
    /// Takes what a client that is gone leaves.
    pub(crate) fn leave(&self, blocks: Vec<(usize, Link)>, job: Option<Job>) {
        if blocks.is_empty() && job.is_none() {
            return;
        }
        let mut left = self.left();
        left.blocks.extend(blocks);
        left.jobs.extend(job);
        self.has_left.store(true, Ordering::Release);
    }

    /// What others have left, if there is anything.
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
