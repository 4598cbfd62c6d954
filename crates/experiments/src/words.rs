//! Words that people type, and the values that they mean.

use std::ops::RangeInclusive;

use bytesize::ByteSize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses one of the names of a type that has a fixed set of names.
///
/// # Errors
///
/// One line with what is allowed.
pub fn name<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let parsed = serde_json::from_value(Value::String(text.to_owned()));
    parsed.map_err(|error| {
        // serde says: unknown variant `x`, expected `a` or `b`.
        let error = error.to_string();
        let allowed = error.split_once("expected ").map(|(_, allowed)| allowed.replace('`', ""));
        allowed.map_or(error, |allowed| format!("must be {allowed}"))
    })
}

/// Parses a size, as `--memory` takes it.
///
/// # Errors
///
/// One line with what is allowed.
pub fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "must be a size such as 64MiB".to_owned())
}

/// Parses a number of bytes: a whole number, or one with a unit. Every flag for bytes takes both.
///
/// # Errors
///
/// One line with what is allowed.
pub fn bytes(text: &str) -> Result<u64, String> {
    let allowed = "must be a whole number of bytes, or a size such as 64KiB".to_owned();
    // 1.5 B is not a length, but 1.5KiB is one.
    if text.parse::<f64>().is_ok() && text.parse::<u64>().is_err() {
        return Err(allowed);
    }
    text.parse::<ByteSize>().map(|size| size.as_u64()).map_err(|_| allowed)
}

/// Parses a number of bytes within a range, as [`bytes`] does.
pub fn bytes_in(
    allowed: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let (from, to) = (allowed.start(), allowed.end());
        let found = bytes(text)?;
        if allowed.contains(&found) { Ok(found) } else { Err(format!("must be {from} to {to}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_the_type_s() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Way {
            In,
            WayOut,
        }
        assert_eq!(name("way-out"), Ok(Way::WayOut));
        assert_eq!(name("in"), Ok(Way::In));
        assert_eq!(name::<Way>("out"), Err("must be in or way-out".to_owned()));
    }

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
