//! The receiving end: segments wait in the memory pool until those before them have come.

use ethermem_wire::dfabric::{Acknowledgement, FabricAddress, Segment};

use super::{StreamConfigError, check_window};

/// A segment that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number.
    pub number: u32,
    /// Where its data is.
    pub data: FabricAddress,
    /// Bytes of data.
    pub length: u32,
    /// The stream ends with it.
    pub is_last: bool,
}

/// What became of a segment. Unless it was kept, its Buffer is to be freed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It waits, or is ready.
    Kept,
    /// It has come before.
    Duplicate,
    /// It is beyond the room that was announced.
    Outside,
    /// It has another length than its first copy, or comes after the stream's end.
    Mismatch,
}

/// Puts the segments of one stream in order.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// By number, modulo the window.
    slots: Box<[Option<Delivery>]>,
    /// The next to be delivered.
    delivered: u32,
    /// The first that has not come.
    next: u32,
    /// Number of the last segment, once it is known.
    last: Option<u32>,
    /// The first segment for which no room was announced.
    announced: u32,
}

impl Receiver {
    /// A receiver with a window of so many segments, whose first has this number.
    ///
    /// # Errors
    /// [`StreamConfigError::Window`].
    pub fn new(window: u32, first: u32) -> Result<Receiver, StreamConfigError> {
        check_window(window)?;
        let slots = vec![None; window as usize].into();
        Ok(Receiver {
            slots,
            delivered: first,
            next: first,
            last: None,
            announced: first.wrapping_add(window),
        })
    }

    fn at(&self, number: u32) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    fn has(&self, number: u32) -> bool {
        self.slots[self.at(number)].is_some_and(|slot| slot.number == number)
    }

    /// Takes a segment whose data is in a Buffer that the node holds.
    pub fn on_segment(&mut self, segment: &Segment, data: FabricAddress) -> Arrival {
        let Segment { number, length, is_last, .. } = *segment;
        let after = number.wrapping_sub(self.delivered);
        if after.cast_signed() < 0 {
            return Arrival::Duplicate;
        }
        if after as usize >= self.slots.len() {
            return Arrival::Outside;
        }
        if let Some(first) = self.slots[self.at(number)] {
            let is_same = first.length == length && first.is_last == is_last;
            return if is_same { Arrival::Duplicate } else { Arrival::Mismatch };
        }
        if !self.fits_end(number, is_last) {
            return Arrival::Mismatch;
        }
        if is_last {
            self.last = Some(number);
        }
        let at = self.at(number);
        self.slots[at] = Some(Delivery { number, data, length, is_last });
        while self.next.wrapping_sub(self.delivered) < self.slots.len() as u32
            && self.has(self.next)
        {
            self.next = self.next.wrapping_add(1);
        }
        Arrival::Kept
    }

    /// True unless the stream ends before this segment, or behind its end others have come.
    fn fits_end(&self, number: u32, is_last: bool) -> bool {
        let place = |number: u32| number.wrapping_sub(self.delivered).cast_signed();
        match self.last {
            Some(last) => !is_last && place(number) < place(last),
            None if is_last => {
                let waiting = self.slots.iter().flatten();
                waiting.into_iter().all(|slot| place(slot.number) < place(number))
            }
            None => true,
        }
    }

    /// Delivers the next segment, if it has come.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        if self.delivered == self.next {
            return None;
        }
        let at = self.at(self.delivered);
        let delivery = self.slots[at].take()?;
        self.delivered = self.delivered.wrapping_add(1);
        Some(delivery)
    }

    /// True after the last segment was delivered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| last.wrapping_add(1) == self.delivered)
    }

    /// Segments that wait, and hold their Buffers: to be freed if the stream is given up.
    pub fn waiting(&self) -> impl Iterator<Item = Delivery> + '_ {
        self.slots.iter().flatten().copied()
    }

    /// True if deliveries have made room for half of the window since the last acknowledgement: the
    /// sender, which may wait for room, is to get another one.
    #[must_use]
    pub fn has_room_to_announce(&self) -> bool {
        let window = self.slots.len() as u32;
        let limit = self.delivered.wrapping_add(window);
        limit.wrapping_sub(self.announced) >= window.div_ceil(2)
    }

    /// The acknowledgement of all that has come, as an answer to a segment.
    #[must_use]
    pub fn acknowledge(&mut self, segment: &Segment) -> Acknowledgement {
        self.announced = self.delivered.wrapping_add(self.slots.len() as u32);
        let bits = (0..64).filter(|&bit| self.has(self.next.wrapping_add(1 + bit)));
        Acknowledgement {
            destination: segment.source,
            source: segment.destination,
            stream: segment.stream,
            subflow: segment.subflow,
            next: self.next,
            room: self.announced.wrapping_sub(self.next),
            later: bits.fold(0, |bits, bit| bits | 1 << bit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32, length: u32, is_last: bool) -> Segment {
        let ends = ethermem_wire::dfabric::Identity(1);
        Segment { destination: ends, source: ends, stream: 1, subflow: 2, number, length, is_last }
    }

    fn arrive(receiver: &mut Receiver, number: u32) -> Arrival {
        receiver.on_segment(&segment(number, 10, false), FabricAddress::default())
    }

    #[test]
    fn segments_are_delivered_once_and_in_order_across_the_wrap_of_numbers() {
        let first = u32::MAX - 1;
        let mut receiver = Receiver::new(4, first).unwrap();
        assert_eq!(arrive(&mut receiver, first.wrapping_add(2)), Arrival::Kept);
        assert_eq!(arrive(&mut receiver, first.wrapping_add(3)), Arrival::Kept);
        assert_eq!(arrive(&mut receiver, first.wrapping_add(4)), Arrival::Outside);
        assert_eq!(receiver.poll_delivery(), None);
        let ack = receiver.acknowledge(&segment(0, 1, false));
        assert_eq!((ack.next, ack.room, ack.later), (first, 4, 0b110));
        assert_eq!(arrive(&mut receiver, first), Arrival::Kept);
        assert_eq!(arrive(&mut receiver, first), Arrival::Duplicate);
        assert_eq!(arrive(&mut receiver, first.wrapping_add(1)), Arrival::Kept);
        let numbers: Vec<_> =
            std::iter::from_fn(|| receiver.poll_delivery()).map(|one| one.number).collect();
        assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 0, 1]);
        assert_eq!(arrive(&mut receiver, 1), Arrival::Duplicate);
        let ack = receiver.acknowledge(&segment(0, 1, false));
        assert_eq!((ack.next, ack.room, ack.later), (2, 4, 0));
    }

    #[test]
    fn a_stream_has_one_end_and_nothing_behind_it() {
        let mut receiver = Receiver::new(8, 0).unwrap();
        let data = FabricAddress::default();
        assert_eq!(arrive(&mut receiver, 3), Arrival::Kept);
        assert_eq!(receiver.on_segment(&segment(2, 10, true), data), Arrival::Mismatch);
        assert_eq!(receiver.on_segment(&segment(4, 10, true), data), Arrival::Kept);
        assert_eq!(arrive(&mut receiver, 5), Arrival::Mismatch);
        assert_eq!(receiver.on_segment(&segment(1, 10, true), data), Arrival::Mismatch);
        assert_eq!(receiver.on_segment(&segment(3, 11, false), data), Arrival::Mismatch);
        (0..3).for_each(|number| assert_eq!(arrive(&mut receiver, number), Arrival::Kept));
        assert!(!receiver.is_complete());
        assert_eq!(std::iter::from_fn(|| receiver.poll_delivery()).count(), 5);
        assert!(receiver.is_complete());
    }
}
