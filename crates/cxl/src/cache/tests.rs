//! The cache against a model of memory, and its rules one by one.

use proptest::prelude::*;

use super::*;

fn line(number: u64) -> LineAddress {
    LineAddress::new(number).unwrap()
}

fn small() -> Cache<u32> {
    // Two sets of two ways.
    let config = CacheConfig { bytes: 256, ways: 2, fetches_max: 2, eviction: Eviction::Posted };
    Cache::new(config, 4).unwrap()
}

#[test]
fn a_write_miss_with_room_allocates_without_fetching() {
    let mut cache = small();
    assert_eq!(cache.write(line(0), ByteMask(0xf0), &[1; 64]), WriteStep::Allocated);
    assert_eq!(cache.state(line(0)), LineState::Modified);
    assert_eq!(cache.masks(line(0)), (ByteMask(0xf0), ByteMask(0xf0)));
    assert_eq!(cache.write(line(0), ByteMask(0x0f), &[2; 64]), WriteStep::Hit);
    assert_eq!(cache.masks(line(0)).0, ByteMask(0xff));
}

#[test]
fn a_read_of_missing_bytes_fetches_and_merges() {
    let mut cache = small();
    cache.write(line(0), ByteMask(0b10), &[1; 64]);
    assert_eq!(cache.read(line(0), 7), ReadStep::Miss { fetch: 0, victim: None });
    assert_eq!(cache.read(line(0), 8), ReadStep::Merged);
    // A byte that is written while the line is fetched is newer than what is fetched.
    assert_eq!(cache.write(line(0), ByteMask(0b100), &[3; 64]), WriteStep::Hit);
    cache.fill(0, Some(&[9; 64]));
    let mut merged = [9; 64];
    (merged[1], merged[2]) = (1, 3);
    assert_eq!(cache.poll_filled(0), Some((7, Some(merged))));
    assert_eq!(cache.poll_filled(0), Some((8, Some(merged))));
    assert_eq!(cache.poll_filled(0), None);
    assert_eq!(cache.read(line(0), 9), ReadStep::Hit(merged));
    assert_eq!(cache.masks(line(0)).1, ByteMask(0b110));
    cache.check();
}

#[test]
fn a_dirty_line_that_goes_is_given_to_write_and_a_clean_one_is_not() {
    let mut cache = small();
    cache.write(line(0), ByteMask(1), &[1; 64]);
    let ReadStep::Miss { fetch, victim: None } = cache.read(line(2), 0) else { panic!("a miss") };
    cache.fill(fetch, Some(&[2; 64]));
    while cache.poll_filled(fetch).is_some() {}
    // Line 0 is the least recently used, and dirty.
    let WriteStep::Replaced(victim) = cache.write(line(4), ByteMask::FULL, &[4; 64]) else {
        panic!("line 0 must go")
    };
    assert_eq!((victim.line, victim.mask, victim.data[0]), (line(0), ByteMask(1), 1));
    assert_eq!(cache.write(line(6), ByteMask::FULL, &[6; 64]), WriteStep::Allocated);
    assert_eq!(cache.state(line(2)), LineState::Invalid);
    assert_eq!(cache.counters().evictions, 1);
    cache.check();
}

#[test]
fn a_set_whose_ways_are_all_fetched_stalls_and_changes_nothing() {
    let mut cache = small();
    for (number, fetch) in [(0, 0), (2, 1)] {
        assert_eq!(cache.read(line(number), 0), ReadStep::Miss { fetch, victim: None });
    }
    assert_eq!(cache.read(line(4), 1), ReadStep::Stalled);
    assert_eq!(cache.write(line(4), ByteMask(1), &[1; 64]), WriteStep::Stalled);
    // The other set has room, but the table of fetches has none.
    assert_eq!(cache.read(line(1), 1), ReadStep::Stalled);
    assert_eq!(cache.write(line(1), ByteMask(1), &[1; 64]), WriteStep::Allocated);
    cache.fill(0, Some(&[0; 64]));
    assert_eq!(cache.poll_filled(0), Some((0, Some([0; 64]))));
    assert_eq!(cache.read(line(4), 1), ReadStep::Stalled, "not all that waited were told");
    assert_eq!(cache.poll_filled(0), None);
    assert!(matches!(cache.read(line(4), 1), ReadStep::Miss { fetch: 0, .. }));
    cache.check();
}

#[test]
fn a_fetch_that_failed_keeps_what_was_written_and_nothing_else() {
    let mut cache = small();
    cache.read(line(0), 0);
    cache.read(line(2), 1);
    cache.write(line(2), ByteMask(1), &[5; 64]);
    for (fetch, waiter) in [(0, 0), (1, 1)] {
        cache.fill(fetch, None);
        assert_eq!(cache.poll_filled(fetch), Some((waiter, None)));
        assert_eq!(cache.poll_filled(fetch), None);
    }
    assert_eq!(cache.state(line(0)), LineState::Invalid);
    assert_eq!(cache.masks(line(2)), (ByteMask(1), ByteMask(1)));
    cache.check();
}

#[test]
fn a_configuration_out_of_range_says_what_it_must_be() {
    let error = |bytes, ways| {
        let config = CacheConfig { bytes, ways, ..CacheConfig::published() };
        Cache::<()>::new(config, 1).unwrap_err().to_string()
    };
    assert_eq!(error(4096, 0), "0 ways: must be 1 to 32");
    let sets = "3000 B of 4 ways: must be a power of two of sets of 64 B lines";
    assert_eq!(error(3000, 4), sets);
    assert!(Cache::<()>::new(CacheConfig::published(), 256).is_ok());
}

/// A step of the random test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u64),
    Write(u64, u64, u8),
    EndFetch(usize),
    Clean(u32, bool),
    ReadBytes(u64, usize, usize),
    WriteBytes(u64, usize, usize, u8),
    Flush(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..12_u64).prop_map(Step::Read),
        3 => (0..12_u64, any::<u64>(), any::<u8>()).prop_map(|(l, m, b)| Step::Write(l, m, b)),
        3 => (0..4_usize).prop_map(Step::EndFetch),
        1 => (0..4_u32, any::<bool>()).prop_map(|(place, drop)| Step::Clean(place, drop)),
        2 => (0..12_u64, 0..64_usize, 1..65_usize).prop_map(|(l, from, bytes)| {
            Step::ReadBytes(l, from, bytes.min(64 - from))
        }),
        2 => (0..12_u64, 0..64_usize, 1..65_usize, any::<u8>()).prop_map(|(l, from, bytes, b)| {
            Step::WriteBytes(l, from, bytes.min(64 - from), b)
        }),
        1 => (0..3_usize).prop_map(Step::Flush),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// The memory below gets victims at once and answers fetches late, with what it has then; what
    /// the reader of lines sees must be what was written last.
    #[test]
    fn what_is_read_is_what_was_written_last(steps in steps()) {
        let mut cache = small();
        let (mut memory, mut truth) = ([[0_u8; 64]; 12], [[0_u8; 64]; 12]);
        // Fetches in the order in which they were sent: number, line, and what the memory had.
        let mut sent: Vec<(u32, u64, LineData)> = Vec::new();
        let store = |memory: &mut [LineData; 12], victim: Victim| {
            victim.mask.merge(&victim.data, &mut memory[victim.line.number() as usize]);
        };
        for step in steps {
            match step {
                Step::Read(at) => match cache.read(line(at), at as u32) {
                    ReadStep::Hit(data) => prop_assert_eq!(data, truth[at as usize]),
                    ReadStep::Miss { fetch, victim } => {
                        victim.into_iter().for_each(|victim| store(&mut memory, victim));
                        sent.push((fetch, at, memory[at as usize]));
                    }
                    ReadStep::Merged | ReadStep::Stalled => {}
                },
                Step::Write(at, mask, byte) => {
                    let (mask, data) = (ByteMask(mask), [byte; 64]);
                    match cache.write(line(at), mask, &data) {
                        WriteStep::Replaced(victim) => store(&mut memory, victim),
                        WriteStep::Hit | WriteStep::Allocated => {}
                        WriteStep::Stalled => continue,
                    }
                    mask.merge(&data, &mut truth[at as usize]);
                }
                Step::EndFetch(which) if which < sent.len() => {
                    let (fetch, at, data) = sent.remove(which);
                    cache.fill(fetch, Some(&data));
                    while let Some((waiter, data)) = cache.poll_filled(fetch) {
                        prop_assert_eq!(waiter, at as u32);
                        prop_assert_eq!(data, Some(truth[at as usize]));
                    }
                }
                Step::EndFetch(_) => {}
                Step::Clean(place, drop) => {
                    let victim = cache.clean_at(place, drop);
                    victim.into_iter().for_each(|victim| store(&mut memory, victim));
                }
                Step::ReadBytes(at, from, bytes) => {
                    let mut read = vec![0; bytes];
                    if cache.read_bytes(line(at), from, &mut read) {
                        prop_assert_eq!(&read, &truth[at as usize][from..][..bytes]);
                    }
                }
                Step::WriteBytes(at, from, bytes, byte) => {
                    match cache.write_bytes(line(at), from, &vec![byte; bytes]) {
                        WriteStep::Replaced(victim) => store(&mut memory, victim),
                        WriteStep::Hit | WriteStep::Allocated => {}
                        WriteStep::Stalled => continue,
                    }
                    truth[at as usize][from..][..bytes].fill(byte);
                }
                Step::Flush(lines) => {
                    let dirty = std::iter::from_fn(|| cache.next_dirty()).take(lines);
                    dirty.for_each(|victim| store(&mut memory, victim));
                }
            }
            cache.check();
        }
        for (fetch, _, data) in sent {
            cache.fill(fetch, Some(&data));
            while cache.poll_filled(fetch).is_some() {}
        }
        for place in 0..cache.places() {
            let victim = cache.clean_at(place, true);
            victim.into_iter().for_each(|victim| store(&mut memory, victim));
        }
        prop_assert_eq!(memory, truth);
        prop_assert!((0..12).all(|at| cache.state(line(at)) == LineState::Invalid));
    }
}

#[test]
fn bytes_of_a_line_are_read_where_they_are_valid_and_a_flush_is_in_order() {
    let mut cache = small();
    assert!(!cache.write_hit(line(0), 0, &[1]), "the line is not here");
    assert_eq!(cache.write_bytes(line(0), 60, &[1, 2, 3, 4]), WriteStep::Allocated);
    assert_eq!(cache.masks(line(0)).1, ByteMask(0xf << 60));
    let mut two = [0; 2];
    assert!(cache.read_bytes(line(0), 61, &mut two) && two == [2, 3]);
    assert!(!cache.read_bytes(line(0), 59, &mut two) && two == [2, 3], "one byte is missing");
    assert_eq!(cache.write_bytes(line(1), 0, &[9; 64]), WriteStep::Allocated);
    assert!(cache.write_hit(line(0), 0, &[7]));
    assert_eq!(cache.dirty_max(), 2);
    // Line 0 goes, and its place holds a clean line.
    let place = cache.place_of(line(0)).unwrap();
    assert!(cache.clean_at(place, true).is_some_and(|gone| gone.mask.0 == 0xf << 60 | 1));
    let ReadStep::Miss { fetch, .. } = cache.read(line(2), 0) else { panic!("a miss") };
    assert_eq!(cache.place_of(line(2)), Some(place));
    cache.fill(fetch, Some(&[5; 64]));
    while cache.poll_filled(fetch).is_some() {}
    cache.check();
    let first = cache.next_dirty().unwrap();
    assert_eq!((first.line, first.mask, first.data), (line(1), ByteMask::FULL, [9; 64]));
    assert_eq!((cache.next_dirty(), cache.dirty_max()), (None, 0));
    assert!(cache.write_hit(line(2), 3, &[8]) && cache.write_hit(line(1), 3, &[8]));
    assert_eq!([(); 2].map(|()| cache.next_dirty().unwrap().line), [line(2), line(1)]);
    cache.write_bytes(line(2), 0, &[1]);
    cache.clear();
    assert_eq!((cache.next_dirty(), cache.state(line(1))), (None, LineState::Invalid));
    cache.check();
}
