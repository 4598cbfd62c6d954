//! Questions of an operator's thread to a server: it lists the node's processes, and ends one. The
//! server answers between datagrams, a bounded number of places at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError, channel,
    sync_channel,
};
use std::time::Duration;

use ethermem_clio::node::{Node, ProcessFacts};
use ethermem_units::Ns;
use ethermem_wire::clio::{ProcessId, TenantId};
use thiserror::Error;

/// Number of process places that the server visits between two datagrams.
const PLACES_AT_ONCE: u16 = 64;
/// Largest number of pending questions: one for each asking thread is enough.
const QUESTIONS_MAX: usize = 4;

/// The reason why a server did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// The server is overloaded, or its thread is stopped.
    #[error("the node does not answer in time")]
    Late,
    /// The server has ended.
    #[error("the node has ended")]
    Ended,
}

enum What {
    Processes(Sender<Vec<ProcessFacts>>),
    End(TenantId, ProcessId, Sender<bool>),
}

struct Question {
    what: What,
    /// Set by whichever is first: the server that begins to answer, or the thread that gives up. So
    /// an error means that nothing was done.
    settled: Arc<AtomicBool>,
}

/// Sends questions to a running server.
#[derive(Clone)]
pub struct Operator(SyncSender<Question>);

impl Operator {
    /// Lists all processes.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn processes(&self, most: Duration) -> Result<Vec<ProcessFacts>, NoAnswer> {
        self.ask(What::Processes, most)
    }

    /// Ends a process, and returns whether it existed.
    ///
    /// # Errors
    /// [`NoAnswer`]: the process is not ended then.
    pub fn end(
        &self,
        tenant: TenantId,
        process: ProcessId,
        most: Duration,
    ) -> Result<bool, NoAnswer> {
        self.ask(|to| What::End(tenant, process, to), most)
    }

    fn ask<T>(&self, what: impl FnOnce(Sender<T>) -> What, most: Duration) -> Result<T, NoAnswer> {
        let (to, answer) = channel();
        let settled = Arc::new(AtomicBool::new(false));
        let question = Question { what: what(to), settled: Arc::clone(&settled) };
        self.0.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => NoAnswer::Late,
            TrySendError::Disconnected(_) => NoAnswer::Ended,
        })?;
        match answer.recv_timeout(most) {
            Err(RecvTimeoutError::Timeout) if settled.swap(true, Ordering::AcqRel) => {
                // The server has begun, and answers after a bounded amount of work.
                answer.recv().map_err(|_| NoAnswer::Ended)
            }
            Err(RecvTimeoutError::Timeout) => Err(NoAnswer::Late),
            Err(RecvTimeoutError::Disconnected) => Err(NoAnswer::Ended),
            Ok(answer) => Ok(answer),
        }
    }
}

/// A list in progress.
struct Listing {
    next: u16,
    found: Vec<ProcessFacts>,
    to: Sender<Vec<ProcessFacts>>,
}

/// The server's end.
pub(crate) struct Questions {
    questions: Receiver<Question>,
    listing: Option<Listing>,
}

impl Questions {
    pub(crate) fn new() -> (Operator, Questions) {
        let (operator, questions) = sync_channel(QUESTIONS_MAX);
        (Operator(operator), Questions { questions, listing: None })
    }

    /// Continues with pending questions, and returns whether more is to do at once.
    pub(crate) fn answer<B: AsRef<[u8]> + AsMut<[u8]>>(
        &mut self,
        now: Ns,
        node: &mut Node<B>,
    ) -> bool {
        if let Some(mut listing) = self.listing.take() {
            let end = listing.next.saturating_add(PLACES_AT_ONCE).min(node.process_places());
            let places = listing.next..end;
            listing.found.extend(places.filter_map(|place| node.process_facts(now, place)));
            listing.next = end;
            if end < node.process_places() {
                self.listing = Some(listing);
                return true;
            }
            // The asking thread may have ended.
            let _ = listing.to.send(listing.found);
        }
        let question = match self.questions.try_recv() {
            Ok(question) => question,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return false,
        };
        if question.settled.swap(true, Ordering::AcqRel) {
            return true;
        }
        match question.what {
            What::Processes(to) => {
                let found = Vec::with_capacity(node.processes());
                self.listing = Some(Listing { next: 0, found, to });
            }
            What::End(tenant, process, to) => {
                let _ = to.send(node.end(now, tenant, process));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_was_given_up_is_not_answered() {
        let (operator, questions) = Questions::new();
        let end = |ms| operator.end(TenantId(1), ProcessId(2), Duration::from_millis(ms));
        assert_eq!(end(1), Err(NoAnswer::Late));
        let question = questions.questions.try_recv().expect("it was asked");
        assert!(question.settled.load(Ordering::Acquire), "the server must leave it");
        drop(question);
        for _ in 0..QUESTIONS_MAX {
            assert_eq!(end(0), Err(NoAnswer::Late));
        }
        assert_eq!(end(1_000_000), Err(NoAnswer::Late), "too many wait, so it does not");
        drop(questions);
        assert_eq!(end(1_000_000), Err(NoAnswer::Ended));
    }

    #[test]
    fn a_server_that_ends_meanwhile_is_told_from_a_late_one() {
        let (operator, questions) = Questions::new();
        let asks = std::thread::spawn(move || operator.processes(Duration::from_secs(1000)));
        while questions.questions.try_recv().map(drop).is_err() {
            std::hint::spin_loop();
        }
        assert_eq!(asks.join().expect("it does not panic"), Err(NoAnswer::Ended));
    }
}
