//! Memory of the machine that a node serves: huge pages if available, near a given NUMA node's
//! CPUs.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use memmap2::{Advice, MmapMut, MmapOptions};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

const HUGE_BITS: u8 = 21;
const HUGE_BYTES: u64 = 1 << HUGE_BITS;
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const NUMA: &str = "/sys/devices/system/node";

/// Kind of pages in a node's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Huge pages reserved for it.
    HugePages,
    /// Huge pages where the kernel finds some; the text says why none were reserved.
    Transparent(String),
    /// Ordinary pages; the text says why.
    Ordinary(String),
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backing::HugePages => f.write_str("huge pages of 2 MiB"),
            Backing::Transparent(why) => {
                write!(f, "transparent huge pages where the kernel finds some ({why})")
            }
            Backing::Ordinary(why) => write!(f, "ordinary pages ({why})"),
        }
    }
}

/// Maps memory of zeros. The system provides each page at its first use.
pub(crate) fn map(bytes: u64, huge_pages: bool) -> io::Result<(MmapMut, Backing)> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    let why = if !huge_pages {
        return Ok((MmapMut::map_anon(length)?, Backing::Ordinary("as was asked for".to_owned())));
    } else if !bytes.is_multiple_of(HUGE_BYTES) {
        format!("{bytes} B are no whole huge pages")
    } else {
        match MmapOptions::new().len(length).huge(Some(HUGE_BITS)).map_anon() {
            Ok(map) => return Ok((map, Backing::HugePages)),
            Err(error) => {
                format!("{} were not to be had: {error}; see vm.nr_hugepages", bytes / HUGE_BYTES)
            }
        }
    };
    let map = MmapMut::map_anon(length)?;
    let off = fs::read_to_string(TRANSPARENT).is_ok_and(|modes| modes.contains("[never]"));
    let advised = map.advise(Advice::HugePage);
    let backing = match advised {
        Ok(()) if !off => Backing::Transparent(why),
        Ok(()) => Backing::Ordinary(format!("{why}, and {TRANSPARENT} says never")),
        Err(error) => Backing::Ordinary(format!("{why}, and none transparently: {error}")),
    };
    Ok((map, backing))
}

/// Binds this thread, and with it the memory that it touches first, to a NUMA node.
///
/// # Errors
/// When no NUMA node has this number, or it may not be used.
pub(crate) fn stay_on(numa_node: u32) -> io::Result<()> {
    let path = format!("{NUMA}/node{numa_node}/cpulist");
    let list = fs::read_to_string(&path).map_err(|error| {
        io::Error::other(format!("{path}: {error}; this machine has {}", numa_nodes().join(", ")))
    })?;
    let mut set = CpuSet::new();
    for cpu in cpus(&list).ok_or_else(|| io::Error::other(format!("{path}: {list:?}")))? {
        set.set(cpu).map_err(io::Error::from)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(io::Error::from)
}

/// Names of this machine's NUMA nodes, if the system gives them.
pub(crate) fn numa_nodes() -> Vec<String> {
    let entries = fs::read_dir(Path::new(NUMA)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let number = |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    let mut nodes: Vec<String> = names.filter(|name| number(name)).collect();
    nodes.sort_by_key(|name| (name.len(), name.clone()));
    nodes
}

/// The CPUs of a list in the kernel's format: `0-3,8`.
fn cpus(list: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpus("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpus("\n"), Some(vec![]));
        assert_eq!(cpus("0-x"), None);
    }

    #[test]
    fn memory_is_zeros_and_says_what_it_is_made_of() {
        for (bytes, huge) in [(3 << 20, true), (4 << 20, true), (4096, true), (4096, false)] {
            let (mut map, backing) = map(bytes, huge).unwrap();
            assert_eq!(map.len() as u64, bytes);
            assert!(map.iter().all(|&octet| octet == 0));
            map.fill(1);
            let uneven = backing.to_string().contains("no whole huge pages");
            assert_eq!(uneven, huge && !bytes.is_multiple_of(HUGE_BYTES), "{backing}");
            assert_eq!(backing.to_string().contains("as was asked for"), !huge, "{backing}");
        }
    }

    #[test]
    fn a_numa_node_that_is_not_there_is_refused_with_those_that_are() {
        let refused = stay_on(4_000_000).unwrap_err().to_string();
        assert!(refused.contains("node4000000") && refused.contains("this machine has"));
    }
}
