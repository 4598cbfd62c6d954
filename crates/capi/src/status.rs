//! The statuses of calls, and their texts.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ethermem::{Error, OpenError, Unfinished};

/// Status of a call or an operation. `rerror` has the line that says what failed, where, and what
/// is allowed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A required pointer is null.
    NullArgument = 1,
    /// The handle is null, closed, already polled, or of another kind.
    BadHandle = 2,
    /// An argument is not among the allowed values.
    BadArgument = 3,
    /// The URL opens no pool.
    BadUrl = 4,
    /// Operations of the pool to be closed, or of the store's client that is called, were neither
    /// polled nor forgotten.
    Busy = 5,
    /// The result is longer than the caller's buffer.
    BufferTooSmall = 6,
    /// Some of the bytes are in no region that the process can access.
    Unmapped = 7,
    /// The process lacks the permission for this access.
    Permission = 8,
    /// The length asked for is zero.
    Empty = 9,
    /// The length asked for is too large.
    TooLong = 10,
    /// The address of an atomic or a lock is not a multiple of 8.
    Misaligned = 11,
    /// The memory node has too little free memory; it may have more once regions are freed.
    Full = 12,
    /// The thread does not hold the lock.
    NotHeld = 13,
    /// The pool has no node of this number.
    NoSuchNode = 14,
    /// The memory nodes have no operation of this name.
    NoSuchOffload = 15,
    /// The operation at the memory node refuses its arguments, or ends without a result.
    Offload = 16,
    /// The simulated fabric lost a message: a read was not done; whether a write or an atomic was
    /// done is unknown.
    Lost = 17,
    /// An invariant of the simulated fabric is violated: its results cannot be trusted.
    Violated = 18,
    /// The library has a defect.
    Internal = 19,
    /// The memory node does not exist or does not respond.
    Unreachable = 20,
    /// The thread now holds the lock, but its former holder died: the guarded data may be half
    /// changed.
    OwnerDied = 21,
    /// The memory node restarted, and its memory is lost.
    Restarted = 22,
    /// The process has ended, and its memory is lost.
    ProcessEnded = 23,
    /// The memory node refuses the operation for a reason of its own.
    Refused = 24,
    /// The memory node stopped the operation: it made an illegal access or exceeded a limit.
    OffloadStopped = 25,
    /// The memory node is shutting down and accepts no new process.
    Ending = 26,
    /// This process is a fork of the process that opened the pool; it can open a pool of its own.
    Forked = 27,
    /// An operation of a store may have been done, entirely or not at all: the message that decides
    /// had no response.
    Uncertain = 28,
    /// The operation waits for another one of this program that no thread drives.
    Stalled = 29,
    /// The memory node did not respond in time: a read was not done; whether a write or an atomic
    /// was done is unknown.
    NoAnswer = 30,
}

/// Every status with its text; its index is its number.
const STATUSES: [(Status, &CStr); 31] = [
    (Status::Ok, c"done"),
    (Status::NullArgument, c"a pointer is null that must not be"),
    (Status::BadHandle, c"the handle is null, closed, already polled, or of another kind"),
    (Status::BadArgument, c"an argument is none of those that are allowed"),
    (Status::BadUrl, c"the URL opens no pool"),
    (Status::Busy, c"operations were neither polled nor forgotten"),
    (Status::BufferTooSmall, c"the result is longer than the buffer"),
    (Status::Unmapped, c"not all bytes are in one region of the process"),
    (Status::Permission, c"the process may not do this there"),
    (Status::Empty, c"0 bytes were asked for"),
    (Status::TooLong, c"too much was asked for at once"),
    (Status::Misaligned, c"an atomic or a lock is not at a multiple of 8"),
    (Status::Full, c"the memory node has no room"),
    (Status::NotHeld, c"the thread does not hold the lock"),
    (Status::NoSuchNode, c"the pool has no such node"),
    (Status::NoSuchOffload, c"the memory nodes know no such operation"),
    (Status::Offload, c"the operation at the memory node failed"),
    (Status::Lost, c"lost by the simulated fabric"),
    (Status::Violated, c"an invariant of the simulated fabric does not hold"),
    (Status::Internal, c"a defect of ethermem"),
    (Status::Unreachable, c"the memory node is not there, or does not answer"),
    (Status::OwnerDied, c"the lock is this thread's, and whoever had it died"),
    (Status::Restarted, c"the memory node was started anew: what was on it is gone"),
    (Status::ProcessEnded, c"the process is no more, and its memory is gone"),
    (Status::Refused, c"the memory node refuses it"),
    (Status::OffloadStopped, c"the operation at the memory node was stopped"),
    (Status::Ending, c"the memory node is about to end, and takes no new process"),
    (Status::Forked, c"the pool is the parent process's"),
    (Status::Uncertain, c"the operation of the store may have been done"),
    (Status::Stalled, c"the operation waits for another that nobody goes on with"),
    (Status::NoAnswer, c"the memory node did not answer in time"),
];

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error {
            Error::Unmapped { .. } => Status::Unmapped,
            Error::Permission { .. } => Status::Permission,
            Error::Empty { .. } => Status::Empty,
            Error::TooLong { .. } => Status::TooLong,
            Error::Misaligned { .. } => Status::Misaligned,
            Error::Full { .. } => Status::Full,
            Error::NotHeld { .. } => Status::NotHeld,
            Error::NoSuchNode { .. } => Status::NoSuchNode,
            Error::NoSuchOffload { .. } => Status::NoSuchOffload,
            Error::Offload { .. } => Status::Offload,
            Error::Lost => Status::Lost,
            Error::NoAnswer { .. } => Status::NoAnswer,
            Error::OwnerDied { .. } => Status::OwnerDied,
            Error::Restarted { .. } => Status::Restarted,
            Error::ProcessEnded { .. } => Status::ProcessEnded,
            Error::Refused { .. } => Status::Refused,
            Error::OffloadStopped { .. } => Status::OffloadStopped,
            Error::Ending { .. } => Status::Ending,
            Error::Forked => Status::Forked,
            Error::StillWaiting { .. } => Status::Stalled,
            Error::Violated { .. } => Status::Violated,
        };
        Failure::new(status, error.to_string())
    }
}

impl From<ethermem_kv::Error> for Failure {
    fn from(error: ethermem_kv::Error) -> Failure {
        use ethermem_kv::Error::{
            BadAnswer, BadConfig, BufferTooShort, Damaged, KeyTooLong, Pool, Uncertain,
            ValueTooLong,
        };
        let status = match error {
            Pool(error) => return error.into(),
            KeyTooLong { .. } | ValueTooLong { .. } => Status::TooLong,
            BufferTooShort { .. } => Status::BufferTooSmall,
            BadConfig { .. } => Status::BadArgument,
            BadAnswer { .. } | Damaged { .. } => Status::Offload,
            Uncertain(_) => Status::Uncertain,
        };
        Failure::new(status, error.to_string())
    }
}

impl From<Unfinished> for Failure {
    fn from(unfinished: Unfinished) -> Failure {
        Failure::new(Status::Stalled, unfinished.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let status = match error {
            OpenError::Unreachable { .. } => Status::Unreachable,
            _ => Status::BadUrl,
        };
        Failure::new(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Stores the text of a failure for `rerror`, and returns its status.
fn keep(failure: &Failure) -> Status {
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| last.replace(text));
    failure.status
}

/// The body of every call: failures and panics become a status.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => keep(&failure),
        Err(panicked) => {
            let what = said(panicked.as_ref());
            keep(&Failure::new(Status::Internal, format!("a defect of ethermem: {what}")))
        }
    }
}

fn said(panicked: &(dyn Any + Send)) -> &str {
    let owned = panicked.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panicked.downcast_ref::<&str>().copied()).unwrap_or("no words")
}

/// The text of the last failed call of this machine thread; empty if none failed. It is never null,
/// and valid until the next call of this machine thread.
#[unsafe(no_mangle)]
pub extern "C" fn rerror() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// The general meaning of a status. It is never null, and always valid.
#[unsafe(no_mangle)]
pub extern "C" fn rstatus_text(status: u32) -> *const c_char {
    STATUSES.get(status as usize).map_or(c"no status", |(_, text)| text).as_ptr()
}

/// Returns whether the same operation may succeed when it is retried.
#[unsafe(no_mangle)]
pub extern "C" fn rretryable(status: u32) -> bool {
    [Status::Full, Status::Lost, Status::NoAnswer, Status::Unreachable]
        .iter()
        .any(|&retryable| retryable as u32 == status)
}

/// The library's version. It is never null, and always valid.
#[unsafe(no_mangle)]
pub extern "C" fn rversion() -> *const c_char {
    const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: `rerror` returns a string that lives until the next call of this thread.
        unsafe { CStr::from_ptr(rerror()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_ends_at_the_border() {
        assert_eq!(call(|| panic!("number {}", 7)), Status::Internal);
        assert_eq!(last(), "a defect of ethermem: number 7");
        assert_eq!(call(|| panic!("plain")), Status::Internal);
        assert_eq!(last(), "a defect of ethermem: plain");
        assert_eq!(call(|| Ok(())), Status::Ok);
    }

    #[test]
    fn the_last_failure_is_each_threads_own() {
        call(|| Err(Failure::new(Status::Busy, "mine\0yours")));
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(last(), "mine yours");
    }

    #[test]
    fn every_status_has_its_own_text_at_its_number() {
        for (place, (status, _)) in STATUSES.iter().enumerate() {
            assert_eq!(*status as usize, place);
        }
        let texts: std::collections::BTreeSet<_> = STATUSES.iter().map(|(_, text)| text).collect();
        assert_eq!(texts.len(), STATUSES.len());
    }

    #[test]
    fn what_may_be_tried_again_is_what_the_library_says() {
        let silent = Error::NoAnswer { node: String::new(), waited_ms: 1 };
        let full = Error::Full { bytes: 2, free: 1 };
        let errors = [Error::Lost, silent, full, Error::Empty { most: 1 }];
        for error in errors {
            let retryable = error.is_retryable();
            assert_eq!(rretryable(Failure::from(error).status as u32), retryable);
        }
    }
}
