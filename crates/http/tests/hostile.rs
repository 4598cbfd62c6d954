//! No client delays another client's response, whatever it does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem_http::{Endpoint, Limits, Reply};

/// Longer than a socket's buffers.
const LONG: usize = 16 << 20;
const HANGS: Duration = Duration::from_secs(60);

struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Largest number of connections open at once.
    most: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(limits: Limits) -> Served {
        let mut endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = endpoint.address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (most, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (stopped, highest, now) = (Arc::clone(&stop), Arc::clone(&most), Arc::clone(&open));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let answer = |asked: ethermem_http::Asked<'_>| match asked.path {
                    "/short" => Reply::page("text/plain", "short".to_owned()),
                    "/long" => Reply::page("text/plain", "x".repeat(LONG)),
                    _ => Reply::refused(404, "GET /short or GET /long"),
                };
                endpoint.serve(Duration::from_millis(50), answer).unwrap();
                highest.fetch_max(endpoint.connections(), Ordering::Relaxed);
                now.store(endpoint.connections(), Ordering::Relaxed);
            }
        });
        Served { address, stop, most, open, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.set_write_timeout(Some(HANGS)).unwrap();
        stream
    }

    fn sends(&self, octets: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(octets).unwrap();
        stream
    }

    /// The response to an honest client.
    fn get(&self, path: &str) -> String {
        let mut text = String::new();
        let request = format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n");
        self.sends(request.as_bytes()).read_to_string(&mut text).unwrap();
        text
    }

    fn is_well(&self) {
        assert!(self.get("/short").ends_with("\r\n\r\nshort"));
        assert!(self.get("/else").starts_with("HTTP/1.1 404 "));
    }

    /// Checks that all connections of dishonest clients end by themselves.
    fn all_end(&self) {
        let start = Instant::now();
        while self.open.load(Ordering::Relaxed) > 0 {
            assert!(start.elapsed() < HANGS, "{:?} are open", self.open);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Time limits that are short enough for a test.
fn hasty() -> Limits {
    let short = Duration::from_millis(200);
    Limits { ask_within: short, take_within: short, linger: short, ..Limits::default() }
}

#[test]
fn silent_slow_and_half_clients_keep_nobody_from_an_answer() {
    // These time limits never expire: no client is served because a hostile one timed out.
    let patient = Duration::from_secs(3600);
    let limits = Limits { ask_within: patient, take_within: patient, ..Limits::default() };
    let served = Served::new(limits);
    let silent: Vec<TcpStream> = (0..10).map(|_| served.connect()).collect();
    served.is_well();
    let half: Vec<TcpStream> = (0..10).map(|_| served.sends(b"GET /long HTT")).collect();
    served.is_well();
    let reads_nothing: Vec<TcpStream> =
        (0..10).map(|_| served.sends(b"GET /long HTTP/1.1\r\n\r\n")).collect();
    served.is_well();
    assert!(served.get("/long").len() > LONG, "a long answer is whole beside them");
    drop((silent, half, reads_nothing));
    served.all_end();
}

#[test]
fn each_hostile_client_is_cut_off_in_its_time() {
    let served = Served::new(hasty());
    let clients = [
        served.connect(),
        served.sends(b"GET /short HTTP/1.1\r\nHost: "),
        served.sends(b"GET /long HTTP/1.1\r\n\r\n"),
        served.sends(b"GET /short HTTP/1.1\r\n\r\n"),
    ];
    served.all_end();
    drop(clients);
    // Single octets from time to time do not extend the time limit.
    let start = Instant::now();
    let mut slow = served.connect();
    while slow.write_all(b"G").is_ok() {
        assert!(start.elapsed() < HANGS, "it goes on for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    served.is_well();
}

#[test]
fn a_thousand_connections_leave_room_for_one_more() {
    let patient = Duration::from_secs(3600);
    let limits = Limits { ask_within: patient, ..Limits::default() };
    let served = Served::new(limits);
    let mut flood = Vec::new();
    for _ in 0..20 {
        flood.extend((0..50).map(|_| served.connect()));
        served.is_well();
    }
    assert_eq!(flood.len(), 1000);
    let most = served.most.load(Ordering::Relaxed);
    assert!(most <= limits.connections_max, "{most} connections were open at once");
    drop(flood);
    served.all_end();
}

#[test]
fn huge_heads_are_refused_and_not_kept() {
    let served = Served::new(Limits::default());
    let huge = format!("GET /short HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(100 << 10));
    let mut text = String::new();
    served.sends(huge.as_bytes()).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    for garbage in [&[0; 64][..], &[0xff; 8192], b"\r\n\r\n\r\n", b"GET\r\n\r\n"] {
        let mut stream = served.sends(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        // Any response or the end will do: nothing hangs.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    served.is_well();
}
