//! Measures the library's cost over driving the engine directly: `cargo bench -p ethermem-bench`.
//!
//! Both sides keep an equal number of clients busy with equal reads and writes on one fabric. One
//! side goes through `Pool`, with tasks, memory and order; the other sends message by message,
//! through the engine's own interface. They alternate, so that other load of the machine affects
//! both. The result is the median of the turns' ratios of processor time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use ethermem::{Permissions, Pool, Ps};
use ethermem_bench::Draws;
use ethermem_sim::engine::Heard;
use ethermem_sim::registry::{FABRIC_NAMES, find};
use ethermem_sim::scenario::{Changes, Scenario};
use ethermem_sim::{Kind, Message};
use ethermem_units::Bytes;

/// Number of turns of both sides.
const TURNS: usize = 9;
/// Largest allowed cost of the library, in percent of events per second.
const TARGET_PERCENT: f64 = 25.0;
/// Number of messages per turn.
const OPERATIONS: u64 = 200_000;

/// A fabric and its load.
struct Case {
    fabric: &'static str,
    nodes: u16,
    clients: u16,
    bytes: u64,
}

const CASES: [Case; 6] = [
    Case { fabric: "edm", nodes: 2, clients: 1, bytes: 64 },
    Case { fabric: "edm", nodes: 16, clients: 64, bytes: 64 },
    Case { fabric: "edm", nodes: 144, clients: 576, bytes: 64 },
    Case { fabric: "edm", nodes: 16, clients: 64, bytes: 1024 },
    Case { fabric: "cxl", nodes: 16, clients: 64, bytes: 64 },
    Case { fabric: "roce", nodes: 16, clients: 64, bytes: 64 },
];

/// Measurements of one side.
struct Sample {
    events: u64,
    core_s: f64,
}

impl Sample {
    fn events_per_s(&self) -> f64 {
        self.events as f64 / self.core_s
    }
}

fn main() -> ExitCode {
    let mut missed = 0;
    for case in &CASES {
        let Case { fabric, nodes, clients, bytes } = case;
        let mut turns: Vec<(f64, f64, f64)> = (0..TURNS)
            .map(|turn| {
                // The order alternates, too.
                let (direct, pool) = if turn % 2 == 0 {
                    let direct = direct(case);
                    (direct, through_pool(case))
                } else {
                    let pool = through_pool(case);
                    (direct(case), pool)
                };
                // Ties may differ, and for RoCE some timers, too: 562 of 1.5 million events.
                let apart = direct.events.abs_diff(pool.events);
                assert!(apart * 1_000 <= direct.events, "both do the same: {apart} events apart");
                let (direct, pool) = (direct.events_per_s(), pool.events_per_s());
                (direct / pool - 1.0, direct, pool)
            })
            .collect();
        turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (overhead, direct, pool) = turns[TURNS / 2];
        let percent = overhead * 100.0;
        let is_met = percent <= TARGET_PERCENT;
        missed += usize::from(!is_met);
        println!(
            "{fabric}, {nodes} nodes, {clients} clients, {bytes} B: directly {:.2} M events/s, \
             by the pool {:.2} M: overhead {percent:.1} % ({:.1} to {:.1}), \
             asked {TARGET_PERCENT}: {}",
            direct / 1e6,
            pool / 1e6,
            turns[0].0 * 100.0,
            turns[TURNS - 1].0 * 100.0,
            if is_met { "met" } else { "missed" }
        );
    }
    println!("{missed} of {} cases missed", CASES.len());
    ExitCode::SUCCESS
}

/// The next operation of a client: its kind, and one of 256 places.
fn next(draws: &mut Draws) -> (Kind, u64) {
    let place = draws.below(256);
    (if draws.below(2) == 0 { Kind::Read } else { Kind::Write }, place)
}

impl Case {
    fn computes(&self) -> u16 {
        self.nodes / 2
    }

    /// Compute and memory node of a client.
    fn ends(&self, client: u16) -> (u16, u16) {
        (client % self.computes(), (client / self.computes() + client) % self.computes())
    }
}

fn through_pool(case: &Case) -> Sample {
    let pool = Pool::open(&format!("sim:{}?nodes={}", case.fabric, case.nodes)).expect("it opens");
    let owner = pool.thread_on(0).expect("there is a node");
    let clients: Vec<_> = (0..case.clients)
        .map(|client| {
            let (compute, memory) = case.ends(client);
            let region = owner.alloc_on(memory, 256 * case.bytes, Permissions::READ_WRITE);
            let region = region.wait().expect("there is room");
            region.by(&owner.fork_on(compute).expect("there is a node"))
        })
        .collect();
    let left = std::rc::Rc::new(std::cell::Cell::new(OPERATIONS));
    let tasks = pool.tasks();
    for (client, region) in clients.into_iter().enumerate() {
        let (left, bytes) = (left.clone(), case.bytes);
        let (mut draws, data) = (Draws::new(1, client as u64), vec![7; bytes as usize]);
        tasks.spawn(async move {
            while left.get() > 0 {
                left.set(left.get() - 1);
                let (kind, place) = next(&mut draws);
                match kind {
                    Kind::Write => region.write(place * bytes, &data).await.expect("it ends"),
                    _ => drop(region.read(place * bytes, bytes).await.expect("it ends")),
                }
            }
        });
    }
    let (before, clock) = (pool.events(), Clock::start());
    tasks.run();
    Sample { events: pool.events() - before, core_s: clock.stop_s() }
}

fn direct(case: &Case) -> Sample {
    let settings = [
        format!("fabric.kind={}", case.fabric),
        format!("fabric.nodes={}", case.nodes),
        "fabric.memory_access_ns=82".to_owned(),
    ];
    let settings = settings.iter().map(|text| text.parse().expect("a key and its value"));
    let changes = Changes { settings: settings.collect(), trace: None };
    let scenario = Scenario::default_with(&changes, FABRIC_NAMES).expect("it is allowed");
    let fabric = find(case.fabric).expect("a fabric of this name");
    let mut live = fabric.live(&scenario, false).expect("it is allowed");
    let mut draws: Vec<Draws> =
        (0..case.clients).map(|client| Draws::new(1, client.into())).collect();
    // Clients that may submit, by time and by the order in which that became known.
    let mut turns: BinaryHeap<Reverse<(Ps, u64, u16)>> =
        (0..case.clients).map(|client| Reverse((Ps::ZERO, client.into(), client))).collect();
    let (mut order, mut left) = (u64::from(case.clients), OPERATIONS);
    let mut open = OPERATIONS;
    let mut heard = Vec::new();
    let clock = Clock::start();
    // As in the pool, timers behind the last message are ignored.
    while open > 0 {
        let due = turns.peek().map_or(Ps::MAX, |Reverse((at, ..))| *at);
        if due <= live.now() {
            let Reverse((arrival, _, client)) = turns.pop().expect("it was seen");
            if left == 0 {
                continue;
            }
            left -= 1;
            let (kind, _) = next(&mut draws[usize::from(client)]);
            let (compute, memory) = case.ends(client);
            let (index, bytes) = (client.into(), Bytes(case.bytes));
            let memory = case.computes() + memory;
            live.submit(Message { index, arrival, kind, compute, memory, bytes });
            continue;
        }
        live.advance(due, &mut heard).expect("there is no background");
        for heard in heard.drain(..) {
            if let Heard::Ended { message, outcome } = heard {
                (order, open) = (order + 1, open - 1);
                turns.push(Reverse((outcome.expect("nothing is lost"), order, message as u16)));
            }
        }
    }
    Sample { events: live.events(), core_s: clock.stop_s() }
}

/// Processor time of this thread if the system gives it, otherwise wall time.
struct Clock {
    wall: Instant,
    core_ns: Option<u64>,
}

impl Clock {
    fn start() -> Clock {
        Clock { wall: Instant::now(), core_ns: core_ns() }
    }

    fn stop_s(&self) -> f64 {
        match (self.core_ns, core_ns()) {
            (Some(before), Some(after)) => (after - before) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// Processor time in ns, Linux's first field.
fn core_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
