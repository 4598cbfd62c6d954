//! The fabric `clio` against its paper, and the guarantees of its transport.

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::clio::Clio;
use ethermem_sim::metrics::RunResult;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Bytes, Ps};

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

/// Reads of 16 B one after the other, on the links of the paper's board.
fn reads(keys: &str) -> RunResult {
    let text = format!(
        "[fabric]\nnodes = 2\nlink_gbps = 10\nmemory_access_ns = 82\n{keys}\n[workload]\n\
         load = 0.001\nread_fraction = 1.0\nmessage_bytes = 16\nmessages = 4000"
    );
    run_scenario(&scenario(&text), "clio", None)
}

#[test]
fn a_read_of_16_b_alone_takes_the_median_of_the_paper() {
    let alone = |keys| {
        let keys = format!("link_gbps = 10\nmemory_access_ns = 82\n{keys}");
        Alone::<Clio>::new(&fabric_config(&keys)).time(Kind::Read, Bytes(16))
    };
    let paper = alone("");
    assert!(paper.0.abs_diff(2_500_000) < 2_000, "{paper:?}");
    // The time has four passes of a stack, one access to memory, and two cycles for a request of
    // 104 B.
    assert_eq!(paper - alone("[fabric.packet]\nstack_ns = 0"), Ps::from_ns(4 * 207));
    assert_eq!(alone("[fabric.clio]\nclock_ns = 5") - paper, Ps::from_ns(2));
    // What varies from message to message is left out.
    assert_eq!(alone("[fabric.clio]\npages = 4096\njitter_ns = 500"), paper);
}

#[test]
fn the_tail_is_that_of_the_paper_with_its_scenario() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/clio-figure7.toml");
    let text = std::fs::read_to_string(path).expect("the scenario is there");
    let all = run_scenario(&scenario(&text), "clio", None).kinds.all;
    let (p50, p99) = (all.latency_ns_p50.expect("p50"), all.latency_ns_p99.expect("p99"));
    assert!((p50 / 2_500.0 - 1.0).abs() < 0.02, "{p50}");
    assert!((p99 / 3_200.0 - 1.0).abs() < 0.03, "{p99}");
}

#[test]
fn pages_cost_one_access_to_memory_and_processes_nothing() {
    let mean = |processes: u32, pages: u32| {
        let keys = format!("[fabric.clio]\nprocesses = {processes}\npages = {pages}");
        reads(&keys).kinds.all.latency_ns_mean.expect("a mean")
    };
    let hit = mean(1, 1);
    // 16 entries of 4,096 pages: one access in 256 hits.
    let missed = mean(1, 4_096) - hit;
    assert!((missed - 82.0 * 255.0 / 256.0).abs() < 0.5, "{missed}");
    for (processes, pages) in [(64, 64), (4_096, 1), (1, 1 << 18)] {
        let other = mean(processes, pages) - hit;
        assert!((other - missed).abs() < 1.0, "{processes} of {pages}: {other}, and {missed}");
    }
    // A TLB that holds all pages costs as much as one page.
    let keys = "[fabric.clio]\npages = 64\ntlb_entries = 4096";
    assert_eq!(reads(keys).kinds.all.latency_ns_mean, Some(hit));
}

#[test]
fn long_messages_go_at_the_rate_of_the_link_or_of_the_fast_path() {
    // A packet of 1,500 B has 1,440 B of data and takes 193 blocks, and 25 cycles of the fast path.
    for (gbps, slots) in [(10, 193), (100, 193)] {
        let config = fabric_config(&format!("link_gbps = {gbps}"));
        let packet = config.link.block_time().0 * slots;
        assert_steady(&config, Kind::Read, packet);
        assert_steady(&config, Kind::Write, packet);
    }
    // 1,440 B in 100 ns are 115 Gb/s: section 7.1 reports more than 110 on the board.
    let config = fabric_config("link_gbps = 400");
    assert_steady(&config, Kind::Write, 25 * 4_000);
    // A request of a read is short, and its answer does not pass the fast path.
    assert_steady(&config, Kind::Read, config.link.block_time().0 * 193);
}

fn assert_steady(config: &FabricConfig, kind: Kind, packet_ps: u64) {
    let mut alone = Alone::<Clio>::new(config);
    let took = alone.time(kind, Bytes(1_440 * 1_000)) - alone.time(kind, Bytes(1_440));
    let over = took.0 as f64 / (packet_ps * 999) as f64 - 1.0;
    assert!((-0.001..0.01).contains(&over), "{}, {kind:?}: {over}", config.link.as_gbps_f64());
}

#[test]
fn nothing_is_forgotten_where_much_is_dropped() {
    for topology in ["single-switch", "leaf-spine"] {
        for read_fraction in ["0.0", "0.5", "1.0"] {
            let text = format!(
                "[fabric]\nnodes = 32\ntopology = \"{topology}\"\n[fabric.leaf_spine]\n\
                 rack_nodes = 8\nspines = 2\n[fabric.clio]\nbuffer_bytes = 12000\n\
                 window_requests_initial = 100\nincast_bytes = 100000\nretry_min_us = 10\n\
                 [workload]\npattern = \"incast\"\nload = 0.9\nmessage_bytes = 30000\n\
                 read_fraction = {read_fraction}\nmessages = 3000"
            );
            let result = run_scenario(&scenario(&text), "clio", None);
            assert_eq!(result.messages_finished, 3_000, "{text}");
            let counts = result.packets.expect("packets");
            assert!(counts.retransmitted >= counts.dropped, "{counts:?}");
            // Answers of reads spread over 32 nodes.
            assert!(read_fraction == "1.0" || counts.dropped > 100, "{text}\n{counts:?}");
        }
    }
}

#[test]
fn clients_share_a_memory_node_by_delay() {
    // Each of 32 clients sends 1.4 MB at once. A fair window is two packets, and each window grows
    // by one per round trip, so the buffer overflows now and then.
    let writes: Vec<Message> =
        (0..32).map(|from| message(Ps(1_000), Kind::Write, from, 32, 1_440_000)).collect();
    for first_window in [1, 25] {
        let keys = format!("nodes = 33\n[fabric.clio]\nwindow_requests_initial = {first_window}");
        let config = fabric_config(&keys);
        let (finished, end) = run_messages::<Clio>(&config, &writes);
        let counts = end.stats.packets.expect("packets");
        assert!(counts.dropped * 16 < 32_000, "{counts:?}");
        let line = config.link.block_time().0 * 193 * 32_000;
        let last = finished.iter().max().expect("32").0;
        assert!((last as f64) < 1.1 * line as f64, "{last}, and {line} of line");
    }
}

#[test]
fn answers_to_a_client_are_bounded_by_its_window() {
    // One client reads 1 MB from each of 32 memory nodes: without the window the answers would meet
    // at its link.
    let reads: Vec<Message> =
        (0..32).map(|memory| message(Ps(1_000), Kind::Read, 32, memory, 1_440_000)).collect();
    let dropped = |keys: &str| {
        let config = fabric_config(&format!("nodes = 33\n{keys}"));
        let (_, end) = run_messages::<Clio>(&config, &reads);
        end.stats.packets.expect("packets").dropped
    };
    assert_eq!(dropped(""), 0);
    assert!(dropped("[fabric.clio]\nincast_bytes = 1000000000") > 0);
}

#[test]
fn a_response_that_comes_again_is_not_for_the_next_message() {
    // Retried reads are answered twice. The second answer comes after all has ended, when the entry
    // of the request is already reused for another message.
    let text = "[fabric]\nnodes = 16\nlink_gbps = 10\npropagation_ns = 16\nmemory_access_ns = 7\n\
                [fabric.edm]\nbatching = false\nchunk_bytes = 128\n[background]\nload = 0.21\n\
                [workload]\npattern = \"all-to-all\"\nload = 0.64\nmessage_bytes = 7139\n\
                read_fraction = 0.91\nrmw_fraction = 0.01\nmessages = 300\n[run]\nseed = 852905\n\
                warmup_fraction = 0\ncooldown_fraction = 0";
    let result = run_scenario(&scenario(text), "clio", None);
    assert_eq!(result.messages_finished, 300);
}
