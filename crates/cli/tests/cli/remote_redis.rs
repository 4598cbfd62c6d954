//! An unmodified Redis with three quarters of its memory at a node.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::node::Running;
use crate::remote::{can_page, report};
use crate::support::{called, command};

const KEYS: u64 = 20_000;
const VALUE_BYTES: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that ends with the test.
struct Redis {
    child: Child,
    socket: PathBuf,
}

impl Redis {
    /// Starts a server by a command to which its options are appended.
    fn start(mut command: Command, folder: &Path, name: &str) -> Redis {
        let socket = folder.join(name);
        command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
        command.args(["--enable-debug-command", "local", "--unixsocket"]).arg(&socket);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Redis { child: command.spawn().unwrap(), socket }
    }

    /// Connects once it listens.
    fn connect(&mut self) -> Connection {
        let asked = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return Connection(BufReader::new(stream));
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && asked.elapsed() < PATIENCE, "redis-server: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection(BufReader<UnixStream>);

impl Connection {
    fn send(&mut self, words: &[&[u8]]) {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).into_bytes());
            request.extend(*word);
            request.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&request).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, words: &[&str]) -> String {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.send(&words);
        self.line()
    }

    /// Writes every key; every page of the values is different.
    fn load(&mut self) {
        for key in 0..KEYS {
            self.send(&[b"SET", format!("key:{key}").as_bytes(), &value(key)]);
            assert_eq!(self.line(), "+OK");
        }
    }

    fn reread(&mut self) {
        let mut found = Vec::new();
        for key in 0..KEYS {
            self.send(&[b"GET", format!("key:{key}").as_bytes()]);
            assert_eq!(self.line(), format!("${VALUE_BYTES}"));
            found.resize(VALUE_BYTES + 2, 0);
            self.0.read_exact(&mut found).unwrap();
            assert!(found[..VALUE_BYTES] == value(key), "key {key} has another value");
        }
    }

    fn digest(&mut self) -> String {
        let digest = self.ask(&["DEBUG", "DIGEST"]);
        assert!(digest.len() == 41 && digest.starts_with('+'), "{digest}");
        assert_ne!(digest, format!("+{}", "0".repeat(40)), "it is that of nothing");
        digest
    }
}

fn value(key: u64) -> Vec<u8> {
    // Knuth's generator; any generator of distinct words would do.
    let mut word = key;
    let words = std::iter::repeat_with(|| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word
    });
    words.take(VALUE_BYTES / 8).flat_map(u64::to_le_bytes).collect()
}

/// Ends it by its own command; returns its exit code and its output.
fn end(mut redis: Redis, mut connection: Connection) -> (i32, String) {
    connection.send(&[b"SHUTDOWN", b"NOSAVE"]);
    let mut said = String::new();
    redis.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (redis.child.wait().unwrap().code().expect("no signal"), said)
}

#[test]
fn redis_with_a_quarter_of_its_memory_local_keeps_every_byte_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    if !can_page(folder) {
        return;
    }
    for program in ["redis-server", "redis-benchmark"] {
        if Command::new(program).arg("--version").output().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: remote Redis: there is no {program}");
            return;
        }
    }
    let mut plain = Redis::start(Command::new("redis-server"), folder, "plain.sock");
    let mut connection = plain.connect();
    connection.load();
    let expected = connection.digest();
    assert_eq!(end(plain, connection).0, 0);

    let node = Running::start(&["--memory", "256MiB", "--page", "64KiB"]);
    let pool = format!("udp://{}", node.address());
    let run = ["run", "--pool", &pool, "--local", "25%", "--report", "report.json"];
    let run = command(folder, &[&run[..], &["--", "redis-server"]].concat());
    let mut redis = Redis::start(run, folder, "remote.sock");
    let mut connection = redis.connect();
    connection.load();
    assert_eq!(connection.digest(), expected, "as it was loaded");
    // The benchmark's keys are in a separate database, so that they can be removed.
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.arg("-s").arg(&redis.socket).args(["--dbnum", "1", "-q", "--csv"]);
    benchmark.args(["-n", "20000", "-r", "5000", "-d", "500", "-c", "20", "-P", "4"]);
    let benchmark =
        called(&benchmark.args(["-t", "set,get,incr,lpush,rpop,hset,zadd,mset"]).output().unwrap());
    assert_eq!(benchmark.code, 0, "{}{}", benchmark.out, benchmark.err);
    let named = |name: &str| benchmark.out.lines().any(|line| line.starts_with(name));
    assert!(named("\"SET\"") && named("\"ZADD\"") && named("\"MSET"), "{}", benchmark.out);
    assert_eq!(connection.ask(&["SELECT", "1"]), "+OK");
    let keys = connection.ask(&["DBSIZE"]);
    assert!(keys.strip_prefix(':').and_then(|keys| keys.parse().ok()) > Some(1000), "{keys}");
    assert_eq!(connection.ask(&["FLUSHDB"]), "+OK");
    assert_eq!(connection.ask(&["SELECT", "0"]), "+OK");
    assert_eq!(connection.digest(), expected, "after redis-benchmark");
    connection.reread();
    assert_eq!(connection.digest(), expected, "after a reread");
    let (code, said) = end(redis, connection);
    assert_eq!(code, 0, "{said}");
    let pages = &report(folder)["pages"];
    let count = |name: &str| pages[name].as_u64().expect(name);
    assert!(count("read_pages") > 5000 && count("written_pages") > 5000, "{pages}");
}
