//! Whatever a client sends, in whatever parts, is answered or refused by whole replies; the next
//! client finds a store that works.

#![no_main]

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_resp::Session;
use libfuzzer_sys::fuzz_target;
use redis_protocol::{resp2, resp3};

fuzz_target!(|input: &[u8]| {
    let Some((&first, bytes)) = input.split_first() else { return };
    let index = if first & 1 == 0 { Index::Client } else { Index::Node };
    let part = usize::from(first >> 1) + 1;
    let pool = Pool::open("local:?memory_bytes=8000000").expect("a pool that there is");
    let store = pool.run(Store::create(&pool, Config::default())).expect("there is memory");
    let mut session = Session::new(&store, index, 1);
    for bytes in bytes.chunks(part) {
        pool.run(session.receive(bytes));
    }
    let mut replies = session.replies();
    while !replies.is_empty() {
        // In the protocol that the client speaks by then.
        let third = resp3::decode::complete::decode(replies).ok().flatten().map(|reply| reply.1);
        let second = resp2::decode::decode(replies).ok().flatten().map(|reply| reply.1);
        let length = third.or(second).expect("replies are whole, and RESP");
        replies = &replies[length..];
    }
    let mut other = Session::new(&store, index, 2);
    pool.run(other.receive(b"SET key value\r\nGET key\r\n"));
    let written = other.replies();
    assert!(written == b"+OK\r\n$5\r\nvalue\r\n" || written.starts_with(b"-OOM"), "{written:?}");
});
