//! The state that a host keeps for its peers.

use crate::message::{MessageId, NodeId};

use super::entry::List;
use super::serve::Served;
use super::store::Store;
use super::table::FREE_ROW;

/// What the compute side knows of one destination, apart from its rows of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    /// The rows of reads and of writes in use, one bit each.
    pub(super) rows: [u8; 2],
    /// Number of notifications whose demand was not sent in full: at most X.
    pub(super) writes_active: u8,
    pub(super) flags: u8,
}

/// A fence is in progress: no other message may be dequeued.
pub(super) const FENCING: u8 = 1 << 0;
/// A fence ended in the queue: the next message inherits its order.
pub(super) const FENCE_INHERITED: u8 = 1 << 1;
/// The destination was declared failed.
pub(super) const DOWN: u8 = 1 << 2;
/// A message is in the destination's queue or lanes.
pub(super) const QUEUED: u8 = 1 << 3;

impl Destination {
    pub(super) const IDLE: Destination = Destination { rows: [0; 2], writes_active: 0, flags: 0 };

    #[inline]
    pub(super) const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// True if no message waits and no fence orders the next one.
    #[inline]
    pub(super) const fn is_passable(&self) -> bool {
        !self.is(QUEUED | FENCING | FENCE_INHERITED)
    }

    /// True if nothing is in flight that a fence would have to wait for.
    #[inline]
    pub(super) const fn is_quiet(&self) -> bool {
        self.rows[0] == 0 && self.writes_active == 0
    }
}

/// The messages that wait for a destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingQueues {
    /// Messages not yet dequeued. Under relaxed order: messages behind a fence; the others are in
    /// lanes.
    pub(super) queue: List,
    /// Under relaxed order: the lanes that hold a message, one bit each.
    pub(super) lanes: u16,
}

/// The state of a peer that most messages touch, kept together: its destination, and the first row
/// of each of its tables.
#[derive(Clone, Copy, Debug)]
struct Peer {
    destination: Destination,
    opened: [u32; 2],
    served: Served,
    store: Store,
}

const _: () = assert!(size_of::<Peer>() == 24, "of many peers, two or three share a cache line");

/// Fills in the rows of one number for all peers when one of them is first used. They are reserved
/// before, so nothing is allocated.
#[inline]
fn touch<T: Copy>(rows: &mut Vec<T>, at: usize, nodes: usize, unused: T) -> &mut [T] {
    if at >= rows.len() {
        rows.resize((at / nodes + 1) * nodes, unused);
    }
    rows
}

/// Peers and their rows. Rows after the first are used when several messages of a pair are in
/// flight. The second rows of all peers lie together, then the third rows.
#[derive(Debug)]
pub(super) struct Peers {
    peers: Vec<Peer>,
    waiting: Vec<WaitingQueues>,
    opened: [Vec<u32>; 2],
    served: Vec<Served>,
    stores: Vec<Store>,
    /// Number of rows of reads and of writes.
    rows: [usize; 2],
}

impl Peers {
    /// Reads have X rows. Writes have all 8: a write that waits for an acknowledgement keeps its
    /// row, though its notification is no longer active.
    pub(super) fn new(nodes: u16, notifications_max: u8) -> Peers {
        let nodes = usize::from(nodes);
        let rows = [usize::from(notifications_max), MessageId::ROWS];
        let unused = Peer {
            destination: Destination::IDLE,
            opened: [FREE_ROW; 2],
            served: Served::UNUSED,
            store: Store::UNUSED,
        };
        Peers {
            peers: vec![unused; nodes],
            waiting: vec![WaitingQueues { queue: List::EMPTY, lanes: 0 }; nodes],
            opened: rows.map(|rows| Vec::with_capacity(nodes * (rows - 1))),
            served: Vec::with_capacity(nodes * (rows[0] - 1)),
            stores: Vec::with_capacity(nodes * (rows[1] - 1)),
            rows,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    /// The state of a peer; `None` for a node that does not exist.
    #[inline]
    pub(super) fn get(&self, peer: NodeId) -> Option<&Destination> {
        self.peers.get(usize::from(peer.number())).map(|peer| &peer.destination)
    }

    #[inline]
    pub(super) fn destination(&self, peer: NodeId) -> &Destination {
        &self.peers[usize::from(peer.number())].destination
    }

    #[inline]
    pub(super) fn destination_mut(&mut self, peer: NodeId) -> &mut Destination {
        &mut self.peers[usize::from(peer.number())].destination
    }

    #[inline]
    pub(super) fn waiting(&mut self, peer: NodeId) -> &mut WaitingQueues {
        &mut self.waiting[usize::from(peer.number())]
    }

    /// Number of rows of the message state table for reads or for writes.
    #[inline]
    pub(super) fn rows(&self, write: bool) -> usize {
        self.rows[usize::from(write)]
    }

    /// The position of a row after the first among such rows of all peers.
    #[inline]
    fn behind(&self, peer: NodeId, row: usize) -> usize {
        (row - 1) * self.peers.len() + usize::from(peer.number())
    }

    /// A row of the message state table.
    #[inline]
    pub(super) fn opened(&self, peer: NodeId, write: bool, row: usize) -> u32 {
        match row {
            0 => self.peers[usize::from(peer.number())].opened[usize::from(write)],
            row => {
                let opened = &self.opened[usize::from(write)];
                opened.get(self.behind(peer, row)).copied().unwrap_or(FREE_ROW)
            }
        }
    }

    #[inline]
    pub(super) fn opened_mut(&mut self, peer: NodeId, write: bool, row: usize) -> &mut u32 {
        match row {
            0 => &mut self.peers[usize::from(peer.number())].opened[usize::from(write)],
            row => {
                let (behind, nodes) = (self.behind(peer, row), self.peers.len());
                &mut touch(&mut self.opened[usize::from(write)], behind, nodes, FREE_ROW)[behind]
            }
        }
    }

    /// What is known of the peer's reads under a row. The row must exist.
    #[inline]
    pub(super) fn served(&mut self, peer: NodeId, row: usize) -> &mut Served {
        match row {
            0 => &mut self.peers[usize::from(peer.number())].served,
            row => {
                let (behind, nodes) = (self.behind(peer, row), self.peers.len());
                &mut touch(&mut self.served, behind, nodes, Served::UNUSED)[behind]
            }
        }
    }

    /// What is known of the peer's writes under a row.
    #[inline]
    pub(super) fn store(&mut self, peer: NodeId, row: usize) -> &mut Store {
        match row {
            0 => &mut self.peers[usize::from(peer.number())].store,
            row => {
                let (behind, nodes) = (self.behind(peer, row), self.peers.len());
                &mut touch(&mut self.stores, behind, nodes, Store::UNUSED)[behind]
            }
        }
    }
}
