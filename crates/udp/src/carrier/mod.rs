//! Carriers of datagrams. The loops of client and server know only [`Carrier`]; they are compiled
//! for each carrier, so that one carrier costs another nothing.

mod outgoing;
pub(crate) mod paths;
pub(crate) mod pieces;
pub(crate) mod place;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod train;
mod udp;

use std::io;

use ethermem_clio::transport::PathId;
use nix::errno::Errno;

pub(crate) use paths::PathsCarrier;
pub(crate) use ring::RingCarrier;
pub(crate) use udp::UdpCarrier;

/// A non-blocking transport that receives and sends datagrams.
pub(crate) trait Carrier {
    /// Receives a datagram, or several joined into one, and returns its length in octets; `None` if
    /// there is nothing.
    fn receive(&mut self) -> io::Result<Option<usize>>;

    /// The next datagram of what was received, and a buffer for a response of any length. Empty
    /// datagrams are skipped.
    fn next(&mut self) -> Option<(&mut [u8], &mut [u8])>;

    /// Queues the response in that buffer for the sender of that datagram.
    fn reply(&mut self, bytes: usize);

    /// True if a datagram may have octets in other places: see [`Carrier::reply_with`] and
    /// [`Carrier::push_with`].
    fn refers(&self) -> bool {
        false
    }

    /// Sends the response in that buffer, followed by the octets of `rest`, as one datagram, after
    /// what is queued. Only where [`Carrier::refers`].
    fn reply_with(&mut self, _: usize, _: &[&[u8]]) -> Sent {
        unreachable!("this carrier refers to nothing")
    }

    /// Copies the first octets of the datagram that [`Carrier::receive`] would return into `front`,
    /// and returns its length; `None` if there is nothing. Only where [`Carrier::refers`].
    fn peek(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(None)
    }

    /// Receives the datagram that [`Carrier::peek`] has shown: `front`, and the octets behind it
    /// into `to`.
    ///
    /// # Errors
    /// Errors of the socket; another datagram came.
    fn receive_parts(&mut self, _: &[u8], _: Vec<&mut [u8]>) -> io::Result<()> {
        unreachable!("this carrier receives datagrams whole")
    }

    /// True if a datagram can be received in parts: see [`Carrier::receive_around`].
    fn lands(&self) -> bool {
        false
    }

    /// As [`Carrier::receive`], of a datagram whose octets behind the first
    /// [`FRONT_BYTES`](ethermem_clio::transport::FRONT_BYTES) are expected to fill `to`, and are
    /// received there. [`Carrier::front`] has the first ones. Only where [`Carrier::lands`].
    fn receive_around(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
        unreachable!("this carrier receives datagrams whole")
    }

    /// The first octets of what was received.
    fn front(&self) -> &[u8] {
        &[]
    }

    /// Returns the octets that came to `to`, so that [`Carrier::next`] has the datagram.
    fn put_back(&mut self, _: &[u8]) {}

    /// The path by which that datagram came.
    fn came_by(&self) -> PathId {
        PathId::ONLY
    }

    /// Selects the path of the datagrams that are queued from now on.
    fn choose(&mut self, _: PathId) {}

    /// A path on which the system has refused to send since the last call.
    fn failed(&mut self) -> Option<PathId> {
        None
    }

    /// A buffer for the next datagram to the node, of any length.
    fn place(&mut self) -> &mut [u8];

    /// Queues the datagram in that buffer.
    fn push(&mut self, bytes: usize);

    /// Sends the datagram in that buffer, followed by the octets of `rest`, after what is queued.
    /// Only where [`Carrier::refers`].
    fn push_with(&mut self, _: usize, _: &[u8]) -> Sent {
        unreachable!("this carrier refers to nothing")
    }

    /// True if queued datagrams may wait to be sent with more.
    fn gathers(&self) -> bool;

    /// True if nothing is queued.
    fn is_empty(&self) -> bool;

    /// True if the queue must be flushed before another datagram is written.
    fn is_full(&self) -> bool;

    /// The longest datagram that reaches the node in one piece, if the system has learned a new
    /// value.
    fn path_bytes(&self) -> Option<usize> {
        None
    }

    /// Sends everything queued. A refused datagram is dropped, as if the network had lost it.
    fn flush(&mut self) -> Sent;
}

/// Result of sending queued datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    /// Number of datagrams refused.
    pub(crate) refused: u64,
    /// Error of the last of them.
    pub(crate) problem: Option<Errno>,
}

impl Sent {
    /// Returns an error that makes the carrier unusable.
    pub(crate) fn check(self) -> io::Result<()> {
        match self.problem.map(io::Error::from) {
            Some(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// True if a later call may succeed: nothing is there, an earlier datagram met an error, or the
/// route is closed or full for the moment. Every error that a network can report counts, because
/// any host can forge it. Only errors of the socket itself, or of the call, persist.
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

    /// The kernel's errors for each code of ICMP and ICMPv6 (`icmp_err_convert`,
    /// `icmpv6_err_convert`), and its errors of local routes.
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
