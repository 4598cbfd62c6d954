//! The operation `key-value` of a memory node. It runs to its end before the node does anything
//! else, and leaves nothing that clients who walk the index themselves could not meet.

mod grow;
mod heap;
mod index;
mod scan;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ethermem::{Address, NodeMemory, Offload, OffloadError as Error};

use crate::call::{Answer, Became, Request, What};
use crate::layout::{MAGIC, TABLES, TABLES_AT, Tables};
use crate::link::Link;

pub(crate) use index::INLINE_BYTES_MAX;
pub(crate) use scan::KEY_HEAD_BYTES;

/// See the module.
#[derive(Default)]
pub(crate) struct KeyValue {
    /// The tables of each shard, as its header says: only this operation changes them. Of a node
    /// with address spaces of its processes' own nothing is kept: one address has many meanings.
    tables: Option<Mutex<BTreeMap<Address, Tables>>>,
}

impl KeyValue {
    /// Its name.
    pub(crate) const NAME: &'static str = "key-value";

    /// For the nodes of one pool, where an address is one place.
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
        Ok(Shard { memory, base, tables })
    }
}

impl Offload for KeyValue {
    fn changes(&self, arguments: &[u8]) -> bool {
        let what = Request::decode(arguments).map(|request| request.what);
        !matches!(what, Some(What::Get | What::Scan))
    }

    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, Error> {
        let request = Request::decode(arguments);
        let request = request.ok_or_else(|| refused("the arguments are no request"))?;
        let mut shard = self.open(memory, request.shard)?;
        match request.what {
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
            What::Scan | What::Clear => shard.scan(&request),
        }
    }
}

/// Why a request is refused that no client of this crate makes.
fn refused(problem: &str) -> Error {
    Error::failed(problem)
}

fn read_tables(memory: &mut NodeMemory<'_>, base: Address) -> Result<Tables, Error> {
    let header = memory.read(base, TABLES_AT + 8 * TABLES as u64)?;
    let (magic, words) = header.split_at(TABLES_AT as usize);
    let tables = Tables::parse(words).filter(|_| magic == MAGIC.to_le_bytes());
    tables.ok_or_else(|| refused("there is no shard of a store"))
}

/// A shard, as its node sees it.
struct Shard<'m, 'n> {
    memory: &'m mut NodeMemory<'n>,
    base: Address,
    tables: Tables,
}

impl Shard<'_, '_> {
    /// A word of the header.
    fn word(&mut self, at: u64) -> Result<u64, Error> {
        self.memory.read_u64(self.base.add(at))
    }

    fn set_word(&mut self, at: u64, word: u64) -> Result<(), Error> {
        self.memory.write(self.base.add(at), &word.to_le_bytes())
    }

    /// Adds to a word of the header, around the end.
    fn add_to_word(&mut self, at: u64, addend: u64) -> Result<u64, Error> {
        let word = self.word(at)?.wrapping_add(addend);
        self.set_word(at, word)?;
        Ok(word)
    }

    fn at(&self, link: Link) -> Address {
        link.at(self.base.memory())
    }
}

/// A request that has nothing to say.
fn done() -> Vec<u8> {
    Answer::new(Became::Done, 0).encode()
}
