//! Authentication: where agents announce themselves, and what is proved before a message is
//! accepted.
//!
//! Any process on the machine can connect, because programs that changed their user must be able
//! to. So the kernel names the process that opened each connection and the sender of each message
//! (`SO_PEERPIDFD`, `SCM_PIDFD`). Both must be one live process that descends from this one. Its
//! message must be possible (`claim.rs`), and its userfaultfd must serve its own memory: the pager
//! puts a secret there, and the process repeats it. No call here blocks.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, socklen_t};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind,
    listen, sendmsg, socket,
};
use nix::sys::stat::fstat;
use nix::unistd::Pid;
use rustc_hash::FxHashMap;

use crate::agent::{Agent, bytes_of};
use crate::claim::{self, Facts, Lie};
use crate::fault::Faults;
use crate::peer::{Peer, is_userfaultfd};
use crate::protocol::{Hello, PAGE_BYTES, Welcome};

/// From linux/socket.h: received messages carry a pidfd of their sender.
const PASS_PIDFD: c_int = 76;
/// From linux/socket.h: a pidfd of the process that connected.
const PEER_PIDFD: c_int = 77;
/// The kind of ancillary data that is the sender's pidfd.
const SENDER_PIDFD: c_int = 4;

/// A connected descendant must send a message within this time, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(60);
/// Limits of waiting connections, of one process and of all.
const WAITING_MAX_OF_PROCESS: usize = 64;
const WAITING_MAX: usize = 1024;
/// Refused processes that are remembered, so that their next connection costs nothing.
const STRANGERS_MAX: usize = 64;

/// Content of a page that only its process can read.
pub(crate) type Secret = [u64; 2];

/// A secret, and a page that begins with it.
pub(crate) fn secret() -> io::Result<(Secret, Vec<u8>)> {
    let mut page = vec![0; PAGE_BYTES];
    getrandom::fill(&mut page[..size_of::<Secret>()]).map_err(io::Error::other)?;
    let word = |place: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&page[place * 8..place * 8 + 8]);
        u64::from_ne_bytes(bytes)
    };
    Ok(([word(0), word(1)], page))
}

/// A process that must prove that a userfaultfd is its own.
#[derive(Debug)]
struct Challenged {
    hello: Hello,
    faults: Faults,
    secret: Secret,
}

/// A connected descendant that has not completed its announcement.
#[derive(Debug)]
struct Unannounced {
    socket: OwnedFd,
    peer: Peer,
    since: Instant,
    challenged: Option<Challenged>,
}

/// Result of reading a connection.
#[derive(Debug)]
pub(crate) enum Heard {
    /// No message, or one that is ignored.
    Nothing,
    /// A proved agent, and its userfaultfd, if it brings one.
    Agent(Box<Agent>, Option<Faults>),
    /// A descendant sent a false message and is not served. The text names the process and the
    /// reason.
    Lie(String),
}

/// The socket where agents announce themselves.
#[derive(Debug)]
pub(crate) struct Door {
    socket: OwnedFd,
    name: String,
    /// The pager's process, of which every accepted sender is a descendant.
    ancestor: Pid,
    waiting: FxHashMap<u64, Unannounced>,
    next: u64,
    /// Device and inode of the pidfds of refused processes. Such a process never becomes a
    /// descendant.
    strangers: VecDeque<(u64, u64)>,
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Door {
    pub(crate) fn open() -> io::Result<Door> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let (random, filters) = (u128::from_ne_bytes(random), seccomp_filters());
        let name = format!("ethermem-pager-{random:032x}-{filters}");
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let file = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        // This precedes the first connection: accepted sockets inherit the option.
        pass_pidfds(&file, true)?;
        bind(file.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        listen(&file, Backlog::new(128)?)?;
        Ok(Door {
            socket: file,
            name,
            ancestor: nix::unistd::getpid(),
            waiting: FxHashMap::default(),
            next: 0,
            strangers: VecDeque::new(),
        })
    }

    /// The socket's name, which programs find in their environment.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Accepts one waiting connection, and returns its number if a descendant opened it. It takes
    /// one at a time, so that faults are served between two connections.
    pub(crate) fn accept(&mut self) -> Option<u64> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = accept4(self.socket.as_raw_fd(), flags).ok()?;
        // SAFETY: the kernel just created the descriptor, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let pidfd = peer_pidfd(&socket).ok()?;
        let inode = fstat(&pidfd).ok().map(|it| (it.st_dev, it.st_ino))?;
        if self.strangers.contains(&inode) {
            return None;
        }
        let peer = Peer::of(pidfd).ok()?;
        if !peer.descends_from(self.ancestor) {
            self.strangers.push_back(inode);
            self.strangers.drain(..self.strangers.len().saturating_sub(STRANGERS_MAX));
            return None;
        }
        let of_peer = |it: &&Unannounced| it.peer.number() == peer.number();
        if self.waiting.len() >= WAITING_MAX
            || self.waiting.values().filter(of_peer).count() >= WAITING_MAX_OF_PROCESS
        {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let waiting = Unannounced { socket, peer, since: Instant::now(), challenged: None };
        self.waiting.insert(number, waiting);
        Some(number)
    }

    /// The socket of a waiting connection.
    pub(crate) fn connection(&self, number: u64) -> Option<BorrowedFd<'_>> {
        self.waiting.get(&number).map(|waiting| waiting.socket.as_fd())
    }

    /// Reads a message from a connection, if one is there.
    pub(crate) fn hear(&mut self, number: u64) -> Heard {
        let Some(mut waiting) = self.waiting.remove(&number) else { return Heard::Nothing };
        let message = match receive(waiting.socket.as_fd()) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => {
                self.waiting.insert(number, waiting);
                return Heard::Nothing;
            }
            // The connection was closed, or the sender has ended.
            Err(_) => return Heard::Nothing,
        };
        match waiting.believe(message) {
            Ok(Believed::Whole(hello, faults)) => {
                let Unannounced { socket, peer, .. } = waiting;
                Heard::Agent(Box::new(Agent::new(socket, peer, hello)), faults)
            }
            Ok(Believed::Challenged) => {
                self.waiting.insert(number, waiting);
                Heard::Nothing
            }
            Err(why) => Heard::Lie(format!("{}: {why}", waiting.peer.file())),
        }
    }

    /// Drops descendants that connected and stayed silent for too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.waiting.retain(|_, waiting| {
            let is_late = now.saturating_duration_since(waiting.since) > PATIENCE;
            !is_late || (waiting.peer.is_stopped() && !waiting.peer.has_ended())
        });
    }
}

/// Result of checking a message.
enum Believed {
    /// The message is accepted.
    Whole(Hello, Option<Faults>),
    /// The sender must first prove it.
    Challenged,
}

/// The reason why a message is rejected or cannot be answered.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("sent by another process than connected")]
    Sender,
    #[error(transparent)]
    Lie(#[from] Lie),
    #[error("it does not know what is in its own memory")]
    Secret,
    #[error("{0}")]
    System(io::Error),
}

impl Unannounced {
    fn believe(&mut self, message: Received) -> Result<Believed, Refusal> {
        if !message.sender.as_ref().is_some_and(|sender| self.peer.is(sender)) {
            return Err(Refusal::Sender);
        }
        let hello = claim::decode(message.bytes())?;
        let memory = if claim::names_addresses(&hello) {
            let maps = std::fs::read_to_string(self.peer.path("maps")).map_err(Refusal::System)?;
            claim::memory_of(&maps)
        } else {
            Vec::new()
        };
        let userfault = match &message.file {
            None => Some(false),
            Some(file) => is_userfaultfd(file).then_some(true),
        };
        let is_challenged = self.challenged.is_some();
        claim::judge(&hello, &Facts { userfault, is_challenged, memory: &memory })?;
        match (self.challenged.take(), message.file) {
            (Some(asked), _) if asked.secret == hello.secret => {
                Ok(Believed::Whole(asked.hello, Some(asked.faults)))
            }
            (Some(_), _) => Err(Refusal::Secret),
            (None, Some(file)) => {
                self.challenged = Some(challenge(hello, file).map_err(Refusal::System)?);
                welcome(self.socket.as_fd(), Welcome::PROVE, &[]).map_err(Refusal::System)?;
                Ok(Believed::Challenged)
            }
            (None, None) => Ok(Believed::Whole(hello, None)),
        }
    }
}

/// Puts a secret where only the process can read it whose memory `file` serves.
fn challenge(hello: Hello, file: OwnedFd) -> io::Result<Challenged> {
    let faults = Faults::new(file)?;
    let (secret, page) = secret()?;
    faults.copy(hello.probe, &page).1?;
    Ok(Challenged { hello, faults, secret })
}

/// Answers an announcement, and passes the files.
pub(crate) fn welcome(to: BorrowedFd<'_>, answer: u32, files: &[RawFd]) -> io::Result<()> {
    let welcome = Welcome { answer };
    let parts = [IoSlice::new(bytes_of(&welcome))];
    let rights = [ControlMessage::ScmRights(files)];
    let controls = if files.is_empty() { &[][..] } else { &rights[..] };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    sendmsg::<()>(to.as_raw_fd(), &parts, controls, flags, None)?;
    Ok(())
}

/// A message, the file that came with it, and a pidfd of its sender.
struct Received {
    content: [u8; size_of::<Hello>()],
    length: usize,
    file: Option<OwnedFd>,
    sender: Option<OwnedFd>,
}

impl Received {
    fn bytes(&self) -> &[u8] {
        &self.content[..self.length]
    }
}

/// Room for two files, each with its header. The kernel closes files that do not fit.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads a message, if one is there. A longer message, or more than one file, is an error.
fn receive(from: BorrowedFd<'_>) -> nix::Result<Received> {
    let mut received =
        Received { content: [0; size_of::<Hello>()], length: 0, file: None, sender: None };
    let mut control = Control([0; 64]);
    let base = received.content.as_mut_ptr().cast::<c_void>();
    let mut part = libc::iovec { iov_base: base, iov_len: received.content.len() };
    // SAFETY: all zeroes are a valid header, without a name, parts or room for anything.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>();
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header names memory that outlives the call, with its lengths.
    let length = unsafe { libc::recvmsg(from.as_raw_fd(), &raw mut header, flags) };
    received.length = Errno::result(length)?.unsigned_abs();
    // SAFETY: the kernel filled the header in, and `control` is aligned for what is in it.
    let mut place = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !place.is_null() {
        // SAFETY: the header lies entirely in `control`.
        let (part, data) = unsafe { (place.read(), libc::CMSG_DATA(place).cast::<RawFd>()) };
        let bytes = part.cmsg_len - (data as usize - place as usize);
        for number in 0..bytes / size_of::<RawFd>() {
            let is_file = matches!(part.cmsg_type, libc::SCM_RIGHTS | SENDER_PIDFD);
            if part.cmsg_level != libc::SOL_SOCKET || !is_file {
                continue;
            }
            // SAFETY: both kinds of data are descriptors that the kernel just created; nothing else
            // owns them.
            let file = unsafe { OwnedFd::from_raw_fd(data.add(number).read_unaligned()) };
            if part.cmsg_type == SENDER_PIDFD {
                received.sender = Some(file);
            } else if received.file.replace(file).is_some() {
                return Err(Errno::EMSGSIZE);
            }
        }
        // SAFETY: as above.
        place = unsafe { libc::CMSG_NXTHDR(&raw const header, place) };
    }
    if header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(Errno::EMSGSIZE);
    }
    if received.length == 0 { Err(Errno::ECONNRESET) } else { Ok(received) }
}

/// Sets whether received messages carry a pidfd of their sender.
pub(crate) fn pass_pidfds(socket: impl AsFd, wanted: bool) -> nix::Result<()> {
    let value = c_int::from(wanted);
    let bytes = size_of::<c_int>() as socklen_t;
    let file = socket.as_fd().as_raw_fd();
    // SAFETY: the option is an integer, and its length is passed.
    let result = unsafe {
        libc::setsockopt(file, libc::SOL_SOCKET, PASS_PIDFD, (&raw const value).cast(), bytes)
    };
    Errno::result(result).map(drop)
}

/// A pidfd of the process that connected.
fn peer_pidfd(socket: &OwnedFd) -> nix::Result<OwnedFd> {
    let (mut file, mut bytes): (RawFd, _) = (-1, size_of::<RawFd>() as socklen_t);
    let to = (&raw mut file).cast();
    // SAFETY: the option is an integer, and its length is passed.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, PEER_PIDFD, to, &raw mut bytes)
    };
    Errno::result(result)?;
    // SAFETY: the kernel just created the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Number of seccomp filters of this process. Programs with more filters are not asked to announce
/// executions.
fn seccomp_filters() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let filters = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    filters.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
