//! System calls without a safe wrapper.

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd};

use memmap2::MmapMut;
use nix::libc::{self, c_int, c_ulong, ifreq, sock_filter, sock_fprog, sockaddr_ll, socklen_t};

fn result(returned: c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets a socket option whose value is plain octets that the kernel copies.
pub(crate) fn set<T: Copy>(
    socket: &impl AsFd,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    let (fd, bytes) = (socket.as_fd().as_raw_fd(), size_of_val(value) as socklen_t);
    // SAFETY: the kernel reads `bytes` octets of `value`, which lives through the call.
    result(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), bytes) })
}

/// Reads a socket option whose value is plain octets, all of which the kernel writes.
pub(crate) fn get<T: Copy + Default>(
    socket: &impl AsFd,
    level: c_int,
    name: c_int,
) -> io::Result<T> {
    let (fd, mut value) = (socket.as_fd().as_raw_fd(), T::default());
    let mut bytes = size_of::<T>() as socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: the kernel writes `bytes` octets of `value` at most, which lives through the call.
    result(unsafe { libc::getsockopt(fd, level, name, place, &raw mut bytes) })?;
    Ok(value)
}

/// Attaches a filter program to a socket.
pub(crate) fn attach(socket: &impl AsFd, program: &mut [sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel also copies the program, which lives through the call.
    let program = sock_fprog { len, filter: program.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Binds a socket to the frames of one EtherType on an interface.
pub(crate) fn bind(socket: &impl AsFd, index: u32, ether_type: u16) -> io::Result<()> {
    // SAFETY: an address of zeros is valid and names no interface.
    let mut address: sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ether_type.to_be();
    address.sll_ifindex = c_int::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (fd, bytes) = (socket.as_fd().as_raw_fd(), size_of::<sockaddr_ll>() as socklen_t);
    // SAFETY: the kernel reads an address of this length, which lives through the call.
    result(unsafe { libc::bind(fd, (&raw const address).cast(), bytes) })
}

/// True if the interface to which a socket was bound has existed ever since.
pub(crate) fn is_bound(socket: &impl AsFd) -> bool {
    // SAFETY: an address of zeros is valid and names no interface.
    let mut address: sockaddr_ll = unsafe { zeroed() };
    let (fd, mut bytes) = (socket.as_fd().as_raw_fd(), size_of::<sockaddr_ll>() as socklen_t);
    let place = (&raw mut address).cast();
    // SAFETY: the kernel writes an address of this length at most, which lives through the call.
    let known = result(unsafe { libc::getsockname(fd, place, &raw mut bytes) });
    known.is_ok() && address.sll_ifindex > 0
}

/// Asks for a property of an interface; the answer is in the request.
pub(crate) fn ask(socket: &impl AsFd, name: &str, question: c_ulong) -> io::Result<ifreq> {
    // SAFETY: a request of zeros is valid and names no interface.
    let mut request: ifreq = unsafe { zeroed() };
    // The last octet remains the name's terminator.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, octet) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = octet as libc::c_char;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: all questions of this crate read and write a request, which lives through the call.
    result(unsafe { libc::ioctl(fd, question as _, &raw mut request) })?;
    Ok(request)
}

/// Makes the kernel fill a page with zeros in every fork of this process.
pub(crate) fn wipe_on_fork(page: &mut MmapMut) -> io::Result<()> {
    let (place, bytes) = (page.as_mut_ptr().cast(), page.len());
    // SAFETY: the page belongs to this mapping, and the call changes nothing in this process.
    result(unsafe { libc::madvise(place, bytes, libc::MADV_WIPEONFORK) })
}

/// The first octet of a page that the kernel may have filled with zeros.
#[inline]
pub(crate) fn first(page: &MmapMut) -> u8 {
    // SAFETY: the octet belongs to the page, and nothing writes it meanwhile.
    unsafe { page.as_ptr().read_volatile() }
}
