//! A fabric that a program uses message by message, in the fabric's time.

use std::collections::VecDeque;

use ethermem_units::Ps;
use ethermem_workload::{Message, MessageSource, SourceError};

use super::{Engine, Fabric, Loss, Observer, Violation};
use crate::FabricConfig;

/// What becomes of a message, by the name that its sender gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Its request is at the memory node: a read or an atomic acts there now.
    AtMemory {
        /// [`Message::index`].
        message: u64,
        /// When; not before now.
        at: Ps,
    },
    /// It finished at a time, which is not before now, or never will.
    Ended {
        /// [`Message::index`].
        message: u64,
        /// When, or why not.
        outcome: Result<Ps, Loss>,
    },
}

/// How far [`Live::advance`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Something was heard; it is now when it was said.
    Heard,
    /// It is the time that was asked for.
    Reached,
    /// Nothing is left to happen. What has not ended never will.
    Idle,
}

/// Any fabric in its own time, which stands still between two calls.
pub trait Live: Send {
    /// The time.
    fn now(&self) -> Ps;

    /// A message of the application at [`Message::arrival`], which is now or later and not before
    /// that of the message before. [`Message::index`] is a name of the caller's choice.
    fn submit(&mut self, message: Message);

    /// Goes on until something is heard, but not to `until`.
    ///
    /// # Errors
    /// [`SourceError`] when the background cannot go on.
    fn advance(&mut self, until: Ps, heard: &mut Vec<Heard>) -> Result<Advance, SourceError>;

    /// Events handled so far.
    fn events(&self) -> u64;

    /// Goes on until nothing of the application or the background is left, without new background,
    /// and checks what must hold then.
    ///
    /// # Errors
    /// A [`Violation`] as [`Fabric::close`].
    fn close(&mut self) -> Result<(), Violation>;
}

/// See [`Live`].
struct LiveEngine<F: Fabric> {
    engine: Engine<F>,
    /// What is handed to the fabric in its order, and when.
    submissions: VecDeque<(Ps, Message)>,
    background: Option<Box<dyn MessageSource>>,
    next_background: Option<(Ps, Message)>,
    /// By handle: the caller's name, none for the background.
    names: Vec<Option<u64>>,
    /// See [`Fabric::submit_delay`].
    delay: Ps,
}

/// An idle fabric at time zero, and what else goes on in it.
pub fn live<F: Fabric>(
    config: &FabricConfig,
    seed: u64,
    background: Option<Box<dyn MessageSource>>,
) -> Result<Box<dyn Live>, SourceError> {
    let fabric = F::build(config, seed);
    let delay = fabric.submit_delay();
    let mut engine = Engine::new(fabric);
    engine.watch_ways();
    engine.sim.reached = Some(Vec::new());
    let mut live = LiveEngine {
        engine,
        submissions: VecDeque::new(),
        background,
        next_background: None,
        names: Vec::new(),
        delay,
    };
    live.draw_background()?;
    Ok(Box::new(live))
}

impl<F: Fabric> LiveEngine<F> {
    fn draw_background(&mut self) -> Result<(), SourceError> {
        let Some(source) = &mut self.background else { return Ok(()) };
        let next = source.next_message()?;
        self.next_background = next.map(|message| (message.arrival + self.delay, message));
        Ok(())
    }

    /// When the next message is handed to the fabric.
    fn next_submission(&self) -> Ps {
        let own = self.submissions.front().map_or(Ps::MAX, |&(at, _)| at);
        own.min(self.next_background.as_ref().map_or(Ps::MAX, |&(at, _)| at))
    }

    /// Hands the next message over.
    fn submit_next(&mut self) -> Result<(), SourceError> {
        let at = self.next_submission();
        let (message, name) = match self.submissions.front() {
            Some(&(own, message)) if own == at => {
                self.submissions.pop_front();
                (message, Some(message.index))
            }
            _ => {
                let (_, message) = self.next_background.take().expect("something is next");
                self.draw_background()?;
                (message, None)
            }
        };
        self.engine.sim.now = at;
        // Both kinds are numbered as one: fabrics tell messages apart by it.
        let index = self.engine.started;
        let handle = self.engine.submit_as(&Message { index, ..message }) as usize;
        self.names.resize(self.names.len().max(handle + 1), None);
        self.names[handle] = name;
        Ok(())
    }

    /// Says what the engine has heard; true when any of it is of the application.
    fn say(&mut self, heard: &mut Vec<Heard>) -> bool {
        let before = heard.len();
        let reached = self.engine.sim.reached.as_mut().expect("asked for when it was made");
        for (handle, at) in reached.drain(..) {
            if let Some(message) = self.names[handle as usize] {
                heard.push(Heard::AtMemory { message, at });
            }
        }
        if !self.engine.sim.outcomes.is_empty() {
            for &(handle, outcome) in &self.engine.sim.outcomes {
                if let Some(message) = self.names[handle as usize].take() {
                    heard.push(Heard::Ended { message, outcome });
                }
            }
            self.engine.settle(&mut Nobody);
        }
        heard.len() > before
    }
}

/// Outcomes are taken before they are settled.
struct Nobody;

impl Observer for Nobody {
    fn outcome(&mut self, _message: &Message, _outcome: Result<Ps, Loss>) {}
}

impl<F: Fabric> Live for LiveEngine<F> {
    fn now(&self) -> Ps {
        self.engine.sim.now
    }

    fn submit(&mut self, message: Message) {
        assert!(message.arrival >= self.engine.sim.now, "a message of the past");
        self.submissions.push_back((message.arrival + self.delay, message));
    }

    fn advance(&mut self, until: Ps, heard: &mut Vec<Heard>) -> Result<Advance, SourceError> {
        loop {
            let submission = self.next_submission();
            if !self.engine.handle_before(submission.min(until)) {
                if submission >= until {
                    if until == Ps::MAX {
                        return Ok(Advance::Idle);
                    }
                    self.engine.sim.now = self.engine.sim.now.max(until);
                    return Ok(Advance::Reached);
                }
                self.submit_next()?;
            }
            if self.say(heard) {
                return Ok(Advance::Heard);
            }
        }
    }

    fn events(&self) -> u64 {
        self.engine.sim.events
    }

    fn close(&mut self) -> Result<(), Violation> {
        self.background = None;
        self.next_background = None;
        let mut heard = Vec::new();
        while let Ok(Advance::Heard) = self.advance(Ps::MAX, &mut heard) {
            heard.clear();
        }
        self.engine.fabric.close(self.engine.finished_at).map(|_| ())
    }
}
