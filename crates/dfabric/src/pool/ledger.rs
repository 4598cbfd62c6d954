//! References: which member of the rack holds which Buffer, and how often.
//!
//! A hold is in two lists: of its Buffer, so that its last reference shows, and of its holder, so
//! that all of a dead node's references are found.

use ethermem_wire::dfabric::FabricAddress;

use crate::address::Node;

/// The end of a list.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Hold {
    buffer: FabricAddress,
    holder: Node,
    count: u32,
    /// The next hold of the Buffer, or the next free place.
    next: u32,
    /// Neighbours in the list of the holder.
    before: u32,
    after: u32,
}

/// The references of a rack.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    holds: Box<[Hold]>,
    free: u32,
    in_use: u32,
    /// By node: its first hold.
    first_of: Box<[u32]>,
}

/// All places for holds are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Ledger {
    pub(super) fn new(nodes: u16, holds_max: u32) -> Ledger {
        let hold = |at: u32| Hold {
            buffer: FabricAddress::default(),
            holder: Node(0),
            count: 0,
            next: if at + 1 == holds_max { NONE } else { at + 1 },
            before: NONE,
            after: NONE,
        };
        let holds: Box<[Hold]> = (0..holds_max).map(hold).collect();
        let free = if holds_max == 0 { NONE } else { 0 };
        Ledger { holds, free, in_use: 0, first_of: vec![NONE; usize::from(nodes)].into() }
    }

    pub(super) fn in_use(&self) -> u32 {
        self.in_use
    }

    pub(super) fn is_full(&self) -> bool {
        self.free == NONE
    }

    fn find(&self, head: u32, holder: Node) -> Option<u32> {
        self.of_buffer(head).find(|&at| self.holds[at as usize].holder == holder)
    }

    fn of_buffer(&self, head: u32) -> impl Iterator<Item = u32> + '_ {
        let first = (head != NONE).then_some(head);
        std::iter::successors(first, |&at| {
            let next = self.holds[at as usize].next;
            (next != NONE).then_some(next)
        })
    }

    /// How often a node holds the Buffer whose list begins at `head`.
    pub(super) fn count(&self, head: u32, holder: Node) -> u32 {
        self.find(head, holder).map_or(0, |at| self.holds[at as usize].count)
    }

    /// The holders of the Buffer whose list begins at `head`, with their counts.
    pub(super) fn holders(&self, head: u32) -> impl Iterator<Item = (Node, u32)> + '_ {
        self.of_buffer(head)
            .map(|at| (self.holds[at as usize].holder, self.holds[at as usize].count))
    }

    /// A Buffer that a node holds.
    pub(super) fn first_of(&self, holder: Node) -> Option<FabricAddress> {
        let at = self.first_of[usize::from(holder.0)];
        self.holds.get(at as usize).map(|hold| hold.buffer)
    }

    /// The Buffers that a node holds, with its counts.
    pub(super) fn all_of(&self, holder: Node) -> impl Iterator<Item = (FabricAddress, u32)> + '_ {
        let first = self.first_of[usize::from(holder.0)];
        let first = (first != NONE).then_some(first);
        let holds = std::iter::successors(first, |&at| {
            let after = self.holds[at as usize].after;
            (after != NONE).then_some(after)
        });
        holds.map(|at| (self.holds[at as usize].buffer, self.holds[at as usize].count))
    }

    /// Adds a reference. Returns true if the node did not hold the Buffer before.
    pub(super) fn add(
        &mut self,
        head: &mut u32,
        buffer: FabricAddress,
        holder: Node,
    ) -> Result<bool, Full> {
        if let Some(at) = self.find(*head, holder) {
            let count = &mut self.holds[at as usize].count;
            *count = count.checked_add(1).ok_or(Full)?;
            return Ok(false);
        }
        let at = self.free;
        let first = self.first_of[usize::from(holder.0)];
        let hold = self.holds.get_mut(at as usize).ok_or(Full)?;
        self.free = hold.next;
        *hold = Hold { buffer, holder, count: 1, next: *head, before: NONE, after: first };
        if let Some(after) = self.holds.get_mut(first as usize) {
            after.before = at;
        }
        self.first_of[usize::from(holder.0)] = at;
        *head = at;
        self.in_use += 1;
        Ok(true)
    }

    /// Takes back `count` references of a node, or all that it has. Returns true if it was the last
    /// one of the node; `None` if the node holds none.
    pub(super) fn take(&mut self, head: &mut u32, holder: Node, count: u32) -> Option<bool> {
        let at = self.find(*head, holder)?;
        let hold = &mut self.holds[at as usize];
        hold.count = hold.count.saturating_sub(count);
        if hold.count > 0 {
            return Some(false);
        }
        let Hold { next, before, after, .. } = *hold;
        let previous = self.of_buffer(*head).find(|&one| self.holds[one as usize].next == at);
        match previous {
            Some(previous) => self.holds[previous as usize].next = next,
            None => *head = next,
        }
        match self.holds.get_mut(before as usize) {
            Some(neighbour) => neighbour.after = after,
            None => self.first_of[usize::from(holder.0)] = after,
        }
        if let Some(neighbour) = self.holds.get_mut(after as usize) {
            neighbour.before = before;
        }
        self.holds[at as usize].next = self.free;
        self.free = at;
        self.in_use -= 1;
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u64) -> FabricAddress {
        FabricAddress::new(number).unwrap()
    }

    #[test]
    fn a_hold_is_in_the_list_of_its_buffer_and_of_its_holder() {
        let mut ledger = Ledger::new(3, 4);
        let (mut first, mut second) = (NONE, NONE);
        for holder in [Node(0), Node(1), Node(2)] {
            assert_eq!(ledger.add(&mut first, address(0), holder), Ok(true));
        }
        assert_eq!(ledger.add(&mut first, address(0), Node(1)), Ok(false));
        assert_eq!(ledger.add(&mut second, address(64), Node(1)), Ok(true));
        assert_eq!(ledger.add(&mut second, address(64), Node(2)), Err(Full));
        let mut of_one: Vec<_> = ledger.all_of(Node(1)).collect();
        of_one.sort_unstable();
        assert_eq!(of_one, [(address(0), 2), (address(64), 1)]);
        assert_eq!(ledger.take(&mut first, Node(1), 1), Some(false));
        assert_eq!(ledger.take(&mut first, Node(1), 1), Some(true));
        assert_eq!(ledger.take(&mut first, Node(1), 1), None);
        let left: Vec<_> = ledger.holders(first).map(|(holder, _)| holder.0).collect();
        assert_eq!(left, [2, 0]);
        assert_eq!(ledger.first_of(Node(1)), Some(address(64)));
        assert_eq!(ledger.take(&mut first, Node(0), u32::MAX), Some(true));
        assert_eq!(ledger.take(&mut first, Node(2), 1), Some(true));
        assert_eq!((first, ledger.in_use()), (NONE, 1));
    }
}
