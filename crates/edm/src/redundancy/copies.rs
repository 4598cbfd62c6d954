//! The memory side: a record of the requests and chunks that have acted.

use crate::message::{Chunk, MemoryRequest, MessageId, NodeId, StatusCode};

use super::streams::Streams;

/// What is known of the read or RMW that last used a row of a peer.
#[derive(Clone, Copy, Debug)]
struct Served {
    id: MessageId,
    seen: bool,
    /// The sender's newest streams when the request came.
    streams: Streams,
    refused: Option<StatusCode>,
}

/// What is known of the write that last used a row of a peer.
#[derive(Clone, Copy, Debug)]
struct Stored {
    id: MessageId,
    seen: bool,
    /// The sender's newest streams when the first chunk came.
    streams: Streams,
    /// Number of bytes that memory has taken or refused.
    moved: u64,
    code: StatusCode,
}

/// How to handle a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    /// It is the first copy, which acts.
    First,
    /// The message has acted before; the code tells whether memory refused it.
    Again(Option<StatusCode>),
    /// The copy is of an older message than its row's current one.
    Stale,
}

/// One decision per message, whichever interface it comes by. The first copy acts; all later copies
/// get an equal answer.
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

    /// Processes a request whose sender's newest streams are `streams`. A record from streams that
    /// have all ended is ignored, since the sender's ids may have advanced too far.
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

    /// True if the response in progress to `peer` is the one last served in its row, so that the
    /// kept bytes are its own.
    pub(super) fn is_current(&self, peer: NodeId, id: MessageId) -> bool {
        let served = &self.served[self.position(peer, id)];
        served.seen && served.id == id
    }

    /// Processes a chunk of a write that came in order on its interface; `streams` are as for a
    /// request.
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
        // The interface has seen all chunks before this one, so none is missing here.
        if chunk.offset.0 < stored.moved { Copy::Again(Some(stored.code)) } else { Copy::First }
    }

    /// Records that memory took or refused the chunk.
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
        // After power-on the sender's ids start again.
        assert_eq!(copies.request(&request, Streams::of_start(1)), Copy::First);
        streams = Streams::of_start(1);
        streams.begin(0);
        streams.begin(1);
        assert_eq!(copies.request(&before, streams), Copy::First);
    }
}
