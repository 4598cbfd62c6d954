//! Settings that override the text of a scenario.

use std::path::Path;

use proptest::prelude::*;

use crate::keys::{Setting, SettingError};
use crate::scenario::{Changes, Scenario};

const FABRICS: [&str; 2] = ["edm", "raw-ethernet"];
const TEXT: &str = "[fabric]\nnodes = 16\n[fabric.edm]\nchunk_bytes = 128\n";

fn parse(text: &str, settings: &[&str]) -> Result<Scenario, String> {
    let settings = settings.iter().map(|text| text.parse());
    let settings = settings.collect::<Result<_, _>>().map_err(|e: SettingError| e.to_string())?;
    let changes = Changes { settings, trace: None };
    Scenario::parse_with(text, Path::new("s.toml"), &changes, &FABRICS)
        .map_err(|error| error.to_string())
}

#[test]
fn a_setting_is_as_if_the_file_said_so() {
    let cases: [(&[&str], &str); 6] = [
        (&["fabric.nodes=32"], "[fabric]\nnodes = 32\n[fabric.edm]\nchunk_bytes = 128\n"),
        (&["fabric.link_gbps = 25"], "[fabric]\nnodes = 16\nlink_gbps = 25\nedm.chunk_bytes = 128"),
        (
            &["fabric.edm.policy=fcfs"],
            "fabric = {nodes = 16, edm = {chunk_bytes = 128, policy = 'fcfs'}}",
        ),
        (
            &["run.seed=7", "run.seed=8"],
            "fabric = {nodes = 16, edm.chunk_bytes = 128}\nrun.seed = 8",
        ),
        (&["fabric.edm.chunk_bytes="], "[fabric]\nnodes = 16\n"),
        (&["fabric.edm={chunk_bytes=64}"], "[fabric]\nnodes = 16\nedm.chunk_bytes = 64\n"),
    ];
    for (settings, same) in cases {
        assert_eq!(parse(TEXT, settings), parse(same, &[]), "{settings:?}");
        assert!(parse(same, &[]).is_ok(), "{same}");
    }
}

#[test]
fn errors_say_whether_the_file_or_a_setting_is_wrong() {
    let cases: [(&str, &[&str], &str); 9] = [
        (TEXT, &["fabric.nodes=1"], "--set: fabric.nodes = 1: must be 2 to 4096"),
        (TEXT, &["run.seed=1", "fabric.nodes=1.5"], "--set: fabric.nodes = 1.5: must be 2 to 4096"),
        ("[fabric]\nnodes = 1\n", &["run.seed=1"], "s.toml:2: fabric.nodes = 1: must be 2 to 4096"),
        ("[fabric]\nnodes = ", &["run.seed=1"], "s.toml:2: not TOML: "),
        ("", &["run.seed=1"], "s.toml: empty: a scenario has at least one key"),
        (TEXT, &["fabric.nods=1"], "--set: fabric.nods: unknown key: must be one of kind, "),
        (TEXT, &["fabric.nods="], "--set: fabric.nods: unknown key: "),
        (TEXT, &["fabric=3"], "--set: fabric = 3: must be a table [fabric]"),
        (TEXT, &["fabric.edm={chunk_bytes = 1}"], "--set: fabric.edm.chunk_bytes = 1: must be "),
    ];
    for (text, settings, error) in cases {
        let found = parse(text, settings).unwrap_err();
        assert!(found.starts_with(error), "{settings:?}: {found}");
    }
}

#[test]
fn what_is_no_setting_is_refused_when_it_is_made() {
    for text in ["", "nodes", "=1", ".=1", "a..b=1", "a b=1", "a=\"x", "a=[1", "a=1\nb=2", "a=x'y"]
    {
        let error = text.parse::<Setting>().expect_err(text).to_string();
        assert!(error.contains("must be ") || error.ends_with("is not TOML"), "{error}");
        assert!(!error.contains('\n'), "{error:?}");
    }
}

proptest! {
    #[test]
    fn no_setting_panics(text in "\\PC*", key in "[a-z_.]{0,12}", value in "\\PC{0,12}") {
        let _ = parse(TEXT, &[&text]);
        let _ = parse(TEXT, &[&format!("{key}={value}")]);
        let _ = parse(TEXT, &[&format!("fabric.nodes={value}")]);
    }
}
