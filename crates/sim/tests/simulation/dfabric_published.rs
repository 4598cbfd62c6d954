//! Figures of the paper that the fabric answers, as `docs/fabrics/dfabric.md` shows them.
//!
//! `cargo test -p ethermem-sim --test simulation dfabric_published -- --nocapture` prints ours. The
//! prototype is ten times as fast here: see `dfabric_prototype`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_sim::Message;
use ethermem_sim::engine::{Advance, Heard};
use ethermem_sim::registry::find;
use ethermem_sim::workload::program::{Builder, Program, ProgramRun, StepId, Work, ring_allreduce};
use ethermem_units::{Bytes, Ps};

use crate::dfabric_prototype::PROTOTYPE;
use crate::support::scenario;

/// Runs a program of messages on a fabric. Returns the end of its last step.
pub(crate) fn run(kind: &str, keys: &str, program: &Program) -> Ps {
    let scenario = scenario(&format!("[fabric]\n{keys}\n"));
    let mut fabric = find(kind).expect("a fabric").live(&scenario, false).expect("an idle fabric");
    let mut steps = ProgramRun::new(program);
    let mut ends = BinaryHeap::new();
    let (mut heard, mut last) = (Vec::new(), Ps::ZERO);
    while !steps.is_complete() {
        while let Some((id, step)) = steps.next_step() {
            let Work::Message { kind, compute, memory, bytes } = step.work else {
                panic!("a collective has messages alone");
            };
            let (index, arrival) = (u64::from(id.0), fabric.now());
            fabric.submit(Message { index, arrival, kind, compute, memory, bytes });
        }
        let until = ends.peek().map_or(Ps::MAX, |Reverse((at, _))| *at);
        let advance = fabric.advance(until, &mut heard).expect("there is no source");
        assert!(advance != Advance::Idle || !heard.is_empty(), "a message never ends");
        for report in heard.drain(..) {
            if let Heard::Ended { message, outcome } = report {
                ends.push(Reverse((outcome.expect("nothing is lost for good"), message)));
            }
        }
        while let Some(Reverse((at, message))) = ends.peek().copied() {
            if at > fabric.now() {
                break;
            }
            ends.pop();
            last = last.max(at);
            let id = StepId(message as u32);
            steps.end(id).expect("it was under way");
        }
    }
    fabric.close().expect("no invariant is broken");
    last
}

/// Gb/s of one stream of 4 MB from rack to rack: what iPerf reports.
fn stream_gbps(keys: &str) -> f64 {
    let bytes = Bytes(4_000_000);
    let mut builder = Builder::new(4);
    builder.send(0, 2, bytes, 0, &[]).expect("two nodes");
    let took = run("dfabric", &PROTOTYPE.keys("dfabric", keys), &builder.build());
    bytes.0 as f64 * 8e3 / took.0 as f64
}

/// Asserts ours to two decimals: the page of the fabric has these numbers.
fn check(what: &str, ours: f64, documented: f64) {
    println!("{what}: {ours:.2}");
    assert!((ours - documented).abs() < 0.006, "{what}: {ours}, documented as {documented}");
}

/// Throughput of one stream without one part, over that with all (Table 4).
#[test]
fn table_4() {
    let whole = stream_gbps("");
    check("Gb/s of a stream", whole, 7.34);
    for (keys, ratio) in [
        ("small_queue = \"off\"", 1.0),
        ("small_queue = \"freed\"", 1.0),
        ("poll = \"in-turn\"", 1.0),
        ("cache_bytes = 0", 1.0),
        ("cache_bytes = 0\nloads_max = 16", 0.98),
        ("cache_bytes = 0\nloads_max = 8", 0.51),
        ("cache_bytes = 0\nloads_max = 4", 0.27),
        ("cache_bytes = 0\nloads_max = 2", 0.18),
    ] {
        check(keys, stream_gbps(keys) / whole, ratio);
    }
}

/// Time of a ring allreduce of 4 MB over four nodes, at a ratio of ten, over that in one rack.
#[test]
fn figure_2() {
    let program = ring_allreduce(4, Bytes(4_000_000)).expect("four nodes");
    let pool = "nodes = 4\nlink_gbps = 10\n[fabric.dfabric]\ntheta = 10\n";
    let one = run("dfabric", &format!("{pool}racks = 1"), &program).0 as f64;
    let tor = run("tor-rack", "nodes = 4\nlink_gbps = 10", &program).0 as f64;
    check("a NIC a node", tor / one, 8.22);
    let whole = "extra_nics = 8\nsubflows = 16\nqueues = 16\n";
    let took = |keys: &str| run("dfabric", &format!("{pool}{keys}"), &program).0 as f64;
    let ten = took(whole);
    check("two NICs", took("extra_nics = 0") / one, 5.22);
    check("ten NICs", ten / one, 2.16);
    let narrow = "memory_devices = 1\ndevice_gbps = 50";
    check(narrow, took(&format!("{whole}{narrow}")) / one, 3.23);
    for (keys, times) in [
        ("cache_bytes = 0", 1.18),
        ("cache_bytes = 0\ndevice_ns = 400", 1.32),
        ("cache_bytes = 0\nloads_max = 16", 2.37),
    ] {
        check(keys, took(&format!("{whole}{keys}")) / ten, times);
    }
}

/// One node gets no more than its port carries, whatever the pool has (Figure 12).
#[test]
fn nics_beyond_the_port_of_a_node_add_nothing() {
    for extra in [0, 1, 3, 7] {
        let gbps = stream_gbps(&format!("extra_nics = {extra}"));
        assert!((7.3..7.4).contains(&gbps), "{extra} more NICs: {gbps} Gb/s");
    }
}
