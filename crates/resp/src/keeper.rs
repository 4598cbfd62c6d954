//! The keeper of a server's store. It polls the memory node from time to time, with or without
//! traffic, and provides an empty store when the old one is lost.
//!
//! A look is a short read of the store, and never blocks the server. A thread of its own makes a
//! new store, because opening a pool waits for the node.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ethermem::Pool;
use ethermem_kv::{Config, Look, Statistics, Store};

use crate::absence::Absence;
use crate::info::State;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Interval of looks while no client asks.
const LOOK_IDLE: Duration = Duration::from_secs(1);
/// Largest number of looks in flight: as many as begin while the first is retried. A node that
/// comes back is then found by a new look, and not by a retransmission after a long backoff.
const LOOKS_MAX: usize = 16;
/// Pause between two tries to open a pool.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The thread that keeps the store open.
pub(crate) struct Keeper {
    url: String,
    looks: VecDeque<Begun>,
    looked: Instant,
    opening: Option<Receiver<Opened>>,
    /// The opening thread ends once this is dropped.
    wanted: Arc<()>,
}

/// A look under way.
struct Begun {
    look: Look,
    /// Number of failed commands when it began.
    failures: u64,
}

/// A new store on a new pool.
pub(crate) struct Opened {
    pub(crate) pool: Pool,
    pub(crate) store: Store,
}

/// Result of a look.
pub(crate) enum Found {
    /// The memory node responds.
    There(Statistics),
    Absent(Absence),
    /// An empty store is ready.
    New(Opened),
}

impl Keeper {
    /// The keeper for a pool's store; `None` for a pool whose nodes cannot fail.
    pub(crate) fn of(pool: &Pool) -> Option<Keeper> {
        let url = pool.url().to_owned();
        let stays = url.starts_with("local:") || pool.is_simulated();
        let (looks, looked) = (VecDeque::new(), Instant::now());
        let wanted = Arc::new(());
        (!stays).then_some(Keeper { url, looks, looked, opening: None, wanted })
    }

    /// Begins a look if one is due, and returns the result of earlier ones.
    pub(crate) fn look(
        &mut self,
        state: &State,
        store: &Store,
        config: Config,
        is_idle: bool,
    ) -> Option<Found> {
        if let Some(opening) = &self.opening {
            match opening.try_recv() {
                Ok(opened) => {
                    self.opening = None;
                    return Some(Found::New(opened));
                }
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => self.opening = None,
            }
        }
        let every = if is_idle { LOOK_IDLE } else { LOOK_EVERY };
        if self.looked.elapsed() >= every && self.looks.len() < LOOKS_MAX {
            self.looked = Instant::now();
            self.begin(state, store);
        }
        let mut found = None;
        if !self.looks.is_empty() {
            state.pool.step();
        }
        self.looks.retain_mut(|begun| match begun.look.poll_result() {
            None => true,
            // Commands that wait for a node keep the server from polling, so this reply may be
            // older than their failure, and says nothing about the node after it.
            Some(Ok(_)) if begun.failures != state.failures() => false,
            Some(result) => {
                let result = match result {
                    Ok(statistics) => Found::There(statistics),
                    Err(error) if error.is_uncertain() => Found::Absent(Absence::Away),
                    Err(_) => Found::Absent(Absence::Gone),
                };
                // A lost store stays lost; of other results, the latest counts.
                if !matches!(found, Some(Found::Absent(Absence::Gone))) {
                    found = Some(result);
                }
                false
            }
        });
        if matches!(found, Some(Found::Absent(Absence::Gone))) {
            self.open(config);
        }
        found
    }

    fn begin(&mut self, state: &State, store: &Store) {
        let failures = state.failures();
        self.looks.push_back(Begun { look: store.look(), failures });
    }

    /// Starts making an empty store, unless that is in progress.
    pub(crate) fn open(&mut self, config: Config) {
        if self.opening.is_some() {
            return;
        }
        self.looks.clear();
        let (url, (sender, receiver)) = (self.url.clone(), mpsc::sync_channel(1));
        let make = move || -> Result<Opened, String> {
            let pool = Pool::open(&url).map_err(|error| error.to_string())?;
            let store = pool.run(Store::create(&pool, config));
            let store = store.map_err(|error| error.to_string())?;
            Ok(Opened { pool, store })
        };
        let wanted = Arc::downgrade(&self.wanted);
        let opener = move || {
            let mut told = String::new();
            while wanted.strong_count() > 0 {
                match make() {
                    // A server that has ended does not receive the store.
                    Ok(opened) => return drop(sender.send(opened)),
                    Err(problem) if problem != told => {
                        tracing::warn!(problem, "no new store yet");
                        told = problem;
                    }
                    Err(_) => {}
                }
                std::thread::sleep(RETRY_AFTER);
            }
        };
        let named = std::thread::Builder::new().name("kv-open".to_owned());
        match named.spawn(opener) {
            Ok(_) => self.opening = Some(receiver),
            Err(error) => tracing::error!(%error, "no thread to make a new store"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ethermem_kv::Index;
    use ethermem_node::NodeOptions;
    use ethermem_units::Bytes;

    use super::*;

    /// Polls until every look has ended; begins none.
    fn end_looks(keeper: &mut Keeper, state: &State, store: &Store) -> Option<Found> {
        let mut found = None;
        while !keeper.looks.is_empty() {
            keeper.looked = Instant::now();
            found = keeper.look(state, store, Config::default(), false).or(found);
        }
        found
    }

    /// The reply to a look is polled after a command has failed. If it counted, the next command
    /// would wait for a second timeout.
    #[test]
    fn a_look_from_before_a_failure_does_not_say_that_the_node_is_there() {
        let options = NodeOptions::in_clear(Bytes(64 << 20));
        let mut server = ethermem_node::start(&options).expect("a free port").server;
        let url = format!("udp://{}?timeout_ms=4500", server.address().expect("it is bound"));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::spawn(move || server.run(Duration::from_millis(1), &stopped));
        let pool = Pool::open(&url).expect("a pool that there is");
        let store = pool.run(Store::create(&pool, Config::default())).expect("memory");
        let state = State::new(pool.clone(), Index::Client, 0);
        let mut keeper = Keeper::of(&pool).expect("its node can fail");
        keeper.begin(&state, &store);
        assert!(state.failed(&ethermem::Error::Lost));
        assert!(end_looks(&mut keeper, &state, &store).is_none(), "it began before the failure");
        keeper.begin(&state, &store);
        let found = end_looks(&mut keeper, &state, &store);
        assert!(matches!(found, Some(Found::There(_))), "it began after the failure");
        stop.store(true, Ordering::Relaxed);
    }
}
