//! The traces in `golden/sched`: the decisions of the clocked scheduler, for the RTL's tests to
//! replay. With `UPDATE_GOLDEN=1` in the environment, the test writes the files instead of
//! comparing them.

#[path = "support/rng.rs"]
mod rng;
#[path = "support/trace.rs"]
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ethermem_edm::sched::{Demand, Flow, SchedulerConfig};
use ethermem_edm::{Order, Policy};
use ethermem_units::Bytes;
use trace::{COLUMNS, CYCLE, Case, ORDERS, POLICIES, Recorder, header, name_of, record, value_of};

fn case(ports: u16, policy: Policy, order: Order, messages: u32) -> Case {
    let seed = u64::from(ports) << 8 | policy as u64;
    Case { ports, policy, order, messages, cycles: u64::MAX, seed }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ports in [2, 4, 8, 16] {
        for (policy, _) in POLICIES {
            // The automatic policy chooses every 256 notifications, and then equals one of the
            // other policies.
            let messages = match (policy, ports) {
                (Policy::Auto, 2 | 16) => continue,
                (Policy::Auto, _) => 280,
                _ => 40 + 4 * u32::from(ports),
            };
            cases.push(case(ports, policy, Order::Pair, messages));
        }
        cases.push(case(ports, Policy::Srpt, Order::Relaxed, 60));
    }
    cases
}

fn file(case: &Case) -> PathBuf {
    let (policy, order) = (name_of(&POLICIES, case.policy), name_of(&ORDERS, case.order));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/sched");
    PathBuf::from(format!("{folder}/{policy}-{order}-{:02}.csv", case.ports))
}

/// The trace as a file, and the recorder.
fn recorded(case: &Case) -> (String, Recorder) {
    let recorder = record(case, |_| {});
    (header(case, &case.config()) + &recorder.rows, recorder)
}

#[test]
fn the_scheduler_decides_what_the_traces_say() {
    for case in cases() {
        let (trace, _) = recorded(&case);
        let path = file(&case);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &trace).expect("golden/sched is writable");
        }
        let golden = std::fs::read_to_string(&path).expect("golden/sched has every case");
        for (number, (golden, now)) in golden.lines().zip(trace.lines()).enumerate() {
            assert_eq!(golden, now, "{}, line {}", path.display(), number + 1);
        }
        assert_eq!(golden.len(), trace.len(), "{} is longer or shorter", path.display());
    }
}

/// The scheduler configuration in a trace's first line.
fn parsed_config(line: &str) -> SchedulerConfig {
    let pairs = line.trim_start_matches("# ").split(' ').map(|pair| pair.split_once('='));
    let of: BTreeMap<_, _> = pairs.map(|pair| pair.expect("name=value")).collect();
    let number = |name: &str| of[name].parse::<u32>().expect("a number");
    SchedulerConfig {
        ports: number("ports") as u16,
        cycle: CYCLE,
        slot: CYCLE * u64::from(number("slot_cycles")),
        chunk: Bytes(u64::from(number("chunk_bytes"))),
        chunk_overhead_blocks: number("chunk_overhead_blocks"),
        notifications_max: number("notifications_max") as u8,
        policy: value_of(&POLICIES, of["policy"]),
        order: value_of(&ORDERS, of["order"]),
        lookahead_iterations: number("lookahead_iterations") as u8,
        ahead_blocks: number("ahead_blocks"),
        egress_window_blocks: None,
        control_blocks_free: of["control_blocks_free"].parse().ok(),
        late_bytes_min: of["late_bytes_min"].parse().ok(),
    }
}

#[test]
fn a_trace_alone_is_enough_to_replay_it() {
    for case in cases() {
        let golden = std::fs::read_to_string(file(&case)).expect("golden/sched has every case");
        let mut lines = golden.lines();
        let config = parsed_config(lines.next().expect("a first line"));
        assert_eq!(lines.next(), Some(COLUMNS));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        let mut replayed = Recorder::new(&config);
        let mut at = 0;
        while at < rows.len() {
            let cycle = replayed.scheduler.cycle();
            let due: u64 = rows[at][0].parse().expect("a cycle");
            assert!(cycle <= due, "{}: row {at} never came", file(&case).display());
            // Inputs precede the decisions of their cycle, in the order of their rows.
            while at < rows.len() && rows[at][0] == cycle.to_string() && rows[at][1] != "grant" {
                let field = |column: usize| rows[at][column].parse::<u32>().expect("a number");
                match rows[at][1] {
                    "uplink" => replayed.charge((field(2) as u16, field(7), true)),
                    "downlink" => replayed.charge((field(3) as u16, field(7), false)),
                    _ => {
                        let write = rows[at][4] == "write";
                        let flow = if write { Flow::WriteRequest } else { Flow::ReadResponse };
                        let (source, destination) = (field(2) as u16, field(3) as u16);
                        let (bytes, tag) = (field(6), field(5));
                        let demand = Demand { source, destination, flow, bytes, tag };
                        let accepted = replayed.notify(demand).is_ok();
                        assert_eq!(accepted, rows[at][1] == "notify");
                    }
                }
                at += 1;
            }
            at += replayed.tick().len();
        }
        let body = golden.splitn(3, '\n').nth(2).expect("rows");
        assert_eq!(replayed.rows, body, "{}", file(&case).display());
    }
}

#[test]
fn the_traces_meet_what_is_hard() {
    let (mut ahead, mut lengthened, mut refused) = (0, 0, 0);
    for case in cases() {
        let (trace, recorder) = recorded(&case);
        let grants = &recorder.grants;
        refused += trace.matches(",refused,").count();
        assert!(grants.iter().any(|grant| !grant.first && !grant.last), "no message of 3 chunks");
        let bytes: u64 = grants.iter().map(|grant| u64::from(grant.bytes)).sum();
        assert_eq!(bytes, recorder.demanded_bytes, "{}", file(&case).display());
        // A grant is ahead of its destination's release, or later than its chunks alone would make
        // it.
        let config = case.config();
        let mut free = vec![0; usize::from(case.ports)];
        for grant in grants {
            let busy = config.busy_time(grant.bytes).0 / config.cycle.0;
            let free = &mut free[usize::from(grant.destination)];
            ahead += u32::from(grant.at_cycle < *free);
            lengthened += u32::from(grant.at_cycle > *free && *free > 0);
            *free = grant.at_cycle.max(*free) + busy;
        }
    }
    assert!(ahead > 100 && lengthened > 100, "{ahead} ahead, {lengthened} later");
    assert!(refused > 20, "a pair was full {refused} times");
}
