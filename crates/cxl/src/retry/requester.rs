//! The compute node's side: requests until their responses have come, in order.

use ethermem_units::Ps;
use ethermem_wire::cxl::{
    AccessId, LineAddress, Negative, Request, RequestPacket, Response, ResponsePacket, Sequence,
};
use thiserror::Error;

use super::Retransmission;
use crate::ring::Ring;
use crate::slots::{Slots, Storage};

/// What a requester is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequesterConfig {
    /// Most requests that are sent and not answered: 1 to 2^15.
    pub window: u32,
    /// Requests that may wait until the window has room.
    pub backlog: u32,
    /// What is sent again after a loss.
    pub retransmission: Retransmission,
    /// How long to wait for a response before its request is sent again; doubled with each try, up
    /// to 32 times as long.
    pub retry_after: Ps,
    /// The number of the first request.
    pub initial: Sequence,
    /// When the memory of its buffers is reserved.
    pub storage: Storage,
}

/// A request whose response has come, in the order of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// What the caller gave with the request.
    pub origin: T,
    /// The line that was asked for.
    pub line: LineAddress,
    /// The response; `None` if the memory node was given up.
    pub response: Option<Response>,
}

/// Why a response, or a SACK + NAK, was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponseFault {
    /// It is for no request that is under way: a duplicate, or one from an earlier attachment.
    #[error("sequence {sequence}: must be {oldest} to before {end}")]
    OutsideWindow {
        /// The number in the packet.
        sequence: u32,
        /// The oldest request without a response.
        oldest: u32,
        /// After the newest request that was sent.
        end: u32,
    },
    /// The request has its response already.
    #[error("sequence {0} is answered already")]
    Duplicate(u32),
    /// Its identifier or its kind is not the request's.
    #[error("sequence {0}: identifier or kind is not that of the request")]
    Mismatch(u32),
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequesterCounters {
    /// Requests that were sent for the first time.
    pub sent: u64,
    /// Requests that were sent again, by why: a SACK + NAK, a gap in the responses, a timeout.
    pub resent: [u64; 3],
    /// Responses that were taken.
    pub answered: u64,
    /// Packets that were ignored: outside the window, duplicates, mismatches.
    pub ignored: [u64; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Negative,
    Gap,
    Timeout,
}

/// An entry of the retry buffer, and of the reorder buffer of responses.
#[derive(Clone, Copy, Debug)]
struct Slot<T> {
    packet: RequestPacket,
    origin: T,
    sent_at: Ps,
    tries: u8,
    /// The memory node has said that it has the request.
    sacked: bool,
    response: Option<Response>,
    resend: Option<Why>,
}

/// The compute node's side of one attachment. `T` is what the caller wants back with a response.
#[derive(Clone, Debug)]
pub struct Requester<T> {
    config: RequesterConfig,
    slots: Slots<Slot<T>>,
    /// The oldest request that was not delivered.
    oldest: Sequence,
    /// The first request that was never sent.
    unsent: Sequence,
    /// The number of the next request.
    next: Sequence,
    /// After the newest request that has a response: the "previous ACK".
    acked: Sequence,
    /// Go-back-N: the gap for which all was sent again already.
    went_back: Option<Sequence>,
    resend: Ring<Sequence>,
    counters: RequesterCounters,
}

const DOUBLINGS_MAX: u8 = 5;

impl<T: Copy> Requester<T> {
    /// A requester with nothing under way.
    ///
    /// # Panics
    /// If the window is 0 or above 2^15.
    #[must_use]
    pub fn new(config: RequesterConfig) -> Requester<T> {
        assert!((1..=1 << 15).contains(&config.window), "window {}: 1 to 32768", config.window);
        let slots = (config.window + config.backlog).next_power_of_two() as usize;
        Requester {
            config,
            slots: Slots::new(slots, config.storage),
            oldest: config.initial,
            unsent: config.initial,
            next: config.initial,
            acked: config.initial,
            went_back: None,
            resend: Ring::with(slots, config.storage),
            counters: RequesterCounters::default(),
        }
    }

    /// True if so many more requests are taken.
    #[must_use]
    pub fn has_room(&self, requests: u32) -> bool {
        let held = self.next.since(self.oldest).unsigned_abs();
        held + requests <= self.config.window + self.config.backlog
    }

    /// The number that the next request gets.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// The oldest request that was not delivered; [`Requester::next_sequence`] if there is none.
    #[must_use]
    pub fn oldest(&self) -> Sequence {
        self.oldest
    }

    /// The line of the first request whose origin is looked for.
    pub fn find(&self, mut is_it: impl FnMut(&T) -> bool) -> Option<LineAddress> {
        let mut sequence = self.oldest;
        while sequence != self.next {
            if let Some(slot) = self.slots.get(sequence)
                && is_it(&slot.origin)
            {
                return Some(slot.packet.line);
            }
            sequence = sequence.plus(1);
        }
        None
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> RequesterCounters {
        self.counters
    }

    /// Takes a request; requests are executed in the order in which they are taken.
    ///
    /// # Panics
    /// Without [`Requester::has_room`].
    pub fn submit(&mut self, id: AccessId, line: LineAddress, request: Request, origin: T) {
        assert!(self.has_room(1), "the caller has asked for room");
        let sequence = self.next;
        let packet = RequestPacket { sequence, id, line, request };
        let slot = Slot {
            packet,
            origin,
            sent_at: Ps::ZERO,
            tries: 0,
            sacked: false,
            response: None,
            resend: None,
        };
        self.slots.put(sequence, slot);
        self.next = sequence.plus(1);
    }

    /// The packet to send next: one again, or the next one for the first time.
    /// [`Requester::mark_sent`] says that it went.
    pub fn next_packet(&mut self) -> Option<&RequestPacket> {
        while let Some(&sequence) = self.resend.front() {
            let is_open =
                |slot: &Slot<T>| slot.response.is_none() && slot.packet.sequence == sequence;
            if self.slots.get(sequence).is_some_and(is_open) {
                break;
            }
            self.resend.pop();
        }
        let sequence = match self.resend.front() {
            Some(&sequence) => sequence,
            None if self.may_send_new() => self.unsent,
            None => return None,
        };
        self.slots.get(sequence).map(|slot| &slot.packet)
    }

    fn may_send_new(&self) -> bool {
        self.unsent != self.next
            && self.unsent.since(self.oldest).unsigned_abs() < self.config.window
    }

    /// The packet that [`Requester::next_packet`] gave was sent.
    pub fn mark_sent(&mut self, now: Ps) {
        let again = self.resend.pop();
        let sequence = again.unwrap_or(self.unsent);
        let Some(slot) = self.slots.get_mut(sequence) else { return };
        slot.sent_at = now;
        slot.tries = slot.tries.saturating_add(1);
        match slot.resend.take() {
            Some(why) => self.counters.resent[why as usize] += 1,
            None => self.counters.sent += 1,
        }
        if again.is_none() {
            self.unsent = sequence.plus(1);
        }
    }

    /// A response has come: the ACK of its request, whether alone or merged.
    ///
    /// A gap between it and the previous ACK is a response that was lost: the requests in the gap
    /// are sent again at once.
    ///
    /// # Errors
    /// [`ResponseFault`]: it changed nothing.
    pub fn on_response(&mut self, packet: &ResponsePacket) -> Result<(), ResponseFault> {
        let sequence = packet.sequence;
        self.check_window(sequence)?;
        let in_order = self.acked == sequence;
        let go_back = self.config.retransmission == Retransmission::GoBackN;
        let Some(slot) = self.slots.get_mut(sequence) else {
            unreachable!("requests under way have slots")
        };
        let is_read = matches!(slot.packet.request, Request::Read);
        if slot.packet.id != packet.id || is_read != matches!(packet.response, Response::Read(_)) {
            self.counters.ignored[2] += 1;
            return Err(ResponseFault::Mismatch(sequence.0));
        }
        if slot.response.is_some() {
            self.counters.ignored[1] += 1;
            return Err(ResponseFault::Duplicate(sequence.0));
        }
        if go_back && !in_order {
            if self.went_back != Some(self.acked) {
                self.went_back = Some(self.acked);
                self.resend_all(self.acked, self.unsent, Why::Gap);
            }
            return Ok(());
        }
        slot.response = Some(packet.response);
        self.counters.answered += 1;
        if sequence.since(self.acked) >= 0 {
            let gap_from = self.acked;
            self.acked = sequence.plus(1);
            self.resend_all(gap_from, sequence, Why::Gap);
        }
        Ok(())
    }

    /// A SACK + NAK has come: marks the request that arrived, and sends again those between it and
    /// the mark before it, or the last one that has arrived without a gap.
    ///
    /// # Errors
    /// [`ResponseFault::OutsideWindow`]: it changed nothing.
    pub fn on_negative(&mut self, negative: Negative) -> Result<(), ResponseFault> {
        let Negative { nak, sack } = negative;
        self.check_window(sack)?;
        // All before the NAK has arrived; what was delivered since needs no look.
        let nak = if nak.since(self.oldest) < 0 { self.oldest } else { nak };
        if self.config.retransmission == Retransmission::GoBackN {
            self.resend_all(nak, self.unsent, Why::Negative);
            return Ok(());
        }
        if let Some(slot) = self.slots.get_mut(sack) {
            slot.sacked = true;
        }
        let mut gap = sack;
        while gap.since(nak) > 0 {
            let before = gap.minus(1);
            if self.slots.get(before).is_none_or(|slot| slot.sacked) {
                break;
            }
            gap = before;
        }
        self.resend_all(gap, sack, Why::Negative);
        Ok(())
    }

    fn check_window(&mut self, sequence: Sequence) -> Result<(), ResponseFault> {
        let (oldest, end) = (self.oldest, self.unsent);
        if sequence.since(oldest) >= 0 && sequence.since(end) < 0 {
            return Ok(());
        }
        self.counters.ignored[0] += 1;
        let sequence = sequence.0;
        Err(ResponseFault::OutsideWindow { sequence, oldest: oldest.0, end: end.0 })
    }

    /// Queues requests that have no response, from the first and before the last.
    fn resend_all(&mut self, from: Sequence, end: Sequence, why: Why) {
        let mut sequence = from;
        while sequence.since(end) < 0 {
            self.queue_resend(sequence, why);
            sequence = sequence.plus(1);
        }
    }

    fn queue_resend(&mut self, sequence: Sequence, why: Why) {
        let Some(slot) = self.slots.get_mut(sequence) else { return };
        if slot.response.is_some() || slot.resend.is_some() {
            return;
        }
        slot.resend = Some(why);
        let queued = self.resend.push(sequence);
        debug_assert!(queued.is_ok(), "each slot is queued once");
    }

    /// When [`Requester::on_timer`] has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Option<Ps> {
        if self.oldest == self.unsent {
            return None;
        }
        let slot = self.slots.get(self.oldest)?;
        (slot.resend.is_none() && slot.response.is_none()).then(|| self.due(slot))
    }

    /// Sends again what has waited for its response for too long, once the oldest has.
    pub fn on_timer(&mut self, now: Ps) {
        if self.next_wake().is_none_or(|wake| wake > now) {
            return;
        }
        let mut sequence = self.oldest;
        while sequence != self.unsent {
            let slot = self.slots.get(sequence);
            if slot.is_some_and(|slot| self.due(slot) <= now) {
                self.queue_resend(sequence, Why::Timeout);
            }
            sequence = sequence.plus(1);
        }
    }

    fn due(&self, slot: &Slot<T>) -> Ps {
        let doublings = slot.tries.saturating_sub(1).min(DOUBLINGS_MAX);
        slot.sent_at + self.config.retry_after * (1 << doublings)
    }

    /// The oldest request, if its response has come.
    pub fn poll_delivery(&mut self) -> Option<Delivery<T>> {
        let slot = *self.slots.get(self.oldest).filter(|slot| slot.response.is_some())?;
        Some(self.deliver(slot))
    }

    /// Ends the oldest request without a response, as the memory node was given up; to be called
    /// until there is none.
    pub fn poll_abandoned(&mut self) -> Option<Delivery<T>> {
        let slot = *self.slots.get(self.oldest)?;
        if self.unsent == self.oldest {
            self.unsent = self.oldest.plus(1);
        }
        if self.acked == self.oldest {
            self.acked = self.oldest.plus(1);
        }
        Some(self.deliver(slot))
    }

    /// Begins anew, with nothing under way and another first number.
    ///
    /// # Panics
    /// If a request is left: [`Requester::poll_abandoned`] ends them.
    pub fn restart(&mut self, initial: Sequence) {
        assert_eq!(self.oldest, self.next, "requests are ended first");
        while self.resend.pop().is_some() {}
        self.config.initial = initial;
        (self.oldest, self.unsent, self.next, self.acked) = (initial, initial, initial, initial);
        self.went_back = None;
    }

    fn deliver(&mut self, slot: Slot<T>) -> Delivery<T> {
        self.slots.take(self.oldest);
        self.slots.release_after(self.oldest);
        self.oldest = self.oldest.plus(1);
        Delivery { origin: slot.origin, line: slot.packet.line, response: slot.response }
    }
}
