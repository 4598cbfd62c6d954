//! Atomics of eight-byte little-endian words, and locks.

use ethermem::{Address, RmwOperation};

use crate::border::Target;
use crate::handles::{self, PendingHandle, ThreadHandle};
use crate::operation::end;
use crate::status::{Failure, Status, call};

/// Add, around the end.
pub const MODIFY_ADD: u32 = 0;
/// Store.
pub const MODIFY_SWAP: u32 = 1;
/// Bitwise and.
pub const MODIFY_AND: u32 = 2;
/// Bitwise or.
pub const MODIFY_OR: u32 = 3;
/// Bitwise exclusive or.
pub const MODIFY_XOR: u32 = 4;

fn operation(number: u32, operand: u64) -> Result<RmwOperation, Failure> {
    match number {
        MODIFY_ADD => Ok(RmwOperation::FetchAndAdd(operand)),
        MODIFY_SWAP => Ok(RmwOperation::Swap(operand)),
        MODIFY_AND => Ok(RmwOperation::And(operand)),
        MODIFY_OR => Ok(RmwOperation::Or(operand)),
        MODIFY_XOR => Ok(RmwOperation::Xor(operand)),
        other => {
            let text = format!("operation {other}: allowed are 0 to {MODIFY_XOR}");
            Err(Failure::new(Status::BadArgument, text))
        }
    }
}

/// # Safety
/// Unless they are null, a word can be written to `before` until the operation has ended, and a
/// handle to `pending` now.
unsafe fn modify(
    thread: ThreadHandle,
    address: u64,
    operation: Result<RmwOperation, Failure>,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let to = Target::optional(before);
        let modifying = thread.modify(Address(address), operation?);
        // SAFETY: the caller's promise.
        unsafe {
            end(owner, pending, modifying, move |word| {
                to.put(word);
                Ok(())
            })
        }
    })
}

/// Stores `desired` into the word at `address` if it is `expected`. The word before is stored in
/// `before`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rcas(
    thread: ThreadHandle,
    address: u64,
    expected: u64,
    desired: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    let operation = Ok(RmwOperation::CompareAndSwap { expected, desired });
    // SAFETY: the header asks for the same.
    unsafe { modify(thread, address, operation, before, pending) }
}

/// Adds to the word at `address`, around the end. The word before is stored in `before`, which may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfetch_add(
    thread: ThreadHandle,
    address: u64,
    addend: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    // SAFETY: the header asks for the same.
    unsafe { modify(thread, address, Ok(RmwOperation::FetchAndAdd(addend)), before, pending) }
}

/// Stores a word at `address`. The word before is stored in `before`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rswap(
    thread: ThreadHandle,
    address: u64,
    word: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    // SAFETY: the header asks for the same.
    unsafe { modify(thread, address, Ok(RmwOperation::Swap(word)), before, pending) }
}

/// Any atomic of one operand on the word at `address`: ETHERMEM_MODIFY_ADD, _SWAP, _AND, _OR or
/// _XOR. The word before is stored in `before`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmodify(
    thread: ThreadHandle,
    address: u64,
    operation: u32,
    operand: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    // SAFETY: the header asks for the same.
    unsafe { modify(thread, address, self::operation(operation, operand), before, pending) }
}

/// Sets bit 0 of the word at `address`. Whether it was set is stored in `was_set`, which may be
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtest_and_set(
    thread: ThreadHandle,
    address: u64,
    was_set: *mut bool,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        let to = Target::optional(was_set);
        // SAFETY: the header asks for places for both, or null.
        unsafe {
            end(owner, pending, thread.test_and_set(Address(address)), move |set| {
                to.put(set);
                Ok(())
            })
        }
    })
}

/// Takes the lock that the word at `lock_address` is, once nobody holds it. A word of 0 is a free
/// lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rlock(
    thread: ThreadHandle,
    lock_address: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header asks for a place for a handle, or null.
        unsafe { end(owner, pending, thread.lock(Address(lock_address)), Ok) }
    })
}

/// Gives back a lock that this thread holds, when all operations of the thread before have ended,
/// and waits for that.
#[unsafe(no_mangle)]
pub extern "C" fn runlock(thread: ThreadHandle, lock_address: u64) -> Status {
    call(|| {
        let (thread, _) = handles::thread(thread)?;
        Ok(thread.unlock_wait(Address(lock_address))?)
    })
}
