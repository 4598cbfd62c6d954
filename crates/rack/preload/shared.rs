//! The paper's calls that pass a buffer by reference (4.4): `alloc_shared_buffer`,
//! `build_shared_skb`, `kfree_shared_skb`, and `recv_shared_skb`, which returns a reference.
//!
//! A buffer is a part of the connection's ring, which both ends have mapped and no other process
//! has. To send it publishes a position, and no byte is copied. Each ring is mapped twice in a row,
//! so every part of it is contiguous. Where the ring cannot be used, a buffer is memory of this
//! process, and the kernel copies it.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::result;
use crate::conn::{self, End, Slot, Use, View};
use crate::ledger::Count;
use crate::line::{Consumer, Next};
use crate::lock::Lock;
use crate::{mailbox, rack, restart, rx, sys, tx};

/// Most references that a program has to received bytes of one connection.
const REFERENCES: usize = 64;
/// Most buffers of this process that are not in a ring.
const PRIVATE: usize = 1024;
/// Most bytes of a buffer that is not in a ring.
const PRIVATE_BYTES_MAX: usize = 64 << 20;
/// Sleeps on memory before the socket is asked.
const SLEEPS: u32 = 3;
const ANONYMOUS: usize = 0x22;

/// References to received bytes, in the order of the stream.
#[repr(C)]
pub struct References {
    starts: [u64; REFERENCES],
    is_free: [bool; REFERENCES],
    /// The oldest reference, and how many follow it, itself included.
    first: usize,
    count: usize,
}

/// A buffer that is not in a ring: where it begins, and its bytes.
struct Private {
    at: AtomicUsize,
    bytes: AtomicUsize,
}

static ALL: [Private; PRIVATE] =
    [const { Private { at: AtomicUsize::new(0), bytes: AtomicUsize::new(0) } }; PRIVATE];
static LOCK: Lock = Lock::new();

/// In a fork's child: no other thread holds the lock here.
pub fn after_fork() {
    LOCK.reset();
}

/// Maps a ring twice in a row, once for each slot and direction.
fn mirror(slot: &Slot, view: &View, sends: bool) -> Option<*mut u8> {
    const NONE: usize = 0;
    const MAY_MOVE_FIXED: usize = 3;
    let place = &slot.mirrors[usize::from(sends)];
    let at = place.load(Ordering::Acquire);
    if at != 0 {
        return Some(at as *mut u8);
    }
    let size = view.size as usize;
    // SAFETY: new addresses are reserved, and the ring's pages are mapped there, too: an old size
    // of 0 copies a shared mapping.
    unsafe {
        let a = [0, 2 * size, NONE, ANONYMOUS, usize::MAX, 0];
        let at = sys::call(sys::MMAP, a);
        if at <= 0 {
            return None;
        }
        for half in [0, size] {
            let to = at as usize + half;
            let moved =
                sys::call(sys::MREMAP, [view.ring as usize, 0, size, MAY_MOVE_FIXED, to, 0]);
            if moved != to as isize {
                sys::call4(sys::MUNMAP, at as usize, 2 * size, 0, 0);
                return None;
            }
        }
        place.store(at as usize, Ordering::Release);
        Some(at as *mut u8)
    }
}

/// Unmaps what [`mirror`] has mapped, when a slot becomes free.
pub fn unmap(slot: &Slot) {
    let bytes = 2 * slot.ring_bytes.load(Ordering::Acquire) as usize;
    for place in &slot.mirrors {
        let at = place.swap(0, Ordering::AcqRel);
        if at != 0 {
            // SAFETY: no descriptor and no call refers to the mapping.
            unsafe { sys::call4(sys::MUNMAP, at, bytes, 0, 0) };
        }
    }
}

/// The offset of `buffer` in a mirrored ring.
fn offset(slot: &Slot, sends: bool, buffer: *const u8) -> Option<u64> {
    let at = slot.mirrors[usize::from(sends)].load(Ordering::Acquire);
    let offset = (buffer as usize).checked_sub(at).filter(|_| at != 0)? as u64;
    (offset < slot.ring_bytes.load(Ordering::Acquire)).then_some(offset)
}

/// Memory of this process.
fn private(bytes: usize) -> Result<*mut u8, isize> {
    if bytes > PRIVATE_BYTES_MAX {
        return Err(sys::EMSGSIZE);
    }
    let _held = LOCK.lock();
    let free = ALL.iter().find(|one| one.at.load(Ordering::Relaxed) == 0).ok_or(sys::ENOBUFS)?;
    // SAFETY: this maps new memory at an address that the kernel chooses.
    let at = unsafe { sys::call(sys::MMAP, [0, bytes, 3, ANONYMOUS, usize::MAX, 0]) };
    if at <= 0 {
        return Err(sys::ENOMEM);
    }
    free.bytes.store(bytes, Ordering::Relaxed);
    free.at.store(at as usize, Ordering::Relaxed);
    Ok(at as *mut u8)
}

/// Bytes of a buffer of this process; `None` if it is none.
fn private_bytes(buffer: *const u8) -> Option<usize> {
    let _held = LOCK.lock();
    let own = ALL.iter().find(|one| one.at.load(Ordering::Relaxed) == buffer as usize)?;
    Some(own.bytes.load(Ordering::Relaxed)).filter(|_| !buffer.is_null())
}

fn free_private(buffer: *const u8) -> bool {
    let _held = LOCK.lock();
    let is_own = |one: &&Private| one.at.load(Ordering::Relaxed) == buffer as usize;
    let Some(own) = ALL.iter().find(is_own).filter(|_| !buffer.is_null()) else { return false };
    own.at.store(0, Ordering::Relaxed);
    // SAFETY: the program gives the buffer back.
    unsafe { sys::call4(sys::MUNMAP, buffer as usize, own.bytes.load(Ordering::Relaxed), 0, 0) };
    true
}

enum Reserved {
    Here(*mut u8),
    /// The ring has no room for it now.
    Full,
    /// The ring is not the way of the next bytes.
    Elsewhere,
}

/// Reserves a part of the ring behind its head.
fn reserve(used: &Use, end: &End, bytes: u64) -> Result<Reserved, isize> {
    let _held = end.tx.lock();
    if end.reserved.load(Ordering::Acquire) != 0 {
        return Err(sys::EBUSY);
    }
    let may_join = mailbox::advance(used, end);
    let view = may_join.then(|| used.slot.view(true)).flatten();
    let Some(view) = view.filter(|view| bytes <= view.size) else { return Ok(Reserved::Elsewhere) };
    // SAFETY: the lock of this direction is held.
    let producer = unsafe { &mut *end.producer.get() };
    if !tx::enter(used, end, producer, &view, 0) || end.stay.load(Ordering::Acquire) != 0 {
        return Ok(Reserved::Elsewhere);
    }
    match producer.room(view.line, view.size) {
        Ok(room) if room >= bytes => {}
        Ok(_) => return Ok(Reserved::Full),
        Err(_) => return Ok(Reserved::Elsewhere),
    }
    let Some(ring) = mirror(used.slot, &view, true) else { return Ok(Reserved::Elsewhere) };
    end.reserved.store(bytes, Ordering::Release);
    // SAFETY: the position is within the first half, and the part within both halves.
    Ok(Reserved::Here(unsafe { ring.add((producer.head & (view.size - 1)) as usize) }))
}

fn allocate(fd: i32, bytes: usize) -> Result<*mut u8, isize> {
    if bytes == 0 {
        return Err(sys::EINVAL);
    }
    let found = conn::connection(fd).and_then(|used| used.end().map(|end| (used, end)));
    if let Some((used, end)) = found {
        for attempt in 0..2 {
            match reserve(&used, end, bytes as u64)? {
                Reserved::Here(buffer) => return Ok(buffer),
                Reserved::Full if attempt == 0 && !rx::has_ended(fd) => {
                    tx::wait_for_room(&used, end, bytes as u64);
                }
                _ => break,
            }
        }
    }
    private(bytes)
}

/// Publishes a reserved buffer. False if the ring is not the way any more.
fn publish(used: &Use, end: &End, buffer: *const u8, bytes: u64) -> Result<bool, isize> {
    let Some(at) = offset(used.slot, true, buffer) else { return Ok(false) };
    let _held = end.tx.lock();
    // SAFETY: the lock of this direction is held.
    let producer = unsafe { &mut *end.producer.get() };
    let reserved = end.reserved.load(Ordering::Acquire);
    let size = used.slot.ring_bytes.load(Ordering::Acquire);
    if bytes > reserved || producer.head & (size - 1) != at {
        return Err(sys::EINVAL);
    }
    let Some(view) = used.slot.view(true).filter(|_| producer.in_ring()) else { return Ok(false) };
    if end.stay.load(Ordering::Acquire) != 0 || !tx::publish(used, end, producer, &view, bytes) {
        return Ok(false);
    }
    end.reserved.store(0, Ordering::Release);
    rack::count(Count::ReferenceBytes, bytes);
    Ok(true)
}

/// Sends a buffer whole by the way that is left, which copies it. It waits where it must.
fn copy(fd: i32, buffer: *const u8, bytes: usize) -> Result<(), isize> {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the buffer has so many bytes.
        let iov = unsafe { sys::Iovec { base: buffer.cast_mut().add(done), len: bytes - done } };
        // SAFETY: as above.
        let sent = unsafe {
            crate::calls::sends(fd, &raw const iov, 1, 0).unwrap_or_else(|| {
                sys::call4(sys::WRITE, fd as usize, iov.base as usize, iov.len, 0)
            })
        };
        if sent == sys::EAGAIN {
            let waited = sys::poll_one(fd, sys::POLLOUT, -1);
            waited.map_err(|error| if done > 0 { sys::EAGAIN } else { error })?;
        } else if sent < 0 {
            return Err(sent);
        } else {
            done += sent as usize;
        }
    }
    Ok(())
}

fn send(fd: i32, buffer: *const u8, bytes: usize) -> Result<isize, isize> {
    if bytes == 0 || buffer.is_null() {
        return Err(sys::EINVAL);
    }
    if let Some(used) = conn::connection(fd) {
        let end = used.end().ok_or(sys::EBADF)?;
        if publish(&used, end, buffer, bytes as u64)? {
            return Ok(bytes as isize);
        }
        if offset(used.slot, true, buffer).is_some() {
            copy(fd, buffer, bytes)?;
            end.reserved.store(0, Ordering::Release);
            return Ok(bytes as isize);
        }
    }
    if private_bytes(buffer).is_none_or(|most| bytes > most) {
        return Err(sys::EINVAL);
    }
    copy(fd, buffer, bytes)?;
    free_private(buffer);
    Ok(bytes as isize)
}

enum Found {
    Here(*const u8, usize),
    /// The ring is empty, and is the place where the next bytes come.
    Empty(View, Consumer),
    Elsewhere,
}

/// A reference to bytes of the ring.
fn refer(used: &Use, end: &End, most: usize) -> Result<Found, isize> {
    let _held = end.rx.lock();
    let may_join = mailbox::advance(used, end);
    let is_first = crate::left::unread(used, end) == 0;
    let view = may_join.then(|| used.slot.view(false)).flatten().filter(|_| is_first);
    let Some(view) = view else { return Ok(Found::Elsewhere) };
    // SAFETY: the lock of this direction is held.
    let (consumer, held) = unsafe { (&mut *end.consumer.get(), &mut *end.held.get()) };
    let bytes = match consumer.next(view.line, view.size) {
        Next::Ring(0) => {
            if !end.always_rings() {
                consumer.quiet(view.line);
            }
            return Ok(Found::Empty(view, *consumer));
        }
        Next::Ring(bytes) => bytes.min(most as u64),
        _ => return Ok(Found::Elsewhere),
    };
    if held.count == REFERENCES {
        return Err(sys::ENOBUFS);
    }
    let Some(ring) = mirror(used.slot, &view, false) else { return Ok(Found::Elsewhere) };
    let place = (held.first + held.count) % REFERENCES;
    held.starts[place] = consumer.tail;
    held.is_free[place] = false;
    held.count += 1;
    if held.count == 1 {
        consumer.pin(view.line, Some(consumer.tail));
    }
    let at = (consumer.tail & (view.size - 1)) as usize;
    consumer.advance(view.line, bytes);
    rx::settle(used, end, consumer, &view);
    // SAFETY: the position is within the first half, and the part within both halves.
    Ok(Found::Here(unsafe { ring.add(at) }, bytes as usize))
}

fn receive(fd: i32, most: usize, flags: u32) -> Result<(*const u8, usize), isize> {
    let found = conn::connection(fd).and_then(|used| used.end().map(|end| (used, end)));
    let mut byte = 0u8;
    let iov = sys::Iovec { base: &raw mut byte, len: 1 };
    let (mut sleeps, mut is_here) = (0, false);
    while let Some((used, end)) = &found {
        match refer(used, end, most)? {
            Found::Here(at, bytes) => return Ok((at, bytes)),
            Found::Elsewhere if is_here => break,
            Found::Empty(view, consumer) if sleeps < SLEEPS => {
                sleeps += 1;
                if wait(used, &view, &consumer, flags)? {
                    continue;
                }
            }
            _ => {}
        }
        // The call that receives knows all about ends, errors, limits and signals.
        // SAFETY: the buffer is one byte.
        let seen = unsafe { crate::calls::receives(fd, &raw const iov, 1, flags | sys::MSG_PEEK) };
        match seen {
            Some(0) => return Ok((null_mut(), 0)),
            Some(error) if error < 0 => return Err(error),
            _ => is_here = true,
        }
    }
    copied(fd, most, flags)
}

/// Waits on memory. False if the socket must be asked.
fn wait(used: &Use, view: &View, consumer: &Consumer, flags: u32) -> Result<bool, isize> {
    if flags & sys::MSG_DONTWAIT != 0 || sys::is_nonblocking(used.fd) {
        return Ok(false);
    }
    if rx::spin(used, view, consumer) {
        return Ok(true);
    }
    // A call on the socket waits with the program's limit, and is interrupted by its signals.
    if rx::limit_ms(used.fd, sys::SO_RCVTIMEO).is_some() || restart::interrupts() {
        return Ok(false);
    }
    rx::sleep_on_memory(view, consumer).map(|()| !rx::is_unchanged(view, consumer))
}

/// Receives into memory of this process.
fn copied(fd: i32, most: usize, flags: u32) -> Result<(*const u8, usize), isize> {
    let most = most.min(PRIVATE_BYTES_MAX);
    let buffer = private(most)?;
    let iov = sys::Iovec { base: buffer, len: most };
    // SAFETY: the buffer has so many bytes.
    let got = unsafe {
        crate::calls::receives(fd, &raw const iov, 1, flags).unwrap_or_else(|| {
            sys::call(sys::RECVFROM, [fd as usize, buffer as usize, most, flags as usize, 0, 0])
        })
    };
    if got > 0 {
        return Ok((buffer, got as usize));
    }
    free_private(buffer);
    if got == 0 { Ok((null_mut(), 0)) } else { Err(got) }
}

/// Gives a reference back. False if there is none to this place.
fn release(used: &Use, end: &End, buffer: *const u8) -> bool {
    let Some(at) = offset(used.slot, false, buffer) else { return false };
    let _held = end.rx.lock();
    // SAFETY: the lock of this direction is held.
    let (consumer, held) = unsafe { (&mut *end.consumer.get(), &mut *end.held.get()) };
    let mask = used.slot.ring_bytes.load(Ordering::Acquire) - 1;
    let places = (0..held.count).map(|step| (held.first + step) % REFERENCES);
    let mut own = places.filter(|place| held.starts[*place] & mask == at && !held.is_free[*place]);
    let Some(place) = own.next() else { return false };
    held.is_free[place] = true;
    while held.count > 0 && held.is_free[held.first] {
        held.first = (held.first + 1) % REFERENCES;
        held.count -= 1;
    }
    let Some(view) = used.slot.view(false) else { return true };
    consumer.pin(view.line, (held.count > 0).then(|| held.starts[held.first]));
    tx::wake(&view.line.waits.0.room);
    true
}

fn free(fd: i32, buffer: *const u8) -> Result<(), isize> {
    if let Some(used) = conn::connection(fd) {
        let end = used.end().ok_or(sys::EBADF)?;
        if release(&used, end, buffer) {
            return Ok(());
        }
        if offset(used.slot, true, buffer).is_some() {
            let _held = end.tx.lock();
            let was = end.reserved.swap(0, Ordering::AcqRel);
            return if was != 0 { Ok(()) } else { Err(sys::EINVAL) };
        }
    }
    if free_private(buffer) { Ok(()) } else { Err(sys::EINVAL) }
}

#[unsafe(no_mangle)]
extern "C" fn alloc_shared_buffer(fd: i32, bytes: usize) -> *mut u8 {
    allocate(fd, bytes).unwrap_or_else(|error| {
        result(error);
        null_mut()
    })
}

#[unsafe(no_mangle)]
extern "C" fn build_shared_skb(fd: i32, buffer: *mut u8, bytes: usize) -> isize {
    result(send(fd, buffer, bytes).unwrap_or_else(|error| error))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recv_shared_skb(
    fd: i32,
    bytes: *mut *const u8,
    most: usize,
    flags: i32,
) -> isize {
    if bytes.is_null() || most == 0 {
        return result(sys::EINVAL);
    }
    result(match receive(fd, most, flags as u32) {
        Ok((at, length)) => {
            // SAFETY: the program passes room for a pointer.
            unsafe { bytes.write(at) };
            length as isize
        }
        Err(error) => error,
    })
}

#[unsafe(no_mangle)]
extern "C" fn kfree_shared_skb(fd: i32, buffer: *const u8) -> i32 {
    result(free(fd, buffer).map_or_else(|error| error, |()| 0)) as i32
}
