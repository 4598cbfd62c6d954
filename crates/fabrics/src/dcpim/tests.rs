//! Tests of dcPIM against theory and its paper.

use std::sync::atomic::AtomicBool;

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Reader;
use ethermem_engine::engine::{Alone, Engine, Fabric, Loss, Observer};
use ethermem_engine::metrics::PacketCounts;
use ethermem_engine::topology::Layout;
use ethermem_frames::Frame;
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message, NodeIndex};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Dcpim, DcpimConfig, Rules};
use crate::given::Given;

const SLOT: u64 = 640;
/// Bytes of IPv4, 20 bytes of a transport, and the memory header.
const HEADERS: u64 = 40 + 16;
const PAYLOAD: u64 = 1_500 - HEADERS;

struct Finished(Vec<Option<Ps>>);

impl Observer for Finished {
    fn outcome(&mut self, message: &Message, outcome: Result<Ps, Loss>) {
        let at = outcome.unwrap_or_else(|_| panic!("{message:?} was lost"));
        let before = self.0[message.index as usize].replace(at);
        assert_eq!(before, None, "{message:?} finished twice");
    }
}

fn config(keys: &str) -> FabricConfig {
    let text = format!("[fabric]\n{keys}\n");
    let reader = Reader::of::<DcpimConfig>().into_iter();
    FabricConfig::parse(&text, "dcpim", reader).unwrap_or_else(|error| panic!("{error}"))
}

fn rules(config: &FabricConfig) -> Rules {
    Rules::new(config, &Layout::new(config, Ps::ZERO))
}

fn message(at: u64, kind: Kind, (compute, memory): (u16, u16), bytes: u64) -> Message {
    Message { index: 0, arrival: Ps(at), kind, compute, memory, bytes: Bytes(bytes) }
}

fn write(from: NodeIndex, to: NodeIndex, bytes: u64) -> Message {
    message(1_000, Kind::Write, (from, to), bytes)
}

/// The end of each message, and the network's packet counters.
fn run(config: &FabricConfig, messages: &[Message]) -> (Vec<Ps>, PacketCounts) {
    let numbered = messages.iter().enumerate();
    let numbered: Vec<_> = numbered.map(|(n, m)| Message { index: n as u64, ..*m }).collect();
    let mut finished = Finished(vec![None; messages.len()]);
    let end = Engine::new(Dcpim::build(config, 1))
        .run(&mut Given::new(numbered), &mut finished, &AtomicBool::new(false), &|_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    let times = finished.0.into_iter().map(|at| at.expect("every message finishes")).collect();
    (times, end.stats.packets.expect("packets"))
}

/// The time from the first start to the last end of all messages.
fn time_of_all(config: &FabricConfig, messages: &[Message]) -> Ps {
    let (finished, _) = run(config, messages);
    *finished.iter().max().expect("some") - messages[0].arrival
}

/// Time from the first block of a frame to its last.
fn tail(payload: u64) -> Ps {
    Ps(SLOT * u64::from(Frame::of(payload).tail))
}

/// Time of a frame on a link.
fn line(payload: u64) -> Ps {
    Ps(SLOT * u64::from(Frame::of(payload).line))
}

/// Table 1's one-way budget at 100 Gb/s, with a frame that is stored twice.
fn one_way(payload: u64) -> Ps {
    Ps(557_440) + tail(payload) * 2
}

/// Time of data whose packets follow each other without a gap.
fn back_to_back(bytes: u64) -> Ps {
    let before = (bytes - 1) / PAYLOAD;
    let last = HEADERS + bytes - before * PAYLOAD;
    // The last packet is stored at the switch before the full one in front of it is gone.
    let first = if before == 0 { last } else { 1_500 };
    Ps(557_440) + tail(first) + tail(last) + line(1_500) * before
}

#[test]
fn a_short_message_alone_takes_the_budget_to_the_picosecond() {
    let config = config("nodes = 3\nmemory_access_ns = 50");
    let most = u64::from(rules(&config).short_packets) * PAYLOAD;
    for bytes in [1, 64, 1_000, PAYLOAD + 1, most] {
        let time = |kind| time_of_all(&config, &[message(5_000, kind, (0, 1), bytes)]);
        // The announcement leaves first.
        let write = line(HEADERS) + back_to_back(bytes);
        assert_eq!(time(Kind::Write), write, "{bytes} B");
        assert_eq!(time(Kind::Read), one_way(HEADERS) + Ps(50_000) + write, "{bytes} B");
        let alone = Alone::<Dcpim>::new(&config).time(Kind::Write, Bytes(bytes));
        assert_eq!(alone, write, "{bytes} B");
    }
}

#[test]
fn a_long_message_waits_for_a_match_and_then_takes_its_budget() {
    let config = config("nodes = 3\nmemory_access_ns = 50");
    let rules = rules(&config);
    let short = u64::from(rules.short_packets) * PAYLOAD;
    let round = rules.epochs.begin(0, 1);
    let mut alone = Alone::<Dcpim>::new(&config);
    for bytes in [short + 1, 100 * PAYLOAD, 999_999] {
        // An announcement and a token: once matched, there is no other wait.
        let write = one_way(HEADERS) + one_way(40) + back_to_back(bytes);
        assert_eq!(alone.time(Kind::Write, Bytes(bytes)), write, "{bytes} B");
        let read = one_way(HEADERS) + Ps(50_000) + write;
        assert_eq!(alone.time(Kind::Read, Bytes(bytes)), read, "{bytes} B");
    }
    // Half a megabyte fills all channels. At any arrival time, a round begins within a round's
    // time, and the match comes at the end of that round.
    let bytes = 500_000;
    let free = one_way(HEADERS) + one_way(40) + back_to_back(bytes);
    for part in 0..23 {
        let at = 1_000 + round.0 * 4 * part / 23;
        let time = time_of_all(&config, &[message(at, Kind::Write, (0, 1), bytes)]);
        // The last packets may fill fewer channels, for less than an epoch.
        let most = free + round * 2 + rules.epochs.sending();
        assert!(time >= free + round && time < most, "{time}: {free} free, at most {most}");
    }
}

#[test]
fn a_channel_that_both_ends_have_free_is_used_from_its_match_on() {
    let time = |prompt| {
        let config = config(&format!("nodes = 3\n[fabric.dcpim]\nprompt = {prompt}"));
        time_of_all(&config, &[write(0, 1, 500_000)])
    };
    // Otherwise the sending begins when the matching has ended: two rounds later.
    let round = rules(&config("nodes = 3")).epochs.begin(0, 1);
    let (with, without) = (time(true), time(false));
    assert!(without > with + round && without < with + round * 4, "{with} {without}");
}

#[test]
fn a_receiver_of_an_incast_is_busy_and_nothing_is_lost() {
    let (senders, packets) = (12, 2_000);
    let config = config("nodes = 13");
    let to = |from| write(from, senders, packets * PAYLOAD);
    let messages: Vec<_> = (0..senders).map(to).collect();
    let (finished, counts) = run(&config, &messages);
    let time = *finished.iter().max().expect("some");
    let ideal = line(1_500) * (u64::from(senders) * packets);
    let share = ideal.0 as f64 / time.0 as f64;
    assert!(share > 0.95, "{share} of the link");
    assert_eq!(counts.dropped, 0, "{counts:?}");
}

#[test]
fn a_permutation_of_long_flows_runs_at_nearly_line_rate() {
    let packets = 8_000;
    for keys in ["", "skew_ns = 0", "skew_ns = 400"] {
        let config = config(&format!("nodes = 16\n[fabric.dcpim]\n{keys}"));
        let time = |messages: Vec<Message>| {
            let time = time_of_all(&config, &messages);
            (line(1_500) * packets).0 as f64 / time.0 as f64
        };
        let one_way = time((0..8).map(|from| write(from, 8 + from, packets * PAYLOAD)).collect());
        assert!(one_way > 0.96, "{one_way} of the links, {keys}");
        // A node that also receives sends a token for each arriving packet.
        let to = |from: u16| write(from, (from + 5) % 16, packets * PAYLOAD);
        let both = time((0..16).map(to).collect());
        let most = line(1_500).0 as f64 / (line(1_500) + line(40)).0 as f64;
        assert!(both > 0.96 * most && both < most, "{both} of {most} of the links, {keys}");
    }
}

#[test]
fn a_short_message_beside_long_ones_waits_for_the_frame_on_the_wire_alone() {
    let config = config("nodes = 12");
    let mut messages: Vec<_> = (0..8).map(|from| write(from, 9, 1_000 * PAYLOAD)).collect();
    let many = 40;
    // The messages go to the busy receiver, and from a busy sender.
    for n in 0..many {
        let at = 30_000_000 + n * 1_234_567;
        messages.push(message(at, Kind::Write, (10, 9), 64));
        messages.push(message(at + 600_000, Kind::Write, (0, 11), 64));
    }
    let (finished, _) = run(&config, &messages);
    let alone = line(HEADERS) + back_to_back(64);
    for (message, end) in messages.iter().zip(finished).skip(8) {
        let wait = end - message.arrival - alone;
        // There is also a wait for packets without data, of which a few may be in front.
        assert!(wait <= line(1_500) + line(40) * 8, "{wait}, {message:?}");
    }
}

/// The share of receivers, as many as senders, that a matching of `rounds` rounds joins if every
/// receiver requests every sender. The rounds make random choices and are counted by themselves.
fn matched_share(nodes: usize, rounds: u32) -> f64 {
    let mut random = SplitMix64::seed_from_u64(3);
    let mut below = move |count: usize| (random.next_u64() % count as u64) as usize;
    let (mut matched, trials) = (0, 2_000);
    for _ in 0..trials {
        let (mut senders, mut receivers) = (vec![false; nodes], vec![false; nodes]);
        for _ in 0..rounds {
            let mut grants = vec![Vec::new(); nodes];
            for sender in (0..nodes).filter(|&sender| !senders[sender]) {
                let asking: Vec<_> = (0..nodes).filter(|&at| !receivers[at]).collect();
                if !asking.is_empty() {
                    grants[asking[below(asking.len())]].push(sender);
                }
            }
            for (receiver, granted) in grants.iter().enumerate().filter(|(_, all)| !all.is_empty())
            {
                senders[granted[below(granted.len())]] = true;
                receivers[receiver] = true;
                matched += 1;
            }
        }
    }
    f64::from(matched) / (trials * nodes) as f64
}

/// The share of their links that 12 nodes use when all have long flows for 12 others.
fn used_share(rounds: u32) -> f64 {
    let nodes = 12;
    let config = config(&format!(
        "nodes = 24\n[fabric.dcpim]\nrounds = {rounds}\nchannels = 1\nprompt = false\n\
         shortest_rounds = 0\nskew_ns = 0\nsending = 4\nwindow_packets = 30"
    ));
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, nodes + to)));
    let packets = 60;
    let messages: Vec<_> = pairs
        .flat_map(|(from, to)| (0..15).map(move |_| write(from, to, packets * PAYLOAD)))
        .collect();
    let (mut finished, _) = run(&config, &messages);
    finished.sort();
    let (from, to) = (messages.len() / 5, messages.len() / 2);
    let carried = line(1_500) * (packets * (to - from) as u64);
    carried.0 as f64 / (finished[to] - finished[from]).0 as f64 / f64::from(nodes)
}

#[test]
fn rounds_match_as_many_nodes_as_random_choices_do() {
    // Each of 12 senders grants a given receiver one time in 12.
    let first = 1.0 - (11.0_f64 / 12.0).powi(12);
    assert!((matched_share(12, 1) - first).abs() < 0.01);
    for rounds in [1, 2, 4] {
        let (theory, used) = (matched_share(12, rounds), used_share(rounds));
        let share = used / theory;
        assert!((0.85..1.02).contains(&share), "{rounds} rounds: {used} of {theory}");
    }
}

#[test]
fn nothing_is_forgotten_however_little_a_switch_keeps() {
    let kinds = [Kind::Write, Kind::Read];
    let sizes = [64, 1_000, 8 * PAYLOAD, 40 * PAYLOAD];
    let of =
        |node: u16| kinds.map(|kind| sizes.map(|bytes| message(1_000, kind, (node, 0), bytes)));
    let messages: Vec<_> = (1..32).flat_map(of).flatten().collect();
    for topology in ["single-switch", "leaf-spine"] {
        let config = config(&format!(
            "nodes = 32\ntopology = \"{topology}\"\n[fabric.leaf_spine]\nrack_nodes = 8\n\
             spines = 2\n[fabric.dcpim]\nbuffer_bytes = 10000"
        ));
        let (_, counts) = run(&config, &messages);
        assert!(counts.dropped > 100 && counts.retransmitted > 0, "{topology}: {counts:?}");
    }
}

#[test]
fn sizes_of_flows_are_their_priorities() {
    let rules = rules(&config("nodes = 3"));
    let ranks = [1, 7, 8, 49, 50, 343, 344, 2_401, 1_000_000].map(|packets| rules.rank(packets));
    assert_eq!(ranks, [1, 1, 2, 2, 3, 3, 4, 4, 7]);
}

#[test]
fn every_key_is_read() {
    let config = config(
        "[fabric.dcpim]\nheader_bytes = 48\nbuffer_bytes = 40000\npriorities = 6\n\
         priority_packets = 9\nshort_packets = 11\nrounds = 3\nshortest_rounds = 2\n\
         channels = 5\nslack = 1.5\nsending = 2.5\nprompt = false\nskew_ns = 12.5\n\
         window_packets = 13\nwindow_timeout_us = 4.5\nresend_us = 6.5\npatience_growth = 1.5",
    );
    let expected = DcpimConfig {
        header: Bytes(48),
        buffer: Bytes(40_000),
        priorities: 6,
        priority_packets: 9,
        short_packets: Some(11),
        rounds: 3,
        shortest_rounds: 2,
        channels: 5,
        slack: 1.5,
        sending: 2.5,
        prompt: false,
        skew: Some(Ps(12_500)),
        window: Some(13),
        window_timeout: Some(Ps::from_ns(4_500)),
        resend: Some(Ps::from_ns(6_500)),
        patience_growth: 1.5,
        matched: false,
    };
    assert_eq!(config.of::<DcpimConfig>(), &expected);
}

#[test]
fn a_skew_at_which_no_host_answers_in_time_is_refused() {
    let refused = |keys: &str| {
        let text = format!("[fabric]\nnodes = 3\n[fabric.dcpim]\n{keys}\n");
        let readers = Reader::of::<DcpimConfig>().into_iter();
        FabricConfig::parse(&text, "dcpim", readers).err().map(|error| error.to_string())
    };
    // A round lasts 1.3 round trips, of which one way and a half round are 0.15.
    let layout = Layout::new(&config("nodes = 3"), Ps::ZERO);
    let round_trip = (layout.one_way(Frame::of(40)) * 2).as_ns_f64();
    let most = |rounds: f64| ((rounds - 1.0) * 1.3 + 0.15) * round_trip;
    for rounds in [1.0, 2.0, 4.0] {
        let keys = |skew| format!("rounds = {rounds}\nskew_ns = {skew}");
        assert_eq!(refused(&keys(most(rounds) - 0.1)), None);
        let error = refused(&keys(most(rounds) + 0.1)).expect("too much");
        assert!(error.contains("fabric.dcpim.skew_ns") && error.contains("must be under"));
    }
    let error = refused("rounds = 1\nslack = 1").expect("no time at all");
    assert!(error.contains("fabric.dcpim.rounds") && error.contains("= 1: with slack = 1"));
    assert_eq!(refused("rounds = 1\nslack = 1.3"), None);
}
