//! Reads and writes of one key at its memory node.

use ethermem::{Address, OffloadError as Error};

use super::{Shard, damaged, refused};
use crate::call::{Answer, Became, Request, What};
use crate::layout::{COUNT_AT, EMPTY, MOVED, UNSET};
use crate::link::{Class, Link};
use crate::record::{Apart, Head, RECORD_BYTES_MAX, Record, Stored};

/// Buckets moved by a write of a new key while the table grows. With fewer than two, the next
/// growth might begin before this one has ended.
const MOVED_EACH: u64 = 4;

/// Position of a key, existing or not.
struct Found {
    bucket: Address,
    word: u64,
    /// Records before the key's.
    before: Vec<Link>,
    /// The key's record, if it exists.
    own: Option<Own>,
}

/// The record of a key.
struct Own {
    link: Link,
    next: Option<Link>,
    apart: Option<Apart>,
}

impl Shard<'_, '_> {
    /// Handles [`What::Get`]. A record is read at once, with its value unless that is stored apart.
    pub(super) fn get(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let (_, word) = self.bucket_of(request.hash)?;
        let mut at = Link::from_word(word);
        while let Some(link) = at {
            let (head, bytes) = self.head(link, RECORD_BYTES_MAX)?;
            if head.hash == request.hash && head.key(bytes) == Some(request.key) {
                let answer = Answer { tag: head.tag, ..Answer::of_link(Became::Done, Some(link)) };
                return Ok(match head.value(bytes).ok_or_else(damaged)? {
                    Stored::Here(bytes) => Answer { bytes, ..answer }.encode(),
                    Stored::Apart(apart) => {
                        let bytes = &apart.to_bytes()[..];
                        Answer { became: Became::Elsewhere, bytes, ..answer }.encode()
                    }
                });
            }
            at = head.next;
        }
        Ok(Answer::new(Became::Refused, 0).encode())
    }

    /// Handles [`What::Put`], [`What::Link`], [`What::Delete`].
    pub(super) fn write(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let when = request.condition().ok_or_else(|| refused("no condition"))?;
        let found = self.find(request.hash, request.key)?;
        let own = found.own.as_ref().map(|own| own.link);
        let deletes = request.what == What::Delete;
        if !when.holds(own) || (deletes && own.is_none()) {
            return Ok(Answer::of_link(Became::Refused, own).encode());
        }
        // Records before a missing key stay as they are.
        let (stale, tail) = match &found.own {
            Some(own) => (&found.before[..], own.next),
            None => (&[][..], Link::from_word(found.word)),
        };
        // A deletion needs no memory: each copy is the next use of its record's own block.
        let (fresh, free) = match deletes {
            true => (stale.iter().map(|link| link.next_use()).collect(), &[][..]),
            false => match self.blocks_like(stale)? {
                Some(fresh) => (fresh, stale),
                None => return self.needs_region(),
            },
        };
        let (mut first, mut placed) = (tail, None);
        if !deletes {
            let Some(link) = self.place(request, tail)? else { return self.needs_region() };
            (first, placed) = (Some(link), Some(link));
        }
        for (&old, &new) in stale.iter().zip(&fresh).rev() {
            self.copy(old, new, first)?;
            first = Some(new);
        }
        self.set_bucket(found.bucket, first);
        let apart = found.own.and_then(|own| own.apart).map(|apart| apart.link);
        free.iter().chain(&own).chain(&apart).try_for_each(|&link| self.free(link))?;
        let keys = match (own, deletes) {
            (None, _) => Some(self.add_to_word(COUNT_AT, 1)?),
            (Some(_), true) => self.add_to_word(COUNT_AT, u64::MAX).map(|_| None)?,
            (Some(_), false) => None,
        };
        self.commit()?;
        // The change is done: errors of what follows are not the caller's.
        let wants_table = keys.is_some_and(|keys| self.has_too_many(keys));
        Ok(Answer { wants_table, ..Answer::of_link(Became::Done, placed.or(own)) }.encode())
    }

    /// Puts the record of a request into a new block; `None` if none is free.
    fn place(&mut self, request: &Request<'_>, next: Option<Link>) -> Result<Option<Link>, Error> {
        let Request { hash, tag, key, value, .. } = *request;
        let value = match request.what {
            What::Link => {
                let apart = Apart::from_bytes(value).ok_or_else(|| refused("no block"))?;
                Stored::Apart(apart)
            }
            _ => Stored::Here(value),
        };
        let record = Record { next, hash, tag, key, value };
        if record.bytes() > RECORD_BYTES_MAX {
            return Err(refused("a record too long"));
        }
        let Some(link) = self.block(Class::holding(record.bytes()))? else { return Ok(None) };
        self.store(link, &record);
        Ok(Some(link))
    }

    fn store(&mut self, link: Link, record: &Record<'_>) {
        let mut bytes = Vec::with_capacity(record.bytes() as usize);
        record.encode(link, &mut bytes);
        self.changes.set_record(self.at(link), bytes);
    }

    /// Copies a record to another block, in front of `next`. A value that is stored apart stays in
    /// its block, and belongs to the new record.
    pub(super) fn copy(&mut self, old: Link, new: Link, next: Option<Link>) -> Result<(), Error> {
        let (_, bytes) = self.head(old, RECORD_BYTES_MAX)?;
        let bytes = bytes.to_vec();
        let record = Record::parse(&bytes, old).ok_or_else(damaged)?;
        self.store(new, &Record { next, ..record });
        Ok(())
    }

    /// A free block of the class of each of these links; `None` if there are too few.
    fn blocks_like(&mut self, links: &[Link]) -> Result<Option<Vec<Link>>, Error> {
        links.iter().map(|link| self.block(link.class())).collect()
    }

    pub(super) fn set_bucket(&mut self, at: Address, first: Option<Link>) {
        self.changes.set_word(at, first.map_or(EMPTY, Link::word));
    }

    /// Continues a growth in progress, and returns whether the next one is needed. If that fails,
    /// the next new key tries again.
    fn has_too_many(&mut self, keys: u64) -> bool {
        let moving = self.move_some(MOVED_EACH);
        self.changes.forget();
        matches!(moving, Ok(false)) && keys > self.tables.keys_max() && self.tables.may_grow()
    }

    /// Address and word of a hash's bucket.
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
            let (head, bytes) = self.head(link, Head::bytes_to_value(key.len()))?;
            let next = head.next;
            if head.hash == hash && head.key(bytes) == Some(key) {
                let apart = head.apart(bytes).ok_or_else(damaged)?;
                return Ok(Found { own: Some(Own { link, next, apart }), ..found });
            }
            found.before.push(link);
            at = next;
        }
        Ok(found)
    }
}
