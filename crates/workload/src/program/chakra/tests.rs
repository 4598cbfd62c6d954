//! Traces written byte by byte, read as programs; what no program can be; bytes of any kind.

use proptest::prelude::*;

use ethermem_units::{Bytes, Ps};

use super::*;
use crate::program::{Work, ring_allreduce};

/// Encodes protobuf by hand, so that reader and tests share no code.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push((value % 128) as u8 + 128);
        value /= 128;
    }
    bytes.push(value as u8);
    bytes
}

fn field(number: u64, value: u64) -> Vec<u8> {
    [varint(number * 8), varint(value)].concat()
}

fn block(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number * 8 + 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// An attribute of a name, with an int64.
fn attribute(name: &str, value: u64) -> Vec<u8> {
    block(10, &[block(1, name.as_bytes()), field(9, value)].concat())
}

fn record(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A node: id, type, the nodes that it waits for, and further fields.
fn node(id: u64, kind: u64, after: &[u64], more: &[Vec<u8>]) -> Vec<u8> {
    let after: Vec<u8> = after.iter().flat_map(|&id| varint(id)).collect();
    let name = block(2, format!("node {id}").as_bytes());
    record(&[field(1, id), name, field(3, kind), block(5, &after), more.concat()].concat())
}

fn compute(id: u64, after: &[u64], micros: u64) -> Vec<u8> {
    node(id, 4, after, &[field(7, micros)])
}

fn message(id: u64, kind: u64, after: &[u64], peer: u64, bytes: u64) -> Vec<u8> {
    let name = if kind == 5 { "comm_dst" } else { "comm_src" };
    let more = [attribute(name, peer), attribute("comm_size", bytes), attribute("comm_tag", 7)];
    node(id, kind, after, &more)
}

fn collective(id: u64, after: &[u64], kind: u64, bytes: u64) -> Vec<u8> {
    node(id, 7, after, &[attribute("comm_type", kind), attribute("comm_size", bytes)])
}

fn file(nodes: &[Vec<u8>]) -> Vec<u8> {
    [record(&block(1, b"0.0.4")), nodes.concat()].concat()
}

fn read(contents: &[Vec<u8>]) -> Result<Program, String> {
    let prefix = PathBuf::from("t");
    let config = ExecutionTraceConfig { prefix };
    let files: Vec<_> = (0..contents.len()).map(|node| config.file(node as u16)).collect();
    program(&files, contents).map_err(|error| error.to_string())
}

/// A picosecond a byte.
fn cost(work: &Work) -> Ps {
    match work {
        Work::Message { bytes, .. } => Ps(bytes.0),
        Work::Compute { duration, .. } => *duration,
    }
}

#[test]
fn a_receive_waits_for_its_message_and_a_chain_goes_through_both_nodes() {
    // Node 0 computes for 3 us and sends; node 1 computes for 1 us after the receive, and answers.
    // The nodes of the second file are in an order in which none may be taken at once.
    let one = file(&[compute(0, &[], 3), message(1, 5, &[0], 1, 500), message(2, 6, &[1], 1, 40)]);
    let other =
        file(&[message(9, 5, &[8], 0, 40), compute(8, &[7], 1), message(7, 6, &[], 0, 500)]);
    let program = read(&[one, other]).unwrap();
    assert_eq!(program.critical_path(cost), Ps(3_000_000 + 500 + 1_000_000 + 40));
    assert_eq!((program.bytes(), program.nodes()), (Bytes(540), 2));
}

#[test]
fn messages_of_a_pair_and_a_tag_meet_receives_in_order() {
    let one = file(&[message(0, 5, &[], 1, 10), message(1, 5, &[0], 1, 20)]);
    let other = file(&[message(0, 6, &[], 0, 10), message(1, 6, &[], 0, 20)]);
    assert!(read(&[one.clone(), other]).is_ok());
    let other = file(&[message(0, 6, &[], 0, 20), message(1, 6, &[], 0, 10)]);
    let error = read(&[one, other]).unwrap_err();
    assert_eq!(error, "t.1.et: byte 8: node 0: comm_size = 20: node 0 sends 10 B");
}

#[test]
fn collectives_are_rings_between_what_is_before_and_behind() {
    let bytes = 4_000;
    let of_node = |micros: u64| {
        file(&[compute(0, &[], micros), collective(1, &[0], 0, bytes), compute(2, &[1], 2)])
    };
    let traces: Vec<_> = (1..=4).map(of_node).collect();
    let program = read(&traces).unwrap();
    let ring = ring_allreduce(4, Bytes(bytes)).unwrap();
    assert_eq!(program.bytes(), ring.bytes());
    // Node 3 begins last, after 4 us, and computes for 2 us behind it. Its part passes all of them.
    let whole = ring.critical_path(cost);
    assert_eq!(program.critical_path(cost), Ps(4_000_000) + whole + Ps(2_000_000));
    // Gathering sends what all have; reducing and scattering sends parts; all-to-all, too.
    for (kind, bytes_each) in [(2, 4_000), (7, 1_000), (6, 1_000)] {
        let traces = vec![file(&[collective(5, &[], kind, bytes)]); 4];
        assert_eq!(read(&traces).unwrap().bytes(), Bytes(4 * 3 * bytes_each), "{kind}");
    }
    assert_eq!(read(&vec![file(&[collective(5, &[], 0, 1)]); 4]).unwrap().bytes(), Bytes(24));
}

#[test]
fn fields_that_change_nothing_are_skipped() {
    let extra = [
        block(10, &[block(1, b"is_cpu_op"), field(27, 0)].concat()),
        block(10, &[block(1, b"involved_dim"), block(28, &block(1, &[1, 1]))].concat()),
        block(8, &block(1, b"tensor")),
        field(6, 12),
    ];
    let one = node(0, 7, &[], &[extra.as_slice(), &[attribute("comm_type", 0)]].concat());
    // The size is behind all of them.
    let length = one.len();
    assert!(length > 60);
    let size = attribute("comm_size", 64);
    let body = [&one[1..], &size].concat();
    let trace = file(&[record(&body)]);
    assert_eq!(read(&[trace.clone(), trace]).unwrap().bytes(), Bytes(128));
}

#[test]
fn what_is_no_program_is_refused_with_file_and_offset() {
    let quiet = file(&[]);
    let first = |nodes: &[Vec<u8>]| read(&[file(nodes), quiet.clone()]).unwrap_err();
    let cases = [
        (first(&[message(3, 5, &[], 1, 9)]), "node 3: node 1 has no receive of tag 7 for it"),
        (
            first(&[message(3, 6, &[], 1, 9)]),
            "node 3: no message of tag 7 is left that node 1 sends",
        ),
        (
            first(&[message(3, 5, &[], 0, 9)]),
            "node 3: comm_dst = 0: must be another node of 0 to 1",
        ),
        (
            first(&[message(3, 5, &[], 2, 9)]),
            "node 3: comm_dst = 2: must be another node of 0 to 1",
        ),
        (first(&[message(3, 5, &[], 1, 0)]), "node 3: comm_size = 0: must be 1 to 1073741824"),
        (
            first(&[node(3, 5, &[], &[])]),
            "node 3: comm_dst is not set: must be an integer of at least 0",
        ),
        (first(&[compute(3, &[4], 1)]), "node 3: it depends on node 4: must be in the same file"),
        (
            first(&[compute(3, &[3], 1)]),
            "node 3: it waits for itself: must not depend on a node that waits for it",
        ),
        (
            first(&[compute(3, &[], u64::MAX)]),
            "node 3: duration_micros = 18446744073709551615: the sum of all must be at most \
             4398046511104",
        ),
        (first(&[collective(3, &[], 0, 9)]), "node 3: another node has only 0 collectives"),
    ];
    for (error, expected) in cases {
        assert_eq!(error, format!("t.0.et: byte 8: {expected}"));
    }
    let both = |one: Vec<u8>, other: Vec<u8>| read(&[file(&[one]), file(&[other])]).unwrap_err();
    let differ = both(collective(0, &[], 0, 9), collective(1, &[], 2, 9));
    assert_eq!(
        differ,
        "t.1.et: byte 8: node 1: collective 2 of 9 B: node 0 has 0 of 9 B in its place"
    );
    let barrier = both(collective(0, &[], 9, 9), collective(1, &[], 9, 9));
    assert!(barrier.contains("comm_type = 9: must be 0 (all-reduce), 2"), "{barrier}");
    let group = block(10, &[block(1, b"pg_name"), block(29, b"4")].concat());
    let part = [attribute("comm_type", 0), attribute("comm_size", 8), group];
    let error = first(&[node(3, 7, &[], &part)]);
    assert!(error.ends_with("node 3: pg_name is set: must be a collective of all nodes"));
    let twice = first(&[compute(3, &[], 1), compute(3, &[], 1)]);
    assert!(twice.ends_with("node 3: its id is that of an earlier node"), "{twice}");
    // A loop through both nodes: each receives before it sends.
    let waits = |peer| file(&[message(0, 6, &[], peer, 5), message(1, 5, &[0], peer, 5)]);
    let error = read(&[waits(1), waits(0)]).unwrap_err();
    assert!(error.contains("node 0: it waits for itself"), "{error}");
}

#[test]
fn bytes_that_are_no_trace_are_refused_with_their_offset() {
    let quiet = file(&[]);
    let of = |bytes: &[u8]| read(&[bytes.to_vec(), quiet.clone()]).unwrap_err();
    assert_eq!(of(b""), "t.0.et: empty: must be a Chakra execution trace");
    let endless = of(&[0xff; 11]);
    assert_eq!(endless, "t.0.et: byte 0: no length of a record: must be a varint");
    let cut = [file(&[]), vec![9, 1]].concat();
    assert_eq!(of(&cut), "t.0.et: byte 8: a record of 9 B: must fit the 1 B that are left");
    let broken = of(&[file(&[]), record(&[0x08])].concat());
    assert!(broken.starts_with("t.0.et: byte 8: no node of a trace: "), "{broken}");
    let huge = of(&[file(&[]), varint(u64::MAX)].concat());
    assert!(huge.contains("must fit the 0 B that are left"), "{huge}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = ExecutionTraceConfig { prefix: folder.path().join("ring") };
    std::fs::write(config.file(0), file(&[])).unwrap();
    assert_eq!(config.program(1).unwrap().steps().len(), 0);
    let error = config.program(2).unwrap_err().to_string();
    assert!(error.contains("ring.1.et: cannot be read: No such file"), "{error}");
}

proptest! {
    #![proptest_config(crate::property::cases(256))]

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_execution_trace(&bytes);
    }

    /// Whole traces with a few bytes changed get further into the reader.
    #[test]
    fn no_damaged_trace_panics(
        sizes in prop::collection::vec((5..8_u64, 0..4_u64, 0..300_u64), 1..8),
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
    ) {
        let nodes: Vec<Vec<u8>> = (0..)
            .zip(&sizes)
            .map(|(id, &(kind, peer, bytes))| match kind {
                7 => collective(id, &[id.saturating_sub(1)], peer * 2, bytes),
                kind => message(id, kind, &[], peer, bytes),
            })
            .collect();
        let one = file(&nodes);
        let mut both = [one.clone(), one].concat();
        for (at, byte) in changes {
            let length = both.len();
            both[usize::from(at) % length] = byte;
        }
        check_execution_trace(&both);
    }
}
