//! The clients, each in a process of its own. Every action of a client, and its result, is a line
//! of the journal, written at once. For a killed client, the journal therefore shows which
//! operations were acknowledged and which were in flight.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use ethermem::{Address, Error, Permissions, Pool, ProcessId, Region, Thread};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::{ADDED, COPIES, LOCK, PAGE_BYTES, SHARED_BYTES, SLOT_BYTES, SLOTS, SWAPPED, slot_at};

const RW: Permissions = Permissions::READ_WRITE;
/// Memory in bytes that a worker takes at the node: there is no room for two workers.
const HOARD_BYTES: u64 = 5 << 19;
/// The part of it that is written and read again, in pieces that take several datagrams.
const OWN_BYTES: usize = 64 << 10;
const PART_BYTES_MAX: u64 = 20_000;
/// How long a dead client's memory may be missing. A lease is far shorter.
const PATIENCE: Duration = Duration::from_secs(90);

/// Writes a line of the journal in one call, so that lines of several processes stay intact.
fn say(name: &str, what: &str) {
    let line = format!("@{name} {what}\n");
    std::io::stdout().lock().write_all(line.as_bytes()).expect("who started it reads it");
}

/// One client: the *keeper*, which owns the shared region, or a *worker*, which is killed.
pub(super) struct Client {
    name: String,
    /// Number of the worker, from 1; 0 is the keeper.
    writer: u64,
    pool: Pool,
    random: Xoshiro256PlusPlus,
    orders: Receiver<String>,
    sequence: u64,
}

/// State of a client in one life of the node.
struct Post {
    thread: Thread,
    shared: Region,
    own: Region,
    /// Content of `own`.
    bytes: Vec<u8>,
}

impl Client {
    pub(super) fn new(writer: u64, seed: u64, url: &str) -> Client {
        let (order, orders) = channel();
        std::thread::spawn(move || {
            // Lines are read as they arrive.
            let (mut line, mut octet) = (String::new(), [0]);
            while std::io::stdin().read(&mut octet).is_ok_and(|read| read == 1) {
                match octet[0] {
                    b'\n' => order.send(std::mem::take(&mut line)).expect("it lives"),
                    letter => line.push(char::from(letter)),
                }
            }
            // The parent has ended.
            std::process::exit(0);
        });
        Client {
            name: if writer == 0 { "keeper".to_owned() } else { format!("worker{writer}") },
            writer,
            pool: Pool::open(url).expect("the node is there"),
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ writer),
            orders,
            sequence: 0,
        }
    }

    /// Runs until it is killed: as long as a node lives, and then with the next one.
    pub(super) fn run(mut self) {
        loop {
            let mut shared = None;
            let Err(error) = self.live(&mut shared) else { return };
            self.say(&format!("error {}", label(&error)));
            if let Some(shared) = shared {
                self.see_it_gone(&shared);
            }
        }
    }

    fn say(&self, what: &str) {
        say(&self.name, what);
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// Accesses regions of a dead node: each gives an error, and never bytes.
    fn see_it_gone(&self, shared: &Region) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match shared.read(0, 64).wait() {
                Err(error) if error.is_uncertain() => {}
                Err(Error::Restarted { .. }) => {
                    let write = shared.write(0, &[1; 8]).wait();
                    let add = shared.thread().fetch_add(shared.at(0), 1).wait().map(drop);
                    let alloc = shared.thread().alloc(64, RW).wait().map(drop);
                    for asked in [write, add, alloc] {
                        if !matches!(asked, Err(Error::Restarted { .. })) {
                            self.say(&format!("wrong of a node that died: {asked:?}"));
                        }
                    }
                    return self.say("gone");
                }
                other => return self.say(&format!("wrong of a node that died: {other:?}")),
            }
        }
        self.say("wrong the node is not back");
    }

    fn live(&mut self, known: &mut Option<Region>) -> Result<(), Error> {
        let thread = self.pool.thread()?;
        let process = thread.process().0;
        let (shared, own_bytes) = if self.writer == 0 {
            let shared = thread.alloc(SHARED_BYTES, RW).wait()?;
            self.say(&format!("ready {process} {}", shared.address().0));
            (shared, OWN_BYTES as u64)
        } else {
            self.say(&format!("ready {process} 0"));
            let order = self.orders.recv().expect("who started it lives");
            let address = order.strip_prefix("shared ").expect("it has to know the region");
            let address = Address(address.parse().expect("a number"));
            (thread.region(address, SHARED_BYTES), HOARD_BYTES)
        };
        *known = Some(shared.clone());
        let own = self.hoard(&thread, own_bytes)?;
        let mut post = Post { thread, shared, own, bytes: vec![0; OWN_BYTES] };
        self.say("working");
        loop {
            match self.orders.try_recv() {
                Ok(order) => self.obey(&post, &order)?,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            match self.below(6) {
                0 => self.add(&post)?,
                1 => self.swap(&post)?,
                2 => self.raise(&post)?,
                3 => self.use_own(&mut post)?,
                _ if self.writer == 0 => {
                    let slot = self.below(SLOTS);
                    self.look(&post, slot)?;
                }
                _ => self.fill_slots(&post)?,
            }
        }
    }

    /// Allocates private memory, which may still be a dead client's, and is zeros once it is free.
    fn hoard(&mut self, thread: &Thread, bytes: u64) -> Result<Region, Error> {
        let began = Instant::now();
        let own = loop {
            match thread.alloc(bytes, RW).wait() {
                Err(Error::Full { .. }) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                allocated => break allocated?,
            }
        };
        let first = self.below(bytes / PAGE_BYTES);
        for page in (first..bytes / PAGE_BYTES).step_by(17).take(8) {
            let at = page * PAGE_BYTES;
            if own.read(at, PAGE_BYTES).wait()?.iter().any(|&octet| octet != 0) {
                self.say(&format!("wrong {at} of a new region is another's"));
            }
            own.write(at, &[0xa5; PAGE_BYTES as usize]).wait()?;
        }
        own.write(0, &[0; OWN_BYTES]).wait()?;
        Ok(own)
    }

    fn obey(&mut self, post: &Post, order: &str) -> Result<(), Error> {
        if let Some(process) = order.strip_prefix("share ") {
            let process = ProcessId(process.parse().expect("a number"));
            post.shared.share(process, RW).wait()?;
            self.say("shared");
        } else {
            assert_eq!(order, "check", "{}: an order", self.name);
            self.raise(post)?;
            for slot in 0..SLOTS {
                self.look(post, slot)?;
            }
            let [added, swapped] = [word(post, ADDED)?, word(post, SWAPPED)?];
            self.say(&format!("state {added} {swapped}"));
        }
        Ok(())
    }

    fn add(&self, post: &Post) -> Result<(), Error> {
        self.say("add");
        let old = post.thread.fetch_add(post.shared.at(ADDED), 1).wait()?;
        self.say(&format!("added {old}"));
        Ok(())
    }

    fn swap(&self, post: &Post) -> Result<(), Error> {
        let old = word(post, SWAPPED)?;
        self.say("swap");
        let at = post.shared.at(SWAPPED);
        let found = post.thread.compare_and_swap(at, old, old + 1).wait()?;
        self.say(&if found == old { format!("swapped {old}") } else { "unswapped".to_owned() });
        Ok(())
    }

    /// Increments two words on two pages, which a lock guards.
    fn raise(&self, post: &Post) -> Result<(), Error> {
        let lock = post.shared.at(LOCK);
        self.say("locking");
        let died = match post.thread.lock(lock).wait() {
            Err(Error::OwnerDied { .. }) => true,
            taken => taken.map(|()| false)?,
        };
        let [one, other] = [word(post, COPIES[0])?, word(post, COPIES[1])?];
        self.say(&format!("locked {died} {one} {other}"));
        let next = one.max(other) + 1;
        self.say(&format!("raising {next}"));
        for copy in COPIES {
            post.shared.write(copy, &next.to_le_bytes()).wait()?;
        }
        self.say(&format!("unlocking {next}"));
        post.thread.unlock_wait(lock)?;
        self.say("unlocked");
        Ok(())
    }

    /// Checks acknowledged writes, in a region that no other client has.
    fn use_own(&mut self, post: &mut Post) -> Result<(), Error> {
        let [at, bytes] =
            [self.below(OWN_BYTES as u64 - PART_BYTES_MAX), self.below(PART_BYTES_MAX)];
        let (fill, part) = (self.random.next_u64(), at as usize..(at + bytes + 1) as usize);
        let data: Vec<u8> = (0..=bytes).map(|octet| (fill >> (octet % 57)) as u8).collect();
        post.own.write(at, &data).wait()?;
        post.bytes[part].copy_from_slice(&data);
        let at = self.below(OWN_BYTES as u64 - PART_BYTES_MAX);
        let found = post.own.read(at, PART_BYTES_MAX).wait()?;
        if found != post.bytes[at as usize..][..found.len()] {
            self.say(&format!("wrong bytes of its own from {at}"));
        }
        Ok(())
    }

    /// Writes the next value to some slots at once, and reads one that was written before.
    fn fill_slots(&mut self, post: &Post) -> Result<(), Error> {
        let (first, count) = (self.below(SLOTS), 1 + self.below(5));
        let slots = (first..first + count).map(|slot| slot % SLOTS);
        let writes: Vec<_> = slots
            .map(|slot| {
                self.sequence += 1;
                self.say(&format!("write {slot} {}", self.sequence));
                let value = value(slot, self.writer, self.sequence);
                (slot, self.sequence, post.shared.write(slot_at(slot), &value))
            })
            .collect();
        for (slot, sequence, write) in writes {
            write.wait()?;
            self.say(&format!("wrote {slot} {sequence}"));
        }
        let slot = self.below(SLOTS);
        self.look(post, slot)
    }

    fn look(&self, post: &Post, slot: u64) -> Result<(), Error> {
        self.say(&format!("look {slot}"));
        let found = post.shared.read(slot_at(slot), SLOT_BYTES).wait()?;
        self.say(&match whose(slot, &found) {
            Some((writer, sequence)) => format!("found {slot} {writer} {sequence}"),
            None => format!("wrong slot {slot} is torn: {:?}", &found[..32]),
        });
        Ok(())
    }
}

fn word(post: &Post, at: u64) -> Result<u64, Error> {
    let octets = post.shared.read(at, 8).wait()?;
    Ok(u64::from_le_bytes(octets.try_into().expect("eight octets")))
}

fn label(error: &Error) -> String {
    match error {
        Error::Lost | Error::NoAnswer { .. } => "lost".to_owned(),
        Error::Restarted { .. } => "restarted".to_owned(),
        other => format!("other: {other}"),
    }
}

/// Content of a slot: each word names its writer, so that no two values share a word.
fn value(slot: u64, writer: u64, sequence: u64) -> Vec<u8> {
    let words = (0..SLOT_BYTES / 8).map(|at| match at {
        0 => writer,
        1 => sequence,
        _ => (writer << 40 | sequence).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (slot << 32 | at),
    });
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writer and number of a value; `None` if no writer wrote the value. Zeros were never written.
fn whose(slot: u64, found: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| Some(u64::from_le_bytes(found.get(at..at + 8)?.try_into().ok()?));
    let (writer, sequence) = (word(0)?, word(8)?);
    let zeros = (writer, sequence) == (0, 0) && found.iter().all(|&octet| octet == 0);
    (zeros || found == value(slot, writer, sequence)).then_some((writer, sequence))
}

#[test]
fn a_value_of_two_writes_is_torn() {
    let (old, new) = (value(3, 1, 8), value(3, 1, 9));
    assert_eq!(whose(3, &new), Some((1, 9)));
    assert_eq!(whose(3, &[0; SLOT_BYTES as usize]), Some((0, 0)));
    assert_eq!(whose(4, &new), None, "it is another slot's");
    for cut in (16..SLOT_BYTES as usize).step_by(8) {
        assert_eq!(whose(3, &[&new[..cut], &old[cut..]].concat()), None, "{cut}");
        assert_eq!(whose(3, &[&old[..cut], &vec![0; SLOT_BYTES as usize - cut]].concat()), None);
    }
}
