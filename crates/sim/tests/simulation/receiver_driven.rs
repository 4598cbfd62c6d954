//! The receiver-driven fabrics `phost` and `homa`, against theory and their papers.

use ethermem_sim::engine::Fabric;
use ethermem_sim::fabrics::homa::Homa;
use ethermem_sim::fabrics::phost::Phost;
use ethermem_sim::metrics::PacketCounts;
use ethermem_sim::packet::Frame;
use ethermem_sim::{Kind, Message};
use ethermem_units::Ps;

use crate::support::{fabric_config, message, run_messages, scenario};

const SLOT: u64 = 640;
/// Bytes of IPv4, 20 bytes of a transport, and the memory header.
const HEADERS: u64 = 40 + 16;
const PAYLOAD: u64 = 1_500 - HEADERS;

/// Time of a full packet on a link of 100 Gb/s.
fn packet_time() -> Ps {
    Ps(SLOT * u64::from(Frame::of(1_500).line))
}

/// Table 1's one-way budget at 100 Gb/s, with a frame that is stored twice.
fn one_way(payload: u64) -> Ps {
    Ps(557_440) + tail(payload) * 2
}

/// Time from the first block of a frame to its last.
fn tail(payload: u64) -> Ps {
    Ps(SLOT * u64::from(Frame::of(payload).tail))
}

/// Time of data whose packets follow each other without a gap.
fn back_to_back(bytes: u64) -> Ps {
    let before = (bytes - 1) / PAYLOAD;
    let last = HEADERS + bytes - before * PAYLOAD;
    // The last packet is stored at the switch before the full one in front of it is gone.
    let first = if before == 0 { last } else { 1_500 };
    Ps(557_440) + tail(first) + tail(last) + packet_time() * before
}

/// The time from the first start to the last end of these messages.
fn time_of_all<F: Fabric>(keys: &str, messages: &[Message]) -> Ps {
    let (finished, _) = run_messages::<F>(&fabric_config(keys), messages);
    *finished.iter().max().expect("some") - messages[0].arrival
}

fn write(compute: u16, memory: u16, bytes: u64) -> Message {
    message(Ps(1_000), Kind::Write, compute, memory, bytes)
}

#[test]
fn phost_alone_takes_the_budget_to_the_picosecond() {
    let time = |kind, bytes| {
        let alone = [message(Ps(5_000), kind, 0, 1, bytes)];
        time_of_all::<Phost>("nodes = 3\nmemory_access_ns = 50", &alone)
    };
    // Where data is not free, there are an announcement, which is as long as a request, and a
    // token.
    let asked = one_way(HEADERS) + one_way(40);
    for (bytes, free) in
        [(1, true), (64, true), (8 * PAYLOAD, true), (8 * PAYLOAD + 1, false), (99_999, false)]
    {
        let wait = if free { Ps::ZERO } else { asked };
        let write = wait + back_to_back(bytes);
        assert_eq!(time(Kind::Write, bytes), write, "{bytes} B");
        let read = one_way(HEADERS) + Ps(50_000) + write;
        assert_eq!(time(Kind::Read, bytes), read, "{bytes} B");
    }
}

#[test]
fn phost_receivers_and_senders_serve_the_shortest_first() {
    // The short message comes long after the long one has begun, to the same node or from it.
    for other in [(2, 1), (0, 2)] {
        let (long, short) = (1_000 * PAYLOAD, 100 * PAYLOAD);
        let messages =
            [write(0, 1, long), message(Ps(20_000_000), Kind::Write, other.0, other.1, short)];
        let (finished, _) = run_messages::<Phost>(&fabric_config("nodes = 3"), &messages);
        let alone = one_way(HEADERS) + one_way(40) + back_to_back(short);
        let slowdown = (finished[1] - messages[1].arrival).0 as f64 / alone.0 as f64;
        // Data of the long message that was already requested comes first: a bandwidth-delay
        // product of 12.
        assert!((1.0..1.15).contains(&slowdown), "{slowdown}, {other:?}");
    }
}

#[test]
fn a_phost_source_that_does_not_answer_is_left_for_another() {
    // Node 0 sends to 1 first, for that message is shorter; node 2 prefers 0's message for it to
    // 3's.
    let messages =
        [write(0, 1, 200 * PAYLOAD), write(0, 2, 300 * PAYLOAD), write(3, 2, 400 * PAYLOAD)];
    let packets = |keys: &str| {
        let keys = format!("nodes = 4\n[fabric.phost]\n{keys}");
        time_of_all::<Phost>(&keys, &messages).0 as f64 / packet_time().0 as f64
    };
    // The link to node 2 takes 700 packets. It is idle for the tokens that node 0 may leave unused,
    // 14, and then for one of 25. It is also idle for the timeout of 20, and for a round trip, 13,
    // at either end.
    let downgraded = packets("timeout_us = 2.5");
    assert!((700.0..=700.0 + 14.0 + 8.0 + 20.0 + 26.0).contains(&downgraded), "{downgraded}");
    // Without the downgrade it is idle until node 0 has sent its 200.
    let patient = packets("timeout_us = 2.5\ntokens_unused_max = 100000");
    assert!(patient > 850.0, "{patient}");
}

/// An incast of 64: its time relative to all its frames in sequence and the way of the first, and
/// the packet counters.
fn incast_of_64<F: Fabric>(keys: &str, bytes: u64) -> (f64, PacketCounts) {
    let incast: Vec<Message> = (1..65).map(|node| write(node, 0, bytes)).collect();
    let (finished, end) =
        run_messages::<F>(&fabric_config(&format!("nodes = 65\n{keys}")), &incast);
    let time = (*finished.iter().max().expect("64") - Ps(1_000)).0 as f64;
    let rest = Frame::of(HEADERS + bytes % PAYLOAD);
    let each = packet_time() * (bytes / PAYLOAD) + Ps(SLOT * u64::from(rest.line));
    let ideal = each * 64 + back_to_back(bytes.min(PAYLOAD)) - packet_time().min(each);
    (time / ideal.0 as f64, end.stats.packets.expect("packets"))
}

#[test]
fn an_incast_of_64_over_phost_leaves_no_gap() {
    let (time, counts) = incast_of_64::<Phost>("", 100_000);
    assert!((1.0..1.02).contains(&time), "{time} of the ideal");
    assert_eq!((counts.dropped, counts.retransmitted), (0, 0), "{counts:?}");
}

#[test]
fn an_incast_of_64_over_homa_leaves_no_gap() {
    // The data is sent all at once, a part at once, or hardly any at once.
    for bytes in [64, 10_000, 100_000, 1_000_000] {
        let (time, counts) = incast_of_64::<Homa>("", bytes);
        assert!((0.99..1.1).contains(&time), "{time} of the ideal, {bytes} B");
        assert_eq!((counts.dropped, counts.retransmitted), (0, 0), "{counts:?}");
    }
}

/// A port of a third of a megabyte holds 18 of the 64 unsolicited RTTbytes. The rest is requested
/// again after a millisecond without an arrival.
#[test]
fn an_incast_of_64_over_homa_that_does_not_fit_waits_for_the_timeout_and_ends() {
    const KEYS: &str = "[fabric.homa]\nbuffer_bytes = 337500";
    for (bytes, least, most) in [(10_000, 15.0, 25.0), (100_000, 2.0, 3.5), (1_000_000, 1.0, 1.2)] {
        let (time, counts) = incast_of_64::<Homa>(KEYS, bytes);
        assert!((least..most).contains(&time), "{time} of the ideal, {bytes} B");
        assert!(counts.dropped > 200 && counts.retransmitted >= counts.dropped, "{counts:?}");
        let (soon, _) = incast_of_64::<Homa>(&format!("{KEYS}\nresend_us = 20"), bytes);
        assert!(soon < time, "{soon} and {time}, {bytes} B");
    }
}

#[test]
fn a_homa_client_limits_the_incast_of_its_own_requests() {
    const KEYS: &str = "nodes = 65\n[fabric.homa]\nbuffer_bytes = 337500";
    let reads: Vec<Message> =
        (1..65).map(|node| message(Ps(1_000), Kind::Read, 0, node, 10_000)).collect();
    let run = |keys: &str| {
        let (finished, end) = run_messages::<Homa>(&fabric_config(keys), &reads);
        let time = *finished.iter().max().expect("64") - Ps(1_000);
        // 64 requests leave one after the other; the first response follows the first of them.
        let ideal = one_way(HEADERS) + back_to_back(64 * 7 * PAYLOAD);
        (time.0 as f64 / ideal.0 as f64, end.stats.packets.expect("packets"))
    };
    // The buffer holds 18 of 64 RTTbytes. All other responses send a packet and are granted.
    let (time, counts) = run(KEYS);
    assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
    assert!((0.9..1.1).contains(&time), "{time} of the ideal");
    let (time, counts) = run(&format!("{KEYS}\nincast_requests = 64"));
    assert!(counts.dropped > 100 && time > 10.0, "{time} of the ideal, {counts:?}");
}

#[test]
fn homa_alone_takes_the_budget_to_the_picosecond() {
    let time = |kind, bytes| {
        let alone = [message(Ps(5_000), kind, 0, 1, bytes)];
        time_of_all::<Homa>("nodes = 3\nmemory_access_ns = 50", &alone)
    };
    for bytes in [1, 64, PAYLOAD, 20 * PAYLOAD + 1, 99_999, 1_000_000] {
        let write = back_to_back(bytes);
        assert_eq!(time(Kind::Write, bytes), write, "{bytes} B");
        let read = one_way(HEADERS) + Ps(50_000) + write;
        assert_eq!(time(Kind::Read, bytes), read, "{bytes} B");
    }
}

#[test]
fn overcommitment_keeps_a_homa_receiver_busy_whose_sender_is_not_there() {
    // Node 2 prefers 0's message for it to 3's, and then 0 turns to a shorter message for 1.
    let later = message(Ps(4_000_000), Kind::Write, 0, 1, 200 * PAYLOAD);
    let messages = [write(0, 2, 300 * PAYLOAD), write(3, 2, 400 * PAYLOAD), later];
    let packets = |keys: &str| {
        let keys = format!("nodes = 4\n[fabric.homa]\n{keys}");
        let (finished, _) = run_messages::<Homa>(&fabric_config(&keys), &messages);
        let last = finished[0].max(finished[1]);
        (last - Ps(1_000)).0 as f64 / packet_time().0 as f64
    };
    let (two, one) = (packets("overcommitment = 2"), packets("overcommitment = 1"));
    // The link to node 2 takes 700 packets, and the way of the first some 6.
    assert!((700.0..710.0).contains(&two), "{two}");
    assert!(one > 850.0, "{one}");
    // The overcommitment equals the number of scheduled priorities.
    assert_eq!(packets("unscheduled_priorities = 6"), two);
}

#[test]
fn short_homa_messages_pass_long_ones() {
    let mut messages: Vec<Message> = (1..9).map(|node| write(node, 0, 1_000_000)).collect();
    for at in 0..20 {
        messages.push(message(Ps::from_ns(50_000 + 1_300 * at), Kind::Write, 9, 0, 64));
    }
    let waited = |keys: &str| {
        let config = fabric_config(&format!("nodes = 10\n[fabric.homa]\n{keys}"));
        let (finished, _) = run_messages::<Homa>(&config, &messages);
        let times = (8..28).map(|n| (finished[n] - messages[n].arrival - back_to_back(64)).0);
        times.max().expect("20") as f64 / packet_time().0 as f64
    };
    // They wait for the frame that is being sent, and never for another. With one priority for
    // granted data, they would wait several round trips of it.
    let most = waited("");
    assert!((0.0..=1.0).contains(&most), "{most} packets");
    let most = waited("priorities = 1\novercommitment = 7");
    assert!(most > 12.0, "{most} packets");
}

/// All nodes send to one and receive from it, at once, in buffers of six full packets.
fn a_switch_keeps_little<F: Fabric>(name: &str, keys: &str) {
    let kinds = [Kind::Write, Kind::Read];
    let sizes = [64, 1_000, 8 * PAYLOAD, 20 * PAYLOAD];
    let of =
        |node: u16| kinds.map(|kind| sizes.map(|bytes| message(Ps(1_000), kind, node, 0, bytes)));
    let messages: Vec<Message> = (1..32).flat_map(of).flatten().collect();
    for topology in ["single-switch", "leaf-spine"] {
        for (balancing, background) in [("ecmp", 0.0), ("spray", 0.3)] {
            let config = scenario(&format!(
                "[fabric]\nnodes = 32\ntopology = \"{topology}\"\n[fabric.leaf_spine]\n\
                 rack_nodes = 8\nspines = 2\nbalancing = \"{balancing}\"\n[fabric.{name}]\n\
                 buffer_bytes = 10000\n{keys}\n[background]\nload = {background}\n\
                 [workload]\nload = 0.1"
            ));
            let (_, end) = run_messages::<F>(&config.fabric, &messages);
            let counts = end.stats.packets.expect("packets");
            assert!(counts.dropped > 100, "{topology}, {balancing}: {counts:?}");
        }
    }
}

#[test]
fn what_receivers_call_for_comes_however_little_a_switch_keeps() {
    a_switch_keeps_little::<Phost>("phost", "");
    a_switch_keeps_little::<Homa>("homa", "resend_us = 20");
}
