//! Messages that a test gives to a fabric.

use ethermem_workload::{Message, MessageSource, SourceError};

/// These messages, in the order of their arrivals.
pub(crate) struct Given(std::vec::IntoIter<Message>);

impl Given {
    pub(crate) fn new(messages: Vec<Message>) -> Given {
        Given(messages.into_iter())
    }
}

impl MessageSource for Given {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        Ok(self.0.next())
    }

    fn messages_total(&self) -> Option<u64> {
        None
    }
}
