//! Two and three messages that meet, computed by hand to the picosecond.
//!
//! All cases are at 100 Gb/s. A slot is 640 ps, a PCS cycle 2.56 ns, an iteration three cycles of
//! 333 ps. A hop of EDM is 4 PCS cycles, 2 transceivers of 19 ns and 10 ns of propagation: 58.24
//! ns. Times in the comments are in nanoseconds.

use ethermem_sim::engine::{Alone, Fabric};
use ethermem_sim::fabrics::edm::Edm;
use ethermem_sim::fabrics::ideal::Ideal;
use ethermem_sim::fabrics::output_queued::OutputQueued;
use ethermem_sim::fabrics::raw_ethernet::RawEthernet;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::Ps;

use crate::support::{fabric_config, message, run_messages};

const SLOT: Ps = Ps(640);

fn config(edm: &str) -> FabricConfig {
    fabric_config(&format!("nodes = 5\nlink_gbps = 100\n[fabric.edm]\n{edm}"))
}

/// The time by which each message is slower than alone.
fn delays<F: Fabric>(config: &FabricConfig, messages: &[Message]) -> Vec<Ps> {
    let (finished, _) = run_messages::<F>(config, messages);
    let mut alone = Alone::<F>::new(config);
    let all = messages.iter().zip(finished);
    all.map(|(m, finished)| (finished - m.arrival) - alone.time(m.kind, m.bytes)).collect()
}

/// Nodes 1 to 4 write to node 0, all at once.
fn writes_to_one(bytes: u64) -> Vec<Message> {
    (1..5).map(|node| message(Ps::ZERO, Kind::Write, node, 0, bytes)).collect()
}

#[test]
fn writes_to_one_node_follow_each_other_without_a_gap() {
    // Their /N/ arrive at once, and the first is granted first. The others may be granted ahead and
    // wait in the egress buffer, or be granted when the port comes free. In both cases the link
    // goes from the last block of one message to the first of the next: 10 blocks each, or 34.
    for (bytes, blocks) in [(64, 10), (256, 34)] {
        let expected = [0, blocks, 2 * blocks, 3 * blocks].map(|slots| SLOT * slots);
        for ahead in [0, 7, 16] {
            for policy in ["fcfs", "srpt"] {
                let config = config(&format!("policy = \"{policy}\"\nahead_blocks = {ahead}"));
                assert_eq!(delays::<Edm>(&config, &writes_to_one(bytes)), expected, "{policy}");
            }
        }
        let published = config("policy = \"srpt-published\"");
        assert_eq!(delays::<Edm>(&published, &writes_to_one(bytes)), expected);
        assert_eq!(delays::<OutputQueued>(&config(""), &writes_to_one(bytes)), expected);
        assert_eq!(delays::<Ideal>(&config(""), &writes_to_one(bytes)), [Ps::ZERO; 4]);
    }
    // A frame of 64 B of data is 8 + 98 + 12 B on the line: 15 blocks.
    let expected = [0, 15, 30, 45].map(|slots| SLOT * slots);
    assert_eq!(delays::<RawEthernet>(&config(""), &writes_to_one(64)), expected);
}

#[test]
fn an_iteration_that_takes_longer_than_a_message_leaves_a_gap() {
    // At the testbed's clock an iteration takes 7.68 and a 64 B message 6.4. With a lookahead of
    // one and no buffer, the second message is requested in the iteration that begins when the
    // first is granted. It is granted 7.68 later, 1.28 after the port came free. Two iterations of
    // lookahead change nothing, since iterations run one after the other.
    for lookahead in [1, 2] {
        let config = config(&format!(
            "scheduler_clock_ns = 2.56\nahead_blocks = 0\nlookahead_iterations = {lookahead}"
        ));
        let expected = [0, 1, 2, 3].map(|place| Ps(7_680 * place));
        assert_eq!(delays::<Edm>(&config, &writes_to_one(64)), expected);
    }
}

#[test]
fn a_port_not_looked_at_until_it_is_nearly_free_is_granted_when_it_is_free() {
    // 256 B take 21.76 on the line. The port is free that long after the first grant, at 21.76 +
    // 0.999 after the notifications. With a lookahead of one iteration (0.999) the next iteration
    // begins at 21.76 and ends as the port comes free. There is no gap.
    let config = config("ahead_blocks = 0\nlookahead_iterations = 1");
    let expected = [0, 34, 68, 102].map(|slots| SLOT * slots);
    assert_eq!(delays::<Edm>(&config, &writes_to_one(256)), expected);
}

#[test]
fn a_read_and_a_write_that_share_their_path_share_it_in_the_order_of_their_requests() {
    // Node 0 reads from node 1, which writes to node 0: both data go from 1 to 0. The /N/ is one
    // block and the RREQ two, so the /N/ is at the switch at 71.04, the RREQ at 71.68. The write's
    // iteration is in progress until 72.039. The write is granted then, and both ports are busy
    // until 72.039 + 6.4. The read is matched in time and granted at 78.439 instead of 71.68 +
    // 0.999, which is 5.76, or 9 slots, late. The memory node needs longer to answer a request than
    // a /G/, so its data does not wait again.
    let messages =
        [message(Ps::ZERO, Kind::Read, 0, 1, 64), message(Ps::ZERO, Kind::Write, 1, 0, 64)];
    for order in ["pair", "strict", "relaxed"] {
        let config = config(&format!("order = \"{order}\""));
        assert_eq!(delays::<Edm>(&config, &messages), [SLOT * 9, Ps::ZERO], "{order}");
    }
}

#[test]
fn a_grant_goes_before_waiting_data() {
    // Nodes 1 and 2 each send 256 B to node 0: 34 blocks, 21.76, each. The first grant is at
    // 72.039. The second is 16 blocks (10.24) ahead of the port's release, 11.52 later. The first
    // chunk is at the egress 152.32 after its grant (14 cycles and two hops): from 224.359 to
    // 246.119. The second waits there from 235.879 on.
    // Node 0 writes to node 3 at 166: its /G/ is ready at the same egress at 166 + 72.039 + 2.56 =
    // 240.599. It waits 5.52 for the chunk in progress, and goes before the second one, which so
    // starts 35 slots later than it would alone.
    let config = config("");
    let messages = [
        message(Ps::ZERO, Kind::Write, 1, 0, 256),
        message(Ps::ZERO, Kind::Write, 2, 0, 256),
        message(Ps::from_ns(166), Kind::Write, 0, 3, 64),
    ];
    assert_eq!(delays::<Edm>(&config, &messages), [Ps::ZERO, SLOT * 35, Ps(5_520)]);
    assert_eq!(delays::<Edm>(&config, &messages[..2]), [Ps::ZERO, SLOT * 34]);
}

#[test]
fn a_request_waits_for_the_chunk_under_way_and_for_no_other_block() {
    // Node 0 writes 256 B: granted at 72.039, its chunk starts at 155.879 (10 cycles and a hop
    // later) and takes its uplink until 177.639. A read that node 0 submits at 160 is ready at
    // 165.12 and waits 12.519.
    let config = config("");
    let messages = [
        message(Ps::ZERO, Kind::Write, 0, 1, 256),
        message(Ps::from_ns(160), Kind::Read, 0, 2, 64),
    ];
    assert_eq!(delays::<Edm>(&config, &messages), [Ps::ZERO, Ps(12_519)]);
    // Submitted 9.76 earlier it is ready at 155.36, before the chunk, and does not wait. Its two
    // blocks are gone at 156.64; the chunk has waited for them since 155.879.
    let messages = [messages[0], message(Ps(150_240), Kind::Read, 0, 2, 64)];
    assert_eq!(delays::<Edm>(&config, &messages), [Ps(761), Ps::ZERO]);
}

#[test]
fn a_write_behind_a_read_of_its_pair_does_not_wait_for_the_response() {
    // Node 0 reads 64 B from node 1 and at once writes 64 B to it. The RREQ takes the uplink for
    // two slots, so the /N/ is at the switch one slot behind it, at 72.32. The iteration that
    // releases the RREQ, from 71.68 to 72.679, is in progress, and the write's takes until 73.678.
    // Alone it would be granted at 71.04 + 0.999, 1.639 before. Nothing else delays it: the data of
    // the read flows the other way.
    let messages =
        [message(Ps::ZERO, Kind::Read, 0, 1, 64), message(Ps::ZERO, Kind::Write, 0, 1, 64)];
    for order in ["pair", "strict"] {
        let config = config(&format!("order = \"{order}\""));
        assert_eq!(delays::<Edm>(&config, &messages), [Ps::ZERO, Ps(1_639)], "{order}");
    }
}

#[test]
fn a_strict_read_waits_until_the_write_before_it_is_sent() {
    // Node 0 writes 64 B to node 1 and at once reads 64 B elsewhere in it. Under strict order, the
    // RREQ leaves once the write is with the transmitter: at 155.879 rather than at 5.12, and
    // behind the write's 10 blocks. Otherwise it is behind the /N/ for a slot, and released one
    // iteration after the write is granted. The /N/ is at the switch at 71.04, the request at
    // 72.32; the iteration of the write ends at 72.039 and so delays it no further.
    let messages =
        [message(Ps::ZERO, Kind::Write, 0, 1, 64), message(Ps::ZERO, Kind::Read, 0, 1, 64)];
    let strict = config("order = \"strict\"");
    let behind = Ps(155_879 - 5_120) + SLOT * 10;
    assert_eq!(delays::<Edm>(&strict, &messages), [Ps::ZERO, behind]);
    assert_eq!(delays::<Edm>(&config("order = \"pair\""), &messages), [Ps::ZERO, SLOT]);
}
