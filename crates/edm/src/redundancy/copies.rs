//! The memory side: which requests and which chunks have acted already.

use crate::message::{Chunk, MemoryRequest, MessageId, NodeId, StatusCode};

use super::streams::Streams;

/// What is known of the read or RMW that last used a row of a peer.
#[derive(Clone, Copy, Debug)]
struct Served {
    id: MessageId,
    seen: bool,
    /// Its sender's newest streams when it came.
    streams: Streams,
    refused: Option<StatusCode>,
}

/// What is known of the write that last used a row of a peer.
#[derive(Clone, Copy, Debug)]
struct Stored {
    id: MessageId,
    seen: bool,
    /// Its sender's newest streams when its first chunk came.
    streams: Streams,
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

const NO_STREAMS: Streams = Streams::of_start(0);
const UNSERVED: Served =
    Served { id: MessageId(0), seen: false, streams: NO_STREAMS, refused: None };
const UNUSED: Stored =
    Stored { id: MessageId(0), seen: false, streams: NO_STREAMS, moved: 0, code: StatusCode::Ok };

impl Copies {
    pub(super) fn new(nodes: u16) -> Copies {
        let nodes = usize::from(nodes);
        Copies {
            served: vec![UNSERVED; nodes * MessageId::ROWS],
            stored: vec![UNUSED; nodes * MessageId::ROWS],
            nodes,
        }
    }

    fn position(&self, peer: NodeId, id: MessageId) -> usize {
        id.row() * self.nodes + usize::from(peer.number())
    }

    /// A request came, its sender's newest streams being `streams`. What came by streams that have
    /// all ended is as if it had never come: ids may have run away from it.
    pub(super) fn request(&mut self, request: &MemoryRequest, streams: Streams) -> Copy {
        let MemoryRequest { peer, id, .. } = *request;
        let at = self.position(peer, id);
        let served = &mut self.served[at];
        let known = served.seen && !served.streams.have_ended(streams);
        if known && served.id == id {
            return Copy::Again(served.refused);
        }
        if known && !id.is_after(served.id) {
            return Copy::Stale;
        }
        *served = Served { id, seen: true, streams, refused: None };
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

    /// A chunk of a write came, in order on its interface; `streams` as for a request.
    pub(super) fn chunk(&mut self, chunk: &Chunk, streams: Streams) -> Copy {
        let at = self.position(chunk.peer, chunk.id);
        let stored = &mut self.stored[at];
        let known = stored.seen && !stored.streams.have_ended(streams);
        if !known || chunk.id.is_after(stored.id) {
            *stored = Stored { id: chunk.id, seen: true, streams, ..UNUSED };
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Address;
    use ethermem_units::Bytes;

    #[test]
    fn a_request_acts_once_until_all_streams_of_its_time_have_ended() {
        let mut copies = Copies::new(2);
        let (peer, id) = (NodeId::at(1), MessageId::new(false, 9, 0));
        let request =
            MemoryRequest { peer, id, address: Address(0), bytes: Bytes(8), modify: None };
        let before = MemoryRequest { id: MessageId::new(false, 8, 0), ..request };
        let mut streams = Streams::of_start(0);
        assert_eq!(copies.request(&request, streams), Copy::First);
        streams.begin(1);
        assert_eq!(copies.request(&request, streams), Copy::Again(None));
        assert_eq!(copies.request(&before, streams), Copy::Stale);
        // After power-on its sender counts from the same ids.
        assert_eq!(copies.request(&request, Streams::of_start(1)), Copy::First);
        streams = Streams::of_start(1);
        streams.begin(0);
        streams.begin(1);
        assert_eq!(copies.request(&before, streams), Copy::First);
    }
}
