//! Operations that were done and whose answers were lost.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethermem::{Error, Permissions, Pool};

use crate::network::Served;

/// Stands between one client and a node; it ends when it is dropped.
struct Relay {
    address: SocketAddr,
    loses: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
}

impl Relay {
    fn to(node: SocketAddr) -> Relay {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            socket
        };
        let (front, back) = (bind(), bind());
        back.connect(node).unwrap();
        let address = front.local_addr().unwrap();
        let (loses, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let relay = Relay { address, loses: loses.clone(), ends: ends.clone() };
        std::thread::spawn(move || {
            let (mut client, mut octets) = (None, vec![0; 65_536]);
            while !ends.load(Ordering::Relaxed) {
                if let Ok((bytes, from)) = front.recv_from(&mut octets) {
                    client = Some(from);
                    back.send(&octets[..bytes]).unwrap();
                }
                if let (Ok(bytes), Some(client)) = (back.recv(&mut octets), client)
                    && !loses.load(Ordering::Relaxed)
                {
                    front.send_to(&octets[..bytes], client).unwrap();
                }
            }
        });
        relay
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_lock_whose_answer_was_lost_can_be_taken_by_who_lost_it() {
    let node = Served::new(None);
    let relay = Relay::to(node.address);
    let pool = Pool::open(&format!("udp://{}?timeout_ms=500", relay.address)).unwrap();
    let (thread, other) = (pool.thread().unwrap(), pool.thread().unwrap());
    let region = thread.alloc(4096, Permissions::READ_WRITE).wait().unwrap();
    region.share(other.process(), Permissions::READ_WRITE).wait().unwrap();
    let lock = region.address();
    relay.loses.store(true, Ordering::Relaxed);
    assert_eq!(thread.lock(lock).wait(), Err(Error::Lost));
    relay.loses.store(false, Ordering::Relaxed);
    let waits = other.lock(lock);
    assert_eq!(thread.lock(lock).wait(), Err(Error::OwnerDied { address: lock }));
    thread.unlock_wait(lock).unwrap();
    assert_eq!(waits.wait(), Ok(()));
    other.unlock_wait(lock).unwrap();
    assert_eq!(thread.lock(lock).wait(), Ok(()));
    thread.unlock_wait(lock).unwrap();
}
