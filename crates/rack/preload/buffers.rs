//! The program's buffers, as one sequence of bytes.

use core::ptr::copy_nonoverlapping;

use crate::conn::View;
use crate::sys::{self, Iovec};

/// Most buffers that one call of the kernel gets; the others follow in the next call.
const AT_ONCE: usize = 64;
/// Most buffers of a call, as the kernel's limit.
const BUFFERS_MAX: usize = 1024;

/// Buffers, of which some bytes are done.
pub struct Buffers {
    at: *const Iovec,
    count: usize,
    /// Bytes done in all.
    pub done: usize,
    /// The buffer with the next byte, and the bytes done in it.
    next: usize,
    within: usize,
}

/// A few buffers for the kernel.
pub struct Few {
    pub iov: [Iovec; AT_ONCE],
    pub count: usize,
}

impl Buffers {
    /// `None` if the kernel would refuse their number or their length.
    ///
    /// # Safety
    /// `at` must point to `count` buffers, which stay valid.
    pub unsafe fn new(at: *const Iovec, count: usize) -> Option<(Buffers, usize)> {
        if count > BUFFERS_MAX {
            return None;
        }
        let mut total = 0usize;
        for index in 0..count {
            // SAFETY: the index is below the count.
            total = total.checked_add(unsafe { (*at.add(index)).len })?;
        }
        let buffers = Buffers { at, count, done: 0, next: 0, within: 0 };
        (isize::try_from(total).is_ok()).then_some((buffers, total))
    }

    /// The next bytes of the current buffer.
    fn piece(&mut self) -> Option<Iovec> {
        while self.next < self.count {
            // SAFETY: the index is below the count.
            let whole = unsafe { *self.at.add(self.next) };
            if self.within < whole.len {
                // SAFETY: it stays within the buffer.
                let base = unsafe { whole.base.add(self.within) };
                return Some(Iovec { base, len: whole.len - self.within });
            }
            self.next += 1;
            self.within = 0;
        }
        None
    }

    /// A copy at the same position, for bytes that may have to be sent again.
    pub fn fork(&self) -> Buffers {
        Buffers { ..*self }
    }

    /// Notes that the kernel has done so many bytes.
    pub fn skip(&mut self, mut bytes: usize) {
        self.done += bytes;
        while let Some(piece) = self.piece().filter(|_| bytes > 0) {
            let step = piece.len.min(bytes);
            self.within += step;
            bytes -= step;
        }
    }

    /// The next buffers, of at most `limit` bytes.
    pub fn few(&mut self, limit: usize) -> Few {
        let mut few =
            Few { iov: [Iovec { base: core::ptr::null_mut(), len: 0 }; AT_ONCE], count: 0 };
        let (next, within) = (self.next, self.within);
        let mut left = limit;
        while let Some(piece) = self.piece().filter(|_| left > 0 && few.count < AT_ONCE) {
            let len = piece.len.min(left);
            few.iov[few.count] = Iovec { base: piece.base, len };
            few.count += 1;
            left -= len;
            self.next += 1;
            self.within = 0;
        }
        (self.next, self.within) = (next, within);
        few
    }

    /// Copies `bytes` of the buffers into the ring from `position` on, or out of it.
    pub fn copy(&mut self, view: &View, position: u64, bytes: usize, into_ring: bool) {
        let mask = view.size - 1;
        let mut copied = 0;
        while let Some(piece) = self.piece().filter(|_| copied < bytes) {
            let at = ((position + copied as u64) & mask) as usize;
            let to_wrap = view.size as usize - at;
            let step = piece.len.min(bytes - copied).min(to_wrap);
            // SAFETY: the step ends at the buffer's end and at the ring's, whichever is first. The
            // other end may write the same bytes meanwhile, at its own risk.
            unsafe {
                let ring = view.ring.add(at);
                if into_ring {
                    copy_nonoverlapping(piece.base, ring, step);
                } else {
                    copy_nonoverlapping(ring, piece.base, step);
                }
            }
            self.within += step;
            copied += step;
        }
        self.done += copied;
    }
}

impl Buffers {
    /// Copies `bytes` from memory that does not wrap.
    ///
    /// # Safety
    /// `from` must have so many bytes.
    pub unsafe fn fill(&mut self, from: *const u8, bytes: usize) {
        let mut copied = 0;
        while let Some(piece) = self.piece().filter(|_| copied < bytes) {
            let step = piece.len.min(bytes - copied);
            // SAFETY: the step ends at the buffer's end and at the caller's, whichever is first.
            unsafe { copy_nonoverlapping(from.add(copied), piece.base, step) };
            self.within += step;
            copied += step;
        }
        self.done += copied;
    }
}

impl Few {
    fn message(&mut self) -> sys::Message {
        sys::Message {
            name: core::ptr::null_mut(),
            name_len: 0,
            iov: self.iov.as_mut_ptr(),
            iov_len: self.count,
            control: core::ptr::null_mut(),
            control_len: 0,
            flags: 0,
        }
    }

    pub fn send(&mut self, fd: i32, flags: u32) -> isize {
        let message = self.message();
        let at = &raw const message as usize;
        // SAFETY: the buffers are the program's.
        unsafe { sys::call4(sys::SENDMSG, fd as usize, at, flags as usize, 0) }
    }

    pub fn receive(&mut self, fd: i32, flags: u32) -> isize {
        let mut message = self.message();
        let at = &raw mut message as usize;
        // SAFETY: the buffers are the program's.
        unsafe { sys::call4(sys::RECVMSG, fd as usize, at, flags as usize, 0) }
    }
}
