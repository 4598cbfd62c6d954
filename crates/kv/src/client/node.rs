//! Operations done by the memory node: one round trip, except for long records.

use ethermem::{Address, Pending};

use super::job::{End, Job};
use super::read::Held;
use super::{Client, Entry, Hashed, Written};
use crate::call::{Answer, Became, Request, Version, What, When};
use crate::error::Error;
use crate::link::{Class, Link};
use crate::node::KeyValue;
use crate::record::{APART_HEADER_BYTES, Apart, RECORD_BYTES_MAX, Record, is_apart};

/// A longer buffer is freed once its bytes are sent.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Decodes the answer of a shard's memory node.
pub(super) fn answer(bytes: &[u8], shard: Address) -> Result<Answer<'_>, Error> {
    Answer::decode(bytes).ok_or(Error::BadAnswer { memory: shard.memory() })
}

impl Client {
    pub(super) fn call(&mut self, request: &Request<'_>) -> Pending<Vec<u8>> {
        request.encode(&mut self.buffer);
        self.thread.offload(KeyValue::NAME, request.shard, &self.buffer, &[])
    }

    /// Looks a key up by a call; shows its value if it comes with the answer.
    pub(super) async fn look_up_at_node<R>(
        &mut self,
        hashed: Hashed<'_>,
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Result<Option<Held<R>>, Error> {
        let header = self.header(hashed.shard);
        let answered = self.call(&hashed.request(What::Get, header)).await?;
        let answer = answer(&answered, header)?;
        let Some(link) = answer.link() else { return Ok(None) };
        if answer.became == Became::Done {
            let entry = Entry { value: answer.bytes, tag: answer.tag, version: Version(link) };
            return Ok(Some(Held::Here(show(entry))));
        }
        let apart = Apart::from_bytes(answer.bytes);
        let apart = apart.ok_or(Error::BadAnswer { memory: header.memory() })?;
        Ok(Some(Held::Apart { apart, tag: answer.tag, link }))
    }

    pub(super) async fn change_at_node(
        &mut self,
        hashed: Hashed<'_>,
        new: Option<(&[u8], u64)>,
        when: When,
    ) -> Result<Written, Error> {
        let Hashed { key, shard, .. } = hashed;
        let header = self.header(shard);
        let request = match new {
            Some((value, tag)) if is_apart(key, value) => {
                return self.link_at_node(hashed, value, tag, when).await;
            }
            Some((value, tag)) => Request { value, tag, ..hashed.request(What::Put, header) },
            None => hashed.request(What::Delete, header),
        };
        let request = request.when(when);
        let mut turn = 0;
        loop {
            let answered = self.call(&request).await.map_err(Error::of_decision)?;
            let answer = decision(&answered, header)?;
            if answer.became == Became::NeedsRegion {
                self.extend_for_records(shard, answer.operand, turn).await?;
                turn += 1;
                continue;
            }
            let written = written(&answer);
            self.grow_if_wanted(shard, answer.wants_table).await;
            return Ok(written);
        }
    }

    /// Writes a value that is stored apart to its final place, and then links it.
    async fn link_at_node(
        &mut self,
        hashed: Hashed<'_>,
        value: &[u8],
        tag: u64,
        when: When,
    ) -> Result<Written, Error> {
        let shard = hashed.shard;
        let header = self.header(shard);
        self.job = Some(Job::new(shard));
        let placed = self.place(shard, value).await;
        let Ok(apart) = placed else {
            self.settle().await;
            return placed.map(|_| unreachable!("it failed"));
        };
        let place = apart.to_bytes();
        let mut turn = 0;
        loop {
            let request = Request { tag, value: &place, ..hashed.request(What::Link, header) };
            let pending = self.call(&request.when(when));
            self.job().end = End::Link(pending);
            let End::Link(pending) = &mut self.job().end else { unreachable!("just set") };
            let answered = pending.await.map_err(Error::of_decision);
            self.job().end = End::Open;
            let decided = answered.as_ref().map_err(Error::clone);
            let answer = match decided.and_then(|answered| decision(answered, header)) {
                Ok(answer) => answer,
                Err(error @ Error::Uncertain(_)) => {
                    // The block may be in use from now on.
                    self.job = None;
                    return Err(error);
                }
                Err(error) => {
                    self.settle().await;
                    return Err(error);
                }
            };
            match answer.became {
                Became::NeedsRegion => {
                    let extended = self.extend_for_records(shard, answer.operand, turn).await;
                    if extended.is_err() {
                        self.settle().await;
                        return extended.map(|()| unreachable!("it failed"));
                    }
                    turn += 1;
                    continue;
                }
                Became::Done => self.job = None,
                _ => {
                    self.settle().await;
                }
            }
            let written = written(&answer);
            self.grow_if_wanted(shard, answer.wants_table).await;
            return Ok(written);
        }
    }

    /// Gives the memory node room for a record, and for copies of those before it.
    async fn extend_for_records(
        &mut self,
        shard: usize,
        heap_bytes: u64,
        turn: u32,
    ) -> Result<(), Error> {
        self.extend(shard, Class::holding(RECORD_BYTES_MAX), heap_bytes, turn).await
    }

    /// Grows the table if needed. The change is done, so an error here is not reported; the next
    /// new key tries again.
    pub(super) async fn grow_if_wanted(&mut self, shard: usize, wants_table: bool) {
        if wants_table {
            let _ = self.grow(shard).await;
        }
    }

    /// Writes a value to a block of its own, for the job, and waits for completion.
    async fn place(&mut self, shard: usize, value: &[u8]) -> Result<Apart, Error> {
        let apart = self.begin_write_apart(shard, value).await?;
        self.await_writes().await?;
        Ok(apart)
    }

    /// Begins to write a value to a block of its own, for the job.
    pub(super) async fn begin_write_apart(
        &mut self,
        shard: usize,
        value: &[u8],
    ) -> Result<Apart, Error> {
        let bytes = value.len() as u64;
        let link = self.block(shard, Class::holding(APART_HEADER_BYTES as u64 + bytes)).await?;
        let apart = Apart { link, bytes };
        apart.encode(value, &mut self.buffer);
        self.begin_write_buffer(shard, link)?;
        Ok(apart)
    }

    pub(super) fn begin_write(
        &mut self,
        shard: usize,
        link: Link,
        record: &Record<'_>,
    ) -> Result<(), Error> {
        record.encode(link, &mut self.buffer);
        self.begin_write_buffer(shard, link)
    }

    fn begin_write_buffer(&mut self, shard: usize, link: Link) -> Result<(), Error> {
        let at = link.at(self.header(shard).memory());
        let mut write = self.thread.write(at, &self.buffer);
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        let Some(result) = write.poll_result() else {
            self.job().writes.push(write);
            return Ok(());
        };
        self.job().wrote(&result);
        Ok(result?)
    }

    pub(super) async fn await_writes(&mut self) -> Result<(), Error> {
        while let Some(write) = self.job().writes.last_mut() {
            let result = write.await;
            let job = self.job();
            job.writes.pop();
            job.wrote(&result);
            result?;
        }
        Ok(())
    }
}

/// Decodes the answer to the message that decides.
fn decision(bytes: &[u8], shard: Address) -> Result<Answer<'_>, Error> {
    Answer::decode(bytes).ok_or_else(|| Error::uncertain_answer(shard.memory()))
}

impl<'k> Hashed<'k> {
    pub(super) fn request(self, what: What, header: Address) -> Request<'k> {
        Request { hash: self.hash, key: self.key, ..Request::new(what, header) }
    }
}

fn written(answer: &Answer<'_>) -> Written {
    match (answer.became, answer.link()) {
        (Became::Done, Some(link)) => Written::Done(Version(link)),
        (_, link) => Written::refused(link),
    }
}
