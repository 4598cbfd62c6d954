//! Non-blocking sockets of the process, and frames in what they receive.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::sockopt::{BindToDevice, Linger, ReuseAddr};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt,
    socket,
};

use super::frame::{DATA_BYTES_MAX, Fault, HEADER_BYTES, Header};
use crate::offer::Address;

/// Bytes that are read at once.
const READ_BYTES: usize = 4 * DATA_BYTES_MAX;
const BACKLOG: i32 = 4096;

pub(super) fn address(of: SocketAddr) -> Option<Address> {
    let SocketAddr::V4(of) = of else { return None };
    Some(Address { ip: u32::from(*of.ip()), port: u32::from(of.port()) })
}

pub(super) fn socket_address(of: Address) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(of.ip), of.port as u16)
}

/// A number that stands for an address in the ledger.
pub(super) fn key(of: Address) -> u64 {
    u64::from(of.ip) << 32 | u64::from(of.port)
}

fn stream_socket() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Inet, SockType::Stream, flags, None)
}

/// A listener at this port of all addresses.
pub(super) fn listener(port: u16) -> io::Result<TcpListener> {
    let socket = stream_socket()?;
    setsockopt(&socket, ReuseAddr, &true)?;
    let any = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
    bind(socket.as_raw_fd(), &any)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(TcpListener::from(socket))
}

fn begin(socket: &OwnedFd, to: SocketAddrV4) -> io::Result<()> {
    match connect(socket.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Begins to connect by an interface: bound to it, or to its address where that is not permitted.
pub(super) fn connect_by(nic: &str, to: SocketAddrV4) -> io::Result<TcpStream> {
    let socket = stream_socket()?;
    if setsockopt(&socket, BindToDevice, &nic.into()).is_err() {
        let all = nix::ifaddrs::getifaddrs()?;
        let mut of_nic = all.filter(|it| it.interface_name == nic);
        let own = of_nic.find_map(|it| it.address?.as_sockaddr_in().map(SockaddrIn::ip));
        let own = own.ok_or(io::ErrorKind::AddrNotAvailable)?;
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(own, 0)))?;
    }
    begin(&socket, to)?;
    Ok(TcpStream::from(socket))
}

/// A socket that will connect to a program at `server`, and its own address, which is known before.
pub(super) fn prepare_to(server: SocketAddrV4) -> io::Result<(TcpStream, Address)> {
    let socket = stream_socket()?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(*server.ip(), 0)))?;
    let socket = TcpStream::from(socket);
    let own = address(socket.local_addr()?).ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((socket, own))
}

/// Begins to connect a socket of [`prepare_to`].
pub(super) fn begin_to(socket: TcpStream, server: SocketAddrV4) -> io::Result<TcpStream> {
    let socket = OwnedFd::from(socket);
    begin(&socket, server)?;
    Ok(TcpStream::from(socket))
}

/// With `resets`, the socket's end resets its connection, also when this process is killed.
pub(super) fn set_reset(socket: &TcpStream, resets: bool) {
    let linger = nix::libc::linger { l_onoff: i32::from(resets), l_linger: 0 };
    // It fails only on a socket that has ended.
    let _ = setsockopt(socket, Linger, &linger);
}

/// Result of a call on a socket.
pub(super) enum Step {
    /// So many bytes.
    Done(usize),
    /// The call would block.
    Blocked,
    /// The stream has ended.
    End,
    /// The connection is broken.
    Failed(io::Error),
}

fn step(result: io::Result<usize>) -> Step {
    match result {
        Ok(0) => Step::End,
        Ok(bytes) => Step::Done(bytes),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Step::Blocked,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Step::Done(0),
        Err(error) => Step::Failed(error),
    }
}

pub(super) fn read(mut socket: &TcpStream, to: &mut [u8]) -> Step {
    step(socket.read(to))
}

pub(super) fn write(mut socket: &TcpStream, from: &[u8]) -> Step {
    step(socket.write(from))
}

/// Bytes that were received, up to a whole frame.
pub(super) struct Frames {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Frames {
    pub(super) fn new(room_bytes: usize) -> Frames {
        Frames { bytes: vec![0; room_bytes], from: 0, to: 0 }
    }

    /// Makes room for the frames of a subflow, and keeps what has come.
    pub(super) fn of_subflow(mut self) -> Frames {
        self.bytes.resize(READ_BYTES, 0);
        self
    }

    /// Receives as much as there is room for.
    pub(super) fn fill(&mut self, socket: &TcpStream) -> Step {
        if self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.to == self.bytes.len() {
            return Step::Failed(io::Error::other("a frame without an end"));
        }
        let got = read(socket, &mut self.bytes[self.to..]);
        if let Step::Done(bytes) = got {
            self.to += bytes;
        }
        got
    }

    /// The next whole frame.
    pub(super) fn next(&mut self) -> Result<Option<(Header, &[u8])>, Fault> {
        let have = &self.bytes[self.from..self.to];
        let Some(header) = have.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let header = Header::parse(header)?;
        let bytes = HEADER_BYTES + header.body_bytes;
        if have.len() < bytes {
            return Ok(None);
        }
        let at = self.from;
        self.from += bytes;
        Ok(Some((header, &self.bytes[at + HEADER_BYTES..at + bytes])))
    }
}

/// Time of the process's clock, in nanoseconds.
pub(super) fn ns(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}
