//! Purposes of the requests in flight.

use ethermem_clio::transport::OperationId;

use ethermem_pool::{OpId, ProcessId, Segment, WaitedId};

/// Purpose of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// It is part of an operation, and touches this range.
    Part(OpId, Segment),
    /// It keeps a process alive.
    Alive(ProcessId),
    /// It ends a process.
    End,
    /// A caller waits for it in place.
    Here,
    /// A machine thread waits for it by [`super::Remote::look_alone`].
    Alone(WaitedId),
}

/// Purposes indexed by the transport's operation slots; a slot has one request or none.
#[derive(Default)]
pub(super) struct AskedFor {
    places: Vec<Option<Asked>>,
    count: usize,
}

impl AskedFor {
    pub(super) fn insert(&mut self, operation: OperationId, asked: Asked) {
        let place = operation.place();
        if place >= self.places.len() {
            self.places.resize(place + 1, None);
        }
        self.places[place] = Some(asked);
        self.count += 1;
    }

    pub(super) fn remove(&mut self, operation: OperationId) -> Option<Asked> {
        let asked = self.places.get_mut(operation.place())?.take()?;
        self.count -= 1;
        Some(asked)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn clear(&mut self) {
        *self = AskedFor::default();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Asked> {
        self.places.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_is_there_until_it_is_taken() {
        let mut asked = AskedFor::default();
        assert!(asked.is_empty());
        // The first two ids share a slot, one after the other.
        let (first, later, far) = (OperationId(3), OperationId(3 | 1 << 32), OperationId(9));
        asked.insert(first, Asked::Here);
        asked.insert(far, Asked::Alive(ProcessId(5)));
        assert_eq!(asked.iter().count(), 2);
        assert!(asked.remove(OperationId(4)).is_none() && asked.remove(OperationId(99)).is_none());
        assert!(matches!(asked.remove(first), Some(Asked::Here)));
        assert!(asked.remove(first).is_none() && !asked.is_empty());
        asked.insert(later, Asked::End);
        assert!(matches!(asked.remove(later), Some(Asked::End)));
        assert!(!asked.is_empty());
        assert!(matches!(asked.remove(far), Some(Asked::Alive(ProcessId(5)))));
        assert!(asked.is_empty() && asked.iter().next().is_none());
        asked.insert(far, Asked::Here);
        asked.clear();
        assert!(asked.is_empty());
    }
}
