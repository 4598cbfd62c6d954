//! The idealised receiver-driven transport against its definition, computed by hand to the
//! picosecond.

use ethermem_sim::Kind;
use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::ird::Ird;
use ethermem_units::{Bytes, Ps};

use crate::support::{fabric_config, message, run_messages};

const SLOT: Ps = Ps(640);
/// Data bytes and blocks of a full frame: 1,484 B in 193 blocks.
const FULL: (u64, u64) = (1_484, 193);

#[test]
fn a_receiver_paces_its_credits_so_that_nothing_waits_at_its_egress() {
    let config = fabric_config("nodes = 5");
    let writes: Vec<_> = (1..5).map(|n| message(Ps::ZERO, Kind::Write, n, 0, 64)).collect();
    let (finished, end) = run_messages::<Ird>(&config, &writes);
    let alone = Alone::<Ird>::new(&config).time(Kind::Write, Bytes(64));
    // A frame of 64 B takes 15 blocks, and frames follow each other without a gap.
    let expected: Vec<Ps> = (0..4).map(|place| alone + SLOT * (15 * place)).collect();
    assert_eq!(finished, expected);
    let queue = end.stats.queue.expect("a switch has queues");
    assert_eq!(queue.egress_blocks_max, 15);
    assert_eq!(queue.egress_blocks_mean, 0.0);
}

#[test]
fn the_shortest_message_is_called_for_first() {
    let config = fabric_config("nodes = 4");
    let long = 4 * FULL.0;
    let writes = [
        message(Ps::ZERO, Kind::Write, 1, 0, long),
        message(Ps(1), Kind::Write, 2, 0, FULL.0),
        message(Ps(2), Kind::Write, 3, 0, 64),
    ];
    let (finished, _) = run_messages::<Ird>(&config, &writes);
    let mut alone = Alone::<Ird>::new(&config);
    let mut alone = |bytes| alone.time(Kind::Write, Bytes(bytes));
    // The first frame of the long message is requested first. A full frame later the 64 B are
    // requested; 15 blocks later the other message, and then the rest. The 64 B take 14 blocks
    // until whole, so they are at the egress after 193 + 13. They wait there until 190 + 193 for
    // the full frame before them.
    assert_eq!(finished[2], alone(64) + SLOT * (FULL.1 + 190 + FULL.1 - (FULL.1 + 13)));
    assert_eq!(finished[1], alone(FULL.0) + SLOT * (FULL.1 + 15));
    assert_eq!(finished[0], alone(long) + SLOT * (FULL.1 + 15));
}

#[test]
fn a_sender_answers_one_receiver_at_a_time_and_the_other_ones_link_stays_empty() {
    // Node 0 writes to 2 and to 1, then 3 to 1, a frame each. Both receivers request 0's data at
    // once, and 0 answers 2. The link of 1 is reserved for a frame that does not arrive, while 3
    // could have sent. Then both frames arrive together, and one waits.
    let config = fabric_config("nodes = 4");
    let write = |from, to| message(Ps::ZERO, Kind::Write, from, to, FULL.0);
    let writes = [write(0, 2), write(0, 1), write(3, 1)];
    let (finished, _) = run_messages::<Ird>(&config, &writes);
    let alone = Alone::<Ird>::new(&config).time(Kind::Write, Bytes(FULL.0));
    let expected = [0, 1, 2].map(|frames| alone + SLOT * (FULL.1 * frames));
    assert_eq!(finished, expected);
}

#[test]
fn a_window_of_a_frame_is_stop_and_wait() {
    let config = fabric_config("nodes = 2\n[fabric.ird]\nwindow_bytes = 64");
    let frames = 7;
    for kind in [Kind::Read, Kind::Write] {
        let one = Alone::<Ird>::new(&config).time(kind, Bytes(FULL.0));
        let messages = [message(Ps::ZERO, kind, 0, 1, frames * FULL.0)];
        let (finished, _) = run_messages::<Ird>(&config, &messages);
        assert_eq!(finished, [one * frames], "{kind:?}");
    }
}

#[test]
fn conflicts_of_receivers_cost_bandwidth_that_a_permutation_does_not() {
    // Four nodes have 140 frames each to send to four others, and all is known from the start. No
    // link has both data and credits.
    const PAIRS: u16 = 4;
    const FRAMES: u16 = 140;
    let config = fabric_config("nodes = 8");
    let alone = Alone::<Ird>::new(&config).time(Kind::Write, Bytes(FULL.0));
    let ended = |to: fn(u16, u16) -> u16| {
        let pairs = (0..PAIRS).flat_map(|node| (0..FRAMES).map(move |frame| (node, frame)));
        let to = |(node, frame)| (node, PAIRS + to(node, frame) % PAIRS);
        let write = |(node, to)| message(Ps::ZERO, Kind::Write, node, to, FULL.0);
        let writes: Vec<_> = pairs.map(to).map(write).collect();
        run_messages::<Ird>(&config, &writes).1.ended
    };
    let least = alone + SLOT * (FULL.1 * u64::from(FRAMES - 1));
    assert_eq!(ended(|node, _| node), least);
    // Of equal messages the oldest is requested first, and for all receivers that is one of node 0.
    let contended = ended(|node, frame| node + frame);
    assert!(contended.0 > least.0 * 11 / 10, "{contended}, without conflicts {least}");
}
