//! Memory of replaced values, and counters that many threads change.

use ethermem_kv::{Config, Index, Statistics, Store, When};

use crate::{BOTH, crowded, every_url, open};

#[test]
fn overwriting_and_deleting_takes_no_memory_in_the_end() {
    for index in BOTH {
        // The pool has room for at most a thousand values, and ten times a million bytes are
        // written.
        let pool = open("local:?memory_bytes=1500000");
        pool.run(async {
            let store = Store::create(&pool, Config::default()).await.unwrap();
            let mut client = store.client(index);
            for round in 0..200_u64 {
                for key in 0..50_u64 {
                    let bytes = vec![round as u8; 1000 + key as usize];
                    client.put(&key.to_le_bytes(), &bytes).await.unwrap();
                    if round % 3 == 0 {
                        assert!(client.delete(&key.to_le_bytes()).await.unwrap());
                    }
                }
            }
            let statistics = client.statistics().await.unwrap();
            assert!(statistics.used_bytes <= statistics.heap_bytes, "{statistics:?}");
            assert!(statistics.heap_bytes < 800_000, "{statistics:?}");
        });
    }
}

/// When a region is used up, all clients learn of it at once. Before, each of them added one, as
/// long as all regions together: 50 clients with 1 MiB of values took 500 MiB, and met `Full`.
#[test]
fn clients_that_need_memory_at_once_share_what_one_of_them_adds() {
    for url in every_url() {
        for index in BOTH {
            let pool = open(&url);
            let (clients, keys) = if url.starts_with("sim:") { (16, 40) } else { (50, 200) };
            let config = Config { memory_nodes: Some(1), ..Config::default() };
            let store = pool.run(Store::create(&pool, config)).unwrap();
            let tasks = pool.tasks();
            for number in 0..clients {
                let mut client = store.client(index);
                tasks.spawn(async move {
                    for key in 0..keys {
                        let key = u64::to_le_bytes(number << 32 | key);
                        assert!(client.create(&key, &[7; 900]).await.unwrap());
                    }
                });
            }
            tasks.run();
            let mut client = store.client(index);
            let Statistics { heap_bytes, used_bytes, .. } = pool.run(client.statistics()).unwrap();
            // A region doubles the memory, and clients hold blocks that are free.
            let most = 2 * used_bytes + (256 << 10);
            assert!(heap_bytes <= most, "{url} {index:?}: {heap_bytes} B for {used_bytes}");
        }
    }
}

/// A table that cannot grow, a copy of a chain without room, a record without a block: for some
/// size of the pool, memory ends at each of them.
#[test]
fn where_memory_ends_an_error_says_that_nothing_was_done() {
    for index in BOTH {
        for memory_bytes in (100_000..600_000).step_by(25_000) {
            let pool = open(&format!("local:?memory_bytes={memory_bytes}"));
            pool.run(async {
                let store = crowded(&pool).await;
                let mut client = store.client(index);
                let mut errors = 0;
                for key in 0..20_000_u64 {
                    let created = client.create(&key.to_le_bytes(), &key.to_be_bytes()).await;
                    let read = client.read(&key.to_le_bytes()).await.unwrap();
                    let is_there = read.is_some();
                    assert_eq!(created.is_ok(), is_there, "{key}: {created:?}, {memory_bytes} B");
                    errors += u32::from(!is_there);
                    if errors == 20 {
                        break;
                    }
                }
                assert!(errors > 0, "{memory_bytes} B were never full");
            });
        }
    }
}

/// Without memory there are no new blocks for copies of the records before a deleted one.
#[test]
fn every_key_of_a_full_store_can_be_deleted() {
    for (index, from_the_end) in [(0, false), (0, true), (1, false), (1, true)] {
        let index = BOTH[index];
        let pool = open("local:?memory_bytes=300000");
        pool.run(async {
            let store = crowded(&pool).await;
            let mut keys = Vec::new();
            // Each client holds blocks that others cannot have, so the last one has none.
            for first in [0, 1000, 2000] {
                let mut client = store.client(Index::Node);
                for key in first.. {
                    if client.create(&u64::to_le_bytes(key), &[7; 300]).await.is_err() {
                        break;
                    }
                    keys.push(key);
                }
            }
            assert!(keys.len() > 300, "{} keys", keys.len());
            if from_the_end {
                keys.reverse();
            }
            let mut client = store.client(index);
            for (at, key) in keys.iter().enumerate() {
                assert!(client.delete(&key.to_le_bytes()).await.unwrap(), "{at}: {key}");
                assert_eq!(client.read(&key.to_le_bytes()).await.unwrap(), None, "{at}: {key}");
                if let Some(next) = keys.get(at + 1) {
                    let value = client.read(&next.to_le_bytes()).await.unwrap();
                    assert_eq!(value.expect("not deleted yet").bytes, [7; 300], "{at}: {next}");
                }
            }
            assert_eq!(client.statistics().await.unwrap().keys, 0);
        });
    }
}

#[test]
fn a_client_holds_blocks_for_some_writes_and_no_more() {
    const BLOCK: u64 = 960;
    // Number of blocks in a batch of 16 KiB.
    const BATCH: u64 = 17;
    let pool = open("local:");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.unwrap();
        let mut client = store.client(Index::Client);
        client.put(&0_u64.to_le_bytes(), &[1; 900]).await.unwrap();
        assert_eq!(client.statistics().await.unwrap().used_bytes, BATCH * BLOCK);
        for key in 1..200_u64 {
            client.put(&key.to_le_bytes(), &[1; 900]).await.unwrap();
        }
        for key in 0..200_u64 {
            assert!(client.delete(&key.to_le_bytes()).await.unwrap());
            let used = client.statistics().await.unwrap().used_bytes;
            let held = used / BLOCK - (199 - key);
            assert!(held <= 2 * BATCH, "{held} after {key}");
            assert!(held > BATCH || key < 2 * BATCH, "{held} after {key}");
        }
    });
}

#[test]
fn no_change_is_lost_between_threads_of_the_machine() {
    const THREADS: u64 = 4;
    const EACH: u64 = 2000;
    let pool = open("local:");
    let store = pool.run(Store::create(&pool, Config::default())).unwrap();
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (mut client, pool) = (store.client(BOTH[number as usize % 2]), &pool);
            scope.spawn(move || {
                for at in 0..EACH {
                    pool.run(async {
                        add_one(&mut client).await;
                        let key = [number, at].map(u64::to_le_bytes).concat();
                        client.put(&key, &key).await.unwrap();
                    });
                }
            });
        }
    });
    pool.run(async {
        let mut client = store.client(Index::Client);
        let count = client.read(b"counter").await.unwrap().expect("it was made").bytes;
        assert_eq!(count, (THREADS * EACH).to_le_bytes());
        assert_eq!(client.statistics().await.unwrap().keys, THREADS * EACH + 1);
    });
}

/// Reads a counter, and writes it if it has not changed since.
async fn add_one(client: &mut ethermem_kv::Client) {
    loop {
        let read = client.read(b"counter").await.unwrap();
        let count = read.as_ref().map_or(0, |value| {
            u64::from_le_bytes(value.bytes[..].try_into().expect("a word was written"))
        });
        let when = read.map_or(When::Absent, |value| When::Is(value.version));
        let new = (count + 1).to_le_bytes();
        if client.write(b"counter", &new, 0, when).await.unwrap().is_done() {
            return;
        }
    }
}
