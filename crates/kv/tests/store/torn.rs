//! Long values that are written while they are read.

use std::cell::Cell;
use std::rc::Rc;

use crate::{BOTH, crowded, open, udp_url};

/// Lengths of several messages on every fabric.
const LENGTHS: [usize; 3] = [3000, 150_000, 1_500_000];

#[test]
fn a_value_is_read_whole_while_it_is_replaced() {
    for url in ["sim:edm?nodes=6&memory_nodes=1", "sim:roce?nodes=6&memory_nodes=1"] {
        let pool = open(url);
        let store = pool.run(crowded(&pool));
        let (tasks, reads, retries) = (pool.tasks(), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        for (number, index) in BOTH.into_iter().enumerate() {
            let mut writer = store.client(index);
            tasks.spawn(async move {
                for round in 0..30_u8 {
                    let length = LENGTHS[usize::from(round) % LENGTHS.len()];
                    let byte = round * 2 + number as u8;
                    writer.put(b"value", &vec![byte; length]).await.unwrap();
                }
            });
            let (mut reader, reads, retries) =
                (store.client(index), reads.clone(), retries.clone());
            tasks.spawn(async move {
                for _ in 0..60 {
                    let Some(read) = reader.read(b"value").await.unwrap() else { continue };
                    assert!(LENGTHS.contains(&read.bytes.len()), "{} B", read.bytes.len());
                    assert!(read.bytes.iter().all(|byte| *byte == read.bytes[0]), "torn");
                    reads.set(reads.get() + 1);
                }
                retries.set(retries.get() + reader.retries());
            });
        }
        tasks.run();
        assert!(reads.get() > 50, "{} reads", reads.get());
        // Otherwise no read met a value that could have been torn.
        assert!(retries.get() > 0, "no read met a replaced value on {url}");
    }
}

/// The value goes to its place before it is known to be whole.
#[test]
fn a_buffer_is_filled_whole_while_the_value_is_replaced() {
    for index in BOTH {
        let pool = open(udp_url());
        let store = pool.run(crowded(&pool));
        let (mut writer, mut reader) = (store.client(index), store.client(index));
        let mut reads = 0;
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                for round in 0..300_usize {
                    let value = vec![round as u8; LENGTHS[round % LENGTHS.len()]];
                    pool.run(writer.put(b"value", &value)).unwrap();
                }
            });
            let mut buffer = vec![0; LENGTHS[2]];
            while !writing.is_finished() {
                let Some(bytes) = reader.read_into(b"value", &mut buffer).unwrap() else {
                    continue;
                };
                assert!(LENGTHS.contains(&bytes), "{bytes} B");
                assert!(buffer[..bytes].iter().all(|byte| *byte == buffer[0]), "torn");
                reads += 1;
            }
        });
        assert!(reads > 10, "{reads} reads");
        assert!(reader.retries() > 0, "no read met a replaced value, {index:?}");
    }
}
