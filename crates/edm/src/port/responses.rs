//! The bytes of responses in progress.

use crate::message::{MessageId, NodeId};

/// A buffer for each read that each peer can have open, of a size fixed at construction. It keeps
/// the bytes that were read when a request came: a later write may come before the last chunk left.
#[derive(Clone, Debug)]
pub(super) struct Responses {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    rows: usize,
    bytes_max: usize,
}

impl Responses {
    pub(super) fn new(nodes: u16, notifications_max: u8, bytes_max: usize) -> Responses {
        let rows = usize::from(notifications_max);
        let slots = usize::from(nodes) * rows;
        Responses { bytes: vec![0; slots * bytes_max], lengths: vec![0; slots], rows, bytes_max }
    }

    fn slot(&self, peer: NodeId, id: MessageId) -> usize {
        usize::from(peer.number()) * self.rows + id.row()
    }

    /// Keeps the bytes of a read. Returns whether they fit.
    pub(super) fn keep(&mut self, peer: NodeId, id: MessageId, data: &[u8]) -> bool {
        if data.len() > self.bytes_max {
            return false;
        }
        let slot = self.slot(peer, id);
        self.lengths[slot] = data.len() as u32;
        self.bytes[slot * self.bytes_max..][..data.len()].copy_from_slice(data);
        true
    }

    /// The part of a response that a chunk carries.
    pub(super) fn part(&self, peer: NodeId, id: MessageId, offset: usize, bytes: usize) -> &[u8] {
        let slot = self.slot(peer, id);
        let whole = &self.bytes[slot * self.bytes_max..][..self.lengths[slot] as usize];
        &whole[offset..offset + bytes]
    }
}
