//! TCP small queues: a socket has at most so many bytes below its stack (section 6.4, Table 4).
//!
//! By reference, the instant at which a segment leaves the queue is not obvious, and the paper's
//! text has two readings: `docs/internals/dfabric.md`. [`ChargeEnd`] is that instant.

use ethermem_units::{BitsPerSecond, Bytes};

/// When a segment is no longer below the sender's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChargeEnd {
    /// When the NIC or the SN has taken the reference.
    Taken,
    /// When the receiver has freed the Buffer: as Linux, where the `sk_buf` itself is charged.
    Freed,
}

/// What a queue is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallQueueConfig {
    /// Most bytes below the stack; `None`: no limit. One segment always goes.
    pub limit: Option<Bytes>,
    /// When a segment's charge ends.
    pub end: ChargeEnd,
}

impl SmallQueueConfig {
    /// Linux's limit (`tcp_small_queue_check`): two segments, or what the pacing rate sends in
    /// 2^-10 s if that is more.
    #[must_use]
    pub fn linux(end: ChargeEnd, segment: Bytes, pacing: BitsPerSecond) -> SmallQueueConfig {
        // Bytes of the rate in a second, by the time of one gigabyte.
        let gigabyte_ps = u128::from(pacing.bytes_time(Bytes(1_000_000_000)).0);
        let bytes_a_second = 1_000_000_000 * 1_000_000_000_000 / gigabyte_ps;
        let paced = Bytes((bytes_a_second >> 10) as u64);
        SmallQueueConfig { limit: Some(paced.max(Bytes(2 * segment.0))), end }
    }

    /// No small queue: the sender fills the queues below it.
    pub const OFF: SmallQueueConfig = SmallQueueConfig { limit: None, end: ChargeEnd::Taken };
}

/// The charges of one socket.
#[derive(Clone, Copy, Debug)]
pub struct SmallQueue {
    config: SmallQueueConfig,
    charged: Bytes,
}

impl SmallQueue {
    /// A socket without segments.
    #[must_use]
    pub const fn new(config: SmallQueueConfig) -> SmallQueue {
        SmallQueue { config, charged: Bytes(0) }
    }

    /// True if the stack may send: what is charged is within the limit, or nothing is. Linux
    /// compares before it adds the segment, and so does this.
    #[must_use]
    pub fn may_send(&self) -> bool {
        self.config.limit.is_none_or(|limit| self.charged < limit || self.charged == Bytes(0))
    }

    /// A segment was sent.
    pub fn charge(&mut self, bytes: Bytes) {
        self.charged += bytes;
    }

    /// A segment has reached this instant. Returns true if its charge ends with it: the stack is to
    /// be asked for more.
    ///
    /// # Panics
    /// If more is released than was charged.
    pub fn reach(&mut self, instant: ChargeEnd, bytes: Bytes) -> bool {
        let ends = instant == self.config.end;
        if ends {
            assert!(self.charged >= bytes, "{bytes:?} released of {:?}", self.charged);
            self.charged = Bytes(self.charged.0 - bytes.0);
        }
        ends
    }

    /// Bytes below the stack.
    #[must_use]
    pub const fn charged(&self) -> Bytes {
        self.charged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_readings_differ_in_the_instant_at_which_more_may_be_sent() {
        let (segment, slow) = (Bytes(4096), BitsPerSecond::new(1_000_000).unwrap());
        for (end, after_taken) in [(ChargeEnd::Taken, true), (ChargeEnd::Freed, false)] {
            let mut queue = SmallQueue::new(SmallQueueConfig::linux(end, segment, slow));
            (0..2).for_each(|_| queue.charge(segment));
            assert!(!queue.may_send());
            assert_eq!(queue.reach(ChargeEnd::Taken, segment), after_taken);
            assert_eq!(queue.may_send(), after_taken, "{end:?}");
            queue.reach(ChargeEnd::Freed, segment);
            assert!(queue.may_send());
            assert_eq!(queue.charged(), segment);
        }
    }

    #[test]
    fn a_fast_socket_may_have_what_it_sends_in_a_1024th_of_a_second() {
        let fast = BitsPerSecond::from_gbps(1).unwrap();
        let config = SmallQueueConfig::linux(ChargeEnd::Taken, Bytes(4096), fast);
        // 125,000,000 B a second over 1024.
        assert_eq!(config.limit, Some(Bytes(122_070)));
    }

    #[test]
    fn without_a_limit_all_may_be_sent_and_with_any_limit_one_segment() {
        let mut off = SmallQueue::new(SmallQueueConfig::OFF);
        off.charge(Bytes(1 << 40));
        assert!(off.may_send());
        let config = SmallQueueConfig { limit: Some(Bytes(0)), end: ChargeEnd::Taken };
        let mut tight = SmallQueue::new(config);
        assert!(tight.may_send());
        tight.charge(Bytes(1));
        assert!(!tight.may_send());
    }
}
