//! Compiles the library that is preloaded into programs, which therefore has no standard library
//! and a target of its own kind.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=preload");
    for shared in ["line", "ledger", "offer"] {
        println!("cargo::rerun-if-changed=src/{shared}.rs");
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let status = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"))
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "ethermem_rack"])
        .args(["-C", "panic=abort", "-C", "opt-level=3", "-C", "strip=symbols"])
        .args(["-C", "link-arg=-nostartfiles", "-C", "codegen-units=1"])
        .args(["--target", &target, "-o"])
        .arg(folder.join("preload.so"))
        .arg("preload/preload.rs")
        .status()
        .expect("the Rust compiler runs");
    assert!(status.success(), "the preloaded library (preload/preload.rs) does not compile");
}
