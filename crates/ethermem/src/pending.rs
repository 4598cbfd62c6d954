//! Operations that were asked for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::core::Submitted;
use crate::error::Error;
use crate::pool::Shared;
use crate::world::{OpId, Outcome, Reply};

/// An operation that was submitted when this was made, and its result.
///
/// It can be awaited, waited for by the machine's thread, or asked now and then. Dropping it
/// forgets the result; the operation goes on.
#[must_use = "an operation may fail: await or wait for it, or `detach` it"]
pub struct Pending<T> {
    shared: Shared,
    state: State,
    convert: Option<Convert<T>>,
}

enum State {
    Ended(Option<Outcome>),
    Open(OpId),
}

/// What a reply is to the application.
pub(crate) enum Convert<T> {
    Plain(fn(Reply) -> T),
    With(Box<dyn FnOnce(Reply) -> T + Send>),
}

impl<T> Pending<T> {
    pub(crate) fn new(shared: Shared, submitted: Submitted, convert: Convert<T>) -> Pending<T> {
        let state = match submitted {
            Submitted::Ended(outcome) => State::Ended(Some(outcome)),
            Submitted::Open(id) => State::Open(id),
        };
        Pending { shared, state, convert: Some(convert) }
    }

    /// The result, if it is there; once.
    ///
    /// # Panics
    /// When the result was taken before.
    pub fn poll_result(&mut self) -> Option<Result<T, Error>> {
        self.take(None)
    }

    /// Waits for the result, by this thread of the machine. On a fabric with a time of its own,
    /// that time goes on until it is there.
    ///
    /// # Errors
    /// What the operation failed with.
    pub fn wait(mut self) -> Result<T, Error> {
        loop {
            if let Some(result) = self.take(None) {
                return result;
            }
            if !self.shared.progress() {
                // Another machine thread may have ended it since it was asked for.
                return self.take(None).unwrap_or(Err(Error::Lost));
            }
        }
    }

    /// Forgets the result, on purpose.
    pub fn detach(self) {}

    fn take(&mut self, waker: Option<&std::task::Waker>) -> Option<Result<T, Error>> {
        let outcome = match &mut self.state {
            State::Ended(outcome) => outcome.take().expect("a result is taken once"),
            State::Open(id) => {
                let id = *id;
                let outcome = self.shared.with(|core| core.take(id, waker))?;
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
        self.take(Some(context.waker())).map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let State::Open(id) = self.state {
            self.shared.with(|core| core.forget(id));
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ended(_) => "ended",
            State::Open(_) => "under way",
        };
        write!(f, "Pending({state})")
    }
}
