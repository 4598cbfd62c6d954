//! A process's mappings, from `/proc`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::protocol::PAGE_BYTES;

/// Contiguous private, anonymous memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnonymousRange {
    /// Range to register as one: up to the next other mapping. Memory that grows or is mapped there
    /// while it is registered is registered entirely or not at all. The kernel moves no mapping of
    /// which only a part is registered.
    pub(crate) whole: Range<u64>,
    /// Parts that the pager may serve: those that are readable and writable now.
    pub(crate) servable: Vec<Range<u64>>,
}

/// The runs of `maps` (the text of `/proc/PID/maps`) that have memory to serve. A run includes none
/// of `borders`. Where `keeps_variables`, it also excludes memory right behind a file's mapping,
/// which may be zeroed variables. Stacks of main threads grow by themselves and stay.
pub(crate) fn runs(
    maps: &str,
    borders: &[Range<u64>],
    keeps_variables: bool,
) -> Vec<AnonymousRange> {
    let (mut found, mut run) = (Vec::new(), None::<AnonymousRange>);
    let mut file_end = None;
    for (range, line) in maps.lines().filter_map(|line| Some((range_of(line)?, line))) {
        let is_variables = keeps_variables && file_end == Some(range.start);
        let is_own = borders.iter().any(|own| own.start < range.end && range.start < own.end);
        if is_anonymous(line) && !is_variables && !is_own {
            let run = run.get_or_insert_with(|| AnonymousRange {
                whole: range.clone(),
                ..AnonymousRange::default()
            });
            run.whole.end = range.end;
            run.servable.extend(is_writable(line).then_some(range));
        } else {
            if let Some(mut run) = run.take() {
                if !line.ends_with("[stack]") {
                    run.whole.end = range.start;
                }
                found.push(run);
            }
            file_end = is_file(line).then_some(range.end);
        }
    }
    found.extend(run);
    found.retain(|run| !run.servable.is_empty());
    found
}

/// The writable private, anonymous memory of `maps`, in order of address.
pub(crate) fn writable(maps: &str) -> Vec<Range<u64>> {
    let lines = maps.lines().filter(|line| is_anonymous(line) && is_writable(line));
    lines.filter_map(range_of).collect()
}

fn range_of(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

fn is_file(line: &str) -> bool {
    line.split_ascii_whitespace().nth(4).is_some_and(|inode| inode != "0")
}

/// True if the mapping is private and not of a file.
fn is_anonymous(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace().skip(1);
    let is_private = words.next().is_some_and(|permissions| permissions.ends_with('p'));
    let is_plain = |name: &str| name == "[heap]" || name.starts_with("[anon:");
    is_private && !is_file(line) && words.nth(3).is_none_or(is_plain)
}

fn is_writable(line: &str) -> bool {
    line.split_ascii_whitespace().nth(1).is_some_and(|permissions| permissions.starts_with("rw"))
}

/// A part of a process's private, anonymous memory whose absent pages are reported.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) range: Range<u64>,
    /// True if it can be written now.
    pub(crate) is_writable: bool,
    /// True if a fork's child has zeroes there (`MADV_WIPEONFORK`).
    pub(crate) is_wiped: bool,
}

/// The registered parts of a process's private, anonymous memory, those with `um` in the file
/// `smaps`, and the number of private pages elsewhere.
pub(crate) fn registered(smaps: &str) -> io::Result<(Vec<Registered>, u64)> {
    let smaps = std::fs::read_to_string(smaps)?;
    Ok((registered_of(&smaps), staying_pages(&smaps)))
}

/// Private pages of the parts that are not registered: variables of libraries, stacks.
fn staying_pages(smaps: &str) -> u64 {
    let (mut pages, mut last) = (0, 0);
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            let kib = size.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<u64>().ok());
            last = kib.unwrap_or(0) * 1024 / PAGE_BYTES as u64;
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            let is_registered = flags.split_ascii_whitespace().any(|flag| flag == "um");
            pages += if is_registered { 0 } else { last };
            last = 0;
        }
    }
    pages
}

fn registered_of(smaps: &str) -> Vec<Registered> {
    let mut found = Vec::new();
    let mut last = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let has = |name| flags.split_ascii_whitespace().any(|flag| flag == name);
            found.extend(last.take().filter(|_| has("um")).map(|(range, is_writable)| {
                Registered { range, is_writable, is_wiped: has("wf") }
            }));
        } else if line.split(':').next().is_some_and(|first| first.contains('-')) {
            let anonymous = range_of(line).filter(|_| is_anonymous(line));
            last = anonymous.map(|range| (range, is_writable(line)));
        }
    }
    found
}

/// Resident pages of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// Pages of private memory.
    pub(crate) private: u64,
    /// Pages of files and of shared memory.
    pub(crate) shared: u64,
}

impl Resident {
    /// Parses the text of `/proc/PID/statm`.
    fn parse(statm: &str) -> Option<Resident> {
        let mut words = statm.split_ascii_whitespace().skip(1);
        let (all, shared): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Resident { private: all.saturating_sub(shared), shared })
    }
}

/// The files of one process that the pager keeps open.
#[derive(Debug)]
pub(crate) struct ProcessFiles {
    maps: String,
    statm: File,
    pub(crate) pagemap: File,
}

impl ProcessFiles {
    /// Opens the files of the process whose folder in `/proc` is `folder`.
    pub(crate) fn open(folder: &str) -> io::Result<ProcessFiles> {
        Ok(ProcessFiles {
            maps: format!("{folder}/maps"),
            statm: File::open(format!("{folder}/statm"))?,
            pagemap: File::open(format!("{folder}/pagemap"))?,
        })
    }

    /// The text of `/proc/PID/maps`.
    pub(crate) fn maps(&self) -> io::Result<String> {
        std::fs::read_to_string(&self.maps)
    }

    /// The process's resident pages now; none when it has ended.
    pub(crate) fn resident(&self) -> Resident {
        let mut text = [0; 128];
        let bytes = self.statm.read_at(&mut text, 0).unwrap_or(0);
        std::str::from_utf8(&text[..bytes]).ok().and_then(Resident::parse).unwrap_or_default()
    }
}

/// Number of the process that `thread` belongs to.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{
        AnonymousRange, ProcessFiles, Registered, Resident, process_of, registered, registered_of,
        runs, staying_pages, writable,
    };

    const MAPS: &str = "\
55d0a0000000-55d0a0021000 rw-p 00000000 00:00 0          [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0000021000-7f0004000000 ---p 00000000 00:00 0
7f1000000000-7f1000001000 rw-s 00000000 00:01 7           /dev/zero (deleted)
7f2000000000-7f2000001000 rw-p 00000000 fe:00 99          /usr/lib/libc.so.6
7f2000001000-7f2000003000 rw-p 00000000 00:00 0
7f3000000000-7f3000001000 rw-p 00000000 00:00 0           [anon:jit heap]
7f3000001000-7f3000002000 r--p 00000000 00:00 0
7f3000005000-7f3000009000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0           [stack]
7ffc00030000-7ffc00034000 r--p 00000000 00:00 0           [vvar]
";

    #[test]
    fn only_private_anonymous_writable_memory_is_served() {
        let found = runs(MAPS, &[], false);
        let servable: Vec<_> = found.iter().flat_map(|run| run.servable.clone()).collect();
        let expected = [
            0x55d0_a000_0000..0x55d0_a002_1000,
            0x7f00_0000_0000..0x7f00_0002_1000,
            0x7f20_0000_1000..0x7f20_0000_3000,
            0x7f30_0000_0000..0x7f30_0000_1000,
            0x7f30_0000_5000..0x7f30_0000_9000,
        ];
        assert_eq!(servable, expected);
    }

    #[test]
    fn what_is_registered_ends_where_something_else_begins() {
        let whole = |runs: Vec<AnonymousRange>| -> Vec<_> {
            runs.into_iter().map(|run| run.whole).collect()
        };
        // The run ends before the stack, which grows towards it.
        let expected = [0x55d0_a000_0000..0x7f10_0000_0000, 0x7f20_0000_1000..0x7f30_0000_9000];
        assert_eq!(whole(runs(MAPS, &[], false)), expected);
        let without_variables = [expected[0].clone(), 0x7f30_0000_0000..0x7f30_0000_9000];
        assert_eq!(whole(runs(MAPS, &[], true)), without_variables);
        let own = 0x7f30_0000_5000..0x7f30_0000_6000;
        let before_own = [expected[0].clone(), 0x7f20_0000_1000..0x7f30_0000_5000];
        assert_eq!(whole(runs(MAPS, &[own], false)), before_own);
        assert_eq!(runs("", &[], false), []);
    }

    #[test]
    fn what_is_registered_is_told_by_the_kernel() {
        let smaps = "\
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
Size:                132 kB
Anonymous:           132 kB
VmFlags: rd wr mr mw me ac um
7f0000021000-7f0000030000 rw-p 00000000 00:00 0
Size:                 60 kB
Anonymous:            12 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000001000 r--p 00000000 00:00 0
VmFlags: rd mr mw me ac wf um
7f2000000000-7f2000001000 rw-p 00000000 fe:00 99          /usr/lib/libc.so.6
VmFlags: rd wr mr mw me ac um
";
        let (writable, protected) =
            (0x7f00_0000_0000..0x7f00_0002_1000, 0x7f10_0000_0000..0x7f10_0000_1000);
        let expected = [
            Registered { range: writable, is_writable: true, is_wiped: false },
            Registered { range: protected, is_writable: false, is_wiped: true },
        ];
        assert_eq!(registered_of(smaps), expected);
        assert_eq!(staying_pages(smaps), 3);
        let (this, staying) = registered("/proc/self/smaps").expect("this process has a map");
        assert_eq!(this, [], "nobody pages this test");
        assert!(staying > 0, "it has variables and a stack");
    }

    #[test]
    fn files_do_not_count_as_occupied() {
        let resident = Resident { private: 400, shared: 32 };
        assert_eq!(Resident::parse("700 432 32 10 0 100 0\n"), Some(resident));
        assert_eq!(Resident::parse(""), None);
    }

    #[test]
    fn what_lies_beside_a_border_is_no_part_of_it() {
        let whole: Vec<AnonymousRange> = runs(MAPS, &[], false);
        for own in [0x55d0_9fff_e000..0x55d0_a000_0000, 0x7f30_0000_9000..0x7f30_0000_a000] {
            assert_eq!(runs(MAPS, &[own], false), whole);
        }
        for own in [0x55d0_9fff_e000..0x55d0_a000_0001, 0x7f30_0000_8fff..0x7f30_0000_a000] {
            assert_ne!(runs(MAPS, &[own], false), whole);
        }
    }

    #[test]
    fn what_a_process_has_is_read_from_its_folder() {
        let this = ProcessFiles::open("/proc/self").expect("this process lives");
        let held = vec![7_u8; 1 << 20];
        let here = held.as_ptr().addr() as u64;
        let maps = this.maps().expect("it has a map");
        assert!(writable(&maps).iter().any(|range| range.contains(&here)), "{here:x}");
        let before = this.resident().private;
        let pages = 4096;
        let memory = vec![1_u8; pages * crate::protocol::PAGE_BYTES];
        let more = this.resident().private.saturating_sub(before);
        assert!(more >= pages as u64 / 2, "{more} pages more");
        drop(memory);
        let folder = tempfile::tempdir().expect("a folder");
        let smaps = folder.path().join("smaps");
        let text = "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\nVmFlags: rd wr um\n";
        std::fs::write(&smaps, text).expect("room");
        let found = registered(smaps.to_str().expect("a name")).expect("it is there");
        assert_eq!(found, (registered_of(text), 0));
        assert_eq!(found.0.len(), 1);
        assert!(registered("/proc/self/none").is_err());
    }

    #[test]
    fn a_thread_is_of_its_process() {
        let of_thread =
            std::thread::spawn(|| process_of(nix::unistd::gettid().as_raw().unsigned_abs()));
        let found = of_thread.join().expect("it ended");
        assert_eq!(found, Some(std::process::id()));
        assert_eq!(process_of(u32::MAX), None);
    }
}
