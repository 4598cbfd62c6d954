//! Bytes that a connection had in memory when it returned to the kernel, and nothing had read.
//!
//! They come before all that the kernel's socket has. The socket may have readers in several
//! processes then: so the bytes lie in a file that is named after the socket's cookie, with one
//! position for all of them. A program with this library that gets the socket by `exec` or
//! `SCM_RIGHTS` finds the file. The last byte removes it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::buffers::Buffers;
use crate::conn::{self, End, Slot, Use, stage};
use crate::ledger::{Count, LEFT};
use crate::lock::Lock;
use crate::offer::Address;
use crate::{mailbox, rack, sys};

/// Bytes of the file in front of the stream's bytes.
const HEADER_BYTES: usize = 4096;
const NAME_MAX: usize = rack::PATH_MAX + LEFT.len() + 17;
const EINTR: isize = -4;

/// The file's header.
#[repr(C)]
struct Store {
    lock: Lock,
    /// Bytes that were read.
    at: AtomicU64,
    /// Bytes that the file has.
    bytes: AtomicU64,
    /// A reader has closed the socket before it read all: the kernel is to reset it, as it does
    /// with bytes of its own.
    resets: AtomicU32,
}

/// The path of the file of a socket, which ends with a zero.
fn path(fd: i32) -> Option<[u8; NAME_MAX]> {
    let mut cookie = 0u64;
    if !sys::option(fd, sys::SOL_SOCKET, sys::SO_COOKIE, &mut cookie) || rack::path().is_empty() {
        return None;
    }
    let mut name = [0; NAME_MAX];
    let digit = |place: u32| b"0123456789abcdef"[(cookie >> (60 - 4 * place) & 15) as usize];
    let digits: [u8; 16] = core::array::from_fn(|place| digit(place as u32));
    let parts = rack::path().iter().chain(LEFT.as_bytes()).chain(&digits);
    for (place, byte) in name.iter_mut().zip(parts) {
        *place = *byte;
    }
    Some(name)
}

fn open(path: &[u8; NAME_MAX], more: usize) -> isize {
    let flags = sys::O_RDWR_CLOEXEC | sys::O_NOFOLLOW | more;
    // SAFETY: the path ends with a zero.
    unsafe { sys::call4(sys::OPENAT, 0, path.as_ptr() as usize, flags, 0o600) }
}

/// Puts bytes aside; its file exists from the first byte on.
pub struct Keeper {
    socket: i32,
    file: i32,
    pub bytes: u64,
}

impl Keeper {
    pub fn new(socket: i32) -> Keeper {
        Keeper { socket, file: -1, bytes: 0 }
    }

    /// False if the file takes no more.
    ///
    /// # Safety
    /// `from` must have `length` bytes.
    pub unsafe fn put(&mut self, from: *const u8, length: usize) -> bool {
        if self.file < 0 {
            let Some(path) = path(self.socket) else { return false };
            self.file = open(&path, sys::O_CREATE_NEW) as i32;
            if self.file < 0 {
                return false;
            }
        }
        let mut done = 0;
        while done < length {
            let at = HEADER_BYTES + self.bytes as usize;
            // SAFETY: the caller's bytes are read.
            let put = unsafe {
                let from = from.add(done) as usize;
                sys::call4(sys::PWRITE, self.file as usize, from, length - done, at)
            };
            if put == EINTR {
                continue;
            }
            if put <= 0 {
                return false;
            }
            done += put as usize;
            self.bytes += put as u64;
        }
        true
    }

    /// Ends the file; it can be found from now on. False if that fails.
    pub fn finish(self, end: &End) -> bool {
        if self.bytes == 0 {
            return true;
        }
        let store = Store {
            lock: Lock::new(),
            at: AtomicU64::new(0),
            bytes: AtomicU64::new(self.bytes),
            resets: AtomicU32::new(0),
        };
        let at = &raw const store as usize;
        // SAFETY: the header is written at the file's begin.
        let put = unsafe { sys::call4(sys::PWRITE, self.file as usize, at, size_of::<Store>(), 0) };
        if put != size_of::<Store>() as isize {
            return false;
        }
        if let Some(files) = rack::left_files() {
            files.fetch_add(1, Ordering::AcqRel);
        }
        rack::count(Count::Carried, self.bytes);
        end.left.store(1, Ordering::Release);
        true
    }

    /// Removes the file again.
    pub fn discard(&mut self) {
        if self.file >= 0 {
            remove(self.socket);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.file >= 0 {
            sys::close(self.file);
        }
    }
}

fn remove(socket: i32) {
    if let Some(path) = path(socket) {
        // SAFETY: the path ends with a zero.
        unsafe { sys::call4(sys::UNLINK, path.as_ptr() as usize, 0, 0, 0) };
    }
}

/// Where a slot's file is mapped.
fn mapped(slot: &'static Slot, socket: i32) -> Option<&'static Store> {
    let at = slot.left.load(Ordering::Acquire);
    if at != 0 {
        // SAFETY: the mapping stays while the slot has descriptors or calls in progress.
        return Some(unsafe { &*(at as *const Store) });
    }
    let file = open(&path(socket)?, 0);
    if file < 0 {
        return None;
    }
    // SAFETY: the file's size is asked, and it is mapped where the kernel chooses.
    let (bytes, at) = unsafe {
        let bytes = sys::call4(sys::LSEEK, file as usize, 0, 2, 0).max(0) as usize;
        (bytes, sys::call(sys::MMAP, [0, bytes, 3, 1, file as usize, 0]))
    };
    sys::close(file as i32);
    if at <= 0 || bytes < HEADER_BYTES {
        return None;
    }
    slot.left_bytes.store(bytes, Ordering::Release);
    let order = Ordering::AcqRel;
    if let Err(other) = slot.left.compare_exchange(0, at as usize, order, Ordering::Acquire) {
        // SAFETY: this mapping is not used.
        unsafe { sys::call4(sys::MUNMAP, at as usize, bytes, 0, 0) };
        // SAFETY: as above.
        return Some(unsafe { &*(other as *const Store) });
    }
    // SAFETY: as above.
    Some(unsafe { &*(at as *const Store) })
}

/// Calls `use_` with the unread bytes of the file; it says how many of them were read.
fn with(used: &Use, end: &End, use_: impl FnOnce(*const u8, usize) -> usize) -> usize {
    let is_nameless = used.fd < 0 && used.slot.left.load(Ordering::Acquire) == 0;
    if end.left.load(Ordering::Acquire) == 0 || is_nameless {
        return 0;
    }
    let Some(store) = mapped(used.slot, used.fd) else {
        end.left.store(0, Ordering::Release);
        return 0;
    };
    let _held = store.lock.lock();
    let room = used.slot.left_bytes.load(Ordering::Acquire) - HEADER_BYTES;
    let bytes = (store.bytes.load(Ordering::Acquire) as usize).min(room);
    let at = (store.at.load(Ordering::Acquire) as usize).min(bytes);
    if at == bytes {
        end.left.store(0, Ordering::Release);
        return 0;
    }
    // SAFETY: the position is within the mapping.
    let from = unsafe { core::ptr::from_ref(store).cast::<u8>().add(HEADER_BYTES + at) };
    let read = use_(from, bytes - at).min(bytes - at);
    store.at.store((at + read) as u64, Ordering::Release);
    rack::count(Count::Claimed, read as u64);
    if at + read == bytes {
        end.left.store(0, Ordering::Release);
        remove(used.fd);
        if store.resets.load(Ordering::Acquire) != 0 {
            sys::set_option(used.fd, sys::SOL_SOCKET, sys::SO_LINGER, &[0i32, 0]);
        }
        if let Some(files) = rack::left_files() {
            files.fetch_sub(1, Ordering::AcqRel);
        }
    }
    read
}

/// Reads bytes that were put aside; false if there are none.
pub fn take(used: &Use, end: &End, buffers: &mut Buffers, total: usize, flags: u32) -> bool {
    let mut is_any = false;
    with(used, end, |from, bytes| {
        let some = bytes.min(total - buffers.done);
        is_any = some > 0;
        if flags & sys::MSG_TRUNC != 0 {
            buffers.skip(some);
        } else {
            // SAFETY: the mapping has these bytes.
            unsafe { buffers.fill(from, some) };
        }
        if flags & sys::MSG_PEEK == 0 { some } else { 0 }
    });
    is_any
}

/// True if this descriptor has had bytes that were put aside.
pub fn is_used(used: &Use) -> bool {
    used.slot.left.load(Ordering::Acquire) != 0
}

/// Bytes that were put aside and not read.
pub fn unread(used: &Use, end: &End) -> u64 {
    let mut unread = 0;
    with(used, end, |_, bytes| {
        unread = bytes as u64;
        0
    });
    unread
}

/// Before a process closes its last descriptor: the last of all makes the kernel reset a connection
/// with unread bytes, unless another process reads them before.
pub fn close(used: &Use, end: &End) {
    with(used, end, |_, _| {
        if let Some(store) = mapped(used.slot, used.fd) {
            store.resets.store(1, Ordering::Release);
        }
        sys::set_option(used.fd, sys::SOL_SOCKET, sys::SO_LINGER, &[1i32, 0]);
        0
    });
}

fn has_files() -> bool {
    rack::is_on() && rack::left_files().is_some_and(|files| files.load(Ordering::Acquire) > 0)
}

/// True if bytes of this socket were put aside.
pub fn has(fd: i32) -> bool {
    if !has_files() || !mailbox::is_stream(fd) {
        return false;
    }
    let file = path(fd).map_or(-1, |path| open(&path, 0));
    if file >= 0 {
        sys::close(file as i32);
    }
    file >= 0
}

/// Looks for bytes that were put aside for a socket that this process got.
pub fn adopt(fd: i32) {
    if conn::is_known(fd) || !has(fd) {
        return;
    }
    let none = Address::default();
    if let Some(end) = conn::insert_end(fd, stage::KERNEL, none, none).and_then(Slot::end) {
        end.left.store(1, Ordering::Release);
    }
}

/// Looks at all sockets that this program was executed with.
pub fn adopt_all() {
    if has_files() {
        (0..conn::DESCRIPTORS as i32).for_each(adopt);
    }
}
