//! DFabric: how much company may help a message, whatever the racks are like.

use std::collections::BTreeSet;

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::dfabric::{Dfabric, DfabricConfig, IntraRack};
use ethermem_sim::registry::FABRICS;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Bytes, Ps};
use proptest::prelude::*;

use crate::support::{run_scenario, scenario};

/// Racks of all shapes, with their bottleneck in every stage of a packet's way.
fn racks() -> impl Strategy<Value = String> {
    let rack = (1..=4u16, 2..=3u16, 0..=3u16, prop::sample::select(&[1u64, 4, 8][..]));
    let gbps = prop::sample::select(&[10u64, 100, 400][..]);
    let local_gbps = prop::sample::select(&[20u64, 100, 400, 800][..]);
    let devices = prop_oneof![Just(String::new()), (1..=4u16).prop_map(|n| n.to_string())];
    let queues = (1..=5u16, 1..=5u16, 1..=8u16);
    let chosen = prop::sample::select(
        &[
            "",
            "poll = \"in-turn\"",
            "cache_bytes = 0",
            "intra_rack = \"reference\"",
            "intra_rack = \"value\"",
            "loads_max = 6",
        ][..],
    );
    let load = (1..=95u32, 0..=100u32, any::<bool>());
    (rack, gbps, local_gbps, devices, queues, chosen, load, 0..1_000_000u64).prop_map(
        |((nodes, racks, extra, theta), gbps, local_gbps, devices, queues, chosen, load, seed)| {
            let (queues, subflows, reads) = queues;
            let (load, read_fraction, is_incast) = load;
            let incast = format!(
                "pattern = \"incast\"\nincast_receiver = 0\nincast_fan_in = {}",
                nodes * racks - 1
            );
            let pattern = if is_incast { incast.as_str() } else { "" };
            let devices = match devices.as_str() {
                "" => devices,
                count => format!("memory_devices = {count}"),
            };
            format!(
                "[fabric]\nnodes = {}\nlink_gbps = {gbps}\n[fabric.dfabric]\nracks = {racks}\n\
                 extra_nics = {extra}\ntheta = {theta}\nlocal_gbps = {local_gbps}\n{devices}\n\
                 queues = {queues}\nsubflows = {subflows}\ndma_reads = {reads}\n{chosen}\n\
                 port_bytes = 1000000000\n[run]\nseed = {seed}\nwarmup_fraction = 0\n\
                 cooldown_fraction = 0\n[workload]\n{pattern}\nload = 0.{load:02}\n\
                 messages = 200\nread_fraction = {}\n",
                nodes * racks,
                f64::from(read_fraction) / 100.0,
            )
        },
    )
}

/// Bytes of data of a full segment, and of the memory's header before the data.
const SEGMENT_BYTES: u64 = 4_032;
const HEADER_BYTES: u64 = 16;
/// Bytes of a segment's own header.
const OWN_BYTES: u64 = 24;
/// Bytes of a line.
const LINE_BYTES: u64 = 64;
/// Bytes of a flit, which takes a line.
const FLIT_BYTES: u64 = 68;

/// The time that a cut may be worth to a packet whose lines its node loads. The memory sends four
/// lines that were asked for at once when it has all, and the first of them sooner if the others
/// were asked for later: at most three lines then pass the memory and a link meanwhile.
fn cut(config: &FabricConfig, packet_bytes: u64) -> f64 {
    let rules = config.of::<DfabricConfig>();
    let fabric_gbps = config.link.as_gbps_f64() * rules.theta as f64;
    let device_gbps = rules.device_gbps.unwrap_or(fabric_gbps);
    let memory_gbps = device_gbps.min(rules.local_gbps);
    let picoseconds = |bytes: u64, gbps: f64| bytes as f64 * 8_000.0 / gbps;
    let line = picoseconds(LINE_BYTES, memory_gbps) + picoseconds(FLIT_BYTES, fabric_gbps);
    (packet_bytes.div_ceil(LINE_BYTES) - 1).min(3) as f64 * line
}

/// The least slowdown of messages of these sizes. Company may change the order of a message's
/// packets, of which the last is shorter. That is worth less than one packet: a message takes at
/// least the time alone of one that lacks it. Company may also cut loads elsewhere, those of a
/// message within a rack or of a packet. With few loads at once it does so in each round of them;
/// 64 are sixteen flits, whose order is worth no more than one cut.
pub(crate) fn least_slowdown(config: &FabricConfig, sizes: impl Iterator<Item = u64>) -> f64 {
    let rules = config.of::<DfabricConfig>();
    let rack = config.nodes.div_ceil(rules.racks);
    let mut alone = Alone::<Dfabric>::new(config);
    let mut time = |kind, memory, bytes| {
        let (arrival, bytes) = (Ps::ZERO, Bytes(bytes));
        let message = Message { index: 0, arrival, kind, compute: 0, memory, bytes };
        alone.time_of(&message).0 as f64
    };
    let few_loads = rules.loads_max < 64;
    let mut least: f64 = 1.0;
    for bytes in sizes.collect::<BTreeSet<u64>>() {
        for kind in [Kind::Read, Kind::Write] {
            let rounds =
                |lines: u64| if few_loads { lines.div_ceil(rules.loads_max.into()) } else { 1 };
            let mut without = |memory, less, cuts: f64| {
                let left = time(kind, memory, bytes - less) - cuts;
                least = least.min(left / time(kind, memory, bytes));
            };
            if rack > 1 {
                let rounds = rounds(bytes.div_ceil(LINE_BYTES));
                without(1, 0, rounds as f64 * cut(config, bytes));
            }
            let mut stream = |memory| {
                let less = if bytes > SEGMENT_BYTES {
                    SEGMENT_BYTES
                } else if bytes + HEADER_BYTES > SEGMENT_BYTES {
                    HEADER_BYTES
                } else {
                    0
                };
                // Requests and acknowledgements have one line; each window's last packet counts.
                let packets = bytes.div_ceil(SEGMENT_BYTES);
                let packet_bytes = bytes.min(SEGMENT_BYTES) + OWN_BYTES + HEADER_BYTES;
                let windows = packets.div_ceil(rules.window.into());
                let rounds = windows + rounds(packets * packet_bytes.div_ceil(LINE_BYTES)) - 1;
                without(memory, less, rounds as f64 * cut(config, packet_bytes));
            };
            if rack < config.nodes {
                stream(rack);
            }
            if rack > 1 && rules.intra_rack != IntraRack::Lines && kind == Kind::Write {
                stream(1);
            }
        }
    }
    least
}

proptest! {
    #![proptest_config(crate::property::cases(200))]

    #[test]
    fn company_helps_by_less_than_a_packet(
        text in racks(),
        seed in 0..1_000_000u64,
        choice in 0..3u8,
    ) {
        let bytes = match choice {
            0 => 1 + seed % (4 * LINE_BYTES),
            1 => SEGMENT_BYTES * (1 + seed % 20) - HEADER_BYTES,
            _ => 1 + seed % 90_000,
        };
        let scenario = scenario(&format!("{text}message_bytes = {bytes}\n"));
        let result = run_scenario(&scenario, "dfabric", None);
        prop_assert_eq!(result.messages_finished, 200);
        let least = result.kinds.all.slowdown_min.expect("measured");
        let floor = least_slowdown(&scenario.fabric, std::iter::once(bytes));
        prop_assert!(least >= floor, "slowdown {} of {} B: at least {}", least, bytes, floor);
        // A packet of one line cannot be helped.
        prop_assert!(bytes + OWN_BYTES + HEADER_BYTES > LINE_BYTES || floor == 1.0);
    }
}

/// A node has room for two of a message's three loads, and for the last one 421 ps later. The two
/// lines are on their way back while the third is asked for: alone, all three go at once, and the
/// memory sends none before it has all. So company helps, by one line of three; and as little where
/// the lines are a packet's, from another rack.
#[test]
fn loads_that_are_cut_come_sooner_than_whole_ones() {
    let within = "[fabric]\nnodes = 8\nlink_gbps = 200\npropagation_ns = 163\n\
                  memory_access_ns = 7\n[fabric.edm]\npolicy = \"fcfs\"\nbatching = false\n\
                  notifications_max = 1\nchunk_bytes = 128\n[workload]\nload = 0.69\n\
                  message_bytes = 161\nread_fraction = 0.47\nrmw_fraction = 0.25\n\
                  messages = 300\n[run]\nseed = 897474";
    let between = "[fabric]\nnodes = 12\nlink_gbps = 200\npropagation_ns = 134\n\
                   [fabric.dfabric]\nracks = 3\nextra_nics = 1\ntheta = 1\nlocal_gbps = 800\n\
                   port_bytes = 1000000000\nqueues = 4\nsubflows = 1\n[workload]\nload = 0.44\n\
                   message_bytes = 190\nread_fraction = 0.85\nmessages = 400\n[run]\n\
                   seed = 484970";
    for (text, bytes) in [(within, 161), (between, 190)] {
        let ends = "warmup_fraction = 0\ncooldown_fraction = 0";
        let incast = "pattern = \"incast\"\nincast_fan_in = 7\nincast_receiver = 3";
        let text = text.replace("[workload]", &format!("[workload]\n{incast}"));
        let scenario = scenario(&format!("{text}\n{ends}\n"));
        let result = run_scenario(&scenario, "dfabric", None);
        let least = result.kinds.all.slowdown_min.expect("measured");
        let floor = least_slowdown(&scenario.fabric, std::iter::once(bytes));
        assert!(floor <= least && least < 1.0, "{bytes} B: {least}, at least {floor}");
    }
}

/// A timeout that got shorter was over before it was set, and an event lay in the past.
#[test]
fn a_timeout_that_gets_shorter_ends_now_at_the_earliest() {
    let bytes = SEGMENT_BYTES * 6 - HEADER_BYTES;
    let scenario = scenario(&format!(
        "[fabric]\nnodes = 9\nlink_gbps = 100\n[fabric.dfabric]\nracks = 3\nextra_nics = 1\n\
         theta = 1\nlocal_gbps = 20\nmemory_devices = 1\nqueues = 2\nsubflows = 5\n\
         dma_reads = 3\npoll = \"in-turn\"\nport_bytes = 1000000000\n[run]\nseed = 30757\n\
         warmup_fraction = 0\ncooldown_fraction = 0\n[workload]\nload = 0.60\nmessages = 200\n\
         read_fraction = 0.66\nmessage_bytes = {bytes}\n"
    ));
    assert_eq!(run_scenario(&scenario, "dfabric", None).messages_finished, 200);
}

/// 64 racks of 16 nodes run on racks alone; other designs say in one line why they do not.
#[test]
fn a_thousand_nodes_run_on_racks_and_are_refused_elsewhere() {
    let text = "[fabric]\nnodes = 1024\n[fabric.dfabric]\nracks = 64\n[fabric.tor_rack]\n\
                racks = 64\n[workload]\nkind = \"program\"\n[workload.program]\n\
                name = \"broadcast\"\nbytes = 4096\n";
    let scenario = scenario(text);
    for fabric in FABRICS {
        let name = fabric.name;
        if ["dfabric", "tor-rack"].contains(&name) {
            let result = run_scenario(&scenario, name, None);
            assert_eq!(result.messages_finished, 1_023, "{name}");
        } else {
            let refused = fabric.check(&scenario).expect_err("more than it was tried with");
            let line = format!("fabric {name} has at most 512 nodes, not 1024");
            assert_eq!(refused.to_string(), line);
        }
    }
}
