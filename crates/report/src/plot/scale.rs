//! Maps values to positions along an axis.

use crate::Axis;
use crate::Scale as Spacing;
use crate::number::trimmed;

/// Ratio of largest to smallest value above which [`Spacing::Auto`] is logarithmic.
const LOG_RATIO: f64 = 20.0;

const MEASURED_TICKS_MAX: usize = 12;

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// An axis with a fixed range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Scale {
    /// An axis that includes `values`, with about `ticks_wanted` ticks. With `headroom` it ends on
    /// a tick, otherwise with the data.
    pub(super) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64> + Clone,
        ticks_wanted: usize,
        headroom: bool,
    ) -> Scale {
        let positive = values.clone().filter(|value| value.is_finite() && *value > 0.0);
        let (low_positive, high_positive) = range(positive).unwrap_or((1.0, 10.0));
        let log = match axis.scale {
            Spacing::Linear => false,
            Spacing::Log => true,
            Spacing::Auto => high_positive > LOG_RATIO * axis.start.unwrap_or(low_positive),
        };
        let (low, high) = if log {
            (low_positive, high_positive)
        } else {
            range(values.filter(|value| value.is_finite())).unwrap_or((0.0, 1.0))
        };
        let start = axis.start.filter(|start| !log || *start > 0.0);
        let low = start.map_or(low, |start| start.min(low));
        let high = if high > low { high } else { next_above(low) };
        let mut scale = Scale { log, low, high, ticks: Vec::new() };
        let (low_open, high_open) = (start != Some(low) && headroom, headroom);
        if log {
            scale.tick_log(ticks_wanted, low_open, high_open);
        } else {
            scale.tick_linear(ticks_wanted, low_open, high_open);
        }
        scale
    }

    /// Puts ticks at the measured values, if there are few.
    pub(super) fn tick_at(&mut self, values: impl Iterator<Item = f64>, decimals: usize) {
        let mut values: Vec<f64> = values.filter(|value| self.place(*value).is_some()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if (1..=MEASURED_TICKS_MAX).contains(&values.len()) {
            let tick = |value| Tick { value, label: trimmed(value, decimals) };
            self.ticks = values.into_iter().map(tick).collect();
        }
    }

    /// Position of `value` between the start (0) and the end (1); `None` if a log axis cannot show
    /// it.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            None
        } else if self.log {
            let ratio = |value: f64| value.ln() - self.low.ln();
            (value > 0.0).then(|| ratio(value) / ratio(self.high))
        } else {
            Some((value - self.low) / (self.high - self.low))
        }
    }

    pub(super) fn is_log(&self) -> bool {
        self.log
    }

    fn tick_linear(&mut self, wanted: usize, low_open: bool, high_open: bool) {
        let step = nice_step((self.high - self.low) / wanted.max(1) as f64);
        if low_open {
            self.low = (self.low / step + 1e-9).floor() * step;
        }
        if high_open {
            self.high = (self.high / step - 1e-9).ceil() * step;
        }
        let decimals = decimals(step);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        self.ticks = (first..=last)
            .map(|index| index as f64 * step)
            .map(|value| Tick { value, label: trimmed(value, decimals) })
            .collect();
    }

    fn tick_log(&mut self, wanted: usize, low_open: bool, high_open: bool) {
        let decades = self.high.log10() - self.low.log10();
        let mantissas: &[f64] = if decades * 6.0 <= wanted as f64 * 1.5 {
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
        } else if decades * 3.0 <= wanted as f64 * 1.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let mut places = Vec::new();
        for exponent in self.low.log10().floor() as i32 - 1..=self.high.log10().ceil() as i32 + 1 {
            places.extend(mantissas.iter().map(|mantissa| mantissa * power_of_ten(exponent)));
        }
        let below = |place: &&f64| **place <= self.low * (1.0 + 1e-9);
        let above = |place: &&f64| **place >= self.high * (1.0 - 1e-9);
        if let (true, Some(low)) = (low_open, places.iter().rfind(below).copied()) {
            self.low = low;
        }
        if let (true, Some(high)) = (high_open, places.iter().find(above).copied()) {
            self.high = high;
        }
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        self.ticks = places
            .into_iter()
            .filter(|place| (low..=high).contains(place))
            .map(|value| Tick { value, label: trimmed(value, decimals(value)) })
            .collect();
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// An upper end for an axis whose data are all equal.
fn next_above(low: f64) -> f64 {
    if low == 0.0 { 1.0 } else { low + low.abs() }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = power_of_ten(step.log10().floor() as i32);
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|nice| nice * power >= step * 0.999);
    nice.unwrap_or(10.0) * power
}

/// A power of ten by division, which is exact where multiplication is not: 0.1.
fn power_of_ten(exponent: i32) -> f64 {
    if exponent < 0 { 1.0 / 10_f64.powi(-exponent) } else { 10_f64.powi(exponent) }
}

/// Number of decimals that show two significant digits.
fn decimals(value: f64) -> usize {
    let magnitude = value.abs().log10().floor();
    if magnitude >= 1.0 { 0 } else { (1.0 - magnitude).min(12.0) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], ticks: usize) -> Vec<String> {
        let scale = Scale::new(axis, values.iter().copied(), ticks, true);
        scale.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn a_slowdown_axis_starts_at_one_and_ends_on_a_tick() {
        let axis = Axis::slowdown("Mean slowdown");
        assert_eq!(labels(&axis, &[1.02, 1.31], 5), ["1", "1.1", "1.2", "1.3", "1.4"]);
        let scale = Scale::new(&axis, [1.02, 1.31].into_iter(), 5, true);
        assert_eq!(scale.place(1.0), Some(0.0));
        assert!((scale.place(1.4).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_slowdown_below_one_is_not_cut_off() {
        let scale = Scale::new(&Axis::slowdown("s"), [0.97, 1.3].into_iter(), 5, true);
        assert!(scale.place(0.97).unwrap() >= 0.0);
    }

    #[test]
    fn a_large_range_is_logarithmic() {
        let axis = Axis::slowdown("Slowdown");
        assert_eq!(
            labels(&axis, &[1.1, 128.0], 6),
            ["1", "2", "5", "10", "20", "50", "100", "200"]
        );
        let scale = Scale::new(&axis, [1.1, 128.0].into_iter(), 6, true);
        assert!(scale.is_log());
        let middle = scale.place(200_f64.sqrt()).unwrap();
        assert!((middle - 0.5).abs() < 1e-12);
        assert_eq!(scale.place(0.0), None);
    }

    #[test]
    fn decades_alone_where_there_are_many() {
        let axis = Axis::of_data("ns", Spacing::Log, 0);
        assert_eq!(labels(&axis, &[150.0, 90_000.0], 4), ["100", "1,000", "10,000", "100,000"]);
        assert_eq!(labels(&axis, &[1e-4, 1.0], 4)[..2], ["0.0001", "0.001"]);
    }

    #[test]
    fn few_measured_values_are_the_ticks() {
        let chunks = [64.0, 256.0, 1_024.0, 256.0];
        let axis = Axis::of_data("Chunk (B)", Spacing::Log, 0);
        let mut scale = Scale::new(&axis, chunks.into_iter(), 8, false);
        scale.tick_at(chunks.into_iter(), 0);
        let labels: Vec<&str> = scale.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, ["64", "256", "1,024"]);
        assert_eq!((scale.place(64.0), scale.place(1_024.0)), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn nothing_and_a_single_value_still_have_an_axis() {
        for values in [&[][..], &[0.0], &[3.0], &[f64::NAN]] {
            for spacing in [Spacing::Linear, Spacing::Log, Spacing::Auto] {
                let axis = Axis::of_data("x", spacing, 1);
                let scale = Scale::new(&axis, values.iter().copied(), 5, true);
                assert!(scale.low < scale.high, "{values:?} {spacing:?}");
                assert!(!scale.ticks.is_empty(), "{values:?} {spacing:?}");
            }
        }
    }
}
