//! `ring:` among malformed frames, frames of strangers, and more frames than there is room for.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem::Pool;
use ethermem_ring::{Alarm, Field, Filter as Frames, Interface, Ring};
use ethermem_udp::{ClientOptions, Driver, NodePlace};
use ethermem_units::Bytes;
use ethermem_wire::clio::{
    ETHER_TYPE, FRAME_BYTES, FRAME_MARK, FRAME_MARK_AT, Frame, FrameBody, Mac, PIECE_FRAME_BYTES,
    Piece, Port, Station, TenantId,
};

use crate::ring::{CLIENT, NODE, Two, use_all};

/// A socket for all frames of the protocol, to any port.
pub(crate) fn raw(interface: &str) -> Ring {
    let fields = vec![Field::Half(FRAME_MARK_AT, FRAME_MARK)];
    let frames = Frames { fields, broadcast: true };
    Ring::open(&Interface::find(interface).unwrap(), ETHER_TYPE, &frames).unwrap()
}

/// Sender of a test's own frames.
pub(crate) const OWN: Station = Station { mac: CLIENT, port: Port(1 << 63 | 5) };

pub(crate) fn to(mac: Mac) -> Station {
    Station { mac, port: Port(7400) }
}

pub(crate) fn frame(to: Station, body: FrameBody, bytes: u16) -> Vec<u8> {
    let mut octets = vec![0; 200];
    Frame { to, from: OWN, carries: 1468, body }.emit(bytes, &mut octets).unwrap();
    octets
}

/// A valid frame, whose datagram is invalid.
pub(crate) fn good() -> Vec<u8> {
    frame(to(NODE), FrameBody::Datagram, 100)
}

fn with(at: usize, octet: u8) -> Vec<u8> {
    let mut octets = good();
    octets[at] = octet;
    octets
}

fn malformed() -> Vec<Vec<u8>> {
    let piece = |index| {
        let piece = Piece { number: 1, index, count: 2, total: 200 };
        frame(to(NODE), FrameBody::Piece(piece), 100)
    };
    vec![
        with(16, 9),
        with(17, 1),
        with(18, 0),
        with(19, 0xff),
        with(6, 3),
        with(21, 1),
        good()[..FRAME_BYTES + 99].to_vec(),
        good()[..FRAME_BYTES - 8].to_vec(),
        piece(2),
        piece(0)[..PIECE_FRAME_BYTES - 1].to_vec(),
        frame(to(Mac::BROADCAST), FrameBody::Datagram, 100),
    ]
}

/// Frames from others, or for others.
fn foreign() -> Vec<Vec<u8>> {
    vec![
        with(12, 0x12),
        with(14, 1),
        with(15, 2),
        frame(Station { port: Port(7401), ..to(NODE) }, FrameBody::Datagram, 100),
        frame(to(Mac([2, 0, 0, 0, 0, 0x55])), FrameBody::Question, 0),
        good()[..20].to_vec(),
    ]
}

/// A malformed frame is counted and not answered. Other traffic is not even counted, and reaches
/// its receiver.
#[test]
fn malformed_frames_are_counted_and_other_traffic_is_untouched() {
    let Some(two) = Two::new("malformed frames", 1500) else { return };
    let node = two.serve();
    two.client.ip("addr add 192.0.2.1/24 dev c0");
    two.node.ip("addr add 192.0.2.2/24 dev n0");
    let (malformed, foreign) = (malformed(), foreign());
    let answered = two.client.enter(|| {
        let mut ring = raw("c0");
        for octets in malformed.iter().chain(&foreign) {
            ring.send(octets).unwrap();
        }
        // A datagram that no client made is dropped by the transport.
        ring.send(&good()).unwrap();
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        let there = two.node.enter(|| UdpSocket::bind("192.0.2.2:0").unwrap());
        socket.send_to(b"beside", there.local_addr().unwrap()).unwrap();
        there.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(there.recv(&mut [0; 10]).unwrap(), 6);
        // A valid question after all of them is answered, once.
        let question = frame(to(NODE), FrameBody::Question, 0);
        ring.send(&question[..60]).unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        let mut answers = Vec::new();
        while let Some(octets) = ring.take() {
            answers.push(Frame::parse(octets).unwrap().0);
        }
        answers
    });
    let answer = Frame { to: OWN, from: to(NODE), carries: 1468, body: FrameBody::Answer };
    assert_eq!(answered, [answer]);
    let snapshot = node.published.lock().unwrap().clone();
    assert_eq!(snapshot.server.frames_dropped, malformed.len() as u64);
    let dropped = snapshot.node.dropped_malformed + snapshot.node.dropped_protection;
    assert_eq!((snapshot.node.datagrams, dropped), (1, 1), "{:?}", snapshot.node);
    use_all(&two.open("c0", "").unwrap());
}

/// Answers questions as other stations than the one that was asked, until told to stop.
fn answer_as(strangers: &[Station], stop: &AtomicBool) {
    let mut ring = raw("n0");
    let (waiter, alarm) = (ring.waiter(), Alarm::new());
    while !stop.load(Ordering::Relaxed) {
        let Some(octets) = ring.take() else {
            waiter.wait(&alarm, Duration::from_millis(1));
            continue;
        };
        let Ok((Frame { from: to, body: FrameBody::Question, .. }, _)) = Frame::parse(octets)
        else {
            continue;
        };
        for &from in strangers {
            let mut octets = [0; 60];
            let frame = Frame { to, from, carries: 1468, body: FrameBody::Answer };
            frame.emit(0, &mut octets).unwrap();
            ring.send(&octets).unwrap();
        }
    }
}

fn stranger(number: u16) -> Station {
    let [high, low] = number.to_be_bytes();
    Station { mac: Mac([2, 0, 0, 1, high, low]), port: Port(7400) }
}

/// The result of opening a place while such stations answer beside its node.
fn among(two: &Two, strangers: &[Station], place: &str) -> Result<Pool, String> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| two.node.enter(|| answer_as(strangers, &stop)));
        let opened = std::panic::catch_unwind(|| two.open(place, "&timeout_ms=1000"));
        stop.store(true, Ordering::Relaxed);
        opened.unwrap().map_err(|error| error.to_string())
    })
}

#[test]
fn who_is_asked_by_its_address_is_answered_for_by_nobody_else() {
    let Some(two) = Two::new("answers of strangers", 1500) else { return };
    let place = format!("c0/{NODE}");
    let error = among(&two, &[stranger(1)], &place).unwrap_err();
    assert_eq!(error, format!("ring://{place}: no answer within 1000 ms"));
    let _node = two.serve();
    use_all(&among(&two, &[stranger(1), stranger(2)], &place).unwrap());
}

/// However many stations answer, the list of them is bounded.
#[test]
fn a_flood_of_answers_names_sixteen_nodes() {
    let Some(two) = Two::new("floods of answers", 1500) else { return };
    let strangers: Vec<Station> = (0..2000).map(stranger).collect();
    let error = among(&two, &strangers, "c0").unwrap_err();
    assert!(error.starts_with("ring://c0: several nodes answer; must be one of "), "{error}");
    assert_eq!(error.matches("ring://c0/").count(), 16, "{error}");
}

/// A client accepts datagrams, and pieces of them, only from its node.
#[test]
fn a_client_hears_its_node_alone() {
    let Some(two) = Two::new("frames of strangers", 1500) else { return };
    let node = Station { mac: NODE, port: Port(7400) };
    let options = ClientOptions {
        node: NodePlace::Ring("c0".parse().unwrap()),
        tenant: TenantId(0),
        key: None,
        datagram_bytes_max: None,
        window: 4,
        incast_window: Bytes(1 << 16),
        give_up_after: Duration::from_secs(4),
    };
    let stop = AtomicBool::new(false);
    let (mut driver, client) = std::thread::scope(|scope| {
        scope.spawn(|| two.node.enter(|| answer_as(&[node], &stop)));
        let mut asks = two.node.enter(|| raw("n0"));
        let driver = two.client.enter(|| Driver::connect(&options));
        stop.store(true, Ordering::Relaxed);
        let asked = Frame::parse(asks.take().expect("the client asked")).unwrap().0;
        (driver.unwrap(), asked.from)
    });
    let says = two.node.enter(|| raw("n0"));
    let mut say = |from: Station, body, bytes: u16| {
        let mut octets = vec![0; 200];
        Frame { to: client, from, carries: 1468, body }.emit(bytes, &mut octets).unwrap();
        says.send(&octets).unwrap();
        // Poll until nothing is left.
        let began = Instant::now();
        let mut heard = false;
        while !heard && began.elapsed() < Duration::from_millis(300) {
            heard = driver.turn().unwrap();
        }
        heard
    };
    let piece = |index| FrameBody::Piece(Piece { number: 1, index, count: 2, total: 200 });
    for other in [Station { port: Port(7401), ..node }, stranger(1)] {
        assert!(!say(other, FrameBody::Datagram, 100), "{other:?}");
        assert!(!say(other, piece(0), 100) && !say(other, piece(1), 100), "{other:?}");
    }
    assert!(say(node, FrameBody::Datagram, 100));
    assert!(!say(node, piece(0), 100) && say(node, piece(1), 100));
}

/// A node that does not poll loses frames for which the ring has no room, and counts them.
#[test]
fn frames_that_the_ring_has_no_room_for_are_counted() {
    const FRAMES: u64 = 6000;
    let Some(two) = Two::new("rings that are full", 1500) else { return };
    let (options, stop) = (two.options("n0"), AtomicBool::new(true));
    let mut server = two.node.enter(|| ethermem_node::start(&options).unwrap().server);
    two.client.enter(|| {
        let ring = raw("c0");
        (0..FRAMES).for_each(|_| ring.send(&good()).unwrap());
    });
    let mut turns = 0;
    let done = || {
        turns += 1;
        turns > 2 * FRAMES
    };
    server.run_asking(Duration::from_secs(1), done).unwrap();
    server.run(Duration::ZERO, &stop).unwrap();
    let (datagrams, lost) = (server.node().counters().datagrams, server.counters().frames_overrun);
    assert!(datagrams > 1000 && lost > 1000, "{datagrams} and {lost}");
    assert!(datagrams + lost <= FRAMES, "{datagrams} and {lost}");
    assert_eq!(server.published().lock().unwrap().server.frames_overrun, lost);
}

/// A node with traffic on one transport still serves the other at once.
#[test]
fn a_node_answers_frames_and_datagrams_of_udp_at_once() {
    let Some(two) = Two::new("both ways at once", 1500) else { return };
    let node = two.serve();
    let key = two.key_file();
    let udp = format!("udp://{}?key={}", node.address, key.display());
    let udp = two.node.enter(|| Pool::open(&udp)).unwrap();
    let pools = [udp, two.open("c0", "").unwrap()];
    let running = AtomicBool::new(true);
    for (quiet, busy) in [(0, 1), (1, 0)] {
        running.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while running.load(Ordering::Relaxed) {
                    use_all(&pools[busy]);
                }
            });
            let used = std::panic::catch_unwind(|| use_all(&pools[quiet]));
            running.store(false, Ordering::Relaxed);
            used.unwrap();
        });
    }
}
