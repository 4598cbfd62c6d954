//! The server's counters, and the text of `INFO`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use async_lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use ethermem::{Pool, Ps};
use ethermem_kv::{Client, Index, Statistics};
use futures_util::future::Either;
use hdrhistogram::Histogram;

use crate::absence::Absence;
use crate::access::Gate;
use crate::command::{COMMANDS, Command};
use crate::metrics::Snapshot;
use crate::together::Together;

/// The Redis version whose commands and errors are implemented. Clients use it to decide what to
/// send.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// Least time between two warnings of one kind.
pub(crate) const WARN_EVERY: Duration = Duration::from_secs(10);

/// Longest latency in the histogram, in picoseconds.
const LATENCY_PS_MAX: u64 = 1_000_000_000_000_000;

/// The guards of a command's turn; see [`State::turn`].
pub(crate) type Turn<'s> =
    Either<RwLockWriteGuard<'s, ()>, (RwLockReadGuard<'s, ()>, Option<MutexGuard<'s, ()>>)>;

/// The keys that a command touches.
#[derive(Clone, Copy)]
pub(crate) enum Touch<'k> {
    /// It touches several keys atomically.
    Several,
    /// It changes this key.
    Changes(&'k [u8]),
    /// It reads at most one key.
    Sees,
}

/// Why a request was not done that others were to be answered with.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Absent(Absence),
    Store(ethermem_kv::Error),
}

/// Number of writer locks: more locks mean fewer false conflicts between keys.
const WRITERS: usize = 1_024;

/// Counters and state of a server.
pub(crate) struct State {
    pub(crate) pool: Pool,
    pub(crate) index: Index,
    /// True if the pool has virtual time.
    pub(crate) is_virtual: bool,
    /// True if operations take time and can overlap.
    pub(crate) overlaps: bool,
    pub(crate) port: u16,
    started: Instant,
    commands: Cell<u64>,
    /// Number of calls by index in the table of commands.
    by_command: Vec<Cell<u64>>,
    pub(crate) uncertain: Cell<u64>,
    /// The store's statistics at the last look.
    pub(crate) statistics: Cell<Option<Statistics>>,
    pub(crate) clients: Cell<u64>,
    pub(crate) accepted: Cell<u64>,
    pub(crate) refused: Cell<u64>,
    pub(crate) cut_off: Cell<u64>,
    pub(crate) expired: Cell<u64>,
    pub(crate) wrong_passwords: Cell<u64>,
    /// Connections closed by a time limit: authentication, TLS handshake, or accepting replies.
    pub(crate) timed_out: Cell<u64>,
    pub(crate) gate: Gate,
    absence: Cell<Option<Absence>>,
    /// Number of commands that found the store absent.
    failures: Cell<u64>,
    /// Last warning of a client that speaks HTTP.
    warned_of_http: Cell<Option<Instant>>,
    /// Number of stores lost with their memory node, each replaced by an empty one.
    pub(crate) stores_lost: Cell<u64>,
    /// True once any key was given an expiry.
    pub(crate) keys_may_end: Cell<bool>,
    /// Commands on one key share this lock; commands on several keys hold it exclusively.
    turns: RwLock<()>,
    /// Locks for changes of a key, chosen by the key's hash. On a simulated fabric they are unused,
    /// and the store resolves conflicts as it does between servers.
    writers: Vec<Mutex<()>>,
    /// True if requests of a pipeline go to the memory node by one message. With a cache they do
    /// not: what the node changes by itself empties it.
    pub(crate) goes_together: bool,
    /// Plain `SET`s that wait for one of these locks.
    pub(crate) together: Together<Result<(), Failure>>,
    hasher: RandomState,
    latencies_ps: RefCell<BTreeMap<&'static str, Histogram<u64>>>,
}

impl State {
    pub(crate) fn new(pool: Pool, index: Index, port: u16) -> State {
        let is_virtual = pool.url().starts_with("sim:");
        let overlaps = !pool.url().starts_with("local:");
        let writers = if overlaps && !is_virtual { WRITERS } else { 0 };
        let goes_together = writers > 0 && !pool.url().contains("cache_bytes=");
        State {
            pool,
            index,
            is_virtual,
            overlaps,
            port,
            started: Instant::now(),
            commands: Cell::new(0),
            by_command: COMMANDS.iter().map(|_| Cell::new(0)).collect(),
            uncertain: Cell::new(0),
            statistics: Cell::new(None),
            clients: Cell::new(0),
            accepted: Cell::new(0),
            refused: Cell::new(0),
            cut_off: Cell::new(0),
            expired: Cell::new(0),
            wrong_passwords: Cell::new(0),
            timed_out: Cell::new(0),
            gate: Gate::default(),
            absence: Cell::new(None),
            failures: Cell::new(0),
            warned_of_http: Cell::new(None),
            stores_lost: Cell::new(0),
            keys_may_end: Cell::new(false),
            turns: RwLock::new(()),
            writers: (0..writers).map(|_| Mutex::new(())).collect(),
            goes_together,
            together: Together::default(),
            hasher: RandomState::new(),
            latencies_ps: RefCell::default(),
        }
    }

    /// The reason why there is no store at present.
    pub(crate) fn absence(&self) -> Option<Absence> {
        self.absence.get()
    }

    pub(crate) fn set_absence(&self, absence: Option<Absence>) {
        self.absence.set(absence);
    }

    /// Records what a pool error of a command implies for the store. Returns true if later commands
    /// would wait for an equal timeout. A simulated fabric loses messages, and has no node that
    /// could fail.
    pub(crate) fn failed(&self, error: &ethermem::Error) -> bool {
        let absence = Absence::of(error).filter(|_| !self.is_virtual);
        if absence > self.absence.get() {
            self.absence.set(absence);
        }
        add(&self.failures, u64::from(absence.is_some()));
        absence.is_some()
    }

    /// Number of commands so far that found the store absent.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// True if a warning of a client that speaks HTTP is due; it then counts as given.
    pub(crate) fn may_warn_of_http(&self) -> bool {
        let is_due = self.warned_of_http.get().is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_due {
            self.warned_of_http.set(Some(Instant::now()));
        }
        is_due
    }

    /// Waits for a command's turn, exclusive or shared, which is held until the command has ended.
    /// Changes of one key take turns, because each would make the others retry. There is no lock
    /// where commands run sequentially anyway.
    pub(crate) async fn turn(&self, touch: Touch<'_>) -> Option<Turn<'_>> {
        if !self.overlaps {
            return None;
        }
        let key = match touch {
            Touch::Several => return Some(Either::Left(self.turns.write().await)),
            Touch::Changes(key) if !self.writers.is_empty() => Some(key),
            Touch::Changes(_) | Touch::Sees => None,
        };
        let beside = self.turns.read().await;
        let Some(key) = key else { return Some(Either::Right((beside, None))) };
        let at = self.hasher.hash_one(key) as usize % self.writers.len();
        Some(Either::Right((beside, Some(self.writers[at].lock().await))))
    }

    /// True if changes of one key wait for each other.
    pub(crate) fn takes_turns(&self) -> bool {
        !self.writers.is_empty()
    }

    /// Counts a command that begins, and returns the time if it is measured.
    pub(crate) fn begin(&self, client: &Client) -> Option<Ps> {
        self.is_virtual.then(|| client.thread().now())
    }

    pub(crate) fn end(&self, client: &Client, command: &'static Command, began: Option<Ps>) {
        self.count(command, 1);
        let Some(began) = began else { return };
        let took = client.thread().now() - began;
        let mut latencies = self.latencies_ps.borrow_mut();
        let histogram = latencies.entry(command.name).or_insert_with(|| {
            Histogram::new_with_bounds(1, LATENCY_PS_MAX, 3).expect("bounds that a histogram takes")
        });
        histogram.saturating_record(took.0);
    }

    /// Counts a command that was executed so many times.
    pub(crate) fn count(&self, command: &'static Command, times: u64) {
        add(&self.commands, times);
        add(&self.by_command[command.place()], times);
    }

    /// Copies the published counters to `to`.
    pub(crate) fn snapshot(&self, to: &mut Snapshot) {
        let commands = COMMANDS.iter().zip(&self.by_command);
        *to = Snapshot {
            uptime: self.started.elapsed(),
            clients: self.clients.get(),
            accepted: self.accepted.get(),
            refused: self.refused.get(),
            protocol_errors: self.cut_off.get(),
            timed_out: self.timed_out.get(),
            wrong_passwords: self.wrong_passwords.get(),
            expired: self.expired.get(),
            uncertain: self.uncertain.get(),
            stores_lost: self.stores_lost.get(),
            store_ready: self.absence().is_none(),
            commands: commands.map(|(command, count)| (command.name, count.get())).collect(),
            statistics: self.statistics.get(),
        };
    }

    /// Resets all counters.
    pub(crate) fn reset(&self) {
        [&self.commands, &self.accepted, &self.refused, &self.cut_off, &self.expired]
            .into_iter()
            .for_each(|counter| counter.set(0));
        self.latencies_ps.borrow_mut().clear();
    }

    /// The requested sections of `INFO`, or all.
    pub(crate) fn info(&self, asked: &[Vec<u8>], statistics: &Statistics) -> String {
        let everything = [&b"all"[..], b"default", b"everything"];
        let all = asked.is_empty() || asked.iter().any(|name| everything.contains(&&name[..]));
        let mut text = String::new();
        for (name, lines) in self.sections(statistics) {
            let wanted = |given: &Vec<u8>| given.eq_ignore_ascii_case(name.as_bytes());
            if lines.is_empty() || !(all || asked.iter().any(wanted)) {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            write!(text, "# {name}\r\n").expect("a string takes all");
            for (field, value) in lines {
                write!(text, "{field}:{value}\r\n").expect("a string takes all");
            }
        }
        text
    }

    fn sections(&self, statistics: &Statistics) -> Vec<(&'static str, Vec<(String, String)>)> {
        let line = |field: &str, value: &dyn ToString| (field.to_owned(), value.to_string());
        let index = match self.index {
            Index::Client => "client",
            Index::Node => "node",
        };
        let keys = statistics.keys;
        let keyspace = match keys {
            0 => Vec::new(),
            _ => vec![line("db0", &format!("keys={keys},expires=0,avg_ttl=0"))],
        };
        vec![
            (
                "Server",
                vec![
                    line("redis_version", &REDIS_VERSION),
                    line("redis_mode", &"standalone"),
                    line("ethermem_version", &env!("CARGO_PKG_VERSION")),
                    line("process_id", &std::process::id()),
                    line("tcp_port", &self.port),
                    line("uptime_in_seconds", &self.started.elapsed().as_secs()),
                ],
            ),
            ("Clients", vec![line("connected_clients", &self.clients.get())]),
            (
                "Memory",
                vec![
                    line("used_memory", &statistics.used_bytes),
                    line("heap_bytes", &statistics.heap_bytes),
                ],
            ),
            (
                "Stats",
                vec![
                    line("total_connections_received", &self.accepted.get()),
                    line("total_commands_processed", &self.commands.get()),
                    line("rejected_connections", &self.refused.get()),
                    line("protocol_errors", &self.cut_off.get()),
                    line("wrong_passwords", &self.wrong_passwords.get()),
                    line("timed_out_connections", &self.timed_out.get()),
                    line("expired_keys", &self.expired.get()),
                ],
            ),
            (
                "Ethermem",
                vec![
                    line("pool", &self.pool.url()),
                    line("index", &index),
                    line("store", &self.absence().map_or("ready", Absence::name)),
                    line("stores_lost", &self.stores_lost.get()),
                ],
            ),
            ("Virtual", self.virtual_lines()),
            ("Keyspace", keyspace),
        ]
    }

    /// Latencies in virtual time; empty if the pool has none.
    fn virtual_lines(&self) -> Vec<(String, String)> {
        if !self.is_virtual {
            return Vec::new();
        }
        let time = ("virtual_time_ns".to_owned(), ns(self.pool.now().0));
        let latencies = self.latencies_ps.borrow();
        let latency = |(command, histogram): (&&str, &Histogram<u64>)| {
            let at = |quantile| ns(histogram.value_at_quantile(quantile));
            let (count, mean) = (histogram.len(), histogram.mean() / 1000.0);
            let (p50, p99) = (at(0.5), at(0.99));
            let field = format!("virtual_latency_ns_{}", command.to_ascii_lowercase());
            (field, format!("count={count},mean={mean:.1},p50={p50},p99={p99}"))
        };
        std::iter::once(time).chain(latencies.iter().map(latency)).collect()
    }
}

fn ns(ps: u64) -> String {
    format!("{:.1}", ps as f64 / 1000.0)
}

/// Adds to a counter.
pub(crate) fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get() + more);
}
