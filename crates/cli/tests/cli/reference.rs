//! `docs/reference/cli.md` and the help agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::node::Running;
use crate::support::{call, root};

fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 3);
    flags.map(str::to_owned).collect()
}

/// Arguments of a command, from the part of its help that lists them.
fn listed(command: &[&str]) -> BTreeSet<String> {
    let called = call(Path::new("."), &[command, &["--help"]].concat());
    assert_eq!((called.code, called.err.as_str()), (0, ""));
    let options = called.out.split("\nOptions:\n").nth(1).expect("options");
    let heads = options.lines().map(str::trim_start).filter(|line| line.starts_with("--"));
    // A flag in a text may stand at the beginning of a line.
    let words = heads.map(|line| line.split_whitespace().next().expect("a flag"));
    words.map(|word| word.trim_end_matches(',').to_owned()).collect()
}

#[test]
fn every_flag_is_in_the_reference_and_every_flag_there_exists() {
    let page = fs::read_to_string(root().join("docs/reference/cli.md")).unwrap();
    for commands in [
        &["latency"][..],
        &["sim"],
        &["compare"],
        &["capacity"],
        &["sweep"],
        &["workload list", "workload show", "workload generate"],
        &["replay"],
        &["replay-lines"],
        &["fabrics"],
        &["limits"],
        &["kv"],
        &["run"],
        &["profile"],
        &["emulate"],
        &["study"],
        &["node", "node status"],
        &["doctor"],
        &["keygen"],
        &["rtl ycsb"],
        &["report"],
        &["schema"],
        &["completions"],
        &["man"],
        &["bench micro", "bench ycsb"],
    ] {
        let name = commands[0].split(' ').next().unwrap();
        let section =
            page.split("\n## ").find(|part| part.starts_with(&format!("`ethermem {name}`")));
        let section = section.unwrap_or_else(|| panic!("a section for {name}"));
        let mut exist = BTreeSet::new();
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            exist.extend(listed(&words));
        }
        assert_eq!(flags(section), exist, "{name}");
    }
}

#[test]
fn the_help_of_a_pool_lists_every_scheme() {
    for words in [&["kv", "--help"][..], &["bench", "micro", "--help"], &["run", "--help"]] {
        let help = call(Path::new("."), words).out;
        for form in ethermem::SCHEMES.iter().flat_map(|scheme| scheme.forms) {
            assert!(help.contains(form), "{words:?}: {form}");
        }
        assert!(help.contains("poll_us"), "{words:?}");
    }
}

#[test]
fn every_figure_is_in_the_guide() {
    let guide = fs::read_to_string(root().join("docs/how-to/read-a-report.md")).unwrap();
    let told = call(Path::new("."), &["report", "--figure", "?"]).err;
    let names = told.trim_end().split("must be one of ").nth(1).unwrap().split(", ");
    for name in names {
        assert!(guide.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// The memory node of the guides.
const NODE: &str = "127.0.0.1:7400";

/// The commands of the guides run in the repository, as a reader would run them.
#[test]
fn the_commands_of_the_guides_run() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "scenarios",
        "sweeps",
        "workloads",
        "workloads/traces",
        "workloads/traces/two-machines",
        "golden/figure8",
        "golden/figure6-7",
    ] {
        let target = root().join(name);
        fs::create_dir_all(folder.path().join(name)).unwrap();
        for entry in fs::read_dir(target).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                continue;
            }
            fs::copy(entry.path(), folder.path().join(name).join(entry.file_name())).unwrap();
        }
    }
    let node = Running::start(&["--memory", "64MiB"]);
    let mut ran = 0;
    for guide in [
        "getting-started",
        "run-a-scenario",
        "compare-fabrics",
        "sweep",
        "read-a-report",
        "measure-a-pool",
        "replay-a-trace",
    ] {
        let text = fs::read_to_string(root().join(format!("docs/how-to/{guide}.md"))).unwrap();
        for (language, code) in blocks(&text) {
            match language {
                "toml" => fs::write(folder.path().join("rack.toml"), code).unwrap(),
                "csv" => fs::write(folder.path().join("trace.csv"), code).unwrap(),
                "sh" => {
                    // The guides' node, which one of them starts.
                    let code = code.replace("\\\n", " ").replace(NODE, node.address());
                    ran += run(folder.path(), &code);
                }
                _ => {}
            }
        }
    }
    assert!(ran >= 16, "{ran} commands");
}

#[test]
fn the_guide_to_fabrics_quotes_its_example() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (guide, example) = (read("docs/add-a-fabric.md"), read("examples/round_robin_fabric.rs"));
    let hosts = read("crates/fabrics/src/raw_ethernet.rs");
    let quoted: Vec<&str> = blocks(&guide)
        .into_iter()
        .filter(|&(language, _)| language == "rust")
        .map(|b| b.1)
        .collect();
    assert_eq!(quoted.len(), 3);
    for code in quoted {
        let real = example.contains(code) || hosts.contains(code);
        assert!(real, "neither in the example nor in what it calls:\n{code}");
    }
    let lines = example.lines().count();
    assert!(guide.contains(&format!("takes {lines}\nlines")), "{lines} lines");
    assert!(lines < 150, "{lines} lines");
}

fn run(folder: &Path, code: &str) -> usize {
    let lines = code.lines().filter(|line| line.starts_with("ethermem "));
    let mut ran = 0;
    for line in lines {
        let line = line.split(" | ").next().unwrap().trim_end();
        let words = shlex::split(line).unwrap();
        let mut arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        if arguments[0] == "report" {
            arguments.push("--quick");
        } else if arguments[0] == "replay" {
            arguments.extend(["--messages", "500"]);
        } else if arguments[0] != "bench"
            && arguments.iter().any(|word| word.ends_with(".toml"))
            && arguments.len() > 2
        {
            // The test runs fewer messages, unless they are a trace's or a program's.
            let is_program = line.contains("scenarios/program-");
            if !is_program && !arguments.contains(&"--trace") {
                arguments.extend(["--set", "workload.messages=200"]);
            }
        }
        let called = call(folder, &arguments);
        assert_eq!(called.code, 0, "{line}: {}", called.err);
        ran += 1;
    }
    ran
}

fn blocks(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split("```").collect();
    parts.iter().skip(1).step_by(2).filter_map(|part| part.split_once('\n')).collect()
}
