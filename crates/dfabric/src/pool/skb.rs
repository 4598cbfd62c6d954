//! Socket buffers over shared Buffers: `sk_buf` objects by reference (section 4.5, Table 2).

use ethermem_wire::dfabric::FabricAddress;

use super::ledger::NONE;
use crate::address::Node;

/// The reference to an `sk_buf`. A freed one is never valid again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkbRef {
    at: u32,
    generation: u32,
}

/// An `sk_buf`: whose it is, and the data that it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skb {
    /// The node whose TCP/IP stack has it.
    pub node: Node,
    /// Where the data is; `None`: its memory device was lost.
    pub data: Option<FabricAddress>,
    /// Bytes of data.
    pub length: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    skb: Option<Skb>,
    generation: u32,
    next_free: u32,
}

/// All `sk_buf` objects of a rack.
#[derive(Clone, Debug)]
pub(super) struct Skbs {
    slots: Box<[Slot]>,
    free: u32,
    in_use: u32,
}

impl Skbs {
    pub(super) fn new(count: u32) -> Skbs {
        let slot = |at: u32| {
            let next_free = if at + 1 == count { NONE } else { at + 1 };
            Slot { skb: None, generation: 0, next_free }
        };
        let free = if count == 0 { NONE } else { 0 };
        Skbs { slots: (0..count).map(slot).collect(), free, in_use: 0 }
    }

    pub(super) fn in_use(&self) -> u32 {
        self.in_use
    }

    pub(super) fn add(&mut self, skb: Skb) -> Option<SkbRef> {
        let at = self.free;
        let slot = self.slots.get_mut(at as usize)?;
        self.free = slot.next_free;
        slot.skb = Some(skb);
        self.in_use += 1;
        Some(SkbRef { at, generation: slot.generation })
    }

    pub(super) fn get(&self, skb: SkbRef) -> Option<Skb> {
        let slot = self.slots.get(skb.at as usize)?;
        slot.skb.filter(|_| slot.generation == skb.generation)
    }

    pub(super) fn remove(&mut self, skb: SkbRef) -> Option<Skb> {
        let found = self.get(skb)?;
        let slot = &mut self.slots[skb.at as usize];
        slot.skb = None;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.free;
        self.free = skb.at;
        self.in_use -= 1;
        Some(found)
    }

    /// Removes all of a dead node's.
    pub(super) fn remove_all_of(&mut self, node: Node) {
        for at in 0..self.slots.len() as u32 {
            let Slot { skb, generation, .. } = self.slots[at as usize];
            if skb.is_some_and(|skb| skb.node == node) {
                self.remove(SkbRef { at, generation });
            }
        }
    }

    /// Marks those whose data a lost device had.
    pub(super) fn lose(&mut self, is_lost: impl Fn(FabricAddress) -> bool) {
        for skb in self.slots.iter_mut().filter_map(|slot| slot.skb.as_mut()) {
            skb.data = skb.data.filter(|data| !is_lost(*data));
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Skb> + '_ {
        self.slots.iter().filter_map(|slot| slot.skb)
    }
}
