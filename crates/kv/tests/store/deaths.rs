//! Clients that end within an operation, at every step of it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use ethermem::Pool;
use ethermem_kv::{Client, Index, Store};

use crate::{BOTH, crowded, open};

/// Polls a future a limited number of times, and returns its result if it completed.
struct Steps<'f, F> {
    future: Pin<&'f mut F>,
    left: usize,
}

impl<F: Future> Future for Steps<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(done) = self.future.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Pending
    }
}

/// Polls an operation `left` times. Returns false if it has not completed.
async fn steps(future: impl Future, left: usize) -> bool {
    Steps { future: pin!(future), left }.await.is_some()
}

#[derive(Clone, Copy, Debug)]
enum Death {
    /// The client is dropped and the program goes on.
    Dropped,
    /// The client stops at once, as when its process is killed.
    Killed,
    /// The operation is dropped, and the client goes on.
    GivenUp,
}

fn value(byte: u8, length: usize) -> Vec<u8> {
    vec![byte; length]
}

/// One operation that ends after `left` steps, in a chain of several keys. The next client finds
/// the value before or after it, and writes its own. Returns false if the operation had more steps.
async fn die(
    store: &Store,
    index: Index,
    death: Death,
    what: u64,
    left: usize,
    length: usize,
) -> bool {
    let (key, neighbours) = (b"the key", [&b"a"[..], b"b", b"c", b"d"]);
    let mut client = store.client(index);
    for key in neighbours {
        client.put(key, b"a neighbour").await.unwrap();
    }
    let old = value(1, length);
    client.put(key, &old).await.unwrap();
    let done = match what {
        0 => steps(client.put(key, &value(2, length)), left).await,
        1 => steps(client.delete(key), left).await,
        _ => steps(client.read(key), left).await,
    };
    match death {
        Death::Dropped => drop(client),
        Death::Killed => std::mem::forget(client),
        Death::GivenUp => assert_whole(&mut client, key, &old, what).await,
    }
    let mut other = store.client(if left.is_multiple_of(2) { Index::Client } else { Index::Node });
    assert_whole(&mut other, key, &old, what).await;
    for key in neighbours {
        let read = other.read(key).await.unwrap().expect("a neighbour stays");
        assert_eq!(read.bytes, b"a neighbour");
    }
    other.put(key, &value(3, length)).await.unwrap();
    assert_eq!(other.read(key).await.unwrap().unwrap().bytes, value(3, length));
    assert!(other.delete(key).await.unwrap());
    assert!(other.read(key).await.unwrap().is_none());
    done
}

async fn assert_whole(client: &mut Client, key: &[u8], old: &[u8], what: u64) {
    let read = client.read(key).await.unwrap().map(|read| read.bytes);
    let new = if what == 0 { Some(value(2, old.len())) } else { None };
    let allowed = [Some(old.to_vec()), if what < 2 { new } else { Some(old.to_vec()) }];
    assert!(allowed.contains(&read), "{:?}", read.map(|read| read.len()));
}

/// Tries every step of every operation in one store, and returns the number of deaths.
fn die_everywhere(pool: &Pool, death: Death, lengths: &[usize]) -> usize {
    pool.run(async {
        let store = crowded(pool).await;
        let mut deaths = 0;
        for &length in lengths {
            for index in BOTH {
                for what in 0..3 {
                    for left in 0.. {
                        if die(&store, index, death, what, left, length).await {
                            break;
                        }
                        deaths += 1;
                    }
                }
            }
        }
        deaths
    })
}

#[test]
fn whoever_dies_anywhere_leaves_whole_values_and_blocks_nobody() {
    for url in ["sim:edm?nodes=6&memory_nodes=1", "sim:roce?nodes=6&memory_nodes=2"] {
        for death in [Death::Dropped, Death::Killed, Death::GivenUp] {
            let deaths = die_everywhere(&open(url), death, &[64, 1000, 40_000]);
            assert!(deaths > 30, "{deaths} steps, {death:?} on {url}");
        }
    }
}

#[test]
fn who_is_dropped_leaves_no_memory_behind() {
    let pool = open("sim:edm?nodes=4&memory_nodes=1");
    pool.run(async {
        let store = crowded(&pool).await;
        let mut after_some = 0;
        for round in 0..400 {
            let (index, what) = (BOTH[round % 2], (round / 2 % 2) as u64);
            die(&store, index, Death::Dropped, what, round / 4 % 12, 20_000).await;
            let mut client = store.client(Index::Node);
            let used = client.statistics().await.unwrap().used_bytes;
            if round == 50 {
                after_some = used;
            }
            // A leak in one of ten deaths would be 35 blocks.
            assert!(round < 50 || used <= after_some + 5 * 20_000, "{used} B, round {round}");
        }
    });
}
