//! Operations at the memory node.

use std::sync::Arc;

use ethermem::{
    Address, Chase, Comparison, Error, Filter, NodeMemory, Offload, OffloadError, Permissions,
    Pool, Region,
};

use crate::{every_pool, every_pool_here, has_pages};

const RW: Permissions = Permissions::READ_WRITE;

/// A list of elements (next, key, value, each a word); returns the address of the first.
fn list(region: &Region, keys: &[u64]) -> Address {
    for (at, key) in keys.iter().enumerate() {
        let here = at as u64 * 24;
        let next = if at + 1 < keys.len() { region.at(here + 24) } else { Address::NULL };
        let words = [next.0, *key, key * 100];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        region.write(here, &bytes).wait().unwrap();
    }
    region.address()
}

pub(crate) fn chase(start: Address, key: u64) -> Chase {
    let key = key.to_le_bytes().to_vec();
    Chase {
        start,
        next_offset: 0,
        key_offset: 8,
        value_offset: 16,
        value_bytes: 8,
        elements_max: 50,
        key,
    }
}

#[test]
fn a_chase_finds_what_walking_finds_in_one_round_trip() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(24 * 40, RW).wait().unwrap();
        let keys: Vec<u64> = (1..=40).collect();
        let start = list(&region, &keys);
        for key in [1, 17, 40] {
            let arguments = chase(start, key).encode();
            let found = thread.offload(Chase::NAME, start, &arguments, &[]).wait().unwrap();
            let found = Chase::result(&found).unwrap().unwrap();
            assert_eq!(found.address, region.at((key - 1) * 24), "{pool:?}");
            assert_eq!(found.value, (key * 100).to_le_bytes(), "{pool:?}");
        }
        let arguments = chase(start, 99).encode();
        let found = thread.offload(Chase::NAME, start, &arguments, &[]).wait().unwrap();
        assert_eq!(Chase::result(&found), Ok(None), "{pool:?}");
    }
    let pool = Pool::open("sim:edm?nodes=2").unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(24 * 40, RW).wait().unwrap();
    let start = list(&region, &(1..=40).collect::<Vec<_>>());
    let before = pool.now();
    let arguments = chase(start, 40).encode();
    let _found = thread.offload(Chase::NAME, start, &arguments, &[]).wait().unwrap();
    let offloaded = pool.now() - before;
    let before = pool.now();
    let mut at = start;
    while at != region.at(39 * 24) {
        let element = thread.read(at, 24).wait().unwrap();
        at = Address(u64::from_le_bytes(element[..8].try_into().unwrap()));
    }
    let walked = pool.now() - before;
    assert!(walked.0 > 2 * offloaded.0, "{walked} against {offloaded}");
}

#[test]
fn a_chase_ends_and_stays_in_its_memory() {
    for pool in every_pool() {
        let (thread, other) = (pool.thread().unwrap(), pool.thread().unwrap());
        let region = thread.alloc(24 * 2, RW).wait().unwrap();
        let start = list(&region, &[1, 2]);
        region.write(24, &start.0.to_le_bytes()).wait().unwrap();
        let ask = |by: &ethermem::Thread, start: Address, key| {
            by.offload(Chase::NAME, region.address(), &chase(start, key).encode(), &[]).wait()
        };
        let error = ask(&thread, start, 3).unwrap_err();
        assert_eq!(error.to_string(), "offload `chase`: no end within 50 elements", "{pool:?}");
        let error = ask(&thread, Address(start.0 + 1_000_000), 1).unwrap_err();
        assert!(matches!(error, Error::Unmapped { .. }), "{error} {pool:?}");
        let error = ask(&other, start, 1).unwrap_err();
        assert!(matches!(error, Error::Unmapped { .. }), "{error} {pool:?}");
        // A remote node reports the address, but not the length.
        let what = if has_pages(&pool) { "an access" } else { "8 B" };
        assert!(error.to_string().starts_with(what), "{error} {pool:?}");
        for arguments in [&[][..], &[1; 47], &[0xff; 64]] {
            let asked = thread.offload(Chase::NAME, start, arguments, &[]).wait();
            assert!(matches!(asked, Err(Error::Offload { .. })), "{asked:?} {pool:?}");
        }
    }
}

#[test]
fn a_filter_keeps_what_compares() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(1600, RW).wait().unwrap();
        let records: Vec<u8> =
            (0..100_u64).flat_map(|n| [n.to_le_bytes(), (n % 10).to_le_bytes()].concat()).collect();
        region.write(0, &records).wait().unwrap();
        let filter = Filter {
            start: region.address(),
            record_bytes: 16,
            records: 100,
            field_offset: 8,
            comparison: Comparison::Greater,
            operand: 7,
        };
        let count = |filter: Filter| {
            let found = thread.offload(Filter::NAME, filter.start, &filter.encode(), &[]);
            found.wait().map(|found| found.len() / 16)
        };
        assert_eq!(count(filter), Ok(20), "{pool:?}");
        assert_eq!(count(Filter { comparison: Comparison::Equal, ..filter }), Ok(10));
        assert_eq!(count(Filter { comparison: Comparison::Less, ..filter }), Ok(70));
        assert!(matches!(count(Filter { records: 300, ..filter }), Err(Error::Unmapped { .. })));
        assert!(matches!(count(Filter { field_offset: 9, ..filter }), Err(Error::Offload { .. })));
        assert!(matches!(count(Filter { record_bytes: 7, ..filter }), Err(Error::Offload { .. })));
    }
}

/// Adds up words: an operation as an application might bring it.
struct Sum;

impl Offload for Sum {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let start = u64::from_le_bytes(arguments.try_into().expect("a word"));
        let mut sum: u64 = 0;
        for at in 0..10 {
            sum += memory.read_u64(Address(start).add(at * 8))?;
        }
        Ok(sum.to_le_bytes().to_vec())
    }
}

#[test]
fn an_application_brings_operations_of_its_own() {
    for pool in every_pool_here() {
        pool.register("sum", Arc::new(Sum));
        let thread = pool.thread().unwrap();
        let region = thread.alloc(80, RW).wait().unwrap();
        for at in 0..10_u64 {
            region.write(at * 8, &at.to_le_bytes()).wait().unwrap();
        }
        let start = region.address();
        let sum = thread.offload("sum", start, &start.0.to_le_bytes(), &[]).wait().unwrap();
        assert_eq!(sum, 45_u64.to_le_bytes(), "{pool:?}");
        let error = thread.offload("summ", start, &[], &[]).wait().unwrap_err();
        assert_eq!(error.to_string(), "offload `summ`: must be one of chase, filter, sum");
    }
}
