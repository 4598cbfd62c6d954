//! The data path: Buffers taken, passed on, wrapped and freed; accesses checked.

use ethermem_units::Bytes;
use ethermem_wire::dfabric::FabricAddress;

use super::sections::Located;
use super::{MemoryPool, PoolError, Preference, Protection, Skb, SkbRef};
use crate::address::{Node, SectionId};
use crate::mapping::{AccessFault, Physical};

/// What happened when a node gave up a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The Buffer's first byte.
    pub buffer: FabricAddress,
    /// The node holds it no longer: its DRAM cache must flush it.
    pub flush: bool,
    /// No node holds it: it went home.
    pub is_free: bool,
}

/// What happened when a node passed a reference on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The Buffer's first byte.
    pub buffer: FabricAddress,
    /// The first node holds it no longer: its DRAM cache must flush it.
    pub flush: bool,
}

impl MemoryPool {
    /// `alloc_shared_buffer` of Table 2: a Buffer of at least this size, to which the node holds a
    /// reference. The daemon takes it from the smallest fitting class, and there from the preferred
    /// place.
    ///
    /// # Errors
    /// [`PoolError::NoBuffer`] if the daemon needs a Section first; [`PoolError::Size`],
    /// [`PoolError::NoSuchNode`], [`PoolError::NoReference`].
    pub fn alloc_shared_buffer(
        &mut self,
        node: Node,
        size: Bytes,
        preference: Preference,
    ) -> Result<FabricAddress, PoolError> {
        let class = self.class_of(size)?;
        self.member(node)?;
        if self.ledger.is_full() {
            return Err(PoolError::NoReference);
        }
        let class_bytes = self.class_bytes[class];
        let located = self.find_buffer(node, class, preference);
        let located = located.ok_or(PoolError::NoBuffer { class, class_bytes })?;
        self.add_hold(located, node)?;
        Ok(located.address())
    }

    fn find_buffer(&mut self, node: Node, class: usize, first: Preference) -> Option<Located> {
        if let Preference::Device(device) = first
            && let Ok(device) = self.device_number(device)
            && let Some(found) = self.take_buffer(node, class, device)
        {
            return Some(found);
        }
        for order in 0..self.nodes[usize::from(node.0)].near.len() {
            let device = self.nodes[usize::from(node.0)].near[order];
            if let Some(found) = self.take_buffer(node, class, device) {
                return Some(found);
            }
        }
        (0..self.devices.len()).find_map(|device| self.take_buffer(node, class, device))
    }

    fn add_hold(&mut self, located: Located, node: Node) -> Result<(), PoolError> {
        let Located { section, at, .. } = located;
        let place = self.granted_mut(section).place;
        let mut head = self.granted_mut(section).buffers[at as usize].link;
        let added = self.ledger.add(&mut head, located.address(), node);
        let is_new = added.map_err(|_| PoolError::NoReference)?;
        self.granted_mut(section).buffers[at as usize].link = head;
        if is_new {
            self.nodes[usize::from(node.0)].table.hold(section, place);
        }
        Ok(())
    }

    /// Takes back references of a node. Returns true if the node holds the Buffer no longer.
    pub(super) fn take_holds(
        &mut self,
        located: Located,
        node: Node,
        count: u32,
    ) -> Result<bool, PoolError> {
        let Located { section, at, .. } = located;
        let buffer = self.granted_mut(section).buffers[at as usize];
        let not_held = PoolError::NotHeld { node: node.0, address: located.address().number() };
        if buffer.is_free {
            return Err(not_held);
        }
        let mut head = buffer.link;
        let ended = self.ledger.take(&mut head, node, count).ok_or(not_held)?;
        self.granted_mut(section).buffers[at as usize].link = head;
        if ended {
            self.nodes[usize::from(node.0)].table.release(section);
        }
        Ok(ended)
    }

    pub(super) fn count(&self, located: Located, node: Node) -> u32 {
        let buffer = self.granted(located.section).map(|found| found.buffers[located.at as usize]);
        let held = buffer.filter(|buffer| !buffer.is_free);
        held.map_or(0, |buffer| self.ledger.count(buffer.link, node))
    }

    /// The Buffer of a range that a node holds.
    fn held(&self, node: Node, at: FabricAddress, length: u64) -> Result<Located, PoolError> {
        self.member(node)?;
        let (located, address) = (self.locate(at)?, at.number());
        let end = (address - located.address().number()).checked_add(length);
        if end.is_none_or(|end| end > located.bytes) {
            return Err(PoolError::Crosses { address, length, bytes: located.bytes });
        }
        match self.count(located, node) {
            0 => Err(PoolError::NotHeld { node: node.0, address }),
            _ => Ok(located),
        }
    }

    /// Gives a node one more reference to a Buffer that it holds: TCP keeps what it may send again.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn retain(&mut self, node: Node, buffer: FabricAddress) -> Result<(), PoolError> {
        let located = self.held(node, buffer, 0)?;
        self.add_hold(located, node)
    }

    /// Moves a reference from a node to another one, for `length` bytes at `data`. The second one's
    /// mapping table then has the Section.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn pass(
        &mut self,
        from: Node,
        to: Node,
        data: FabricAddress,
        length: u32,
    ) -> Result<Passed, PoolError> {
        let located = self.held(from, data, u64::from(length))?;
        self.member(to)?;
        let buffer = located.address();
        if from == to {
            return Ok(Passed { buffer, flush: false });
        }
        let makes_room = self.count(located, from) == 1 || self.count(located, to) > 0;
        if !makes_room && self.ledger.is_full() {
            return Err(PoolError::NoReference);
        }
        let flush = self.take_holds(located, from, 1)?;
        self.add_hold(located, to)?;
        Ok(Passed { buffer, flush })
    }

    /// Gives up a reference. The last one returns the Buffer to the daemon that owns its Section.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn release(&mut self, node: Node, buffer: FabricAddress) -> Result<Freed, PoolError> {
        let located = self.held(node, buffer, 0)?;
        let flush = self.take_holds(located, node, 1)?;
        let is_free = self.free_if_unheld(located);
        Ok(Freed { buffer: located.address(), flush, is_free })
    }

    pub(super) fn free_if_unheld(&mut self, located: Located) -> bool {
        let buffer = self.granted_mut(located.section).buffers[located.at as usize];
        let is_free = buffer.link == super::ledger::NONE;
        if is_free {
            self.put_buffer(located);
        }
        is_free
    }

    /// `build_shared_skb` of Table 2: wraps a received reference, which the `sk_buf` then has.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn build_shared_skb(
        &mut self,
        node: Node,
        data: FabricAddress,
        length: u32,
    ) -> Result<SkbRef, PoolError> {
        self.held(node, data, u64::from(length))?;
        self.skbs.add(Skb { node, data: Some(data), length }).ok_or(PoolError::NoSkb)
    }

    /// The `sk_buf` of a reference.
    #[must_use]
    pub fn skb(&self, skb: SkbRef) -> Option<Skb> {
        self.skbs.get(skb)
    }

    /// `kfree_shared_skb` of Table 2: frees an `sk_buf` and gives up its reference. `None`: its
    /// data was lost with its device.
    ///
    /// # Errors
    /// [`PoolError::StaleSkb`] if the `sk_buf` is freed already or another node's. With
    /// [`PoolError::NotHeld`] the `sk_buf` is gone: its reference was wrapped twice.
    pub fn kfree_shared_skb(
        &mut self,
        node: Node,
        skb: SkbRef,
    ) -> Result<Option<Freed>, PoolError> {
        let found = self.skbs.get(skb).filter(|found| found.node == node);
        let found = found.ok_or(PoolError::StaleSkb)?;
        self.skbs.remove(skb);
        found.data.map(|data| self.release(node, data)).transpose()
    }

    /// True if a node may write a Buffer: it alone holds it. There is no coherence between caches.
    #[must_use]
    pub fn may_write(&self, node: Node, buffer: FabricAddress) -> bool {
        let Ok(located) = self.held(node, buffer, 0) else { return false };
        let buffer = self.granted(located.section).map(|found| found.buffers[located.at as usize]);
        buffer.is_some_and(|buffer| self.ledger.holders(buffer.link).count() == 1)
    }

    /// How often a node holds the Buffer at an address.
    #[must_use]
    pub fn references(&self, node: Node, buffer: FabricAddress) -> u32 {
        self.locate(buffer).map_or(0, |located| self.count(located, node))
    }

    /// Checks and translates an access, as the node's CXL port does.
    ///
    /// # Errors
    /// [`AccessFault`]; also if the node is not of the rack.
    pub fn check_access(
        &self,
        node: Node,
        address: FabricAddress,
        length: u64,
    ) -> Result<Physical, AccessFault> {
        let not_mapped = AccessFault::NotMapped(address.number());
        let member = self.member(node).map_err(|_| not_mapped)?;
        let physical = member.table.check(address, length)?;
        if self.protection == Protection::Section {
            return Ok(physical);
        }
        let not_held = AccessFault::NotHeld { address: address.number(), length };
        self.held(node, address, length).map_err(|_| not_held)?;
        Ok(physical)
    }

    /// The device of an address, if a Section is granted there.
    #[must_use]
    pub fn device_of(&self, address: FabricAddress) -> Option<ethermem_placement::NodeId> {
        self.granted(SectionId::of(address)).map(|granted| granted.place.node)
    }
}
