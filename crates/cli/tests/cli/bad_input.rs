//! Bad input: one line that says what, where and what is allowed; exit code 2; no file left.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::support::{call, called, command, root};
use tempfile::TempDir;

/// A folder with a valid scenario and the test's files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.toml"), "[workload]\nmessages = 1000\n").unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn refused(folder: &Path, arguments: &[&str], line: &str) {
    let before = names(folder);
    let called = call(folder, arguments);
    assert_eq!(called.err, format!("error: {line}\n"), "{arguments:?}");
    assert_eq!((called.code, called.out.as_str()), (2, ""), "{arguments:?}");
    assert_eq!(names(folder), before, "{arguments:?}");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn scenario_refused(text: &str, line: &str) {
    let folder = folder(&[("s.toml", text)]);
    refused(folder.path(), &["sim", "s.toml"], line);
    refused(folder.path(), &["compare", "s.toml", "--fabrics", "edm,ideal"], line);
}

#[test]
fn scenarios() {
    scenario_refused(
        "[run]\nsede = 1\n",
        "s.toml:2: run.sede: unknown key: must be one of seed, warmup_fraction, \
         cooldown_fraction, events_max",
    );
    scenario_refused(
        "[fabric]\nnodes = 16\n[workload]\npattern = \"incast\"\nincast_receiver = 16\n",
        "s.toml:5: workload.incast_receiver = 16: must be 0 to 15",
    );
    for load in ["0", "1.01", "-0.5"] {
        scenario_refused(
            &format!("[workload]\nload = {load}\n"),
            &format!("s.toml:2: workload.load = {load}: must be over 0 to 1"),
        );
    }
    scenario_refused(
        "[fabric.edm]\nchunk_bytes = 32\n",
        "s.toml:2: fabric.edm.chunk_bytes = 32: must be a multiple of 64 from 64 to 1024",
    );
    scenario_refused("", "s.toml: empty: a scenario has at least one key, such as fabric.kind");
}

#[test]
fn files_that_cannot_be_read() {
    let folder = folder(&[("empty.csv", "")]);
    fs::create_dir(folder.path().join("d.toml")).unwrap();
    fs::create_dir(folder.path().join("d.csv")).unwrap();
    let folder = folder.path();
    for (arguments, line) in [
        (["sim", "no.toml"], "no.toml: cannot be read: No such file or directory"),
        (["sim", "d.toml"], "d.toml: cannot be read: Is a directory"),
        (["sim", "--trace=no.csv"], "no.csv: cannot be read: No such file or directory"),
        (["sim", "--trace=d.csv"], "d.csv: cannot be read: Is a directory"),
        (
            ["sim", "--trace=good.toml"],
            "good.toml: its extension names no format: must be .csv, .parquet, or any with \
             --trace-format",
        ),
    ] {
        refused(folder, &arguments, line);
    }
}

#[test]
fn traces() {
    let header = "arrival_ns,kind,compute,memory,bytes\n";
    for (rows, line) in [
        ("0,read,0,1,64\nx,read,0,1,64\n", "t.csv:3: arrival_ns = x: "),
        ("5,read,0,1,64\n4,read,0,1,64\n", "t.csv:3: arrival 4.000 ns after 5.000 ns: "),
        ("0,read,0,144,64\n", "t.csv:2: memory = 144: must be 0 to 143"),
        ("0,rad,0,1,64\n", "t.csv:2: kind = rad: must be "),
        ("0,read,0,1\n", "t.csv:2: "),
    ] {
        let folder = folder(&[("t.csv", &format!("{header}{rows}"))]);
        let out = ["--messages", "out.parquet"];
        let before = names(folder.path());
        let called = call(folder.path(), &[&["sim", "--trace", "t.csv"], &out[..]].concat());
        assert!(called.err.starts_with(&format!("error: {line}")), "{}", called.err);
        assert_eq!((called.code, called.err.lines().count()), (2, 1), "{}", called.err);
        assert_eq!(names(folder.path()), before);
    }
    let folder = folder(&[("t.txt", "0,2,0,1,64,0,5\n"), ("empty.csv", "")]);
    let called = call(folder.path(), &["sim", "--trace=t.txt", "--trace-format=edm-artifact"]);
    assert!(called.err.starts_with("error: t.txt:1: type = 2: must be "), "{}", called.err);
    assert_eq!(called.code, 2);
    let called = call(folder.path(), &["sim", "--trace", "empty.csv"]);
    assert!(called.err.starts_with("error: empty.csv: empty: "), "{}", called.err);
    assert_eq!(called.code, 2);
}

#[test]
fn arguments() {
    let folder = folder(&[]);
    let folder = folder.path();
    let fabrics = call(folder, &["fabrics", "--format", "json"]).out;
    let fabrics: serde_json::Value = serde_json::from_str(&fabrics).unwrap();
    let fabrics: Vec<&str> =
        fabrics.as_array().unwrap().iter().map(|f| f["fabric"].as_str().unwrap()).collect();
    let known = fabrics.join(", ");
    refused(
        folder,
        &["sim", "good.toml", "--fabric", "token-ring"],
        &format!("invalid value 'token-ring' for '--fabric <NAME>': must be one of {known}"),
    );
    refused(
        folder,
        &["compare", "good.toml", "--fabrics", "edm,token-ring"],
        &format!("invalid value 'token-ring' for '--fabrics <NAME,NAME>': must be one of {known}"),
    );
    refused(
        folder,
        &["latency", "--link-gbps", "30"],
        "invalid value '30' for '--link-gbps <GBPS>': must be one of 10, 25, 40, 100, 200, 400",
    );
    for (arguments, line) in [
        (
            &["sim", "good.toml", "--seed", "-3"][..],
            "invalid value '-3' for '--seed <N>': must be a whole number from 0",
        ),
        (
            &["sim", "good.toml", "--seed", "18446744073709551616"],
            "invalid value '18446744073709551616' for '--seed <N>': must be a smaller whole \
             number",
        ),
        (
            &["compare", "good.toml", "--fabrics", "edm", "--threads", "0"],
            "invalid value '0' for '--threads <N>': must be 1 to 1024",
        ),
        (
            &["keygen", "--tenant", "65536"],
            "invalid value '65536' for '--tenant <NUMBER>': must be 0 to 65535",
        ),
        (
            &["bench", "micro", "--pool", "local:", "--bytes", "64,x"],
            "invalid value 'x' for '--bytes <BYTES,BYTES>': must be a whole number of bytes, \
             or a size such as 64KiB",
        ),
        (
            &["node", "--memory", "-1"],
            "invalid value '-1' for '--memory <SIZE>': must be a size such as 64MiB",
        ),
    ] {
        refused(folder, arguments, line);
    }
    refused(folder, &["sim"], "the following required arguments were not provided: <SCENARIO>");
    refused(
        folder,
        &["workload", "show", "hadup"],
        "hadup: no such file: must be files and hadoop, spark, sparksql, graphlab, memcached, \
         web-search",
    );
}

#[test]
fn settings() {
    let folder = folder(&[("t.csv", "arrival_ns,kind,compute,memory,bytes\n0,read,0,1,64\n")]);
    let folder = folder.path();
    let set =
        |setting: &str, line: &str| refused(folder, &["sim", "good.toml", "--set", setting], line);
    set("fabric.nodes=1", "--set: fabric.nodes = 1: must be 2 to 4096");
    set(
        "run.sede=1",
        "--set: run.sede: unknown key: must be one of seed, warmup_fraction, cooldown_fraction, \
         events_max",
    );
    set(
        "fabric.edm.policy=lifo",
        "--set: fabric.edm.policy = 'lifo': must be one of \"srpt\", \"srpt-published\", \
         \"srpt-classes\", \"fcfs\", \"auto\"",
    );
    set(
        "nodes",
        "invalid value 'nodes' for '--set <KEY=VALUE>': nodes: must be KEY=VALUE, such as \
         fabric.nodes=16",
    );
    refused(
        folder,
        &["sim", "--trace", "t.csv", "--set", "workload.load=0.5"],
        "--set: workload.load: it changes nothing: allowed only without --trace",
    );
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = folder(&[("file", "")]);
    let folder = folder.path();
    refused(
        folder,
        &["sim", "good.toml", "--messages", "missing/m.parquet"],
        "cannot write missing/m.parquet: No such file or directory (os error 2)",
    );
    refused(
        folder,
        &["report", "--quick", "--out", "file"],
        "cannot write file: is not a folder: must be one, or a new name",
    );
    refused(
        folder,
        &["compare", "good.toml", "--fabrics", "edm,ideal", "--perfetto", "t.pftrace"],
        "--perfetto is of one fabric: use `ethermem sim` with --fabric NAME --perfetto FILE",
    );
    refused(
        folder,
        &["workload", "generate", "good.toml", "--out", "missing/t.csv"],
        "cannot write missing/t.csv: No such file or directory (os error 2)",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = folder(&[]);
    refused(
        folder.path(),
        &["sim", "good.toml", "--messages", "/dev/full"],
        "cannot write /dev/full: No space left on device (os error 28)",
    );
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(folder.path(), &["fabrics"]).stdout(full).output().unwrap();
    let called = called(&output);
    let line = "error: cannot write the standard output: No space left on device (os error 28)\n";
    assert_eq!((called.code, called.err.as_str()), (2, line));
}

#[test]
fn every_scenario_of_the_repository_is_good() {
    for entry in fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let file = path.to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let called = if text.contains("\nkind = \"program\"\n") {
            // A program has the messages that it has.
            call(&root(), &["sim", file])
        } else if text.contains("\n[figure]\n") {
            let few = ["--operations", "100", "--records", "100", "--clients", "1"];
            call(&root(), &[&["bench", "ycsb", file][..], &few].concat())
        } else {
            call(&root(), &["sim", file, "--set", "workload.messages=100"])
        };
        assert_eq!(called.code, 0, "{file}: {}", called.err);
        assert!(!called.err.contains("error"), "{file}: {}", called.err);
    }
}

#[test]
fn the_rtl_refuses_what_it_was_not_built_for() {
    let folder = folder(&[]);
    let rtl = ["latency", "--from", "rtl"];
    let line = "--from rtl with edm at 100 Gb/s: must be edm at 25 Gb/s";
    refused(folder.path(), &[&rtl[..], &["--link-gbps", "100"]].concat(), line);
    let line = "--from rtl with --bytes 257: must be 1 to 256, one chunk";
    refused(folder.path(), &[&rtl[..], &["--bytes", "257"]].concat(), line);
    let line = "--fst waves.fst with --from model: must be --from rtl";
    refused(folder.path(), &["latency", "--fst", "waves.fst"], line);
    let (home, line) = (root(), "; must be a file that can be written");
    let nowhere = ["--fst", "no-such-folder/waves.fst"];
    let called = call(&home, &[&rtl[..], &nowhere].concat());
    assert!(called.code == 2 && called.err.contains(line), "{}", called.err);
    let called = call(&home, &[&["rtl", "ycsb", "--workload", "A"][..], &nowhere].concat());
    assert!(called.code == 2 && called.err.contains(line), "{}", called.err);
    let line = "--rtl .: no rtl/flow/system.py there; must be the root of the repository";
    refused(folder.path(), &["rtl", "ycsb", "--workload", "A", "--rtl", "."], line);
}

/// A flag's name in another command is also accepted: only its value is wrong.
#[test]
fn flags_of_one_meaning_are_known_by_either_name() {
    let folder = folder(&[]);
    for (arguments, flags) in [
        (&["sim", "good.toml"][..], ["--fabric", "--fabrics"]),
        (&["compare", "good.toml"], ["--fabrics", "--fabric"]),
        (&["latency"], ["--fabric", "--fabrics"]),
        (&["replay", "no.parquet"], ["--fabric", "--fabrics"]),
        (&["node"], ["--metrics-listen", "--metrics-address"]),
        (&["node", "status"], ["--metrics-address", "--metrics-listen"]),
    ] {
        let said = flags.map(|flag| {
            let called = call(folder.path(), &[arguments, &[flag, "?"]].concat());
            assert_eq!(called.code, 2, "{arguments:?} {flag}");
            called.err
        });
        assert!(said[0].contains(flags[0]), "{said:?}");
        assert_eq!(said[0], said[1]);
    }
}

/// Built-in files are found from any folder, with a note; an existing file takes precedence.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_rack_that_cannot_be_has_one_line() {
    let node = "[[node]]\nname = \"a\"\naddress = \"127.0.0.1\"\n";
    let good = format!("name = \"lab\"\n{node}nics = [\"lo\"]\n");
    let without = format!("name = \"lab\"\n{node}");
    let small = format!("pool_bytes = 4096\n{good}");
    let files = [("good.rack", &*good), ("without.rack", &*without), ("small.rack", &*small)];
    let folder = folder(&files);
    let run = |arguments: &[&str], line: &str| {
        refused(folder.path(), &[&["rack", "run"], arguments].concat(), line);
    };
    let node = ["--config", "good.rack", "--node", "b", "--", "true"];
    run(&node, "node `b`: must be one of a");
    run(
        &["--config", "without.rack", "--", "true"],
        "without.rack: node \"a\" has no NIC: `nics` must name an interface",
    );
    run(
        &["--config", "small.rack", "--", "true"],
        "small.rack: pool_bytes = 4096: must be at least 528384, the memory of one connection",
    );
    run(&["--config", "good.rack", "--", "no-such"], "no-such: no such program");
    let code = ["rack", "run", "--config", "good.rack", "--report", "r.json", "--", "sh", "-c"];
    let called = call(folder.path(), &[&code[..], &["exit 7"]].concat());
    assert_eq!((called.code, called.err.as_str()), (7, ""));
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    assert!(report.contains("\"is_closed\": true"), "{report}");
}

#[test]
fn scenarios_of_the_repository_are_found_outside_of_it() {
    let folder = folder(&[("ycsb.toml", "[workload]\nmessages = 0\n")]);
    let few = ["--set", "workload.messages=1000"];
    for name in ["microbenchmark-64b", "scenarios/microbenchmark-64b.toml"] {
        let called = call(folder.path(), &[&["sim", name][..], &few].concat());
        let from = "scenarios/microbenchmark-64b.toml of the program";
        assert_eq!(called.err, format!("note: {name}: no such file; it is {from}\n"));
        assert_eq!(called.code, 0);
    }
    let line = "ycsb.toml:2: workload.messages = 0: ";
    assert!(call(folder.path(), &["sim", "ycsb.toml"]).err.contains(line));
}

#[test]
fn lists_have_each_value_once() {
    let folder = folder(&[]);
    for (arguments, line) in [
        (&["compare", "good.toml", "--fabrics", "edm,cxl,edm"][..], "--fabrics: `edm`"),
        (&["compare", "good.toml", "--fabric", "edm", "--fabrics", "edm"], "--fabrics: `edm`"),
        (&["capacity", "--workloads", "64,1024,64"], "--workloads: `64`"),
        (&["replay", "t.parquet", "--fabric", "cxl,cxl"], "--fabric: `cxl`"),
        (&["replay-lines", "t.parquet", "--cache", "0,0"], "--cache: `0`"),
        (&["bench", "ycsb", "--pool", "local:", "--workload", "A,B,A"], "--workload: `A`"),
        (&["study", "--gbps", "40,40", "--", "true"], "--gbps: `40`"),
    ] {
        let line = format!("{line} is given twice: must be given once");
        refused(folder.path(), arguments, &line);
    }
}

#[test]
fn a_word_that_is_not_utf_8_is_shown() {
    let folder = folder(&[]);
    let mut started = command(folder.path(), &["sim", "good.toml", "--fabric"]);
    let told = called(&started.arg(OsStr::from_bytes(b"e\xffm")).output().unwrap());
    let line = "error: \"e\\xFFm\": must be UTF-8 where it is no path\n";
    assert_eq!((told.code, told.err.as_str()), (2, line));
}

/// Every output replaces its file: the other output or the input would be gone without a word.
#[test]
fn an_output_is_no_other_output_and_no_input() {
    let sweep = "scenario = 'good.toml'\n[vary]\nworkload.load = [0.2]\n";
    let trace = "arrival_ns,source,destination,kind,size_bytes\n0,0,1,write,64\n";
    let folder = folder(&[("s.toml", sweep), ("t.csv", trace), ("b", "an older result\n")]);
    let folder = folder.path();
    fs::hard_link(folder.join("good.toml"), folder.join("hard.toml")).unwrap();
    std::os::unix::fs::symlink("good.toml", folder.join("soft.toml")).unwrap();
    fs::create_dir(folder.join("sub")).unwrap();
    for (arguments, what) in [
        ("sim good.toml --messages a --perfetto a", "--messages a: is also --perfetto"),
        ("sim good.toml --messages a --perfetto sub/../a", "--messages a: is also --perfetto"),
        ("sim good.toml --messages ./b --perfetto b", "--messages ./b: is also --perfetto"),
        ("profile --out p --report p -- true", "--out p: is also --report"),
        ("sim good.toml --messages good.toml", "--messages good.toml: is the scenario"),
        ("sim good.toml --messages hard.toml", "--messages hard.toml: is the scenario"),
        ("sim good.toml --perfetto soft.toml", "--perfetto soft.toml: is the scenario"),
        (
            "workload generate good.toml --out good.toml --trace-format csv",
            "--out good.toml: is the scenario",
        ),
        ("sim --trace t.csv --messages t.csv", "--messages t.csv: is also --trace"),
        ("sweep s.toml --out s.toml", "--out s.toml: is the sweep"),
        ("replay t.csv --out t.csv", "--out t.csv: is a trace"),
        (
            "emulate --latency-from t.csv --report t.csv -- true",
            "--report t.csv: is also --latency-from",
        ),
        (
            "emulate --out new --report new/results.json -- true",
            "a page of --out new/results.json: is also --report",
        ),
        (
            "rack run --config good.toml --report good.toml -- true",
            "--report good.toml: is also --config",
        ),
    ] {
        let texts =
            || ["good.toml", "s.toml", "t.csv", "b"].map(|name| fs::read(folder.join(name)));
        let before = texts().map(Result::unwrap);
        let words: Vec<&str> = arguments.split(' ').collect();
        refused(folder, &words, &format!("{what}: must be another file"));
        assert_eq!(texts().map(Result::unwrap), before, "{arguments}");
    }
    // A device loses nothing.
    let twice = ["sim", "good.toml", "--messages", "/dev/null", "--perfetto", "/dev/null"];
    let called = call(folder, &twice);
    assert_eq!(called.code, 0, "{}", called.err);
}
