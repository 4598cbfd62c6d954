//! Buffers by reference over a connection of a rack: the calls of the preloaded library, for
//! programs in Rust. `crates/capi/include/ethermem_rack.h` has them for C, and their rules.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::{copy_nonoverlapping, null, null_mut};

use nix::libc;

type Alloc = unsafe extern "C" fn(c_int, usize) -> *mut u8;
type Build = unsafe extern "C" fn(c_int, *mut u8, usize) -> isize;
type Receive = unsafe extern "C" fn(c_int, *mut *const u8, usize, c_int) -> isize;
type Free = unsafe extern "C" fn(c_int, *const u8) -> c_int;

/// The calls, in a program that runs in a rack.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    alloc: Alloc,
    build: Build,
    receive: Receive,
    free: Free,
}

fn find(name: &std::ffi::CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Calls {
    /// The calls of the preloaded library; `None` outside of a rack.
    #[must_use]
    pub fn find() -> Option<Calls> {
        let [alloc, build, receive, free] =
            [c"alloc_shared_buffer", c"build_shared_skb", c"recv_shared_skb", c"kfree_shared_skb"]
                .map(find);
        // SAFETY: the preloaded library has functions of these names and types.
        unsafe {
            Some(Calls {
                alloc: std::mem::transmute::<*mut c_void, Alloc>(alloc?),
                build: std::mem::transmute::<*mut c_void, Build>(build?),
                receive: std::mem::transmute::<*mut c_void, Receive>(receive?),
                free: std::mem::transmute::<*mut c_void, Free>(free?),
            })
        }
    }

    /// Room for bytes that will be sent on `socket`.
    ///
    /// # Errors
    /// `EBUSY` if the last buffer of this socket was neither sent nor dropped; `EMSGSIZE`,
    /// `ENOMEM`.
    pub fn alloc<S: AsFd>(self, socket: &S, bytes: usize) -> io::Result<Buffer<'_>> {
        let socket = socket.as_fd();
        // SAFETY: nothing is passed by address.
        let at = unsafe { (self.alloc)(socket.as_raw_fd(), bytes) };
        if at.is_null() {
            return Err(io::Error::last_os_error());
        }
        Ok(Buffer { calls: self, socket, at, bytes })
    }

    /// A reference to at most `most` received bytes; it is empty at the end of the stream.
    ///
    /// # Errors
    /// As `recv`, and `ENOBUFS` if 64 references of this connection are in use.
    pub fn receive<S: AsFd>(self, socket: &S, most: usize) -> io::Result<Reference<'_>> {
        let socket = socket.as_fd();
        let mut at = null();
        // SAFETY: room for a pointer is passed.
        let got = unsafe { (self.receive)(socket.as_raw_fd(), &raw mut at, most, 0) };
        let bytes = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        Ok(Reference { calls: self, socket, at, bytes })
    }
}

/// Room for bytes to be sent. It is given back if it is dropped.
#[derive(Debug)]
pub struct Buffer<'a> {
    calls: Calls,
    socket: BorrowedFd<'a>,
    at: *mut u8,
    bytes: usize,
}

impl Buffer<'_> {
    /// Copies bytes to the buffer's begin.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn fill(&mut self, from: &[u8]) {
        assert!(from.len() <= self.bytes, "{} B into {} B", from.len(), self.bytes);
        // SAFETY: the buffer has so many bytes.
        unsafe { copy_nonoverlapping(from.as_ptr(), self.at, from.len()) };
    }

    /// The buffer in place.
    ///
    /// # Safety
    /// The other end has this memory, too: it must not use it before it has received it.
    pub unsafe fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the buffer has so many bytes, and the caller vouches for the other end.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }

    /// Sends the first `bytes` of the buffer: by reference where it lies in the ring.
    ///
    /// # Errors
    /// As `send`, and `EINVAL` if the buffer is shorter.
    pub fn send(mut self, bytes: usize) -> io::Result<()> {
        // SAFETY: the buffer is this one.
        let sent = unsafe { (self.calls.build)(self.socket.as_raw_fd(), self.at, bytes) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        self.at = null_mut();
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        if !self.at.is_null() {
            // SAFETY: the buffer was not sent.
            unsafe { (self.calls.free)(self.socket.as_raw_fd(), self.at) };
        }
    }
}

/// Received bytes in place. They are given back to the sender when this is dropped.
#[derive(Debug)]
pub struct Reference<'a> {
    calls: Calls,
    socket: BorrowedFd<'a>,
    at: *const u8,
    bytes: usize,
}

impl Reference<'_> {
    /// Number of bytes; 0 at the end of the stream.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True at the end of the stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.bytes);
        // SAFETY: so many bytes are there, on both sides.
        unsafe {
            if self.bytes > 0 {
                copy_nonoverlapping(self.at, copy.as_mut_ptr(), self.bytes);
            }
            copy.set_len(self.bytes);
        }
        copy
    }

    /// The bytes in place.
    ///
    /// # Safety
    /// The sender has this memory, too: it must not store into it any more.
    #[must_use]
    pub unsafe fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: so many bytes are there, and the caller vouches for the sender.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

impl Drop for Reference<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the reference is given back once.
            unsafe { (self.calls.free)(self.socket.as_raw_fd(), self.at) };
        }
    }
}
