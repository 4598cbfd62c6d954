//! The resources of each tenant: their use and their limits.

use ethermem_units::Ns;
use ethermem_wire::clio::{ClioOpcode, OPCODES, TenantId};

use super::config::Quota;
use crate::offload::OffloadLimits;

/// A tenant's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tenant(u16);

impl Tenant {
    /// The first tenant of a table that is not empty.
    pub(super) const FIRST: Tenant = Tenant(0);

    pub(super) fn index(self) -> u16 {
        self.0
    }
}

/// The resources of a tenant, and its counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantUse {
    /// Bytes of memory that are allocated to its processes.
    pub memory_bytes: u64,
    /// Number of its processes.
    pub processes: u16,
    /// Number of executed requests, by their place in [`OPCODES`].
    pub operations: [u64; OPCODES.len()],
    /// Number of bytes read.
    pub read_bytes: u64,
    /// Number of bytes written.
    pub written_bytes: u64,
    /// Number of requests over its rate.
    pub over_rate: u64,
    /// Number of requests for more memory or processes than its quota.
    pub over_quota: u64,
    /// Fuel that its operations at the node have used.
    pub offload_fuel: u64,
}

/// The account of a tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    id: TenantId,
    quota: Quota,
    used: TenantUse,
    /// Number of requests that it may make, as of the time `since`.
    requests: u64,
    since: Ns,
}

/// The place of each opcode in [`OPCODES`].
const PLACES: [usize; 256] = {
    let (mut places, mut at) = ([0; 256], 0);
    while at < OPCODES.len() {
        places[OPCODES[at].opcode as usize] = at;
        at += 1;
    }
    places
};

const NS_PER_S: u128 = 1_000_000_000;

/// The accounts of all tenants, ordered by their numbers.
pub(super) struct Tenants(Box<[Account]>);

impl Tenants {
    /// Builds the table. Of two entries for one tenant the first counts.
    pub(super) fn new(tenants: &[(TenantId, Quota)]) -> Tenants {
        let account = |&(id, quota): &(TenantId, Quota)| Account {
            id,
            quota,
            used: TenantUse::default(),
            requests: quota.requests_per_s,
            since: Ns::ZERO,
        };
        let mut accounts: Vec<Account> = tenants.iter().map(account).collect();
        accounts.sort_by_key(|account| account.id);
        accounts.dedup_by_key(|account| account.id);
        Tenants(accounts.into_boxed_slice())
    }

    pub(super) fn find(&self, id: TenantId) -> Option<Tenant> {
        let found = self.0.binary_search_by_key(&id, |account| account.id);
        found.ok().map(|at| Tenant(at as u16))
    }

    /// Takes one request from the tenant's rate. Returns false if the rate is used up.
    pub(super) fn request(&mut self, now: Ns, tenant: Tenant) -> bool {
        let account = &mut self.0[usize::from(tenant.0)];
        let rate = account.quota.requests_per_s;
        if rate == u64::MAX {
            return true;
        }
        let passed = now.saturating_sub(account.since).0;
        let earned = (u128::from(passed) * u128::from(rate) / NS_PER_S) as u64;
        account.requests = account.requests.saturating_add(earned).min(rate);
        // The time of less than a whole request counts for the next one.
        let spent = u128::from(earned) * NS_PER_S / u128::from(rate.max(1));
        account.since = account.since.saturating_add(Ns(spent as u64));
        let left = account.requests.checked_sub(1);
        account.requests = left.unwrap_or(0);
        left.is_some()
    }

    /// Counts a request that was refused because of its tenant's rate.
    pub(super) fn over_rate(&mut self, tenant: Tenant) {
        self.used(tenant).over_rate += 1;
    }

    fn used(&mut self, tenant: Tenant) -> &mut TenantUse {
        &mut self.0[usize::from(tenant.0)].used
    }

    /// Counts a request that was executed.
    pub(super) fn executed(&mut self, tenant: Tenant, opcode: ClioOpcode) {
        self.used(tenant).operations[PLACES[opcode as usize]] += 1;
    }

    pub(super) fn read(&mut self, tenant: Tenant, bytes: u64) {
        self.used(tenant).read_bytes += bytes;
    }

    pub(super) fn written(&mut self, tenant: Tenant, bytes: u64) {
        self.used(tenant).written_bytes += bytes;
    }

    pub(super) fn over_quota(&mut self, tenant: Tenant) {
        self.used(tenant).over_quota += 1;
    }

    pub(super) fn burned(&mut self, tenant: Tenant, fuel: u64) {
        self.used(tenant).offload_fuel += fuel;
    }

    pub(super) fn id(&self, tenant: Tenant) -> TenantId {
        self.0[usize::from(tenant.0)].id
    }

    pub(super) fn offload_limits(&self, tenant: Tenant) -> OffloadLimits {
        self.0[usize::from(tenant.0)].quota.offload
    }

    /// All tenants with their use, by their numbers.
    pub(super) fn uses(&self) -> impl Iterator<Item = (TenantId, &TenantUse)> {
        self.0.iter().map(|account| (account.id, &account.used))
    }

    /// Number of bytes that the tenant may still allocate.
    pub(super) fn memory_left(&self, tenant: Tenant) -> u64 {
        let account = &self.0[usize::from(tenant.0)];
        account.quota.memory_bytes - account.used.memory_bytes
    }

    pub(super) fn take_memory(&mut self, tenant: Tenant, bytes: u64) {
        self.used(tenant).memory_bytes += bytes;
    }

    pub(super) fn give_memory(&mut self, tenant: Tenant, bytes: u64) {
        self.used(tenant).memory_bytes -= bytes;
    }

    /// Counts one more process of the tenant. Returns false if its quota is used up.
    pub(super) fn take_process(&mut self, tenant: Tenant) -> bool {
        let account = &mut self.0[usize::from(tenant.0)];
        let may = account.used.processes < account.quota.processes;
        account.used.processes += u16::from(may);
        may
    }

    pub(super) fn give_process(&mut self, tenant: Tenant) {
        self.used(tenant).processes -= 1;
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_their_rate_however_the_time_is_cut() {
        let quota = Quota { requests_per_s: 1000, ..Quota::UNLIMITED };
        for step in [1_000_u64, 333_333, 1_000_000, 1_999_999] {
            let mut tenants = Tenants::new(&[(TenantId(3), quota)]);
            let tenant = tenants.find(TenantId(3)).expect("it is there");
            let seconds = 2;
            let times = (0..=seconds * NS_PER_S as u64).step_by(step as usize);
            let made: u64 = times
                .map(|now| (0..8).filter(|_| tenants.request(Ns(now), tenant)).count() as u64)
                .sum();
            // The model allows a second's worth at once, then the rate.
            let most = 1000 + seconds * 1000;
            assert!(made <= most && made + 10 * seconds >= most, "{made} by steps of {step} ns");
        }
    }
}
