//! Grants in, messages out.

use ethermem_units::{Bytes, Ps};

use crate::message::{
    Address, Chunk, ChunkKind, FailReason, Grant, MemoryRequest, Modify, Notification, OpcodeBits,
    Outbound,
};

use super::entry::{Entry, NONE, Outcome, kind, state};
use super::{Control, Granted, Host, Target};

impl Host {
    /// Processes a /G/: the permission to send a chunk of a write of this host or of a response.
    #[inline]
    pub fn on_grant(&mut self, now: Ps, grant: Grant) {
        self.advance(now);
        if !self.is_known(grant.peer) {
            return;
        }
        if grant.id.is_write() {
            self.grant_write(now, grant);
        } else {
            self.grant_response(now, grant);
        }
    }

    fn grant_write(&mut self, now: Ps, grant: Grant) {
        let leader = self.peers.leader_of(grant.peer, grant.id);
        if leader == NONE || self.slab[leader].id != grant.id {
            self.counters.grant_unknown += 1;
            return;
        }
        let entry = &mut self.slab[leader];
        if entry.has(state::UNSENT) {
            self.counters.grant_unknown += 1;
            return;
        }
        let left = entry.demand - entry.granted;
        let Some(bytes) = grant.usable(entry.demand, left) else {
            self.counters.grant_excess += 1;
            return;
        };
        if self.grants.is_full() {
            self.counters.grant_overflow += 1;
            entry.demand -= bytes;
            self.fail_members(leader, FailReason::GrantsLost);
            self.finish_if_sent(now, leader);
            return;
        }
        entry.granted += bytes;
        self.grants.push(now, Granted { target: Target::Write(leader), bytes });
    }

    /// The next message to transmit; `None` when none is ready.
    ///
    /// Requests, notifications and statuses leave in the order in which they became ready, chunks
    /// in the order of their grants. Between the two, what became ready first goes first. At one
    /// instant the control blocks go first: they are short, and other nodes wait for them. A grant
    /// that covers several writes yields a chunk for each.
    #[inline]
    pub fn poll_outbound(&mut self, now: Ps) -> Option<Outbound> {
        self.advance(now);
        loop {
            let (control, data) = (self.control.ready(), self.grants.ready());
            let outbound = if control <= data {
                match self.control.pop()? {
                    Control::Open(index) => self.send_open(now, index),
                    Control::Status(status) => {
                        self.statuses_queued -= 1;
                        Some(Outbound::Status(status))
                    }
                }
            } else {
                self.send_data(now)
            };
            if outbound.is_some() {
                return outbound;
            }
        }
    }

    /// True if [`Host::poll_outbound`] may return a message.
    #[inline]
    #[must_use]
    pub fn has_outbound(&self) -> bool {
        self.control.ready() != Ps::MAX || self.grants.ready() != Ps::MAX
    }

    /// The request or the notification of an entry; `None` if the entry ended while it waited.
    #[inline]
    fn send_open(&mut self, now: Ps, index: u32) -> Option<Outbound> {
        let entry = &mut self.slab[index];
        entry.state &= !state::UNSENT;
        let Entry { peer, id, .. } = *entry;
        let bytes = Bytes(u64::from(entry.demand));
        let write = entry.is(kind::WRITE);
        let alone = entry.next == NONE;
        if entry.has(state::ENDED) && alone {
            // The switch has not seen the id, so nothing late can arrive under it.
            if write {
                self.destination(peer).writes_active -= 1;
            }
            self.close(index);
            self.pump(now, peer);
            return None;
        }
        if write {
            let members = self.members(index);
            return Some(Outbound::Notify(Notification { peer, id, bytes, members }));
        }
        entry.state |= state::EXPOSED;
        let opcode = entry.is(kind::MODIFY).then_some(entry.acks_or_opcode);
        let modify = opcode.map(|opcode| Modify {
            opcode: OpcodeBits::from_low_bits(opcode),
            operands: self.slab.operands(index),
        });
        let address = Address(self.slab[index].address);
        Some(Outbound::Request(MemoryRequest { peer, id, address, bytes, modify }))
    }

    fn members(&self, leader: u32) -> u8 {
        let mut member = leader;
        while self.slab[member].next != NONE {
            member = self.slab[member].next;
        }
        self.slab[member].member + 1
    }

    /// The next chunk of the first grant; `None` if the grant's message ended before.
    #[inline]
    fn send_data(&mut self, now: Ps) -> Option<Outbound> {
        let &mut Granted { target, bytes } = self.grants.front_mut()?;
        let (sent, outbound) = match target {
            Target::Write(leader) => self.send_write(leader, bytes),
            Target::Response(index) => self.send_response(index, bytes),
        };
        if sent == bytes {
            self.grants.pop();
        } else if let Some(front) = self.grants.front_mut() {
            front.bytes -= sent;
        }
        if outbound.is_none() {
            self.counters.grant_late += 1;
        }
        if let Target::Write(leader) = target {
            self.finish_if_sent(now, leader);
        }
        outbound
    }

    /// Sends up to `granted` bytes of the current member. Bytes of an ended member are skipped: its
    /// buffer belongs to the caller again.
    fn send_write(&mut self, leader: u32, granted: u32) -> (u32, Option<Outbound>) {
        let cursor = self.slab[leader].cursor;
        let entry = self.slab[cursor];
        // The leader is the first member: while it is current, `moved` counts only its own bytes.
        let offset = entry.moved;
        let bytes = granted.min(entry.bytes - offset);
        let last = offset + bytes == entry.bytes;
        if cursor != leader {
            self.slab[cursor].moved += bytes;
        }
        let lead = &mut self.slab[leader];
        lead.moved += bytes;
        assert!(lead.moved <= lead.granted, "more was sent than granted");
        if last {
            lead.cursor = entry.next;
        }
        if entry.has(state::ENDED) {
            return (bytes, None);
        }
        lead.state |= state::EXPOSED;
        let acked = entry.is(kind::ACKED);
        if last && acked {
            lead.acks_or_opcode += 1;
            self.slab[cursor].state |= state::AWAITS_ACK;
        } else if last {
            self.end(cursor, Outcome::Done);
        }
        let chunk = Chunk {
            peer: entry.peer,
            id: entry.id,
            kind: if acked { ChunkKind::AcknowledgedWrite } else { ChunkKind::PostedWrite },
            member: entry.member,
            offset: Bytes(u64::from(offset)),
            bytes: Bytes(u64::from(bytes)),
            last,
            address: Address(entry.address.wrapping_add(u64::from(offset))),
        };
        (bytes, Some(Outbound::Chunk { chunk, token: Some(entry.token) }))
    }

    /// Once all data of an id was sent, its notification is no longer active. Once no answer is
    /// due, the id is free.
    #[inline]
    fn finish_if_sent(&mut self, now: Ps, leader: u32) {
        let entry = &self.slab[leader];
        if entry.moved < entry.demand {
            return;
        }
        let peer = entry.peer;
        let acks = entry.acks_or_opcode;
        self.destination(peer).writes_active -= 1;
        if acks == 0 {
            self.close(leader);
        }
        self.pump(now, peer);
    }

    /// Ends all members of an id that are not ended.
    pub(super) fn fail_members(&mut self, leader: u32, why: FailReason) {
        let mut member = leader;
        while member != NONE {
            if !self.slab[member].has(state::ENDED) {
                self.end(member, Outcome::Failed(why));
            }
            member = self.slab[member].next;
        }
    }
}
