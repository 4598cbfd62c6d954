//! Line traces written and read back, complete or not at all; and files that are not line traces.

#[path = "support/damage.rs"]
mod damage;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use damage::Damage;
use ethermem_lines::{LINE_BYTES, Levels, TrafficKind};
use ethermem_trace::{
    Ended, LineAccess, LineSummary, LineTrace, LineWriteError, LineWriter, Trace, check_line_trace,
};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

fn summary(instructions: u64) -> LineSummary {
    LineSummary {
        command: "sort 'a file'".to_owned(),
        ended: Ended::Exit(3),
        levels: Levels::default(),
        instructions,
        loads: 7,
        stores: 8,
        unrecorded_accesses: 9,
    }
}

fn write(path: &Path, accesses: &[LineAccess], summary: &LineSummary) {
    let mut writer = LineWriter::create(path).expect("a file of a test");
    for access in accesses {
        writer.push(*access).expect("a file of a test");
    }
    assert!(!path.exists(), "it appears whole");
    writer.finish(summary).expect("a file of a test");
}

fn any_accesses() -> impl Strategy<Value = Vec<LineAccess>> {
    let kind = prop::sample::select(&TrafficKind::ALL[..]);
    let access = (0_u64..1000, 0_u64..1 << 57, kind);
    prop::collection::vec(access, 0..300).prop_map(|accesses| {
        let mut instructions = 0;
        let access = |(more, line, kind)| {
            instructions += more;
            LineAccess { instructions, address: line * LINE_BYTES, kind }
        };
        accesses.into_iter().map(access).collect()
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        accesses in any_accesses(), longer in 0..1_000_u64, command: String, signalled: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let end = accesses.last().map_or(0, |access| access.instructions);
        let ended = if signalled { Ended::Signal(9) } else { Ended::Exit(1) };
        let summary = LineSummary { command, ended, ..summary(end + longer) };
        write(&path, &accesses, &summary);
        let trace = LineTrace::open(&path).unwrap();
        prop_assert_eq!(trace.summary(), &summary);
        prop_assert_eq!(trace.accesses_total(), accesses.len() as u64);
        let read: Vec<LineAccess> = trace.map(|access| access.expect("a row")).collect();
        prop_assert_eq!(read, accesses);
    }

    #[test]
    fn a_damaged_trace_does_no_harm(damage in Damage::any(), accesses in any_accesses()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        write(&path, &accesses, &summary(u64::MAX >> 1));
        let bytes = fs::read(&path).unwrap();
        prop_assert_eq!(check_line_trace(&bytes), accesses.len() as u64);
        check_line_trace(&damage.done_to(bytes));
    }
}

#[test]
fn rows_beyond_a_group_are_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let kind = TrafficKind::Load;
    let access = |n| LineAccess { instructions: n / 3, address: n * LINE_BYTES, kind };
    let accesses: Vec<LineAccess> = (0..300_000).map(access).collect();
    write(&path, &accesses, &summary(100_000));
    let trace = LineTrace::open(&path).unwrap();
    assert!(trace.map(Result::unwrap).eq(accesses));
}

#[test]
fn what_a_trace_cannot_hold_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut writer = LineWriter::create(&path).unwrap();
    let good = LineAccess { instructions: 5, address: 64, kind: TrafficKind::Store };
    writer.push(good).unwrap();
    for (wrong, what) in [
        (LineAccess { address: 65, ..good }, "address = 65: must be a multiple of 64 below"),
        (LineAccess { address: 1 << 63, ..good }, "must be a multiple of 64 below"),
        (LineAccess { instructions: 4, ..good }, "instructions = 4 after 5: must not be fewer"),
        (LineAccess { instructions: 1 << 63, ..good }, "must be 0 to 9223372036854775807"),
    ] {
        let error = writer.push(wrong).unwrap_err();
        assert!(matches!(&error, LineWriteError::Unusable(_)), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
    writer.push(good).unwrap();
    let error = writer.finish(&summary(4)).unwrap_err().to_string();
    assert_eq!(error, "an access with instructions = 5: must be up to the total, 4");
    assert!(!path.exists());
}

const NOTES: [(&str, &str); 11] = [
    ("ethermem.line_trace", "1"),
    ("line_bytes", "64"),
    ("l1", "32KiB/8"),
    ("l2", "1MiB/16"),
    ("llc", "1408KiB/11"),
    ("instructions", "10"),
    ("loads", "3"),
    ("stores", "2"),
    ("command", "true"),
    ("exit_code", "0"),
    ("unrecorded_accesses", "0"),
];

fn handmade(path: &Path, notes: &[(&str, &str)], instructions: [i64; 2], address: i64, kind: &str) {
    let schema = "message t { required int64 instructions; required int64 address;
                  required binary kind (STRING); }";
    let schema = Arc::new(parse_message_type(schema).expect("a file of a test"));
    let notes =
        notes.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.to_string()));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(notes.collect()));
    let file = fs::File::create(path).expect("a file of a test");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
        .expect("a file of a test");
    let mut group = writer.next_row_group().expect("a file of a test");
    for values in [instructions, [address; 2]] {
        let mut column = group.next_column().expect("a file of a test").expect("a file of a test");
        column.typed::<Int64Type>().write_batch(&values, None, None).expect("a file of a test");
        column.close().expect("a file of a test");
    }
    let mut column = group.next_column().expect("a file of a test").expect("a file of a test");
    let kinds = [ByteArray::from(kind), ByteArray::from(kind)];
    column.typed::<ByteArrayType>().write_batch(&kinds, None, None).expect("a file of a test");
    column.close().expect("a file of a test");
    group.close().expect("a file of a test");
    writer.close().expect("a file of a test");
}

#[test]
fn a_bad_row_is_named_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let cases = [
        ([3, 2], 64, "load", "row 2: instructions = 2 after 3: must not be fewer"),
        ([3, 11], 64, "load", "row 2: instructions = 11: must be 0 to the total, 10"),
        ([-3, 2], 64, "load", "row 1: instructions = -3: must be a whole number"),
        (
            [3, 4],
            32,
            "store",
            "row 1: address = 32: must be a multiple of 64 below 9223372036854775808",
        ),
        ([3, 4], 64, "read", "row 1: kind = read: must be one of load, store, write_back"),
    ];
    for (instructions, address, kind, expected) in cases {
        handmade(&path, &NOTES, instructions, address, kind);
        let error = LineTrace::open(&path).unwrap().find_map(Result::err).expect(expected);
        assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
    }
    handmade(&path, &NOTES, [3, 10], 128, "write_back");
    assert_eq!(LineTrace::open(&path).unwrap().filter_map(Result::ok).count(), 2);
    // Each kind of trace refuses the other.
    let error = Trace::open(&path).err().expect("it has no pages").to_string();
    assert!(error.contains("no ethermem.page_trace in its metadata"), "{error}");
}

#[test]
fn bad_metadata_is_named_with_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let cases = [
        (0, Some("2"), "ethermem.line_trace = 2: must be 1"),
        (
            0,
            None,
            "no ethermem.line_trace in its metadata: must be a trace of `ethermem profile --lines`",
        ),
        (1, Some("32"), "line_bytes = 32: must be 64"),
        (2, Some("8"), "l1 = 8 in its metadata: must be SIZE/WAYS, such as 32KiB/8"),
        (3, None, "no l2 in its metadata: must be a trace with all keys"),
        (4, Some("1/0"), "llc = 1/0 in its metadata: 0 ways: must be 1 to 64"),
        (5, Some("-1"), "instructions = -1 in its metadata: must be a whole number"),
    ];
    for (at, value, expected) in cases {
        let mut notes = NOTES.to_vec();
        match value {
            Some(value) => notes[at].1 = value,
            None => drop(notes.remove(at)),
        }
        handmade(&path, &notes, [0, 1], 64, "load");
        let error = LineTrace::open(&path).err().expect(expected);
        assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
    }
}
