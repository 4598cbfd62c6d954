//! A direction of a link: slots packed into flits, and the credits for the buffer at its end.

use std::collections::VecDeque;

use ethermem_units::{BLOCK_PAYLOAD_BYTES, BitsPerSecond, Ps};

/// Number of bytes in a slot.
pub(super) const SLOT_BYTES: u64 = 16;

/// The packing of slots into flits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flit {
    /// Four slots, two bytes of CRC and two of protocol identifier (CXL 2.0, 4.2 and 6.2).
    #[default]
    Bytes68,
    /// Fifteen slots, header, CRC and FEC (CXL 3.0, 4.3).
    Bytes256,
}

impl Flit {
    /// Number of 16 B slots of a flit.
    pub(super) const fn slots(self) -> u64 {
        match self {
            Flit::Bytes68 => 4,
            Flit::Bytes256 => 15,
        }
    }

    /// Number of 64-bit blocks that a flit takes on a link, which need not be whole.
    pub(super) const fn blocks(self) -> f64 {
        match self {
            Flit::Bytes68 => 8.5,
            Flit::Bytes256 => 32.0,
        }
    }

    /// Time of a flit on a link. A block of every Ethernet rate takes an even number of
    /// picoseconds.
    pub(crate) fn time(self, link: BitsPerSecond) -> Ps {
        Ps((self.blocks() * 2.0) as u64 * link.block_time().0 / 2)
    }
}

/// The times of a transmitted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The time at which its last flit has left.
    pub(super) end: Ps,
    /// The time at which the transmitter can take the next one: the last flit starts and has slots
    /// left, or it ends.
    pub(super) next: Ps,
}

/// A transmitter: a flit leaves with the slots that are available when it starts.
#[derive(Clone, Debug)]
pub(super) struct Line {
    flit_time: Ps,
    flit_bytes: f64,
    slots: u64,
    /// The start of the last flit, and the number of its slots in use.
    last: Ps,
    taken: u64,
    flits: u64,
    /// Number of slots that carried data.
    pub(super) data_slots: u64,
}

impl Line {
    pub(super) fn new(flit: Flit, link: BitsPerSecond) -> Line {
        let slots = flit.slots();
        Line {
            flit_time: flit.time(link),
            flit_bytes: flit.blocks() * BLOCK_PAYLOAD_BYTES as f64,
            slots,
            last: Ps::ZERO,
            taken: slots,
            flits: 0,
            data_slots: 0,
        }
    }

    /// Sends `slots` from now on, in the flit that starts now or in new ones behind it.
    pub(super) fn send(&mut self, now: Ps, slots: u64) -> Sent {
        if self.flits == 0 || now > self.last || self.taken == self.slots {
            let free = if self.flits == 0 { now } else { self.last + self.flit_time };
            self.last = now.max(free);
            self.taken = 0;
            self.flits += 1;
        }
        let total = self.taken + slots;
        let more = (total - 1) / self.slots;
        self.last += self.flit_time * more;
        self.flits += more;
        self.taken = total - more * self.slots;
        let end = self.last + self.flit_time;
        Sent { end, next: if self.taken == self.slots { end } else { self.last } }
    }

    /// True if no flit is on the line: the next one leaves at once.
    pub(super) fn is_free(&self, now: Ps) -> bool {
        self.flits == 0 || self.last + self.flit_time <= now
    }

    /// What the line has sent since it was as `before` says, from the time `begin` on.
    pub(super) fn since(&self, before: &Line, begin: Ps) -> LineRun {
        LineRun {
            last: self.last - begin,
            taken: self.taken,
            flits: self.flits - before.flits,
            data_slots: self.data_slots - before.data_slots,
        }
    }

    /// The line has sent what another one did.
    pub(super) fn add(&mut self, run: &LineRun, begin: Ps) {
        (self.last, self.taken) = (begin + run.last, run.taken);
        self.flits += run.flits;
        self.data_slots += run.data_slots;
    }

    /// Share of the time until `ended` in which flits were sent.
    pub(super) fn share(&self, ended: Ps) -> f64 {
        if ended == Ps::ZERO {
            0.0
        } else {
            (self.flits * self.flit_time.0) as f64 / ended.0 as f64
        }
    }

    /// Number of bytes of all flits, empty slots included.
    pub(super) fn bytes_sent(&self) -> f64 {
        self.flits as f64 * self.flit_bytes
    }
}

/// What a free line sent from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRun {
    /// The start of the last flit after that time, and the number of its slots in use.
    last: Ps,
    taken: u64,
    flits: u64,
    data_slots: u64,
}

/// A sender's credits for the buffer at the other end, or for a class's part of it. A credit is the
/// entry of one transaction; all destinations share the credits.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    size: u32,
    here: u32,
    /// The arrival times of credits on their way back.
    returning: VecDeque<Ps>,
}

impl Credits {
    pub(super) fn new(size: u32) -> Credits {
        Credits { size, here: size, returning: VecDeque::new() }
    }

    /// True if a credit is available.
    pub(super) fn has(&mut self, now: Ps) -> bool {
        while self.returning.front().is_some_and(|&at| at <= now) {
            self.returning.pop_front();
            self.here += 1;
        }
        self.here > 0
    }

    /// Takes a credit, if one is available.
    pub(super) fn take(&mut self, now: Ps) -> bool {
        let taken = self.has(now);
        self.here -= u32::from(taken);
        taken
    }

    /// Sends a credit back, to arrive at `at`. Entries that leave through several outputs return
    /// theirs out of order.
    pub(super) fn give(&mut self, at: Ps) {
        let behind = self.returning.partition_point(|&other| other <= at);
        self.returning.insert(behind, at);
        assert!(self.owned() <= self.size, "{} credits of {}", self.owned(), self.size);
    }

    /// The arrival time of the next credit.
    pub(super) fn next(&self) -> Option<Ps> {
        self.returning.front().copied()
    }

    /// True if all credits have arrived at `now`.
    pub(super) fn are_back(&self, now: Ps) -> bool {
        self.all_back() && self.returning.back().is_none_or(|&at| at <= now)
    }

    /// Number of credits.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Number of credits without an entry in use.
    pub(super) fn owned(&self) -> u32 {
        self.here + self.returning.len() as u32
    }

    /// True if no entry is in use.
    pub(super) fn all_back(&self) -> bool {
        self.owned() == self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(flit: Flit) -> Line {
        Line::new(flit, BitsPerSecond::from_gbps(100).expect("an Ethernet rate"))
    }

    #[test]
    fn a_flit_of_68_bytes_takes_what_544_bits_take() {
        assert_eq!(line(Flit::Bytes68).flit_time, Ps(5_440));
        assert_eq!(line(Flit::Bytes256).flit_time, Ps(20_480));
    }

    #[test]
    fn four_lines_with_their_headers_fill_five_flits() {
        let mut line = line(Flit::Bytes68);
        let mut now = Ps(1_000);
        let mut ends = Vec::new();
        for _ in 0..4 {
            let sent = line.send(now, 5);
            now = sent.next;
            ends.push((sent.end - Ps(1_000)).0 / 5_440);
        }
        assert_eq!(ends, [2, 3, 4, 5]);
        assert_eq!(now, Ps(1_000 + 5 * 5_440));
        assert!((line.bytes_sent() - 340.0).abs() < 1e-9);
    }

    #[test]
    fn what_comes_after_a_flits_start_waits_for_the_next_one() {
        let mut line = line(Flit::Bytes68);
        assert_eq!(line.send(Ps(0), 1), Sent { end: Ps(5_440), next: Ps(0) });
        // At its start the flit has room for more, and later it has none.
        assert_eq!(line.send(Ps(0), 1).end, Ps(5_440));
        assert_eq!(line.send(Ps(1), 1), Sent { end: Ps(10_880), next: Ps(5_440) });
        assert_eq!(line.send(Ps(20_000), 4), Sent { end: Ps(25_440), next: Ps(25_440) });
        assert!((line.bytes_sent() - 204.0).abs() < 1e-9);
    }

    #[test]
    fn credits_are_neither_made_nor_lost() {
        let mut credits = Credits::new(2);
        assert!(credits.take(Ps(0)) && credits.take(Ps(0)));
        assert!(!credits.take(Ps(5)));
        credits.give(Ps(10));
        assert!(!credits.take(Ps(9)));
        assert_eq!(credits.next(), Some(Ps(10)));
        assert!(!credits.all_back());
        assert!(credits.take(Ps(10)));
        credits.give(Ps(11));
        credits.give(Ps(12));
        assert!(credits.all_back());
        let extra = std::panic::catch_unwind(move || credits.give(Ps(13)));
        assert!(extra.is_err(), "a credit of no entry");
    }
}
