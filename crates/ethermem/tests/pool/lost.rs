//! Messages that a simulated fabric loses: only their callers are told, and the pool goes on.

use ethermem::{Address, Error, Pending, Permissions, Pool, Region, Thread};

/// Length of operations that are lost; short ones fit between them.
const LONG: u64 = 20_000;
const SHORT: u64 = 64;

/// A fabric with PFC and less headroom than its links need. Where many nodes send to one, a switch
/// drops frames for lack of room, and no protocol repairs that.
fn lossy(memory_nodes: u16) -> Pool {
    let url = format!(
        "sim:pfc?nodes=40&memory_nodes={memory_nodes}&fabric.pfc.xoff_bytes=3000\
         &fabric.pfc.headroom_bytes=1600&fabric.pfc.ecn_min_bytes=1000000000\
         &fabric.pfc.ecn_max_bytes=1000000000"
    );
    Pool::open(&url).unwrap()
}

/// Data of the thread, or the region, with this number.
fn data(number: u8) -> Vec<u8> {
    vec![number; if number.is_multiple_of(2) { LONG } else { SHORT } as usize]
}

fn length(number: u8) -> u64 {
    data(number).len() as u64
}

/// Which outcomes are lost messages; some are, and some are not.
fn lost<T>(outcomes: &[Result<T, Error>]) -> Vec<bool> {
    let one = |outcome: &Result<T, Error>| match outcome {
        Ok(_) => false,
        Err(Error::Lost) => true,
        Err(error) => panic!("{error}"),
    };
    let lost: Vec<bool> = outcomes.iter().map(one).collect();
    assert!(lost.contains(&true) && lost.contains(&false), "{lost:?}");
    lost
}

/// 39 threads write to one memory node at once, and then count there; returns which lost a message.
fn writes_and_atomics() -> [Vec<bool>; 2] {
    let pool = lossy(1);
    let threads: Vec<Thread> = (0..39).map(|node| pool.thread_on(node).unwrap()).collect();
    let allocate = |thread: &Thread| thread.alloc(LONG, Permissions::READ_WRITE).wait().unwrap();
    let regions: Vec<Region> = threads.iter().map(allocate).collect();
    let all = || threads.iter().zip(regions.iter().map(Region::address)).zip(1_u8..);

    let begun: Vec<_> = all().map(|((thread, at), n)| thread.write(at, &data(n))).collect();
    let written: Vec<_> = begun.into_iter().map(Pending::wait).collect();
    // Sequential reads do not collide. All of a write is there, or none.
    for (((thread, at), n), outcome) in all().zip(&written) {
        let found = thread.read(at, length(n)).wait().unwrap();
        let nothing = found.iter().all(|&byte| byte == 0);
        assert!(found == data(n) || outcome.is_err() && nothing, "{n}: {outcome:?}");
        thread.write(at, &data(n)).wait().unwrap();
    }

    // Each word is behind a long write of its own thread.
    let begun: Vec<_> = all()
        .map(|((thread, at), n)| {
            (thread.write(Address(at.0 + 8), &data(n)[8..]), thread.fetch_add(at, 1))
        })
        .collect();
    let ended = begun.into_iter().map(|(write, word)| (write.wait(), word.wait()));
    let (again, added): (Vec<_>, Vec<_>) = ended.unzip();
    for (((thread, at), n), outcome) in all().zip(&added) {
        let before = u64::from_le_bytes([n; 8]);
        let word = thread.read(at, 8).wait().unwrap();
        let word = u64::from_le_bytes(word.try_into().unwrap());
        match outcome {
            Ok(found) => assert_eq!((*found, word), (before, before + 1)),
            Err(error) => {
                assert_eq!(*error, Error::Lost);
                assert!(word == before || word == before + 1, "{word} of {before}");
            }
        }
    }
    for region in regions {
        region.free().wait().unwrap();
    }
    [lost(&written), lost(&again)]
}

/// One thread reads from 39 memory nodes at once; returns which responses were lost.
fn reads() -> Vec<bool> {
    let pool = lossy(39);
    let thread = pool.thread().unwrap();
    let regions: Vec<(Region, u8)> = (0..39)
        .zip(1_u8..)
        .map(|(memory, n)| {
            let region = thread.alloc_on(memory, LONG, Permissions::READ_WRITE).wait().unwrap();
            thread.write(region.address(), &data(n)).wait().unwrap();
            (region, n)
        })
        .collect();
    let read = |(region, n): &(Region, u8)| thread.read(region.address(), length(*n));
    let begun: Vec<_> = regions.iter().map(read).collect();
    let outcomes: Vec<_> = begun.into_iter().map(Pending::wait).collect();
    for (one, outcome) in regions.iter().zip(&outcomes) {
        assert!(outcome.as_ref().map_or(true, |found| *found == data(one.1)), "{}", one.1);
        // A lost read is retried, alone.
        assert_eq!(read(one).wait().unwrap(), data(one.1));
    }
    lost(&outcomes)
}

#[test]
fn whoever_loses_a_write_or_an_atomic_is_told_and_nobody_else() {
    assert_eq!(writes_and_atomics(), writes_and_atomics(), "the same the next time");
}

#[test]
fn whoever_loses_a_read_is_told_and_can_try_again() {
    assert_eq!(reads(), reads(), "the same the next time");
}
