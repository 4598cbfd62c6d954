//! The room that a lossless switch needs after it pauses a link, and the fate of packets if it has
//! less.

use ethermem_sim::fabrics::pfc::Pfc;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::Ps;

use crate::lossless::HEADROOM;
use crate::support::{
    LINK_GBPS, Watched, fabric_config, message, run_messages, run_messages_with_loss,
};

/// Number of senders that fill the queue of node 0, number of later ones, and of nodes that send to
/// the later ones.
const EARLY: u16 = 24;
const LATE: u16 = 12;

/// Bytes of a full packet in a buffer, and its data bytes.
const FULL_BYTES: u64 = 1_544;
const DATA_BYTES: u64 = 1_440;

fn late_senders() -> std::ops::Range<u16> {
    1 + EARLY..1 + EARLY + LATE
}

/// An incast with the worst pauses. The late senders begin when the queue of node 0 is so long that
/// none of their frames leaves before they are paused. Xoff is a multiple of a full frame, so that
/// a whole frame crosses it. Full frames arrive at them, begun at different times, so that a pause
/// frame waits for one. Marks slow no sender down.
fn worst_incast(link_gbps: u64, metres: u64, more: &str) -> (FabricConfig, Vec<Message>) {
    // 5 ns per metre of fibre.
    let propagation = 5 * metres;
    let config = fabric_config(&format!(
        "nodes = {}\nlink_gbps = {link_gbps}\npropagation_ns = {propagation}\n[fabric.pfc]\n\
         xoff_bytes = {}\necn_min_bytes = 1000000000\necn_max_bytes = 1000000000\n{more}",
        1 + EARLY + 2 * LATE,
        40 * FULL_BYTES,
    ));
    let frame = config.link.block_time() * (FULL_BYTES / 8);
    let way = Ps::from_ns(4 * propagation + 4_000);
    let (mut messages, bytes) = (Vec::new(), DATA_BYTES * 600);
    for node in 1..=EARLY {
        messages.push(message(Ps(1_000), Kind::Write, node, 0, bytes));
    }
    // The early senders are paused after 40 frames each, which take node 0's link a frame each.
    let filled = Ps(1_000) + frame * 45;
    for (n, node) in late_senders().enumerate() {
        let later = Ps(frame.0 * n as u64 / u64::from(LATE));
        messages.push(message(filled, Kind::Write, node, 0, bytes));
        // They get full frames from before the pause to long after it.
        let back = DATA_BYTES * ((frame * 100 + way * 2).0 / frame.0);
        messages.push(message(Ps(1_000) + later, Kind::Write, node + LATE, node, back));
    }
    messages.sort_by_key(|message| message.arrival);
    (config, messages)
}

/// The maximum headroom that the link of any late sender used, and the headroom.
fn taken_of_headroom(link_gbps: u64, metres: u64) -> (u64, u64) {
    let (config, messages) = worst_incast(link_gbps, metres, "");
    let (_, end) = run_messages::<Watched<Pfc>>(&config, &messages);
    let counts = end.stats.packets.expect("packets");
    assert_eq!((counts.dropped, counts.marked), (0, 0), "{counts:?}");
    let links = HEADROOM.take();
    let late = late_senders().map(|node| links[usize::from(node)]);
    late.max().expect("there are late senders")
}

#[test]
fn headroom_is_what_the_worst_pause_needs_to_a_frame() {
    for link_gbps in LINK_GBPS {
        for metres in [2, 10, 100, 1_000] {
            let (taken, headroom) = taken_of_headroom(link_gbps, metres);
            let spare = headroom.checked_sub(taken);
            assert!(
                spare.is_some_and(|spare| spare <= FULL_BYTES),
                "{link_gbps} Gb/s, {metres} m: {taken} B of {headroom}"
            );
        }
    }
}

#[test]
fn a_byte_less_than_the_worst_pause_needs_loses_packets_and_their_messages() {
    let (taken, _) = taken_of_headroom(100, 100);
    let run = |headroom: u64| {
        let (config, messages) = worst_incast(100, 100, &format!("headroom_bytes = {headroom}"));
        let (finished, lost, end) = run_messages_with_loss::<Pfc>(1, &config, &messages);
        let dropped = end.stats.packets.expect("packets").dropped;
        assert_eq!(finished.iter().filter(|at| at.is_none()).count() as u64, lost);
        (dropped, lost)
    };
    assert_eq!(run(taken), (0, 0));
    let (dropped, lost) = run(taken - 1);
    assert!(lost > 0 && dropped >= lost, "{dropped} packets, {lost} messages");
    // Without headroom, a paused sender loses what it has sent by then.
    let (dropped, lost) = run(0);
    assert_eq!(lost, u64::from(EARLY + LATE));
    assert!(dropped > 2 * lost, "{dropped} packets, {lost} messages");
}

#[test]
fn what_is_lost_of_reads_ends_them_too() {
    // Responses to one node meet at its port: some lose all of their packets, including the first.
    let keys = "nodes = 40\n[fabric.pfc]\nxoff_bytes = 3000\nheadroom_bytes = 1600\n\
                ecn_min_bytes = 1000000000\necn_max_bytes = 1000000000";
    let reads: Vec<Message> = (1..40)
        .flat_map(|node| [20_000, 64].map(|bytes| message(Ps(1_000), Kind::Read, 0, node, bytes)))
        .collect();
    let (_, lost, end) = run_messages_with_loss::<Pfc>(1, &fabric_config(keys), &reads);
    assert!(lost > 10 && lost < 78, "{lost} of 78: {:?}", end.stats.packets);
}
