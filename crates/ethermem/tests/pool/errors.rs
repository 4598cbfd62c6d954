//! Refused operations return an error to their caller, and change nothing.

use ethermem::{Address, Chase, Error, Permissions, Pool, Segment};

use crate::{every_pool, has_pages};

const RW: Permissions = Permissions::READ_WRITE;

#[test]
fn an_access_outside_of_a_region_is_refused() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(100, RW).wait().unwrap();
        let behind = thread.alloc(100, RW).wait().unwrap();
        region.write(0, &[9; 100]).wait().unwrap();
        for (offset, bytes) in [(100, 1), (99, 2), (0, 101), (u64::MAX, 1), (u64::MAX - 1, 8)] {
            let error = region.read(offset, bytes).wait().unwrap_err();
            assert!(matches!(error, Error::Unmapped { .. }), "{error} {pool:?}");
            assert!(!error.is_retryable());
            let data = vec![1; bytes as usize];
            let error = region.write(offset, &data).wait().unwrap_err();
            assert!(matches!(error, Error::Unmapped { .. }), "{error} {pool:?}");
        }
        let between = behind.address().0 - 1;
        let between = if has_pages(&pool) { behind.address().0 + 4096 } else { between };
        for address in [0, 1, between, u64::MAX, u64::MAX - 7, 1 << 63] {
            let error = thread.read(Address(address), 1).wait().unwrap_err();
            assert!(matches!(error, Error::Unmapped { .. }), "{address:#x} {error} {pool:?}");
        }
        let error = thread.fetch_add(Address(u64::MAX - 7), 1).wait().unwrap_err();
        assert!(matches!(error, Error::Unmapped { .. }), "{error} {pool:?}");
        // One bad place fails the operation; the others are written, on either side of it.
        let (first, last) = (region.address(), region.at(96));
        let places = [(first, &[1_u8; 4][..]), (Address(8), &[1; 4]), (last, &[1; 4])];
        let error = thread.scatter(&places).wait().unwrap_err();
        assert_eq!(error, Error::Unmapped { address: Address(8), bytes: 4 }, "{pool:?}");
        let ends = [(first, 4), (last, 4)].map(|(address, bytes)| Segment { address, bytes });
        assert_eq!(thread.gather(&ends).wait().unwrap(), [1; 8], "{pool:?}");
        let outside = if has_pages(&pool) { behind.at(4096) } else { region.at(100) };
        let places = [Segment { address: outside, bytes: 4 }];
        let _ = thread.gather(&places).wait().unwrap_err();
        assert_eq!(behind.read(0, 100).wait().unwrap(), vec![0; 100], "{pool:?}");
    }
}

/// A long access is refused as a whole: the error names the caller's place. Where the nodes are
/// in-process, nothing of a refused write is done.
#[test]
fn a_long_access_is_refused_as_a_whole() {
    const MIB: u64 = 1 << 20;
    for pool in every_pool() {
        let (thread, other) = (pool.thread().unwrap(), pool.thread().unwrap());
        let region = thread.alloc(2 * MIB, RW).wait().unwrap();
        let good = thread.alloc(64, RW).wait().unwrap();
        let (address, bytes) = (region.address(), 3 * MIB);
        let unmapped = Error::Unmapped { address, bytes };
        assert_eq!(thread.read(address, bytes).wait(), Err(unmapped.clone()), "{pool:?}");
        let places = [good.address(), address];
        let places =
            [64, bytes].into_iter().zip(places).map(|(bytes, address)| Segment { address, bytes });
        let places: Vec<Segment> = places.collect();
        assert_eq!(thread.gather(&places).wait(), Err(unmapped.clone()), "{pool:?}");
        let data = vec![7; bytes as usize];
        assert_eq!(thread.write(address, &data).wait(), Err(unmapped.clone()), "{pool:?}");
        let scattered = [(good.address(), &[5_u8; 64][..]), (address, &data)];
        assert_eq!(thread.scatter(&scattered).wait(), Err(unmapped), "{pool:?}");
        assert_eq!(good.read(0, 64).wait().unwrap(), [5; 64], "{pool:?}");
        // On a remote node such an access is several requests, each done or refused by itself.
        if !has_pages(&pool) {
            let found = region.read(0, 2 * MIB).wait().unwrap();
            assert!(found.iter().all(|&byte| byte == 0), "{pool:?}");
        }
        region.share(other.process(), Permissions::READ).wait().unwrap();
        let refused = region.by(&other).write(0, &data[..2 * MIB as usize]).wait();
        let needed = Permissions::WRITE;
        assert_eq!(refused, Err(Error::Permission { address, needed }), "{pool:?}");
        region.write(0, &data[..2 * MIB as usize]).wait().unwrap();
        assert_eq!(region.read(0, 2 * MIB).wait().unwrap(), data[..2 * MIB as usize], "{pool:?}");
    }
}

/// The upper bits of an address name the memory node, so other upper bits name another byte.
#[test]
fn an_address_of_a_node_that_is_not_there_is_of_no_other() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(64, RW).wait().unwrap();
        let (_, memories) = pool.nodes();
        for node in [memories, u16::MAX] {
            let address = Address::new(node, region.address().offset());
            let unmapped = Error::Unmapped { address, bytes: 8 };
            assert_eq!(thread.write(address, &[1; 8]).wait(), Err(unmapped.clone()), "{pool:?}");
            assert_eq!(thread.read(address, 8).wait(), Err(unmapped.clone()), "{pool:?}");
            assert_eq!(thread.fetch_add(address, 1).wait(), Err(unmapped.clone()), "{pool:?}");
            assert_eq!(thread.lock(address).wait(), Err(unmapped.clone()), "{pool:?}");
            let places = [(region.address(), &[1; 8][..]), (address, &[1; 8])];
            assert_eq!(thread.scatter(&places).wait(), Err(unmapped), "{pool:?}");
            let freed = thread.region(address, 64).free().wait();
            assert!(matches!(freed, Err(Error::Unmapped { .. })), "{freed:?} {pool:?}");
        }
        assert_eq!(region.read(0, 64).wait().unwrap(), [0; 64], "{pool:?}");
    }
}

/// Freed memory is refused by every operation, on every pool; operations in flight at the free
/// complete.
#[test]
fn what_was_freed_is_in_no_region_to_any_operation() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(4096, RW).wait().unwrap();
        let (address, stale) = (region.address(), region.by(&thread));
        let under_way: Vec<_> = (0..8).map(|at| region.write(at * 64, &[7; 64])).collect();
        region.free().wait().unwrap();
        for write in under_way {
            write.wait().unwrap();
        }
        let segment = Segment { address, bytes: 8 };
        let chase = crate::offload::chase(address, 1).encode();
        let refused = [
            thread.read(address, 8).wait().map(drop),
            thread.read_into(address, &mut [0; 8]),
            thread.write(address, &[1; 8]).wait(),
            thread.write_from(address, &[1; 8]),
            thread.gather(&[segment]).wait().map(drop),
            thread.scatter(&[(address, &[1; 8])]).wait(),
            thread.compare_and_swap(address, 0, 1).wait().map(drop),
            thread.fetch_add(address, 1).wait().map(drop),
            thread.swap(address, 1).wait().map(drop),
            thread.test_and_set(address).wait().map(drop),
            thread.lock(address).wait(),
            thread.offload(Chase::NAME, address, &chase, &[]).wait().map(drop),
            stale.share(pool.thread().unwrap().process(), RW).wait(),
            stale.free().wait(),
        ];
        for (at, refused) in refused.into_iter().enumerate() {
            let is_so = matches!(refused, Err(Error::Unmapped { .. }));
            assert!(is_so, "operation {at} {refused:?} {pool:?}");
        }
    }
}

#[test]
fn lengths_of_zero_and_absurd_ones_are_refused() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(100, RW).wait().unwrap();
        let address = region.address();
        assert!(matches!(thread.read(address, 0).wait(), Err(Error::Empty { .. })));
        assert!(matches!(thread.write(address, &[]).wait(), Err(Error::Empty { .. })));
        assert!(matches!(thread.gather(&[]).wait(), Err(Error::Empty { .. })));
        assert!(matches!(thread.alloc(0, RW).wait(), Err(Error::Empty { .. })));
        assert!(matches!(thread.read(address, u64::MAX).wait(), Err(Error::TooLong { .. })));
        assert!(matches!(thread.alloc(u64::MAX, RW).wait(), Err(Error::TooLong { .. })));
        let all = Segment { address, bytes: 1 << 33 };
        assert!(matches!(thread.gather(&[all, all, all]).wait(), Err(Error::TooLong { .. })));
    }
}

#[test]
fn nothing_is_done_without_permission() {
    for pool in every_pool() {
        let (owner, other) = (pool.thread().unwrap(), pool.thread().unwrap());
        let readable = owner.alloc(100, Permissions::READ).wait().unwrap();
        let writable = owner.alloc(100, Permissions::WRITE).wait().unwrap();
        let refused = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::Permission { .. })), "{result:?} {pool:?}");
        };
        refused(readable.write(0, b"x").wait());
        refused(writable.read(0, 1).wait().map(|_| ()));
        refused(owner.fetch_add(readable.address(), 1).wait().map(|_| ()));
        refused(owner.lock(readable.address()).wait());
        refused(readable.share(other.process(), RW).wait());
        // Other processes are not told what exists.
        let unmapped = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::Unmapped { .. })), "{result:?} {pool:?}");
        };
        unmapped(readable.by(&other).read(0, 1).wait().map(|_| ()));
        unmapped(readable.by(&other).free().wait());
        readable.share(other.process(), Permissions::READ).wait().unwrap();
        unmapped(readable.by(&other).share(other.process(), Permissions::READ).wait());
        if has_pages(&pool) {
            // On a remote node this ends the process's share, and nothing else.
            readable.by(&other).free().wait().unwrap();
            unmapped(readable.by(&other).read(0, 1).wait().map(|_| ()));
        } else {
            unmapped(readable.by(&other).free().wait());
        }
        assert_eq!(readable.read(0, 100).wait().unwrap(), vec![0; 100], "{pool:?}");
    }
}

#[test]
fn atomics_are_aligned() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(100, RW).wait().unwrap();
        for offset in 1..8 {
            let result = thread.fetch_add(region.at(offset), 1).wait();
            assert!(matches!(result, Err(Error::Misaligned { .. })), "{result:?} {pool:?}");
        }
        if has_pages(&pool) {
            continue;
        }
        // The word begins inside the region and ends outside.
        let result = thread.fetch_add(region.at(96), 1).wait();
        assert!(matches!(result, Err(Error::Unmapped { .. })), "{result:?} {pool:?}");
    }
}

#[test]
fn a_full_node_says_what_is_free() {
    for url in ["local:?memory_bytes=1000000", "sim:edm?nodes=2&memory_bytes=1000000"] {
        let pool = Pool::open(url).unwrap();
        let thread = pool.thread().unwrap();
        let first = thread.alloc(600_000, RW).wait().unwrap();
        let error = thread.alloc(600_000, RW).wait().unwrap_err();
        assert_eq!(error, Error::Full { bytes: 600_000, free: 400_000 });
        assert!(error.is_retryable());
        first.free().wait().unwrap();
        let _again = thread.alloc(600_000, RW).wait().unwrap();
    }
}

#[test]
fn a_lock_is_given_back_by_who_holds_it() {
    for pool in every_pool() {
        let (holder, other) = (pool.thread().unwrap(), pool.thread().unwrap());
        let word = holder.alloc(8, RW).wait().unwrap();
        word.share(other.process(), RW).wait().unwrap();
        let address = word.address();
        let not_held = Err(Error::NotHeld { address });
        assert_eq!(holder.unlock_wait(address), not_held, "{pool:?}");
        holder.lock(address).wait().unwrap();
        assert_eq!(other.unlock_wait(address), not_held, "{pool:?}");
        holder.unlock_wait(address).unwrap();
        other.lock(address).wait().unwrap();
        assert_eq!(holder.unlock_wait(address), not_held, "{pool:?}");
        other.unlock_wait(address).unwrap();
    }
}

#[test]
fn nodes_that_are_not_there_are_refused() {
    let pool = Pool::open("sim:edm?nodes=8&memory_nodes=3").unwrap();
    assert_eq!(pool.nodes(), (5, 3));
    let error = pool.thread_on(5).unwrap_err();
    assert_eq!(error.to_string(), "node 5: must be compute nodes 0 to 4");
    let thread = pool.thread_on(4).unwrap();
    assert!(thread.fork_on(5).is_err());
    let error = thread.alloc_on(3, 8, RW).wait().unwrap_err();
    assert_eq!(error.to_string(), "node 3: must be memory nodes 0 to 2");
}
