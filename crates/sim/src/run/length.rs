//! Runs that are lengthened until their numbers are known.

use crate::metrics::{RunResult, SteadyState};
use crate::scenario::Scenario;

use super::{RunFailure, RunOptions, run_given};

/// Number of messages of the first attempt.
const MESSAGES_FIRST: u64 = 20_000;
/// Smallest and largest factor from one attempt's length to the next.
const LONGER: (f64, f64) = (2.0, 8.0);
/// Margin of the next length, above the square of the missing precision.
const MARGIN: f64 = 1.2;

/// Runs a scenario with increasing numbers of messages. It stops when the numbers are known, when
/// two successive attempts show that the load is not sustained, or when the next attempt would
/// exceed `events_max` events. The result equals that of a run with the number of messages found.
pub(crate) fn run_until_known(
    scenario: &Scenario,
    events_max: u64,
    options: RunOptions<'_>,
) -> Result<RunResult, RunFailure> {
    let writes = options.messages.is_some() || options.timeline.is_some() || options.ways;
    let mut messages = MESSAGES_FIRST;
    let mut spent = 0;
    let mut over = 0;
    loop {
        let attempt = RunOptions {
            label: options.label.clone(),
            scenario_name: options.scenario_name.clone(),
            commit: options.commit.clone(),
            interrupt: options.interrupt,
            progress: options.progress,
            ..RunOptions::of(options.fabric)
        };
        let mut result = run_given(&scenario.with_messages(messages), attempt)?;
        spent += result.events;
        let steady = result.steady.as_ref().expect("synthetic messages");
        over = if steady.state == SteadyState::NotSustained { over + 1 } else { 0 };
        let known = steady.state == SteadyState::Settled || over == 2;
        let longer = steady.imprecision.unwrap_or(LONGER.1).powi(2) * MARGIN;
        let longer = if over > 0 { LONGER.0 } else { longer.clamp(LONGER.0, LONGER.1) };
        let is_spent = spent as f64 + result.events as f64 * longer > events_max as f64;
        if !known && is_spent {
            result.notices.push(format!(
                "{messages} messages: more would take over run.events_max = {events_max} events"
            ));
        }
        if known || is_spent {
            return if writes { write(scenario, messages, result, options) } else { Ok(result) };
        }
        messages = (messages as f64 * longer) as u64;
    }
}

/// Runs the scenario again with the requested output files.
fn write(
    scenario: &Scenario,
    messages: u64,
    found: RunResult,
    options: RunOptions<'_>,
) -> Result<RunResult, RunFailure> {
    let result = run_given(&scenario.with_messages(messages), options)?;
    let said = found.notices.into_iter().filter(|notice| !result.notices.contains(notice));
    let notices = result.notices.iter().cloned().chain(said).collect();
    Ok(RunResult { notices, ..result })
}
