//! Operations that a memory node does by itself, so that one round trip takes the place of many.

use std::collections::BTreeMap;
use std::sync::Arc;

use ethermem_edm::RmwOperation;

use super::space::Node;
use crate::address::{Address, ProcessId};
use crate::error::Error;

/// An operation at the memory node: given its arguments and the caller's view of that node, it
/// gives the result's bytes.
///
/// It runs to its end before the node does anything else, and acts with the caller's permissions.
pub trait Offload: Send + Sync {
    /// Does it.
    ///
    /// # Errors
    /// Any [`Error`] of its accesses; [`Error::Offload`] for arguments that it does not take.
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, Error>;
}

/// What an offload sees of its node: the regions of the process that asked.
pub struct NodeMemory<'n> {
    node: &'n mut Node,
    process: ProcessId,
    accesses: u64,
}

impl<'n> NodeMemory<'n> {
    pub(crate) fn new(node: &'n mut Node, process: ProcessId) -> NodeMemory<'n> {
        NodeMemory { node, process, accesses: 0 }
    }

    /// The bytes from `address` on.
    ///
    /// # Errors
    /// [`Error::Unmapped`], [`Error::Permission`].
    pub fn read(&mut self, address: Address, bytes: u64) -> Result<&[u8], Error> {
        self.accesses += 1;
        self.node.read(self.process, address, bytes)
    }

    /// The little-endian word at `address`.
    ///
    /// # Errors
    /// As [`NodeMemory::read`].
    pub fn read_u64(&mut self, address: Address) -> Result<u64, Error> {
        let word = self.read(address, 8)?;
        Ok(u64::from_le_bytes(word.try_into().expect("8 B were read")))
    }

    /// Writes `data` from `address` on.
    ///
    /// # Errors
    /// As [`NodeMemory::read`]; no byte is written then.
    pub fn write(&mut self, address: Address, data: &[u8]) -> Result<(), Error> {
        self.accesses += 1;
        self.node.write(self.process, address, data)
    }

    /// Executes an atomic, and gives the word before.
    ///
    /// # Errors
    /// As [`NodeMemory::read`], and [`Error::Misaligned`].
    pub fn modify(&mut self, address: Address, operation: RmwOperation) -> Result<u64, Error> {
        self.accesses += 1;
        self.node.modify(self.process, address, operation)
    }

    /// The node behind it.
    pub(crate) fn node(&mut self) -> &mut Node {
        self.node
    }

    /// How many accesses there were: on a fabric with a time of its own, each takes that of the
    /// node's memory.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }
}

/// The operations that the memory nodes of a pool know, by name.
#[derive(Clone)]
pub(crate) struct Offloads {
    by_name: BTreeMap<String, Arc<dyn Offload>>,
}

impl Offloads {
    /// Those that every pool has.
    pub(crate) fn built_in() -> Offloads {
        let mut offloads = Offloads { by_name: BTreeMap::new() };
        offloads.add(Chase::NAME, Arc::new(Chaser));
        offloads.add(Filter::NAME, Arc::new(Filterer));
        offloads
    }

    pub(crate) fn add(&mut self, name: &str, offload: Arc<dyn Offload>) {
        self.by_name.insert(name.to_owned(), offload);
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<dyn Offload>, Error> {
        self.by_name.get(name).cloned().ok_or_else(|| Error::NoSuchOffload {
            name: name.to_owned(),
            allowed: self.by_name.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

/// Follows pointers from element to element until a key is found: what a linked list, a bucket of
/// a hash table or a path in a tree takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chase {
    /// The first element; [`Address::NULL`] is an empty chain.
    pub start: Address,
    /// Where in an element the address of the next one is.
    pub next_offset: u32,
    /// Where in an element its key is.
    pub key_offset: u32,
    /// Where in an element the bytes begin that are asked for.
    pub value_offset: u32,
    /// How many bytes of the element are asked for; 0 for its address alone.
    pub value_bytes: u32,
    /// Most elements looked at.
    pub elements_max: u32,
    /// What is looked for.
    pub key: Vec<u8>,
}

/// What [`Chase`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chased {
    /// The element.
    pub address: Address,
    /// Its bytes.
    pub value: Vec<u8>,
}

impl Chase {
    /// Its name.
    pub const NAME: &'static str = "chase";
    const WORDS: usize = 6;

    /// As arguments of the operation: six little-endian words and the key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let words = [
            self.start.0,
            self.next_offset.into(),
            self.key_offset.into(),
            self.value_offset.into(),
            self.value_bytes.into(),
            self.elements_max.into(),
        ];
        encode(&words, &self.key)
    }

    fn decode(arguments: &[u8]) -> Option<Chase> {
        let (words, key) = decode::<{ Chase::WORDS }>(arguments)?;
        let [start, numbers @ ..] = words;
        let mut narrow = [0; Chase::WORDS - 1];
        for (narrow, number) in narrow.iter_mut().zip(numbers) {
            *narrow = u32::try_from(number).ok()?;
        }
        let [next_offset, key_offset, value_offset, value_bytes, elements_max] = narrow;
        let (start, key) = (Address(start), key.to_vec());
        Some(Chase { start, next_offset, key_offset, value_offset, value_bytes, elements_max, key })
    }

    /// Reads the result of the operation; `None` where nothing was found.
    ///
    /// # Errors
    /// [`Error::Offload`] for bytes that are no result.
    pub fn result(bytes: &[u8]) -> Result<Option<Chased>, Error> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let no_result = || refused(Chase::NAME, "a result begins with an address");
        let ([address], value) = decode::<1>(bytes).ok_or_else(no_result)?;
        Ok(Some(Chased { address: Address(address), value: value.to_vec() }))
    }
}

struct Chaser;

impl Offload for Chaser {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, Error> {
        let allowed = "allowed are six words below 2^32 after the start, and a key";
        let chase = Chase::decode(arguments).ok_or_else(|| refused(Chase::NAME, allowed))?;
        let mut at = chase.start;
        for _ in 0..chase.elements_max {
            if at == Address::NULL {
                return Ok(Vec::new());
            }
            let key_at = at.add(chase.key_offset.into());
            let empty = chase.key.is_empty();
            if empty || memory.read(key_at, chase.key.len() as u64)? == chase.key {
                let value: &[u8] = match chase.value_bytes {
                    0 => &[],
                    bytes => memory.read(at.add(chase.value_offset.into()), bytes.into())?,
                };
                return Ok(encode(&[at.0], value));
            }
            at = Address(memory.read_u64(at.add(chase.next_offset.into()))?);
        }
        let problem = format!("no end within {} elements", chase.elements_max);
        Err(refused(Chase::NAME, &problem))
    }
}

/// How a field compares to what is asked for, both as unsigned little-endian words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Comparison {
    /// Below.
    Less = 0,
    /// The same.
    Equal = 1,
    /// Above.
    Greater = 2,
}

/// The records of an array with a field that compares so, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The first record.
    pub start: Address,
    /// How long a record is.
    pub record_bytes: u32,
    /// How many there are.
    pub records: u32,
    /// Where in a record the field is, an eight-byte word.
    pub field_offset: u32,
    /// How it is to compare.
    pub comparison: Comparison,
    /// To what.
    pub operand: u64,
}

impl Filter {
    /// Its name.
    pub const NAME: &'static str = "filter";

    /// As arguments of the operation: six little-endian words. The result is the records.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let words = [
            self.start.0,
            self.record_bytes.into(),
            self.records.into(),
            self.field_offset.into(),
            self.comparison as u64,
            self.operand,
        ];
        encode(&words, &[])
    }

    fn decode(arguments: &[u8]) -> Option<Filter> {
        let ([start, record_bytes, records, field_offset, comparison, operand], []) =
            decode::<6>(arguments)?
        else {
            return None;
        };
        let comparison = match comparison {
            0 => Comparison::Less,
            1 => Comparison::Equal,
            2 => Comparison::Greater,
            _ => return None,
        };
        let record_bytes = u32::try_from(record_bytes).ok().filter(|&bytes| bytes >= 8)?;
        let field_offset = u32::try_from(field_offset).ok()?;
        if field_offset > record_bytes - 8 {
            return None;
        }
        let records = u32::try_from(records).ok()?;
        let start = Address(start);
        Some(Filter { start, record_bytes, records, field_offset, comparison, operand })
    }
}

struct Filterer;

impl Offload for Filterer {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, Error> {
        let allowed = "allowed are records of 8 B and more with a word in them, and 0, 1 or 2";
        let filter = Filter::decode(arguments).ok_or_else(|| refused(Filter::NAME, allowed))?;
        let mut found = Vec::new();
        for index in 0..u64::from(filter.records) {
            let address = filter.start.add(index * u64::from(filter.record_bytes));
            let record = memory.read(address, filter.record_bytes.into())?;
            let field = &record[filter.field_offset as usize..][..8];
            let field = u64::from_le_bytes(field.try_into().expect("8 B were taken"));
            let kept = match filter.comparison {
                Comparison::Less => field < filter.operand,
                Comparison::Equal => field == filter.operand,
                Comparison::Greater => field > filter.operand,
            };
            if kept {
                found.extend_from_slice(record);
            }
        }
        Ok(found)
    }
}

fn refused(name: &str, problem: &str) -> Error {
    Error::Offload { name: name.to_owned(), problem: problem.to_owned() }
}

fn encode(words: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(rest);
    bytes
}

fn decode<const WORDS: usize>(bytes: &[u8]) -> Option<([u64; WORDS], &[u8])> {
    let (head, rest) = bytes.split_at_checked(WORDS * 8)?;
    let mut words = [0; WORDS];
    for (word, octets) in words.iter_mut().zip(head.chunks_exact(8)) {
        *word = u64::from_le_bytes(octets.try_into().expect("chunks of 8 B"));
    }
    Some((words, rest))
}
