//! Traces written and read back, in order, complete or not at all; and files that are not traces.

#[path = "support/damage.rs"]
mod damage;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use damage::Damage;
use ethermem_trace::{
    Access, AccessKind, Ended, REORDER_ROWS, Summary, Trace, WriteError, Writer, check_page_trace,
};
use ethermem_units::{Bytes, Ns};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

const PAGE: Bytes = Bytes(4096);

fn access(time_ns: u64) -> Access {
    Access {
        time: Ns(time_ns),
        process: 71,
        thread: 72,
        address: 0x7f00_0000_0000 + 4096 * (time_ns % 97),
        bytes: PAGE,
        kind: AccessKind::ALL[time_ns as usize % 2],
        prefetched: time_ns.is_multiple_of(4),
    }
}

fn summary(duration_ns: u64) -> Summary {
    Summary {
        local: Bytes(25 << 20),
        peak: Bytes(100 << 20),
        duration: Ns(duration_ns),
        command: "python3 -c 'print(1)\nprint(2)'".to_owned(),
        ended: Ended::Exit(3),
        prefetched_accesses: None,
        unrecorded_accesses: 0,
    }
}

fn write(path: &Path, accesses: &[Access], summary: &Summary) {
    let mut writer = Writer::create(path, PAGE).expect("a file of a test");
    for access in accesses {
        writer.push(access).expect("a file of a test");
    }
    assert!(!path.exists(), "it appears whole");
    writer.finish(summary).expect("a file of a test");
}

fn read(path: &Path) -> Vec<Access> {
    Trace::open(path).expect("a file of a test").map(|access| access.expect("a row")).collect()
}

fn any_access() -> impl Strategy<Value = Access> {
    let (number, kind) = (0..=i32::MAX as u32, prop::sample::select(&AccessKind::ALL[..]));
    let numbers = (0..1_u64 << 40, number.clone(), number);
    (numbers, 0..1_u64 << 62, 1..=1_u64 << 30, kind, any::<bool>()).prop_map(
        |((time, process, thread), address, bytes, kind, early)| Access {
            time: Ns(time),
            process,
            thread,
            address,
            bytes: Bytes(bytes),
            kind,
            prefetched: early && kind == AccessKind::Read,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_in_order_of_time(
        accesses in prop::collection::vec(any_access(), 0..200),
        local: u64, peak: u64, longer in 0..1_000_u64,
        command: String, status: i32, signalled: bool,
        prefetched_accesses: Option<u64>, unrecorded_accesses: u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let end = accesses.iter().map(|access| access.time.0).max().unwrap_or(0);
        let summary = Summary {
            local: Bytes(local),
            peak: Bytes(peak),
            duration: Ns(end + longer),
            command,
            ended: if signalled { Ended::Signal(status) } else { Ended::Exit(status) },
            prefetched_accesses,
            unrecorded_accesses,
        };
        write(&path, &accesses, &summary);
        let trace = Trace::open(&path).unwrap();
        prop_assert_eq!(trace.summary(), &summary);
        prop_assert_eq!(trace.page(), PAGE);
        prop_assert_eq!(trace.accesses_total(), accesses.len() as u64);
        let mut sorted = accesses;
        sorted.sort_by_key(|access| access.time);
        prop_assert_eq!(read(&path), sorted);
    }

    #[test]
    fn a_damaged_trace_does_no_harm(
        damage in Damage::any(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let accesses: Vec<Access> = (0..300).map(access).collect();
        write(&path, &accesses, &summary(300));
        let bytes = fs::read(&path).unwrap();
        prop_assert_eq!(check_page_trace(&bytes), 300);
        check_page_trace(&damage.done_to(bytes));
    }
}

#[test]
fn a_long_trace_comes_back_sorted_and_refuses_what_is_too_late() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.parquet");
    let mut writer = Writer::create(&path, PAGE).unwrap();
    let rows = REORDER_ROWS as u64 + 1_000;
    // Neighbours are swapped, so no thread is far behind another.
    for index in 0..rows {
        writer.push(&access(10 + (index ^ 1))).unwrap();
    }
    let error = writer.push(&access(9)).unwrap_err();
    assert!(matches!(error, WriteError::Late { .. }), "{error}");
    let written = 9 + REORDER_ROWS / 2;
    assert_eq!(
        error.to_string(),
        format!("an access at 9 ns after one at {written} ns was written")
    );
    writer.finish(&summary(rows + 10)).unwrap();
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.accesses_total(), rows);
    for (index, found) in (0..).zip(trace) {
        assert_eq!(found.unwrap(), access(10 + index));
    }
}

#[test]
fn what_a_trace_cannot_hold_is_refused_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut writer = Writer::create(&path, PAGE).unwrap();
    let bad = [
        (Access { bytes: Bytes(0), ..access(1) }, "bytes = 0: must be 1 to 1073741824"),
        (
            Access { bytes: Bytes((1 << 30) + 1), ..access(1) },
            "bytes = 1073741825: must be 1 to 1073741824",
        ),
        (Access { thread: 1 << 31, ..access(1) }, "thread = 2147483648: must be 0 to 2147483647"),
        (
            Access { address: u64::MAX, ..access(1) },
            "address = 18446744073709551615 with bytes = 4096: must be an end up to \
             9223372036854775808",
        ),
        (
            Access { prefetched: true, ..access(1) },
            "prefetched = true with kind = write_back: must be read",
        ),
        (access(1 << 63), "time_ns = 9223372036854775808: must be 0 to 9223372036854775807"),
    ];
    for (access, expected) in bad {
        let error = writer.push(&access).unwrap_err();
        assert_eq!(error.to_string(), format!("an access with {expected}"));
    }
    writer.push(&access(7)).unwrap();
    writer.finish(&summary(7)).unwrap();
    assert_eq!(read(&path), [access(7)]);
}

#[test]
fn a_trace_that_is_not_finished_or_contradicts_itself_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut writer = Writer::create(&path, PAGE).unwrap();
    writer.push(&access(5)).unwrap();
    drop(writer);
    let mut writer = Writer::create(&path, PAGE).unwrap();
    writer.push(&access(5)).unwrap();
    let error = writer.finish(&summary(4)).unwrap_err();
    assert_eq!(error.to_string(), "a duration of 4 ns with an access at 5 ns");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let error = Writer::create(&folder.path().join("none").join("t"), PAGE).err().unwrap();
    assert!(error.to_string().contains("No such file or directory"), "{error}");
}

/// A file with the columns of a trace, one row, and this metadata.
fn handmade(path: &Path, notes: &[(&str, &str)], time_ns: [i64; 2], bytes: i32, kind: &str) {
    let schema = "message t {
        required int64 time_ns; required int32 process; required int32 thread;
        required int64 address; required int32 bytes; required binary kind (STRING);
    }";
    let schema = Arc::new(parse_message_type(schema).expect("a file of a test"));
    let notes =
        notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.to_string()));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(notes.collect())).build();
    let file = fs::File::create(path).expect("a file of a test");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).expect("a file of a test");
    let mut group = writer.next_row_group().expect("a file of a test");
    macro_rules! column {
        ($type:ty, $values:expr) => {{
            let mut column =
                group.next_column().expect("a file of a test").expect("a file of a test");
            column.typed::<$type>().write_batch(&$values, None, None).expect("a file of a test");
            column.close().expect("a file of a test");
        }};
    }
    column!(Int64Type, time_ns);
    column!(Int32Type, [1, 1]);
    column!(Int32Type, [1, 1]);
    column!(Int64Type, [4096, 4096]);
    column!(Int32Type, [4096, bytes]);
    column!(ByteArrayType, [ByteArray::from("read"), ByteArray::from(kind)]);
    group.close().expect("a file of a test");
    writer.close().expect("a file of a test");
}

const NOTES: [(&str, &str); 8] = [
    ("ethermem.page_trace", "1"),
    ("page_bytes", "4096"),
    ("local_bytes", "1"),
    ("peak_bytes", "2"),
    ("duration_ns", "10"),
    ("command", "true"),
    ("exit_code", "0"),
    ("unrecorded_accesses", "0"),
];

#[test]
fn a_bad_row_is_named_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let cases = [
        ([3, 2], 4096, "read", "row 2: time_ns = 2 after 3: must not be earlier"),
        ([3, 11], 4096, "read", "row 2: time_ns = 11: must be 0 to the duration, 10"),
        ([-3, 0], 4096, "read", "row 1: time_ns = -3: must be a whole number"),
        ([3, 4], 0, "read", "row 2: bytes = 0: must be 1 to 1073741824"),
        ([3, 4], 4096, "rmw", "row 2: kind = rmw: must be one of read, write_back"),
    ];
    for (time_ns, bytes, kind, expected) in cases {
        handmade(&path, &NOTES, time_ns, bytes, kind);
        let error = Trace::open(&path).unwrap().find_map(Result::err).expect(expected);
        assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
    }
    handmade(&path, &NOTES, [3, 10], 1, "write_back");
    let accesses = read(&path);
    assert_eq!(accesses.len(), 2);
    // The file lacks the column, as files from before it existed do.
    assert!(accesses.iter().all(|access| !access.prefetched));
}

#[test]
fn bad_metadata_is_named_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let whole = "in its metadata: must be a whole number";
    let absent = "in its metadata: must be a trace with all keys";
    let cases = [
        (0, Some("2"), "ethermem.page_trace = 2: must be 1".to_owned()),
        (
            0,
            None,
            "no ethermem.page_trace in its metadata: must be a trace of `ethermem profile`"
                .to_owned(),
        ),
        (1, Some("4095"), "page_bytes = 4095: must be a power of 2, 512 to 1073741824".to_owned()),
        (2, Some("-1"), format!("local_bytes = -1 {whole}")),
        (3, Some("many\n"), format!("peak_bytes = many\\n {whole}")),
        (4, None, format!("no duration_ns {absent}")),
        (5, None, format!("no command {absent}")),
        (6, None, format!("no exit_code {absent}")),
        (7, Some("1.5"), format!("unrecorded_accesses = 1.5 {whole}")),
    ];
    for (at, value, expected) in cases {
        let mut notes = NOTES.to_vec();
        match value {
            Some(value) => notes[at].1 = value,
            None => drop(notes.remove(at)),
        }
        handmade(&path, &notes, [0, 1], 1, "read");
        let error = Trace::open(&path).err().expect(&expected);
        assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
    }
}

#[test]
fn a_file_of_other_columns_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = Arc::new(parse_message_type("message t { required int64 time_ns; }").unwrap());
    let notes = NOTES.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(notes.to_vec())).build();
    let file = fs::File::create(&path).unwrap();
    SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap().close().unwrap();
    let error = Trace::open(&path).err().unwrap().to_string();
    let expected = "no column process: must be files with time_ns, process, thread, address, \
                    bytes, kind";
    assert_eq!(error, format!("{}: {expected}", path.display()));
}
