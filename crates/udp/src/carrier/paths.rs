//! UDP over several interfaces of this machine: one socket for each.
//!
//! A socket is bound to its interface (SO_BINDTODEVICE), so the kernel routes its datagrams by that
//! interface alone. Where the system does not permit that, the socket is bound to the interface's
//! address, and the machine's routes must send that address by that interface. The sockets are not
//! connected: a node with an address on each network answers from the address of that network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ethermem_clio::transport::{PATHS_MAX, PathId};
use ethermem_ring::Interface;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::BindToDevice;
use thiserror::Error;

use super::socket::{self, DATAGRAM_BYTES_MAX, HEADERS_V4, HEADERS_V6};
use super::train::Trains;
use super::{Carrier, Sent, UdpCarrier};

/// Maximum number of interfaces of one client.
pub const INTERFACES_MAX: usize = PATHS_MAX;

/// The reason why an interface cannot be used.
#[derive(Debug, Error)]
pub enum InterfaceError {
    /// There are none, or too many.
    #[error("{0} interfaces: must be 1 to {INTERFACES_MAX}")]
    Count(usize),
    /// The name is in the list twice.
    #[error("interface `{0}` is given twice")]
    Twice(String),
    /// The machine has no such interface.
    #[error("interface `{0}`: this machine has none of that name")]
    Missing(String),
    /// The interface has no address of the node's family, where the socket needs one.
    #[error(
        "interface `{name}`: has no IPv{family} address, and this process may not bind a socket to \
         an interface"
    )]
    NoAddress {
        /// Name of the interface.
        name: String,
        /// Version of the node's IP address.
        family: u8,
    },
    /// The interface does not carry Ethernet, or its socket could not be made.
    #[error("interface `{name}`: {problem}")]
    Socket {
        /// Name of the interface.
        name: String,
        /// The system's error.
        problem: io::Error,
    },
}

/// How a socket is bound to its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    /// By the interface itself.
    Device,
    /// By the interface's address; routes decide which interface carries its datagrams.
    Address(IpAddr),
}

/// Readable when a datagram has arrived on any path.
#[derive(Debug)]
pub(crate) struct Waiter(Epoll);

impl AsFd for Waiter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// One interface, with its socket.
struct Link {
    name: String,
    /// Index of the interface to which the socket is bound. A deleted interface that returns has
    /// another one.
    index: u32,
    bound: BoundBy,
    carries: usize,
    carrier: UdpCarrier,
    /// True if the system refused to send since this was last reported.
    has_failed: bool,
    /// True if the last attempt to send failed, so that the socket may have to be made anew.
    is_doubtful: bool,
}

/// The carrier over several interfaces.
pub(crate) struct PathsCarrier {
    node: SocketAddr,
    links: Vec<Link>,
    waiter: Arc<Waiter>,
    datagram_bytes_max: Option<usize>,
    /// Link of the next datagram to the node.
    chosen: usize,
    /// Link of the last received datagram.
    came: usize,
}

impl PathsCarrier {
    /// A carrier to a node over interfaces of these names. An interface may be down; it must exist.
    pub(crate) fn open(
        node: SocketAddr,
        interfaces: &[String],
        datagram_bytes_max: Option<usize>,
    ) -> Result<PathsCarrier, InterfaceError> {
        if !(1..=INTERFACES_MAX).contains(&interfaces.len()) {
            return Err(InterfaceError::Count(interfaces.len()));
        }
        let twice = (1..interfaces.len()).find(|&at| interfaces[..at].contains(&interfaces[at]));
        if let Some(at) = twice {
            return Err(InterfaceError::Twice(interfaces[at].clone()));
        }
        let open = |name: &String| Link::open(node, name, datagram_bytes_max);
        let links: Vec<Link> = interfaces.iter().map(open).collect::<Result<_, _>>()?;
        let of_first = |problem: Errno| {
            let (name, problem) = (interfaces[0].clone(), problem.into());
            InterfaceError::Socket { name, problem }
        };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(of_first)?;
        for link in &links {
            link.watch(&epoll).map_err(of_first)?;
        }
        let waiter = Arc::new(Waiter(epoll));
        Ok(PathsCarrier { node, links, waiter, datagram_bytes_max, chosen: 0, came: 0 })
    }

    /// For each interface, the longest datagram that fits its MTU.
    pub(crate) fn carries(&self) -> Vec<usize> {
        self.links.iter().map(|link| link.carries).collect()
    }

    pub(crate) fn bound(&self) -> Vec<BoundBy> {
        self.links.iter().map(|link| link.bound).collect()
    }

    pub(crate) fn waiter(&self) -> Arc<Waiter> {
        Arc::clone(&self.waiter)
    }

    /// The support that all sockets have.
    pub(crate) fn trains(&self) -> Trains {
        let all =
            |has: fn(Trains) -> bool| self.links.iter().all(|link| has(link.carrier.trains()));
        Trains { sends: all(|trains| trains.sends), receives: all(|trains| trains.receives) }
    }
}

impl Link {
    fn open(
        node: SocketAddr,
        name: &str,
        datagram_bytes_max: Option<usize>,
    ) -> Result<Link, InterfaceError> {
        let interface = Interface::find(name).map_err(|problem| match problem.kind() {
            io::ErrorKind::NotFound => InterfaceError::Missing(name.to_owned()),
            _ => InterfaceError::Socket { name: name.to_owned(), problem },
        })?;
        let (socket, bound) = bind(node, name, true)?;
        let headers = if node.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        let carries = interface.mtu.saturating_sub(headers).min(DATAGRAM_BYTES_MAX);
        let trains = Trains::for_datagrams(&socket, datagram_bytes_max.unwrap_or(carries));
        Ok(Link {
            name: name.to_owned(),
            index: interface.index,
            bound,
            carries,
            carrier: UdpCarrier::to_any_of_node(socket, node, trains),
            has_failed: false,
            is_doubtful: false,
        })
    }

    fn watch(&self, epoll: &Epoll) -> Result<(), Errno> {
        epoll.add(&**self.carrier.socket(), EpollEvent::new(EpollFlags::EPOLLIN, 0))
    }

    /// True if another interface has the name since the socket was bound.
    fn is_replaced(&self) -> bool {
        Interface::find(&self.name).is_ok_and(|found| found.index != self.index)
    }
}

/// A socket for an interface: by device if `by_device` and the system permits it, else by address.
fn bind(
    node: SocketAddr,
    name: &str,
    by_device: bool,
) -> Result<(UdpSocket, BoundBy), InterfaceError> {
    let failed = |problem| InterfaceError::Socket { name: name.to_owned(), problem };
    let any: IpAddr = match node {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    if by_device {
        let socket = socket::bind((any, 0).into()).map_err(failed)?;
        match setsockopt(&socket, BindToDevice, &name.into()) {
            Ok(()) => return Ok((socket, BoundBy::Device)),
            Err(Errno::EPERM | Errno::EACCES) => {}
            Err(problem) => return Err(failed(problem.into())),
        }
    }
    let family = if node.is_ipv4() { 4 } else { 6 };
    let none = || InterfaceError::NoAddress { name: name.to_owned(), family };
    let address = address_of(name, node.is_ipv4()).ok_or_else(none)?;
    let socket = socket::bind(address).map_err(failed)?;
    Ok((socket, BoundBy::Address(address.ip())))
}

/// The first address of an interface, with any port.
fn address_of(name: &str, is_v4: bool) -> Option<SocketAddr> {
    getifaddrs().ok()?.filter(|found| found.interface_name == name).find_map(|found| {
        let address = found.address?;
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), 0)));
        let v6 = address.as_sockaddr_in6();
        let v6 = v6.map(|v6| std::net::SocketAddrV6::new(v6.ip(), 0, 0, v6.scope_id()).into());
        if is_v4 { v4 } else { v6 }
    })
}

/// True if the path may be at fault. A full queue and a datagram that is too long are not.
fn is_of_path(problem: Errno) -> bool {
    !matches!(
        problem,
        Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM | Errno::EINTR | Errno::EMSGSIZE
    )
}

/// True if no path can have caused the error.
fn is_fatal(problem: Errno) -> bool {
    matches!(problem, Errno::EBADF | Errno::ENOTSOCK | Errno::EFAULT)
}

impl Carrier for PathsCarrier {
    fn receive(&mut self) -> io::Result<Option<usize>> {
        for step in 1..=self.links.len() {
            let at = (self.came + step) % self.links.len();
            match self.links[at].carrier.receive() {
                Ok(Some(bytes)) => {
                    self.came = at;
                    return Ok(Some(bytes));
                }
                Ok(None) => {}
                Err(error) => {
                    let number = Errno::from_raw(error.raw_os_error().unwrap_or(0));
                    if is_fatal(number) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    fn next(&mut self) -> Option<(&mut [u8], &mut [u8])> {
        self.links[self.came].carrier.next()
    }

    fn reply(&mut self, bytes: usize) {
        self.links[self.came].carrier.reply(bytes);
    }

    fn came_by(&self) -> PathId {
        PathId::new(self.came)
    }

    fn choose(&mut self, path: PathId) {
        self.chosen = path.at();
        let link = &mut self.links[self.chosen];
        if link.is_doubtful && link.is_replaced() {
            let (node, most) = (self.node, self.datagram_bytes_max);
            if let Ok(again) = Link::open(node, &link.name, most)
                && again.watch(&self.waiter.0).is_ok()
            {
                // The old socket is closed with its link, and leaves the waiter by that.
                *link = again;
            }
        }
    }

    fn failed(&mut self) -> Option<PathId> {
        let at = self.links.iter().position(|link| link.has_failed)?;
        self.links[at].has_failed = false;
        Some(PathId::new(at))
    }

    fn place(&mut self) -> &mut [u8] {
        self.links[self.chosen].carrier.place()
    }

    fn push(&mut self, bytes: usize) {
        self.links[self.chosen].carrier.push(bytes);
    }

    fn gathers(&self) -> bool {
        self.links[self.chosen].carrier.gathers()
    }

    fn is_empty(&self) -> bool {
        self.links.iter().all(|link| link.carrier.is_empty())
    }

    fn is_full(&self) -> bool {
        self.links[self.chosen].carrier.is_full()
    }

    fn flush(&mut self) -> Sent {
        let mut all = Sent::default();
        for link in self.links.iter_mut().filter(|link| !link.carrier.is_empty()) {
            let sent = link.carrier.flush();
            all.bytes += sent.bytes;
            all.refused += sent.refused;
            match sent.problem {
                Some(problem) if is_fatal(problem) => all.problem = Some(problem),
                Some(problem) if is_of_path(problem) => {
                    (link.has_failed, link.is_doubtful) = (true, true);
                }
                Some(_) => {}
                None => link.is_doubtful = false,
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NODE: &str = "127.0.0.1:7400";

    fn refused(interfaces: &[&str]) -> String {
        let names: Vec<String> = interfaces.iter().map(|&name| name.to_owned()).collect();
        let opened = PathsCarrier::open(NODE.parse().expect("it is one"), &names, None);
        opened.err().unwrap_or_else(|| panic!("{interfaces:?} are taken")).to_string()
    }

    #[test]
    fn interfaces_that_cannot_be_are_one_line() {
        assert_eq!(refused(&[]), "0 interfaces: must be 1 to 8");
        assert_eq!(refused(&["lo"; 9]), "9 interfaces: must be 1 to 8");
        assert_eq!(refused(&["lo", "lo"]), "interface `lo` is given twice");
        for name in ["none-such", "", "a-name-that-is-longer-than-any-interface"] {
            let says = format!("interface `{name}`: this machine has none of that name");
            assert_eq!(refused(&["lo", name]), says);
        }
    }

    /// What a system does that permits no binding to an interface.
    #[test]
    fn without_permission_the_interfaces_address_is_the_sockets() {
        let node = NODE.parse().expect("it is one");
        let (socket, bound) = bind(node, "lo", false).expect("the loopback has an address");
        let own = socket.local_addr().expect("it is bound");
        assert_eq!(bound, BoundBy::Address(own.ip()));
        assert!(own.ip().is_loopback() && own.port() != 0);
        let none = bind(node, "none-such", false).expect_err("it has no address").to_string();
        let says = "interface `none-such`: has no IPv4 address, and this process may not bind a \
                    socket to an interface";
        assert_eq!(none, says);
    }

    #[test]
    fn what_arrives_by_any_path_wakes_and_is_received_once() {
        let node = socket::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a loopback");
        let there = node.local_addr().expect("it is bound");
        let mut paths = PathsCarrier::open(there, &["lo".to_owned()], None).expect("there is `lo`");
        paths.choose(PathId::ONLY);
        paths.place()[..3].copy_from_slice(b"ask");
        paths.push(3);
        assert_eq!(paths.flush(), Sent { bytes: 3, ..Sent::default() });
        assert_eq!(paths.failed(), None);
        socket::wait(&node, Duration::from_secs(10));
        let mut octets = [0; 16];
        let (bytes, from) = node.recv_from(&mut octets).expect("it was sent");
        node.send_to(&octets[..bytes], from).expect("it is there");
        socket::wait(&*paths.waiter(), Duration::from_secs(10));
        assert_eq!(paths.receive().expect("the socket is good"), Some(3));
        assert_eq!(paths.next().expect("one datagram").0, b"ask");
        assert!(paths.next().is_none());
        assert_eq!(paths.receive().expect("the socket is good"), None);
    }
}
