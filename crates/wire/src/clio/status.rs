//! How a request ended.

use thiserror::Error;

/// How a request ended, as one octet of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClioStatus {
    /// It was done.
    Ok = 0,
    /// It was done: the lock was held by a process that is dead, and what it guards may be half
    /// changed.
    OwnerDied = 1,
    /// Not done: the datagram's check failed.
    Corrupt = 2,
    /// Not done: the node does not know the opcode.
    UnknownOpcode = 3,
    /// Not done: the packet is not what its opcode takes.
    Malformed = 4,
    /// Not done: the node was started anew, and nothing of what was on it is there.
    WrongEpoch = 5,
    /// Not done: the request was too long under way.
    Expired = 6,
    /// Not done: no such process, or one of another tenant.
    NoSuchProcess = 7,
    /// Not done: some of the bytes are not the process's.
    Unmapped = 8,
    /// Not done: the process may not do this there.
    Permission = 9,
    /// Not done: an atomic or a lock must be at a multiple of 8.
    Misaligned = 10,
    /// Not done: more bytes than a packet may ask for, or none.
    BadLength = 11,
    /// Not done: no room of some kind for the moment. The detail says which, by number.
    Busy = 12,
    /// Not done: another holds the lock.
    Held = 13,
    /// Not done: the lock is not held by who would give it back.
    NotHeld = 14,
    /// Not done: the node has no memory left for it. The detail is how many bytes are free.
    Full = 15,
    /// Not done: the tenant may not have more. The detail is how much it has left.
    Quota = 16,
    /// Not done: the address asked for is in use, or no page begins there.
    AddressTaken = 17,
    /// Not done: the page table has no place for the address asked for.
    AddressOverflows = 18,
    /// Not done: the node knows no offload of this name.
    NoSuchOffload = 19,
    /// Not done, or in part: the offload refused its arguments, or found no end.
    OffloadFailed = 20,
}

/// An octet that is no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("status {0} is not assigned")]
pub struct UnassignedStatus(pub u8);

impl ClioStatus {
    /// All there are, by their numbers.
    pub const ALL: [ClioStatus; 21] = [
        ClioStatus::Ok,
        ClioStatus::OwnerDied,
        ClioStatus::Corrupt,
        ClioStatus::UnknownOpcode,
        ClioStatus::Malformed,
        ClioStatus::WrongEpoch,
        ClioStatus::Expired,
        ClioStatus::NoSuchProcess,
        ClioStatus::Unmapped,
        ClioStatus::Permission,
        ClioStatus::Misaligned,
        ClioStatus::BadLength,
        ClioStatus::Busy,
        ClioStatus::Held,
        ClioStatus::NotHeld,
        ClioStatus::Full,
        ClioStatus::Quota,
        ClioStatus::AddressTaken,
        ClioStatus::AddressOverflows,
        ClioStatus::NoSuchOffload,
        ClioStatus::OffloadFailed,
    ];

    /// Whether what was asked for has been done.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, ClioStatus::Ok | ClioStatus::OwnerDied)
    }

    /// Whether the same request may be done if it is sent again.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        use ClioStatus::{Busy, Corrupt, Expired, Full, Held, Quota};
        matches!(self, Corrupt | Expired | Busy | Held | Full | Quota)
    }
}

impl TryFrom<u8> for ClioStatus {
    type Error = UnassignedStatus;

    fn try_from(number: u8) -> Result<ClioStatus, UnassignedStatus> {
        ClioStatus::ALL.get(usize::from(number)).copied().ok_or(UnassignedStatus(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_its_place_in_the_list() {
        for number in 0..=u8::MAX {
            match ClioStatus::try_from(number) {
                Ok(status) => assert_eq!(status as u8, number),
                Err(error) => assert_eq!(error, UnassignedStatus(number)),
            }
        }
    }

    #[test]
    fn what_is_done_is_not_tried_again() {
        assert!(ClioStatus::ALL.iter().all(|status| !(status.is_done() && status.is_retryable())));
    }
}
