//! Tests of the parser.

use proptest::prelude::*;

use super::*;

type Read = Vec<Vec<Vec<u8>>>;

fn owned(words: Words<'_>) -> Vec<Vec<u8>> {
    words.from(0).map(<[u8]>::to_vec).collect()
}

/// Gives bytes that arrive in parts of these lengths, and lets `take` take what is complete.
fn read_by(
    bytes: &[u8],
    parts: &[usize],
    mut take: impl FnMut(&mut Requests, &mut Read) -> Result<(), ProtocolError>,
) -> Result<Read, ProtocolError> {
    let mut requests = Requests::default();
    let (mut all, mut rest) = (Vec::new(), bytes);
    let mut lengths = parts.iter().copied().cycle();
    while !rest.is_empty() {
        let room = requests.room();
        let most = lengths.next().unwrap_or(1 << 20);
        let length = most.clamp(1, rest.len()).min(room.len());
        room[..length].copy_from_slice(&rest[..length]);
        requests.fill(length);
        rest = &rest[length..];
        take(&mut requests, &mut all)?;
    }
    Ok(all)
}

/// All requests of bytes that arrive in parts of these lengths.
fn read(bytes: &[u8], parts: &[usize]) -> Result<Read, ProtocolError> {
    read_by(bytes, parts, |requests, all| {
        while let Some(words) = requests.next()? {
            all.push(owned(words));
        }
        Ok(())
    })
}

/// As [`read`], by gathering requests of two words, at most three at once.
fn read_gathering(bytes: &[u8], parts: &[usize]) -> Result<Read, ProtocolError> {
    let fits = |words: Words<'_>| words.count() == 2;
    read_by(bytes, parts, |requests, all| {
        while let Some(words) = requests.next()? {
            if !fits(words) {
                all.push(owned(words));
                continue;
            }
            let count = requests.gather(3, fits);
            assert!((1..=3).contains(&count));
            all.extend(requests.gathered().map(owned));
        }
        Ok(())
    })
}

fn text(requests: &[Vec<Vec<u8>>]) -> Vec<Vec<String>> {
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    requests.iter().map(|words| words.iter().map(text).collect()).collect()
}

#[test]
fn arrays_and_lines_are_requests() {
    let bytes =
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n  SET  a b\n";
    let expected = vec![vec!["GET", "k"], vec!["PING"], vec![""], vec!["SET", "a", "b"]];
    for parts in [&[1][..], &[3, 1], &[1000]] {
        assert_eq!(text(&read(bytes, parts).unwrap()), expected, "{parts:?}");
    }
}

#[test]
fn a_line_may_be_quoted() {
    let line = b"SET \"a b\\n\\x41\\q\" 'it\\'s' plain\r\n";
    let words = text(&read(line, &[1000]).unwrap());
    assert_eq!(words, [["SET", "a b\nAq", "it's", "plain"]]);
    for line in ["\"a", "'a", "\"a\"b"] {
        let read = read(format!("{line}\n").as_bytes(), &[1000]);
        assert_eq!(read, Err(ProtocolError::Quotes), "{line}");
    }
}

#[test]
fn what_is_too_much_is_refused_before_it_comes() {
    let refused = |bytes: &[u8]| read(bytes, &[1 << 20]).unwrap_err().to_string();
    assert_eq!(refused(b"*1\r\n$1073741824\r\n"), "invalid bulk length");
    assert_eq!(refused(b"*1\r\n$-1\r\n"), "invalid bulk length");
    assert_eq!(refused(b"*1048577\r\n"), "invalid multibulk length");
    assert_eq!(refused(b"*x\r\n"), "invalid multibulk length");
    assert_eq!(refused(b"*1\r\n:1\r\n"), "expected '$', got ':'");
    assert_eq!(refused(&[b'a'; 70_000]), "too big inline request");
    assert_eq!(refused(&[&b"*1\r\n$"[..], &[b'1'; 70_000]].concat()), "too big bulk count string");
    assert_eq!(refused(&[&b"*"[..], &[b'1'; 70_000]].concat()), "too big mbulk count string");
}

/// Number of requests in these bytes, optionally for an unauthenticated client.
fn read_as(bytes: &[u8], is_of_stranger: bool) -> Result<usize, ProtocolError> {
    let mut requests = Requests { is_of_stranger, ..Requests::default() };
    let mut rest = bytes;
    let mut count = 0;
    while !rest.is_empty() {
        let room = requests.room();
        let length = rest.len().min(room.len());
        room[..length].copy_from_slice(&rest[..length]);
        requests.fill(length);
        rest = &rest[length..];
        while requests.next()?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn what_is_as_much_as_may_be_is_waited_for() {
    let (most, longest) = (REQUEST_WORDS_MAX, VALUE_BYTES_MAX);
    let line = "a".repeat(LINE_BYTES_MAX);
    for (bytes, stranger, expected) in [
        (format!("*{most}\r\n"), false, Ok(0)),
        (format!("*{}\r\n", most + 1), false, Err(ProtocolError::Count)),
        (format!("*1\r\n${longest}\r\n"), false, Ok(0)),
        (format!("*1\r\n${}\r\n", longest + 1), false, Err(ProtocolError::Length)),
        ("*10\r\n".to_owned(), true, Ok(0)),
        ("*11\r\n".to_owned(), true, Err(ProtocolError::StrangerCount)),
        ("*11\r\n".to_owned(), false, Ok(0)),
        ("*1\r\n$16384\r\n".to_owned(), true, Ok(0)),
        ("*1\r\n$16385\r\n".to_owned(), true, Err(ProtocolError::StrangerLength)),
        ("*1\r\n$16385\r\n".to_owned(), false, Ok(0)),
        (line.clone(), false, Ok(0)),
        (format!("{line}a"), false, Err(ProtocolError::LongLine)),
        (format!("{line}\n"), false, Ok(1)),
        (format!("PING\n{line}a\n"), false, Err(ProtocolError::LongLine)),
        ("*01\r\n$4\r\nPING\r\n".to_owned(), false, Err(ProtocolError::Count)),
        ("*1\r\n$04\r\nPING\r\n".to_owned(), false, Err(ProtocolError::Length)),
    ] {
        assert_eq!(read_as(bytes.as_bytes(), stranger), expected, "{bytes:.40}, {stranger}");
    }
}

/// Parsed bytes hold no memory, and announced bytes get none before they arrive.
#[test]
fn memory_goes_with_what_it_was_for() {
    let mut requests = Requests::default();
    let give = |requests: &mut Requests, bytes: &[u8]| {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = requests.room();
            let length = rest.len().min(room.len());
            room[..length].copy_from_slice(&rest[..length]);
            requests.fill(length);
            rest = &rest[length..];
            while requests.next().expect("they are good").is_some() {}
        }
    };
    for _ in 0..100 {
        give(&mut requests, &b"*1\r\n$10\r\n0123456789\r\n".repeat(1000));
    }
    assert!(requests.buffer.len() <= 4 * READ_BYTES, "{}", requests.buffer.len());
    // Half of a long word has arrived: the space doubles, but does not become the announced
    // length.
    give(&mut requests, format!("*1\r\n${}\r\n", 32 << 20).as_bytes());
    assert!(requests.room().len() < 1 << 20);
    give(&mut requests, &vec![b'x'; 2 << 20]);
    assert!((1 << 20..8 << 20).contains(&requests.room().len()));
    give(&mut requests, &vec![b'x'; 30 << 20]);
    // The word ends, and the beginning of another request stays.
    give(&mut requests, b"\r\n*1\r\n$4\r\nPI");
    requests.room();
    assert_eq!(requests.come(), b"*1\r\n$4\r\nPI");
    give(&mut requests, b"NG\r\n");
    requests.room();
    assert!(requests.buffer.len() <= 4 * READ_BYTES, "{}", requests.buffer.len());
    // A request of many words.
    let many = [&b"*200000\r\n"[..], &b"$1\r\nx\r\n".repeat(200_000)].concat();
    give(&mut requests, &many);
    requests.room();
    assert!(requests.words.capacity() <= KEPT_BYTES / size_of::<Range<usize>>());
}

#[test]
fn the_words_of_a_request_are_limited_together() {
    let word = vec![b'x'; VALUE_BYTES_MAX];
    let mut bytes = b"*3\r\n".to_vec();
    for _ in 0..2 {
        bytes.extend_from_slice(format!("${VALUE_BYTES_MAX}\r\n").as_bytes());
        bytes.extend_from_slice(&word);
        bytes.extend_from_slice(b"\r\n");
    }
    let left = REQUEST_BYTES_MAX - bytes.len();
    for (more, refused) in [(left - 10, false), (left, true)] {
        let mut requests = Requests::default();
        let bytes = [&bytes[..], format!("${more}\r\n").as_bytes()].concat();
        requests.room();
        requests.buffer.resize(bytes.len(), 0);
        requests.buffer.copy_from_slice(&bytes);
        requests.fill(bytes.len());
        let read = requests.next().map(|words| words.map(|words| words.count()));
        assert_eq!(read, if refused { Err(ProtocolError::LongRequest) } else { Ok(None) });
    }
}

/// Reference for `short_number`.
fn long_number(line: &[u8]) -> Option<(i64, usize)> {
    let end = line.iter().position(|byte| *byte == b'\r')?;
    (end + 1 < line.len()).then_some(())?;
    Some((crate::number::integer(&line[..end])?, end + 2))
}

/// A request of an array of words, of a line, or no request.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let word = proptest::collection::vec(any::<u8>(), 0..6);
    let array = proptest::collection::vec(word, 0..4).prop_map(|words| {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(&word);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    });
    let line = "[a-z '\"]{0,8}\r\n".prop_map(String::into_bytes);
    prop_oneof![20 => array, 2 => line, 1 => proptest::collection::vec(any::<u8>(), 0..4)]
}

proptest! {
    #[test]
    fn gathered_requests_are_those_that_come_one_by_one(
        requests in proptest::collection::vec(request(), 0..20),
        parts in proptest::collection::vec(1_usize..80, 1..5),
    ) {
        let bytes = requests.concat();
        prop_assert_eq!(read_gathering(&bytes, &parts), read(&bytes, &parts));
    }

    #[test]
    fn a_short_number_is_what_the_long_way_gives(
        digits in "-?[0-9]{0,11}",
        behind in "(\r\n[^\r]{0,3}|\r|[0-9:\r\n]{0,3})",
    ) {
        let line = format!("{digits}{behind}");
        let (short, long) = (short_number(line.as_bytes()), long_number(line.as_bytes()));
        prop_assert!(short.is_none() || short == long, "{line:?}: {short:?}, {long:?}");
        let is_short = matches!(long, Some((0..1_000_000_000, _)));
        prop_assert!(short.is_some() || !is_short, "{line:?}: {long:?}");
    }

    #[test]
    fn requests_read_back_in_any_parts(
        requests in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..5),
            1..5,
        ),
        parts in proptest::collection::vec(1..30_usize, 1..5),
    ) {
        let mut bytes = Vec::new();
        for words in &requests {
            bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        prop_assert_eq!(read(&bytes, &parts).unwrap(), requests);
    }

    #[test]
    fn the_parts_make_no_difference(
        bytes in proptest::collection::vec(
            proptest::sample::select(b"*$\r\n0123-aG\"'\\x ".to_vec()), 0..60),
        parts in proptest::collection::vec(1..9_usize, 1..5),
    ) {
        prop_assert_eq!(read(&bytes, &parts), read(&bytes, &[1000]));
    }
}
