//! What requests under way are for.

use ethermem_clio::transport::OperationId;

use crate::address::ProcessId;
use crate::world::{OpId, Segment};

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// An operation's, which touches this.
    Part(OpId, Segment),
    /// It keeps a process alive.
    Alive(ProcessId),
    /// It ends one.
    End,
    /// Somebody waits for it here.
    Here,
    /// A machine thread waits for it, which comes back to look.
    Alone(ProcessId),
}

/// By the places of the transport's operations, each of which has one request's or none.
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
