//! The sending end: segments are given to subflows, and kept until they are acknowledged.

use ethermem_units::Ps;
use ethermem_wire::dfabric::{Acknowledgement, FabricAddress};
use thiserror::Error;

use super::{RoundTrips, StreamConfigError, check_window};

/// Later segments of one subflow that must have come before an earlier one counts as lost.
const LATER_BEFORE_LOST: u64 = 3;

/// Which subflow gets the next segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Each in its turn: subflows get equal parts of the flow.
    #[default]
    Turns,
    /// The one with fewest bytes in flight: a slow path gets less.
    Least,
}

/// What a sender is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Most segments that are not acknowledged: a power of two.
    pub window: u32,
    /// Subflows of the stream.
    pub subflows: u16,
    /// Most bytes in flight on a subflow; at least one segment always goes.
    pub subflow_bytes: u64,
    /// Which subflow gets the next segment.
    pub spread: Spread,
}

/// A segment that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number.
    pub number: u32,
    /// The subflow that carries it.
    pub subflow: u16,
    /// Where its data is.
    pub data: FabricAddress,
    /// Bytes of data.
    pub length: u32,
    /// The stream ends with it.
    pub is_last: bool,
    /// It was sent before.
    pub is_again: bool,
}

/// The window is full: an acknowledgement must come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} segments are not acknowledged")]
pub struct WindowFull(pub u32);

/// An acknowledgement that cannot be: it says that segments came which were not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("next segment {says}: must be {oldest} to {newest}")]
pub struct AckFault {
    /// What the acknowledgement says.
    pub says: u32,
    /// The oldest segment that is not acknowledged.
    pub oldest: u32,
    /// The first that was not sent.
    pub newest: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be sent.
    Due { is_again: bool },
    /// Sent on a subflow.
    InFlight(Flight),
    /// It has come.
    Come,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    subflow: u16,
    /// Its number among the segments of the subflow.
    order: u64,
    sent: Ps,
    is_again: bool,
    /// How often its timeout is doubled.
    doublings: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    data: FabricAddress,
    length: u32,
    is_last: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct Subflow {
    is_up: bool,
    in_flight_bytes: u64,
    /// Segments sent on it since the start.
    sent: u64,
    /// The latest of its segments that has come, plus one.
    came: u64,
    /// When the last one of its segments was acknowledged.
    came_at: Ps,
}

/// Sends one stream.
///
/// The timeout of a segment begins when it is sent, and again when a segment of its subflow is
/// acknowledged (RFC 6298, 5.3). Its length is of the [`RoundTrips`] that each call is given.
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    slots: Box<[Slot]>,
    subflows: Box<[Subflow]>,
    /// The oldest segment that is not acknowledged.
    oldest: u32,
    /// The oldest whose data was not taken back by [`Sender::poll_acked`].
    kept: u32,
    /// The next segment's number.
    next: u32,
    /// The receiver has room for segments before this one.
    limit: u32,
    turn: u16,
    /// While the receiver has no room: when the next probe goes, and if it goes now.
    probe_at: Option<Ps>,
    probes: bool,
}

impl Sender {
    /// A sender whose first segment has this number. The receiver has room for its window.
    ///
    /// # Errors
    /// [`StreamConfigError`].
    pub fn new(config: SenderConfig, first: u32) -> Result<Sender, StreamConfigError> {
        check_window(config.window)?;
        if config.subflows == 0 {
            return Err(StreamConfigError::Subflows(config.subflows));
        }
        let slot =
            Slot { data: FabricAddress::default(), length: 0, is_last: false, state: State::Come };
        let subflow =
            Subflow { is_up: true, in_flight_bytes: 0, sent: 0, came: 0, came_at: Ps::ZERO };
        Ok(Sender {
            slots: vec![slot; config.window as usize].into(),
            subflows: vec![subflow; usize::from(config.subflows)].into(),
            oldest: first,
            kept: first,
            next: first,
            limit: first.wrapping_add(config.window),
            turn: 0,
            probe_at: None,
            probes: false,
            config,
        })
    }

    fn at(&self, number: u32) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    fn unacknowledged(&self) -> impl Iterator<Item = u32> + use<> {
        let (oldest, count) = (self.oldest, self.next.wrapping_sub(self.oldest));
        (0..count).map(move |after| oldest.wrapping_add(after))
    }

    /// Takes a segment of the stream. Returns its number.
    ///
    /// # Errors
    /// [`WindowFull`]; also while acknowledged data waits for [`Sender::poll_acked`].
    pub fn push(
        &mut self,
        data: FabricAddress,
        length: u32,
        is_last: bool,
    ) -> Result<u32, WindowFull> {
        let waiting = self.next.wrapping_sub(self.kept);
        if waiting == self.config.window {
            return Err(WindowFull(waiting));
        }
        let number = self.next;
        let at = self.at(number);
        self.slots[at] = Slot { data, length, is_last, state: State::Due { is_again: false } };
        self.next = number.wrapping_add(1);
        Ok(number)
    }

    /// The next segment to be sent; `None` if there is none, or no subflow takes one.
    pub fn poll_transmit(&mut self, now: Ps, trips: &RoundTrips) -> Option<Transmit> {
        let number = self.next_due(now, trips)?;
        let at = self.at(number);
        let Slot { data, length, is_last, state } = self.slots[at];
        let subflow = self.choose(u64::from(length))?;
        let chosen = &mut self.subflows[usize::from(subflow)];
        chosen.in_flight_bytes += u64::from(length);
        let order = chosen.sent;
        chosen.sent += 1;
        let is_again = state == State::Due { is_again: true };
        let doublings = trips.doublings();
        let flight = Flight { subflow, order, sent: now, is_again, doublings };
        self.slots[at].state = State::InFlight(flight);
        Some(Transmit { number, subflow, data, length, is_last, is_again })
    }

    /// The first segment that is due and for which the receiver has room. Where it has none, and
    /// nothing is in flight that would be acknowledged, one segment goes as a probe from time to
    /// time: the acknowledgement that announced room may be lost.
    fn next_due(&mut self, now: Ps, trips: &RoundTrips) -> Option<u32> {
        let first = self.unacknowledged().find(|&number| self.is_due(number))?;
        let room = self.limit.wrapping_sub(self.oldest);
        if first.wrapping_sub(self.oldest) < room || std::mem::take(&mut self.probes) {
            return Some(first);
        }
        let waits = self
            .unacknowledged()
            .any(|number| matches!(self.slots[self.at(number)].state, State::InFlight(_)));
        if !waits && self.probe_at.is_none() {
            self.probe_at = Some(now + trips.timeout(trips.doublings()));
        }
        None
    }

    fn is_due(&self, number: u32) -> bool {
        matches!(self.slots[self.at(number)].state, State::Due { .. })
    }

    /// When a segment in flight is sent again.
    fn deadline(&self, flight: &Flight, trips: &RoundTrips) -> Ps {
        let came_at = self.subflows[usize::from(flight.subflow)].came_at;
        flight.sent.max(came_at) + trips.timeout(flight.doublings)
    }

    fn choose(&mut self, bytes: u64) -> Option<u16> {
        let count = self.config.subflows;
        let turns = (0..count).map(|after| (self.turn + after) % count);
        let takes = |subflow: &u16| {
            let Subflow { is_up, in_flight_bytes, .. } = self.subflows[usize::from(*subflow)];
            let fits = in_flight_bytes + bytes <= self.config.subflow_bytes;
            is_up && (fits || in_flight_bytes == 0)
        };
        let mut able = turns.filter(takes);
        let chosen = match self.config.spread {
            Spread::Turns => able.next(),
            Spread::Least => able.min_by_key(|&at| self.subflows[usize::from(at)].in_flight_bytes),
        }?;
        self.turn = (chosen + 1) % count;
        Some(chosen)
    }

    /// Takes an acknowledgement, and the round trip of the last segment that it names and that was
    /// sent once. What is then free comes by [`Sender::poll_acked`].
    ///
    /// # Errors
    /// [`AckFault`]; nothing was changed.
    pub fn on_ack(
        &mut self,
        ack: &Acknowledgement,
        now: Ps,
        trips: &mut RoundTrips,
    ) -> Result<(), AckFault> {
        let (after, sent) =
            (ack.next.wrapping_sub(self.oldest), self.next.wrapping_sub(self.oldest));
        if after.cast_signed() < 0 {
            // An older one was overtaken; all that it says is known.
            return Ok(());
        }
        let later = u64::BITS - ack.later.leading_zeros();
        if after > sent || (later > 0 && after + later >= sent) {
            return Err(AckFault { says: ack.next, oldest: self.oldest, newest: self.next });
        }
        let mut last_sent = None;
        for _ in 0..after {
            last_sent = last_sent.max(self.come(self.oldest, now));
            self.oldest = self.oldest.wrapping_add(1);
        }
        for bit in (0..later).filter(|bit| ack.later >> bit & 1 == 1) {
            last_sent = last_sent.max(self.come(ack.next.wrapping_add(1 + bit), now));
        }
        if let Some(sent) = last_sent {
            trips.took(now - sent);
        }
        let limit = ack.next.wrapping_add(ack.room.min(self.config.window));
        if limit.wrapping_sub(self.limit).cast_signed() > 0 {
            self.limit = limit;
            (self.probe_at, self.probes) = (None, false);
        }
        self.find_lost();
        Ok(())
    }

    /// A segment has come. Returns when it was sent, if it was in flight and sent once.
    fn come(&mut self, number: u32, now: Ps) -> Option<Ps> {
        let at = self.at(number);
        let was = std::mem::replace(&mut self.slots[at].state, State::Come);
        let State::InFlight(flight) = was else { return None };
        let length = u64::from(self.slots[at].length);
        let subflow = &mut self.subflows[usize::from(flight.subflow)];
        subflow.in_flight_bytes -= length;
        subflow.came = subflow.came.max(flight.order + 1);
        subflow.came_at = now;
        (!flight.is_again).then_some(flight.sent)
    }

    /// What a subflow sent well before a segment that has come is lost: its path keeps the order.
    fn find_lost(&mut self) {
        for number in self.unacknowledged() {
            let State::InFlight(flight) = self.slots[self.at(number)].state else { continue };
            let came = self.subflows[usize::from(flight.subflow)].came;
            if flight.order + LATER_BEFORE_LOST < came {
                self.make_due(number);
            }
        }
    }

    fn make_due(&mut self, number: u32) {
        let at = self.at(number);
        let State::InFlight(Flight { subflow, .. }) = self.slots[at].state else { return };
        let length = u64::from(self.slots[at].length);
        self.subflows[usize::from(subflow)].in_flight_bytes -= length;
        self.slots[at].state = State::Due { is_again: true };
    }

    /// Data of an acknowledged segment, in order: the sender's reference may be given up.
    pub fn poll_acked(&mut self) -> Option<(u32, FabricAddress)> {
        if self.kept == self.oldest {
            return None;
        }
        let number = self.kept;
        self.kept = number.wrapping_add(1);
        Some((number, self.slots[self.at(number)].data))
    }

    /// A subflow's NIC is gone: what it carried is sent again by the others, and it gets no more.
    /// A subflow whose TxQ has another NIC already is restored at once.
    ///
    /// # Panics
    /// If the stream has no such subflow.
    pub fn lose_path(&mut self, subflow: u16) {
        self.subflows[usize::from(subflow)].is_up = false;
        for number in self.unacknowledged() {
            let state = self.slots[self.at(number)].state;
            if matches!(state, State::InFlight(flight) if flight.subflow == subflow) {
                self.make_due(number);
            }
        }
    }

    /// A subflow's NIC is back.
    ///
    /// # Panics
    /// If the stream has no such subflow.
    pub fn restore_path(&mut self, subflow: u16) {
        self.subflows[usize::from(subflow)].is_up = true;
    }

    /// Makes all segments due whose time is over, and doubles the timeout.
    pub fn on_timer(&mut self, now: Ps, trips: &mut RoundTrips) {
        let mut doublings = None;
        if self.probe_at.take_if(|at| *at <= now).is_some() {
            self.probes = true;
            doublings = Some(trips.doublings());
        }
        for number in self.unacknowledged() {
            let State::InFlight(flight) = self.slots[self.at(number)].state else { continue };
            if self.deadline(&flight, trips) <= now {
                self.make_due(number);
                doublings = doublings.max(Some(flight.doublings));
            }
        }
        if let Some(doublings) = doublings {
            trips.back_off(doublings);
        }
    }

    /// When [`Sender::on_timer`] is to be called next.
    #[must_use]
    pub fn next_wake(&self, trips: &RoundTrips) -> Option<Ps> {
        let deadlines =
            self.unacknowledged().filter_map(|number| match self.slots[self.at(number)].state {
                State::InFlight(flight) => Some(self.deadline(&flight, trips)),
                State::Due { .. } | State::Come => None,
            });
        deadlines.chain(self.probe_at).min()
    }

    /// True if all that was pushed is acknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.oldest == self.next
    }

    /// Bytes in flight on a subflow.
    ///
    /// # Panics
    /// If the stream has no such subflow.
    #[must_use]
    pub fn in_flight(&self, subflow: u16) -> u64 {
        self.subflows[usize::from(subflow)].in_flight_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethermem_wire::dfabric::Identity;

    fn sender(spread: Spread) -> Sender {
        let config = SenderConfig { window: 8, subflows: 2, subflow_bytes: 30, spread };
        let mut sender = Sender::new(config, 0).unwrap();
        for _ in 0..8 {
            sender.push(FabricAddress::default(), 10, false).unwrap();
        }
        sender
    }

    const TRIPS: RoundTrips = RoundTrips::new(Ps(100));

    fn sent(sender: &mut Sender, now: u64, trips: &RoundTrips) -> Vec<(u32, u16)> {
        let all = std::iter::from_fn(|| sender.poll_transmit(Ps(now), trips));
        all.map(|one| (one.number, one.subflow)).collect()
    }

    fn take(sender: &mut Sender, ack: Acknowledgement) -> Result<(), AckFault> {
        let mut trips = TRIPS;
        sender.on_ack(&ack, Ps(0), &mut trips)
    }

    fn ack(next: u32, later: u64) -> Acknowledgement {
        let (destination, source) = (Identity(1), Identity(2));
        Acknowledgement { destination, source, stream: 0, subflow: 0, next, room: 8, later }
    }

    #[test]
    fn subflows_take_turns_within_their_limits() {
        let mut sender = sender(Spread::Turns);
        let first = [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 1)];
        assert_eq!(sent(&mut sender, 0, &TRIPS), first);
        assert_eq!((sender.in_flight(0), sender.in_flight(1)), (30, 30));
        // Segments 0, 2 and 4 have come: subflow 0 is empty and takes the rest.
        take(&mut sender, ack(1, 0b101)).unwrap();
        assert_eq!(sent(&mut sender, 0, &TRIPS), [(6, 0), (7, 0)]);
        assert_eq!(sender.poll_acked(), Some((0, FabricAddress::default())));
        assert_eq!(sender.poll_acked(), None);
        let wrong = AckFault { says: 9, oldest: 1, newest: 8 };
        assert_eq!(take(&mut sender, ack(9, 0)), Err(wrong));
        assert!(take(&mut sender, ack(7, 1)).is_err(), "segment 8 was not sent");
        take(&mut sender, ack(8, 0)).unwrap();
        assert!(sender.is_idle() && sender.next_wake(&TRIPS).is_none());
    }

    #[test]
    fn a_lost_path_gives_its_segments_to_the_other_one() {
        let mut sender = sender(Spread::Least);
        assert_eq!(sent(&mut sender, 0, &TRIPS).len(), 6);
        sender.lose_path(1);
        assert_eq!(sent(&mut sender, 0, &TRIPS), []);
        take(&mut sender, ack(1, 0b1010)).unwrap();
        // Bits 1 and 3 are segments 3 and 5, which had come before the path was lost. Segments 2
        // and 4 are in flight on subflow 0.
        assert_eq!(sender.in_flight(0), 20);
        assert_eq!(sent(&mut sender, 0, &TRIPS), [(1, 0)]);
        sender.restore_path(1);
        assert_eq!(sent(&mut sender, 0, &TRIPS), [(6, 1), (7, 1)]);
    }

    #[test]
    fn a_segment_is_sent_again_after_the_timeout_which_doubles() {
        let (mut sender, mut trips) = (sender(Spread::Turns), TRIPS);
        assert_eq!(sent(&mut sender, 0, &trips).len(), 6);
        assert_eq!(sender.next_wake(&trips), Some(Ps(100)));
        sender.on_timer(Ps(99), &mut trips);
        assert_eq!(sent(&mut sender, 99, &trips), []);
        sender.on_timer(Ps(100), &mut trips);
        assert_eq!(sent(&mut sender, 100, &trips).len(), 6);
        assert_eq!(sender.next_wake(&trips), Some(Ps(300)));
    }

    /// Karn: what was sent twice is no sample, and its acknowledgement leaves the timeout doubled.
    #[test]
    fn back_off_ends_with_a_segment_that_was_sent_once() {
        let (mut sender, mut trips) = (sender(Spread::Turns), TRIPS);
        assert_eq!(sent(&mut sender, 0, &trips).len(), 6);
        sender.on_timer(Ps(100), &mut trips);
        assert_eq!(sent(&mut sender, 100, &trips).len(), 6);
        sender.on_ack(&ack(6, 0), Ps(180), &mut trips).unwrap();
        assert_eq!((trips.doublings(), trips.timeout(0)), (1, Ps(100)));
        assert_eq!(sent(&mut sender, 180, &trips), [(6, 0), (7, 1)]);
        assert_eq!(sender.next_wake(&trips), Some(Ps(380)));
        sender.on_ack(&ack(8, 0), Ps(340), &mut trips).unwrap();
        // A first sample of 160, which varies by half of itself.
        assert_eq!((trips.doublings(), trips.timeout(0)), (0, Ps(160 + 4 * 80)));
    }

    /// A window that takes longer than the timeout is not sent again while its subflows proceed
    /// (RFC 6298, 5.3).
    #[test]
    fn an_acknowledgement_restarts_the_timeouts_of_its_subflow() {
        let (mut sender, mut trips) = (sender(Spread::Turns), TRIPS);
        assert_eq!(sent(&mut sender, 0, &trips).len(), 6);
        // Segment 0 is of subflow 0, as are 2 and 4.
        sender.on_ack(&ack(1, 0), Ps(90), &mut trips).unwrap();
        assert_eq!(trips.timeout(0), Ps(90 + 4 * 45));
        sender.on_timer(Ps(269), &mut trips);
        assert_eq!(sent(&mut sender, 269, &trips), [(6, 0)]);
        sender.on_timer(Ps(270), &mut trips);
        assert_eq!(sent(&mut sender, 270, &trips), [(1, 1), (3, 1), (5, 1)]);
        assert_eq!(sender.next_wake(&trips), Some(Ps(90 + 270)));
    }

    #[test]
    fn later_segments_of_the_same_subflow_show_a_loss_and_of_another_do_not() {
        let config =
            SenderConfig { window: 16, subflows: 2, subflow_bytes: 1000, spread: Spread::Turns };
        let mut sender = Sender::new(config, 0).unwrap();
        for _ in 0..12 {
            sender.push(FabricAddress::default(), 10, false).unwrap();
        }
        assert_eq!(sent(&mut sender, 0, &TRIPS).len(), 12);
        // All of subflow 1 came; none of subflow 0 is lost by that. Bits 0, 2, ..: 1, 3, 5, 7, 9.
        take(&mut sender, ack(0, 0b1_0101_0101)).unwrap();
        assert_eq!(sent(&mut sender, 0, &TRIPS), []);
        // Segment 8 is the fifth of subflow 0: 0 is four before it, 2 is three before it.
        take(&mut sender, ack(0, 1 << 7)).unwrap();
        assert_eq!(sent(&mut sender, 0, &TRIPS), [(0, 0), (2, 1)]);
    }
}
