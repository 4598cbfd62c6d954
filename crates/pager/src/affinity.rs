//! On which processors threads may run: changing it for threads of a program, and finding the
//! threads and processes that inherited the change.

use std::fs;

use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, getpid, gettid};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::peer::Peer;
use crate::threads::threads;

/// The processors of a thread, by its number; `None` if it has ended, or where this machine has
/// more processors than fit.
pub(crate) fn of(thread: Pid) -> Option<CpuSet> {
    sched_getaffinity(thread).ok()
}

/// The processors of this thread.
pub(crate) fn own() -> Option<CpuSet> {
    of(Pid::from_raw(0))
}

/// Changes the processors of this thread.
pub(crate) fn set_own(to: &CpuSet) -> bool {
    sched_setaffinity(Pid::from_raw(0), to).is_ok()
}

/// A set of one processor.
pub(crate) fn only(processor: usize) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    set.set(processor).ok()?;
    Some(set)
}

/// The processors of a set, in order.
pub(crate) fn processors(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false))
}

/// Changes the processors of a thread of the process `peer` from `from` to `to`; returns whether it
/// had `from`. The kernel names threads by numbers alone. So the thread is looked for in the
/// process afterwards: if it has ended, its number may be another's by now, whose processors are
/// given back.
pub(crate) fn swap(peer: &Peer, thread: Pid, from: &CpuSet, to: &CpuSet) -> bool {
    if of(thread).as_ref() != Some(from) || sched_setaffinity(thread, to).is_err() {
        return false;
    }
    if peer.has_thread(thread) {
        return true;
    }
    if of(thread).as_ref() == Some(to) {
        let _ = sched_setaffinity(thread, from);
    }
    false
}

/// The processor on which a thread of `peer` runs, or ran last.
pub(crate) fn last_processor(peer: &Peer, thread: Pid) -> Option<usize> {
    /// Place of the processor behind the thread's name, counted from 0.
    const PROCESSOR: usize = 36;
    let stat = fs::read_to_string(peer.path(&format!("task/{thread}/stat"))).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(PROCESSOR)?.parse().ok()
}

/// Children that `thread` of `process` started; `None` if the kernel does not tell.
fn children(process: Pid, thread: Pid) -> Option<Vec<Pid>> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).ok()?;
    let numbers = text.split_ascii_whitespace().filter_map(|number| number.parse().ok());
    Some(numbers.map(Pid::from_raw).collect())
}

/// True if the kernel tells the children of processes.
pub(crate) fn tells_children() -> bool {
    children(getpid(), gettid()).is_some()
}

/// Threads of this process and of all its descendants, each with its process.
fn everyone() -> Vec<(Pid, Pid)> {
    let (mut all, mut next) = (Vec::new(), vec![getpid()]);
    while let Some(process) = next.pop() {
        for thread in threads(&format!("/proc/{process}/task")).unwrap_or_default() {
            all.push((process, thread));
            next.extend(children(process, thread).unwrap_or_default());
        }
    }
    all
}

/// Threads and processes that began while a thread was bound. They inherit its processors, and get
/// back what it had before.
pub(crate) struct Heirs {
    /// What they may have inherited: one processor each.
    narrow: SmallVec<[CpuSet; 2]>,
    wide: CpuSet,
    /// Threads that were there at the last look.
    known: FxHashSet<libc::pid_t>,
}

impl Heirs {
    /// Threads that begin from now on, and have only `narrow`, get `wide`. Call it before a thread
    /// is bound.
    pub(crate) fn new(narrow: CpuSet, wide: CpuSet) -> Heirs {
        let known = everyone().into_iter().map(|(_, thread)| thread.as_raw()).collect();
        Heirs { narrow: SmallVec::from_slice(&[narrow]), wide, known }
    }

    /// The same for another processor. Returns false if heirs of the one would get what those of
    /// the other had.
    pub(crate) fn add(&mut self, narrow: CpuSet, wide: CpuSet) -> bool {
        self.look();
        if !self.narrow.contains(&narrow) {
            self.narrow.push(narrow);
        }
        self.wide == wide
    }

    /// Looks for heirs. A thread that was known before and is bound now has
    /// bound itself. The program itself may also have bound a thread that began since the last
    /// look, which is mistaken for an heir.
    pub(crate) fn look(&mut self) {
        let (all, this) = (everyone(), getpid());
        for (process, thread) in &all {
            if let Some(narrow) = self.inherited(*thread)
                && let Ok(peer) = Peer::of_number(*process)
                && (*process == this || peer.descends_from(this))
            {
                swap(&peer, *thread, &narrow, &self.wide);
            }
        }
        self.known = all.into_iter().map(|(_, thread)| thread.as_raw()).collect();
    }

    /// Looks for heirs in one process.
    pub(crate) fn look_at(&mut self, peer: &Peer) {
        for thread in peer.threads() {
            if let Some(narrow) = self.inherited(thread) {
                swap(peer, thread, &narrow, &self.wide);
            }
            self.known.insert(thread.as_raw());
        }
    }

    /// What a thread may have inherited, if it has that.
    fn inherited(&self, thread: Pid) -> Option<CpuSet> {
        let is_new = !self.known.contains(&thread.as_raw());
        of(thread).filter(|set| is_new && self.narrow.contains(set))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::sync::Mutex;

    use super::*;

    /// Heirs are looked for among all children of this process, which tests may share.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).spawn().expect("sleep starts")
    }

    fn ended(mut child: Child) {
        child.kill().expect("it can be killed");
        child.wait().expect("it ended");
    }

    /// This thread's processors, and one of them alone; `None` where there is only one.
    fn sets() -> Option<(CpuSet, CpuSet)> {
        let wide = own().expect("this machine's processors");
        let first = processors(&wide).next().expect("one at least");
        let narrow = only(first).expect("it fits");
        if wide == narrow {
            let line = "SKIPPED: there is only one processor\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return None;
        }
        Some((wide, narrow))
    }

    #[test]
    fn processors_change_only_from_what_they_were_and_only_within_the_process() {
        let _alone = ONE_AT_A_TIME.lock();
        let Some((wide, narrow)) = sets() else { return };
        let (one, other) = (sleeper(), sleeper());
        let number = |child: &Child| Pid::from_raw(child.id().cast_signed());
        let peer = Peer::of_number(number(&one)).expect("it lives");
        assert!(!swap(&peer, number(&one), &narrow, &wide), "it has all");
        assert!(swap(&peer, number(&one), &wide, &narrow));
        assert_eq!(of(number(&one)), Some(narrow));
        assert!(last_processor(&peer, number(&one)).is_some());
        // The number is another process's.
        assert!(!swap(&peer, number(&other), &wide, &narrow));
        assert_eq!(of(number(&other)), Some(wide), "it is as it was");
        ended(one);
        ended(other);
    }

    #[test]
    fn heirs_get_the_processors_back_and_those_who_bound_themselves_keep_theirs() {
        let _alone = ONE_AT_A_TIME.lock();
        let Some((wide, narrow)) = sets() else { return };
        if !tells_children() {
            let line = "SKIPPED: the kernel does not tell children\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return;
        }
        let known = sleeper();
        let number = |child: &Child| Pid::from_raw(child.id().cast_signed());
        let mut heirs = Heirs::new(narrow, wide);
        sched_setaffinity(number(&known), &narrow).expect("it binds itself");
        assert!(set_own(&narrow));
        // A child, a grandchild, and a thread with a child.
        let child = sleeper();
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "sleep 1000 & echo $!; wait"]).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("sh starts");
        let mut line = String::new();
        let out = shell.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        let grandchild = Pid::from_raw(line.trim().parse().expect("a number"));
        let (tell, told) = std::sync::mpsc::channel();
        let (end, until) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let of_thread = sleeper();
            tell.send((gettid(), number(&of_thread))).expect("heard");
            let _ = until.recv();
            ended(of_thread);
        });
        let (thread_number, of_thread) = told.recv().expect("it began");
        let all = [number(&child), number(&shell), grandchild, thread_number, of_thread];
        assert!(set_own(&wide));
        for heir in all {
            assert_eq!(of(heir), Some(narrow), "{heir} inherits");
        }
        let peer = Peer::of_number(all[0]).expect("it lives");
        heirs.look_at(&peer);
        assert_eq!(of(all[0]), Some(wide), "the one that was looked at");
        assert_eq!(of(all[1]), Some(narrow), "the others were not");
        heirs.look();
        for heir in all {
            assert_eq!(of(heir), Some(wide), "{heir}");
        }
        assert_eq!(of(number(&known)), Some(narrow), "its own choice");
        // Who binds itself afterwards is left alone.
        sched_setaffinity(number(&child), &narrow).expect("it binds itself");
        heirs.look();
        assert_eq!(of(number(&child)), Some(narrow));
        drop(end);
        thread.join().expect("it ended");
        nix::sys::signal::kill(grandchild, nix::sys::signal::SIGKILL).expect("it lives");
        [known, child, shell].into_iter().for_each(ended);
    }
}
