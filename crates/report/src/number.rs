//! Numbers for people.

/// A number with `decimals` decimals, and a comma between thousands.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = String::new();
    if value < 0.0 && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        text.push('−');
    }
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// A number without trailing zeros, for axes.
pub(super) fn trimmed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number that may be absent.
pub(super) fn optional(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| fixed(value, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_parted_and_fractions_kept() {
        for (value, decimals, text) in [
            (0.0, 2, "0.00"),
            (999.5, 1, "999.5"),
            (1_000.0, 0, "1,000"),
            (1_234_567.891, 2, "1,234,567.89"),
            (-1_234.5, 1, "−1,234.5"),
            (-0.001, 2, "0.00"),
            (f64::NAN, 2, "–"),
        ] {
            assert_eq!(fixed(value, decimals), text);
        }
    }

    #[test]
    fn axes_have_no_idle_zeros() {
        assert_eq!(trimmed(1.50, 3), "1.5");
        assert_eq!(trimmed(2.0, 3), "2");
        assert_eq!(trimmed(1_000.0, 0), "1,000");
    }
}
