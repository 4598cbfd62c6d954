//! Integers as Redis reads them: decimal, without a sign that says nothing and without leading
//! zeros, so that a value that is written back is the same bytes.

/// The number that the bytes are the one way to write.
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [b'0'] => digits.len() == bytes.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_in_one_way() {
        for (text, number) in
            [("0", 0), ("-1", -1), ("120", 120), ("9223372036854775807", i64::MAX)]
        {
            assert_eq!(integer(text.as_bytes()), Some(number));
        }
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in ["", "-", "+1", "-0", "01", "1 ", " 1", "1.0", "9223372036854775808", "0x1"] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
