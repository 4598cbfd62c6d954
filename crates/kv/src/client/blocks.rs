//! Free blocks held by a client, so that not every write asks the memory node for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ethermem::Permissions;

use super::job::{End, Job};
use super::{Client, node};
use crate::call::{Became, Request, What, links};
use crate::error::Error;
use crate::link::{Class, Link};

/// Approximate size in bytes of the blocks that a client takes at once.
const BATCH_BYTES: u64 = 16 << 10;
const BATCH_MAX: u64 = 32;
/// A new region is as long as all earlier ones together, within these bounds in bytes.
const REGION_BYTES: [u64; 2] = [256 << 10, 64 << 20];

/// How often a client asks again while another one adds a region. That one may be a future that
/// is not polled.
const TURNS_MAX: u32 = 64;

/// The time in which a client adds a region to a shard. It ends with the future, too.
struct Extending<'s>(&'s AtomicBool);

impl Drop for Extending<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Free blocks by class, up to the largest class that has been used.
#[derive(Default)]
pub(super) struct Stash {
    by_class: Vec<Vec<Link>>,
}

impl Stash {
    pub(super) fn all(&mut self) -> impl Iterator<Item = Link> + use<> {
        std::mem::take(&mut self.by_class).into_iter().flatten()
    }

    /// Takes a block, with its version advanced.
    fn pop(&mut self, class: Class) -> Option<Link> {
        self.by_class.get_mut(class.number())?.pop().map(Link::next_use)
    }

    fn of(&mut self, class: Class) -> &mut Vec<Link> {
        let at = class.number();
        if self.by_class.len() <= at {
            self.by_class.resize_with(at + 1, Vec::new);
        }
        &mut self.by_class[at]
    }
}

fn batch(class: Class) -> u64 {
    (BATCH_BYTES / class.bytes()).clamp(1, BATCH_MAX)
}

impl Client {
    /// Keeps a free block, and returns surplus blocks to the memory node.
    pub(super) fn stash(&mut self, shard: usize, link: Link) {
        let class = link.class();
        let kept = self.shards[shard].stash.of(class);
        kept.push(link);
        if kept.len() as u64 <= 2 * batch(class) {
            return;
        }
        let given = kept.split_off(kept.len() - batch(class) as usize);
        let given: Vec<u8> = given.iter().flat_map(|link| link.word().to_le_bytes()).collect();
        let shard = self.header(shard);
        let request = Request { value: &given, ..Request::new(What::Give, shard) };
        self.call(&request).detach();
    }

    /// Takes a block for this client's job and records it in `fresh`.
    pub(super) async fn block(&mut self, shard: usize, class: Class) -> Result<Link, Error> {
        let mut link = self.shards[shard].stash.pop(class);
        if link.is_none() {
            self.inherit();
            link = self.shards[shard].stash.pop(class);
        }
        let link = match link {
            Some(link) => link,
            None => {
                self.take(shard, class).await?;
                let taken = self.shards[shard].stash.pop(class);
                taken.ok_or(Error::BadAnswer { memory: self.header(shard).memory() })?
            }
        };
        self.job().fresh.push(link);
        Ok(link)
    }

    /// The job in progress.
    pub(super) fn job(&mut self) -> &mut Job {
        self.job.as_mut().expect("a change holds its job until it has ended")
    }

    /// Asks the memory node for blocks.
    async fn take(&mut self, shard: usize, class: Class) -> Result<(), Error> {
        for turn in 0.. {
            let request = Request {
                operand: class.number() as u64,
                tag: batch(class),
                ..Request::new(What::Take, self.header(shard))
            };
            let pending = self.call(&request);
            self.job().end = End::Take(pending);
            let End::Take(pending) = &mut self.job().end else { unreachable!("just set") };
            let answer = pending.await;
            self.job().end = End::Open;
            let answer = answer?;
            let answer = node::answer(&answer, self.header(shard))?;
            if answer.became == Became::NeedsRegion {
                let heap_bytes = answer.operand;
                self.extend(shard, class, heap_bytes, turn).await?;
                continue;
            }
            links(answer.bytes).for_each(|link| self.stash(shard, link));
            break;
        }
        Ok(())
    }

    /// Gives the memory node a region to cut blocks from, unless another client does. The caller
    /// then asks again for what it wanted; `turn` is how often it has asked in vain.
    ///
    /// When a region is used up, every client learns of it at the same time. If each of them added
    /// one, the memory for blocks would grow by as many, and all but the last would be cut up.
    pub(super) async fn extend(
        &mut self,
        shard: usize,
        class: Class,
        heap_bytes: u64,
        turn: u32,
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let is_extended = &shared.is_extended[shard];
        if is_extended.swap(true, Ordering::AcqRel) && turn < TURNS_MAX {
            return Ok(());
        }
        let _ends = Extending(is_extended);
        let header = self.header(shard);
        let [least, most] = REGION_BYTES;
        let alloc = |bytes| self.thread.alloc_on(header.memory(), bytes, Permissions::READ_WRITE);
        let wanted = heap_bytes.clamp(least, most).max(class.bytes());
        let region = match alloc(wanted).await {
            // Near the end of the memory, the region is only as long as needed.
            Err(ethermem::Error::Full { .. }) if wanted > class.bytes() => {
                alloc(class.bytes()).await?
            }
            region => region?,
        };
        let request = Request {
            hash: heap_bytes,
            operand: region.address().offset(),
            tag: region.bytes(),
            ..Request::new(What::Extend, header)
        };
        let answer = self.call(&request).await?;
        if node::answer(&answer, header)?.became == Became::Refused {
            region.free().detach();
        }
        Ok(())
    }
}
