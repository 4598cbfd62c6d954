//! Pages that must stay in memory because of threads that end.
//!
//! When a thread ends, the kernel writes a zero for the threads that join it, and marks the locks
//! it held. It does so when faults are no longer reported. If the page were absent, the write would
//! be dropped and the joining thread would wait for ever. Both words lie in the C library's
//! descriptor of the thread, near the list of robust locks, whose address the kernel gives.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use nix::libc;
use nix::unistd::Pid;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::protocol::PAGE_BYTES;

/// The word for joining threads lies at most this many bytes before the list.
const BEFORE_LIST: u64 = 64;
const PAUSE: Duration = Duration::from_millis(5);
/// The C library reuses the stack and descriptor of an ended thread for the next one. This many
/// recent descriptors stay held, because the next thread may end before it is found.
const ENDED_MAX: usize = 1024;

/// The descriptors of a process's threads.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    threads: FxHashMap<u32, u64>,
    /// Descriptors of ended threads, the latest at the end.
    ended: VecDeque<u64>,
    pages: FxHashSet<u64>,
    looked: Option<Instant>,
    /// Pages taken out since the last look.
    taken: usize,
}

impl Descriptors {
    /// True if `page` holds a descriptor.
    pub(crate) fn holds(&self, page: u64) -> bool {
        self.pages.contains(&page)
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Looks for new threads in `tasks`, a folder in `/proc`. It looks from time to time, and
    /// before a page of a new thread could have passed through a queue of `queued` pages.
    pub(crate) fn look(&mut self, tasks: &str, queued: usize, wanted: usize) {
        self.taken += wanted;
        let is_fresh = self.looked.is_some_and(|looked| looked.elapsed() < PAUSE);
        if is_fresh && self.taken < queued / 4 {
            return;
        }
        let Ok(threads) = threads(tasks) else { return };
        let threads: FxHashSet<u32> =
            threads.into_iter().map(|thread| thread.as_raw().unsigned_abs()).collect();
        let gone = self.threads.extract_if(|thread, _| !threads.contains(thread));
        let gone: Vec<u64> = gone.map(|(_, list)| list).collect();
        let mut changed = !gone.is_empty();
        self.ended.retain(|list| !gone.contains(list));
        self.ended.extend(gone);
        self.ended.drain(..self.ended.len().saturating_sub(ENDED_MAX));
        for thread in threads {
            // A thread has no list in its first moments; the next look asks again.
            if !self.threads.contains_key(&thread)
                && let Some(list) = list_of(thread)
            {
                self.threads.insert(thread, list);
                changed = true;
            }
        }
        if changed {
            let page_of = |address: u64| address & !(PAGE_BYTES as u64 - 1);
            let both = |list: &u64| [page_of(*list), page_of(*list - BEFORE_LIST)];
            self.pages = self.threads.values().chain(&self.ended).flat_map(both).collect();
        }
        (self.looked, self.taken) = (Some(Instant::now()), 0);
    }
}

/// Numbers of the threads in `tasks`, a folder of `/proc`.
pub(crate) fn threads(tasks: &str) -> io::Result<Vec<Pid>> {
    let number = |name: OsString| name.to_str()?.parse().ok().map(Pid::from_raw);
    let entries = std::fs::read_dir(tasks)?;
    Ok(entries.filter_map(|entry| number(entry.ok()?.file_name())).collect())
}

/// Address of the list of robust locks of `thread`, if it has one.
fn list_of(thread: u32) -> Option<u64> {
    let (mut head, mut bytes) = (0u64, 0usize);
    // SAFETY: both results have room, and the thread is named by its number.
    let result =
        unsafe { libc::syscall(libc::SYS_get_robust_list, thread, &raw mut head, &raw mut bytes) };
    (result == 0 && head > BEFORE_LIST).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::{BEFORE_LIST, Descriptors, list_of};
    use crate::protocol::PAGE_BYTES;

    #[test]
    fn the_descriptors_of_this_process_are_found() {
        let this = nix::unistd::gettid().as_raw().unsigned_abs();
        let list = list_of(this).expect("the C library gives every thread one");
        let mut descriptors = Descriptors::default();
        descriptors.look("/proc/self/task", 0, 0);
        assert!(descriptors.holds(list & !(PAGE_BYTES as u64 - 1)));
        assert!(!descriptors.holds(0));
        // SAFETY: in glibc, `pthread_self` is the address of the descriptor.
        let begins = unsafe { nix::libc::pthread_self() };
        assert!((begins..begins + 4096).contains(&list), "{begins:x} {list:x}");
    }

    /// A descriptor stays held after its thread has ended, because the next thread reuses it.
    #[test]
    fn the_descriptors_of_threads_that_come_and_go_are_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let tasks = folder.path().to_str().expect("a name");
        let page_of = |address: u64| address & !(PAGE_BYTES as u64 - 1);
        let (mut descriptors, mut lists) = (Descriptors::default(), Vec::new());
        for count in 1..=3 {
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let this = nix::unistd::gettid().as_raw().unsigned_abs();
                tell.send((this, list_of(this).expect("a list"))).expect("heard");
                let _ = ended.recv();
            });
            let (number, list) = told.recv().expect("it began");
            std::fs::write(folder.path().join(number.to_string()), "").expect("room");
            std::fs::write(folder.path().join("no number"), "").expect("room");
            // So many pages are taken out that a look cannot be postponed.
            descriptors.look(tasks, 400, 100);
            assert_eq!(descriptors.threads(), 1, "{count}");
            assert!(descriptors.holds(page_of(list)));
            assert!(descriptors.holds(page_of(list - BEFORE_LIST)));
            drop(end);
            thread.join().expect("it ended");
            std::fs::remove_file(folder.path().join(number.to_string())).expect("it was there");
            descriptors.look(tasks, 400, 100);
            assert_eq!(descriptors.threads(), 0, "{count}");
            lists.push(list);
            assert!(lists.iter().all(|&list| descriptors.holds(page_of(list))), "{count}");
            let places: std::collections::BTreeSet<u64> = lists.iter().copied().collect();
            assert_eq!(descriptors.ended.len(), places.len(), "{count}");
        }
    }
}
