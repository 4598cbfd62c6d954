//! Tests: placement of regions and permissions, against a model.

use super::*;

const OWNER: ProcessId = ProcessId(1);
const OTHER: ProcessId = ProcessId(2);
const RW: Permissions = Permissions::READ_WRITE;

fn alloc(node: &mut Node, bytes: u64) -> u64 {
    node.alloc(OWNER, bytes, RW).expect("there is room").offset()
}

fn free(node: &mut Node, at: u64, bytes: u64) {
    let segment = Segment { address: Address::new(3, at), bytes };
    node.free(OWNER, segment).expect("it is there");
}

#[test]
fn memory_is_given_to_its_last_byte_and_comes_back() {
    let mut node = Node::new(3, 10_000);
    let first = alloc(&mut node, 6_000);
    let refused = node.alloc(OWNER, 4_001, RW).unwrap_err();
    assert!(matches!(refused, Error::Full { bytes: 4_001, free: 4_000 }), "{refused}");
    let second = alloc(&mut node, 4_000);
    assert!(matches!(node.alloc(OWNER, 1, RW), Err(Error::Full { bytes: 1, free: 0 })));
    free(&mut node, first, 6_000);
    alloc(&mut node, 6_000);
    free(&mut node, second, 4_000);
    assert_eq!(node.free_bytes, 4_000);
}

#[test]
fn a_page_that_is_nobodys_lies_between_two_regions() {
    let mut node = Node::new(3, 1 << 30);
    let mut expected = PAGE_BYTES;
    for bytes in [1, 4095, 4096, 4097, 8192, 100_000] {
        let at = alloc(&mut node, bytes);
        assert_eq!(at, expected, "{bytes} B");
        expected = at + bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        assert!(node.read(OWNER, Address::new(3, at), bytes).is_ok());
        assert!(node.read(OWNER, Address::new(3, at), bytes + 1).is_err());
        assert!(node.read(OWNER, Address::new(3, at - 1), 1).is_err());
        assert!(node.read(OWNER, Address::new(2, at), 1).is_err(), "of another node");
    }
}

#[test]
fn the_search_goes_around_the_end_and_takes_the_first_gap_that_is_long_enough() {
    let mut node = Node::new(3, 1 << 30);
    let places: Vec<u64> = (0..4).map(|_| alloc(&mut node, 3 * PAGE_BYTES)).collect();
    free(&mut node, places[1], 3 * PAGE_BYTES);
    let behind = places[3] + 4 * PAGE_BYTES;
    assert_eq!(alloc(&mut node, PAGE_BYTES), behind, "not a gap that was just freed");
    node.next = OFFSET_MAX - 2 * PAGE_BYTES;
    assert_eq!(alloc(&mut node, PAGE_BYTES), OFFSET_MAX - 2 * PAGE_BYTES, "it ends there");
    // One page and the one between no longer fit before the end.
    assert_eq!(alloc(&mut node, 4 * PAGE_BYTES), behind + 2 * PAGE_BYTES, "too long for the gap");
    node.next = OFFSET_MAX;
    assert_eq!(alloc(&mut node, 3 * PAGE_BYTES), places[1], "as long as the gap");
    node.next = OFFSET_MAX;
    assert_eq!(alloc(&mut node, PAGE_BYTES), behind + 7 * PAGE_BYTES);
}

#[test]
fn of_a_region_each_has_what_was_given_to_it() {
    let mut node = Node::new(3, 1 << 30);
    let (at, far) = (alloc(&mut node, 4096), alloc(&mut node, 4096));
    let segment = Segment { address: Address::new(3, at), bytes: 4096 };
    let (first, word) = (segment.address, RmwOperation::FetchAndAdd(1));
    let unmapped = |error: Error| assert!(matches!(error, Error::Unmapped { .. }), "{error}");
    unmapped(node.read(OTHER, first, 8).unwrap_err());
    unmapped(node.share(OTHER, segment, OTHER, Permissions::READ).unwrap_err());
    node.share(OWNER, segment, OTHER, Permissions::READ).expect("it is the owner's");
    assert!(node.read(OTHER, first, 4096).is_ok());
    for error in
        [node.write(OTHER, first, &[1]).unwrap_err(), node.modify(OTHER, first, word).unwrap_err()]
    {
        assert!(matches!(error, Error::Permission { .. }), "{error}");
    }
    unmapped(node.read(OTHER, Address::new(3, far), 8).unwrap_err());
    unmapped(node.free(OTHER, segment).unwrap_err());
    // A second grant replaces the first.
    node.share(OWNER, segment, OTHER, RW).expect("it is the owner's");
    node.write(OTHER, first, &[1]).expect("given");
    assert_eq!(node.modify(OTHER, first, word).expect("given"), 1);
    assert_eq!(node.read(OWNER, first, 1).expect("its own"), [2]);
    let odd = node.modify(OTHER, first.add(4), word).unwrap_err();
    assert!(matches!(odd, Error::Misaligned { .. }), "{odd}");
    node.share(OWNER, segment, OTHER, Permissions::NONE).expect("it is the owner's");
    unmapped(node.read(OTHER, first, 8).unwrap_err());
    node.share(OWNER, segment, OWNER, Permissions::READ).expect("it is the owner's");
    node.write(OWNER, first, &[3]).expect("an owner keeps what it has");
    let narrow = node.alloc(OWNER, 8, Permissions::READ).expect("there is room");
    let segment = Segment { address: narrow, bytes: 8 };
    let error = node.share(OWNER, segment, OTHER, RW).unwrap_err();
    assert!(matches!(error, Error::Permission { .. }), "{error}");
    assert!(node.write(OWNER, narrow, &[1]).is_err());
}

/// The remembered region of a page may be stale; the page's region is then searched again.
#[test]
fn what_is_freed_is_not_found_where_it_was() {
    let mut node = Node::new(3, 1 << 30);
    for round in 0..3 * HINTS as u64 {
        let at = alloc(&mut node, 8);
        let address = Address::new(3, at);
        node.write(OWNER, address, &round.to_le_bytes()).expect("its own");
        assert_eq!(node.read(OWNER, address, 8).expect("its own"), round.to_le_bytes());
        free(&mut node, at, 8);
        assert!(node.read(OWNER, address, 8).is_err());
    }
    // The two regions have pages that share an entry.
    let (near, far) = (alloc(&mut node, 8), {
        node.next += (HINTS as u64 - 2) * PAGE_BYTES;
        alloc(&mut node, 8)
    });
    assert_eq!(far - near, HINTS as u64 * PAGE_BYTES);
    for _ in 0..2 {
        for at in [near, far] {
            node.write(OWNER, Address::new(3, at), &at.to_le_bytes()).expect("its own");
            let read = node.read(OWNER, Address::new(3, at), 8).expect("its own");
            assert_eq!(read, at.to_le_bytes());
        }
    }
}
