//! The part of the pager that runs inside of a program. It does only what the kernel allows no
//! other process to do, which is to take pages out of an address space.
//!
//! Preloaded into the program, it opens a userfaultfd, hands it to the pager and starts one thread
//! with its own table of files. The thread moves pages to a staging area when the pager orders it.
//! It uses no library, no thread-local storage and no memory of the program, because the thread has
//! no C runtime. If no loader preloads the agent, the pager writes it into the program's memory
//! before the first instruction. See docs/internals/pager.md.

#![no_std]

#[macro_use]
pub mod exec;
mod grow;
mod messages;
mod pages;
#[path = "../src/protocol.rs"]
pub mod protocol;
mod sys;

use core::arch::{asm, global_asm};
use core::mem::size_of;
use core::ptr::{addr_of, addr_of_mut, null};
use core::sync::atomic::{AtomicU32, Ordering};

use messages::{connect, introduce};
use pages::{take, unshare};
use protocol::{
    BATCH_PAGES, Done, FORKED, GO, GRANT, Hello, INJECTED, Order, PAGE_BYTES, SOCKET_VARIABLE,
    STARTED, TAKE, VERSION, feature, request,
};

fn call(number: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the callers below pass the arguments that each system call requires.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
             in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4],
             in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

fn call3(number: usize, a: usize, b: usize, c: usize) -> isize {
    call(number, [a, b, c, 0, 0, 0])
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    die()
}

/// Ends the process: the pager is gone, and with it the program's memory, so no thread may run on.
fn die() -> ! {
    let process = call3(sys::GETPID, 0, 0, 0) as usize;
    loop {
        call3(sys::KILL, process, sys::SIGKILL, 0);
    }
}

// The compiled part of `core` refers to this symbol; nothing here unwinds. It is hidden, so that a
// program that unwinds does not bind to it.
global_asm!(
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);

// Functions to which the compiler emits calls. They are hidden, because no library is loaded yet
// when the agent has been written into a program.
global_asm!(
    ".hidden memset",
    ".globl memset",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".hidden memcpy",
    ".globl memcpy",
    "memcpy:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
);

const STACK_BYTES: usize = 64 << 10;
const STAGING_BYTES: usize = BATCH_PAGES * PAGE_BYTES;
const NAME_BYTES: usize = 64;

/// Data at the start of the agent's own memory; its stack is behind it.
#[repr(C)]
struct Own {
    socket: usize,
    fault: usize,
    staging: usize,
    /// Memory shared with the pager: pages are copied here after they were moved.
    shown: usize,
    /// How far the start is: 1 when the agent's threads have their files, 2 when the program may
    /// run.
    started: AtomicU32,
    asking: grow::Asking,
}

/// What a fork's child needs again: it has neither the agent's thread nor the agent's own memory.
struct Kept {
    name: [u8; NAME_BYTES],
    name_bytes: usize,
    probe: usize,
    /// Range into which the agent was written, which stays in place; zero where a loader mapped its
    /// file.
    image_start: usize,
    image_end: usize,
}

static mut KEPT: Kept =
    Kept { name: [0; NAME_BYTES], name_bytes: 0, probe: 0, image_start: 0, image_end: 0 };

/// Type of glibc's function that registers handlers to be called in a fork's child.
type RegisterAtFork = unsafe extern "C" fn(
    prepare: Option<extern "C" fn()>,
    parent: Option<extern "C" fn()>,
    child: Option<extern "C" fn()>,
    object: *const u8,
) -> i32;

global_asm!(".weak __register_atfork");

/// glibc's function, if this process uses glibc.
fn register_at_fork() -> Option<RegisterAtFork> {
    let address: usize;
    // SAFETY: reads a word that the loader filled in: the function's address, or zero.
    unsafe {
        asm!("mov {}, [rip + __register_atfork@GOTPCREL]", out(reg) address, options(nostack));
        core::mem::transmute::<usize, Option<RegisterAtFork>>(address)
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(i32, *const *const u8, *const *const u8) = start;

/// Called by glibc's loader. Other loaders pass no arguments: there the program runs without the
/// pager.
extern "C" fn start(_: i32, _: *const *const u8, environment: *const *const u8) {
    let Some(register) = register_at_fork() else { return };
    exec::find_all();
    grow::hold_mappings();
    // SAFETY: glibc's loader passes the environment, which ends with a null pointer; no other
    // thread runs yet.
    unsafe {
        if begin(environment, STARTED) {
            register(Some(grow::forks), None, Some(forked), null());
        }
    }
}

// Entry point of a program into which the agent was written. r12 holds the program's own first
// instruction, r13 and r14 the start and the end of the agent's image, and the stack is the
// program's initial one. All other registers are zero, as the kernel starts a program.
global_asm!(
    ".globl ethermem_agent_enter",
    "ethermem_agent_enter:",
    "mov rbx, rsp",
    "mov rax, [rsp]",
    "lea rdi, [rsp + 8 * rax + 16]",
    "mov rsi, r13",
    "mov rdx, r14",
    "and rsp, -16",
    "call {entered}",
    "mov rsp, rbx",
    "mov [rsp - 16], r12",
    "xor eax, eax",
    "xor ebx, ebx",
    "xor ecx, ecx",
    "xor edx, edx",
    "xor esi, esi",
    "xor edi, edi",
    "xor ebp, ebp",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "xor r10d, r10d",
    "xor r11d, r11d",
    "xor r12d, r12d",
    "xor r13d, r13d",
    "xor r14d, r14d",
    "xor r15d, r15d",
    "jmp [rsp - 16]",
    entered = sym entered,
);

unsafe extern "C" {
    fn ethermem_agent_enter();
}

#[used]
static ENTER: unsafe extern "C" fn() = ethermem_agent_enter;

extern "C" fn entered(environment: *const *const u8, image_start: usize, image_end: usize) {
    // SAFETY: as in `start`; the environment is where the kernel puts it.
    unsafe {
        let kept = &mut *addr_of_mut!(KEPT);
        (kept.image_start, kept.image_end) = (image_start, image_end);
        begin(environment, INJECTED);
    }
}

/// Attaches this process to the pager that the environment names.
unsafe fn begin(environment: *const *const u8, kind: u32) -> bool {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        let kept = &mut *addr_of_mut!(KEPT);
        kept.name_bytes = named(environment, &mut kept.name);
        kept.name_bytes != 0 && attach(kind)
    }
}

/// Attaches a fork's child. Only its pager can bring the child's memory, so it does not run without
/// one.
extern "C" fn forked() {
    if !attach(FORKED) {
        const STDERR: usize = 2;
        let line = b"ethermem: a child of a fork is ended, as it cannot reach its pager\n";
        call3(sys::WRITE, STDERR, line.as_ptr() as usize, line.len());
        die();
    }
}

/// Copies the value of the variable that names the socket to `to`, and returns its length.
unsafe fn named(environment: *const *const u8, to: &mut [u8]) -> usize {
    // SAFETY: the caller upholds this function's contract.
    let value = unsafe { value_of(environment, SOCKET_VARIABLE.as_bytes()) };
    let Some(value) = value else { return 0 };
    let mut bytes = 0;
    // SAFETY: as above.
    unsafe {
        while *value.add(bytes) != 0 && bytes < to.len() {
            to[bytes] = *value.add(bytes);
            bytes += 1;
        }
    }
    bytes
}

/// Copies the name of the socket of this process's own pager to `to`, and returns its length.
unsafe fn kept_name(to: &mut [u8; NAME_BYTES]) -> usize {
    // SAFETY: written once before any other thread runs, and read only from then on.
    let kept = unsafe { &*addr_of!(KEPT) };
    *to = kept.name;
    kept.name_bytes
}

/// The value of the variable `name`.
unsafe fn value_of(mut environment: *const *const u8, name: &[u8]) -> Option<*const u8> {
    // SAFETY: `environment` and the texts in it end with zeroes.
    unsafe {
        while !(*environment).is_null() {
            let text = *environment;
            let mut place = 0;
            while place < name.len() && *text.add(place) == name[place] {
                place += 1;
            }
            if place == name.len() && *text.add(place) == b'=' {
                return Some(text.add(place + 1));
            }
            environment = environment.add(1);
        }
    }
    None
}

fn map(bytes: usize) -> Option<usize> {
    let flags = sys::MAP_PRIVATE_ANONYMOUS;
    let at = call(sys::MMAP, [0, bytes, sys::PROT_READ_WRITE, flags, usize::MAX, 0]);
    (at > 0).then_some(at as usize)
}

/// A userfaultfd with `probe` registered, or the error's number.
fn open_fault(probe: usize) -> Result<usize, u32> {
    let fault = call3(sys::USERFAULTFD, sys::CLOEXEC, 0, 0);
    if fault < 0 {
        return Err(-fault as u32);
    }
    let fault = fault as usize;
    let api = [request::API_VERSION, feature::ALL, 0u64];
    let range = [probe as u64, PAGE_BYTES as u64, request::MODE_MISSING, 0];
    for error in [ioctl(fault, request::API, &api), ioctl(fault, request::REGISTER, &range)] {
        if error < 0 {
            call3(sys::CLOSE, fault, 0, 0);
            return Err(-error as u32);
        }
    }
    Ok(fault)
}

fn ioctl<T>(file: usize, code: u64, argument: &T) -> isize {
    call3(sys::IOCTL, file, code as usize, argument as *const T as usize)
}

/// Announces this process to the pager and starts the agent's thread.
fn attach(kind: u32) -> bool {
    let (Some(own), Some(staging)) = (map(STACK_BYTES), map(STAGING_BYTES)) else { return false };
    call3(sys::MADVISE, own, STACK_BYTES, sys::DONTFORK);
    call3(sys::MADVISE, staging, STAGING_BYTES, sys::DONTFORK);
    call3(sys::MADVISE, staging, STAGING_BYTES, sys::NOHUGEPAGE);
    // SAFETY: only one thread runs, at start and after a fork alike.
    let kept = unsafe { &mut *addr_of_mut!(KEPT) };
    let (mut fault, mut error) = (None, 0);
    if kind != FORKED {
        let Some(probe) = map(PAGE_BYTES) else { return false };
        kept.probe = probe;
        match open_fault(probe) {
            Ok(opened) => fault = Some(opened),
            Err(number) => error = number,
        }
    }
    let hello = Hello {
        version: VERSION,
        kind,
        error,
        staging: staging as u64,
        probe: kept.probe as u64,
        // A fork's child waits here until the pager has put the secret at the probe page.
        secret: if kind == FORKED { secret_at(kept.probe) } else { [0; 2] },
        own_start: own as u64,
        own_end: (own + STACK_BYTES) as u64,
        image_start: kept.image_start as u64,
        image_end: kept.image_end as u64,
        ..Hello::default()
    };
    // The connection is made last, so that no failure can come between it and the message.
    let socket = connect(&kept.name[..kept.name_bytes]);
    let shown = socket.and_then(|socket| introduce(socket, &hello, &mut fault));
    if let (Some(socket), Some(file), Some(shown)) = (socket, fault, shown) {
        let (started, asking) = (AtomicU32::new(0), grow::Asking::new());
        run_beside(own, Own { socket, fault: file, staging, shown, started, asking });
    }
    let is_attached = shown.is_some() && fault.is_some();
    for file in [socket, fault].into_iter().flatten() {
        call3(sys::CLOSE, file, 0, 0);
    }
    if is_attached {
        // A child of this process can then do the same.
        call3(sys::MADVISE, kept.probe, PAGE_BYTES, sys::DONTNEED);
        // SAFETY: `run_beside` wrote it.
        wait_until(unsafe { &(*(own as *const Own)).started }, 2);
        grow::attached(own);
    } else {
        call3(sys::MUNMAP, own, STACK_BYTES, 0);
        call3(sys::MUNMAP, staging, STAGING_BYTES, 0);
    }
    is_attached
}

/// The secret that the pager put at the probe page.
fn secret_at(probe: usize) -> [u64; 2] {
    // SAFETY: the page was mapped at start, and forks inherit it.
    unsafe { (probe as *const [u64; 2]).read_volatile() }
}

/// Starts the agent's thread at the top of its own memory, with every signal blocked, and waits
/// until it has closed the files that it does not need.
fn run_beside(own: usize, content: Own) {
    let place = own as *mut Own;
    let mut mask = u64::MAX;
    // SAFETY: `own` is fresh memory of STACK_BYTES; the thread below is its only other user.
    unsafe {
        place.write(content);
        call(sys::SIGPROCMASK, [2, addr_of!(mask) as usize, addr_of_mut!(mask) as usize, 8, 0, 0]);
        ethermem_agent_clone(sys::CLONE_FLAGS, own + STACK_BYTES, own, ethermem_agent_serve);
        call(sys::SIGPROCMASK, [2, addr_of!(mask) as usize, 0, 8, 0, 0]);
        wait_until(&(*place).started, 1);
    }
}

/// Waits until `word` is at least `value`.
fn wait_until(word: &AtomicU32, value: u32) {
    loop {
        match word.load(Ordering::Acquire) {
            now if now >= value => return,
            now => grow::wait(word, now),
        }
    }
}

/// Sets `word`, and wakes who waits for it.
fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    grow::wake(word);
}

unsafe extern "C" {
    /// clone(flags, stack); the child calls `serve(own)`, which never returns.
    fn ethermem_agent_clone(
        flags: usize,
        stack: usize,
        own: usize,
        serve: extern "C" fn(usize) -> !,
    ) -> isize;
}

global_asm!(
    ".hidden ethermem_agent_clone",
    ".globl ethermem_agent_clone",
    "ethermem_agent_clone:",
    "push r12",
    "push r13",
    "mov r12, rdx",
    "mov r13, rcx",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jz 2f",
    "pop r13",
    "pop r12",
    "ret",
    "2:",
    "xor ebp, ebp",
    "mov rdi, r12",
    "call r13",
    "ud2",
);

extern "C" fn ethermem_agent_serve(place: usize) -> ! {
    // SAFETY: `place` is what `run_beside` wrote; other threads only use its atomics.
    let own = unsafe { &*(place as *const Own) };
    let (low, high) = (own.socket.min(own.fault), own.socket.max(own.fault));
    if low > 0 {
        call3(sys::CLOSE_RANGE, 0, low - 1, 0);
    }
    if high > low + 1 {
        call3(sys::CLOSE_RANGE, low + 1, high - 1, 0);
    }
    call3(sys::CLOSE_RANGE, high + 1, u32::MAX as usize, 0);
    let (flags, stack) = (sys::CLONE_FLAGS | sys::CLONE_FILES, place + STACK_BYTES / 2);
    // SAFETY: the lower half of the agent's own memory is this thread's stack alone.
    if unsafe { ethermem_agent_clone(flags, stack, place, grow::serve) } < 0 {
        die();
    }
    set(&own.started, 1);
    let mut order = Order { kind: 0, count: 0, pages: [0; BATCH_PAGES] };
    // The first answer says that the agent accepts orders from now on, and names its thread.
    let mut done = Done { errors: [0; BATCH_PAGES] };
    done.errors[0] = call3(sys::GETTID, 0, 0, 0) as i32;
    let mut is_answered = true;
    loop {
        let (at, bytes) = (addr_of!(done) as usize, size_of::<Done>());
        if is_answered {
            call(sys::SENDTO, [own.socket, at, bytes, sys::NOSIGNAL, 0, 0]);
        }
        is_answered = false;
        let to = addr_of_mut!(order) as usize;
        match call3(sys::READ, own.socket, to, size_of::<Order>()) {
            sys::EINTR => continue,
            bytes if bytes == size_of::<Order>() as isize => {}
            _ => die(),
        }
        done.errors = [0; BATCH_PAGES];
        is_answered = order.kind != GRANT;
        match order.kind {
            GRANT => own.asking.grant(),
            GO => {
                grow::IS_HELD.store(u32::from(order.count > 0), Ordering::SeqCst);
                set(&own.started, 2);
            }
            TAKE => take(own, &order, &mut done),
            _ => unshare(&order, &mut done),
        }
    }
}
