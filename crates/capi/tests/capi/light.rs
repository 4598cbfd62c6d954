//! The light library, `make capi-light`: it reaches memory nodes, and has no simulator.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem_node::NodeOptions;
use ethermem_units::Bytes;

use crate::programs::ran;

/// Limit of crates in a Rust program's library, including itself and macros.
const CRATES_MAX: usize = 40;
/// Limit of crates in the C library, which also has the key-value store and the table of handles.
/// Two of them are the cache of a pool.
const C_CRATES_MAX: usize = 44;
/// Limit in bytes of the shared library without symbols.
const STRIPPED_BYTES_MAX: u64 = 8_000_000;
const LIGHT: [&str; 5] = ["-p", "ethermem-capi", "--no-default-features", "--locked", "--offline"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.current_dir(root());
    command
}

/// The crates, each with its version, that a build with these arguments compiles.
fn crates(words: &[&str]) -> BTreeSet<String> {
    let mut tree = cargo();
    tree.args(["tree", "-e", "normal", "--prefix", "none", "--locked", "--offline"]).args(words);
    let tree = String::from_utf8(ran(&mut tree).stdout).unwrap();
    let named = tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
    named.filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_client_of_memory_nodes_is_made_of_few_crates() {
    let rust = ["-p", "ethermem", "--no-default-features", "--features", "remote"];
    let c = ["-p", "ethermem-capi", "--no-default-features"];
    for (words, most) in [(&rust[..], CRATES_MAX), (&c, C_CRATES_MAX)] {
        let crates = crates(words);
        assert!(crates.len() <= most, "{}: {crates:#?}", crates.len());
        let has = |name: &str| crates.iter().any(|found| found.split(' ').next() == Some(name));
        assert!(has("ethermem-udp"), "{crates:#?}");
        for heavy in ["ethermem-sim", "ethermem-wasm", "parquet", "maud", "wasmtime"] {
            assert!(!has(heavy), "{heavy} in {crates:#?}");
        }
    }
}

#[test]
fn a_program_of_the_light_library_reads_from_a_memory_node() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("light");
    let build = ["build", "--profile", "quick", "--lib", "--target-dir"];
    ran(cargo().args(build).arg(&folder).args(LIGHT));
    let built = folder.join("quick");
    let shared = built.join("libethermem_capi.so");
    let stripped = folder.join("stripped.so");
    ran(Command::new("strip").arg("-o").arg(&stripped).arg(&shared));
    let bytes = fs::metadata(&stripped).unwrap().len();
    assert!(bytes <= STRIPPED_BYTES_MAX, "{bytes} B");

    let program = folder.join("hello");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(root().join("crates/capi/include")).arg(root().join("examples/hello.c"));
    compiler.arg("-o").arg(&program).arg(built.join("libethermem_capi.a"));
    ran(compiler.args(["-lpthread", "-ldl", "-lm"]));

    let started = ethermem_node::start(&NodeOptions::in_clear(Bytes(8 << 20)));
    let mut server = started.unwrap().server;
    let url = format!("udp://{}", server.address().unwrap());
    std::thread::spawn(move || server.run(Duration::from_millis(1), &AtomicBool::new(false)));
    for url in [url.as_str(), "local:"] {
        let said = String::from_utf8(ran(Command::new(&program).arg(url)).stdout).unwrap();
        assert!(said.starts_with(&format!("{url}: hello in ")), "{said}");
    }
    let refused = Command::new(&program).arg("sim:edm?nodes=2").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let line = String::from_utf8(refused.stderr).unwrap();
    let expected = "hello: scheme `sim`: this build leaves it out: build with the feature `sim`\n";
    assert_eq!(line, expected);
}
