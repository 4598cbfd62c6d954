//! Benchmarks of the parts of a run: `cargo bench -p ethermem-sim --bench micro`.
//!
//! These times explain a change in the time of a whole run; `targets` has the targets for whole
//! runs.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ethermem_edm::sched::{Demand, Flow, Scheduler, SchedulerConfig};
use ethermem_edm::{
    Action, Address, EdmConfig, Grant, Host, HostConfig, NodeId, Op, Outbound, Request, StatusCode,
    Token, WriteKind,
};
use ethermem_sim::engine::{Engine, Fabric, Handle, Loss, Observer, Sim, Violation};
use ethermem_sim::metrics::FabricStats;
use ethermem_sim::registry::{self, FABRIC_NAMES};
use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::LinkBlocks;
use ethermem_sim::{FabricConfig, Kind, Message, MessageSource, SourceError};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::{
    ChunkData, ChunkIndex, Deframer, Event, Message as WireMessage, MessageId, ReadResponse,
};

/// A linear congruential generator, cheap beside the measured work.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) * limit) >> 31
    }
}

/// Events that schedule the next one, as in the hold model of event queues: `EVENTS` in all.
struct Ring {
    draws: Draws,
    left: u64,
}

const EVENTS: u64 = 200_000;
/// Maximum picoseconds to the next event: a hop and the wait before it.
const STEP_PS_MAX: u64 = 300_000;

impl Fabric for Ring {
    type Event = Handle;
    type Parameters = ();

    fn build(_config: &FabricConfig, seed: u64) -> Ring {
        Ring { draws: Draws(seed), left: EVENTS }
    }

    fn submit(&mut self, sim: &mut Sim<Handle>, handle: Handle, _message: &Message) {
        sim.at(sim.now() + Ps(self.draws.below(STEP_PS_MAX)), handle);
    }

    fn handle(&mut self, sim: &mut Sim<Handle>, handle: Handle) {
        if self.left == 0 {
            sim.finish(handle, sim.now());
            return;
        }
        self.left -= 1;
        sim.at(sim.now() + Ps(self.draws.below(STEP_PS_MAX)), handle);
    }

    fn period(&self) -> Bytes {
        Bytes(1)
    }

    fn blocks(_config: &FabricConfig, _kind: Kind, _bytes: Bytes) -> LinkBlocks {
        LinkBlocks::default()
    }

    fn close(&self, _ended: Ps) -> Result<FabricStats, Violation> {
        Ok(FabricStats::default())
    }
}

/// Messages that all arrive at time zero.
struct Burst(u64);

impl MessageSource for Burst {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        let Some(rest) = self.0.checked_sub(1) else { return Ok(None) };
        self.0 = rest;
        let (kind, bytes) = (Kind::Read, Bytes(64));
        let message =
            Message { index: rest, arrival: Ps::ZERO, kind, compute: 0, memory: 1, bytes };
        Ok(Some(message))
    }

    fn messages_total(&self) -> Option<u64> {
        None
    }
}

struct Ignore;

impl Observer for Ignore {
    fn outcome(&mut self, _message: &Message, _outcome: Result<Ps, Loss>) {}
}

fn event_queue(criterion: &mut Criterion) {
    let config = scenario("").fabric;
    let mut group = criterion.benchmark_group("event queue: pop and push");
    group.throughput(Throughput::Elements(EVENTS));
    for pending in [100, 1_000, 10_000] {
        group.bench_function(BenchmarkId::from_parameter(pending), |bencher| {
            bencher.iter(|| {
                let engine = Engine::new(Ring::build(&config, 1));
                let interrupt = AtomicBool::new(false);
                engine.run(&mut Burst(pending), &mut Ignore, &interrupt, &|_| {})
            });
        });
    }
    group.finish();
}

/// A scheduler with a constant backlog of 64 B messages: each one that ends is replaced.
struct Saturated {
    scheduler: Scheduler,
    draws: Draws,
    now: Ps,
    ended: Vec<u16>,
}

/// Number of waiting messages per source.
const WAITING: u16 = 4;
const GRANTS: u64 = 1_000;

impl Saturated {
    fn new(ports: u16) -> Saturated {
        let slot = Ps(640);
        let edm = EdmConfig { scheduler_clock: Some(Ps(333)), ..EdmConfig::default() };
        let scheduler = Scheduler::new(SchedulerConfig::new(ports, &edm, Ps(2_560), slot));
        let ended = Vec::with_capacity(usize::from(ports));
        let mut saturated = Saturated { scheduler, draws: Draws(1), now: Ps::ZERO, ended };
        for source in 0..ports * WAITING {
            saturated.notify(source % ports);
        }
        saturated
    }

    fn notify(&mut self, source: u16) {
        let ports = u64::from(self.scheduler.config().ports);
        // A full pair refuses; then another destination is tried.
        loop {
            let offset = 1 + self.draws.below(ports - 1);
            let destination = ((u64::from(source) + offset) % ports) as u16;
            let (flow, bytes) = (Flow::WriteRequest, 64);
            let demand = Demand { source, destination, flow, bytes, tag: 0 };
            if self.scheduler.notify(demand).is_ok() {
                return;
            }
        }
    }

    /// Runs until [`GRANTS`] more grants were issued.
    fn grants(&mut self) {
        let end = self.scheduler.stats().grants + GRANTS;
        while self.scheduler.stats().grants < end {
            let wake = self.scheduler.next_wake().expect("messages wait");
            self.now = self.now.max(wake);
            let Saturated { scheduler, ended, now, .. } = self;
            scheduler.step(*now, |grant| ended.push(grant.source));
            while let Some(source) = self.ended.pop() {
                self.notify(source);
            }
        }
    }
}

fn scheduler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduler: notify and grant, saturated");
    group.throughput(Throughput::Elements(GRANTS));
    for ports in [32, 144, 512] {
        group.bench_function(BenchmarkId::from_parameter(ports), |bencher| {
            let mut saturated = Saturated::new(ports);
            bencher.iter(|| saturated.grants());
        });
    }
    group.finish();
}

const COMPUTE: NodeId = NodeId::at(0);
const MEMORY: NodeId = NodeId::at(1);

/// Two hosts that are directly connected: each receives what the other sends.
struct Exchange {
    compute: Host,
    memory: Host,
}

impl Exchange {
    fn new() -> Exchange {
        let edm = EdmConfig::default();
        let host =
            |node| Host::new(HostConfig { node, nodes: 144, edm: &edm, messages_max: 4_096 });
        Exchange { compute: host(COMPUTE), memory: host(MEMORY) }
    }

    /// Runs one message of 64 B, from its submission to its end.
    fn message(&mut self, op: Op) {
        let now = Ps::ZERO;
        let (token, address) = (Token(7), Address(0));
        let request = Request { token, peer: MEMORY, address, op, fence: false };
        self.compute.submit(now, request).expect("the host has room");
        while let Some(outbound) = self.compute.poll_outbound(now) {
            match outbound.sent_by(COMPUTE) {
                Outbound::Notify(sent) => {
                    let grant = Grant { peer: MEMORY, id: sent.id, bytes: sent.bytes };
                    self.compute.on_grant(now, grant);
                }
                Outbound::Chunk { chunk, .. } => {
                    if let Some(Action::Store(stored)) = self.memory.on_chunk(now, chunk) {
                        self.memory.on_written(now, &stored, StatusCode::Ok);
                    }
                }
                Outbound::Request(request) => {
                    black_box(self.memory.on_request(now, request));
                }
                Outbound::Status(status) => self.memory.on_status(now, status),
            }
        }
        while let Some(outbound) = self.memory.poll_outbound(now) {
            if let Outbound::Chunk { chunk, .. } = outbound.sent_by(MEMORY) {
                black_box(self.compute.on_chunk(now, chunk));
            }
        }
        let ended = self.compute.poll_event();
        assert!(ended.is_some(), "the message ended");
    }
}

fn hosts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hosts: both ends of a 64 B message");
    group.throughput(Throughput::Elements(1));
    let bytes = Bytes(64);
    let write = |kind| Op::Write { bytes, kind };
    for (name, op) in [("read", Op::Read { bytes }), ("write", write(WriteKind::Posted))] {
        group.bench_function(name, |bencher| {
            let mut exchange = Exchange::new();
            bencher.iter(|| exchange.message(op));
        });
    }
    group.finish();
}

fn wire(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wire: RRES");
    let data = [0x5a; 256];
    for bytes in [64, 256] {
        let message = WireMessage::ReadResponse(ReadResponse {
            source: ethermem_wire::NodeId::new(3).expect("3 is a node"),
            id: MessageId(9),
            index: ChunkIndex::new(0).expect("0 is an index"),
            last: true,
            data: ChunkData::new(&data[..bytes]).expect("a chunk has 1 to 1024 B"),
        });
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new("encode", bytes), |bencher| {
            bencher.iter(|| {
                for block in black_box(&message).blocks() {
                    black_box(block);
                }
            });
        });
        let blocks: Vec<_> = message.blocks().collect();
        group.bench_function(BenchmarkId::new("decode", bytes), |bencher| {
            let mut deframer: Deframer = Deframer::new();
            bencher.iter(|| {
                let mut decoded = false;
                for &block in black_box(&blocks) {
                    let event = deframer.push(block).expect("these blocks are a message");
                    decoded |= matches!(event, Some(Event::Message(_)));
                }
                assert!(decoded, "the last block completes the message");
            });
        });
    }
    group.finish();
}

fn workload(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("workload: draw");
    group.throughput(Throughput::Elements(1));
    for (name, sizes) in [("64 B", "message_bytes = 64"), ("cdf", "size_cdf = \"memcached\"")] {
        let text = format!("[workload]\nload = 0.4\nmessages = 1000000000\n{sizes}\n");
        let scenario = scenario(&text);
        let config = &scenario.fabric;
        let blocks = registry::find("edm").expect("EDM is in the registry").blocks;
        group.bench_function(name, |bencher| {
            let mut source = scenario
                .workload
                .open(config.nodes, config.link, 1, &|kind, bytes| blocks(config, kind, bytes))
                .expect("a synthetic workload opens");
            bencher.iter(|| source.next_message());
        });
    }
    group.finish();
}

fn scenario(text: &str) -> Scenario {
    let text = format!("[run]\nseed = 1\n{text}");
    Scenario::parse(&text, Path::new("micro"), FABRIC_NAMES)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A short configuration: these results are for comparisons, and `targets` measures whole runs.
fn quick() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots()
}

criterion_group! {
    name = parts;
    config = quick();
    targets = event_queue, scheduler, hosts, wire, workload
}
criterion_main!(parts);
