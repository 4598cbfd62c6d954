//! Reads and writes of one key at its memory node.

use ethermem::{Address, OffloadError as Error};

use super::{Shard, refused};
use crate::call::{Answer, Became, Request, What};
use crate::layout::{COUNT_AT, EMPTY, MOVED, UNSET};
use crate::link::{BLOCK_BYTES_MAX, Class, Link};
use crate::record::{self, HEADER_BYTES, Record};

/// Longest record that a request or an answer carries. A longer one goes by reads and writes of its
/// own, which a fabric cuts as it likes.
pub(crate) const INLINE_BYTES_MAX: u64 = 16 << 10;

/// Buckets that a write of a new key moves while the table grows: fewer than two, and the next
/// growth might come before this one has ended.
const MOVED_EACH: u64 = 4;

/// Where a key is, or would be.
struct Found {
    bucket: Address,
    word: u64,
    /// The records before it.
    before: Vec<Link>,
    /// Its own, if there is one, and the one behind.
    own: Option<(Link, Option<Link>)>,
}

impl Shard<'_, '_> {
    /// See [`What::Get`]. A short record is read at once, value and all.
    pub(super) fn get(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let (_, word) = self.bucket_of(request.hash)?;
        let mut at = Link::from_word(word);
        while let Some(link) = at {
            let bytes = self.memory.read(self.at(link), link.bytes().min(INLINE_BYTES_MAX))?;
            let head = record::head(bytes).ok_or_else(|| refused("a damaged record"))?;
            let (hash, tag, key_bytes, value_bytes) = head;
            let behind = HEADER_BYTES + key_bytes;
            if hash == request.hash && bytes.get(HEADER_BYTES..behind) == Some(request.key) {
                let answer = Answer { tag, ..Answer::of_link(Became::Done, Some(link)) };
                return Ok(match bytes.get(behind..behind + value_bytes) {
                    Some(bytes) => Answer { bytes, ..answer }.encode(),
                    None => Answer { became: Became::Elsewhere, ..answer }.encode(),
                });
            }
            at = record::next_of(bytes);
        }
        Ok(Answer::new(Became::Refused, 0).encode())
    }

    /// See [`What::Put`], [`What::Link`], [`What::Delete`].
    pub(super) fn write(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let when = request.condition().ok_or_else(|| refused("no condition"))?;
        let found = self.find(request.hash, request.key)?;
        let own = found.own.map(|(link, _)| link);
        let deletes = request.what == What::Delete;
        if !when.holds(own) || (deletes && own.is_none()) {
            return Ok(Answer::of_link(Became::Refused, own).encode());
        }
        // A chain in front of nothing stays as it is.
        let (stale, tail) = match found.own {
            Some((_, next)) => (&found.before[..], next),
            None => (&[][..], Link::from_word(found.word)),
        };
        // All that is needed first, so that nothing has changed where there is too little.
        let Some(mut fresh) = self.blocks_like(stale)? else {
            return self.needs_region();
        };
        let (mut first, mut placed) = (tail, None);
        if !deletes {
            let Some(link) = self.place(request, tail)? else {
                fresh.drain(..).try_for_each(|link| self.free(link))?;
                return self.needs_region();
            };
            (first, placed) = (Some(link), Some(link));
        }
        for (&old, &new) in stale.iter().zip(&fresh).rev() {
            self.copy(old, new, first)?;
            first = Some(new);
        }
        self.set_bucket(found.bucket, first)?;
        stale.iter().chain(&own).try_for_each(|&link| self.free(link))?;
        let wants_table = match (own, deletes) {
            (None, _) => self.added()?,
            (Some(_), true) => self.add_to_word(COUNT_AT, u64::MAX).map(|_| false)?,
            (Some(_), false) => false,
        };
        Ok(Answer { wants_table, ..Answer::of_link(Became::Done, placed.or(own)) }.encode())
    }

    /// The record of a request, in a block of its own; `None` where none is free.
    fn place(&mut self, request: &Request<'_>, next: Option<Link>) -> Result<Option<Link>, Error> {
        let Request { hash, tag, key, value, .. } = *request;
        if request.what == What::Link {
            let link = Link::from_word(tag).ok_or_else(|| refused("no block"))?;
            let head = self.memory.read(self.at(link), HEADER_BYTES as u64)?;
            let words = record::relinked(head, next);
            self.memory.write(self.at(link), &words)?;
            return Ok(Some(link));
        }
        let bytes = record::bytes_of(key, value);
        if bytes > BLOCK_BYTES_MAX {
            return Err(refused("a record too long"));
        }
        let Some(link) = self.block(Class::holding(bytes))? else { return Ok(None) };
        self.store(link, &Record { next, hash, tag, key, value })?;
        Ok(Some(link))
    }

    pub(super) fn store(&mut self, link: Link, record: &Record<'_>) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(record.bytes() as usize);
        record.encode(link, &mut bytes);
        self.memory.write(self.at(link), &bytes)
    }

    /// The record of one block in another, before `next`.
    pub(super) fn copy(&mut self, old: Link, new: Link, next: Option<Link>) -> Result<(), Error> {
        let bytes = self.memory.read(self.at(old), old.bytes())?.to_vec();
        let record = Record::parse(&bytes, old).ok_or_else(|| refused("a damaged record"))?;
        self.store(new, &Record { next, ..record })
    }

    /// A free block for each of these, of the same class; none where there are too few.
    fn blocks_like(&mut self, links: &[Link]) -> Result<Option<Vec<Link>>, Error> {
        let mut blocks = Vec::with_capacity(links.len());
        for link in links {
            match self.block(link.class())? {
                Some(block) => blocks.push(block),
                None => {
                    blocks.drain(..).try_for_each(|link| self.free(link))?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(blocks))
    }

    pub(super) fn set_bucket(&mut self, at: Address, first: Option<Link>) -> Result<(), Error> {
        let word = first.map_or(EMPTY, Link::word);
        self.memory.write(at, &word.to_le_bytes())
    }

    /// One key more: whether a larger table is wanted.
    fn added(&mut self) -> Result<bool, Error> {
        let count = self.add_to_word(COUNT_AT, 1)?;
        let moving = self.move_some(MOVED_EACH)?;
        Ok(!moving && count > self.tables.keys_max() && self.tables.may_grow())
    }

    /// Where the bucket of a hash is, and what it holds.
    pub(super) fn bucket_of(&mut self, hash: u64) -> Result<(Address, u64), Error> {
        let memory = self.base.memory();
        let last = self.tables.bucket(memory, hash);
        let word = self.memory.read_u64(last)?;
        let (bucket, word) = match self.tables.bucket_before(memory, hash) {
            Some(before) if word == UNSET => (before, self.memory.read_u64(before)?),
            _ => (last, word),
        };
        if word == MOVED {
            return Err(refused("a bucket that was moved to nowhere"));
        }
        Ok((bucket, word))
    }

    fn find(&mut self, hash: u64, key: &[u8]) -> Result<Found, Error> {
        let (bucket, word) = self.bucket_of(hash)?;
        let mut found = Found { bucket, word, before: Vec::new(), own: None };
        let mut at = Link::from_word(word);
        while let Some(link) = at {
            let wanted = (HEADER_BYTES + key.len()) as u64;
            let bytes = self.memory.read(self.at(link), wanted.min(link.bytes()))?;
            let head = record::head(bytes).ok_or_else(|| refused("a damaged record"))?;
            let (its_hash, _, key_bytes, _) = head;
            let next = record::next_of(bytes);
            let same = its_hash == hash && key_bytes == key.len();
            if same && bytes.get(HEADER_BYTES..).is_some_and(|its| its == key) {
                return Ok(Found { own: Some((link, next)), ..found });
            }
            found.before.push(link);
            at = next;
        }
        Ok(found)
    }
}
