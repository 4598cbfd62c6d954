//! Executions by the program: if no loader preloads the agent into the new program, this announces
//! it to the pager, which writes the agent into it.
//!
//! These functions interpose those of the C library, and call them. Nothing here writes to the
//! program's memory: the caller may be a `vfork` child that runs in its parent's memory.

use core::arch::{asm, naked_asm};
use core::ptr::null;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::messages::{connect, receive_welcome, send_hello};
use super::protocol::{EXECUTES, Hello, OVER, SOCKET_VARIABLE, SPAWNS, VERSION, Welcome};
use super::{NAME_BYTES, call, call3, kept_name, named, sys, value_of};

type Text = *const u8;
type Texts = *const Text;
/// An argument that only the C library inspects.
type Passed = *const u8;

/// The C library's functions, each with a zero behind its name.
const NAMES: [&[u8]; 8] = [
    b"execve\0",
    b"execv\0",
    b"execvp\0",
    b"execvpe\0",
    b"fexecve\0",
    b"execveat\0",
    b"posix_spawn\0",
    b"posix_spawnp\0",
];
const EXECVE: usize = 0;
const EXECV: usize = 1;
const EXECVP: usize = 2;
const EXECVPE: usize = 3;
const FEXECVE: usize = 4;
const EXECVEAT: usize = 5;
const SPAWN: usize = 6;
const SPAWNP: usize = 7;

static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// Address of a symbol of another library, or zero.
macro_rules! address_of {
    ($symbol:literal) => {{
        let address: usize;
        // SAFETY: reads a word that the loader filled in.
        unsafe {
            asm!(
                concat!(".weak ", $symbol),
                concat!("mov {}, [rip + ", $symbol, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, pure, readonly)
            );
        }
        address
    }};
}

/// Looks up all of [`NAMES`] in advance: a fork's child of a program with threads must not wait for
/// the loader when it calls one.
pub(super) fn find_all() {
    for place in 0..NAMES.len() {
        find(place);
    }
}

/// The next function with that name after ours.
fn find(place: usize) -> usize {
    let known = FOUND[place].load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let finder = address_of!("dlsym");
    if finder == 0 {
        return 0;
    }
    const NEXT: usize = usize::MAX;
    // SAFETY: the C library's `dlsym`, with `RTLD_NEXT`.
    let found = unsafe {
        let finder: unsafe extern "C" fn(usize, Text) -> usize = core::mem::transmute(finder);
        finder(NEXT, NAMES[place].as_ptr())
    };
    FOUND[place].store(found, Ordering::Relaxed);
    found
}

/// The C library's `environ`.
fn own_environment() -> Texts {
    let place = address_of!("environ") as *const Texts;
    // SAFETY: it is a pointer's address, or zero.
    if place.is_null() { null() } else { unsafe { *place } }
}

/// Converts a kernel result as the C library's functions do.
pub(super) fn ended(result: isize) -> i32 {
    let place = address_of!("__errno_location");
    if result < 0 && place != 0 {
        // SAFETY: the C library's function, and the word that it names is this thread's.
        unsafe {
            let place: unsafe extern "C" fn() -> *mut i32 = core::mem::transmute(place);
            *place() = -result as i32;
        }
    }
    if result < 0 { -1 } else { result as i32 }
}

/// Kind of a file, as far as its first bytes show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The loader preloads the agent.
    Preloaded,
    /// The loader does not preload the agent, or the first bytes do not show it.
    Other,
    /// There is no such file.
    Absent,
}

const HEAD_BYTES: usize = 1024;
const PATH_BYTES: usize = 1024;
/// Limit of scripts that are each other's interpreters.
const SCRIPTS_MAX: usize = 5;

/// Inspects the file `path` in `folder`, and the interpreters of scripts.
fn look(folder: usize, path: Text) -> Seen {
    let mut head = [0; HEAD_BYTES];
    let (mut folder, mut path) = (folder, path);
    for _ in 0..SCRIPTS_MAX {
        let flags = sys::CLOEXEC | sys::NONBLOCK;
        let file = call(sys::OPENAT, [folder, path as usize, flags, 0, 0, 0]);
        if file == sys::ENOENT || file == sys::ENOTDIR {
            return Seen::Absent;
        }
        if file < 0 {
            return Seen::Other;
        }
        let seen = look_into(file as usize, &mut head);
        call3(sys::CLOSE, file as usize, 0, 0);
        match seen {
            Ok(seen) => return seen,
            Err(interpreter) => (folder, path) = (sys::HERE, interpreter),
        }
    }
    Seen::Other
}

/// The kind of an open file or, for a script, its interpreter in `head`.
fn look_into(file: usize, head: &mut [u8; HEAD_BYTES]) -> Result<Seen, Text> {
    let bytes = call(sys::PREAD, [file, head.as_mut_ptr() as usize, HEAD_BYTES - 1, 0, 0, 0]);
    if bytes < 4 {
        return Ok(Seen::Other);
    }
    let bytes = bytes as usize;
    head[bytes] = 0;
    if head[0] == b'#' && head[1] == b'!' {
        return interpreter(head, bytes).map_or(Ok(Seen::Other), Err);
    }
    Ok(if has_glibc_loader(head, bytes) { Seen::Preloaded } else { Seen::Other })
}

/// Start of the name of a script's interpreter; the name ends with a zero.
fn interpreter(head: &mut [u8; HEAD_BYTES], bytes: usize) -> Option<Text> {
    let mut start = 2;
    while start < bytes && (head[start] == b' ' || head[start] == b'\t') {
        start += 1;
    }
    let mut end = start;
    while end < bytes && !matches!(head[end], b' ' | b'\t' | b'\n' | b'\r' | 0) {
        end += 1;
    }
    if start == end || end == bytes {
        return None;
    }
    head[end] = 0;
    Some(&raw const head[start])
}

/// True for a 64-bit program that glibc's loader loads. The segment that names a loader usually
/// precedes the loadable segments; where it does not, the pager inspects the file.
fn has_glibc_loader(head: &[u8; HEAD_BYTES], bytes: usize) -> bool {
    const LOADER: u32 = 3;
    const LOADED: u32 = 1;
    let word = |at: usize| match head.get(at..at + 4) {
        Some(&[a, b, c, d]) if at + 4 <= bytes => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => 0,
    };
    let is_64_bits = word(0) == 0x464c_457f && head[4] == 2;
    let (table, count) = (word(32), word(56) & 0xffff);
    if !is_64_bits || table >= HEAD_BYTES {
        return false;
    }
    for place in 0..count.min(HEAD_BYTES / 56) {
        let segment = table + place * 56;
        match word(segment) as u32 {
            LOADED => return false,
            LOADER => {
                let (start, length) = (word(segment + 8), word(segment + 32));
                let end = start.saturating_add(length);
                return end <= bytes && holds(&head[start..end], b"ld-linux").is_some();
            }
            _ => {}
        }
    }
    false
}

/// Compares byte by byte: a comparison of slices would call the C library's `bcmp`.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut alike = 0;
    while alike < one.len() && alike < other.len() && one[alike] == other[alike] {
        alike += 1;
    }
    alike == one.len() && alike == other.len()
}

/// Position in `text` behind `wanted`, if `text` contains it.
fn holds(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut end = wanted.len();
    while end <= text.len() {
        if is_same(&text[end - wanted.len()..end], wanted) {
            return Some(end);
        }
        end += 1;
    }
    None
}

/// Inspects the program of this name, found as the C library finds it.
///
/// # Safety
/// `name` ends with a zero, and the environment is the C library's.
unsafe fn search(name: Text) -> Seen {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let mut length = 0;
        while *name.add(length) != 0 {
            if *name.add(length) == b'/' {
                return look(sys::HERE, name);
            }
            length += 1;
        }
        let environment = own_environment();
        let path = if environment.is_null() { None } else { value_of(environment, b"PATH") };
        let mut folder = path.unwrap_or(b"/bin:/usr/bin\0".as_ptr());
        let mut path = [0; PATH_BYTES];
        loop {
            let mut bytes = 0;
            while !matches!(*folder, b':' | 0) && bytes < PATH_BYTES - 2 {
                path[bytes] = *folder;
                (bytes, folder) = (bytes + 1, folder.add(1));
            }
            if !matches!(*folder, b':' | 0) || bytes + length + 2 > PATH_BYTES {
                return Seen::Other;
            }
            if bytes > 0 {
                path[bytes] = b'/';
                bytes += 1;
            }
            for place in 0..=length {
                path[bytes + place] = *name.add(place);
            }
            match look(sys::HERE, path.as_ptr()) {
                Seen::Absent if *folder == b':' => folder = folder.add(1),
                seen => return seen,
            }
        }
    }
}

/// True if the line `name` of this thread's status is `value`; `None` if there is no such line.
#[inline(never)]
fn status_is(name: &[u8], value: &[u8]) -> Option<bool> {
    let mut status = [0; 4096];
    let path = b"/proc/thread-self/status\0".as_ptr() as usize;
    let file = call(sys::OPENAT, [sys::HERE, path, sys::CLOEXEC, 0, 0, 0]);
    if file < 0 {
        return None;
    }
    let bytes = call3(sys::READ, file as usize, status.as_mut_ptr() as usize, status.len());
    call3(sys::CLOSE, file as usize, 0, 0);
    let status = &status[..bytes.max(0) as usize];
    let start = holds(status, name)?;
    let mut end = start;
    while end < status.len() && status[end] != b'\n' {
        end += 1;
    }
    Some(is_same(&status[start..end], value))
}

/// True if this process has no other thread.
pub(super) fn has_one_thread() -> bool {
    status_is(b"Threads:\t", b"1") == Some(true)
}

/// An announcement to the pager, to be followed by a message that the execution is over.
struct Told {
    name: [u8; NAME_BYTES],
    name_bytes: usize,
}

impl Told {
    /// Announces an execution to the pager that `environment` names, unless the loader preloads the
    /// agent. Waits until the pager is ready. Where the environment lacks the agent's variables
    /// (`env -i`), it announces to the pager of this process, which can then report the program.
    ///
    /// # Safety
    /// As for [`named`], but `environment` may be null.
    unsafe fn of(seen: Seen, environment: Texts, kind: u32) -> Told {
        let mut told = Told { name: [0; NAME_BYTES], name_bytes: 0 };
        let lacks = |name: &[u8]| {
            // SAFETY: the caller upholds this function's contract.
            environment.is_null() || unsafe { value_of(environment, name) }.is_none()
        };
        let is_bare = lacks(SOCKET_VARIABLE.as_bytes()) || lacks(b"LD_PRELOAD");
        if seen == Seen::Other || (is_bare && seen != Seen::Absent) {
            // SAFETY: the caller upholds the contract; `KEPT` was written before this can be
            // called.
            unsafe {
                told.name_bytes = match is_bare {
                    true => kept_name(&mut told.name),
                    false => named(environment, &mut told.name),
                };
            }
            if !told.may_call() || !told.tell(kind) {
                told.name_bytes = 0;
            }
        }
        told
    }

    fn tell(&self, kind: u32) -> bool {
        let Some(socket) = connect(&self.name[..self.name_bytes]) else { return false };
        let hello = Hello {
            version: VERSION,
            kind,
            thread: call3(sys::GETTID, 0, 0, 0) as u64,
            ..Hello::default()
        };
        send_hello(socket, &hello, None);
        let welcome = receive_welcome(socket);
        call3(sys::CLOSE, socket, 0, 0);
        matches!(welcome, Some((Welcome::ACCEPTED, _)))
    }

    /// True if this thread may open sockets. It may not if it has more seccomp filters than the
    /// pager, because one of them may kill it. The pager's number of filters ends its socket's
    /// name.
    #[inline(never)]
    fn may_call(&self) -> bool {
        let name = &self.name[..self.name_bytes];
        let mut dash = name.len();
        while dash > 0 && name[dash - 1] != b'-' {
            dash -= 1;
        }
        dash > 0 && status_is(b"Seccomp_filters:\t", &name[dash..]).unwrap_or(true)
    }

    /// Reports that the execution was tried. After a success only a spawning process still runs to
    /// report.
    fn over(&self) {
        if self.name_bytes > 0 {
            self.tell(OVER);
        }
    }
}

/// Announces an execution, calls the C library's function (or the kernel where there is none), and
/// reports that it is over.
macro_rules! pass {
    ($place:expr, $seen:expr, $environment:expr, $kind:expr, $otherwise:expr,
     ($($argument:expr),*), $type:ty) => {{
        let told = Told::of($seen, $environment, $kind);
        let address = find($place);
        let result = if address == 0 {
            $otherwise
        } else {
            core::mem::transmute::<usize, $type>(address)($($argument),*)
        };
        told.over();
        result
    }};
}

/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: Text, arguments: Texts, environment: Texts) -> i32 {
    let all = [sys::HERE, path as usize, arguments as usize, environment as usize, 0, 0];
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        pass!(EXECVE, look(sys::HERE, path), environment, EXECUTES, ended(call(sys::EXECVEAT, all)),
              (path, arguments, environment), unsafe extern "C" fn(Text, Texts, Texts) -> i32)
    }
}

/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: Text, arguments: Texts) -> i32 {
    let environment = own_environment();
    let all = [sys::HERE, path as usize, arguments as usize, environment as usize, 0, 0];
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        pass!(EXECV, look(sys::HERE, path), environment, EXECUTES, ended(call(sys::EXECVEAT, all)),
              (path, arguments), unsafe extern "C" fn(Text, Texts) -> i32)
    }
}

/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(name: Text, arguments: Texts) -> i32 {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        pass!(EXECVP, search(name), own_environment(), EXECUTES, ended(sys::ENOSYS),
              (name, arguments), unsafe extern "C" fn(Text, Texts) -> i32)
    }
}

/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(name: Text, arguments: Texts, environment: Texts) -> i32 {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        pass!(EXECVPE, search(name), environment, EXECUTES, ended(sys::ENOSYS),
              (name, arguments, environment), unsafe extern "C" fn(Text, Texts, Texts) -> i32)
    }
}

/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: i32, arguments: Texts, environment: Texts) -> i32 {
    let mut head = [0; HEAD_BYTES];
    let seen = match look_into(file as usize, &mut head) {
        Ok(seen) => seen,
        Err(interpreter) => look(sys::HERE, interpreter),
    };
    const EMPTY_PATH: usize = 0x1000;
    let empty = b"\0".as_ptr() as usize;
    let all =
        [file as usize, empty, arguments as usize, environment as usize, EMPTY_PATH, 0];
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        pass!(FEXECVE, seen, environment, EXECUTES, ended(call(sys::EXECVEAT, all)),
              (file, arguments, environment), unsafe extern "C" fn(i32, Texts, Texts) -> i32)
    }
}

/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: i32,
    path: Text,
    arguments: Texts,
    environment: Texts,
    flags: i32,
) -> i32 {
    let at = folder as isize as usize;
    // Without a path the program is the file itself; the pager inspects it.
    let seen = match look(at, path) {
        Seen::Absent => Seen::Other,
        seen => seen,
    };
    let all = [at, path as usize, arguments as usize, environment as usize, flags as usize, 0];
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        pass!(EXECVEAT, seen, environment, EXECUTES, ended(call(sys::EXECVEAT, all)),
              (folder, path, arguments, environment, flags),
              unsafe extern "C" fn(i32, Text, Texts, Texts, i32) -> i32)
    }
}

type Spawn = unsafe extern "C" fn(Passed, Text, Passed, Passed, Texts, Texts) -> i32;

/// For a spawn: the child may change its folder first, so a file that is absent here may exist
/// there.
fn from_here(seen: Seen) -> Seen {
    if seen == Seen::Absent { Seen::Other } else { seen }
}

/// Defines a function that spawns the program found by `$look`.
macro_rules! spawn {
    ($name:ident, $place:expr, $look:expr) => {
        /// # Safety
        /// As for the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            process: Passed,
            program: Text,
            actions: Passed,
            attributes: Passed,
            arguments: Texts,
            environment: Texts,
        ) -> i32 {
            // SAFETY: the caller upholds this function's contract.
            unsafe {
                let seen = from_here($look(program));
                pass!($place, seen, environment, SPAWNS, -sys::ENOSYS as i32,
                      (process, program, actions, attributes, arguments, environment), Spawn)
            }
        }
    };
}

spawn!(posix_spawn, SPAWN, |path| look(sys::HERE, path));
spawn!(posix_spawnp, SPAWNP, |name| search(name));

/// Collects arguments into an array, from the first behind the path on, as `execl` receives them:
/// those in registers are put before those on the stack.
macro_rules! in_a_row {
    ($name:ident, $with:ident) => {
        /// # Safety
        /// As for the C library's function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                "call {with}",
                "pop rcx",
                "add rsp, 40",
                "push rcx",
                "ret",
                with = sym $with,
            );
        }
    };
}

in_a_row!(execl, execl_in_a_row);
in_a_row!(execlp, execlp_in_a_row);
in_a_row!(execle, execle_in_a_row);

unsafe extern "C" fn execl_in_a_row(path: Text, arguments: Texts) -> i32 {
    // SAFETY: the caller upholds this function's contract.
    unsafe { execv(path, arguments) }
}

unsafe extern "C" fn execlp_in_a_row(name: Text, arguments: Texts) -> i32 {
    // SAFETY: the caller upholds this function's contract.
    unsafe { execvp(name, arguments) }
}

/// The environment lies behind the null pointer that ends the arguments.
unsafe extern "C" fn execle_in_a_row(path: Text, arguments: Texts) -> i32 {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let mut end = arguments;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execve(path, arguments, *end.add(1).cast())
    }
}
