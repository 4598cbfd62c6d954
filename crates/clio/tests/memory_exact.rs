//! The exact work that the memory counts, and what remains of a share that changes or is cancelled.

use std::task::Poll;

use ethermem_clio::memory::{
    ACCESS_BYTES_MAX, AccessError, AddressMap, Failed, HashKey, MemoryConfig, PageSize, SpaceId,
    Steps, Task, VirtualMemory,
};
use ethermem_units::Bytes;
use ethermem_wire::clio::Permissions;

const KEY: HashKey = HashKey([3, 4]);
const PAGE: u64 = 4096;
const RW: Permissions = Permissions::READ_WRITE;
const OWNER: SpaceId = SpaceId(1);
const OTHER: SpaceId = SpaceId(2);

fn config(pages: u64, ready: u32) -> MemoryConfig {
    let (memory, page) = (Bytes(pages * PAGE), PageSize::Kib4);
    MemoryConfig { memory, page, tlb_entries: 4, fault_buffer_pages: ready }
}

fn map(pages: u64) -> AddressMap {
    AddressMap::new(&config(pages, 8), KEY).expect("whole pages")
}

fn memory(pages: u64, ready: u32) -> VirtualMemory<Vec<u8>> {
    let bytes = vec![0; (pages * PAGE) as usize];
    VirtualMemory::new(&config(pages, ready), KEY, bytes).expect("whole pages")
}

/// Runs a task to its end. Returns its steps, and the work that the map counted meanwhile.
fn work_of(map: &mut AddressMap, mut task: Task) -> (u64, u64) {
    let (mut steps, before) = (Steps::new(u64::MAX), map.counters().slow_steps);
    let ended = task.step(map, &mut steps, &mut |_, _, _| {});
    assert!(matches!(ended, Poll::Ready(Ok(_))), "{ended:?}");
    (steps.taken(), map.counters().slow_steps - before)
}

/// Bounds of slices hold only if work is counted correctly: neither half of it nor twice.
#[test]
fn work_is_counted_as_it_is_done() {
    for pages in [1_000_u64, 4_000] {
        let mut map = map(4 * pages);
        let all = Task::allocate(&mut map, (0, OWNER), pages * PAGE, None, RW).expect("it is free");
        let (steps, work) = work_of(&mut map, all);
        // Each page is entered once; its place is reserved together with many others.
        for counted in [steps, work] {
            assert!((pages + 1..pages + pages / 4).contains(&counted), "allocate: {counted}");
        }
        let address = PAGE;
        let share = Task::share(&mut map, (OWNER, address), OTHER, None, RW).expect("it is there");
        let (steps, work) = work_of(&mut map, share);
        // For each page, the owner's entry is read and one is entered.
        for counted in [steps, work] {
            assert!((2 * pages + 1..5 * pages / 2).contains(&counted), "share: {counted}");
        }
        assert_eq!(map.used_pages(), pages);
        assert_eq!(map.table_entries(), 2 * pages);
        let release = Task::release(&mut map, OWNER, address).expect("it is there");
        let (steps, work) = work_of(&mut map, release);
        for counted in [steps, work] {
            assert!((2 * pages..3 * pages).contains(&counted), "release: {counted}");
        }
        assert_eq!((map.used_pages(), map.table_entries()), (0, 0));
    }
}

/// A range without a place in the table costs what was reserved in vain, in both directions.
#[test]
fn an_allocation_that_is_given_up_counts_its_work_too() {
    let pages = 8_000_u64;
    let mut map = map(2 * pages);
    let (free, before) = (map.free_bytes(), map.counters().slow_steps);
    let mut task = Task::allocate(&mut map, (0, OWNER), pages * PAGE, None, RW).expect("it fits");
    let mut steps = Steps::new(pages / 2);
    assert!(task.step(&mut map, &mut steps, &mut |_, _, _| {}).is_pending());
    assert!((pages / 2..pages / 2 + 300).contains(&steps.taken()), "{steps:?}");
    let entered = map.table_entries();
    assert!(entered > pages / 4 && entered < pages / 2, "{entered}");
    task.cancel();
    let mut steps = Steps::new(u64::MAX);
    let ended = task.step(&mut map, &mut steps, &mut |_, _, _| {});
    assert_eq!(ended, Poll::Ready(Err(Failed::Cancelled)));
    assert!((entered..entered + pages / 4).contains(&steps.taken()), "{steps:?} for {entered}");
    let work = map.counters().slow_steps - before;
    assert!((entered + pages / 2..2 * pages).contains(&work), "{work}");
    assert_eq!((map.free_bytes(), map.table_entries()), (free, 0));
    map.check(true).expect("nothing is left behind");
}

/// Zeroing is work: a kilobyte counts as much as an access to the table.
#[test]
fn zeroing_is_counted_in_kilobytes() {
    let pages = 64;
    let mut memory = memory(pages, 16);
    let map = memory.map_mut();
    map.allocate(OWNER, pages * PAGE, None, RW).expect("it is free");
    let address = PAGE;
    for page in 0..pages {
        memory.refill(0);
        memory.write(OWNER, address + page * PAGE, &[7; 100]).expect("it is there");
    }
    assert_eq!(memory.map().used_pages(), pages);
    memory.map_mut().release(OWNER, address).expect("it is there");
    assert_eq!(memory.map().used_pages(), 0);
    let before = memory.map().counters().slow_steps;
    assert!(memory.map().wants_refill());
    memory.refill(10 * PAGE);
    assert_eq!(memory.map().counters().slow_steps - before, 10 * PAGE / 1024);
    assert!(memory.map().wants_refill(), "16 are to be ready, and 10 are");
    memory.refill(100 * PAGE);
    assert_eq!(memory.map().counters().slow_steps - before, 16 * PAGE / 1024);
    assert!(!memory.map().wants_refill(), "all that are to be ready are");
    // A share gives memory to untouched pages: their zeroing counts.
    let map = memory.map_mut();
    map.allocate(OWNER, 48 * PAGE, None, RW).expect("it is free");
    let (address, before) = (memory_address(&mut memory), memory.map().counters().slow_steps);
    let mut share = Task::share(memory.map_mut(), (OWNER, address), OTHER, None, RW)
        .expect("half of memory may be shared");
    let mut steps = Steps::new(u64::MAX);
    assert!(matches!(memory.step(&mut share, &mut steps), Poll::Ready(Ok(_))));
    let work = memory.map().counters().slow_steps - before;
    // 48 pages are entered, of which some were ready; each is 4 KiB, and two accesses.
    let zeroed = (48 - 16) * PAGE / 1024;
    assert!((zeroed + 96..zeroed + 96 + 80).contains(&work), "{work}");
    assert!((zeroed + 96..zeroed + 96 + 80).contains(&steps.taken()), "{steps:?}");
}

/// The owner's first page.
fn memory_address(memory: &mut VirtualMemory<Vec<u8>>) -> u64 {
    let mut octet = [0];
    (1..1 << 12)
        .map(|page| page * PAGE)
        .find(|&at| memory.read(OWNER, at, &mut octet) != Err(AccessError::Unmapped))
        .expect("it has one")
}

/// Each page of an existing share gets the new permissions.
#[test]
fn a_share_that_is_made_again_has_the_new_permissions_on_every_page() {
    let mut memory = memory(32, 32);
    let at = PAGE;
    memory.map_mut().allocate(OWNER, 4 * PAGE, Some(at), RW).expect("it is free");
    memory.refill(u64::MAX);
    let share = |memory: &mut VirtualMemory<Vec<u8>>, permissions| {
        let task = Task::share(memory.map_mut(), (OWNER, at), OTHER, None, permissions);
        let mut task = task.expect("it is there");
        // The task runs one page at a time.
        for _ in 0..100 {
            if let Poll::Ready(ended) = memory.step(&mut task, &mut Steps::new(1)) {
                return assert!(ended.is_ok(), "{ended:?}");
            }
        }
        panic!("it never ends");
    };
    for permissions in [RW, Permissions::READ, RW, Permissions::READ] {
        share(&mut memory, permissions);
        for page in 0..4 {
            let written = memory.write(OTHER, at + page * PAGE, &[9]);
            let right = if permissions == RW { Ok(()) } else { Err(AccessError::Permission) };
            assert_eq!(written, right, "page {page} with {permissions:?}");
            assert_eq!(memory.read(OTHER, at + page * PAGE, &mut [0]), Ok(()));
        }
    }
    share(&mut memory, Permissions::NONE);
    assert_eq!(memory.read(OTHER, at, &mut [0]), Err(AccessError::Unmapped));
    assert_eq!(memory.read(OWNER, at, &mut [0]), Ok(()));
}

/// A share is cancelled at every possible step: nothing of it is left, and the earlier share
/// remains.
#[test]
fn a_share_that_is_given_up_leaves_all_as_it_was() {
    let pages = 200;
    for done in 0..450 {
        let mut map = map(1024);
        let at = PAGE;
        map.allocate(OWNER, pages * PAGE, Some(at), RW).expect("it is free");
        let entries = map.table_entries();
        let mut task = Task::share(&mut map, (OWNER, at), OTHER, None, RW).expect("it is there");
        if task.step(&mut map, &mut Steps::new(done), &mut |_, _, _| {}).is_ready() {
            assert!(done > 2 * pages, "{done}");
            assert_eq!(map.table_entries(), 2 * entries);
            break;
        }
        assert!(Task::release(&mut map, OWNER, at).is_err(), "it is held");
        task.cancel();
        let mut zero = |_, _, _| {};
        let ended = task.step(&mut map, &mut Steps::new(u64::MAX), &mut zero);
        assert_eq!(ended, Poll::Ready(Err(Failed::Cancelled)), "after {done} steps");
        assert_eq!(map.table_entries(), entries, "after {done} steps");
        map.check(true).expect("nothing is left behind");
        let release = Task::release(&mut map, OWNER, at).expect("nothing holds it");
        work_of(&mut map, release);
        assert_eq!((map.table_entries(), map.used_pages()), (0, 0));
    }
}

/// The part of the table that shares may use depends on its size: all of one bucket, 7 of 8 entries
/// of a small table, 3 of 4 of a large one. Pages without an owner can still be allocated.
#[test]
fn so_much_can_be_shared_and_not_one_page_more() {
    for (pages, slots, most) in [(8, 16, 16), (16, 32, 28), (4096, 8192, 6144)] {
        let mut map = map(pages);
        map.allocate(OWNER, PAGE, Some(PAGE), RW).expect("it is free");
        let mut tried = 0;
        for attempt in 0..2 * slots {
            let at = Some((attempt + 3) * 64 * PAGE);
            let with = SpaceId(10 + attempt as u16);
            if map.share((OWNER, PAGE), with, at, RW, |_, _, _| {}).is_ok() {
                assert!(map.table_entries() + pages - 1 <= most, "of {pages} pages");
            }
            tried += 1;
        }
        // A share that found a full bucket leaves room for the next one.
        assert_eq!(map.table_entries() + pages - 1, most, "of {pages} pages, tried {tried}");
        map.check(true).expect("nothing is left behind");
    }
}

#[test]
fn an_access_has_as_many_bytes_as_one_may_have_and_none_is_no_access() {
    let pages = 2 + ACCESS_BYTES_MAX as u64 / PAGE;
    let mut memory = memory(pages + 8, 8);
    let at = PAGE;
    memory.map_mut().allocate(OWNER, pages * PAGE, Some(at), RW).expect("it is free");
    for page in 0..pages {
        memory.refill(u64::MAX);
        memory.write(OWNER, at + page * PAGE, &[1]).expect("it is there");
    }
    assert_eq!(memory.bytes(), (pages + 8) * PAGE);
    let longest = vec![5; ACCESS_BYTES_MAX];
    assert_eq!(memory.write(OWNER, at + 1, &longest), Ok(()));
    let mut read = vec![0; ACCESS_BYTES_MAX];
    assert_eq!(memory.read(OWNER, at + 1, &mut read), Ok(()));
    assert!(read == longest);
    assert_eq!(memory.write(OWNER, at, &[6; ACCESS_BYTES_MAX + 1]), Err(AccessError::Length));
    assert_eq!(memory.read(OWNER, at, &mut []), Err(AccessError::Length));
    assert_eq!(memory.read(OWNER, u64::MAX, &mut [0, 0]), Err(AccessError::Unmapped));
}
