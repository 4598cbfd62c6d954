//! Any text as `node.toml`: no panic, a refusal is one line, and what is read can be made settings
//! or is refused in one line, too.
#![no_main]

use std::path::Path;

use ethermem_node::NodeFile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let one_line = |line: String| assert!(!line.contains('\n'), "{line:?}");
    let mut file = match NodeFile::parse(text, Path::new("node.toml")) {
        Ok(file) => file,
        Err(refused) => return one_line(refused.to_string()),
    };
    // Files that the text names are not the fuzzer's to read.
    file.tenant.clear();
    file.offload.clear();
    let merged = file.clone().over(file);
    if let Err(refused) = merged.settings() {
        one_line(refused.to_string());
    }
});
