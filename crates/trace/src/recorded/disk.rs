//! The binary files of blktrace: `struct blk_io_trace` of `linux/blktrace_api.h`, version 7.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use ethermem_files::InputError;

use super::octets::{Octets, Order};
use crate::ACCESS_BYTES_MAX;

/// Octets of a record without its data.
const RECORD: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
/// Records of one trace in memory, 2 GB.
const EVENTS_MAX: usize = 50_000_000;

// Actions: the low half of the field, without the flag that a cgroup is in the record's data.
const QUEUE: u32 = 1;
const REQUEUE: u32 = 6;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const CGROUP: u32 = 1 << 8;
// Categories: the high half.
const WRITE: u32 = 1 << 1;
const PASSED_THROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const DRIVER_DATA: u32 = 1 << 14;
/// The notification that gives the wall clock.
const CLOCK: u32 = 1;

/// A read or a write of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskAccess {
    /// Time at which it was issued to the device, in ns of the tracer's clock.
    pub issued_ns: u64,
    /// Time of its end, if that is in the trace.
    pub completed_ns: Option<u64>,
    /// The device, as the kernel numbers it.
    pub device: u32,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Number of bytes, at least one.
    pub bytes: u32,
    /// True for a write.
    pub is_write: bool,
}

/// The accesses of a machine to its disks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskTrace {
    /// Accesses in order of their issue.
    pub accesses: Vec<DiskAccess>,
    /// Time of the wall clock less that of the tracer's clock in ns, if a record has both.
    pub wall_less_trace_ns: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Queue,
    Issue,
    Complete,
    Requeue,
}

/// A record that says something about an access.
#[derive(Clone, Copy)]
struct Event {
    at_ns: u64,
    sector: u64,
    device: u32,
    bytes: u32,
    action: Action,
    is_write: bool,
}

#[derive(Default)]
struct Events {
    events: Vec<Event>,
    /// Time of the tracer's clock, and of the wall clock, at the earliest time stamp.
    clock: Option<(u64, i64)>,
}

impl DiskTrace {
    /// Reads a trace: the files of all processors, for one or more devices.
    ///
    /// # Errors
    /// [`InputError`] when a file cannot be read, or is damaged.
    pub fn open(paths: &[PathBuf]) -> Result<DiskTrace, InputError> {
        let mut events = Events::default();
        for path in paths {
            let file = File::open(path).map_err(|e| InputError::io(path, "be read", &e))?;
            events.read(BufReader::new(file), path)?;
        }
        Ok(events.accesses())
    }

    /// The trace of one file.
    pub(super) fn of(reader: impl Read, path: &Path) -> Result<DiskTrace, InputError> {
        let mut events = Events::default();
        events.read(reader, path)?;
        Ok(events.accesses())
    }
}

impl Events {
    fn read(&mut self, reader: impl Read, path: &Path) -> Result<(), InputError> {
        let mut octets = Octets::new(reader, path);
        let (mut order, mut record) = (None, [0; RECORD]);
        loop {
            let start = octets.at();
            if !octets.fill(&mut record, start, "a record of 48 octets")? {
                return Ok(());
            }
            let found = order_of(&record).filter(|found| order.is_none_or(|order| order == *found));
            let Some(found) = found else {
                let magic = record[..4].iter().map(|octet| format!("{octet:02x}"));
                let problem = format!(
                    "{} is no record of blktrace: must be 65617407, in one order of octets",
                    magic.collect::<String>()
                );
                return Err(octets.refuse(start, &problem));
            };
            order = Some(found);
            self.add(&mut octets, found, &record, start)?;
        }
    }

    fn add<R: Read>(
        &mut self,
        octets: &mut Octets<'_, R>,
        order: Order,
        record: &[u8; RECORD],
        start: u64,
    ) -> Result<(), InputError> {
        let (at_ns, sector) = (order.u64(record, 8), order.u64(record, 16));
        let (bytes, action) = (order.u32(record, 24), order.u32(record, 28));
        let device = order.u32(record, 36);
        let data = u64::from(order.u16(record, 46));
        let what = "the data of a record";
        let (category, number) = (action >> 16, action & 0xffff & !CGROUP);
        if category & NOTIFY != 0 && number == CLOCK && data >= 8 {
            let mut clock = [0; 8];
            octets.rest(&mut clock, start, what)?;
            self.stamp(at_ns, order.u32(&clock, 0), order.u32(&clock, 4));
            return octets.skip(data - 8, start, what);
        }
        octets.skip(data, start, what)?;
        let action = match number {
            QUEUE => Action::Queue,
            ISSUE => Action::Issue,
            COMPLETE => Action::Complete,
            REQUEUE => Action::Requeue,
            _ => return Ok(()),
        };
        let moves_nothing = NOTIFY | PASSED_THROUGH | DISCARD | DRIVER_DATA;
        if category & moves_nothing != 0 || bytes == 0 {
            return Ok(());
        }
        if u64::from(bytes) > ACCESS_BYTES_MAX {
            let problem = format!("bytes = {bytes}: must be at most {ACCESS_BYTES_MAX}");
            return Err(octets.refuse(start, &problem));
        }
        if self.events.len() == EVENTS_MAX {
            let problem = format!("more than {EVENTS_MAX} records: must be a shorter trace");
            return Err(octets.refuse(start, &problem));
        }
        let is_write = category & WRITE != 0;
        self.events.push(Event { at_ns, sector, device, bytes, action, is_write });
        Ok(())
    }

    fn stamp(&mut self, at_ns: u64, s: u32, ns: u32) {
        if self.clock.is_none_or(|(earliest, _)| at_ns < earliest) {
            let wall = i64::from(s) * 1_000_000_000 + i64::from(ns);
            self.clock = Some((at_ns, wall));
        }
    }

    /// Accesses, each with its end. On a device without any issue, such as one of device-mapper,
    /// an access begins when it is queued.
    fn accesses(mut self) -> DiskTrace {
        // Files of several processors interleave.
        self.events.sort_by_key(|event| event.at_ns);
        let issues = self.events.iter().filter(|event| event.action == Action::Issue);
        let issuing: BTreeSet<u32> = issues.map(|event| event.device).collect();
        let mut accesses: Vec<Option<DiskAccess>> = Vec::new();
        let mut pending: BTreeMap<(u32, u64, bool), usize> = BTreeMap::new();
        for event in &self.events {
            let Event { at_ns, sector, device, bytes, is_write, .. } = *event;
            let place = (device, sector, is_write);
            let begins = match issuing.contains(&device) {
                true => Action::Issue,
                false => Action::Queue,
            };
            if event.action == begins {
                pending.insert(place, accesses.len());
                let (issued_ns, completed_ns) = (at_ns, None);
                let access =
                    DiskAccess { issued_ns, completed_ns, device, sector, bytes, is_write };
                accesses.push(Some(access));
                continue;
            }
            let ended = match event.action {
                Action::Complete | Action::Requeue => pending.remove(&place),
                Action::Queue | Action::Issue => None,
            };
            if let Some(ended) = ended {
                match event.action {
                    // It will be issued again.
                    Action::Requeue => accesses[ended] = None,
                    _ => {
                        if let Some(access) = &mut accesses[ended] {
                            access.completed_ns = Some(at_ns);
                        }
                    }
                }
            }
        }
        let clock = self.clock.map(|(at_ns, wall)| wall.saturating_sub_unsigned(at_ns));
        DiskTrace { accesses: accesses.into_iter().flatten().collect(), wall_less_trace_ns: clock }
    }
}

fn order_of(record: &[u8; RECORD]) -> Option<Order> {
    let is = |order: &Order| order.u32(record, 0) == MAGIC | VERSION;
    [Order::Little, Order::Big].into_iter().find(is)
}

/// The files that `name` stands for: itself, or the file `NAME.blktrace.N` of each processor.
///
/// # Errors
/// [`InputError`] when there are none.
pub fn disk_files(name: &Path) -> Result<Vec<PathBuf>, InputError> {
    if name.is_file() {
        return Ok(vec![name.to_owned()]);
    }
    let base = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = match name.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let listed = fs::read_dir(folder).map_err(|e| InputError::io(name, "be read", &e))?;
    let mut files: Vec<(u32, PathBuf)> = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|e| InputError::io(folder, "be listed", &e))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let processor = file.strip_prefix(&base).and_then(|rest| rest.strip_prefix(".blktrace."));
        if let Some(processor) = processor.and_then(|number| number.parse().ok()) {
            files.push((processor, entry.path()));
        }
    }
    if files.is_empty() {
        let problem = format!(
            "no such file, and no {base}.blktrace.0: must be files of blktrace, or the name of \
             its -o"
        );
        return Err(InputError::file(name, problem));
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
