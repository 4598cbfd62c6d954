//! Clients and a node over a network that loses, duplicates, delays, reorders and damages
//! datagrams, parts them for a while, and restarts the node. Every result is checked: bytes by a
//! model, atomics and locks by a search for an order in which they could have happened one by one.
//!
//! The seed determines everything. A failing case prints it; `CLIO_SEED=… cargo test -p
//! ethermem-clio --test virtual_network` repeats it alone.

#[path = "support/linear.rs"]
mod linear;
#[path = "support/network.rs"]
mod network;

use ethermem_clio::transport::{Completed, OperationError};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{ClioStatus, Request};
use linear::{Call, is_linearizable};
use network::{Faults, GIVE_UP, Network, Task};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SHARED_WORDS: u64 = 4;
const PRIVATE_BYTES: u64 = 3 * 4096;
const US: u64 = 1_000;

/// The operation that a client has in progress.
enum Doing {
    Private { from: usize, expected: Option<Vec<u8>> },
    Shared { word: u64, operation: Option<RmwOperation>, called: u64 },
    Lock,
    Unlock,
}

/// A client of the test: it runs one operation at a time, each checked.
struct Actor {
    draws: SplitMix64,
    private: u64,
    shared: u64,
    model: Vec<u8>,
    doing: Option<Doing>,
    locked: bool,
    left: u32,
}

impl Actor {
    fn draw(&mut self, below: u64) -> u64 {
        self.draws.next_u64() % below
    }

    /// Draws the next operation.
    fn next(&mut self, now: u64, holder: u32) -> Task {
        let lock = self.shared + SHARED_WORDS * 8;
        if self.locked {
            self.doing = Some(Doing::Unlock);
            return Task::Short(Request::Unlock { address: lock, holder });
        }
        match self.draw(12) {
            0..3 => {
                let from = self.draw(PRIVATE_BYTES - 1);
                let bytes = 1 + self.draw((PRIVATE_BYTES - from).min(6000));
                let octet = self.draw(256) as u8;
                self.model[from as usize..(from + bytes) as usize].fill(octet);
                self.doing = Some(Doing::Private { from: from as usize, expected: None });
                Task::Write(self.private + from, vec![octet; bytes as usize])
            }
            3..5 => {
                let from = self.draw(PRIVATE_BYTES - 1);
                let bytes = 1 + self.draw((PRIVATE_BYTES - from).min(6000));
                let expected = self.model[from as usize..(from + bytes) as usize].to_vec();
                let from_usize = from as usize;
                self.doing = Some(Doing::Private { from: from_usize, expected: Some(expected) });
                Task::Short(Request::Read { address: self.private + from, bytes: bytes as u32 })
            }
            5..7 => self.gather(),
            7..11 => self.shared(now),
            _ => {
                self.doing = Some(Doing::Lock);
                Task::Short(Request::Lock { address: lock, holder })
            }
        }
    }

    /// Draws a gather of up to nine places of the client's own, some longer than a datagram.
    fn gather(&mut self) -> Task {
        let (mut places, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..=self.draw(9) {
            let from = self.draw(PRIVATE_BYTES - 1);
            let most = if self.draw(4) == 0 { 4000 } else { 200 };
            let bytes = 1 + self.draw((PRIVATE_BYTES - from).min(most));
            expected.extend_from_slice(&self.model[from as usize..(from + bytes) as usize]);
            places.push((self.private + from, bytes));
        }
        self.doing = Some(Doing::Private { from: 0, expected: Some(expected) });
        Task::Gather(places)
    }

    fn shared(&mut self, now: u64) -> Task {
        let word = self.draw(SHARED_WORDS);
        let address = self.shared + word * 8;
        let operation = match self.draw(5) {
            0 => None,
            1 => Some(RmwOperation::Swap(self.draw(4))),
            2 => {
                let (expected, desired) = (self.draw(4), self.draw(4));
                Some(RmwOperation::CompareAndSwap { expected, desired })
            }
            _ => Some(RmwOperation::FetchAndAdd(1 + self.draw(2))),
        };
        self.doing = Some(Doing::Shared { word, operation, called: now });
        match operation {
            None => Task::Short(Request::Read { address, bytes: 8 }),
            Some(RmwOperation::Swap(new)) if self.draw(2) == 0 => {
                // A plain write of a word is an atomic whose answer is not returned.
                Task::Write(address, new.to_le_bytes().to_vec())
            }
            Some(operation) => Task::Short(Request::Modify { address, operation }),
        }
    }
}

/// One run, and the history of its shared words.
struct Trial {
    network: Network,
    actors: Vec<Actor>,
    history: Vec<Vec<Call>>,
    holder: Option<usize>,
}

impl Trial {
    fn new(seed: u64, clients: usize, faults: Faults, operations: u32) -> Trial {
        let mut network = Network::new(seed, clients, faults);
        let shared = network.shared_region(SHARED_WORDS * 8 + 8);
        let mut actors = Vec::new();
        for client in 0..clients {
            let private = network.region(client, PRIVATE_BYTES);
            actors.push(Actor {
                draws: SplitMix64::seed_from_u64(seed ^ (client as u64 + 1) << 32),
                private,
                shared,
                model: vec![0; PRIVATE_BYTES as usize],
                doing: None,
                locked: false,
                left: operations,
            });
        }
        let history = (0..SHARED_WORDS).map(|_| Vec::new()).collect();
        Trial { network, actors, history, holder: None }
    }

    fn begin(&mut self, client: usize) {
        let now = self.network.now();
        let actor = &mut self.actors[client];
        // A held lock is released, whatever other operations are left.
        if actor.left == 0 && !actor.locked {
            return;
        }
        actor.left = actor.left.saturating_sub(1);
        let task = actor.next(now, client as u32 + 1);
        if matches!(actor.doing, Some(Doing::Unlock)) {
            // From here on another client may get the lock.
            assert_eq!(self.holder.take(), Some(client), "the lock is its");
        }
        self.network.submit(client, task);
    }

    fn end(&mut self, client: usize, outcome: Result<Completed, OperationError>) {
        let now = self.network.now();
        let actor = &mut self.actors[client];
        match actor.doing.take().expect("it was doing something") {
            Doing::Private { from, expected: Some(expected) } => {
                assert_eq!(outcome, Ok(Completed::Bytes(expected)), "from {from}");
            }
            Doing::Private { .. } => assert_eq!(outcome, Ok(Completed::Done)),
            Doing::Shared { word, operation, called } => {
                let saw = match outcome {
                    Ok(Completed::Word(saw)) => Some(saw),
                    Ok(Completed::Bytes(octets)) => {
                        Some(u64::from_le_bytes(octets.try_into().expect("a word was read")))
                    }
                    Ok(Completed::Done) => None,
                    other => panic!("word {word}: {other:?}"),
                };
                let call = Call { called, returned: now, operation, saw };
                self.history[word as usize].push(call);
            }
            Doing::Lock => match outcome {
                Ok(Completed::Done) => {
                    assert_eq!(self.holder.replace(client), None, "two hold the lock");
                    actor.locked = true;
                }
                Err(OperationError::Refused { status: ClioStatus::Held, .. }) => {}
                other => panic!("lock: {other:?}"),
            },
            Doing::Unlock => {
                assert_eq!(outcome, Ok(Completed::Done));
                actor.locked = false;
            }
        }
    }

    fn run(&mut self) {
        (0..self.actors.len()).for_each(|client| self.begin(client));
        while let Some((client, outcome)) = self.network.step() {
            self.end(client, outcome);
            self.begin(client);
        }
        for (client, actor) in self.actors.iter().enumerate() {
            assert!(actor.left == 0 && actor.doing.is_none(), "client {client} is stuck");
        }
        for (word, calls) in self.history.iter().enumerate() {
            assert!(is_linearizable(calls, 0), "word {word} has no order");
        }
    }
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs each seed, and reports the seed that failed.
fn check(faults: Faults, clients: usize, operations: u32, seeds: std::ops::Range<u64>) {
    // A soak test runs more seeds.
    let times = number("CLIO_TIMES").unwrap_or(1);
    let more = seeds.start..seeds.start + (seeds.end - seeds.start) * times;
    let seeds = number("CLIO_SEED").map_or(more, |seed| seed..seed + 1);
    for seed in seeds {
        let result = std::panic::catch_unwind(|| {
            let mut run = Trial::new(seed, clients, faults, operations);
            run.run();
        });
        if let Err(panic) = result {
            eprintln!("CLIO_SEED={seed} cargo test -p ethermem-clio --test virtual_network");
            std::panic::resume_unwind(panic);
        }
    }
}

const CALM: Faults = Faults {
    lost: 0,
    doubled: 0,
    damaged: 0,
    way_min: 2 * US,
    way_max: 3 * US,
    late: 0,
    parted: 0,
    lease: u64::MAX,
    datagram_bytes_max: 1472,
    carries: [usize::MAX; 2],
};

#[test]
fn a_good_network() {
    check(CALM, 3, 300, 0..4);
}

/// The first tries are repeated long before their answers can come, and each answer is to a try
/// that is not the last. The client learns the round trip all the same.
#[test]
fn a_path_much_longer_than_the_first_timeouts_is_used_in_full() {
    for way in [100, 300, 600] {
        let way = way * US;
        let faults = Faults { way_min: way, way_max: way + 1, ..CALM };
        let mut network = Network::new(13, 1, faults);
        let at = network.region(0, 4096);
        let read = || Task::Short(Request::Read { address: at, bytes: 64 });
        (0..16).for_each(|_| network.submit(0, read()));
        let (mut retries, mut began) = (0, 0);
        for done in 0..1_600 {
            if done == 160 {
                (retries, began) = (network.retries(0), network.now());
            }
            let (_, outcome) = network.step().expect("reads are under way");
            assert_eq!(outcome.map(|_| ()), Ok(()));
            network.submit(0, read());
        }
        assert_eq!(network.retries(0), retries, "{way} ns a way");
        let trips = (network.now() - began) as f64 / (2 * way) as f64;
        assert!(trips < 1.2 * 1_440.0 / 16.0, "{way} ns a way: {trips} round trips for 90");
    }
}

/// What waits behind lost requests has an end as well. Before, each of these 4,000 was sent first,
/// through a window of a sixty-fourth of a request, and took its whole time then.
#[test]
fn a_silent_node_fails_all_that_waits_at_once() {
    let mut network = Network::new(17, 1, CALM);
    let at = network.region(0, 4096);
    let read = || Task::Short(Request::Read { address: at, bytes: 64 });
    network.part_for_ever();
    let began = network.now();
    for round in 1..=2 {
        (0..2_000).for_each(|_| network.submit(0, read()));
        for _ in 0..2_000 {
            assert_eq!(network.step(), Some((0, Err(OperationError::Lost))));
        }
        let took = network.now() - began;
        // Some are sent at the end of their wait.
        assert!(took <= 2 * round * GIVE_UP + US, "{took} ns in {round} rounds");
    }
}

/// A node that answers slowly is not silent, however long an operation waits.
#[test]
fn what_waits_for_a_slow_node_is_not_given_up() {
    let way = 600 * US;
    let faults = Faults { way_min: way, way_max: way + 1, ..CALM };
    let mut network = Network::new(19, 1, CALM);
    let at = network.region(0, 4096);
    network.change(faults);
    let read = || Task::Short(Request::Read { address: at, bytes: 64 });
    (0..100_000).for_each(|_| network.submit(0, read()));
    let began = network.now();
    for _ in 0..100_000 {
        assert!(network.step().is_some_and(|(_, outcome)| outcome.is_ok()));
    }
    assert!(network.now() - began > 4 * GIVE_UP, "it was not slow: {}", network.now() - began);
}

#[test]
fn one_to_thirty_percent_lost() {
    for lost in [10, 100, 300] {
        check(Faults { lost, ..CALM }, 3, 200, 10..14);
    }
}

#[test]
fn reordered_by_many_round_trips() {
    check(Faults { way_max: 400 * US, ..CALM }, 4, 200, 20..26);
}

/// Every operation gets its result, whatever is dropped in either direction. Unrelated losses do
/// not disturb the search of the path for long.
#[test]
fn long_datagrams_are_dropped_without_a_word() {
    for carries in [[1472, usize::MAX], [usize::MAX, 1472], [4000, 1300], [1200, 1200]] {
        for lost in [0, 20] {
            let faults = Faults { carries, lost, datagram_bytes_max: 8972, ..CALM };
            check(faults, 2, 200, 60..62);
        }
    }
}

/// The datagram length that the path of the only client is found to carry, while it reads and
/// writes.
fn carried(network: &mut Network, at: u64) -> usize {
    let mut rounds = 0..=u8::MAX;
    while network.searches_path(0) {
        let round = rounds.next().expect("the search ends");
        network.submit(0, Task::Write(at, vec![round; 4000]));
        assert_eq!(network.step(), Some((0, Ok(Completed::Done))));
        network.submit(0, Task::Short(Request::Read { address: at, bytes: 4000 }));
        assert_eq!(network.step(), Some((0, Ok(Completed::Bytes(vec![round; 4000])))));
    }
    network.datagram_bytes(0)
}

#[test]
fn a_path_is_used_for_what_it_carries_and_no_more() {
    let faults = Faults { datagram_bytes_max: 8972, ..CALM };
    let mut network = Network::new(11, 1, faults);
    let at = network.region(0, 4096);
    assert_eq!(carried(&mut network, at), 8972);
    for carries in [[1472, 9000], [9000, 1472], [5000, 2000]] {
        let mut network = Network::new(11, 1, Faults { carries, ..faults });
        let at = network.region(0, 4096);
        let (least, found) = (carries[0].min(carries[1]), carried(&mut network, at));
        assert!(found <= least && least < found + 8, "{found} of {least}");
    }
}

/// A part that was cut before the path was known cannot be done; then the path is known.
#[test]
fn a_path_that_comes_to_carry_less_loses_what_is_under_way_and_no_more() {
    let mut network = Network::new(12, 1, Faults { datagram_bytes_max: 8972, ..CALM });
    let at = network.region(0, 4096);
    assert_eq!(carried(&mut network, at), 8972);
    network.carry([1472; 2]);
    network.submit(0, Task::Write(at, vec![1; 4000]));
    assert_eq!(network.step(), Some((0, Err(OperationError::Lost))));
    let found = carried(&mut network, at);
    assert!((1465..=1472).contains(&found), "{found}");
}

#[test]
fn doubled_and_late() {
    check(Faults { doubled: 500, way_max: 200 * US, late: 50, ..CALM }, 4, 200, 30..36);
}

#[test]
fn damaged() {
    check(Faults { damaged: 200, ..CALM }, 3, 200, 40..44);
}

#[test]
fn parted_for_a_while() {
    check(Faults { parted: 20, lost: 20, ..CALM }, 3, 200, 50..54);
}

#[test]
fn all_at_once() {
    let faults = Faults {
        lost: 150,
        doubled: 200,
        damaged: 50,
        way_min: US,
        way_max: 300 * US,
        late: 10,
        parted: 5,
        ..CALM
    };
    check(faults, 5, 250, 60..72);
}

#[test]
fn a_node_that_starts_anew_is_an_error_and_never_zeros() {
    let mut network = Network::new(7, 1, Faults { lost: 100, ..CALM });
    let at = network.region(0, 4096);
    network.submit(0, Task::Write(at, vec![7; 100]));
    assert_eq!(network.step(), Some((0, Ok(Completed::Done))));
    network.restart_node();
    network.submit(0, Task::Short(Request::Read { address: at, bytes: 100 }));
    let (_, outcome) = network.step().expect("it ends");
    assert!(matches!(outcome, Err(OperationError::Restarted(_))), "{outcome:?}");
    // The process is gone with the node; a new process works as before.
    network.submit(0, Task::Short(Request::Read { address: at, bytes: 100 }));
    let (_, outcome) = network.step().expect("it ends");
    let gone = ClioStatus::NoSuchProcess;
    assert!(matches!(outcome, Err(OperationError::Refused { status, .. }) if status == gone));
    network.new_process(0);
    let again = network.region(0, 4096);
    network.submit(0, Task::Short(Request::Read { address: again, bytes: 4 }));
    assert_eq!(network.step(), Some((0, Ok(Completed::Bytes(vec![0; 4])))));
}

#[test]
fn a_node_that_is_gone_is_an_error_in_time() {
    let mut network = Network::new(8, 1, CALM);
    let at = network.region(0, 4096);
    network.part_for_ever();
    network.submit(0, Task::Write(at, vec![7; 100]));
    let before = network.now();
    assert_eq!(network.step(), Some((0, Err(OperationError::Lost))));
    let took = network.now() - before;
    assert!((network::GIVE_UP..3 * network::GIVE_UP).contains(&took), "{took} ns");
}

#[test]
fn a_dead_client_leaves_its_lock_to_who_comes_after_its_lease() {
    let mut network = Network::new(9, 2, Faults { lost: 100, lease: 100 * 1000 * US, ..CALM });
    let lock = network.shared_region(8);
    network.submit(1, Task::Short(Request::Lock { address: lock, holder: 5 }));
    assert_eq!(network.step(), Some((1, Ok(Completed::Done))));
    network.replace_client(1);
    let mut refused = 0;
    loop {
        network.submit(0, Task::Short(Request::Lock { address: lock, holder: 6 }));
        match network.step() {
            Some((0, Ok(Completed::OwnerDied))) => break,
            Some((0, Err(OperationError::Refused { status: ClioStatus::Held, .. }))) => {
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 100, "the lease was respected: {refused}");
}

#[test]
fn an_operation_of_no_bytes_is_refused_and_holds_nothing_up() {
    let mut network = Network::new(10, 1, CALM);
    let at = network.region(0, 4096);
    let empty = Some((0, Err(OperationError::Length(0))));
    network.submit(0, Task::Write(at, Vec::new()));
    assert_eq!(network.step(), empty);
    network.submit(0, Task::Short(Request::Read { address: at, bytes: 0 }));
    assert_eq!(network.step(), empty);
    for places in [vec![], vec![(at, 8), (at, 0)], vec![(at, u64::MAX), (at, 8)]] {
        network.submit(0, Task::Gather(places));
        assert_eq!(network.step(), empty);
    }
    network.submit(0, Task::Write(at, vec![3]));
    assert_eq!(network.step(), Some((0, Ok(Completed::Done))));
}

/// The refused byte is counted through all places, and later places are not requested any more.
#[test]
fn a_gather_says_where_it_was_refused() {
    let mut network = Network::new(11, 1, CALM);
    let at = network.region(0, 4096);
    network.submit(0, Task::Gather(vec![(at, 100), (at + 8192, 3000), (at, 5)]));
    let refused = OperationError::Refused { status: ClioStatus::Unmapped, detail: 0, at: 100 };
    assert_eq!(network.step(), Some((0, Err(refused))));
    network.submit(0, Task::Gather(vec![(at, 100), (at + 8, 3000)]));
    assert_eq!(network.step(), Some((0, Ok(Completed::Bytes(vec![0; 3100])))));
}
