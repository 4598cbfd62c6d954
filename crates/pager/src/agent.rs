//! The agents inside of programs: their image, and the pager's side of the dialogue after `door.rs`
//! has accepted an agent.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::socket::{MsgFlags, send};
use nix::unistd::ftruncate;

use crate::door;
use crate::peer::Peer;
use crate::protocol::{
    Ask, BATCH_PAGES, Done, GO, GRANT, Hello, Order, PAGE_BYTES, TAKE, UNSHARE, Welcome,
};

/// The shared library that is preloaded into programs.
pub(crate) const IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));

/// How long the pager waits for an agent whose program may be stopped or uncooperative. Other
/// programs wait for their pages meanwhile.
const PATIENCE_MS: u16 = 4;
const SHOWN_BYTES: usize = BATCH_PAGES * PAGE_BYTES;

/// The bytes of a message in memory.
pub(crate) fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: every message consists of integers without gaps.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

fn bytes_of_mut<T: Copy>(value: &mut T) -> &mut [u8] {
    // SAFETY: as above, and any bytes are a valid message.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

/// Memory to which a process copies its pages for the pager. The pager sees nothing else of a
/// process: reading its memory from outside could block on whatever it has mapped there.
#[derive(Debug)]
struct Shown {
    at: NonNull<libc::c_void>,
}

impl Shown {
    /// Maps the memory, and returns it with its file. The file is sealed against shrinking.
    fn new() -> nix::Result<(Shown, OwnedFd)> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create(c"ethermem-pages", flags)?;
        ftruncate(&file, SHOWN_BYTES as libc::off_t)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let bytes = std::num::NonZero::new(SHOWN_BYTES).ok_or(Errno::EINVAL)?;
        // SAFETY: this maps new memory at an address that the kernel chooses.
        let at =
            unsafe { mmap(None, bytes, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, 0)? };
        Ok((Shown { at }, file))
    }

    /// Copies the page at index `place`. The process may change it meanwhile, at its own risk.
    fn read(&self, place: usize, to: &mut [u8]) {
        let from = place * PAGE_BYTES;
        assert!(from + to.len() <= SHOWN_BYTES, "{place} and {} bytes", to.len());
        // SAFETY: the source is within the mapping, which lasts as long as `self`. No reference to
        // it is made, as another process writes to it.
        unsafe {
            let from = self.at.as_ptr().cast::<u8>().add(from);
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // SAFETY: the mapping is that of `new`, and no references to it exist.
        let _ = unsafe { munmap(self.at, SHOWN_BYTES) };
    }
}

/// An agent whose announcement was accepted.
#[derive(Debug)]
pub(crate) struct Agent {
    socket: OwnedFd,
    pub(crate) hello: Hello,
    pub(crate) peer: Peer,
    /// Present once the process is served.
    shown: Option<Shown>,
    /// What threads of the process wait for; a process has one such thread at a time.
    pub(crate) asked: Option<Ask>,
}

impl AsFd for Agent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Result of an order.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result for each page.
    Done(Box<Done>),
    /// No answer yet: the program may be stopped.
    Later,
    /// The agent is gone, and its process with it.
    Gone,
}

impl Agent {
    /// An agent whose process `peer` sent `hello` over the non-blocking `socket`.
    pub(crate) fn new(socket: OwnedFd, peer: Peer, hello: Hello) -> Agent {
        // Its later messages concern only its own pages.
        let _ = door::pass_pidfds(&socket, false);
        Agent { socket, hello, peer, shown: None, asked: None }
    }

    /// Refuses the announcement, or lets the process proceed.
    pub(crate) fn answer_with(&self, may: bool) -> io::Result<()> {
        let answer = if may { Welcome::ACCEPTED } else { Welcome::REFUSED };
        door::welcome(self.socket.as_fd(), answer, &[])
    }

    /// Tells the agent that its process is served from now on. A fork's child receives its
    /// userfaultfd.
    pub(crate) fn serve(&mut self, fault: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let (shown, file) = Shown::new()?;
        let files: Vec<_> =
            [Some(file.as_fd()), fault].iter().flatten().map(AsRawFd::as_raw_fd).collect();
        door::welcome(self.socket.as_fd(), Welcome::ACCEPTED, &files)?;
        self.shown = Some(shown);
        Ok(())
    }

    /// Reads what the process shows from index `place` on, in pages of the last order.
    pub(crate) fn shown(&self, place: usize, to: &mut [u8]) {
        match &self.shown {
            Some(shown) => shown.read(place, to),
            None => to.fill(0),
        }
    }

    /// Orders pages to be moved to the staging area, and waits briefly for the answer.
    pub(crate) fn take(&mut self, pages: &[u64]) -> Answer {
        if self.order(TAKE, pages) { self.answer() } else { Answer::Gone }
    }

    /// Lets the program run; with `held`, its new mappings wait until they are registered. The
    /// answer comes later.
    pub(crate) fn go(&self, held: bool) -> bool {
        self.order(GO, if held { &[0] } else { &[] })
    }

    /// Lets the thread proceed that asked last.
    pub(crate) fn grant(&self) -> bool {
        self.order(GRANT, &[])
    }

    /// Orders pages to be unshared; the answer comes later.
    pub(crate) fn unshare(&self, pages: &[u64]) -> bool {
        self.order(UNSHARE, pages)
    }

    fn order(&self, kind: u32, pages: &[u64]) -> bool {
        let mut order = Order { kind, count: pages.len() as u32, pages: [0; BATCH_PAGES] };
        order.pages[..pages.len()].copy_from_slice(pages);
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        send(self.socket.as_raw_fd(), bytes_of(&order), flags).is_ok()
    }

    /// The answer to the last order. Waits for it briefly.
    pub(crate) fn answer(&mut self) -> Answer {
        loop {
            let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::from(PATIENCE_MS)) {
                Ok(0) | Err(_) => return Answer::Later,
                Ok(_) => {}
            }
            match self.hear() {
                Some(answer) => return answer,
                None => continue,
            }
        }
    }

    /// Reads a message, if one is there; `None` for what a thread asks, which is kept.
    pub(crate) fn hear(&mut self) -> Option<Answer> {
        let mut done = Box::new(Done { errors: [0; BATCH_PAGES] });
        let to = bytes_of_mut(&mut *done);
        match nix::sys::socket::recv(self.socket.as_raw_fd(), to, MsgFlags::MSG_DONTWAIT) {
            Ok(bytes) if bytes == size_of::<Done>() => Some(Answer::Done(done)),
            Ok(bytes) if bytes == size_of::<Ask>() && self.asked.is_none() => {
                let mut ask = Ask::default();
                let bytes = bytes_of_mut(&mut ask);
                bytes.copy_from_slice(&bytes_of(&*done)[..bytes.len()]);
                self.asked = Some(ask);
                None
            }
            Err(Errno::EINTR | Errno::EAGAIN) => Some(Answer::Later),
            Ok(_) | Err(_) => Some(Answer::Gone),
        }
    }
}
