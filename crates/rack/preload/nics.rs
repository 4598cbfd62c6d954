//! Connections to other racks: the process of this rack's NICs carries them over all NICs.
//!
//! The program's socket is connected to that process instead, after the other rack's program has
//! accepted. In every other case the kernel connects, with the kernel's own errors.

use core::sync::atomic::Ordering;

use crate::conn::{self, stage};
use crate::ledger::Count;
use crate::offer::{Address, Answer, Ask, NICS, VERSION};
use crate::sys::InetAddress;
use crate::{close, mailbox, rack, sys};

/// How long a call that blocks waits for the other rack's program to accept.
const WAIT_MS: i64 = 1000;
/// The same for a call that must not block for long.
const NONBLOCKING_WAIT_MS: i64 = 200;
/// How long the process may take to be connected to.
const LOCAL_MS: i64 = 1000;
const NAME_BYTES: u32 = size_of::<InetAddress>() as u32;

fn name(of: Address) -> InetAddress {
    let (ip, port) = (of.ip.to_be(), (of.port as u16).to_be());
    InetAddress { family: sys::AF_INET, port, ip, zero: 0 }
}

/// Calls `bind` or `connect` with an address.
fn with_name(number: usize, fd: i32, of: Address) -> isize {
    let name = name(of);
    let at = &raw const name as usize;
    // SAFETY: the address has the length.
    unsafe { sys::call4(number, fd as usize, at, NAME_BYTES as usize, 0) }
}

fn key(of: Address) -> u64 {
    u64::from(of.ip) << 32 | u64::from(of.port)
}

/// True for a socket that was neither connected nor began to be.
fn is_new(fd: i32) -> bool {
    const TCP_INFO: usize = 11;
    const CLOSED: u8 = 7;
    let mut info = [0u8; 8];
    sys::option(fd, sys::SOL_TCP, TCP_INFO, &mut info) && info[0] == CLOSED
}

/// The address from which the kernel would connect.
fn source(to: Address) -> Option<u32> {
    const DATAGRAM: usize = 2;
    let kind = DATAGRAM | sys::SOCK_CLOEXEC;
    // SAFETY: nothing is passed by address.
    let fd = unsafe { sys::call4(sys::SOCKET, usize::from(sys::AF_INET), kind, 0, 0) };
    if fd < 0 {
        return None;
    }
    let fd = fd as i32;
    let routed = with_name(sys::CONNECT, fd, to) == 0;
    let own = routed.then(|| mailbox::address(fd, sys::GETSOCKNAME)).flatten();
    sys::close(fd);
    own.map(|own| own.ip).filter(|ip| *ip != 0)
}

/// Gives the socket its address before it connects.
fn bind(fd: i32, to: Address) -> Option<Address> {
    let own = mailbox::address(fd, sys::GETSOCKNAME)?;
    let ip = if own.ip == 0 { source(to)? } else { own.ip };
    if own.port != 0 {
        return Some(Address { ip, port: own.port });
    }
    let bound = with_name(sys::BIND, fd, Address { ip, port: 0 }) == 0;
    let own = bound.then(|| mailbox::address(fd, sys::GETSOCKNAME)).flatten();
    own.filter(|own| own.port != 0)
}

/// Asks the process whether it carries a connection; the port where it waits for the socket.
fn ask(client: Address, server: Address, wait_ms: i64) -> Option<u32> {
    let door = mailbox::connect_to(NICS, sys::STREAM)?;
    let answer = ask_at(door, &Ask { version: VERSION, client, server }, wait_ms);
    sys::close(door);
    answer
}

fn ask_at(door: i32, ask: &Ask, wait_ms: i64) -> Option<u32> {
    let length = size_of::<Ask>();
    // SAFETY: a question is bytes without padding.
    let bytes = unsafe { core::slice::from_raw_parts(core::ptr::from_ref(ask).cast(), length) };
    if sys::send_bytes(door, bytes, sys::MSG_NOSIGNAL) != length as isize {
        return None;
    }
    let until = rack::now_ns() + wait_ms as u64 * 1_000_000;
    loop {
        let left = until.saturating_sub(rack::now_ns()) / 1_000_000;
        match sys::poll_one(door, sys::POLLIN, left as i64) {
            Err(sys::EINTR) if left > 0 => {}
            Ok(events) if events != 0 => break,
            _ => return None,
        }
    }
    let mut bytes = [0u8; size_of::<Answer>()];
    let got = sys::recv_bytes(door, &mut bytes, sys::MSG_DONTWAIT);
    let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[at + byte]));
    let is_whole = got == bytes.len() as isize && word(0) == VERSION;
    is_whole.then(|| word(8)).filter(|port| (1..=0xffff).contains(port)).map(|port| port as u32)
}

/// Connects a socket to the process, which answers at once.
fn join(fd: i32, process: Address) -> bool {
    let done = with_name(sys::CONNECT, fd, process);
    if done == 0 {
        return true;
    }
    let waits = done == sys::EINPROGRESS || done == sys::EINTR;
    let mut error = 0i32;
    waits
        && matches!(sys::poll_one(fd, sys::POLLOUT, LOCAL_MS), Ok(events) if events != 0)
        && sys::option(fd, sys::SOL_SOCKET, sys::SO_ERROR, &mut error)
        && error == 0
}

/// Connects to a program of another rack over all NICs. `None` if the kernel has to connect.
pub fn connect(fd: i32, server: Address) -> Option<isize> {
    if conn::find(fd).is_some() || !mailbox::is_stream(fd) || !is_new(fd) {
        return None;
    }
    let is_nonblocking = sys::is_nonblocking(fd);
    let wait_ms = if is_nonblocking { NONBLOCKING_WAIT_MS } else { WAIT_MS };
    let connected = bind(fd, server).and_then(|client| {
        let port = ask(client, server, wait_ms)?;
        let process = Address { ip: client.ip, port };
        if join(fd, process) {
            return Some((client, process));
        }
        close::reset(fd);
        None
    });
    let Some((client, process)) = connected else {
        rack::count(Count::NotByNics, 1);
        return None;
    };
    rack::count(Count::ByNics, 1);
    mailbox::connected(fd, true);
    show(fd, client, process, key(server));
    Some(if is_nonblocking { sys::EINPROGRESS } else { 0 })
}

/// Notes the address that the program is told for the other end.
fn show(fd: i32, local: Address, peer: Address, shown: u64) {
    if conn::connection(fd).is_none() {
        conn::insert_end(fd, stage::KERNEL, local, peer);
    }
    if let Some(end) = conn::connection(fd).and_then(|used| used.end()) {
        end.shown.store(shown, Ordering::Release);
    }
}

/// After a program has accepted: finds out if another rack's program is behind the process.
pub fn accepted(fd: i32) {
    let Some(peer) = mailbox::address(fd, sys::GETPEERNAME) else { return };
    let Some(shown) = rack::client(key(peer)) else { return };
    let Some(local) = mailbox::address(fd, sys::GETSOCKNAME) else { return };
    show(fd, local, peer, shown);
}

/// Replaces what the kernel has stored as the other end's address.
///
/// # Safety
/// `to` must have room for `room` bytes, or be null.
pub unsafe fn tell(fd: i32, to: *mut u8, room: u32) {
    if to.is_null() || room == 0 {
        return;
    }
    let Some(end) = conn::connection(fd).and_then(|used| used.end()) else { return };
    let shown = end.shown.load(Ordering::Acquire);
    if shown != 0 {
        let name = name(Address { ip: (shown >> 32) as u32, port: shown as u32 });
        let bytes = room.min(NAME_BYTES) as usize;
        // SAFETY: both places have so many bytes.
        unsafe { core::ptr::copy_nonoverlapping((&raw const name).cast::<u8>(), to, bytes) };
    }
}
