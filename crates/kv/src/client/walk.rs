//! Operations done by the client itself: it reads the bucket and its records, and changes the
//! bucket's one word.

use ethermem::Address;
use ethermem::Error::Full;

use super::job::{End, Job};
use super::read::Held;
use super::{Client, Entry, Hashed, Written};
use crate::call::{Version, When};
use crate::error::Error;
use crate::layout::{EMPTY, MOVED, UNSET};
use crate::link::{Class, Link};
use crate::record::{Record, Stored, is_apart};

/// The records of a walk, in order; buffers are reused to avoid reallocation.
#[derive(Default)]
pub(super) struct Chain {
    records: Vec<(Option<Link>, Vec<u8>)>,
    used: usize,
}

/// Where a walk ended: a bucket, its word, and the index of the key's record in the chain.
struct Found {
    bucket: Address,
    word: u64,
    own: Option<usize>,
}

impl Chain {
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// The buffer for the next record.
    fn slot(&mut self, link: Link) -> &mut Vec<u8> {
        if self.used == self.records.len() {
            self.records.push((None, Vec::new()));
        }
        let (its_link, bytes) = &mut self.records[self.used];
        *its_link = Some(link);
        self.used += 1;
        bytes
    }

    /// The last record, if its block still has the use that the link names.
    pub(super) fn last(&self, link: Link) -> Option<Record<'_>> {
        Record::parse(&self.records[self.used - 1].1, link)
    }

    fn link(&self, at: usize) -> Link {
        self.records[at].0.expect("a walk knows what it has met")
    }

    fn record(&self, at: usize) -> Record<'_> {
        Record::view(&self.records[at].1).expect("checked when it was met")
    }
}

impl Client {
    /// Looks a key up by a walk; shows its value if it is in its record.
    pub(super) async fn look_up_walking<R>(
        &mut self,
        hashed: Hashed<'_>,
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Result<Option<Held<R>>, Error> {
        let found = self.find(hashed).await?;
        let Some(at) = found.own else { return Ok(None) };
        let (link, Record { value, tag, .. }) = (self.chain.link(at), self.chain.record(at));
        Ok(Some(match value {
            Stored::Here(value) => Held::Here(show(Entry { value, tag, version: Version(link) })),
            Stored::Apart(apart) => Held::Apart { apart, tag, link },
        }))
    }

    /// Restarts the walk, because a block's use differs from its link. Therefore the word that led
    /// to it has changed and cannot recur; if it does, the store is damaged.
    pub(super) fn retry(
        &mut self,
        shard: usize,
        met: &mut Option<u64>,
        word: u64,
    ) -> Result<(), Error> {
        self.retries += 1;
        if met.replace(word) == Some(word) {
            return Err(Error::Damaged { memory: self.header(shard).memory() });
        }
        Ok(())
    }

    pub(super) async fn change_walking(
        &mut self,
        hashed: Hashed<'_>,
        new: Option<(&[u8], u64)>,
        when: When,
    ) -> Result<Written, Error> {
        loop {
            let found = self.find(hashed).await?;
            let own = found.own.map(|at| self.chain.link(at));
            if !when.holds(own) || (new.is_none() && own.is_none()) {
                return Ok(Written::refused(own));
            }
            self.job = Some(Job::new(hashed.shard));
            let prepared = self.prepare(hashed, new, &found).await;
            let Ok((first, placed)) = prepared else {
                self.settle().await;
                // A deletion at the node needs no memory, so a full store can be emptied.
                if new.is_none() && matches!(prepared, Err(Error::Pool(Full { .. }))) {
                    return self.change_at_node(hashed, None, when).await;
                }
                return prepared.map(|_| unreachable!("it failed"));
            };
            let desired = first.map_or(EMPTY, Link::word);
            let swap = self.thread.compare_and_swap(found.bucket, found.word, desired);
            self.job().end = End::Swap(swap, found.word);
            if self.try_settle().await.map_err(Error::of_decision)? {
                if own.is_none() {
                    // The change is done, whatever happens to the table; the next new key tries
                    // again.
                    let _ = self.after_insert(hashed.shard).await;
                }
                let version = placed.or(own).expect("a write has placed, a deletion has found");
                return Ok(Written::Done(Version(version)));
            }
            self.retries += 1;
        }
    }

    /// Writes the bucket's new chain: the new record and copies of the records before the old one,
    /// followed by the records behind it. Returns the first link, and the new record's.
    async fn prepare(
        &mut self,
        hashed: Hashed<'_>,
        new: Option<(&[u8], u64)>,
        found: &Found,
    ) -> Result<(Option<Link>, Option<Link>), Error> {
        let Hashed { key, hash, shard } = hashed;
        let mut first = match found.own {
            Some(at) => self.chain.record(at).next,
            None => Link::from_word(found.word),
        };
        let mut placed = None;
        if let Some((value, tag)) = new {
            let value = if is_apart(key, value) {
                Stored::Apart(self.begin_write_apart(shard, value).await?)
            } else {
                Stored::Here(value)
            };
            let record = Record { next: first, hash, tag, key, value };
            let link = self.block(shard, Class::holding(record.bytes())).await?;
            self.begin_write(shard, link, &record)?;
            (first, placed) = (Some(link), Some(link));
        }
        if let Some(own) = found.own {
            for at in (0..own).rev() {
                let link = self.block(shard, self.chain.link(at).class()).await?;
                // The chain is moved out while its record is written.
                let chain = std::mem::take(&mut self.chain);
                let begun =
                    self.begin_write(shard, link, &Record { next: first, ..chain.record(at) });
                self.chain = chain;
                begun?;
                first = Some(link);
            }
            // Values stored apart now belong to the copies of their records.
            let apart = self.chain.record(own).value.apart().map(|apart| apart.link);
            let stale = (0..=own).map(|at| self.chain.link(at)).chain(apart).collect();
            self.job().stale = stale;
        }
        self.job().added = i64::from(new.is_some()) - i64::from(found.own.is_some());
        self.await_writes().await?;
        Ok((first, placed))
    }

    async fn find(&mut self, hashed: Hashed<'_>) -> Result<Found, Error> {
        let memory = self.header(hashed.shard).memory();
        let mut met = None;
        'anew: loop {
            let (bucket, word) = self.bucket(hashed).await?;
            self.chain.clear();
            let mut at = Link::from_word(word);
            while let Some(link) = at {
                self.fetch(memory, link).await?;
                let Some(record) = self.chain.last(link) else {
                    // The block has a new use, so the bucket has changed.
                    self.retry(hashed.shard, &mut met, word)?;
                    continue 'anew;
                };
                if record.hash == hashed.hash && record.key == hashed.key {
                    return Ok(Found { bucket, word, own: Some(self.chain.used - 1) });
                }
                at = record.next;
            }
            return Ok(Found { bucket, word, own: None });
        }
    }

    /// Reads a block and appends it to the chain.
    pub(super) async fn fetch(&mut self, memory: u16, link: Link) -> Result<(), Error> {
        let (at, length) = (link.at(memory), link.bytes() as usize);
        let bytes = self.chain.slot(link);
        if bytes.len() != length {
            bytes.resize(length, 0);
        }
        match self.thread.read_now(at, bytes) {
            Some(done) => done?,
            None => *bytes = self.thread.read(at, link.bytes()).await?,
        }
        Ok(())
    }

    /// Address and word of a hash's bucket, in the table that has it.
    async fn bucket(&mut self, hashed: Hashed<'_>) -> Result<(Address, u64), Error> {
        let memory = self.header(hashed.shard).memory();
        loop {
            let tables = match self.shards[hashed.shard].tables {
                Some(tables) => tables,
                None => self.refresh(hashed.shard).await?,
            };
            let last = tables.bucket(memory, hashed.hash);
            match (self.word(last).await?, tables.bucket_before(memory, hashed.hash)) {
                (MOVED, _) => self.shards[hashed.shard].tables = None,
                (UNSET, Some(before)) => {
                    let word = self.word(before).await?;
                    if word != MOVED {
                        self.shards[hashed.shard].is_moving = true;
                        return Ok((before, word));
                    }
                }
                (word, _) => return Ok((last, word)),
            }
        }
    }

    async fn word(&self, at: Address) -> Result<u64, Error> {
        let mut word = [0; 8];
        match self.thread.read_now(at, &mut word) {
            Some(done) => done?,
            None => {
                let bytes = self.thread.read(at, 8).await?;
                word.copy_from_slice(&bytes);
            }
        }
        Ok(u64::from_le_bytes(word))
    }
}
