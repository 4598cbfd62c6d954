//! Operations that users bring to `ethermem node`: from its operator, and from a client.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ethermem::{Address, Error, Permissions, Pool, Region, Stop, Thread};
use serde_json::Value;

use crate::node::Running;
use crate::support::{call, root};

const RW: Permissions = Permissions::READ_WRITE;
const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles the guide's module by the guide's commands; `None` if the target is not installed.
fn histogram(folder: &Path) -> Option<PathBuf> {
    let printed =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let printed = printed.ok().filter(|printed| printed.status.success());
    let libraries = printed.map(|printed| String::from_utf8(printed.stdout).unwrap());
    let installed = libraries.is_some_and(|path| Path::new(path.trim()).is_dir());
    if !installed {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the module of a page: no target {TARGET}");
        return None;
    }
    let page = std::fs::read_to_string(root().join("docs/how-to/bring-an-operation.md")).unwrap();
    let code = page.split_once("```rust,ignore\n").expect("the module").1;
    let source = folder.join("histogram.rs");
    std::fs::write(&source, code.split_once("\n```").expect("it ends").0).unwrap();
    let module = folder.join("histogram.wasm");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", TARGET, "-O", "-C", "strip=symbols"]);
    rustc.args(["--crate-type", "cdylib"]).arg(&source).arg("-o").arg(&module);
    let compiled = rustc.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(module)
}

fn counts(thread: &Thread, start: Address, bytes: u64) -> Result<Vec<u64>, Error> {
    let arguments = [start.0, bytes].map(u64::to_le_bytes).concat();
    let found = thread.offload("histogram", start, &arguments, &[]).wait()?;
    let words = found.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    Ok(words.collect())
}

fn filled(thread: &Thread, bytes: u64) -> Region {
    let region = thread.alloc(bytes, RW).wait().unwrap();
    let data: Vec<u8> = (0..bytes).map(|at| (at % 7) as u8).collect();
    region.write(0, &data).wait().unwrap();
    region
}

#[test]
fn the_pages_module_counts_at_the_node_what_a_client_would_have_to_fetch() {
    const BYTES: u64 = 700_000;
    let folder = tempfile::tempdir().unwrap();
    let Some(module) = histogram(folder.path()) else { return };
    let named = format!("histogram={}", module.display());
    let node = Running::start(&["--memory", "4MiB", "--offload", &named]);
    let pool = Pool::open(&format!("udp://{}", node.address())).unwrap();
    let thread = pool.thread().unwrap();
    let region = filled(&thread, BYTES);
    let found = counts(&thread, region.address(), BYTES).unwrap();
    let mut expected = [0; 256];
    expected[..7].fill(BYTES / 7);
    assert_eq!(found, expected);
    let error = counts(&thread, Address(1 << 40), 8).unwrap_err();
    assert!(matches!(error, Error::Unmapped { address, .. } if address.0 == 1 << 40), "{error}");
    let error = thread.offload("histogram", region.address(), &[1], &[]).wait().unwrap_err();
    let line = "offload `histogram`: must be an address and a length, eight octets each";
    assert_eq!(error.to_string(), line);
    assert!(matches!(counts(&thread, region.address(), u64::MAX), Err(Error::Unmapped { .. })));
}

/// A module of a few instructions, so that the test needs no compiler for modules.
fn endless() -> Vec<u8> {
    wat::parse_str(
        "(module (memory (export \"memory\") 1)
           (func (export \"run\") (result i32) (loop $e (br $e)) (i32.const 0)))",
    )
    .unwrap()
}

fn load(thread: &Thread, module: &[u8], name: &str) -> Result<Vec<u8>, Error> {
    let region = thread.alloc(module.len() as u64, RW).wait()?;
    region.write(0, module).wait()?;
    let mut arguments = region.address().0.to_le_bytes().to_vec();
    arguments.extend((module.len() as u32).to_le_bytes());
    arguments.extend([0; 4]);
    arguments.extend(name.as_bytes());
    thread.offload("load", region.address(), &arguments, &[]).wait()
}

/// The node's status, once `is_so`: the node counts slightly later than it responds.
fn status_once(node: &Running, is_so: impl Fn(&Value) -> bool) -> Value {
    let address = node.metrics().expect("it was asked for");
    let arguments = ["node", "status", "--metrics-address", address, "--format", "json"];
    let asked = Instant::now();
    loop {
        let status: Value = serde_json::from_str(&call(Path::new("."), &arguments).out).unwrap();
        if is_so(&status) {
            return status;
        }
        assert!(asked.elapsed() < Duration::from_secs(60), "{status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_tenant_that_may_loads_a_module_and_one_that_never_ends_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    for (tenant, name) in [("3", "a.key"), ("4", "b.key")] {
        let made = call(folder.path(), &["keygen", "--tenant", tenant, "--out", name]);
        assert_eq!(made.code, 0, "{}", made.err);
    }
    std::fs::write(folder.path().join("endless.wasm"), endless()).unwrap();
    let text = "memory = \"4MiB\"\nlisten = \"127.0.0.1:0\"\nmetrics_listen = \"127.0.0.1:0\"\n\
        [[tenant]]\nname = \"a\"\nkey_file = \"a.key\"\noffloads_max = 1\n\
        offload_fuel_max = 200000000\n\
        [[tenant]]\nname = \"b\"\nkey_file = \"b.key\"\n\
        [offload.endless]\nfile = \"endless.wasm\"\nfuel_max = 3000000\ntenants = [\"a\"]\n";
    let file = folder.path().join("node.toml");
    std::fs::write(&file, text).unwrap();
    let node = Running::start_with(&["--config", file.to_str().unwrap()]);
    let open = |key: &str| {
        let key = folder.path().join(key);
        Pool::open(&format!("udp://{}?key={}", node.address(), key.display())).unwrap()
    };
    let (a, b) = (open("a.key"), open("b.key"));
    let (a, b) = (a.thread().unwrap(), b.thread().unwrap());
    let stopped = |name: &str, units: u64| Error::OffloadStopped {
        name: name.to_owned(),
        why: Stop::Fuel,
        problem: format!("must take at most {units} units"),
    };
    let start = Address(4096);
    let ended = a.offload("endless", start, &[], &[]).wait();
    assert_eq!(ended, Err(stopped("endless", 3_000_000)));
    assert!(matches!(
        b.offload("endless", start, &[], &[]).wait(),
        Err(Error::NoSuchOffload { .. })
    ));
    assert_eq!(load(&a, &endless(), "mine"), Ok(Vec::new()));
    assert!(matches!(load(&a, &endless(), "second"), Err(Error::Offload { .. })));
    assert!(matches!(load(&b, &endless(), "mine"), Err(Error::NoSuchOffload { .. })));
    // While it runs, the node serves other requests.
    let calling = a.offload("mine", start, &[], &[]);
    let region = filled(&b, 4096);
    assert_eq!(region.read(0, 3).wait().unwrap(), [0, 1, 2]);
    assert_eq!(calling.wait(), Err(stopped("mine", 200_000_000)));
    assert!(matches!(b.offload("mine", start, &[], &[]).wait(), Err(Error::NoSuchOffload { .. })));
    let status = status_once(&node, |status| status["offloads_stopped"]["fuel"] == 2);
    let fuel = status["tenants"][0]["offload_fuel"].as_u64().unwrap();
    assert!(fuel >= 203_000_000, "{status}");
}

#[test]
fn modules_that_cannot_be_loaded_are_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("no.wasm"), b"no module").unwrap();
    std::fs::write(folder.path().join("good.wasm"), endless()).unwrap();
    let config = |text: &str| {
        std::fs::write(folder.path().join("node.toml"), text).unwrap();
        ["--config", "node.toml"]
    };
    let node = |arguments: &[&str]| {
        let always = ["node", "--memory", "1MiB", "--insecure", "--listen", "127.0.0.1:0"];
        let called = call(folder.path(), &[&always[..], arguments].concat());
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{arguments:?}");
        called.err
    };
    for (arguments, says) in [
        (["--offload", "x"], "must be NAME=FILE"),
        (["--offload", "x=none.wasm"], "error: offload \"x\": none.wasm: No such file"),
        (["--offload", "x=no.wasm"], "error: offload \"x\": "),
        (["--offload", "a b=good.wasm"], "must be 1 to 64 of a-z"),
        (["--offload", "chase=good.wasm"], "offload \"chase\": it is the node's own: must be"),
        (["--offload", "filter=good.wasm"], "offload \"filter\": it is the node's own"),
        (["--offload", "load=good.wasm"], "offload \"load\": it is the node's own"),
        (["--offload", "key-value=good.wasm"], "offload \"key-value\": it is the node's own"),
    ] {
        let refused = node(&arguments);
        assert!(refused.contains(says), "{arguments:?}: {refused}");
    }
    let twice = node(&["--offload", "x=good.wasm", "--offload", "x=no.wasm"]);
    assert_eq!(twice, "error: offload \"x\": it is given twice: each name must be given once\n");
    for (text, says) in [
        ("[offload.x]\nfile = \"none.wasm\"\n", "none.wasm: No such file"),
        ("[offload.x]\nfile = \"good.wasm\"\ntenants = [\"c\"]\n", "tenant \"c\": must be"),
        ("[offload.chase]\nfile = \"good.wasm\"\n", "\"chase\": it is the node's own"),
        ("[offload.x]\nfuel = 3\n", "node.toml:2: unknown field `fuel`"),
    ] {
        let refused = node(&config(text));
        assert!(refused.contains(says), "{text}: {refused}");
    }
}
