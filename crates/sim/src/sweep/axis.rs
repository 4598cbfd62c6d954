//! Axes: the keys that a sweep varies, and their values.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{Source, as_integer, as_number, as_text};
use crate::workload::{InputError, unit};

/// Maximum number of values of one axis.
pub const AXIS_VALUES_MAX: u64 = 10_000;
/// Integers up to this value are whole numbers as floating-point numbers, too.
const INTEGER_MAX: u64 = 1 << 53;
/// Number of digits to which a computed value is rounded: 0.3 instead of 0.30000000000000004.
const DIGITS: usize = 12;

/// One varied key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The name with its tables: `fabric.edm.chunk_bytes`.
    pub(super) key: String,
    /// The byte offset of the axis in the sweep's text.
    pub(super) offset: usize,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// The values as written in TOML.
    List(Vec<String>),
    Range(Range),
}

#[derive(Clone, Debug, PartialEq)]
struct Range {
    from: f64,
    to: f64,
    steps: Option<u64>,
    logarithmic: bool,
    /// True if both ends are whole, so that all values are.
    whole: bool,
}

/// Reads the axes of the table `vary`, in the order of the file.
pub(crate) fn read(source: &Source<'_>, vary: &DeTable<'_>) -> Result<Vec<Axis>, InputError> {
    let mut axes = Vec::new();
    collect(source, "", vary, &mut axes)?;
    // The table keeps its keys sorted.
    axes.sort_by_key(|axis| axis.offset);
    Ok(axes)
}

fn collect(
    source: &Source<'_>,
    within: &str,
    table: &DeTable<'_>,
    axes: &mut Vec<Axis>,
) -> Result<(), InputError> {
    for (name, value) in table {
        let key = if within.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{within}.{}", name.get_ref())
        };
        let offset = name.span().start;
        let error = |problem: &str| source.error(offset, format!("vary.{key}: {problem}"));
        let values = match value.get_ref() {
            DeValue::Table(range) if is_range(range) => {
                Values::Range(Range::read(range).map_err(|problem| error(&problem))?)
            }
            DeValue::Table(inner) => {
                collect(source, &key, inner, axes)?;
                continue;
            }
            DeValue::Array(list) if list.is_empty() => {
                return Err(error("an empty axis: must be at least one value"));
            }
            DeValue::Array(list) => Values::List(list.iter().map(|v| text_of(source, v)).collect()),
            _ => return Err(error("must be a list [...] or a range {from, to, steps}")),
        };
        axes.push(Axis { key, offset, values });
    }
    Ok(())
}

/// True for a range: no key of a scenario has one of these names.
fn is_range(table: &DeTable<'_>) -> bool {
    ["from", "to", "steps"].iter().any(|&key| table.contains_key(key))
}

fn text_of(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> String {
    source.text.get(value.span()).unwrap_or_default().to_owned()
}

impl Axis {
    /// Number of values of a grid along this axis.
    pub(super) fn count(&self) -> Result<u64, String> {
        match &self.values {
            Values::List(values) => Ok(values.len() as u64),
            Values::Range(Range { steps: Some(steps), .. }) => Ok(*steps),
            Values::Range(_) => Err("steps is not set: a grid needs it".to_owned()),
        }
    }

    /// True if the sweep gives the number of values of a range.
    pub(super) fn has_steps(&self) -> bool {
        matches!(&self.values, Values::Range(Range { steps: Some(_), .. }))
    }

    /// The values of a grid, as written in TOML.
    pub(super) fn values(&self) -> Result<Vec<String>, String> {
        let values = match &self.values {
            Values::List(values) => values.clone(),
            Values::Range(range) => (0..self.count()?).map(|step| range.value(step)).collect(),
        };
        match values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
            Some((_, twice)) => Err(format!("{twice} stands twice: must be given once")),
            None => Ok(values),
        }
    }

    /// A random value, each equally likely; in a range, by the range's scale.
    pub(super) fn draw(&self, generator: &mut Xoshiro256PlusPlus) -> String {
        let share = unit(generator.next_u64());
        match &self.values {
            Values::List(values) => values[(share * values.len() as f64) as usize].clone(),
            Values::Range(range) => range.drawn(share),
        }
    }
}

impl Range {
    fn read(table: &DeTable<'_>) -> Result<Range, String> {
        for name in table.keys() {
            if !["from", "to", "steps", "scale"].contains(&name.get_ref().as_ref()) {
                let name = ethermem_files::found(name.get_ref());
                return Err(format!("{name}: unknown key: must be one of from, to, steps, scale"));
            }
        }
        let value = |key: &str| table.get(key).map(Spanned::get_ref);
        let end = |key: &str| {
            let number = value(key).and_then(as_number).filter(|number| number.is_finite());
            number.ok_or_else(|| format!("{key}: must be a number, 0 or more"))
        };
        let (from, to) = (end("from")?, end("to")?);
        let logarithmic = match value("scale").map(as_text) {
            None | Some(Some("linear")) => false,
            Some(Some("log")) => true,
            Some(_) => return Err("scale: must be one of \"linear\", \"log\"".to_owned()),
        };
        let least = if logarithmic { f64::MIN_POSITIVE } else { 0.0 };
        if !(least <= from && from < to && to <= INTEGER_MAX as f64) {
            let least = if logarithmic { "over 0" } else { "0 or more" };
            return Err(format!("from, to: must be {least}, rising, at most 2^53"));
        }
        let steps = value("steps").map(|steps| {
            let steps = as_integer(steps).filter(|steps| (2..=AXIS_VALUES_MAX).contains(steps));
            steps.ok_or_else(|| format!("steps: must be 2 to {AXIS_VALUES_MAX}"))
        });
        let whole = ["from", "to"].iter().all(|key| value(key).and_then(as_integer).is_some());
        Ok(Range { from, to, steps: steps.transpose()?, logarithmic, whole })
    }

    /// Value number `step`; the two ends are exactly as written.
    fn value(&self, step: u64) -> String {
        let last = self.steps.unwrap_or(2) - 1;
        match step {
            0 => self.spelled(self.from),
            step if step == last => self.spelled(self.to),
            _ => self.spelled(self.between(self.from, self.to, step as f64 / last as f64)),
        }
    }

    fn drawn(&self, share: f64) -> String {
        if !self.whole {
            return self.spelled(self.between(self.from, self.to, share));
        }
        // Each integer has the interval up to the next one.
        let drawn = self.between(self.from, self.to + 1.0, share).floor();
        self.spelled(drawn.clamp(self.from, self.to))
    }

    fn between(&self, from: f64, to: f64, share: f64) -> f64 {
        if self.logarithmic {
            // The logarithms of libm have equal bits on every platform.
            let (low, high) = (libm::log(from), libm::log(to));
            libm::exp(low + (high - low) * share)
        } else {
            from + (to - from) * share
        }
    }

    fn spelled(&self, value: f64) -> String {
        if self.whole {
            return format!("{}", value.round() as u64);
        }
        let rounded: f64 = format!("{value:.*e}", DIGITS - 1).parse().expect("a number");
        format!("{rounded:?}")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    fn axes(text: &str) -> Result<Vec<Axis>, String> {
        let source = Source {
            file: Path::new("s.toml"),
            text,
            file_bytes: text.len(),
            keys: RefCell::default(),
        };
        let table = DeTable::parse(text).unwrap();
        read(&source, table.get_ref()).map_err(|error| error.to_string())
    }

    fn values(text: &str) -> Vec<String> {
        axes(text).unwrap()[0].values().unwrap()
    }

    #[test]
    fn lists_and_ranges_by_hand() {
        assert_eq!(values("a.b = [0.2, 'x', 3]"), ["0.2", "'x'", "3"]);
        let linear = values("a = {from = 0.1, to = 0.5, steps = 5}");
        assert_eq!(linear, ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        let log = values("a = {from = 1, to = 1000, steps = 4, scale = 'log'}");
        assert_eq!(log, ["1", "10", "100", "1000"]);
        let log = values("a = {from = 0.01, to = 1.0, steps = 3, scale = 'log'}");
        assert_eq!(log, ["0.01", "0.1", "1.0"]);
        assert_eq!(values("a = {from = 1, to = 4, steps = 3}"), ["1", "3", "4"], "2.5 is 3");
    }

    #[test]
    fn axes_keep_the_order_of_the_file() {
        let keys: Vec<String> = axes("z = [1]\n[b]\ny = [1]\nc.d = [2]\n[a]\nx = [1]\n")
            .unwrap()
            .into_iter()
            .map(|axis| axis.key)
            .collect();
        assert_eq!(keys, ["z", "b.y", "b.c.d", "a.x"]);
    }

    #[test]
    fn what_is_no_axis_is_refused_with_its_line() {
        for (text, error) in [
            ("\na.b = []", "s.toml:2: vary.a.b: an empty axis: "),
            ("a = 3", "s.toml:1: vary.a: must be a list [...] or a range"),
            ("a = {from = 1, to = 2, step = 3}", "s.toml:1: vary.a: step: unknown key: "),
            ("a = {from = 2, to = 1, steps = 3}", "s.toml:1: vary.a: from, to: must be 0 or"),
            ("a = {from = 0, to = 1, steps = 3, scale = 'log'}", "s.toml:1: vary.a: from, to: "),
            ("a = {from = 0, to = 1, steps = 1}", "s.toml:1: vary.a: steps: must be 2 to"),
            ("a = {from = 0, steps = 2}", "s.toml:1: vary.a: to: must be a number"),
            ("a = {from = 0, to = inf, steps = 2}", "s.toml:1: vary.a: to: must be a number"),
            ("a = {from = 0, to = 1, scale = 'x'}", "s.toml:1: vary.a: scale: must be "),
        ] {
            let found = axes(text).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
        }
        let twice = axes("a = {from = 1, to = 3, steps = 9}").unwrap()[0].values();
        assert_eq!(twice.unwrap_err(), "1 stands twice: must be given once");
        let open = axes("a = {from = 1, to = 3}").unwrap()[0].values();
        assert_eq!(open.unwrap_err(), "steps is not set: a grid needs it");
    }

    #[test]
    fn draws_reach_both_ends_and_repeat_with_the_seed() {
        let axis = &axes("a = {from = 1, to = 3}").unwrap()[0];
        let drawn = |seed| {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..300).map(|_| axis.draw(&mut generator)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        for value in ["1", "2", "3"] {
            let count = drawn(1).iter().filter(|drawn| *drawn == value).count();
            assert!((60..140).contains(&count), "{value}: {count} of 300");
        }
        // Half of the draws of a logarithmic range lie below its geometric mean.
        let axis = &axes("a = {from = 1.0, to = 10000.0, scale = 'log'}").unwrap()[0];
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let below =
            (0..300).filter(|_| axis.draw(&mut generator).parse::<f64>().unwrap() < 100.0).count();
        assert!((110..190).contains(&below), "{below} of 300");
    }
}
