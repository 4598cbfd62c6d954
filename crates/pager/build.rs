//! Compiles the agent, which is preloaded into programs and therefore has no standard library and
//! a target of its own kind.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=agent");
    println!("cargo::rerun-if-changed=src/protocol.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let status = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"))
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "ethermem_agent"])
        .args(["-C", "panic=abort", "-C", "opt-level=3", "-C", "strip=symbols"])
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-Wl,-e,ethermem_agent_enter"])
        .args(["--target", &target, "-o"])
        .arg(folder.join("agent.so"))
        .arg("agent/agent.rs")
        .status()
        .expect("the Rust compiler runs");
    assert!(status.success(), "the agent (agent/agent.rs) does not compile");
}
