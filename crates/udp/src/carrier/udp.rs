//! Datagrams over a UDP socket, in trains where the kernel takes them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use super::socket;
use super::train::{Inbox, Outbox, Trains, peek};
use super::{Carrier, Sent, is_passing};

/// The carrier over UDP.
pub(crate) struct UdpCarrier {
    socket: Arc<UdpSocket>,
    /// True if the socket is connected; otherwise each datagram has a sender or a destination.
    is_connected: bool,
    /// Destination of datagrams to the node, by a socket that is not connected.
    node: Option<SocketAddr>,
    trains: Trains,
    outbox: Outbox,
    inbox: Inbox,
}

impl UdpCarrier {
    /// A carrier to one node, by a socket connected to it.
    pub(crate) fn to_node(socket: UdpSocket, trains: Trains) -> UdpCarrier {
        UdpCarrier::new(socket, true, trains)
    }

    /// A carrier to one node, which may answer from any of its addresses.
    pub(crate) fn to_any_of_node(
        socket: UdpSocket,
        node: SocketAddr,
        trains: Trains,
    ) -> UdpCarrier {
        UdpCarrier { node: Some(node), ..UdpCarrier::new(socket, false, trains) }
    }

    /// A carrier for any client.
    pub(crate) fn to_clients(socket: UdpSocket) -> UdpCarrier {
        let trains = Trains::of(&socket);
        UdpCarrier::new(socket, false, trains)
    }

    fn new(socket: UdpSocket, is_connected: bool, trains: Trains) -> UdpCarrier {
        let (outbox, inbox) = (Outbox::new(trains), Inbox::new(trains));
        let node = None;
        UdpCarrier { socket: Arc::new(socket), is_connected, node, trains, outbox, inbox }
    }

    pub(crate) fn socket(&self) -> &Arc<UdpSocket> {
        &self.socket
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The kernel's support of trains.
    pub(crate) fn trains(&self) -> Trains {
        Trains { sends: self.outbox.sends_trains(), ..self.trains }
    }
}

impl Carrier for UdpCarrier {
    fn receive(&mut self) -> io::Result<Option<usize>> {
        let received = if self.is_connected {
            self.inbox.receive(&self.socket)
        } else {
            self.inbox.receive_from(&self.socket)
        };
        Ok(passing(received)?.map(|()| self.inbox.bytes()))
    }

    fn next(&mut self) -> Option<(&mut [u8], &mut [u8])> {
        Some((self.inbox.next()?, self.outbox.place()))
    }

    fn reply(&mut self, bytes: usize) {
        self.outbox.push(bytes, self.inbox.from());
    }

    fn refers(&self) -> bool {
        true
    }

    fn reply_with(&mut self, bytes: usize, rest: &[&[u8]]) -> Sent {
        self.outbox.send_with(&self.socket, bytes, rest, self.inbox.from())
    }

    fn peek(&mut self, front: &mut [u8]) -> io::Result<Option<usize>> {
        passing(peek(&self.socket, front))
    }

    fn receive_parts(&mut self, front: &[u8], to: Vec<&mut [u8]>) -> io::Result<()> {
        self.inbox.receive_parts(&self.socket, front, to)
    }

    fn lands(&self) -> bool {
        self.is_connected && !self.inbox.takes_trains()
    }

    fn receive_around(&mut self, to: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(passing(self.inbox.receive_around(&self.socket, to))?.map(|()| self.inbox.bytes()))
    }

    fn front(&self) -> &[u8] {
        self.inbox.front()
    }

    fn put_back(&mut self, to: &[u8]) {
        self.inbox.put_back(to);
    }

    fn place(&mut self) -> &mut [u8] {
        self.outbox.place()
    }

    fn push(&mut self, bytes: usize) {
        self.outbox.push(bytes, self.node);
    }

    fn push_with(&mut self, bytes: usize, rest: &[u8]) -> Sent {
        self.outbox.send_with(&self.socket, bytes, &[rest], self.node)
    }

    fn gathers(&self) -> bool {
        self.outbox.sends_trains()
    }

    fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }

    fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    fn path_bytes(&self) -> Option<usize> {
        socket::routed_bytes(&self.socket)
    }

    fn flush(&mut self) -> Sent {
        self.outbox.flush(&self.socket)
    }
}

/// `None` where a later call may succeed.
fn passing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
