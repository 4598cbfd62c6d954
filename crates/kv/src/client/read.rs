//! Reads of values.

use super::{Client, Entry, Hashed, Value};
use crate::call::Version;
use crate::error::Error;
use crate::link::Link;
use crate::record::{APART_HEADER_BYTES, Apart};
use crate::store::Index;

/// What was found of a key.
pub(super) enum Held<R> {
    /// The value was in its record, and was shown.
    Here(R),
    /// The value is in a block of its own.
    Apart { apart: Apart, tag: u64, link: Link },
}

/// A value that was read.
enum Fetched<R> {
    /// It was in its record, and was shown.
    Here(R),
    /// It is in the bytes of its block, checked, behind their header.
    Apart { block: Vec<u8>, tag: u64, version: Version },
}

impl Client {
    /// Reads the value of a key, if the key exists.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read(&mut self, key: &[u8]) -> Result<Option<Value>, Error> {
        let own = |entry: Entry<'_>| {
            let Entry { value, tag, version } = entry;
            Value { bytes: value.to_vec(), tag, version }
        };
        Ok(self.fetch_value(key, own).await?.map(|fetched| match fetched {
            Fetched::Here(value) => value,
            Fetched::Apart { mut block, tag, version } => {
                // In place: new memory for a long value takes longer than its bytes' way here.
                drop(block.drain(..APART_HEADER_BYTES));
                Value { bytes: block, tag, version }
            }
        }))
    }

    /// Calls a function with the value of a key, without copying the value.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_with<R>(
        &mut self,
        key: &[u8],
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        let mut show = Some(show);
        let mut once = |entry: Entry<'_>| show.take().expect("a value is shown once")(entry);
        Ok(self.fetch_value(key, &mut once).await?.map(|fetched| match fetched {
            Fetched::Here(shown) => shown,
            Fetched::Apart { block, tag, version } => {
                once(Entry { value: &block[APART_HEADER_BYTES..], tag, version })
            }
        }))
    }

    /// Fills the start of `to` with the value of a key, waits for completion, and returns the
    /// value's length; `None` if the key does not exist. A value of over 16 KiB goes from the
    /// network to its place without a copy between, where the pool has a direct path. Of a value
    /// that is replaced meanwhile, bytes behind the value that is returned may be changed, too.
    ///
    /// # Errors
    /// [`Error`]; [`Error::BufferTooShort`] if the value is longer than `to`. Some of the bytes may
    /// be changed then.
    ///
    /// # Panics
    /// As [`ethermem::Pool::run`].
    pub fn read_into(&mut self, key: &[u8], to: &mut [u8]) -> Result<Option<usize>, Error> {
        let hashed = self.hashed(key)?;
        let memory = self.header(hashed.shard).memory();
        let pool = self.shared.pool.clone();
        let mut met = None;
        loop {
            let found = pool.run(async {
                self.settle().await;
                let fill = |entry: Entry<'_>| {
                    start(to, entry.value.len()).map(|to| to.copy_from_slice(entry.value))?;
                    Ok(entry.value.len())
                };
                self.look_up(hashed, fill).await
            });
            let (apart, link) = match found? {
                None => return Ok(None),
                Some(Held::Here(filled)) => return filled.map(Some),
                Some(Held::Apart { apart, link, .. }) => (apart, link),
            };
            let (bytes, at) = (apart.bytes as usize, apart.link.at(memory));
            let value = start(to, bytes)?;
            // One after the other: a direct path needs a thread with nothing in flight. Either
            // order would do, as the check is that of all of the value's bytes.
            self.thread.read_into(at.add(APART_HEADER_BYTES as u64), value)?;
            let mut check = [0; APART_HEADER_BYTES];
            self.thread.read_into(at, &mut check)?;
            if apart.is_checked(u64::from_le_bytes(check), value) {
                return Ok(Some(bytes));
            }
            self.retry(hashed.shard, &mut met, link.word())?;
        }
    }

    /// Reads the value of a key; shows it if it is in its record.
    async fn fetch_value<R>(
        &mut self,
        key: &[u8],
        mut show: impl FnMut(Entry<'_>) -> R,
    ) -> Result<Option<Fetched<R>>, Error> {
        let hashed = self.hashed(key)?;
        let memory = self.header(hashed.shard).memory();
        self.settle().await;
        let mut met = None;
        loop {
            let (apart, tag, link) = match self.look_up(hashed, &mut show).await? {
                None => return Ok(None),
                Some(Held::Here(shown)) => return Ok(Some(Fetched::Here(shown))),
                Some(Held::Apart { apart, tag, link }) => (apart, tag, link),
            };
            let block = self.fetch_apart(memory, apart).await?;
            if apart.parse(&block).is_some() {
                return Ok(Some(Fetched::Apart { block, tag, version: Version(link) }));
            }
            self.retry(hashed.shard, &mut met, link.word())?;
        }
    }

    /// Looks a key up; shows its value if that is in its record.
    async fn look_up<R>(
        &mut self,
        hashed: Hashed<'_>,
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Result<Option<Held<R>>, Error> {
        match self.index {
            Index::Client => self.look_up_walking(hashed, show).await,
            Index::Node => self.look_up_at_node(hashed, show).await,
        }
    }

    /// Reads the block of a value that is stored apart.
    pub(super) async fn fetch_apart(&self, memory: u16, apart: Apart) -> Result<Vec<u8>, Error> {
        Ok(self.thread.read(apart.link.at(memory), apart.block_bytes()).await?)
    }
}

/// The part of a buffer that takes a value of this length.
fn start(to: &mut [u8], value: usize) -> Result<&mut [u8], Error> {
    let buffer = to.len();
    to.get_mut(..value).ok_or(Error::BufferTooShort { value, buffer })
}
