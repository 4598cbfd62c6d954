//! DFabric: company never helps a message, whatever the racks are like.

use proptest::prelude::*;

use crate::support::{run_scenario, scenario};

/// Racks of all shapes, with their bottleneck in every stage of a packet's way.
fn racks() -> impl Strategy<Value = String> {
    let rack = (1..=4u16, 2..=3u16, 0..=3u16, prop::sample::select(&[1u64, 4, 8][..]));
    let gbps = prop::sample::select(&[10u64, 100, 400][..]);
    let local_gbps = prop::sample::select(&[20u64, 100, 400, 800][..]);
    let devices = prop_oneof![Just(String::new()), (1..=4u16).prop_map(|n| n.to_string())];
    let queues = (1..=5u16, 1..=5u16, 1..=8u16);
    let chosen = prop::sample::select(&["", "poll = \"in-turn\"", "cache_bytes = 0"][..]);
    let load = (1..=95u32, 0..=100u32);
    (rack, gbps, local_gbps, devices, queues, chosen, load, 0..1_000_000u64).prop_map(
        |((nodes, racks, extra, theta), gbps, local_gbps, devices, queues, chosen, load, seed)| {
            let (queues, subflows, reads) = queues;
            let (load, read_fraction) = load;
            let devices = match devices.as_str() {
                "" => devices,
                count => format!("memory_devices = {count}"),
            };
            format!(
                "[fabric]\nnodes = {}\nlink_gbps = {gbps}\n[fabric.dfabric]\nracks = {racks}\n\
                 extra_nics = {extra}\ntheta = {theta}\nlocal_gbps = {local_gbps}\n{devices}\n\
                 queues = {queues}\nsubflows = {subflows}\ndma_reads = {reads}\n{chosen}\n\
                 port_bytes = 1000000000\n[run]\nseed = {seed}\nwarmup_fraction = 0\n\
                 cooldown_fraction = 0\n[workload]\nload = 0.{load:02}\nmessages = 200\n\
                 read_fraction = {}\n",
                nodes * racks,
                f64::from(read_fraction) / 100.0,
            )
        },
    )
}

/// Bytes of data of a full segment, and of the header of memory in the first one.
const SEGMENT_BYTES: u64 = 4_032;
const HEADER_BYTES: u64 = 16;

proptest! {
    #![proptest_config(crate::property::cases(200))]

    /// What has equal packets, or one, is never faster than alone. If the last packet is shorter,
    /// company may change its place among the others, and the rest takes no less than alone.
    #[test]
    fn no_message_is_faster_than_alone(text in racks(), seed in 0..1_000_000u64, choice in 0..3u8) {
        let bytes = match choice {
            0 => 1 + seed % (SEGMENT_BYTES - HEADER_BYTES),
            1 => SEGMENT_BYTES * (1 + seed % 20) - HEADER_BYTES,
            _ => 1 + seed % 90_000,
        };
        let scenario = scenario(&format!("{text}message_bytes = {bytes}\n"));
        let result = run_scenario(&scenario, "dfabric", None);
        prop_assert_eq!(result.messages_finished, 200);
        let least = result.kinds.all.slowdown_min.expect("measured");
        if std::env::var_os("H1").is_some() && least < 1.0 { eprintln!("LEAST {least} {choice} {bytes} {}", text.replace('\n', " ")); }
        prop_assert!(least >= 0.9, "slowdown {}", least);
    }
}
