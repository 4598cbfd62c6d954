//! The receiver's side, pure: which chunks have arrived, and the bytes of each stream in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::frame::{DATA_BYTES_MAX, Fault};

/// Most chunks between the oldest that is missing and the newest that has arrived.
pub const CHUNKS_AHEAD_MAX: u64 = 1 << 16;
/// Bytes of a new stream that may be sent before the first credit.
pub const WINDOW_BYTES_FIRST: u64 = 64 << 10;
/// Most bytes of a stream that wait for their program.
pub const WINDOW_BYTES_MAX: u64 = 16 << 20;
/// A shorter piece is copied behind the one before it, so that a window of short pieces takes
/// little more memory than its bytes.
const SHORT_BYTES: usize = 4 << 10;

/// Numbers of chunks that have arrived, so that none counts twice.
#[derive(Debug, Default)]
pub struct Arrived {
    /// All numbers below have arrived.
    low: u64,
    above: BTreeSet<u64>,
}

impl Arrived {
    /// Notes a chunk. False if it is a duplicate.
    ///
    /// # Errors
    /// [`Fault::Number`].
    pub fn note(&mut self, chunk: u64) -> Result<bool, Fault> {
        if chunk >= self.low.saturating_add(CHUNKS_AHEAD_MAX) {
            return Err(Fault::Number(chunk));
        }
        if chunk < self.low || !self.above.insert(chunk) {
            return Ok(false);
        }
        while self.above.first() == Some(&self.low) {
            self.above.pop_first();
            self.low += 1;
        }
        Ok(true)
    }

    /// Number of chunks that have arrived although an earlier one is missing.
    #[must_use]
    pub fn ahead(&self) -> usize {
        self.above.len()
    }
}

/// One direction of a stream at its receiver.
#[derive(Debug)]
pub struct Incoming {
    stream: u32,
    /// Position of the first byte that is missing.
    next: u64,
    /// Bytes behind a gap, by their positions.
    apart: BTreeMap<u64, Vec<u8>>,
    /// Bytes in order, for the program; `taken` bytes of the first piece are gone.
    ready: VecDeque<Vec<u8>>,
    taken: usize,
    /// Position of the first byte that the program has not taken.
    delivered: u64,
    /// Position up to which the sender may send.
    granted: u64,
    window: u64,
    /// Where the stream ends, once known.
    end: Option<u64>,
}

impl Incoming {
    /// A stream at its begin.
    #[must_use]
    pub fn new(stream: u32) -> Incoming {
        Incoming {
            stream,
            next: 0,
            apart: BTreeMap::new(),
            ready: VecDeque::new(),
            taken: 0,
            delivered: 0,
            granted: WINDOW_BYTES_FIRST,
            window: WINDOW_BYTES_FIRST,
            end: None,
        }
    }

    fn fault(&self, position: u64) -> Fault {
        Fault::Position { stream: self.stream, position }
    }

    /// Takes bytes at a position. True if the program can take more than before.
    ///
    /// # Errors
    /// [`Fault::Position`]: the bytes overlap others, exceed the room, or lie behind the end.
    pub fn put(&mut self, position: u64, bytes: Vec<u8>) -> Result<bool, Fault> {
        let end = position.checked_add(bytes.len() as u64).ok_or(self.fault(position))?;
        let before = self.apart.range(..=position).next_back();
        let overlaps = position < self.next
            || before.is_some_and(|(at, piece)| at + piece.len() as u64 > position)
            || self.apart.range(position..).next().is_some_and(|(at, _)| *at < end);
        if overlaps || end > self.granted || self.end.is_some_and(|last| end > last) {
            return Err(self.fault(position));
        }
        if position != self.next {
            self.apart.insert(position, bytes);
            return Ok(false);
        }
        self.append(bytes);
        while let Some(entry) = self.apart.first_entry().filter(|entry| *entry.key() == self.next) {
            let piece = entry.remove();
            self.append(piece);
        }
        Ok(true)
    }

    /// Adds the bytes that come next.
    fn append(&mut self, bytes: Vec<u8>) {
        self.next += bytes.len() as u64;
        match self.ready.back_mut() {
            Some(last)
                if bytes.len() < SHORT_BYTES && last.len() + bytes.len() <= DATA_BYTES_MAX =>
            {
                last.extend(bytes);
            }
            _ => self.ready.push_back(bytes),
        }
    }

    /// Number of pieces behind a gap.
    #[must_use]
    pub fn apart(&self) -> usize {
        self.apart.len()
    }

    /// Notes where the stream ends.
    ///
    /// # Errors
    /// [`Fault::Position`]: bytes lie behind it, or it has ended before.
    pub fn end_at(&mut self, position: u64) -> Result<(), Fault> {
        let last = self.apart.last_key_value();
        let known = last.map_or(self.next, |(at, piece)| at + piece.len() as u64);
        if self.end.is_some() || position < known || position > self.granted {
            return Err(self.fault(position));
        }
        self.end = Some(position);
        Ok(())
    }

    /// Bytes that the program can take now.
    #[must_use]
    pub fn ready(&self) -> Option<&[u8]> {
        self.ready.front().map(|piece| &piece[self.taken..])
    }

    /// True if the program has taken all bytes of an ended stream.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.end == Some(self.delivered)
    }

    /// Bytes for which the sender has the receiver's word.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Bytes that wait here.
    #[must_use]
    pub fn held(&self) -> u64 {
        let apart: u64 = self.apart.values().map(|piece| piece.len() as u64).sum();
        self.next - self.delivered + apart
    }

    /// The program took bytes of the first piece. Returns a new credit, if the sender needs one;
    /// the window grows by at most `more` bytes then.
    ///
    /// # Panics
    /// If the piece has fewer bytes.
    pub fn take(&mut self, bytes: usize, more: u64) -> Option<u64> {
        self.taken += bytes;
        self.delivered += bytes as u64;
        let first = self.ready.front().map_or(0, Vec::len);
        assert!(self.taken <= first, "{bytes} B of a piece of {first} B");
        if self.taken == first {
            self.taken = 0;
            self.ready.pop_front();
        }
        if self.end.is_some() || self.granted - self.delivered > self.window / 2 {
            return None;
        }
        // A program that takes half a window soon needs a larger one.
        self.window += more.min(self.window).min(WINDOW_BYTES_MAX - self.window);
        self.granted = self.delivered + self.window;
        Some(self.granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_counts_once_in_any_order() {
        let mut arrived = Arrived::default();
        for (chunk, is_new) in [(2, true), (0, true), (2, false), (1, true), (1, false), (3, true)]
        {
            assert_eq!(arrived.note(chunk), Ok(is_new), "chunk {chunk}");
        }
        assert!(arrived.above.is_empty() && arrived.low == 4);
        let far = 4 + CHUNKS_AHEAD_MAX;
        assert_eq!(arrived.note(far), Err(Fault::Number(far)));
        assert_eq!(arrived.note(far - 1), Ok(true));
    }

    fn all(stream: &mut Incoming) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(piece) = stream.ready().map(<[u8]>::to_vec) {
            stream.take(piece.len(), 0);
            bytes.extend(piece);
        }
        bytes
    }

    #[test]
    fn bytes_come_in_order_and_the_end_after_them() {
        let mut stream = Incoming::new(1);
        assert_eq!(stream.put(3, vec![3, 4]), Ok(false));
        stream.end_at(6).unwrap();
        assert_eq!(stream.put(0, vec![0]), Ok(true));
        assert_eq!(all(&mut stream), [0]);
        assert_eq!(stream.put(5, vec![5]), Ok(false));
        assert_eq!(stream.held(), 3);
        assert!(!stream.is_done());
        assert_eq!(stream.put(1, vec![1, 2]), Ok(true));
        assert_eq!(all(&mut stream), [1, 2, 3, 4, 5]);
        assert!(stream.is_done());
    }

    #[test]
    fn bytes_that_cannot_be_are_faults() {
        let mut stream = Incoming::new(9);
        stream.put(10, vec![0; 10]).unwrap();
        stream.put(0, vec![0; 4]).unwrap();
        let window = WINDOW_BYTES_FIRST;
        for (position, bytes) in
            [(3, 1), (9, 2), (19, 1), (4, 17), (10, 10), (window - 1, 2), (u64::MAX, 2)]
        {
            let fault = Fault::Position { stream: 9, position };
            assert_eq!(stream.put(position, vec![0; bytes]), Err(fault));
        }
        assert!(stream.end_at(19).is_err() && stream.end_at(window + 1).is_err());
        stream.end_at(30).unwrap();
        assert!(stream.end_at(30).is_err() && stream.put(30, vec![1]).is_err());
        assert_eq!(stream.put(20, vec![1; 10]), Ok(false));
    }

    #[test]
    fn a_window_of_single_bytes_is_few_pieces() {
        let mut stream = Incoming::new(1);
        for position in (1..WINDOW_BYTES_FIRST).rev().chain([0]) {
            stream.put(position, vec![position as u8]).unwrap();
        }
        assert_eq!((stream.ready.len(), stream.apart()), (1, 0));
        let bytes: Vec<u8> = (0..WINDOW_BYTES_FIRST).map(|position| position as u8).collect();
        assert_eq!(all(&mut stream), bytes);
        // Long pieces are not copied, and a piece stays a chunk at most.
        for (bytes, pieces) in [(SHORT_BYTES, 1), (1, 1), (DATA_BYTES_MAX / 2, 2), (1, 2)] {
            stream.append(vec![0; bytes]);
            assert_eq!(stream.ready.len(), pieces, "{bytes} B");
        }
        stream.append(vec![0; DATA_BYTES_MAX]);
        stream.append(vec![0]);
        assert_eq!(stream.ready.len(), 4);
    }

    #[test]
    fn credit_follows_the_program_alone() {
        let mut stream = Incoming::new(1);
        let first = WINDOW_BYTES_FIRST;
        stream.put(0, vec![0; first as usize]).unwrap();
        assert!(stream.put(first, vec![0]).is_err(), "a full window");
        let half = first as usize / 2;
        assert_eq!(stream.take(half - 1, u64::MAX), None);
        assert_eq!(stream.take(1, u64::MAX), Some(half as u64 + 2 * first));
        assert_eq!(stream.window(), 2 * first);
        assert_eq!(stream.take(half, 0), None, "a window and a half are granted");
    }
}
