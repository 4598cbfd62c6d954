//! The rules of EDM's artifact, computed by hand in slots.

use ethermem_sim::fabrics::edm_artifact::EdmArtifact;
use ethermem_sim::{Kind, Message};
use ethermem_units::Ps;

use crate::support::{fabric_config, message, run_messages};

const SLOT: Ps = Ps(640);

/// The ends of messages on six nodes whose links are 16 slots long.
fn ends(keys: &str, messages: &[Message]) -> Vec<u64> {
    let config = fabric_config(&format!("nodes = 6\npropagation_ns = 10.24\n{keys}"));
    let (finished, _) = run_messages::<EdmArtifact>(&config, messages);
    finished.iter().map(|end| end.0 / SLOT.0).collect()
}

fn at(slot: u64, kind: Kind, compute: u16, memory: u16, bytes: u64) -> Message {
    message(SLOT * slot, kind, compute, memory, bytes)
}

#[test]
fn a_message_alone_has_one_chunk_under_way() {
    let write = |bytes| ends("", &[at(0, Kind::Write, 0, 1, bytes)])[0];
    // Notification, grant and chunk each take a block and 16 slots of the way. The chunk's last
    // block leaves the switch 32 slots after its first is there, and the link is 16 slots long.
    assert_eq!(write(256), 17 + 17 + 17 + 32 + 16);
    // The next grant goes when the chunk has left: 66 slots for 32 blocks.
    assert_eq!(write(2_560), write(256) + 9 * 66);
    // A read's request goes down before its grant.
    assert_eq!(ends("", &[at(0, Kind::Read, 0, 1, 64)]), [17 + 18 + 17 + 8 + 16]);
}

#[test]
fn a_receiver_is_granted_to_while_a_chunk_is_under_way_to_it() {
    let writes = [1, 2, 3].map(|from| at(0, Kind::Write, from, 0, 256));
    // The second grant goes a slot after the first, and their chunks alternate. The third goes when
    // 32 blocks have left, at 83.
    assert_eq!(ends("", &writes), [130, 131, 83 + 82]);
    // With twice as many bytes in flight, all three are granted.
    assert_eq!(ends("[fabric.edm_artifact]\nunder_way_bytes = 512", &writes)[2], 51 + 96 + 16);
    // Each is granted as soon as the sender of the previous chunk has sent it: every 49 slots.
    let sent = "[fabric.edm_artifact]\nrelease = \"sent\"";
    assert_eq!(ends(sent, &writes), [99, 99 + 49, 99 + 98]);
}

#[test]
fn a_sender_waits_for_the_receiver_that_it_was_granted_to_last() {
    // Two chunks to 0 make it full at 18, with 2 as the last sender: the chunk of 2 for 3 waits
    // until 83.
    let writes = [
        at(0, Kind::Write, 1, 0, 256),
        at(0, Kind::Write, 2, 0, 256),
        at(1, Kind::Write, 2, 3, 256),
    ];
    assert_eq!(ends("", &writes)[2], 83 + 82);
    // Receivers that do not know of each other do not wait: 3 grants at 18, and the sender has
    // nothing else to send before 83.
    let sent = "[fabric.edm_artifact]\nrelease = \"sent\"";
    assert_eq!(ends(sent, &writes)[2], 18 + 82);
}

#[test]
fn the_shortest_goes_first_and_a_request_behind_the_chunks_of_its_host() {
    let writes = [
        at(0, Kind::Write, 1, 0, 256),
        at(0, Kind::Write, 2, 0, 256),
        at(1, Kind::Write, 3, 0, 512),
        at(2, Kind::Write, 4, 0, 64),
    ];
    let found = ends("", &writes);
    // The 64 B go at 83; the 512 B when eight blocks more have left, and again when their first
    // chunk has.
    assert_eq!(found[3], 83 + 17 + 17 + 8 + 16);
    assert_eq!(found[2], 91 + 66 + 82);
    // A request at 40 waits for the chunk that its host sends from 34 to 66.
    let mixed = [at(0, Kind::Write, 1, 0, 256), at(40, Kind::Read, 1, 2, 64)];
    assert_eq!(ends("", &mixed)[1], 66 + 76);
}

#[test]
fn bytes_behind_the_last_whole_block_stay_under_way() {
    let writes = [
        at(0, Kind::Write, 1, 0, 180),
        at(500, Kind::Write, 1, 0, 256),
        at(500, Kind::Write, 2, 0, 256),
    ];
    // There are 23 blocks; the two later chunks are granted a slot apart.
    assert_eq!(ends("", &writes), [67 + 23, 500 + 130, 500 + 131]);
    // There are 22 blocks, and 4 B that never leave: the second waits until a block of the first
    // has left, at 52.
    let left_over = "[fabric.edm_artifact]\nleft_over = true";
    assert_eq!(ends(left_over, &writes)[0], 67 + 22);
    assert_eq!(ends(left_over, &writes)[2], 500 + 51 + 64 + 16 + 3);
}
