//! Traces of the clocked scheduler in a small switch, so that its inputs are a switch's: arrivals
//! in bursts and alone, mice and elephants, and their control blocks. As in hardware, each port
//! notifies at most once a cycle, and inputs of one cycle are ordered by port.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use ethermem_edm::sched::{CycleGrant, CycleScheduler, Demand, Flow, NotifyError, SchedulerConfig};
use ethermem_edm::{EdmConfig, Order, Policy};
use ethermem_units::{Bytes, Ps};

use crate::rng::Rng;

pub(crate) const COLUMNS: &str =
    "cycle,event,source,destination,flow,tag,bytes,blocks,at_cycle,first,last";
/// Time of a cycle. Cycles of the scheduler's clock are counted, so its value does not matter.
pub(crate) const CYCLE: Ps = Ps(1_000);
/// Maximum number of demands that a port holds before arrivals wait, so that an overload stays
/// bounded.
const BACKLOG_MAX: usize = 8;
/// Number of messages after which the load changes.
const EPOCH_MESSAGES: u32 = 64;

#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) ports: u16,
    pub(crate) policy: Policy,
    pub(crate) order: Order,
    /// Number of messages, or cycles, after which arrivals end.
    pub(crate) messages: u32,
    pub(crate) cycles: u64,
    pub(crate) seed: u64,
}

pub(crate) const POLICIES: [(Policy, &str); 5] = [
    (Policy::Fcfs, "fcfs"),
    (Policy::Srpt, "srpt"),
    (Policy::SrptPublished, "srpt-published"),
    (Policy::Auto, "auto"),
    (Policy::SrptClasses, "srpt-classes"),
];
pub(crate) const ORDERS: [(Order, &str); 2] = [(Order::Pair, "pair"), (Order::Relaxed, "relaxed")];

pub(crate) fn name_of<T: PartialEq + Copy>(names: &[(T, &'static str)], value: T) -> &'static str {
    names.iter().find(|(named, _)| *named == value).expect("all are named").1
}

pub(crate) fn value_of<T: PartialEq + Copy>(names: &[(T, &'static str)], name: &str) -> T {
    names.iter().find(|(_, known)| *known == name).expect("a known name").0
}

impl Case {
    pub(crate) fn config(&self) -> SchedulerConfig {
        let edm = EdmConfig {
            chunk: Bytes(128),
            policy: self.policy,
            order: self.order,
            ..EdmConfig::default()
        };
        // Slots of one cycle and of two; a debt that is soon used up, and the default one.
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

/// The generator of the stimulus.
struct Draws {
    rng: Rng,
    /// Factor by which arrivals are rarer.
    thinned: u32,
}

impl Draws {
    fn below(&mut self, end: u32) -> u32 {
        self.rng.below(end.into()) as u32
    }

    fn demand(&mut self, ports: u16, tag: u32) -> Demand {
        // A quarter of the demands is of one pair, so that the pair is full now and then.
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

    /// Number of cycles until the next arrival: bursts, then single arrivals for a while.
    fn gap(&mut self, ports: u16) -> u64 {
        match self.below(3) {
            0 => u64::from(self.below(1 + self.thinned * 240 / u32::from(ports))),
            _ => 0,
        }
    }

    /// Draws a load: overload, a load that leaves ports idle, or hardly any.
    fn new_epoch(&mut self) {
        self.thinned = [1, 1, 2, 4][self.below(4) as usize];
    }
}

/// A charge: the port, its blocks, and whether it is an uplink.
type Charge = (u16, u32, bool);

/// A scheduler whose inputs and grants are recorded.
pub(crate) struct Recorder {
    pub(crate) scheduler: CycleScheduler,
    pub(crate) rows: String,
    pub(crate) grants: Vec<CycleGrant>,
    pub(crate) demanded_bytes: u64,
    pub(crate) waiting: BTreeMap<u32, Demand>,
}

impl Recorder {
    pub(crate) fn new(config: &SchedulerConfig) -> Recorder {
        Recorder {
            scheduler: CycleScheduler::new(config.clone()),
            rows: String::new(),
            grants: Vec::new(),
            demanded_bytes: 0,
            waiting: BTreeMap::new(),
        }
    }

    pub(crate) fn notify(&mut self, demand: Demand) -> Result<(), NotifyError> {
        let result = self.scheduler.notify(demand);
        let event = if result.is_ok() { "notify" } else { "refused" };
        let Demand { source, destination, flow, bytes, tag } = demand;
        let (cycle, flow) = (self.scheduler.cycle(), flow_name(flow));
        writeln!(self.rows, "{cycle},{event},{source},{destination},{flow},{tag},{bytes},,,,")
            .expect("a string takes all");
        if result.is_ok() {
            self.demanded_bytes += u64::from(bytes);
            self.waiting.insert(tag, demand);
        }
        result
    }

    pub(crate) fn charge(&mut self, (port, blocks, uplink): Charge) {
        let cycle = self.scheduler.cycle();
        if uplink {
            self.scheduler.charge_source(port, blocks);
            writeln!(self.rows, "{cycle},uplink,{port},,,,,{blocks},,,").expect("a string");
        } else {
            self.scheduler.charge_destination(port, blocks);
            writeln!(self.rows, "{cycle},downlink,,{port},,,,{blocks},,,").expect("a string");
        }
    }

    /// Runs one cycle; returns its grants, and the flow of each.
    pub(crate) fn tick(&mut self) -> Vec<(CycleGrant, Flow)> {
        let cycle = self.scheduler.cycle();
        let mut granted = Vec::new();
        for grant in self.scheduler.tick() {
            let CycleGrant { at_cycle, source, destination, tag, bytes, first, last } = grant;
            let flow = self.waiting[&tag].flow;
            if last {
                self.waiting.remove(&tag);
            }
            let name = flow_name(flow);
            let (first, last) = (u8::from(first), u8::from(last));
            let message = format!("{source},{destination},{name},{tag},{bytes}");
            writeln!(self.rows, "{cycle},grant,{message},,{at_cycle},{first},{last}")
                .expect("a string takes all");
            self.grants.push(grant);
            granted.push((grant, flow));
        }
        granted
    }
}

fn flow_name(flow: Flow) -> &'static str {
    match flow {
        Flow::ReadResponse => "response",
        Flow::WriteRequest => "write",
    }
}

/// The port of the compute node that sends the request or notification.
fn asker(demand: &Demand) -> u16 {
    match demand.flow {
        Flow::ReadResponse => demand.destination,
        Flow::WriteRequest => demand.source,
    }
}

/// The control blocks of a message on the uplink of its compute node.
fn request_charge(demand: &Demand) -> Charge {
    let blocks = if demand.flow == Flow::ReadResponse { 2 } else { 1 };
    (asker(demand), blocks, true)
}

/// The demands of the ports, ahead of the cycle in which they are sent.
struct Arrivals {
    draws: Draws,
    asks: Vec<VecDeque<Demand>>,
    next_tag: u32,
    next_cycle: u64,
}

impl Arrivals {
    fn ended(&self, case: &Case, cycle: u64) -> bool {
        self.next_tag >= case.messages || cycle >= case.cycles
    }

    fn wait(&self) -> bool {
        self.asks.iter().any(|queue| !queue.is_empty())
    }

    fn come(&mut self, case: &Case, cycle: u64) {
        while !self.ended(case, cycle) && self.next_cycle <= cycle {
            let demand = self.draws.demand(case.ports, self.next_tag);
            self.next_tag += 1;
            if self.next_tag.is_multiple_of(EPOCH_MESSAGES) {
                self.draws.new_epoch();
            }
            self.next_cycle += self.draws.gap(case.ports);
            let queue = &mut self.asks[usize::from(asker(&demand))];
            if queue.len() < BACKLOG_MAX {
                queue.push_back(demand);
            } else {
                self.next_cycle = self.next_cycle.max(cycle + 1);
            }
        }
    }
}

/// Runs a case to the end of its last message. `each_cycle` may take out the recorded rows.
pub(crate) fn record(case: &Case, mut each_cycle: impl FnMut(&mut Recorder)) -> Recorder {
    let config = case.config();
    let mut arrivals = Arrivals {
        draws: Draws { rng: Rng(case.seed), thinned: 1 },
        asks: vec![VecDeque::new(); usize::from(case.ports)],
        next_tag: 0,
        next_cycle: 0,
    };
    let mut recorder = Recorder::new(&config);
    let mut charges: BTreeMap<u64, Vec<Charge>> = BTreeMap::new();
    let mut idle_cycles = 0;
    loop {
        let cycle = recorder.scheduler.cycle();
        arrivals.come(case, cycle);
        for demand in arrivals.asks.iter_mut().filter_map(VecDeque::pop_front) {
            recorder.charge(request_charge(&demand));
            // A refusal is recorded; the port does not retry.
            let _ = recorder.notify(demand);
        }
        for charge in charges.remove(&cycle).unwrap_or_default() {
            recorder.charge(charge);
        }
        let grants = recorder.tick();
        idle_cycles = if grants.is_empty() { idle_cycles + 1 } else { 0 };
        for (grant, flow) in grants {
            let blocks = if grant.first && flow == Flow::ReadResponse { 2 } else { 1 };
            charges.entry(grant.at_cycle + 1).or_default().push((grant.source, blocks, false));
        }
        each_cycle(&mut recorder);
        let waits = !recorder.waiting.is_empty() || arrivals.wait();
        assert!(!waits || idle_cycles < 100_000, "messages are never granted");
        if arrivals.ended(case, cycle) && !waits && charges.is_empty() {
            return recorder;
        }
    }
}

pub(crate) fn header(case: &Case, config: &SchedulerConfig) -> String {
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
