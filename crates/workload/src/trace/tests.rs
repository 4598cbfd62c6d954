use std::fs;

use ethermem_units::{BitsPerSecond, Bytes};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::message::{Kind, Message, SourceError};
use crate::{LinkBlocks, Pattern, Poisson, PoissonConfig, SizeDistribution};

const NODES: u16 = 8;

/// A source of messages in memory.
struct Recorded(std::vec::IntoIter<Message>);

impl Recorded {
    fn new(messages: &[Message]) -> Recorded {
        Recorded(Vec::from(messages).into_iter())
    }
}

impl MessageSource for Recorded {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        Ok(self.0.next())
    }

    fn messages_total(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

fn read_all(source: &mut dyn MessageSource) -> Result<Vec<Message>, SourceError> {
    let mut messages = Vec::new();
    while let Some(message) = source.next_message()? {
        messages.push(message);
    }
    Ok(messages)
}

fn read_text(text: &[u8], format: TraceFormat) -> Result<Vec<Message>, String> {
    let mut trace = TextTrace::new(text, Path::new("t.csv"), format, NODES)
        .map_err(|error| error.to_string())?;
    read_all(&mut trace).map_err(|error| error.0)
}

/// The text of an error without the file's folder.
fn without_folder(error: &str, folder: &TempDir) -> String {
    let prefix = format!("{}/", folder.path().display());
    error.strip_prefix(&prefix).expect(error).to_owned()
}

fn read_file(name: &str, bytes: &[u8], format: TraceFormat) -> Result<Vec<Message>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    let opened = TraceConfig { path, format }.open(NODES).map_err(SourceError::from);
    let messages = opened.and_then(|mut source| {
        let total = source.messages_total();
        let messages = read_all(source.as_mut())?;
        assert_eq!(total, Some(messages.len() as u64));
        Ok(messages)
    });
    messages.map_err(|error| without_folder(&error.0, &folder))
}

fn message(index: u64, arrival_ps: u64, kind: Kind, bytes: u64) -> Message {
    let arrival = Ps(arrival_ps);
    Message { index, arrival, kind, compute: 1, memory: 2, bytes: Bytes(bytes) }
}

fn synthetic(messages: u64, rmw_fraction: f64) -> Vec<Message> {
    let config = PoissonConfig {
        pattern: Pattern::AllToAll,
        load: 0.5,
        sizes: SizeDistribution::from_points(&[(1, 0.5), (5_000, 1.0)]).expect("a distribution"),
        read_fraction: 0.4,
        rmw_fraction,
        messages,
    };
    let link = BitsPerSecond::from_gbps(100).expect("an Ethernet rate");
    let blocks = |_, _| LinkBlocks { compute_uplink: 10.0, ..LinkBlocks::default() };
    let mut source = Poisson::new(&config, NODES, link, 1, &blocks).expect("a short run");
    read_all(&mut source).expect("synthetic messages never fail")
}

/// A Parquet trace of a few hundred messages.
fn parquet_bytes() -> Vec<u8> {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let write = || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t");
        let mut source = Recorded::new(&synthetic(500, 0.1));
        write_trace(&mut source, &path, TraceFormat::Parquet).expect("written");
        fs::read(path).expect("read")
    };
    BYTES.get_or_init(write).clone()
}

fn round_trip(messages: &[Message], format: TraceFormat) -> Vec<Message> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    let written = write_trace(&mut Recorded::new(messages), &path, format).expect("written");
    assert_eq!(written, messages.len() as u64);
    read_file("t", &fs::read(path).expect("read"), format).expect("read")
}

#[test]
fn csv_columns_are_found_by_name() {
    let text = b"# by hand\nbytes,\"kind\",note,memory,compute,arrival_ns\n\
        64,read,x,2,1,0.5\n\n8,\"rmw\",y,2,1,1.25\r\n100, write ,z,2,1,7\n";
    let expected = vec![
        message(0, 500, Kind::Read, 64),
        message(1, 1_250, Kind::ReadModifyWrite, 8),
        message(2, 7_000, Kind::Write, 100),
    ];
    assert_eq!(read_text(text, TraceFormat::Csv), Ok(expected.clone()));
    assert_eq!(read_file("t.csv", text, TraceFormat::Csv), Ok(expected));
}

#[test]
fn an_edm_artifact_read_moves_the_reply_and_a_write_the_data() {
    let text = b"0,1,1,2,8,5840,0\n1,3,1,2,1024,-1,3\n";
    let expected = vec![message(0, 0, Kind::Read, 5_840), message(1, 1_920, Kind::Write, 1_024)];
    assert_eq!(read_text(text, TraceFormat::EdmArtifact), Ok(expected));
}

#[test]
fn bad_csv_is_refused_with_its_line() {
    let header = "arrival_ps,kind,compute,memory,bytes\n";
    let cases = [
        ("5,read,1,2", "t.csv:3: 5,read,1,2: 4 fields: must be 5, as in the header"),
        ("5,read,1,2,64,", "t.csv:3: 5,read,1,2,64,: 6 fields: must be 5, as in the header"),
        ("x,read,1,2,64", "t.csv:3: arrival_ps = x: must be a whole number"),
        ("5.5,read,1,2,64", "t.csv:3: arrival_ps = 5.5: must be a whole number"),
        ("5,get,1,2,64", "t.csv:3: kind = get: must be one of read, write, rmw"),
        ("5,read,-1,2,64", "t.csv:3: compute = -1: must be a whole number"),
        ("5,read,1,8,64", "t.csv:3: memory = 8: must be 0 to 7"),
        ("5,read,2,2,64", "t.csv:3: compute = memory = 2: must be two different nodes"),
        ("5,read,1,2,0", "t.csv:3: bytes = 0 of a read: must be 1 to 1073741824"),
        ("3,read,1,2,64", "t.csv:3: arrival 0.003 ns after 0.004 ns: must not be earlier"),
    ];
    for (row, expected) in cases {
        let text = format!("{header}4,read,1,2,64\n{row}\n");
        assert_eq!(read_text(text.as_bytes(), TraceFormat::Csv), Err(expected.to_owned()));
    }
    let allowed =
        "must be one with arrival_ps or arrival_ns, kind, compute, memory, bytes, each once";
    let twice = |text: &str| format!("t.csv:1: header {text}: {allowed}");
    let [two_sizes, two_arrivals] = [
        "arrival_ps,kind,compute,memory,bytes,bytes",
        "arrival_ns,arrival_ps,kind,compute,memory,bytes",
    ];
    let cases = [
        ("", format!("t.csv: empty: {allowed}")),
        ("# only a comment\n", format!("t.csv: empty: {allowed}")),
        (header, "t.csv: no message: must be one or more rows".to_owned()),
        ("arrival,kind\n", format!("t.csv:1: header arrival,kind: {allowed}")),
        (two_sizes, twice(two_sizes)),
        (two_arrivals, twice(two_arrivals)),
    ];
    for (text, expected) in cases {
        assert_eq!(read_file("t.csv", text.as_bytes(), TraceFormat::Csv), Err(expected));
    }
}

#[test]
fn a_bad_edm_artifact_is_refused_with_its_line() {
    let cases = [
        ("", "t.csv: no message: must be one or more rows"),
        ("0,2,1,2,8,64,0", "t.csv:1: type = 2: must be 1 (read) or 3 (write)"),
        ("0,100,1,2,8,64,0", "t.csv:1: type = 100: must be 1 (read) or 3 (write)"),
        (
            "0,1,1,2,8,64",
            "t.csv:1: 0,1,1,2,8,64: 6 fields: must be 7, \
             id,type,src,dst,bytes,reply_bytes,slot",
        ),
        ("0,1,1,2,8,-1,0", "t.csv:1: reply_bytes = -1: must be a whole number"),
        ("0,3,1,2,0,-1,0", "t.csv:1: bytes = 0 of a write: must be 1 to 1073741824"),
        (
            "0,3,1,2,8,-1,18446744073709551615",
            "t.csv:1: slot = 18446744073709551615: must be \
         at most 53 days",
        ),
        (
            "0,3,1,2,8,-1,5\n1,3,1,2,8,-1,4\n",
            "t.csv:2: arrival 2.560 ns after 3.200 ns: must not \
         be earlier",
        ),
    ];
    for (text, expected) in cases {
        let found = read_text(text.as_bytes(), TraceFormat::EdmArtifact);
        assert_eq!(found, Err(expected.to_owned()));
    }
}

#[test]
fn bad_parquet_is_refused_with_its_row() {
    let cases = [
        (
            message(2, 3, Kind::Read, 64),
            "row 3: arrival 0.003 ns after 0.005 ns: must not be \
         earlier",
        ),
        (
            Message { memory: 9, ..message(2, 5, Kind::Read, 64) },
            "row 3: memory = 9: must be \
         0 to 7",
        ),
    ];
    for (bad, expected) in cases {
        let good = [message(0, 4, Kind::Read, 64), message(1, 5, Kind::Write, 9)];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.parquet");
        let mut source = Recorded::new(&[good[0], good[1], bad]);
        write_trace(&mut source, &path, TraceFormat::Parquet).expect("written");
        let bytes = fs::read(&path).expect("read");
        let found = read_file("t.parquet", &bytes, TraceFormat::Parquet);
        assert_eq!(found, Err(format!("t.parquet: {expected}")));
    }
}

#[test]
fn what_is_no_parquet_is_refused() {
    let whole = parquet_bytes();
    for bytes in [&[][..], b"PAR1", b"arrival_ps\n1\n2\n", &whole[..whole.len() / 2]] {
        let error = read_file("t", bytes, TraceFormat::Parquet).expect_err("not Parquet");
        assert!(error.starts_with("t: not readable as Parquet: "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_trace_that_is_not_there_is_named() {
    for format in TraceFormat::ALL {
        let trace = TraceConfig { path: "no/such/trace".into(), format };
        let error = trace.open(NODES).err().expect("no such file").to_string();
        assert_eq!(error, "no/such/trace: cannot be read: No such file or directory");
    }
}

#[test]
fn csv_and_parquet_keep_every_message() {
    // The trace has more than one batch of rows.
    let messages = synthetic(20_000, 0.2);
    assert_eq!(round_trip(&messages, TraceFormat::Csv), messages);
    assert_eq!(round_trip(&messages, TraceFormat::Parquet), messages);
}

#[test]
fn parquet_keeps_every_row_group() {
    let messages = synthetic(70_000, 0.2);
    assert!(round_trip(&messages, TraceFormat::Parquet) == messages, "a message changed");
}

#[test]
fn the_edm_artifact_keeps_all_but_the_part_of_a_slot() {
    let mut messages = synthetic(1_000, 0.0);
    let read = round_trip(&messages, TraceFormat::EdmArtifact);
    for message in &mut messages {
        message.arrival = Ps(message.arrival.0 / 640 * 640);
    }
    assert_eq!(read, messages);
}

#[test]
fn the_edm_artifact_has_no_atomics() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.csv");
    let mut source = Recorded::new(&[message(0, 0, Kind::ReadModifyWrite, 8)]);
    let error = write_trace(&mut source, &path, TraceFormat::EdmArtifact).expect_err("an atomic");
    assert_eq!(
        without_folder(&error.to_string(), &folder),
        "t.csv: a message of kind rmw: allowed in this format are read, write"
    );
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_in_every_format() {
    let messages = synthetic(10_000, 0.0);
    for format in TraceFormat::ALL {
        let error = write_trace(&mut Recorded::new(&messages), Path::new("/dev/full"), format)
            .expect_err("the device is full");
        let expected = "cannot write /dev/full: No space left on device (os error 28)";
        assert_eq!(error.to_string(), expected, "{format:?}");
    }
}

proptest! {
    // Every case writes, syncs and reads four files.
    #![proptest_config(crate::property::cases(32))]

    #[test]
    fn any_messages_survive_csv_and_parquet(
        rows in prop::collection::vec(
            (0..1_u64 << 40, 0..3_usize, 0..NODES, 1..NODES, 1..=1_u64 << 30), 1..40)
    ) {
        let mut arrival = Ps::ZERO;
        let mut messages = Vec::new();
        for (index, (gap, kind, compute, step, bytes)) in rows.into_iter().enumerate() {
            arrival += Ps(gap);
            let kind = Kind::ALL[kind];
            let bytes = if kind == Kind::ReadModifyWrite { 1 + bytes % 8 } else { bytes };
            let (memory, bytes) = ((compute + step) % NODES, Bytes(bytes));
            messages.push(Message { index: index as u64, arrival, kind, compute, memory, bytes });
        }
        prop_assert_eq!(&round_trip(&messages, TraceFormat::Csv), &messages);
        prop_assert_eq!(&round_trip(&messages, TraceFormat::Parquet), &messages);
    }
}

proptest! {
    #[test]
    fn no_text_is_a_trace_that_no_network_can_carry(
        rows in prop::collection::vec(
            prop::sample::select(&[
                "arrival_ps", "kind", "compute", "memory", "bytes", "read", "write", "rmw", "0",
                "1", "3", "15", "16", "64", "1.5", "1e9", "-1", "18446744073709551615", "", "\"",
                "\n", "\n", "\r\n", "#", "\0", "\u{2028}",
            ][..]),
            0..80)
    ) {
        let text = format!("arrival_ns,kind,compute,memory,bytes\n{}", rows.join(","));
        check_trace(text.as_bytes(), TraceFormat::Csv);
        check_trace(rows.join(",").as_bytes(), TraceFormat::Csv);
        check_trace(rows.join(",").as_bytes(), TraceFormat::EdmArtifact);
    }

    #[test]
    fn no_bytes_are_a_trace_that_no_network_can_carry(bytes: Vec<u8>) {
        for format in TraceFormat::ALL {
            check_trace(&bytes, format);
        }
    }

    // The file is half written after a kill, or a disk flipped bytes in it.
    #[test]
    fn a_damaged_parquet_file_does_no_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length: prop::sample::Index,
        cut: bool,
    ) {
        let mut bytes = parquet_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        check_trace(&bytes, TraceFormat::Parquet);
    }
}
