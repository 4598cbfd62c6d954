//! Waiting for several descriptors: `poll`, `select` and `epoll`.
//!
//! The kernel waits on the sockets themselves. Before it does, each empty ring is armed, so that
//! the next bytes put a bell into the socket.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::conn::{self, Use};
use crate::lock::Lock;
use crate::sys::{self, EpollEvent, PollFd, Time};
use crate::{rack, rx};

const READ_EVENTS: i16 = sys::POLLIN | sys::POLLRDNORM;
/// Most descriptors for which a call polls memory before it sleeps.
const SPUN_MAX: usize = 8;
const SPIN_NS: u64 = 30_000;
/// Most descriptors of a `select`.
pub const SELECT_MAX: usize = 1024;

/// Held while what a set is owed is compared with what the program asks for.
static LOCK: Lock = Lock::new();
/// Sockets that are owed an event of an epoll set.
static OWED: AtomicU32 = AtomicU32::new(0);

/// True if bytes of the ring are here. Otherwise, the next ones will ring if the thread sleeps.
fn is_readable(used: &Use, sleeps: bool) -> bool {
    let Some(end) = used.end() else { return false };
    let _held = end.rx.lock();
    if sleeps { rx::arm(used, end) } else { rx::glance(used, end) }
}

fn reads(poll: &PollFd) -> Option<Use> {
    if poll.events & READ_EVENTS == 0 { None } else { conn::connection(poll.fd) }
}

/// Polls memory for a while, if the sockets are few and the kernel has nothing to say.
fn spin(polls: &mut [PollFd], raw: impl Fn(&mut [PollFd], Option<u64>) -> isize) {
    if !rack::spins() || polls.len() > SPUN_MAX {
        return;
    }
    let is_other = |poll: &PollFd| poll.events & !READ_EVENTS != 0 || reads(poll).is_none();
    if polls.iter().any(is_other) && raw(polls, Some(0)) != 0 {
        return;
    }
    // Bytes that come by a kernel's socket are the kernel's to see: it must not wait for others.
    let awaits = |used: &Use| used.end().is_some_and(|end| rx::awaits_ring(used, end));
    let all_await = || polls.iter().filter_map(reads).all(|used| awaits(&used));
    let until = rack::now_ns() + SPIN_NS;
    while all_await() && rack::now_ns() < until {
        for _ in 0..16 {
            spin_loop();
        }
    }
}

/// `ppoll`, with a limit in nanoseconds.
pub fn poll(polls: &mut [PollFd], limit_ns: Option<u64>, mask: usize) -> isize {
    let raw = |polls: &mut [PollFd], limit_ns: Option<u64>| {
        let ns = limit_ns.unwrap_or(0);
        let time = Time { seconds: (ns / 1_000_000_000) as i64, rest: (ns % 1_000_000_000) as i64 };
        let time = if limit_ns.is_none() { 0 } else { &raw const time as usize };
        let a = [polls.as_mut_ptr() as usize, polls.len(), time, mask, 8, 0];
        // SAFETY: the slice and the time are passed; the mask is the program's.
        unsafe { sys::call(sys::PPOLL, a) }
    };
    if !polls.iter().any(|poll| reads(poll).is_some()) {
        return raw(polls, limit_ns);
    }
    let start = rack::now_ns();
    // A call that only looks needs no bell: programs that look all the time get bytes without one.
    let sleeps = limit_ns != Some(0);
    let _asleep = sleeps.then(|| {
        spin(polls, raw);
        Asleep::new(polls)
    });
    loop {
        let mut is_any = false;
        for poll in polls.iter() {
            is_any |= reads(poll).is_some_and(|used| is_readable(&used, sleeps));
        }
        let left = limit_ns.map(|limit| limit.saturating_sub(rack::now_ns() - start));
        let found = raw(polls, if is_any { Some(0) } else { left });
        if found < 0 {
            return found;
        }
        for poll in polls.iter_mut() {
            correct(poll, sleeps);
        }
        let count = polls.iter().filter(|poll| poll.revents != 0).count();
        if count > 0 || left == Some(0) {
            return count as isize;
        }
    }
}

/// Connections on which a thread sleeps in the kernel: whoever empties their rings meanwhile leaves
/// the bell armed.
struct Asleep([Option<Use>; SPUN_MAX]);

impl Asleep {
    fn new(polls: &[PollFd]) -> Asleep {
        let mut asleep = Asleep([const { None }; SPUN_MAX]);
        for (index, used) in polls.iter().filter_map(reads).enumerate() {
            let Some(end) = used.end() else { continue };
            let Some(place) = asleep.0.get_mut(index) else {
                end.epolled.store(1, Ordering::SeqCst);
                continue;
            };
            end.asleep.fetch_add(1, Ordering::SeqCst);
            *place = Some(used);
        }
        asleep
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        for end in self.0.iter().flatten().filter_map(Use::end) {
            end.asleep.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Makes what the kernel says about a socket true of the stream.
fn correct(poll: &mut PollFd, sleeps: bool) {
    let Some(used) = reads(poll) else { return };
    let Some(end) = used.end() else { return };
    if is_readable(&used, sleeps) {
        poll.revents |= poll.events & READ_EVENTS;
    } else if end.error.load(Ordering::Acquire) != 0 {
        poll.revents |= sys::POLLERR;
    } else if poll.revents & READ_EVENTS != 0
        && poll.revents & (sys::POLLERR | sys::POLLHUP) == 0
        && rx::probe(used.fd, end) == sys::EAGAIN
    {
        poll.revents &= !READ_EVENTS;
    }
}

/// `pselect`: the sets are arrays of words, or null.
///
/// # Safety
/// Each set must be null or have `count` bits.
pub unsafe fn select(
    count: usize,
    sets: [*mut u64; 3],
    limit_ns: Option<u64>,
    mask: usize,
) -> isize {
    const ASKED: [i16; 3] = [READ_EVENTS, sys::POLLOUT, sys::POLLPRI];
    let end = sys::POLLERR;
    let answers = [READ_EVENTS | sys::POLLHUP | end, sys::POLLOUT | end, sys::POLLPRI];
    let mut polls = [PollFd { fd: -1, events: 0, revents: 0 }; SELECT_MAX];
    let mut used = 0;
    for fd in 0..count {
        let (word, bit) = (fd / 64, 1u64 << (fd % 64));
        let mut events = 0;
        for (set, asked) in sets.iter().zip(ASKED) {
            // SAFETY: the set has this word.
            if !set.is_null() && unsafe { *set.add(word) } & bit != 0 {
                events |= asked;
            }
        }
        if events != 0 {
            polls[used] = PollFd { fd: fd as i32, events, revents: 0 };
            used += 1;
        }
    }
    let found = poll(&mut polls[..used], limit_ns, mask);
    if found < 0 {
        return found;
    }
    if polls[..used].iter().any(|poll| poll.revents & sys::POLLNVAL != 0) {
        return sys::EBADF;
    }
    let mut bits = 0;
    for poll in &polls[..used] {
        let (word, bit) = (poll.fd as usize / 64, 1u64 << (poll.fd % 64));
        for ((set, asked), answer) in sets.iter().zip(ASKED).zip(answers) {
            if set.is_null() || poll.events & asked == 0 {
                continue;
            }
            // SAFETY: the set has this word.
            unsafe {
                if *set.add(word) & bit == 0 {
                    continue;
                }
                if poll.revents & answer != 0 {
                    bits += 1;
                } else {
                    *set.add(word) &= !bit;
                }
            }
        }
    }
    bits
}

/// In a fork's child: no other thread holds the lock here.
pub fn after_fork() {
    LOCK.reset();
}

/// `epoll_ctl`. What the program asks for replaces what the set was owed before.
///
/// # Safety
/// `event` must be null or point to an event.
pub unsafe fn control(epoll: i32, operation: i32, fd: i32, event: *const EpollEvent) -> isize {
    let a = [epoll as usize, operation as usize, fd as usize, event as usize];
    // SAFETY: the event is the program's.
    let raw = || unsafe { sys::call4(sys::EPOLL_CTL, a[0], a[1], a[2], a[3]) };
    let Some(used) = conn::connection(fd) else { return raw() };
    let _held = LOCK.lock();
    let done = raw();
    if done != 0 {
        return done;
    }
    let slot = used.slot;
    let is_owed = slot.owed.load(Ordering::Acquire) == epoll;
    if is_owed && slot.owed_fd.load(Ordering::Relaxed) == fd {
        forgive(slot);
    }
    if operation != sys::EPOLL_DEL {
        // SAFETY: the kernel has read the event.
        watched(&used, epoll, unsafe { event.read_unaligned() });
    }
    done
}

/// After a socket was put into an epoll set, or its events were changed.
fn watched(used: &Use, epoll: i32, event: EpollEvent) {
    let fd = used.fd;
    let Some(end) = used.end() else { return };
    end.epolled.store(1, Ordering::Release);
    let _held = end.rx.lock();
    let (events, data) = (event.events, event.data);
    if events & sys::EPOLLIN == 0 || !rx::arm(used, end) {
        return;
    }
    // SAFETY: the lock of this direction is held.
    let consumer = unsafe { &*end.consumer.get() };
    if used.slot.view(false).is_none_or(|view| consumer.bells(view.line) == 0) {
        let slot = used.slot;
        slot.owed_events.store(events, Ordering::Relaxed);
        slot.owed_data.store(data, Ordering::Relaxed);
        slot.owed_fd.store(fd, Ordering::Relaxed);
        if slot.owed.swap(epoll, Ordering::AcqRel) < 0 {
            OWED.fetch_add(1, Ordering::AcqRel);
        }
        // Threads that sleep in the set look at what it is owed when they are woken.
        modify(epoll, fd, events | sys::EPOLLOUT, data);
    }
}

/// False if the set does not have the socket any more.
fn modify(epoll: i32, fd: i32, events: u32, data: u64) -> bool {
    let event = EpollEvent { events, data };
    let at = &raw const event as usize;
    // SAFETY: the kernel reads the event.
    unsafe { sys::call4(sys::EPOLL_CTL, epoll as usize, sys::EPOLL_MOD, fd as usize, at) == 0 }
}

/// A slot that is freed is owed nothing.
pub fn forgive(slot: &conn::Slot) {
    if slot.owed.swap(-1, Ordering::AcqRel) >= 0 {
        OWED.fetch_sub(1, Ordering::AcqRel);
    }
}

/// True if some epoll set is owed an event.
pub fn is_any_owed() -> bool {
    OWED.load(Ordering::Acquire) > 0
}

/// The slot that owes this event to a set.
fn owes(epoll: i32, data: u64) -> Option<&'static conn::Slot> {
    conn::all().find(|slot| {
        slot.owed.load(Ordering::Acquire) == epoll && slot.owed_data.load(Ordering::Relaxed) == data
    })
}

/// The event that a slot owes, if its bytes are still here; its set has the program's events again.
fn pay(epoll: i32, slot: &'static conn::Slot) -> Option<EpollEvent> {
    let _held = LOCK.lock();
    if slot.owed.load(Ordering::Acquire) != epoll {
        return None;
    }
    let asked = slot.owed_events.load(Ordering::Relaxed);
    let data = slot.owed_data.load(Ordering::Relaxed);
    let used = conn::hold(slot);
    let has = used.end().is_some_and(|end| rx::available(&used, end) > 0);
    let is_once = has && asked & sys::EPOLLONESHOT != 0;
    // An event of a set that wants one alone disables the socket: no event is enabled but errors.
    let events = if is_once { sys::EPOLLONESHOT } else { asked };
    if !modify(epoll, slot.owed_fd.load(Ordering::Relaxed), events, data) {
        forgive(slot);
        return None;
    }
    if !has || asked & (sys::EPOLLET | sys::EPOLLONESHOT) != 0 {
        forgive(slot);
    }
    has.then_some(EpollEvent { events: asked & (sys::EPOLLIN | sys::EPOLLRDNORM), data })
}

/// Events that an epoll set is owed: bytes that came without a bell.
pub fn owed(epoll: i32, events: &mut [EpollEvent]) -> usize {
    if !is_any_owed() {
        return 0;
    }
    let mut count = 0;
    for slot in conn::all().filter(|slot| slot.owed.load(Ordering::Acquire) == epoll) {
        if count == events.len() {
            break;
        }
        if let Some(event) = pay(epoll, slot) {
            events[count] = event;
            count += 1;
        }
    }
    count
}

/// Makes events of the kernel those that the program has asked for; returns their number.
pub fn translate(epoll: i32, events: &mut [EpollEvent]) -> usize {
    let mut count = 0;
    for index in 0..events.len() {
        let mut event = events[index];
        if let Some(slot) = owes(epoll, event.data) {
            let asked = slot.owed_events.load(Ordering::Relaxed);
            let also = pay(epoll, slot).map_or(0, |event| event.events);
            event.events = also | (event.events & (asked | !sys::EPOLLOUT));
        }
        if event.events != 0 {
            events[count] = event;
            count += 1;
        }
    }
    count
}
