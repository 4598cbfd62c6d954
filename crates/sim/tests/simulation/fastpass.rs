//! Fastpass against its definition and its own arithmetic.

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::fastpass::Fastpass;
use ethermem_sim::packet::Frame;
use ethermem_sim::topology::{Layout, Topology};
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::support::{fabric_config, message, run_messages};

const SLOT: Ps = Ps(640);
/// Number of blocks of a frame of minimum size, and of a full one: a timeslot.
const CONTROL: u64 = 11;
const TIMESLOT: u64 = 193;

/// Writes that all exist from the start; consecutive ones share no sender and no receiver.
fn writes(nodes: u16, rounds: u16, bytes: u64) -> Vec<Message> {
    let pairs = (0..rounds).flat_map(|round| (0..nodes).map(move |node| (round, node)));
    let to = |(round, node)| (node, (node + 1 + round) % nodes);
    let write = |(from, to)| message(Ps::ZERO, Kind::Write, from, to, bytes);
    pairs.map(to).map(write).collect()
}

#[test]
fn the_arbiter_saturates_where_its_control_bytes_say() {
    // There is a demand and an allocation for each message. So the arbiter's link carries a message
    // for every 11 blocks in either direction, whatever the network could carry. Each of 144 nodes
    // could send 64 B every 15 blocks, a hundred times as many.
    let (nodes, rounds) = (144, 20);
    let messages = u64::from(nodes * rounds);
    for gbps in [25, 100, 400] {
        let keys = format!("nodes = {nodes}\n[fabric.fastpass]\narbiter_gbps = {gbps}");
        let config = fabric_config(&keys);
        let (_, end) = run_messages::<Fastpass>(&config, &writes(nodes, rounds, 64));
        let alone = Alone::<Fastpass>::new(&config).time(Kind::Write, Bytes(64));
        let rate = BitsPerSecond::from_gbps(gbps).expect("an Ethernet rate");
        let least = alone + rate.block_time() * (CONTROL * (messages - 1));
        assert!(end.ended >= least, "{gbps} Gb/s: {} under {least}", end.ended);
        // The last demand waits for a timeslot to begin. Its allocation waits for the allocations
        // of demands that arrived within that timeslot.
        let most = least + SLOT * (2 * TIMESLOT);
        assert!(end.ended <= most, "{gbps} Gb/s: {} over {most}", end.ended);
    }
}

#[test]
fn a_timeslot_joins_all_who_can_be_joined() {
    // There are two messages of one sender, two to one receiver, and one apart from them.
    let config = fabric_config("nodes = 8");
    let write = |from, to| message(Ps::ZERO, Kind::Write, from, to, 1_484);
    let messages = [write(0, 1), write(0, 2), write(3, 1), write(4, 5)];
    let (finished, end) = run_messages::<Fastpass>(&config, &messages);
    let matching = end.stats.matching.expect("an arbiter matches");
    assert_eq!(matching.grants, 4);
    // Demands arrive 11 blocks apart: the first timeslot starts with only the first, and the second
    // joins all others: 3 to 1, 0 to 2, 4 to 5.
    assert_eq!((matching.rounds, matching.size_max), (2, 3));
    let alone = Alone::<Fastpass>::new(&config).time(Kind::Write, Bytes(1_484));
    assert_eq!(finished[0], alone);
    // The three allocations leave the arbiter one after the other, from the second receiver on: the
    // previous matching began with another receiver.
    let later = [(1, 1), (2, 0), (3, 2)];
    for (message, place) in later {
        let expected = alone + SLOT * (TIMESLOT + CONTROL * place);
        assert_eq!(finished[message], expected, "{message}");
    }
}

#[test]
fn a_pair_is_held_for_the_timeslots_of_its_allocation() {
    // There are 12 frames in allocations of 8 timeslots, and a later frame of another sender for
    // the same node. By remaining timeslots it goes between them.
    let config = fabric_config("nodes = 4");
    let messages = [
        message(Ps::ZERO, Kind::Write, 1, 0, 12 * 1_484),
        message(Ps::from_ns(50), Kind::Write, 2, 0, 1_484),
    ];
    let (finished, _) = run_messages::<Fastpass>(&config, &messages);
    let mut alone = Alone::<Fastpass>::new(&config);
    let mut alone = |bytes| alone.time(Kind::Write, Bytes(bytes));
    assert_eq!(finished[0], alone(12 * 1_484) + SLOT * TIMESLOT);
    assert_eq!(finished[1], alone(1_484) + SLOT * (8 * TIMESLOT));
}

#[test]
fn a_timeslot_may_be_shorter_than_a_frame_and_longer() {
    // 128 B of the line hold 26 B of data behind the longest memory header; an MTU of 256 B holds
    // 192.
    for (timeslot, data) in [(128, 26), (1_538, 192)] {
        let config = fabric_config(&format!(
            "nodes = 2\n[fabric.packet]\nmtu_bytes = 256\nmemory_header_bytes = 64\n\
             [fabric.fastpass]\ntimeslot_bytes = {timeslot}\nallocation_timeslots = 1"
        ));
        let (_, end) = run_messages::<Fastpass>(&config, &writes(2, 1, data));
        assert_eq!(end.stats.matching.expect("an arbiter matches").grants, 2);
        let (_, end) = run_messages::<Fastpass>(&config, &writes(2, 1, data + 1));
        assert_eq!(end.stats.matching.expect("an arbiter matches").grants, 4, "{timeslot}");
    }
}

const CLOS: &str = "topology = \"leaf-spine\"\n";

#[test]
fn between_racks_every_frame_takes_the_long_way() {
    // The way is from rack 1 to rack 2, and the arbiter is in rack 0: a demand, an allocation, a
    // full frame.
    let keys = format!("nodes = 48\nlink_gbps = 40\n{CLOS}[fabric.leaf_spine]\nspines = 2\n");
    let config = fabric_config(&keys);
    let layout = Layout::new(&config, Ps::ZERO);
    let way = |payload| layout.one_way(Frame::of(payload));
    let mut alone = Alone::<Fastpass>::new(&config);
    let mut time = |kind, (from, to), frames: u64| {
        let bytes = frames * 1_484;
        alone.time_of(&message(Ps::ZERO, kind, from, to, bytes))
    };
    let one = time(Kind::Write, (16, 32), 1);
    assert_eq!(one, way(0) * 2 + way(1_500));
    // The epoch's frames follow each other, and the next epoch follows its eighth frame.
    let timeslot = config.link.block_time() * TIMESLOT;
    assert_eq!(time(Kind::Write, (17, 47), 8), one + timeslot * 7);
    assert_eq!(time(Kind::Write, (17, 47), 20), one + timeslot * 19);
    // The demand of a read comes from the other end, which is as far away.
    assert_eq!(time(Kind::Read, (16, 32), 1), one);
    // Beside the arbiter, and in one rack, items without a spine on their way take less time.
    let core = (
        way(0) - layout_of_one_switch(&config, 0),
        way(1_500) - layout_of_one_switch(&config, 1_500),
    );
    assert_eq!(time(Kind::Write, (0, 16), 1), one - core.0 * 2);
    assert_eq!(time(Kind::Write, (17, 18), 1), one - core.1);
    assert_eq!(time(Kind::Write, (16, 0), 1), one);
    assert_eq!(time(Kind::Read, (0, 16), 1), one - core.0);
    assert_eq!(time(Kind::Write, (0, 1), 1), one - core.0 * 2 - core.1);

    // The arbiter is in the last rack. The properties of the first rack hold there, one message
    // after another, and no message is slower than its twin.
    let beside = fabric_config(&format!("{keys}[fabric.fastpass]\narbiter_beside = 40"));
    let mut alone = Alone::<Fastpass>::new(&beside);
    for ((kind, from, to), way) in [
        ((Kind::Write, 0, 16), one),
        ((Kind::Write, 33, 16), one - core.0 * 2),
        ((Kind::Write, 16, 33), one),
        ((Kind::Read, 33, 16), one - core.0),
        ((Kind::Write, 32, 47), one - core.0 * 2 - core.1),
        ((Kind::Write, 1, 0), one - core.1),
    ] {
        let one = message(Ps(1_000), kind, from, to, 1_484);
        assert_eq!(alone.time_of(&one), way, "{one:?}");
        assert_eq!(run_messages::<Fastpass>(&beside, &[one]).0[0], Ps(1_000) + way, "{one:?}");
    }
    // The rack behind the arbiter's has one node.
    let keys = keys.replace("nodes = 48", "nodes = 49");
    let few = fabric_config(&format!("{keys}[fabric.fastpass]\narbiter_beside = 40"));
    let one = message(Ps(1_000), Kind::Write, 0, 1, 1_484);
    let way = run_messages::<Fastpass>(&few, &[one]).0[0] - Ps(1_000);
    assert_eq!(Alone::<Fastpass>::new(&few).time_of(&one), way);
}

/// The time of a frame between two nodes of one switch.
fn layout_of_one_switch(config: &FabricConfig, payload: u64) -> Ps {
    let one = FabricConfig { topology: Topology::SingleSwitch, ..config.clone() };
    Layout::new(&one, Ps::ZERO).one_way(Frame::of(payload))
}

/// Messages of all sizes between random nodes of different racks, at constant gaps.
fn random_writes(racks: u64, rack_nodes: u64, count: u64, gap: Ps) -> Vec<Message> {
    let mut rng = SplitMix64::seed_from_u64(9);
    let mut draw = |most: u64| rng.next_u64() % most;
    let write = |at| {
        let from = draw(racks);
        let to = (from + 1 + draw(racks - 1)) % racks;
        let mut node = |rack| (rack * rack_nodes + draw(rack_nodes)) as u16;
        let (from, to) = (node(from), node(to));
        message(gap * at, Kind::Write, from, to, 1_484 * (1 + draw(40)))
    };
    (0..count).map(write).collect()
}

#[test]
fn what_starts_together_on_paths_of_the_arbiter_hardly_meets() {
    // There are two spines and four racks of eight nodes. No two frames of a timeslot take one
    // share of a link. So a frame waits behind frames of less than two timeslots: with it, frames
    // of three, and control frames, for which the timeslots leave room. Without the arbiter's paths
    // frames collide. All messages go between racks, since a message within one would arrive
    // earlier by two hops.
    let messages = random_writes(4, 8, 3_000, Ps(150_000));
    let waiting = |keys: &str| {
        let keys =
            format!("nodes = 32\n{CLOS}[fabric.leaf_spine]\nrack_nodes = 8\nspines = 2\n{keys}\n");
        let (_, end) = run_messages::<Fastpass>(&fabric_config(&keys), &messages);
        end.stats.queue.expect("ports have queues").egress_blocks_max
    };
    let own = "[fabric.fastpass]\ntimeslot_bytes = 1700\nstarts = ";
    let together = waiting(&format!("{own}\"together\""));
    let told = waiting(&format!("{own}\"when-told\""));
    let hashed = waiting(&format!("balancing = \"ecmp\"\n{own}\"together\""));
    println!("{together} {told} {hashed}");
    assert!(together <= 3 * TIMESLOT, "{together}");
    assert!(told > together && hashed > 2 * together, "{together} {told} {hashed}");
}
