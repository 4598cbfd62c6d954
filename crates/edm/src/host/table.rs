//! The message state table, indexed by (destination, class, row). A row has 24 bits of entry index
//! and the generation of its last id. A row is reused only after its id was released, and under the
//! next generation.

use crate::message::{MessageId, NodeId};

use super::entry::NONE;
use super::peers::Peers;

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// Maximum number of entries that a row can point at.
pub(super) const ENTRIES_MAX: usize = INDEX_MASK as usize;

/// A row that was never used.
pub(super) const FREE_ROW: u32 = INDEX_MASK;

impl Peers {
    #[inline]
    pub(super) fn has_free_row(&self, peer: NodeId, write: bool) -> bool {
        let used = self.destination(peer).rows[usize::from(write)];
        (used.trailing_ones() as usize) < self.rows(write)
    }

    /// Opens an id for `index`. A row must be free.
    #[inline]
    pub(super) fn open(&mut self, peer: NodeId, write: bool, index: u32) -> MessageId {
        assert!(self.has_free_row(peer, write), "no free row for {peer:?}");
        let row = self.destination(peer).rows[usize::from(write)].trailing_ones();
        let slot = self.opened(peer, write, row as usize);
        let generation = ((slot >> INDEX_BITS) + 1) & 0xf;
        let id = MessageId::new(write, generation as u8, row as u8);
        self.open_as(peer, id, index);
        id
    }

    /// Opens this id for `index`. Its row must be free.
    #[inline]
    pub(super) fn open_as(&mut self, peer: NodeId, id: MessageId, index: u32) {
        self.destination_mut(peer).rows[usize::from(id.is_write())] |= 1 << id.row();
        let slot = self.opened_mut(peer, id.is_write(), id.row());
        assert!(*slot & INDEX_MASK == INDEX_MASK, "a row is used twice");
        *slot = u32::from(id.generation()) << INDEX_BITS | index;
    }

    /// The entry that leads the row of an id. Any generation matches; the caller compares the id.
    #[inline]
    pub(super) fn leader_of(&self, peer: NodeId, id: MessageId) -> u32 {
        if id.row() >= self.rows(id.is_write()) {
            return NONE;
        }
        match self.leader(peer, id.is_write(), id.row()) {
            INDEX_MASK => NONE,
            index => index,
        }
    }

    /// The entry that leads the id of a row in use.
    #[inline]
    pub(super) fn leader(&self, peer: NodeId, write: bool, row: usize) -> u32 {
        self.opened(peer, write, row) & INDEX_MASK
    }

    /// Releases an open id. An id that the peer never saw is reused: the peer tells new ids from
    /// duplicates by how far ahead they are, so a row must not advance too far.
    #[inline]
    pub(super) fn close(&mut self, peer: NodeId, id: MessageId, exposed: bool) {
        let slot = self.opened_mut(peer, id.is_write(), id.row());
        let generation = (*slot >> INDEX_BITS).wrapping_sub(u32::from(!exposed)) & 0xf;
        *slot = generation << INDEX_BITS | INDEX_MASK;
        let used = &mut self.destination_mut(peer).rows[usize::from(id.is_write())];
        assert!(*used & 1 << id.row() != 0, "an id is released twice");
        *used &= !(1 << id.row());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_only_after_sixteen_uses_of_its_row() {
        let mut table = Peers::new(4, 3);
        let peer = NodeId::at(2);
        let first = table.open(peer, true, 7);
        assert_eq!(table.leader_of(peer, first), 7);
        for _ in 0..15 {
            table.close(peer, first, true);
            let next = table.open(peer, true, 7);
            assert_ne!(next, first);
        }
        table.close(peer, first, true);
        assert_eq!(table.open(peer, true, 7), first);
        table.close(peer, first, false);
        assert_eq!(table.open(peer, true, 7), first);
    }

    #[test]
    fn reads_have_as_many_rows_as_notifications() {
        let mut table = Peers::new(4, 3);
        for index in 0..3 {
            assert!(table.has_free_row(NodeId::at(3), false));
            let id = table.open(NodeId::at(3), false, index);
            assert_eq!(table.leader_of(NodeId::at(3), id), index);
            assert_eq!(table.leader_of(NodeId::at(2), id), NONE);
        }
        assert!(!table.has_free_row(NodeId::at(3), false));
        assert!(table.has_free_row(NodeId::at(3), true));
        assert_eq!(table.leader_of(NodeId::at(3), MessageId::new(false, 1, 7)), NONE);
    }
}
