//! Operations in progress, by their names.

use super::operation::{Operation, OperationId};

/// Bits of a name below this one are the place; bits above count the operations that began before.
const PLACE_BITS: u32 = 32;

impl OperationId {
    /// A small number that no other operation has, from its start until its event is polled.
    #[must_use]
    pub fn place(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize
    }
}

/// The operations in progress.
#[derive(Default)]
pub(super) struct Operations {
    places: Vec<Option<(OperationId, Operation)>>,
    free: Vec<u32>,
    begun: u32,
}

impl Operations {
    pub(super) fn insert(&mut self, operation: Operation) -> OperationId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 operations")
        });
        self.begun = self.begun.wrapping_add(1);
        let id = OperationId(u64::from(self.begun) << PLACE_BITS | u64::from(place));
        self.places[place as usize] = Some((id, operation));
        id
    }

    pub(super) fn get(&self, id: OperationId) -> Option<&Operation> {
        let (name, operation) = self.places.get(id.place())?.as_ref()?;
        (*name == id).then_some(operation)
    }

    pub(super) fn get_mut(&mut self, id: OperationId) -> Option<&mut Operation> {
        let (name, operation) = self.places.get_mut(id.place())?.as_mut()?;
        (*name == id).then_some(operation)
    }

    pub(super) fn remove(&mut self, id: OperationId) -> Option<Operation> {
        let place = self.places.get_mut(id.place())?;
        place.take_if(|(name, _)| *name == id).map(|(_, operation)| operation)
    }

    /// Frees the place of a removed operation whose event was polled.
    pub(super) fn release(&mut self, id: OperationId) {
        debug_assert!(self.places[id.place()].is_none(), "it was removed");
        self.free.push(id.place() as u32);
    }

    /// The names of all operations, in the order in which they began.
    pub(super) fn names(&self) -> Vec<OperationId> {
        let mut names: Vec<OperationId> =
            self.places.iter().flatten().map(|&(name, _)| name).collect();
        // The order begins with the oldest name: the count wraps.
        names.sort_unstable_by_key(|name| self.begun.wrapping_sub((name.0 >> PLACE_BITS) as u32));
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::{ProcessId, Request};

    use super::super::operation::Ask;
    use super::*;

    #[test]
    fn a_place_is_used_again_under_another_name() {
        let mut operations = Operations { begun: u32::MAX - 2, ..Operations::default() };
        let mut insert = |process| {
            operations.insert(Operation::new(ProcessId(process), Ask::Short(Request::Fence)))
        };
        let (one, two, three) = (insert(1), insert(2), insert(3));
        assert_eq!([one, two, three].map(OperationId::place), [0, 1, 2]);
        assert_eq!(operations.remove(one).map(|one| one.process), Some(ProcessId(1)));
        assert!(operations.remove(one).is_none() && operations.get(one).is_none());
        let other = operations.insert(Operation::new(ProcessId(5), Ask::Short(Request::Fence)));
        assert_eq!(other.place(), 3, "somebody may know the first still");
        operations.remove(other);
        operations.release(one);
        let four = operations.insert(Operation::new(ProcessId(4), Ask::Short(Request::Fence)));
        assert_eq!((four.place(), four == one), (0, false));
        assert!(operations.get_mut(one).is_none());
        assert_eq!(operations.get_mut(four).map(|four| four.process), Some(ProcessId(4)));
        assert_eq!(operations.names(), [two, three, four], "as they began");
    }
}
