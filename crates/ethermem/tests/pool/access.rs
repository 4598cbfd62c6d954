//! Reads return what was written.

use ethermem::{Address, Error, Permissions, Pool, RmwOperation, Segment};
use proptest::prelude::*;

use crate::{drawn_pool, every_pool, remote_urls, with};

const RW: Permissions = Permissions::READ_WRITE;

#[test]
fn what_is_written_is_read() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(10_000, RW).wait().unwrap();
        assert_eq!(region.read(0, 10_000).wait().unwrap(), vec![0; 10_000], "{pool:?}");
        let data: Vec<u8> = (0..9_000_u32).map(|at| (at % 251) as u8).collect();
        region.write(500, &data).wait().unwrap();
        let found = region.read(499, 9_002).wait().unwrap();
        assert_eq!((found[0], found[9_001]), (0, 0), "{pool:?}");
        assert_eq!(found[1..9_001], data, "{pool:?}");
        let mut into = [0; 100];
        region.read_into(600, &mut into).unwrap();
        assert_eq!(into, data[100..200], "{pool:?}");
    }
}

#[test]
fn several_places_are_one_operation() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let regions: Vec<_> = (0..3).map(|_| thread.alloc(4096, RW).wait().unwrap()).collect();
        let places = [
            (regions[2].at(5), &b"one"[..]),
            (regions[0].at(0), b"two"),
            (regions[1].at(4095), b"!"),
        ];
        thread.scatter(&places).wait().unwrap();
        let places = places.map(|(address, data)| Segment { address, bytes: data.len() as u64 });
        assert_eq!(thread.gather(&places).wait().unwrap(), b"onetwo!", "{pool:?}");
        let mut into = *b"-------";
        thread.gather_into(&places, &mut into).unwrap();
        assert_eq!(&into, b"onetwo!", "{pool:?}");
        // A failed operation leaves the buffer unchanged.
        let gone = [places[0], Segment { address: Address::NULL, bytes: 4 }];
        let refused = thread.gather_into(&gone, &mut into);
        assert!(matches!(refused, Err(Error::Unmapped { .. })), "{pool:?}: {refused:?}");
        assert_eq!(&into, b"onetwo!", "{pool:?}");
    }
}

#[test]
#[should_panic(expected = "places of so many bytes together, and a buffer of")]
fn a_buffer_for_several_places_is_as_long_as_they_are() {
    let thread = Pool::open("local:").unwrap().thread().unwrap();
    let address = thread.alloc(4096, RW).wait().unwrap().address();
    let _ = thread.gather_into(&[Segment { address, bytes: 8 }], &mut [0; 9]);
}

#[test]
fn every_atomic_is_done_on_every_pool() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let word = thread.alloc(8, RW).wait().unwrap().address();
        let story = [
            (RmwOperation::Or(0b1100), 0),
            (RmwOperation::And(0b0110), 0b1100),
            (RmwOperation::Xor(0b0111), 0b0100),
            (RmwOperation::FetchAndAdd(1), 0b0011),
            (RmwOperation::Swap(9), 0b0100),
        ];
        for (operation, before) in story {
            assert_eq!(thread.modify(word, operation).wait(), Ok(before), "{pool:?}");
        }
        assert_eq!(thread.fetch_add(word, 0).wait(), Ok(9), "{pool:?}");
    }
}

#[test]
fn atomics_give_the_word_before() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let word = thread.alloc(8, RW).wait().unwrap().address();
        assert_eq!(thread.fetch_add(word, 7).wait(), Ok(0), "{pool:?}");
        assert_eq!(thread.compare_and_swap(word, 8, 1).wait(), Ok(7));
        assert_eq!(thread.compare_and_swap(word, 7, 40).wait(), Ok(7));
        assert_eq!(thread.swap(word, u64::MAX).wait(), Ok(40));
        assert_eq!(thread.fetch_add(word, 2).wait(), Ok(u64::MAX));
        assert_eq!(thread.test_and_set(word).wait(), Ok(true));
        assert_eq!(thread.swap(word, 0).wait(), Ok(1));
        assert_eq!(thread.test_and_set(word).wait(), Ok(false));
        assert_eq!(thread.read(word, 8).wait().unwrap(), 1_u64.to_le_bytes(), "{pool:?}");
    }
}

#[test]
fn a_long_operation_is_several_messages_and_one_result() {
    let fabrics = ["local:", "sim:edm?nodes=2&link_gbps=400", "sim:cxl?nodes=2&link_gbps=400"];
    let real = remote_urls().iter().flat_map(|url| {
        let small = with(url, "datagram_bytes=1472");
        [url.clone(), small]
    });
    for url in fabrics.map(str::to_owned).into_iter().chain(real) {
        let pool = Pool::open(&url).unwrap();
        let thread = pool.thread().unwrap();
        let bytes = (5 << 20) + 3;
        let region = thread.alloc(bytes, RW).wait().unwrap();
        let data: Vec<u8> = (0..bytes).map(|at| (at * 7 % 253) as u8).collect();
        region.write(0, &data).wait().unwrap();
        assert!(region.read(0, bytes).wait().unwrap() == data, "{url}");
    }
}

#[test]
fn a_shared_region_has_one_address() {
    for pool in every_pool() {
        let (owner, other) = (pool.thread().unwrap(), pool.thread().unwrap());
        let region = owner.alloc(100, RW).wait().unwrap();
        region.write(10, b"mine").wait().unwrap();
        region.share(other.process(), Permissions::READ).wait().unwrap();
        let seen = region.by(&other);
        assert_eq!(seen.read(10, 4).wait().unwrap(), b"mine", "{pool:?}");
        assert!(seen.write(10, b"ours").wait().is_err(), "{pool:?}");
        region.share(other.process(), RW).wait().unwrap();
        seen.write(10, b"ours").wait().unwrap();
        assert_eq!(region.read(10, 4).wait().unwrap(), b"ours", "{pool:?}");
        region.share(other.process(), Permissions::NONE).wait().unwrap();
        assert!(seen.read(10, 4).wait().is_err(), "{pool:?}");
    }
}

#[test]
fn freed_memory_comes_back_as_zeros() {
    for pool in every_pool() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(4096, RW).wait().unwrap();
        region.write(0, &[7; 4096]).wait().unwrap();
        let (address, memory) = (region.address(), region.address().memory());
        region.free().wait().unwrap();
        assert!(thread.read(address, 1).wait().is_err(), "{pool:?}");
        let again = thread.alloc_on(memory, 4096, RW).wait().unwrap();
        assert_ne!(again.address(), address, "a stale pointer must not name it: {pool:?}");
        assert_eq!(again.read(0, 4096).wait().unwrap(), vec![0; 4096], "{pool:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Read(u64, u64),
    Add(u64, u64),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    let data = proptest::collection::vec(any::<u8>(), 1..3000);
    prop_oneof![
        4 => (0..20_000_u64, data).prop_map(|(at, data)| Step::Write(at, data)),
        4 => (0..20_000_u64, 1..3000_u64).prop_map(|(at, bytes)| Step::Read(at, bytes)),
        2 => (0..2_500_u64, any::<u64>()).prop_map(|(word, add)| Step::Add(word * 8, add)),
        1 => Just(Step::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Asynchronous operations of one thread give the results of their sequential order, because
    /// operations on one page stay in order.
    #[test]
    fn a_thread_sees_its_operations_in_order(
        steps in proptest::collection::vec(step(), 1..60),
        fabric in 0..6_usize,
    ) {
        let simulated = ["sim:edm?nodes=2", "sim:ndp?nodes=2", "sim:cxl?nodes=2"];
        let pool = drawn_pool(&simulated, fabric);
        let thread = pool.thread().unwrap();
        let region = thread.alloc(24_000, RW).wait().unwrap();
        let mut model = vec![0_u8; 24_000];
        let (mut reads, mut words, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for step in &steps {
            match step {
                Step::Write(at, data) => {
                    others.push(region.write(*at, data));
                    model[*at as usize..][..data.len()].copy_from_slice(data);
                }
                Step::Read(at, bytes) => {
                    let expected = model[*at as usize..][..*bytes as usize].to_vec();
                    reads.push((region.read(*at, *bytes), expected));
                }
                Step::Add(at, addend) => {
                    let place = &mut model[*at as usize..][..8];
                    let before = u64::from_le_bytes((&*place).try_into().unwrap());
                    place.copy_from_slice(&before.wrapping_add(*addend).to_le_bytes());
                    words.push((thread.fetch_add(region.at(*at), *addend), before));
                }
                Step::Release => others.push(thread.release()),
            }
        }
        thread.release().wait().unwrap();
        for mut pending in others {
            // All operations before a release have completed with it.
            prop_assert_eq!(pending.poll_result(), Some(Ok(())));
        }
        for (pending, expected) in reads {
            prop_assert!(pending.wait().unwrap() == expected);
        }
        for (pending, expected) in words {
            prop_assert_eq!(pending.wait().unwrap(), expected);
        }
        prop_assert!(region.read(0, 24_000).wait().unwrap() == model);
        prop_assert_ne!(region.address(), Address::NULL);
    }
}
