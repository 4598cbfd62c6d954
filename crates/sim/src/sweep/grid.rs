//! All combinations of the values of some axes, and the scenario of each.

use std::path::Path;

use super::axis::Axis;
use crate::keys::{SET, Source};
use crate::registry::FABRIC_NAMES;
use crate::scenario::{Changes, Scenario, Setting};
use crate::workload::InputError;

/// The axes of one file.
pub(crate) struct Grid<'s> {
    source: &'s Source<'s>,
    pub(super) axes: Vec<Axis>,
}

impl<'s> Grid<'s> {
    pub(crate) fn new(source: &'s Source<'s>, axes: Vec<Axis>) -> Grid<'s> {
        Grid { source, axes }
    }

    pub(super) fn refuse(&self, axis: &Axis, problem: &str) -> InputError {
        self.source.error(axis.offset, format!("vary.{}: {problem}", axis.key))
    }

    /// Refuses keys that are both set and varied.
    pub(crate) fn check_settings(&self, settings: &[Setting]) -> Result<(), InputError> {
        let both = |axis: &&Axis| settings.iter().any(|setting| setting.key() == axis.key);
        match self.axes.iter().find(both) {
            Some(axis) => Err(self.refuse(axis, "--set sets it too: must be one of the two")),
            None => Ok(()),
        }
    }

    /// Refuses an axis of `key`; `problem` says what to do instead.
    pub(crate) fn refuse_axis(&self, key: &str, problem: &str) -> Result<(), InputError> {
        let axis = self.axes.iter().find(|axis| axis.key == key);
        axis.map_or(Ok(()), |axis| Err(self.refuse(axis, problem)))
    }

    /// Number of combinations, at most 2^64 - 1.
    pub(crate) fn count(&self) -> Result<u64, InputError> {
        self.axes.iter().try_fold(1_u64, |count, axis| {
            let values = axis.count().map_err(|problem| self.refuse(axis, &problem))?;
            Ok(count.saturating_mul(values))
        })
    }

    /// The values of the axes at each point; the last axis varies fastest.
    pub(crate) fn combinations(&self) -> Result<Vec<Vec<String>>, InputError> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let values = axis.values().map_err(|problem| self.refuse(axis, &problem))?;
            let longer = |point: Vec<String>| {
                values.iter().map(move |value| [&point[..], std::slice::from_ref(value)].concat())
            };
            points = points.into_iter().flat_map(longer).collect();
        }
        Ok(points)
    }

    /// The keys and values of a point, in the form of `--set`.
    pub(crate) fn settings_at(&self, values: &[String]) -> Vec<String> {
        let pairs = self.axes.iter().zip(values);
        pairs.map(|(axis, value)| format!("{}={value}", axis.key)).collect()
    }

    /// The scenario of a point, from a file with its text, under `settings`.
    pub(crate) fn scenario_at(
        &self,
        (file, text): (&Path, &str),
        values: &[String],
        settings: &[Setting],
    ) -> Result<Scenario, InputError> {
        let mut changes = Changes { settings: settings.to_vec(), trace: None };
        for (axis, setting) in self.axes.iter().zip(self.settings_at(values)) {
            let setting = setting.parse::<Setting>();
            let setting = setting.map_err(|error| self.refuse(axis, &error.to_string()))?;
            changes.settings.push(setting);
        }
        let read = Scenario::parse_with(text, file, &changes, FABRIC_NAMES);
        read.map_err(|error| self.placed(error))
    }

    /// Assigns an error of a setting to the axis that made it.
    fn placed(&self, error: InputError) -> InputError {
        let (problem, file) = error.parts();
        let concerns = |axis: &&Axis| {
            let rest = problem.strip_prefix(&axis.key);
            file == SET && rest.is_some_and(|rest| rest.starts_with([' ', ':']))
        };
        match self.axes.iter().find(concerns) {
            Some(axis) => error.moved(self.source.file, self.source.line(axis.offset)),
            None => error,
        }
    }
}
