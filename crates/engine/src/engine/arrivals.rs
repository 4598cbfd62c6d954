//! How the engine gets the messages of a run: by time, or as the ends of earlier ones allow.

use ethermem_units::Ps;
use ethermem_workload::{ClosedLoop, Message, MessageSource, SourceError};

/// The messages of a run, as the event loop asks for them.
pub(super) trait Arrivals {
    /// The arrival of the next known message; `None` at the end of the messages, or while all
    /// others wait for messages in flight.
    fn next_arrival(&mut self) -> Option<Ps>;

    /// Takes the message that [`Arrivals::next_arrival`] announced.
    fn take(&mut self) -> Message;

    /// Draws the message that follows the taken one, after the taken one was submitted.
    fn draw(&mut self) -> Result<(), SourceError>;

    /// Notes the end of a message: its time, or `None` if it was lost. Returns true if another
    /// message may be next.
    fn ended(&mut self, index: u64, at: Option<Ps>) -> bool;
}

/// Messages whose arrivals depend on no other message.
pub(super) struct Open<'s> {
    source: &'s mut dyn MessageSource,
    next: Option<Message>,
}

impl<'s> Open<'s> {
    pub(super) fn new(source: &'s mut dyn MessageSource) -> Result<Open<'s>, SourceError> {
        let next = source.next_message()?;
        Ok(Open { source, next })
    }
}

impl Arrivals for Open<'_> {
    #[inline]
    fn next_arrival(&mut self) -> Option<Ps> {
        self.next.map(|message| message.arrival)
    }

    #[inline]
    fn take(&mut self) -> Message {
        self.next.take().expect("a message was announced")
    }

    #[inline]
    fn draw(&mut self) -> Result<(), SourceError> {
        self.next = self.source.next_message()?;
        Ok(())
    }

    #[inline]
    fn ended(&mut self, _index: u64, _at: Option<Ps>) -> bool {
        false
    }
}

/// Messages that arrive when earlier ones have ended.
pub(super) struct Closed<'s>(pub(super) &'s mut dyn ClosedLoop);

impl Arrivals for Closed<'_> {
    fn next_arrival(&mut self) -> Option<Ps> {
        self.0.next_arrival()
    }

    fn take(&mut self) -> Message {
        self.0.take()
    }

    fn draw(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    fn ended(&mut self, index: u64, at: Option<Ps>) -> bool {
        self.0.ended(index, at);
        true
    }
}
