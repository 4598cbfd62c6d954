//! The memory side of reads and atomics: requests in, responses out.

use ethermem_units::{Bytes, Ps};

use crate::message::{
    Action, Address, Chunk, ChunkKind, Grant, MESSAGE_BYTES_MAX, MemoryRequest, MessageId, NodeId,
    Outbound, RMW_BYTES, Status, StatusCode,
};

use super::store::Store;
use super::{Granted, Host, Target};

const NO_RESPONSE: u16 = u16::MAX;

/// A response in progress. Invariant: sent <= granted <= bytes.
#[derive(Clone, Copy, Debug)]
struct Response {
    address: u64,
    bytes: u32,
    granted: u32,
    /// Bytes sent; in a free response, the index of the next free one.
    sent_or_next: u32,
    peer: NodeId,
    id: MessageId,
    /// Memory refused the request. The refusal is sent once all grants were consumed without data.
    /// Sent earlier, the requester could reuse the id while the switch still grants it.
    refused: Option<StatusCode>,
}

/// What is known of the id that last used a row of a peer's message state table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    response: u16,
    id: MessageId,
    seen: bool,
}

impl Served {
    pub(super) const UNUSED: Served =
        Served { response: NO_RESPONSE, id: MessageId(0), seen: false };
}

/// Responses in a slab, so that those in flight lie close together. Peers hold indices into it.
#[derive(Debug)]
pub(super) struct Responses {
    slab: Vec<Response>,
    capacity: usize,
    free: u16,
}

impl Responses {
    pub(super) fn new(nodes: u16, notifications_max: u8) -> Responses {
        let capacity = usize::from(nodes) * usize::from(notifications_max);
        Responses { slab: Vec::with_capacity(capacity), capacity, free: NO_RESPONSE }
    }

    #[inline]
    fn insert(&mut self, response: Response) -> u16 {
        let index = self.free;
        if index == NO_RESPONSE {
            assert!(self.slab.len() < self.capacity, "more responses than rows");
            self.slab.push(response);
            return (self.slab.len() - 1) as u16;
        }
        self.free = self.slab[usize::from(index)].sent_or_next as u16;
        self.slab[usize::from(index)] = response;
        index
    }

    fn remove(&mut self, index: u16) {
        self.slab[usize::from(index)].sent_or_next = u32::from(self.free);
        self.free = index;
    }

    pub(super) fn peer(&self, index: u16) -> NodeId {
        self.slab[usize::from(index)].peer
    }
}

impl Host {
    /// Processes an RREQ or RMWREQ at this memory node. The request is also the grant of the
    /// response's first chunk.
    #[must_use]
    pub fn on_request(&mut self, now: Ps, request: MemoryRequest) -> Option<Action> {
        self.advance(now);
        let MemoryRequest { peer, id, bytes, .. } = request;
        if !self.is_known(peer) {
            return None;
        }
        let length_fits = bytes > Bytes(0)
            && bytes <= MESSAGE_BYTES_MAX
            && (request.modify.is_none() || bytes == RMW_BYTES);
        if !length_fits || !self.is_served_under(id) {
            self.counters.request_malformed += 1;
            return None;
        }
        let served = *self.peers.served(peer, id.row());
        if served.seen && !id.is_after(served.id) {
            self.counters.request_duplicate += 1;
            return None;
        }
        let abandoned = served.response;
        if self.grants.is_full() {
            self.counters.request_overflow += 1;
            return None;
        }
        if abandoned != NO_RESPONSE {
            self.abandon(abandoned);
        }
        let granted = self.chunk.min(bytes.0 as u32);
        let index = self.responses.insert(Response {
            address: request.address.0,
            bytes: bytes.0 as u32,
            granted,
            sent_or_next: 0,
            peer,
            id,
            refused: None,
        });
        *self.peers.served(peer, id.row()) = Served { response: index, id, seen: true };
        self.grants.push(now, Granted { target: Target::Response(index), bytes: granted });
        Some(Action::Serve(request))
    }

    /// Records that memory refused a request: the requester gets a status in place of data.
    pub fn refuse(&mut self, peer: NodeId, id: MessageId, code: StatusCode) {
        let found = if self.is_known(peer) { self.response_of(peer, id) } else { None };
        if let Some(index) = found {
            self.responses.slab[usize::from(index)].refused = Some(code);
        }
    }

    pub(super) fn grant_response(&mut self, now: Ps, grant: Grant) {
        let Some(index) = self.response_of(grant.peer, grant.id) else {
            self.counters.grant_unknown += 1;
            return;
        };
        let response = &mut self.responses.slab[usize::from(index)];
        let left = response.bytes - response.granted;
        let Some(bytes) = grant.usable(response.bytes, left) else {
            self.counters.grant_excess += 1;
            return;
        };
        if self.grants.is_full() {
            self.counters.grant_overflow += 1;
            response.bytes -= bytes;
            response.refused = Some(StatusCode::Overloaded);
            if response.sent_or_next == response.bytes {
                self.finish_response(now, index);
            }
            return;
        }
        response.granted += bytes;
        self.grants.push(now, Granted { target: Target::Response(index), bytes });
    }

    /// Sends all `granted` bytes of a response as one chunk.
    pub(super) fn send_response(&mut self, index: u16, granted: u32) -> (u32, Option<Outbound>) {
        let response = &mut self.responses.slab[usize::from(index)];
        let offset = response.sent_or_next;
        response.sent_or_next += granted;
        assert!(response.sent_or_next <= response.granted, "more was sent than granted");
        let response = *response;
        let last = response.sent_or_next == response.bytes;
        if last {
            self.remove_response(index);
        }
        let Response { peer, id, .. } = response;
        let outbound = match response.refused {
            Some(code) if last => Some(Outbound::Status(Status { peer, id, member: 0, code })),
            Some(_) => None,
            None => Some(Outbound::Chunk {
                chunk: Chunk {
                    peer,
                    id,
                    kind: ChunkKind::ReadResponse,
                    member: 0,
                    offset: Bytes(u64::from(offset)),
                    bytes: Bytes(u64::from(granted)),
                    last,
                    address: Address(response.address.wrapping_add(u64::from(offset))),
                },
                token: None,
            }),
        };
        (granted, outbound)
    }

    /// Answers a refused response whose demand was used up.
    fn finish_response(&mut self, now: Ps, index: u16) {
        let Response { peer, id, refused, .. } = self.responses.slab[usize::from(index)];
        self.remove_response(index);
        if let Some(code) = refused {
            self.push_status(now, Status { peer, id, member: 0, code });
        }
    }

    /// Abandons a response whose requester has reused the row: the requester was restored after a
    /// failure that this node was not told of.
    fn abandon(&mut self, index: u16) {
        self.counters.response_abandoned += 1;
        self.grants.retain(|granted| !matches!(granted.target, Target::Response(i) if i == index));
        self.remove_response(index);
    }

    /// True if requests can arrive under this id.
    #[inline]
    fn is_served_under(&self, id: MessageId) -> bool {
        !id.is_write() && id.row() < self.peers.rows(false)
    }

    /// The open response of an id.
    #[inline]
    fn response_of(&mut self, peer: NodeId, id: MessageId) -> Option<u16> {
        if !self.is_served_under(id) {
            return None;
        }
        let served = self.peers.served(peer, id.row());
        (served.id == id && served.response != NO_RESPONSE).then_some(served.response)
    }

    fn remove_response(&mut self, index: u16) {
        let Response { peer, id, .. } = self.responses.slab[usize::from(index)];
        self.peers.served(peer, id.row()).response = NO_RESPONSE;
        self.responses.remove(index);
    }

    /// Forgets what a peer has sent: its requests, its writes, and which ids were seen.
    pub(super) fn forget(&mut self, peer: NodeId) {
        for row in 0..self.peers.rows(false) {
            let response = self.peers.served(peer, row).response;
            if response != NO_RESPONSE {
                self.remove_response(response);
            }
            self.peers.served(peer, row).seen = false;
        }
        for row in 0..self.peers.rows(true) {
            *self.peers.store(peer, row) = Store::UNUSED;
        }
    }
}
