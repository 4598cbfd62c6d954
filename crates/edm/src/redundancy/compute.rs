//! The compute side: a request goes out on every interface, and one answer comes back.

use ethermem_units::{Bytes, Ps};

use crate::message::{
    Action, Chunk, ChunkKind, Event, FailReason, MESSAGE_BYTES_MAX, NodeId, Op, Outbound, Request,
    StatusCode, SubmitError, WriteKind,
};

use super::pending::{Clock, Outcome, Requests};
use super::{Interface, MirroredHost, Transmit};

/// A copy may come this fraction of the read timeout after the other: a quarter.
const COPY_WAIT_DIVISOR: u64 = 4;

impl MirroredHost {
    /// Accepts a request. It ends with exactly one [`Event`] that carries its token.
    ///
    /// The data of a write must stay until then, since each interface sends its own copy. With two
    /// interfaces a posted write is acknowledged, too, and ends when every copy was.
    ///
    /// # Errors
    /// [`SubmitError`]; the host then keeps nothing of the request.
    ///
    /// # Panics
    /// If `now` is before the time of an earlier call. This holds for every method that takes the
    /// time.
    pub fn submit(&mut self, now: Ps, request: Request) -> Result<(), SubmitError> {
        let peer = request.peer;
        if peer == self.node || usize::from(peer.number()) >= self.queues.len() {
            return Err(SubmitError::BadPeer);
        }
        if let Op::Read { bytes } | Op::Write { bytes, .. } = request.op
            && (bytes == Bytes(0) || bytes > MESSAGE_BYTES_MAX)
        {
            return Err(SubmitError::BadLength);
        }
        if !self.is_reachable(peer) {
            return Err(SubmitError::LinkDown);
        }
        let index = self.requests.insert(request).ok_or(SubmitError::Full)?;
        let posted = matches!(request.op, Op::Write { kind: WriteKind::Posted, .. });
        if !posted || self.sides.len() > 1 {
            let deadline = Ps(now.0.saturating_add(self.read_timeout.0));
            self.requests.start(index, Clock::Answer, deadline);
        }
        self.queues[usize::from(peer.number())].push(&mut self.requests, index);
        self.pump(now, peer);
        Ok(())
    }

    /// The result of the next ended request, in the order of the endings.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.requests.poll_event()
    }

    /// The time at which [`MirroredHost::on_timer`] must be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Ps> {
        let own = [Clock::Answer, Clock::Copy].map(|clock| self.requests.first(clock));
        let own = own.into_iter().flatten().map(|(at, _)| at);
        own.chain(self.sides.iter().filter_map(|side| side.host.next_timeout())).min()
    }

    /// Ends every request whose deadline has come: the NULL response of section 3.3. An interface
    /// fails when it leaves a copy unanswered for a quarter of that time after the other answered.
    /// So a request that waits behind that copy still meets its deadline by the other interface.
    pub fn on_timer(&mut self, now: Ps) {
        while let Some((_, index)) = self.requests.first(Clock::Copy).filter(|&(at, _)| at <= now) {
            let copies = self.requests[index].copies;
            for interface in self.interfaces().filter(|interface| copies & 1 << interface.0 != 0) {
                self.fail_interface(now, interface);
            }
        }
        while let Some((_, index)) = self.requests.first(Clock::Answer).filter(|&(at, _)| at <= now)
        {
            self.requests.end(index, Outcome::Failed(FailReason::Timeout));
            if self.requests[index].queued {
                // Requests before it in the queue were submitted earlier, so they ended earlier.
                let peer = self.requests[index].request.peer;
                let first = self.queues[usize::from(peer.number())].pop(&mut self.requests);
                assert_eq!(first, Some(index), "a queue is not in the order of its deadlines");
                self.requests.release(index);
            }
        }
        for interface in self.interfaces() {
            self.side(interface).host.on_timer(now);
            self.settle(now, interface);
        }
    }

    pub(super) fn interfaces(&self) -> impl Iterator<Item = Interface> + use<> {
        (0..self.sides.len() as u8).map(Interface)
    }

    /// Gives the requests that wait for `peer` their ids and copies, as far as ids are free. An id
    /// is free once no interface has it open. So two copies of a message are never further apart
    /// than the memory node can tell.
    pub(super) fn pump(&mut self, now: Ps, peer: NodeId) {
        let MirroredHost { sides, requests, queues, ids, under_way, .. } = self;
        let Some(queue) = queues.get_mut(usize::from(peer.number())) else {
            return;
        };
        let under_way = &mut under_way[usize::from(peer.number())];
        while let Some(waiting) = queue.head() {
            if !sides.iter().any(|side| side.host.is_reachable(peer)) {
                queue.pop(requests);
                requests.end(waiting, Outcome::Failed(FailReason::PeerDown));
                continue;
            }
            // An interface that joins takes no request while the other has copies in flight.
            let side_mask = (sides.iter_mut().enumerate())
                .filter_map(|(bit, side)| side.takes(peer, *under_way > 0).then_some(1 << bit))
                .sum::<u8>();
            if side_mask == 0 {
                return;
            }
            let write = requests[waiting].is_write();
            let in_use = |id, owner| {
                requests.has_copies(owner, peer, id)
                    || sides.iter().any(|side| side.host.is_open(peer, id))
            };
            let Some(id) = ids.take(peer, write, waiting, in_use) else {
                return;
            };
            queue.pop(requests);
            let pending = &mut requests[waiting];
            pending.id = id;
            let mut request = Request { token: Requests::token(waiting), ..pending.request };
            if let Op::Write { kind, .. } = &mut request.op
                && sides.len() > 1
            {
                *kind = WriteKind::Acknowledged;
            }
            for (bit, side) in sides.iter_mut().enumerate() {
                if side_mask & 1 << bit != 0 {
                    let taken = side.host.submit_as(now, request, id);
                    taken.expect("the host has room, and the request was checked");
                }
            }
            pending.copies = side_mask;
            *under_way += 1;
        }
    }

    /// Processes the requests that ended on an interface.
    pub(super) fn settle(&mut self, now: Ps, interface: Interface) {
        while let Some(event) = self.side(interface).host.poll_event() {
            let index = event.token().0;
            let peer = self.requests[index].request.peer;
            self.settle_copy(now, interface, index, event);
            self.pump(now, peer);
        }
    }

    fn settle_copy(&mut self, now: Ps, interface: Interface, index: u32, event: Event) {
        let pending = &mut self.requests[index];
        pending.copies &= !(1 << interface.0);
        let last = pending.copies == 0;
        match event {
            // A request that the memory node refuses on one interface is refused on both.
            Event::Failed { why: FailReason::Remote(code), .. } if is_final(code) => {
                pending.answer = Some(Outcome::Failed(FailReason::Remote(code)));
            }
            Event::Failed { why, .. } => pending.why = why,
            _ => pending.answer = Some(Outcome::Done),
        }
        // The buffer of a write belongs to the caller again only after the last copy.
        let outcome = match pending.answer {
            Some(answer) if !pending.is_write() || last => Some(answer),
            None if last => Some(Outcome::Failed(pending.why)),
            _ => None,
        };
        let (peer, answered, ended) =
            (pending.request.peer, pending.answer.is_some(), pending.ended);
        if let Some(outcome) = outcome.filter(|_| !ended) {
            self.requests.end(index, outcome);
        }
        if last {
            self.requests.stop(index);
            self.under_way[usize::from(peer.number())] -= 1;
            self.requests.release(index);
        } else if answered {
            let deadline = Ps(now.0.saturating_add(self.read_timeout.0 / COPY_WAIT_DIVISOR));
            self.requests.start(index, Clock::Copy, deadline);
        }
    }

    /// The next message to transmit by an interface.
    pub fn poll_outbound(&mut self, now: Ps, interface: Interface) -> Option<Transmit> {
        let transmit = self.next_outbound(now, interface);
        self.settle(now, interface);
        transmit
    }

    /// True if [`MirroredHost::poll_outbound`] may return a message.
    #[must_use]
    pub fn has_outbound(&self, interface: Interface) -> bool {
        let side = &self.sides[usize::from(interface.0)];
        !side.heard.is_empty()
            || !side.telling.is_empty()
            || side.staged.is_some()
            || side.host.has_outbound()
            || side.ledger.front().is_some()
    }

    fn next_outbound(&mut self, now: Ps, interface: Interface) -> Option<Transmit> {
        let side = self.side(interface);
        // The chunk of a grant may follow: the switch knows that this grant leads nowhere.
        if let Some(peer) = side.heard.pop_front() {
            return Some(Transmit::Heard { peer });
        }
        if let Some(peer) = side.telling.pop_front() {
            let streams = self.streams[usize::from(peer.number())];
            return Some(Transmit::Streams { peer, streams });
        }
        let outbound = side.staged.take().or_else(|| side.host.poll_outbound(now));
        let Some(Outbound::Chunk { chunk, token }) = outbound else {
            if outbound.is_none() {
                // The host has sent all the answers it will: the rest of the grant stays unused.
                return self.next_unused(interface);
            }
            return outbound.map(|outbound| self.sent(outbound));
        };
        let owed = side.ledger.front().expect("a chunk answers a grant");
        if (owed.peer, owed.id) != (chunk.peer, chunk.id) {
            side.staged = outbound;
            return self.next_unused(interface);
        }
        let has_bytes = match token {
            Some(token) => !self.requests[token.0].ended,
            None => self.copies.is_current(chunk.peer, chunk.id),
        };
        if !has_bytes {
            return self.next_unused(interface);
        }
        self.side(interface).ledger.answer(chunk.bytes);
        let token = token.map(|token| self.requests[token.0].request.token);
        Some(self.sent(Outbound::Chunk { chunk, token }))
    }

    fn next_unused(&mut self, interface: Interface) -> Option<Transmit> {
        let owed = self.side(interface).ledger.pop()?;
        self.counters.grants_unused += 1;
        Some(Transmit::Unused { peer: owed.peer, id: owed.id })
    }

    /// Records the ids that the memory node will see. A posted write carries none.
    fn sent(&mut self, outbound: Outbound) -> Transmit {
        match outbound {
            Outbound::Request(request) => self.ids.expose(request.peer, request.id),
            Outbound::Chunk { chunk, token: Some(_) } if !is_posted(&chunk) => {
                self.ids.expose(chunk.peer, chunk.id);
            }
            _ => {}
        }
        Transmit::Message(outbound)
    }

    /// Passes bytes of a response to the caller, unless the request has ended.
    pub(super) fn deliver(&mut self, action: Action) -> Option<Action> {
        let Action::Deliver { token, offset, bytes } = action else {
            return Some(action);
        };
        let pending = &self.requests[token.0];
        if pending.ended {
            self.counters.responses_again += 1;
            return None;
        }
        Some(Action::Deliver { token: pending.request.token, offset, bytes })
    }
}

/// True if a chunk belongs to a write without an answer: on the wire it has neither source nor id.
pub(super) const fn is_posted(chunk: &Chunk) -> bool {
    matches!(chunk.kind, ChunkKind::PostedWrite)
}

/// True if the memory node would give any copy this answer.
fn is_final(code: StatusCode) -> bool {
    matches!(code, StatusCode::BadAddress | StatusCode::Misaligned | StatusCode::BadOpcode)
}
