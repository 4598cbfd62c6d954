//! System calls whose arguments lie in memory that may be remote, and calls that change mappings.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use nix::libc;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::arena::{Arena, PAGE_BYTES, map};

fn check(result: isize, what: &str) -> Result<usize, String> {
    usize::try_from(result).map_err(|_| format!("{what}: {}", std::io::Error::last_os_error()))
}

fn bytes(words: &[u64; 512]) -> &[u8] {
    // SAFETY: integers are bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), PAGE_BYTES) }
}

fn bytes_mut(words: &mut [u64; 512]) -> &mut [u8] {
    // SAFETY: integers are bytes.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), PAGE_BYTES) }
}

/// Both ends of a pipe.
pub(crate) struct Pipe {
    from: File,
    to: File,
}

impl Pipe {
    pub(crate) fn new() -> Result<Pipe, String> {
        let (from, to) = nix::unistd::pipe().map_err(|error| format!("pipe: {error}"))?;
        let [from, to] = [from, to].map(|end: OwnedFd| File::from(end));
        Ok(Pipe { from, to })
    }

    /// Lets the kernel write the page: `read` into it.
    pub(crate) fn fill_page(&mut self, arena: &mut Arena, page: usize) -> Result<(), String> {
        let content = arena.next(page);
        self.to.write_all(bytes(&content)).map_err(|error| format!("write: {error}"))?;
        // SAFETY: the page is mapped.
        let got =
            unsafe { libc::read(self.from.as_raw_fd(), arena.place(page).cast(), PAGE_BYTES) };
        match check(got, "read into a page")? {
            PAGE_BYTES => arena.check_page(page),
            short => Err(format!("read into a page: {short} bytes")),
        }
    }

    /// Lets the kernel read the page: `writev` out of it, in two parts.
    pub(crate) fn send_page(&mut self, arena: &mut Arena, page: usize) -> Result<(), String> {
        let start: *mut u8 = arena.place(page).cast();
        let parts = [(0, 1000), (1000, PAGE_BYTES - 1000)].map(|(from, len)| libc::iovec {
            // SAFETY: the address is inside of the page.
            iov_base: unsafe { start.add(from) }.cast(),
            iov_len: len,
        });
        // SAFETY: both parts are mapped.
        let sent = unsafe { libc::writev(self.to.as_raw_fd(), parts.as_ptr(), 2) };
        check(sent, "writev out of a page")?;
        self.receive(arena, page)
    }

    fn receive(&mut self, arena: &Arena, page: usize) -> Result<(), String> {
        let mut copy = [0; 512];
        self.from.read_exact(bytes_mut(&mut copy)).map_err(|error| format!("read: {error}"))?;
        arena.check_copy(page, &copy)
    }
}

/// Gives the page itself to a pipe: `vmsplice`.
pub(crate) fn gift(pipe: &mut Pipe, arena: &mut Arena, page: usize) -> Result<(), String> {
    let part = libc::iovec { iov_base: arena.place(page).cast(), iov_len: PAGE_BYTES };
    // SAFETY: the page is mapped, and not written before the pipe has been read.
    let sent = unsafe { libc::vmsplice(pipe.to.as_raw_fd(), &raw const part, 1, 0) };
    check(sent, "vmsplice")?;
    pipe.receive(arena, page)
}

/// Writes the page to a file with `pwrite`, and reads it back with `pread`.
pub(crate) fn file(arena: &mut Arena, page: usize) -> Result<(), String> {
    // SAFETY: the call takes a name and flags.
    let file = unsafe { libc::memfd_create(c"torture".as_ptr(), libc::MFD_CLOEXEC) };
    check(file as isize, "memfd")?;
    let place = arena.place(page);
    // SAFETY: the page is mapped; the file is closed once.
    unsafe {
        let wrote = libc::pwrite(file, place.cast(), PAGE_BYTES, 4096);
        place.write_bytes(0xee, 512);
        let got = libc::pread(file, place.cast(), PAGE_BYTES, 4096);
        libc::close(file);
        check(wrote, "pwrite")?;
        check(got, "pread")?;
    }
    arena.check_page(page)
}

/// Lets the kernel compare a word of the page.
pub(crate) fn futex(arena: &mut Arena, page: usize) -> Result<(), String> {
    let place = arena.place(page);
    // SAFETY: the word is mapped; it never holds what is asked for, so the call returns at once.
    let (result, error) = unsafe {
        let other = !place.cast::<u32>().read_volatile();
        let result = libc::syscall(
            libc::SYS_futex,
            place,
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            other,
            null_mut::<u8>(),
        );
        (result, *libc::__errno_location())
    };
    if result == -1 && error == libc::EAGAIN {
        return arena.check_page(page);
    }
    Err(format!("futex: {result}, error {error}"))
}

/// Number of contiguous pages from `page` on.
fn run(arena: &Arena, page: usize, most: u64, random: &mut Xoshiro256PlusPlus) -> usize {
    let wanted = 1 + (random.next_u64() % most) as usize;
    let first = arena.place(page) as usize;
    (0..wanted)
        .take_while(|next| {
            page + next < arena.pages()
                && arena.place(page + next) as usize == first + next * PAGE_BYTES
        })
        .count()
}

/// Discards pages with `madvise(MADV_DONTNEED)`; they are zeroes afterwards.
pub(crate) fn give_back(
    arena: &mut Arena,
    page: usize,
    random: &mut Xoshiro256PlusPlus,
) -> Result<(), String> {
    let pages = run(arena, page, 8, random);
    // SAFETY: the pages are mapped, and the arena expects them to lose their content.
    let result =
        unsafe { libc::madvise(arena.place(page).cast(), pages * PAGE_BYTES, libc::MADV_DONTNEED) };
    check(result as isize, "madvise")?;
    for page in page..page + pages {
        arena.cleared(page);
        // Half of them are checked now, the others after other operations.
        if random.next_u64().is_multiple_of(2) {
            arena.check_page(page)?;
        }
    }
    Ok(())
}

/// Unmaps pages and maps new ones at their addresses.
pub(crate) fn replace(
    arena: &mut Arena,
    page: usize,
    random: &mut Xoshiro256PlusPlus,
) -> Result<(), String> {
    let pages = run(arena, page, 4, random);
    let (place, bytes) = (arena.place(page), pages * PAGE_BYTES);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the pages belong to this arena, whose content is given up.
    let result = unsafe { libc::mmap(place.cast(), bytes, rights, flags, -1, 0) };
    if result.cast() != place {
        return Err("mmap over pages".to_owned());
    }
    for page in page..page + pages {
        arena.cleared(page);
        arena.check_word(page, 7)?;
        arena.write_page(page);
    }
    Ok(())
}

/// Revokes write permission, checks the page, and restores the permission.
pub(crate) fn protect(arena: &mut Arena, page: usize) -> Result<(), String> {
    let place = arena.place(page).cast();
    // SAFETY: the page is mapped, and not written between the calls.
    check(unsafe { libc::mprotect(place, PAGE_BYTES, libc::PROT_READ) } as isize, "mprotect")?;
    let result = arena.check_page(page);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as above.
    check(unsafe { libc::mprotect(place, PAGE_BYTES, both) } as isize, "mprotect")?;
    result
}

/// Moves a page to another address, sometimes leaving the old one mapped and empty.
pub(crate) fn relocate(
    arena: &mut Arena,
    page: usize,
    random: &mut Xoshiro256PlusPlus,
) -> Result<(), String> {
    let target = map(PAGE_BYTES, libc::MAP_PRIVATE);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let flags =
        flags | if random.next_u64().is_multiple_of(2) { libc::MREMAP_DONTUNMAP } else { 0 };
    let place = arena.place(page);
    // SAFETY: both pages belong to this arena alone.
    let moved = unsafe { libc::mremap(place.cast(), PAGE_BYTES, PAGE_BYTES, flags, target) };
    if moved.cast() != target {
        return Err(format!("mremap: {}", std::io::Error::last_os_error()));
    }
    arena.moved(page, target);
    arena.check_page(page)?;
    if flags & libc::MREMAP_DONTUNMAP != 0 {
        // SAFETY: the old page stayed mapped, and is empty.
        let left = unsafe { place.add(3).read_volatile() };
        // SAFETY: nothing uses the page any more.
        check(unsafe { libc::munmap(place.cast(), PAGE_BYTES) } as isize, "munmap")?;
        if left != 0 {
            return Err(format!("page {page} left {left:016x} behind when it moved"));
        }
    }
    Ok(())
}

static SEEN: AtomicU64 = AtomicU64::new(0);
thread_local! {
    static LOOK: AtomicPtr<u64> = const { AtomicPtr::new(null_mut()) };
}

extern "C" fn look(_: i32) {
    let word = LOOK.with(|place| place.load(Ordering::Relaxed));
    if !word.is_null() {
        // SAFETY: `signal` set it to a mapped word of this thread's arena.
        SEEN.fetch_add(unsafe { word.read_volatile() } & 1, Ordering::Relaxed);
    }
}

pub(crate) fn install_handler() {
    // SAFETY: the handler only reads memory and adds.
    unsafe { libc::signal(libc::SIGUSR1, look as extern "C" fn(i32) as libc::sighandler_t) };
}

/// Raises a signal whose handler touches the page.
pub(crate) fn signal(arena: &Arena, page: usize) -> Result<(), String> {
    LOOK.with(|place| place.store(arena.place(page), Ordering::Relaxed));
    // SAFETY: the signal goes to this thread, which has a handler.
    let result = unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1) };
    check(-(result as isize), "pthread_kill")?;
    arena.check_page(page)
}

/// Starts a thread with a stack of its own, which ends again.
pub(crate) fn short_thread(draw: u64) -> Result<(), String> {
    let thread = std::thread::spawn(move || {
        let words: [u64; 2048] = std::array::from_fn(|word| draw ^ word as u64);
        std::hint::black_box(&words).iter().enumerate().all(|(at, word)| *word == draw ^ at as u64)
    });
    match thread.join() {
        Ok(true) => Ok(()),
        _ => Err("a thread's stack changed".to_owned()),
    }
}

/// Forks a child that checks its parent's pages, changes its own, and checks again.
pub(crate) fn fork(arena: &mut Arena, random: &mut Xoshiro256PlusPlus) -> Result<(), String> {
    let pages = arena.pages();
    let looked: Vec<usize> = (0..32).map(|_| (random.next_u64() % pages as u64) as usize).collect();
    let expectations = arena.expectations();
    // SAFETY: the child uses memory and ends; it takes no lock and allocates nothing from the heap.
    let child = unsafe { libc::fork() };
    if child == 0 {
        arena.adopt(expectations);
        let mut right = looked.iter().all(|page| arena.check_page(*page).is_ok());
        for page in &looked {
            arena.write_page(*page);
        }
        right &= looked.iter().all(|page| arena.check_page(*page).is_ok());
        // SAFETY: the call ends the child at once.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    Arena::drop_expectations(expectations);
    check(child as isize, "fork")?;
    for page in &looked[..8] {
        arena.write_page(*page);
    }
    let mut status = 0;
    // SAFETY: the call waits for the child above.
    check(unsafe { libc::waitpid(child, &raw mut status, 0) } as isize, "waitpid")?;
    if status != 0 {
        return Err(format!("a child saw wrong pages, or ended with status {status:x}"));
    }
    looked.iter().try_for_each(|page| arena.check_page(*page))
}

/// Executes another program.
pub(crate) fn execute() -> Result<(), String> {
    match Command::new("/bin/true").status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("/bin/true: {other:?}")),
    }
}
