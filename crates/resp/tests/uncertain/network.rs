//! A memory node behind a network that loses one request or one response, even when it is
//! retransmitted.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ethermem_node::NodeOptions;
use ethermem_units::Bytes;
use ethermem_wire::clio::{Envelope, Packets, RequestId, ResponsePacket};

/// Larger than any datagram.
const DATAGRAM_BYTES: usize = 1 << 16;

/// Which message is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The request: the node never acts on it.
    Request,
    /// The response: the node has acted on the request.
    Answer,
}

#[derive(Default)]
struct Plan {
    /// Index of the request that is lost, and how.
    fault: Option<(u64, Lost)>,
    /// Requests that passed, each once.
    met: BTreeSet<RequestId>,
    /// Number of datagrams with new requests.
    count: u64,
    doomed: BTreeSet<RequestId>,
}

impl Plan {
    /// True if a datagram of the client passes.
    fn passes_request(&mut self, datagram: &[u8]) -> bool {
        let Some(ids) = requests(datagram) else { return true };
        let is_new = ids.iter().filter(|id| self.met.insert(**id)).count() > 0;
        if is_new {
            let now = self.count;
            self.count += 1;
            if self.fault.is_some_and(|(at, _)| at == now) {
                self.doomed.extend(&ids);
            }
        }
        let doomed = ids.iter().any(|id| self.doomed.contains(id));
        !(doomed && self.fault.is_some_and(|(_, lost)| lost == Lost::Request))
    }

    fn passes_answer(&self, datagram: &[u8]) -> bool {
        let Ok(sealed) = Envelope::open(datagram) else { return true };
        let mut packets = ResponsePacket::packets(&datagram[sealed.packets]);
        !packets.any(|packet| packet.is_ok_and(|packet| self.doomed.contains(&packet.request)))
    }
}

fn requests(datagram: &[u8]) -> Option<Vec<RequestId>> {
    let sealed = Envelope::open(datagram).ok()?;
    let packets = Packets::new(&datagram[sealed.packets]).filter_map(Result::ok);
    Some(packets.map(|packet| packet.request).filter(|id| *id != RequestId::NONE).collect())
}

/// The network; dropping the value ends it.
pub(crate) struct Network {
    plan: Arc<Mutex<Plan>>,
    stop: Arc<AtomicBool>,
    address: SocketAddr,
}

impl Network {
    pub(crate) fn new() -> Network {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(node()).unwrap();
        let address = near.local_addr().unwrap();
        let (plan, stop) = (Arc::<Mutex<Plan>>::default(), Arc::new(AtomicBool::new(false)));
        let network = Network { plan: plan.clone(), stop: stop.clone(), address };
        for socket in [&near, &far] {
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        }
        let client = Arc::new(Mutex::new(None));
        let (near, far) = (Arc::new(near), Arc::new(far));
        let (to_node, to_client) = ((near.clone(), far.clone()), (near, far));
        let (known, at, ends) = (client.clone(), plan.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut room = vec![0; DATAGRAM_BYTES];
            while !ends.load(Ordering::Relaxed) {
                let Ok((bytes, from)) = to_node.0.recv_from(&mut room) else { continue };
                *known.lock().unwrap() = Some(from);
                if at.lock().unwrap().passes_request(&room[..bytes]) {
                    let _ = to_node.1.send(&room[..bytes]);
                }
            }
        });
        std::thread::spawn(move || {
            let mut room = vec![0; DATAGRAM_BYTES];
            while !stop.load(Ordering::Relaxed) {
                let Ok(bytes) = to_client.1.recv(&mut room) else { continue };
                let client = *client.lock().unwrap();
                let passes = plan.lock().unwrap().passes_answer(&room[..bytes]);
                if let Some(client) = client.filter(|_| passes) {
                    let _ = to_client.0.send_to(&room[..bytes], client);
                }
            }
        });
        network
    }

    /// URL of a pool over it, with a short timeout.
    pub(crate) fn url(&self) -> String {
        format!("udp://{}?timeout_ms=500", self.address)
    }

    /// Loses one of the following messages; `None` stops losing.
    pub(crate) fn lose(&self, fault: Option<(u64, Lost)>) {
        let mut plan = self.plan.lock().unwrap();
        *plan = Plan { fault, met: std::mem::take(&mut plan.met), ..Plan::default() };
    }

    /// Number of requests since the last call of [`Network::lose`].
    pub(crate) fn requests(&self) -> u64 {
        self.plan.lock().unwrap().count
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// URL of a pool without faults.
pub(crate) fn node_url() -> String {
    format!("udp://{}", node())
}

/// Address of a node that has the index, for all tests of this program.
fn node() -> SocketAddr {
    static NODE: OnceLock<SocketAddr> = OnceLock::new();
    *NODE.get_or_init(|| {
        let mut server =
            ethermem_node::start(&NodeOptions::in_clear(Bytes(1 << 30))).unwrap().server;
        let (name, index) = ethermem_kv::at_node();
        server.node_mut().register(name, index);
        let address = server.address().unwrap();
        let serve = move || server.run(Duration::from_millis(1), &AtomicBool::new(false));
        std::thread::spawn(serve);
        address
    })
}
