//! Packet fabrics: invariants of every transport on every network, and checks of each against its
//! own paper.

use ethermem_sim::fabrics::dctcp::DctcpConfig;
use std::cell::RefCell;

use ethermem_sim::Kind;
use ethermem_sim::engine::{Alone, Fabric};
use ethermem_sim::fabrics::dctcp::Dctcp;
use ethermem_sim::fabrics::fastpass::Fastpass;
use ethermem_sim::fabrics::homa::Homa;
use ethermem_sim::fabrics::pfabric::Pfabric;
use ethermem_sim::fabrics::phost::Phost;
use ethermem_sim::fabrics::raw_ethernet::RawEthernet;
use ethermem_sim::fabrics::tcp::Tcp;
use ethermem_sim::metrics::PacketCounts;
use ethermem_sim::packet::Frame;
use ethermem_units::{Bytes, Ps};

use crate::support::{
    Watch, Watched, fabric_config, message, run_messages, run_scenario, scenario,
};
use crate::web_search::{self, YAPS_FASTPASS, YAPS_PFABRIC, YAPS_PHOST};

const STORED: &str = "store-and-forward";
const CUT_THROUGH: &str = "cut-through";

/// Bytes of a full frame on the line.
fn full_bytes() -> u64 {
    Frame::of(1_500).line_bytes()
}

thread_local! {
    /// Queued bytes at the port to node 2, sampled at every event.
    static SAMPLES: RefCell<Vec<(Ps, u64)>> = const { RefCell::new(Vec::new()) };
}

impl Watch for Dctcp {
    fn look(&self, now: Ps) {
        SAMPLES.with_borrow_mut(|samples| samples.push((now, self.egress_bytes(2, now))));
    }
}

#[test]
fn two_long_dctcp_senders_keep_the_queue_near_k_and_the_link_full() {
    two_long_dctcp_senders("per-message", 1.0);
    // An acknowledgement of two packets lets two leave at once.
    two_long_dctcp_senders("lasting", 2.0);
}

fn two_long_dctcp_senders(connections: &str, burst_packets: f64) {
    let config =
        fabric_config(&format!("nodes = 3\n[fabric.dctcp]\nconnections = \"{connections}\""));
    let bytes = 20_000_000;
    let writes = [0, 1].map(|node| message(Ps(1_000), Kind::Write, node, 2, bytes));
    let (finished, end) = run_messages::<Watched<Dctcp>>(&config, &writes);
    let ended = finished.iter().max().expect("two").0;
    let k = config.of::<DctcpConfig>().ecn_threshold.0 as f64;
    let full = full_bytes() as f64;
    let samples = SAMPLES.take();
    // The window excludes the slow start, and ends a few round trips before the first flow's end.
    let both = finished.iter().min().expect("two").0;
    let window = ended / 5..both - 10_000_000;
    let steady = samples.iter().filter(|(at, _)| window.contains(&at.0));
    let packets: Vec<f64> = steady.map(|&(_, queued)| (queued as f64 - k) / full).collect();
    assert!(packets.len() > 10_000);
    let most = packets.iter().copied().fold(f64::MIN, f64::max);
    let least = packets.iter().copied().fold(f64::MAX, f64::min);
    // DCTCP section 3.3: at most K and one packet per sender, or what it sends at once, here
    // including the one being sent.
    // The queue falls by a cut of the windows below that: sqrt(2 N (C RTT + K)) / 2 = 5.1 packets.
    assert!(most < 1.0 + 2.0 * burst_packets, "{most} packets over K");
    assert!(least > -6.0, "{least} packets under K");
    let mean = packets.iter().sum::<f64>() / packets.len() as f64;
    assert!(mean.abs() < 2.0, "{mean} packets from K");
    let counts = end.stats.packets.expect("packets");
    assert_eq!((counts.dropped, counts.timeouts), (0, 0));
    assert!(counts.marked > 100, "{counts:?}");
    let gbps = 2.0 * bytes as f64 * 8.0 / ended as f64 * 1_000.0;
    // 1,444 of 1,544 B on the line are data: 93.5 Gb/s at most.
    assert!(gbps > 0.95 * 93.5, "{gbps} Gb/s");
    // While both send, neither has more than 57 % of the link.
    assert!(both as f64 > 0.9 * 0.97 * ended as f64, "not fair: {finished:?}");
}

#[test]
fn nothing_is_forgotten_where_much_is_dropped() {
    // An incast into a buffer of 23 packets, within a rack and from others.
    for topology in ["single-switch", "leaf-spine"] {
        for balancing in ["ecmp", "spray"] {
            let scenario = scenario(&format!(
                "[fabric]\nnodes = 32\ntopology = \"{topology}\"\n[fabric.leaf_spine]\n\
                 rack_nodes = 8\nspines = 2\nbalancing = \"{balancing}\"\n[fabric.dctcp]\n\
                 buffer_bytes = 36864\n[workload]\npattern = \"incast\"\nload = 0.9\n\
                 message_bytes = 30000\nread_fraction = 0.5\nmessages = 3000"
            ));
            let result = run_scenario(&scenario, "dctcp", None);
            assert_eq!(result.messages_finished, 3_000);
            let counts = result.packets.expect("packets");
            assert!(counts.dropped > 100, "{topology}, {balancing}: {counts:?}");
            assert!(counts.retransmitted >= counts.dropped / 2, "{counts:?}");
        }
    }
}

#[test]
fn racks_are_farther_from_each_other_than_their_nodes() {
    let config = fabric_config(
        "nodes = 144\ntopology = \"leaf-spine\"\n[fabric.leaf_spine]\npropagation_ns = 100",
    );
    let near = [message(Ps(1_000), Kind::Write, 0, 1, 64)];
    let far = [message(Ps(1_000), Kind::Write, 0, 143, 64)];
    let (near, _) = run_messages::<Dctcp>(&config, &near);
    let (far, _) = run_messages::<Dctcp>(&config, &far);
    // There are two switches more, each with 2 MAC passes and 400 ns. There are two links more,
    // each with 2 PCS passes, 2 transceivers, 100 ns and the frame at 400 Gb/s. A cycle is 2.56 ns,
    // 3 per pass. The frame has 64 B of data, 16 + 40 + 18 B of headers and 8 B of preamble.
    let switch = Ps(2 * 3 * 2_560) + Ps::from_ns(400);
    let tail = Bytes(64 + 16 + 40 + 18 + 8).to_blocks().0 - 1;
    let link = Ps(2 * 3 * 2_560) + Ps::from_ns(2 * 19 + 100) + Ps(160 * tail);
    assert_eq!(far[0] - near[0], (switch + link) * 2);
}

#[test]
fn a_message_alone_is_not_slowed_by_its_distance() {
    // One message at a time goes between any two nodes: each takes the denominator's time.
    for keys in ["", "link_gbps = 40\npropagation_ns = 200\n"] {
        let scenario = scenario(&format!(
            "[fabric]\nnodes = 48\ntopology = \"leaf-spine\"\n{keys}[workload]\nload = 0.0005\n\
             size_cdf = \"memcached\"\nmessages = 300"
        ));
        let result = run_scenario(&scenario, "dctcp", None);
        let all = &result.kinds.all;
        assert_eq!((all.slowdown_min, all.slowdown_p50), (Some(1.0), Some(1.0)));
    }
}

#[test]
fn every_transport_ends_its_messages_over_cut_through_switches() {
    for fabric in
        ["raw-ethernet", "clio", "dctcp", "pfabric", "homa", "ndp", "pfc", "phost", "roce", "tcp"]
    {
        let scenario = scenario(
            "[fabric]\nnodes = 32\ntopology = \"leaf-spine\"\n[fabric.leaf_spine]\n\
             rack_nodes = 8\nspines = 2\n[fabric.packet]\nswitching = \"cut-through\"\n[workload]\n\
             load = 0.6\nsize_cdf = \"memcached\"\nread_fraction = 0.5\nmessages = 1000",
        );
        let result = run_scenario(&scenario, fabric, None);
        assert_eq!(result.messages_finished, 1_000, "{fabric}");
        assert!(result.kinds.all.slowdown_min >= Some(1.0), "{fabric}");
    }
}

/// Mean slowdown of web search on YAPS's links and hosts: 200 ns of propagation and no other delay,
/// and packets of 1,500 B sprayed over the spines. The packet counters are returned, too.
fn web_search_slowdown<F: Fabric, A: Fabric>(
    switching: &str,
    keys: &str,
) -> (f64, Option<PacketCounts>) {
    let config = fabric_config(&format!(
        "nodes = 144\nlink_gbps = 40\ntopology = \"leaf-spine\"\npropagation_ns = 200\n\
         transceiver_ns = 0\npcs_clock_ns = 0.001\n[fabric.leaf_spine]\npropagation_ns = 200\n\
         balancing = \"spray\"\n[fabric.packet]\nforwarding_ns = 0\nmemory_header_bytes = 0\n\
         switching = \"{switching}\"\n{keys}"
    ));
    let flows = web_search::flows();
    let (finished, end) = run_messages::<F>(&config, &flows);
    let mut alone = Alone::<A>::new(&config);
    let slowdowns = flows
        .iter()
        .zip(&finished)
        .map(|(flow, &finished)| (finished - flow.arrival).0 as f64 / alone.time_of(flow).0 as f64);
    let mean = slowdowns.sum::<f64>() / flows.len() as f64;
    (mean, end.stats.packets)
}

#[test]
fn pfabric_slows_web_search_down_as_the_simulator_of_its_successors_says() {
    for (switching, yaps) in [STORED, CUT_THROUGH].into_iter().zip(YAPS_PFABRIC) {
        let (mean, counts) = web_search_slowdown::<Pfabric, Pfabric>(
            switching,
            "[fabric.pfabric]\nbuffer_bytes = 36864\nwindow_packets_initial = 12\n\
             window_packets_max = 15\nrto_us = 45",
        );
        assert!((mean / yaps - 1.0).abs() < 0.1, "{switching}: {mean}");
        let counts = counts.expect("packets");
        assert!(counts.dropped > 0 && counts.timeouts > 0, "{counts:?}");
    }
}

#[test]
fn pfabric_repeats_what_was_dropped_and_hardly_anything_else() {
    let scenario = scenario(
        "[fabric]\nkind = \"pfabric\"\nnodes = 32\n[workload]\nload = 0.8\n\
         message_bytes = 4096\nmessages = 20000",
    );
    let result = run_scenario(&scenario, "pfabric", None);
    let counts = result.packets.expect("packets");
    // Three empty round trips are less than two full queues: that made 100 times as many timeouts
    // as here.
    assert!(counts.timeouts < 1_500, "{counts:?}");
    // A timeout repeats a window, of which some packets had come.
    assert!(counts.retransmitted < 2 * counts.dropped, "{counts:?}");
}

#[test]
fn homa_repeats_what_was_dropped_and_hardly_anything_else() {
    // Messages of 20 MB keep a link busy for longer than the timeout: packets of low priority wait
    // for them, and are not lost.
    for buffer_bytes in [2_000_000, 500_000] {
        let keys = format!("[fabric.homa]\nbuffer_bytes = {buffer_bytes}");
        let (_, counts) = web_search_slowdown::<Homa, Homa>(STORED, &keys);
        let counts = counts.expect("packets");
        assert!(counts.retransmitted <= counts.dropped, "{buffer_bytes} B: {counts:?}");
    }
}

#[test]
fn fastpass_slows_web_search_down_as_the_simulator_of_its_rivals_says() {
    // Its epochs leave half a packet's time for packets without data.
    let keys = "[fabric.fastpass]\ntimeslot_bytes = 1594";
    let (mean, _) = web_search_slowdown::<Fastpass, Pfabric>(STORED, keys);
    assert!((mean / YAPS_FASTPASS - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn phost_slows_web_search_down_as_its_simulator_says() {
    // A round trip is 7.0 packets here and 6.4 there, where packets leave for faster links before
    // they have arrived completely. So 9 tokens here correspond to 8 there.
    let tokens = [8, 9];
    for ((switching, yaps), tokens) in [STORED, CUT_THROUGH].into_iter().zip(YAPS_PHOST).zip(tokens)
    {
        // Tokens are issued again after the time of 9 packets; all data has one level.
        let (mean, counts) = web_search_slowdown::<Phost, Pfabric>(
            switching,
            &format!(
                "[fabric.phost]\nbuffer_bytes = 36864\ntokens_unused_max = {tokens}\n\
                 timeout_us = 2.7\nshort_packets = 0\ndowngrade_ends_with_data = false"
            ),
        );
        assert!((mean / yaps - 1.0).abs() < 0.1, "{switching}: {mean} {counts:?}");
    }
}

#[test]
fn a_cut_through_switch_sends_on_what_is_still_coming() {
    let time = |switching: &str, bytes: u64| {
        let config = fabric_config(&format!(
            "nodes = 32\ntopology = \"leaf-spine\"\n[fabric.packet]\nswitching = \"{switching}\""
        ));
        let writes = [1, 16].map(|to| message(Ps(1_000), Kind::Write, 0, to, bytes));
        let alone = |write| run_messages::<RawEthernet>(&config, &[write]).0[0];
        writes.map(alone)
    };
    // A full frame, with 16 B of memory header.
    let (full, stored) = (Frame::of(1_500), time(STORED, 1_484));
    let cut = time(CUT_THROUGH, 1_484);
    let tail = u64::from(full.tail);
    // The switch needs the least frame's blocks of it; 640 ps each.
    let behind = tail - u64::from(Frame::LEAST.tail);
    assert_eq!(stored[0] - cut[0], Ps(640 * behind));
    // Towards a spine, on a link four times as fast, its end leaves as it arrives. From there on
    // only its head is waited for.
    assert_eq!(stored[1] - cut[1], Ps(160 * tail + 2 * 160 * behind));
    // The least frame is whole when it is decided on.
    assert_eq!(time(STORED, 1), time(CUT_THROUGH, 1));
}

#[test]
fn tcp_takes_its_budget_and_a_round_trip_more_for_every_doubling() {
    let config = fabric_config("nodes = 2\n[fabric.tcp]\nconnections = \"per-message\"");
    // Equal frames and stack without a transport: TCP's 40 B of headers count as memory header.
    let bare =
        fabric_config("nodes = 2\n[fabric.packet]\nstack_ns = 666.2\nmemory_header_bytes = 56");
    let time = |packets: u64| {
        let bytes = Bytes(packets * 1_444);
        let tcp = Alone::<Tcp>::new(&config).time(Kind::Write, bytes);
        (tcp, Alone::<RawEthernet>::new(&bare).time(Kind::Write, bytes))
    };
    for packets in [1, 2] {
        let (tcp, bare) = time(packets);
        assert_eq!(tcp, bare, "{packets} packets fit the first window");
    }
    // A packet and its acknowledgement each pass through two hosts' stacks: Table 1's budget, and
    // both frames stored at the switch.
    let budget = Ps(557_440 + 2 * 666_200);
    let (full, ack) = (Frame::of(1_500), Frame::of(40));
    let round_trip = budget * 2 + Ps(640) * (2 * u64::from(full.tail) + 2 * u64::from(ack.tail));
    // Windows are 2, 4 and 8 packets. The first packet of each waits for the acknowledgement of the
    // previous window's first packet. The last packet leaves behind the others of its own window.
    let (tcp, bare) = time(14);
    let line = Ps(640) * u64::from(full.line);
    assert_eq!(tcp, bare + (round_trip - line * 2) + (round_trip - line * 4));
}
