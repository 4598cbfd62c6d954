//! Replays of a file server and its client, of which disks and network were traced: real files of
//! `workloads/traces/two-machines`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ethermem_sim::registry::{FABRICS, FabricEntry, find};
use ethermem_sim::run::{RunOptions, run};
use ethermem_study::{
    Arrivals, Attribution, Blades, Embedding, Machine, MatchRule, Outcome, Part, Plan, Recording,
    Recordings, Replay, Scope, network, write_completions,
};
use ethermem_trace::{
    Access, AccessKind, CompletionTimes, CompletionWriter, Ended, FlowKind, Summary, Writer,
    disk_files,
};
use ethermem_units::{BitsPerSecond, Bytes, Ns};

const WHOLE: Part = Part { from: Ns(0), length: None, speed: 1.0 };
const BLOCK: Bytes = Bytes(65_536);
/// Files that the server sent, and others that it read for itself.
const FILES: u64 = 9;
const OTHERS: u64 = 3;

fn data(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/traces/two-machines");
    folder.join(name)
}

fn recording(name: &str, address: &str) -> Recording {
    Recording {
        pages: None,
        start: None,
        disks: disk_files(&data(name)).expect("files of the repository"),
        network: vec![data(&format!("{name}.pcap"))],
        addresses: vec![address.parse().expect("an address")],
    }
}

fn recordings() -> Recordings {
    Recordings {
        machines: vec![recording("server", "10.77.0.1"), recording("client", "10.77.0.2")],
        network: Vec::new(),
        rule: MatchRule { window: Ns(10_000_000), volume: 0.25 },
        gap: Ns(1_000_000),
        own_disks: true,
    }
}

fn load(recordings: &Recordings) -> (Vec<Machine>, Attribution) {
    recordings.load(WHOLE, BLOCK).unwrap_or_else(|error| panic!("{error}"))
}

fn plan(arrivals: Arrivals) -> Plan {
    Plan {
        blades: Blades::of(6).expect("thirds"),
        nodes: 144,
        rack_nodes: 16,
        scope: Scope::Rack,
        link_gbps: 100,
        arrivals,
        messages: 400,
        seed: 1,
        settings: Vec::new(),
    }
}

fn replayed(
    plan: &Plan,
    machines: &[Machine],
    fabric: &'static FabricEntry,
) -> (Outcome, Embedding) {
    let folder = tempfile::tempdir().expect("a folder");
    let messages = folder.path().join("messages.parquet");
    let replay = Replay::draw(plan, machines).expect("a plan that fits");
    let (scenario, _) = network(plan, fabric, &messages).expect("a good plan");
    let link = BitsPerSecond::from_gbps(plan.link_gbps).expect("a rate");
    let offered = replay.write(&messages, link).expect("messages");
    let result = run(&scenario, RunOptions { ways: true, ..RunOptions::of(fabric) });
    let result = result.unwrap_or_else(|error| panic!("{}: {error}", fabric.name));
    let embedding = replay.embedding().clone();
    (Outcome::of(plan, &embedding, offered, "leaf-spine", result), embedding)
}

/// Flows by kind, issuing machine and addressed machine. The blades of a cluster of two machines
/// follow each other.
fn flows(outcome: &Outcome, embedding: &Embedding) -> BTreeMap<(FlowKind, u16, u16), u64> {
    let mut flows = BTreeMap::new();
    for way in &outcome.run.ways {
        let message = &way.message;
        let kind = outcome.flows.kind(message.index);
        let cluster = embedding.cluster_of(message.compute).expect("a node of a cluster");
        assert_eq!(embedding.cluster_of(message.memory), Some(cluster));
        let machine = |node: u16, of: fn(&Embedding, u16, u16) -> u16| {
            (0..2).find(|&machine| of(embedding, cluster, machine) == node)
        };
        let compute = machine(message.compute, Embedding::compute).expect("a compute blade");
        let target = match kind {
            FlowKind::Read | FlowKind::WriteBack => machine(message.memory, Embedding::memory),
            FlowKind::DiskRead | FlowKind::DiskWrite => machine(message.memory, Embedding::disk),
            FlowKind::Network => machine(message.memory, Embedding::compute),
        };
        let target = target.unwrap_or_else(|| panic!("{kind:?} to another kind of blade"));
        *flows.entry((kind, compute, target)).or_insert(0) += 1;
    }
    flows
}

#[test]
fn files_that_were_read_and_sent_are_remote_reads() {
    let (machines, attribution) = load(&recordings());
    // Each file was sent at once, after a request of 4 bytes.
    assert_eq!(attribution.transfers, 2 * FILES);
    assert_eq!(attribution.transfers_of_reads, FILES);
    // One read for each file, and none of those that were not sent.
    assert_eq!(attribution.disk_reads_remote, FILES);
    assert!(attribution.disk_reads >= FILES + OTHERS, "{attribution:?}");
    assert!(attribution.disk_writes >= FILES, "{attribution:?}");
    assert_eq!((attribution.outside_bytes, attribution.left_out), (0, 0));

    let (outcome, embedding) =
        replayed(&plan(Arrivals::AsTraced), &machines, find("ideal").unwrap());
    let flows = flows(&outcome, &embedding);
    let kinds: Vec<_> = flows.keys().copied().collect();
    let expected = [
        // The server's own reads, and those of the client from the server's disk.
        (FlowKind::DiskRead, 0, 0),
        (FlowKind::DiskRead, 1, 0),
        // The client's file system, and what it stores.
        (FlowKind::DiskRead, 1, 1),
        (FlowKind::DiskWrite, 1, 1),
        // The client's requests. What the server sent came from its disk.
        (FlowKind::Network, 1, 0),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn without_a_match_reads_stay_local_and_the_network_carries_the_files() {
    // No read ends within no time before its transfer.
    let rule = MatchRule { window: Ns(0), volume: 0.0 };
    let (machines, attribution) = load(&Recordings { rule, ..recordings() });
    assert_eq!((attribution.disk_reads_remote, attribution.transfers_of_reads), (0, 0));
    let (outcome, embedding) = replayed(&plan(Arrivals::Drawn), &machines, find("ideal").unwrap());
    let flows = flows(&outcome, &embedding);
    assert!(!flows.contains_key(&(FlowKind::DiskRead, 1, 0)), "{flows:?}");
    assert!(flows[&(FlowKind::Network, 0, 1)] > 0, "{flows:?}");
}

#[test]
fn one_capture_of_either_machine_or_of_all_gives_the_same() {
    let both = load(&recordings());
    let mut one = recordings();
    one.machines[1].network.clear();
    let server_alone = load(&one);
    // The client's clock reads a packet of the client a little earlier.
    assert_eq!(server_alone.1, both.1);
    let mut all = recordings();
    for machine in &mut all.machines {
        machine.network.clear();
    }
    all.network = vec![data("server.pcap")];
    assert_eq!(load(&all), server_alone);
}

#[test]
fn disks_are_spread_unless_each_machine_keeps_its_own() {
    let (machines, _) = load(&Recordings { own_disks: false, ..recordings() });
    let (outcome, embedding) =
        replayed(&plan(Arrivals::AsTraced), &machines, find("ideal").unwrap());
    let flows = flows(&outcome, &embedding);
    for kind in [FlowKind::DiskRead, FlowKind::DiskWrite] {
        let disks = (0..2).filter(|&disk| flows.contains_key(&(kind, 1, disk)));
        assert_eq!(disks.count(), 2, "{kind:?} {flows:?}");
    }
}

#[test]
fn every_fabric_runs_them_and_reports_each_kind() {
    let (machines, attribution) = load(&recordings());
    for fabric in FABRICS {
        let plan = plan(Arrivals::Drawn);
        let (mut outcome, embedding) = replayed(&plan, &machines, fabric);
        outcome.attribute(Some(attribution));
        assert_eq!(outcome.run.messages_lost, 0, "{}", fabric.name);
        assert_eq!(outcome.run.messages_finished, outcome.offered.messages, "{}", fabric.name);
        let csv = Outcome::csv(std::slice::from_ref(&outcome));
        let rows: Vec<Vec<&str>> =
            csv.lines().skip(1).map(|row| row.split(',').collect()).collect();
        let kinds: Vec<&str> = rows.iter().map(|row| row[3]).collect();
        assert_eq!(kinds, ["disk_read", "disk_write", "network", "all"], "{}", fabric.name);
        let counts: Vec<u64> = rows.iter().map(|row| row[5].parse().unwrap()).collect();
        assert_eq!(counts[..3].iter().sum::<u64>(), counts[3], "{}", fabric.name);
        assert!(!outcome.completion.disk_read.is_empty() && outcome.completion.read.is_empty());

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.parquet");
        let writer = CompletionWriter::create(&path).unwrap();
        write_completions(writer, std::slice::from_ref(&outcome), &embedding, "c").unwrap();
        let times = CompletionTimes::open(&path, None).unwrap().map(Result::unwrap);
        let mut kinds = BTreeMap::new();
        for time in times {
            *kinds.entry(time.kind).or_insert(0) += 1;
        }
        let expected = [FlowKind::DiskRead, FlowKind::DiskWrite, FlowKind::Network];
        assert_eq!(
            kinds.into_iter().collect::<Vec<_>>(),
            expected.into_iter().zip(counts).collect::<Vec<_>>()
        );
    }
}

/// Reads of pages that are sent, as by a server that holds its data in remote memory, are remote
/// reads too, if the program's start is known.
#[test]
fn pages_that_were_read_and_sent_are_remote_reads_if_the_start_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.parquet");
    // The disk is left out, so that the files come from memory; the first was sent at this time.
    let sent = first_file_sent();
    let start = Ns(sent.0 - 50_000_000);
    let mut writer = Writer::create(&path, Bytes(4096)).unwrap();
    let pages = sent.1 / 4096;
    for page in 0..pages {
        writer
            .push(&Access {
                time: Ns(49_000_000),
                process: 1,
                thread: 1,
                address: 4096 * page,
                bytes: Bytes(4096),
                kind: AccessKind::Read,
                prefetched: page > 0,
            })
            .unwrap();
    }
    let summary = Summary {
        local: Bytes(1 << 20),
        peak: Bytes(4 << 20),
        duration: Ns(1_000_000_000),
        command: "made by a test".to_owned(),
        ended: Ended::Exit(0),
        prefetched_accesses: Some(pages - 1),
        unrecorded_accesses: 0,
    };
    writer.finish(&summary).unwrap();
    let with = |start| {
        let mut recordings = recordings();
        recordings.machines[0].disks.clear();
        recordings.machines[0].pages = Some(path.clone());
        recordings.machines[0].start = start;
        load(&recordings).1
    };
    assert_eq!(with(Some(start)).page_reads_remote, pages);
    assert_eq!(with(Some(start)).transfers_of_reads, 1);
    assert_eq!(with(None).page_reads_remote, 0);
}

/// Time and bytes of the first transfer of the server.
fn first_file_sent() -> (u64, u64) {
    let path = data("server.pcap");
    let trace = ethermem_trace::NetworkTrace::open(&path).expect("a capture");
    let all = trace.filter_map(Result::ok).filter(|one| one.bytes > 0).collect::<Vec<_>>();
    let is_server = |from: std::net::IpAddr| from.to_string() == "10.77.0.1";
    let first = all.iter().position(|one| is_server(one.from.0)).expect("a file");
    let file = all[first..].iter().take_while(|one| is_server(one.from.0));
    (all[first].at_ns, file.map(|one| u64::from(one.bytes)).sum())
}

#[test]
fn what_cannot_be_brought_together_is_refused_in_one_line() {
    let mut no_clock = recordings();
    no_clock.machines[0].disks = vec![data("server.blktrace.1")];
    let error = no_clock.load(WHOLE, BLOCK).unwrap_err().to_string();
    let problem = "no time stamp of the wall clock: must be with the file of the processor on \
                   which blktrace was started";
    assert_eq!(error, format!("{}: {problem}", data("server.blktrace.1").display()));
    let (machines, _) = load(&recordings());
    let plan = Plan { blades: Blades::of(9).unwrap(), ..plan(Arrivals::Drawn) };
    let error = Replay::draw(&plan, &machines).unwrap_err();
    let expected = "a cluster of 9 blades for 2 machines with a network: must be a multiple of \
                    6, so that every machine has its peers";
    assert_eq!(error, expected);
}

/// Records of blktrace of reads that were issued at these times, each of a sector.
fn disk_trace(reads: &[(u64, u64)]) -> Vec<u8> {
    let mut octets = Vec::new();
    for &(at_ns, sector) in reads {
        let read_issued: u32 = 1 << 16 | 7;
        octets.extend(0x6561_7407_u32.to_le_bytes());
        octets.extend(0_u32.to_le_bytes());
        octets.extend(at_ns.to_le_bytes());
        octets.extend(sector.to_le_bytes());
        for number in [4096, read_issued, 1, 8 << 20, 0, 0] {
            octets.extend(number.to_le_bytes());
        }
    }
    octets
}

#[test]
fn places_and_times_at_the_end_of_their_range_are_replayed_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.blktrace.0");
    let loaded = |reads: &[(u64, u64)]| {
        std::fs::write(&path, disk_trace(reads)).expect("a file");
        let disks = vec![path.clone()];
        let machines = vec![Recording { disks, ..Recording::default() }];
        Recordings { machines, ..recordings() }.load(WHOLE, BLOCK)
    };
    let (machines, attribution) = loaded(&[(0, 0), (9, u64::MAX)]).expect("two reads");
    assert_eq!((machines.len(), attribution.disk_reads, attribution.left_out), (1, 2, 0));
    let (_, late) = loaded(&[(u64::MAX - 1, 0)]).expect("a read");
    assert_eq!((late.disk_reads, late.left_out), (1, 0));
    let error = loaded(&[(0, 0), (u64::MAX, 0)]).expect_err("584 years");
    let problem = format!("{} ns are replayed: must be at most 26 days", u64::MAX);
    assert!(error.to_string().ends_with(&problem), "{error}");
}
