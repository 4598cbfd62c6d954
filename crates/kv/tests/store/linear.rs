//! Many clients at once: the operations on each key are linearizable.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ethermem_kv::{Client, Store};
use proptest::prelude::*;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::history::{Event, Seen, not_linear};
use crate::{BOTH, crowded, every_url, open};

const CLIENTS: u64 = 6;
const KEYS: usize = 12;
const OPERATIONS: u64 = 60;

#[derive(Default)]
struct Log {
    moments: Cell<u64>,
    events: RefCell<Vec<Event>>,
}

impl Log {
    fn moment(&self) -> u64 {
        self.moments.set(self.moments.get() + 1);
        self.moments.get()
    }
}

/// A value that identifies its write, of varying length.
fn value(stamp: u64) -> Vec<u8> {
    let words = 1 + (stamp % 7) * (stamp % 7) * 10;
    stamp.to_le_bytes().repeat(words as usize)
}

fn stamp_of(bytes: &[u8]) -> u64 {
    let stamp = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, value(stamp), "a torn value");
    stamp
}

async fn operate(client: &mut Client, key: usize, stamp: u64, what: u64) -> Seen {
    let name = format!("the key {key}").into_bytes();
    match what % 8 {
        0 => {
            client.put(&name, &value(stamp)).await.unwrap();
            Seen::Put(stamp)
        }
        1 => Seen::Create(stamp, client.create(&name, &value(stamp)).await.unwrap()),
        2 => Seen::Update(stamp, client.update(&name, &value(stamp)).await.unwrap()),
        3 | 4 => Seen::Delete(client.delete(&name).await.unwrap()),
        _ => Seen::Read(client.read(&name).await.unwrap().map(|read| stamp_of(&read.bytes))),
    }
}

/// Clients on all compute nodes, half of them walking, in one store that grows meanwhile.
fn run(url: &str, seed: u64) -> Vec<Event> {
    let pool = open(url);
    let store: Store = pool.run(crowded(&pool));
    let (log, tasks) = (Rc::new(Log::default()), pool.tasks());
    for number in 0..CLIENTS {
        let mut client = store.client(BOTH[number as usize % 2]);
        let log = log.clone();
        let mut draws = SplitMix64::seed_from_u64(seed ^ (number << 32));
        tasks.spawn(async move {
            for at in 0..OPERATIONS {
                let key = draws.next_u64() as usize % KEYS;
                let begun = log.moment();
                let stamp = number * OPERATIONS + at;
                let seen = operate(&mut client, key, stamp, draws.next_u64()).await;
                let ended = log.moment();
                log.events.borrow_mut().push(Event { key, begun, ended, seen });
                // Other keys make the tables grow meanwhile.
                let other = format!("{number} {at}");
                client.put(other.as_bytes(), b"something").await.unwrap();
            }
        });
    }
    tasks.run();
    pool.run(async {
        for number in 0..CLIENTS {
            let mut client = store.client(BOTH[number as usize % 2]);
            for at in 0..OPERATIONS {
                let read = client.read(format!("{number} {at}").as_bytes()).await.unwrap();
                assert_eq!(read.expect("a key that nobody drops").bytes, b"something");
            }
        }
    });
    pool.close().unwrap();
    log.events.take()
}

fn check(url: &str, seed: u64) {
    if let Some(events) = not_linear(&run(url, seed)) {
        panic!("{url}, seed {seed}: no order explains {events:#?}");
    }
}

#[test]
fn every_fabric_is_linear() {
    for url in every_url() {
        check(&url, 1);
    }
}

#[test]
fn a_seed_repeats_a_run() {
    let runs = [0, 1].map(|_| format!("{:?}", run("sim:edm?nodes=6", 3)));
    assert_eq!(runs[0], runs[1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The printed failure includes the seed.
    #[test]
    fn every_order_of_many_clients_is_linear(
        seed: u64,
        fabric in proptest::sample::select(vec!["edm", "roce", "cxl"]),
        load in 0_u32..2,
    ) {
        let load = if load == 0 { String::new() } else { "&load=0.4&message_bytes=500".to_owned() };
        check(&format!("sim:{fabric}?nodes=6&seed={}{load}", seed % 1000), seed);
    }
}
