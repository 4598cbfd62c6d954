//! The memory side: which requests and which chunks have acted already.

use crate::message::{Chunk, MemoryRequest, MessageId, NodeId, StatusCode};

/// What is known of the read or RMW that last used a row of a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    id: MessageId,
    seen: bool,
    refused: Option<StatusCode>,
}

/// What is known of the write that last used a row of a peer.
#[derive(Clone, Copy, Debug)]
struct Stored {
    id: MessageId,
    seen: bool,
    /// Bytes that memory has taken or refused.
    moved: u64,
    code: StatusCode,
}

/// What to do with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    /// The first: it acts.
    First,
    /// It acted before, and was refused if so said.
    Again(Option<StatusCode>),
    /// Of a message before the one that its row belongs to now.
    Stale,
}

/// One decision a message, whichever interface it comes by: first copy acts, all later ones get
/// the same answer.
#[derive(Debug)]
pub(super) struct Copies {
    served: Vec<Served>,
    stored: Vec<Stored>,
    nodes: usize,
}

const UNUSED: Stored = Stored { id: MessageId(0), seen: false, moved: 0, code: StatusCode::Ok };

impl Copies {
    pub(super) fn new(nodes: u16) -> Copies {
        let nodes = usize::from(nodes);
        Copies {
            served: vec![Served::default(); nodes * MessageId::ROWS],
            stored: vec![UNUSED; nodes * MessageId::ROWS],
            nodes,
        }
    }

    fn position(&self, peer: NodeId, id: MessageId) -> usize {
        id.row() * self.nodes + usize::from(peer.number())
    }

    /// A request came.
    pub(super) fn request(&mut self, request: &MemoryRequest) -> Copy {
        let MemoryRequest { peer, id, .. } = *request;
        let at = self.position(peer, id);
        let served = &mut self.served[at];
        if served.seen && served.id == id {
            return Copy::Again(served.refused);
        }
        if served.seen && !id.is_after(served.id) {
            return Copy::Stale;
        }
        *served = Served { id, seen: true, refused: None };
        Copy::First
    }

    pub(super) fn refuse(&mut self, peer: NodeId, id: MessageId, code: StatusCode) {
        let at = self.position(peer, id);
        if self.served[at].id == id {
            self.served[at].refused = Some(code);
        }
    }

    /// Whether the response under way to `peer` is the one that was served last in its row, so
    /// that the bytes kept are its.
    pub(super) fn is_current(&self, peer: NodeId, id: MessageId) -> bool {
        let served = &self.served[self.position(peer, id)];
        served.seen && served.id == id
    }

    /// A chunk of a write came, in order on its interface.
    pub(super) fn chunk(&mut self, chunk: &Chunk) -> Copy {
        let at = self.position(chunk.peer, chunk.id);
        let stored = &mut self.stored[at];
        if !stored.seen || chunk.id.is_after(stored.id) {
            *stored = Stored { id: chunk.id, seen: true, ..UNUSED };
        }
        if stored.id != chunk.id {
            return Copy::Stale;
        }
        // An interface has seen all chunks before this one, so none is missing here.
        if chunk.offset.0 < stored.moved { Copy::Again(Some(stored.code)) } else { Copy::First }
    }

    /// Memory took the chunk, or refused it.
    pub(super) fn written(&mut self, chunk: &Chunk, code: StatusCode) {
        let at = self.position(chunk.peer, chunk.id);
        let stored = &mut self.stored[at];
        stored.moved = chunk.offset.0 + chunk.bytes.0;
        if stored.code == StatusCode::Ok {
            stored.code = code;
        }
    }

    /// Forgets a peer that no interface reaches.
    pub(super) fn forget(&mut self, peer: NodeId) {
        for row in 0..MessageId::ROWS {
            let at = row * self.nodes + usize::from(peer.number());
            self.served[at] = Served::default();
            self.stored[at] = UNUSED;
        }
    }
}
