//! Trains: datagrams of one length (the last may be shorter) to one destination. The kernel's UDP
//! accepts a train in one call (UDP_SEGMENT, "GSO"), and delivers one in one call (UDP_GRO). On the
//! wire each is an ordinary datagram.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use ethermem_clio::transport::FRONT_BYTES;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{UdpGroSegment, UdpGsoSegment};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recv, recvmsg,
    sendmsg, setsockopt,
};

use super::Sent;
use super::socket::DATAGRAM_BYTES_MAX;

/// Number of datagrams in a train that every kernel with UDP_SEGMENT accepts.
const TRAIN_MAX: usize = 64;
/// Number of equally long datagrams in direct succession that suggests an undelivered train.
const ALIKE_MIN: u32 = 4;
/// Size of the outbox in octets: a few trains of the longest kind.
const OUTBOX_BYTES: usize = 4 * DATAGRAM_BYTES_MAX;

/// The kernel's support of trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trains {
    /// One call can send many datagrams.
    pub sends: bool,
    /// One call can receive many datagrams.
    pub receives: bool,
}

impl fmt::Display for Trains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.sends, self.receives) {
            (true, true) => "many to a call",
            (true, false) => "many to a call that sends, one to a call that receives",
            (false, true) => "one to a call that sends, many to a call that receives",
            (false, false) => "one to a call",
        })
    }
}

impl Trains {
    /// No support.
    pub const NONE: Trains = Trains { sends: false, receives: false };

    /// The kernel's support where it helps: if two of the longest datagrams do not fit one call,
    /// receiving trains would cost and gain nothing. Requests for long answers are short.
    pub(crate) fn for_datagrams(socket: &impl AsFd, bytes_max: usize) -> Trains {
        let all = Trains::of(socket);
        Trains { receives: all.receives && Trains::may_have(bytes_max), ..all }
    }

    /// True if two datagrams of this length fit one call.
    pub(crate) fn may_have(bytes: usize) -> bool {
        bytes <= DATAGRAM_BYTES_MAX / 2
    }

    /// Queries the kernel, and changes nothing.
    pub(crate) fn of(socket: &impl AsFd) -> Trains {
        Trains {
            sends: getsockopt(socket, UdpGsoSegment).is_ok(),
            receives: getsockopt(socket, UdpGroSegment).is_ok(),
        }
    }
}

/// A datagram in an outbox.
struct QueuedDatagram {
    bytes: usize,
    to: Option<SocketAddr>,
}

/// Datagrams to be sent together, as trains if possible.
pub(crate) struct Outbox {
    octets: Vec<u8>,
    used: usize,
    waiting: Vec<QueuedDatagram>,
    sends_trains: bool,
}

impl Outbox {
    pub(crate) fn new(trains: Trains) -> Outbox {
        Outbox {
            octets: vec![0; OUTBOX_BYTES],
            used: 0,
            waiting: Vec::with_capacity(TRAIN_MAX),
            sends_trains: trains.sends,
        }
    }

    /// True while trains are sent: a device may turn out not to support them.
    pub(crate) fn sends_trains(&self) -> bool {
        self.sends_trains
    }

    /// Buffer for the next datagram, of any length.
    pub(crate) fn place(&mut self) -> &mut [u8] {
        &mut self.octets[self.used..][..DATAGRAM_BYTES_MAX]
    }

    /// Queues the datagram in that buffer; `to` is `None` if the socket is connected.
    pub(crate) fn push(&mut self, bytes: usize, to: Option<SocketAddr>) {
        self.used += bytes;
        self.waiting.push(QueuedDatagram { bytes, to });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if the queue must be flushed before another datagram is written.
    pub(crate) fn is_full(&self) -> bool {
        self.octets.len() - self.used < DATAGRAM_BYTES_MAX
    }

    /// Sends everything queued. A refused datagram is dropped, as if the network had lost it.
    pub(crate) fn flush(&mut self, socket: &UdpSocket) -> Sent {
        let (mut sent, mut first, mut from) = (Sent::default(), 0, 0);
        while first < self.waiting.len() {
            let (count, bytes) = self.train(first);
            let range = from..from + bytes;
            if count == 1 {
                self.send_one(socket, first, range, &mut sent);
            } else {
                self.send_train(socket, first..first + count, range, &mut sent);
            }
            (first, from) = (first + count, from + bytes);
        }
        self.waiting.clear();
        self.used = 0;
        sent
    }

    /// Sends what is queued, and then the datagram in the buffer's first `bytes` octets, followed
    /// by the octets of `rest`.
    pub(crate) fn send_with(
        &mut self,
        socket: &UdpSocket,
        bytes: usize,
        rest: &[&[u8]],
        to: Option<SocketAddr>,
    ) -> Sent {
        let front = self.used..self.used + bytes;
        let mut sent = self.flush(socket);
        let mut parts = Vec::with_capacity(1 + rest.len());
        parts.push(IoSlice::new(&self.octets[front]));
        parts.extend(rest.iter().map(|part| IoSlice::new(part)));
        let to = to.map(SockaddrStorage::from);
        match sendmsg(socket.as_raw_fd(), &parts, &[], MsgFlags::empty(), to.as_ref()) {
            Ok(bytes) => sent.bytes += bytes as u64,
            Err(problem) => {
                sent.refused += 1;
                sent.problem = Some(problem);
            }
        }
        sent
    }

    /// Number of datagrams from `first` on that form a train, and their octets.
    fn train(&self, first: usize) -> (usize, usize) {
        let QueuedDatagram { bytes: each, to } = &self.waiting[first];
        let (mut count, mut bytes) = (1, *each);
        if !self.sends_trains {
            return (count, bytes);
        }
        for next in &self.waiting[first + 1..] {
            let fits = next.bytes <= *each && bytes + next.bytes <= DATAGRAM_BYTES_MAX;
            if !fits || next.to != *to || count == TRAIN_MAX {
                break;
            }
            (count, bytes) = (count + 1, bytes + next.bytes);
            if next.bytes < *each {
                break;
            }
        }
        (count, bytes)
    }

    fn send_one(&self, socket: &UdpSocket, at: usize, range: Range<usize>, sent: &mut Sent) {
        let datagram = &self.octets[range];
        let result = match self.waiting[at].to {
            Some(to) => socket.send_to(datagram, to),
            None => socket.send(datagram),
        };
        match result {
            Ok(bytes) => sent.bytes += bytes as u64,
            Err(error) => {
                sent.refused += 1;
                sent.problem = Some(Errno::from_raw(error.raw_os_error().unwrap_or(0)));
            }
        }
    }

    fn send_train(
        &mut self,
        socket: &UdpSocket,
        datagrams: Range<usize>,
        range: Range<usize>,
        sent: &mut Sent,
    ) {
        let QueuedDatagram { bytes: each, to } = self.waiting[datagrams.start];
        let segment = u16::try_from(each).expect("a datagram is no longer than UDP carries");
        let octets = [IoSlice::new(&self.octets[range.clone()])];
        let cut = [ControlMessage::UdpGsoSegments(&segment)];
        let to = to.map(SockaddrStorage::from);
        match sendmsg(socket.as_raw_fd(), &octets, &cut, MsgFlags::empty(), to.as_ref()) {
            Ok(bytes) => sent.bytes += bytes as u64,
            // The train exceeds what the path carries in one piece, or the device does not support
            // trains. Single datagrams may still be sent.
            Err(problem @ (Errno::EINVAL | Errno::EMSGSIZE | Errno::EIO | Errno::EOPNOTSUPP)) => {
                let mut from = range.start;
                for at in datagrams {
                    let end = from + self.waiting[at].bytes;
                    self.send_one(socket, at, from..end, sent);
                    from = end;
                }
                self.sends_trains = matches!(problem, Errno::EINVAL | Errno::EMSGSIZE);
            }
            Err(problem) => {
                sent.refused += datagrams.len() as u64;
                sent.problem = Some(problem);
            }
        }
    }
}

/// Datagrams received by one call.
pub(crate) struct Inbox {
    octets: Vec<u8>,
    /// Length of the last message.
    used: usize,
    each: usize,
    /// Octets of it that were handed over.
    given: usize,
    from: Option<SocketAddr>,
    /// Number of successive datagrams of one length and one sender.
    alike: u32,
    receives_trains: bool,
    /// Room for the train's segment length; `None` until trains are requested.
    control: Option<Vec<u8>>,
}

impl Inbox {
    pub(crate) fn new(trains: Trains) -> Inbox {
        Inbox {
            octets: vec![0; DATAGRAM_BYTES_MAX],
            used: 0,
            each: 1,
            given: 0,
            from: None,
            alike: 0,
            receives_trains: trains.receives,
            control: None,
        }
    }

    /// Receives a datagram or a train from a connected socket.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        if self.control.is_some() {
            return self.receive_train::<()>(socket).map(drop);
        }
        let result = socket.recv(&mut self.octets).map(|used| (used, None));
        self.received(socket, result)
    }

    /// As [`Inbox::receive`], from any sender, which [`Inbox::from`] returns.
    pub(crate) fn receive_from(&mut self, socket: &UdpSocket) -> io::Result<()> {
        if self.control.is_some() {
            let from = self.receive_train::<SockaddrStorage>(socket)?;
            self.from = from.and_then(|from| address(&from));
            return Ok(());
        }
        let result = socket.recv_from(&mut self.octets).map(|(used, from)| (used, Some(from)));
        self.received(socket, result)
    }

    /// Requesting trains makes each call longer, so it is done only when some seem to arrive. It is
    /// permanent, because datagrams that the kernel has joined must not be taken for one.
    fn received(
        &mut self,
        socket: &UdpSocket,
        result: io::Result<(usize, Option<SocketAddr>)>,
    ) -> io::Result<()> {
        let Ok((used, from)) = result else {
            self.alike = 0;
            return result.map(drop);
        };
        self.alike = if (used, from) == (self.used, self.from) { self.alike + 1 } else { 1 };
        (self.used, self.each, self.given, self.from) = (used, used.max(1), 0, from);
        if self.alike == ALIKE_MIN && self.receives_trains {
            setsockopt(socket, UdpGroSegment, &true)?;
            let mut control = cmsg_space!(i32);
            control.resize(control.capacity(), 0);
            self.control = Some(control);
        }
        Ok(())
    }

    fn receive_train<S: nix::sys::socket::SockaddrLike + Copy>(
        &mut self,
        socket: &UdpSocket,
    ) -> io::Result<Option<S>> {
        let mut into = [IoSliceMut::new(&mut self.octets)];
        let control = self.control.as_deref_mut();
        let message = recvmsg::<S>(socket.as_raw_fd(), &mut into, control, MsgFlags::empty())?;
        let mut each = message.bytes.max(1);
        for part in message.cmsgs()? {
            if let ControlMessageOwned::UdpGroSegments(segment) = part {
                each = usize::try_from(segment).unwrap_or(each).clamp(1, each);
            }
        }
        let (used, from) = (message.bytes, message.address);
        (self.used, self.each, self.given) = (used, each, 0);
        Ok(from)
    }

    /// True once trains were requested.
    pub(crate) fn takes_trains(&self) -> bool {
        self.control.is_some()
    }

    /// Receives a datagram from a connected socket, with the octets behind its front in `to` as far
    /// as that goes. [`Inbox::next`] has none of it.
    pub(crate) fn receive_around(&mut self, socket: &UdpSocket, to: &mut [u8]) -> io::Result<()> {
        let (front, rest) = self.octets.split_at_mut(FRONT_BYTES);
        let behind = &mut rest[to.len()..];
        let mut into = [IoSliceMut::new(front), IoSliceMut::new(to), IoSliceMut::new(behind)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut into, None, MsgFlags::empty());
        self.alike = 0;
        self.used = message?.bytes;
        (self.each, self.given) = (self.used.max(1), self.used);
        Ok(())
    }

    /// Receives a datagram that begins with `front`, and has as many more octets as `to`.
    ///
    /// # Errors
    /// Errors of the socket; another datagram.
    pub(crate) fn receive_parts(
        &mut self,
        socket: &UdpSocket,
        front: &[u8],
        to: Vec<&mut [u8]>,
    ) -> io::Result<()> {
        let whole = front.len() + to.iter().map(|part| part.len()).sum::<usize>();
        let into_front = IoSliceMut::new(&mut self.octets[..front.len()]);
        let mut into = vec![into_front];
        into.extend(to.into_iter().map(IoSliceMut::new));
        let flags = MsgFlags::MSG_TRUNC;
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut into, None, flags)?;
        self.from = message.address.and_then(|from| address(&from));
        let is_whole = message.bytes == whole;
        (self.used, self.given, self.alike) = (0, 0, 0);
        if is_whole && self.octets[..front.len()] == *front {
            return Ok(());
        }
        Err(io::Error::other("another program reads from the node's socket"))
    }

    /// The first octets of the last message.
    pub(crate) fn front(&self) -> &[u8] {
        &self.octets[..self.used.min(FRONT_BYTES)]
    }

    /// Returns octets that [`Inbox::receive_around`] has put elsewhere.
    pub(crate) fn put_back(&mut self, to: &[u8]) {
        let bytes = to.len().min(self.used.saturating_sub(FRONT_BYTES));
        self.octets[FRONT_BYTES..][..bytes].copy_from_slice(&to[..bytes]);
        self.given = 0;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// Sender of the message.
    pub(crate) fn from(&self) -> Option<SocketAddr> {
        self.from
    }

    /// The next of its datagrams; empty ones are skipped.
    pub(crate) fn next(&mut self) -> Option<&mut [u8]> {
        let datagram = self.given..self.used.min(self.given + self.each);
        self.given = datagram.end;
        (!datagram.is_empty()).then(|| &mut self.octets[datagram])
    }
}

/// Copies the first octets of the next datagram into `front`, and returns its length.
pub(crate) fn peek(socket: &UdpSocket, front: &mut [u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC;
    Ok(recv(socket.as_raw_fd(), front, flags)?)
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    use super::super::socket;
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let bind = || socket::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a loopback");
        let (one, other) = (bind(), bind());
        one.connect(other.local_addr().unwrap()).unwrap();
        (one, other)
    }

    /// Received datagrams of these lengths, and the number of calls.
    fn through(lengths: &[usize], sends: bool, receives: bool) -> (Vec<Vec<u8>>, usize) {
        let (sender, receiver) = pair();
        let mut outbox = Outbox::new(Trains { sends, receives: false });
        for (at, &bytes) in lengths.iter().enumerate() {
            outbox.place()[..bytes].fill(at as u8);
            outbox.push(bytes, None);
        }
        let mut inbox = Inbox::new(Trains { sends: false, receives });
        for _ in 0..ALIKE_MIN {
            sender.send(&[9]).unwrap();
            socket::wait(&receiver, Duration::from_secs(10));
            inbox.receive_from(&receiver).unwrap();
        }
        assert_eq!(
            inbox.control.is_some(),
            receives,
            "trains are asked for once some seem to come"
        );
        let sent = outbox.flush(&sender);
        assert_eq!((sent.bytes, sent.refused), (lengths.iter().sum::<usize>() as u64, 0));
        assert!(outbox.is_empty());
        let (mut came, mut calls): (Vec<Vec<u8>>, _) = (Vec::new(), 0);
        while came.len() < lengths.len() {
            socket::wait(&receiver, Duration::from_secs(10));
            inbox.receive_from(&receiver).expect("they are there");
            assert_eq!(inbox.from(), Some(sender.local_addr().unwrap()));
            while let Some(datagram) = inbox.next() {
                came.push(datagram.to_vec());
            }
            calls += 1;
        }
        (came, calls)
    }

    #[test]
    fn what_comes_is_what_was_sent_with_and_without_trains_at_either_end() {
        let lengths = [1456, 1456, 1328, 1456, 40, 1456, 1456, 9000, 20, 20, 20];
        let kernel = Trains::of(&pair().0);
        for (sends, receives) in [(false, false), (true, false), (false, true), (true, true)] {
            if (sends && !kernel.sends) || (receives && !kernel.receives) {
                eprintln!("SKIPPED: this kernel's UDP has no trains: {kernel}");
                continue;
            }
            let (came, calls) = through(&lengths, sends, receives);
            let found: Vec<(usize, u8)> = came.iter().map(|d| (d.len(), d[0])).collect();
            let sent: Vec<(usize, u8)> =
                lengths.iter().enumerate().map(|(at, &bytes)| (bytes, at as u8)).collect();
            assert_eq!(found, sent, "{sends} {receives}");
            assert!(came.iter().all(|datagram| datagram.iter().all(|o| *o == datagram[0])));
            // 1456 1456 1328, 1456 40, 1456 1456, 9000 20, 20 20: five calls at either end.
            let expected = if sends && receives { 5 } else { lengths.len() };
            assert_eq!(calls, expected, "{sends} {receives}");
        }
    }

    /// Whatever was expected, the datagram is there whole: received in place, or after it was put
    /// back.
    #[test]
    fn a_datagram_that_is_received_around_a_place_can_be_put_back() {
        let (sender, receiver) = pair();
        receiver.connect(sender.local_addr().unwrap()).unwrap();
        let mut outbox = Outbox::new(Trains::NONE);
        let mut inbox = Inbox::new(Trains::NONE);
        for (bytes, place) in
            [(10, 100), (FRONT_BYTES, 100), (70, 100), (148, 100), (400, 100), (9000, 0)]
        {
            let octets: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            // What is queued goes first.
            outbox.place()[..3].fill(9);
            outbox.push(3, None);
            let front = bytes.min(7);
            outbox.place()[..front].copy_from_slice(&octets[..front]);
            let (one, other) = octets[front..].split_at((bytes - front) / 2);
            let sent = outbox.send_with(&sender, front, &[one, other], None);
            assert_eq!(sent, Sent { bytes: bytes as u64 + 3, ..Sent::default() });
            let mut to = vec![0xaa; place];
            for whole in [vec![9; 3], octets] {
                socket::wait(&receiver, Duration::from_secs(10));
                inbox.receive_around(&receiver, &mut to).unwrap();
                assert_eq!(inbox.bytes(), whole.len());
                assert_eq!(inbox.front(), &whole[..whole.len().min(FRONT_BYTES)]);
                if whole.len() >= FRONT_BYTES + place {
                    assert_eq!(to, whole[FRONT_BYTES..][..place]);
                }
                assert!(inbox.next().is_none(), "{bytes} B are elsewhere");
                inbox.put_back(&to);
                assert_eq!(inbox.next().map(|it| it.to_vec()), Some(whole));
                assert!(inbox.next().is_none());
            }
        }
    }

    #[test]
    fn a_train_is_of_one_peer_and_no_longer_than_a_call_takes() {
        let mut outbox = Outbox::new(Trains { sends: true, receives: true });
        let to = |port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        for (bytes, port) in [(100, 1), (100, 1), (100, 2), (30_000, 2), (30_000, 2), (9_000, 2)] {
            outbox.push(bytes, to(port));
        }
        let (mut first, mut found) = (0, Vec::new());
        while first < outbox.waiting.len() {
            found.push(outbox.train(first));
            first += found.last().unwrap().0;
        }
        assert_eq!(found, [(2, 200), (1, 100), (2, 60_000), (1, 9_000)]);
        outbox.sends_trains = false;
        assert_eq!(outbox.train(0), (1, 100));
        let mut many = Outbox::new(Trains { sends: true, receives: true });
        (0..TRAIN_MAX + 1).for_each(|_| many.push(8, None));
        assert_eq!((many.train(0), many.train(TRAIN_MAX)), ((64, 512), (1, 8)));
    }

    /// A train longer than any kernel accepts: refused, as one that is too long for a device.
    #[test]
    fn what_is_refused_as_a_train_goes_one_by_one() {
        let (sender, receiver) = pair();
        if !Trains::of(&sender).sends {
            eprintln!("SKIPPED: this kernel's UDP sends no trains");
            return;
        }
        let mut outbox = Outbox::new(Trains { sends: true, receives: false });
        for at in 0..200 {
            outbox.place()[..8].fill(at);
            outbox.push(8, None);
        }
        let mut sent = Sent::default();
        outbox.send_train(&sender, 0..200, 0..1600, &mut sent);
        assert_eq!(sent, Sent { bytes: 1600, ..Sent::default() });
        assert!(outbox.sends_trains(), "others may go");
        let mut octets = [0; 8];
        for at in 0..200 {
            socket::wait(&receiver, Duration::from_secs(10));
            assert_eq!((receiver.recv(&mut octets).expect("it went"), octets), (8, [at; 8]));
        }
    }

    #[test]
    fn a_socket_without_trains_is_noticed_and_said() {
        let (one, _other) = UnixDatagram::pair().unwrap();
        let trains = Trains::of(&one);
        assert_eq!(trains, Trains::NONE);
        assert_eq!(trains.to_string(), "one to a call");
    }
}
