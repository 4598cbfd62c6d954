//! Executed programs into which no loader preloads the agent.
//!
//! An agent announces such an execution. The pager then traces the thread until the kernel reports
//! the new program, writes the agent into it as into one that the pager starts, and detaches. The
//! pager never blocks meanwhile: what the kernel copies for the new program may be remote. Where
//! the agent interposes no function, the kernel reports the execution (`follow.rs`).

use std::path::Path;

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;
use rustc_hash::FxHashMap;

use crate::agent::Agent;
use crate::follow::{Executions, Followed};
use crate::inject::{Injected, control, inject_executed};
use crate::launch::{PRELOAD, Way, way_into};
use crate::protocol::{EXECUTES, OVER, SOCKET_VARIABLE, SPAWNS};

/// What the pager expects of a traced thread.
#[derive(Debug)]
enum Traced {
    /// It executes a program.
    Executing,
    /// It starts a process that executes a program.
    Spawning,
    /// It executes a program, as the kernel reported. Any stop before that is later than the
    /// report.
    Told,
    /// Its execution is over; the agent is answered once no tracer is attached.
    Leaving(Agent),
}

/// The traced threads.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    threads: FxHashMap<i32, Traced>,
}

/// Outcome for an executed program or a traced process.
#[derive(Debug)]
pub(crate) enum News {
    /// Nothing to report.
    Nothing,
    /// The program runs without the pager; the text has its file and the reason.
    ByItself(String),
    /// The program is served, and its executions are reported through a new descriptor.
    Told(Executions),
    /// The process ended, with this status.
    Ended(Pid, c_int),
}

/// True if the agent's message concerns an execution.
pub(crate) fn is_execution(agent: &Agent) -> bool {
    matches!(agent.hello.kind, EXECUTES | SPAWNS | OVER)
}

impl Executed {
    /// Handles an agent's announcement of an execution or of its end.
    pub(crate) fn hear(&mut self, agent: Agent) -> News {
        let Some(thread) = agent.peer.thread(agent.hello.thread) else {
            let _ = agent.answer_with(false);
            return News::ByItself(format!("{}: it named a thread of another", agent.peer.file()));
        };
        if agent.hello.kind == OVER {
            self.leave(thread, agent);
            return News::Nothing;
        }
        let (traced, options) = if agent.hello.kind == EXECUTES {
            (Traced::Executing, Options::PTRACE_O_TRACEEXEC)
        } else {
            // The child is traced from its start, with equal options.
            let children = Options::PTRACE_O_TRACEVFORK
                | Options::PTRACE_O_TRACEFORK
                | Options::PTRACE_O_TRACECLONE;
            (Traced::Spawning, Options::PTRACE_O_TRACEEXEC | children)
        };
        let seized = ptrace::seize(thread, options);
        if seized.is_ok() && !Path::new(&agent.peer.path(&format!("task/{thread}"))).exists() {
            // It ended, and its number was reused; that thread is released when it stops.
            self.threads.insert(thread.as_raw(), Traced::Told);
            let _ = ptrace::interrupt(thread);
            return News::Nothing;
        }
        if seized.is_ok() {
            self.threads.insert(thread.as_raw(), traced);
        }
        // This precedes its resumption, after which its name differs.
        let news = seized.map_or_else(
            |error| {
                let parent = file_of(thread);
                News::ByItself(format!("a program that {parent} executes: ptrace: {error}"))
            },
            |()| News::Nothing,
        );
        let _ = agent.answer_with(seized.is_ok());
        news
    }

    /// Handles the kernel's report of an execution. The thread proceeds until it stops at the new
    /// program or the call has failed.
    pub(crate) fn told(&mut self, executions: &Executions) -> News {
        let Some(waiting) = executions.next() else { return News::Nothing };
        let thread = waiting.thread;
        let seized = ptrace::seize(thread, Options::PTRACE_O_TRACEEXEC);
        if seized.is_ok() {
            self.threads.insert(thread.as_raw(), Traced::Told);
        }
        let stops = seized.and_then(|()| ptrace::interrupt(thread));
        let news = match stops {
            Err(error) if error != Errno::ESRCH && !is_traced_by_us(thread) => {
                let parent = file_of(thread);
                News::ByItself(format!("a program that {parent} executes: ptrace: {error}"))
            }
            _ => News::Nothing,
        };
        executions.go_on(waiting);
        news
    }

    /// Ends what `thread` announced. It proceeds when it is no longer traced.
    fn leave(&mut self, thread: Pid, agent: Agent) {
        if self.threads.contains_key(&thread.as_raw()) && ptrace::interrupt(thread).is_ok() {
            self.threads.insert(thread.as_raw(), Traced::Leaving(agent));
        } else {
            self.threads.remove(&thread.as_raw());
            let _ = agent.answer_with(true);
        }
    }

    /// Forgets a process or a traced thread that ended.
    pub(crate) fn ended(&mut self, process: Pid) {
        self.threads.remove(&process.as_raw());
    }

    /// Handles a stop of a traced thread, with its `waitpid` status.
    pub(crate) fn stopped(&mut self, thread: Pid, status: c_int) -> News {
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let number = thread.as_raw();
        match event {
            libc::PTRACE_EVENT_EXEC => {
                // Of several threads another one may have become the thread-group leader.
                let former = ptrace::getevent(thread).unwrap_or_default();
                self.threads.remove(&i32::try_from(former).unwrap_or(number));
                self.threads.remove(&number);
                return arrive(thread);
            }
            libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_CLONE => {
                let child = ptrace::getevent(thread).unwrap_or_default();
                if let Ok(child) = i32::try_from(child) {
                    self.threads.insert(child, Traced::Executing);
                }
                self.let_go(thread, 0);
            }
            _ if matches!(self.threads.get(&number), Some(Traced::Leaving(_) | Traced::Told)) => {
                self.let_go(thread, if event == 0 { signal } else { 0 });
            }
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => {
                let _ = control(libc::PTRACE_CONT, thread, 0);
            }
            // A signal stopped the whole process, until another signal continues it.
            libc::PTRACE_EVENT_STOP => {
                let _ = control(libc::PTRACE_LISTEN, thread, 0);
            }
            _ => {
                let _ = control(libc::PTRACE_CONT, thread, signal);
            }
        }
        News::Nothing
    }

    /// Detaches from `thread`, and delivers `signal` to it.
    fn let_go(&mut self, thread: Pid, signal: c_int) {
        let _ = control(libc::PTRACE_DETACH, thread, signal);
        if let Some(Traced::Leaving(agent)) = self.threads.remove(&thread.as_raw()) {
            let _ = agent.answer_with(true);
        }
    }
}

/// True if this process already traces `thread`.
fn is_traced_by_us(thread: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() == std::process::id().to_string())
}

/// Serves a program that was executed and is stopped before its first instruction.
fn arrive(program: Pid) -> News {
    let by_itself = |why: &str| News::ByItself(format!("{}: {why}", file_of(program)));
    let way = way_into(Path::new(&format!("/proc/{program}/exe")));
    let refused = match way {
        Ok(_) if !names_pager(program) => {
            Some(by_itself("its environment lacks LD_PRELOAD or ETHERMEM_PAGER"))
        }
        Ok(Way::Preloaded) => None,
        Ok(Way::Injected) if is_secure(program) => Some(by_itself("it is set-user-id")),
        Ok(Way::Injected) => match inject_executed(program) {
            Ok(Injected::Done(followed)) => return followed_by(program, followed),
            Ok(Injected::Doomed) => return News::Nothing,
            Ok(Injected::Ended(status)) => return News::Ended(program, status),
            Err(error) => {
                Some(by_itself(&format!("the agent could not be written into it: {error}")))
            }
        },
        Err(_) => Some(by_itself("not a 64-bit program of this machine")),
    };
    match control(libc::PTRACE_DETACH, program, 0) {
        Ok(()) | Err(Errno::ESRCH) => refused.unwrap_or(News::Nothing),
        Err(error) => by_itself(&error.to_string()),
    }
}

/// What to report about a program that received its agent.
pub(crate) fn followed_by(program: Pid, followed: Followed) -> News {
    match followed {
        Followed::New(executions) => News::Told(executions),
        Followed::Already => News::Nothing,
        Followed::Refused(error) => News::ByItself(format!(
            "programs without glibc's loader that {} executes, if any: seccomp: {error}",
            file_of(program)
        )),
    }
}

/// True if the environment of a newly executed program has the agent's variables.
fn names_pager(program: Pid) -> bool {
    let environment = std::fs::read(format!("/proc/{program}/environ")).unwrap_or_default();
    let has = |name: &str| {
        environment
            .split(|byte| *byte == 0)
            .any(|text| text.strip_prefix(name.as_bytes()).is_some_and(|it| it.starts_with(b"=")))
    };
    has(SOCKET_VARIABLE) && has(PRELOAD)
}

/// True if the kernel gave the program other privileges than its executor has.
fn is_secure(program: Pid) -> bool {
    const SECURE: u64 = 23;
    let vector = std::fs::read(format!("/proc/{program}/auxv")).unwrap_or_default();
    let words: Vec<u64> = vector
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
        .collect();
    words.chunks_exact(2).any(|entry| entry == [SECURE, 1])
}

/// A process's file, as text for people.
pub(crate) fn file_of(process: Pid) -> String {
    let file = std::fs::read_link(format!("/proc/{process}/exe"));
    file.map_or_else(|_| format!("process {process}"), |path| path.display().to_string())
}

/// The next process that ended or traced thread that stopped, and its status.
pub(crate) fn next_change() -> nix::Result<Option<(Pid, c_int)>> {
    let mut status = 0;
    // SAFETY: the status has room.
    let process = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
    match Errno::result(process) {
        Ok(0) => Ok(None),
        Ok(process) => Ok(Some((Pid::from_raw(process), status))),
        Err(error) => Err(error),
    }
}
