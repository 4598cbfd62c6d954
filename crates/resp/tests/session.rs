//! Replies of sessions, checked by an independent decoder.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_resp::{Options, Server, Session};
use proptest::prelude::*;
use redis_protocol::{resp2, resp3};

/// All replies to a client that sends these parts.
fn answered(url: &str, index: Index, parts: &[&[u8]]) -> Vec<u8> {
    let pool = Pool::open(url).expect("a pool that there is");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.expect("there is memory");
        let mut session = Session::new(&store, index, 7);
        for part in parts {
            session.receive(part).await;
        }
        session.replies().to_vec()
    })
}

fn text(replies: &[u8]) -> String {
    String::from_utf8_lossy(replies).into_owned()
}

fn local(requests: &str) -> String {
    text(&answered("local:", Index::Client, &[requests.as_bytes()]))
}

#[test]
fn every_pool_and_index_answers_alike() {
    let requests = b"SET k v EX 100\r\nGET k\r\nTTL k\r\nAPPEND k w\r\nINCR n\r\n\
        MGET k n none\r\nDEL k\r\nEXISTS k n\r\nSCAN 0 COUNT 100000\r\nDBSIZE\r\nNONSENSE\r\n";
    let expected = "+OK\r\n$1\r\nv\r\n:100\r\n:2\r\n:1\r\n*3\r\n$2\r\nvw\r\n$1\r\n1\r\n$-1\r\n\
        :1\r\n:1\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nn\r\n:1\r\n\
        -ERR unknown command 'NONSENSE', with args beginning with: \r\n";
    for url in ["local:", "sim:edm?nodes=2", "sim:roce?nodes=2"] {
        for index in [Index::Client, Index::Node] {
            assert_eq!(text(&answered(url, index, &[requests])), expected, "{url} {index:?}");
        }
    }
}

#[test]
fn a_client_may_ask_for_resp3() {
    let replies = answered("local:", Index::Node, &[b"HELLO 3\r\nGET k\r\nHELLO 2\r\nGET k\r\n"]);
    assert!(text(&replies).starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"));
    let (_, hello) = resp3::decode::complete::decode(&replies).unwrap().unwrap();
    assert!(replies[hello..].starts_with(b"_\r\n*14\r\n"));
    assert!(replies.ends_with(b"$-1\r\n"));
    assert_eq!(local("HELLO 4\r\n"), "-NOPROTO unsupported protocol version\r\n");
}

#[test]
fn what_a_client_wrote_ends_no_line_of_an_error() {
    let replies = local("*2\r\n$4\r\na\r\nb\r\n$1\r\n\n\r\n");
    assert_eq!(replies, "-ERR unknown command 'a  b', with args beginning with: ' ' \r\n");
}

#[test]
fn nothing_behind_nonsense_is_understood() {
    let replies = local("PING\r\n*1\r\n:1\r\nPING\r\n");
    assert_eq!(replies, "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
    assert_eq!(local("QUIT\r\nPING\r\n"), "+OK\r\n");
}

#[test]
fn a_full_pool_says_so_as_redis_does() {
    let value = "x".repeat(50_000);
    let requests: String = (0..40).map(|key| format!("SET {key} {value}\r\n")).collect();
    let url = "local:?memory_bytes=1000000";
    let replies = answered(url, Index::Client, &[requests.as_bytes(), b"GET 0\r\n"]);
    let replies = text(&replies);
    assert!(replies.contains("-OOM command not allowed when used memory > 'maxmemory'.\r\n"));
    assert!(replies.ends_with(&format!("$50000\r\n{value}\r\n")));
}

/// Words that are often commands.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "GET",
        "SET",
        "DEL",
        "MGET",
        "MSET",
        "INCR",
        "DECRBY",
        "APPEND",
        "STRLEN",
        "TTL",
        "EXPIRE",
        "PERSIST",
        "SCAN",
        "INFO",
        "HELLO",
        "2",
        "3",
        "COMMAND",
        "DOCS",
        "CONFIG",
        "CLIENT",
        "SETINFO",
        "EX",
        "NX",
        "XX",
        "KEEPTTL",
        "COUNT",
        "MATCH",
        "*",
        "k",
        "1",
        "-1",
        "9223372036854775807",
        "KEYS",
        "TYPE",
        "GETDEL",
        "SETEX",
        "FLUSHALL",
        "RESET",
    ];
    prop_oneof![
        9 => proptest::sample::select(known.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    /// Each request has one complete reply, in the protocol version in force at that point.
    #[test]
    fn every_request_has_one_reply(
        requests in proptest::collection::vec(proptest::collection::vec(word(), 1..6), 1..20),
        node: bool,
    ) {
        let mut bytes = Vec::new();
        for words in &requests {
            bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        let index = if node { Index::Node } else { Index::Client };
        let replies = answered("local:", index, &[&bytes]);
        let (mut rest, mut count) = (&replies[..], 0);
        while !rest.is_empty() {
            let third = resp3::decode::complete::decode(rest).ok().flatten().map(|reply| reply.1);
            let second = resp2::decode::decode(rest).ok().flatten().map(|reply| reply.1);
            let length = third.or(second);
            prop_assert!(length.is_some(), "{:?}", text(rest));
            rest = &rest[length.unwrap_or(rest.len())..];
            count += 1;
        }
        prop_assert_eq!(count, requests.len());
    }

    #[test]
    fn any_bytes_are_answered_alike_in_any_parts(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        part in 1..20_usize,
    ) {
        let parts: Vec<&[u8]> = bytes.chunks(part).collect();
        let whole = answered("local:", Index::Client, &[&bytes]);
        prop_assert_eq!(answered("local:", Index::Client, &parts), whole);
    }
}

/// A page in a browser can send a body of its choice to any address. Its request line or a header
/// ends the connection, before the body is executed.
#[test]
fn a_client_that_speaks_http_is_cut_off_before_its_body() {
    let pool = Pool::open("local:").expect("a pool that there is");
    let options = Options {
        listen: ([127, 0, 0, 1], 0).into(),
        index: Index::Client,
        clients_max: 10,
        password: None,
        tls: None,
    };
    let mut server = Server::bind(&pool, options).expect("a free port");
    let (address, stop) = (server.address(), AtomicBool::new(false));
    // The replies up to the end of the connection.
    let ask = |requests: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        stream.write_all(requests.as_bytes()).expect("it is open");
        let mut replies = Vec::new();
        // A connection closed with unread requests may be reset.
        let _ = stream.read_to_end(&mut replies);
        text(&replies)
    };
    // The server serves this thread; the clients end it, also when they fail.
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let _ends = Ends(&stop);
            for http in [
                "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET k v\r\nQUIT\r\n",
                "host: localhost\r\nSET k v\r\nQUIT\r\n",
                "*1\r\n$4\r\npost\r\nSET k v\r\nQUIT\r\n",
                "GET a\r\nGET b\r\nPOST\r\nSET k v\r\nQUIT\r\n",
            ] {
                let replies = ask(http);
                assert!(["", "$-1\r\n$-1\r\n"].contains(&replies.as_str()), "{http}: {replies}");
            }
            assert_eq!(ask("EXISTS k\r\nQUIT\r\n"), ":0\r\n+OK\r\n");
            assert!(ask("INFO stats\r\nQUIT\r\n").contains("\r\nprotocol_errors:4\r\n"));
        });
        server.run(&stop).expect("it serves");
        clients.join().expect("the clients are answered");
    });
}

/// Sets a flag when it is dropped.
struct Ends<'f>(&'f AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
