//! Tests: each page keeps its content, whatever becomes of its address, and no place is lost.

use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::*;
use crate::delay::{Delay, Link};
use crate::pager::{Local, Setup};
use crate::protocol::{feature, request};
use crate::record::Nothing;
use crate::store::{InProcess, Store};

const PAGE: u64 = PAGE_BYTES as u64;

/// A file to which no request of a userfaultfd means anything: a process lives and changes nothing.
fn null() -> OwnedFd {
    File::open("/dev/null").expect("it is there").into()
}

fn faults() -> fault::Faults {
    fault::Faults::new(null()).expect("a file")
}

/// The userfaultfd of a process that has ended, if the kernel allows one.
fn faults_of_the_ended() -> Option<fault::Faults> {
    const NONE: i32 = 255;
    let flags = libc::c_long::from(libc::CLONE_FILES | libc::SIGCHLD);
    // SAFETY: as `fork`, with a table of files in common. The child makes system calls alone, with
    // numbers and with memory that it has.
    let child = unsafe {
        let child = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
        if child == 0 {
            let file = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32;
            let mut words = [request::API_VERSION, feature::ALL, 0];
            let is_ready = libc::ioctl(file, request::API, words.as_mut_ptr()) == 0;
            libc::_exit(if is_ready && file < NONE { file } else { NONE });
        }
        child
    };
    let child = Pid::from_raw(i32::try_from(child).expect("a number"));
    match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, file)) if file != NONE => {
            // SAFETY: the child made the descriptor in the common table, and nothing else owns it.
            let file = unsafe { OwnedFd::from_raw_fd(file) };
            Some(fault::Faults::new(file).expect("a file"))
        }
        _ => {
            let line = "SKIPPED: userfaultfd: this process may not make one\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            None
        }
    }
}

/// Calls `test` with a pager that serves one process, which is number 0.
fn with_pager(test: impl FnOnce(&mut Pager<'_>)) {
    let mut recorder = Nothing;
    let mut pager = Pager::new(
        Setup {
            local: Local::All,
            placement: crate::place::Placement::Free,
            prefetch: false,
            store: Store::new(Box::new(InProcess::default())),
            link: Link::new(Delay::None),
            recorder: &mut recorder,
        },
        7,
    );
    pager.standby.widen(8);
    let id = pager.add(Process::new(faults()));
    assert_eq!(id, 0);
    test(&mut pager);
}

/// Stores `content` as the page at `page`.
fn store(pager: &mut Pager<'_>, id: usize, page: u64, content: u8) {
    let slot = pager.setup.store.save(None, &[content; PAGE_BYTES]).expect("room");
    let process = pager.processes.get_mut(&id).expect("it lives");
    let hash = u128::from(content);
    *process.table.entry(page) = Page { state: State::Stored, slot, hash, ..Page::default() };
}

/// Puts `content` on standby as the page at `page`.
fn put_by(pager: &mut Pager<'_>, id: usize, page: u64, content: u8) {
    let owner = Owner { process: id, page };
    let standby = pager.standby.push(owner, &[content; PAGE_BYTES]).expect("room");
    let process = pager.processes.get_mut(&id).expect("it lives");
    *process.table.entry(page) = Page { state: State::Standby, standby, ..Page::default() };
}

fn entry(pager: &Pager<'_>, id: usize, page: u64) -> Page {
    pager.processes[&id].table.get(page)
}

/// State of the page, and the first byte of what is stored of it.
fn stored(pager: &mut Pager<'_>, id: usize, page: u64) -> (State, Option<u8>) {
    let Page { state, slot, .. } = entry(pager, id, page);
    let mut content = vec![0; PAGE_BYTES];
    let found = (slot != NO_SLOT).then(|| pager.setup.store.load(&[slot], &mut content));
    (state, found.map(|found| found.map(|()| content[0]).expect("it is stored")))
}

fn served(pager: &Pager<'_>, id: usize) -> Vec<std::ops::Range<u64>> {
    pager.processes[&id].served.iter().collect()
}

/// An announcement whose own memory lies beside all that the tests use.
fn hello() -> Hello {
    Hello { staging: 1 << 32, probe: 1 << 33, ..Hello::default() }
}

fn child(pager: &mut Pager<'_>) -> usize {
    let forked = pager.fork(0, null().into_raw_fd()).expect("it is adopted");
    forked.expect("its parent lives")
}

#[test]
fn a_forks_child_has_the_content_that_its_parent_had() {
    with_pager(|pager| {
        store(pager, 0, PAGE, 5);
        put_by(pager, 0, 2 * PAGE, 6);
        put_by(pager, 0, 3 * PAGE, 0);
        store(pager, 0, 5 * PAGE, 9);
        let process = pager.processes.get_mut(&0).expect("it lives");
        (process.probe, process.injected) = (77 * PAGE, Some(hello()));
        process.table.entry(4 * PAGE).state = State::Removed;
        // A page that the program has changed since: only its old content is stored.
        (process.table.entry(5 * PAGE).state, process.table.entry(5 * PAGE).queued) =
            (State::Unknown, true);
        process.table.entry(6 * PAGE).queued = true;
        let id = child(pager);
        assert_eq!(id, 1);
        let born = &pager.processes[&id];
        assert_eq!((born.probe, born.injected), (77 * PAGE, Some(hello())));
        let origin = born.origin.as_ref().expect("it is not settled");
        assert_eq!((origin.parent, origin.moved.len()), (0, 0));
        assert_eq!(pager.standby.pages(), 0, "two processes cannot share a page there");
        let all = [
            (State::Unknown, None),
            (State::Stored, Some(5)),
            (State::Stored, Some(6)),
            (State::Unknown, None),
            (State::Removed, None),
            (State::Unknown, Some(9)),
            (State::Unknown, None),
        ];
        for (at, expected) in all.into_iter().enumerate() {
            let page = at as u64 * PAGE;
            for id in [0, id] {
                assert_eq!(stored(pager, id, page), expected, "page {at} of {id}");
            }
            assert!(!entry(pager, id, page).queued, "page {at}: the child has a queue of its own");
        }
        assert!(entry(pager, 0, 5 * PAGE).queued && entry(pager, 0, 6 * PAGE).queued);
        // Each of the two is a user of what is stored.
        assert_eq!(pager.setup.store.pages(), 3);
        pager.unmap(0, 0, 100 * PAGE);
        assert_eq!(pager.setup.store.pages(), 3);
        assert_eq!(stored(pager, id, 2 * PAGE), (State::Stored, Some(6)));
        pager.unmap(id, 0, 100 * PAGE);
        assert_eq!(pager.setup.store.pages(), 0);
        assert_eq!(pager.fork(99, null().into_raw_fd()), Ok(None), "its parent has ended");
    });
}

#[test]
fn pages_that_move_keep_their_content_and_their_places_in_every_list() {
    for kept in [false, true] {
        with_pager(|pager| {
            let (from, to) = (16 * PAGE, 64 * PAGE);
            store(pager, 0, from, 5);
            put_by(pager, 0, from + PAGE, 6);
            // Neighbours on both sides, which stay.
            store(pager, 0, from - PAGE, 7);
            store(pager, 0, from + 3 * PAGE, 8);
            // What was at the new addresses is gone, and its neighbours are not.
            store(pager, 0, to, 1);
            put_by(pager, 0, to + 2 * PAGE, 2);
            store(pager, 0, to - PAGE, 3);
            store(pager, 0, to + 3 * PAGE, 4);
            let process = pager.processes.get_mut(&0).expect("it lives");
            process.table.entry(from).queued = true;
            process.served.insert(from..from + 4 * PAGE);
            pager.remap(0, from, to, 3 * PAGE, kept);
            let is_at = |pager: &mut Pager<'_>, page| stored(pager, 0, page);
            assert_eq!(is_at(pager, to), (State::Stored, Some(5)));
            assert_eq!(is_at(pager, to + PAGE), (State::Standby, None));
            for (page, content) in
                [(from - PAGE, 7), (from + 3 * PAGE, 8), (to - PAGE, 3), (to + 3 * PAGE, 4)]
            {
                assert_eq!(is_at(pager, page), (State::Stored, Some(content)), "{page:x}");
            }
            for page in [from, from + PAGE, from + 2 * PAGE, to + 2 * PAGE] {
                assert_eq!(is_at(pager, page), (State::Unknown, None), "{page:x}");
            }
            assert_eq!((pager.setup.store.pages(), pager.standby.pages()), (5, 1));
            assert_eq!(pager.processes[&0].queue.pages(), [to], "it is queued where it is now");
            let place = entry(pager, 0, to + PAGE).standby;
            assert_eq!(pager.standby.page(place)[0], 6);
            let oldest = pager.standby.oldest();
            assert_eq!(oldest, Some((Owner { process: 0, page: to + PAGE }, place)));
            let first = if kept { from } else { from + 3 * PAGE };
            let all = [first..from + 4 * PAGE, to..to + 3 * PAGE];
            assert_eq!(served(pager, 0), all, "kept: {kept}");
        });
    }
}

#[test]
fn moves_after_a_fork_are_kept_for_the_children_of_that_parent_alone() {
    with_pager(|pager| {
        let id = child(pager);
        let other = pager.add(Process::new(faults()));
        pager.remap(other, PAGE, 4 * PAGE, PAGE, false);
        pager.remap(0, PAGE, 8 * PAGE, 2 * PAGE, true);
        let origin = pager.processes[&id].origin.as_ref().expect("it is not settled");
        assert_eq!(origin.moved, [(PAGE, 8 * PAGE, 2 * PAGE)]);
    });
}

#[test]
fn what_was_discarded_is_zeroes_and_takes_no_place() {
    with_pager(|pager| {
        for page in 1..6 {
            store(pager, 0, page * PAGE, page as u8);
        }
        put_by(pager, 0, 6 * PAGE, 6);
        let process = pager.processes.get_mut(&0).expect("it lives");
        process.served.insert(0..8 * PAGE);
        pager.remove(0, 2 * PAGE, 4 * PAGE);
        let states =
            |pager: &Pager<'_>| [1, 2, 3, 4, 5, 6].map(|page| entry(pager, 0, page * PAGE).state);
        let (kept, gone, none) = (State::Stored, State::Removed, State::Unknown);
        assert_eq!(states(pager), [kept, gone, gone, kept, kept, State::Standby]);
        assert_eq!(pager.setup.store.pages(), 3);
        assert_eq!(served(pager, 0).as_slice(), std::slice::from_ref(&(0..8 * PAGE)));
        pager.unmap(0, 4 * PAGE, 7 * PAGE);
        assert_eq!(states(pager), [kept, gone, gone, none, none, none]);
        assert_eq!((pager.setup.store.pages(), pager.standby.pages()), (1, 0));
        assert_eq!(served(pager, 0), [0..4 * PAGE, 7 * PAGE..8 * PAGE]);
    });
}

/// An agent can be killed while its program goes on; what is stored is served all the same.
#[test]
fn a_process_without_an_agent_loses_nothing_and_is_waited_for_no_more() {
    with_pager(|pager| {
        store(pager, 0, PAGE, 5);
        let ordered = |pager: &mut Pager<'_>| {
            let process = pager.processes.get_mut(&0).expect("it lives");
            process.ordered = Some(vec![PAGE]);
        };
        ordered(pager);
        pager.ended(0);
        assert!(pager.processes[&0].ordered.is_none());
        ordered(pager);
        pager.sweep();
        assert!(pager.processes[&0].ordered.is_none());
        assert_eq!(stored(pager, 0, PAGE), (State::Stored, Some(5)));
    });
}

#[test]
fn a_process_that_ended_unnoticed_is_found_and_leaves_nothing() {
    let Some(ended) = faults_of_the_ended() else { return };
    with_pager(|pager| {
        let id = pager.add(Process::new(ended));
        store(pager, id, PAGE, 5);
        put_by(pager, id, (1 << 47) - PAGE, 6);
        store(pager, 0, PAGE, 7);
        pager.sweep();
        assert!(!pager.processes.contains_key(&id));
        assert_eq!((pager.setup.store.pages(), pager.standby.pages()), (1, 0));
        assert_eq!(stored(pager, 0, PAGE), (State::Stored, Some(7)), "the other one lives");
    });
}

/// The kernel's map of a fork's child: two ranges can be written, one cannot, one is wiped.
fn smaps() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = "\
00010000-00014000 rw-p 00000000 00:00 0\nVmFlags: rd wr mr mw me ac um
00020000-00024000 r--p 00000000 00:00 0\nVmFlags: rd mr mw me ac um
00030000-00034000 rw-p 00000000 00:00 0\nVmFlags: rd wr mr mw me ac wf um
00040000-00044000 rw-p 00000000 00:00 0\nVmFlags: rd wr mr mw me ac
";
    std::fs::write(&file, text).expect("room");
    file
}

#[test]
fn a_child_is_settled_to_what_the_kernel_shows_of_it() {
    let smaps = smaps();
    let smaps = smaps.path().to_str().expect("a name");
    with_pager(|pager| {
        // A move was reported after the fork, and happened before it; another happened after it.
        store(pager, 0, 0x50_000, 5);
        store(pager, 0, 0x20_000, 6);
        store(pager, 0, 0x30_000, 7);
        store(pager, 0, 0x40_000, 8);
        store(pager, 0, 0x14_000, 9);
        store(pager, 0, 0x11_000, 10);
        store(pager, 0, 0x9_000, 11);
        let id = child(pager);
        pager.remap(0, 0x50_000, 0x12_000, 2 * PAGE, false);
        pager.remap(0, 0x11_000, 0x13_000, 2 * PAGE, false);
        assert!(pager.settle(id, &hello(), smaps));
        assert!(pager.processes[&id].origin.is_none());
        let content = |pager: &mut Pager<'_>, page| stored(pager, id, page).1;
        assert_eq!(content(pager, 0x12_000), Some(5), "it moved before the fork");
        assert_eq!(content(pager, 0x11_000), Some(10), "its target is not all there");
        assert_eq!(content(pager, 0x20_000), Some(6), "it can be read");
        for gone in [0x9_000, 0x13_000, 0x14_000, 0x30_000, 0x40_000, 0x50_000] {
            assert_eq!(content(pager, gone), None, "{gone:x}");
        }
        assert_eq!(served(pager, id), [0x10_000..0x14_000, 0x30_000..0x34_000]);
        // A settled process stays as it is.
        assert!(pager.settle(id, &hello(), "/none"));
        assert_eq!(content(pager, 0x12_000), Some(5));
    });
}

#[test]
fn a_child_without_an_agent_is_settled_by_its_first_fault_and_only_once_it_is_known() {
    with_pager(|pager| {
        assert!(pager.is_settled(0) && pager.is_settled(99));
        store(pager, 0, PAGE, 5);
        pager.processes.get_mut(&0).expect("it lives").injected = Some(hello());
        let id = child(pager);
        // Its process is not known: what is assumed is served.
        assert!(pager.is_settled(id) && pager.processes[&id].origin.is_some());
        let this = crate::peer::Peer::of_number(nix::unistd::getpid()).expect("it lives");
        pager.processes.get_mut(&id).expect("it lives").peer = Some(this);
        assert!(pager.is_settled(id) && pager.processes[&id].origin.is_none());
        assert_eq!(stored(pager, id, PAGE), (State::Unknown, None), "nobody pages this test");
    });
}
