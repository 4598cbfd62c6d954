//! What a host sends next: granted chunks, the shortest message first, before anything else.

use std::collections::BTreeSet;

use ethermem_engine::engine::Handle;

/// An item that an uplink is to send; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ToSend {
    pub(super) class: Class,
    /// Bytes that the message has to send; 0 for a request.
    pub(super) bytes: u64,
    pub(super) order: u64,
    pub(super) handle: Handle,
    /// Bytes of the chunk.
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
    /// One item more. Whether the uplink was idle, and is to be asked for the next one.
    pub(super) fn add(&mut self, item: ToSend) -> bool {
        self.to_send.insert(item);
        !self.busy
    }

    /// Takes what is sent from now on; the uplink is idle where there is none.
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
