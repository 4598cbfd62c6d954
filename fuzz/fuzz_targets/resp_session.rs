//! Whatever a client sends, in whatever parts, is answered or refused by whole replies; the next
//! client finds a store that works. Behind a password, whoever does not name it changes nothing.

#![no_main]

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_resp::{Password, Session};
use libfuzzer_sys::fuzz_target;
use redis_protocol::{resp2, resp3};

const PASSWORD: &[u8] = b"secret";

fuzz_target!(|input: &[u8]| {
    let Some((&first, bytes)) = input.split_first() else { return };
    let index = if first & 1 == 0 { Index::Client } else { Index::Node };
    let has_password = first & 2 != 0;
    let part = usize::from(first >> 2) + 1;
    let pool = Pool::open("local:?memory_bytes=8000000").expect("a pool that there is");
    let store = pool.run(Store::create(&pool, Config::default())).expect("there is memory");
    let password = Password::new(PASSWORD).expect("it is short");
    let mut session = match has_password {
        true => Session::behind(password, &store, index, 1),
        false => Session::new(&store, index, 1),
    };
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
    if has_password && !bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD) {
        let mut looker = Session::new(&store, index, 3);
        pool.run(looker.receive(b"DBSIZE\r\n"));
        assert_eq!(looker.replies(), b":0\r\n", "a stranger has written");
    }
    let mut other = Session::new(&store, index, 2);
    pool.run(other.receive(b"SET key value\r\nGET key\r\n"));
    let written = other.replies();
    assert!(written == b"+OK\r\n$5\r\nvalue\r\n" || written.starts_with(b"-OOM"), "{written:?}");
});
