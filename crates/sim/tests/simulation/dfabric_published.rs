//! Figures of the paper that the fabric answers, as `docs/fabrics/dfabric.md` shows them.
//!
//! `cargo test -p ethermem-sim --test simulation dfabric_published -- --nocapture` prints ours. The
//! prototype (Table 3) is ten times as fast here, since a link has at least 10 Gb/s: C is 10 Gb/s
//! instead of about 1, and every time of Table 3 a tenth.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_sim::Message;
use ethermem_sim::engine::{Advance, Heard};
use ethermem_sim::registry::find;
use ethermem_sim::workload::program::{Builder, Program, ProgramRun, StepId, Work, ring_allreduce};
use ethermem_units::{Bytes, Ps};

use crate::support::scenario;

/// Runs a program of messages on a fabric. Returns the end of its last step.
fn run(kind: &str, keys: &str, program: &Program) -> Ps {
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

/// Two racks of two nodes, as the prototype, with 10 Gb/s as C.
const PROTOTYPE: &str = "nodes = 4\nlink_gbps = 10\n[fabric.dfabric]\ntheta = 1\nlocal_ns = 65\n\
                         device_ns = 400\ncore_ns = 3250\n";

/// Gb/s of one stream of 4 MB from rack to rack: what iPerf reports.
fn stream_gbps(keys: &str) -> f64 {
    let bytes = Bytes(4_000_000);
    let mut builder = Builder::new(4);
    builder.send(0, 2, bytes, 0, &[]).expect("two nodes");
    let took = run("dfabric", &format!("{PROTOTYPE}{keys}"), &builder.build());
    bytes.0 as f64 * 8e3 / took.0 as f64
}

#[test]
fn table_4() {
    let whole = stream_gbps("");
    println!("whole: {whole:.2} Gb/s");
    for keys in [
        "small_queue = \"off\"",
        "small_queue = \"freed\"",
        "poll = \"in-turn\"",
        "cache_bytes = 0",
        "cache_bytes = 0\nloads_max = 32",
        "cache_bytes = 0\nloads_max = 16",
        "cache_bytes = 0\nloads_max = 8",
        "cache_bytes = 0\nloads_max = 4",
        "cache_bytes = 0\nloads_max = 2",
        "cache_bytes = 0\nloads_max = 1",
    ] {
        println!("{keys:?}: {:.2}", stream_gbps(keys) / whole);
    }
}

#[test]
fn figure_2() {
    let program = ring_allreduce(4, Bytes(4_000_000)).expect("four nodes");
    let pool = "nodes = 4\nlink_gbps = 10\n[fabric.dfabric]\ntheta = 10\n";
    let one = run("dfabric", &format!("{pool}racks = 1"), &program);
    println!("one rack: {one}");
    for uplinks in [1, 2] {
        let keys = format!("nodes = 4\nlink_gbps = 10\n[fabric.tor_rack]\nuplinks = {uplinks}");
        let took = run("tor-rack", &keys, &program);
        println!("tor-rack, {uplinks} uplinks: {:.2}", took.0 as f64 / one.0 as f64);
    }
    for keys in [
        "extra_nics = 0",
        "extra_nics = 8\nsubflows = 16\nqueues = 16",
        "extra_nics = 8\nsubflows = 16\nqueues = 16\nmemory_devices = 1\ndevice_gbps = 50",
        "extra_nics = 8\nsubflows = 16\nqueues = 16\nmemory_devices = 1\ndevice_gbps = 100",
        "extra_nics = 8\nsubflows = 16\nqueues = 16\ncache_bytes = 0",
        "extra_nics = 8\nsubflows = 16\nqueues = 16\ncache_bytes = 0\ndevice_ns = 400",
        "extra_nics = 8\nsubflows = 16\nqueues = 16\ncache_bytes = 0\nloads_max = 16",
    ] {
        let took = run("dfabric", &format!("{pool}{keys}"), &program);
        println!("{keys:?}: {:.2}", took.0 as f64 / one.0 as f64);
    }
}

#[test]
fn nic_pool() {
    for theta in [1, 2, 4, 8] {
        let gbps = stream_gbps(&format!("extra_nics = {}", theta - 1));
        println!("M = {}: {gbps:.2} Gb/s", theta - 1);
    }
}
