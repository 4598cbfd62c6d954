//! The keeper of a server's store: it looks at the memory node now and then, whether or not there
//! is traffic, and brings an empty store where the old one is gone.
//!
//! A look is a short read of the store, and is never waited for. A new store is made by a machine
//! thread of its own, since opening a pool waits for the node.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ethermem::Pool;
use ethermem_kv::{Config, Look, Statistics, Store};

use crate::absence::Absence;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks under way at once: as many as begin while the first is tried, for a node that comes back
/// is met by the next one and not by a repetition that comes ever later.
const LOOKS_MAX: usize = 16;
/// Between two tries to open a pool.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Keeper {
    url: String,
    looks: VecDeque<Look>,
    looked: Instant,
    opening: Option<Receiver<Opened>>,
    /// Whoever opens pools ends with it.
    wanted: Arc<()>,
}

/// A new store on a new pool.
pub(crate) struct Opened {
    pub(crate) pool: Pool,
    pub(crate) store: Store,
}

/// What the keeper has found.
pub(crate) enum Found {
    /// The memory node answers.
    There(Statistics),
    Absent(Absence),
    /// An empty store is there.
    New(Opened),
}

impl Keeper {
    /// Of the store of a pool. `None` for a pool that no node can leave.
    pub(crate) fn of(pool: &Pool) -> Option<Keeper> {
        let url = pool.url().to_owned();
        let stays = url.starts_with("local:") || pool.is_simulated();
        let (looks, looked) = (VecDeque::new(), Instant::now());
        let wanted = Arc::new(());
        (!stays).then_some(Keeper { url, looks, looked, opening: None, wanted })
    }

    /// Looks, and says what came of earlier looks.
    pub(crate) fn look(&mut self, pool: &Pool, store: &Store, config: Config) -> Option<Found> {
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
        if self.looked.elapsed() >= LOOK_EVERY && self.looks.len() < LOOKS_MAX {
            self.looked = Instant::now();
            self.looks.push_back(store.look());
        }
        let mut found = None;
        if !self.looks.is_empty() {
            pool.step();
        }
        self.looks.retain_mut(|look| match look.poll_result() {
            None => true,
            Some(result) => {
                let result = match result {
                    Ok(statistics) => Found::There(statistics),
                    Err(error) if error.is_uncertain() => Found::Absent(Absence::Away),
                    Err(_) => Found::Absent(Absence::Gone),
                };
                // What is gone stays gone; of the others, the later one counts.
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

    /// Begins to make an empty store, unless that is under way.
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
                    // Nobody takes it from a server that has ended.
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
