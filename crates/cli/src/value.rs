//! Values of arguments that several commands take.

use std::ops::RangeInclusive;

use bytesize::ByteSize;
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

/// A size, as `--memory` takes it.
#[cfg(feature = "serve")]
pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "must be a size such as 64MiB".to_owned())
}

/// Parses a number of bytes: a whole number, or one with a unit. Every flag for bytes takes both.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let allowed = "must be a whole number of bytes, or a size such as 64KiB".to_owned();
    // 1.5 B is not a length, but 1.5KiB is one.
    if text.parse::<f64>().is_ok() && text.parse::<u64>().is_err() {
        return Err(allowed);
    }
    text.parse::<ByteSize>().map(|size| size.as_u64()).map_err(|_| allowed)
}

/// As [`bytes`], within a range.
pub(crate) fn bytes_in(
    allowed: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let (from, to) = (allowed.start(), allowed.end());
        let found = bytes(text)?;
        if allowed.contains(&found) {
            Ok(found)
        } else {
            Err(format!("{found} is not in {from}..={to}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_have_a_unit() {
        let good =
            [("64", 64), ("64KiB", 65_536), ("1kB", 1_000), ("1.5KiB", 1_536), ("2 MiB", 2 << 20)];
        for (text, expected) in good {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        assert_eq!(bytes(&u64::MAX.to_string()), Ok(u64::MAX));
        for text in ["", "-1", "1.5", "64 bytes of", "KiB", "1e3", "inf", "nan"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
