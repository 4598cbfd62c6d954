//! The sender of TCP, in packets: window, slow start, fast recovery, timeouts (RFC 5681, 6582,
//! 6298). The kinds of TCP differ in their reaction to marks, which is `Congestion` of `stream`.

use ethermem_engine::keys::{Table, packets, timeout_us};
use ethermem_units::Ps;
use ethermem_workload::InputError;

/// The parameters that all flows of a run share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoConfig {
    /// Number of packets that a flow may send before the first acknowledgement.
    pub window_packets_initial: u32,
    /// Minimum timeout, which also applies before a round trip was measured.
    pub timeout_min: Ps,
    /// Number of duplicate acknowledgements that indicate a loss.
    pub duplicates: u32,
    /// Number of consecutive timeouts that double the timeout, at most [`DOUBLINGS_MAX`].
    pub doublings: u32,
}

impl RenoConfig {
    /// Reads its keys from a transport's table.
    ///
    /// # Errors
    /// [`InputError`] with the invalid key.
    pub fn read(table: &Table<'_>, default: &RenoConfig) -> Result<RenoConfig, InputError> {
        let initial = default.window_packets_initial;
        Ok(RenoConfig {
            window_packets_initial: packets(table, "window_packets_initial", initial)?,
            timeout_min: timeout_us(table, "rto_min_us", default.timeout_min)?,
            duplicates: table.integer("duplicate_acks", default.duplicates.into(), 1..=1_000)?
                as u32,
            doublings: table.integer(
                "rto_doublings",
                default.doublings.into(),
                0..=DOUBLINGS_MAX.into(),
            )? as u32,
        })
    }
}

/// The sender of one flow. Sequence numbers count packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    packets: u32,
    /// The next packet to send; it returns to `acked` after a timeout.
    next: u32,
    /// One past the highest packet ever sent.
    sent_end: u32,
    acked: u32,
    window: f64,
    threshold: f64,
    duplicates: u32,
    /// Recovery ends when this packet is acknowledged; none begins before.
    recover: u32,
    recovering: bool,
    /// The packet with which a round trip is being measured, never a retransmitted one (Karn).
    timed: Option<(u32, Ps)>,
    /// The smoothed round trip and its deviation.
    round_trip: Option<(f64, f64)>,
    backoff: u32,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of newly acknowledged packets.
    pub newly: u32,
    /// A packet to retransmit.
    pub resend: Option<u32>,
    /// True if the window may grow by the newly acknowledged packets.
    pub grow: bool,
}

/// Maximum number of doublings of the timeout.
pub const DOUBLINGS_MAX: u32 = 16;

impl Sender {
    /// The sender of a flow of `packets`, before its first packet.
    #[must_use]
    pub fn new(packets: u32, config: &RenoConfig) -> Sender {
        Sender {
            packets,
            window: f64::from(config.window_packets_initial),
            threshold: f64::INFINITY,
            ..Sender::default()
        }
    }

    /// Appends a packet to a connection's.
    pub fn append(&mut self) {
        self.packets += 1;
    }

    /// True if the window has room for a packet, whether one exists or not.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.in_flight() < self.window as u32
    }

    /// The next packet that the window allows, and whether it was sent before.
    #[inline]
    pub fn take(&mut self, now: Ps) -> Option<(u32, bool)> {
        if !self.may_send() {
            return None;
        }
        let position = self.next;
        let again = position < self.sent_end;
        self.next += 1;
        self.sent_end = self.sent_end.max(self.next);
        if !again && self.timed.is_none() {
            self.timed = Some((position, now));
        }
        Some((position, again))
    }

    /// True if the window allows a packet.
    #[inline]
    #[must_use]
    pub fn may_send(&self) -> bool {
        self.next < self.packets && self.has_room()
    }

    /// Number of packets that were sent and not acknowledged.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.next - self.acked
    }

    /// True if the packets in flight need a window of this size: a window that the host itself
    /// cannot fill does not grow (RFC 7661).
    #[inline]
    #[must_use]
    pub fn uses_window(&self) -> bool {
        2.0 * f64::from(self.in_flight()) > self.window
    }

    /// True if lost packets are being retransmitted.
    #[inline]
    #[must_use]
    pub fn recovering(&self) -> bool {
        self.recovering
    }

    /// Processes an acknowledgement of all packets before `ack`.
    #[inline]
    pub fn acknowledge(&mut self, ack: u32, now: Ps, config: &RenoConfig) -> Progress {
        let nothing = Progress { newly: 0, resend: None, grow: false };
        if ack < self.acked {
            return nothing;
        }
        if ack == self.acked {
            return Progress { resend: self.duplicate(config), ..nothing };
        }
        let newly = ack - self.acked;
        self.acked = ack;
        self.next = self.next.max(ack);
        self.backoff = 0;
        if let Some((position, at)) = self.timed
            && position < ack
        {
            self.timed = None;
            self.measure(now - at);
        }
        if !self.recovering {
            self.duplicates = 0;
            return Progress { newly, resend: None, grow: true };
        }
        if ack >= self.recover {
            self.recovering = false;
            self.duplicates = 0;
            self.window = self.threshold;
            return Progress { newly, ..nothing };
        }
        // A partial acknowledgement: the packet after it was lost as well (RFC 6582, 3.2).
        self.window = (self.window - f64::from(newly) + 1.0).max(1.0);
        self.timed = None;
        Progress { newly, resend: Some(ack), grow: false }
    }

    fn duplicate(&mut self, config: &RenoConfig) -> Option<u32> {
        if self.acked == self.sent_end {
            return None;
        }
        self.duplicates += 1;
        if self.recovering {
            self.window += 1.0;
            return None;
        }
        if self.duplicates != config.duplicates || self.acked < self.recover {
            return None;
        }
        self.threshold = self.half();
        self.window = self.threshold + f64::from(self.duplicates);
        self.recovering = true;
        self.recover = self.sent_end;
        self.timed = None;
        Some(self.acked)
    }

    fn half(&self) -> f64 {
        (f64::from(self.sent_end - self.acked) / 2.0).max(2.0)
    }

    /// Grows the window for an acknowledgement: by a packet below the threshold, which is slow
    /// start, and by one packet per round trip above it (RFC 5681, 3.1).
    #[inline]
    pub fn grow(&mut self) {
        self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
    }

    /// Cuts the window to `share` of itself, and ends slow start.
    pub fn cut(&mut self, share: f64, window_min: f64) {
        self.window = (self.window * share).max(window_min);
        self.threshold = self.window;
    }

    /// Handles a timeout: all packets in flight are considered lost.
    pub fn time_out(&mut self) {
        self.threshold = self.half();
        self.window = 1.0;
        self.next = self.acked;
        self.recovering = false;
        self.recover = self.sent_end;
        self.duplicates = 0;
        self.timed = None;
        self.backoff = (self.backoff + 1).min(DOUBLINGS_MAX);
    }

    /// Time to wait for an acknowledgement.
    #[inline]
    #[must_use]
    pub fn timeout(&self, config: &RenoConfig) -> Ps {
        let measured = self.round_trip.map_or(0.0, |(mean, deviation)| mean + 4.0 * deviation);
        let doublings = self.backoff.min(config.doublings);
        Ps(config.timeout_min.0.max(measured as u64) << doublings)
    }

    /// Updates the round trip estimate (RFC 6298, section 2).
    fn measure(&mut self, round_trip: Ps) {
        let now = round_trip.0 as f64;
        self.round_trip = Some(match self.round_trip {
            None => (now, now / 2.0),
            Some((mean, deviation)) => {
                (0.875 * mean + 0.125 * now, 0.75 * deviation + 0.25 * (mean - now).abs())
            }
        });
    }

    /// Number of acknowledged packets, all before the first missing one.
    #[inline]
    #[must_use]
    pub fn acked(&self) -> u32 {
        self.acked
    }

    /// The next packet to send.
    #[inline]
    #[must_use]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// One past the highest packet ever sent.
    #[inline]
    #[must_use]
    pub fn sent_end(&self) -> u32 {
        self.sent_end
    }

    /// True if every packet is acknowledged.
    #[inline]
    #[must_use]
    pub fn done(&self) -> bool {
        self.acked == self.packets
    }

    /// Number of packets that may be in flight.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: RenoConfig = RenoConfig {
        window_packets_initial: 4,
        timeout_min: Ps(1_000),
        duplicates: 3,
        doublings: 6,
    };

    fn take_all(sender: &mut Sender) -> Vec<u32> {
        std::iter::from_fn(|| sender.take(Ps(0))).map(|(position, _)| position).collect()
    }

    fn ack(sender: &mut Sender, ack: u32) -> Option<u32> {
        let progress = sender.acknowledge(ack, Ps(100), &CONFIG);
        if progress.grow {
            sender.grow();
        }
        progress.resend
    }

    #[test]
    fn the_window_doubles_in_a_round_trip_until_the_threshold() {
        let mut sender = Sender::new(100, &CONFIG);
        assert_eq!(take_all(&mut sender), [0, 1, 2, 3]);
        for number in 1..=4 {
            assert_eq!(ack(&mut sender, number), None);
        }
        assert_eq!(take_all(&mut sender), [4, 5, 6, 7, 8, 9, 10, 11]);
        sender.cut(0.5, 1.0);
        for number in 5..=8 {
            ack(&mut sender, number);
        }
        // From 4 on the window grows by one packet per window: 4 + 1/4 + 1/4.25 + ... after four of
        // them.
        assert!((sender.window() - 4.92).abs() < 0.01, "{}", sender.window());
    }

    #[test]
    fn three_duplicates_resend_and_halve_once() {
        let mut sender = Sender::new(100, &CONFIG);
        for number in 1..12 {
            take_all(&mut sender);
            ack(&mut sender, number);
        }
        let out = sender.sent_end - sender.acked;
        // 11 and 13 are lost, so 11 is acknowledged repeatedly.
        let three = [(); 3].map(|()| ack(&mut sender, 11));
        assert_eq!(three, [None, None, Some(11)]);
        assert_eq!(ack(&mut sender, 11), None);
        let threshold = f64::from(out) / 2.0;
        assert_eq!(sender.window(), threshold + 4.0);
        // 11 has arrived again, 13 is missing: it is sent without waiting for duplicates.
        assert_eq!(ack(&mut sender, 13), Some(13));
        let all = sender.sent_end;
        assert_eq!(ack(&mut sender, all), None);
        assert_eq!(sender.window(), threshold);
    }

    #[test]
    fn a_timeout_goes_back_to_what_is_missing_and_waits_twice_as_long() {
        let mut sender = Sender::new(100, &CONFIG);
        take_all(&mut sender);
        assert_eq!(sender.timeout(&CONFIG), Ps(1_000));
        sender.time_out();
        assert_eq!(sender.timeout(&CONFIG), Ps(2_000));
        assert_eq!(sender.take(Ps(0)), Some((0, true)));
        assert_eq!(sender.take(Ps(0)), None);
        // All packets but the first had arrived.
        ack(&mut sender, 4);
        assert_eq!(take_all(&mut sender), [4, 5]);
        assert_eq!(sender.timeout(&CONFIG), Ps(1_000));
    }

    #[test]
    fn the_timeout_follows_the_round_trip() {
        let mut sender = Sender::new(100, &CONFIG);
        sender.take(Ps(0));
        sender.acknowledge(1, Ps(10_000), &CONFIG);
        assert_eq!(sender.timeout(&CONFIG), Ps(30_000));
    }
}
