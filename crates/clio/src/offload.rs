//! The operations of a node, and their tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use ethermem_wire::clio::TenantId;

pub use ethermem_offload::{
    Chase, Chased, Comparison, ENDED_FAILED, ENDED_RESULT, ENDED_STOPPED, Filter, NAME_BYTES_MAX,
    NodeMemory, Offload, OffloadError, OffloadLimits, Sliced, Stop, View, check_name,
};
pub(crate) use ethermem_offload::{SLICE_WORK, WORK_MAX, built_in, too_much_work, work};

/// The operations of a memory node by name: for all tenants, or for one.
#[derive(Clone)]
pub struct Offloads {
    by_name: BTreeMap<String, Arc<dyn Offload>>,
    of_tenants: BTreeMap<(TenantId, String), OfTenant>,
}

/// An operation of one tenant.
#[derive(Clone)]
struct OfTenant {
    offload: Arc<dyn Offload>,
    /// True if the tenant brought it and may remove it; false if the node did.
    is_brought: bool,
}

impl Offloads {
    /// The operations that every node has.
    #[must_use]
    pub fn built_in() -> Offloads {
        let mut offloads = Offloads { by_name: BTreeMap::new(), of_tenants: BTreeMap::new() };
        for (name, offload) in built_in() {
            offloads.add(name, offload);
        }
        offloads
    }

    /// Adds an operation for all tenants; it replaces one with this name.
    pub fn add(&mut self, name: &str, offload: Arc<dyn Offload>) {
        self.by_name.insert(name.to_owned(), offload);
    }

    /// Adds an operation for a tenant; it replaces one with this name. It belongs to the node: the
    /// tenant can neither replace nor remove it.
    pub fn add_for(&mut self, tenant: TenantId, name: &str, offload: Arc<dyn Offload>) {
        let known = OfTenant { offload, is_brought: false };
        self.of_tenants.insert((tenant, name.to_owned()), known);
    }

    /// Adds or removes an operation at a tenant's request; the tenant may have `most` of its own.
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
            let problem = format!("{name:?} is the node's own: must be another name");
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

    /// The operation with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Offload>> {
        self.by_name.get(name)
    }

    /// The operation that a name means for a tenant.
    #[must_use]
    pub fn get_for(&self, tenant: TenantId, name: &str) -> Option<&Arc<dyn Offload>> {
        // Most nodes have no operations of tenants, so the name is copied only where needed.
        let own = (!self.of_tenants.is_empty()).then(|| (tenant, name.to_owned()));
        let own = own.and_then(|key| self.of_tenants.get(&key)).map(|own| &own.offload);
        own.or_else(|| self.get(name))
    }

    /// All names, as a list in text.
    #[must_use]
    pub fn names(&self) -> String {
        self.by_name.keys().cloned().collect::<Vec<_>>().join(", ")
    }
}
