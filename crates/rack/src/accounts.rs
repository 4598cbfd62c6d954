//! The rack's accounts: a file in shared memory, and what a run adds up from it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use memmap2::MmapMut;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getuid};
use serde::Serialize;

use crate::Error;
use crate::ledger::{Count, LEFT, Ledger, MAGIC, Row};

/// What the programs of one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the rack.
    pub rack: String,
    /// Processes that ran.
    pub processes: u64,
    /// Processes that still run: their numbers are those of now.
    pub running: u64,
    /// Ends of connections in memory; a connection within the run has two.
    pub ends_in_memory: u64,
    /// Bytes sent through memory.
    pub memory_bytes: u64,
    /// Bytes of these that were sent by reference, without a copy.
    pub reference_bytes: u64,
    /// Bytes that the rack's connections sent by the kernel.
    pub kernel_bytes: u64,
    /// Bells put into sockets.
    pub bells: u64,
    /// Bytes of the pool that were mapped.
    pub mapped_bytes: u64,
    /// Bytes of the pool that programs unmapped.
    pub unmapped_bytes: u64,
    /// Bytes of the pool that came back from processes that were killed.
    pub recovered_bytes: u64,
    /// Connections whose other end runs no library.
    pub without_library: u64,
    /// Connections without room in the pool or in their process.
    pub without_room: u64,
    /// Connections that returned to the kernel because of a call.
    pub returned: u64,
    /// Times that the kernel took bytes because a ring was full or its reader gone.
    pub overflows: u64,
    /// Connections whose other end stored words that cannot be.
    pub faults: u64,
    /// Unread bytes of connections that returned to the kernel, put aside for the next reader.
    pub carried_bytes: u64,
    /// Bytes that were put aside and that no program has read.
    pub stranded_bytes: u64,
    /// Connections to other racks that went by all NICs.
    pub by_nics: u64,
    /// Connections to other racks that the kernel carried.
    pub not_by_nics: u64,
    /// True if all bytes that ended processes had mapped have come back.
    pub is_closed: bool,
}

/// The accounts of one rack.
#[derive(Debug)]
pub struct Accounts {
    map: MmapMut,
    file: File,
    path: PathBuf,
}

impl Accounts {
    /// Opens or makes the accounts of the rack of this name.
    ///
    /// # Errors
    /// [`Error::Accounts`].
    pub fn open(rack: &str) -> Result<Accounts, Error> {
        let path = PathBuf::from(format!("/dev/shm/ethermem-rack-{}-{rack}", getuid()));
        Accounts::open_at(&path).map_err(|error| Error::Accounts { path, what: error.to_string() })
    }

    fn open_at(path: &Path) -> io::Result<Accounts> {
        let file = loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
            file.lock()?;
            // A run that ended meanwhile may have removed it.
            let there = path.metadata().map(|meta| meta.ino());
            if there.is_ok_and(|there| file.metadata().is_ok_and(|own| own.ino() == there)) {
                break file;
            }
        };
        let meta = file.metadata()?;
        if !meta.is_file() || meta.uid() != getuid().as_raw() || meta.mode() & 0o077 != 0 {
            return Err(io::Error::other("must be a file that only this user may use"));
        }
        let bytes = size_of::<Ledger>() as u64;
        let is_new = meta.len() == 0;
        if is_new {
            file.set_len(bytes)?;
        } else if meta.len() != bytes {
            return Err(io::Error::other("has another version's size; remove it"));
        }
        // SAFETY: other processes change the file only by the ledger's atomics.
        let map = unsafe { MmapMut::map_mut(&file)? };
        let accounts = Accounts { map, file, path: path.to_owned() };
        let magic = &accounts.ledger().magic;
        if is_new {
            magic.store(MAGIC, Ordering::Release);
        } else if magic.load(Ordering::Acquire) != MAGIC {
            return Err(io::Error::other("is of another version; remove it"));
        }
        accounts.sweep();
        // This row keeps the file until the run ends.
        let own = std::process::id();
        if accounts.ledger().row(own, own).is_none() {
            return Err(io::Error::other("has no row left: too many processes in this rack"));
        }
        accounts.file.unlock()?;
        Ok(accounts)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        // SAFETY: the mapping has the ledger's size, is aligned to a page, and lasts as long as
        // `self`; any bytes are valid atomics.
        unsafe { &*self.map.as_ptr().cast::<Ledger>() }
    }

    /// Frees the rows of ended runs.
    fn sweep(&self) {
        for row in &self.ledger().rows {
            let run = row.run.load(Ordering::Acquire);
            if run != 0 && !is_running(run) && !is_running(row.process.load(Ordering::Acquire)) {
                self.free(row);
            }
        }
    }

    /// Frees a row, and returns the bytes that its process had not given back.
    fn free(&self, row: &Row) -> u64 {
        let left = row.get(Count::Mapped).saturating_sub(row.get(Count::Unmapped));
        self.ledger().give(left);
        row.clear();
        row.process.store(0, Ordering::Release);
        row.run.store(0, Ordering::Release);
        left
    }

    /// Adds up the rows of this run; the rows of its ended processes become free. The last run of a
    /// rack removes the file.
    #[must_use]
    pub fn settle(self, rack: &str) -> Report {
        // Without the lock, a file of an ended rack may stay.
        let is_locked = self.file.lock().is_ok();
        let run = std::process::id();
        let mut report = Report { rack: rack.to_owned(), ..Report::default() };
        if let Some(own) = self.ledger().row(run, run) {
            self.free(own);
        }
        let is_own = |row: &&Row| row.run.load(Ordering::Acquire) == run;
        for row in self.ledger().rows.iter().filter(is_own) {
            report.add(row);
            if is_running(row.process.load(Ordering::Acquire)) {
                report.running += 1;
            } else {
                report.recovered_bytes += self.free(row);
            }
        }
        let in_use = self.ledger().pool_bytes.load(Ordering::Acquire);
        let rows = self.ledger().rows.iter();
        let others = rows.filter(|row| row.run.load(Ordering::Acquire) != 0).count();
        let given_back = report.unmapped_bytes + report.recovered_bytes;
        report.stranded_bytes = report.carried_bytes.saturating_sub(report.stranded_bytes);
        report.is_closed = (report.running > 0 || report.mapped_bytes == given_back)
            && (others > 0 || in_use == 0);
        if is_locked && others == 0 {
            // It fails only if a file is gone.
            let _ = std::fs::remove_file(&self.path);
            self.remove_left();
        }
        report
    }
}

impl Accounts {
    /// Removes the bytes that no program has read.
    fn remove_left(&self) {
        let mut start = self.path.file_name().unwrap_or_default().to_owned();
        start.push(LEFT);
        let files = self.path.parent().and_then(|folder| folder.read_dir().ok());
        for file in files.into_iter().flatten().flatten() {
            if file.file_name().as_encoded_bytes().starts_with(start.as_encoded_bytes()) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

impl Report {
    fn add(&mut self, row: &Row) {
        self.processes += 1;
        for (sum, count) in [
            (&mut self.ends_in_memory, Count::Joined),
            (&mut self.memory_bytes, Count::MemoryBytes),
            (&mut self.reference_bytes, Count::ReferenceBytes),
            (&mut self.kernel_bytes, Count::KernelBytes),
            (&mut self.bells, Count::Bells),
            (&mut self.mapped_bytes, Count::Mapped),
            (&mut self.unmapped_bytes, Count::Unmapped),
            (&mut self.without_library, Count::NoLibrary),
            (&mut self.without_room, Count::NoRoom),
            (&mut self.returned, Count::Returned),
            (&mut self.overflows, Count::Overflows),
            (&mut self.faults, Count::Faults),
            (&mut self.carried_bytes, Count::Carried),
            (&mut self.by_nics, Count::ByNics),
            (&mut self.not_by_nics, Count::NotByNics),
            // What was read is taken off at the end.
            (&mut self.stranded_bytes, Count::Claimed),
        ] {
            *sum += row.get(count);
        }
    }

    /// The report for people.
    #[must_use]
    pub fn table(&self) -> String {
        let fallbacks = self.without_library + self.without_room + self.returned;
        let closed = if self.is_closed { "closed" } else { "OPEN" };
        format!(
            "rack {}: {} processes, {} still running\n\
             by memory   {} ends, {} B, {} B of them by reference, {} bells\n\
             by kernel   {} B; {fallbacks} connections: {} without library, {} without room, \
             {} returned; {} overflows, {} faults\n\
             carried     {} B to other readers, {} B STRANDED\n\
             racks       {} connections by all NICs, {} by the kernel\n\
             pool        {} B mapped, {} B unmapped, {} B recovered: {closed}\n",
            self.rack,
            self.processes,
            self.running,
            self.ends_in_memory,
            self.memory_bytes,
            self.reference_bytes,
            self.bells,
            self.kernel_bytes,
            self.without_library,
            self.without_room,
            self.returned,
            self.overflows,
            self.faults,
            self.carried_bytes,
            self.stranded_bytes,
            self.by_nics,
            self.not_by_nics,
            self.mapped_bytes,
            self.unmapped_bytes,
            self.recovered_bytes,
        )
    }
}

fn is_running(process: u32) -> bool {
    let Ok(number) = i32::try_from(process) else { return false };
    process != 0 && kill(Pid::from_raw(number), None) != Err(Errno::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: u32 = 0x3fff_ffff;

    #[test]
    fn the_bytes_of_a_killed_process_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let accounts = Accounts::open_at(&path).unwrap();
        let own = std::process::id();
        let row = accounts.ledger().row(own, NONE).unwrap();
        assert!(accounts.ledger().take(100, 150) && !accounts.ledger().take(100, 150));
        row.add(Count::Mapped, 100);
        row.add(Count::Unmapped, 30);
        accounts.ledger().give(30);
        row.add(Count::Carried, 10);
        row.add(Count::Claimed, 4);
        let left = folder.path().join("ledger-left-0123456789abcdef");
        std::fs::write(&left, "unread").unwrap();
        let report = accounts.settle("r");
        assert_eq!((report.processes, report.recovered_bytes, report.is_closed), (1, 70, true));
        assert_eq!((report.carried_bytes, report.stranded_bytes), (10, 6));
        assert!(!path.exists() && !left.exists(), "no other run uses them");
    }

    #[test]
    fn a_file_that_others_may_use_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = || Accounts::open_at(&path).unwrap_err().to_string();
        assert!(open().contains("only this user"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(open().contains("another version"));
    }
}
