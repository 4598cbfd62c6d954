//! How a request ended.

use thiserror::Error;

/// How a request ended: one octet of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClioStatus {
    /// It was done.
    Ok = 0,
    /// It was done. A dead process held the lock, and the data that it guards may be half changed.
    OwnerDied = 1,
    /// Not done: the datagram's check failed.
    Corrupt = 2,
    /// Not done: the node does not know the opcode.
    UnknownOpcode = 3,
    /// Not done: the packet does not fit its opcode.
    Malformed = 4,
    /// Not done: the node was restarted, and its former content is lost.
    WrongEpoch = 5,
    /// Not done: the request arrived after its deadline.
    Expired = 6,
    /// Not done: the process does not exist or belongs to another tenant.
    NoSuchProcess = 7,
    /// Not done: some of the bytes are not mapped in the process.
    Unmapped = 8,
    /// Not done: the process lacks the permission for these bytes.
    Permission = 9,
    /// Not done: an atomic or a lock is not at a multiple of 8.
    Misaligned = 10,
    /// Not done: zero bytes, or more than a packet may ask for.
    BadLength = 11,
    /// Not done: a resource is used up for the moment. The detail is the number of the resource.
    Busy = 12,
    /// Not done: another holder has the lock.
    Held = 13,
    /// Not done: the requester does not hold the lock that it would release.
    NotHeld = 14,
    /// Not done: the node has too little free memory. The detail is the number of free bytes.
    Full = 15,
    /// Not done: the tenant's quota is used up. The detail is what is left of it.
    Quota = 16,
    /// Not done: the requested address is in use, or it is not the start of a page.
    AddressTaken = 17,
    /// Not done: the page table has no free entry for the requested address.
    AddressOverflows = 18,
    /// Not done: the node has no offload of this name.
    NoSuchOffload = 19,
    /// Not done, or done in part: the offload refused its arguments, or ran past its limit.
    OffloadFailed = 20,
}

/// An octet that is not a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("status {0} is not assigned")]
pub struct UnassignedStatus(pub u8);

impl ClioStatus {
    /// All statuses, in the order of their numbers.
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

    /// True if the request was done.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, ClioStatus::Ok | ClioStatus::OwnerDied)
    }

    /// True if the request may succeed when it is sent again.
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
