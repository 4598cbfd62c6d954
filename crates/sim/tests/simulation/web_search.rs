//! A thousand web-search flows with YAPS's results. The tests compare our fabrics with these
//! values, and the benchmark of the Clos recomputes them with YAPS.

use ethermem_sim::{Kind, Message};
use ethermem_units::{Bytes, Ps};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Its mean slowdowns: with switches that store frames (`cut_through: 0`), and with switches that
/// cut through, as in its scripts.
pub(crate) const YAPS_PFABRIC: [f64; 2] = [1.188, 1.160];
pub(crate) const YAPS_PHOST: [f64; 2] = [2.144, 1.577];
/// Its mean slowdown with switches that store frames.
pub(crate) const YAPS_FASTPASS: f64 = 1.552;

/// Sizes in packets of 1,460 B: DCTCP's measurements, as in the simulations of pFabric and its
/// successors.
const SIZES: [(f64, f64); 11] = [
    (6.0, 0.15),
    (13.0, 0.2),
    (19.0, 0.3),
    (33.0, 0.4),
    (53.0, 0.53),
    (133.0, 0.6),
    (667.0, 0.7),
    (1_333.0, 0.8),
    (3_333.0, 0.9),
    (6_667.0, 0.97),
    (20_000.0, 1.0),
];
/// Mean number of packets of a flow.
const MEAN: f64 = 1_140.98;
const FLOWS: u64 = 1_000;

/// Flows between random pairs of 144 nodes at load 0.6 of 40 Gb/s.
pub(crate) fn flows() -> Vec<Message> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut uniform = move || ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let gap_ps = MEAN * 1_500.0 * 8.0 / (0.6 * 40e9 * 144.0) * 1e12;
    let mut at = 0.0;
    let draw = |index| {
        at -= uniform().ln() * gap_ps;
        let (size, mut before) = (uniform(), (6.0, 0.0));
        let mut packets = 0.0;
        for point in SIZES {
            if size <= point.1 {
                let share = (size - before.1) / (point.1 - before.1);
                packets = before.0 + (point.0 - before.0) * share;
                break;
            }
            before = point;
        }
        let source = (uniform() * 144.0) as u16 % 144;
        let destination = (source + 1 + (uniform() * 143.0) as u16 % 143) % 144;
        Message {
            index,
            arrival: Ps(at as u64),
            kind: Kind::Write,
            compute: source,
            memory: destination,
            bytes: Bytes(packets.round() as u64 * 1_460),
        }
    };
    (0..FLOWS).map(draw).collect()
}
