//! Per-destination state and the message state table.

use crate::message::{MessageId, NodeId};

use super::entry::{List, NONE};

/// What the compute side knows of one destination, besides its rows of the table: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    /// Messages not yet dequeued. Relaxed order: those behind a fence; the others are in lanes.
    pub(super) queue: List,
    /// Relaxed order: lanes that hold a message, one bit each.
    pub(super) lanes: u16,
    /// Rows of reads and of writes in use, one bit each.
    pub(super) rows: [u8; 2],
    /// Notifications whose demand was not sent in full: at most X.
    pub(super) writes_active: u8,
    pub(super) flags: u8,
}

/// A fence is under way: nothing else may be dequeued.
pub(super) const FENCING: u8 = 1 << 0;
/// A fence ended in the queue: the next message takes over its order.
pub(super) const FENCE_INHERITED: u8 = 1 << 1;
/// Declared failed.
pub(super) const DOWN: u8 = 1 << 2;

impl Destination {
    pub(super) const IDLE: Destination =
        Destination { queue: List::EMPTY, lanes: 0, rows: [0; 2], writes_active: 0, flags: 0 };

    #[inline]
    pub(super) const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(super) const fn has_queued(&self) -> bool {
        !self.queue.is_empty() || self.lanes != 0
    }

    /// Nothing waits, and no fence has a say about what comes next.
    #[inline]
    pub(super) const fn is_passable(&self) -> bool {
        !self.has_queued() && !self.is(FENCING | FENCE_INHERITED)
    }

    /// Nothing is under way that a fence would have to wait for.
    #[inline]
    pub(super) const fn is_quiet(&self) -> bool {
        self.rows[0] == 0 && self.writes_active == 0
    }
}

/// The message state table, indexed by (destination, class, row): 24 bits of entry index and the
/// generation of the row's last id. A row is not reused before its id was released, and then under
/// the next generation.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<u32>,
    nodes: usize,
    rows_per_class: [usize; 2],
}

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// Most entries that a row can point at.
pub(super) const ENTRIES_MAX: usize = INDEX_MASK as usize;

impl Table {
    /// Reads have X rows. Writes have all 8: those that wait for an acknowledgement keep theirs,
    /// though their notification is no longer active.
    pub(super) fn new(nodes: u16, notifications_max: u8) -> Table {
        let rows_per_class = [usize::from(notifications_max), MessageId::ROWS];
        let rows = usize::from(nodes) * (rows_per_class[0] + rows_per_class[1]);
        Table { rows: vec![INDEX_MASK; rows], nodes: usize::from(nodes), rows_per_class }
    }

    /// The first rows of all destinations lie together, then the second ones: at most loads only
    /// the first are in use, and they fit the caches.
    #[inline]
    fn position(&self, peer: NodeId, write: bool, row: usize) -> usize {
        let row = usize::from(write) * self.rows_per_class[0] + row;
        row * self.nodes + usize::from(peer.number())
    }

    #[inline]
    pub(super) fn has_free_row(&self, destination: &Destination, write: bool) -> bool {
        let used = destination.rows[usize::from(write)];
        (used.trailing_ones() as usize) < self.rows_per_class[usize::from(write)]
    }

    /// Opens an id for `index`. There must be a free row.
    #[inline]
    pub(super) fn open(
        &mut self,
        destination: &mut Destination,
        peer: NodeId,
        write: bool,
        index: u32,
    ) -> MessageId {
        assert!(self.has_free_row(destination, write), "no free row for {peer:?}");
        let row = destination.rows[usize::from(write)].trailing_ones();
        let slot = self.rows[self.position(peer, write, row as usize)];
        let generation = ((slot >> INDEX_BITS) + 1) & 0xf;
        let id = MessageId::new(write, generation as u8, row as u8);
        self.open_as(destination, peer, id, index);
        id
    }

    /// Opens this id for `index`. Its row must be free.
    #[inline]
    pub(super) fn open_as(
        &mut self,
        destination: &mut Destination,
        peer: NodeId,
        id: MessageId,
        index: u32,
    ) {
        destination.rows[usize::from(id.is_write())] |= 1 << id.row();
        let position = self.position(peer, id.is_write(), id.row());
        let slot = &mut self.rows[position];
        assert!(*slot & INDEX_MASK == INDEX_MASK, "a row is used twice");
        *slot = u32::from(id.generation()) << INDEX_BITS | index;
    }

    /// The entry that leads an id, whatever its generation; the caller compares the id.
    #[inline]
    pub(super) fn get(&self, peer: NodeId, id: MessageId) -> u32 {
        if id.row() >= self.rows_per_class[usize::from(id.is_write())] {
            return NONE;
        }
        let slot = self.rows[self.position(peer, id.is_write(), id.row())];
        match slot & INDEX_MASK {
            INDEX_MASK => NONE,
            index => index,
        }
    }

    /// The entry that leads the id of a row in use.
    pub(super) fn leader(&self, peer: NodeId, write: bool, row: usize) -> u32 {
        self.rows[self.position(peer, write, row)] & INDEX_MASK
    }

    /// Releases an open id. One that the peer never saw is used again: the peer tells new ids from
    /// duplicates by how far ahead they are, so a row must not run away from it.
    #[inline]
    pub(super) fn close(
        &mut self,
        destination: &mut Destination,
        peer: NodeId,
        id: MessageId,
        exposed: bool,
    ) {
        let position = self.position(peer, id.is_write(), id.row());
        let slot = self.rows[position];
        let generation = (slot >> INDEX_BITS).wrapping_sub(u32::from(!exposed)) & 0xf;
        self.rows[position] = generation << INDEX_BITS | INDEX_MASK;
        let used = &mut destination.rows[usize::from(id.is_write())];
        assert!(*used & 1 << id.row() != 0, "an id is released twice");
        *used &= !(1 << id.row());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_only_after_sixteen_uses_of_its_row() {
        let mut table = Table::new(4, 3);
        let mut destination = Destination::IDLE;
        let peer = NodeId::at(2);
        let first = table.open(&mut destination, peer, true, 7);
        assert_eq!(table.get(peer, first), 7);
        for _ in 0..15 {
            table.close(&mut destination, peer, first, true);
            let next = table.open(&mut destination, peer, true, 7);
            assert_ne!(next, first);
        }
        table.close(&mut destination, peer, first, true);
        assert_eq!(table.open(&mut destination, peer, true, 7), first);
        table.close(&mut destination, peer, first, false);
        assert_eq!(table.open(&mut destination, peer, true, 7), first);
    }

    #[test]
    fn reads_have_as_many_rows_as_notifications() {
        let mut table = Table::new(4, 3);
        let mut destination = Destination::IDLE;
        for index in 0..3 {
            assert!(table.has_free_row(&destination, false));
            let id = table.open(&mut destination, NodeId::at(3), false, index);
            assert_eq!(table.get(NodeId::at(3), id), index);
            assert_eq!(table.get(NodeId::at(2), id), NONE);
        }
        assert!(!table.has_free_row(&destination, false));
        assert!(table.has_free_row(&destination, true));
        assert_eq!(table.get(NodeId::at(3), MessageId::new(false, 1, 7)), NONE);
    }
}
