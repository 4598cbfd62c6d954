//! A stream over NICs that lose, double, reorder, die and return: each byte arrives once, in order.
//! A failure prints the seed; `PROPTEST_CASES=2000 cargo test -p ethermem-dfabric --test stream`
//! runs more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use ethermem_dfabric::stream::{
    Arrival, Receiver, RoundTrips, Sender, SenderConfig, Spread, StreamConfigError, Transmit,
};
use ethermem_units::Ps;
use ethermem_wire::dfabric::{Acknowledgement, FabricAddress, Identity, Segment};
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const ENDS: (Identity, Identity) = (Identity(2), Identity(1));
/// The first segment's number: numbers wrap in every run.
const FIRST: u32 = u32::MAX - 5;

/// What a network does, in parts of 256.
#[derive(Clone, Copy, Debug)]
struct Faults {
    loss: u32,
    doubling: u32,
    reordering: u32,
    /// In each step, a NIC dies or returns.
    deaths: u32,
    forged: u32,
}

struct World {
    random: Xoshiro256StarStar,
    faults: Faults,
    now: Ps,
    sender: Sender,
    trips: RoundTrips,
    receiver: Receiver,
    /// By subflow: what its path carries, with the NIC that is down.
    paths: Vec<(bool, Vec<Segment>)>,
    acks: Vec<Acknowledgement>,
    /// Lengths of segments by their place in the stream.
    lengths: Vec<u32>,
    /// Where a segment's data is: its place times 4096.
    received: BTreeMap<u64, u32>,
    delivered: u32,
    acked: u32,
    sent: u64,
    probes: u64,
    last: Option<Segment>,
}

fn data(place: u32) -> FabricAddress {
    FabricAddress::new(u64::from(place) * 4096).unwrap()
}

impl World {
    fn new(seed: u64, config: SenderConfig, faults: Faults, count: u32) -> World {
        let mut random = Xoshiro256StarStar::seed_from_u64(seed);
        let lengths = (0..count).map(|_| 1 + random.next_u32() % 4096).collect();
        World {
            random,
            faults,
            now: Ps(0),
            sender: Sender::new(config, FIRST).unwrap(),
            trips: RoundTrips::new(Ps(2_000)),
            receiver: Receiver::new(config.window, FIRST).unwrap(),
            paths: vec![(true, Vec::new()); usize::from(config.subflows)],
            acks: Vec::new(),
            lengths,
            received: BTreeMap::new(),
            delivered: 0,
            acked: 0,
            sent: 0,
            probes: 0,
            last: None,
        }
    }

    fn happens(&mut self, of_256: u32) -> bool {
        self.random.next_u32() % 256 < of_256
    }

    fn push(&mut self, pushed: &mut u32) {
        let count = self.lengths.len() as u32;
        while *pushed < count {
            let length = self.lengths[*pushed as usize];
            let Ok(number) = self.sender.push(data(*pushed), length, *pushed + 1 == count) else {
                break;
            };
            assert_eq!(number, FIRST.wrapping_add(*pushed));
            *pushed += 1;
        }
    }

    fn transmit(&mut self) {
        while let Some(transmit) = self.sender.poll_transmit(self.now, &self.trips) {
            let Transmit { number, subflow, data: at, length, is_last, .. } = transmit;
            let place = number.wrapping_sub(FIRST);
            assert_eq!((at, length), (data(place), self.lengths[place as usize]));
            assert!(self.paths[usize::from(subflow)].0, "a segment for a NIC that is gone");
            self.sent += 1;
            let (destination, source) = ENDS;
            let segment =
                Segment { destination, source, stream: 1, subflow, number, length, is_last };
            let copies = if self.happens(self.faults.doubling) { 2 } else { 1 };
            for _ in 0..copies {
                if self.happens(self.faults.loss) {
                    continue;
                }
                let reorders = self.happens(self.faults.reordering);
                let path = &mut self.paths[usize::from(subflow)].1;
                let at = if reorders { path.len() / 2 } else { path.len() };
                path.insert(at, segment);
            }
        }
    }

    /// One segment of one path arrives.
    fn arrive(&mut self) {
        let path = self.random.next_u32() as usize % self.paths.len();
        if self.paths[path].1.is_empty() {
            return;
        }
        let segment = self.paths[path].1.remove(0);
        let place = segment.number.wrapping_sub(FIRST);
        let before: Vec<_> = self.receiver.waiting().collect();
        match self.receiver.on_segment(&segment, data(place)) {
            Arrival::Kept => {
                let was = self.received.insert(u64::from(place), segment.length);
                assert_eq!(was, None, "segment {place} was kept twice");
            }
            Arrival::Duplicate => {
                assert!(self.received.contains_key(&u64::from(place)), "{segment:?}");
            }
            // A probe; a sender of ours keeps to the window otherwise.
            Arrival::Outside => self.probes += 1,
            Arrival::Mismatch => panic!("{segment:?}, waiting {before:?}"),
        }
        self.acks.push(self.receiver.acknowledge(&segment));
        self.last = Some(segment);
    }

    fn forge(&mut self) {
        let (destination, source) = ENDS;
        let number = self.random.next_u32();
        let window = self.receiver.acknowledge(&Segment {
            destination,
            source,
            stream: 1,
            subflow: 0,
            number,
            length: 1,
            is_last: false,
        });
        let after = number.wrapping_sub(window.next);
        if after >= window.room {
            let is_last = number.is_multiple_of(2);
            let forged =
                Segment { destination, source, stream: 1, subflow: 0, number, length: 9, is_last };
            let arrival = self.receiver.on_segment(&forged, data(0));
            assert_ne!(arrival, Arrival::Kept, "{forged:?}");
        }
        let pushed = self.acked + 70_000;
        let wrong = Acknowledgement {
            next: FIRST.wrapping_add(pushed + number % 1000),
            later: 1 << 63,
            ..window
        };
        assert!(self.sender.on_ack(&wrong, self.now, &mut self.trips).is_err(), "{wrong:?}");
    }

    fn nic(&mut self) {
        let path = self.random.next_u32() as usize % self.paths.len();
        let subflow = path as u16;
        if self.paths[path].0 {
            // What it had is lost, too.
            self.paths[path] = (false, Vec::new());
            self.sender.lose_path(subflow);
        } else {
            self.paths[path].0 = true;
            self.sender.restore_path(subflow);
        }
    }

    fn step(&mut self) {
        if self.happens(self.faults.deaths) {
            self.nic();
        }
        if self.happens(self.faults.forged) {
            self.forge();
        }
        (0..4).for_each(|_| self.arrive());
        while let Some(delivery) = self.receiver.poll_delivery() {
            let place = delivery.number.wrapping_sub(FIRST);
            assert_eq!(place, self.delivered, "not in order");
            assert_eq!(delivery.length, self.lengths[place as usize]);
            assert_eq!(delivery.data, data(place));
            self.delivered += 1;
        }
        if let Some(last) = self.last.filter(|_| self.receiver.has_room_to_announce()) {
            self.acks.push(self.receiver.acknowledge(&last));
        }
        for ack in std::mem::take(&mut self.acks) {
            if !self.happens(self.faults.loss) {
                self.sender.on_ack(&ack, self.now, &mut self.trips).unwrap();
            }
        }
        while let Some((number, at)) = self.sender.poll_acked() {
            assert_eq!((number, at), (FIRST.wrapping_add(self.acked), data(self.acked)));
            assert!(self.received.contains_key(&u64::from(self.acked)));
            self.acked += 1;
        }
        self.now += Ps(10);
        let wake = self.sender.next_wake(&self.trips);
        // Where nothing is under way, the timer is next. With nine of ten segments lost it is
        // doubled often, and steps in between would be spent on nothing.
        if let Some(wake) = wake.filter(|_| self.paths.iter().all(|path| path.1.is_empty())) {
            self.now = self.now.max(wake);
        }
        if wake.is_some_and(|wake| wake <= self.now) {
            self.sender.on_timer(self.now, &mut self.trips);
        }
    }

    /// Runs until all is acknowledged. With deaths, all NICs are up from half of the steps on.
    fn run(mut self) -> u64 {
        let (count, mut pushed) = (self.lengths.len() as u32, 0);
        for step in 0..2_000_000_u32 {
            self.push(&mut pushed);
            self.transmit();
            self.step();
            if step == 20_000 {
                self.faults = Faults { deaths: 0, ..self.faults };
                for path in 0..self.paths.len() {
                    if !self.paths[path].0 {
                        self.paths[path].0 = true;
                        self.sender.restore_path(path as u16);
                    }
                }
            }
            if pushed == count && self.sender.is_idle() {
                break;
            }
        }
        assert!(self.sender.is_idle(), "{} of {count} acknowledged", self.acked);
        assert_eq!((self.delivered, self.acked), (count, count));
        assert!(self.receiver.is_complete());
        let subflows = 0..self.paths.len() as u16;
        assert!(subflows.clone().all(|subflow| self.sender.in_flight(subflow) == 0));
        self.sent
    }
}

fn config(window: u32, subflows: u16, spread: Spread) -> SenderConfig {
    SenderConfig { window, subflows, subflow_bytes: 64 << 10, spread }
}

proptest! {
    #[test]
    fn each_byte_arrives_once_and_in_order(
        seed in any::<u64>(),
        (window, subflows) in (0..9_u32, 1..6_u16),
        is_least in any::<bool>(),
        (loss, doubling, reordering, deaths) in (0..90_u32, 0..60_u32, 0..60_u32, 0..3_u32),
        count in 1..400_u32,
    ) {
        let spread = if is_least { Spread::Least } else { Spread::Turns };
        let faults = Faults { loss, doubling, reordering, deaths, forged: 20 };
        World::new(seed, config(1 << window, subflows, spread), faults, count).run();
    }
}

/// A third of all segments and acknowledgements is lost, from the first one on: the timeout doubles
/// often before there is a round trip to go by.
#[test]
fn a_stream_whose_first_segments_are_lost_ends() {
    let faults = Faults { loss: 89, doubling: 17, reordering: 0, deaths: 0, forged: 20 };
    World::new(13_228_220_323_369_644_873, config(2, 4, Spread::Turns), faults, 308).run();
}

#[test]
fn without_faults_nothing_is_sent_twice() {
    let faults = Faults { loss: 0, doubling: 0, reordering: 0, deaths: 0, forged: 0 };
    for spread in [Spread::Turns, Spread::Least] {
        let world = World::new(7, config(64, 4, spread), faults, 1000);
        assert_eq!(world.run(), 1000, "{spread:?}");
    }
}

#[test]
fn a_window_and_subflows_have_their_ranges() {
    for (window, subflows, error) in [
        (0, 1, StreamConfigError::Window(0)),
        (3, 1, StreamConfigError::Window(3)),
        (1 << 17, 1, StreamConfigError::Window(1 << 17)),
        (1, 0, StreamConfigError::Subflows(0)),
    ] {
        let made = Sender::new(config(window, subflows, Spread::Turns), 0);
        assert_eq!(made.err(), Some(error));
    }
}
