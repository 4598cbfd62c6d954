//! Verdicts on whether runs have settled, and runs that end when they have.

use ethermem_sim::metrics::{KindStats, RunResult, SteadyState};

use crate::support::{run_scenario, scenario};

fn run(fabric: &str, load: f64, bytes: u64, rest: &str) -> RunResult {
    let text = format!(
        "[fabric]\nkind = \"{fabric}\"\nnodes = 32\n[workload]\nload = {load}\n\
         message_bytes = {bytes}\n{rest}"
    );
    run_scenario(&scenario(&text), fabric, None)
}

fn json(result: &RunResult) -> serde_json::Value {
    let mut json = serde_json::to_value(result).expect("a result is JSON");
    json.as_object_mut().expect("an object").shift_remove("wall_s").expect("a field");
    json
}

fn state(result: &RunResult) -> SteadyState {
    result.steady.as_ref().expect("synthetic messages").state
}

#[test]
fn a_run_until_its_numbers_are_known_is_the_run_of_the_number_that_it_takes() {
    for (fabric, load, bytes) in [("edm", 0.8, 64), ("homa", 0.6, 4_096)] {
        let found = run(fabric, load, bytes, "");
        assert_eq!(state(&found), SteadyState::Settled, "{:?}", found.steady);
        assert_eq!(found.notices, Vec::<String>::new());
        let messages = found.messages_started;
        let named = run(fabric, load, bytes, &format!("messages = {messages}\n"));
        assert_eq!(json(&found), json(&named), "{fabric}");
    }
}

#[test]
fn numbers_that_are_known_stay_in_a_run_four_times_as_long() {
    for (fabric, load, bytes) in [
        ("edm", 0.9, 64),
        ("edm", 0.8, 4_096),
        ("homa", 0.8, 4_096),
        ("cxl", 0.5, 64),
        ("raw-ethernet", 0.8, 64),
    ] {
        let found = run(fabric, load, bytes, "");
        assert_eq!(state(&found), SteadyState::Settled, "{fabric} {:?}", found.steady);
        let messages = found.messages_started * 4;
        let longer = run(fabric, load, bytes, &format!("messages = {messages}\n"));
        let all = [&found, &longer].map(|result| &result.kinds.all);
        let numbers: [fn(&KindStats) -> Option<f64>; 2] =
            [|all| all.slowdown_mean, |all| all.slowdown_p99];
        for number in numbers {
            let [found, longer] = all.map(|all| number(all).expect("measured"));
            assert!((found / longer - 1.0).abs() < 0.05, "{fabric}: {found} and {longer}");
        }
    }
}

#[test]
fn more_than_a_fabric_carries_is_named_and_has_no_latency_to_show() {
    // A timeslot of 1,538 B for 64 B: the arbiter carries a hundredth of this.
    for (fabric, load) in [("fastpass", 0.5), ("pfc", 0.99), ("dctcp", 0.99)] {
        let result = run(fabric, load, 64, "");
        let steady = result.steady.as_ref().expect("synthetic messages");
        if fabric == "fastpass" {
            assert_eq!(steady.state, SteadyState::NotSustained, "{steady:?}");
        }
        if steady.state != SteadyState::NotSustained {
            continue;
        }
        assert_eq!(result.shown_all().latency_ns_p99, None);
        assert!(result.kinds.all.latency_ns_p99.is_some(), "the numbers stay in JSON");
        let carried = steady.load_carried.expect("known");
        assert!(carried < load, "{carried}");
        let notice = format!("load {load} is not sustained: it carries {carried:.3}, and");
        assert!(result.notices[0].starts_with(&notice), "{:?}", result.notices);
    }
}

#[test]
fn what_its_events_do_not_reach_is_said() {
    let result = run("edm", 0.8, 64, "[run]\nevents_max = 1000\n");
    assert_eq!(result.messages_started, 20_000, "the first attempt always runs");
    if state(&result) != SteadyState::Settled {
        let last = result.notices.last().expect("it says so");
        assert_eq!(last, "20000 messages: more would take over run.events_max = 1000 events");
    }
    let result = run("homa", 0.8, 4_096, "[run]\nevents_max = 1000\n");
    assert_eq!(state(&result), SteadyState::Unsettled, "{:?}", result.steady);
    let last = result.notices.last().expect("it says so");
    assert_eq!(last, "20000 messages: more would take over run.events_max = 1000 events");
}

#[test]
fn the_files_of_a_run_are_those_of_the_number_that_it_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[fabric]\nnodes = 32\n[workload]\nload = 0.5\n";
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        let result = run_scenario(&scenario(text), "edm", Some(&path));
        (result.messages_started, std::fs::read(path).expect("written"))
    };
    let (messages, found) = file("a.parquet", text);
    let (_, named) = file("b.parquet", &format!("{text}messages = {messages}\n"));
    assert!(found == named, "{} and {} B", found.len(), named.len());
}

#[test]
fn edm_is_not_below_its_bounds() {
    // Equal messages: SRPT may be faster than a FIFO for the mean of unequal ones. Reads and writes
    // together: EDM's requests overtake data, so that at low load its reads alone are 0.1 % faster
    // than those of a FIFO.
    for load in [0.3, 0.8, 0.9] {
        let text = format!("[fabric]\nnodes = 32\n[workload]\nload = {load}\nmessages = 40000");
        let scenario = scenario(&text);
        let means = ["ideal", "output-queued", "edm"].map(|fabric| {
            let all = run_scenario(&scenario, fabric, None).kinds.all;
            [all.slowdown_mean, all.latency_ns_mean].map(|mean| mean.expect("measured"))
        });
        for number in 0..2 {
            let order = means.map(|means| means[number]);
            assert!(order.is_sorted(), "load {load}: {order:?}");
        }
    }
}
