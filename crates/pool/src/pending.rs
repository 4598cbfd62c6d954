//! Handles of submitted operations.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::core::Submitted;
use crate::error::Error;
use crate::notify::{Current, Notify, PollId};
use crate::operation::{OpId, Outcome, Reply};
use crate::shared::Shared;
use crate::wait::{Attempt, Step, Waiter, Why};

/// A submitted operation and its future result.
///
/// The result can be awaited, waited for by the machine thread, or polled. Dropping the handle
/// discards the result; the operation goes on.
#[must_use = "an operation may fail: await or wait for it, or `detach` it"]
pub struct Pending<T> {
    state: State,
    convert: Option<Convert<T>>,
    /// The task poll that found the operation open. That task is notified when it completes.
    seen: Option<PollId>,
}

enum State {
    Ended(Option<Outcome>),
    /// An open operation. A completed one needs no pool.
    Open(Shared, OpId),
}

/// Conversion of a reply to the application's type.
pub(crate) enum Convert<T> {
    Plain(fn(Reply) -> T),
    With(Box<dyn FnOnce(Reply) -> T + Send + Sync>),
}

impl<T> Pending<T> {
    /// `seen` is the poll of the task to notify on completion, if the operation is still open.
    pub(crate) fn new(
        shared: &Shared,
        submitted: Submitted,
        convert: Convert<T>,
        seen: Option<PollId>,
    ) -> Pending<T> {
        let (state, seen) = match submitted {
            Submitted::Ended(outcome) => (State::Ended(Some(outcome)), None),
            Submitted::Open(id) => (State::Open(shared.clone(), id), seen),
        };
        Pending { state, convert: Some(convert), seen }
    }

    /// Takes the result, if it is there.
    ///
    /// # Panics
    /// When the result was taken before.
    pub fn poll_result(&mut self) -> Option<Result<T, Error>> {
        self.take(keep)
    }

    /// Blocks this machine thread until the result is there. On a simulated fabric, virtual time
    /// advances meanwhile.
    ///
    /// # Errors
    /// The operation's error.
    pub fn wait(mut self) -> Result<T, Error> {
        if let Some(result) = self.take(keep) {
            return result;
        }
        let State::Open(shared, _) = &self.state else { unreachable!("it is not there") };
        let shared = shared.clone();
        let waited = shared.wait(&mut OperationAttempt(&mut self));
        waited.expect("an operation that is open is under way")
    }

    /// Discards the result, on purpose.
    pub fn detach(self) {}

    fn take(
        &mut self,
        notify: impl FnOnce(Option<Notify>) -> Option<Notify>,
    ) -> Option<Result<T, Error>> {
        let outcome = match &mut self.state {
            State::Ended(outcome) => outcome.take().expect("a result is taken once"),
            State::Open(shared, id) => {
                let outcome = match shared.check() {
                    Ok(()) => shared.with(|core| core.take(*id, notify))?,
                    Err(error) => Err(error),
                };
                self.state = State::Ended(None);
                outcome
            }
        };
        let convert = self.convert.take().expect("a result is taken once");
        Some(outcome.map(|reply| match convert {
            Convert::Plain(plain) => plain(reply),
            Convert::With(with) => with(reply),
        }))
    }
}

impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let waker = context.waker();
        let task = match &self.state {
            State::Open(shared, _) => {
                shared.know();
                Current::of(shared.address())
            }
            State::Ended(_) => None,
        };
        let result = match task.filter(|current| current.is_woken_by(waker)) {
            // Nothing has completed since, and the task will be notified.
            Some(current) if current.poll.is_some() && self.seen == current.poll => None,
            Some(current) => {
                self.seen = current.poll;
                self.take(|_| Some(Notify::Task(current.key)))
            }
            None => {
                self.seen = None;
                self.take(|known| Some(by_waker(known, waker)))
            }
        };
        result.map_or(Poll::Pending, Poll::Ready)
    }
}

struct OperationAttempt<'a, T>(&'a mut Pending<T>);

impl<T> OperationAttempt<'_, T> {
    fn shared(&self) -> &Shared {
        let State::Open(shared, _) = &self.0.state else { unreachable!("it is waited for") };
        shared
    }
}

impl<T> Attempt for OperationAttempt<'_, T> {
    type Output = Result<T, Error>;

    const RUNS_CODE: bool = false;

    fn poll(&mut self, _: &Arc<Waiter>, _: Why) -> Option<Result<T, Error>> {
        self.0.take(keep)
    }

    fn poll_to_park(&mut self, waiter: &Arc<Waiter>) -> Option<Result<T, Error>> {
        self.0.take(|_| Some(Notify::Waker(Waker::from(Arc::clone(waiter)))))
    }

    fn step(&mut self) -> Step {
        self.shared().step()
    }

    fn rest(&mut self, most: Duration) {
        self.shared().rest(most);
    }
}

/// The previously registered waiter stays registered.
fn keep(known: Option<Notify>) -> Option<Notify> {
    known
}

fn by_waker(known: Option<Notify>, waker: &Waker) -> Notify {
    match known {
        Some(Notify::Waker(mut known)) => {
            known.clone_from(waker);
            Notify::Waker(known)
        }
        _ => Notify::Waker(waker.clone()),
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let State::Open(shared, id) = &self.state
            && shared.check().is_ok()
        {
            shared.with(|core| core.forget(*id));
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ended(_) => "ended",
            State::Open(..) => "under way",
        };
        write!(f, "Pending({state})")
    }
}
