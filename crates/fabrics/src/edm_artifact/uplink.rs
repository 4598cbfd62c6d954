//! The order of a host's sending: granted chunks first, the shortest message first, then all
//! others.

use std::collections::BTreeSet;

use ethermem_engine::engine::Handle;

/// An item that an uplink must send; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ToSend {
    pub(super) class: Class,
    /// Number of bytes that the message has to send; 0 for a request.
    pub(super) bytes: u64,
    pub(super) order: u64,
    pub(super) handle: Handle,
    /// Number of bytes of the chunk.
    pub(super) chunk: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Chunk,
    Request,
    Notification,
}

#[derive(Default)]
pub(super) struct Uplink {
    to_send: BTreeSet<ToSend>,
    busy: bool,
}

impl Uplink {
    /// Adds an item. Returns true if the uplink was idle and must be asked for the next item.
    pub(super) fn add(&mut self, item: ToSend) -> bool {
        self.to_send.insert(item);
        !self.busy
    }

    /// Takes the next item to send; without one the uplink is idle.
    pub(super) fn next(&mut self) -> Option<ToSend> {
        let next = self.to_send.pop_first();
        self.busy = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_before_requests_and_these_before_notifications() {
        let mut uplink = Uplink::default();
        let item = |class, bytes, handle| {
            let order = u64::from(handle);
            ToSend { class, bytes, order, handle, chunk: 0 }
        };
        assert!(uplink.add(item(Class::Notification, 64, 0)));
        assert_eq!(uplink.next().map(|next| next.handle), Some(0));
        for (class, bytes, handle) in [
            (Class::Notification, 64, 1),
            (Class::Request, 0, 2),
            (Class::Chunk, 9_000, 3),
            (Class::Chunk, 64, 4),
        ] {
            assert!(!uplink.add(item(class, bytes, handle)));
        }
        let order: Vec<Handle> =
            std::iter::from_fn(|| uplink.next()).map(|next| next.handle).collect();
        assert_eq!(order, [4, 3, 2, 1]);
        assert!(uplink.add(item(Class::Request, 0, 5)));
    }
}
