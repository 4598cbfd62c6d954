//! Who is there: processes, their tenants and their leases, in a table of fixed size.

use std::collections::VecDeque;

use ethermem_units::Ns;
use ethermem_wire::clio::ProcessId;

use super::tenants::Tenant;
use crate::memory::SpaceId;

/// A place in the table.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The process that has it, or 0.
    process: u32,
    tenant: Tenant,
    seen: Ns,
}

/// See the module.
///
/// A process's number is its place below and, above, how many have had the place before: a place
/// that is used again has another number.
pub(super) struct Processes {
    places: Box<[Place]>,
    generations: Box<[u16]>,
    /// The place that was left longest ago first.
    free: VecDeque<u16>,
    lease: Ns,
    /// Where [`Processes::lapsed`] looks next.
    swept: usize,
}

const PLACE_BITS: u32 = 16;

fn place_of(process: ProcessId) -> usize {
    (process.0 & 0xffff) as usize
}

impl Processes {
    pub(super) fn new(most: u16, lease: Ns) -> Processes {
        let empty = Place { process: 0, tenant: Tenant::FIRST, seen: Ns::ZERO };
        Processes {
            places: vec![empty; most.into()].into_boxed_slice(),
            generations: vec![0; most.into()].into_boxed_slice(),
            free: (0..most).collect(),
            lease,
            swept: 0,
        }
    }

    /// A new process, if there is a place.
    pub(super) fn create(&mut self, now: Ns, tenant: Tenant) -> Option<ProcessId> {
        let at = self.free.pop_front()?;
        let generation = &mut self.generations[usize::from(at)];
        *generation = generation.checked_add(1).unwrap_or(1);
        let process = u32::from(*generation) << PLACE_BITS | u32::from(at);
        self.places[usize::from(at)] = Place { process, tenant, seen: now };
        Some(ProcessId(process))
    }

    /// A process of the node's own has no client, and no lease.
    pub(super) fn keep(&mut self, process: ProcessId) {
        self.places[place_of(process)].seen = Ns(u64::MAX);
    }

    /// The address space of a process that is alive and the tenant's; its client has been heard.
    pub(super) fn heard(&mut self, now: Ns, process: ProcessId, tenant: Tenant) -> Option<SpaceId> {
        let space = self.alive(now, process).filter(|space| self.tenant(*space) == tenant)?;
        let seen = &mut self.places[usize::from(space.0)].seen;
        *seen = now.max(*seen);
        Some(space)
    }

    /// The address space of a process that is alive.
    pub(super) fn alive(&self, now: Ns, process: ProcessId) -> Option<SpaceId> {
        let at = place_of(process);
        let place = self.places.get(at).filter(|place| place.process == process.0)?;
        let lives = process.0 != 0 && now <= place.seen.saturating_add(self.lease);
        lives.then_some(SpaceId(at as u16))
    }

    pub(super) fn tenant(&self, space: SpaceId) -> Tenant {
        self.places[usize::from(space.0)].tenant
    }

    /// The process in a place is no more. Its memory must be gone.
    pub(super) fn remove(&mut self, space: SpaceId) {
        self.places[usize::from(space.0)].process = 0;
        self.free.push_back(space.0);
    }

    /// The next process whose lease is over, among so many places.
    pub(super) fn lapsed(&mut self, now: Ns, places: usize) -> Option<SpaceId> {
        for _ in 0..places.min(self.places.len()) {
            let at = self.swept;
            self.swept = (at + 1) % self.places.len();
            let Place { process, seen, .. } = self.places[at];
            if process != 0 && now > seen.saturating_add(self.lease) {
                return Some(SpaceId(at as u16));
            }
        }
        None
    }

    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// What a request on the fast path uses.
    pub(super) fn fast_path_bytes(&self) -> usize {
        size_of_val(&*self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Tenant = Tenant::FIRST;

    #[test]
    fn a_place_is_used_again_under_another_number() {
        let mut processes = Processes::new(2, Ns(100));
        let now = Ns(5);
        let one = processes.create(now, T).expect("two places");
        let two = processes.create(now, T).expect("two places");
        assert_eq!(processes.create(now, T), None);
        let space = processes.alive(now, one).expect("it was made");
        processes.remove(space);
        let three = processes.create(now, T).expect("a place is free");
        assert_eq!(processes.alive(now, three), Some(space));
        assert_eq!((processes.alive(now, one), processes.count()), (None, 2));
        assert!(one != three && two != three);
        assert_eq!(processes.alive(now, ProcessId(0)), None);
        assert_eq!(processes.alive(now, ProcessId(u32::MAX)), None);
    }

    #[test]
    fn a_lease_is_kept_alive_by_being_heard_and_never_comes_back() {
        let mut processes = Processes::new(3, Ns(100));
        let process = processes.create(Ns(0), T).expect("three places");
        let space = processes.heard(Ns(100), process, T);
        assert!(space.is_some());
        assert_eq!((processes.lapsed(Ns(200), 3), processes.lapsed(Ns(201), 3)), (None, space));
        assert_eq!(processes.heard(Ns(201), process, T), None);
    }
}
