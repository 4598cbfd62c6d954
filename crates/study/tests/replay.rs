//! Replays of traces made by tests: their messages, the destinations, and results on fabrics.

use std::path::{Path, PathBuf};

use ethermem_sim::metrics::MessageWay;
use ethermem_sim::registry::find;
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Setting;
use ethermem_study::{
    Arrivals, Blades, Flows, Machine, Offered, Outcome, Part, Plan, Quantile, Replay, Scope,
    network, write_completions,
};
use ethermem_trace::{
    Access, AccessKind, CompletionTimes, CompletionWriter, Ended, Summary, Writer,
};
use ethermem_units::{BitsPerSecond, Bytes, Ns};

const WHOLE: Part = Part { from: Ns(0), length: None, speed: 1.0 };
const PAGE: Bytes = Bytes(4096);

/// A program that reads a page every `gap_ns` and writes back every fourth.
fn trace(folder: &Path, name: &str, accesses: u64, gap_ns: u64) -> PathBuf {
    let path = folder.join(name);
    let mut writer = Writer::create(&path, PAGE).expect("a file of a test");
    for index in 0..accesses {
        let kind = if index % 4 == 3 { AccessKind::WriteBack } else { AccessKind::Read };
        let address = 4096 * (index * 7919 % 100_000);
        let (time, bytes) = (Ns(index * gap_ns), PAGE);
        let prefetched = false;
        let access = Access { time, process: 1, thread: 1, address, bytes, kind, prefetched };
        writer.push(&access).expect("a good access");
    }
    writer.finish(&summary(accesses * gap_ns)).expect("a file of a test");
    path
}

fn summary(duration_ns: u64) -> Summary {
    Summary {
        local: Bytes(1 << 20),
        peak: Bytes(4 << 20),
        duration: Ns(duration_ns),
        command: "made by a test".to_owned(),
        ended: Ended::Exit(0),
        prefetched_accesses: None,
        unrecorded_accesses: 0,
    }
}

fn plan(scope: Scope) -> Plan {
    Plan {
        blades: Blades::of(15).expect("thirds"),
        nodes: 144,
        rack_nodes: 16,
        scope,
        link_gbps: 100,
        arrivals: Arrivals::Drawn,
        messages: 3_000,
        seed: 1,
        settings: Vec::new(),
    }
}

fn machine(path: &Path) -> Machine {
    Machine::load(path, WHOLE, Bytes(65_536)).expect("a trace of a test")
}

/// A fabric's result for one trace on every machine.
fn replayed(plan: &Plan, machines: &[Machine], fabric: &str) -> (Outcome, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let messages = folder.path().join("messages.parquet");
    let replay = Replay::draw(plan, machines).expect("a plan that fits");
    let fabric = find(fabric).expect("of the registry");
    let (scenario, _) = network(plan, fabric, &messages).expect("a good plan");
    let link = BitsPerSecond::from_gbps(plan.link_gbps).expect("a rate");
    let (offered, flows): (Offered, Flows) = replay.write(&messages, link).expect("messages");
    let result = run(&scenario, RunOptions { ways: true, ..RunOptions::of(fabric) });
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let notices = replay.notices(&offered);
    (Outcome::of(plan, replay.embedding(), (offered, flows), "leaf-spine", result), notices)
}

#[test]
fn messages_stay_within_their_cluster_and_scope() {
    let folder = tempfile::tempdir().unwrap();
    let machines = [machine(&trace(folder.path(), "t", 2_000, 10_000))];
    for scope in [Scope::Rack, Scope::Datacenter] {
        for arrivals in [Arrivals::Drawn, Arrivals::AsTraced] {
            let plan = Plan { arrivals, ..plan(scope) };
            let (outcome, notices) = replayed(&plan, &machines, "pfabric");
            let embedding = Replay::draw(&plan, &machines).unwrap().embedding().clone();
            assert_eq!(outcome.run.messages_lost, 0);
            assert!(notices.is_empty() && !outcome.overload, "{notices:?}");
            let count = outcome.offered.messages;
            assert!(count.abs_diff(3_000) < 300, "{count}");
            assert_eq!(outcome.run.messages_finished, count);
            let mut between_racks = 0;
            for way in &outcome.run.ways {
                let (compute, memory) = (way.message.compute, way.message.memory);
                assert_eq!(embedding.cluster_of(compute), embedding.cluster_of(memory));
                between_racks += u32::from(compute / 16 != memory / 16);
            }
            assert_eq!(between_racks == 0, scope == Scope::Rack);
            assert!(outcome.slowdown_mean.unwrap() >= 1.0);
            let shares: Vec<f64> = outcome.completion.all.iter().map(|point| point.ns).collect();
            assert!(shares.is_sorted() && shares[0] > 0.0);
        }
    }
}

/// As traced, with one cluster of one machine: the gaps equal the trace's, to the picosecond.
#[test]
fn a_trace_keeps_its_times_sizes_and_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", 1_000, 10_000);
    let part = Part { speed: 2.0, ..WHOLE };
    let machines = [Machine::load(&path, part, PAGE).unwrap()];
    let blades = Blades::of(3).unwrap();
    let (nodes, messages) = (3, 1_000);
    let arrivals = Arrivals::AsTraced;
    let plan = Plan { blades, nodes, messages, arrivals, ..plan(Scope::Rack) };
    let (outcome, _) = replayed(&plan, &machines, "ideal");
    let mut ways = outcome.run.ways.clone();
    ways.sort_by_key(|way| way.message.index);
    assert!(ways.len() >= 999, "{}", ways.len());
    for pair in ways.windows(2) {
        let gap = pair[1].message.arrival - pair[0].message.arrival;
        assert_eq!(gap.0, 5_000_000, "twice as fast");
    }
    let reads = ways.iter().filter(|way| way.message.kind == ethermem_sim::Kind::Read).count();
    assert!(reads.abs_diff(750) <= 1, "{reads}");
    assert!(ways.iter().all(|way| way.message.bytes == PAGE));
}

/// A program that reads a page and prefetches seven more, every time.
fn trace_with_prefetches(folder: &Path) -> PathBuf {
    let path = folder.join("prefetches");
    let mut writer = Writer::create(&path, PAGE).expect("a file of a test");
    for index in 0..500 {
        let (time, kind) = (Ns(index * 20_000), AccessKind::Read);
        let address = 8 * 4096 * index;
        let (process, thread, prefetched) = (1, 1, false);
        let waited = Access { time, process, thread, address, bytes: PAGE, kind, prefetched };
        writer.push(&waited).expect("a good access");
        let (address, bytes) = (address + 4096, Bytes(7 * 4096));
        let along = Access { address, bytes, prefetched: true, ..waited };
        writer.push(&along).expect("a good access");
    }
    writer.finish(&summary(500 * 20_000)).expect("a file of a test");
    path
}

/// A thread waits only for the page that it asked for, though the network carries all of them.
#[test]
fn prefetched_pages_load_the_network_and_stall_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace_with_prefetches(folder.path());
    let machines = [Machine::load(&path, WHOLE, PAGE).unwrap()];
    let blades = Blades::of(3).unwrap();
    for arrivals in [Arrivals::AsTraced, Arrivals::Drawn] {
        let plan = Plan { blades, nodes: 3, messages: 1_000, arrivals, ..plan(Scope::Rack) };
        let (outcome, _) = replayed(&plan, &machines, "ideal");
        let all = outcome.offered.messages;
        assert!(outcome.prefetched_accesses.abs_diff(all / 2) < all / 10);
        let is_along = |way: &&MessageWay| way.message.bytes == Bytes(7 * 4096);
        let along: Vec<_> = outcome.run.ways.iter().filter(is_along).collect();
        assert_eq!(along.len() as u64, outcome.prefetched_accesses);
        assert!(along.iter().all(|way| outcome.flows.is_prefetched(way.message.index)));
        // A page takes 330 ns at 100 Gb/s, and seven of them 2.3 us.
        let most = |times: &[Quantile]| times.iter().map(|point| point.ns).fold(0.0, f64::max);
        let least = |times: &[Quantile]| times.iter().map(|point| point.ns).fold(1e9, f64::min);
        assert!(least(&outcome.completion.prefetch) > 2_000.0);
        assert!(least(&outcome.completion.read) < 2_000.0);
        assert!(most(&outcome.completion.all) >= most(&outcome.completion.prefetch));
        let csv = Outcome::csv(std::slice::from_ref(&outcome));
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let accesses = |kind: &str| {
            let row = rows.iter().find(|row| row[3] == kind).expect("a row of that kind");
            row[5].parse::<u64>().expect("a count")
        };
        assert_eq!(accesses("read") + accesses("prefetch"), accesses("all"));
        assert_eq!(accesses("prefetch"), outcome.prefetched_accesses);

        let path = folder.path().join("completions");
        let writer = CompletionWriter::create(&path).unwrap();
        let embedding = Replay::draw(&plan, &machines).unwrap().embedding().clone();
        write_completions(writer, &[outcome], &embedding, "").unwrap();
        let times: Vec<_> =
            CompletionTimes::open(&path, None).unwrap().map(Result::unwrap).collect();
        assert!(times.iter().all(|done| done.prefetched == (done.bytes != PAGE)));
        assert!(times.iter().any(|done| done.prefetched));
    }
}

#[test]
fn a_seed_gives_the_same_result_and_another_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let machines = [machine(&trace(folder.path(), "t", 500, 10_000))];
    let with = |seed| {
        let plan = Plan { seed, messages: 500, ..plan(Scope::Datacenter) };
        let (mut outcome, _) = replayed(&plan, &machines, "tcp");
        outcome.run.wall_s = 0.0;
        outcome
    };
    assert_eq!(with(7), with(7));
    assert_ne!(with(7), with(8));
}

/// 4 KiB every 100 ns is 328 Gb/s, three quarters of it to the compute blade.
#[test]
fn an_overload_ends_and_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let machines = [machine(&trace(folder.path(), "t", 4_000, 100))];
    let calm = [machine(&trace(folder.path(), "calm", 4_000, 10_000))];
    for fabric in ["tcp", "dctcp", "pfabric", "phost", "fastpass", "edm"] {
        let plan = Plan { messages: 2_000, ..plan(Scope::Datacenter) };
        let (outcome, notices) = replayed(&plan, &machines, fabric);
        assert!(outcome.overload && outcome.offered.busiest_load > 2.0, "{fabric}");
        assert!(notices[0].starts_with("overload: the link "), "{notices:?}");
        let run = &outcome.run;
        assert_eq!(run.messages_finished + run.messages_lost, outcome.offered.messages);
        assert!(outcome.drain_ns > outcome.offered.duration_ns, "{fabric} {}", outcome.drain_ns);
        let (unloaded, _) = replayed(&plan, &calm, fabric);
        assert!(outcome.slowdown_mean > unloaded.slowdown_mean, "{fabric}");
    }
}

#[test]
fn completion_times_are_written_for_who_injects_them() {
    let folder = tempfile::tempdir().unwrap();
    let machines = [machine(&trace(folder.path(), "t", 500, 10_000))];
    let plan = Plan { messages: 400, ..plan(Scope::Rack) };
    let (outcome, _) = replayed(&plan, &machines, "edm");
    let replay = Replay::draw(&plan, &machines).unwrap();
    let path = folder.path().join("r.parquet");
    let writer = CompletionWriter::create(&path).unwrap();
    write_completions(writer, std::slice::from_ref(&outcome), replay.embedding(), "c").unwrap();
    let times: Vec<_> = CompletionTimes::open(&path, None).unwrap().map(Result::unwrap).collect();
    assert_eq!(times.len() as u64, outcome.run.messages_finished);
    let mean = times.iter().map(|time| time.completion.as_ns_f64()).sum::<f64>();
    let mean = mean / times.len() as f64;
    let expected = outcome.run.kinds.all.latency_ns_mean.unwrap();
    assert!((mean - expected).abs() < 1e-6 * expected, "{mean} {expected}");
    assert!(times.iter().all(|time| time.completion.0 > 0 && time.cluster < 9));
}

#[test]
fn plans_and_parts_that_do_not_fit_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path(), "t", 10, 1_000);
    let machines = vec![machine(&path); 6];
    let refused = Replay::draw(&plan(Scope::Rack), &machines).unwrap_err();
    let expected = "6 traces for 5 machines of a cluster of 15 blades: must be 1 to 5";
    assert_eq!(refused, expected);
    let part = Part { from: Ns(9_500), length: Some(Ns(300)), speed: 1.0 };
    let error = Machine::load(&path, part, PAGE).unwrap_err().to_string();
    let expected = "no access from 9500 to 9800 ns: must be a part of the trace with one";
    assert_eq!(error, format!("{}: {expected}", path.display()));
    let settings: Vec<Setting> = vec!["fabric.nope=1".parse().unwrap()];
    let plan = Plan { settings, ..plan(Scope::Rack) };
    let error = network(&plan, find("tcp").unwrap(), Path::new("m")).unwrap_err().to_string();
    assert!(error.contains("fabric.nope: unknown key"), "{error}");
}

/// Single-switch fabrics get all nodes on one switch, others the study's Clos; settings apply to
/// both.
#[test]
fn every_fabric_has_a_network() {
    for scope in [Scope::Rack, Scope::Datacenter] {
        for fabric in ethermem_sim::registry::FABRICS {
            let settings = vec!["fabric.memory_access_ns=55".parse().unwrap()];
            let plan = Plan { settings, link_gbps: 40, ..plan(scope) };
            let (scenario, notice) = network(&plan, fabric, Path::new("m")).unwrap();
            assert_eq!(scenario.fabric.memory_access.0, 55_000);
            assert_eq!(scenario.fabric.link.as_gbps_f64(), 40.0);
            let single = scenario.fabric.topology == ethermem_sim::topology::Topology::SingleSwitch;
            assert_eq!(notice.is_some(), single, "{}", fabric.name);
            let ns = match (single, scope) {
                (true, Scope::Datacenter) => 220,
                _ => 20,
            };
            assert_eq!(scenario.fabric.propagation.0, ns * 1_000, "{}", fabric.name);
        }
    }
}
