//! Executes the conformance matrix's requests on a pool, in Rust: one request a line, one answer a
//! line.
//!
//! The drivers in C and Python of `conformance/` accept equal requests.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use crc::{CRC_32_ISO_HDLC, Crc};
use ethermem::{
    Address, Chase, Comparison, Error, Filter, Permissions, Pool, Ps, Region, RmwOperation,
    Segment, Thread,
};
use ethermem_kv::{Client, Config, Index, Store};

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Bytes derived from `seed`, which are written and later compared.
fn pattern(seed: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| ((seed + at) % 251) as u8).collect()
}

/// The number of bytes, and their CRC-32.
fn digest(bytes: &[u8]) -> String {
    format!("{} {}", bytes.len(), CRC.checksum(bytes))
}

fn nothing(_: ()) -> String {
    String::new()
}

fn permissions(bits: u64) -> Permissions {
    match bits {
        0 => Permissions::NONE,
        1 => Permissions::READ,
        2 => Permissions::WRITE,
        _ => Permissions::READ_WRITE,
    }
}

/// The words of one request.
struct Words<'l>(std::str::SplitAsciiWhitespace<'l>);

impl<'l> Words<'l> {
    fn next(&mut self) -> &'l str {
        self.0.next().expect("a word more")
    }

    fn number(&mut self) -> u64 {
        self.next().parse().expect("a number")
    }
}

/// Result of an operation, or its error's kind and text.
type Answer = Result<String, String>;

fn told<T, E: std::fmt::Debug + std::fmt::Display>(
    ended: Result<T, E>,
    show: impl FnOnce(T) -> String,
) -> Answer {
    ended.map(show).map_err(|error| {
        let kind = format!("{error:?}");
        // For an error of the pool below the store, the pool's kind counts.
        let kind = kind.trim_start_matches("Pool(").split([' ', '(', '{', ')']).next();
        format!("{} {error}", kind.unwrap_or_default())
    })
}

#[derive(Default)]
struct Driver {
    pool: Option<Pool>,
    threads: BTreeMap<String, Thread>,
    regions: BTreeMap<String, Region>,
    store: Option<Store>,
    clients: BTreeMap<String, Client>,
}

impl Driver {
    fn thread(&self, words: &mut Words<'_>) -> &Thread {
        &self.threads[words.next()]
    }

    /// A place: a region's name and an offset, which may be outside of it.
    fn place(&self, words: &mut Words<'_>) -> Address {
        let region = &self.regions[words.next()];
        Address(region.address().0.wrapping_add(words.number()))
    }

    /// Contiguous places: the first address, the length of each, their number.
    fn places(&self, words: &mut Words<'_>) -> (Vec<Segment>, u64) {
        let (first, bytes, count) = (self.place(words), words.number(), words.number());
        let at = |index: u64| Address(first.0.wrapping_add(index.wrapping_mul(bytes)));
        ((0..count).map(|index| Segment { address: at(index), bytes }).collect(), bytes)
    }

    fn manage(&mut self, name: &str, words: &mut Words<'_>) -> Option<Answer> {
        if name == "open" {
            let opened = Pool::open(words.next());
            return Some(told(opened, |pool| {
                let (compute, memory) = pool.nodes();
                self.pool = Some(pool);
                format!("{compute} {memory}")
            }));
        }
        let pool = self.pool.as_ref().expect("an open pool");
        Some(match name {
            "thread" => {
                let to = words.next().to_owned();
                told(pool.thread().map(|thread| drop(self.threads.insert(to, thread))), nothing)
            }
            "fork" => {
                let forked = self.thread(words).fork();
                self.threads.insert(words.next().to_owned(), forked);
                Ok(String::new())
            }
            "alloc" => {
                let thread = self.thread(words).clone();
                let to = words.next().to_owned();
                let (bytes, may) = (words.number(), permissions(words.number()));
                let region = thread.alloc(bytes, may).wait();
                told(region, |region| {
                    let address = region.address().0;
                    self.regions.insert(to, region);
                    address.to_string()
                })
            }
            "free" => {
                let thread = self.thread(words);
                told(self.regions[words.next()].by(thread).free().wait(), nothing)
            }
            "share" => {
                let thread = self.thread(words);
                let region = self.regions[words.next()].by(thread);
                let with = self.threads[words.next()].process();
                told(region.share(with, permissions(words.number())).wait(), nothing)
            }
            _ => return self.store(name, words),
        })
    }

    fn store(&mut self, name: &str, words: &mut Words<'_>) -> Option<Answer> {
        let pool = self.pool.as_ref().expect("an open pool");
        if name == "store" {
            let buckets = words.number();
            let config = Config { buckets, ..Config::default() };
            let made = pool.run(Store::create(pool, config));
            return Some(told(made.map(|store| self.store = Some(store)), nothing));
        }
        if name == "client" {
            let store = self.store.as_ref().expect("a store");
            let to = words.next().to_owned();
            let index = if words.next() == "node" { Index::Node } else { Index::Client };
            self.clients.insert(to, store.client(index));
            return Some(Ok(String::new()));
        }
        let operation = name.strip_prefix("kv_")?;
        let client = self.clients.get_mut(words.next()).expect("a client");
        if operation == "clear" {
            return Some(told(pool.run(client.clear()), nothing));
        }
        let (seed, bytes) = (words.number(), words.number());
        let key = pattern(seed, bytes);
        if operation == "read" {
            let read = pool.run(client.read(&key));
            return Some(told(read, |value| {
                value.map_or_else(|| "none".to_owned(), |value| digest(&value.bytes))
            }));
        }
        if operation == "delete" {
            return Some(told(pool.run(client.delete(&key)), |was| u8::from(was).to_string()));
        }
        let (seed, bytes) = (words.number(), words.number());
        let value = pattern(seed, bytes);
        let flag = |was: bool| u8::from(was).to_string();
        Some(match operation {
            "create" => told(pool.run(client.create(&key, &value)), flag),
            "update" => told(pool.run(client.update(&key, &value)), flag),
            "put" => told(pool.run(client.put(&key, &value)), nothing),
            _ => return None,
        })
    }

    fn access(&self, name: &str, words: &mut Words<'_>) -> Option<Answer> {
        let thread = self.thread(words);
        let bytes = |bytes: Vec<u8>| digest(&bytes);
        Some(match name {
            "read" => told(thread.read(self.place(words), words.number()).wait(), bytes),
            "poll" => {
                let mut pending = thread.read(self.place(words), words.number());
                loop {
                    if let Some(ended) = pending.poll_result() {
                        break told(ended, bytes);
                    }
                    self.pool.as_ref().expect("an open pool").step();
                }
            }
            "detach" => {
                thread.read(self.place(words), words.number()).detach();
                told(thread.release().wait(), nothing)
            }
            "read_into" => {
                let at = self.place(words);
                let mut to = vec![0; words.number() as usize];
                told(thread.read_into(at, &mut to), |()| digest(&to))
            }
            "region_read" => {
                let region = self.regions[words.next()].by(thread);
                told(region.read(words.number(), words.number()).wait(), bytes)
            }
            "write" | "write_from" | "region_write" => {
                let (region, offset) = (&self.regions[words.next()], words.number());
                let at = Address(region.address().0.wrapping_add(offset));
                let bytes = words.number();
                let data = pattern(words.number(), bytes);
                let done = match name {
                    "write" => thread.write(at, &data).wait(),
                    "write_from" => thread.write_from(at, &data),
                    _ => region.by(thread).write(offset, &data).wait(),
                };
                told(done, nothing)
            }
            "gather" => told(thread.gather(&self.places(words).0).wait(), bytes),
            "gather_into" => {
                let (places, bytes) = self.places(words);
                let mut to = vec![0; bytes as usize * places.len()];
                told(thread.gather_into(&places, &mut to), |()| digest(&to))
            }
            "scatter" => {
                let (places, bytes) = self.places(words);
                let data = pattern(words.number(), bytes * places.len() as u64);
                let part = |(index, place): (usize, &Segment)| {
                    let from = index * bytes as usize;
                    (place.address, &data[from..from + bytes as usize])
                };
                let parts: Vec<(Address, &[u8])> = places.iter().enumerate().map(part).collect();
                told(thread.scatter(&parts).wait(), nothing)
            }
            _ => return self.word(name, thread, words),
        })
    }

    fn word(&self, name: &str, thread: &Thread, words: &mut Words<'_>) -> Option<Answer> {
        let before = |word: u64| word.to_string();
        Some(match name {
            "cas" => {
                let (at, expected, desired) = (self.place(words), words.number(), words.number());
                told(thread.compare_and_swap(at, expected, desired).wait(), before)
            }
            "fetch_add" => told(thread.fetch_add(self.place(words), words.number()).wait(), before),
            "swap" => told(thread.swap(self.place(words), words.number()).wait(), before),
            "test_and_set" => {
                let was_set = thread.test_and_set(self.place(words)).wait();
                told(was_set, |was_set| u8::from(was_set).to_string())
            }
            "modify" => {
                let at = self.place(words);
                let operation = match words.next() {
                    "add" => RmwOperation::FetchAndAdd,
                    "swap" => RmwOperation::Swap,
                    "and" => RmwOperation::And,
                    "or" => RmwOperation::Or,
                    _ => RmwOperation::Xor,
                };
                told(thread.modify(at, operation(words.number())).wait(), before)
            }
            "lock" => told(thread.lock(self.place(words)).wait(), nothing),
            "unlock" => told(thread.unlock_wait(self.place(words)), nothing),
            "release" => told(thread.release().wait(), nothing),
            "fence" => told(thread.fence().wait(), nothing),
            "sleep" => told(thread.sleep(Ps(words.number())).wait(), nothing),
            _ => return self.offload(name, thread, words),
        })
    }

    fn offload(&self, name: &str, thread: &Thread, words: &mut Words<'_>) -> Option<Answer> {
        let (name, at, arguments) = match name {
            "offload" => {
                let name = words.next();
                (name, self.place(words), vec![0; words.number() as usize])
            }
            "chase" => {
                let (start, key_bytes) = (self.place(words), words.number());
                let chase = Chase {
                    start,
                    next_offset: 0,
                    key_offset: 8,
                    value_offset: 0,
                    value_bytes: 0,
                    elements_max: 1,
                    key: vec![0; key_bytes as usize],
                };
                (Chase::NAME, start, chase.encode())
            }
            "filter" => {
                let start = self.place(words);
                let filter = Filter {
                    start,
                    record_bytes: 8,
                    records: words.number() as u32,
                    field_offset: 0,
                    comparison: Comparison::Less,
                    operand: u64::MAX,
                };
                (Filter::NAME, start, filter.encode())
            }
            _ => return None,
        };
        let result: Result<Vec<u8>, Error> = thread.offload(name, at, &arguments, &[]).wait();
        Some(told(result, |bytes| digest(&bytes)))
    }

    fn answer(&mut self, line: &str) -> Answer {
        let mut words = Words(line.split_ascii_whitespace());
        let name = words.next();
        let answer = self.manage(name, &mut words).or_else(|| self.access(name, &mut words));
        answer.unwrap_or_else(|| panic!("{name}: no request of the matrix"))
    }
}

fn main() -> io::Result<()> {
    let mut driver = Driver::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = match driver.answer(&line?) {
            Ok(text) => format!("ok {text}"),
            Err(error) => format!("error {error}"),
        };
        writeln!(out, "{}", line.replace('\n', " ").trim_end())?;
        out.flush()?;
    }
    Ok(())
}
