//! Every rule on this repository, one test per rule.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ethermem_tidy::{Findings, Tree};

static TREE: LazyLock<Tree> = LazyLock::new(|| {
    let tree = Tree::open(&root()).expect("the repository can be read");
    if !tree.is_tracked() {
        say("tidy: git does not list this folder; every file in it is looked at");
    }
    tree
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Prints past the test runner's capture, which would swallow a warning from a passing test.
fn say(line: &str) {
    // A closed stderr must not fail a rule.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn hold(findings: &Findings) {
    for warning in &findings.warnings {
        say(&format!("warning: {warning}"));
    }
    if let Some(reason) = &findings.skipped {
        say(&format!("SKIPPED: {reason}"));
    }
    let lines: Vec<String> = findings.violations.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} to tidy up:\n{}", lines.len(), lines.join("\n"));
}

macro_rules! rules {
    ($($test:ident: $rule:path;)*) => {
        $(#[test] fn $test() { hold(&$rule(&TREE)); })*
    };
}

rules! {
    lines_fit_100_columns: ethermem_tidy::text::line_width;
    whitespace_is_clean: ethermem_tidy::text::whitespace;
    files_are_short: ethermem_tidy::text::file_length;
    nothing_is_left_unfinished: ethermem_tidy::text::leftovers;
    no_path_of_one_machine: ethermem_tidy::text::machine_paths;
    functions_are_short: ethermem_tidy::functions::length;
    no_banned_call: ethermem_tidy::banned::calls;
    pure_crates_are_pure: ethermem_tidy::banned::world_in_pure_crates;
    no_order_of_a_hash: ethermem_tidy::banned::hash_order;
    attributes_hide_nothing: ethermem_tidy::banned::attributes;
    modules_are_named_by_content: ethermem_tidy::modules::names;
    no_dead_file: ethermem_tidy::modules::dead_files;
    crates_keep_their_level: ethermem_tidy::levels::dependencies;
    modules_keep_their_edges: ethermem_tidy::levels::modules;
    the_pool_names_no_protocol: ethermem_tidy::module_edges::protocols_in_pool;
    libraries_are_explained: ethermem_tidy::levels::libraries;
    crates_say_what_they_are: ethermem_tidy::layout::crate_docs;
    rust_parses: ethermem_tidy::layout::rust_parses;
    one_module_a_file: ethermem_tidy::hardware::one_module_a_file;
    ports_say_their_direction: ethermem_tidy::hardware::port_names;
    hardware_is_tested: ethermem_tidy::hardware::modules_are_tested;
    files_are_small: ethermem_tidy::layout::large_files;
    links_lead_somewhere: ethermem_tidy::docs::links;
    pages_are_chapters: ethermem_tidy::docs::contents;
    docs_are_reachable: ethermem_tidy::docs::reachable;
    scenarios_are_documented: ethermem_tidy::docs::scenarios;
    components_are_named: ethermem_tidy::prose::words;
    first_sentences_are_whole: ethermem_tidy::prose::first_sentences;
    pages_fit_100_columns: ethermem_tidy::prose::page_width;
}

#[test]
fn history_has_no_large_blob() {
    hold(&ethermem_tidy::history::large_blobs(&root()));
}

#[test]
fn flags_of_the_docs_exist() {
    // `cargo test --workspace` puts the binary beside the folder of the test binaries.
    let test = std::env::current_exe().expect("a running test has a path");
    let profile = test.ancestors().nth(2).expect("a test binary lies in <profile>/deps");
    let binary = profile.join("ethermem").with_extension(std::env::consts::EXE_EXTENSION);
    hold(&ethermem_tidy::cli::flags(&TREE, &root(), &binary));
}
