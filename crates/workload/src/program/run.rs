//! A run of a program: which steps may begin, and which have ended.

use std::collections::VecDeque;

use thiserror::Error;

use super::graph::{Program, Step, StepId};

/// A step has ended that was not under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("step {0} is not under way")]
pub struct StepFault(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for so many steps; 0: it may begin.
    Waits(u32),
    UnderWay,
    Ended,
}

/// One run of a program. The world executes what [`ProgramRun::next_step`] returns.
#[derive(Clone, Debug)]
pub struct ProgramRun<'a> {
    program: &'a Program,
    states: Vec<State>,
    /// Steps that may begin, in the order in which they became ready.
    ready: VecDeque<StepId>,
    ended: usize,
}

impl<'a> ProgramRun<'a> {
    /// A run of which nothing has begun.
    #[must_use]
    pub fn new(program: &'a Program) -> ProgramRun<'a> {
        let all = (0..program.steps().len() as u32).map(StepId);
        let states: Vec<_> =
            all.clone().map(|step| State::Waits(program.waits_for(step))).collect();
        let ready = all.filter(|step| program.waits_for(*step) == 0).collect();
        ProgramRun { program, states, ready, ended: 0 }
    }

    /// The next step that may begin; it is under way from now on.
    pub fn next_step(&mut self) -> Option<(StepId, Step)> {
        let step = self.ready.pop_front()?;
        self.states[step.0 as usize] = State::UnderWay;
        Some((step, self.program.steps()[step.0 as usize]))
    }

    /// A step has ended. Those that waited for it alone may begin.
    ///
    /// # Errors
    /// [`StepFault`] if it was not under way.
    pub fn end(&mut self, step: StepId) -> Result<(), StepFault> {
        let fault = StepFault(step.0);
        let state = self.states.get_mut(step.0 as usize).ok_or(fault)?;
        if *state != State::UnderWay {
            return Err(fault);
        }
        *state = State::Ended;
        self.ended += 1;
        for &follower in self.program.followers(step) {
            if let State::Waits(count) = &mut self.states[follower.0 as usize] {
                *count -= 1;
                if *count == 0 {
                    self.ready.push_back(follower);
                }
            }
        }
        Ok(())
    }

    /// Steps that have ended.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// Steps that have not begun, and may not yet.
    #[must_use]
    pub fn waiting(&self) -> Vec<StepId> {
        let all = self.states.iter().enumerate();
        all.filter(|(_, state)| matches!(state, State::Waits(1..)))
            .map(|(step, _)| StepId(step as u32))
            .collect()
    }

    /// True after the last step.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ended == self.states.len()
    }
}
