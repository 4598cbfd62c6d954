use super::*;
use crate::scenario::check_scenario;
use proptest::prelude::*;

#[test]
fn a_fraction_of_a_node_is_refused() {
    let refused = parse("[fabric]\nnodes = 9.0\n").map_err(|error| error.to_string());
    assert_eq!(refused, Err("s.toml:2: fabric.nodes = 9.0: must be 2 to 4096".to_owned()));
}

#[test]
fn bad_values_are_refused_with_line_key_found_and_allowed() {
    let cases = [
        ("[fabric]\nnodes = 1\n", "s.toml:2: fabric.nodes = 1: must be 2 to 4096"),
        ("[fabric]\nnodes = 4097\n", "s.toml:2: fabric.nodes = 4097: must be 2 to 4096"),
        ("[fabric]\nnodes = -1\n", "s.toml:2: fabric.nodes = -1: must be 2 to 4096"),
        ("[fabric]\nnodes = \"9\"\n", "s.toml:2: fabric.nodes = \"9\": must be 2 to 4096"),
        (
            "[fabric]\nlink_gbps = 30\n",
            "s.toml:2: fabric.link_gbps = 30: must be one of 10, 25, 40, 100, 200, 400",
        ),
        (
            "[fabric]\nkind = \"roce\"\n",
            "s.toml:2: fabric.kind = \"roce\": must be one of \"edm\", \"raw-ethernet\"",
        ),
        (
            "[fabric]\npropagation_ns = -0.1\n",
            "s.toml:2: fabric.propagation_ns = -0.1: must be 0 to 1000000",
        ),
        (
            "[fabric]\npcs_clock_ns = 0\n",
            "s.toml:2: fabric.pcs_clock_ns = 0: must be 0.001 to 1000",
        ),
        ("fabric = 3\n", "s.toml:1: fabric = 3: must be a table [fabric]"),
        (
            "\n# c\n[fabric.edm]\n\n\n\nchunk_bytes = 32\n",
            "s.toml:7: fabric.edm.chunk_bytes = 32: must be a multiple of 64 from 64 to 1024",
        ),
        (
            "[fabric.edm]\nchunk_bytes = 100\n",
            "s.toml:2: fabric.edm.chunk_bytes = 100: must be a multiple of 64 from 64 to 1024",
        ),
        (
            "[fabric.edm]\nnotifications_max = 0\n",
            "s.toml:2: fabric.edm.notifications_max = 0: must be 1 to 8",
        ),
        (
            "[fabric.edm]\npolicy = \"sjf\"\n",
            "s.toml:2: fabric.edm.policy = \"sjf\": must be one of \"srpt\", \"srpt-published\", \
             \"srpt-classes\", \"fcfs\", \"auto\"",
        ),
        (
            "[fabric.edm]\nbatching = 1\n",
            "s.toml:2: fabric.edm.batching = 1: must be one of true, false",
        ),
        (
            "[background]\nframe_bytes = 63\n",
            "s.toml:2: background.frame_bytes = 63: must be 64 to 9018",
        ),
        ("[workload]\nload = 1.01\n", "s.toml:2: workload.load = 1.01: must be over 0 to 1"),
        ("[workload]\nload = 0\n", "s.toml:2: workload.load = 0: must be over 0 to 1"),
        ("[workload]\nload = nan\n", "s.toml:2: workload.load = nan: must be over 0 to 1"),
        ("[workload]\nload = inf\n", "s.toml:2: workload.load = inf: must be over 0 to 1"),
        (
            "[workload]\nmessage_bytes = 0\n",
            "s.toml:2: workload.message_bytes = 0: must be 1 to 1073741824",
        ),
        (
            "[workload]\nmessages = 0\n",
            "s.toml:2: workload.messages = 0: must be \"auto\", 1 to 1000000000",
        ),
        ("[run]\nwarmup_fraction = 1\n", "s.toml:2: run.warmup_fraction = 1: must be 0 to under 1"),
        ("[run]\nseed = -1\n", "s.toml:2: run.seed = -1: must be 0 to 18446744073709551615"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn thresholds_and_credits_that_cannot_be_are_refused() {
    let cases = [
        (
            "[fabric.pfc]\nthresholds = \"dynamic\"\nalpha = 0\n",
            "s.toml:3: fabric.pfc.alpha = 0: must be 0.001 to 1000",
        ),
        (
            "[fabric.pfc]\nthresholds = \"dynamic\"\nalpha = -1.5\n",
            "s.toml:3: fabric.pfc.alpha = -1.5: must be 0.001 to 1000",
        ),
        (
            "[fabric.pfc]\nalpha = 1\n",
            "s.toml:2: fabric.pfc.alpha = 1: it changes nothing: allowed only with thresholds = \
             \"dynamic\"",
        ),
        (
            "[fabric.pfc]\nthresholds = \"dynamic\"\nxoff_bytes = 1\n",
            "s.toml:3: fabric.pfc.xoff_bytes = 1: it changes nothing: allowed only with thresholds \
             = \"static\"",
        ),
        (
            "[fabric]\nnodes = 10\n[fabric.pfc]\nthresholds = \"dynamic\"\nheadroom_bytes = \
             2000\nbuffer_bytes = 21543\n",
            "s.toml:6: fabric.pfc.buffer_bytes = 21543: the headroom of the links into a switch \
             with nodes takes 20000 B of its 21543: must be at least 21544",
        ),
        (
            "[fabric]\nnodes = 16\ntopology = \"leaf-spine\"\nleaf_spine.rack_nodes = 4\n\
             pfc.thresholds = \"dynamic\"\nleaf_spine.propagation_ns = 100000\n",
            "s.toml: fabric.pfc.buffer_bytes is not set: the headroom of the links into a switch \
             with nodes takes 10092896 B of its 7500000: must be at least 10094440",
        ),
        (
            "[fabric.cxl]\ncredits = \"shared\"\nrequest_entries = 4\n",
            "s.toml:3: fabric.cxl.request_entries = 4: it changes nothing: allowed only with \
             credits = \"by-class\"",
        ),
        (
            "[fabric.cxl]\nwrite_entries = 0\n",
            "s.toml:2: fabric.cxl.write_entries = 0: must be 1 to 65536",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn keys_that_do_not_fit_together_are_refused() {
    let cases = [
        (
            "[background]\nload = 0.2\n[workload]\nload = 0.9\n",
            "s.toml:4: workload.load = 0.9: with background.load = 0.2 more than a link carries: \
             must be a sum of at most 1",
        ),
        (
            "[background]\nload = 0.9\n",
            "s.toml: workload.load is not set: with background.load = 0.9 more than a link \
             carries: must be a sum of at most 1",
        ),
        (
            "[workload]\nread_fraction = 0.7\nrmw_fraction = 0.4\n",
            "s.toml:3: workload.rmw_fraction = 0.4: with workload.read_fraction = 0.7 more than \
             all messages: must be a sum of at most 1",
        ),
        (
            "[run]\nwarmup_fraction = 0.96\n",
            "s.toml:2: run.warmup_fraction = 0.96: with the other end nothing is left to measure: \
             must be a sum under 1",
        ),
        (
            "[workload]\nhot_spot_node = 3\n",
            "s.toml:2: workload.hot_spot_node = 3: it changes nothing: allowed only with \
             workload.pattern = \"hot-spot\"",
        ),
        (
            "[fabric]\nnodes = 8\n[workload]\npattern = \"incast\"\nincast_fan_in = 8\n",
            "s.toml:5: workload.incast_fan_in = 8: must be 1 to 7",
        ),
        (
            "[fabric]\nnodes = 8\n[workload]\npattern = \"hot-spot\"\nhot_spot_node = 8\n",
            "s.toml:5: workload.hot_spot_node = 8: must be 0 to 7",
        ),
        (
            "[workload]\nmessage_bytes = 64\nsize_cdf = \"hadoop\"\n",
            "s.toml:2: workload.message_bytes = 64: it changes nothing: allowed only without \
             workload.size_cdf",
        ),
        (
            "[workload]\nsize_cdf = \"redis.csv\"\n",
            "s.toml:2: workload.size_cdf = \"redis.csv\": no such file: must be files and \
             hadoop, spark, sparksql, graphlab, memcached, web-search",
        ),
        (
            "[workload]\nkind = \"trace\"\n",
            "s.toml: workload.trace is not set: workload.kind = \"trace\" needs a file",
        ),
        (
            "[workload]\nkind = \"trace\"\ntrace = \"t.dat\"\n",
            "s.toml:3: workload.trace = \"t.dat\": its extension names no format: must be \
             .csv, .parquet, or any with workload.trace_format",
        ),
        (
            "[workload]\nkind = \"trace\"\ntrace = \"t.csv\"\nload = 0.5\n",
            "s.toml:4: workload.load = 0.5: it changes nothing: allowed only with workload.kind = \
             \"poisson\"",
        ),
        (
            "[workload]\ntrace = \"t.csv\"\n",
            "s.toml:2: workload.trace = \"t.csv\": it changes nothing: allowed only with \
             workload.kind = \"trace\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn no_key_of_synthetic_messages_is_ignored_beside_a_trace() {
    let mut keys = 0;
    for Key { name, default, .. } in Scenario::keys(&FABRICS) {
        let Some(key) = name.strip_prefix("workload.") else {
            continue;
        };
        if ["kind", "trace", "trace_format"].contains(&key) {
            continue;
        }
        let value = match default.as_str() {
            "none" => "\"hadoop\"",
            "nodes - 1" | "3/4 of nodes" | "1/2 of nodes" => "143",
            default => default,
        };
        let text = format!("[workload]\nkind = \"trace\"\ntrace = \"t.csv\"\n{key} = {value}\n");
        let error = parse(&text).expect_err(key);
        assert!(error.contains(": it changes nothing: allowed only "), "{error}");
        keys += 1;
    }
    assert_eq!(keys, 12 + 16);
}

#[test]
fn a_table_of_no_fabric_is_refused_with_those_allowed() {
    let readers = crate::registry::FABRICS.iter().filter_map(|fabric| fabric.parameters);
    let tables: Vec<String> = readers.map(|reader| format!("[fabric.{}]", reader.table)).collect();
    let expected = format!(
        "s.toml:1: fabric.rocky: unknown key: must be one of kind, nodes, link_gbps, \
         propagation_ns, transceiver_ns, memory_access_ns, pcs_clock_ns, topology, \
         [fabric.leaf_spine], [fabric.packet], {}",
        tables.join(", ")
    );
    assert_eq!(parse("[fabric.rocky]\n"), Err(expected));
}

#[test]
fn unknown_keys_are_refused_with_those_allowed() {
    let cases = [
        (
            "[run]\nz = 1\na = 1\n",
            "s.toml:2: run.z: unknown key: must be one of seed, warmup_fraction, \
             cooldown_fraction, events_max",
        ),
        (
            "[fabric.clio]\nretry_min_us = 20\nretry_max_us = 10\n",
            "s.toml:3: fabric.clio.retry_max_us = 10: must be at least retry_min_us, 20; \
             10000 is the default",
        ),
        (
            "[fabric.cxl_ethernet]\nrate_initial_gbps = 0.5\n",
            "s.toml:2: fabric.cxl_ethernet.rate_initial_gbps = 0.5: must be at least \
             rate_min_gbps, 1",
        ),
        (
            "[fabric.cxl_ethernet]\nrate_min_gbps = 2.5\nrate_initial_gbps = 2\n",
            "s.toml:3: fabric.cxl_ethernet.rate_initial_gbps = 2: must be at least \
             rate_min_gbps, 2.5",
        ),
        (
            "[fabric.clio]\nprocesses = 1024\npages = 1025\n",
            "s.toml:3: fabric.clio.pages = 1025: must be 1 to 1024",
        ),
        (
            "[fabric.clio]\ntlb_entries = 12\n",
            "s.toml:2: fabric.clio.tlb_entries = 12: must be a power of two, 4 to 65536",
        ),
        (
            "nodes = 3\n",
            "s.toml:1: nodes: unknown key: must be one of [fabric], [background], \
             [workload], [run]",
        ),
        (
            "[background]\n\"lo\\nad\" = 3\n",
            "s.toml:2: background.lo\\nad: unknown key: must be one of load, frame_bytes, \
             arbitration",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    for (text, line) in [("[fabric]\nnodes = = 3\n", 2), ("[fabric\n", 1), ("a = 1\na = 2\n", 2)] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with(&format!("s.toml:{line}: not TOML: ")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for empty in ["", " \n\n", "# nothing\n"] {
        let expected = "s.toml: empty: a scenario has at least one key, such as fabric.kind";
        assert_eq!(parse(empty), Err(expected.to_owned()));
    }
}

#[test]
fn files_that_are_no_scenario_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let load = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        let error = Scenario::load(&path, &FABRICS).expect_err(name).to_string();
        let prefix = format!("{}/", folder.path().display());
        error.strip_prefix(&prefix).expect("the file's name first").to_owned()
    };
    let empty = "e.toml: empty: a scenario has at least one key, such as fabric.kind";
    assert_eq!(load("e.toml", b""), empty);
    let expected = "b.toml:2: not UTF-8 text: a scenario is TOML";
    assert_eq!(load("b.toml", b"[fabric]\n\xff"), expected);
    let expected = "l.toml: longer than 1048576 B: no scenario";
    assert_eq!(load("l.toml", &vec![b' '; (1 << 20) + 1]), expected);
    let error = Scenario::load(Path::new("no/s.toml"), &FABRICS).expect_err("no file");
    let expected = "no/s.toml: cannot be read: No such file or directory";
    assert_eq!(error.to_string(), expected);
    let error = Scenario::load(folder.path(), &FABRICS).expect_err("a folder").to_string();
    assert!(error.ends_with(": cannot be read: Is a directory"), "{error}");
}

/// Words of scenarios, and some other words.
fn scenario_words() -> impl Strategy<Value = String> {
    let keys: Vec<String> = Scenario::keys(&FABRICS).into_iter().map(|key| key.name).collect();
    const VALUES: &[&str] = &[
        "0",
        "1",
        "2",
        "64",
        "144",
        "0.5",
        "1.0",
        "-1",
        "1e308",
        "nan",
        "inf",
        "true",
        "\"edm\"",
        "\"trace\"",
        "\"incast\"",
        "\"hot-spot\"",
        "\"permutation\"",
        "\"hadoop\"",
        "[1]",
        "{}",
        "0xff",
        "18446744073709551616",
        "1979-05-27",
        "\"\"\"\n\"\"\"",
        "=",
        "[",
        "\u{2028}",
    ];
    let line = (prop::sample::select(keys), prop::sample::select(VALUES));
    let line = line.prop_map(|(key, value)| format!("{key} = {value}\n"));
    prop::collection::vec(line, 1..12).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(crate::property::cases(512))]

    #[test]
    fn no_scenario_panics_or_is_accepted_without_being_runnable(text in scenario_words()) {
        check_scenario(&text);
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        check_scenario(&text);
    }
}
