//! The operation `key-value` of a memory node. It runs to completion before the node does anything
//! else, and every state that it leaves is valid for clients that walk the index themselves.
//!
//! Each request is a transaction: it reads, gathers its [`Changes`], and writes all of them last,
//! in one step that is done or refused as a whole. So a request that ends with an error has changed
//! nothing. A request for many buckets is a transaction for each bucket, and reports how far it
//! came.

mod changes;
#[cfg(test)]
mod exact;
#[cfg(test)]
mod faults;
mod grow;
mod heap;
mod index;
mod many;
mod scan;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ethermem::{Address, NodeMemory, Offload, OffloadError as Error};

use self::changes::Changes;
use crate::call::{Answer, Became, Request, What};
use crate::layout::{MAGIC, TABLES, TABLES_AT, Tables};
use crate::link::Link;
use crate::record::Head;

pub(crate) use scan::{KEY_HEAD_BYTES, KEY_IS_APART};

/// The operation's state at a node.
#[derive(Default)]
pub(crate) struct KeyValue {
    /// Cached tables of each shard: only this operation changes them. At a node with separate
    /// address spaces nothing is cached, because an address has many meanings there.
    tables: Option<Mutex<BTreeMap<Address, Tables>>>,
}

impl KeyValue {
    /// The operation's name.
    pub(crate) const NAME: &'static str = "key-value";

    /// The operation for the nodes of one pool, where an address has one meaning.
    pub(crate) fn of_one_space() -> KeyValue {
        KeyValue { tables: Some(Mutex::default()) }
    }

    fn tables(&self) -> Option<MutexGuard<'_, BTreeMap<Address, Tables>>> {
        let tables = self.tables.as_ref()?;
        Some(tables.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn open<'m, 'n>(
        &self,
        memory: &'m mut NodeMemory<'n>,
        base: Address,
    ) -> Result<Shard<'m, 'n>, Error> {
        let known = self.tables().and_then(|known| known.get(&base).copied());
        let tables = match known {
            Some(tables) => tables,
            None => {
                let tables = read_tables(memory, base)?;
                if let Some(mut known) = self.tables() {
                    known.insert(base, tables);
                }
                tables
            }
        };
        Ok(Shard { memory, base, tables, changes: Changes::default() })
    }
}

impl Offload for KeyValue {
    fn changes(&self, arguments: &[u8]) -> bool {
        let changes = |request: Request<'_>| match request.what {
            What::Get | What::Scan => false,
            What::Many => many::changes(&request),
            _ => true,
        };
        Request::decode(arguments).is_none_or(changes)
    }

    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, Error> {
        let request = Request::decode(arguments);
        let request = request.ok_or_else(|| refused("the arguments are no request"))?;
        let mut shard = self.open(memory, request.shard)?;
        let answer = match request.what {
            What::Get => shard.get(&request),
            What::Put | What::Link | What::Delete => shard.write(&request),
            What::Take => shard.take(&request),
            What::Give => shard.give(&request),
            What::Extend => shard.extend(&request),
            What::Grow => {
                if let Some(mut known) = self.tables() {
                    known.remove(&request.shard);
                }
                shard.grow(&request)
            }
            What::Move => shard.move_buckets(request.operand),
            What::Scan => shard.scan(&request),
            What::Clear => shard.clear(&request),
            What::Many => shard.many(&request),
        }?;
        shard.commit()?;
        Ok(answer)
    }
}

/// The error of a request that no client of this crate makes.
fn refused(problem: &str) -> Error {
    Error::failed(problem)
}

fn read_tables(memory: &mut NodeMemory<'_>, base: Address) -> Result<Tables, Error> {
    let header = memory.read(base, TABLES_AT + 8 * TABLES as u64)?;
    let (magic, words) = header.split_at(TABLES_AT as usize);
    let tables = Tables::parse(words).filter(|_| magic == MAGIC.to_le_bytes());
    tables.ok_or_else(|| refused("there is no shard of a store"))
}

/// A shard, as its node accesses it.
struct Shard<'m, 'n> {
    memory: &'m mut NodeMemory<'n>,
    base: Address,
    tables: Tables,
    changes: Changes,
}

impl Shard<'_, '_> {
    /// A word of the header.
    fn word(&mut self, at: u64) -> Result<u64, Error> {
        self.word_at(self.base.add(at))
    }

    fn set_word(&mut self, at: u64, word: u64) {
        self.changes.set_word(self.base.add(at), word);
    }

    /// Any word of the shard, including this request's pending changes.
    fn word_at(&mut self, at: Address) -> Result<u64, Error> {
        match self.changes.word(at) {
            Some(word) => Ok(word),
            None => self.memory.read_u64(at),
        }
    }

    /// Adds to a word of the header, modulo 2^64.
    fn add_to_word(&mut self, at: u64, addend: u64) -> Result<u64, Error> {
        let word = self.word(at)?.wrapping_add(addend);
        self.set_word(at, word);
        Ok(word)
    }

    /// Commits the transaction: all of its changes are made, or none.
    fn commit(&mut self) -> Result<(), Error> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let written = self.memory.write_all(&self.changes.writes());
        self.changes.forget();
        written
    }

    fn at(&self, link: Link) -> Address {
        link.at(self.base.memory())
    }

    /// The header of a record, and up to `wanted` bytes behind it.
    fn head(&mut self, link: Link, wanted: u64) -> Result<(Head, &[u8]), Error> {
        let bytes = self.memory.read(self.at(link), wanted.min(link.bytes()))?;
        let head = Head::parse(bytes).ok_or_else(damaged)?;
        Ok((head, bytes))
    }
}

fn damaged() -> Error {
    refused("a damaged record")
}

/// An answer without a value.
fn done() -> Vec<u8> {
    Answer::new(Became::Done, 0).encode()
}
