//! Received data and statuses.

use ethermem_units::{Bytes, Ps};

use crate::message::{Action, Chunk, ChunkKind, FailReason, Status, StatusCode};

use super::Host;
use super::entry::{Entry, NONE, Outcome, kind, state};

impl Host {
    /// Processes a chunk: of a response to this node, or of a write into its memory.
    #[inline]
    #[must_use]
    pub fn on_chunk(&mut self, now: Ps, chunk: Chunk) -> Option<Action> {
        self.advance(now);
        if !self.is_known(chunk.peer) {
            return None;
        }
        match chunk.kind {
            ChunkKind::ReadResponse => self.receive_response(now, &chunk),
            ChunkKind::PostedWrite | ChunkKind::AcknowledgedWrite => self.receive_write(now, chunk),
        }
    }

    #[inline]
    fn receive_response(&mut self, now: Ps, chunk: &Chunk) -> Option<Action> {
        let Chunk { peer, id, offset, bytes, last, .. } = *chunk;
        if id.is_write() || bytes == Bytes(0) {
            self.counters.chunk_malformed += 1;
            return None;
        }
        let index = self.peers.leader_of(peer, id);
        if index == NONE || self.slab[index].id != id || self.slab[index].has(state::UNSENT) {
            self.counters.chunk_unknown += 1;
            return None;
        }
        let Entry { token, moved, demand, .. } = self.slab[index];
        if self.slab[index].has(state::ENDED) {
            // The id is in quarantine; after the last chunk nothing more can arrive under it.
            self.counters.chunk_late += 1;
            if last {
                self.release_read(now, index);
            }
            return None;
        }
        // The sum saturates: a length from the network may be anything.
        let end = offset.0.saturating_add(bytes.0);
        let follows = offset.0 == u64::from(moved);
        if !follows || end > u64::from(demand) || last != (end == u64::from(demand)) {
            self.counters.chunk_out_of_order += 1;
            if last {
                self.end(index, Outcome::Failed(FailReason::Incomplete));
                self.release_read(now, index);
            }
            return None;
        }
        if last {
            self.end(index, Outcome::Done);
            self.release_read(now, index);
        } else {
            self.slab[index].moved = end as u32;
        }
        Some(Action::Deliver { token, offset, bytes })
    }

    /// Processes a status: the acknowledgement of a write, or the refusal of any request.
    pub fn on_status(&mut self, now: Ps, status: Status) {
        self.advance(now);
        if !self.is_known(status.peer) {
            return;
        }
        let leader = self.peers.leader_of(status.peer, status.id);
        if leader == NONE
            || self.slab[leader].id != status.id
            || self.slab[leader].has(state::UNSENT)
        {
            self.counters.status_unknown += 1;
            return;
        }
        if status.id.is_write() {
            self.acknowledge(now, leader, status);
            return;
        }
        if status.code == StatusCode::Ok {
            self.counters.status_unknown += 1;
            return;
        }
        if self.slab[leader].has(state::ENDED) {
            self.counters.status_late += 1;
        } else {
            self.end(leader, Outcome::of(status.code));
        }
        self.release_read(now, leader);
    }

    fn acknowledge(&mut self, now: Ps, leader: u32, status: Status) {
        // Memory answers in the order of arrival, so the search ends where it starts.
        let mut member = self.slab[leader].before;
        if member == NONE || self.slab[member].member > status.member {
            member = leader;
        }
        while member != NONE && self.slab[member].member < status.member {
            member = self.slab[member].next;
        }
        if member == NONE || !self.slab[member].has(state::AWAITS_ACK) {
            self.counters.status_unknown += 1;
            return;
        }
        let entry = &mut self.slab[member];
        entry.state &= !state::AWAITS_ACK;
        let next = entry.next;
        if entry.has(state::ENDED) {
            self.counters.status_late += 1;
        } else {
            self.end(member, Outcome::of(status.code));
        }
        let lead = &mut self.slab[leader];
        lead.before = next;
        lead.acks_or_opcode -= 1;
        if lead.acks_or_opcode == 0 && lead.moved == lead.demand {
            let peer = lead.peer;
            self.close(leader);
            self.pump(now, peer);
        }
    }

    #[inline]
    fn release_read(&mut self, now: Ps, index: u32) {
        assert!(!self.slab[index].is(kind::WRITE), "a write is released as a read");
        let peer = self.slab[index].peer;
        self.close(index);
        self.pump(now, peer);
    }
}
