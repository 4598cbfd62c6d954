//! A path to a memory node that takes time, in both directions, and may lose datagrams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What the path does with a datagram, in each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    /// Longest time added to that, drawn at random, so that datagrams pass each other.
    pub(crate) jitter: Duration,
    /// One of so many is lost.
    pub(crate) lost_one_in: Option<u64>,
    /// After so many datagrams, nothing passes any more.
    pub(crate) ends_after: Option<u64>,
    pub(crate) seed: u64,
}

/// Opens a path to `node` for one client at a time, and returns the address of its near end.
pub(crate) fn open(node: SocketAddr, path: Path) -> SocketAddr {
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (near, far) = (socket(), socket());
    far.connect(node).expect("an address");
    for socket in [&near, &far] {
        socket.set_nonblocking(true).expect("a socket");
    }
    let address = near.local_addr().expect("it is bound");
    std::thread::spawn(move || carry(&near, &far, path));
    address
}

fn carry(near: &UdpSocket, far: &UdpSocket, path: Path) -> ! {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(path.seed);
    let mut under_way = BinaryHeap::new();
    let (mut client, mut buffer, mut number) = (None, vec![0; 65_536], 0_u64);
    loop {
        let rest =
            under_way.peek().map_or(Duration::from_millis(10), |next: &Reverse<Datagram>| {
                next.0.due.saturating_duration_since(Instant::now())
            });
        let mut ends = [near, far].map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut ends, Some(rest.into()), None);
        for (from, to_node) in [(near, true), (far, false)] {
            loop {
                let bytes = match from.recv_from(&mut buffer) {
                    Ok((bytes, sender)) => {
                        if to_node {
                            client = Some(sender);
                        }
                        bytes
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The other end is gone for a moment.
                    Err(_) => continue,
                };
                if path.lost_one_in.is_some_and(|one| random.next_u64().is_multiple_of(one)) {
                    continue;
                }
                let jitter = random.next_u64() % (path.jitter.as_nanos() as u64 + 1);
                let due = Instant::now() + path.delay + Duration::from_nanos(jitter);
                number += 1;
                if path.ends_after.is_some_and(|most| number > most) {
                    continue;
                }
                let content = buffer[..bytes].to_vec();
                under_way.push(Reverse(Datagram { due, number, to_node, content }));
            }
        }
        while under_way.peek().is_some_and(|next| next.0.due <= Instant::now()) {
            let Some(Reverse(Datagram { to_node, content, .. })) = under_way.pop() else { break };
            // A full buffer loses a datagram, as a path does.
            let _ = match (to_node, client) {
                (true, _) => far.send(&content),
                (false, Some(client)) => near.send_to(&content, client),
                (false, None) => Ok(0),
            };
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    due: Instant,
    number: u64,
    to_node: bool,
    content: Vec<u8>,
}
