//! What a socket of a rack costs beside one of the kernel: the round trip of 64 B, and the
//! throughput of messages of 64 KiB, between two processes. The rounds alternate.
//!
//! A changed program passes the same messages by reference. `refer` leaves all but the first byte
//! of a message alone; `refer+touch` writes each byte in place, and reads it there.
//!
//! `cargo bench -p ethermem-rack --bench sockets`

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Instant;

use ethermem_rack::shared::Calls;
use ethermem_rack::{Config, Node};

const ROUNDS: usize = 7;
const SMALL_BYTES: usize = 64;
const ROUND_TRIPS: usize = 20_000;
const LARGE_BYTES: usize = 64 << 10;
const MESSAGES: usize = 20_000;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("client") => client(&words[2]),
        Some("serve") => serve(&words[2]),
        _ => compare(),
    }
}

/// Medians of the kernel and of the rack, and of the ratios of each round with their range, on two
/// processors and on one.
fn compare() {
    println!("processors  what                         kernel      rack     ratio");
    for processors in ["0,1", "0"] {
        for (plain, kind, unit) in [
            ("trip", "trip", "us"),
            ("trip", "trip-refer", "us"),
            ("stream", "stream", "GB/s"),
            ("stream", "stream-refer", "GB/s"),
            ("stream", "stream-refer+touch", "GB/s"),
        ] {
            let (mut kernel, mut rack) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                kernel.push(round(processors, plain, false));
                rack.push(round(processors, kind, true));
            }
            let mut ratios: Vec<f64> = rack.iter().zip(&kernel).map(|(r, k)| r / k).collect();
            ratios.sort_by(f64::total_cmp);
            let (kernel, rack) = (median(kernel), median(rack));
            let what = format!("{kind} ({unit})");
            println!(
                "{:<11} {what:<25} {kernel:>9.3} {rack:>9.3} {:>9.3} ({:.3} to {:.3})",
                processors.split(',').count(),
                ratios[ROUNDS / 2],
                ratios[0],
                ratios[ROUNDS - 1],
            );
        }
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// One run of both processes; its result comes by a file.
fn round(processors: &str, kind: &str, in_rack: bool) -> f64 {
    let file = tempfile::NamedTempFile::new().expect("a file for the result");
    let own = std::env::current_exe().expect("this program");
    let mut words: Vec<OsString> = vec!["taskset".into(), "-c".into(), processors.into()];
    words.extend([own.into(), "client".into(), kind.into(), file.path().into()]);
    let status = if in_rack {
        let address = Ipv4Addr::LOCALHOST;
        let node = Node { name: "a".into(), address, nics: vec!["lo".into()] };
        let name = format!("bench-{}", std::process::id());
        let (ring_bytes, pool_bytes) = (256 << 10, 1 << 30);
        let config =
            Config { name, ring_bytes, pool_bytes, nodes: vec![node], ..Config::default() };
        let (report, status) = ethermem_rack::run(&config, &words).expect("it runs");
        assert!(report.is_closed && report.memory_bytes > 0, "{report:?}");
        status
    } else {
        Command::new(&words[0]).args(&words[1..]).status().expect("it runs")
    };
    assert!(status.success());
    let text = std::fs::read_to_string(file.path()).expect("the result");
    text.parse().expect("a number")
}

fn client(kind: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    let port = listener.local_addr().expect("its port").port().to_string();
    let own = std::env::current_exe().expect("this program");
    let words = ["serve", kind, &port];
    let mut peer = Command::new(own).args(words).stdin(Stdio::null()).spawn().expect("a peer");
    let (mut end, _) = listener.accept().expect("the peer");
    end.set_nodelay(true).expect("an option");
    let result =
        if kind.starts_with("trip") { trips(kind, &mut end) } else { stream(kind, &mut end) };
    drop(end);
    assert!(peer.wait().expect("its end").success());
    let path = std::env::args().nth(3).expect("the file");
    std::fs::write(path, result.to_string()).expect("written");
}

fn is_by_reference(kind: &str) -> bool {
    kind.contains("refer")
}

fn calls() -> Calls {
    Calls::find().expect("the rack's library")
}

/// Microseconds of a round trip.
fn trips(kind: &str, end: &mut TcpStream) -> f64 {
    let mut small = [1u8; SMALL_BYTES];
    // The first exchanges bring the connection into memory.
    for _ in 0..100 {
        exchange(end, &mut small);
    }
    let begun = Instant::now();
    if is_by_reference(kind) {
        let calls = calls();
        for _ in 0..ROUND_TRIPS {
            refer(calls, end, &small);
            assert!(take(calls, end));
        }
    } else {
        for _ in 0..ROUND_TRIPS {
            exchange(end, &mut small);
        }
    }
    begun.elapsed().as_secs_f64() * 1e6 / ROUND_TRIPS as f64
}

/// Gigabytes in a second.
fn stream(kind: &str, end: &mut TcpStream) -> f64 {
    let mut room = vec![1u8; LARGE_BYTES];
    for _ in 0..100 {
        exchange(end, &mut room[..1]);
    }
    let begun = Instant::now();
    for _ in 0..MESSAGES {
        if !is_by_reference(kind) {
            end.write_all(&room).expect("sent");
            continue;
        }
        let mut buffer = calls().alloc(end, LARGE_BYTES).expect("room");
        // SAFETY: the peer of this program uses what it has received alone.
        let bytes = unsafe { buffer.bytes() };
        if kind.contains("touch") {
            bytes.fill(1);
        } else {
            bytes[0] = 1;
        }
        buffer.send(LARGE_BYTES).expect("sent");
    }
    end.read_exact(&mut room[..1]).expect("the answer");
    (MESSAGES * LARGE_BYTES) as f64 / begun.elapsed().as_secs_f64() / 1e9
}

fn exchange(end: &mut TcpStream, bytes: &mut [u8]) {
    end.write_all(bytes).expect("sent");
    end.read_exact(bytes).expect("received");
}

fn refer(calls: Calls, end: &TcpStream, bytes: &[u8]) {
    let mut buffer = calls.alloc(end, bytes.len()).expect("room");
    buffer.fill(bytes);
    buffer.send(bytes.len()).expect("sent");
}

/// Receives a small message by reference, and reads it. False at the end.
fn take(calls: Calls, end: &TcpStream) -> bool {
    let mut got = 0;
    while got < SMALL_BYTES {
        let reference = calls.receive(end, SMALL_BYTES - got).expect("received");
        // SAFETY: the peer of this program does not store into what it has sent.
        let bytes = unsafe { reference.bytes() };
        if bytes.is_empty() {
            return false;
        }
        assert!(bytes.iter().all(|byte| *byte == 1));
        got += bytes.len();
    }
    true
}

fn serve(kind: &str) {
    let port: u16 = std::env::args().nth(3).expect("a port").parse().expect("a number");
    let mut end = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("connected");
    end.set_nodelay(true).expect("an option");
    if kind.starts_with("trip") {
        return serve_trips(kind, &mut end);
    }
    let mut room = vec![0u8; LARGE_BYTES];
    for _ in 0..100 {
        end.read_exact(&mut room[..1]).expect("received");
        end.write_all(&room[..1]).expect("sent");
    }
    let mut left = MESSAGES * LARGE_BYTES;
    while left > 0 && is_by_reference(kind) {
        let reference = calls().receive(&end, LARGE_BYTES).expect("received");
        // SAFETY: the peer of this program does not store into what it has sent.
        let bytes = unsafe { reference.bytes() };
        let seen = if kind.contains("touch") { bytes } else { &bytes[..0] };
        assert!(seen.iter().all(|byte| *byte == 1));
        left -= bytes.len();
    }
    while left > 0 {
        end.read_exact(&mut room).expect("received");
        assert!(room.iter().all(|byte| *byte == 1));
        left -= room.len();
    }
    end.write_all(&[1]).expect("answered");
}

fn serve_trips(kind: &str, end: &mut TcpStream) {
    let mut small = [0u8; SMALL_BYTES];
    let plain = if is_by_reference(kind) { 100 } else { usize::MAX };
    for _ in 0..plain {
        if end.read_exact(&mut small).is_err() {
            return;
        }
        end.write_all(&small).expect("sent");
    }
    let calls = calls();
    while take(calls, end) {
        refer(calls, end, &small);
    }
}
