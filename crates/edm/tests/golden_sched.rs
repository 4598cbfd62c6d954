//! The traces in `golden/sched`: what the clocked scheduler decides, for the RTL's tests to replay.
//! With `UPDATE_GOLDEN=1` in the environment, writes them anew instead of comparing.
//!
//! Each is made by a small switch around the scheduler, so that its inputs are what a switch sees:
//! arrivals in bursts and alone, mice and elephants, and the control blocks that go with them.

#[path = "support/rng.rs"]
mod rng;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use ethermem_edm::sched::{CycleGrant, CycleScheduler, Demand, Flow, NotifyError, SchedulerConfig};
use ethermem_edm::{EdmConfig, Order, Policy};
use ethermem_units::{Bytes, Ps};
use rng::Rng;

const COLUMNS: &str = "cycle,event,source,destination,flow,tag,bytes,blocks,at_cycle,first,last";
/// Cycles of the scheduler's clock are counted, not timed.
const CYCLE: Ps = Ps(1_000);

#[derive(Clone, Copy)]
struct Case {
    ports: u16,
    policy: Policy,
    order: Order,
    messages: u32,
}

const POLICIES: [(Policy, &str); 4] = [
    (Policy::Fcfs, "fcfs"),
    (Policy::Srpt, "srpt"),
    (Policy::SrptPublished, "srpt-published"),
    (Policy::Auto, "auto"),
];
const ORDERS: [(Order, &str); 2] = [(Order::Pair, "pair"), (Order::Relaxed, "relaxed")];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ports in [2, 4, 8, 16] {
        for (policy, _) in POLICIES {
            // Automatic choice is made every 256 notifications, and then is one of the others.
            let messages = match (policy, ports) {
                (Policy::Auto, 2 | 16) => continue,
                (Policy::Auto, _) => 280,
                _ => 40 + 4 * u32::from(ports),
            };
            cases.push(Case { ports, policy, order: Order::Pair, messages });
        }
        cases.push(Case { ports, policy: Policy::Srpt, order: Order::Relaxed, messages: 60 });
    }
    cases
}

fn name_of<T: PartialEq + Copy>(names: &[(T, &'static str)], value: T) -> &'static str {
    names.iter().find(|(named, _)| *named == value).expect("all are named").1
}

fn value_of<T: PartialEq + Copy>(names: &[(T, &'static str)], name: &str) -> T {
    names.iter().find(|(_, known)| *known == name).expect("a known name").0
}

impl Case {
    fn file(&self) -> PathBuf {
        let (policy, order) = (name_of(&POLICIES, self.policy), name_of(&ORDERS, self.order));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/sched");
        PathBuf::from(format!("{folder}/{policy}-{order}-{:02}.csv", self.ports))
    }

    fn config(&self) -> SchedulerConfig {
        let edm = EdmConfig {
            chunk: Bytes(128),
            policy: self.policy,
            order: self.order,
            ..EdmConfig::default()
        };
        // Slots of one cycle and of two; a debt that is used up soon, and the default one.
        let wide = self.ports == 4 || self.ports == 16;
        let mut config =
            SchedulerConfig::new(self.ports, &edm, CYCLE, CYCLE * if wide { 2 } else { 1 });
        if wide {
            config.control_blocks_free = config.control_blocks_free.map(|_| 5);
            config.late_bytes_min = config.late_bytes_min.map(|_| 300);
        }
        config
    }
}

/// The stimulus.
struct Draws(Rng);

impl Draws {
    fn below(&mut self, end: u32) -> u32 {
        self.0.below(end.into()) as u32
    }

    fn demand(&mut self, ports: u16, tag: u32) -> Demand {
        // One pair in four is always the same, so that it is full now and then.
        let favourite = self.below(4) == 0;
        let source = if favourite { 0 } else { self.below(u32::from(ports)) as u16 };
        let step = if favourite { 1 } else { 1 + self.below(u32::from(ports) - 1) as u16 };
        let bytes = match self.below(10) {
            0..5 => 1 + self.below(64),
            5..8 => 64 + self.below(128),
            _ => 300 + self.below(900),
        };
        let flow = if self.below(2) == 0 { Flow::ReadResponse } else { Flow::WriteRequest };
        Demand { source, destination: (source + step) % ports, flow, bytes, tag }
    }

    /// Cycles until the next arrival: bursts, then a while of single ones.
    fn gap(&mut self, ports: u16) -> u64 {
        match self.below(3) {
            0 => u64::from(self.below(1 + 240 / u32::from(ports))),
            _ => 0,
        }
    }
}

/// A charge: the port, its blocks, and whether it is an uplink.
type Charge = (u16, u32, bool);

/// A scheduler whose inputs and grants are written down.
struct Recorder {
    scheduler: CycleScheduler,
    rows: String,
    grants: Vec<CycleGrant>,
}

impl Recorder {
    fn notify(&mut self, demand: Demand) -> Result<(), NotifyError> {
        let result = self.scheduler.notify(demand);
        let event = if result.is_ok() { "notify" } else { "refused" };
        let Demand { source, destination, flow, bytes, tag } = demand;
        let (cycle, flow) = (self.scheduler.cycle(), flow_name(flow));
        writeln!(self.rows, "{cycle},{event},{source},{destination},{flow},{tag},{bytes},,,,")
            .expect("a string takes all");
        result
    }

    fn charge(&mut self, (port, blocks, uplink): Charge) {
        let cycle = self.scheduler.cycle();
        if uplink {
            self.scheduler.charge_source(port, blocks);
            writeln!(self.rows, "{cycle},uplink,{port},,,,,{blocks},,,").expect("a string");
        } else {
            self.scheduler.charge_destination(port, blocks);
            writeln!(self.rows, "{cycle},downlink,,{port},,,,{blocks},,,").expect("a string");
        }
    }

    fn tick(&mut self, flow_of: impl Fn(u32) -> Flow) -> Vec<CycleGrant> {
        let cycle = self.scheduler.cycle();
        let grants = self.scheduler.tick();
        for grant in &grants {
            let CycleGrant { at_cycle, source, destination, tag, bytes, first, last } = *grant;
            let flow = flow_name(flow_of(tag));
            let (first, last) = (u8::from(first), u8::from(last));
            let message = format!("{source},{destination},{flow},{tag},{bytes}");
            writeln!(self.rows, "{cycle},grant,{message},,{at_cycle},{first},{last}")
                .expect("a string takes all");
        }
        self.grants.extend(&grants);
        grants
    }
}

fn flow_name(flow: Flow) -> &'static str {
    match flow {
        Flow::ReadResponse => "response",
        Flow::WriteRequest => "write",
    }
}

fn recorder(config: &SchedulerConfig) -> Recorder {
    Recorder {
        scheduler: CycleScheduler::new(config.clone()),
        rows: String::new(),
        grants: Vec::new(),
    }
}

/// The control blocks of a message on the uplink of the node that asks.
fn request_charge(demand: &Demand) -> Charge {
    match demand.flow {
        Flow::ReadResponse => (demand.destination, 2, true),
        Flow::WriteRequest => (demand.source, 1, true),
    }
}

/// Runs a case to the end of its last message; gives the trace and how many were accepted.
fn record(case: &Case) -> (String, Recorder, BTreeMap<u32, Demand>) {
    let config = case.config();
    let mut draws = Draws(Rng(u64::from(case.ports) << 8 | case.policy as u64));
    let mut recorder = recorder(&config);
    let mut accepted: BTreeMap<u32, Demand> = BTreeMap::new();
    let mut charges: BTreeMap<u64, Vec<Charge>> = BTreeMap::new();
    let (mut tag, mut arrival, mut left) = (0, 0, 0);
    while tag < case.messages || left > 0 || !charges.is_empty() {
        let cycle = recorder.scheduler.cycle();
        while tag < case.messages && arrival == cycle {
            let demand = draws.demand(case.ports, tag);
            recorder.charge(request_charge(&demand));
            if recorder.notify(demand).is_ok() {
                accepted.insert(tag, demand);
                left += 1;
            }
            tag += 1;
            arrival += draws.gap(case.ports);
        }
        for charge in charges.remove(&cycle).unwrap_or_default() {
            recorder.charge(charge);
        }
        for grant in recorder.tick(|tag| accepted[&tag].flow) {
            left -= u32::from(grant.last);
            let release = grant.first && accepted[&grant.tag].flow == Flow::ReadResponse;
            let blocks = if release { 2 } else { 1 };
            charges.entry(grant.at_cycle + 1).or_default().push((grant.source, blocks, false));
        }
        assert!(cycle < 200_000, "messages are never granted");
    }
    let mut text = header(case, &config);
    text.push_str(&recorder.rows);
    (text, recorder, accepted)
}

fn header(case: &Case, config: &SchedulerConfig) -> String {
    let or_none = |value: Option<u32>| value.map_or("none".to_owned(), |value| value.to_string());
    let free = or_none(config.control_blocks_free);
    let late = or_none(config.late_bytes_min);
    format!(
        "# ports={} slot_cycles={} chunk_bytes={} chunk_overhead_blocks={} notifications_max={} \
         policy={} order={} lookahead_iterations={} ahead_blocks={} control_blocks_free={free} \
         late_bytes_min={late}\n{COLUMNS}\n",
        config.ports,
        config.slot.0 / config.cycle.0,
        config.chunk.0,
        config.chunk_overhead_blocks,
        config.notifications_max,
        name_of(&POLICIES, case.policy),
        name_of(&ORDERS, case.order),
        config.lookahead_iterations,
        config.ahead_blocks,
    )
}

#[test]
fn the_scheduler_decides_what_the_traces_say() {
    for case in cases() {
        let (trace, _, _) = record(&case);
        let path = case.file();
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

/// The scheduler that a trace's first line describes.
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
        let golden = std::fs::read_to_string(case.file()).expect("golden/sched has every case");
        let mut lines = golden.lines();
        let config = parsed_config(lines.next().expect("a first line"));
        assert_eq!(lines.next(), Some(COLUMNS));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        let mut flows = BTreeMap::new();
        let mut replayed = recorder(&config);
        let mut at = 0;
        while at < rows.len() {
            let cycle = replayed.scheduler.cycle();
            let due: u64 = rows[at][0].parse().expect("a cycle");
            assert!(cycle <= due, "{}: row {at} never came", case.file().display());
            // Inputs come before what the cycle decides, in the order of their rows.
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
                        flows.insert(tag, flow);
                    }
                }
                at += 1;
            }
            at += replayed.tick(|tag| flows[&tag]).len();
        }
        let body = golden.splitn(3, '\n').nth(2).expect("rows");
        assert_eq!(replayed.rows, body, "{}", case.file().display());
    }
}

#[test]
fn the_traces_meet_what_is_hard() {
    let (mut ahead, mut lengthened, mut refused) = (0, 0, 0);
    for case in cases() {
        let (trace, recorder, accepted) = record(&case);
        let grants = &recorder.grants;
        refused += trace.matches(",refused,").count();
        assert!(grants.iter().any(|grant| !grant.first && !grant.last), "no message of 3 chunks");
        let bytes: u64 = grants.iter().map(|grant| u64::from(grant.bytes)).sum();
        let demanded: u64 = accepted.values().map(|demand| u64::from(demand.bytes)).sum();
        assert_eq!(bytes, demanded, "{}", case.file().display());
        // Ahead of the destination, or later than its chunks alone would make it.
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
