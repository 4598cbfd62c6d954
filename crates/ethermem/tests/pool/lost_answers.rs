//! Operations that were done but whose responses were lost.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ethermem::{Error, Permissions, Pool, Region};

use crate::network::Served;

/// A relay between one client and a node; it ends when it is dropped.
struct Relay {
    address: SocketAddr,
    /// Longest response that passes.
    longest: Arc<AtomicUsize>,
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
        let longest = Arc::new(AtomicUsize::new(usize::MAX));
        let ends = Arc::new(AtomicBool::new(false));
        let relay = Relay { address, longest: longest.clone(), ends: ends.clone() };
        std::thread::spawn(move || {
            let (mut client, mut octets) = (None, vec![0; 65_536]);
            while !ends.load(Ordering::Relaxed) {
                if let Ok((bytes, from)) = front.recv_from(&mut octets) {
                    client = Some(from);
                    back.send(&octets[..bytes]).unwrap();
                }
                if let (Ok(bytes), Some(client)) = (back.recv(&mut octets), client)
                    && bytes <= longest.load(Ordering::Relaxed)
                {
                    front.send_to(&octets[..bytes], client).unwrap();
                }
            }
        });
        relay
    }

    fn lose_longer_than(&self, bytes: usize) {
        self.longest.store(bytes, Ordering::Relaxed);
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
    relay.lose_longer_than(0);
    assert!(matches!(thread.lock(lock).wait(), Err(Error::NoAnswer { .. })));
    relay.lose_longer_than(usize::MAX);
    let waits = other.lock(lock);
    assert_eq!(thread.lock(lock).wait(), Err(Error::OwnerDied { address: lock }));
    thread.unlock_wait(lock).unwrap();
    assert_eq!(waits.wait(), Ok(()));
    other.unlock_wait(lock).unwrap();
    assert_eq!(thread.lock(lock).wait(), Ok(()));
    thread.unlock_wait(lock).unwrap();
}

/// Reads 1,000 B while their responses are lost, as a busy node's responses are late, and reads
/// words meanwhile. Returns the read's result, if the node answered others within the read's time.
fn read_beside_others(
    relay: &Relay,
    read: ReadBytes,
    region: &Region,
    count: &Region,
) -> Option<Vec<u8>> {
    relay.lose_longer_than(500);
    let of_region = region.clone();
    let reading = std::thread::spawn(move || read(&of_region));
    let (began, mut answered) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(2500) {
        count.thread().fetch_add(count.address(), 1).wait().unwrap();
        answered += u32::from(began.elapsed() < Duration::from_millis(1500));
    }
    relay.lose_longer_than(usize::MAX);
    let read = reading.join().unwrap();
    (answered > 0).then(|| read.unwrap())
}

/// One of the ways of reading 1,000 B.
type ReadBytes = fn(&Region) -> Result<Vec<u8>, Error>;

/// Every way: by the list of operations, gathered, and directly.
const WAYS: [ReadBytes; 3] = [
    |region| region.read(0, 1000).wait(),
    |region| {
        let place = |offset| ethermem::Segment { address: region.at(offset), bytes: 500 };
        region.thread().gather(&[place(0), place(500)]).wait()
    },
    |region| {
        let mut bytes = vec![0; 1000];
        region.read_into(0, &mut bytes).map(|()| bytes)
    },
];

#[test]
fn a_read_is_waited_for_while_its_node_answers_others() {
    // Each takes seconds, but little processor time.
    std::thread::scope(|scope| {
        for read in WAYS {
            scope.spawn(move || waited_for(read));
        }
    });
}

fn waited_for(read: ReadBytes) {
    let node = Served::new(None);
    let relay = Relay::to(node.address);
    let pool = Pool::open(&format!("udp://{}?timeout_ms=2000", relay.address)).unwrap();
    let (thread, other) = (pool.thread().unwrap(), pool.thread().unwrap());
    let region = thread.alloc(4096, Permissions::READ_WRITE).wait().unwrap();
    let count = other.alloc(8, Permissions::READ_WRITE).wait().unwrap();
    region.write(0, &[7; 1000]).wait().unwrap();
    // On a busy machine, the other reads may have no response in that time.
    let found = (0..10).find_map(|_| read_beside_others(&relay, read, &region, &count));
    assert_eq!(found.expect("the node answers others in one of ten tries"), [7; 1000]);
    // A node that does not respond at all is given up.
    relay.lose_longer_than(0);
    let silent = Error::NoAnswer { node: relay.address.to_string(), waited_ms: 2000 };
    assert_eq!(read(&region), Err(silent));
}
