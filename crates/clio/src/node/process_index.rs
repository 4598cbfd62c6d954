//! An index of processes by tenant and number, with lookups of one or two accesses.

use ethermem_wire::clio::ProcessId;

use super::tenants::Tenant;
use crate::memory::{HashKey, SpaceId};

/// A slot of the table; process 0 marks an empty one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    process: u32,
    tenant: Tenant,
    space: SpaceId,
}

const FREE: Slot = Slot { process: 0, tenant: Tenant::FIRST, space: SpaceId(0) };

/// A hash table of fixed size, at most two thirds full. A search goes on from a number's own slot
/// to the first free one.
pub(super) struct ProcessIndex {
    slots: Box<[Slot]>,
    /// A secret odd factor, so that no tenant can choose numbers that collide.
    factor: u64,
    shift: u32,
}

impl ProcessIndex {
    pub(super) fn new(most: u16, key: HashKey) -> ProcessIndex {
        let slots = (usize::from(most) * 3 / 2 + 2).next_power_of_two();
        let shift = u64::BITS - slots.trailing_zeros();
        ProcessIndex { slots: vec![FREE; slots].into_boxed_slice(), factor: key.0[0] | 1, shift }
    }

    fn own(&self, tenant: Tenant, process: u32) -> usize {
        let number = u64::from(tenant.index()) << 32 | u64::from(process);
        // The number is mixed twice, as a product's low bits do not depend on the number's high
        // bits.
        let mixed = number.wrapping_mul(self.factor);
        ((mixed ^ mixed >> 32).wrapping_mul(self.factor) >> self.shift) as usize
    }

    fn place(&self, tenant: Tenant, process: u32) -> (usize, bool) {
        let mut at = self.own(tenant, process);
        loop {
            let slot = &self.slots[at];
            if slot.process == 0 {
                return (at, false);
            }
            if slot.process == process && slot.tenant == tenant {
                return (at, true);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    pub(super) fn find(&self, tenant: Tenant, process: ProcessId) -> Option<SpaceId> {
        if process.0 == 0 {
            return None;
        }
        let (at, is_there) = self.place(tenant, process.0);
        is_there.then(|| self.slots[at].space)
    }

    /// Adds a process that is not in the table. There is room, since the table is built for the
    /// maximum number of processes.
    pub(super) fn insert(&mut self, tenant: Tenant, process: ProcessId, space: SpaceId) {
        let (at, is_there) = self.place(tenant, process.0);
        debug_assert!(!is_there, "{process:?} is there already");
        self.slots[at] = Slot { process: process.0, tenant, space };
    }

    pub(super) fn remove(&mut self, tenant: Tenant, process: ProcessId) {
        let (mut hole, is_there) = self.place(tenant, process.0);
        debug_assert!(is_there, "{process:?} is not there");
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            self.slots[hole] = FREE;
            // Finds the next entry that may fill the gap: its own slot is at the gap or before it.
            loop {
                at = (at + 1) & mask;
                let slot = self.slots[at];
                if slot.process == 0 {
                    return;
                }
                let own = self.own(slot.tenant, slot.process);
                if at.wrapping_sub(own) & mask >= at.wrapping_sub(hole) & mask {
                    break;
                }
            }
            self.slots[hole] = self.slots[at];
            hole = at;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ethermem_wire::clio::TenantId;
    use proptest::prelude::*;

    use super::*;
    use crate::node::config::Quota;
    use crate::node::tenants::Tenants;

    proptest! {
        #[test]
        fn it_is_a_map_of_numbers_by_tenant(
            key in any::<u64>(),
            steps in proptest::collection::vec((0..3_usize, 1..12_u32, any::<bool>()), 1..200),
        ) {
            let tenants = [1, 2, 3].map(TenantId);
            let table = Tenants::new(&tenants.map(|id| (id, Quota::UNLIMITED)));
            let tenants = tenants.map(|id| table.find(id).expect("it is there"));
            let mut index = ProcessIndex::new(36, HashKey([key, 0]));
            let mut model = BTreeMap::new();
            for (at, (tenant, process, comes)) in steps.into_iter().enumerate() {
                let (who, id) = (tenants[tenant], ProcessId(process));
                let known = model.remove(&(tenant, process));
                prop_assert_eq!(index.find(who, id), known);
                if known.is_some() {
                    index.remove(who, id);
                }
                if comes {
                    let space = SpaceId(at as u16);
                    index.insert(who, id, space);
                    model.insert((tenant, process), space);
                }
                for (&(tenant, process), &space) in &model {
                    prop_assert_eq!(index.find(tenants[tenant], ProcessId(process)), Some(space));
                }
            }
            prop_assert_eq!(index.find(tenants[0], ProcessId(0)), None);
        }
    }
}
