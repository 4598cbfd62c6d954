//! Manual pages, completions and the reference of all commands, made from clap's tree.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command_page::{Entry, page};
use crate::support::{call, root};

fn printed(arguments: &[&str]) -> String {
    let called = call(Path::new("."), arguments);
    assert_eq!((called.code, called.err.as_str()), (0, ""), "{arguments:?}");
    called.out
}

#[test]
fn the_reference_of_all_commands_is_what_the_program_writes() {
    let path = root().join("docs/reference/commands.md");
    let entries: Vec<Entry> = serde_json::from_str(&printed(&["command-tree"])).unwrap();
    let page = page(&entries);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap();
    let hint = "UPDATE_GOLDEN=1 cargo test -p ethermem-cli --test cli manual writes it";
    assert!(page == known, "docs/reference/commands.md is not what the program says: {hint}");
}

/// Completions of a shell for `words`, the last of which is incomplete.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    let ask = r#"source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _ethermem ethermem "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ask, "bash"]).arg(script).args(words);
    let output = bash.output().expect("bash");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("ethermem");
    fs::write(&script, printed(&["completions", "bash"])).unwrap();
    assert_eq!(completed(&script, &["ethermem", "comp"]), ["compare", "completions"]);
    assert_eq!(completed(&script, &["ethermem", "sim", "--perf"]), ["--perfetto"]);
    let values = completed(&script, &["ethermem", "sim", "--format", "j"]);
    assert_eq!(values, ["json"]);
    assert_eq!(completed(&script, &["ethermem", "bench", "y"]), ["ycsb"]);
    // Commands for tests are hidden from people.
    assert!(!completed(&script, &["ethermem", ""]).contains(&"command-tree".to_owned()));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(printed(&["completions", shell]).contains("perfetto"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page_that_man_renders() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("share/man1");
    let shown = out.to_str().unwrap();
    printed(&["man", "--out", shown]);
    let tree: Vec<serde_json::Value> = serde_json::from_str(&printed(&["command-tree"])).unwrap();
    assert!(tree.len() > 20, "{} commands", tree.len());
    let mut rendered = 0;
    for entry in tree {
        let words = entry["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let name = ["ethermem"].into_iter().chain(words).collect::<Vec<_>>().join("-");
        let page = out.join(format!("{name}.1"));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}");
        let Ok(man) = Command::new("man").arg("-l").arg(&page).env("MANPAGER", "cat").output()
        else {
            continue;
        };
        let (out, err) =
            (String::from_utf8_lossy(&man.stdout), String::from_utf8_lossy(&man.stderr));
        assert!(man.status.success() && err.is_empty(), "{name}: {err}");
        assert!(out.contains("SYNOPSIS") && out.contains(&name), "{name}: {out}");
        rendered += 1;
    }
    if rendered == 0 {
        println!("SKIPPED: rendering of manual pages: man is not installed");
    }
}

#[test]
fn the_command_is_installed_with_its_pages_and_completions() {
    let folder = tempfile::tempdir().unwrap();
    let destination = format!("DESTDIR={}", folder.path().display());
    let words = ["install-command-built", &destination, "PREFIX=/usr"];
    let mut make = Command::new("make");
    make.current_dir(root()).args(words).arg(format!("COMMAND={}", env!("CARGO_BIN_EXE_ethermem")));
    let made = make.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for file in [
        "bin/ethermem",
        "share/man/man1/ethermem.1",
        "share/man/man1/ethermem-bench-ycsb.1",
        "share/bash-completion/completions/ethermem",
        "share/fish/vendor_completions.d/ethermem.fish",
        "share/zsh/site-functions/_ethermem",
    ] {
        let file = folder.path().join("usr").join(file);
        assert!(file.metadata().is_ok_and(|found| found.len() > 0), "{}", file.display());
    }
}
