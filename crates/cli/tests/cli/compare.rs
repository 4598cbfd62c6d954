//! `ethermem compare` on the points of a scenario.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{call, root};

/// Two points and three fabrics, with published values.
pub(crate) const TINY: &str = "\
[fabric]
nodes = 8
[workload]
messages = 400
[compare]
fabrics = ['edm', 'cxl', 'raw-ethernet']
values = 'values.csv'
[compare.experiments.writes]
points = ['load=0.3', 'load=0.9']
[compare.experiments.writes.vary]
workload.read_fraction = [0]
workload.load = [0.3, 0.9]
";
const VALUES: &str =
    "# from nowhere\nexperiment,point,edm,cxl\nwrites,load=0.3,1.1,1.5\nwrites,load=0.9,1.5,1.4\n";

pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    fs::write(folder.path().join("values.csv"), VALUES).unwrap();
    folder
}

pub(crate) fn out(folder: &Path, arguments: &[&str]) -> String {
    let called = call(folder, arguments);
    assert_eq!(called.code, 0, "{arguments:?}: {}", called.err);
    called.out
}

#[test]
fn without_a_terminal_its_lines_say_how_far_it_is_and_what_is_left() {
    let folder = folder();
    let called = call(folder.path(), &["compare", "tiny.toml", "--threads", "1"]);
    let lines: Vec<&str> = called.err.lines().collect();
    // Three fabrics at two points, and the rivals again with the load in their own blocks.
    let runs = 3 * 2 + 2 * 2;
    assert_eq!(lines.len(), runs, "{}", called.err);
    for (ended, line) in (1..).zip(lines) {
        let left = line.strip_prefix(&format!("{ended} of {runs} runs, ")).expect(line);
        let seconds = left.strip_suffix(" s left").expect(line);
        assert!(seconds.parse::<u32>().is_ok() && (ended < runs || seconds == "0"), "{line}");
    }
}

/// Compares with `golden/compare/NAME`, or writes it under `UPDATE_GOLDEN`.
fn snapshot(name: &str, text: &str) {
    let path = root().join("golden/compare").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap();
    assert_eq!(known, text, "{}: see golden/compare/README.md", path.display());
}

#[test]
fn a_tiny_comparison_is_as_it_was() {
    let folder = folder();
    let compare = ["compare", "tiny.toml"];
    let one = out(folder.path(), &[&compare[..], &["--threads", "1"]].concat());
    snapshot("tiny.txt", &one);
    assert_eq!(one, out(folder.path(), &[&compare[..], &["--threads", "3"]].concat()));
    let seed = out(folder.path(), &[&compare[..], &["--seed", "2"]].concat());
    assert_ne!(one, seed);
}

#[test]
fn every_rival_is_beside_edm_at_every_load() {
    let compare = ["compare", "scenarios/load-64b.toml", "--format", "json"];
    let few = ["--set", "workload.messages=200"];
    let rows = out(&root(), &[&compare[..], &few].concat());
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let all = |name: &str| -> BTreeSet<&str> {
        rows.iter().map(|row| row[name].as_str().unwrap()).collect()
    };
    assert_eq!((all("experiment").len(), all("point").len()), (3, 5));
    let known = out(&root(), &["fabrics", "--format", "json"]);
    let known: Vec<Value> = serde_json::from_str(&known).unwrap();
    let bounds = ["ideal", "output-queued", "edm-artifact"];
    let rivals = known.iter().map(|fabric| fabric["fabric"].as_str().unwrap());
    let rivals: BTreeSet<&str> = rivals.filter(|name| !bounds.contains(name)).collect();
    assert_eq!(all("fabric"), rivals);
    assert_eq!(rows.len(), 3 * 5 * rivals.len());
}

/// Output of a part of figure 8 by the published method, with changed definitions.
fn published_with(part: &[&str], changed: &[&str]) -> Vec<Value> {
    let set = changed.iter().flat_map(|setting| ["--set", setting]);
    let words = ["compare", "--method", "published", "--format", "json"];
    let words: Vec<&str> = words.into_iter().chain(part.iter().copied()).chain(set).collect();
    serde_json::from_str(&out(&root(), &words)).unwrap()
}

/// Points at which a fabric is not below another one whose published value is over a tenth higher,
/// and the other one's name.
fn not_under(lower: &str, rows: &[Value]) -> Vec<String> {
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row["fabric"] == lower) {
        for other in rows.iter().filter(|other| other["point"] == row["point"]) {
            let is_published_under = number(row, "published") * 1.1 < number(other, "published");
            if is_published_under && number(row, "slowdown_mean") >= number(other, "slowdown_mean")
            {
                let [point, fabric] = ["point", "fabric"].map(|name| other[name].as_str().unwrap());
                found.push(format!("{point} {fabric}"));
            }
        }
    }
    found
}

/// The pairs in another order that `docs/figure8.md` explains: the definition causes the order.
#[test]
fn definitions_are_why_writes_come_in_another_order() {
    let writes = ["scenarios/figure8a.toml", "--experiment", "write_only", "--fabrics"];
    let writes = [&writes[..], &["cxl,pfabric,pfc,dctcp"]].concat();
    let not_under = |lower, changed: &[&str]| not_under(lower, &published_with(&writes, changed));
    let all = ["0.2 pfabric", "0.2 dctcp", "0.4 pfabric", "0.4 pfc", "0.4 dctcp", "0.6 dctcp"];
    assert_eq!(not_under("cxl", &[]), all.map(|pair| format!("load={pair}")));
    let own = "compare.published.fabrics.cxl.write_slots=[28,1]";
    assert_eq!(not_under("cxl", &[own]), ["load=0.4 pfc"]);
    let alone = "compare.published.denominator=alone";
    assert_eq!(not_under("cxl", &[alone]), ["load=0.4 pfc"]);
    assert_eq!(not_under("cxl", &[alone, "fabric.pfc.ack_messages=1"]), [""; 0]);
    assert_eq!(not_under("pfabric", &[]), [""; 0]);
    let ahead = "fabric.pfabric.acknowledgements_first=true";
    assert_eq!(not_under("pfabric", &[ahead]), ["load=0.6 dctcp", "load=0.9 dctcp"]);
}

/// The applications: with the published buffer, and no congestion control, PFC is behind IRD and
/// pFabric, as published.
#[test]
fn buffer_and_congestion_control_are_why_pfc_is_ahead_of_others_on_an_application() {
    let applications = ["scenarios/figure8b.toml", "--fabrics", "ird,pfabric,pfc"];
    let alone = [
        "fabric.pfc.ecn_min_bytes=999999999",
        "fabric.pfc.ecn_max_bytes=1000000000",
        "fabric.pfc.thresholds=dynamic",
        "fabric.pfc.buffer_bytes=230000000",
    ];
    let ours = published_with(&applications, &[]);
    let theirs = published_with(&applications, &alone);
    for lower in ["ird", "pfabric"] {
        assert_eq!(not_under(lower, &ours), ["sparksql pfc"], "{lower}");
        assert_eq!(not_under(lower, &theirs), [""; 0], "{lower}");
    }
}

/// Pairs of fabrics at one point whose published values differ by over a tenth, and the number of
/// pairs in the published order.
fn ordered(rows: &[(String, f64, f64)]) -> (usize, usize) {
    let (mut kept, mut pairs) = (0, 0);
    for (place, ours, published) in rows {
        let at_it = rows.iter().filter(|(other, ..)| other == place);
        for (_, higher_ours, _) in at_it.filter(|(.., higher)| *higher > published * 1.1) {
            pairs += 1;
            kept += usize::from(ours < higher_ours);
        }
    }
    (kept, pairs)
}

/// All values by the published method beside the published ones. EDM and its receiver-driven rival
/// differ from them by at most a tenth; the fabrics' order is that of `docs/figure8.md`.
#[test]
fn the_fabrics_are_where_figure_8_has_them_and_in_the_order_that_we_say() {
    let mut text = String::new();
    for (scenario, points, order) in [("figure8a", 13, (158, 174)), ("figure8b", 5, (79, 91))] {
        let file = root().join(format!("scenarios/{scenario}.toml"));
        let compare = ["compare", file.to_str().unwrap(), "--method", "published"];
        let rows = out(&root(), &[&compare[..], &["--format", "json"]].concat());
        let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
        assert_eq!(rows.len(), 7 * points, "{scenario}");
        let mut places = Vec::new();
        for row in rows {
            let number = |name: &str| row[name].as_f64().unwrap();
            let (ours, published) = (number("slowdown_mean"), number("published"));
            let [experiment, point, fabric] =
                ["experiment", "point", "fabric"].map(|name| row[name].as_str().unwrap());
            text += &format!("{experiment} {point} {fabric} {ours:.3} {published:.2}\n");
            places.push((format!("{experiment} {point}"), ours, published));
            let differs = ours / published - 1.0;
            let near = differs.abs() < 0.1 || !["edm", "ird"].contains(&fabric);
            assert!(near, "{experiment}, {point}, {fabric}: {ours}, {published}");
        }
        assert_eq!(ordered(&places), order, "{scenario}");
        let said = format!("{} of {} pairs", order.0, order.1);
        let page = fs::read_to_string(root().join("docs/figure8.md")).unwrap();
        assert!(page.contains(&said), "docs/figure8.md: {said}");
    }
    snapshot("figure8.txt", &text);
}

/// The method of the values of [`TINY`], on two of its fabrics.
pub(crate) const METHOD: &str = "\
[compare.experiments.writes.vary_published]
workload.read_fraction = [0.5]
workload.load = [0.2, 0.8]
[compare.published]
messages = 300
seeds = 2
[compare.published.fabrics.edm]
set = ['fabric.propagation_ns=5']
write_slots = [500, 1]
request_slots = [400, 0]
response_slots = [200, 1]
[compare.published.fabrics.cxl]
write_slots = [100, 1]
response_slots = [100, 1]
stop_finished = 200
why = 'by hand'
";

const CXL_RUNS_IDEAL: &str = "compare.published.fabrics.cxl.runs=ideal";

#[test]
fn a_tiny_comparison_by_a_published_method_is_as_it_was() {
    let folder = folder();
    fs::write(folder.path().join("tiny.toml"), format!("{TINY}{METHOD}")).unwrap();
    let compare = ["compare", "tiny.toml", "--method", "published", "--fabrics", "edm,cxl"];
    let one = out(folder.path(), &[&compare[..], &["--threads", "1"]].concat());
    snapshot("published.txt", &one);
    assert_eq!(one, out(folder.path(), &[&compare[..], &["--threads", "3"]].concat()));
    let end = ["--set", "compare.published.stop=end", "--format", "json"];
    let rows: Value =
        serde_json::from_str(&out(folder.path(), &[&compare[..], &end].concat())).unwrap();
    assert_eq!(rows[0]["unfinished"], 0, "run to the end");
    assert_eq!(rows[0]["slowdown_mean_by_seed"].as_array().unwrap().len(), 2);
    assert!(rows[1]["unfinished"].as_u64().unwrap() > 0, "over after 200 flows all the same");
    let instead = ["--set", CXL_RUNS_IDEAL, "--format", "json"];
    let instead: Value =
        serde_json::from_str(&out(folder.path(), &[&compare[..], &instead].concat())).unwrap();
    assert_eq!(instead[1]["fabric"], "cxl", "under its own name");
    let told = out(folder.path(), &[&compare[..], &["--set", CXL_RUNS_IDEAL]].concat());
    assert!(told.contains("\ncxl: ideal is run, by whose rules it was published\n"), "{told}");
    assert!(instead[1]["slowdown_mean"].as_f64() < rows[1]["slowdown_mean"].as_f64());
    for (arguments, error) in [
        (
            &["--set", "compare.published.fabrics.cxl.runs=idle"][..],
            "--set: compare.published.fabrics.cxl.runs = 'idle': must be one of edm, ",
        ),
        (&["--method", "published"][..], "--method published: compare.published.fabrics.raw-eth"),
        (&["--set", "compare.published.stop=soon"], "--set: compare.published.stop = 'soon': "),
        (
            &["--set", "compare.published.fabrics.edm.write_slots=[1]"],
            "--set: compare.published.fabrics.edm.write_slots = [1]: must be [slots, ",
        ),
    ] {
        let called = call(folder.path(), &[&["compare", "tiny.toml"], arguments].concat());
        assert!(called.err.starts_with(&format!("error: {error}")), "{}", called.err);
    }
    fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    let called = call(folder.path(), &compare);
    let error = "error: --method published: the scenario has no table [compare.published]";
    assert!(called.err.starts_with(error), "{}", called.err);
}

#[test]
fn the_same_messages_and_as_many_as_fill_as_much() {
    let folder = folder();
    let rows: Value =
        serde_json::from_str(&out(folder.path(), &["compare", "tiny.toml", "--format", "json"]))
            .unwrap();
    let rows = rows.as_array().unwrap();
    let named: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["point"].as_str().unwrap(), row["fabric"].as_str().unwrap()))
        .collect();
    let fabrics = ["edm", "cxl", "raw-ethernet"];
    let points = ["load=0.3", "load=0.9"];
    let expected: Vec<(&str, &str)> =
        points.iter().flat_map(|point| fabrics.map(|fabric| (*point, fabric))).collect();
    assert_eq!(named, expected);
    assert_eq!(rows[3]["own_blocks"], Value::Null, "the scenario counts in the blocks of edm");
    let frames = &rows[5];
    // A frame has 15 blocks where EDM has ten of data and one of control on the same link.
    assert!((frames["load_asked"].as_f64().unwrap() - 0.9 * 15.0 / 11.0).abs() < 1e-9);
    assert_eq!(frames["published"], Value::Null);
    assert_eq!(rows[4]["published"], 1.4);
    // The two runs of a row are those of the commands that repeat them.
    let point = ["--set", "workload.read_fraction=0", "--set", "workload.load=0.9"];
    let sim = ["sim", "tiny.toml", "--fabric", "raw-ethernet", "--format", "json"];
    for (run, more) in
        [("same_messages", &[][..]), ("own_blocks", &["--set", "fabric.kind=raw-ethernet"])]
    {
        let alone = out(folder.path(), &[&sim[..], &point, more].concat());
        let alone: Value = serde_json::from_str(&alone).unwrap();
        assert_eq!(alone["kinds"], frames[run]["kinds"], "{run}");
    }
    let asked = ["compare", "tiny.toml", "--fabrics", "ideal,edm", "--format", "json"];
    let asked: Value = serde_json::from_str(&out(folder.path(), &asked)).unwrap();
    assert_eq!((&asked[0]["fabric"], &asked[1]["fabric"]), (&"ideal".into(), &"edm".into()));
}

#[test]
fn bad_comparisons_are_one_line() {
    let folder = folder();
    fs::write(folder.path().join("plain.toml"), "[fabric]\nnodes = 8\n").unwrap();
    fs::write(folder.path().join("t.csv"), "arrival_ns,kind,compute,memory,bytes\n").unwrap();
    let replaced = |from: &str, to: &str| TINY.replace(from, to);
    for (text, arguments, error) in [
        (
            String::new(),
            &["compare", "plain.toml"][..],
            "--fabrics is not set, and the scenario has no table [compare]: must be names",
        ),
        (replaced("'cxl'", "'emd'"), &["compare", "c.toml"], "c.toml:6: compare.fabrics = ['edm'"),
        (
            replaced("[0.3, 0.9]", "[]"),
            &["compare", "c.toml"],
            "c.toml:12: vary.workload.load: an empty axis: ",
        ),
        (
            replaced("values.csv", "gone.csv"),
            &["compare", "c.toml"],
            "gone.csv: cannot be read: No such file",
        ),
        (
            replaced("values.csv", "tiny.toml"),
            &["compare", "c.toml"],
            "tiny.toml: header [fabric]: must be experiment,point",
        ),
        (
            String::from(TINY),
            &["compare", "c.toml", "--trace", "t.csv"],
            "--trace t.csv: the scenario's table [compare] has messages of its own",
        ),
        (
            String::from(TINY),
            &["compare", "c.toml", "--set", "compare.fabrics=['emd']"],
            "--set: compare.fabrics = ['emd']: must be different names of edm, ",
        ),
    ] {
        fs::write(folder.path().join("c.toml"), text).unwrap();
        let called = call(folder.path(), arguments);
        assert!(called.err.starts_with(&format!("error: {error}")), "{}", called.err);
        assert_eq!((called.code, called.err.lines().count()), (2, 1), "{arguments:?}");
    }
}
