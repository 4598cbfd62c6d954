//! Programs in C against `ethermem node`, a process of its own, with a key.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::programs::{C, compile, ran, sanitized, skip, storm};

/// `(module (memory (export "memory") 1) (func (export "run") (result i32)
/// (loop $e (br $e)) (i32.const 0)))`
const ENDLESS: [u8; 55] = [
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // The head.
    1, 5, 1, 0x60, 0, 1, 0x7f, // A type: nothing to i32.
    3, 2, 1, 0, // A function of it.
    5, 3, 1, 0, 1, // A memory of a page.
    7, 16, 2, 6, b'm', b'e', b'm', b'o', b'r', b'y', 2, 0, 3, b'r', b'u', b'n', 0,
    0, // Exports.
    10, 11, 1, 9, 0, 3, 0x40, 12, 0, 11, 0x41, 0, 11, // The function's code.
];

/// The command, if the workspace's tests have built it.
fn ethermem() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap().join("ethermem");
    if !built.is_file() {
        skip("C programs at a memory node: `ethermem` is not built: cargo build -p ethermem-cli");
        return None;
    }
    Some(built)
}

/// A node that ends with the test.
struct Node {
    child: Child,
    address: String,
}

impl Node {
    fn start(command: &Path, folder: &Path) -> Node {
        for name in ["a.key", "b.key"] {
            let mut keygen = Command::new(command);
            ran(keygen.current_dir(folder).args(["keygen", "--tenant", "5", "--out", name]));
        }
        fs::write(folder.join("endless.wasm"), ENDLESS).unwrap();
        let text = "memory = \"16MiB\"\npage = \"4KiB\"\nlisten = \"127.0.0.1:0\"\n\
            [[tenant]]\nname = \"a\"\nkey_file = \"a.key\"\noffloads_max = 2\n\
            offload_fuel_max = 1000000\n[offload.endless]\nfile = \"endless.wasm\"\n";
        fs::write(folder.join("node.toml"), text).unwrap();
        let mut node = Command::new(command);
        node.current_dir(folder).args(["node", "--config", "node.toml"]);
        let mut child = node.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").expect("it starts").to_owned();
        Node { child, address }
    }

    fn url(&self, folder: &Path, key: &str) -> String {
        let key = folder.join(key);
        format!("udp://{}?key={}&timeout_ms=4500", self.address, key.display())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The node may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_memory_node_is_a_pool_for_c_too() {
    let Some(command) = ethermem() else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = Node::start(&command, folder.path());
    let (url, other) = (node.url(folder.path(), "a.key"), node.url(folder.path(), "b.key"));
    let program = |source: &str| sanitized(source).unwrap_or_else(|| compile(&C, source, &[]));
    let module = folder.path().join("endless.wasm");
    let node = program("crates/capi/tests/c/node.c");
    ran(Command::new(node).args([&url, &other]).arg(module));
    let litmus = program("crates/capi/tests/c/litmus.c");
    ran(Command::new(litmus).args([&url, "threads"]));
    let store = program("crates/capi/tests/c/store.c");
    ran(Command::new(store).arg(&url));
    storm(&url);
}

/// The test's node on raw Ethernet, on the loopback.
#[test]
fn machine_threads_share_a_pool_over_raw_ethernet() {
    let Some(command) = ethermem() else { return };
    let place = format!("lo:{}", 10_000 + std::process::id() % 50_000);
    let words = ["node", "--memory", "16MiB", "--page", "4KiB", "--insecure", "--ring", &place];
    let (out, err) = (Stdio::piped(), Stdio::piped());
    let mut child = Command::new(command).args(words).stdout(out).stderr(err).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut node = Node { child, address: line.trim_end().to_owned() };
    if node.address.is_empty() {
        let mut why = String::new();
        node.child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        assert!(why.contains("CAP_NET_RAW"), "{why}");
        return skip("C pools over raw Ethernet: a ring needs CAP_NET_RAW");
    }
    storm(&format!("ring://{place}?timeout_ms=4500"));
}
