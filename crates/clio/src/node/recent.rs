//! Requests that were executed and must not be executed again, with their results.
//!
//! Clio's paper uses a ring (section 4.5). In a ring one unacknowledged result blocks all results
//! behind it until its time is over; here each result is forgotten at the end of its own time.

use std::collections::BTreeMap;

use ethermem_units::Ns;
use ethermem_wire::clio::{ClioOpcode, ClioStatus, ProcessId, Reply, RequestId, SenderId};

use super::config::RECENT_WAYS;
use super::tenants::Tenant;
use crate::memory::HashKey;

/// Maximum bytes of results kept beside the entries. When they are used up, further requests with
/// such results are refused.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Maximum places of a set that a tenant may fill with unacknowledged requests, where there are
/// other tenants.
const UNACKNOWLEDGED_MAX: usize = RECENT_WAYS / 2;

/// A result in a few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    OwnerDied,
    Word(u64),
    Address(u64),
    Created(ProcessId),
    Refused(ClioStatus, u64),
    /// The result of an operation of the extend path, which is kept beside the entries.
    Kept,
}

impl From<Outcome> for Reply<'static> {
    fn from(outcome: Outcome) -> Reply<'static> {
        match outcome {
            Outcome::Done => Reply::Done,
            Outcome::OwnerDied => Reply::OwnerDied,
            Outcome::Word(word) => Reply::Word(word),
            Outcome::Address(address) => Reply::Address(address),
            Outcome::Created(process) => Reply::Created(process),
            Outcome::Refused(status, detail) => Reply::Refused(status, detail),
            Outcome::Kept => unreachable!("results are answered by who keeps them"),
        }
    }
}

/// The name of a request; its copies have an equal opcode. A sender's id is not secret, and another
/// tenant may use it, so it means nothing without the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) tenant: Tenant,
    pub(super) sender: SenderId,
    pub(super) request: RequestId,
    pub(super) opcode: ClioOpcode,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tenant: Tenant,
    sender: SenderId,
    request: RequestId,
    opcode: ClioOpcode,
    /// The last time at which a copy of the request may arrive.
    until: Ns,
    outcome: Outcome,
}

impl Entry {
    /// True if the entry is of the request with this number.
    fn is_of(&self, tenant: Tenant, sender: SenderId, request: RequestId) -> bool {
        self.request == request && self.sender == sender && self.tenant == tenant
    }
}

/// The remembered requests: sets with [`RECENT_WAYS`] places each.
pub(super) struct Recent {
    sets: Box<[[Entry; RECENT_WAYS]]>,
    /// Results longer than an entry, by place.
    results: BTreeMap<(usize, usize), Vec<u8>>,
    results_bytes: usize,
    /// Bytes of each tenant's results.
    results_bytes_of: Box<[usize]>,
    key: HashKey,
    /// Maximum time until the last copy of an acknowledged request.
    lifetime_max: Ns,
}

/// A place for the result of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultSlot {
    set: usize,
    way: usize,
}

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    /// It was executed; its result is at the place.
    Executed(Outcome, ResultSlot),
    /// Its number was used by another request a moment ago, whose result does not answer this one.
    Reused,
    /// It was not executed; its result can be kept at the place.
    New(ResultSlot),
    /// It was not executed, and there is no place for its result.
    Full,
}

impl Recent {
    pub(super) fn new(requests: u32, key: HashKey, tenants: usize, lifetime_max: Ns) -> Recent {
        let none = Entry {
            tenant: Tenant::FIRST,
            sender: SenderId(0),
            request: RequestId::NONE,
            opcode: ClioOpcode::Hello,
            until: Ns::ZERO,
            outcome: Outcome::Done,
        };
        let sets = requests as usize / RECENT_WAYS;
        let (results, results_bytes) = (BTreeMap::new(), 0);
        Recent {
            results,
            results_bytes,
            sets: vec![[none; RECENT_WAYS]; sets].into_boxed_slice(),
            key,
            lifetime_max,
            results_bytes_of: vec![0; tenants].into_boxed_slice(),
        }
    }

    /// Looks up a request.
    ///
    /// Unacknowledged requests take places for a long time. So where there are other tenants, a
    /// tenant has at most some places of each set. The last free place of a set is reserved for a
    /// tenant without a place there.
    pub(super) fn find(&self, now: Ns, name: Name) -> Known {
        let Name { tenant, sender, request, opcode } = name;
        let set = self.set(tenant, sender, request);
        let (mut free, mut places) = (None, 0);
        let (mut own, mut unacknowledged) = (0, 0);
        let acknowledged = now.saturating_add(self.lifetime_max);
        for (way, entry) in self.sets[set].iter().enumerate() {
            let kept = entry.request != RequestId::NONE && now <= entry.until;
            if kept && entry.is_of(tenant, sender, request) {
                let is_copy = entry.opcode == opcode;
                let place = ResultSlot { set, way };
                return if is_copy { Known::Executed(entry.outcome, place) } else { Known::Reused };
            }
            if !kept {
                free = Some(ResultSlot { set, way });
                places += 1;
            } else if entry.tenant == tenant {
                own += 1;
                unacknowledged += usize::from(entry.until > acknowledged);
            }
        }
        if self.results_bytes_of.len() > 1
            && (unacknowledged >= UNACKNOWLEDGED_MAX || (own > 0 && places == 1))
        {
            return Known::Full;
        }
        free.map_or(Known::Full, Known::New)
    }

    /// Keeps the result of a request that was just found to be new.
    pub(super) fn keep(&mut self, place: ResultSlot, name: Name, until: Ns, outcome: Outcome) {
        let Name { tenant, sender, request, opcode } = name;
        let entry = &mut self.sets[place.set][place.way];
        let (had_result, before) = (entry.outcome == Outcome::Kept, entry.tenant);
        *entry = Entry { tenant, sender, request, opcode, until, outcome };
        if had_result {
            self.drop_result((place.set, place.way), before);
        }
    }

    /// Keeps a result that is too long for an entry, of a request that was just found to be new.
    pub(super) fn keep_result(
        &mut self,
        place: ResultSlot,
        name: Name,
        until: Ns,
        result: Vec<u8>,
    ) {
        self.keep(place, name, until, Outcome::Kept);
        self.results_bytes += result.len();
        self.results_bytes_of[usize::from(name.tenant.index())] += result.len();
        self.results.insert((place.set, place.way), result);
    }

    /// The long result at a place that was just found to have one.
    pub(super) fn kept(&self, place: ResultSlot) -> &[u8] {
        self.results.get(&(place.set, place.way)).map_or(&[], Vec::as_slice)
    }

    /// True if another result of a tenant may be kept. Where there are other tenants, it must have
    /// less than what is left. Expired results are dropped when space is short.
    pub(super) fn has_room_for_results(&mut self, now: Ns, tenant: Tenant) -> bool {
        if !self.has_room(tenant) {
            let over = |&(set, way): &(usize, usize)| self.sets[set][way].until < now;
            let over: Vec<_> = self.results.keys().copied().filter(over).collect();
            over.into_iter().for_each(|place| {
                let entry = &mut self.sets[place.0][place.1];
                entry.outcome = Outcome::Done;
                let tenant = entry.tenant;
                self.drop_result(place, tenant);
            });
        }
        self.has_room(tenant)
    }

    fn has_room(&self, tenant: Tenant) -> bool {
        let left = RESULTS_BYTES_MAX.saturating_sub(self.results_bytes);
        if self.results_bytes_of.len() == 1 {
            return left > 0;
        }
        self.results_bytes_of[usize::from(tenant.index())] < left
    }

    fn drop_result(&mut self, place: (usize, usize), tenant: Tenant) {
        let bytes = self.results.remove(&place).map_or(0, |result| result.len());
        self.results_bytes -= bytes;
        self.results_bytes_of[usize::from(tenant.index())] -= bytes;
    }

    /// Records that no copy of the request comes after `until`, and that its result is not needed.
    pub(super) fn acknowledge(
        &mut self,
        (tenant, sender): (Tenant, SenderId),
        request: RequestId,
        until: Ns,
    ) {
        let set = self.set(tenant, sender, request);
        // An expired entry with this number may stand before it. Its time is over for good: its
        // copies are dead.
        let entries = self.sets[set].iter_mut();
        entries.filter(|e| e.is_of(tenant, sender, request)).for_each(|entry| {
            entry.until = until.min(entry.until);
        });
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// Consecutive requests are in consecutive sets. No sender knows in which set a run begins, so
    /// no sender can fill a set to exclude others.
    fn set(&self, tenant: Tenant, sender: SenderId, request: RequestId) -> usize {
        let who = (tenant.index(), sender.0);
        self.key.place(who, request.0, self.sets.len() as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::TenantId;

    use super::*;
    use crate::node::config::Quota;
    use crate::node::tenants::Tenants;

    const TENANT: Tenant = Tenant::FIRST;
    const SENDER: SenderId = SenderId(7);

    fn name(request: u64) -> Name {
        let (tenant, opcode) = (TENANT, ClioOpcode::Write);
        Name { tenant, sender: SENDER, request: RequestId(request), opcode }
    }

    fn new(recent: &Recent, now: u64, request: u64) -> Option<ResultSlot> {
        match recent.find(Ns(now), name(request)) {
            Known::New(place) => Some(place),
            Known::Executed(..) | Known::Reused | Known::Full => None,
        }
    }

    #[test]
    fn a_result_is_kept_to_the_last_moment_of_its_time() {
        let mut recent = Recent::new(8, HashKey([1, 2]), 1, Ns(100));
        let place = new(&recent, 0, 5).expect("it is empty");
        recent.keep(place, name(5), Ns(100), Outcome::Word(3));
        for now in [0, 100] {
            let known = recent.find(Ns(now), name(5));
            assert!(matches!(known, Known::Executed(Outcome::Word(3), _)));
        }
        let other = Name { opcode: ClioOpcode::Offload, ..name(5) };
        assert!(matches!(recent.find(Ns(100), other), Known::Reused));
        assert!(new(&recent, 101, 5).is_some());
        assert!(matches!(
            recent.find(Ns(1), Name { sender: SenderId(8), ..name(5) }),
            Known::New(_)
        ));
    }

    #[test]
    fn what_is_full_forgets_nothing_until_an_acknowledgement_has_run_out() {
        let mut recent = Recent::new(8, HashKey([1, 2]), 1, Ns(100));
        for request in 1..=8 {
            let place = new(&recent, 0, request).expect("eight places");
            recent.keep(place, name(request), Ns(1000), Outcome::Done);
        }
        assert!(matches!(recent.find(Ns(0), name(9)), Known::Full));
        recent.acknowledge((TENANT, SENDER), RequestId(4), Ns(50));
        recent.acknowledge((TENANT, SenderId(8)), RequestId(5), Ns(50));
        assert!(matches!(recent.find(Ns(50), name(9)), Known::Full));
        assert!(matches!(recent.find(Ns(50), name(4)), Known::Executed(..)));
        assert!(new(&recent, 51, 9).is_some());
        assert!(matches!(recent.find(Ns(51), name(5)), Known::Executed(..)));
    }

    #[test]
    fn a_tenant_among_others_leaves_places_whatever_it_acknowledges() {
        let mut recent = Recent::new(8, HashKey([1, 2]), 3, Ns(100));
        let tenants = Tenants::new(&[1, 2, 3].map(|id| (TenantId(id), Quota::UNLIMITED)));
        let [one, two, three] = [1, 2, 3].map(|id| tenants.find(TenantId(id)).expect("it is"));
        let mut number = 0;
        let mut made = |tenant, until| {
            let most = (0..8).take_while(|_| {
                number += 1;
                let name = Name { tenant, ..name(number) };
                let Known::New(place) = recent.find(Ns(0), name) else { return false };
                recent.keep(place, name, Ns(until), Outcome::Done);
                true
            });
            most.count()
        };
        assert_eq!(made(one, 1000), 4, "half of a set without an acknowledgement");
        assert_eq!(made(two, 100), 3, "and all of it but one with them");
        assert_eq!((made(two, 100), made(three, 1000)), (0, 1), "the last is of one who has none");
    }

    #[test]
    fn results_of_one_tenant_leave_room_for_those_of_others() {
        let mut recent = Recent::new(1024, HashKey([1, 2]), 2, Ns(100));
        let tenants = Tenants::new(&[1, 2].map(|id| (TenantId(id), Quota::UNLIMITED)));
        let [one, two] = [1, 2].map(|id| tenants.find(TenantId(id)).expect("it is"));
        let mut number = 0;
        while recent.has_room_for_results(Ns(0), one) {
            number += 1;
            let name = Name { tenant: one, ..name(number) };
            let Known::New(place) = recent.find(Ns(0), name) else { panic!("places are left") };
            recent.keep_result(place, name, Ns(1000), vec![0; 1 << 16]);
        }
        assert_eq!(number << 16, (RESULTS_BYTES_MAX / 2) as u64);
        assert!(recent.has_room_for_results(Ns(0), two));
        assert!(recent.has_room_for_results(Ns(1001), one), "their time is over");
        assert_eq!((recent.results_bytes, recent.results.len()), (0, 0));
    }
}
