//! Tests: every access of every request fails in turn, once or from then on. A request that ends
//! with an error has changed nothing, and one that succeeds has done what was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ethermem::{Address, NodeMemory, Offload, OffloadError, Permissions};
use ethermem_clio::offload::View;
use ethermem_edm::RmwOperation;
use ethermem_wire::clio::ProcessId;

use super::{KeyValue, Shard};
use crate::call::{Answer, Became, Request, Version, What, When, links};
use crate::layout::{HEAP_BYTES_AT, MAGIC, TABLES_AT, free_at};
use crate::link::{CLASSES, Class, Link};
use crate::record::{Apart, RECORD_BYTES_MAX, hash_of, word};

pub(super) const BASE: Address = Address(4096);
/// Offsets of the tables with 2, 4 and 8 buckets, and of the first region.
const TABLES: [u64; 3] = [8192, 8192 + 512, 8192 + 1024];
pub(super) const REGION: u64 = 16_384;
const BYTES: usize = 6 << 20;
/// Longest single read in bytes, as at a real node.
const READ_BYTES_MAX: u64 = 1 << 20;

/// A memory in which one access fails, or all from one on.
#[derive(Clone)]
pub(super) struct Memory {
    pub(super) bytes: Vec<u8>,
    pub(super) accesses: u64,
    pub(super) fails_at: u64,
    pub(super) fails_on: bool,
}

impl Memory {
    fn access(&mut self, address: Address, bytes: u64) -> Result<&mut [u8], OffloadError> {
        let at = self.accesses;
        self.accesses += 1;
        if at == self.fails_at || (self.fails_on && at > self.fails_at) {
            return Err(OffloadError::failed("a fault"));
        }
        if bytes > READ_BYTES_MAX {
            return Err(OffloadError::failed("too long"));
        }
        let from = address.0 as usize;
        let place = self.bytes.get_mut(from..from + bytes as usize);
        place.ok_or(OffloadError::Unmapped { address, bytes })
    }
}

impl View for Memory {
    fn read<'v>(
        &'v mut self,
        address: Address,
        bytes: u64,
        _: &'v mut Vec<u8>,
    ) -> Result<&'v [u8], OffloadError> {
        self.access(address, bytes).map(|place| &*place)
    }

    fn write(&mut self, address: Address, data: &[u8]) -> Result<(), OffloadError> {
        self.access(address, data.len() as u64)?.copy_from_slice(data);
        Ok(())
    }

    /// A list of writes is refused as a whole, as a node does it.
    fn write_all(&mut self, writes: &[(Address, &[u8])]) -> Result<(), OffloadError> {
        self.access(BASE, 0)?;
        for (address, data) in writes {
            self.bytes[address.0 as usize..][..data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    fn modify(&mut self, _: Address, _: RmwOperation) -> Result<u64, OffloadError> {
        panic!("no request does atomics")
    }

    fn allocate(&mut self, _: u64, _: Permissions) -> Result<Address, OffloadError> {
        panic!("no request allocates")
    }

    fn free(&mut self, _: Address) -> Result<(), OffloadError> {
        panic!("no request releases")
    }

    fn process(&self) -> ProcessId {
        ProcessId(1)
    }

    fn install(&mut self, _: &str, _: Option<Arc<dyn Offload>>) -> Result<(), OffloadError> {
        panic!("no request brings operations")
    }
}

/// Each key with its value, or the location of it, and its tag.
type Keys = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

impl Memory {
    /// A store of two buckets with a region.
    pub(super) fn new() -> Memory {
        let mut memory =
            Memory { bytes: vec![0; BYTES], accesses: 0, fails_at: u64::MAX, fails_on: false };
        memory.put(BASE.0, MAGIC);
        memory.put(BASE.0 + TABLES_AT + 8, TABLES[0]);
        memory.ask(&extend(0, REGION, 1 << 20));
        memory
    }

    fn put(&mut self, at: u64, word: u64) {
        self.bytes[at as usize..][..8].copy_from_slice(&word.to_le_bytes());
    }

    pub(super) fn run(&mut self, request: &Request<'_>) -> Result<Vec<u8>, OffloadError> {
        let mut arguments = Vec::new();
        request.encode(&mut arguments);
        KeyValue::default().run(&mut NodeMemory::new(self), &arguments)
    }

    pub(super) fn ask(&mut self, request: &Request<'_>) -> Vec<u8> {
        let answered = self.run(request).expect("nothing fails");
        let answer = Answer::decode(&answered).expect("an answer");
        assert_eq!(answer.became, Became::Done, "{request:?}");
        answered
    }

    /// Takes a block, as a client does for a long value.
    pub(super) fn take(&mut self, bytes: u64) -> Link {
        let class = Class::holding(bytes).number() as u64;
        let taken = self.ask(&Request { operand: class, tag: 1, ..Request::new(What::Take, BASE) });
        let answer = Answer::decode(&taken).expect("an answer");
        links(answer.bytes).next().expect("a block")
    }

    fn healthy(&self) -> Memory {
        Memory { fails_at: u64::MAX, ..self.clone() }
    }

    fn keys(&self) -> Keys {
        let mut memory = self.healthy();
        let mut found = Keys::new();
        for at in 0..64 {
            let key = key(at);
            let answered = memory.run(&of_key(What::Get, &key)).expect("nothing fails");
            let answer = Answer::decode(&answered).expect("an answer");
            if answer.became != Became::Refused {
                found.insert(key, (answer.bytes.to_vec(), answer.tag));
            }
        }
        found
    }

    /// Checks that no block is in two places.
    fn assert_sound(&self) {
        let mut memory = self.healthy();
        let mut view = NodeMemory::new(&mut memory);
        let kv = KeyValue::default();
        let mut shard: Shard<'_, '_> = kv.open(&mut view, BASE).expect("a shard");
        let mut met = BTreeSet::new();
        let mut meet = |link: Link| {
            assert!(met.insert(link.at(0)), "{link:?} is in two places");
        };
        for cursor in 0..8 {
            for bucket in shard.buckets_at(cursor).expect("buckets") {
                if cursor >= 1 << shard.tables.log2 {
                    continue;
                }
                for (link, head) in shard.chain(bucket).expect("a chain") {
                    if shard.is_moving().expect("a header") {
                        continue;
                    }
                    meet(link);
                    let apart = shard.apart_of(link, head.key_bytes).expect("a record");
                    apart.iter().for_each(|apart| meet(apart.link));
                }
            }
        }
        self.free_blocks().into_iter().for_each(meet);
    }

    /// A word of the shard's header.
    pub(super) fn word(&self, at: u64) -> u64 {
        word(&self.bytes, (BASE.0 + at) as usize)
    }

    /// The free blocks of each class.
    pub(super) fn free_blocks(&self) -> Vec<Link> {
        let mut blocks = Vec::new();
        for class in (1..CLASSES as u64).filter_map(Class::new) {
            let mut at = Link::from_word(self.word(free_at(class)));
            while let Some(link) = at {
                blocks.push(link);
                at = Link::from_word(word(&self.bytes, link.at(0).0 as usize));
            }
        }
        blocks
    }
}

pub(super) fn key(at: u64) -> Vec<u8> {
    format!("key {at}").into_bytes()
}

pub(super) fn of_key(what: What, key: &[u8]) -> Request<'_> {
    Request { hash: hash_of(key, 0), key, ..Request::new(what, BASE) }
}

/// Adds a region to a heap that has `heap` bytes.
pub(super) fn extend(heap: u64, from: u64, bytes: u64) -> Request<'static> {
    Request { hash: heap, operand: from, tag: bytes, ..Request::new(What::Extend, BASE) }
}

pub(super) fn grow(log2: u64) -> Request<'static> {
    let operand = TABLES[log2 as usize - 1];
    Request { operand, tag: log2, ..Request::new(What::Grow, BASE) }
}

pub(super) fn put<'b>(key: &'b [u8], value: &'b [u8]) -> Request<'b> {
    Request { value, tag: 7, ..of_key(What::Put, key) }.when(When::Always)
}

/// A store with long chains, in which every third value is stored apart, longer than a node may
/// read.
pub(super) fn crowded() -> Memory {
    let mut memory = Memory::new();
    for at in 0..12 {
        let key = key(at);
        if at % 3 == 0 {
            let bytes = if at == 0 { READ_BYTES_MAX + 8 } else { 20_000 };
            let heap = memory.word(HEAP_BYTES_AT);
            memory.ask(&extend(heap, REGION + (1 + at) * (160 << 10) + (1 << 20), 160 << 10));
            let link = match at {
                // No request reads this value, so the memory has no more of its block than a free
                // one uses.
                0 => Link::new(BYTES as u64 - 16, Class::holding(bytes + 8)),
                _ => memory.take(bytes + 8),
            };
            let place = Apart { link, bytes }.to_bytes();
            let request = Request { value: &place, tag: at, ..of_key(What::Link, &key) };
            memory.ask(&request.when(When::Absent));
        } else {
            memory.ask(&put(&key, &vec![at as u8; 10 * at as usize]));
        }
    }
    memory
}

/// Makes every access of a request fail in turn. `after` is the expected content once it is done.
fn try_every_fault(name: &str, before: &Memory, request: &Request<'_>, after: &Keys) {
    let mut whole = before.clone();
    whole.accesses = 0;
    let _ = whole.run(request);
    let (mut failed, old) = (0, before.keys());
    assert_eq!(&whole.keys(), after, "{name}");
    for fails_at in 0..whole.accesses {
        for fails_on in [false, true] {
            let mut memory = Memory { accesses: 0, fails_at, fails_on, ..before.clone() };
            match memory.run(request) {
                Err(_) => {
                    assert!(
                        memory.bytes == before.bytes,
                        "{name}: access {fails_at} left a change"
                    );
                    failed += 1;
                }
                Ok(answer) if request.what == What::Clear => {
                    // The answer says how far the request came.
                    let operand = Answer::decode(&answer).expect("an answer").operand;
                    assert!(memory.keys().len() < old.len() || operand == 0);
                    if operand != 0 {
                        memory.healthy().ask(&Request { operand, ..*request });
                    }
                }
                Ok(_) => assert_eq!(&memory.keys(), after, "{name}: access {fails_at}"),
            }
            memory.assert_sound();
        }
    }
    assert!(failed > 0, "{name}: nothing failed in {} accesses", whole.accesses);
}

#[test]
fn a_request_that_fails_at_any_access_has_changed_nothing() {
    let calm = crowded();
    let mut moving = calm.clone();
    moving.ask(&grow(2));
    for (state, memory) in [("calm", &calm), ("moving", &moving)] {
        let keys = memory.keys();
        assert_eq!(keys.len(), 12);
        for at in 0..13 {
            let (key, name) = (key(at), format!("{state}, key {at}"));
            let mut with = keys.clone();
            with.insert(key.clone(), (b"new".to_vec(), 7));
            try_every_fault(&format!("put {name}"), memory, &put(&key, b"new"), &with);
            let mut prepared = memory.clone();
            let place = Apart { link: prepared.take(20_008), bytes: 20_000 }.to_bytes();
            let request = Request { value: &place, tag: 7, ..of_key(What::Link, &key) };
            with.insert(key.clone(), (place.to_vec(), 7));
            let request = request.when(When::Always);
            try_every_fault(&format!("link {name}"), &prepared, &request, &with);
            let mut without = keys.clone();
            without.remove(&key);
            let delete = of_key(What::Delete, &key).when(When::Always);
            try_every_fault(&format!("delete {name}"), memory, &delete, &without);
            let version = Version(Link::new(4096, Class::holding(16)));
            let refused = put(&key, b"new").when(When::Is(version));
            try_every_fault(&format!("refused {name}"), memory, &refused, &keys);
        }
        let give = memory.clone().take(100).next_use().word().to_le_bytes();
        let class = Class::holding(100).number() as u64;
        let plain = |what| Request::new(what, BASE);
        for (name, request) in [
            ("take", Request { operand: class, tag: 32, ..plain(What::Take) }),
            ("give", Request { value: &give, ..plain(What::Give) }),
            ("extend", extend(memory.word(HEAP_BYTES_AT), 3 << 20, 100_000)),
            ("grow", grow(if state == "calm" { 2 } else { 3 })),
            ("move", Request { operand: 100, ..plain(What::Move) }),
            ("scan", Request { tag: 100, ..plain(What::Scan) }),
        ] {
            try_every_fault(&format!("{name}, {state}"), memory, &request, &keys);
        }
        let clear = Request { tag: 100, ..plain(What::Clear) };
        try_every_fault(&format!("clear, {state}"), memory, &clear, &Keys::new());
    }
}

/// More keys than an answer has room for, in one bucket.
#[test]
fn a_scan_of_any_chain_fits_an_answer() {
    let mut memory = Memory::new();
    let long = |at: u64| [&key(at)[..], &[b'x'; 8000]].concat();
    for at in 0..30 {
        memory.ask(&put(&long(at), b"v"));
    }
    let (mut cursor, mut met) = (0, 0);
    loop {
        let scan = Request { operand: cursor, tag: 1, ..Request::new(What::Scan, BASE) };
        let answered = memory.ask(&scan);
        assert!(answered.len() as u64 <= RECORD_BYTES_MAX + 24 + 30 * 24, "{}", answered.len());
        let answer = Answer::decode(&answered).expect("an answer");
        let mut rest = answer.bytes;
        while !rest.is_empty() {
            let length = word(rest, 8);
            let behind = if length & super::KEY_IS_APART != 0 { 8 } else { length as usize };
            rest = &rest[super::KEY_HEAD_BYTES + behind..];
            met += 1;
        }
        cursor = answer.operand;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(met, 30);
}
