//! What an operator of a node can see and do: list the processes, and end one. No request of a
//! client leads here.

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{ProcessId, TenantId};

use super::machine::Node;
use crate::memory::SpaceId;

/// A process as an operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its number, unique within its tenant.
    pub process: ProcessId,
    /// The memory that it owns, or that is being given or taken.
    pub memory: Bytes,
    /// Time since it was created.
    pub age: Ns,
    /// Time since its client was last heard; `None` for a process of the node's own, which has no
    /// client.
    pub unheard: Option<Ns>,
    /// Time until it ends if its client stays silent; `None` where it has no lease.
    pub lease_left: Option<Ns>,
    /// True if it is alive. The memory of a dead process is being taken back.
    pub lives: bool,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// Number of places for processes: each has a number, from 0.
    #[must_use]
    pub fn process_places(&self) -> u16 {
        self.processes.places()
    }

    /// The process in a place, if there is one. The work does not depend on what the process has.
    #[must_use]
    pub fn process_facts(&self, now: Ns, place: u16) -> Option<ProcessFacts> {
        let about = self.processes.about(now, place)?;
        Some(ProcessFacts {
            tenant: self.tenants.id(about.tenant),
            process: about.process,
            memory: Bytes(self.memory.map().owned_bytes(SpaceId(place))),
            age: about.age,
            unheard: about.unheard,
            lease_left: about.lease_left,
            lives: about.lives,
        })
    }

    /// Ends a process, which is dead at once, for its client too. Its operations stop where they
    /// are. [`Node::tend`] takes its memory back, a slice at a time. Returns whether the process
    /// was alive.
    pub fn end(&mut self, now: Ns, tenant: TenantId, process: ProcessId) -> bool {
        let tenant = self.tenants.find(tenant);
        let space = tenant.and_then(|tenant| self.processes.alive(now, process, tenant));
        let Some(space) = space else { return false };
        self.processes.kill(space);
        self.runs.forget(space);
        true
    }
}
