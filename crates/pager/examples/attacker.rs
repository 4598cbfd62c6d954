//! Sends false messages to pagers, as any process of the machine may: `attacker SECONDS
//! [--silent]`.
//!
//! It connects to every pager whose socket `/proc/net/unix` names, or to the one that
//! `ETHERMEM_PAGER` names. Every field of its messages is false: another process's number, threads
//! and addresses, files of all kinds, half a message, none. It prints how many it sent and how
//! often the pager accepted one, and exits with 1 if any was accepted.

use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ethermem_pager::protocol::{Hello, PROOF, SOCKET_VARIABLE, VERSION, Welcome, request};
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, sendmsg,
    socket,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Names of all pagers' sockets.
fn names() -> Vec<String> {
    if let Ok(name) = std::env::var(SOCKET_VARIABLE) {
        return vec![name];
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let names = sockets.lines().filter_map(|line| line.split('@').nth(1));
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with("ethermem-pager-")).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn open(name: &str) -> Option<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let file = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).ok()?;
    let address = UnixAddr::new_abstract(name.as_bytes()).ok()?;
    connect(file.as_raw_fd(), &address).ok()?;
    Some(file)
}

/// A userfaultfd that any user may open, with a page of it registered, and the page's address.
fn userfault() -> Option<(OwnedFd, u64)> {
    const USER_MODE_ONLY: libc::c_int = 1;
    // SAFETY: the calls take numbers, and structures of the lengths that their codes state.
    unsafe {
        let flags = libc::O_CLOEXEC | USER_MODE_ONLY;
        let file = libc::syscall(libc::SYS_userfaultfd, flags) as RawFd;
        if file < 0 {
            return None;
        }
        let file = OwnedFd::from_raw_fd(file);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(std::ptr::null_mut(), 1 << 20, protection, flags, -1, 0) as u64;
        let mut api = [request::API_VERSION, 0, 0];
        libc::ioctl(file.as_raw_fd(), request::API, api.as_mut_ptr());
        let mut range = [at, 1 << 20, request::MODE_MISSING, 0];
        libc::ioctl(file.as_raw_fd(), request::REGISTER, range.as_mut_ptr());
        Some((file, at))
    }
}

/// A false word: a process, thread or address of another running process.
fn lie(random: &mut Xoshiro256PlusPlus, own: u64) -> u64 {
    let draw = random.next_u64();
    match draw % 8 {
        0 => 0,
        1 => u64::MAX - draw % 8192,
        2 => own + (draw >> 8) % 512 * 4096,
        3 => (draw >> 8) % 40_000,
        4 => 1 << (draw >> 8 & 63),
        5 => (draw >> 17) & !0xfff,
        6 => 1,
        _ => draw,
    }
}

fn hello(random: &mut Xoshiro256PlusPlus, own: u64) -> Hello {
    let mut next = || lie(random, own);
    let (version, kind, error) = (next(), next(), next());
    Hello {
        version: if version.is_multiple_of(8) { version as u32 } else { VERSION },
        kind: (kind % u64::from(PROOF + 2)) as u32,
        error: if error.is_multiple_of(2) { 0 } else { error as u32 },
        reserved: 0,
        thread: next(),
        staging: next(),
        probe: next(),
        secret: [next(), next()],
        own_start: next(),
        own_end: next(),
        image_start: next(),
        image_end: next(),
    }
}

/// Sends a message of `bytes` bytes with files, and returns whether that was possible.
fn send(to: &OwnedFd, hello: &Hello, bytes: usize, files: &[RawFd]) -> bool {
    // SAFETY: integers without gaps.
    let message = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(hello).cast::<u8>(), size_of::<Hello>())
    };
    let parts = [IoSlice::new(&message[..bytes.min(message.len())])];
    let rights = [ControlMessage::ScmRights(files)];
    let controls = if files.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<()>(to.as_raw_fd(), &parts, controls, MsgFlags::MSG_NOSIGNAL, None).is_ok()
}

/// True if the pager answered that it accepts the message.
fn is_believed(from: &OwnedFd) -> bool {
    let mut answer = [0u8; 64];
    match recv(from.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT) {
        Ok(bytes) if bytes >= size_of::<Welcome>() => {
            u32::from_ne_bytes([answer[0], answer[1], answer[2], answer[3]]) != Welcome::REFUSED
        }
        _ => false,
    }
}

#[derive(Default)]
struct Said {
    connections: u64,
    messages: u64,
    believed: u64,
}

fn attack(
    names: &[String],
    random: &mut Xoshiro256PlusPlus,
    said: &mut Said,
    open_ones: &mut Vec<OwnedFd>,
) {
    let draw = random.next_u64();
    let Some(connection) = open(&names[draw as usize % names.len()]) else { return };
    said.connections += 1;
    let own = userfault();
    let address = own.as_ref().map_or(0, |(_, at)| *at);
    let null = std::fs::File::open("/dev/null").ok();
    for _ in 0..draw % 3 {
        let hello = hello(random, address);
        let bytes = if random.next_u64().is_multiple_of(4) { draw as usize % 200 } else { 200 };
        let files: Vec<RawFd> = match random.next_u64() % 5 {
            0 | 1 => own.iter().map(|(file, _)| file.as_raw_fd()).collect(),
            2 => null.iter().map(AsRawFd::as_raw_fd).collect(),
            3 => vec![connection.as_fd().as_raw_fd(); 2],
            _ => Vec::new(),
        };
        said.messages += u64::from(send(&connection, &hello, bytes, &files));
    }
    // Some connections are polled at once, some later, and some stay open and silent.
    open_ones.push(connection);
    if open_ones.len() > 200 {
        let place = random.next_u64() as usize % open_ones.len();
        let connection = open_ones.swap_remove(place);
        said.believed += u64::from(is_believed(&connection));
    }
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(seconds) = seconds else {
        eprintln!("usage: attacker SECONDS [--silent]");
        return ExitCode::from(2);
    };
    let is_silent = std::env::args().nth(2).is_some_and(|word| word == "--silent");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(std::process::id()));
    let (mut said, mut open_ones) = (Said::default(), Vec::new());
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut names_now = names();
    while Instant::now() < until {
        if said.connections.is_multiple_of(512) || names_now.is_empty() {
            names_now = names();
        }
        if names_now.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        } else if is_silent {
            open_ones.extend(open(&names_now[0]));
            said.connections += 1;
            std::thread::sleep(Duration::from_micros(100));
            open_ones.truncate(1000);
        } else {
            attack(&names_now, &mut random, &mut said, &mut open_ones);
        }
    }
    said.believed += open_ones.iter().filter(|connection| is_believed(connection)).count() as u64;
    let Said { connections, messages, believed } = said;
    println!("connections {connections} messages {messages} believed {believed}");
    ExitCode::from(u8::from(believed > 0))
}
