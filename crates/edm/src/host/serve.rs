//! The memory side of reads and atomics: requests in, responses out.

use ethermem_units::{Bytes, Ps};

use crate::message::{
    Action, Address, Chunk, ChunkKind, Grant, MESSAGE_BYTES_MAX, MemoryRequest, MessageId, NodeId,
    Outbound, RMW_BYTES, Status, StatusCode,
};

use super::{Granted, Host, Target};

const NO_RESPONSE: u16 = u16::MAX;

/// A response under way. Invariant: sent <= granted <= bytes.
#[derive(Clone, Copy, Debug)]
struct Response {
    address: u64,
    bytes: u32,
    granted: u32,
    /// Bytes sent; of a free response, the next free one.
    sent_or_next: u32,
    peer: NodeId,
    id: MessageId,
    /// Memory refused: grants are consumed without data, then this is answered. Not before, so
    /// that the requester does not reuse the id while the switch still grants it.
    refused: Option<StatusCode>,
}

/// What is known of the id that last used a row of a peer's message state table.
#[derive(Clone, Copy, Debug)]
struct Served {
    response: u16,
    id: MessageId,
    seen: bool,
}

/// Responses by (peer, row), in a slab so that those in flight are close together.
#[derive(Debug)]
pub(super) struct Responses {
    /// As in the message state table, the first rows of all peers lie together.
    served: Vec<Served>,
    nodes: usize,
    rows: usize,
    slab: Vec<Response>,
    capacity: usize,
    free: u16,
}

impl Responses {
    pub(super) fn new(nodes: u16, notifications_max: u8) -> Responses {
        let rows = usize::from(notifications_max);
        let capacity = usize::from(nodes) * rows;
        let unused = Served { response: NO_RESPONSE, id: MessageId(0), seen: false };
        Responses {
            served: vec![unused; capacity],
            nodes: usize::from(nodes),
            rows,
            slab: Vec::with_capacity(capacity),
            capacity,
            free: NO_RESPONSE,
        }
    }

    #[inline]
    fn served(&mut self, peer: NodeId, id: MessageId) -> Option<&mut Served> {
        let row = id.row();
        (!id.is_write() && row < self.rows)
            .then(|| &mut self.served[row * self.nodes + usize::from(peer.number())])
    }

    /// The open response of an id.
    #[inline]
    fn find(&mut self, peer: NodeId, id: MessageId) -> Option<u16> {
        let served = self.served(peer, id)?;
        (served.id == id && served.response != NO_RESPONSE).then_some(served.response)
    }

    #[inline]
    fn insert(&mut self, response: Response) -> u16 {
        let index = self.free;
        let index = if index != NO_RESPONSE {
            self.free = self.slab[usize::from(index)].sent_or_next as u16;
            self.slab[usize::from(index)] = response;
            index
        } else {
            assert!(self.slab.len() < self.capacity, "more responses than rows");
            self.slab.push(response);
            (self.slab.len() - 1) as u16
        };
        let Response { peer, id, .. } = response;
        if let Some(served) = self.served(peer, id) {
            *served = Served { response: index, id, seen: true };
        }
        index
    }

    fn remove(&mut self, index: u16) {
        let Response { peer, id, .. } = self.slab[usize::from(index)];
        if let Some(served) = self.served(peer, id) {
            served.response = NO_RESPONSE;
        }
        self.slab[usize::from(index)].sent_or_next = u32::from(self.free);
        self.free = index;
    }

    /// Forgets all responses to `peer`, and which of its ids were seen.
    pub(super) fn forget(&mut self, peer: NodeId) {
        for row in 0..self.rows {
            let position = row * self.nodes + usize::from(peer.number());
            let response = self.served[position].response;
            if response != NO_RESPONSE {
                self.remove(response);
            }
            self.served[position].seen = false;
        }
    }

    pub(super) fn peer(&self, index: u16) -> NodeId {
        self.slab[usize::from(index)].peer
    }
}

impl Host {
    /// An RREQ or RMWREQ arrived at this memory node. It is also the grant of the response's first
    /// chunk.
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
        let Some(served) = self.responses.served(peer, id).filter(|_| length_fits) else {
            self.counters.request_malformed += 1;
            return None;
        };
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
        self.grants.push(now, Granted { target: Target::Response(index), bytes: granted });
        Some(Action::Serve(request))
    }

    /// Memory refused a request: its requester is told instead of being answered with data.
    pub fn refuse(&mut self, peer: NodeId, id: MessageId, code: StatusCode) {
        let found = if self.is_known(peer) { self.responses.find(peer, id) } else { None };
        if let Some(index) = found {
            self.responses.slab[usize::from(index)].refused = Some(code);
        }
    }

    pub(super) fn grant_response(&mut self, now: Ps, grant: Grant) {
        let Some(index) = self.responses.find(grant.peer, grant.id) else {
            self.counters.grant_unknown += 1;
            return;
        };
        let response = &mut self.responses.slab[usize::from(index)];
        if grant.bytes.0 == 0 || grant.bytes.0 > u64::from(response.bytes - response.granted) {
            self.counters.grant_excess += 1;
            return;
        }
        let bytes = grant.bytes.0 as u32;
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

    /// Sends all `granted` bytes of a response: one chunk.
    pub(super) fn send_response(&mut self, index: u16, granted: u32) -> (u32, Option<Outbound>) {
        let response = &mut self.responses.slab[usize::from(index)];
        let offset = response.sent_or_next;
        response.sent_or_next += granted;
        assert!(response.sent_or_next <= response.granted, "more was sent than granted");
        let response = *response;
        let last = response.sent_or_next == response.bytes;
        if last {
            self.responses.remove(index);
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
        self.responses.remove(index);
        if let Some(code) = refused {
            self.push_status(now, Status { peer, id, member: 0, code });
        }
    }

    /// Gives up a response whose requester has begun to use the row anew: it was restored after a
    /// failure that this node did not hear of.
    fn abandon(&mut self, index: u16) {
        self.counters.response_abandoned += 1;
        self.grants.retain(|granted| !matches!(granted.target, Target::Response(i) if i == index));
        self.responses.remove(index);
    }
}
