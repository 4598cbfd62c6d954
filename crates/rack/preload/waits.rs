//! The calls that wait for several descriptors, as the C library declares them.

use core::slice::from_raw_parts_mut;

use crate::calls::result;
use crate::ready::{self, SELECT_MAX};
use crate::sys::{self, EpollEvent, PollFd, Time};
use crate::{conn, rack};

const NS: u64 = 1_000_000_000;
/// Most descriptors of a `poll` that the library looks at.
const POLL_MAX: u64 = 65_536;

fn limit(time: *const Time, rest_ns: u64) -> Option<u64> {
    // SAFETY: the time is the program's, or null.
    let time = unsafe { time.as_ref() }?;
    let ns = (time.seconds as u64).saturating_mul(NS);
    Some(ns.saturating_add((time.rest as u64).saturating_mul(rest_ns)))
}

/// True if the kernel can do it alone: the library is off, or refuses what the kernel refuses.
fn is_plain(polls: *mut PollFd, count: u64) -> bool {
    !rack::is_on() || polls.is_null() || count > POLL_MAX
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(polls: *mut PollFd, count: u64, timeout_ms: i32) -> i32 {
    let ms = u64::try_from(timeout_ms).ok();
    if is_plain(polls, count) {
        let ms = ms.unwrap_or(0);
        let time = Time { seconds: (ms / 1000) as i64, rest: (ms % 1000 * 1_000_000) as i64 };
        let time = if timeout_ms < 0 { core::ptr::null() } else { &raw const time };
        let a = [polls as usize, count as usize, time as usize, 0, 8, 0];
        // SAFETY: the entries are the program's.
        return result(unsafe { sys::call(sys::PPOLL, a) }) as i32;
    }
    // SAFETY: the program passes so many entries.
    let polls = unsafe { from_raw_parts_mut(polls, count as usize) };
    result(ready::poll(polls, ms.map(|ms| ms * 1_000_000), 0)) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __poll_chk(polls: *mut PollFd, count: u64, ms: i32, _: usize) -> i32 {
    // SAFETY: passed on.
    unsafe { poll(polls, count, ms) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(
    polls: *mut PollFd,
    count: u64,
    time: *const Time,
    mask: *const u8,
) -> i32 {
    if is_plain(polls, count) {
        // The kernel stores the rest of the time; the C library keeps the program's.
        // SAFETY: the time is the program's, or null.
        let copy = unsafe { time.as_ref() }.copied();
        let at = copy.as_ref().map_or(0, |time| core::ptr::from_ref(time) as usize);
        let a = [polls as usize, count as usize, at, mask as usize, 8, 0];
        // SAFETY: the entries and the mask are the program's.
        return result(unsafe { sys::call(sys::PPOLL, a) }) as i32;
    }
    // SAFETY: the program passes so many entries.
    let polls = unsafe { from_raw_parts_mut(polls, count as usize) };
    result(ready::poll(polls, limit(time, 1), mask as usize)) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __ppoll_chk(
    polls: *mut PollFd,
    count: u64,
    time: *const Time,
    mask: *const u8,
    _: usize,
) -> i32 {
    // SAFETY: passed on.
    unsafe { ppoll(polls, count, time, mask) }
}

/// True if one of the sets has a connection.
fn has_connection(count: usize, sets: [*mut u64; 3]) -> bool {
    // SAFETY: each set has `count` bits, or is null.
    let has = |set: &*mut u64, fd: usize| unsafe {
        !set.is_null() && *set.add(fd / 64) & 1 << (fd % 64) != 0
    };
    let is_set = |fd: &usize| sets.iter().any(|set| has(set, *fd));
    (0..count).filter(is_set).any(|fd| conn::connection(fd as i32).is_some())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn select(
    count: i32,
    reads: *mut u64,
    writes: *mut u64,
    errors: *mut u64,
    time: *mut Time,
) -> i32 {
    const SELECT: usize = 23;
    let (sets, bits) = ([reads, writes, errors], count.max(0) as usize);
    if !rack::is_on() || bits > SELECT_MAX || !has_connection(bits, sets) {
        let [r, w, e] = sets.map(|set| set as usize);
        // SAFETY: the sets and the time are the program's.
        let found = unsafe { sys::call(SELECT, [count as usize, r, w, e, time as usize, 0]) };
        return result(found) as i32;
    }
    let start = rack::now_ns();
    let limit_ns = limit(time, 1000);
    // SAFETY: the sets have so many bits.
    let found = unsafe { ready::select(bits, sets, limit_ns, 0) };
    if let Some(limit_ns) = limit_ns {
        // Linux stores the time that is left.
        let left = limit_ns.saturating_sub(rack::now_ns() - start);
        // SAFETY: the time is the program's.
        unsafe {
            *time = Time { seconds: (left / NS) as i64, rest: (left % NS / 1000) as i64 };
        }
    }
    result(found) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pselect(
    count: i32,
    reads: *mut u64,
    writes: *mut u64,
    errors: *mut u64,
    time: *const Time,
    mask: *const u8,
) -> i32 {
    let (sets, bits) = ([reads, writes, errors], count.max(0) as usize);
    if !rack::is_on() || bits > SELECT_MAX || !has_connection(bits, sets) {
        let [r, w, e] = sets.map(|set| set as usize);
        // SAFETY: the time is the program's, or null.
        let copy = unsafe { time.as_ref() }.copied();
        let at = copy.as_ref().map_or(0, |time| core::ptr::from_ref(time) as usize);
        let masked = [mask as usize, 8];
        let a = [count as usize, r, w, e, at, masked.as_ptr() as usize];
        // SAFETY: the sets and the mask are the program's.
        return result(unsafe { sys::call(sys::PSELECT, a) }) as i32;
    }
    // SAFETY: the sets have so many bits.
    result(unsafe { ready::select(bits, sets, limit(time, 1), mask as usize) }) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_ctl(
    epoll: i32,
    operation: i32,
    fd: i32,
    event: *const EpollEvent,
) -> i32 {
    // SAFETY: the event is the program's.
    result(unsafe { ready::control(epoll, operation, fd, event) }) as i32
}

/// Waits, unless the set is owed events.
fn wait(
    epoll: i32,
    events: *mut EpollEvent,
    most: i32,
    raw: impl Fn(*mut EpollEvent, usize, bool) -> isize,
) -> isize {
    let Ok(most) = usize::try_from(most) else { return raw(events, usize::MAX, false) };
    if events.is_null() || most == 0 || !rack::is_on() {
        return raw(events, most, false);
    }
    // SAFETY: the program passes room for so many events.
    let all = unsafe { from_raw_parts_mut(events, most) };
    loop {
        let owed = ready::owed(epoll, all);
        if owed == most {
            return owed as isize;
        }
        let found = raw(all[owed..].as_mut_ptr(), most - owed, owed > 0);
        if owed > 0 {
            return merge(&mut all[..owed + found.max(0) as usize], owed) as isize;
        }
        if found <= 0 || !ready::is_any_owed() {
            return found;
        }
        // The set was woken because it is owed an event since.
        let told = ready::translate(epoll, &mut all[..found as usize]);
        if told > 0 {
            return told as isize;
        }
    }
}

/// Joins events of one descriptor, which the kernel has found and which was owed.
fn merge(events: &mut [EpollEvent], owed: usize) -> usize {
    let mut count = owed;
    for index in owed..events.len() {
        let EpollEvent { events: found, data } = events[index];
        if let Some(same) = events[..owed].iter_mut().find(|event| { event.data } == data) {
            same.events |= found;
        } else {
            events[count] = events[index];
            count += 1;
        }
    }
    count
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait(
    epoll: i32,
    events: *mut EpollEvent,
    most: i32,
    timeout_ms: i32,
    mask: *const u8,
) -> i32 {
    result(wait(epoll, events, most, |events, most, at_once| {
        let ms = if at_once { 0 } else { timeout_ms };
        let a = [epoll as usize, events as usize, most, ms as usize, mask as usize, 8];
        // SAFETY: the events and the mask are the program's.
        unsafe { sys::call(sys::EPOLL_PWAIT, a) }
    })) as i32
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(epoll: i32, events: *mut EpollEvent, most: i32, ms: i32) -> i32 {
    // SAFETY: passed on.
    unsafe { epoll_pwait(epoll, events, most, ms, core::ptr::null()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait2(
    epoll: i32,
    events: *mut EpollEvent,
    most: i32,
    time: *const Time,
    mask: *const u8,
) -> i32 {
    let zero = Time::default();
    result(wait(epoll, events, most, |events, most, at_once| {
        let time = if at_once { &raw const zero } else { time };
        let a = [epoll as usize, events as usize, most, time as usize, mask as usize, 8];
        // SAFETY: the events, the time and the mask are the program's.
        unsafe { sys::call(sys::EPOLL_PWAIT2, a) }
    })) as i32
}
