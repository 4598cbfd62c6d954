//! Every command, with its exact replies and effects.

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_resp::Session;

/// Sends each request to a session, and compares its replies; `|` ends a line in both.
fn converse(script: &[(&str, &str)]) {
    for index in [Index::Client, Index::Node] {
        let pool = Pool::open("local:").expect("a pool that there is");
        pool.run(async {
            let store = Store::create(&pool, Config::default()).await.expect("there is memory");
            let mut session = Session::new(&store, index, 7);
            let mut seen = 0;
            for (at, (request, reply)) in script.iter().enumerate() {
                session.receive(format!("{request}\r\n").as_bytes()).await;
                let replies = String::from_utf8_lossy(&session.replies()[seen..]).into_owned();
                seen = session.replies().len();
                let shown = replies.replace("\r\n", "|");
                let shown = shown.strip_suffix('|').unwrap_or(&shown);
                assert_eq!(shown, *reply, "{index:?}, {at}: {request:.80}");
            }
        });
    }
}

const NIL: &str = "$-1";
const SYNTAX: &str = "-ERR syntax error";
const NOT_INTEGER: &str = "-ERR value is not an integer or out of range";

#[test]
fn set_has_the_conditions_and_ends_of_redis() {
    let invalid = "-ERR invalid expire time in 'set' command";
    converse(&[
        ("SET k v EX 100", "+OK"),
        ("TTL k", ":100"),
        ("SET k v px 100000", "+OK"),
        ("TTL k", ":100"),
        ("SET k v EXAT 4102444800", "+OK"),
        ("EXPIRETIME k", ":4102444800"),
        ("PEXPIRETIME k", ":4102444800000"),
        ("SET k v PXAT 4102444800123", "+OK"),
        ("PEXPIRETIME k", ":4102444800123"),
        ("EXPIRETIME k", ":4102444800"),
        ("SET k w KEEPTTL", "+OK"),
        ("PEXPIRETIME k", ":4102444800123"),
        ("GET k", "$1|w"),
        ("SET k x", "+OK"),
        ("TTL k", ":-1"),
        ("SET k bad EX 0", invalid),
        ("SET k bad EX -1", invalid),
        ("SET k bad EX 9223372036854775807", invalid),
        ("SET k bad PX 9223372036854775807", invalid),
        ("SET k bad EX one", NOT_INTEGER),
        ("SET k bad EX", SYNTAX),
        ("SET k bad EX 1 PX 1", SYNTAX),
        ("SET k bad EX 1 KEEPTTL", SYNTAX),
        ("SET k bad KEEPTTL EX 1", SYNTAX),
        ("SET k bad EX 1 PX 1 EX 1", SYNTAX),
        ("SET k bad EX one NX XX", SYNTAX),
        ("SET k bad EX 10 EX 0", invalid),
        ("SET k bad NX XX", SYNTAX),
        ("SET k bad XX NX", SYNTAX),
        ("SET k bad FOREVER", SYNTAX),
        ("GET k", "$1|x"),
        ("SET k y NX", NIL),
        ("GET k", "$1|x"),
        ("SET k y XX", "+OK"),
        ("SET new y XX", NIL),
        ("EXISTS new", ":0"),
        ("SET new y NX", "+OK"),
        ("SET k z GET", "$1|y"),
        ("SET k bad NX GET", "$1|z"),
        ("GET k", "$1|z"),
        ("SET other a GET", NIL),
        ("GET other", "$1|a"),
        ("SETNX k bad", ":0"),
        ("GET k", "$1|z"),
        ("SETNX nx v", ":1"),
        ("GET nx", "$1|v"),
        ("SETEX k 100 v", "+OK"),
        ("TTL k", ":100"),
        ("PSETEX k 200000 w", "+OK"),
        ("TTL k", ":200"),
        ("SETEX k 0 bad", "-ERR invalid expire time in 'setex' command"),
        ("PSETEX k 0 bad", "-ERR invalid expire time in 'psetex' command"),
        ("SETEX k one bad", NOT_INTEGER),
        ("GET k", "$1|w"),
    ]);
}

#[test]
fn the_end_of_a_key_is_set_under_conditions() {
    let mixed = "-ERR NX and XX, GT or LT options at the same time are not compatible";
    converse(&[
        ("SET k v", "+OK"),
        ("EXPIRE none 100", ":0"),
        ("EXPIRE k 100", ":1"),
        ("TTL k", ":100"),
        ("PEXPIRE k 200000", ":1"),
        ("TTL k", ":200"),
        ("PEXPIREAT k 4102444800500", ":1"),
        ("PEXPIRETIME k", ":4102444800500"),
        ("EXPIRETIME k", ":4102444801"),
        ("PEXPIREAT k 4102444800499", ":1"),
        ("EXPIRETIME k", ":4102444800"),
        ("EXPIREAT k 4102444800", ":1"),
        ("EXPIRETIME k", ":4102444800"),
        // The key has an expiry.
        ("EXPIREAT k 4102444801 NX", ":0"),
        ("EXPIREAT k 4102444800 GT", ":0"),
        ("EXPIREAT k 4102444799 GT", ":0"),
        ("EXPIREAT k 4102444800 LT", ":0"),
        ("EXPIREAT k 4102444801 LT", ":0"),
        ("EXPIRETIME k", ":4102444800"),
        ("EXPIREAT k 4102444801 GT", ":1"),
        ("EXPIREAT k 4102444800 lt", ":1"),
        ("EXPIREAT k 4102444900 XX GT", ":1"),
        ("EXPIREAT k 4102444800 XX", ":1"),
        ("EXPIRETIME k", ":4102444800"),
        // The key has no expiry, which counts as later than any.
        ("PERSIST k", ":1"),
        ("PERSIST k", ":0"),
        ("PERSIST none", ":0"),
        ("TTL k", ":-1"),
        ("EXPIREAT k 4102444800 XX", ":0"),
        ("EXPIREAT k 4102444800 GT", ":0"),
        ("TTL k", ":-1"),
        ("EXPIREAT k 4102444800 LT", ":1"),
        ("PERSIST k", ":1"),
        ("EXPIREAT k 4102444800 NX", ":1"),
        ("EXPIRETIME k", ":4102444800"),
        ("EXPIRE k 1 NX XX", mixed),
        ("EXPIRE k 1 NX GT", mixed),
        ("EXPIRE k 1 NX LT", mixed),
        ("EXPIRE k 1 GT LT", "-ERR GT and LT options at the same time are not compatible"),
        ("EXPIRE k 1 SOON", "-ERR Unsupported option SOON"),
        ("EXPIRE k one", NOT_INTEGER),
        ("EXPIRE k 9223372036854775807", "-ERR invalid expire time in 'expire' command"),
        ("EXPIRE k -9223372036854775807", "-ERR invalid expire time in 'expire' command"),
        ("PEXPIREAT k 9223372036854775807", ":1"),
        ("EXPIRETIME k", ":9223372036854776"),
        ("TTL none", ":-2"),
        // A key that has expired disappears at once.
        ("PEXPIRE k -9223372036854775807", ":1"),
        ("EXISTS k", ":0"),
        ("SET k v", "+OK"),
        ("EXPIRE k 0", ":1"),
        ("DBSIZE", ":0"),
        ("SET k v", "+OK"),
        ("EXPIREAT k 1", ":1"),
        ("DBSIZE", ":0"),
    ]);
}

#[test]
fn a_key_that_has_ended_is_not_there_for_any_command() {
    let ended = ("SET e v PXAT 1", "+OK");
    converse(&[
        ended,
        ("GET e", NIL),
        ("EXISTS e", ":0"),
        ("TYPE e", "+none"),
        ("TTL e", ":-2"),
        ("STRLEN e", ":0"),
        ("MGET e", "*1|$-1"),
        ("KEYS *", "*0"),
        ("SCAN 0 COUNT 100000", "*2|$1|0|*0"),
        ("PERSIST e", ":0"),
        ("EXPIRE e 100", ":0"),
        ("SET e w XX", NIL),
        ("DEL e", ":0"),
        ended,
        ("GETDEL e", NIL),
        ended,
        ("APPEND e x", ":1"),
        ("TTL e", ":-1"),
        ended,
        ("INCR e", ":1"),
        ("TTL e", ":-1"),
        ended,
        ("SETNX e w", ":1"),
        ("GET e", "$1|w"),
        ended,
        ("GETSET e x", NIL),
        ("GET e", "$1|x"),
        ended,
        ("SET e y KEEPTTL", "+OK"),
        ("TTL e", ":-1"),
    ]);
}

#[test]
fn an_option_may_be_repeated_and_the_last_one_counts() {
    converse(&[
        ("SET k v EX 100 EX 200", "+OK"),
        ("TTL k", ":200"),
        ("SET k v EX one EX 100", "+OK"),
        ("SET k w KEEPTTL KEEPTTL", "+OK"),
        ("TTL k", ":100"),
        ("SET k v XX XX GET GET", "$1|w"),
        ("TTL k", ":-1"),
    ]);
}

#[test]
fn a_value_is_read_with_a_new_expiry() {
    converse(&[
        ("SET s hello!! EXAT 4102444800", "+OK"),
        ("GETEX s PERSIST", "$7|hello!!"),
        ("TTL s", ":-1"),
        ("GETEX s PXAT 4102444800000", "$7|hello!!"),
        ("GETEX s", "$7|hello!!"),
        ("EXPIRETIME s", ":4102444800"),
        ("GETEX s EX 0", "-ERR invalid expire time in 'getex' command"),
        ("GETEX s EX", "-ERR syntax error"),
        ("GETEX s PERSIST 1", "-ERR syntax error"),
        ("GETEX s EX 1 PX 1", "-ERR syntax error"),
        ("GETEX s EX 1 PERSIST", "-ERR syntax error"),
        ("GETEX s PERSIST EX 1", "-ERR syntax error"),
        ("GETEX s PERSIST PERSIST", "$7|hello!!"),
        ("TTL s", ":-1"),
        ("GETEX s EX x EX 100", "$7|hello!!"),
        ("TTL s", ":100"),
        ("GETEX none EX 100", NIL),
        ("GETEX none EX 0", NIL),
        ("GETEX none EX x", NIL),
        ("GETEX none KEEPTTL", "-ERR syntax error"),
        ("EXISTS none", ":0"),
        ("GETEX s EXAT 1", "$7|hello!!"),
        ("EXISTS s", ":0"),
    ]);
}

#[test]
fn values_are_changed_as_redis_changes_them() {
    let overflow = "-ERR increment or decrement would overflow";
    converse(&[
        ("SET s hello", "+OK"),
        ("STRLEN s", ":5"),
        ("APPEND s !", ":6"),
        ("GET s", "$6|hello!"),
        ("TYPE s", "+string"),
        ("TYPE none", "+none"),
        ("EXPIREAT s 4102444800", ":1"),
        ("APPEND s !", ":7"),
        ("EXPIRETIME s", ":4102444800"),
        ("GETSET s x", "$7|hello!!"),
        ("TTL s", ":-1"),
        ("GETDEL s", "$1|x"),
        ("GETDEL s", NIL),
        ("EXISTS s", ":0"),
        ("APPEND s new", ":3"),
        ("STRLEN none", ":0"),
        ("MSET a 1 b 2", "+OK"),
        ("MGET a none b", "*3|$1|1|$-1|$1|2"),
        ("MSET a 3 b", "-ERR wrong number of arguments for 'mset' command"),
        ("GET a", "$1|1"),
        ("EXISTS a a b none", ":3"),
        ("DEL a b none", ":2"),
        ("SET a 1", "+OK"),
        ("UNLINK a a", ":1"),
        ("INCR c", ":1"),
        ("INCRBY c 5", ":6"),
        ("DECR c", ":5"),
        ("DECRBY c 7", ":-2"),
        ("INCRBY c one", NOT_INTEGER),
        ("SET c x", "+OK"),
        ("INCR c", NOT_INTEGER),
        ("SET c 9223372036854775807", "+OK"),
        ("INCR c", overflow),
        ("DECRBY c -1", overflow),
        ("DECR c", ":9223372036854775806"),
        ("SET c -9223372036854775808", "+OK"),
        ("DECR c", overflow),
        ("DECRBY c -9223372036854775808", "-ERR decrement would overflow"),
        ("GET c", "$20|-9223372036854775808"),
        ("SET c 1 EXAT 4102444800", "+OK"),
        ("INCR c", ":2"),
        ("EXPIRETIME c", ":4102444800"),
        ("ECHO words", "$5|words"),
        ("DBSIZE", ":2"),
        ("FLUSHALL SYNC SYNC", SYNTAX),
        ("FLUSHALL LATER", SYNTAX),
        ("DBSIZE", ":2"),
        ("FLUSHALL async", "+OK"),
        ("DBSIZE", ":0"),
        ("SET a 1", "+OK"),
        ("FLUSHDB SYNC", "+OK"),
        ("SET a 1", "+OK"),
        ("FLUSHDB", "+OK"),
        ("DBSIZE", ":0"),
    ]);
}

#[test]
fn keys_are_found_by_pattern_and_type() {
    converse(&[
        ("MSET a1 v a2 v b1 v", "+OK"),
        ("KEYS *", "*3|$2|a1|$2|a2|$2|b1"),
        ("KEYS a*", "*2|$2|a1|$2|a2"),
        ("KEYS c*", "*0"),
        ("KEYS **", "*3|$2|a1|$2|a2|$2|b1"),
        ("KEYS \"\"", "*0"),
        ("SET \"\" v", "+OK"),
        ("KEYS **", "*3|$2|a1|$2|a2|$2|b1"),
        ("KEYS \"\"", "*1|$0|"),
        ("DEL \"\"", ":1"),
        ("SCAN 0 MATCH b? COUNT 100000", "*2|$1|0|*1|$2|b1"),
        ("SCAN 0 TYPE hash COUNT 100000", "*2|$1|0|*0"),
        ("SCAN 0 TYPE STRING MATCH b* COUNT 100000", "*2|$1|0|*1|$2|b1"),
        ("SCAN 0 COUNT 9223372036854775807 MATCH b*", "*2|$1|0|*1|$2|b1"),
        ("SCAN zero", "-ERR invalid cursor"),
        ("SCAN -1", "-ERR invalid cursor"),
        ("SCAN 0 COUNT", SYNTAX),
        ("SCAN 0 COUNT 0", SYNTAX),
        ("SCAN 0 COUNT -1", SYNTAX),
        ("SCAN 0 COUNT one", NOT_INTEGER),
        ("SCAN 0 LIMIT 1", SYNTAX),
    ]);
}

/// A step returns about as many keys as requested, and the steps together meet every key.
#[test]
fn a_scan_is_taken_in_steps_of_the_size_that_is_asked_for() {
    let pool = Pool::open("local:").expect("a pool that there is");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.expect("there is memory");
        let mut session = Session::new(&store, Index::Node, 7);
        for key in 0..500 {
            session.receive(format!("SET key:{key:03} v\r\n").as_bytes()).await;
        }
        for (count, steps) in [("", 10..=60), (" COUNT 50", 4..=12), (" COUNT 500", 1..=2)] {
            let (mut cursor, mut met, mut taken) = ("0".to_owned(), 0, 0);
            loop {
                let seen = session.replies().len();
                session.receive(format!("SCAN {cursor}{count}\r\n").as_bytes()).await;
                let reply = String::from_utf8_lossy(&session.replies()[seen..]).into_owned();
                cursor = reply.split("\r\n").nth(2).expect("a cursor").to_owned();
                met += reply.matches("key:").count();
                taken += 1;
                if cursor == "0" {
                    break;
                }
            }
            assert_eq!(met, 500, "SCAN{count}");
            assert!(steps.contains(&taken), "{taken} steps of SCAN{count}");
        }
    });
}

#[test]
fn each_command_has_its_number_of_words() {
    let one = [
        "GET",
        "GETDEL",
        "INCR",
        "DECR",
        "STRLEN",
        "TTL",
        "PTTL",
        "EXPIRETIME",
        "PEXPIRETIME",
        "PERSIST",
        "TYPE",
        "KEYS",
        "ECHO",
    ];
    let two = ["APPEND", "DECRBY", "INCRBY", "GETSET", "SETNX"];
    let least_one = ["DEL", "UNLINK", "EXISTS", "MGET", "SCAN", "AUTH", "CLIENT", "CONFIG"];
    let least_two = ["SET", "MSET", "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"];
    let mut script = Vec::new();
    let mut wrong = |name: &str, words: &[&str]| {
        let request = [&[name], words].concat().join(" ");
        let name = name.to_lowercase();
        script.push((request, format!("-ERR wrong number of arguments for '{name}' command")));
    };
    for name in one {
        wrong(name, &[]);
        wrong(name, &["k", "w"]);
    }
    for name in two {
        wrong(name, &["k"]);
        wrong(name, &["k", "1", "2"]);
    }
    for name in ["SETEX", "PSETEX"] {
        wrong(name, &["k", "1"]);
        wrong(name, &["k", "1", "v", "w"]);
    }
    least_one.iter().for_each(|name| wrong(name, &[]));
    least_two.iter().for_each(|name| wrong(name, &["k"]));
    wrong("DBSIZE", &["k"]);
    wrong("RESET", &["k"]);
    script.push(("DBSIZE".to_owned(), ":0".to_owned()));
    let script: Vec<(&str, &str)> = script.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    converse(&script);
}

#[test]
fn a_key_that_is_too_long_is_refused_before_anything_is_done() {
    let (long, longest) = ("k".repeat(8193), "k".repeat(8192));
    let refused = "-ERR a key of 8193 B: must be 0 to 8192";
    converse(&[
        (&format!("GET {long}"), refused),
        (&format!("SET {long} v"), refused),
        (&format!("MSET a 1 {long} 2 b 3"), refused),
        (&format!("DEL a {long}"), refused),
        (&format!("EXISTS a b {long}"), refused),
        ("DBSIZE", ":0"),
        (&format!("SET {longest} v"), "+OK"),
        // These words are not keys.
        (&format!("MSET a {long} b {long}"), "+OK"),
        (&format!("SET a {long}"), "+OK"),
        (&format!("APPEND a {long}"), ":16386"),
        (&format!("SCAN 0 COUNT 100000 MATCH {long}"), "*2|$1|0|*0"),
        (&format!("MGET {longest}"), "*1|$1|v"),
        ("DBSIZE", ":3"),
    ]);
}

#[test]
fn of_an_unknown_command_as_much_is_told_as_redis_tells() {
    let (name, word) = ("n".repeat(130), "w".repeat(100));
    converse(&[
        ("LPUSH k v", "-ERR unknown command 'LPUSH', with args beginning with: 'k' 'v' "),
        (
            &format!("{name} {word} {word} {word}"),
            &format!(
                "-ERR unknown command '{}', with args beginning with: '{word}' '{}' ",
                &name[..128],
                &word[..25]
            ),
        ),
        ("CONFIG RESETSTAT x", "-ERR wrong number of arguments for 'config|resetstat' command"),
        ("COMMAND COUNT x", "-ERR wrong number of arguments for 'command|count' command"),
        ("COMMAND LIST x", SYNTAX),
        ("COMMAND LIST FILTERBY x y", SYNTAX),
        ("COMMAND LIST FILTERBY PATTERN GETD*", "*1|$6|getdel"),
        ("COMMAND LIST FILTERBY MODULE x", "*0"),
        ("CONFIG BOGUS", "-ERR unknown subcommand 'BOGUS'. Try CONFIG HELP."),
        ("CLIENT BOGUS", "-ERR unknown subcommand 'BOGUS'. Try CLIENT HELP."),
    ]);
}

/// A client that does not read its replies stops its own session, and fills no memory.
#[test]
fn whatever_waits_unread_stops_the_session_that_asked_for_it() {
    let pool = Pool::open("local:").expect("a pool that there is");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.expect("there is memory");
        let mut session = Session::new(&store, Index::Client, 7);
        let value = "v".repeat(100_000);
        session.receive("PING\r\n".repeat(3000).as_bytes()).await;
        assert_eq!(session.replies(), b"+PONG\r\n".repeat(3000), "a turn after the other");
        let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n{value}\r\n");
        session.receive(set.as_bytes()).await;
        session.receive("GET k\r\n".repeat(100).as_bytes()).await;
        let unread = session.replies().len();
        assert!((1 << 20..(1 << 20) + 2 * value.len()).contains(&unread), "{unread}");
    });
}

#[test]
fn a_value_grows_to_its_limit_and_no_further() {
    let pool = Pool::open("local:?memory_bytes=400000000").expect("a pool that there is");
    pool.run(async {
        let store = Store::create(&pool, Config::default()).await.expect("there is memory");
        let mut session = Session::new(&store, Index::Client, 7);
        let most = ethermem_kv::VALUE_BYTES_MAX;
        let value = vec![b'v'; most - 1];
        session
            .receive(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", most - 1).as_bytes())
            .await;
        session.receive(&value).await;
        session.receive(b"\r\nAPPEND k v\r\nAPPEND k v\r\nSTRLEN k\r\n").await;
        let replies = String::from_utf8_lossy(session.replies()).into_owned();
        let refused = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        assert_eq!(replies, format!("+OK\r\n:{most}\r\n{refused}\r\n:{most}\r\n"));
    });
}
