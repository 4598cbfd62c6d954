//! Reads into a caller's buffer, of which some answers come while the buffer is not at hand, from a
//! node that leaves their bytes in its memory; writes from a caller's memory, of which some turns
//! are others'; under loss, duplicates and any order.

#[path = "support/pages.rs"]
mod pages;

use ethermem_clio::node::{Node, WRITE_FRONT_BYTES};
use ethermem_clio::transport::{
    Client, Completed, FRONT_BYTES, Landing, Loan, OperationId, PathId,
};
use ethermem_units::Ns;
use ethermem_wire::clio::{Epoch, Permissions, ProcessId, Protection, Request};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use pages::{MS, PAGE};

const DATAGRAM: usize = 30_000;
const WINDOW: u32 = 16;
const GIVE_UP: Ns = Ns(60_000 * MS);
const REGION: u64 = 40 * PAGE;

struct World {
    client: Client,
    node: Node<Vec<u8>>,
    now: u64,
    random: SplitMix64,
    answers: Vec<Vec<u8>>,
    /// Answers with bytes that stayed in memory, and answers received where they belong.
    referred: u64,
    landed: u64,
    /// Bytes of writes that stayed in their operations.
    written: u64,
    /// Parts of writes' data that were received in the node's memory.
    received: u64,
    late: Vec<Vec<u8>>,
    /// A write whose caller lends its data, and up to where they were copied.
    lent: Option<(OperationId, Vec<u8>, u64)>,
    /// Turns of others while the write was not copied.
    passed: u64,
}

impl World {
    fn new(protection: Protection, seed: u64) -> World {
        let client = pages::client(protection, DATAGRAM, WINDOW, GIVE_UP);
        let node = pages::node(protection, Epoch(1), 64);
        let random = SplitMix64::seed_from_u64(seed);
        World {
            client,
            node,
            now: 1,
            random,
            answers: Vec::new(),
            referred: 0,
            landed: 0,
            written: 0,
            received: 0,
            late: Vec::new(),
            lent: None,
            passed: 0,
        }
    }

    fn below(&mut self, count: u64) -> u64 {
        self.random.next_u64() % count
    }

    /// Sends what there is; of `every` datagrams one is lost, unless that is 0.
    fn send(&mut self, every: u64) {
        let mut datagram = vec![0; 65_507];
        let is_callers = self.lend();
        loop {
            let now = Ns(self.now);
            let lent = self.lent.as_ref().filter(|_| is_callers);
            let loan = lent.map(|(operation, data, _)| Loan { operation: *operation, data });
            let client = &mut self.client;
            let (bytes, rest) = client.poll_transmit_parts(now, PathId::ONLY, &mut datagram, loan);
            if bytes == 0 {
                return;
            }
            let rest = rest.to_vec();
            datagram[bytes..bytes + rest.len()].copy_from_slice(&rest);
            self.written += rest.len() as u64;
            let bytes = bytes + rest.len();
            let datagram = &datagram[..bytes];
            let answer = self.arrive(datagram);
            // A copy of an earlier datagram has no effect.
            if every > 0 && !self.late.is_empty() {
                let which = self.below(self.late.len() as u64) as usize;
                let late = self.late[which].clone();
                self.arrive(&late);
            }
            self.late.push(datagram.to_vec());
            self.late.drain(..self.late.len().saturating_sub(8));
            let copies = if every > 0 { self.below(every) } else { 1 };
            (0..copies.min(2)).for_each(|_| self.answers.push(answer.clone()));
        }
    }

    /// Draws whose turn it is: that of a lent write's caller, or another one. The caller may copy
    /// more.
    fn lend(&mut self) -> bool {
        let Some((operation, data, copied)) = self.lent.take() else { return false };
        let is_callers = self.below(3) > 0;
        let mut copied = copied;
        if is_callers {
            if self.below(16) == 0 {
                copied += self.below(data.len() as u64);
                self.client.copy_lent(Loan { operation, data: &data }, copied);
            }
            self.client.lend(operation);
        } else if copied < data.len() as u64 {
            self.passed += 1;
        }
        self.lent = Some((operation, data, copied));
        is_callers
    }

    /// Delivers a datagram to the node, in parts if it is a long write.
    fn arrive(&mut self, datagram: &[u8]) -> Vec<u8> {
        let now = Ns(self.now);
        self.node.tend(now, 1 << 20);
        let mut answer = vec![0xee; 65_507];
        let in_parts = datagram.len() > 8192 && self.below(4) > 0;
        if in_parts && let Some((front, data)) = datagram.split_first_chunk() {
            let landing = self.node.answer_front(now, front, datagram.len(), &mut answer);
            if let Some(landing) = landing {
                let mut rest = data;
                let place = landing.place.as_ref();
                for part in place.map(|it| self.node.memory_for(it)).unwrap_or_default() {
                    let (here, behind) = rest.split_at(part.len());
                    part.copy_from_slice(here);
                    rest = behind;
                    self.received += 1;
                }
                assert!(place.is_none() || rest.is_empty(), "{} B are left", rest.len());
                answer.truncate(landing.bytes);
                return answer;
            }
        }
        let answered = self.node.answer(now, datagram, &mut answer);
        answer.truncate(answered.bytes);
        if let Some(extent) = &answered.outside {
            self.referred += 1;
            self.node.memory().slices(extent, |part| answer.extend_from_slice(part));
        }
        answer
    }

    /// Delivers one answer: without the buffer, with it, or as a carrier that receives in place.
    fn deliver(&mut self, read: OperationId, to: &mut [u8]) {
        let which = self.below(self.answers.len() as u64) as usize;
        let answer = self.answers.swap_remove(which);
        let now = Ns(self.now);
        let mut landing = Landing { operation: read, to };
        match self.below(3) {
            0 => return self.client.on_datagram(now, &answer),
            1 => {}
            _ => {
                if let Some(place) = self.client.next_landing(read) {
                    // Whatever it is, the carrier puts it there.
                    let (front, rest) = answer.split_at(FRONT_BYTES.min(answer.len()));
                    let bytes = place.len().min(rest.len());
                    let to = &mut landing.to[place.clone()];
                    to[..bytes].copy_from_slice(&rest[..bytes]);
                    if self.client.awaits(read, front, answer.len()) == Some(place) {
                        self.landed += 1;
                        return self.client.on_landed(now, PathId::ONLY, front, to);
                    }
                }
            }
        }
        self.client.on_datagram_into(now, PathId::ONLY, &answer, Some(&mut landing));
    }

    fn finish(&mut self, operation: OperationId, to: &mut [u8], every: u64) -> Completed {
        loop {
            self.send(every);
            self.now += 1000;
            while !self.answers.is_empty() {
                self.deliver(operation, to);
            }
            if let Some(event) = self.client.poll_event() {
                assert_eq!(event.operation, operation);
                self.lent = None;
                return event.outcome.expect("the network is not that bad");
            }
            self.send(every);
            if self.answers.is_empty() {
                // A write that waits for its caller alone needs no timer: its turn comes.
                let wake = self.client.next_wake();
                assert!(wake.is_some() || self.lent.is_some(), "an operation is in progress");
                let most = if self.lent.is_some() { self.now + MS } else { u64::MAX };
                self.now = self.now.max(wake.map_or(0, |wake| wake.0).min(most));
            }
        }
    }

    fn short(&mut self, process: ProcessId, request: Request<'static>) -> Completed {
        let operation = self.client.submit(process, request);
        self.finish(operation, &mut [], 0)
    }

    fn process(&mut self) -> ProcessId {
        match self.short(ProcessId(0), Request::CreateProcess) {
            Completed::Created(process) => process,
            other => panic!("{other:?}"),
        }
    }

    fn region(&mut self, process: ProcessId, bytes: u64, permissions: Permissions) -> u64 {
        match self.short(process, Request::Allocate { bytes, permissions, at: 0 }) {
            Completed::Address(at) => at,
            other => panic!("{other:?}"),
        }
    }
}

/// Writes and reads; returns what stayed or was received in place: answers that the node sent, and
/// that the client received, bytes of writes that the client sent, and parts that the node
/// received.
fn run(protection: Protection, seed: u64) -> [u64; 4] {
    let mut world = World::new(protection, seed);
    let process = world.process();
    let at = world.region(process, REGION, Permissions::READ_WRITE);
    let mut content: Vec<u8> = (0..REGION).map(|_| world.random.next_u64() as u8).collect();
    let write = world.client.submit_write(process, at, content.clone());
    assert_eq!(world.finish(write, &mut [], 4), Completed::Done);
    for _ in 0..30 {
        let from = world.below(REGION - 1);
        let bytes = 1 + world.below(REGION - from);
        let mut to = vec![0xaa; bytes as usize];
        let read = world.client.submit_read_into(process, at + from, bytes as u32);
        let Completed::Landed(apart) = world.finish(read, &mut to, 6) else {
            panic!("a read into a buffer ends otherwise")
        };
        for (offset, part) in apart {
            to[offset as usize..][..part.len()].copy_from_slice(&part);
        }
        let expected = &content[from as usize..][..bytes as usize];
        assert!(to == expected, "{bytes} B at {from} of seed {seed}");
        let new = &mut content[from as usize..][..bytes as usize];
        new.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(seed as u8));
        let new = new.to_vec();
        let write = if world.below(2) == 0 {
            world.client.submit_write(process, at + from, new)
        } else {
            let write = world.client.submit_write_lent(process, at + from, bytes);
            world.lent = Some((write, new, 0));
            write
        };
        assert_eq!(world.finish(write, &mut [], 4), Completed::Done);
    }
    assert!(world.passed > 3, "{} turns of others", world.passed);
    [world.referred, world.landed, world.written, world.received]
}

#[test]
fn a_buffer_has_the_memorys_bytes_wherever_they_were_received() {
    let mut all = [0; 4];
    for seed in 0..40 {
        let one = run(Protection::Carrier, seed);
        all.iter_mut().zip(one).for_each(|(sum, more)| *sum += more);
    }
    let [referred, landed, written, received] = all;
    assert!(referred > 1000 && landed > 100, "{all:?}");
    assert!(written >= 40 * REGION && received > 1000, "{all:?}");
}

/// A CRC covers all bytes of a datagram, so none stay apart, and none are used before the check.
#[test]
fn a_datagram_with_a_crc_is_whole() {
    for seed in 0..10 {
        assert_eq!(run(Protection::Crc, seed), [0; 4], "seed {seed}");
    }
}

#[test]
fn a_read_of_nothing_is_refused() {
    let mut client = pages::client(Protection::Carrier, DATAGRAM, WINDOW, GIVE_UP);
    let read = client.submit_read_into(ProcessId(1), 64, 0);
    let event = client.poll_event().unwrap();
    assert_eq!(event.operation, read);
    assert!(event.outcome.is_err());
}

/// What is received in place is what the read awaits: not another operation's answer, a second
/// copy, or a datagram of another length.
#[test]
fn only_the_bytes_that_a_read_awaits_are_received_in_place() {
    let mut world = World::new(Protection::Carrier, 0);
    let process = world.process();
    let at = world.region(process, REGION, Permissions::READ_WRITE);
    let bytes = 20_000;
    let read = world.client.submit_read_into(process, at, bytes);
    let other = world.client.submit_read_into(process, at, bytes);
    world.send(0);
    assert_eq!(world.answers.len(), 2, "each has a datagram of its own");
    let answer = world.answers[0].clone();
    let front = &answer[..FRONT_BYTES];
    let place = Some(0..bytes as usize);
    assert_eq!(world.client.next_landing(read), place);
    assert_eq!(world.client.next_landing(other), None, "it is not the oldest");
    assert_eq!(world.client.awaits(read, front, answer.len()), place);
    assert_eq!(world.client.awaits(other, front, answer.len()), None);
    for wrong in [FRONT_BYTES, answer.len() - 1, answer.len() + 1] {
        assert_eq!(world.client.awaits(read, front, wrong), None, "{wrong}");
    }
    assert_eq!(world.client.awaits(read, &front[..FRONT_BYTES - 1], answer.len()), None);
    for bit in 0..FRONT_BYTES * 8 {
        let mut changed = front.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let awaited = world.client.awaits(read, &changed, answer.len());
        assert!(awaited.is_none() || awaited == place, "bit {bit}");
    }
    world.client.on_landed(Ns(world.now), PathId::ONLY, front, &answer[FRONT_BYTES..]);
    assert_eq!(world.client.poll_event().unwrap().operation, read);
    assert_eq!(world.client.awaits(read, front, answer.len()), None, "a second copy");
    let ignored = world.client.counters().ignored;
    world.client.on_landed(Ns(world.now), PathId::ONLY, &front[..10], &answer[FRONT_BYTES..]);
    assert_eq!(world.client.counters().ignored, ignored + 1);
}

/// A write that the node refuses, or has done before, has no place for its data.
#[test]
fn only_a_new_write_has_a_place_for_its_data() {
    let mut world = World::new(Protection::Carrier, 0);
    let process = world.process();
    let [at, fixed] = [Permissions::READ_WRITE, Permissions::READ]
        .map(|permissions| world.region(process, REGION / 4, permissions));
    let mut datagram = vec![0; 65_507];
    let mut begin = |world: &mut World, address: u64| {
        world.client.submit_write(process, address, vec![7; 20_000]);
        world.client.poll_transmit(Ns(world.now), &mut datagram);
        let bytes = 20_000 + WRITE_FRONT_BYTES;
        datagram[..bytes].to_vec()
    };
    let mut answer = vec![0; 65_507];
    let mut land = |world: &mut World, datagram: &[u8]| {
        let front = datagram.first_chunk().expect("it is long");
        let now = Ns(world.now);
        let landing = world.node.answer_front(now, front, datagram.len(), &mut answer)?;
        assert!(landing.bytes > 0, "each is answered");
        Some(landing.place.is_some())
    };
    world.node.tend(Ns(world.now), 1 << 20);
    let write = begin(&mut world, at);
    for wrong in [write.len() - 1, write.len() + 1] {
        let mut other = write.clone();
        other.resize(wrong, 0);
        assert_eq!(land(&mut world, &other), None, "{wrong}");
    }
    assert_eq!(land(&mut world, &write), Some(true));
    assert_eq!(land(&mut world, &write), Some(false), "it was done");
    let refused = begin(&mut world, fixed);
    assert_eq!(land(&mut world, &refused), Some(false), "it may not be written");
    let unmapped = begin(&mut world, 1 << 40);
    assert_eq!(land(&mut world, &unmapped), Some(false));
    let late = begin(&mut world, at);
    world.now += 10_000 * MS;
    assert_eq!(land(&mut world, &late), Some(false), "its time is over");
}
