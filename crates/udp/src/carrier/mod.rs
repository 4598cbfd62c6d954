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

/// Whether a call found nothing to do, or met an error of a datagram sent before.
pub(crate) fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionRefused | Interrupted | WouldBlock)
}

/// Whether a datagram was not taken, and a later one may be: the way there is closed or full for
/// the moment.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable, PermissionDenied};
    let full = error.raw_os_error() == Some(Errno::ENOBUFS as i32);
    let too_long = error.raw_os_error() == Some(Errno::EMSGSIZE as i32);
    let kind = error.kind();
    is_nothing(error)
        || full
        || too_long
        || matches!(kind, HostUnreachable | NetworkDown | NetworkUnreachable | PermissionDenied)
}
