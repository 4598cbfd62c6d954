//! The things that machine threads wait for at a pool: application code, an operation, an access.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::backend::{Lent, WaitedId};
use crate::error::Error;
use crate::notify::Notify;
use crate::shared::Shared;
use crate::wait::{Attempt, Step, Unfinished, Waiter, Why};

/// How often an interruptible wait polls its caller for an interrupt.
const ATTEND: Duration = Duration::from_millis(20);

/// Number of bytes that are copied under the pool's lock at once: some tens of microseconds.
const COPY_BYTES: usize = 256 << 10;

/// Polls the caller from time to time for whether the wait goes on.
pub(crate) struct Attention<'a> {
    is_interrupted: &'a mut dyn FnMut() -> bool,
    asked: Instant,
}

impl<'a> Attention<'a> {
    pub(crate) fn new(is_interrupted: &'a mut dyn FnMut() -> bool) -> Attention<'a> {
        Attention { is_interrupted, asked: Instant::now() }
    }

    pub(crate) fn is_interrupted(&mut self) -> bool {
        if self.asked.elapsed() < ATTEND {
            return false;
        }
        self.asked = Instant::now();
        (self.is_interrupted)()
    }
}

/// Runs the application's code until it completes or cannot proceed.
pub(crate) fn run<F: Future>(
    shared: &Shared,
    code: F,
    attention: Option<Attention<'_>>,
) -> Result<F::Output, Unfinished> {
    let code = pin!(code);
    shared.wait(&mut CodeAttempt { shared, code, waker: None, attention })
}

/// Waits for an access that the machine thread has begun.
pub(crate) fn wait_for(shared: &Shared, id: WaitedId, lent: Lent<'_>) -> Result<(), Error> {
    let mut access = AccessAttempt { shared, id, lent, copied: 0, ended: None, was_parked: false };
    shared.wait(&mut access).expect("an access ends, or its backend says why not")
}

/// Application code that a machine thread drives.
struct CodeAttempt<'a, 'i, F> {
    shared: &'a Shared,
    code: Pin<&'a mut F>,
    waker: Option<Waker>,
    attention: Option<Attention<'i>>,
}

impl<F: Future> Attempt for CodeAttempt<'_, '_, F> {
    type Output = F::Output;

    const RUNS_CODE: bool = true;

    fn poll(&mut self, waiter: &Arc<Waiter>, _: Why) -> Option<F::Output> {
        let waker = self.waker.get_or_insert_with(|| Waker::from(Arc::clone(waiter)));
        match self.code.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn poll_to_park(&mut self, _: &Arc<Waiter>) -> Option<F::Output> {
        // The future that the code awaits holds its waker.
        None
    }

    fn step(&mut self) -> Step {
        self.shared.step()
    }

    fn rest(&mut self, most: Duration) {
        self.shared.rest(most);
    }

    fn attends(&self) -> bool {
        self.attention.is_some()
    }

    fn is_interrupted(&mut self) -> bool {
        self.attention.as_mut().is_some_and(Attention::is_interrupted)
    }
}

/// A read or a write that needs no entry in the lists of operations.
struct AccessAttempt<'a> {
    shared: &'a Shared,
    id: WaitedId,
    lent: Lent<'a>,
    /// Number of a write's first bytes that the backend was told to copy.
    copied: usize,
    ended: Option<Result<(), Error>>,
    /// True if the thread was parked: another machine thread may hold the access's outcome.
    was_parked: bool,
}

impl AccessAttempt<'_> {
    fn look(&mut self) -> Result<Result<(), Error>, Duration> {
        let AccessAttempt { shared, id, lent, .. } = self;
        shared.with(|core| core.look(*id, lent.again()))
    }

    /// Lets the backend copy a write's data, but for the last piece, with the pool's lock released
    /// between two pieces. Returns the outcome if the write ends meanwhile.
    fn copy_most(&mut self) -> Option<Result<(), Error>> {
        let AccessAttempt { shared, id, lent, copied, .. } = self;
        let data = lent.data()?;
        while data.len() - *copied > COPY_BYTES {
            *copied += COPY_BYTES;
            let piece = Lent::Copy { data, to: *copied };
            if let Ok(ended) = shared.with(|core| core.look(*id, piece)) {
                return Some(ended);
            }
        }
        *copied = data.len();
        self.lent = Lent::Copy { data, to: data.len() };
        None
    }
}

impl Attempt for AccessAttempt<'_> {
    type Output = Result<(), Error>;

    const RUNS_CODE: bool = false;

    fn poll(&mut self, _: &Arc<Waiter>, _: Why) -> Option<Result<(), Error>> {
        if std::mem::take(&mut self.was_parked) {
            return self.look().ok();
        }
        self.ended.take()
    }

    fn poll_to_park(&mut self, waiter: &Arc<Waiter>) -> Option<Result<(), Error>> {
        if let Some(ended) = self.copy_most() {
            return Some(ended);
        }
        self.was_parked = true;
        let AccessAttempt { shared, id, lent, .. } = self;
        shared.with(|core| {
            let looked = core.look(*id, lent.again()).ok();
            if looked.is_none() {
                core.await_end(*id, Notify::Waker(Waker::from(Arc::clone(waiter))));
            }
            looked
        })
    }

    fn step(&mut self) -> Step {
        match self.look() {
            Ok(ended) => {
                self.ended = Some(ended);
                Step::Ended
            }
            Err(rest) => Step::Rest(rest),
        }
    }

    fn rest(&mut self, most: Duration) {
        self.shared.rest(most);
    }
}
