//! Atomics of eight-byte little-endian words, and locks.

use ethermem::{Address, RmwOperation};

use crate::border::Target;
use crate::handles::{self, PendingHandle, ThreadHandle};
use crate::operation::end;
use crate::status::{Failure, Status, call};

/// Add, modulo 2^64.
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
            let text = format!("operation {other}: must be 0 to {MODIFY_XOR}");
            Err(Failure::new(Status::BadArgument, text))
        }
    }
}

/// # Safety
/// Unless they are null, `before` must be writable until the operation has ended, and `pending`
/// during the call.
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
        // SAFETY: the caller upholds this function's contract.
        unsafe {
            end(owner, pending, modifying, move |word| {
                to.put(word);
                Ok(())
            })
        }
    })
}

/// Stores `desired` into the word at `address` if it equals `expected`. The previous word is stored
/// in `before`, which may be null.
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
    // SAFETY: the header requires what `modify` requires.
    unsafe { modify(thread, address, operation, before, pending) }
}

/// Adds to the word at `address`, modulo 2^64. The previous word is stored in `before`, which may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfetch_add(
    thread: ThreadHandle,
    address: u64,
    addend: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    // SAFETY: the header requires what `modify` requires.
    unsafe { modify(thread, address, Ok(RmwOperation::FetchAndAdd(addend)), before, pending) }
}

/// Stores a word at `address`. The previous word is stored in `before`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rswap(
    thread: ThreadHandle,
    address: u64,
    word: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    // SAFETY: the header requires what `modify` requires.
    unsafe { modify(thread, address, Ok(RmwOperation::Swap(word)), before, pending) }
}

/// Executes any atomic of one operand on the word at `address`: ETHERMEM_MODIFY_ADD, _SWAP, _AND,
/// _OR or _XOR. The previous word is stored in `before`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmodify(
    thread: ThreadHandle,
    address: u64,
    operation: u32,
    operand: u64,
    before: *mut u64,
    pending: *mut PendingHandle,
) -> Status {
    // SAFETY: the header requires what `modify` requires.
    unsafe { modify(thread, address, self::operation(operation, operand), before, pending) }
}

/// Sets bit 0 of the word at `address`. Whether it was set before is stored in `was_set`, which may
/// be null.
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
        // SAFETY: the header requires that both can be written, or are null.
        unsafe {
            end(owner, pending, thread.test_and_set(Address(address)), move |set| {
                to.put(set);
                Ok(())
            })
        }
    })
}

/// Acquires the lock whose word is at `lock_address`, once it is free. A word of 0 is a free lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rlock(
    thread: ThreadHandle,
    lock_address: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, thread.lock(Address(lock_address)), Ok) }
    })
}

/// Releases a lock that this thread holds, after all earlier operations of the thread have ended,
/// and waits for completion.
#[unsafe(no_mangle)]
pub extern "C" fn runlock(thread: ThreadHandle, lock_address: u64) -> Status {
    call(|| {
        let (thread, _) = handles::thread(thread)?;
        Ok(thread.unlock_wait(Address(lock_address))?)
    })
}
