//! `ethermem node` and its clients in two network namespaces, over a link of limited rate; the node
//! or a client is killed at random, repeatedly.
//!
//! The *keeper* has a region that the *worker* shares. Both read, write, count and lock there, and
//! each has private memory. One journal of all processes, in one pipe, lists every request and its
//! result, and a model checks it.

mod client;
mod judge;
mod network;

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, PipeWriter, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use self::client::Client;
use self::judge::Judge;
use self::network::{End, Network};
use crate::node::Running;
use crate::support::call;
use crate::udp::kills;

const PAGE_BYTES: u64 = 4096;
/// The shared region: three words on its first page, each copy of the guarded word on a page of its
/// own, and the slots.
const LOCK: u64 = 0;
const ADDED: u64 = 8;
const SWAPPED: u64 = 16;
const COPIES: [u64; 2] = [PAGE_BYTES, 2 * PAGE_BYTES];
const SLOTS: u64 = 16;
/// Length in bytes that fits one datagram, and that the node writes entirely.
const SLOT_BYTES: u64 = 1024;
const SHARED_BYTES: u64 = slot_at(SLOTS);

const SEED: &str = "ETHERMEM_KILL_SEED";
/// Set if this program is to be a client: its writer's number, seed and URL.
const CLIENT: &str = "ETHERMEM_KILL_CLIENT";
const PORT: u16 = 7400;
/// An operation without a response for this time is lost.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Longer than any process is silent on a busy machine.
const SILENCE: Duration = Duration::from_secs(180);

const fn slot_at(slot: u64) -> u64 {
    3 * PAGE_BYTES + slot * SLOT_BYTES
}

/// A client in a process of its own.
struct Started {
    name: String,
    child: Child,
    orders: ChildStdin,
}

impl Started {
    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it lives");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The process may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct KillRun<'r> {
    network: &'r Network,
    key: &'r Path,
    seed: u64,
    random: Xoshiro256PlusPlus,
    journal: Receiver<String>,
    pen: PipeWriter,
    judge: Judge,
    recent: VecDeque<String>,
    /// Process and region of each client in this life of the node.
    ready: BTreeMap<String, [String; 2]>,
    workers: u64,
}

impl KillRun<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    /// Reads the next line of the journal, while waiting for `awaited`.
    fn line(&mut self, awaited: &str) -> String {
        let line = self.journal.recv_timeout(SILENCE);
        let line = line.unwrap_or_else(|_| panic!("no `{awaited}`: {:#?}", self.recent));
        self.recent.push_back(line.clone());
        if self.recent.len() > 60 {
            self.recent.pop_front();
        }
        self.judge.hear(&line).unwrap_or_else(|problem| {
            panic!("{problem}\nthe lines before: {:#?}", self.recent);
        });
        if let [client, "ready", process, address] = line.split(' ').collect::<Vec<_>>()[..] {
            let ready = [process, address].map(str::to_owned);
            self.ready.insert(client.trim_start_matches('@').to_owned(), ready);
        }
        line
    }

    /// Reads the journal up to a line with this prefix.
    fn until(&mut self, start: &str) {
        while !self.line(start).starts_with(start) {}
    }

    /// Reads the journal until this many more operations were acknowledged.
    fn until_acknowledged(&mut self, more: u64) {
        let enough = self.judge.tally.acknowledged + more;
        while self.judge.tally.acknowledged < enough {
            self.line("acknowledgement");
        }
    }

    /// Writes an event into the journal, and reads all lines before it.
    fn note(&mut self, what: &str) {
        let line = format!("@parent {what}");
        self.pen.write_all(format!("{line}\n").as_bytes()).expect("this reads it");
        self.until(&line);
    }

    fn start_node(&mut self) -> Running {
        self.ready.clear();
        self.note("started node");
        let program = Path::new(env!("CARGO_BIN_EXE_ethermem"));
        let mut command = self.network.command(End::Node, program);
        let listen = format!("{}:{PORT}", Network::address(End::Node));
        command.args(["node", "--memory", "4MiB", "--page", "4KiB", "--lease-s", "4"]);
        command.args(["--listen", &listen, "--key"]).arg(self.key);
        Running::of(command, false)
    }

    fn start_client(&mut self, writer: u64) -> Started {
        let program = std::env::current_exe().unwrap();
        let mut command = self.network.command(End::Clients, &program);
        let url = format!(
            "udp://{}:{PORT}?timeout_ms={}&key={}",
            Network::address(End::Node),
            TIMEOUT.as_millis(),
            self.key.display()
        );
        command
            .args(["--ignored", "--exact", "killed::is_a_client_until_it_is_killed", "--nocapture"])
            .env(CLIENT, format!("{writer} {} {url}", self.seed))
            .stdin(Stdio::piped())
            .stdout(self.pen.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        let name = if writer == 0 { "keeper".to_owned() } else { format!("worker{writer}") };
        Started { name, orders: child.stdin.take().unwrap(), child }
    }

    /// Shares the keeper's region with a worker.
    fn introduce(&mut self, keeper: &mut Started, worker: &mut Started, address: &str) {
        let [process, _] = self.ready(&worker.name);
        keeper.order(&format!("share {process}"));
        self.until("@keeper shared");
        worker.order(&format!("shared {address}"));
    }

    fn start_worker(&mut self, keeper: &mut Started, address: &str) -> Started {
        self.workers += 1;
        let mut worker = self.start_client(self.workers);
        self.introduce(keeper, &mut worker, address);
        worker
    }

    /// Waits until a client has a process in this life of the node; returns the process and its
    /// region.
    fn ready(&mut self, name: &str) -> [String; 2] {
        if !self.ready.contains_key(name) {
            self.until(&format!("@{name} ready "));
        }
        self.ready[name].clone()
    }

    fn rounds(&mut self, rounds: u64) -> [u64; 2] {
        let mut node = self.start_node();
        let mut keeper = self.start_client(0);
        let [_, mut address] = self.ready(&keeper.name);
        let mut worker = self.start_worker(&mut keeper, &address);
        let mut killed = [0, 0];
        for round in 0..rounds {
            // The victim is mostly at work, however slow the machine, and sometimes waits for a
            // dead client's memory.
            if self.below(8) > 0 {
                self.until(&format!("@{} working", worker.name));
                let more = 1 + self.below(100);
                self.until_acknowledged(more);
            }
            std::thread::sleep(Duration::from_micros(self.below(300_000)));
            // The second victim is of the other kind than the first, so that both kinds occur.
            let node_is_next = if round == 1 { killed[0] == 0 } else { self.below(2) == 0 };
            if node_is_next {
                killed[0] += 1;
                self.note("killed node");
                node.kill();
                let down = match self.below(4) {
                    0 => TIMEOUT + Duration::from_millis(500),
                    _ => Duration::from_micros(self.below(300_000)),
                };
                std::thread::sleep(down);
                node = self.start_node();
                [_, address] = self.ready(&keeper.name);
                self.introduce(&mut keeper, &mut worker, &address);
            } else {
                killed[1] += 1;
                worker.child.kill().unwrap();
                worker.child.wait().unwrap();
                self.note(&format!("killed {}", worker.name));
                keeper.order("check");
                self.until("@keeper state ");
                worker = self.start_worker(&mut keeper, &address);
            }
        }
        // Effects of the last kill are awaited.
        self.until(&format!("@{} working", worker.name));
        killed
    }
}

/// Acknowledged data remains as long as the node lives; after its end there is an error, and never
/// zeros. A dead client's resources are free after its lease, and no value is torn.
#[test]
fn either_end_is_killed_at_random_and_nothing_is_lost_or_torn() {
    let network = match Network::new() {
        Ok(network) => network,
        Err(why) => {
            // The line bypasses the test runner's capture.
            let _ = writeln!(std::io::stderr(), "SKIPPED: network namespaces: {why}");
            return;
        }
    };
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().expect("a number"));
    let rounds = 2 * kills();
    println!(
        "ETHERMEM_KILLS={} {SEED}={seed} cargo test -p ethermem-cli --test cli killed::",
        kills()
    );
    let folder = tempfile::tempdir().unwrap();
    let made = call(folder.path(), &["keygen", "--out", "a.key"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let (reader, pen) = std::io::pipe().unwrap();
    let (line, journal) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(reader).lines().map_while(Result::ok);
        // The loop ends when the receiver is gone.
        let _ = lines.map(|said| line.send(said)).find(Result::is_err);
    });
    let mut run = KillRun {
        network: &network,
        key: &folder.path().join("a.key"),
        seed,
        random: Xoshiro256PlusPlus::seed_from_u64(seed),
        journal,
        pen,
        judge: Judge::default(),
        recent: VecDeque::new(),
        ready: BTreeMap::new(),
        workers: 0,
    };
    let [nodes, workers] = run.rounds(rounds);
    let tally = &run.judge.tally;
    println!(
        "{nodes} nodes and {workers} clients killed, {} packets dropped, {tally:?}",
        network.dropped()
    );
    assert!(tally.gone >= nodes, "a client did not see that its node had died");
}

#[test]
#[ignore = "it is a client of the test above, in a process of its own"]
fn is_a_client_until_it_is_killed() {
    let told = std::env::var(CLIENT).unwrap();
    let words: Vec<&str> = told.splitn(3, ' ').collect();
    let number = |word: &str| word.parse::<u64>().unwrap();
    Client::new(number(words[0]), number(words[1]), words[2]).run();
}
