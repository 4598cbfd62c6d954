//! What carries datagrams. The loops of client and server know no more of it than [`Carrier`]; each
//! is compiled for each carrier, so that none pays for another.

mod outgoing;
pub(crate) mod pieces;
pub(crate) mod place;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod train;
mod udp;

use std::io;

use nix::errno::Errno;

pub(crate) use ring::RingCarrier;
pub(crate) use udp::UdpCarrier;

/// A way to others that takes datagrams and brings them, and never waits.
pub(crate) trait Carrier {
    /// Takes what is there next: a datagram, or several that came as one. Its octets; `None` is
    /// nothing.
    fn receive(&mut self) -> io::Result<Option<usize>>;

    /// The next datagram of what was taken, and the place for an answer, as long as any may be.
    /// None has no octet.
    fn next(&mut self) -> Option<(&mut [u8], &mut [u8])>;

    /// The answer that was written there is to go to who sent that datagram.
    fn reply(&mut self, bytes: usize);

    /// Where the next datagram to the node, as long as any may be, is written.
    fn place(&mut self) -> &mut [u8];

    /// The datagram that was written there is to go.
    fn push(&mut self, bytes: usize);

    /// Whether what is to go may wait for more that goes with it.
    fn gathers(&self) -> bool;

    /// Whether nothing is to go.
    fn is_empty(&self) -> bool;

    /// Whether what is to go must before another is written.
    fn is_full(&self) -> bool;

    /// The longest datagram that goes to the node in one piece, where the system may have come to
    /// know another one since.
    fn path_bytes(&self) -> Option<usize> {
        None
    }

    /// Sends all. What is not taken is gone: it is as if the network had lost it.
    fn flush(&mut self) -> Sent;
}

/// What became of datagrams that were to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    /// Those that were not taken.
    pub(crate) refused: u64,
    /// Of the last of them.
    pub(crate) problem: Option<Errno>,
}

impl Sent {
    /// What ends the use of the carrier.
    pub(crate) fn check(self) -> io::Result<()> {
        match self.problem.map(io::Error::from) {
            Some(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether a later call may succeed: there is nothing to do, a datagram sent before met an error,
/// or the way is closed or full for the moment. Whatever a network can say is so, since anybody can
/// say it in its name: only what is wrong with the socket itself, or with the call, stays.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    let Some(number) = error.raw_os_error() else { return false };
    let stays = matches!(
        Errno::from_raw(number),
        Errno::EBADF
            | Errno::EFAULT
            | Errno::EINVAL
            | Errno::ENODEV
            | Errno::ENOTCONN
            | Errno::ENOTSOCK
            | Errno::ENXIO
            | Errno::EDESTADDRREQ
            | Errno::EAFNOSUPPORT
            | Errno::EOPNOTSUPP
    );
    !stays
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel makes of each code of ICMP's and ICMPv6's errors (`icmp_err_convert`,
    /// `icmpv6_err_convert`), and what it says of the machine's own ways.
    #[test]
    fn whatever_a_network_says_passes() {
        for of_the_network in [
            Errno::ENETUNREACH,
            Errno::EHOSTUNREACH,
            Errno::ENOPROTOOPT,
            Errno::ECONNREFUSED,
            Errno::EMSGSIZE,
            Errno::EHOSTDOWN,
            Errno::ENONET,
            Errno::EPROTO,
            Errno::EACCES,
            Errno::EPERM,
            Errno::ENETDOWN,
            Errno::ENOBUFS,
            Errno::ENOMEM,
            Errno::EAGAIN,
            Errno::EINTR,
            Errno::EADDRNOTAVAIL,
        ] {
            assert!(is_passing(&of_the_network.into()), "{of_the_network}");
        }
        for of_the_socket in [Errno::EBADF, Errno::ENOTSOCK, Errno::ENXIO, Errno::EINVAL] {
            assert!(!is_passing(&of_the_socket.into()), "{of_the_socket}");
        }
    }
}
