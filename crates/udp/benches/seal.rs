//! Measures the node's cost of encryption, and of a forged datagram: `cargo bench -p ethermem-udp
//! --bench seal`.

use std::hint::black_box;
use std::time::Instant;

use ethermem_clio::node::Seal;
use ethermem_udp::seal::{ClientSeal, NodeSeal, SENDERS, TenantKey};
use ethermem_units::Ns;
use ethermem_wire::clio::{Envelope, Epoch, Protection, SenderId, TenantId};

const TENANT: TenantId = TenantId(1);
const KEY: TenantKey = TenantKey([7; 32]);
const ROUNDS: usize = 31;
const DATAGRAMS: u64 = 500;
/// Datagram lengths of a 64 B read, of Ethernet, of jumbo frames, and of UDP's maximum.
const LENGTHS: [usize; 4] = [84, 1472, 8972, 65_507];
const TARGET_NS: f64 = 1_000.0;

fn envelope(sender: u64, sequence: u64) -> Envelope {
    Envelope {
        protection: Protection::Gcm,
        tenant: TENANT,
        epoch: Epoch(1),
        sender: SenderId(sender),
        sequence,
        clock: Ns(1),
    }
}

/// A datagram with its envelope, followed by zeros.
fn datagram(length: usize, envelope: &Envelope) -> Vec<u8> {
    let mut octets = vec![0; length];
    envelope.emit(&mut octets).expect("there is room for an envelope");
    octets
}

/// Nanoseconds of one call, as the median of many short rounds.
fn measure(mut once: impl FnMut(u64)) -> f64 {
    let mut number = 1;
    let mut round = || {
        let start = Instant::now();
        for _ in 0..DATAGRAMS {
            once(number);
            number += 1;
        }
        start.elapsed().as_nanos() as f64 / DATAGRAMS as f64
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() {
    let mut node = NodeSeal::new(&[(TENANT, KEY)], SenderId(2), [3, 4], SENDERS);
    let client = ClientSeal::new(TENANT, &KEY, SenderId(5));
    println!(
        "| datagram, B | opened, ns | sealed, ns | forged, known sender | forged, any sender |"
    );
    println!("|---|---|---|---|---|");
    let mut sequence = 0;
    for length in LENGTHS {
        let mut made: Vec<(Envelope, Vec<u8>)> = (0..DATAGRAMS * ROUNDS as u64)
            .take(if length > 9000 { 2000 } else { usize::MAX })
            .map(|_| {
                sequence += 1;
                let envelope = envelope(5, sequence);
                let mut octets = datagram(length, &envelope);
                client.seal(&mut octets).expect("it is a datagram");
                (envelope, octets)
            })
            .collect();
        let most = made.len() as u64;
        let start = Instant::now();
        for (envelope, octets) in &mut made {
            node.open(envelope, octets).expect("it is good");
        }
        let opened = start.elapsed().as_nanos() as f64 / most as f64;
        let mut octets = datagram(length, &envelope(5, 0));
        let sealed = measure(|number| node.seal(&envelope(2, number), black_box(&mut octets)));
        let mut forged = |sender: u64, vary: u64| {
            let mut octets = datagram(length, &envelope(sender, 0));
            measure(|number| {
                let envelope = envelope(sender + vary * number, 1 << 40 | number);
                let refused = node.open(&envelope, black_box(&mut octets));
                assert!(refused.is_err(), "nobody has its key");
            })
        };
        let (known, any) = (forged(5, 0), forged(1 << 32, 1));
        let verdict = if known.max(any) <= TARGET_NS { "" } else { " (over 1 us)" };
        println!("| {length} | {opened:.0} | {sealed:.0} | {known:.0} | {any:.0}{verdict} |");
    }
}
