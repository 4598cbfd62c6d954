//! Sessions: a client's requests, executed in order, and the replies; without a socket.

use ethermem_kv::{Client, Index, Store};

use crate::access::{Gate, Password};
use crate::clock::unix_ms;
use crate::command::{Context, Peer, RUN_MAX, is_plain};
use crate::info::{State, add};
use crate::reply::Replies;
use crate::request::{Requests, Words};

/// Number of requests of one client that are executed before other clients' turn.
const BATCH: usize = 1024;
/// Pending replies in bytes above which nothing more is executed for a slow reader.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// One client's side of a store, over bytes that its owner moves.
pub struct Session {
    alone: State,
    talk: Talk,
}

impl Session {
    /// A session with a store, on a server of its own.
    #[must_use]
    pub fn new(store: &Store, index: Index, id: u64) -> Session {
        let alone = State::new(store.pool().clone(), index, 0);
        Session { alone, talk: Talk::new(store.client(index), id) }
    }

    /// As [`Session::new`], on a server with a password.
    #[must_use]
    pub fn behind(password: Password, store: &Store, index: Index, id: u64) -> Session {
        let mut session = Session::new(store, index, id);
        session.alone.gate = Gate::new(Some(password));
        session
    }

    /// Receives bytes, and executes complete requests.
    pub async fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.talk.is_over {
            let room = self.talk.requests.room();
            let (now, rest) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.talk.requests.fill(now.len());
            bytes = rest;
            loop {
                self.talk.serve(&self.alone, unix_ms()).await;
                if !self.talk.may_execute || self.talk.is_blocked() || self.talk.is_over {
                    break;
                }
            }
        }
    }

    /// The replies so far.
    #[must_use]
    pub fn replies(&self) -> &[u8] {
        self.talk.replies.unsent()
    }
}

/// The state between a client's bytes and the store.
pub(crate) struct Talk {
    pub(crate) requests: Requests,
    pub(crate) replies: Replies,
    pub(crate) peer: Peer,
    pub(crate) client: Client,
    /// True if nothing more is parsed or executed.
    pub(crate) is_over: bool,
    /// True if requests may be here that have had no turn.
    pub(crate) may_execute: bool,
}

impl Talk {
    pub(crate) fn new(client: Client, id: u64) -> Talk {
        Talk {
            requests: Requests::default(),
            replies: Replies::default(),
            peer: Peer::new(id),
            client,
            is_over: false,
            may_execute: false,
        }
    }

    /// Executes pending requests, at most a client's share. A client whose request waited for a
    /// memory node in vain has had its turn, because the other clients wait for it.
    pub(crate) async fn serve(&mut self, state: &State, now_ms: u64) {
        let Talk { requests, replies, peer, client, is_over, may_execute } = self;
        *may_execute = true;
        requests.is_of_stranger = peer.is_stranger(state);
        let mut left = BATCH;
        while left > 0 {
            if *is_over || peer.quits || replies.unsent().len() >= UNSENT_BYTES_MAX {
                break;
            }
            let mut context = Context { state, client, peer, replies, now_ms };
            let run: Vec<Words<'_>> = requests.gathered().collect();
            if !run.is_empty() {
                let (done, flow) = context.execute_first(&run).await;
                requests.executed(done);
                if flow.is_break() {
                    break;
                }
                continue;
            }
            match requests.next() {
                Ok(None) => {
                    *may_execute = false;
                    break;
                }
                Ok(Some(words))
                    if state.goes_together
                        && !context.peer.is_stranger(state)
                        && is_plain(words) =>
                {
                    left -= requests.gather(RUN_MAX.min(left), is_plain);
                }
                Ok(Some(words)) => {
                    left -= 1;
                    let executed = context.execute(words).await;
                    requests.is_of_stranger = peer.is_stranger(state);
                    if executed.is_break() {
                        break;
                    }
                }
                Err(error) => {
                    replies.error(&format!("ERR Protocol error: {error}"));
                    add(&state.cut_off, 1);
                    *is_over = true;
                }
            }
        }
        self.is_over |= self.peer.quits;
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.replies.unsent().len() >= UNSENT_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use ethermem::Pool;
    use ethermem_kv::{Config, KEY_BYTES_MAX};
    use ethermem_node::NodeOptions;
    use ethermem_units::Bytes;
    use futures_util::future::join_all;

    use super::*;

    #[test]
    fn commands_of_several_keys_are_seen_whole_or_not_at_all() {
        for (url, index) in [
            ("sim:edm?nodes=4", Index::Client),
            ("sim:edm?nodes=4", Index::Node),
            ("local:", Index::Client),
        ] {
            let pool = Pool::open(url).expect("a pool that there is");
            let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
            let state = State::new(pool.clone(), index, 0);
            let writer = |value: &str| format!("MSET a {value} b {value} c {value}\r\n");
            let scripts = [
                [writer("1"), writer("2")].concat().repeat(20),
                [writer("3"), "DEL a b c\r\n".to_owned()].concat().repeat(20),
                "MGET c a b\r\n".repeat(40),
                "EXISTS b c a\r\n".repeat(40),
            ];
            let mut talks: Vec<Talk> =
                (0..4).map(|id| Talk::new(store.client(index), id)).collect();
            for (talk, script) in talks.iter_mut().zip(&scripts) {
                talk.requests.room()[..script.len()].copy_from_slice(script.as_bytes());
                talk.requests.fill(script.len());
            }
            pool.run(join_all(talks.iter_mut().map(|talk| talk.serve(&state, 0))));
            let replies = |talk: &Talk| String::from_utf8_lossy(talk.replies.unsent()).into_owned();
            let values =
                ["1", "2", "3"].map(|v| format!("*3\r\n{}", format!("$1\r\n{v}\r\n").repeat(3)));
            let none = format!("*3\r\n{}", "$-1\r\n".repeat(3));
            let found = replies(&talks[2]);
            assert_eq!(found.matches("*3\r\n").count(), 40, "{url}: {found}");
            let mut rest = found.as_str();
            while !rest.is_empty() {
                let next =
                    values.iter().chain([&none]).find_map(|all| rest.strip_prefix(all.as_str()));
                rest = next.unwrap_or_else(|| panic!("{url} {index:?}: {rest:.60}"));
            }
            let there = replies(&talks[3]);
            assert!(there.lines().all(|line| [":0", ":3"].contains(&line)), "{url}: {there}");
            let gone = replies(&talks[1]);
            assert!(gone.lines().all(|line| ["+OK", ":0", ":3"].contains(&line)), "{url}: {gone}");
        }
    }

    /// A memory node, until the flag is set.
    fn node(stop: &Arc<AtomicBool>) -> String {
        let options = NodeOptions::in_clear(Bytes(64 << 20));
        let mut server = ethermem_node::start(&options).expect("a free port").server;
        let (name, index) = ethermem_kv::at_node();
        server.node_mut().register(name, index);
        let url = format!("udp://{}?timeout_ms=200", server.address().expect("it is bound"));
        let stop = Arc::clone(stop);
        std::thread::spawn(move || server.run(Duration::from_millis(1), &stop));
        url
    }

    fn talks(store: &Store, scripts: &[String]) -> Vec<Talk> {
        let of = |(id, script): (usize, &String)| {
            let mut talk = Talk::new(store.client(Index::Client), id as u64);
            talk.requests.room()[..script.len()].copy_from_slice(script.as_bytes());
            talk.requests.fill(script.len());
            talk
        };
        scripts.iter().enumerate().map(of).collect()
    }

    /// Sets of one key from many clients are written together, and each client sees what one order
    /// of all of them gives: its own value or a later one, and no client's values backwards.
    #[test]
    fn sets_of_one_key_at_once_are_in_one_order() {
        let stop = Arc::default();
        let pool = Pool::open(&node(&stop)).expect("a pool that there is");
        let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
        let state = State::new(pool.clone(), Index::Client, 0);
        let script = |client: u64| -> String {
            (0..40).map(|at| format!("SET k {client}:{at}\r\nGET k\r\n")).collect()
        };
        let mut talks = talks(&store, &(0..16).map(script).collect::<Vec<_>>());
        pool.run(join_all(talks.iter_mut().map(|talk| talk.serve(&state, 0))));
        stop.store(true, Ordering::Relaxed);
        for (own, talk) in talks.iter().enumerate() {
            let replies = String::from_utf8_lossy(talk.replies.unsent()).into_owned();
            let mut seen = [0; 16];
            let mut lines = replies.lines();
            for at in 0..40 {
                assert_eq!(lines.next(), Some("+OK"), "{replies}");
                lines.next().expect("a length");
                let (client, value) = lines.next().and_then(|l| l.split_once(':')).expect("set");
                let (client, value): (usize, usize) =
                    (client.parse().expect("a number"), value.parse().expect("a number"));
                assert!(value >= seen[client], "{own} saw {client}:{value} late");
                assert!(client != own || value == at, "{own} set {at} and read {value}");
                seen[client] = value;
            }
        }
    }

    fn array(words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    /// Draws of a seed, for scripts.
    fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        }
    }

    fn script(seed: u64) -> Vec<u8> {
        let mut draw = draws(seed);
        let mut bytes = Vec::new();
        for at in 0..400 {
            let key = match draw(40) {
                0 => vec![b'k'; KEY_BYTES_MAX + draw(2) as usize],
                _ => format!("k{}", draw(9)).into_bytes(),
            };
            let length = [0, 1, 64, 64, 64, 3_000, 17_000, 40_000][draw(8) as usize];
            let value = [format!("{at}").into_bytes(), vec![b'v'; length]].concat();
            bytes.extend(match draw(20) {
                0 => array(&[b"INCR", &key]),
                1 => array(&[b"DEL", &key]),
                2 => array(&[b"SET", &key, b"5"]),
                3 => array(&[b"SET", &key, b"1", b"EX", b"1000"]),
                4 if draw(2) == 0 => array(&[b"GET"]),
                4 => array(&[b"MGET", b"k1", &key, b"k2", b"none", b"k3", &key]),
                5 => b"GET k1\r\n".to_vec(),
                6 => array(&[b"set", &key, &value, b"NX"]),
                7..12 => array(&[b"seT", &key, &value]),
                _ => array(&[b"get", &key]),
            });
        }
        bytes
    }

    /// Requests that go together are answered as they are one by one.
    #[test]
    fn a_pipeline_is_answered_as_one_request_after_the_other() {
        let stop = Arc::default();
        let url = node(&stop);
        for seed in 0..6 {
            let script = script(seed);
            let replies_of = |url: &str, index| {
                let pool = Pool::open(url).expect("a pool that there is");
                let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
                let mut session = Session::new(&store, index, 0);
                pool.run(session.receive(&script));
                session.replies().to_vec()
            };
            let expected = replies_of("local:", Index::Client);
            let cached = format!("{url}&cache_bytes=64KiB");
            for (url, index) in
                [(&url, Index::Client), (&url, Index::Node), (&cached, Index::Client)]
            {
                let found = replies_of(url, index);
                let both = found.iter().zip(&expected);
                let at = both.take_while(|(one, other)| one == other).count();
                let text = |bytes: &[u8]| {
                    String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 100)]).into_owned()
                };
                assert!(
                    found == expected,
                    "seed {seed}, {url}, {index:?}, byte {at}: {:?}, not {:?}",
                    text(&found),
                    text(&expected)
                );
            }
        }
        stop.store(true, Ordering::Relaxed);
    }

    /// Who reads `b` and then `a` never sees an older `a`: they are set in the other order.
    #[test]
    fn pipelines_see_changes_in_their_order() {
        let stop = Arc::default();
        let pool = Pool::open(&node(&stop)).expect("a pool that there is");
        let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
        let state = State::new(pool.clone(), Index::Client, 0);
        let writes = |at: u64| {
            let at = at.to_string();
            [array(&[b"SET", b"a", at.as_bytes()]), array(&[b"SET", b"b", at.as_bytes()])].concat()
        };
        let writer: Vec<u8> = (0..150).flat_map(writes).collect();
        let reader = [array(&[b"GET", b"b"]), array(&[b"GET", b"a"])].concat().repeat(150);
        let scripts = [writer, reader.clone(), reader.clone(), reader];
        let scripts = scripts.map(|script| String::from_utf8(script).expect("text"));
        let mut talks = talks(&store, &scripts);
        pool.run(join_all(talks.iter_mut().map(|talk| talk.serve(&state, 0))));
        stop.store(true, Ordering::Relaxed);
        for talk in &talks[1..] {
            let replies = String::from_utf8_lossy(talk.replies.unsent()).into_owned();
            let numbers = replies.lines().filter(|line| !line.starts_with('$') || *line == "$-1");
            let numbers: Vec<i64> = numbers.map(|line| line.parse().unwrap_or(-1)).collect();
            assert_eq!(numbers.len(), 300, "{replies}");
            assert!(numbers.chunks(2).all(|pair| pair[0] <= pair[1]), "{numbers:?}");
            assert!(numbers.chunks(2).map(|pair| pair[0]).is_sorted(), "{numbers:?}");
        }
    }

    #[test]
    fn sets_that_wait_together_for_a_dead_node_all_fail() {
        let stop = Arc::default();
        let pool = Pool::open(&node(&stop)).expect("a pool that there is");
        let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
        let state = State::new(pool.clone(), Index::Client, 0);
        stop.store(true, Ordering::Relaxed);
        let one = |words| String::from_utf8(array(words)).expect("text");
        // More than one message carries.
        let set = one(&[b"SET", b"k", &[b'w'; 300]]);
        let by_message = [one(&[b"GET", b"k"]), set].concat().repeat(RUN_MAX / 2);
        let mut scripts = vec!["SET k v\r\nSET k w\r\n".to_owned(); 16];
        scripts.extend(vec![by_message; 4]);
        let mut talks = talks(&store, &scripts);
        pool.run(join_all(talks.iter_mut().map(|talk| talk.serve(&state, 0))));
        for talk in &talks {
            let replies = String::from_utf8_lossy(talk.replies.unsent()).into_owned();
            let mut lines = replies.lines();
            assert!(lines.all(|line| line.starts_with('-')) && !replies.is_empty(), "{replies}");
        }
        // A message's requests fail together, and what comes behind it is refused at once.
        for talk in &mut talks[16..] {
            assert!(talk.may_execute && talk.replies.unsent().len() > 1);
            pool.run(talk.serve(&state, 0));
            let replies = String::from_utf8_lossy(talk.replies.unsent()).into_owned();
            assert_eq!(replies.lines().count(), RUN_MAX, "{replies}");
            assert!(replies.contains("-UNCERTAIN") && replies.contains("-LOADING"), "{replies}");
        }
        assert!(state.absence().is_some());
    }

    /// A server looks for expired keys only once a key was given an expiry.
    #[test]
    fn a_server_knows_that_keys_may_end() {
        let pool = Pool::open("local:").expect("a pool that there is");
        let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
        for (line, may_end) in [
            ("SET k v", false),
            ("MSET k v l w", false),
            ("SET k v EX 5", true),
            ("SETEX k 5 v", true),
            ("PSETEX k 5 v", true),
            ("EXPIRE k 5", true),
            ("PEXPIREAT k 5", true),
            ("MGET k l m", false),
        ] {
            let state = State::new(pool.clone(), Index::Client, 0);
            let mut talk = Talk::new(store.client(Index::Client), 1);
            let bytes = format!("{line}\r\n");
            talk.requests.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
            talk.requests.fill(bytes.len());
            pool.run(talk.serve(&state, 1));
            assert_eq!(state.keys_may_end.get(), may_end, "{line}");
        }
    }
}
