//! The rules of the cache one by one.

use ethermem_pool::{Error, Permissions, Region, Segment, Thread};

use super::{Shared, no_answer, pool, restarted};

const RW: Permissions = Permissions::READ_WRITE;

fn region(seed: u64, line_bytes: u32) -> (Region, Shared, ethermem_pool::Pool) {
    let (pool, far) = pool(seed, 1 << 16, line_bytes, 0);
    let region = pool.thread().unwrap().alloc(8192, RW).wait().unwrap();
    (region, far, pool)
}

fn log(far: &Shared) -> Vec<String> {
    std::mem::take(&mut far.far().log)
}

fn at_node(far: &Shared, region: &Region, offset: u64, bytes: u64) -> Vec<u8> {
    far.bytes(region.thread().process(), Segment { address: region.at(offset), bytes })
}

#[test]
fn a_hit_asks_the_node_nothing_and_a_release_writes_once() {
    let (region, far, _pool) = region(1, 64);
    region.write_from(100, b"kept here").unwrap();
    let mut read = [0; 9];
    region.read_into(100, &mut read).unwrap();
    assert_eq!((&read, log(&far)), (b"kept here", vec![]));
    assert_eq!(at_node(&far, &region, 100, 9), [0; 9]);
    region.thread().release().wait().unwrap();
    assert_eq!(log(&far), ["write 9"]);
    assert_eq!(at_node(&far, &region, 100, 9), b"kept here");
    region.thread().release().wait().unwrap();
    assert!(log(&far).is_empty(), "nothing is dirty");
    // A byte that is missing fetches its line.
    assert_eq!(region.read(99, 2).wait().unwrap(), [0, b'k']);
    assert_eq!(log(&far), ["read 64"]);
    assert_eq!(region.read(64, 64).wait().unwrap()[36..45], *b"kept here");
    assert!(log(&far).is_empty());
}

#[test]
fn a_miss_fetches_a_block_and_a_flush_writes_adjacent_lines_together() {
    let (region, far, _pool) = region(2, 1024);
    region.write(2000, &[1]).wait().unwrap();
    assert_eq!(region.read(1030, 1).wait().unwrap(), [0]);
    // The last line of the block is here in part, and no read wants the rest of it.
    assert_eq!(log(&far), ["read 960"]);
    region.read(1024, 960).wait().unwrap();
    assert!(log(&far).is_empty());
    region.write(4096, &[2; 4096]).wait().unwrap();
    region.thread().fence().wait().unwrap();
    let mut writes = log(&far);
    writes.sort_unstable();
    assert_eq!(writes, ["write 1", "write 4096"]);
}

#[test]
fn an_atomic_finds_what_was_written_and_its_result_is_read() {
    let (region, far, _pool) = region(3, 64);
    region.write(8, &7_u64.to_le_bytes()).wait().unwrap();
    region.write(24, b"beside").wait().unwrap();
    assert_eq!(region.thread().fetch_add(region.at(8), 5).wait(), Ok(7));
    assert_eq!(log(&far), ["write 8", "write 6"]);
    assert_eq!(region.read(8, 8).wait().unwrap(), 12_u64.to_le_bytes());
    assert_eq!(region.read(24, 6).wait().unwrap(), b"beside");
    assert_eq!(log(&far), ["read 64"]);
}

#[test]
fn the_line_of_a_lock_is_not_cached_and_the_next_one_is() {
    let (region, far, _pool) = region(4, 64);
    let thread = region.thread();
    thread.lock(region.at(64)).wait().unwrap();
    for _ in 0..2 {
        region.write(72, &[9; 8]).wait().unwrap();
        region.read(72, 8).wait().unwrap();
        region.write(128, &[8; 8]).wait().unwrap();
    }
    assert_eq!(log(&far), ["write 8", "read 8", "write 8", "read 8"]);
}

#[test]
fn a_region_that_is_shared_is_written_back_and_cached_no_more() {
    let (region, far, pool) = region(5, 64);
    let other = pool.thread().unwrap();
    region.write(0, b"mine").wait().unwrap();
    region.share(other.process(), RW).wait().unwrap();
    assert_eq!(region.by(&other).read(0, 4).wait().unwrap(), b"mine");
    region.by(&other).write(0, b"ours").wait().unwrap();
    assert_eq!(region.read(0, 4).wait().unwrap(), b"ours");
    region.write(0, b"both").wait().unwrap();
    assert_eq!(region.by(&other).read(0, 4).wait().unwrap(), b"both");
    assert_eq!(log(&far), ["write 4", "read 4", "write 4", "read 4", "write 4", "read 4"]);
}

#[test]
fn what_is_freed_is_not_written_and_not_found_again() {
    let (region, far, _pool) = region(6, 64);
    let thread: Thread = region.thread().clone();
    region.write(0, &[7; 200]).wait().unwrap();
    let address = region.address();
    region.free().wait().unwrap();
    assert!(matches!(thread.read(address, 1).wait(), Err(Error::Unmapped { .. })));
    thread.release().wait().unwrap();
    let again = thread.alloc(8192, RW).wait().unwrap();
    assert_eq!(again.read(0, 200).wait().unwrap(), [0; 200]);
    assert!(!log(&far).iter().any(|line| line.starts_with("write")));
}

#[test]
fn permissions_and_ends_of_regions_are_as_without_a_cache() {
    let (region, _far, _pool) = region(7, 64);
    let thread = region.thread();
    let read_only = thread.alloc(4096, Permissions::READ).wait().unwrap();
    let refused = read_only.write(0, &[1]).wait().unwrap_err();
    assert!(matches!(refused, Error::Permission { .. }), "{refused}");
    assert_eq!(read_only.read(0, 1).wait().unwrap(), [0]);
    let beyond = thread.write(region.at(8190), &[1; 4]).wait().unwrap_err();
    assert!(matches!(beyond, Error::Unmapped { .. }), "{beyond}");
}

#[test]
fn a_node_that_is_silent_costs_an_error_and_no_write() {
    let (region, far, _pool) = region(8, 64);
    let thread = region.thread();
    region.write(0, b"first").wait().unwrap();
    far.far().is_silent = true;
    assert_eq!(thread.release().wait(), Err(no_answer()));
    // Now the node may be gone: nothing is a hit.
    assert_eq!(region.read(0, 5).wait(), Err(no_answer()));
    assert_eq!(region.write(0, b"worst").wait(), Err(no_answer()));
    assert_eq!(thread.release().wait(), Err(no_answer()));
    far.far().is_silent = false;
    assert_eq!(region.read(0, 5).wait().unwrap(), b"first");
    thread.release().wait().unwrap();
    assert_eq!(at_node(&far, &region, 0, 5), b"first");
}

#[test]
fn a_node_that_restarted_ends_every_hit_and_says_that_writes_are_lost() {
    let (region, far, _pool) = region(9, 64);
    let thread = region.thread();
    region.write(0, b"first").wait().unwrap();
    assert_eq!(region.read(0, 5).wait().unwrap(), b"first");
    {
        let mut far = far.far();
        (far.is_restarted, far.doubts) = (true, far.doubts + 1);
    }
    assert_eq!(region.read(0, 5).wait(), Err(restarted()));
    assert_eq!(region.read_into(0, &mut [0; 5]), Err(restarted()));
    assert_eq!(region.write(0, b"later").wait(), Err(restarted()));
    assert_eq!(thread.release().wait(), Err(restarted()));
    assert_eq!(thread.fence().wait(), Err(restarted()));
}

#[test]
fn closing_writes_back_and_reports_what_it_could_not() {
    let (region, far, pool) = region(10, 64);
    let process = region.thread().process();
    let segment = Segment { address: region.at(0), bytes: 4 };
    region.write(0, b"kept").wait().unwrap();
    pool.clone().close().unwrap();
    assert_eq!(far.bytes(process, segment), b"kept");
    let (region, far, pool) = self::region(11, 64);
    region.write(0, b"lost").wait().unwrap();
    far.far().is_silent = true;
    assert_eq!(pool.close(), Err(no_answer()));
}

#[test]
fn an_operation_at_the_node_without_ranges_sees_and_changes_everything() {
    let (region, far, _pool) = region(12, 64);
    let thread = region.thread();
    region.write(4096, &41_u64.to_le_bytes()).wait().unwrap();
    let at = region.at(4096);
    thread.offload("bump", at, &at.0.to_le_bytes(), &[]).wait().unwrap();
    assert_eq!(region.read(4096, 8).wait().unwrap(), 42_u64.to_le_bytes());
    region.write(4096, &1_u64.to_le_bytes()).wait().unwrap();
    let touches = [Segment { address: at, bytes: 8 }];
    region.write(0, b"kept here").wait().unwrap();
    log(&far);
    thread.offload("bump", at, &at.0.to_le_bytes(), &touches).wait().unwrap();
    assert_eq!(log(&far), ["write 8"], "only its range is written");
    assert_eq!(region.read(4096, 8).wait().unwrap(), 2_u64.to_le_bytes());
}
