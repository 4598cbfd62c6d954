//! Values of arguments that several commands take.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Name of a value, its help, and the value.
pub(crate) type Named<T> = (&'static str, &'static str, T);

/// A parser of the values of a list, by name.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    known: &'static [Named<T>],
) -> impl TypedValueParser<Value = T> {
    let names = known.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).map(move |found| {
        let entry = known.iter().find(|(name, ..)| *name == found);
        entry.expect("clap allows no other").2
    })
}
