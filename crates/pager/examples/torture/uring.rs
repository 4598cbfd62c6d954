//! Pages that io_uring reads and writes: in the submitting thread, in a kernel thread, and as a
//! pinned buffer.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};
use nix::libc;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::arena::{Arena, PAGE_BYTES};

/// A ring of this thread, and a file.
pub(crate) struct Ring {
    ring: IoUring,
    file: File,
}

impl Ring {
    /// A ring; `None` where the kernel does not offer io_uring.
    pub(crate) fn new() -> Result<Option<Ring>, String> {
        let Ok(ring) = IoUring::new(4) else { return Ok(None) };
        // SAFETY: the call takes a name and flags; nothing else owns the descriptor.
        let file = unsafe {
            let file = libc::memfd_create(c"torture".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(format!("memfd: {}", std::io::Error::last_os_error()));
            }
            File::from_raw_fd(file)
        };
        Ok(Some(Ring { ring, file }))
    }

    /// Writes the page to a file and reads it back.
    pub(crate) fn there_and_back(
        &mut self,
        arena: &mut Arena,
        page: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> Result<(), String> {
        let (place, file) = (arena.place(page), types::Fd(self.file.as_raw_fd()));
        let (buffer, bytes) = (place.cast::<u8>(), PAGE_BYTES as u32);
        let is_pinned = random.next_u64().is_multiple_of(4);
        let (write, read) = if is_pinned {
            let part = libc::iovec { iov_base: buffer.cast(), iov_len: PAGE_BYTES };
            // SAFETY: the page stays mapped until the buffer is unregistered below.
            unsafe { self.ring.submitter().register_buffers(&[part]) }
                .map_err(|error| format!("register_buffers: {error}"))?;
            let write = opcode::WriteFixed::new(file, buffer, bytes, 0).build();
            (write, opcode::ReadFixed::new(file, buffer, bytes, 0).build())
        } else {
            let write = opcode::Write::new(file, buffer, bytes).build();
            (write, opcode::Read::new(file, buffer, bytes).build())
        };
        let is_elsewhere = random.next_u64().is_multiple_of(2);
        let flags = if is_elsewhere { Flags::ASYNC } else { Flags::empty() };
        self.submit(&write.flags(flags))?;
        // SAFETY: the page is mapped, and no request is in flight.
        unsafe { place.write_bytes(0xee, 512) };
        self.submit(&read.flags(flags))?;
        if is_pinned {
            let given_back = self.ring.submitter().unregister_buffers();
            given_back.map_err(|error| format!("unregister_buffers: {error}"))?;
        }
        arena.check_page(page)
    }

    fn submit(&mut self, entry: &Entry) -> Result<(), String> {
        // SAFETY: the buffer lives until the call below returns with the completion.
        unsafe { self.ring.submission().push(entry) }.map_err(|error| error.to_string())?;
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("io_uring_enter: {error}")),
            }
        }
        let completion = self.ring.completion().next().ok_or("io_uring: nothing completed")?;
        match completion.result() {
            result if result == PAGE_BYTES as i32 => Ok(()),
            result => Err(format!("io_uring: {result}")),
        }
    }
}
