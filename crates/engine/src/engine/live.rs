//! A fabric that a program drives message by message, in the fabric's time.

use std::collections::VecDeque;

use ethermem_units::Ps;
use ethermem_workload::{Message, MessageSource, SourceError};

use super::{
    Engine, Fabric, LineAccess, LineCaches, LineCounters, Loss, Observer, Placed, Violation,
};
use crate::FabricConfig;

/// A report about a message, which its sender named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The request arrived at the memory node: a read or an atomic acts there now.
    AtMemory {
        /// [`Message::index`].
        message: u64,
        /// The time of arrival; not before now.
        at: Ps,
    },
    /// The message finished, at a time not before now, or was lost.
    Ended {
        /// [`Message::index`].
        message: u64,
        /// The time of its end, or the reason of its loss.
        outcome: Result<Ps, Loss>,
    },
}

/// The result of [`Live::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// There is a report; the time is now the report's.
    Heard,
    /// The requested time was reached.
    Reached,
    /// No event is left. A message that has not ended never will.
    Idle,
}

/// Any fabric in its own time, which stands still between two calls.
pub trait Live: Send {
    /// The current time of the fabric.
    fn now(&self) -> Ps;

    /// Submits a message of the application at [`Message::arrival`], which must not be before now
    /// or before the previous message's. [`Message::index`] is a name of the caller's choice.
    fn submit(&mut self, message: Message);

    /// The caches of the compute nodes, where the fabric has any.
    fn caches(&mut self) -> Option<&mut dyn LineCaches>;

    /// What happened in them.
    fn line_counters(&self) -> Option<LineCounters>;

    /// Submits a message as [`Live::submit`] does, and says what it does with addresses.
    ///
    /// # Panics
    /// If the fabric has no caches.
    fn submit_placed(&mut self, message: Message, placed: Placed);

    /// Handles events before `until`, and stops at the first report, or where a memory node
    /// accesses a line: see [`LineCaches::ask`].
    ///
    /// # Errors
    /// [`SourceError`] when the background source fails.
    fn advance(&mut self, until: Ps, heard: &mut Vec<Heard>) -> Result<Advance, SourceError>;

    /// Number of events handled so far.
    fn events(&self) -> u64;

    /// Runs until no message of the application or the background is left, without new background.
    /// Then it checks the fabric's invariants.
    ///
    /// # Errors
    /// A [`Violation`], as [`Fabric::close`] returns it.
    fn close(&mut self) -> Result<(), Violation>;
}

/// The implementation of [`Live`] over any fabric.
struct LiveEngine<F: Fabric> {
    engine: Engine<F>,
    /// Messages to submit to the fabric in order, with their times.
    submissions: VecDeque<(Ps, Message)>,
    /// What those of them do that have addresses, each with its message's name.
    placed: VecDeque<(u64, Placed)>,
    background: Option<Box<dyn MessageSource>>,
    next_background: Option<(Ps, Message)>,
    /// By handle: the caller's name; `None` for the background.
    names: Vec<Option<u64>>,
    /// The delay of the fabric: see [`Fabric::submit_delay`].
    delay: Ps,
}

/// An idle fabric at time zero, with its background traffic.
pub fn live<F: Fabric>(
    config: &FabricConfig,
    seed: u64,
    background: Option<Box<dyn MessageSource>>,
) -> Result<Box<dyn Live>, SourceError> {
    let mut fabric = F::build(config, seed);
    if let Some(caches) = fabric.caches() {
        caches.begin();
    }
    let delay = fabric.submit_delay();
    let mut engine = Engine::new(fabric);
    engine.watch_ways();
    engine.sim.reached = Some(Vec::new());
    let mut live = LiveEngine {
        engine,
        submissions: VecDeque::new(),
        placed: VecDeque::new(),
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

    /// The time at which the next message is submitted to the fabric.
    fn next_submission(&self) -> Ps {
        let own = self.submissions.front().map_or(Ps::MAX, |&(at, _)| at);
        own.min(self.next_background.as_ref().map_or(Ps::MAX, |&(at, _)| at))
    }

    /// Submits the next message to the fabric.
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
        if self.placed.front().is_some_and(|next| Some(next.0) == name)
            && let Some((name, placed)) = self.placed.pop_front()
            && let Some(caches) = self.engine.fabric.caches()
        {
            caches.place(name, placed);
        }
        // Application and background share one numbering: fabrics tell messages apart by it.
        let index = self.engine.started;
        let handle = self.engine.submit_as(&Message { index, ..message }) as usize;
        self.names.resize(self.names.len().max(handle + 1), None);
        self.names[handle] = name;
        Ok(())
    }

    /// Reports the engine's outcomes; returns true if any is of the application.
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

/// An observer that ignores outcomes, since they are taken before they are settled.
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

    fn caches(&mut self) -> Option<&mut dyn LineCaches> {
        self.engine.fabric.caches()
    }

    fn line_counters(&self) -> Option<LineCounters> {
        self.engine.fabric.line_counters()
    }

    fn submit_placed(&mut self, message: Message, placed: Placed) {
        assert!(self.engine.fabric.caches().is_some(), "addresses are for fabrics with caches");
        self.placed.push_back((message.index, placed));
        self.submit(message);
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
            let asks = self.engine.fabric.caches().is_some_and(|caches| caches.is_asking());
            if self.say(heard) || asks {
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
            // Lines that were evicted are still under way; nothing is read any more.
            while let Some(access) = self.engine.fabric.caches().and_then(LineCaches::ask) {
                debug_assert!(matches!(access, LineAccess::Write { .. }), "{access:?}");
            }
        }
        self.engine.fabric.close(self.engine.finished_at).map(|_| ())
    }
}
