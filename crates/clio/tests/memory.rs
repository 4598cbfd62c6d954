//! Virtual memory against a model with a plain map for each process. Also, what a client could do
//! to a hash table whose key it does not know.

use std::collections::BTreeMap;

use ethermem_clio::memory::{
    AccessError, AddressMap, AllocateError, BUCKET_SLOTS, HashKey, MemoryConfig, MemoryConfigError,
    PageSize, ReleaseError, ShareError, SpaceId, VirtualMemory,
};
use ethermem_units::Bytes;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::Permissions;
use proptest::prelude::*;

const KEY: HashKey = HashKey([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
const PAGE: u64 = 4096;

fn config(pages: u64) -> MemoryConfig {
    let memory = Bytes(pages * PAGE);
    MemoryConfig { memory, page: PageSize::Kib4, tlb_entries: 4, fault_buffer_pages: 2 }
}

fn memory(pages: u64) -> VirtualMemory<Vec<u8>> {
    let bytes = vec![0; (pages * PAGE) as usize];
    VirtualMemory::new(&config(pages), KEY, bytes).expect("a memory of whole pages")
}

/// A range of a process in the model; the owner has the bytes, by its space and address.
#[derive(Clone, Debug)]
struct Owned {
    bytes: Vec<u8>,
    permissions: Permissions,
    shares: BTreeMap<u16, (u64, Permissions)>,
}

#[derive(Default)]
struct Model {
    owned: BTreeMap<(u16, u64), Owned>,
}

impl Model {
    /// Owner, offset and permissions of all bytes of an access; `None` if some are unmapped. Ranges
    /// never touch, so an access is within one.
    fn find(&self, space: u16, address: u64, bytes: u64) -> Option<((u16, u64), u64, Permissions)> {
        self.owned.iter().find_map(|(&(owner, at), owned)| {
            let here = if owner == space {
                Some((at, owned.permissions))
            } else {
                owned.shares.get(&space).copied()
            };
            let (first, permissions) = here?;
            let offset = address.checked_sub(first)?;
            let within = offset + bytes <= owned.bytes.len() as u64;
            within.then_some(((owner, at), offset, permissions))
        })
    }

    fn bytes(&mut self, key: (u16, u64), offset: u64, bytes: u64) -> &mut [u8] {
        let owned = self.owned.get_mut(&key).expect("it was found");
        &mut owned.bytes[offset as usize..(offset + bytes) as usize]
    }

    fn pages(&self) -> u64 {
        self.owned.values().map(|owned| owned.bytes.len() as u64 / PAGE).sum()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { space: u16, bytes: u64, at: Option<u64>, permissions: u8 },
    Release { space: u16, which: usize },
    Share { which: usize, with: u16, at: Option<u64>, permissions: u8 },
    End { space: u16 },
    Read { space: u16, which: usize, offset: u64, bytes: u64 },
    Write { space: u16, which: usize, offset: u64, bytes: u64, octet: u8 },
    Add { space: u16, which: usize, offset: u64 },
    Refill { budget_bytes: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let space = 0..3_u16;
    let at = prop::option::weighted(0.3, (1..24_u64).prop_map(|page| page * PAGE));
    let offset = prop_oneof![0..64_u64, 4000..4200_u64, 0..20_000_u64];
    let bytes = prop_oneof![1..64_u64, 1..10_000_u64];
    prop_oneof![
        3 => (space.clone(), 1..20_000_u64, at.clone(), 0..4_u8).prop_map(
            |(space, bytes, at, permissions)| Step::Allocate { space, bytes, at, permissions }),
        1 => (space.clone(), any::<usize>())
            .prop_map(|(space, which)| Step::Release { space, which }),
        2 => (any::<usize>(), space.clone(), at, 0..4_u8).prop_map(
            |(which, with, at, permissions)| Step::Share { which, with, at, permissions }),
        1 => space.clone().prop_map(|space| Step::End { space }),
        4 => (space.clone(), any::<usize>(), offset.clone(), bytes.clone()).prop_map(
            |(space, which, offset, bytes)| Step::Read { space, which, offset, bytes }),
        5 => (space.clone(), any::<usize>(), offset.clone(), bytes, any::<u8>()).prop_map(
            |(space, which, offset, bytes, octet)| {
                Step::Write { space, which, offset, bytes, octet }
            }),
        2 => (space, any::<usize>(), offset).prop_map(|(space, which, offset)| {
            Step::Add { space, which, offset: offset & !7 }
        }),
        2 => (0..9000_u64).prop_map(|budget_bytes| Step::Refill { budget_bytes }),
    ]
}

struct Pair {
    memory: VirtualMemory<Vec<u8>>,
    model: Model,
    physical_pages: u64,
}

impl Pair {
    fn new(physical_pages: u64) -> Pair {
        Pair { memory: memory(physical_pages), model: Model::default(), physical_pages }
    }

    /// An address that is mapped in some process.
    fn address(&self, which: usize) -> Option<(u16, u64)> {
        let count = self.model.owned.len();
        (count > 0).then(|| *self.model.owned.keys().nth(which % count).expect("below the count"))
    }

    fn allocate(&mut self, space: u16, bytes: u64, at: Option<u64>, permissions: Permissions) {
        let pages = bytes.div_ceil(PAGE);
        let free = self.physical_pages - self.model.pages();
        let done = self.memory.map_mut().allocate(SpaceId(space), bytes, at, permissions);
        let address = match done {
            Ok(allocated) => allocated.address,
            Err(AllocateError::Full { free: said }) => {
                assert!(pages > free && said == free * PAGE, "{pages} pages, {free} are free");
                return;
            }
            // A small table has few buckets, so that an overflow happens.
            Err(AllocateError::Overflows { .. } | AllocateError::Taken { .. }) => {
                assert!(at.is_some());
                return;
            }
            // This happens where shares fill the table over half; they take places, too. The table
            // has two places for each page of the memory.
            Err(error @ AllocateError::NoRange { .. }) => {
                let places = self.memory.map().table_entries() + pages;
                assert!(at.is_none() && places > self.physical_pages, "{error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert!(at.is_none_or(|at| at == address) && pages <= free);
        let (first, end) = (address, address + pages * PAGE);
        for other in (first..end).step_by(PAGE as usize) {
            assert_eq!(self.model.find(space, other, 1), None, "{other:#x} was given twice");
        }
        let bytes = vec![0; (pages * PAGE) as usize];
        let owned = Owned { bytes, permissions, shares: BTreeMap::new() };
        self.model.owned.insert((space, address), owned);
    }

    fn share(&mut self, which: usize, with: u16, at: Option<u64>, permissions: Permissions) {
        let Some((owner, address)) = self.address(which) else {
            return;
        };
        let owned = (SpaceId(owner), address);
        let done = self.memory.share(owned, SpaceId(with), at, permissions);
        let model = self.model.owned.get_mut(&(owner, address)).expect("it is there");
        if let Err(ShareError::Permission { .. }) = done {
            assert!(!model.permissions.allow(permissions));
            return;
        }
        assert!(model.permissions.allow(permissions));
        if with == owner {
            assert_eq!(done, Ok(address));
            return;
        }
        if permissions == Permissions::NONE {
            model.shares.remove(&with);
            assert_eq!(done, Ok(address));
            return;
        }
        match done {
            Ok(there) => {
                assert_eq!(there, at.unwrap_or(address));
                model.shares.insert(with, (there, permissions));
            }
            // The share is unchanged.
            Err(ShareError::Address(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn end(&mut self, space: u16) {
        self.memory.map_mut().release_all(SpaceId(space));
        self.model.owned.retain(|&(owner, _), _| owner != space);
        self.model.owned.values_mut().for_each(|owned| {
            owned.shares.remove(&space);
        });
        assert!(self.memory.map().is_empty(SpaceId(space)));
    }

    /// The model's result of an access.
    fn expected(
        &self,
        (space, address, bytes): (u16, u64, u64),
        needed: Permissions,
    ) -> Result<((u16, u64), u64), AccessError> {
        match self.model.find(space, address, bytes) {
            Some((key, offset, permissions)) if permissions.allow(needed) => Ok((key, offset)),
            Some(_) => Err(AccessError::Permission),
            // The first part of the access may be mapped, without permission.
            None => match self.model.find(space, address, 1) {
                Some((_, _, permissions)) if !permissions.allow(needed) => {
                    Err(AccessError::Permission)
                }
                _ => Err(AccessError::Unmapped),
            },
        }
    }

    /// Retries with pages in the buffer: it is never empty for good.
    fn retried<T>(
        &mut self,
        mut access: impl FnMut(&mut VirtualMemory<Vec<u8>>) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        for _ in 0..8 {
            match access(&mut self.memory) {
                Err(AccessError::Dry) => self.memory.refill(u64::MAX),
                other => return other,
            }
        }
        panic!("the buffer stays dry");
    }

    fn access(&mut self, step: &Step) {
        match *step {
            Step::Read { space, which, offset, bytes } => {
                let Some((_, at)) = self.address(which) else { return };
                let mut found = vec![0xee; bytes as usize];
                let read = self.retried(|m| m.read(SpaceId(space), at + offset, &mut found));
                let expected = self.expected((space, at + offset, bytes), Permissions::READ);
                assert_eq!(read, expected.map(|_| ()));
                if let Ok((key, offset)) = expected {
                    assert_eq!(found, self.model.bytes(key, offset, bytes));
                }
            }
            Step::Write { space, which, offset, bytes, octet } => {
                let Some((_, at)) = self.address(which) else { return };
                let data = vec![octet; bytes as usize];
                let written = self.retried(|m| m.write(SpaceId(space), at + offset, &data));
                let expected = self.expected((space, at + offset, bytes), Permissions::WRITE);
                assert_eq!(written, expected.map(|_| ()));
                if let Ok((key, offset)) = expected {
                    self.model.bytes(key, offset, bytes).fill(octet);
                }
            }
            Step::Add { space, which, offset } => {
                let Some((_, at)) = self.address(which) else { return };
                let add = RmwOperation::FetchAndAdd(0x0101);
                let before = self.retried(|m| m.modify(SpaceId(space), at + offset, add));
                let expected = self.expected((space, at + offset, 8), Permissions::READ_WRITE);
                let word = expected.map(|(key, offset)| {
                    let word = self.model.bytes(key, offset, 8);
                    let before = u64::from_le_bytes((&*word).try_into().expect("8 B"));
                    word.copy_from_slice(&add.apply(before).to_le_bytes());
                    before
                });
                assert_eq!(before, word);
            }
            _ => unreachable!("an access"),
        }
    }

    fn step(&mut self, step: &Step) {
        let permissions = |bits| Permissions::from_bits(bits).expect("two bits");
        match *step {
            Step::Allocate { space, bytes, at, permissions: bits } => {
                self.allocate(space, bytes, at, permissions(bits));
            }
            Step::Share { which, with, at, permissions: bits } => {
                self.share(which, with, at, permissions(bits));
            }
            Step::End { space } => self.end(space),
            Step::Release { space, which } => {
                let Some((owner, address)) = self.address(which) else { return };
                let done = self.memory.map_mut().release(SpaceId(space), address);
                if owner == space {
                    assert_eq!(done, Ok(()));
                    self.model.owned.remove(&(owner, address));
                } else {
                    // The process may have a share that begins there, or nothing.
                    let begins = |owned: &mut Owned| {
                        owned.shares.get(&space).is_some_and(|&(at, _)| at == address)
                    };
                    let own = self.model.owned.remove(&(space, address)).is_some();
                    let share = self
                        .model
                        .owned
                        .values_mut()
                        .find_map(|owned| begins(owned).then(|| owned.shares.remove(&space)));
                    let had = own || share.is_some();
                    assert_eq!(done, if had { Ok(()) } else { Err(ReleaseError { address }) });
                }
            }
            Step::Refill { budget_bytes } => self.memory.refill(budget_bytes),
            _ => self.access(step),
        }
        let map = self.memory.map();
        let shared: u64 = self
            .model
            .owned
            .values()
            .map(|owned| owned.shares.len() as u64 * (owned.bytes.len() as u64 / PAGE))
            .sum();
        assert_eq!(map.table_entries(), self.model.pages() + shared);
        assert!(map.used_pages() <= self.model.pages());
    }
}

proptest! {
    #[test]
    fn every_process_sees_a_memory_of_its_own(
        physical_pages in 1..24_u64,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut pair = Pair::new(physical_pages);
        steps.iter().for_each(|step| pair.step(step));
        for space in 0..3 {
            pair.end(space);
        }
        let map = pair.memory.map();
        prop_assert_eq!((map.table_entries(), map.used_pages()), (0, 0));
    }
}

#[test]
fn a_miss_costs_one_access_to_the_table_and_a_hit_none() {
    let mut memory = memory(64);
    let space = SpaceId(1);
    let at = memory.map_mut().allocate(space, 64 * PAGE, None, Permissions::READ_WRITE);
    let at = at.expect("all of it").address;
    // The TLB has four entries.
    for turn in 0..3 {
        for page in 0..64 {
            memory.refill(PAGE);
            let before = memory.map().counters();
            memory.write(space, at + page * PAGE, &[1]).expect("a page is ready");
            memory.read(space, at + page * PAGE, &mut [0]).expect("it is there");
            let after = memory.map().counters();
            assert_eq!(after.table_accesses - before.table_accesses, 1, "page {page}");
            assert_eq!(after.tlb_hits - before.tlb_hits, 1);
            assert_eq!(after.faults - before.faults, u64::from(turn == 0));
        }
    }
}

#[test]
fn what_is_freed_is_zero_before_it_is_seen_again() {
    let mut memory = memory(4);
    for turn in 0..8_u16 {
        let space = SpaceId(turn % 2);
        let allocated = memory.map_mut().allocate(space, 4 * PAGE, None, Permissions::READ_WRITE);
        let at = allocated.expect("all is free").address;
        for page in 0..4 {
            memory.refill(u64::MAX);
            let mut found = [0xee; PAGE as usize];
            memory.read(space, at + page * PAGE, &mut found).expect("a page is ready");
            assert!(found.iter().all(|&octet| octet == 0), "turn {turn}, page {page}");
            memory.write(space, at + page * PAGE, &[0xaa; PAGE as usize]).expect("it is there");
        }
        memory.map_mut().release(space, at).expect("it begins there");
    }
}

#[test]
fn a_dry_buffer_refuses_counts_and_recovers() {
    let mut memory = memory(8);
    let space = SpaceId(0);
    let at = memory.map_mut().allocate(space, 8 * PAGE, None, Permissions::READ_WRITE);
    let at = at.expect("all of it").address;
    let touch =
        |memory: &mut VirtualMemory<Vec<u8>>, page| memory.write(space, at + page * PAGE, &[1]);
    assert_eq!([touch(&mut memory, 0), touch(&mut memory, 1)], [Ok(()), Ok(())]);
    assert_eq!(touch(&mut memory, 2), Err(AccessError::Dry));
    assert_eq!(touch(&mut memory, 0), Ok(()), "what has memory is not held up");
    assert_eq!(memory.map().counters().dry_faults, 1);
    assert!(memory.map().wants_refill());
    memory.refill(0);
    assert_eq!(touch(&mut memory, 2), Ok(()), "fresh pages cost nothing");
}

/// A client that chooses its addresses can fill a bucket only by chance, and harms no other client
/// when it does.
#[test]
fn strides_of_a_hostile_client_do_not_meet_in_a_bucket() {
    const PAGES: u64 = 1 << 12;
    let buckets = 2 * PAGES / BUCKET_SLOTS as u64;
    for stride in [buckets, 64, 2 * buckets, 1 << 16, 1 << 20] {
        let mut map = AddressMap::new(&config(PAGES), KEY).expect("whole pages");
        let (mut taken, mut refused) = (0, 0);
        for index in 1..=PAGES / 2 {
            let at = index * stride * PAGE;
            match map.allocate(SpaceId(7), PAGE, Some(at), Permissions::READ) {
                Ok(_) => taken += 1,
                Err(AllocateError::Overflows { page }) => {
                    assert_eq!(page, at);
                    refused += 1;
                }
                // The highest address of all is beyond the end.
                Err(AllocateError::BadAddress { .. }) => assert!(at >> 48 != 0),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused * 1000 <= taken, "stride {stride}: {refused} refused, {taken} taken");
        let others = map.allocate(SpaceId(8), PAGES / 4 * PAGE, None, Permissions::READ);
        assert!(others.is_ok(), "stride {stride}: {others:?}");
    }
}

#[test]
fn a_bucket_that_is_full_refuses_with_the_page_and_leaves_all_as_it_was() {
    // There are two slots per page and 16 per bucket: eight pages are one bucket.
    let mut map = AddressMap::new(&config(8), KEY).expect("whole pages");
    let (one, other) = (SpaceId(1), SpaceId(2));
    let at = map.allocate(one, 8 * PAGE, None, Permissions::READ).expect("all of it").address;
    let zero = |_, _, _| {};
    for with in [2, 3] {
        let shared = map.share((one, at), SpaceId(with), None, Permissions::READ, zero);
        match with {
            2 => assert_eq!(shared, Ok(at)),
            _ => assert_eq!(shared, Err(AllocateError::Overflows { page: at }.into())),
        }
    }
    assert_eq!(map.table_entries(), 16);
    map.release(other, at).expect("a share ends");
    assert_eq!((map.table_entries(), map.is_empty(other)), (8, true));
}

#[test]
fn addresses_that_no_page_can_have_are_refused() {
    let mut map = AddressMap::new(&config(8), KEY).expect("whole pages");
    let mut at = |at| map.allocate(SpaceId(0), PAGE, Some(at), Permissions::READ);
    let bad = |at| Err(AllocateError::BadAddress { at, page_bytes: PAGE });
    for address in [0, 1, PAGE + 8, 1 << 48, u64::MAX, (1 << 48) - PAGE] {
        assert_eq!(at(address), bad(address));
    }
    assert!(at((1 << 48) - 2 * PAGE).is_ok());
    let mut memory = memory(1);
    let far = memory.read(SpaceId(0), u64::MAX - 3, &mut [0; 8]);
    assert_eq!(far, Err(AccessError::Unmapped));
    assert_eq!(memory.read(SpaceId(0), 1 << 48, &mut [0; 8]), Err(AccessError::Unmapped));
    assert_eq!(memory.read(SpaceId(0), PAGE, &mut []), Err(AccessError::Length));
}

#[test]
fn a_memory_that_cannot_be_is_refused() {
    let built = |change: fn(&mut MemoryConfig)| {
        let mut config = config(8);
        change(&mut config);
        AddressMap::new(&config, KEY).map(|_| ())
    };
    let (memory, page) = (Bytes(5000), PageSize::Kib4);
    assert_eq!(built(|c| c.memory = Bytes(5000)), Err(MemoryConfigError::Memory { memory, page }));
    assert_eq!(built(|c| c.tlb_entries = 2), Err(MemoryConfigError::TlbEntries(2)));
    assert_eq!(built(|c| c.fault_buffer_pages = 0), Err(MemoryConfigError::FaultBuffer));
    assert_eq!(built(|_| {}), Ok(()));
}

/// An owner that shares its memory with all its processes takes no addresses from others.
#[test]
fn all_of_memory_can_be_allocated_whatever_is_shared() {
    for (memory_pages, own, pages) in [(64, 8, 1), (1 << 9, 64, 10), (1 << 16, 8192, 100)] {
        let mut map = AddressMap::new(&config(memory_pages), KEY).expect("whole pages");
        let permissions = Permissions::READ_WRITE;
        let (owner, mut refused) = (SpaceId(0), 0);
        for _ in 0..own / 8 {
            let all = map.allocate(owner, 8 * PAGE, None, permissions).expect("there is room");
            for with in 1..32 {
                let owned = (owner, all.address);
                let shared = map.share(owned, SpaceId(with), None, permissions, |_, _, _| {});
                refused += u64::from(shared.is_err());
            }
        }
        assert!(refused > 0 && refused < own / 8 * 31, "{refused}");
        let mut most = 0;
        while map.free_bytes() >= pages * PAGE {
            let other = map.allocate(SpaceId(100), pages * PAGE, None, permissions);
            most = most.max(other.expect("its pages are free").retries);
        }
        assert!(most <= 200, "{most} ranges were tried in vain for one of {pages} pages");
    }
}
