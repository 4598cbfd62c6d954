//! Tables that grow under their clients.

use std::collections::BTreeSet;

use ethermem_kv::Index;

use crate::{BOTH, crowded, open};

const KEYS: u64 = 20_000;

#[test]
fn a_table_grows_with_its_keys_and_loses_none() {
    for index in BOTH {
        let pool = open("local:");
        pool.run(async {
            let store = crowded(&pool).await;
            let (mut client, mut other) = (store.client(index), store.client(Index::Client));
            for key in 0..KEYS {
                assert!(client.create(&key.to_le_bytes(), &key.to_be_bytes()).await.unwrap());
                // This client knows only the first table.
                let old = key / 2;
                let read = other.read(&old.to_le_bytes()).await.unwrap().expect("it is there");
                assert_eq!(read.bytes, old.to_be_bytes());
            }
            assert_eq!(client.statistics().await.unwrap().keys, KEYS);
        });
    }
}

#[test]
fn few_records_are_read_for_a_key() {
    let pool = open("sim:edm?nodes=4");
    pool.run(async {
        // Calls are two writes, each of which is announced and granted first.
        for (index, most) in [(Index::Client, 3.0), (Index::Node, 4.0)] {
            let store = crowded(&pool).await;
            let mut client = store.client_on(0, index).unwrap();
            for key in 0..3000_u64 {
                client.put(&key.to_le_bytes(), &[1; 16]).await.unwrap();
            }
            let thread = client.thread().clone();
            let region = thread.alloc_on(0, 8, ethermem::Permissions::READ_WRITE).await.unwrap();
            let before = pool.now();
            region.read(0, 8).await.unwrap();
            let round_trip = (pool.now() - before).as_ns_f64();
            let before = pool.now();
            for key in 0..3000_u64 {
                assert!(client.read(&key.to_le_bytes()).await.unwrap().is_some());
            }
            let each = (pool.now() - before).as_ns_f64() / 3000.0 / round_trip;
            assert!(each < most, "{each} reads of a word for each, {index:?}");
        }
    });
}

#[test]
fn a_scan_meets_what_stays_while_the_table_grows() {
    for url in ["local:", "sim:edm?nodes=6&memory_nodes=3"] {
        let pool = open(url);
        pool.run(async {
            let store = crowded(&pool).await;
            let mut client = store.client(Index::Node);
            let key = |at: u64| format!("key {at}").into_bytes();
            for at in 0..500 {
                client.write(&key(at), b"v", at, ethermem_kv::When::Always).await.unwrap();
            }
            let (mut met, mut cursor, mut more) = (BTreeSet::new(), 0, 500);
            loop {
                let scanned = client.scan(cursor, 3).await.unwrap();
                for met_key in scanned.keys {
                    assert_eq!(met_key.bytes, key(met_key.tag));
                    met.insert(met_key.tag);
                }
                cursor = scanned.cursor;
                if cursor == 0 {
                    break;
                }
                for at in more..more + 5 {
                    client.write(&key(at), b"v", at, ethermem_kv::When::Always).await.unwrap();
                }
                more += 5;
            }
            let missed: Vec<u64> = (0..500).filter(|at| !met.contains(at)).collect();
            assert!(missed.is_empty(), "{missed:?} on {url}");
            client.clear().await.unwrap();
            assert_eq!(client.statistics().await.unwrap().keys, 0);
            assert!(client.read(&key(1)).await.unwrap().is_none());
            assert!(client.create(&key(1), b"anew").await.unwrap());
        });
    }
}
