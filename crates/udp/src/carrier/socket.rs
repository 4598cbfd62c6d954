//! A non-blocking UDP socket.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use ethermem_ring::Interface;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::{IpMtu, RcvBuf, RcvBufForce, SndBuf, SndBufForce};
use nix::sys::socket::{getsockopt, setsockopt};

/// Octets of headers before a datagram: IPv4 and UDP, IPv6 and UDP.
pub(crate) const HEADERS_V4: usize = 28;
pub(crate) const HEADERS_V6: usize = 48;
/// MTU in octets that every IPv6 path carries (RFC 8200).
const MTU_V6_MIN: usize = 1280;
/// Longest UDP datagram in octets.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Requested size of each socket buffer in octets: room for a few hundred clients' windows.
pub const SOCKET_BUFFER_BYTES: usize = 8 << 20;

/// Binds a non-blocking socket.
pub(crate) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    prepare(&socket)?;
    Ok(socket)
}

/// Gives a socket its large buffers, and makes its calls return at once.
fn prepare(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // The first call exceeds the machine's limit if that is permitted; the second is bounded by it.
    if setsockopt(socket, RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        setsockopt(socket, RcvBuf, &SOCKET_BUFFER_BYTES)?;
    }
    room_to_send(socket)
}

/// Requests [`SOCKET_BUFFER_BYTES`] for the send buffer of any socket.
pub(crate) fn room_to_send(socket: &impl AsFd) -> io::Result<()> {
    if setsockopt(socket, SndBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        setsockopt(socket, SndBuf, &SOCKET_BUFFER_BYTES)?;
    }
    Ok(())
}

/// Sleeps until a datagram arrives, or for at most `most`.
#[cfg(test)]
pub(crate) fn wait(socket: &impl AsFd, most: std::time::Duration) {
    ethermem_ring::Alarm::new().sleep(socket.as_fd(), None, most);
}

/// Longest datagram on a connected socket's path, as far as the system knows.
pub(crate) fn path_bytes(socket: &UdpSocket) -> io::Result<usize> {
    if let Some(bytes) = routed_bytes(socket) {
        return Ok(bytes);
    }
    let mtu = interface_mtu(socket.local_addr()?.ip()).unwrap_or(0).max(MTU_V6_MIN);
    Ok((mtu - HEADERS_V6).min(DATAGRAM_BYTES_MAX))
}

/// Longest datagram according to routers' messages; the system provides it only for IPv4.
pub(crate) fn routed_bytes(socket: &UdpSocket) -> Option<usize> {
    socket.local_addr().ok().filter(SocketAddr::is_ipv4)?;
    let mtu = usize::try_from(getsockopt(socket, IpMtu).ok()?).unwrap_or(0);
    Some(mtu.saturating_sub(HEADERS_V4).min(DATAGRAM_BYTES_MAX))
}

/// MTU of the interface that has this address.
fn interface_mtu(own: IpAddr) -> Option<usize> {
    let is_own = |address: &nix::ifaddrs::InterfaceAddress| {
        let found = address.address.as_ref().and_then(|address| address.as_sockaddr_in6());
        found.is_some_and(|found| found.ip() == own)
    };
    let name = getifaddrs().ok()?.find(is_own)?.interface_name;
    Interface::find(&name).ok().map(|interface| interface.mtu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_carries_all_that_its_mtu_says() {
        for (own, headers) in [("127.0.0.1:0", HEADERS_V4), ("[::1]:0", HEADERS_V6)] {
            let Ok(socket) = UdpSocket::bind(own) else {
                eprintln!("SKIPPED: no loopback for {own}");
                continue;
            };
            socket.connect(socket.local_addr().expect("it is bound")).expect("it is there");
            let mtu = Interface::find("lo").expect("every machine has it").mtu;
            let bytes = path_bytes(&socket).expect("it is known");
            assert_eq!(bytes, (mtu - headers).min(DATAGRAM_BYTES_MAX), "{own}");
        }
    }
}
