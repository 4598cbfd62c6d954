//! Writes whose callers lend their data: several at once, each sent in its caller's turns alone
//! until it is copied, beside operations of others; and what happens when a caller never comes
//! again. The network loses, copies and reorders datagrams by a seed.

#[path = "support/pages.rs"]
mod pages;

use ethermem_clio::node::Node;
use ethermem_clio::transport::{
    Client, Completed, Event, Loan, OperationError, OperationId, PathId,
};
use ethermem_units::Ns;
use ethermem_wire::clio::{Epoch, Permissions, ProcessId, Protection, Request};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use pages::{MS, PAGE};

const PAGES: u64 = 256;
const DATAGRAM: usize = 10_000;
const GIVE_UP: u64 = 2_000 * MS;
/// Each caller's share of the memory.
const SHARE: u64 = 32 * PAGE;

/// One that waits for its write. It may go away, for its turns of a while.
struct Caller {
    write: OperationId,
    data: Vec<u8>,
    copied: u64,
}

impl Caller {
    fn loan(&self) -> Loan<'_> {
        Loan { operation: self.write, data: &self.data }
    }
}

struct World {
    client: Client,
    node: Node<Vec<u8>>,
    now: u64,
    random: SplitMix64,
    answers: Vec<Vec<u8>>,
    /// Of so many datagrams and answers one is lost and one comes twice; 0 for none.
    every: u64,
    process: ProcessId,
    at: u64,
}

impl World {
    fn new(protection: Protection, window: u32, seed: u64) -> World {
        let mut world = World {
            client: pages::client(protection, DATAGRAM, window, Ns(GIVE_UP)),
            node: pages::node(protection, Epoch(1), PAGES),
            now: 1,
            random: SplitMix64::seed_from_u64(seed),
            answers: Vec::new(),
            every: 0,
            process: ProcessId(0),
            at: 0,
        };
        let Completed::Created(process) = world.short(Request::CreateProcess) else {
            panic!("a process is made")
        };
        world.process = process;
        let permissions = Permissions::READ_WRITE;
        let allocate = Request::Allocate { bytes: 4 * SHARE, permissions, at: 0 };
        let Completed::Address(at) = world.short(allocate) else { panic!("it has the memory") };
        world.at = at;
        world
    }

    fn below(&mut self, count: u64) -> u64 {
        self.random.next_u64() % count
    }

    fn lend(&mut self, share: u64, data: Vec<u8>) -> Caller {
        let address = self.at + share * SHARE;
        let bytes = data.len() as u64;
        let write = self.client.submit_write_lent(self.process, address, bytes);
        Caller { write, data, copied: 0 }
    }

    /// A turn of a caller, or of another: sends what there is. Returns the octets sent.
    fn turn(&mut self, caller: Option<&Caller>) -> usize {
        let mut datagram = vec![0; 65_507];
        let loan = caller.map(Caller::loan);
        if let Some(loan) = loan {
            self.client.lend(loan.operation);
        }
        let mut sent = 0;
        loop {
            let now = Ns(self.now);
            let client = &mut self.client;
            let bytes = if self.random.next_u64().is_multiple_of(2) {
                client.poll_transmit_lent(now, PathId::ONLY, &mut datagram, loan)
            } else {
                let to = &mut datagram;
                let (bytes, rest) = client.poll_transmit_parts(now, PathId::ONLY, to, loan);
                datagram[bytes..bytes + rest.len()].copy_from_slice(rest);
                bytes + rest.len()
            };
            if bytes == 0 {
                return sent;
            }
            sent += bytes;
            for _ in 0..self.copies() {
                self.arrive(&datagram[..bytes]);
            }
        }
    }

    fn copies(&mut self) -> u64 {
        if self.every == 0 { 1 } else { self.below(self.every).min(2) }
    }

    fn arrive(&mut self, datagram: &[u8]) {
        let now = Ns(self.now);
        self.node.tend(now, 1 << 20);
        let mut answer = vec![0; 65_507];
        let bytes = self.node.on_datagram(now, datagram, &mut answer);
        answer.truncate(bytes);
        for _ in 0..self.copies() {
            self.answers.push(answer.clone());
        }
    }

    fn hear(&mut self) -> Vec<Event> {
        self.now += 1000;
        while !self.answers.is_empty() {
            let which = self.below(self.answers.len() as u64) as usize;
            let answer = self.answers.swap_remove(which);
            self.client.on_datagram(Ns(self.now), &answer);
        }
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    /// A turn, what comes of it, and the time of the next one.
    fn step(&mut self, caller: Option<&Caller>) -> Vec<Event> {
        self.turn(caller);
        let ended = self.hear();
        self.turn(caller);
        if self.answers.is_empty() {
            self.now = self.now.max(self.client.next_wake().map_or(0, |wake| wake.0));
        }
        ended
    }

    fn short(&mut self, request: Request<'static>) -> Completed {
        let operation = self.client.submit(self.process, request);
        self.finish(operation)
    }

    /// Turns of others until the operation has ended.
    fn finish(&mut self, operation: OperationId) -> Completed {
        for _ in 0..10_000 {
            let event = self.step(None).into_iter().find(|it| it.operation == operation);
            if let Some(event) = event {
                return event.outcome.expect("the network is not that bad");
            }
        }
        panic!("it has no end");
    }

    fn memory(&mut self, share: u64, bytes: u64) -> Vec<u8> {
        let address = self.at + share * SHARE;
        match self.short(Request::Read { address, bytes: bytes as u32 }) {
            Completed::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }
}

fn octets(random: &mut SplitMix64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|_| random.next_u64() as u8).collect()
}

/// Up to three callers and one that submits whole operations take turns at random. A caller may be
/// away: after it has copied all of its data, for as long as it likes.
fn run(protection: Protection, window: u32, seed: u64) {
    let mut world = World::new(protection, window, seed);
    for round in 0..6 {
        world.every = 5;
        let mut expected = Vec::new();
        let mut callers: Vec<Option<Caller>> = Vec::new();
        for share in 0..3 {
            let bytes = 1 + world.below(SHARE);
            let data = octets(&mut world.random, bytes);
            expected.push(data.clone());
            callers.push(Some(world.lend(share, data)));
        }
        let bytes = 1 + world.below(SHARE);
        let whole = octets(&mut world.random, bytes);
        let address = world.at + 3 * SHARE;
        expected.push(whole.clone());
        let mut left = vec![world.client.submit_write(world.process, address, whole)];
        let mut turns = 0;
        while !left.is_empty() || callers.iter().any(Option::is_some) {
            turns += 1;
            assert!(turns < 100_000, "seed {seed}, round {round}: a write has no end");
            let which = world.below(5) as usize;
            let mut caller = callers.get_mut(which).and_then(Option::take);
            if let Some(caller) = &mut caller
                && world.below(8) == 0
            {
                caller.copied += world.below(SHARE / 2);
                world.client.copy_lent(caller.loan(), caller.copied);
            }
            world.turn(caller.as_ref());
            if let Some(caller) = caller {
                callers[which] = Some(caller);
            }
            for event in world.hear() {
                assert_eq!(event.outcome, Ok(Completed::Done), "seed {seed}, round {round}");
                left.retain(|it| *it != event.operation);
                for caller in &mut callers {
                    caller.take_if(|caller| caller.write == event.operation);
                }
            }
            // All callers that are left have gone away, with their data copied: others go on.
            if world.below(64) == 0 {
                for caller in callers.iter_mut().filter_map(Option::take) {
                    world.client.copy_lent(caller.loan(), u64::MAX);
                    world.turn(Some(&caller));
                    left.push(caller.write);
                }
            }
            if world.answers.is_empty() && world.below(4) == 0 {
                // A caller that is there looks again soon.
                let wake = world.client.next_wake().map_or(0, |wake| wake.0);
                world.now = world.now.max(wake.min(world.now + MS));
            }
        }
        world.every = 0;
        for (share, data) in (0..).zip(expected) {
            let found = world.memory(share, data.len() as u64);
            assert!(found == data, "seed {seed}, round {round}, share {share}");
        }
    }
}

#[test]
fn the_memory_has_what_callers_have_lent_whoever_sent_it() {
    for seed in 0..40 {
        run(Protection::Carrier, [64, 16, 3, 1][seed as usize % 4], seed);
    }
}

#[test]
fn with_a_crc_too() {
    for seed in 0..10 {
        run(Protection::Crc, 16, 1000 + seed);
    }
}

/// What a caller lends is sent in its turns alone; others neither wait for it nor wake up for it.
#[test]
fn a_write_whose_caller_is_away_keeps_no_other_from_going_on() {
    let mut world = World::new(Protection::Carrier, 4, 1);
    // What was done before is acknowledged.
    world.now += MS;
    world.turn(None);
    let data = octets(&mut world.random, SHARE);
    let caller = world.lend(0, data.clone());
    assert_eq!(world.turn(None), 0, "there is nothing that others can send");
    let due = world.client.next_wake().map(|wake| wake.0);
    assert!(due.is_none_or(|due| due > world.now), "{due:?}");
    assert_eq!(world.memory(1, SHARE), vec![0; SHARE as usize], "others go on");
    // It has sent a window; its answers come in another's turn, which can send no more.
    assert!(world.turn(Some(&caller)) > 0);
    assert_eq!(world.client.under_way(), 4);
    assert_eq!((world.hear(), world.client.under_way()), (vec![], 0));
    assert_eq!(world.turn(None), 0);
    assert!(world.client.lend(caller.write), "it has something to send now");
    assert!(!world.client.lend(caller.write), "that was said");
    assert!(world.turn(Some(&caller)) > 0);
    assert!(world.client.under_way() > 0);
    world.hear();
    // A copy of what is left lets others send it.
    world.client.copy_lent(caller.loan(), u64::MAX);
    world.turn(Some(&caller));
    assert_eq!(world.finish(caller.write), Completed::Done);
    assert!(world.memory(0, SHARE) == data);
    assert!(!world.client.lend(caller.write), "it has ended");
    world.client.copy_lent(caller.loan(), u64::MAX);
}

/// A retry is due in its caller's next turn, and in no turn of others.
#[test]
fn a_lost_part_is_sent_again_by_its_caller() {
    let mut world = World::new(Protection::Carrier, 4, 2);
    let data = octets(&mut world.random, 20_000);
    let caller = world.lend(0, data.clone());
    world.turn(Some(&caller));
    world.answers.clear();
    let parts = world.client.under_way();
    assert!(parts > 1);
    let due = world.client.next_wake().expect("a retry").0;
    world.now = due;
    assert_eq!(world.turn(None), 0);
    let wake = world.client.next_wake().expect("the time is over some day").0;
    assert!(wake > due + GIVE_UP / 2, "others wake up only to give it up: {wake}");
    assert!(world.client.lend(caller.write), "a retry is due");
    assert!(world.turn(Some(&caller)) > 20_000);
    assert_eq!(world.client.counters().retries, parts as u64);
    assert_eq!(world.finish(caller.write), Completed::Done, "the node has done it");
    assert!(world.memory(0, 20_000) == data);
}

/// A caller that never comes again, and has copied nothing: its requests are given up in time, and
/// others have the whole window again.
#[test]
fn a_write_without_its_caller_is_given_up() {
    let mut world = World::new(Protection::Carrier, 4, 3);
    let data = octets(&mut world.random, 20_000);
    let caller = world.lend(0, data);
    world.turn(Some(&caller));
    world.answers.clear();
    assert_eq!(world.client.under_way(), 3);
    let address = world.at + SHARE;
    let read = world.client.submit(world.process, Request::Read { address, bytes: 64 });
    let began = world.now;
    let mut ended = Vec::new();
    while ended.len() < 2 {
        ended.append(&mut world.step(None));
        assert!(world.now < began + 2 * GIVE_UP, "{ended:?}");
    }
    let outcome = |of| ended.iter().find(|it| it.operation == of).map(|it| it.outcome.clone());
    assert_eq!(outcome(caller.write), Some(Err(OperationError::Lost)));
    assert_eq!(outcome(read), Some(Ok(Completed::Bytes(vec![0; 64]))));
    assert_eq!(world.client.under_way(), 0);
}

/// A refusal in the middle ends the write once, and its rest is not sent.
#[test]
fn a_refused_part_ends_a_lent_write() {
    let mut world = World::new(Protection::Carrier, 64, 4);
    // It begins in the region and leaves it.
    let mut caller = world.lend(3, octets(&mut SplitMix64::seed_from_u64(9), 100 * PAGE));
    let mut ended = Vec::new();
    for turn in 0..1000 {
        ended.append(&mut world.step((turn % 2 == 0).then_some(&caller)));
    }
    assert_eq!(ended.len(), 1);
    assert!(matches!(ended[0].outcome, Err(OperationError::Refused { at, .. }) if at > 0));
    assert_eq!(world.client.under_way(), 0);
    assert!(!world.client.lend(caller.write));
    assert_eq!(world.turn(Some(&caller)), 0);
    // Another write in its place is not taken for it.
    let next = world.lend(0, octets(&mut SplitMix64::seed_from_u64(10), 5000));
    caller.data.fill(1);
    assert!(!world.client.lend(caller.write));
    world.turn(Some(&caller));
    assert_eq!(world.hear(), vec![]);
    world.turn(Some(&next));
    assert_eq!(world.finish(next.write), Completed::Done);
    assert!(world.memory(0, 5000) == next.data);
}

/// Lengths at limits: of a part, of a copy, and no bytes at all.
#[test]
fn lengths_at_their_limits_are_written_whole() {
    let mut world = World::new(Protection::Carrier, 8, 5);
    let empty = world.lend(0, Vec::new());
    let ended = world.hear();
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].operation, ended[0].outcome.is_err()), (empty.write, true));
    // The longest part of a datagram is near this length.
    for bytes in (1..=3).chain(DATAGRAM as u64 - 130..DATAGRAM as u64).chain([SHARE - 1, SHARE]) {
        let data = octets(&mut world.random, bytes);
        let caller = world.lend(0, data.clone());
        let copied = world.below(bytes + 1);
        let mut is_done = false;
        for turn in 0..100 {
            if turn == 1 {
                world.client.copy_lent(caller.loan(), copied);
            }
            world.turn(Some(&caller));
            is_done |= world.hear().iter().any(|event| event.outcome == Ok(Completed::Done));
        }
        assert!(is_done, "{bytes} B");
        assert!(world.memory(0, bytes) == data, "{bytes} B");
    }
}

/// A node that is started anew ends the write, whether or not its caller is there.
#[test]
fn a_restart_ends_a_lent_write() {
    for is_passed in [false, true] {
        let mut world = World::new(Protection::Carrier, 2, 6);
        let data = octets(&mut world.random, SHARE);
        let caller = world.lend(0, data);
        world.turn(Some(&caller));
        world.hear();
        if is_passed {
            world.turn(None);
        }
        world.node = pages::node(Protection::Carrier, Epoch(2), PAGES);
        let mut ended = Vec::new();
        for _ in 0..1000 {
            ended.append(&mut world.step(Some(&caller)));
        }
        let restarted = Err(OperationError::Restarted(Epoch(2)));
        assert_eq!(ended, [Event { operation: caller.write, outcome: restarted }]);
    }
}
