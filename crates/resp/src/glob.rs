//! Redis's key patterns: `*`, `?`, `[a-c]`, `[^x]`, and `\` before a literal character. No
//! file-name library implements these rules on bytes.

/// True if `text` matches the pattern. The time is at most proportional to the product of the
/// lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        // Redis looks at no pattern but these for an empty text: `**` does not match it.
        return matches!(pattern, b"" | b"*");
    }
    let (mut at, mut in_text) = (0, 0);
    // Where to backtrack if the text after the last `*` does not match: the `*` takes one more
    // byte.
    let mut back: Option<(usize, usize)> = None;
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            back = Some((at, in_text));
            continue;
        }
        match one(&pattern[at..], text[in_text]) {
            Some(length) => {
                at += length;
                in_text += 1;
            }
            None => match &mut back {
                Some((after_star, taken)) => {
                    *taken += 1;
                    (at, in_text) = (*after_star, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Length of the pattern's first element, if `byte` matches it.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    let (fits, length) = match pattern {
        [] => (false, 0),
        [b'?', ..] => (true, 1),
        [b'\\', escaped, ..] => (*escaped == byte, 2),
        [b'[', set @ ..] => {
            let (fits, length) = in_set(set, byte);
            (fits, 1 + length)
        }
        [own, ..] => (*own == byte, 1),
    };
    fits.then_some(length)
}

/// True if `byte` is in the set that begins here, and the set's length.
fn in_set(set: &[u8], byte: u8) -> (bool, usize) {
    let negated = set.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &set[at.min(set.len())..] {
            // An unclosed set ends with the pattern.
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                at += 3;
            }
            [own, ..] => {
                found |= *own == byte;
                at += 1;
            }
        }
    }
    (found != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_redis() {
        let yes = [
            ("", ""),
            ("*", ""),
            ("**", "a"),
            ("a**", "a"),
            ("h?llo", "hallo"),
            ("h*llo", "heeeello"),
            ("h[ae]llo", "hello"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hbllo"),
            ("a\\*", "a*"),
            ("[\\]]", "]"),
            ("*a*b*c", "xxaxxbxxc"),
            ("[a", "a"),
        ];
        let no = [
            ("", "a"),
            ("**", ""),
            ("h?llo", "hllo"),
            ("h[^e]llo", "hello"),
            ("a\\*", "ab"),
            ("h*llo", "hell"),
            ("a", "ab"),
            ("ab", "a"),
            ("[", "a"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_time() {
        let (pattern, text) = ("*a".repeat(500), "a".repeat(499) + &"b".repeat(5000));
        assert!(!matches(pattern.as_bytes(), text.as_bytes()));
    }
}
