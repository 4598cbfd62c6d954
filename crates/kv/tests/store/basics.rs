//! Tests with one client: the answers of a map, whichever side walks the index.

use std::collections::BTreeMap;

use ethermem::{Permissions, Ps};
use ethermem_kv::{
    Client, Config, Error, Index, KEY_BYTES_MAX, Operation, Outcome, Store, VALUE_BYTES_MAX, When,
    Written,
};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::{BOTH, crowded, every_url, open};

/// Lengths around the limits of a request and of a message.
const LENGTHS: [usize; 8] = [0, 1, 63, 64, 1000, 16 << 10, 70_000, 200_000];

fn value(draws: &mut SplitMix64) -> Vec<u8> {
    // Most values are short.
    let most = if draws.next_u64().is_multiple_of(8) { LENGTHS.len() } else { 5 };
    let length = LENGTHS[draws.next_u64() as usize % most];
    vec![draws.next_u64() as u8; length]
}

async fn step(
    client: &mut Client,
    model: &mut BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
    draws: &mut SplitMix64,
) {
    let key = format!("key {}", draws.next_u64() % 40).into_bytes();
    let (new, tag) = (value(draws), draws.next_u64());
    let known = model.get(&key).cloned();
    match draws.next_u64() % 7 {
        0 => {
            let created = client.create(&key, &new).await.unwrap();
            assert_eq!(created, known.is_none());
            if created {
                model.insert(key, (new, 0));
            }
        }
        1 => {
            let updated = client.update(&key, &new).await.unwrap();
            assert_eq!(updated, known.is_some());
            if updated {
                model.insert(key, (new, 0));
            }
        }
        2 => {
            assert_eq!(client.delete(&key).await.unwrap(), known.is_some());
            model.remove(&key);
        }
        3 => {
            // A growth that this client helps may change the version, once.
            let mut when = When::Absent;
            let mut tries = 0..2;
            while tries.next().is_some() {
                let read = client.read(&key).await.unwrap();
                when = read.map_or(When::Absent, |value| When::Is(value.version));
                if client.write(&key, &new, tag, when).await.unwrap().is_done() {
                    break;
                }
                assert!(!tries.is_empty(), "refused twice");
            }
            // The version that was read no longer exists.
            assert!(!client.write(&key, b"", 0, when).await.unwrap().is_done());
            model.insert(key, (new, tag));
        }
        4 => step_together(client, model, draws).await,
        _ => {
            let read = client.read(&key).await.unwrap();
            assert_eq!(read.map(|value| (value.bytes, value.tag)), known);
        }
    }
}

/// Several operations by one message: each sees what those before it did, and no later one.
async fn step_together(
    client: &mut Client,
    model: &mut BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
    draws: &mut SplitMix64,
) {
    let mut asked = Vec::new();
    for _ in 0..draws.next_u64() % 30 {
        // Few keys, so that operations of one message meet.
        let key = format!("key {}", draws.next_u64() % 12).into_bytes();
        asked.push((key, draws.next_u64().is_multiple_of(2).then(|| value(draws))));
    }
    let operations = asked.iter().map(|(key, new)| match new {
        None => Operation::Read(key),
        Some(new) => Operation::Put(key, new),
    });
    let mut shown = 0;
    let done = client
        .together(operations, |at, outcome| {
            assert_eq!(at, shown, "outcomes come in order");
            shown += 1;
            let (key, new) = &asked[at];
            match (new, outcome.unwrap()) {
                (None, Outcome::Read(entry)) => {
                    let read = entry.map(|entry| (entry.value.to_vec(), entry.tag));
                    assert_eq!(read.as_ref(), model.get(key), "operation {at}");
                }
                (Some(new), Outcome::Put) => drop(model.insert(key.clone(), (new.clone(), 0))),
                (_, other) => panic!("operation {at} became {other:?}"),
            }
        })
        .await;
    assert_eq!(done, shown);
    assert!(done <= asked.len());
}

#[test]
fn every_pool_answers_as_a_map_does() {
    for url in every_url() {
        let pool = open(&url);
        let (model, clients) = pool.run(async {
            let store = crowded(&pool).await;
            let mut clients = BOTH.map(|index| store.client(index));
            let (mut model, mut draws) = (BTreeMap::new(), SplitMix64::seed_from_u64(5));
            for at in 0..600 {
                step(&mut clients[at % 2], &mut model, &mut draws).await;
            }
            for (key, (value, tag)) in &model {
                for client in &mut clients {
                    let read = client.read(key).await.unwrap().expect("it is there");
                    assert_eq!((&read.bytes, read.tag), (value, *tag), "{url}");
                }
            }
            let keys = clients[0].statistics().await.unwrap().keys;
            assert_eq!(keys, model.len() as u64, "{url}");
            (model, clients)
        });
        for mut client in clients {
            fills_a_buffer(&mut client, &model, &url);
        }
    }
}

/// Each value goes to a buffer of its length and to a longer one, and to none that is shorter.
fn fills_a_buffer(client: &mut Client, model: &BTreeMap<Vec<u8>, (Vec<u8>, u64)>, url: &str) {
    assert_eq!(client.read_into(b"no key", &mut []), Ok(None), "{url}");
    for (key, (value, _)) in model {
        let length = value.len();
        for room in [length, length + 1, length + 100] {
            let mut buffer = vec![0xee; room];
            assert_eq!(client.read_into(key, &mut buffer), Ok(Some(length)), "{url}");
            let (filled, rest) = buffer.split_at(length);
            assert!(filled == value && rest.iter().all(|byte| *byte == 0xee), "{url}, {length} B");
        }
        if let Some(buffer) = length.checked_sub(1) {
            let short = client.read_into(key, &mut vec![0; buffer]);
            assert_eq!(short, Err(Error::BufferTooShort { value: length, buffer }), "{url}");
        }
    }
}

/// Duration of a read of a short value on an idle fabric: by a walk, by the node, and of an empty
/// call to a memory node.
fn reads_alone(url: &str) -> [Ps; 3] {
    let pool = open(url);
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.unwrap();
        let mut took = [Ps(0); 3];
        for (index, took) in BOTH.into_iter().zip(&mut took) {
            let mut client = store.client_on(0, index).unwrap();
            client.put(b"key", &[7; 8]).await.unwrap();
            // The first read of a walking client also reads where the table is.
            client.read(b"key").await.unwrap();
            let before = pool.now();
            client.read(b"key").await.unwrap();
            *took = pool.now() - before;
        }
        let thread = pool.thread_on(0).unwrap();
        let before = pool.now();
        thread.alloc_on(0, 8, Permissions::READ_WRITE).await.unwrap();
        took[2] = pool.now() - before;
        took
    })
}

#[test]
fn a_read_by_the_node_is_one_round_trip() {
    for url in ["sim:edm?nodes=4", "sim:roce?nodes=4", "sim:cxl?nodes=4"] {
        let [_, node, call] = reads_alone(url);
        // The read adds the bucket and the record, 82 ns each, and a slightly longer request.
        let most = call + Ps::from_ns(2 * 82 + 20);
        assert!(node <= most, "{node} at the node, {call} for a call on {url}");
    }
    let [walked, node, _] = reads_alone("sim:roce?nodes=4");
    assert!(node < walked, "{node} at the node, {walked} walked");
}

#[test]
fn what_is_too_long_is_refused_by_its_length() {
    let pool = open("local:");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.unwrap();
        for index in BOTH {
            let mut client = store.client(index);
            let (key, value) = (vec![1; KEY_BYTES_MAX], vec![2; VALUE_BYTES_MAX]);
            client.put(&key, &value).await.unwrap();
            assert!(client.read(&key).await.unwrap().expect("it is there").bytes == value);
            let error = client.put(&[0; KEY_BYTES_MAX + 1], b"").await.unwrap_err();
            assert_eq!(error.to_string(), "a key of 8193 B: must be 0 to 8192");
            let error = client.put(b"", &vec![0; VALUE_BYTES_MAX + 1]).await.unwrap_err();
            assert!(matches!(error, Error::ValueTooLong { .. }), "{error}");
            assert!(!error.is_retryable());
            assert!(client.delete(&key).await.unwrap());
        }
    });
}

#[test]
fn a_store_that_cannot_be_is_refused() {
    let pool = open("sim:edm?nodes=4");
    let create = |config| pool.run(Store::create(&pool, config)).map(|_| ()).unwrap_err();
    let error = create(Config { memory_nodes: Some(3), ..Config::default() });
    assert_eq!(error.to_string(), "3 memory nodes: must be 1 to 2");
    for buckets in [0, 1, 3, 1 << 31] {
        let error = create(Config { buckets, ..Config::default() });
        let expected = format!("{buckets} buckets: must be a power of two, 2 to 2^30");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_full_pool_says_so_and_serves_what_it_has() {
    let pool = open("local:?memory_bytes=2000000");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.unwrap();
        for index in BOTH {
            let mut client = store.client(index);
            let mut stored = 0_u64;
            let error = loop {
                match client.put(&stored.to_le_bytes(), &[1; 5000]).await {
                    Ok(()) => stored += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Pool(ethermem::Error::Full { .. })), "{error}");
            assert!(error.is_retryable() && stored > 280, "{stored}");
            for key in 0..stored {
                let read = client.read(&key.to_le_bytes()).await.unwrap().expect("stored");
                assert_eq!(read.bytes, [1; 5000]);
                assert!(client.delete(&key.to_le_bytes()).await.unwrap());
            }
        }
    });
}

#[test]
fn a_condition_is_about_what_is_there() {
    let pool = open("local:");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.unwrap();
        for index in [Index::Client, Index::Node] {
            let mut client = store.client(index);
            let refused = client.write(b"k", b"v", 0, When::Present).await.unwrap();
            assert_eq!(refused, Written::Refused(None));
            let Written::Done(first) = client.write(b"k", b"v", 1, When::Absent).await.unwrap()
            else {
                panic!("nothing was there")
            };
            let refused = client.write(b"k", b"w", 0, When::Absent).await.unwrap();
            assert_eq!(refused, Written::Refused(Some(first)));
            let second = client.write(b"k", b"w", 2, When::Is(first)).await.unwrap();
            let Written::Done(second) = second else { panic!("{second:?}") };
            let refused = client.delete_when(b"k", When::Is(first)).await.unwrap();
            assert_eq!(refused, Written::Refused(Some(second)));
            assert!(client.delete_when(b"k", When::Is(second)).await.unwrap().is_done());
        }
    });
}

/// Futures are `Send`, for multi-threaded executors and other languages.
#[test]
fn operations_may_be_sent_to_another_thread() {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    let pool = ethermem::Pool::open("local:").unwrap();
    let store = pool.run(sent(Store::create(&pool, Config::default()))).unwrap();
    for index in BOTH {
        let (pool, mut client) = (pool.clone(), store.client(index));
        let thread = std::thread::spawn(move || {
            pool.run(sent(client.put(b"key", b"value"))).unwrap();
            pool.run(sent(client.update(b"key", b"other"))).unwrap();
            let read = pool.run(sent(client.read(b"key"))).unwrap();
            pool.run(sent(client.delete(b"key"))).unwrap();
            pool.run(sent(client.clear())).unwrap();
            read.unwrap().bytes
        });
        assert_eq!(thread.join().unwrap(), b"other");
    }
}
