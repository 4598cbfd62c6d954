//! The seeds of the session fuzzer, `fuzz/seeds/resp_session`: real commands. The first byte of a
//! seed selects the index and the lengths of the parts, as the fuzz target reads it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_resp::{Password, Session};
use redis_protocol::resp2::types::Resp2Frame;
use redis_protocol::{resp2, resp3};

fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/resp_session");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut seeds: Vec<_> = files
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect();
    seeds.sort();
    seeds
}

/// The command names of its requests, in capitals, by an independent decoder. A request without
/// words is omitted.
fn commands(requests: &[u8]) -> Vec<String> {
    let (mut rest, mut commands) = (requests, Vec::new());
    while let Some(&first) = rest.first() {
        let (word, length) = if first == b'*' {
            let (frame, length) = resp2::decode::decode(rest).unwrap().expect("it is whole");
            let word = match frame {
                resp2::types::OwnedFrame::Array(words) => {
                    words.first().map(|word| word.as_str().expect("a command is text").to_owned())
                }
                resp2::types::OwnedFrame::Null => None,
                other => panic!("{other:?} is no request"),
            };
            (word, length)
        } else {
            let end = rest.iter().position(|&byte| byte == b'\n').expect("a line ends");
            let line = String::from_utf8(rest[..end].to_vec()).unwrap();
            (line.split_whitespace().next().map(str::to_owned), end + 1)
        };
        commands.extend(word.map(|word| word.to_uppercase()));
        rest = &rest[length..];
    }
    commands
}

/// The replies of a session to the parts that the fuzz target sends.
fn replies(seed: &[u8]) -> Vec<Vec<u8>> {
    let (&first, requests) = seed.split_first().unwrap();
    // The second bit selects a password; such seeds authenticate first.
    let index = if first & 1 == 0 { Index::Client } else { Index::Node };
    let pool = Pool::open("local:?memory_bytes=8000000").unwrap();
    let store = pool.run(Store::create(&pool, Config::default())).unwrap();
    let mut session = match first & 2 {
        0 => Session::new(&store, index, 1),
        _ => Session::behind(Password::new(b"secret").unwrap(), &store, index, 1),
    };
    for part in requests.chunks(usize::from(first >> 2) + 1) {
        pool.run(session.receive(part));
    }
    let (mut rest, mut replies) = (session.replies(), Vec::new());
    while !rest.is_empty() {
        let third = resp3::decode::complete::decode(rest).ok().flatten().map(|reply| reply.1);
        let second = resp2::decode::decode(rest).ok().flatten().map(|reply| reply.1);
        let (reply, others) = rest.split_at(third.or(second).expect("replies are whole"));
        replies.push(reply.to_vec());
        rest = others;
    }
    replies
}

#[test]
fn every_seed_is_understood_and_answered() {
    let seeds = seeds();
    assert!(seeds.len() >= 10, "{}", seeds.len());
    for (name, seed) in seeds {
        let mut commands = commands(&seed[1..]);
        if let Some(quit) = commands.iter().position(|command| command == "QUIT") {
            commands.truncate(quit + 1);
        }
        let replies = replies(&seed);
        assert_eq!(replies.len(), commands.len(), "{name}: {commands:?}");
        let mut errors = 0;
        for (command, reply) in commands.iter().zip(&replies) {
            let text = String::from_utf8_lossy(reply);
            assert!(!text.starts_with("-ERR Protocol error"), "{name}, {command}: {text}");
            let is_unknown = text.starts_with("-ERR unknown command");
            assert!(!is_unknown || name == "refused", "{name}, {command}: {text}");
            errors += usize::from(text.starts_with('-'));
        }
        let most = if name == "refused" { replies.len() } else { replies.len() / 2 };
        assert!(errors <= most, "{name}: {errors} of {} are errors", replies.len());
    }
}

#[test]
fn every_command_of_the_server_is_in_a_seed() {
    let list = replies(b"|COMMAND\r\n").remove(0);
    let (frame, _) = resp2::decode::decode(&list).unwrap().unwrap();
    let resp2::types::OwnedFrame::Array(known) = frame else { panic!("a list of commands") };
    let name = |command: &resp2::types::OwnedFrame| match command {
        resp2::types::OwnedFrame::Array(parts) => parts[0].as_str().unwrap().to_uppercase(),
        other => panic!("{other:?} is no command"),
    };
    let known: BTreeSet<String> = known.iter().map(name).collect();
    assert!(known.len() > 40, "{known:?}");
    let sent: BTreeSet<String> =
        seeds().iter().flat_map(|(_, seed)| commands(&seed[1..])).collect();
    let missing: Vec<&String> = known.difference(&sent).collect();
    assert!(missing.is_empty(), "{missing:?} are in no seed");
}
