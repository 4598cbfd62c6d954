//! The kernel's userfaultfd, and the two calls that read another process's memory map.
//!
//! The pager's unsafe code is here and in `launch.rs` alone.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

use crate::protocol::{PAGE_BYTES, feature, request};

/// An event of a userfaultfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A thread waits for the page at address `page`.
    Fault { page: u64, thread: u32, write: bool },
    /// A fork; the child's memory is served through `file`.
    Fork { file: RawFd },
    /// A mapping moved. `kept` is true while its old addresses stay mapped. The kernel first
    /// reports a move as kept; unless the program asked for that, it then reports that the old
    /// addresses are gone.
    Remap { from: u64, to: u64, bytes: u64, kept: bool },
    /// The program discards the content of `start..end`; the kernel drops it after this event was
    /// read.
    Remove { start: u64, end: u64 },
    /// `start..end` is no longer mapped.
    Unmap { start: u64, end: u64 },
}

/// `struct uffd_msg`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    argument: [u64; 3],
}

const MESSAGES: usize = 16;
const WRITE: u64 = 1;

/// The userfaultfd of one address space.
#[derive(Debug)]
pub(crate) struct Faults {
    file: OwnedFd,
}

impl AsFd for Faults {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Faults {
    /// Takes ownership of a userfaultfd that a program opened.
    pub(crate) fn new(file: OwnedFd) -> io::Result<Faults> {
        nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
        Ok(Faults { file })
    }

    /// Checks that this machine has all that the pager needs.
    pub(crate) fn probe() -> io::Result<()> {
        // SAFETY: the call takes only flags.
        let file = unsafe { nix::libc::syscall(nix::libc::SYS_userfaultfd, nix::libc::O_CLOEXEC) };
        let file = Errno::result(file)?;
        // SAFETY: the kernel just created the descriptor, and nothing else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(RawFd::try_from(file).unwrap_or(-1)) };
        let faults = Faults { file };
        faults.order(request::API, &mut [request::API_VERSION, feature::ALL, 0])?;
        Ok(())
    }

    fn order<const WORDS: usize>(&self, code: u64, words: &mut [u64; WORDS]) -> nix::Result<()> {
        // SAFETY: every code states the length of its argument, which `words` has.
        let result = unsafe { nix::libc::ioctl(self.file.as_raw_fd(), code, words.as_mut_ptr()) };
        Errno::result(result).map(drop)
    }

    /// Reads all pending events and appends them to `to`. Faults come before other events.
    pub(crate) fn read(&self, to: &mut Vec<Event>) -> nix::Result<()> {
        while self.read_some(to)? == MESSAGES {}
        Ok(())
    }

    /// Reads as much as one call returns, and returns the number of messages.
    fn read_some(&self, to: &mut Vec<Event>) -> nix::Result<usize> {
        let mut messages = [Message::default(); MESSAGES];
        // SAFETY: `Message` has no invalid values, and the length is that of the array.
        let bytes = unsafe {
            nix::libc::read(
                self.file.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                size_of_val(&messages),
            )
        };
        let bytes = match Errno::result(bytes) {
            Ok(bytes) => bytes.unsigned_abs(),
            Err(Errno::EAGAIN | Errno::EINTR) => 0,
            Err(error) => return Err(error),
        };
        let count = bytes / size_of::<Message>();
        to.extend(messages[..count].iter().filter_map(Message::decode));
        Ok(count)
    }

    /// Puts `content` (whole pages) at `page`, and returns the bytes put before any error.
    pub(crate) fn copy(&self, page: u64, content: &[u8]) -> (usize, nix::Result<()>) {
        let (from, bytes) = (content.as_ptr() as u64, content.len() as u64);
        let mut words = [page, from, bytes, 0, 0];
        let result = self.order(request::COPY, &mut words);
        (usize::try_from(words[4].cast_signed()).unwrap_or(0), result)
    }

    /// Puts zeroes at `page`.
    pub(crate) fn zero(&self, page: u64) -> nix::Result<()> {
        self.order(request::ZEROPAGE, &mut [page, PAGE_BYTES as u64, 0, 0])
    }

    /// Lets threads that wait for `page` retry.
    pub(crate) fn wake(&self, page: u64) -> nix::Result<()> {
        self.order(request::WAKE, &mut [page, PAGE_BYTES as u64])
    }

    /// Registers `start..end`: from now on its absent pages are faults reported here.
    pub(crate) fn register(&self, start: u64, end: u64) -> nix::Result<()> {
        self.order(request::REGISTER, &mut [start, end - start, request::MODE_MISSING, 0])
    }

    /// True if a mapping changed and the event has not been read. `unserved` is a page that is not
    /// registered.
    pub(crate) fn is_changing(&self, unserved: u64) -> bool {
        self.zero(unserved) == Err(Errno::EAGAIN)
    }

    /// True if absent pages at `page` are reported; `None` while a change has not been read. The
    /// request is one that the kernel refuses for private memory, but only if that memory is
    /// registered.
    pub(crate) fn is_registered(&self, page: u64) -> Option<bool> {
        match self.order(request::CONTINUE, &mut [page, PAGE_BYTES as u64, 0, 0]) {
            Err(Errno::EAGAIN) => None,
            result => Some(result == Err(Errno::EINVAL)),
        }
    }

    /// True if the address space still exists; `unserved` is a page that is not registered.
    pub(crate) fn is_alive(&self, unserved: u64) -> bool {
        self.zero(unserved) != Err(Errno::ESRCH)
    }
}

impl Message {
    fn decode(&self) -> Option<Event> {
        let [first, second, third] = self.argument;
        Some(match self.event {
            0x12 => Event::Fault {
                page: second & !(PAGE_BYTES as u64 - 1),
                thread: third as u32,
                write: first & WRITE != 0,
            },
            0x13 => Event::Fork { file: first as RawFd },
            0x14 => Event::Remap { from: first, to: second, bytes: third, kept: true },
            0x15 => Event::Remove { start: first, end: second },
            0x16 => Event::Unmap { start: first, end: second },
            _ => return None,
        })
    }
}

/// Takes ownership of the userfaultfd of a fork's child.
pub(crate) fn adopt(file: RawFd) -> io::Result<Faults> {
    // SAFETY: the event gave the descriptor to this process, and nothing else owns it.
    Faults::new(unsafe { OwnedFd::from_raw_fd(file) })
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Scan {
    bytes: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    region_count: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

const SCAN_REQUEST: u64 = 3 << 30 | 96 << 16 | (b'f' as u64) << 8 | 16;
const PRESENT: u64 = 1 << 3;
const ZERO_PAGE: u64 = 1 << 5;

/// Finds the ranges of pages in `start..end` that occupy memory, until `to` holds `most` ranges.
/// Returns where the walk ended.
pub(crate) fn present(
    pagemap: &File,
    start: u64,
    end: u64,
    most: usize,
    to: &mut Vec<(u64, u64)>,
) -> nix::Result<u64> {
    let mut regions = vec![[0u64; 3]; most];
    let mut scan = Scan {
        bytes: size_of::<Scan>() as u64,
        start,
        end,
        regions: regions.as_mut_ptr() as u64,
        region_count: most as u64,
        inverted: ZERO_PAGE,
        all_of: PRESENT | ZERO_PAGE,
        returned: PRESENT,
        ..Scan::default()
    };
    // SAFETY: the structure states its length and that of `regions`, which outlives the call.
    let found = unsafe { nix::libc::ioctl(pagemap.as_raw_fd(), SCAN_REQUEST, &raw mut scan) };
    let found = Errno::result(found)?;
    to.extend(regions[..found.unsigned_abs() as usize].iter().map(|region| (region[0], region[1])));
    Ok(scan.walk_end)
}

#[cfg(test)]
mod tests {
    use super::{SCAN_REQUEST, Scan};

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(size_of::<Scan>(), 96);
        assert_eq!(size_of::<super::Message>(), 32);
        assert_eq!(SCAN_REQUEST, 0xc060_6610);
    }
}
