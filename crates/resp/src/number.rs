//! Integers in Redis's canonical form: decimal, without a plus sign and without leading zeros. A
//! value that is read and written back therefore keeps its bytes.

/// The number whose canonical form the bytes are.
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // The sum is built downwards, because the negative range is larger by one.
    let below_zero = digits.iter().try_fold(0_i64, |number, &octet| {
        let digit = octet.wrapping_sub(b'0');
        let next = number.checked_mul(10)?.checked_sub(digit.into())?;
        (digit <= 9).then_some(next)
    })?;
    if negative { Some(below_zero) } else { below_zero.checked_neg() }
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
        for text in [
            "",
            "-",
            "+1",
            "-0",
            "01",
            "1 ",
            " 1",
            "1.0",
            "9223372036854775808",
            "0x1",
            "1:",
            "1/",
            "-9223372036854775809",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
