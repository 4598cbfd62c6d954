//! The sender's side, pure: chunks over subflows by the depth of their queues, and which subflow is
//! left. Times are nanoseconds of the caller's clock.

use std::collections::VecDeque;

use super::frame::{Fault, HEADER_BYTES};
use super::order::CHUNKS_AHEAD_MAX;

/// A subflow is left if the other process was heard on others for so long without progress here.
pub const STALL_NS: u64 = 60_000_000;
/// A subflow without progress for so long makes the others ask for acknowledgements.
const PROBE_NS: u64 = 20_000_000;
/// Time that a subflow's queue should take to drain, beside twice its least delay.
const QUEUE_NS: u64 = 20_000_000;
const QUEUE_BYTES_MIN: u64 = 512 << 10;
const QUEUE_BYTES_MAX: u64 = 16 << 20;
const QUEUE_CHUNKS_MAX: usize = 4096;
/// Rate of a subflow that has carried nothing yet: 1 Gb/s, in bytes per second.
const RATE_FIRST: u64 = 125_000_000;
/// Least time over which a rate is measured.
const SAMPLE_NS: u64 = 10_000_000;
const SECOND_NS: u128 = 1_000_000_000;

/// A chunk on its way.
#[derive(Debug)]
struct Chunk {
    number: u64,
    frame: Vec<u8>,
    sent_ns: u64,
}

/// One subflow: a TCP connection by one NIC.
#[derive(Debug)]
pub struct Subflow {
    is_up: bool,
    /// Chunks that the other process does not have yet, in the order in which they were sent.
    chunks: VecDeque<Chunk>,
    /// Chunks of these that the socket has taken, and bytes of the next one.
    written: usize,
    part: usize,
    /// Frames of this subflow alone, and bytes of them that the socket has taken.
    own: Vec<u8>,
    own_part: usize,
    queue_bytes: u64,
    acknowledged: u64,
    rate: u64,
    delay_ns: u64,
    sample_ns: u64,
    sample_bytes: u64,
    was_idle: bool,
    progress_ns: u64,
    heard_ns: u64,
    probed_ns: u64,
}

impl Subflow {
    fn new() -> Subflow {
        Subflow {
            is_up: false,
            chunks: VecDeque::new(),
            written: 0,
            part: 0,
            own: Vec::new(),
            own_part: 0,
            queue_bytes: 0,
            acknowledged: 0,
            rate: RATE_FIRST,
            delay_ns: 0,
            sample_ns: 0,
            sample_bytes: 0,
            was_idle: true,
            progress_ns: 0,
            heard_ns: 0,
            probed_ns: 0,
        }
    }

    fn queue_bytes_max(&self) -> u64 {
        let time = u128::from(QUEUE_NS + 2 * self.delay_ns);
        let bytes = u128::from(self.rate) * time / SECOND_NS;
        (bytes as u64).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES_MAX)
    }

    fn has_room(&self) -> bool {
        let is_written = self.written == self.chunks.len();
        let is_short = self.chunks.len() < QUEUE_CHUNKS_MAX;
        self.is_up && is_written && is_short && self.queue_bytes < self.queue_bytes_max()
    }

    /// Nanoseconds until a chunk that is sent now has left.
    fn drain_ns(&self) -> u128 {
        let bytes = u128::from(self.queue_bytes + HEADER_BYTES as u64);
        bytes * SECOND_NS / u128::from(self.rate.max(1))
    }

    fn measure(&mut self, bytes: u64, now_ns: u64) {
        self.sample_bytes += bytes;
        let time = now_ns.saturating_sub(self.sample_ns);
        if time < SAMPLE_NS {
            return;
        }
        let rate = (u128::from(self.sample_bytes) * SECOND_NS / u128::from(time)) as u64;
        // A queue that ran empty says only that the link has at least this rate.
        if !self.was_idle {
            self.rate = (self.rate + rate) / 2;
        } else if rate > self.rate {
            self.rate = rate;
        }
        self.sample_ns = now_ns;
        self.sample_bytes = 0;
        self.was_idle = self.chunks.is_empty();
    }
}

/// The chunks of a session, over its subflows.
#[derive(Debug)]
pub struct Stripe {
    subflows: Vec<Subflow>,
    /// Chunks without a subflow: new control chunks, and chunks of subflows that were left.
    waiting: VecDeque<(u64, Vec<u8>)>,
    /// For the numbers from `oldest` on, true if the other process has the chunk.
    arrived: VecDeque<bool>,
    oldest: u64,
    spare: Vec<Vec<u8>>,
    /// Chunks that were sent again because their subflow was left.
    pub sent_again: u64,
}

impl Stripe {
    /// A session of so many subflows, none of them up.
    #[must_use]
    pub fn new(subflows: usize) -> Stripe {
        Stripe {
            subflows: (0..subflows).map(|_| Subflow::new()).collect(),
            waiting: VecDeque::new(),
            arrived: VecDeque::new(),
            oldest: 0,
            spare: Vec::new(),
            sent_again: 0,
        }
    }

    /// True if the subflow may be used.
    #[must_use]
    pub fn is_up(&self, subflow: usize) -> bool {
        self.subflows.get(subflow).is_some_and(|it| it.is_up)
    }

    /// Number of subflows that may be used.
    #[must_use]
    pub fn count_up(&self) -> usize {
        self.subflows.iter().filter(|it| it.is_up).count()
    }

    /// Bytes that the other process has not acknowledged.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.subflows.iter().map(|it| it.queue_bytes).sum()
    }

    /// A subflow is connected.
    pub fn up(&mut self, subflow: usize, now_ns: u64) {
        self.down(subflow);
        self.subflows[subflow] = Subflow {
            is_up: true,
            sample_ns: now_ns,
            progress_ns: now_ns,
            heard_ns: now_ns,
            ..Subflow::new()
        };
    }

    /// A subflow is left: its chunks go by others.
    pub fn down(&mut self, subflow: usize) {
        let left = std::mem::replace(&mut self.subflows[subflow], Subflow::new());
        self.sent_again += left.chunks.len() as u64;
        for chunk in left.chunks.into_iter().rev() {
            self.waiting.push_front((chunk.number, chunk.frame));
        }
    }

    /// The number of the next new chunk, or `None` while too many are on their way.
    #[must_use]
    pub fn next_number(&self) -> Option<u64> {
        // Control chunks need numbers, too.
        let ahead = self.unacknowledged();
        (ahead < CHUNKS_AHEAD_MAX / 2).then_some(self.oldest + ahead)
    }

    /// Number of chunks from the oldest that the other process may not have.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.arrived.len() as u64
    }

    fn number(&mut self) -> u64 {
        let number = self.oldest + self.arrived.len() as u64;
        self.arrived.push_back(false);
        number
    }

    /// Takes a chunk that any subflow may carry. `make` gets its number.
    pub fn push(&mut self, make: impl FnOnce(u64) -> Vec<u8>) {
        let number = self.number();
        self.waiting.push_back((number, make(number)));
    }

    /// The subflow for the next chunk: of those with room that `may` allows, the one whose queue
    /// drains first.
    #[must_use]
    pub fn best(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let with_room = (0..self.subflows.len()).filter(|&it| self.subflows[it].has_room());
        with_room.filter(|&it| may(it)).min_by_key(|&it| self.subflows[it].drain_ns())
    }

    /// True if chunks wait for a subflow.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives a subflow the next waiting chunk. False if there is none.
    pub fn assign(&mut self, subflow: usize, now_ns: u64) -> bool {
        let Some((number, frame)) = self.waiting.pop_front() else { return false };
        self.put(subflow, number, frame, now_ns);
        true
    }

    /// Gives a subflow a new chunk. `make` gets its number, and room from an earlier chunk.
    pub fn send(
        &mut self,
        subflow: usize,
        now_ns: u64,
        make: impl FnOnce(u64, Vec<u8>) -> Vec<u8>,
    ) {
        let room = self.spare.pop().unwrap_or_default();
        let number = self.number();
        self.put(subflow, number, make(number, room), now_ns);
    }

    fn put(&mut self, subflow: usize, number: u64, frame: Vec<u8>, now_ns: u64) {
        let it = &mut self.subflows[subflow];
        if it.chunks.is_empty() {
            it.progress_ns = now_ns;
            it.was_idle = true;
        }
        it.queue_bytes += frame.len() as u64;
        it.chunks.push_back(Chunk { number, frame, sent_ns: now_ns });
    }

    /// Appends a frame of this subflow alone.
    pub fn say(&mut self, subflow: usize, frame: &[u8]) {
        self.subflows[subflow].own.extend_from_slice(frame);
    }

    /// True if the subflow's last own frame has not been written yet.
    #[must_use]
    pub fn is_saying(&self, subflow: usize) -> bool {
        !self.subflows[subflow].own.is_empty()
    }

    /// Bytes for the subflow's socket. Its own frames go between two chunks.
    #[must_use]
    pub fn unwritten(&self, subflow: usize) -> Option<&[u8]> {
        let it = &self.subflows[subflow];
        if it.part == 0 && !it.own.is_empty() {
            return Some(&it.own[it.own_part..]);
        }
        it.chunks.get(it.written).map(|chunk| &chunk.frame[it.part..])
    }

    /// The socket took bytes of [`Stripe::unwritten`].
    pub fn wrote(&mut self, subflow: usize, bytes: usize) {
        let it = &mut self.subflows[subflow];
        if it.part == 0 && !it.own.is_empty() {
            it.own_part += bytes;
            if it.own_part == it.own.len() {
                it.own.clear();
                it.own_part = 0;
            }
            return;
        }
        it.part += bytes;
        if it.chunks.get(it.written).is_some_and(|chunk| chunk.frame.len() == it.part) {
            it.part = 0;
            it.written += 1;
        }
    }

    /// The other process was heard on a subflow.
    pub fn heard(&mut self, subflow: usize, now_ns: u64) {
        self.subflows[subflow].heard_ns = now_ns;
    }

    /// The other process has so many chunks of a subflow since it is up. Returns the acknowledged
    /// bytes.
    ///
    /// # Errors
    /// [`Fault::Ack`].
    pub fn acknowledge(&mut self, subflow: usize, chunks: u64, now_ns: u64) -> Result<u64, Fault> {
        let fault = Fault::Ack { subflow: subflow as u32, chunks };
        let it = self.subflows.get_mut(subflow).ok_or(fault)?;
        // Acknowledgements may overtake each other on different subflows.
        let fresh = chunks.saturating_sub(it.acknowledged);
        if fresh > it.written as u64 {
            return Err(fault);
        }
        let mut bytes = 0;
        for _ in 0..fresh {
            let Some(chunk) = it.chunks.pop_front() else { break };
            it.written -= 1;
            it.acknowledged += 1;
            bytes += chunk.frame.len() as u64;
            let delay_ns = now_ns.saturating_sub(chunk.sent_ns);
            it.delay_ns = if it.delay_ns == 0 { delay_ns } else { it.delay_ns.min(delay_ns) };
            if let Some(known) = self.arrived.get_mut((chunk.number - self.oldest) as usize) {
                *known = true;
            }
            if self.spare.len() < 256 {
                self.spare.push(chunk.frame);
            }
        }
        if bytes > 0 {
            it.queue_bytes -= bytes;
            it.progress_ns = now_ns;
            it.measure(bytes, now_ns);
        }
        while self.arrived.front() == Some(&true) {
            self.arrived.pop_front();
            self.oldest += 1;
        }
        Ok(bytes)
    }

    /// True if a subflow has bytes under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.subflows.iter().any(|it| !it.chunks.is_empty())
    }

    /// Subflows that are to be left now.
    #[must_use]
    pub fn stalled(&self) -> Vec<usize> {
        let heard = |subflow: usize| {
            let others = self.subflows.iter().enumerate().filter(|(it, _)| *it != subflow);
            others.filter(|(_, it)| it.is_up).map(|(_, it)| it.heard_ns).max().unwrap_or(0)
        };
        let is_stalled = |subflow: &usize| {
            let it = &self.subflows[*subflow];
            let waits = it.is_up && !it.chunks.is_empty();
            waits && heard(*subflow) >= it.progress_ns.saturating_add(STALL_NS)
        };
        (0..self.subflows.len()).filter(is_stalled).collect()
    }

    /// Subflows that are to ask for an acknowledgement, because another one makes no progress.
    pub fn probes(&mut self, now_ns: u64) -> Vec<usize> {
        let waits =
            |it: &Subflow| it.is_up && !it.chunks.is_empty() && now_ns > it.progress_ns + PROBE_NS;
        let slow: Vec<bool> = self.subflows.iter().map(waits).collect();
        let mut asked = Vec::new();
        for (index, it) in self.subflows.iter_mut().enumerate() {
            let other = slow.iter().enumerate().any(|(at, slow)| *slow && at != index);
            if other && it.is_up && now_ns > it.probed_ns + PROBE_NS / 2 && it.own.is_empty() {
                it.probed_ns = now_ns;
                asked.push(index);
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn chunk(bytes: usize) -> impl FnOnce(u64, Vec<u8>) -> Vec<u8> {
        move |_, _| vec![0; bytes]
    }

    fn write_all(stripe: &mut Stripe, subflow: usize) {
        while let Some(bytes) = stripe.unwritten(subflow).map(<[u8]>::len) {
            stripe.wrote(subflow, bytes);
        }
    }

    #[test]
    fn the_queue_that_drains_first_gets_the_chunk() {
        let mut stripe = Stripe::new(3);
        assert_eq!(stripe.best(|_| true), None, "none is up");
        stripe.up(0, 0);
        stripe.up(1, 0);
        stripe.send(0, 0, chunk(1000));
        write_all(&mut stripe, 0);
        assert_eq!(stripe.best(|_| true), Some(1));
        assert_eq!(stripe.best(|it| it == 0), Some(0));
        // 12.5 MB/s on subflow 1 against 125 MB/s: 5,000 B there wait longer than 40,000 B.
        stripe.subflows[1].rate = RATE_FIRST / 10;
        for (subflow, bytes) in [(0, 39_000), (1, 5000)] {
            stripe.send(subflow, 0, chunk(bytes));
            write_all(&mut stripe, subflow);
        }
        assert_eq!(stripe.best(|_| true), Some(0));
    }

    #[test]
    fn a_rate_is_measured_while_the_queue_is_full() {
        let mut stripe = Stripe::new(1);
        stripe.up(0, 0);
        // 1,000 chunks of 25,000 B, one in each ms: 25 MB/s.
        for number in 0..1000u64 {
            stripe.send(0, number * MS, chunk(25_000));
            write_all(&mut stripe, 0);
            if number > 0 {
                stripe.acknowledge(0, number, number * MS).unwrap();
            }
        }
        let rate = stripe.subflows[0].rate;
        assert!((24_000_000..26_000_000).contains(&rate), "{rate} B/s");
    }

    #[test]
    fn a_subflow_that_is_left_gives_its_chunks_to_others() {
        let mut stripe = Stripe::new(2);
        stripe.up(0, 0);
        stripe.up(1, 0);
        for _ in 0..3 {
            stripe.send(0, 0, chunk(100));
            write_all(&mut stripe, 0);
        }
        stripe.acknowledge(0, 1, MS).unwrap();
        stripe.heard(1, MS + STALL_NS - 1);
        assert!(stripe.stalled().is_empty());
        stripe.heard(1, MS + STALL_NS);
        assert_eq!(stripe.stalled(), [0]);
        stripe.down(0);
        assert!(!stripe.is_up(0) && stripe.has_waiting());
        let mut numbers = Vec::new();
        while stripe.assign(1, 0) {
            numbers.push(stripe.subflows[1].chunks.back().unwrap().number);
            write_all(&mut stripe, 1);
        }
        assert_eq!((numbers, stripe.sent_again), (vec![1, 2], 2));
        stripe.acknowledge(1, 2, 0).unwrap();
        assert!(!stripe.is_busy() && stripe.oldest == 3);
    }

    #[test]
    fn nothing_is_left_while_the_other_process_is_silent() {
        let mut stripe = Stripe::new(2);
        stripe.up(0, 0);
        stripe.up(1, 0);
        stripe.send(0, 0, chunk(100));
        write_all(&mut stripe, 0);
        assert_eq!(stripe.probes(PROBE_NS), []);
        assert_eq!(stripe.probes(PROBE_NS + 1), [1]);
        assert!(stripe.stalled().is_empty(), "it may be busy");
    }

    #[test]
    fn only_what_was_written_can_be_acknowledged() {
        let mut stripe = Stripe::new(1);
        stripe.up(0, 0);
        stripe.send(0, 0, chunk(100));
        assert!(stripe.acknowledge(0, 1, 0).is_err());
        stripe.wrote(0, 99);
        assert!(stripe.acknowledge(0, 1, 0).is_err());
        stripe.wrote(0, 1);
        assert_eq!(stripe.acknowledge(0, 1, 0), Ok(100));
        assert_eq!(stripe.acknowledge(0, 0, 0), Ok(0), "an older acknowledgement");
        assert!(stripe.acknowledge(0, 2, 0).is_err() && stripe.acknowledge(1, 0, 0).is_err());
    }

    #[test]
    fn own_frames_go_between_chunks() {
        let mut stripe = Stripe::new(1);
        stripe.up(0, 0);
        stripe.send(0, 0, |_, _| vec![1; 10]);
        stripe.wrote(0, 4);
        stripe.say(0, &[2; 3]);
        assert_eq!(stripe.unwritten(0), Some(&[1; 6][..]));
        stripe.wrote(0, 6);
        assert_eq!(stripe.unwritten(0), Some(&[2; 3][..]));
        stripe.wrote(0, 3);
        assert_eq!(stripe.unwritten(0), None);
    }
}
