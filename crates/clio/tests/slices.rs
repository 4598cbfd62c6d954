//! Slow-path requests in slices. Whatever runs at once, is cancelled or ends in between, no page is
//! lost or given twice, and no slice exceeds its bound.

use std::collections::BTreeMap;
use std::task::Poll;

use ethermem_clio::memory::{
    AddressMap, AllocateError, BeginError, Failed, HashKey, MemoryConfig, Missed, PageSize,
    SpaceId, Steps, Task,
};
use ethermem_units::Bytes;
use ethermem_wire::clio::Permissions;
use proptest::prelude::*;

const KEY: HashKey = HashKey([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
const PAGE: u64 = 4096;
const RW: Permissions = Permissions::READ_WRITE;
const SPACES: u16 = 4;
/// Work that the last piece of a slice may do beyond the slice: a chunk of pages reserved in runs
/// of one page each, or bytes zeroed at once.
const OVER: u64 = 300;

fn map(pages: u64) -> AddressMap {
    let memory = Bytes(pages * PAGE);
    let page = PageSize::Kib4;
    let config = MemoryConfig { memory, page, tlb_entries: 4, fault_buffer_pages: 4 };
    AddressMap::new(&config, KEY).expect("whole pages")
}

/// The task of an operation in progress.
#[derive(Clone, Debug)]
enum Asked {
    Allocate {
        space: u16,
    },
    /// Releases a range of the space's own, or a share.
    Release {
        space: u16,
        address: u64,
    },
    Share {
        owner: (u16, u64),
        with: u16,
        permissions: Permissions,
        /// True if there was a share when the task began. The end of a share that does not exist is
        /// immediate, however late it is reported, and takes nothing from a share that begins
        /// meanwhile.
        had_one: bool,
    },
    End {
        space: u16,
    },
}

impl Asked {
    fn touches(&self, space: u16) -> bool {
        match *self {
            Asked::Allocate { space: of } | Asked::Release { space: of, .. } => of == space,
            Asked::Share { owner, with, .. } => owner.0 == space || with == space,
            Asked::End { space: of } => of == space,
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { space: u16, pages: u64, at: Option<u64> },
    Release { space: u16, which: usize },
    Share { which: usize, with: u16, at: Option<u64>, permissions: u8 },
    End { space: u16 },
    Go { which: usize, steps: u64 },
    Cancel { which: usize },
    Touch { space: u16, page: u64 },
    Refill,
}

fn step() -> impl Strategy<Value = Step> {
    let space = 0..SPACES;
    let at = prop::option::weighted(0.4, (1..120_u64).prop_map(|page| page * PAGE));
    prop_oneof![
        3 => (space.clone(), 1..40_u64, at.clone())
            .prop_map(|(space, pages, at)| Step::Allocate { space, pages, at }),
        2 => (space.clone(), any::<usize>())
            .prop_map(|(space, which)| Step::Release { space, which }),
        2 => (any::<usize>(), space.clone(), at, 0..4_u8).prop_map(
            |(which, with, at, permissions)| Step::Share { which, with, at, permissions }),
        1 => space.clone().prop_map(|space| Step::End { space }),
        9 => (any::<usize>(), 1..30_u64).prop_map(|(which, steps)| Step::Go { which, steps }),
        1 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        3 => (space, 1..160_u64).prop_map(|(space, page)| Step::Touch { space, page }),
        1 => Just(Step::Refill),
    ]
}

/// Ranges by space and address: number of pages, and the owner of a share.
type Ranges = BTreeMap<(u16, u64), (u64, Option<(u16, u64)>)>;

struct Bench {
    map: AddressMap,
    tasks: Vec<(Task, Asked)>,
    ranges: Ranges,
    physical_pages: u64,
}

impl Bench {
    fn new(physical_pages: u64) -> Bench {
        let map = map(physical_pages);
        Bench { map, tasks: Vec::new(), ranges: Ranges::new(), physical_pages }
    }

    fn is_ending(&self, space: u16) -> bool {
        self.tasks.iter().any(|(_, asked)| matches!(asked, Asked::End { space: s } if *s == space))
    }

    fn which(
        &self,
        which: usize,
        is: impl Fn(u16, Option<(u16, u64)>) -> bool,
    ) -> Option<(u16, u64)> {
        let some = self.ranges.iter().filter(|(at, of)| is(at.0, of.1));
        let some: Vec<(u16, u64)> = some.map(|(&at, _)| at).collect();
        (!some.is_empty()).then(|| some[which % some.len()])
    }

    fn begin(&mut self, step: &Step) {
        match *step {
            Step::Allocate { space, pages, at } if !self.is_ending(space) => {
                let whose = (space % 2, SpaceId(space));
                match Task::allocate(&mut self.map, whose, pages * PAGE, at, RW) {
                    Ok(task) => self.tasks.push((task, Asked::Allocate { space })),
                    Err(AllocateError::Full { .. }) => {
                        assert!(pages * PAGE > self.map.free_bytes());
                    }
                    Err(AllocateError::Taken { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Release { space, which } if !self.is_ending(space) => {
                let Some((_, address)) = self.which(which, |of, _| of == space) else { return };
                match Task::release(&mut self.map, SpaceId(space), address) {
                    Ok(task) => self.tasks.push((task, Asked::Release { space, address })),
                    Err(BeginError::Held) => assert!(!self.tasks.is_empty()),
                    // A share ends before its owner's range.
                    Err(BeginError::Refused(error)) => {
                        let (_, owner) = self.ranges[&(space, address)];
                        assert!(owner.is_some() && !self.tasks.is_empty(), "{error}");
                    }
                }
            }
            Step::Share { which, with, at, permissions } if !self.is_ending(with) => {
                let Some(owner) = self.which(which, |_, of| of.is_none()) else { return };
                if self.is_ending(owner.0) {
                    return;
                }
                let permissions = Permissions::from_bits(permissions).expect("two bits");
                let owned = (SpaceId(owner.0), owner.1);
                match Task::share(&mut self.map, owned, SpaceId(with), at, permissions) {
                    Ok(task) => {
                        let had_one = self
                            .ranges
                            .iter()
                            .any(|(at, (_, of))| at.0 == with && *of == Some(owner));
                        let asked = Asked::Share { owner, with, permissions, had_one };
                        self.tasks.push((task, asked));
                    }
                    Err(BeginError::Held) => assert!(!self.tasks.is_empty()),
                    Err(BeginError::Refused(_)) => {}
                }
            }
            Step::End { space } if !self.is_ending(space) => {
                let touching = self.tasks.iter_mut().filter(|(_, asked)| asked.touches(space));
                touching.for_each(|(task, _)| task.cancel());
                self.tasks.push((Task::end(SpaceId(space)), Asked::End { space }));
            }
            _ => {}
        }
    }

    /// Runs a slice of a task, and updates the model when the task ends.
    fn go(&mut self, which: usize, most: u64) {
        if self.tasks.is_empty() {
            return;
        }
        let at = which % self.tasks.len();
        let before = self.map.counters().slow_steps;
        let mut steps = Steps::new(most);
        let stepped = self.tasks[at].0.step(&mut self.map, &mut steps, &mut |_, _, _| {});
        let did = self.map.counters().slow_steps - before;
        assert!(did <= most + OVER, "{did} steps of work in a slice of {most}");
        let Poll::Ready(ended) = stepped else { return };
        let (_, asked) = self.tasks.swap_remove(at);
        let Ok(ended) = ended else {
            assert!(matches!(asked, Asked::Allocate { .. } | Asked::Share { .. }));
            return;
        };
        match asked {
            Asked::Allocate { space } => {
                let pages = self.map.owned_pages(SpaceId(space), ended.address);
                let range = (pages.expect("it was allocated"), None);
                // An earlier share, of a range that is still being released, may have been there.
                let before = self.ranges.insert((space, ended.address), range);
                assert!(before.is_none_or(|(_, owner)| owner.is_some() && !self.tasks.is_empty()));
            }
            Asked::Release { space, address } => {
                self.ranges
                    .retain(|&at, (_, of)| at != (space, address) && *of != Some((space, address)));
            }
            Asked::Share { owner, with, permissions, had_one } => {
                if with == owner.0 || (permissions == Permissions::NONE && !had_one) {
                    return;
                }
                self.ranges.retain(|at, (_, of)| at.0 != with || *of != Some(owner));
                if permissions != Permissions::NONE {
                    let pages = self.ranges.get(&owner).expect("it is held meanwhile").0;
                    self.ranges.insert((with, ended.address), (pages, Some(owner)));
                }
            }
            Asked::End { space } => {
                self.ranges
                    .retain(|at, (_, of)| at.0 != space && of.is_none_or(|owner| owner.0 != space));
                assert!(self.map.is_empty(SpaceId(space)));
            }
        }
    }

    /// A process can touch what it has, or what a task for it is giving or taking.
    fn touch(&mut self, space: u16, page: u64) {
        let address = page * PAGE;
        let found = self.map.translate(SpaceId(space), address, Permissions::READ);
        let has = self.ranges.iter().any(|(&(of, at), &(pages, _))| {
            of == space && (at..at + pages * PAGE).contains(&address)
        });
        let under_way = self.tasks.iter().any(|(_, asked)| match *asked {
            // The shares of a range end with it.
            Asked::Release { .. } | Asked::End { .. } => true,
            ref asked => asked.touches(space),
        });
        match found {
            Ok(_) => assert!(has || under_way, "space {space} has page {page} of nobody"),
            Err(Missed::Unmapped) => assert!(!has || under_way, "page {page} of {space} is lost"),
            Err(Missed::Permission | Missed::Dry) => {}
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Go { which, steps } => self.go(which, steps),
            Step::Cancel { which } if !self.tasks.is_empty() => {
                let at = which % self.tasks.len();
                self.tasks[at].0.cancel();
            }
            Step::Touch { space, page } => self.touch(space, page),
            Step::Refill => self.map.refill(u64::MAX, |_, _, _| {}),
            _ => self.begin(step),
        }
        let checked = self.map.check(self.tasks.is_empty());
        checked.unwrap_or_else(|problem| panic!("{problem}\nafter {step:?}"));
    }

    /// Ends all tasks in turn: none waits for ever.
    fn settle(&mut self) {
        for turn in 0..100_000 {
            if self.tasks.is_empty() {
                return;
            }
            self.go(turn, 8);
        }
        panic!("{:?} never end", self.tasks);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_page_is_lost_or_had_twice_whatever_is_under_way(
        physical_pages in 1..200_u64,
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut bench = Bench::new(physical_pages);
        steps.iter().for_each(|step| bench.step(step));
        bench.settle();
        bench.map.check(true).expect("all is settled");
        for (&(space, address), &(pages, owner)) in &bench.ranges {
            let owned = bench.map.owned_pages(SpaceId(space), address);
            prop_assert_eq!(owned, owner.is_none().then_some(pages));
        }
        let own: u64 = bench.ranges.values().filter(|of| of.1.is_none()).map(|of| of.0).sum();
        prop_assert_eq!(bench.map.free_bytes(), (bench.physical_pages - own) * PAGE);
        for space in 0..SPACES {
            bench.begin(&Step::End { space });
        }
        bench.settle();
        bench.map.check(true).expect("all have ended");
        prop_assert_eq!((bench.map.table_entries(), bench.map.used_pages()), (0, 0));
        prop_assert_eq!(bench.map.free_bytes(), bench.physical_pages * PAGE);
    }
}

/// Runs a task to its end. Returns its slices, the maximum work of a slice, and its result.
fn slices(map: &mut AddressMap, mut task: Task, most: u64) -> (u64, u64, Result<u64, Failed>) {
    let (mut count, mut longest) = (0, 0);
    loop {
        let before = map.counters().slow_steps;
        let stepped = task.step(map, &mut Steps::new(most), &mut |_, _, _| {});
        count += 1;
        longest = longest.max(map.counters().slow_steps - before);
        if let Poll::Ready(ended) = stepped {
            return (count, longest, ended.map(|ended| ended.address));
        }
    }
}

/// Counted work, from 2^10 to 2^22 pages; the pages have no bytes.
#[test]
fn a_slice_does_the_same_work_however_large_the_request_is() {
    const MOST: u64 = 1024;
    let space = SpaceId(1);
    for bits in [10, 14, 18, 22] {
        let pages = 1_u64 << bits;
        // The memory is large enough that the whole range can be shared.
        let mut map = map(2 * pages);
        let all = Task::allocate(&mut map, (0, space), pages * PAGE, None, RW).expect("it is free");
        let (count, longest, address) = slices(&mut map, all, MOST);
        assert!(longest <= MOST + OVER, "allocate 2^{bits}: {longest}");
        assert!(count <= 3 + pages * 2 / MOST, "allocate 2^{bits}: {count} slices");
        let address = address.expect("there is room");
        let shared = Task::share(&mut map, (space, address), SpaceId(2), None, RW);
        let shared = shared.expect("half of memory may be shared");
        let (_, longest, done) = slices(&mut map, shared, MOST);
        assert!(longest <= MOST + OVER && done.is_ok(), "share 2^{bits}: {longest}, {done:?}");
        let release = Task::release(&mut map, space, address).expect("it is there");
        let (_, longest, done) = slices(&mut map, release, MOST);
        assert!(longest <= MOST + OVER && done.is_ok(), "release 2^{bits}: {longest}");
        map.check(true).expect("all is free");
        assert_eq!(map.table_entries(), 0);
    }
}

/// 64 GiB of small pages, without the memory itself. The maximum work between two datagrams is a
/// slice's, for each request that touches all pages.
#[test]
fn no_request_of_2_24_pages_does_more_than_a_slice_between_two_datagrams() {
    const MOST: u64 = 1024;
    const PAGES: u64 = 1 << 24;
    let mut map = map(PAGES);
    let [owner, friend] = [1, 2].map(SpaceId);
    let mut ask = |what: &str, begin: &dyn Fn(&mut AddressMap) -> Task, slices_min: u64| {
        let task = begin(&mut map);
        let (count, longest, done) = slices(&mut map, task, MOST);
        assert!(longest <= MOST + OVER, "{what}: {longest} steps at once");
        assert!(count >= slices_min, "{what}: {count} slices are too few to be all of it");
        done
    };
    let allocate = |pages: u64| {
        move |map: &mut AddressMap| {
            let whose = (0, owner);
            Task::allocate(map, whose, pages * PAGE, None, RW).expect("it is free")
        }
    };
    let by_32 = PAGES / 32 / MOST;
    let address = ask("allocate", &allocate(PAGES), by_32).expect("there is room");
    let release = |map: &mut AddressMap| Task::release(map, owner, address).expect("it is there");
    ask("release", &release, by_32).expect("it is the owner's");
    let half = ask("allocate half", &allocate(PAGES / 2), by_32 / 2).expect("there is room");
    let share = |map: &mut AddressMap| {
        Task::share(map, (owner, half), friend, None, RW).expect("it is the owner's")
    };
    // Each page then has its entry, in both processes.
    ask("share", &share, PAGES / 2 / MOST).expect("half of memory may be shared");
    ask("end", &|_| Task::end(owner), PAGES / 2 / MOST).expect("it ends");
    ask("end of the other", &|_| Task::end(friend), 1).expect("it ends");
    assert_eq!((map.table_entries(), map.free_bytes()), (0, PAGES * PAGE));
}

/// This case stopped a node for minutes: half of a memory of small pages, with three eighths in
/// use.
#[test]
fn a_long_range_fits_beside_others_at_the_first_try() {
    let pages = 1_u64 << 18;
    for parts in [1, 16, 64] {
        let mut map = map(pages);
        for part in 0..parts {
            let bytes = pages * 3 / 8 / parts * PAGE;
            map.allocate(SpaceId(part as u16 % 8), bytes, None, RW).expect("it is free");
        }
        let before = map.counters().slow_steps;
        let half = map.allocate(SpaceId(9), pages / 2 * PAGE, None, RW).expect("it is free");
        let work = map.counters().slow_steps - before;
        assert!(half.retries <= 8, "{parts} parts: {} tries", half.retries);
        assert!(work <= 2 * pages, "{parts} parts: {work} steps");
        map.check(true).expect("all is well");
    }
}

/// A full bucket is in the way of each range: the request is refused with bounded work, and takes
/// nothing.
#[test]
fn what_cannot_fit_is_refused_early_and_takes_nothing() {
    let pages = 1_u64 << 12;
    let mut map = map(pages);
    // Allocates single pages until one of the 512 buckets is full; pages of other buckets are
    // released.
    let mut taken = Vec::new();
    let full = loop {
        let at = (taken.len() as u64 + 1) * 1024 * PAGE;
        match map.allocate(SpaceId(0), PAGE, Some(at), RW) {
            Ok(_) => taken.push(at),
            Err(AllocateError::Overflows { page }) => break page,
            Err(error) => panic!("{error}"),
        }
    };
    for at in taken {
        map.release(SpaceId(0), at).expect("it is there");
        if map.allocate(SpaceId(0), PAGE, Some(full), RW).is_ok() {
            map.release(SpaceId(0), full).expect("it is there");
            map.allocate(SpaceId(0), PAGE, Some(at), RW).expect("it was there before");
        }
    }
    assert_eq!(map.table_entries(), 16, "a bucket");
    let (free, before) = (map.free_bytes(), map.counters().slow_steps);
    let refused = map.allocate(SpaceId(1), 1024 * PAGE, None, RW);
    assert!(matches!(refused, Err(AllocateError::NoRange { .. })), "{refused:?}");
    let work = map.counters().slow_steps - before;
    assert!(work <= 1 << 20, "{work} steps");
    assert_eq!(map.free_bytes(), free);
    map.check(true).expect("nothing is left behind");
    // A range that is short enough to fit between is still served.
    map.allocate(SpaceId(1), 100 * PAGE, None, RW).expect("it fits beside the bucket");
}
