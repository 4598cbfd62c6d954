//! `include/ethermem.h` matches this crate. With `UPDATE_GOLDEN=1` in the environment, the test
//! rewrites it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use cbindgen::{Builder, Config, Language, RenameRule};

const HEADER: &str = "/*
 * Remote memory behind one interface, on any fabric: the C library of ethermem.
 *
 * Generated from crates/capi, whose tests hold it to that.
 *
 * Every call that can fail returns an ethermem_status and gives its results through pointers.
 * rerror() has the line that says what failed, where, and what is allowed.
 *
 * The last argument of an operation is `pending`. NULL waits for the end of the operation. A place
 * for a handle makes it asynchronous: the call returns at once, and rpoll or rtest give its status,
 * also where it failed at once. What an asynchronous operation stores (what `to`, `before`,
 * `address` and the like point to) is stored in the rpoll or rtest that ends it, and must last
 * until then. What it takes (`from`, `key`, `arguments`) is not used after the call.
 *
 * Any machine thread may use any handle. Operations of one ethermem_thread on the same page (4 KiB)
 * keep their order where one of them writes; others may be done in any order.
 *
 * A sim: pool has a time of its own, which goes on in operations that are waited for, in rpoll and
 * in rtest, and stands still otherwise.
 */";
const SOURCES: [&str; 6] = ["status", "handles", "pool", "memory", "atomic", "operation"];
const NAMES: [(&str, &str); 22] = [
    ("Status", "ethermem_status"),
    ("PoolHandle", "ethermem_pool"),
    ("ThreadHandle", "ethermem_thread"),
    ("PendingHandle", "ethermem_pending"),
    ("StoreHandle", "ethermem_store"),
    ("ClientHandle", "ethermem_client"),
    ("INDEX_NODE", "ETHERMEM_INDEX_NODE"),
    ("INDEX_CLIENT", "ETHERMEM_INDEX_CLIENT"),
    ("Segment", "ethermem_segment"),
    ("ChaseRequest", "ethermem_chase"),
    ("FilterRequest", "ethermem_filter"),
    ("PERMISSION_READ", "ETHERMEM_READ"),
    ("PERMISSION_WRITE", "ETHERMEM_WRITE"),
    ("COMPARISON_LESS", "ETHERMEM_LESS"),
    ("COMPARISON_EQUAL", "ETHERMEM_EQUAL"),
    ("COMPARISON_GREATER", "ETHERMEM_GREATER"),
    ("MODIFY_ADD", "ETHERMEM_MODIFY_ADD"),
    ("MODIFY_SWAP", "ETHERMEM_MODIFY_SWAP"),
    ("MODIFY_AND", "ETHERMEM_MODIFY_AND"),
    ("MODIFY_OR", "ETHERMEM_MODIFY_OR"),
    ("MODIFY_XOR", "ETHERMEM_MODIFY_XOR"),
    ("Operation", "ethermem_operation"),
];

fn generated(crate_folder: &Path) -> String {
    let mut config = Config {
        language: Language::C,
        header: Some(HEADER.to_owned()),
        include_guard: Some("ETHERMEM_H".to_owned()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stdint.h"].map(str::to_owned).to_vec(),
        cpp_compat: true,
        line_length: 100,
        tab_width: 4,
        ..Config::default()
    };
    config.enumeration.rename_variants = RenameRule::QualifiedScreamingSnakeCase;
    config.export.rename =
        NAMES.iter().map(|&(rust, c)| (rust.to_owned(), c.to_owned())).collect::<HashMap<_, _>>();
    let sources = SOURCES.iter().chain(&["offload", "store"]);
    let builder = sources.fold(Builder::new().with_config(config), |builder, source| {
        builder.with_src(crate_folder.join(format!("src/{source}.rs")))
    });
    let mut text = Vec::new();
    builder.generate().expect("the crate is C's").write(&mut text);
    format!("{}\n", String::from_utf8(text).unwrap().trim_end())
}

#[test]
fn the_header_is_what_the_crate_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (path, now) = (folder.join("include/ethermem.h"), generated(folder));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, now).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap();
    for (number, (kept, now)) in kept.lines().zip(now.lines()).enumerate() {
        assert_eq!(kept, now, "line {}: UPDATE_GOLDEN=1 writes it anew", number + 1);
    }
    assert_eq!(kept.len(), now.len(), "longer or shorter: UPDATE_GOLDEN=1 writes it anew");
}

/// Every C function of the library is declared, so that no file is missing from the list above, and
/// the reference names it.
#[test]
fn the_header_and_the_reference_have_every_function() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = fs::read_to_string(folder.join("include/ethermem.h")).unwrap();
    let reference = folder.join("../../docs/reference/c.md");
    let reference = fs::read_to_string(reference).unwrap();
    let mut functions = 0;
    for file in fs::read_dir(folder.join("src")).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        for declared in source.split("extern \"C\" fn ").skip(1) {
            let name = declared.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name}");
            assert!(reference.contains(&format!("`{name}`")), "{name}");
            functions += 1;
        }
    }
    assert!(functions > 30, "{functions}");
    for line in header.lines() {
        if let Some((status, _)) =
            line.trim().strip_prefix("ETHERMEM_STATUS_").and_then(|rest| rest.split_once(" = "))
        {
            assert!(reference.contains(&format!("`{status}`")), "{status}");
        }
    }
}
