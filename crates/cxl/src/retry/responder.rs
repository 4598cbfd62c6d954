//! The memory node's side: requests in order, and responses until they are known to have come.

use ethermem_wire::cxl::{
    Negative, Packet, Request, RequestPacket, Response, ResponsePacket, Sequence,
};

use super::Retransmission;
use crate::ring::Ring;
use crate::slots::{Slots, Storage};

/// What became of a request that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one, and will be executed.
    Next,
    /// It is after one that is missing. It is kept, and a SACK + NAK will say so.
    Kept,
    /// It is after one that is missing, and was dropped: go-back-N.
    Dropped,
    /// It was executed before: its response is sent again.
    Answered,
    /// It came before, and is being executed or kept.
    Duplicate,
    /// It cannot be of this attachment: no window reaches so far.
    OutsideWindow,
}

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounters {
    /// Arrivals, in the order of [`Arrival`].
    pub arrived: [u64; 6],
    /// Responses that were sent for the first time.
    pub answered: u64,
    /// Responses that were sent again.
    pub answered_again: u64,
    /// SACK + NAK packets, alone and merged with a response.
    pub negative: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    packet: RequestPacket,
    sack_queued: bool,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    packet: ResponsePacket,
    again: bool,
}

/// The memory node's side of one attachment.
///
/// `to_answer <= to_issue <= next`: responses before `to_answer` were sent, requests before
/// `to_issue` were executed or are being executed, those before `next` have come in order.
#[derive(Clone, Debug)]
pub struct Responder {
    retransmission: Retransmission,
    window: u32,
    next: Sequence,
    to_issue: Sequence,
    to_answer: Sequence,
    /// The reorder buffer of requests.
    requests: Slots<Kept>,
    /// The retry buffer of responses: an entry lives until its place is needed by a request that
    /// is a window later. The compute node sends none before it has had the response.
    answers: Slots<Answer>,
    /// Requests that came out of order and were not yet acknowledged selectively.
    sacks: Ring<Sequence>,
    again: Ring<Sequence>,
    /// Go-back-N: a NAK for `next` was sent.
    nak_sent: bool,
    counters: ResponderCounters,
}

impl Responder {
    /// A responder that waits for the request `initial`.
    ///
    /// # Panics
    /// If the window is 0 or above 2^15.
    #[must_use]
    pub fn new(
        window: u32,
        retransmission: Retransmission,
        initial: Sequence,
        storage: Storage,
    ) -> Responder {
        assert!((1..=1 << 15).contains(&window), "window {window}: 1 to 32768");
        let places = window.next_power_of_two() as usize;
        Responder {
            retransmission,
            window,
            next: initial,
            to_issue: initial,
            to_answer: initial,
            requests: Slots::new(places, storage),
            answers: Slots::new(places, storage),
            sacks: Ring::with(places, storage),
            again: Ring::with(places, storage),
            nak_sent: false,
            counters: ResponderCounters::default(),
        }
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> ResponderCounters {
        self.counters
    }

    /// The first request that has not come.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// A request has come.
    pub fn on_request(&mut self, packet: &RequestPacket) -> Arrival {
        let arrival = self.arrive(packet);
        self.counters.arrived[arrival as usize] += 1;
        arrival
    }

    fn arrive(&mut self, packet: &RequestPacket) -> Arrival {
        let sequence = packet.sequence;
        let window = self.window.cast_signed();
        let from_answer = sequence.since(self.to_answer);
        if from_answer >= window || from_answer < -window {
            return Arrival::OutsideWindow;
        }
        if from_answer < 0 {
            return self.answer_again(sequence);
        }
        let from_next = sequence.since(self.next);
        if from_next < 0 {
            return Arrival::Duplicate;
        }
        if from_next > 0 {
            return self.keep(packet);
        }
        self.requests.put(sequence, Kept { packet: *packet, sack_queued: false });
        while self.kept(self.next) {
            self.next = self.next.plus(1);
        }
        self.nak_sent = false;
        Arrival::Next
    }

    fn kept(&self, sequence: Sequence) -> bool {
        let kept = self.requests.get(sequence);
        kept.is_some_and(|kept| kept.packet.sequence == sequence)
    }

    fn keep(&mut self, packet: &RequestPacket) -> Arrival {
        let sequence = packet.sequence;
        if self.retransmission == Retransmission::GoBackN {
            if !self.nak_sent {
                self.nak_sent = self.sacks.push(sequence).is_ok();
            }
            return Arrival::Dropped;
        }
        let was_kept = self.kept(sequence);
        let queued = |kept: &Kept| kept.sack_queued;
        let sack_queued = was_kept && self.requests.get(sequence).is_some_and(queued);
        // One that is sent again though it is here: the SACK was lost.
        let queued = sack_queued || self.sacks.push(sequence).is_ok();
        self.requests.put(sequence, Kept { packet: *packet, sack_queued: queued });
        if was_kept { Arrival::Duplicate } else { Arrival::Kept }
    }

    fn answer_again(&mut self, sequence: Sequence) -> Arrival {
        match self.answers.get_mut(sequence) {
            Some(answer) if answer.packet.sequence == sequence => {
                if !answer.again {
                    answer.again = true;
                    let queued = self.again.push(sequence);
                    debug_assert!(queued.is_ok(), "each answer is queued once");
                }
                Arrival::Answered
            }
            // Its place was taken by a later one, so the compute node has had it.
            _ => Arrival::OutsideWindow,
        }
    }

    /// The next request to execute, in order. [`Responder::issue`] says that it is being executed.
    #[must_use]
    pub fn next_request(&self) -> Option<&RequestPacket> {
        if self.to_issue == self.next {
            return None;
        }
        self.requests.get(self.to_issue).map(|kept| &kept.packet)
    }

    /// The request that [`Responder::next_request`] gave is being executed, once and for all.
    pub fn issue(&mut self) {
        if self.to_issue != self.next {
            self.requests.take(self.to_issue);
            self.requests.release_after(self.to_issue);
            self.to_issue = self.to_issue.plus(1);
        }
    }

    /// A request was executed; requests may end in any order.
    pub fn complete(&mut self, request: &RequestPacket, response: Response) {
        debug_assert_eq!(
            matches!(request.request, Request::Read),
            matches!(response, Response::Read(_))
        );
        let RequestPacket { sequence, id, .. } = *request;
        let packet = ResponsePacket { sequence, id, response };
        self.answers.put(sequence, Answer { packet, again: false });
    }

    /// Takes the packet to send next: a response in order, with a SACK + NAK if one waits; else a
    /// response again; else a SACK + NAK alone.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        if let Some(&answer) = self.answers.get(self.to_answer)
            && answer.packet.sequence == self.to_answer
            && self.to_answer != self.to_issue
        {
            self.to_answer = self.to_answer.plus(1);
            self.counters.answered += 1;
            return Some(self.merged(answer.packet));
        }
        while let Some(sequence) = self.again.pop() {
            if let Some(answer) = self.answers.get_mut(sequence)
                && answer.packet.sequence == sequence
            {
                answer.again = false;
                let packet = answer.packet;
                self.counters.answered_again += 1;
                return Some(self.merged(packet));
            }
        }
        let negative = self.poll_negative()?;
        self.counters.negative[0] += 1;
        Some(Packet::Negative(negative))
    }

    fn merged(&mut self, response: ResponsePacket) -> Packet {
        match self.poll_negative() {
            Some(negative) => {
                self.counters.negative[1] += 1;
                Packet::Merged(negative, response)
            }
            None => Packet::Response(response),
        }
    }

    /// A SACK that is still of use: something before it is missing.
    fn poll_negative(&mut self) -> Option<Negative> {
        while let Some(sack) = self.sacks.pop() {
            if let Some(kept) = self.requests.get_mut(sack)
                && kept.packet.sequence == sack
            {
                kept.sack_queued = false;
            }
            if sack.since(self.next) > 0 {
                return Some(Negative { nak: self.next, sack });
            }
        }
        None
    }
}
