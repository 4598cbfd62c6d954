//! A UDP socket that is polled.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};

/// Longest UDP datagram.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Asked of the system for a socket, each way: room for a few hundred clients' windows.
pub const SOCKET_BUFFER_BYTES: usize = 8 << 20;

/// Binds a socket whose calls do not wait.
pub(crate) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    // Beyond the machine's limit where that is allowed, else up to it.
    if setsockopt(&socket, RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        setsockopt(&socket, RcvBuf, &SOCKET_BUFFER_BYTES)?;
    }
    room_to_send(&socket)?;
    Ok(socket)
}

/// The same for what waits to be sent by any socket.
pub(crate) fn room_to_send(socket: &impl AsFd) -> io::Result<()> {
    if setsockopt(socket, SndBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        setsockopt(socket, SndBuf, &SOCKET_BUFFER_BYTES)?;
    }
    Ok(())
}

/// Sleeps until a datagram is there, or for so long.
pub(crate) fn wait(socket: &UdpSocket, most: Duration) {
    // A signal ends the sleep early, which is as good: the caller looks again.
    let _ = ppoll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], Some(most.into()), None);
}
