//! Clients: streams of operations on a store.

mod blocks;
mod growth;
mod job;
mod node;
mod read;
mod scan;
mod together;
mod walk;

use std::fmt;
use std::sync::Arc;

use ethermem::{Address, Pending, Thread};

use self::blocks::Stash;
pub(crate) use self::job::Job;
pub use self::together::{Operation, Outcome};
use self::walk::Chain;
use crate::call::{Version, When};
use crate::error::{Error, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::layout::Tables;
use crate::link::Link;
use crate::record::hash_of;
use crate::store::{Index, Shared};

/// A stream of operations, each of which sees the effects of all earlier ones.
///
/// Dropping the future of an operation leaves it done or not done. The next operation of the
/// client, or of any other one if the client is dropped, finds out. It frees the blocks that have
/// not become part of a value.
pub struct Client {
    shared: Arc<Shared>,
    thread: Thread,
    index: Index,
    shards: Vec<View>,
    /// The change in progress, which a dropped client leaves to others.
    job: Option<Job>,
    chain: Chain,
    /// Reused to avoid reallocation.
    buffer: Vec<u8>,
    retries: u64,
}

/// A client's knowledge of a shard.
#[derive(Default)]
struct View {
    tables: Option<Tables>,
    /// True if the client met a bucket that has not been moved to the last table.
    is_moving: bool,
    /// Pending read of the number of keys before one was added.
    counting: Option<Pending<u64>>,
    stash: Stash,
}

/// A value, borrowed from the buffer into which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'b> {
    /// Bytes of the value.
    pub value: &'b [u8],
    /// The application's tag.
    pub tag: u64,
    /// Version of the key's write.
    pub version: Version,
}

/// An owned value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Bytes of the value.
    pub bytes: Vec<u8>,
    /// The application's tag.
    pub tag: u64,
    /// Version of the key's write.
    pub version: Version,
}

/// Result of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The write was done. The version is the new one or, after a deletion, the last.
    Done(Version),
    /// The condition did not hold; this is the version that was found.
    Refused(Option<Version>),
}

impl Written {
    /// True if the write was done.
    #[must_use]
    pub fn is_done(self) -> bool {
        matches!(self, Written::Done(_))
    }

    fn refused(link: Option<Link>) -> Written {
        Written::Refused(link.map(Version))
    }
}

/// A key with its hash and its shard.
#[derive(Clone, Copy)]
struct Hashed<'k> {
    key: &'k [u8],
    hash: u64,
    shard: usize,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, thread: Thread, index: Index) -> Client {
        let shards = shared.shards.iter().map(|_| View::default()).collect();
        Client {
            shared,
            thread,
            index,
            shards,
            job: None,
            chain: Chain::default(),
            buffer: Vec::new(),
            retries: 0,
        }
    }

    /// Stores a new key. Returns false if it exists.
    ///
    /// # Errors
    /// [`Error`]; nothing was changed then, unless it is [`Error::Uncertain`].
    pub async fn create(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.write(key, value, 0, When::Absent).await.map(Written::is_done)
    }

    /// Replaces the value of a key. Returns false if the key does not exist.
    ///
    /// # Errors
    /// As [`Client::create`].
    pub async fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.write(key, value, 0, When::Present).await.map(Written::is_done)
    }

    /// Stores a value for a key, whether or not the key exists.
    ///
    /// # Errors
    /// As [`Client::create`].
    pub async fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(key, value, 0, When::Always).await.map(|_| ())
    }

    /// Deletes a key. Returns false if it does not exist.
    ///
    /// # Errors
    /// As [`Client::create`].
    pub async fn delete(&mut self, key: &[u8]) -> Result<bool, Error> {
        self.delete_when(key, When::Always).await.map(Written::is_done)
    }

    /// Stores a value and a tag (a number of the application's own) under a condition. With
    /// [`When::Is`], a read-modify-write is atomic.
    ///
    /// # Errors
    /// As [`Client::create`].
    pub async fn write(
        &mut self,
        key: &[u8],
        value: &[u8],
        tag: u64,
        when: When,
    ) -> Result<Written, Error> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::ValueTooLong { bytes: value.len() });
        }
        self.change(key, Some((value, tag)), when).await
    }

    /// Deletes a key under a condition; it is also refused if the key does not exist.
    ///
    /// # Errors
    /// As [`Client::create`].
    pub async fn delete_when(&mut self, key: &[u8], when: When) -> Result<Written, Error> {
        self.change(key, None, when).await
    }

    /// Number of times that a record had just been replaced and the walk restarted.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Thread of the client's operations.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    async fn change(
        &mut self,
        key: &[u8],
        new: Option<(&[u8], u64)>,
        when: When,
    ) -> Result<Written, Error> {
        let hashed = self.hashed(key)?;
        self.settle().await;
        match self.index {
            Index::Client => self.change_walking(hashed, new, when).await,
            Index::Node => self.change_at_node(hashed, new, when).await,
        }
    }

    fn hashed<'k>(&self, key: &'k [u8]) -> Result<Hashed<'k>, Error> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { bytes: key.len() });
        }
        let hash = hash_of(key, self.shared.hash_seed);
        // The upper bits choose the shard: the lower ones choose the bucket.
        let shard = ((hash >> 32) * self.shards.len() as u64) >> 32;
        Ok(Hashed { key, hash, shard: shard as usize })
    }

    /// Address of a shard's header.
    fn header(&self, shard: usize) -> Address {
        self.shared.shards[shard]
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let job = self.job.take();
        let blocks = self.shards.iter_mut().enumerate();
        let blocks = blocks.flat_map(|(at, view)| view.stash.all().map(move |link| (at, link)));
        self.shared.leave(blocks.collect(), job);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?}, {:?})", self.index, self.thread)
    }
}
