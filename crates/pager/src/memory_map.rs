//! What a process has mapped, as `/proc` tells it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The parts of `maps` (the text of `/proc/PID/maps`) that the pager may serve: private, anonymous
/// memory that can be read or written now. Stacks of main threads grow by themselves and stay.
pub(crate) fn servable(maps: &str) -> Vec<Range<u64>> {
    maps.lines().filter_map(servable_line).collect()
}

fn servable_line(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_ascii_whitespace();
    let (range, permissions) = (words.next()?, words.next()?);
    let (_offset, _device, inode) = (words.next()?, words.next()?, words.next()?);
    let name = words.next();
    let anonymous =
        inode == "0" && name.is_none_or(|name| name == "[heap]" || name.starts_with("[anon:"));
    if !anonymous || !permissions.starts_with("rw") || !permissions.ends_with('p') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

/// What of `process` may be served and has its absent pages told of (`um` in `smaps`).
pub(crate) fn registered(process: u32) -> io::Result<Vec<Range<u64>>> {
    Ok(registered_of(&std::fs::read_to_string(format!("/proc/{process}/smaps"))?))
}

fn registered_of(smaps: &str) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut range = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let is_told = flags.split_ascii_whitespace().any(|flag| flag == "um");
            found.extend(range.take().filter(|_| is_told));
        } else if line.split(':').next().is_some_and(|first| first.contains('-')) {
            range = servable_line(line);
        }
    }
    found
}

/// Pages of private memory that a process occupies, from the text of `/proc/PID/statm`: resident,
/// without those of files and shared memory.
fn occupied(statm: &str) -> Option<u64> {
    let mut words = statm.split_ascii_whitespace().skip(1);
    let (resident, shared): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(resident.saturating_sub(shared))
}

/// The files of one process that the pager keeps open.
#[derive(Debug)]
pub(crate) struct ProcessFiles {
    maps: String,
    statm: File,
    pub(crate) pagemap: File,
}

impl ProcessFiles {
    pub(crate) fn open(process: u32) -> io::Result<ProcessFiles> {
        Ok(ProcessFiles {
            maps: format!("/proc/{process}/maps"),
            statm: File::open(format!("/proc/{process}/statm"))?,
            pagemap: File::open(format!("/proc/{process}/pagemap"))?,
        })
    }

    /// What may be served now.
    pub(crate) fn servable(&self) -> io::Result<Vec<Range<u64>>> {
        Ok(servable(&std::fs::read_to_string(&self.maps)?))
    }

    /// Pages of private memory that the process occupies now; none when it has ended.
    pub(crate) fn occupied(&self) -> u64 {
        let mut text = [0; 128];
        let bytes = self.statm.read_at(&mut text, 0).unwrap_or(0);
        std::str::from_utf8(&text[..bytes]).ok().and_then(occupied).unwrap_or(0)
    }
}

/// The process that `thread` belongs to.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{occupied, registered, registered_of, servable};

    #[test]
    fn only_private_anonymous_writable_memory_is_served() {
        let maps = "\
55d0a0000000-55d0a0021000 rw-p 00000000 00:00 0          [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0000021000-7f0004000000 ---p 00000000 00:00 0
7f1000000000-7f1000001000 rw-s 00000000 00:01 7           /dev/zero (deleted)
7f2000000000-7f2000001000 rw-p 00000000 fe:00 99          /usr/lib/libc.so.6
7f3000000000-7f3000001000 rw-p 00000000 00:00 0           [anon:jit heap]
7f3000001000-7f3000002000 r--p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0           [stack]
7ffc00030000-7ffc00034000 r--p 00000000 00:00 0           [vvar]
";
        let found = servable(maps);
        let starts: Vec<u64> = found.iter().map(|range| range.start).collect();
        assert_eq!(starts, [0x55d0_a000_0000, 0x7f00_0000_0000, 0x7f30_0000_0000]);
        assert_eq!(found[1].end, 0x7f00_0002_1000);
    }

    #[test]
    fn what_is_registered_is_told_by_the_kernel() {
        let smaps = "\
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
Size:                132 kB
VmFlags: rd wr mr mw me ac um
7f0000021000-7f0000030000 rw-p 00000000 00:00 0
Size:                 60 kB
VmFlags: rd wr mr mw me ac
7f2000000000-7f2000001000 rw-p 00000000 fe:00 99          /usr/lib/libc.so.6
VmFlags: rd wr mr mw me ac um
";
        let found = registered_of(smaps);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0], 0x7f00_0000_0000..0x7f00_0002_1000);
        let this = std::process::id();
        assert_eq!(registered(this).expect("this process has a map"), [], "nobody pages this test");
    }

    #[test]
    fn files_do_not_count_as_occupied() {
        assert_eq!(occupied("700 432 32 10 0 100 0\n"), Some(400));
        assert_eq!(occupied(""), None);
    }
}
