//! Operations in flight: waiting, polling, forgetting, and their order.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use ethermem::{Pending, Pool, Ps};

use crate::border::{self, Target};
use crate::handles::{self, Owner, PendingHandle, ThreadHandle};
use crate::status::{Failure, Status, call};

/// A submitted operation, and the delivery of its result.
pub(crate) trait Operation: Send {
    /// Returns the result once, if the operation has ended.
    fn poll(&mut self) -> Option<Result<(), Failure>>;

    /// Waits for completion.
    fn wait(self: Box<Self>) -> Result<(), Failure>;
}

struct Submitted<T, D> {
    pending: Pending<T>,
    /// Delivery of the result; `None` once it was delivered.
    deliver: Option<D>,
}

impl<T, D> Operation for Submitted<T, D>
where
    T: Send,
    D: FnOnce(T) -> Result<(), Failure> + Send,
{
    fn poll(&mut self) -> Option<Result<(), Failure>> {
        let result = self.pending.poll_result()?;
        Some(self.deliver.take().map_or(Ok(()), |deliver| delivered(result, deliver)))
    }

    fn wait(self: Box<Self>) -> Result<(), Failure> {
        let result = self.pending.wait();
        self.deliver.map_or(Ok(()), |deliver| delivered(result, deliver))
    }
}

/// A sequence of pool operations that counts as one.
struct Composed<F: Future, D> {
    pool: Pool,
    future: Pin<Box<F>>,
    /// Result, until it is taken.
    ended: Option<F::Output>,
    /// Delivery of the result; `None` once it was delivered.
    deliver: Option<D>,
}

impl<F: Future, D> Composed<F, D> {
    /// Advances as far as possible without waiting.
    fn go_on(&mut self) {
        if self.ended.is_none()
            && let Poll::Ready(result) =
                self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.ended = Some(result);
        }
    }
}

impl<T, E, F, D> Operation for Composed<F, D>
where
    T: Send,
    E: Into<Failure> + Send,
    F: Future<Output = Result<T, E>> + Send,
    D: FnOnce(T) -> Result<(), Failure> + Send,
{
    fn poll(&mut self) -> Option<Result<(), Failure>> {
        self.go_on();
        let result = self.ended.take()?;
        Some(self.deliver.take().map_or(Ok(()), |deliver| delivered(result, deliver)))
    }

    fn wait(self: Box<Self>) -> Result<(), Failure> {
        let Composed { pool, future, ended, deliver } = *self;
        let result = match ended {
            Some(result) => result,
            None => pool.try_run(future)?,
        };
        deliver.map_or(Ok(()), |deliver| delivered(result, deliver))
    }
}

fn delivered<T, E: Into<Failure>>(
    result: Result<T, E>,
    deliver: impl FnOnce(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    result.map_err(Into::into).and_then(deliver)
}

/// As [`end`], for a sequence of pool operations.
///
/// # Safety
/// As for [`end`].
pub(crate) unsafe fn end_composed<T: Send + 'static, E: Into<Failure> + Send + 'static>(
    owner: Owner,
    handle: *mut PendingHandle,
    future: impl Future<Output = Result<T, E>> + Send + 'static,
    deliver: impl FnOnce(T) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let pool = handles::owning(owner)?;
    let mut composed =
        Box::new(Composed { pool, future: Box::pin(future), ended: None, deliver: Some(deliver) });
    if handle.is_null() {
        return composed.wait();
    }
    // Like all operations it begins at once; its result is stored when the caller polls it.
    composed.go_on();
    let name = handles::add_pending(composed, owner)?;
    // SAFETY: the caller upholds this function's contract.
    unsafe { Target::optional(handle).put(name) };
    Ok(())
}

/// Waits for an operation, or stores its handle if the caller passed a place for it.
///
/// # Safety
/// Unless it is null, a handle must be writable at `handle`.
pub(crate) unsafe fn end<T: Send + 'static>(
    owner: Owner,
    handle: *mut PendingHandle,
    pending: Pending<T>,
    deliver: impl FnOnce(T) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    if handle.is_null() {
        return delivered(pending.wait(), deliver);
    }
    let operation = Submitted { pending, deliver: Some(deliver) };
    let name = handles::add_pending(Box::new(operation), owner)?;
    // SAFETY: the caller upholds this function's contract.
    unsafe { Target::optional(handle).put(name) };
    Ok(())
}

/// Waits until all of `count` operations have ended, and sets their handles to `{0}`. Returns the
/// status of the first of them that failed. Unless `statuses` is null, stores the status of each
/// there. On a simulated fabric, virtual time advances meanwhile.
///
/// Each result is stored during this call, at the place given to its operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpoll(
    pendings: *mut PendingHandle,
    count: u64,
    statuses: *mut Status,
) -> Status {
    call(|| {
        // SAFETY: the header requires `count` handles, which are read one by one before they are
        // written.
        let names = unsafe { border::array(pendings.cast_const(), count, "pendings") }?.to_vec();
        let mut first = Ok(());
        for (place, name) in names.into_iter().enumerate() {
            let ended = handles::remove_pending(name).and_then(Operation::wait);
            let status = ended.as_ref().err().map_or(Status::Ok, |failure| failure.status);
            // SAFETY: `place` is below `count`, so both are elements of the caller's arrays.
            unsafe {
                pendings.add(place).write(PendingHandle::NONE);
                if !statuses.is_null() {
                    statuses.add(place).write(status);
                }
            }
            first = first.and(ended);
        }
        first
    })
}

/// Polls an operation without waiting. If it has ended, stores true in `ended` and its result at
/// its place, sets the handle to `{0}`, and returns the operation's status. Otherwise stores false.
/// On a simulated fabric, each poll advances virtual time by one event of the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rtest(pending: *mut PendingHandle, ended: *mut bool) -> Status {
    call(|| {
        let (name_at, ended) = (Target::new(pending, "pending")?, Target::new(ended, "ended")?);
        // SAFETY: the pointer is not null, and the header requires a handle.
        let name = unsafe { pending.read() };
        let (slot, owner) = handles::pending(name)?;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || Failure::new(Status::BadHandle, "the operation was polled meanwhile");
        let operation = slot.as_mut().ok_or_else(gone)?;
        let result = match operation.poll() {
            Some(result) => Some(result),
            None => {
                handles::owning(owner)?.step();
                operation.poll()
            }
        };
        let Some(result) = result else {
            // SAFETY: the header requires that a bool can be written.
            unsafe { ended.put(false) };
            return Ok(());
        };
        *slot = None;
        drop(slot);
        // Only the handle is left, unless another machine thread has closed it already.
        let _ = handles::remove_pending(name);
        // SAFETY: the header requires that both can be written.
        unsafe {
            name_at.put(PendingHandle::NONE);
            ended.put(true);
        }
        result
    })
}

/// Discards the result of an operation, which goes on, and sets its handle to `{0}`. Nothing is
/// stored anywhere. A forgotten lock is still acquired when it is free. An operation of a store is
/// done or not done, and its client's next operation finds out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rforget(pending: *mut PendingHandle) -> Status {
    call(|| {
        let name_at = Target::new(pending, "pending")?;
        // SAFETY: the pointer is not null, and the header requires a handle.
        let name = unsafe { pending.read() };
        handles::remove_pending(name)?;
        // SAFETY: as above.
        unsafe { name_at.put(PendingHandle::NONE) };
        Ok(())
    })
}

/// Completes when all earlier operations of this thread have completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrelease(thread: ThreadHandle, pending: *mut PendingHandle) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, thread.release(), Ok) }
    })
}

/// Completes when all earlier operations of this thread have completed, and every memory node that
/// its process has used has done all earlier requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rfence(thread: ThreadHandle, pending: *mut PendingHandle) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, thread.fence(), Ok) }
    })
}

/// Completes after `time_ps` picoseconds: in real time, or in the simulated fabric's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsleep(
    thread: ThreadHandle,
    time_ps: u64,
    pending: *mut PendingHandle,
) -> Status {
    call(|| {
        let (thread, owner) = handles::thread(thread)?;
        // SAFETY: the header requires that a handle can be written, or null.
        unsafe { end(owner, pending, thread.sleep(Ps(time_ps)), Ok) }
    })
}
