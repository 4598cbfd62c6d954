//! A way that loses datagrams: between a client and its node, on the node's own thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::udp::DATAGRAM_BYTES_MAX;

const MILLION: u64 = 1_000_000;

/// How many are lost, each way, and which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) ppm: u32,
    pub(crate) seed: u64,
}

/// Hands datagrams on between one client and one node, but for those that are lost.
pub(crate) struct Relay {
    outer: UdpSocket,
    inner: UdpSocket,
    client: Option<SocketAddr>,
    loss: Loss,
    random: Xoshiro256PlusPlus,
    datagram: Vec<u8>,
}

impl Relay {
    pub(crate) fn before(node: SocketAddr, loss: Loss) -> io::Result<Relay> {
        let bind = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            io::Result::Ok(socket)
        };
        let (outer, inner) = (bind()?, bind()?);
        inner.connect(node)?;
        let random = Xoshiro256PlusPlus::seed_from_u64(loss.seed);
        let datagram = vec![0; DATAGRAM_BYTES_MAX];
        Ok(Relay { outer, inner, client: None, loss, random, datagram })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.outer.local_addr()
    }

    /// Hands on what is there; errors are a loss, too.
    pub(crate) fn turn(&mut self) {
        if let Ok((bytes, client)) = self.outer.recv_from(&mut self.datagram) {
            self.client = Some(client);
            if !self.loses() {
                let _ = self.inner.send(&self.datagram[..bytes]);
            }
        }
        if let (Ok(bytes), Some(client)) = (self.inner.recv(&mut self.datagram), self.client)
            && !self.loses()
        {
            let _ = self.outer.send_to(&self.datagram[..bytes], client);
        }
    }

    fn loses(&mut self) -> bool {
        self.random.next_u64() % MILLION < u64::from(self.loss.ppm)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::probes::udp::poll;

    /// Which of a thousand datagrams come through, there and back.
    fn through(loss: Loss) -> Vec<u16> {
        let node = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut relay = Relay::before(node.local_addr().unwrap(), loss).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.connect(relay.address().unwrap()).unwrap();
        [&client, &node].into_iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let (mut came, mut octets) = (Vec::new(), [0; 16]);
        for number in 0..1000_u16 {
            client.send(&number.to_le_bytes()).unwrap();
            relay.turn();
            if let Ok((bytes, from)) = node.recv_from(&mut octets) {
                node.send_to(&octets[..bytes], from).unwrap();
                relay.turn();
            }
            if poll(&client, &mut octets, Duration::ZERO).is_ok() {
                came.push(u16::from_le_bytes([octets[0], octets[1]]));
            }
        }
        came
    }

    #[test]
    fn a_seed_loses_the_same_datagrams_each_time_and_about_as_many_as_asked() {
        assert_eq!(through(Loss { ppm: 0, seed: 1 }), (0..1000).collect::<Vec<u16>>());
        assert!(through(Loss { ppm: 1_000_000, seed: 1 }).is_empty());
        let loss = Loss { ppm: 100_000, seed: 5 };
        let came = through(loss);
        // 810 of them on average; this far away is one in 10^15.
        assert!((700..920).contains(&came.len()), "{}", came.len());
        assert_eq!(came, through(loss));
        assert_ne!(came, through(Loss { seed: 6, ..loss }));
    }
}
