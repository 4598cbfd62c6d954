//! What a host dropped, by cause.

/// Inputs that were dropped or answered with an error, one count a cause. All zero in a run
/// without failures, except for `batched`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Anything from a node that does not exist, is this node, or was declared failed.
    pub peer_unknown: u64,
    /// Grants for an id that is not open.
    pub grant_unknown: u64,
    /// Grants for more than the rest of the demand, or for no bytes.
    pub grant_excess: u64,
    /// Grants for bytes whose message ended before: their slot of the link stays empty.
    pub grant_late: u64,
    /// Grants that found the grant queue full.
    pub grant_overflow: u64,
    /// Requests seen before.
    pub request_duplicate: u64,
    /// Requests of the wrong class, row or length.
    pub request_malformed: u64,
    /// Requests that found no room.
    pub request_overflow: u64,
    /// Responses given up because their id was used anew.
    pub response_abandoned: u64,
    /// Chunks of an id that is not open.
    pub chunk_unknown: u64,
    /// Chunks of a response that was no longer waited for.
    pub chunk_late: u64,
    /// Chunks that do not follow the one before, or whose end is not that of the message.
    pub chunk_out_of_order: u64,
    /// Write chunks seen before.
    pub chunk_duplicate: u64,
    /// Chunks of the wrong class or length.
    pub chunk_malformed: u64,
    /// Statuses that nothing waited for.
    pub status_unknown: u64,
    /// Statuses for what had ended before.
    pub status_late: u64,
    /// Statuses that found no room.
    pub status_overflow: u64,
    /// Posted writes that memory refused.
    pub posted_write_refused: u64,
    /// Writes that shared the notification of another: no error.
    pub batched: u64,
}
