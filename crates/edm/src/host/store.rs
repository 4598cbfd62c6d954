//! The memory side of writes: chunks in, acknowledgements out.

use ethermem_units::{Bytes, Ps};

use crate::message::{Action, Chunk, ChunkKind, MESSAGE_BYTES_MAX, MessageId, Status, StatusCode};

use super::{Control, Host};

/// What is known of the write that last used a row of a peer's message state table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    /// Bytes of the current member that have arrived.
    received: u32,
    id: MessageId,
    /// The member whose chunk is due.
    member: u8,
    seen: bool,
    /// A chunk of the current member is missing: the rest of the member is not stored.
    broken: bool,
}

impl Store {
    pub(super) const UNUSED: Store =
        Store { received: 0, id: MessageId(0), member: 0, seen: false, broken: false };
}

impl Host {
    /// Processes a chunk of a write; returns what the caller must store.
    pub(super) fn receive_write(&mut self, now: Ps, chunk: Chunk) -> Option<Action> {
        let Chunk { peer, id, kind, member, offset, bytes, last, .. } = chunk;
        if !id.is_write()
            || bytes == Bytes(0)
            || offset.0.saturating_add(bytes.0) > MESSAGE_BYTES_MAX.0
        {
            self.counters.chunk_malformed += 1;
            return None;
        }
        let row = self.peers.store(peer, id.row());
        if !row.seen || id.is_after(row.id) {
            *row = Store { id, seen: true, ..Store::UNUSED };
        }
        if row.id == id && member > row.member {
            // The members between ended at the writer or were lost, so no answer is due for them.
            *row = Store { member, received: 0, broken: false, ..*row };
        }
        let offset = offset.0 as u32;
        if row.id != id || member < row.member || offset < row.received {
            self.counters.chunk_duplicate += 1;
            return None;
        }
        if offset > row.received {
            row.broken = true;
        }
        let broken = row.broken;
        if last {
            *row =
                Store { member: row.member.saturating_add(1), received: 0, broken: false, ..*row };
        } else if !broken {
            row.received += bytes.0 as u32;
        }
        if !broken {
            return Some(Action::Store(chunk));
        }
        self.counters.chunk_out_of_order += 1;
        if last && kind == ChunkKind::AcknowledgedWrite {
            self.push_status(now, Status { peer, id, member, code: StatusCode::Incomplete });
        }
        None
    }

    /// Records that memory took or refused a chunk given by [`Action::Store`]. An acknowledged
    /// write is answered once its last chunk was taken. A refusal of an earlier chunk need not be
    /// kept: addresses of chunks rise, so the last chunk is refused too.
    pub fn on_written(&mut self, now: Ps, chunk: &Chunk, code: StatusCode) {
        self.advance(now);
        let Chunk { peer, id, member, last, .. } = *chunk;
        match chunk.kind {
            ChunkKind::ReadResponse => {}
            ChunkKind::PostedWrite => {
                self.counters.posted_write_refused += u64::from(code != StatusCode::Ok);
            }
            ChunkKind::AcknowledgedWrite => {
                if last && self.is_known(peer) {
                    self.push_status(now, Status { peer, id, member, code });
                }
            }
        }
    }

    pub(super) fn push_status(&mut self, now: Ps, status: Status) {
        if self.statuses_queued == self.statuses_max {
            self.counters.status_overflow += 1;
            return;
        }
        self.statuses_queued += 1;
        self.control.push(now, Control::Status(status));
    }
}
