//! Which operations a node knows, and whose they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use ethermem_wire::clio::TenantId;

pub use ethermem_offload::{
    Chase, Chased, Comparison, ENDED_FAILED, ENDED_RESULT, ENDED_STOPPED, Filter, NAME_BYTES_MAX,
    NodeMemory, Offload, OffloadError, OffloadLimits, Sliced, Stop, View, check_name,
};
pub(crate) use ethermem_offload::{SLICE_WORK, WORK_MAX, built_in, too_much_work, work};

/// The operations that a memory node knows, by name: for all, or for one tenant.
#[derive(Clone)]
pub struct Offloads {
    by_name: BTreeMap<String, Arc<dyn Offload>>,
    of_tenants: BTreeMap<(TenantId, String), OfTenant>,
}

/// An operation of one tenant.
#[derive(Clone)]
struct OfTenant {
    offload: Arc<dyn Offload>,
    /// By the tenant itself, which may take it away; else it is the node's.
    is_brought: bool,
}

impl Offloads {
    /// Those that every node has.
    #[must_use]
    pub fn built_in() -> Offloads {
        let mut offloads = Offloads { by_name: BTreeMap::new(), of_tenants: BTreeMap::new() };
        for (name, offload) in built_in() {
            offloads.add(name, offload);
        }
        offloads
    }

    /// Makes one known to all, over one of the same name.
    pub fn add(&mut self, name: &str, offload: Arc<dyn Offload>) {
        self.by_name.insert(name.to_owned(), offload);
    }

    /// Makes one known to a tenant, over one of the same name. It is the node's: the tenant can
    /// neither replace it nor take it away.
    pub fn add_for(&mut self, tenant: TenantId, name: &str, offload: Arc<dyn Offload>) {
        let known = OfTenant { offload, is_brought: false };
        self.of_tenants.insert((tenant, name.to_owned()), known);
    }

    /// The same as a tenant asks for it, which may have `most` of its own; or takes it away.
    pub(crate) fn install(
        &mut self,
        tenant: TenantId,
        name: &str,
        offload: Option<Arc<dyn Offload>>,
        most: u16,
    ) -> Result<(), OffloadError> {
        check_name(name)?;
        let key = (tenant, name.to_owned());
        let is_nodes = |known: &OfTenant| !known.is_brought;
        if self.by_name.contains_key(name) || self.of_tenants.get(&key).is_some_and(is_nodes) {
            let problem = format!("{name:?} is the node's own: allowed is another name");
            return Err(OffloadError::Failed(problem));
        }
        let Some(offload) = offload else {
            let problem = || OffloadError::failed(format!("{name:?} is not loaded"));
            return self.of_tenants.remove(&key).map(drop).ok_or_else(problem);
        };
        let of_tenant = self.of_tenants.iter().filter(|(known, _)| known.0 == tenant);
        let others = of_tenant.filter(|(known, of)| of.is_brought && **known != key);
        if others.count() >= usize::from(most) {
            let problem = format!("the tenant may bring {most} operations to the node");
            return Err(OffloadError::Failed(problem));
        }
        self.of_tenants.insert(key, OfTenant { offload, is_brought: true });
        Ok(())
    }

    /// The operation of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Offload>> {
        self.by_name.get(name)
    }

    /// The operation that a tenant means by a name.
    #[must_use]
    pub fn get_for(&self, tenant: TenantId, name: &str) -> Option<&Arc<dyn Offload>> {
        // Most nodes have none of a tenant's own, and a name is not copied for nothing.
        let own = (!self.of_tenants.is_empty()).then(|| (tenant, name.to_owned()));
        let own = own.and_then(|key| self.of_tenants.get(&key)).map(|own| &own.offload);
        own.or_else(|| self.get(name))
    }

    /// All names, as a list for people.
    #[must_use]
    pub fn names(&self) -> String {
        self.by_name.keys().cloned().collect::<Vec<_>>().join(", ")
    }
}
