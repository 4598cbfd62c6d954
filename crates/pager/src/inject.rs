//! Writes the agent into a program into which no loader preloads it: one that is linked statically,
//! or has a loader other than glibc's.
//!
//! The program is stopped before its first instruction. The pager makes it map memory, writes the
//! agent's relocated image there, and resumes it at the agent's entry, which continues at the
//! program's. From then on no tracer is attached.

use std::io::{self, IoSlice};

use nix::errno::Errno;
use nix::libc::{self, c_int, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;
use object::elf::{PF_W, PF_X, PT_LOAD, R_X86_64_GLOB_DAT, R_X86_64_RELATIVE};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, RelocationFlags};

use crate::agent::IMAGE;
use crate::follow::{FILTER_BYTES, Followed, follow};
use crate::protocol::PAGE_BYTES;

const KILLED: &str = "it was killed before its first instruction";
/// The `syscall` instruction.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// The agent's memory image, linked at address zero.
struct Laid {
    content: Vec<u8>,
    /// Relocations: offset of each word that holds an address of the agent, and the address's
    /// offset.
    own_addresses: Vec<(usize, u64)>,
    /// Parts that are executable or read-only: start, length in bytes, protection.
    protected: Vec<(u64, u64, i32)>,
    /// Offset of the agent's entry point.
    enter: u64,
}

fn lay() -> Laid {
    const OWN: &str = "the agent is compiled by build.rs";
    let file = ElfFile64::<Endianness>::parse(IMAGE).expect(OWN);
    let endian = file.endian();
    let (mut content, mut protected) = (Vec::new(), Vec::new());
    for segment in file.elf_program_headers() {
        if segment.p_type(endian) != PT_LOAD {
            continue;
        }
        let start = segment.p_vaddr(endian) as usize;
        let end = start + segment.p_memsz(endian) as usize;
        content.resize(content.len().max(end.next_multiple_of(PAGE_BYTES)), 0);
        let data = segment.data(endian, IMAGE).expect(OWN);
        content[start..start + data.len()].copy_from_slice(data);
        let flags = segment.p_flags(endian);
        if flags & PF_W == 0 {
            let page = (start / PAGE_BYTES * PAGE_BYTES) as u64;
            let bytes = (end.next_multiple_of(PAGE_BYTES)) as u64 - page;
            let execute = if flags & PF_X == 0 { 0 } else { libc::PROT_EXEC };
            protected.push((page, bytes, libc::PROT_READ | execute));
        }
    }
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let own_addresses = relocations.filter_map(|(at, relocation)| match relocation.flags() {
        RelocationFlags::Elf { r_type: R_X86_64_RELATIVE } => {
            Some((at as usize, relocation.addend() as u64))
        }
        // A weak symbol of the C library, which is absent.
        RelocationFlags::Elf { r_type: R_X86_64_GLOB_DAT } => None,
        other => unreachable!("{OWN}: {other:?}"),
    });
    let own_addresses = own_addresses.collect();
    Laid { content, own_addresses, protected, enter: file.entry() }
}

/// Result of writing the agent into a program.
#[derive(Debug)]
pub(crate) enum Injected {
    /// The program runs with the agent.
    Done(Followed),
    /// A signal is killing the program before its first instruction.
    Doomed,
    /// The program ended before its first instruction, with this `waitpid` status.
    Ended(c_int),
}

/// Writes the agent into `program`, which this thread seized and which is about to be executed, and
/// resumes it. A program that does not reach its first instruction is left to end.
pub(crate) fn inject(program: Pid) -> io::Result<Followed> {
    wait_for_execution(program)?;
    match inject_executed(program)? {
        Injected::Done(followed) => Ok(followed),
        Injected::Doomed => Ok(Followed::Already),
        Injected::Ended(_) => Err(io::Error::other(KILLED)),
    }
}

/// Waits until the kernel reports that `program` was executed.
fn wait_for_execution(program: Pid) -> io::Result<()> {
    loop {
        let mut status = 0;
        // SAFETY: the status has room.
        let ended = unsafe { libc::waitpid(program.as_raw(), &raw mut status, libc::__WALL) };
        match Errno::result(ended) {
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) if !libc::WIFSTOPPED(status) => return Err(io::Error::other(KILLED)),
            Ok(_) => {}
        }
        match (status >> 16, libc::WSTOPSIG(status)) {
            (libc::PTRACE_EVENT_EXEC, _) => return Ok(()),
            (0, signal) => control(libc::PTRACE_CONT, program, signal)?,
            _ => control(libc::PTRACE_CONT, program, 0)?,
        }
    }
}

/// Writes the agent into `program`, which this thread seized and which the kernel reported as
/// executed, and resumes it. After an error the program is unchanged, and still traced.
pub(crate) fn inject_executed(program: Pid) -> io::Result<Injected> {
    // The kernel has yet to finish the `execve` call.
    let step = || control(libc::PTRACE_SINGLESTEP, program, 0);
    step()?;
    write_into(program, step)
}

fn write_into(program: Pid, resume: impl Fn() -> nix::Result<()>) -> io::Result<Injected> {
    let mut signals = Vec::new();
    match wait_for_trap(program, &mut signals, resume)? {
        Trap::Told => {}
        Trap::Fatal(signal) => {
            control(libc::PTRACE_DETACH, program, signal)?;
            return Ok(Injected::Doomed);
        }
        Trap::Ended(status) => return Ok(Injected::Ended(status)),
    }
    let mut stopped = Stopped::new(program, signals)?;
    let placed = place(&mut stopped);
    if let (Some(status), _) = (stopped.ended, &placed) {
        return Ok(Injected::Ended(status));
    }
    match placed {
        Ok(Placed { base, bytes, enter, followed }) => {
            stopped.go(base + enter, base, base + bytes)?;
            Ok(Injected::Done(followed))
        }
        Err(error) => {
            stopped.put_back()?;
            Err(error)
        }
    }
}

/// The agent in the program's memory.
struct Placed {
    base: u64,
    bytes: u64,
    /// Offset of its entry point from `base`.
    enter: u64,
    followed: Followed,
}

/// Puts the agent into the program's memory.
fn place(stopped: &mut Stopped) -> io::Result<Placed> {
    let laid = lay();
    let (bytes, read_write) = (laid.content.len() as u64, libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let map = [0, bytes, read_write as u64, flags as u64, u64::MAX, 0];
    let base = stopped.call(libc::SYS_mmap, map)?;
    const { assert!(FILTER_BYTES <= PAGE_BYTES) };
    // The filter uses this memory before the agent is written there.
    let followed = follow(stopped, base)?;
    let mut content = laid.content;
    for (at, address) in laid.own_addresses {
        content[at..at + 8].copy_from_slice(&(base + address).to_le_bytes());
    }
    let to = RemoteIoVec { base: base as usize, len: content.len() };
    let written = process_vm_writev(stopped.program, &[IoSlice::new(&content)], &[to])?;
    if written != content.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    for (start, bytes, protection) in laid.protected {
        stopped.call(libc::SYS_mprotect, [base + start, bytes, protection as u64, 0, 0, 0])?;
    }
    Ok(Placed { base, bytes, enter: laid.enter, followed })
}

/// A program stopped before its first instruction.
pub(crate) struct Stopped {
    program: Pid,
    /// Registers as the kernel set them.
    registers: user_regs_struct,
    /// Original word at the first instruction.
    word: i64,
    /// Signals that arrived meanwhile.
    signals: Vec<c_int>,
    /// Status, if the program ended meanwhile.
    ended: Option<c_int>,
}

impl Stopped {
    fn new(program: Pid, signals: Vec<c_int>) -> io::Result<Stopped> {
        let registers = ptrace::getregs(program)?;
        let first = registers.rip as ptrace::AddressType;
        let word = ptrace::read(program, first)?;
        let mut bytes = word.to_le_bytes();
        bytes[..SYSTEM_CALL.len()].copy_from_slice(&SYSTEM_CALL);
        ptrace::write(program, first, i64::from_le_bytes(bytes))?;
        Ok(Stopped { program, registers, word, signals, ended: None })
    }

    pub(crate) fn program(&self) -> Pid {
        self.program
    }

    /// Makes the program do a system call.
    pub(crate) fn call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let rax = number as u64;
        let asked = user_regs_struct { rax, rdi, rsi, rdx, r10, r8, r9, ..self.unrestarted() };
        ptrace::setregs(self.program, asked)?;
        let step = || control(libc::PTRACE_SINGLESTEP, self.program, 0);
        step()?;
        match wait_for_trap(self.program, &mut self.signals, step)? {
            Trap::Told => {}
            Trap::Fatal(signal) => {
                return Err(io::Error::other(format!("signal {signal} at its first instruction")));
            }
            Trap::Ended(status) => {
                self.ended = Some(status);
                return Err(io::Error::other(KILLED));
            }
        }
        let result = ptrace::getregs(self.program)?.rax as i64;
        u64::try_from(result).map_err(|_| Errno::from_raw(-result as i32).into())
    }

    /// The registers, changed so that the kernel does not restart a system call.
    fn unrestarted(&self) -> user_regs_struct {
        user_regs_struct { orig_rax: u64::MAX, ..self.registers }
    }

    /// Restores what was changed, and resumes the program at the agent's entry.
    fn go(self, enter: u64, start: u64, end: u64) -> io::Result<()> {
        let first = self.registers.rip;
        let rip = enter;
        let registers =
            user_regs_struct { rip, r12: first, r13: start, r14: end, ..self.unrestarted() };
        self.restore(registers)?;
        control(libc::PTRACE_DETACH, self.program, 0)?;
        self.send_again();
        Ok(())
    }

    /// Restores what was changed; the program stays stopped.
    fn put_back(self) -> io::Result<()> {
        self.restore(self.unrestarted())?;
        self.send_again();
        Ok(())
    }

    fn restore(&self, registers: user_regs_struct) -> io::Result<()> {
        ptrace::write(self.program, self.registers.rip as ptrace::AddressType, self.word)?;
        Ok(ptrace::setregs(self.program, registers)?)
    }

    fn send_again(&self) {
        for signal in &self.signals {
            // SAFETY: the call takes a process number and a signal number.
            unsafe { libc::kill(self.program.as_raw(), *signal) };
        }
    }
}

/// A `ptrace` request that takes a signal, or 0. Some such requests have no safe wrapper.
pub(crate) fn control(request: u32, thread: Pid, signal: c_int) -> nix::Result<()> {
    let (none, signal) = (std::ptr::null_mut::<libc::c_void>(), signal as usize);
    // SAFETY: the requests made here neither read nor write this process's memory.
    let result = unsafe { libc::ptrace(request, thread.as_raw(), none, signal) };
    Errno::result(result).map(drop)
}

/// The reason why a program stopped.
enum Trap {
    /// The expected trap.
    Told,
    /// A fatal fault, with its signal.
    Fatal(c_int),
    /// The program ended, with this status.
    Ended(c_int),
}

/// Waits until the program stops by itself. Signals to it are kept; they stop it before the next
/// instruction, so that it is resumed.
fn wait_for_trap(
    program: Pid,
    signals: &mut Vec<c_int>,
    resume: impl Fn() -> nix::Result<()>,
) -> io::Result<Trap> {
    use libc::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    loop {
        let mut status = 0;
        // SAFETY: the status has room.
        match Errno::result(unsafe {
            libc::waitpid(program.as_raw(), &raw mut status, libc::__WALL)
        }) {
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) if !libc::WIFSTOPPED(status) => return Ok(Trap::Ended(status)),
            Ok(_) => {}
        }
        match (status >> 16, libc::WSTOPSIG(status)) {
            (0, SIGTRAP) => return Ok(Trap::Told),
            (0, signal @ (SIGBUS | SIGFPE | SIGILL | SIGSEGV)) => return Ok(Trap::Fatal(signal)),
            (0, signal) => signals.push(signal),
            // Another process caused this stop.
            _ => {}
        }
        resume()?;
    }
}

#[cfg(test)]
mod tests {
    use super::lay;
    use crate::protocol::PAGE_BYTES;

    #[test]
    fn the_agent_has_no_needs_and_its_parts_do_not_overlap() {
        let laid = lay();
        assert_eq!(laid.content.len() % PAGE_BYTES, 0);
        let code = laid.protected.iter().find(|(_, _, protection)| protection & 4 != 0);
        let &(start, bytes, _) = code.expect("it has code");
        assert!((start..start + bytes).contains(&laid.enter));
        for (at, address) in laid.own_addresses {
            assert!(address < laid.content.len() as u64);
            let at = at as u64;
            let inside =
                |&(start, bytes, _): &(u64, u64, i32)| (start..start + bytes).contains(&at);
            assert!(!laid.protected.iter().any(inside), "{at:x} is written when it is relocated");
        }
    }
}
