//! Tests of the process `ethermem node`, with a socket.

use std::io::{BufRead, BufReader, Read as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ethermem_udp::seal::{ClientSeal, KeyFile};
use ethermem_wire::clio::{
    Envelope, Epoch, NodeFacts, ProcessId, Protection, Reply, Request, RequestId, RequestPacket,
    ResponsePacket, SenderId, TenantId,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{call, command};

/// A node that ends with the test.
pub(crate) struct Running {
    child: Child,
    address: String,
    /// Address of metrics; a node started from a file must configure it.
    metrics: Option<String>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Running {
        Running::start_with(&[&["--listen", "127.0.0.1:0", "--insecure"], arguments].concat())
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Running {
        let command = command(Path::new("."), &[&["node"], arguments].concat());
        Running::of(command, arguments.contains(&"--config"))
    }

    /// Starts a node by the caller's command, with or without metrics.
    pub(crate) fn of(mut command: Command, has_metrics: bool) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(Ok(line)) = lines.next() else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("it does not start: {said}");
        };
        let address = line.strip_prefix("listening on ").expect(&line).to_owned();
        // Before its metrics it names the other network, if it is on two.
        let metrics = has_metrics.then(|| {
            let metrics = |line: String| Some(line.strip_prefix("metrics on ")?.to_owned());
            lines.by_ref().find_map(|line| metrics(line.unwrap())).expect("it has metrics")
        });
        Running { child, address, metrics }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Address of its metrics.
    pub(crate) fn metrics(&self) -> Option<&str> {
        self.metrics.as_deref()
    }

    /// Tells it to end, as an operator does.
    pub(crate) fn terminate(&self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks for its facts.
    fn facts(&self) -> NodeFacts {
        self.facts_by(None).expect("it answers")
    }

    /// As [`Running::facts`], with a key; `None` if there is no valid response.
    fn facts_by(&self, key: Option<&KeyFile>) -> Option<NodeFacts> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address.replace("0.0.0.0", "127.0.0.1")).unwrap();
        // A caller that expects no response must not wait for long.
        let patience = if key.is_none() { 20_000 } else { 2_000 };
        socket.set_read_timeout(Some(Duration::from_millis(patience))).unwrap();
        let tenant = key.map_or(TenantId(0), |key| key.tenant);
        let sender = SenderId(socket.local_addr().unwrap().port().into());
        let protection = key.map_or(Protection::Carrier, |_| Protection::Gcm);
        let mut seal = key.map(|key| ClientSeal::new(tenant, &key.key, sender));
        let clock = ethermem_units::Ns::ZERO;
        let envelope =
            Envelope { protection, tenant, epoch: Epoch::UNKNOWN, sender, sequence: 1, clock };
        let hello = RequestPacket {
            attempt: 0,
            process: ProcessId(0),
            request: RequestId(1),
            acknowledged: RequestId::NONE,
            body: Request::Hello,
        };
        let mut datagram = [0; 256];
        let front = envelope.emit(&mut datagram).unwrap();
        let end = front + hello.emit(&mut datagram[front..]).unwrap();
        let bytes = end + protection.trailer_bytes();
        if let Some(seal) = &seal {
            seal.seal(&mut datagram[..bytes]).unwrap();
        }
        socket.send(&datagram[..bytes]).unwrap();
        let mut answer = [0; 1024];
        let answer = match socket.recv(&mut answer) {
            Ok(bytes) => &mut answer[..bytes],
            Err(_) => return None,
        };
        let sealed = match &mut seal {
            Some(seal) => seal.open(answer)?,
            None => Envelope::open(answer).unwrap(),
        };
        let packet = ResponsePacket::packets(&answer[sealed.packets]).next().unwrap().unwrap();
        let Reply::Facts(facts) = packet.reply else { panic!("{packet:?}") };
        Some(facts)
    }

    /// Ends it as an operator does; returns its exit code and last output.
    fn end(self) -> (Option<i32>, String) {
        self.terminate();
        self.ended()
    }

    /// Waits for its end; returns its exit code and last output.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut words = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        (self.child.wait().unwrap().code(), words)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A log that is full ends nothing: the node serves, and ends as it is told to.
#[test]
fn a_node_whose_log_is_full_serves_and_ends_in_order() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let arguments = ["node", "--memory", "1MiB", "--insecure", "--listen", "127.0.0.1:0"];
    let mut command = command(Path::new("."), &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(full).spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let address = line.strip_prefix("listening on ").expect(&line).to_owned();
    let node = Running { child, address, metrics: None };
    node.facts();
    node.terminate();
    let mut node = node;
    assert_eq!(node.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_node_says_what_it_is_until_it_is_told_to_end() {
    let node = Running::start(&["--memory", "3MiB", "--page", "4KiB", "--lease-s", "7"]);
    let facts = node.facts();
    assert_eq!((facts.memory.0, facts.page_bytes, facts.lease_ms), (3 << 20, 4096, 7000));
    // The node sleeps by now, and wakes up for a datagram.
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(node.facts(), facts);
    let (code, words) = node.end();
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains(" ended ") && words.contains(" requests=2 datagrams=2 "), "{words}");
}

#[test]
fn each_life_of_a_node_has_an_epoch_of_its_own() {
    let [one, other] = [0, 1].map(|_| Running::start(&["--memory", "1MiB"]).facts().epoch);
    assert!(one != other && one != Epoch::UNKNOWN && other != Epoch::UNKNOWN);
}

#[test]
fn which_way_was_chosen_stands_under_a_table_and_in_json() {
    let node = Running::start(&["--memory", "1MiB", "--page", "4KiB"]);
    let (pool, chosen) =
        (format!("node://{}", node.address()), format!("by udp://{}; ", node.address()));
    let points = ["--pool", &pool, "--op", "read", "--depth", "1,2", "--operations", "20"];
    let micro = [&["bench", "micro"], &points[..]].concat();
    let table = call(Path::new("."), &micro);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    // There is one line, though there are two points.
    let lines: Vec<_> = table.out.lines().filter(|line| line.starts_with(&pool)).collect();
    let [line] = lines[..] else { panic!("{}", table.out) };
    assert!(line.starts_with(&format!("{pool}: {chosen}")), "{line}");
    let json = call(Path::new("."), &[&micro[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert!(json[1]["choice"].as_str().unwrap().starts_with(&chosen), "{json}");
}

#[test]
fn with_a_key_it_answers_whoever_has_it_anywhere_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let keygen = |name: &str, tenant: &str| {
        let arguments = ["keygen", "--tenant", tenant, "--out", name];
        let called = call(folder.path(), &arguments);
        let said = (called.code, called.out.as_str(), called.err.as_str());
        assert_eq!(said, (0, "", ""));
        KeyFile::read(&folder.path().join(name)).unwrap()
    };
    let (good, other) = (keygen("good.key", "7"), keygen("other.key", "7"));
    assert_eq!((good.tenant, good.key == other.key), (TenantId(7), false));
    let key = folder.path().join("good.key");
    let key = key.to_str().unwrap();
    let node = Running::start_with(&["--memory", "1MiB", "--listen", "0.0.0.0:0", "--key", key]);
    assert_eq!(node.facts_by(Some(&good)).expect("it answers").memory.0, 1 << 20);
    assert_eq!(node.facts_by(Some(&other)), None);
    let (code, words) = node.end();
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("dropped_key=1 "), "{words}");
    // A lost key cannot be recovered.
    let again = call(folder.path(), &["keygen", "--out", "good.key"]);
    assert_eq!(again.code, 2);
    assert!(again.err.starts_with("error: good.key: is there already"), "{}", again.err);
    assert_eq!(KeyFile::read(&folder.path().join("good.key")).unwrap(), good);
    let printed = call(folder.path(), &["keygen"]);
    assert_eq!(printed.code, 0);
    assert!(printed.out.contains("\ntenant = 1\nkey_hex = \""), "{}", printed.out);
    let twice = ["node", "--memory", "1MiB", "--key", "good.key", "--key", "other.key"];
    let refused = call(folder.path(), &twice);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("tenant 7: is the key of"), "{}", refused.err);
}

#[test]
fn a_node_of_a_file_tells_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let made = call(folder.path(), &["keygen", "--tenant", "3", "--out", "a.key"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let text = "memory = \"1MiB\"\nlisten = \"127.0.0.1:0\"\nlog_format = \"json\"\n\
                metrics_listen = \"127.0.0.1:0\"\n[[tenant]]\nname = \"a\"\nkey_file = \"a.key\"\n";
    let file = folder.path().join("node.toml");
    std::fs::write(&file, text).unwrap();
    // The flag overrides the file.
    let file = file.to_str().unwrap();
    let node = Running::start_with(&["--config", file, "--memory", "2MiB"]);
    let metrics = node.metrics().expect("it has metrics");
    let key = KeyFile::read(&folder.path().join("a.key")).unwrap();
    assert_eq!(node.facts_by(Some(&key)).expect("it answers").memory.0, 2 << 20);
    let status = ["node", "status", "--metrics-address", metrics];
    let table = call(Path::new("."), &status);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    assert!(table.out.contains(" serving\n") && table.out.contains("\n a "), "{}", table.out);
    let json = call(Path::new("."), &[&status[..], &["--format", "json"]].concat());
    let status: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&status["memory_bytes"], &status["tenants"][0]["tenant"]),
        (&(2 << 20).into(), &3.into())
    );
    let (code, words) = node.end();
    assert_eq!(code, Some(0), "{words}");
    for line in words.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["level"], "INFO", "{line}");
    }
    assert!(words.contains("\"message\":\"ended\",\"processes_left\":0"), "{words}");
}

#[test]
fn what_cannot_be_served_is_refused_in_a_line() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, says) in [
        (&["--memory", "1MiB"][..], "--key or --insecure is missing"),
        (&["--memory", "1MiB", "--insecure", "--listen", "0.0.0.0:0"], "loopback"),
        (&["--memory", "1000", "--insecure", "--listen", "127.0.0.1:0"], "whole pages of 64 KiB"),
        (&["--memory", "900TiB", "--insecure"], "are available"),
        (&["--memory", "much", "--insecure"], "--memory"),
        (&["--insecure"], "error: --memory is missing: must be whole pages, as 64GiB"),
        (&["--config", "none.toml"], "none.toml"),
        (&["status", "--metrics-address", "127.0.0.1:1"], "--metrics-address"),
        (&["--memory", "1MiB", "--insecure", "--listen", &taken], &taken),
    ] {
        let called = call(Path::new("."), &[&["node"], arguments].concat());
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{arguments:?}");
        assert!(called.err.contains(says), "{arguments:?}: {}", called.err);
        let refused = called.err.lines().next().unwrap();
        assert!(refused.starts_with("error: "), "{arguments:?}: {}", called.err);
    }
}
