//! The separation of the pool from its backends: the levels of its modules, and forbidden names.

use crate::levels::Module;
use crate::{Findings, Tree, rust};

/// The modules at the root of `pool`, from the foundation up: none uses a later one.
pub const POOL_MODULES: [Module; 15] = [
    ("address", &[]),
    ("error", &["address"]),
    ("operation", &["address", "error"]),
    ("backend", &["address", "error", "operation"]),
    ("order", &["operation"]),
    ("sync", &[]),
    ("wait", &["sync"]),
    ("notify", &["wait"]),
    ("core", &["address", "backend", "error", "notify", "operation", "order"]),
    ("shared", &["backend", "core", "error", "notify", "wait"]),
    ("attempts", &["backend", "error", "notify", "shared", "wait"]),
    ("pending", &["core", "error", "notify", "operation", "shared", "wait"]),
    (
        "thread",
        &[
            "address",
            "attempts",
            "backend",
            "core",
            "error",
            "notify",
            "operation",
            "pending",
            "shared",
        ],
    ),
    ("tasks", &["attempts", "notify", "shared", "wait"]),
    (
        "pool",
        &["attempts", "backend", "core", "error", "operation", "shared", "tasks", "thread", "wait"],
    ),
];

/// The modules at the root of `ethermem`, from the foundation up.
pub const FACADE_MODULES: [Module; 7] = [
    ("open_error", &[]),
    ("scheme", &["open_error"]),
    ("node", &[]),
    ("backends", &["node", "open_error", "scheme"]),
    ("table", &["backends", "scheme"]),
    ("page", &["scheme"]),
    ("pool", &["backends", "open_error", "scheme", "table"]),
];

/// Names of backends and of the crates below them, as parts of identifiers.
const PROTOCOLS: [&str; 12] = [
    "clio", "edm", "cxl", "dfabric", "ethernet", "rdma", "roce", "sim", "socket", "tcp", "udp",
    "url",
];

/// The code of `pool` names no protocol, no scheme, and nothing else of one backend.
#[must_use]
pub fn protocols_in_pool(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/pool/")) {
        for token in rust::tokens(file) {
            let is_name = |part: &str| PROTOCOLS.contains(&part.to_ascii_lowercase().as_str());
            if token.text.split('_').any(is_name) {
                let message = format!("`{}`: it is a backend's; `pool` knows none", token.text);
                findings.at(&file.path, token.line, message);
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::modules;

    #[test]
    fn the_edges_of_modules_make_no_circle() {
        for list in [&POOL_MODULES[..], &FACADE_MODULES] {
            for (at, (name, uses)) in list.iter().enumerate() {
                for used in *uses {
                    assert!(list[..at].iter().any(|(below, _)| below == used), "{name} {used}");
                }
            }
        }
    }

    #[test]
    fn a_module_that_uses_one_behind_it_fails() {
        let places =
            |path: &str, text: &str| modules(&Tree::from_files([(path, text)])).places().len();
        let core = "crates/pool/src/core.rs";
        assert_eq!(places(core, "use crate::order::Tracker;\n"), 0);
        assert_eq!(places(core, "use crate::pool::Pool;\n"), 1);
        assert_eq!(places("crates/pool/src/telepathy.rs", ""), 1);
        let local = "crates/ethermem/src/backends/local.rs";
        assert_eq!(places(local, "use crate::scheme::Url;\n"), 0);
        assert_eq!(places(local, "use crate::table::SCHEMES;\n"), 1);
    }

    #[test]
    fn a_protocol_in_the_pool_fails() {
        let places = |text: &str| {
            let tree = Tree::from_files([("crates/pool/src/core.rs", text)]);
            protocols_in_pool(&tree).places().len()
        };
        assert_eq!(places("use ethermem_wire::{Permissions, ProcessId};\n"), 0);
        assert_eq!(places("fn is_simulated() -> bool { true } // no udp here\n"), 0);
        assert_eq!(places("use ethermem_wire::clio::ProcessId;\n"), 1);
        assert_eq!(places("struct S { udp_port: u16 }\n"), 1);
    }
}
