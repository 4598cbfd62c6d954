//! Messages that arrive by an interface. The first copy of a request or of a chunk to write acts.

use ethermem_units::Ps;

use crate::message::{
    Action, Chunk, ChunkKind, Grant, MemoryRequest, MessageId, NodeId, Status, StatusCode,
};

use super::compute::is_posted;
use super::copies::Copy;
use super::ledger::Owed;
use super::{Interface, MirroredHost};

impl MirroredHost {
    /// Processes a /G/.
    pub fn on_grant(&mut self, now: Ps, interface: Interface, grant: Grant) {
        if self.owe(now, interface, Owed { peer: grant.peer, id: grant.id, bytes: grant.bytes }) {
            self.side(interface).host.on_grant(now, grant);
            self.settle(now, interface);
        }
    }

    /// Records that the switch waits for a chunk, or for a notice that there will be none. Returns
    /// whether the interface is in use.
    fn owe(&mut self, now: Ps, interface: Interface, owed: Owed) -> bool {
        let side = self.side(interface);
        if side.link_down {
            return false;
        }
        let room = side.ledger.push(owed);
        if !room {
            self.fail_interface(now, interface);
        }
        room
    }

    /// Processes an RREQ or RMWREQ. Only the first copy gives [`Action::Serve`]; its bytes are kept
    /// for the responses to all copies.
    #[must_use]
    pub fn on_request(
        &mut self,
        now: Ps,
        interface: Interface,
        request: MemoryRequest,
    ) -> Option<Action> {
        let MemoryRequest { peer, id, .. } = request;
        let bytes = request.bytes.min(self.side(interface).host.chunk_bytes());
        if !self.owe(now, interface, Owed { peer, id, bytes }) {
            return None;
        }
        if !self.acts(interface, peer) {
            return None;
        }
        self.side(interface).host.on_request(now, request)?;
        match self.copies.request(&request, self.peer_streams.newest(peer)) {
            Copy::First => return Some(Action::Serve(request)),
            Copy::Again(refused) => {
                self.counters.requests_again += 1;
                if let Some(code) = refused {
                    self.side(interface).host.refuse(peer, id, code);
                }
            }
            Copy::Stale => {
                self.counters.stale += 1;
                self.side(interface).host.refuse(peer, id, StatusCode::Incomplete);
            }
        }
        None
    }

    /// Records that memory refused a request: all its copies are answered so.
    pub fn refuse(&mut self, peer: NodeId, id: MessageId, code: StatusCode) {
        self.copies.refuse(peer, id, code);
        for side in &mut self.sides {
            side.host.refuse(peer, id, code);
        }
    }

    /// Processes a chunk. Only the first copy gives [`Action::Store`]. A posted write has no id by
    /// which copies could be told apart, but only a node with one interface sends it: it is always
    /// stored.
    #[must_use]
    pub fn on_chunk(&mut self, now: Ps, interface: Interface, chunk: Chunk) -> Option<Action> {
        if is_posted(&chunk) {
            let stored = self.sides.len() == 1;
            return stored.then_some(Action::Store(chunk));
        }
        if chunk.kind == ChunkKind::AcknowledgedWrite && !self.acts(interface, chunk.peer) {
            return None;
        }
        let action = self.side(interface).host.on_chunk(now, chunk);
        let action = action.and_then(|action| match action {
            Action::Store(chunk) => self.first_copy(now, interface, &chunk),
            other => self.deliver(other),
        });
        self.settle(now, interface);
        self.pump(now, chunk.peer);
        action
    }

    fn first_copy(&mut self, now: Ps, interface: Interface, chunk: &Chunk) -> Option<Action> {
        match self.copies.chunk(chunk, self.peer_streams.newest(chunk.peer)) {
            Copy::First => return Some(Action::Store(*chunk)),
            Copy::Again(code) => {
                self.counters.chunks_again += 1;
                let code = code.unwrap_or(StatusCode::Ok);
                self.side(interface).host.on_written(now, chunk, code);
            }
            Copy::Stale => self.counters.stale += 1,
        }
        None
    }

    /// Records that memory took or refused a chunk given by [`Action::Store`].
    pub fn on_written(&mut self, now: Ps, interface: Interface, chunk: &Chunk, code: StatusCode) {
        if is_posted(chunk) {
            return;
        }
        self.copies.written(chunk, code);
        self.side(interface).host.on_written(now, chunk, code);
    }

    /// Processes a status.
    pub fn on_status(&mut self, now: Ps, interface: Interface, status: Status) {
        self.side(interface).host.on_status(now, status);
        self.settle(now, interface);
        self.pump(now, status.peer);
    }
}
