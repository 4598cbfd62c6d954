//! How the two ends find each other: a Unix socket for each listener of the rack, named after its
//! address. The client sends the memory's descriptor there after the kernel has connected.
//!
//! Only processes of the same user count, by `SO_PEERCRED`. The server compares the offer with what
//! the kernel says about the accepted socket. Until it has joined, the kernel carries all bytes.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::conn::{self, End, Header, Slot, stage};
use crate::ledger::Count;
use crate::lock::Lock;
use crate::offer::{Address, HEADER_BYTES, Offer, VERSION, is_ring, memory_bytes};
use crate::{rack, sys};

const BACKLOG: usize = 4096;
/// Offers of connections that were not accepted yet.
const PENDING: usize = 256;
/// How long a server waits for the message of a client that has connected to the mailbox.
const MESSAGE_MS: i64 = 2;
/// How long an accepting server waits for the offer of a client that may have the library.
const OFFER_NS: u64 = 100_000;
/// Calls in which an accepted socket looks for its offer.
const TRIES: u32 = 16;

#[repr(C)]
struct UnixName {
    family: u16,
    text: [u8; 108],
}

/// An offer that was received; the key is 0 where there is none.
struct Pending {
    client: AtomicU64,
    server: AtomicU64,
    memory: AtomicUsize,
    ring_bytes: AtomicU64,
}

static RECEIVED: [Pending; PENDING] = [const {
    Pending {
        client: AtomicU64::new(0),
        server: AtomicU64::new(0),
        memory: AtomicUsize::new(0),
        ring_bytes: AtomicU64::new(0),
    }
}; PENDING];
static OLDEST: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

fn key(address: Address) -> u64 {
    u64::from(address.ip) << 32 | u64::from(address.port)
}

/// The address of a socket's end; `None` if it has none of IPv4.
pub fn address(fd: i32, number: usize) -> Option<Address> {
    let mut name = sys::InetAddress { family: 0, port: 0, ip: 0, zero: 0 };
    let mut bytes = size_of::<sys::InetAddress>() as u32;
    // SAFETY: the kernel stores at most `bytes` into the name.
    let result = unsafe {
        sys::call4(number, fd as usize, &raw mut name as usize, &raw mut bytes as usize, 0)
    };
    (result == 0 && name.family == sys::AF_INET)
        .then(|| Address { ip: u32::from_be(name.ip), port: u32::from(u16::from_be(name.port)) })
}

/// True for a TCP socket of IPv4.
pub fn is_stream(fd: i32) -> bool {
    let (mut kind, mut domain) = (0i32, 0i32);
    sys::option(fd, sys::SOL_SOCKET, sys::SO_TYPE, &mut kind)
        && sys::option(fd, sys::SOL_SOCKET, sys::SO_DOMAIN, &mut domain)
        && kind as usize == sys::STREAM
        && domain as u16 == sys::AF_INET
}

/// The name of a listener's mailbox, and its length.
fn mailbox_name(address: Address) -> (UnixName, usize) {
    let mut name = UnixName { family: sys::AF_UNIX, text: [0; 108] };
    let mut length = 1;
    let mut put = |bytes: &[u8]| {
        name.text[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    put(b"ethermem-rack/");
    // SAFETY: the call has no arguments.
    let user = unsafe { sys::call4(sys::GETUID, 0, 0, 0, 0) as u32 };
    for number in [user, address.ip, address.port] {
        let digit = |place: u32| b"0123456789abcdef"[(number >> (28 - 4 * place) & 15) as usize];
        let text: [u8; 8] = core::array::from_fn(|place| digit(place as u32));
        put(&text);
    }
    put(rack::name());
    (name, 2 + length)
}

fn socket(kind: usize) -> Option<i32> {
    let kind = kind | sys::SOCK_CLOEXEC;
    // SAFETY: nothing is passed by address.
    let fd = unsafe { sys::call4(sys::SOCKET, usize::from(sys::AF_UNIX), kind, 0, 0) };
    (fd >= 0).then_some(fd as i32)
}

/// True if the other end of a Unix socket belongs to this user.
fn is_same_user(fd: i32) -> bool {
    let mut credentials = [0u32; 3];
    // SAFETY: the call has no arguments.
    let user = unsafe { sys::call4(sys::GETUID, 0, 0, 0, 0) as u32 };
    sys::option(fd, sys::SOL_SOCKET, sys::SO_PEERCRED, &mut credentials) && credentials[1] == user
}

/// A Unix socket that is connected to the mailbox of an address, of this user.
pub fn connect_to(address: Address, kind: usize) -> Option<i32> {
    let fd = socket(kind)?;
    let (name, length) = mailbox_name(address);
    let at = &raw const name as usize;
    // SAFETY: the name has the length.
    let done = unsafe { sys::call4(sys::CONNECT, fd as usize, at, length, 0) };
    if done == 0 && is_same_user(fd) {
        return Some(fd);
    }
    sys::close(fd);
    None
}

/// Opens the mailbox of a socket that listens.
pub fn open(fd: i32) {
    let Some(address) = address(fd, sys::GETSOCKNAME) else { return };
    if !(address.ip == 0 || rack::has(address.ip)) || !is_stream(fd) || conn::find(fd).is_some() {
        return;
    }
    let Some(mailbox) = socket(sys::SEQPACKET | sys::SOCK_NONBLOCK) else { return };
    let (name, length) = mailbox_name(address);
    let at = &raw const name as usize;
    // SAFETY: the name has the length.
    let is_open = unsafe {
        sys::call4(sys::BIND, mailbox as usize, at, length, 0) == 0
            && sys::call4(sys::LISTEN, mailbox as usize, BACKLOG, 0, 0) == 0
    };
    match is_open.then(|| conn::insert(fd)).flatten() {
        Some(slot) => conn::set_mailbox(mailbox, slot),
        None => drop(sys::close(mailbox)),
    }
}

/// Offers the memory of a connection to the server that accepts it.
pub fn offer(fd: i32, slot: &Slot, end: &End) {
    let stage = match join_memory(end) {
        Ok((memory, ring_bytes)) => {
            slot.set_memory(memory, ring_bytes);
            keep_bells_fast(fd, end);
            stage::OFFERED
        }
        Err(why) => {
            rack::count(why, 1);
            stage::KERNEL
        }
    };
    end.stage.store(stage, Ordering::Release);
}

fn join_memory(end: &End) -> Result<(usize, u64), Count> {
    let mailbox = socket(sys::SEQPACKET | sys::SOCK_NONBLOCK).ok_or(Count::NoRoom)?;
    let offered = offer_through(mailbox, end);
    sys::close(mailbox);
    offered
}

fn offer_through(mailbox: i32, end: &End) -> Result<(usize, u64), Count> {
    let wildcard = Address { ip: 0, port: end.peer.port };
    let is_there = [end.peer, wildcard].into_iter().any(|address| {
        let (name, length) = mailbox_name(address);
        let at = &raw const name as usize;
        // SAFETY: the name has the length.
        unsafe { sys::call4(sys::CONNECT, mailbox as usize, at, length, 0) == 0 }
    });
    if !is_there || !is_same_user(mailbox) {
        return Err(Count::NoLibrary);
    }
    let ring_bytes = rack::ring_bytes();
    let text = c"ethermem-rack".as_ptr() as usize;
    // SAFETY: the name ends with a zero.
    let file = unsafe { sys::call4(sys::MEMFD_CREATE, text, sys::MFD_CLOEXEC_SEALING, 0, 0) };
    if file < 0 {
        return Err(Count::NoRoom);
    }
    let file = file as i32;
    let made = make(file, ring_bytes);
    let sent = made.map(|memory| {
        let offer = Offer { version: VERSION, ring_bytes, client: end.local, server: end.peer };
        (memory, send(mailbox, &offer, file))
    });
    sys::close(file);
    match sent {
        None => Err(Count::NoRoom),
        Some((memory, true)) => Ok((memory, ring_bytes)),
        Some((memory, false)) => {
            conn::unmap(memory, ring_bytes);
            Err(Count::NoLibrary)
        }
    }
}

/// Gives a new file its size and its seals, maps it, and writes its header.
fn make(file: i32, ring_bytes: u64) -> Option<usize> {
    let bytes = memory_bytes(ring_bytes);
    // SAFETY: nothing is passed by address.
    let sized = unsafe { sys::call4(sys::FTRUNCATE, file as usize, bytes, 0, 0) };
    if sized != 0 || sys::fcntl(file, sys::F_ADD_SEALS, sys::SEALS as usize) != 0 {
        return None;
    }
    let memory = conn::map(file, ring_bytes)?;
    // SAFETY: the mapping is new, and begins with a header.
    unsafe {
        let header = memory as *mut Header;
        (*header).version = VERSION;
        (*header).ring_bytes = ring_bytes;
    }
    Some(memory)
}

#[repr(C)]
struct OneDescriptor {
    control: sys::Control,
    fd: i32,
    padding: i32,
}

const ONE_BYTES: usize = size_of::<sys::Control>() + size_of::<i32>();

fn send(mailbox: i32, offer: &Offer, file: i32) -> bool {
    let control = sys::Control { len: ONE_BYTES, level: 1, kind: sys::SCM_RIGHTS };
    let mut one = OneDescriptor { control, fd: file, padding: 0 };
    let mut iov =
        sys::Iovec { base: core::ptr::from_ref(offer).cast_mut().cast(), len: size_of::<Offer>() };
    let message = message(&mut iov, &mut one);
    let flags = (sys::MSG_NOSIGNAL | sys::MSG_DONTWAIT) as usize;
    let at = &raw const message as usize;
    // SAFETY: the message refers to one buffer and one descriptor.
    let sent = unsafe { sys::call4(sys::SENDMSG, mailbox as usize, at, flags, 0) };
    sent == size_of::<Offer>() as isize
}

fn message(iov: &mut sys::Iovec, one: &mut OneDescriptor) -> sys::Message {
    sys::Message {
        name: core::ptr::null_mut(),
        name_len: 0,
        iov,
        iov_len: 1,
        control: core::ptr::from_mut(one).cast(),
        control_len: size_of::<OneDescriptor>(),
        flags: 0,
    }
}

/// Receives one offer, and checks all of it. `None` without a sender, an offer, or a valid one.
fn receive(sender: i32) -> Option<(Offer, usize)> {
    if !is_same_user(sender) || sys::poll_one(sender, sys::POLLIN, MESSAGE_MS).ok()? == 0 {
        return None;
    }
    let mut offer = Offer::default();
    let control = sys::Control { len: 0, level: 0, kind: 0 };
    let mut one = OneDescriptor { control, fd: -1, padding: 0 };
    let mut iov = sys::Iovec { base: (&raw mut offer).cast(), len: size_of::<Offer>() };
    let mut message = message(&mut iov, &mut one);
    let flags = (sys::MSG_DONTWAIT | sys::MSG_CMSG_CLOEXEC) as usize;
    let at = &raw mut message as usize;
    // SAFETY: the message refers to one buffer and room for one descriptor.
    let got = unsafe { sys::call4(sys::RECVMSG, sender as usize, at, flags, 0) };
    let has_file = one.control.kind == sys::SCM_RIGHTS && one.control.len >= ONE_BYTES;
    if !has_file {
        return None;
    }
    let is_whole = got == size_of::<Offer>() as isize;
    let is_ours = offer.version == VERSION && is_ring(offer.ring_bytes);
    let memory = (is_whole && is_ours).then(|| map_checked(one.fd, offer.ring_bytes)).flatten();
    sys::close(one.fd);
    memory.map(|memory| (offer, memory))
}

fn map_checked(file: i32, ring_bytes: u64) -> Option<usize> {
    let seals = sys::fcntl(file, sys::F_GET_SEALS, 0);
    // SAFETY: the position in a file is asked.
    let size = unsafe { sys::call4(sys::LSEEK, file as usize, 0, 2, 0) };
    let is_sealed = seals >= 0 && seals & sys::SEALS == sys::SEALS;
    if !is_sealed || size != memory_bytes(ring_bytes) as isize {
        return None;
    }
    let memory = conn::map(file, ring_bytes);
    if memory.is_none() {
        rack::count(Count::NoRoom, 1);
    }
    memory
}

/// In a fork's child: no other thread holds the lock here. Offers are mapped, and counted again.
pub fn after_fork() {
    LOCK.reset();
    for one in &RECEIVED {
        if one.client.load(Ordering::Relaxed) != 0 {
            rack::mapped_by_fork(one.ring_bytes.load(Ordering::Relaxed));
        }
    }
}

/// Takes all offers out of a mailbox.
fn drain(mailbox: i32) {
    let flags = sys::SOCK_CLOEXEC | sys::SOCK_NONBLOCK;
    loop {
        // SAFETY: no address is asked for.
        let sender = unsafe { sys::call4(sys::ACCEPT4, mailbox as usize, 0, 0, flags) };
        if sender < 0 {
            return;
        }
        let received = receive(sender as i32);
        sys::close(sender as i32);
        let Some((offer, memory)) = received else { continue };
        let free = RECEIVED.iter().find(|one| one.client.load(Ordering::Relaxed) == 0);
        let place = free.unwrap_or_else(|| {
            let oldest = OLDEST.fetch_add(1, Ordering::Relaxed) as usize;
            let place = &RECEIVED[oldest % PENDING];
            place.client.store(0, Ordering::Relaxed);
            let (memory, ring_bytes) = (&place.memory, &place.ring_bytes);
            conn::unmap(memory.load(Ordering::Relaxed), ring_bytes.load(Ordering::Relaxed));
            place
        });
        place.server.store(key(offer.server), Ordering::Relaxed);
        place.memory.store(memory, Ordering::Relaxed);
        place.ring_bytes.store(offer.ring_bytes, Ordering::Relaxed);
        place.client.store(key(offer.client), Ordering::Relaxed);
    }
}

/// Joins an accepted connection to the memory that its client offered. False if none was found.
fn join(fd: i32, slot: &Slot, end: &End) -> bool {
    let listener = slot.listener.load(Ordering::Relaxed);
    let listener = listener.checked_sub(1).and_then(conn::by_number);
    let mailbox = listener.map_or(-1, |listener| listener.mailbox.load(Ordering::Acquire));
    let _held = LOCK.lock();
    if end.stage.load(Ordering::Acquire) != stage::ACCEPTED {
        return false;
    }
    if mailbox >= 0 {
        drain(mailbox);
    }
    let is_it = |one: &&Pending| {
        one.client.load(Ordering::Relaxed) == key(end.peer)
            && one.server.load(Ordering::Relaxed) == key(end.local)
    };
    let Some(found) = RECEIVED.iter().find(is_it) else { return false };
    found.client.store(0, Ordering::Relaxed);
    let memory = found.memory.load(Ordering::Relaxed);
    slot.set_memory(memory, found.ring_bytes.load(Ordering::Relaxed));
    keep_bells_fast(fd, end);
    end.stage.store(stage::JOINED, Ordering::Release);
    if let Some(header) = slot.header() {
        header.joined.store(1, Ordering::Release);
    }
    rack::count(Count::Joined, 1);
    true
}

/// A bell must not wait for the acknowledgement of an earlier one.
fn keep_bells_fast(fd: i32, end: &End) {
    for (name, kept, value) in
        [(sys::TCP_CORK, &end.cork, 0i32), (sys::TCP_NODELAY, &end.nodelay, 1)]
    {
        let mut own = 0i32;
        sys::option(fd, sys::SOL_TCP, name, &mut own);
        kept.store(own as u32, Ordering::Relaxed);
        sys::set_option(fd, sys::SOL_TCP, name, &value);
    }
}

/// Notes a connection that this process accepted.
pub fn accepted(fd: i32, listener: &Slot) {
    let (Some(local), Some(peer)) = (address(fd, sys::GETSOCKNAME), address(fd, sys::GETPEERNAME))
    else {
        return;
    };
    if !rack::has(local.ip) || !rack::has(peer.ip) {
        return;
    }
    let Some(slot) = conn::insert_end(fd, stage::ACCEPTED, local, peer) else {
        rack::count(Count::NoRoom, 1);
        return;
    };
    slot.tries.store(TRIES, Ordering::Relaxed);
    slot.listener.store(listener.number() + 1, Ordering::Relaxed);
    let Some(end) = slot.end() else { return };
    let until = rack::now_ns() + OFFER_NS;
    while !join(fd, slot, end) && rack::now_ns() < until {
        // A client with the library offers before it sends.
        if sys::ioctl_number(fd, sys::FIONREAD) > 0 {
            join(fd, slot, end);
            return;
        }
        let mailbox = listener.mailbox.load(Ordering::Acquire);
        let time = sys::Time { seconds: 0, rest: OFFER_NS as i64 };
        let mut poll = sys::PollFd { fd: mailbox, events: sys::POLLIN, revents: 0 };
        let (at, time) = (&raw mut poll as usize, &raw const time as usize);
        // SAFETY: one entry and a time are passed.
        unsafe { sys::call(sys::PPOLL, [at, 1, time, 0, 8, 0]) };
    }
}

/// Notes a connection that this process began.
pub fn connected(fd: i32, is_done: bool) {
    if conn::find(fd).is_some() || !is_stream(fd) {
        return;
    }
    if is_done {
        begin(fd);
    } else if let Some(slot) =
        conn::insert_end(fd, stage::CONNECTING, Address::default(), Address::default())
    {
        slot.tries.store(TRIES, Ordering::Relaxed);
    }
}

fn begin(fd: i32) {
    let ends = (address(fd, sys::GETSOCKNAME), address(fd, sys::GETPEERNAME));
    let (Some(local), Some(peer)) = ends else { return };
    if !rack::has(local.ip) || !rack::has(peer.ip) {
        return;
    }
    let Some(slot) = conn::insert_end(fd, stage::CONNECTING, local, peer) else {
        rack::count(Count::NoRoom, 1);
        return;
    };
    if let Some(end) = slot.end() {
        offer(fd, slot, end);
    }
}

/// Brings an end further, before a call uses it. True if it may use memory.
pub fn advance(used: &conn::Use, end: &End) -> bool {
    match end.stage.load(Ordering::Acquire) {
        stage::JOINED => true,
        stage::OFFERED => {
            if used.slot.header().is_some_and(|it| it.joined.load(Ordering::Acquire) == 1) {
                let (from, to) = (stage::OFFERED, stage::JOINED);
                let order = Ordering::AcqRel;
                if end.stage.compare_exchange(from, to, order, Ordering::Acquire).is_ok() {
                    rack::count(Count::Joined, 1);
                }
            }
            true
        }
        stage::ACCEPTED => {
            let tries = used.slot.tries.load(Ordering::Relaxed);
            used.slot.tries.store(tries.saturating_sub(1), Ordering::Relaxed);
            if tries > 0 && join(used.fd, used.slot, end) {
                return true;
            }
            if tries == 0 {
                end.stage.store(stage::KERNEL, Ordering::Release);
                rack::count(Count::NoLibrary, 1);
            }
            false
        }
        stage::CONNECTING => {
            let ends = (address(used.fd, sys::GETSOCKNAME), address(used.fd, sys::GETPEERNAME));
            let _held = LOCK.lock();
            if end.stage.load(Ordering::Acquire) != stage::CONNECTING {
                return false;
            }
            if let (Some(local), Some(peer)) = ends {
                if !rack::has(local.ip) || !rack::has(peer.ip) {
                    end.stage.store(stage::KERNEL, Ordering::Release);
                    return false;
                }
                // SAFETY: the lock is held, and the addresses are read after the stage has changed.
                unsafe {
                    let end = core::ptr::from_ref(end).cast_mut();
                    (*end).local = local;
                    (*end).peer = peer;
                }
                offer(used.fd, used.slot, end);
                return used.slot.header().is_some();
            }
            false
        }
        _ => false,
    }
}

const _: () = assert!(HEADER_BYTES >= size_of::<Header>());
