//! Inputs that a host dropped, by cause.

/// Inputs that were dropped or answered with an error, with one count per cause. All counts are
/// zero in a run without failures, except `batched`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages from a node that does not exist, is this node, or was declared failed.
    pub peer_unknown: u64,
    /// Grants for an id that is not open.
    pub grant_unknown: u64,
    /// Grants for zero bytes, or for more than the rest of the demand.
    pub grant_excess: u64,
    /// Grants for bytes whose message ended before; their slots on the link stay empty.
    pub grant_late: u64,
    /// Grants that found the grant queue full.
    pub grant_overflow: u64,
    /// Duplicate requests.
    pub request_duplicate: u64,
    /// Requests of the wrong class, row or length.
    pub request_malformed: u64,
    /// Requests that were refused because no room was left.
    pub request_overflow: u64,
    /// Responses abandoned because their id was reused.
    pub response_abandoned: u64,
    /// Chunks of an id that is not open.
    pub chunk_unknown: u64,
    /// Chunks of a response that had ended.
    pub chunk_late: u64,
    /// Chunks that do not follow the previous one, or that end where their message does not.
    pub chunk_out_of_order: u64,
    /// Duplicate write chunks.
    pub chunk_duplicate: u64,
    /// Chunks of the wrong class or length.
    pub chunk_malformed: u64,
    /// Unsolicited statuses.
    pub status_unknown: u64,
    /// Statuses for messages that had ended.
    pub status_late: u64,
    /// Statuses that were dropped because no room was left.
    pub status_overflow: u64,
    /// Posted writes that memory refused.
    pub posted_write_refused: u64,
    /// Writes that shared another write's notification. They are not errors.
    pub batched: u64,
}
