//! State that a serving node exposes: metrics, status, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem_clio::transport::{Client, ClientConfig, Completed, OperationError};
use ethermem_node::{NodeOptions, Observer, Status};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Permissions, ProcessId, Protection, Request, SenderId, TenantId};

const PATIENCE: Duration = Duration::from_secs(60);

/// A client that waits for each of its operations.
struct Person {
    client: Client,
    socket: UdpSocket,
    started: Instant,
    process: ProcessId,
}

impl Person {
    fn new(sender: u64, node: SocketAddr) -> Person {
        let config = ClientConfig {
            sender: SenderId(sender),
            tenant: TenantId(0),
            protection: Protection::Carrier,
            datagram_bytes_max: 1472,
            datagram_bytes_base: 1472,
            window_max: 8,
            incast_window: Bytes(1 << 20),
            queueing_target: Ns(1_000_000),
            retry_after_min: Ns(20_000_000),
            retry_after_max: Ns(40_000_000),
            give_up_after: Ns(2_000_000_000),
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(node).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let client = Client::new(config).unwrap();
        Person { client, socket, started: Instant::now(), process: ProcessId(0) }
    }

    fn now(&self) -> Ns {
        Ns(self.started.elapsed().as_nanos() as u64 + 1)
    }

    fn ask(&mut self, request: Request<'static>) -> Result<Completed, OperationError> {
        let id = self.client.submit(self.process, request);
        let mut octets = vec![0; 1472];
        loop {
            loop {
                let bytes = self.client.poll_transmit(self.now(), &mut octets);
                if bytes == 0 {
                    break;
                }
                self.socket.send(&octets[..bytes]).unwrap();
            }
            if let Ok(bytes) = self.socket.recv(&mut octets) {
                self.client.on_datagram(self.now(), &octets[..bytes]);
            }
            while let Some(event) = self.client.poll_event() {
                if event.operation == id {
                    return event.outcome;
                }
            }
        }
    }
}

fn get(observer: &Observer, what: &str) -> String {
    let url = format!("http://{}{what}", observer.address().unwrap());
    ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap()
}

/// Polls the status until `enough`; published data is up to a tenth of a second old.
fn status_when(observer: &Observer, enough: impl Fn(&Status) -> bool) -> Status {
    let start = Instant::now();
    loop {
        let status: Status = serde_json::from_str(&get(observer, "/status")).unwrap();
        if enough(&status) {
            return status;
        }
        assert!(start.elapsed() < PATIENCE, "{status:?}");
    }
}

/// Checks a node's metrics after the test below.
fn assert_metrics(metrics: &str) {
    for line in [
        "ethermem_node_dropped_total{reason=\"malformed\"} 1\n",
        "ethermem_node_operations_total{tenant=\"everybody\",operation=\"allocate\"} 1\n",
        "ethermem_node_tenant_memory_bytes{tenant=\"everybody\"} 65536.0\n",
        "ethermem_node_page_faults_total 1\n",
        "# TYPE ethermem_node_serving_seconds histogram\n",
        "ethermem_node_serving_seconds_bucket{le=\"+Inf\"} ",
        "# EOF\n",
    ] {
        assert!(metrics.contains(line), "{line}in\n{metrics}");
    }
}

#[test]
fn a_node_tells_what_it_did_and_ends_in_order() {
    let mut started = ethermem_node::start(&NodeOptions::in_clear(Bytes(1 << 20))).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let names = vec![(0, "everybody".to_owned())];
    let observer = Observer::start(started.server.published(), names, Some(listen)).unwrap();
    let address = started.server.address().unwrap();
    let (mut person, mut late) = (Person::new(5, address), Person::new(6, address));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let serving = std::thread::spawn(move || {
        started.server.run(Duration::from_millis(1), &stopped).unwrap();
        started.server.drain(PATIENCE, PATIENCE).unwrap();
        (started.server.node().processes(), started.server.node().counters())
    });
    let Ok(Completed::Created(process)) = person.ask(Request::CreateProcess) else {
        panic!("no process");
    };
    person.process = process;
    let allocate =
        Request::Allocate { bytes: 1 << 16, at: 0, permissions: Permissions::READ_WRITE };
    let Ok(Completed::Address(address)) = person.ask(allocate) else { panic!("no memory") };
    for _ in 0..40 {
        person.ask(Request::Read { address, bytes: 100 }).unwrap();
    }
    person.socket.send(b"no datagram").unwrap();
    let status = status_when(&observer, |status| status.dropped["malformed"] == 1);
    assert_eq!((status.state.as_str(), status.processes), ("serving", 1));
    assert_eq!((status.memory_bytes, status.free_bytes), (1 << 20, (1 << 20) - (1 << 16)));
    assert_eq!((status.page_faults, status.tlb_misses), (1, 1));
    let [tenant] = &status.tenants[..] else { panic!("{status:?}") };
    assert_eq!((tenant.name.as_str(), tenant.memory_bytes), ("everybody", 1 << 16));
    // On a busy machine, a retried read may have been executed again.
    assert!(tenant.operations["read"] >= 40 && tenant.read_bytes >= 4000, "{tenant:?}");
    assert_eq!((tenant.operations["allocate"], tenant.operations["create_process"]), (1, 1));
    assert!(status.serving_ns_p50_max.is_some() || status.serving_ns_p99_max.is_none());
    assert_metrics(&get(&observer, "/metrics"));
    let url = format!("http://{}/else", observer.address().unwrap());
    assert!(matches!(ureq::get(&url).call(), Err(ureq::Error::StatusCode(404))));
    // The ending node accepts no new process, and existing ones go on until it ends.
    stop.store(true, Ordering::Relaxed);
    let enough = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&enough);
    let reading = std::thread::spawn(move || {
        while !told.load(Ordering::Relaxed) {
            person.ask(Request::Read { address, bytes: 8 }).unwrap();
        }
        person.ask(Request::EndProcess).unwrap();
    });
    // The client is told to retry later, until it gives up.
    while let Ok(Completed::Created(process)) = late.ask(Request::CreateProcess) {
        // The process was created before the node noticed the stop flag.
        late.process = process;
        late.ask(Request::EndProcess).unwrap();
        late.process = ProcessId(0);
    }
    status_when(&observer, |status| status.state == "ending");
    enough.store(true, Ordering::Relaxed);
    reading.join().unwrap();
    let (processes, counters) = serving.join().unwrap();
    assert_eq!((processes, counters.dropped_malformed), (0, 1));
    assert!(counters.busy > 0, "{counters:?}");
}

#[test]
fn an_address_that_is_taken_is_refused_by_name() {
    let started = ethermem_node::start(&NodeOptions::in_clear(Bytes(1 << 20))).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = Observer::start(started.server.published(), Vec::new(), Some(address)).err();
    let refused = refused.unwrap();
    assert!(refused.starts_with(&format!("metrics on {address}: ")), "{refused}");
}

/// A client that never reads its answer, and one that never sends a request, delay no other client.
#[test]
fn a_slow_reader_of_metrics_keeps_no_other_from_its_answer() {
    let started = ethermem_node::start(&NodeOptions::in_clear(Bytes(1 << 20))).unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let names = Vec::new();
    let observer = Observer::start(started.server.published(), names, Some(listen)).unwrap();
    let address = observer.address().unwrap();
    let mut hostile = Vec::new();
    for at in 0..100 {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        match at % 3 {
            0 => {}
            1 => stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap(),
            // The client sends many requests, and reads no answer.
            _ => stream.write_all(&b"GET /metrics HTTP/1.1\r\n\r\n".repeat(100)).unwrap(),
        }
        hostile.push(stream);
        assert!(get(&observer, "/metrics").ends_with("# EOF\n"));
    }
}
