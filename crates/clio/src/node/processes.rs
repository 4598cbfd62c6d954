//! Processes, their tenants and their leases, in a table of fixed size.

use std::collections::VecDeque;

use ethermem_units::Ns;
use ethermem_wire::clio::ProcessId;

use super::execute::Asker;
use super::process_index::ProcessIndex;
use super::tenants::Tenant;
use crate::memory::{HashKey, SpaceId};

/// A place in the table.
#[derive(Clone, Copy, Debug)]
struct ProcessSlot {
    /// The number of its process, or 0.
    process: u32,
    tenant: Tenant,
    seen: Ns,
    made: Ns,
    life: Life,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It is alive until its lease is over.
    Lives,
    /// It is dead, and still has its memory.
    Dead,
    /// Its memory is being taken back.
    Ending,
}

/// The table of processes.
///
/// A tenant's processes have the numbers 1, 2, 3 and so on, so a number reveals nothing of other
/// tenants. No number is reused before all 2^32 were given.
pub(super) struct Processes {
    places: Box<[ProcessSlot]>,
    index: ProcessIndex,
    /// By tenant: the number given last.
    last: Box<[u32]>,
    /// Free places, the one free for the longest time first.
    free: VecDeque<u16>,
    lease: Ns,
    /// The place at which [`Processes::dead`] continues.
    swept: usize,
    /// Up to and including this time, no process is dead and still has its memory. Leases only get
    /// longer, and one that begins later ends later.
    none_dead_until: Option<Ns>,
}

/// A process that is dead and still has its memory.
pub(super) struct Dead {
    pub(super) caller: Asker,
    /// True if its lease was over; false if an operator, or an operation's error, ended it.
    pub(super) has_lapsed: bool,
}

/// The facts of a process that an operator may see.
pub(super) struct About {
    pub(super) process: ProcessId,
    pub(super) tenant: Tenant,
    pub(super) age: Ns,
    pub(super) unheard: Option<Ns>,
    pub(super) lease_left: Option<Ns>,
    pub(super) lives: bool,
}

impl ProcessSlot {
    fn lives(&self, now: Ns, lease: Ns) -> bool {
        self.life == Life::Lives && now <= self.seen.saturating_add(lease)
    }
}

impl Processes {
    pub(super) fn new(most: u16, lease: Ns, tenants: usize, key: HashKey) -> Processes {
        let empty = ProcessSlot {
            process: 0,
            tenant: Tenant::FIRST,
            seen: Ns::ZERO,
            made: Ns::ZERO,
            life: Life::Lives,
        };
        Processes {
            places: vec![empty; most.into()].into_boxed_slice(),
            index: ProcessIndex::new(most, key),
            last: vec![0; tenants].into_boxed_slice(),
            free: (0..most).collect(),
            lease,
            swept: 0,
            none_dead_until: None,
        }
    }

    /// Creates a process, if there is a place.
    pub(super) fn create(&mut self, now: Ns, tenant: Tenant) -> Option<(ProcessId, SpaceId)> {
        let at = self.free.pop_front()?;
        let last = &mut self.last[usize::from(tenant.index())];
        let process = loop {
            *last = last.checked_add(1).unwrap_or(1);
            if self.index.find(tenant, ProcessId(*last)).is_none() {
                break ProcessId(*last);
            }
        };
        let space = SpaceId(at);
        self.places[usize::from(at)] =
            ProcessSlot { process: process.0, tenant, seen: now, made: now, life: Life::Lives };
        self.index.insert(tenant, process, space);
        Some((process, space))
    }

    /// Removes the lease of a process of the node's own, which has no client.
    pub(super) fn keep(&mut self, space: SpaceId) {
        self.places[usize::from(space.0)].seen = Ns(u64::MAX);
    }

    /// The address space of a live process of the tenant; records that its client was heard.
    pub(super) fn heard(&mut self, now: Ns, process: ProcessId, tenant: Tenant) -> Option<SpaceId> {
        let space = self.alive(now, process, tenant)?;
        let seen = &mut self.places[usize::from(space.0)].seen;
        *seen = now.max(*seen);
        Some(space)
    }

    /// The address space of a live process of the tenant.
    pub(super) fn alive(&self, now: Ns, process: ProcessId, tenant: Tenant) -> Option<SpaceId> {
        let space = self.index.find(tenant, process)?;
        self.places[usize::from(space.0)].lives(now, self.lease).then_some(space)
    }

    /// Marks a process as dead from now on, whatever its lease says.
    pub(super) fn kill(&mut self, space: SpaceId) {
        let place = &mut self.places[usize::from(space.0)];
        if place.life == Life::Lives {
            place.life = Life::Dead;
            self.none_dead_until = None;
        }
    }

    /// Marks a process as dead, with its memory being taken back.
    pub(super) fn begin_end(&mut self, space: SpaceId) {
        self.places[usize::from(space.0)].life = Life::Ending;
    }

    /// Removes the process in a place. Its memory must be released.
    pub(super) fn remove(&mut self, space: SpaceId) {
        let place = &mut self.places[usize::from(space.0)];
        self.index.remove(place.tenant, ProcessId(place.process));
        place.process = 0;
        self.free.push_back(space.0);
    }

    /// The next process that is dead and still has its memory, among this many places. After a
    /// look at all of them, it looks again when the first lease may be over.
    pub(super) fn dead(&mut self, now: Ns, places: usize) -> Option<Dead> {
        if self.none_dead_until.is_some_and(|until| now <= until) {
            return None;
        }
        self.none_dead_until = None;
        for _ in 0..places.min(self.places.len()) {
            let at = self.swept;
            self.swept = (at + 1) % self.places.len();
            let place = self.places[at];
            if place.process != 0 && place.life != Life::Ending && !place.lives(now, self.lease) {
                let caller = (SpaceId(at as u16), ProcessId(place.process), place.tenant);
                return Some(Dead { caller, has_lapsed: place.life == Life::Lives });
            }
        }
        if places >= self.places.len() {
            self.none_dead_until = Some(self.first_end(now));
        }
        None
    }

    /// When the first lease of those that live may be over, or that of a process made now.
    fn first_end(&self, now: Ns) -> Ns {
        let living = self.places.iter().filter(|place| place.process != 0);
        let living = living.filter(|place| place.life == Life::Lives);
        let first = living.map(|place| place.seen).min().unwrap_or(now);
        first.min(now).saturating_add(self.lease)
    }

    /// Number of places.
    pub(super) fn places(&self) -> u16 {
        self.places.len() as u16
    }

    /// The facts of the process in a place, if there is one.
    pub(super) fn about(&self, now: Ns, place: u16) -> Option<About> {
        let found = self.places.get(usize::from(place)).filter(|found| found.process != 0)?;
        let has_client = found.seen != Ns(u64::MAX);
        let leased = has_client && self.lease != Ns(u64::MAX);
        let ends = found.seen.saturating_add(self.lease);
        Some(About {
            process: ProcessId(found.process),
            tenant: found.tenant,
            age: now.saturating_sub(found.made),
            unheard: has_client.then(|| now.saturating_sub(found.seen)),
            lease_left: leased.then(|| ends.saturating_sub(now)),
            lives: found.lives(now, self.lease),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Size in bytes of what a request on the fast path uses.
    pub(super) fn fast_path_bytes(&self) -> usize {
        size_of_val(&*self.places) + self.index.bytes() + size_of_val(&*self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Tenant = Tenant::FIRST;

    fn processes(most: u16) -> Processes {
        Processes::new(most, Ns(100), 2, HashKey([3, 4]))
    }

    #[test]
    fn a_place_is_used_again_under_another_number() {
        let mut processes = processes(2);
        let now = Ns(5);
        let (one, space) = processes.create(now, T).expect("two places");
        let (two, _) = processes.create(now, T).expect("two places");
        assert_eq!(processes.create(now, T), None);
        assert_eq!(processes.alive(now, one, T), Some(space));
        processes.remove(space);
        let (three, again) = processes.create(now, T).expect("a place is free");
        assert_eq!((processes.alive(now, three, T), again), (Some(space), space));
        assert_eq!((processes.alive(now, one, T), processes.count()), (None, 2));
        assert_eq!([one, two, three], [1, 2, 3].map(ProcessId));
        assert_eq!(processes.alive(now, ProcessId(0), T), None);
        assert_eq!(processes.alive(now, ProcessId(u32::MAX), T), None);
    }

    #[test]
    fn the_dead_are_looked_for_when_a_lease_may_be_over() {
        let mut processes = processes(3);
        let dead = |processes: &mut Processes, now| {
            processes.dead(Ns(now), usize::MAX).map(|dead| (dead.caller.1, dead.has_lapsed))
        };
        assert_eq!(dead(&mut processes, 7), None);
        assert_eq!(processes.none_dead_until, Some(Ns(107)));
        let (one, first) = processes.create(Ns(10), T).expect("three places");
        let (two, _) = processes.create(Ns(20), T).expect("three places");
        let (own, kept) = processes.create(Ns(20), T).expect("three places");
        processes.keep(kept);
        // The bound of an empty table is over before any lease of what came later.
        assert_eq!(dead(&mut processes, 108), None);
        assert_eq!(processes.none_dead_until, Some(Ns(110)));
        processes.heard(Ns(109), one, T).expect("it lives");
        // The second is over at 120, which the bound of 110 must not hide.
        assert_eq!(dead(&mut processes, 111), None);
        assert_eq!(processes.none_dead_until, Some(Ns(120)));
        assert_eq!(dead(&mut processes, 120), None);
        assert_eq!(dead(&mut processes, 121), Some((two, true)));
        let space = processes.index.find(T, two).expect("it is there");
        processes.begin_end(space);
        assert_eq!(dead(&mut processes, 122), None);
        assert_eq!(processes.none_dead_until, Some(Ns(209)));
        // What is killed has no lease to wait for.
        processes.kill(first);
        assert_eq!(dead(&mut processes, 123), Some((one, false)));
        processes.kill(kept);
        processes.begin_end(first);
        assert_eq!(dead(&mut processes, 124), Some((own, false)));
    }

    #[test]
    fn a_look_at_some_places_says_nothing_of_the_others() {
        let mut processes = processes(3);
        let (one, _) = processes.create(Ns(0), T).expect("three places");
        assert!(processes.dead(Ns(101), 0).is_none());
        processes.swept = 1;
        assert!(processes.dead(Ns(101), 2).is_none());
        assert_eq!(processes.none_dead_until, None);
        let found = processes.dead(Ns(101), 1).expect("its place is looked at");
        assert_eq!(found.caller.1, one);
    }

    #[test]
    fn numbers_go_around_and_past_those_that_live() {
        let mut processes = processes(3);
        let first = processes.create(Ns(0), T).expect("three places");
        processes.last[0] = u32::MAX - 1;
        let last = processes.create(Ns(0), T).expect("three places");
        let next = processes.create(Ns(0), T).expect("three places");
        assert_eq!([first.0, last.0, next.0], [1, u32::MAX, 2].map(ProcessId));
    }

    #[test]
    fn a_lease_is_kept_alive_by_being_heard_and_never_comes_back() {
        let mut processes = processes(3);
        let (process, space) = processes.create(Ns(0), T).expect("three places");
        assert_eq!(processes.heard(Ns(100), process, T), Some(space));
        let mut dead = |now| processes.dead(Ns(now), 3).map(|dead| dead.caller.0);
        assert_eq!((dead(200), dead(201)), (None, Some(space)));
        processes.begin_end(space);
        assert_eq!(
            processes.dead(Ns(201), 3).map(|dead| dead.caller.0),
            None,
            "it is ending already"
        );
        assert_eq!(processes.heard(Ns(201), process, T), None);
        assert_eq!(processes.heard(Ns(50), process, T), None, "whatever the clock says");
    }
}
