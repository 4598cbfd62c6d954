//! Operations by the memory node: one round trip, but for long records.

use ethermem::{Address, Pending};

use super::job::{End, Job};
use super::{Client, Entry, Hashed, Written};
use crate::call::{Answer, Became, Request, Version, What, When};
use crate::error::Error;
use crate::link::{Class, Link};
use crate::node::{INLINE_BYTES_MAX, KeyValue};
use crate::record::{Record, bytes_of};

/// The answer of a shard's memory node.
pub(super) fn answer(bytes: &[u8], shard: Address) -> Result<Answer<'_>, Error> {
    Answer::decode(bytes).ok_or(Error::BadAnswer { memory: shard.memory() })
}

impl Client {
    pub(super) fn call(&mut self, request: &Request<'_>) -> Pending<Vec<u8>> {
        request.encode(&mut self.buffer);
        self.thread.offload(KeyValue::NAME, request.shard, &self.buffer, &[])
    }

    pub(super) async fn read_at_node<R>(
        &mut self,
        hashed: Hashed<'_>,
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        let header = self.header(hashed.shard);
        loop {
            let request = hashed.request(What::Get, header);
            let answered = self.call(&request).await?;
            let answer = answer(&answered, header)?;
            let Some(link) = answer.link() else { return Ok(None) };
            if answer.became == Became::Done {
                let (value, tag) = (answer.bytes, answer.tag);
                return Ok(Some(show(Entry { value, tag, version: Version(link) })));
            }
            // A long one: read as the client that walks does.
            self.chain.clear();
            self.fetch(header.memory(), link).await?;
            if let Some(Record { value, tag, .. }) = self.chain.last(link) {
                return Ok(Some(show(Entry { value, tag, version: Version(link) })));
            }
            self.retries += 1;
        }
    }

    pub(super) async fn change_at_node(
        &mut self,
        hashed: Hashed<'_>,
        new: Option<(&[u8], u64)>,
        when: When,
    ) -> Result<Written, Error> {
        let header = self.header(hashed.shard);
        let bytes = new.map_or(0, |(value, _)| bytes_of(hashed.key, value));
        if bytes > INLINE_BYTES_MAX {
            let (value, tag) = new.expect("what is long is new");
            return self.link_at_node(hashed, value, tag, when).await;
        }
        let request = match new {
            None => hashed.request(What::Delete, header),
            Some((value, tag)) => Request { value, tag, ..hashed.request(What::Put, header) },
        };
        let request = request.when(when);
        loop {
            let answered = self.call(&request).await?;
            let answer = answer(&answered, header)?;
            if answer.became == Became::NeedsRegion {
                // For the record, and for copies of those before it.
                let class = Class::holding(bytes.max(INLINE_BYTES_MAX));
                self.extend(hashed.shard, class, answer.operand).await?;
                continue;
            }
            let written = written(&answer);
            if answer.wants_table {
                self.grow(hashed.shard).await?;
            }
            return Ok(written);
        }
    }

    /// A long record is written where it stays, and then linked.
    async fn link_at_node(
        &mut self,
        hashed: Hashed<'_>,
        value: &[u8],
        tag: u64,
        when: When,
    ) -> Result<Written, Error> {
        let Hashed { key, hash, shard } = hashed;
        let header = self.header(shard);
        self.job = Some(Job::new(shard));
        let record = Record { next: None, hash, tag, key, value };
        let placed = self.place(shard, &record).await;
        let Ok(link) = placed else {
            self.settle().await;
            return placed.map(|_| unreachable!("it failed"));
        };
        loop {
            let request = Request { tag: link.word(), ..hashed.request(What::Link, header) };
            let pending = self.call(&request.when(when));
            self.job().end = End::Link(pending);
            let End::Link(pending) = &mut self.job().end else { unreachable!("just set") };
            let answered = pending.await;
            self.job().end = End::Open;
            let answered = match answered {
                Ok(answered) => answered,
                Err(error) => {
                    // Nobody knows whether it is linked.
                    self.job = None;
                    return Err(error.into());
                }
            };
            let answer = answer(&answered, header)?;
            match answer.became {
                Became::NeedsRegion => {
                    let class = Class::holding(INLINE_BYTES_MAX);
                    self.extend(shard, class, answer.operand).await?;
                    continue;
                }
                Became::Done => self.job = None,
                _ => {
                    self.settle().await;
                }
            }
            let written = written(&answer);
            if answer.wants_table {
                self.grow(shard).await?;
            }
            return Ok(written);
        }
    }

    /// Writes a record to a block of its own, for the job, and waits for that.
    pub(super) async fn place(&mut self, shard: usize, record: &Record<'_>) -> Result<Link, Error> {
        let link = self.block(shard, Class::holding(record.bytes())).await?;
        self.begin_write(shard, link, record)?;
        self.await_writes().await?;
        Ok(link)
    }

    pub(super) fn begin_write(
        &mut self,
        shard: usize,
        link: Link,
        record: &Record<'_>,
    ) -> Result<(), Error> {
        record.encode(link, &mut self.buffer);
        let at = link.at(self.header(shard).memory());
        let mut write = self.thread.write(at, &self.buffer);
        match write.poll_result() {
            Some(result) => result?,
            None => self.job().writes.push(write),
        }
        Ok(())
    }

    pub(super) async fn await_writes(&mut self) -> Result<(), Error> {
        while let Some(write) = self.job().writes.last_mut() {
            let result = write.await;
            self.job().writes.pop();
            result?;
        }
        Ok(())
    }
}

impl<'k> Hashed<'k> {
    fn request(self, what: What, header: Address) -> Request<'k> {
        Request { hash: self.hash, key: self.key, ..Request::new(what, header) }
    }
}

fn written(answer: &Answer<'_>) -> Written {
    match (answer.became, answer.link()) {
        (Became::Done, Some(link)) => Written::Done(Version(link)),
        (_, link) => Written::refused(link),
    }
}
