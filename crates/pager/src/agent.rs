//! The agents inside of programs: their image, and the pager's side of what is said.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    UnixAddr, accept4, bind, getsockopt, listen, recvmsg, send, sendmsg, socket,
    sockopt::PeerCredentials,
};
use nix::unistd::Pid;

use crate::protocol::{BATCH_PAGES, Done, Hello, Order, TAKE, UNSHARE, VERSION, Welcome};

/// The shared library that is preloaded into programs.
pub(crate) const IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));

/// How long the pager waits for an agent whose program may be stopped.
const PATIENCE_MS: u16 = 100;

/// Where agents announce themselves.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    name: String,
}

impl Listener {
    pub(crate) fn open() -> io::Result<Listener> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let (random, filters) = (u128::from_ne_bytes(random), seccomp_filters());
        let name = format!("ethermem-pager-{random:032x}-{filters}");
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let file = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        bind(file.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        listen(&file, Backlog::new(128)?)?;
        Ok(Listener { socket: file, name })
    }

    /// What programs find in their environment.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The next agent that announces itself, if one waits.
    pub(crate) fn accept(&self) -> io::Result<Option<OwnedFd>> {
        match accept4(self.socket.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
            // SAFETY: the kernel just made it, for us alone.
            Ok(file) => Ok(Some(unsafe { OwnedFd::from_raw_fd(file) })),
            Err(Errno::EAGAIN | Errno::ECONNABORTED | Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How many seccomp filters this process has: programs that have more are not asked for anything.
fn seccomp_filters() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let filters = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    filters.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Bytes of a message as they lie in memory.
fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: every message is made of integers without gaps.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

fn bytes_of_mut<T: Copy>(value: &mut T) -> &mut [u8] {
    // SAFETY: as above, and any bytes are a value of it.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

/// An agent that announced itself.
#[derive(Debug)]
pub(crate) struct Agent {
    socket: OwnedFd,
    pub(crate) hello: Hello,
}

impl AsFd for Agent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How an order ended.
#[derive(Debug)]
pub(crate) enum Answer {
    /// What became of each page.
    Done(Box<Done>),
    /// Not yet: the program may be stopped.
    Later,
    /// The agent is gone, and its process with it.
    Gone,
}

impl Agent {
    /// Reads the announcement, and the userfaultfd that may come with it.
    pub(crate) fn meet(socket: OwnedFd) -> io::Result<(Agent, Option<OwnedFd>)> {
        let mut hello = Hello::default();
        let mut fault = None;
        let mut space = nix::cmsg_space!(RawFd);
        {
            let mut parts = [IoSliceMut::new(bytes_of_mut(&mut hello))];
            let flags = MsgFlags::MSG_CMSG_CLOEXEC;
            let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
            for control in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(files) = control {
                    for file in files {
                        // SAFETY: the kernel made it for us alone.
                        fault = Some(unsafe { OwnedFd::from_raw_fd(file) });
                    }
                }
            }
            if message.bytes != size_of::<Hello>() {
                return Err(io::Error::other("an agent sent something else than its greeting"));
            }
        }
        if hello.version != VERSION {
            return Err(io::Error::other("an agent of another version"));
        }
        Ok((Agent { socket, hello }, fault))
    }

    /// The process at the other end, as this one sees it.
    pub(crate) fn peer(&self) -> nix::Result<Pid> {
        Ok(Pid::from_raw(getsockopt(&self.socket, PeerCredentials)?.pid()))
    }

    /// Answers the announcement.
    pub(crate) fn welcome(&self, accepted: bool, fault: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let welcome = Welcome { accepted: u32::from(accepted) };
        let parts = [IoSlice::new(bytes_of(&welcome))];
        let files: Vec<RawFd> = fault.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&files)];
        let controls = if files.is_empty() { &[][..] } else { &rights[..] };
        let to = self.socket.as_raw_fd();
        sendmsg::<()>(to, &parts, controls, MsgFlags::MSG_NOSIGNAL, None)?;
        Ok(())
    }

    /// Orders pages to be moved to the staging area, and waits a while for the answer.
    pub(crate) fn take(&self, pages: &[u64]) -> Answer {
        if self.order(TAKE, pages) { self.answer() } else { Answer::Gone }
    }

    /// Orders pages to be made the process's own; the answer comes later.
    pub(crate) fn unshare(&self, pages: &[u64]) -> bool {
        self.order(UNSHARE, pages)
    }

    fn order(&self, kind: u32, pages: &[u64]) -> bool {
        let mut order = Order { kind, count: pages.len() as u32, pages: [0; BATCH_PAGES] };
        order.pages[..pages.len()].copy_from_slice(pages);
        send(self.socket.as_raw_fd(), bytes_of(&order), MsgFlags::MSG_NOSIGNAL).is_ok()
    }

    /// The answer to the last order.
    pub(crate) fn answer(&self) -> Answer {
        let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::from(PATIENCE_MS)) {
            Ok(0) | Err(_) => return Answer::Later,
            Ok(_) => {}
        }
        let mut done = Box::new(Done { errors: [0; BATCH_PAGES] });
        let to = bytes_of_mut(&mut *done);
        match nix::sys::socket::recv(self.socket.as_raw_fd(), to, MsgFlags::empty()) {
            Ok(bytes) if bytes == size_of::<Done>() => Answer::Done(done),
            Err(Errno::EINTR) => Answer::Later,
            Ok(_) | Err(_) => Answer::Gone,
        }
    }
}
