//! The fabrics `pfc` and `roce`: lossless Ethernet, and Ethernet without flow control, against
//! theory.

use std::cell::RefCell;

use ethermem_sim::engine::Fabric;
use ethermem_sim::fabrics::pfc::Pfc;
use ethermem_sim::fabrics::roce::Roce;
use ethermem_sim::packet::Frame;
use ethermem_sim::{Kind, Message};
use ethermem_units::Ps;

use crate::support::{
    Watch, Watched, fabric_config, message, run_messages, run_messages_from, run_scenario, scenario,
};

const SENDERS: u16 = 8;
/// Time between two samples.
const STEP: Ps = Ps::from_ns(1_000_000);

thread_local! {
    /// Number of slots that each sender had taken of its link, at each sample.
    static TAKEN: RefCell<Vec<[u64; SENDERS as usize]>> = const { RefCell::new(Vec::new()) };
    /// The maximum headroom that each node's link used, and the headroom.
    pub(crate) static HEADROOM: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

impl Watch for Pfc {
    fn look(&self, now: Ps) {
        TAKEN.with_borrow_mut(|taken| {
            if now >= STEP * (taken.len() as u64 + 1) {
                let slots = |node| self.uplink_slots(node as u16).total.0;
                taken.push(std::array::from_fn(slots));
            }
        });
    }

    fn end(&self) {
        HEADROOM.set((0..).map_while(|node| self.headroom_bytes(node)).collect());
    }
}

/// Jain's index: 1 if all shares are equal, 1/n if one has everything.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / squares / shares.len() as f64
}

/// The fairness of eight flows to one node, and the number of links' worth that they send: until
/// all have started, and in the 20 ms from 30 ms on. No link is ever paused: only their rates limit
/// them.
fn shares_of_eight(keys: &str) -> [(f64, f64); 2] {
    // They start one after the other, so that their rates begin far apart.
    let config =
        fabric_config(&format!("nodes = 9\n[fabric.pfc]\nxoff_bytes = 1000000000\n{keys}"));
    let start = |node: u16| Ps(1_000) + Ps::from_ns(500_000) * u64::from(node);
    let flows: Vec<Message> = (0..SENDERS)
        .map(|node| message(start(node), Kind::Write, node, SENDERS, 80_000_000))
        .collect();
    TAKEN.take();
    let (_, end) = run_messages::<Watched<Pfc>>(&config, &flows);
    let counts = end.stats.packets.expect("packets");
    assert!(counts.marked > 100, "{counts:?}");
    assert_eq!(counts.pauses, Some(0), "{counts:?}");
    let taken = TAKEN.take();
    let shares = |from: usize, to: usize| -> Vec<f64> {
        (0..usize::from(SENDERS)).map(|n| (taken[to][n] - taken[from][n]) as f64).collect()
    };
    [(3, 5), (30, 50)].map(|(from, to)| {
        let shares = shares(from, to);
        let links = shares.iter().sum::<f64>() * 640e-9 / (to - from) as f64;
        (jain(&shares), links)
    })
}

#[test]
fn dcqcn_converges_to_fair_shares_of_eight_flows() {
    let [(early, first), (late, links)] = shares_of_eight("");
    assert!(late > 0.95 && early < 0.9, "Jain's index {late}, {early} at first");
    assert!((0.9..1.02).contains(&links), "{links} links' worth, {first} at first");
    // Senders that are notified only once return to the rate of their own links.
    let [(_, deaf), _] = shares_of_eight("cnp_interval_us = 1000000");
    assert!(deaf > 3.0 && first < 1.5, "{deaf} links' worth without a reaction, {first} with");
}

#[test]
fn marks_are_drawn_from_the_seed_of_the_run() {
    let config = fabric_config("nodes = 9");
    let incast: Vec<Message> =
        (0..8).map(|node| message(Ps(1_000), Kind::Write, node, 8, 2_000_000)).collect();
    let finished = |seed| run_messages_from::<Pfc>(seed, &config, &incast).0;
    assert_eq!(finished(1), finished(1));
    assert_ne!(finished(1), finished(2), "the same packets are marked");
}

#[test]
fn nothing_is_lost_when_64_send_to_one() {
    let shared = "thresholds = \"dynamic\"\nbuffer_bytes = 6000000";
    let networks =
        ["single-switch", "leaf-spine"].map(|topology| [(topology, ""), (topology, shared)]);
    for (topology, keys) in networks.into_iter().flatten() {
        let config =
            fabric_config(&format!("nodes = 80\ntopology = \"{topology}\"\n[fabric.pfc]\n{keys}"));
        let incast: Vec<Message> =
            (1..65).map(|node| message(Ps(1_000), Kind::Write, node, 0, 1_000_000)).collect();
        let (_, end) = run_messages::<Pfc>(&config, &incast);
        let counts = end.stats.packets.expect("packets");
        assert_eq!((counts.dropped, counts.retransmitted, counts.timeouts), (0, 0, 0));
        assert!(counts.pauses > Some(64), "{topology}, {keys}: {counts:?}");
    }
}

/// Number of pauses when this many of 65 hosts each send `frames` to one at once, without marks.
fn pauses_of_burst(senders: u16, frames: u64, alpha: f64, buffer_bytes: u64) -> u64 {
    let config = fabric_config(&format!(
        "nodes = 65\n[fabric.pfc]\nthresholds = \"dynamic\"\nalpha = {alpha}\nbuffer_bytes = \
         {buffer_bytes}\necn_min_bytes = 1000000000\necn_max_bytes = 1000000000"
    ));
    let burst: Vec<Message> = (1..=senders)
        .map(|node| message(Ps(1_000), Kind::Write, node, 0, frames * 1_440))
        .collect();
    let (_, end) = run_messages::<Watched<Pfc>>(&config, &burst);
    end.stats.packets.and_then(|counts| counts.pauses).expect("links are paused")
}

#[test]
fn with_dynamic_thresholds_few_that_are_congested_are_paused_later_than_many() {
    // The shared part of the buffer is the rest beside the headroom of all 65 links.
    pauses_of_burst(2, 1, 1.0, 1 << 30);
    let headroom: u64 = HEADROOM.take().iter().map(|(_, headroom)| headroom).sum();
    let shared = 4_000_000;
    let mut bursts = Vec::new();
    for (senders, alpha) in [(2, 0.5), (8, 0.5), (64, 0.5), (2, 2.0), (8, 2.0), (64, 2.0)] {
        // Each of n may keep alpha B / (1 + n alpha); of n frames that arrive, one leaves.
        let n = f64::from(senders);
        let each = alpha * shared as f64 / (1.0 + n * alpha);
        let burst = each * n / (n - 1.0) / 1_544.0;
        let pauses = |frames| pauses_of_burst(senders, frames as u64, alpha, shared + headroom);
        assert_eq!(pauses(burst * 0.98 - 1.0), 0, "{senders} senders, {alpha}: {burst} frames");
        assert!(pauses(burst * 1.02 + 2.0) > 0, "{senders} senders, {alpha}: {burst} frames");
        bursts.push(burst);
    }
    assert!(bursts[0] > 10.0 * bursts[2] && bursts[3] > 20.0 * bursts[5], "{bursts:?}");
}

#[test]
fn marks_act_before_pauses_where_thresholds_are_dynamic_and_after_where_they_are_static() {
    let counts = |thresholds| {
        let config =
            fabric_config(&format!("nodes = 9\n[fabric.pfc]\nthresholds = \"{thresholds}\""));
        // They begin one after the other, as in the test of DCQCN alone: marks could not stop a
        // burst.
        let flows: Vec<Message> = (0..SENDERS)
            .map(|node| {
                let start = Ps(1_000) + Ps::from_ns(500_000) * u64::from(node);
                message(start, Kind::Write, node, SENDERS, 10_000_000)
            })
            .collect();
        let (_, end) = run_messages::<Pfc>(&config, &flows);
        let counts = end.stats.packets.expect("packets");
        (counts.marked, counts.pauses.expect("links are paused"))
    };
    let (marked, pauses) = counts("dynamic");
    assert!(marked > 100 && pauses == 0, "{marked} marks, {pauses} pauses");
    let (marked, pauses) = counts("static");
    assert!(marked > 100 && pauses > 50, "{marked} marks, {pauses} pauses");
}

/// Mean times of two kinds of 64 B writes: from a host that also has one of eight senders to a
/// node, and from a host without one.
fn victims_and_neighbours<F: Fabric>(keys: &str) -> (f64, f64) {
    let config = fabric_config(&format!("nodes = 12\n[fabric.pfc]\n{keys}"));
    let mut messages: Vec<Message> =
        (1..9).map(|node| message(Ps(1_000), Kind::Write, node, 0, 500_000)).collect();
    for at in 0..20 {
        let later = Ps::from_ns(20_000 + 1_300 * at);
        messages.push(message(later, Kind::Write, 1, 10, 64));
        messages.push(message(later, Kind::Write, 9, 11, 64));
    }
    let (finished, _) = run_messages::<F>(&config, &messages);
    let mean = |first: usize| {
        let own = (first..messages.len()).step_by(2);
        own.map(|n| (finished[n] - messages[n].arrival).0).sum::<u64>() as f64 / 20.0
    };
    (mean(8), mean(9))
}

#[test]
fn a_victim_of_a_paused_link_waits_and_its_neighbour_does_not() {
    let frame = 193.0 * 640.0;
    let (victim, neighbour) = victims_and_neighbours::<Pfc>("");
    assert_eq!(neighbour, unloaded(64, STACK).0 as f64);
    // A pause ends when the bytes above xon have left. These are two frames of this sender, and at
    // most 7.7 frames of its headroom, while each of the others sends as many. The victim arrives
    // at any point of the pause, and on average waits for more than one frame of each.
    let waited = (victim - neighbour) / frame;
    assert!((8.0..8.0 * 9.7).contains(&waited), "{waited} frames");
    // Without pauses, it waits for the frame that its host is sending.
    let (victim, neighbour) = victims_and_neighbours::<Roce>("");
    let waited = (victim - neighbour) / frame;
    assert!((0.0..=1.0).contains(&waited), "{waited} frames");
}

#[test]
fn a_shared_buffer_spares_the_victim_where_it_holds_the_incast() {
    let frame = 193.0 * 640.0;
    let waited = |buffer: u64| {
        let keys = format!("thresholds = \"dynamic\"\nbuffer_bytes = {buffer}");
        let (victim, neighbour) = victims_and_neighbours::<Pfc>(&keys);
        assert_eq!(neighbour, unloaded(64, STACK).0 as f64);
        (victim - neighbour) / frame
    };
    // 4 MB arrive; an alpha of 1 leaves one part of nine free. The victim waits for the frame that
    // its host is sending, or as long as with static thresholds.
    let (large, small) = (waited(6_000_000), waited(1_000_000));
    assert!((0.0..=1.0).contains(&large), "{large} frames");
    assert!((8.0..8.0 * 9.7).contains(&small), "{small} frames");
}

/// RoCE's stack, one pass.
const STACK: Ps = Ps(230_200);

/// Table 1's one-way budget at 100 Gb/s, with a frame that is stored twice, and the frames before
/// it.
fn unloaded(bytes: u64, stack: Ps) -> Ps {
    let slot = 640;
    let payload = 1_500 - 16 - 44;
    let before = (bytes - 1) / payload;
    let last = Frame::of(16 + 44 + bytes - before * payload);
    let budget = Ps(557_440) + stack * 2;
    budget + Ps(slot * (before * 193 + 2 * u64::from(last.tail)))
}

#[test]
fn messages_alone_take_the_budget_to_the_picosecond() {
    let config = fabric_config("nodes = 3");
    let time = |bytes, kind| {
        let alone = [message(Ps(5_000), kind, 0, 1, bytes)];
        let (pfc, _) = run_messages::<Pfc>(&config, &alone);
        let (roce, _) = run_messages::<Roce>(&config, &alone);
        (pfc[0] - Ps(5_000), roce[0] - Ps(5_000))
    };
    for bytes in [1, 64, 1_440, 14_400] {
        let expected = unloaded(bytes, STACK);
        assert_eq!(time(bytes, Kind::Write), (expected, expected), "{bytes} B");
    }
    // A request of 64 B, the least frame, comes before the data.
    let request = Ps(640 * 2 * u64::from(Frame::of(60).tail));
    let read = Ps(557_440) + STACK * 2 + request + unloaded(64, STACK);
    assert_eq!(time(64, Kind::Read), (read, read));
}

#[test]
fn a_rate_lasts_from_message_to_message_and_short_messages_are_notified() {
    // Eight nodes send messages of one packet each to one node, which marks what it cannot take.
    // Each message ends long before a notification could come. The pair slows down all the same.
    let config = fabric_config("nodes = 9\n[fabric.pfc]\nack_messages = 16");
    let per_node = 2_000;
    let writes: Vec<Message> = (0..per_node)
        .flat_map(|_| (1..9).map(|node| message(Ps(1_000), Kind::Write, node, 0, 1_440)))
        .collect();
    let (finished, end) = run_messages::<Pfc>(&config, &writes);
    let counts = end.stats.packets.expect("packets");
    let data = 8 * per_node as u64;
    // Notifications are all that is sent beside data and an acknowledgement for 16 writes.
    let notifications = counts.sent - data - data / 16;
    assert!(notifications > 20, "{notifications}, {counts:?}");
    assert_eq!(counts.dropped, 0);
    // Messages of a pair go in order.
    for node in 0..8 {
        assert!(finished.iter().skip(node).step_by(8).is_sorted());
    }
    // Rates are cut for longer than needed, and recover in 55 us.
    let busy = (Ps(640) * u64::from(Frame::of(1_500).line) * data).0 as f64;
    let last = finished.iter().max().expect("some").0 as f64;
    assert!(busy / last > 0.6, "{}", busy / last);
}

#[test]
fn all_ends_on_every_network_with_frames_beside() {
    for topology in ["single-switch", "leaf-spine"] {
        for (balancing, background) in [("ecmp", 0.0), ("spray", 0.3)] {
            for fabric in ["pfc", "roce"] {
                let scenario = scenario(&format!(
                    "[fabric]\nnodes = 32\ntopology = \"{topology}\"\n[fabric.leaf_spine]\n\
                     rack_nodes = 8\nspines = 2\nbalancing = \"{balancing}\"\n[fabric.roce]\n\
                     buffer_bytes = 36864\n[background]\nload = {background}\n[workload]\n\
                     pattern = \"incast\"\nload = 0.65\nmessage_bytes = 30000\n\
                     read_fraction = 0.5\nmessages = 3000"
                ));
                let result = run_scenario(&scenario, fabric, None);
                assert_eq!(result.messages_finished, 3_000);
                let counts = result.packets.expect("packets");
                if fabric == "pfc" {
                    assert_eq!(counts.dropped, 0);
                    continue;
                }
                assert!(counts.dropped > 50, "{topology}, {balancing}: {counts:?}");
                // Go-back-N also retransmits packets that arrived.
                assert!(counts.retransmitted > counts.dropped, "{counts:?}");
                assert_eq!(counts.pauses, None);
            }
        }
    }
}

#[test]
fn a_packet_alone_never_waits_for_the_timeout_of_a_flow_that_has_ended() {
    // The request has ended when the response's packets are paced.
    let scenario = scenario(
        "[fabric]\nnodes = 2\n[workload]\nload = 0.01\nmessage_bytes = 7201\nread_fraction = 1\n\
         messages = 50",
    );
    let result = run_scenario(&scenario, "roce", None);
    let latency_ns = result.kinds.all.latency_ns_max.expect("measured");
    assert!(latency_ns < 20_000.0, "{latency_ns} ns, of a timeout of 500,000 ns");
}
