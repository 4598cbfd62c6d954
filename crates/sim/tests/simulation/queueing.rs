//! Links compared with results of queueing theory.

use ethermem_edm::Arbitration;
use ethermem_sim::config::{Background, FrameArbitration};
use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::output_queued::OutputQueued;
use ethermem_sim::fabrics::raw_ethernet::RawEthernet;
use ethermem_sim::packet::Frame;
use ethermem_sim::topology::{Sharing, Star, Transmitter};
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Blocks, Bytes, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

const SLOT: Ps = Ps(640);
const BLOCKS: Blocks = Blocks(10);
const SERVICE_PS: f64 = 6_400.0;

/// Poisson arrivals at `load` at a server that takes 10 slots.
struct Arrivals {
    rng: Xoshiro256PlusPlus,
    gap_ps: f64,
    at_ps: f64,
}

impl Arrivals {
    fn new(seed: u64, load: f64) -> Arrivals {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Arrivals { rng, gap_ps: SERVICE_PS / load, at_ps: 0.0 }
    }

    fn next(&mut self) -> Ps {
        let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        self.at_ps -= uniform.ln() * self.gap_ps;
        Ps(self.at_ps as u64)
    }
}

fn uplink(config: &FabricConfig, arbitration: Arbitration) -> Transmitter {
    Star::new(config, Sharing::in_phy(arbitration), 3).up[0].clone()
}

/// Mean wait in an M/D/1 queue, in service times: Pollaczek and Khinchine.
fn pollaczek_khinchine(load: f64) -> f64 {
    load / (2.0 * (1.0 - load))
}

#[test]
fn a_transmitter_is_an_m_d_1_queue() {
    let config = fabric_config("nodes = 2");
    // The mean wait over n messages has a relative standard deviation of about sqrt(c / n) / (1 -
    // load), where c is some units: 0.2 % and 0.6 % here.
    for (load, tolerance) in [(0.5, 0.01), (0.8, 0.02)] {
        let mut link = uplink(&config, Arbitration::Fair);
        let mut arrivals = Arrivals::new(11, load);
        let messages = 2_000_000;
        let mut waited = 0.0;
        for _ in 0..messages {
            let ready = arrivals.next();
            waited += (link.send(ready, BLOCKS, Blocks(8)) - ready).0 as f64;
        }
        let mean = waited / f64::from(messages) / SERVICE_PS;
        let expected = pollaczek_khinchine(load);
        assert!((mean / expected - 1.0).abs() < tolerance, "{mean} for {expected} at {load}");
    }
}

#[test]
fn the_egress_of_the_output_queued_bound_is_an_m_d_1_queue() {
    // 255 nodes write to one. Each uplink is hardly used, so arrivals at the egress are practically
    // Poisson, and a message's additional time is its wait there.
    let config = fabric_config("nodes = 256");
    let alone = Alone::<OutputQueued>::new(&config).time(Kind::Write, Bytes(64));
    for (load, tolerance) in [(0.5, 0.02), (0.8, 0.03)] {
        let mut arrivals = Arrivals::new(5, load);
        let mut nodes = Xoshiro256PlusPlus::seed_from_u64(9);
        let messages: Vec<Message> = (0..200_000)
            .map(|_| {
                let node = 1 + (nodes.next_u64() % 255) as u16;
                message(arrivals.next(), Kind::Write, node, 0, 64)
            })
            .collect();
        let (finished, _) = run_messages::<OutputQueued>(&config, &messages);
        let waited: f64 = messages
            .iter()
            .zip(&finished)
            .map(|(message, &finished)| (finished - message.arrival - alone).0 as f64)
            .sum();
        let mean = waited / messages.len() as f64 / SERVICE_PS;
        let expected = pollaczek_khinchine(load);
        assert!((mean / expected - 1.0).abs() < tolerance, "{mean} for {expected} at {load}");
    }
}

/// The waits of 20,000 items of 10 blocks that never meet each other, beside frames.
fn waits_beside_frames(arbitration: Arbitration) -> Vec<Ps> {
    let mut config = fabric_config("nodes = 2");
    config.background.load = 0.45;
    let mut link = uplink(&config, arbitration);
    let spaced = |item: u64| Ps(item * 1_000_003 / 20);
    let waits = (0..20_000).map(|item| link.send(spaced(item), BLOCKS, Blocks(8)) - spaced(item));
    let waits = waits.collect();
    // The arrived frames match the load: 0.45 of the slots, 193 blocks each.
    let frames = Transmitter::frame_stats([&link].into_iter(), spaced(20_000)).expect("configured");
    let arrived = frames.sent + frames.waiting_blocks / 193;
    let expected = spaced(20_000).0 as f64 / SLOT.0 as f64 * 0.45 / 193.0;
    let deviation = (arrived as f64 - expected) / expected.sqrt();
    assert!(deviation.abs() < 4.0, "{arrived} frames for {expected}");
    waits
}

/// Mean time from arrival to start of two classes of Poisson arrivals, memory before frames, no
/// preemption (Cobham, 1954): `R / (1 - a)` and `R / ((1 - a)(1 - a - b))`. The residual service is
/// `R = (a S + b T) / 2` for loads `a`, `b` of fixed service times `S`, `T`.
fn cobham(memory: (f64, f64), frames: (f64, f64)) -> (f64, f64) {
    let residual = (memory.0 * memory.1 + frames.0 * frames.1) / 2.0;
    let first = residual / (1.0 - memory.0);
    (first, first / (1.0 - memory.0 - frames.0))
}

#[test]
fn memory_and_frames_that_cannot_be_preempted_wait_as_two_priorities_do() {
    let frame_ps = SLOT.0 as f64 * 193.0;
    for (memory, frames) in [(0.3, 0.3), (0.5, 0.2), (0.2, 0.6)] {
        let mut config = fabric_config("nodes = 2");
        config.background =
            Background { load: frames, arbitration: FrameArbitration::Strict, ..config.background };
        let mut link = Star::new(&config, Sharing::of_frames(&config.background), 3).up[0].clone();
        let mut arrivals = Arrivals::new(11, memory);
        let messages = 8_000_000;
        let (mut waited, mut last) = (0.0, Ps::ZERO);
        for _ in 0..messages {
            let ready = arrivals.next();
            waited += (link.send(ready, BLOCKS, Blocks(8)) - ready).0 as f64;
            last = ready;
        }
        let mean = waited / f64::from(messages);
        let (expected, behind) = cobham((memory, SERVICE_PS), (frames, frame_ps));
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} for {expected} at {memory}");
        let stats = Transmitter::frame_stats([&link].into_iter(), last).expect("configured");
        let mean = stats.latency_ns_mean.expect("sent") * 1e3 - frame_ps;
        assert!((mean / behind - 1.0).abs() < 0.02, "{mean} for {behind}, frames at {frames}");
    }
}

#[test]
fn a_run_beside_frames_waits_at_its_interface_for_the_one_in_flight() {
    // Writes of 64 B at a hundredth of the links: what they wait for is the frames. One class of
    // its own at each of two ports: R / (1 - a), with a load of frames of 0.5 and little memory.
    let run = |arbitration: &str| {
        let scenario = scenario(&format!(
            "[fabric]\nkind = \"raw-ethernet\"\nnodes = 32\n[background]\nload = 0.5\n\
             arbitration = \"{arbitration}\"\n[workload]\nload = 0.02\nread_fraction = 0\n\
             messages = 200000"
        ));
        let result = run_scenario(&scenario, "raw-ethernet", None);
        let alone = Alone::<RawEthernet>::new(&scenario.fabric).time(Kind::Write, Bytes(64));
        result.kinds.all.latency_ns_mean.expect("messages") - alone.as_ns_f64()
    };
    let line_ps = SLOT.0 as f64 * f64::from(Frame::of(64 + 16).line);
    let (expected, _) = cobham((0.02, line_ps), (0.5, SLOT.0 as f64 * 193.0));
    let strict = run("strict") / 2.0 * 1e3;
    assert!((strict / expected - 1.0).abs() < 0.02, "{strict} for {expected}");
    // The frame yields after 64 B at the earliest: some 16 blocks at the most, and 2 behind them.
    let preemptive = run("preemptive") / 2.0 * 1e3;
    assert!(preemptive < strict / 10.0, "{preemptive} of {strict}");
}

#[test]
fn strict_memory_waits_for_less_than_the_block_under_way() {
    let waits = waits_beside_frames(Arbitration::Strict);
    assert!(waits.iter().all(|&wait| wait < SLOT), "{:?}", waits.iter().max());
    assert!(waits.iter().filter(|wait| **wait > Ps::ZERO).count() > 5_000);
}

#[test]
fn fair_memory_waits_for_as_many_blocks_as_the_item_before_it() {
    let waits = waits_beside_frames(Arbitration::Fair);
    // The frames are owed at most the 10 slots that the previous item took; and one block may be in
    // progress.
    let longest = waits.iter().max().expect("some");
    assert!(*longest < SLOT * 11, "{longest}");
}

#[test]
fn fair_memory_and_frames_take_turns_of_equal_length() {
    // Items come in pairs, the second one ready when the first has left. Frames that waited while
    // the first was sent take as many slots as it did, before the second.
    let mut config = fabric_config("nodes = 2");
    config.background.load = 0.45;
    let mut link = uplink(&config, Arbitration::Fair);
    let mut turns = 0;
    for pair in 0..10_000 {
        let first = link.send(Ps(pair * 100_003), BLOCKS, Blocks(8));
        let ready = first + SLOT * BLOCKS.0;
        let waited = link.send(ready, BLOCKS, Blocks(8)) - ready;
        assert!(waited <= SLOT * 10, "{waited}");
        turns += u32::from(waited == SLOT * 10);
    }
    // A frame of 193 blocks is in progress 45 % of the time, and even more often one waits.
    assert!(turns > 4_000, "{turns} full turns");
}

#[test]
fn frames_of_the_poisson_workload_wait_as_in_m_d_1_queues() {
    // All nodes send to all: arrivals at an interface are Poisson, and so are arrivals at a port,
    // mixed from 143 of them. The load is the share of a link that frames take.
    for load in [0.3, 0.5, 0.7] {
        let scenario = scenario(&format!(
            "[fabric]\nkind = \"raw-ethernet\"\n[workload]\nload = {load}\nread_fraction = 0\n\
             messages = 600000"
        ));
        let result = run_scenario(&scenario, "raw-ethernet", None);
        let alone = Alone::<RawEthernet>::new(&scenario.fabric).time(Kind::Write, Bytes(64));
        let line = SLOT.0 as f64 * f64::from(Frame::of(64 + 16).line);
        let waited_ns = result.kinds.all.latency_ns_mean.expect("messages") - alone.as_ns_f64();
        let mean = waited_ns * 1e3 / line / 2.0;
        let expected = pollaczek_khinchine(load);
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean} for {expected} at {load}");
    }
}
