//! The messages of a run: those of a source, or those of a program.

use ethermem_units::Bytes;

use crate::engine::{Engine, Fabric, Observer, RunEnd, RunError};
use crate::metrics::ProgramStats;
use crate::registry::FabricEntry;
use crate::scenario::Scenario;
use crate::workload::WorkloadConfig;
use crate::workload::program::{ExecutionTraceConfig, Program, ProgramSource};
use crate::{Message, MessageSource, SourceError};

use super::{RunOptions, messages};

/// The messages of a run, opened and ready.
pub(super) enum Input<'f> {
    /// Messages whose arrivals are known.
    Source(Bounded<'f>),
    /// Messages that wait for each other, the name of their program, and the most bytes of one.
    Program(&'static str, Program, Bytes),
}

impl<'f> Input<'f> {
    pub(super) fn open(
        scenario: &Scenario,
        fabric: &'f FabricEntry,
    ) -> Result<Input<'f>, SourceError> {
        let nodes = scenario.fabric.nodes;
        let most = Bytes(fabric.message_bytes_max);
        match &scenario.workload {
            WorkloadConfig::Program(config) => {
                let named = |error| SourceError(format!("program {}: {error}", config.name()));
                let program = config.program(nodes, scenario.run.seed).map_err(named)?;
                Ok(Input::Program(config.name(), program, most))
            }
            WorkloadConfig::ExecutionTrace(config) => {
                let program = config.program(nodes)?;
                Ok(Input::Program(ExecutionTraceConfig::NAME, program, most))
            }
            _ => Ok(Input::Source(Bounded { messages: messages(scenario)?, fabric })),
        }
    }

    pub(super) fn messages_total(&self) -> Option<u64> {
        match self {
            Input::Source(source) => source.messages_total(),
            Input::Program(_, program, most) => Some(program.messages(*most)),
        }
    }

    /// Runs the messages to the end of the last one. A program also has an outcome, if the run was
    /// not interrupted.
    pub(super) fn drive<F: Fabric>(
        &mut self,
        engine: Engine<F>,
        observer: &mut dyn Observer,
        options: &RunOptions<'_>,
        scenario: &Scenario,
    ) -> Result<(RunEnd, Option<ProgramStats>), RunError> {
        let (interrupt, progress) = (options.interrupt, options.progress);
        let (name, program, most) = match self {
            Input::Source(source) => {
                return Ok((engine.run(source, observer, interrupt, progress)?, None));
            }
            Input::Program(name, program, most) => (*name, &*program, *most),
        };
        let mut run = ProgramSource::new(program, most);
        let end = engine.run_closed(&mut run, observer, interrupt, progress)?;
        if end.interrupted {
            return Ok((end, None));
        }
        if let Some(unfinished) = run.unfinished() {
            let fabric = options.fabric.name;
            let problem = format!("program {name} has no end on {fabric}: {unfinished}");
            return Err(SourceError(problem).into());
        }
        let stats = ProgramStats::of(name, program, &run, scenario.fabric.link);
        Ok((end, Some(stats)))
    }
}

/// Messages that the fabric can move; the first one that it cannot move ends the run.
pub(super) struct Bounded<'f> {
    messages: Box<dyn MessageSource>,
    fabric: &'f FabricEntry,
}

impl MessageSource for Bounded<'_> {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        let message = self.messages.next_message()?;
        if let Some(message) = &message {
            self.fabric.check_bytes(message.bytes)?;
        }
        Ok(message)
    }

    fn messages_total(&self) -> Option<u64> {
        self.messages.messages_total()
    }
}
