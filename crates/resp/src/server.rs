//! The server: one thread that polls all connections.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use ethermem::Pool;
use ethermem_kv::{Client, Config, Index, Store};
use futures_util::future::join_all;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConfig;
use slab::Slab;
use tracing::{error, info, warn};

use crate::absence::Absence;
use crate::access::{Gate, Password};
use crate::clock::unix_ms;
use crate::connection::Connection;
use crate::handshake::{Handshakes, Shaken};
use crate::info::{State, WARN_EVERY, add};
use crate::keeper::{Found, Keeper, Opened};
use crate::keyspace::{Fault, Keyspace};
use crate::metrics::Published;
use crate::transport::Transport;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const EVENTS: usize = 1024;
/// Interval of periodic work: reading the stop flag, deleting expired keys.
const TICK: Duration = Duration::from_millis(50);
/// Interval of periodic work while no client asks for anything and no key can expire.
const IDLE_TICK: Duration = Duration::from_millis(500);
/// When no client asked for so long, the server counts as idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Time for deleting expired keys in each tick.
const REAPING: Duration = Duration::from_millis(1);
/// Number of buckets visited at once for expired keys.
const REAPED_BUCKETS: u64 = 64;
/// How long a stopping server waits for clients to read their replies.
const FAREWELL: Duration = Duration::from_millis(200);

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on; port 0 selects a free one.
    pub listen: SocketAddr,
    /// Side that walks the index.
    pub index: Index,
    /// Largest number of concurrent clients.
    pub clients_max: usize,
    /// Password for clients.
    pub password: Option<Password>,
    /// TLS configuration; if present, all connections use TLS.
    pub tls: Option<Arc<ServerConfig>>,
}

/// The reason why a server did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot listen at its address.
    #[error("listening on {listen}: {source}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The pool cannot hold a store.
    #[error(transparent)]
    Store(#[from] ethermem_kv::Error),
    /// The thread for TLS handshakes cannot be started.
    #[error("no thread for TLS handshakes: {0}")]
    Handshakes(io::Error),
    /// Polling the sockets failed.
    #[error("waiting for connections: {0}")]
    Wait(io::Error),
}

/// A server, bound to its address.
pub struct Server {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    local: SocketAddr,
    options: Options,
    state: State,
    /// Configuration of every store that the server makes.
    config: Config,
    store: Store,
    keeper: Option<Keeper>,
    handshakes: Option<Handshakes>,
    published: Published,
    connections: Slab<Connection>,
    /// Connections with work.
    queue: Vec<usize>,
    /// Clients of closed connections, for reuse: each holds a thread of the pool.
    idle: Vec<Client>,
    janitor: Client,
    reaping: u64,
    /// Last logged state of the store.
    told: Option<Absence>,
    ticked: Instant,
    /// When a client last asked for something.
    asked_at: Instant,
    /// Last warning that no connection can be accepted.
    warned: Option<Instant>,
}

impl Server {
    /// Makes an empty store on a pool, and listens.
    ///
    /// # Errors
    /// [`Error`].
    pub fn bind(pool: &Pool, options: Options) -> Result<Server, Error> {
        let listen = options.listen;
        let listened = |source| Error::Listen { listen, source };
        let mut listener = TcpListener::bind(listen).map_err(listened)?;
        let local = listener.local_addr().map_err(listened)?;
        let poll = Poll::new().map_err(Error::Wait)?;
        let registered = poll.registry().register(&mut listener, LISTENER, Interest::READABLE);
        registered.map_err(Error::Wait)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(Error::Wait)?;
        // A failed wake-up is harmless: the next tick polls anyway.
        let wakes = move || drop(waker.wake());
        let start = |tls| Handshakes::start(tls, wakes).map_err(Error::Handshakes);
        let handshakes = options.tls.clone().map(start).transpose()?;
        let mut state = State::new(pool.clone(), options.index, local.port());
        state.gate = Gate::new(options.password.clone());
        // Untrusted clients choose the keys, so the seed is random; a simulated fabric must be
        // reproducible.
        let hash_seed =
            if state.is_virtual { 0 } else { RandomState::new().build_hasher().finish() };
        let config = Config { hash_seed, ..Config::default() };
        let store = pool.run(Store::create(pool, config))?;
        let janitor = store.client(options.index);
        Ok(Server {
            poll,
            events: Events::with_capacity(EVENTS),
            listener,
            local,
            options,
            state,
            config,
            store,
            keeper: Keeper::of(pool),
            handshakes,
            published: Published::default(),
            connections: Slab::new(),
            queue: Vec::new(),
            idle: Vec::new(),
            janitor,
            reaping: 0,
            told: None,
            ticked: Instant::now(),
            asked_at: Instant::now(),
            warned: None,
        })
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Serves until the stop flag is set; then sends pending replies, and returns.
    ///
    /// # Errors
    /// [`Error::Wait`].
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed) {
            self.wait()?;
            for &at in &self.queue {
                self.connections[at].read();
            }
            self.execute();
            self.requeue();
            if self.ticked.elapsed() >= TICK {
                self.ticked = Instant::now();
                self.accept();
                self.expire();
                self.keep();
                self.reap();
                self.publish();
            }
        }
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until && !self.connections.is_empty() {
            self.connections.iter_mut().for_each(|(_, connection)| connection.write());
            self.connections.retain(|_, connection| connection.has_unsent());
            std::thread::yield_now();
        }
        Ok(())
    }

    /// The counters that it publishes.
    #[must_use]
    pub fn published(&self) -> Published {
        Arc::clone(&self.published)
    }

    fn publish(&self) {
        // A reader that panicked has changed nothing.
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.snapshot(&mut published);
    }

    /// Polls the keeper, and acts on its results.
    fn keep(&mut self) {
        let is_idle = self.is_idle();
        let Server { keeper: Some(keeper), state, store, config, .. } = self else { return };
        let before = state.absence();
        if before == Some(Absence::Gone) {
            keeper.open(*config);
        }
        let found = keeper.look(state, store, *config, is_idle);
        let now = match found {
            None => before,
            // A command may have found the loss before a look did.
            Some(Found::There(_) | Found::Absent(Absence::Away))
                if before == Some(Absence::Gone) =>
            {
                before
            }
            Some(Found::There(statistics)) => {
                state.statistics.set(Some(statistics));
                None
            }
            Some(Found::Absent(absence)) => Some(absence),
            Some(Found::New(opened)) => {
                self.renew(opened);
                return;
            }
        };
        state.set_absence(now);
        if now == self.told {
            return;
        }
        match now {
            Some(Absence::Away) => warn!("the memory node does not answer: no commands"),
            Some(Absence::Gone) => error!("all keys are gone: the memory node ended the store"),
            None => info!("the memory node answers again: all keys are there"),
        }
        self.told = now;
    }

    /// Continues with an empty store. A thread drops the old one's state, because that contacts a
    /// node that may not respond.
    fn renew(&mut self, opened: Opened) {
        let Server { state, store, janitor, connections, idle, options, .. } = self;
        let index = options.index;
        let old_store = std::mem::replace(store, opened.store);
        let old_pool = std::mem::replace(&mut state.pool, opened.pool);
        let mut old_clients = std::mem::take(idle);
        old_clients.push(std::mem::replace(janitor, store.client(index)));
        for (_, connection) in connections {
            old_clients.push(std::mem::replace(&mut connection.talk.client, store.client(index)));
        }
        self.reaping = 0;
        state.keys_may_end.set(false);
        state.set_absence(None);
        add(&state.stores_lost, 1);
        self.told = None;
        error!(stores_lost = state.stores_lost.get(), "serving again, from an EMPTY store");
        let gone = move || drop((old_clients, old_store, old_pool));
        // If the thread cannot be started, the state was dropped with the closure.
        let _ = std::thread::Builder::new().name("kv-close".to_owned()).spawn(gone);
    }

    /// True if nothing but the store's own state needs a look.
    fn is_idle(&self) -> bool {
        let is_asked = self.asked_at.elapsed() < IDLE_AFTER;
        !is_asked && !self.state.keys_may_end.get() && self.told.is_none()
    }

    /// Polls for events, and queues the connections concerned.
    fn wait(&mut self) -> Result<(), Error> {
        let tick = if self.is_idle() { IDLE_TICK } else { TICK };
        let timeout = if self.queue.is_empty() { tick } else { Duration::ZERO };
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(Error::Wait(error));
            }
            _ => {}
        }
        if !self.events.is_empty() || !self.queue.is_empty() {
            self.asked_at = Instant::now();
        }
        let mut accepts = false;
        for event in &self.events {
            if event.token() == LISTENER {
                accepts = true;
                continue;
            }
            if event.token() == WAKER {
                continue;
            }
            let at = event.token().0;
            let Some(connection) = self.connections.get_mut(at) else { continue };
            connection.is_readable |= event.is_readable();
            connection.is_at_end |= event.is_read_closed();
            if !std::mem::replace(&mut connection.is_queued, true) {
                self.queue.push(at);
            }
        }
        if accepts {
            self.accept();
        }
        self.take_shaken();
        Ok(())
    }

    /// Accepts connections. If the system has no free sockets, it retries at the next tick.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => self.welcome(stream, from),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    if self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
                        self.warned = Some(Instant::now());
                        warn!(%error, "clients wait: no connection can be accepted");
                    }
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, stream: TcpStream, from: SocketAddr) {
        match &self.handshakes {
            None => self.admit(Transport::Plain(stream), from),
            Some(handshakes) => {
                if !handshakes.begin(stream, from) {
                    add(&self.state.refused, 1);
                }
            }
        }
    }

    /// Accepts peers whose TLS handshake has ended.
    fn take_shaken(&mut self) {
        while let Some(shaken) = self.handshakes.as_ref().and_then(Handshakes::next) {
            match shaken {
                Shaken::Done(transport, from) => self.admit(transport, from),
                Shaken::TimedOut => add(&self.state.timed_out, 1),
                Shaken::Failed => add(&self.state.refused, 1),
            }
        }
    }

    fn admit(&mut self, mut transport: Transport, from: SocketAddr) {
        if self.connections.len() >= self.options.clients_max && !self.make_room() {
            add(&self.state.refused, 1);
            // Sending is best effort, because the connection ends anyway.
            let _ = transport.write(b"-ERR max number of clients reached\r\n");
            transport.say_goodbye();
            return;
        }
        // Replies are complete when they are sent, so Nagle's algorithm would only delay them.
        let _ = transport.stream().set_nodelay(true);
        let entry = self.connections.vacant_entry();
        let (at, both) = (entry.key(), Interest::READABLE | Interest::WRITABLE);
        if self.poll.registry().register(transport.stream(), Token(at), both).is_err() {
            add(&self.state.refused, 1);
            return;
        }
        add(&self.state.accepted, 1);
        add(&self.state.clients, 1);
        let client = self.idle.pop().unwrap_or_else(|| self.store.client(self.options.index));
        let mut connection = Connection::new((transport, from), client, self.state.accepted.get());
        connection.is_queued = true;
        entry.insert(connection);
        self.queue.push(at);
    }

    /// Closes the oldest unauthenticated connection, so that such clients keep no other client out.
    /// Returns false if there is none.
    fn make_room(&mut self) -> bool {
        let Server { connections, state, poll, queue, idle, .. } = self;
        let strangers = connections.iter().filter(|(_, one)| one.is_stranger(state));
        let Some((at, _)) = strangers.min_by_key(|(_, one)| one.accepted) else { return false };
        let mut gone = connections.remove(at);
        let _ = poll.registry().deregister(gone.stream());
        queue.retain(|&queued| queued != at);
        state.clients.set(state.clients.get() - 1);
        idle.push(gone.talk.client);
        true
    }

    /// Closes connections that exceed a time limit.
    fn expire(&mut self) {
        let Server { connections, state, queue, .. } = self;
        let now = Instant::now();
        for (at, connection) in connections.iter_mut() {
            if connection.expire(state, now) {
                add(&state.timed_out, 1);
                if !std::mem::replace(&mut connection.is_queued, true) {
                    queue.push(at);
                }
            }
        }
    }

    /// Gives each queued connection its turn: sequentially if no operation takes time, otherwise
    /// concurrently.
    fn execute(&mut self) {
        let Server { state, connections, queue, .. } = self;
        let now_ms = unix_ms();
        if !state.overlaps {
            for &at in &*queue {
                state.pool.run(connections[at].talk.serve(state, now_ms));
                connections[at].write();
            }
            return;
        }
        let queued = connections.iter_mut().filter(|(_, connection)| connection.is_queued);
        // A connection that finishes early is answered early.
        let turns = queued.map(async |(_, connection)| {
            connection.talk.serve(state, now_ms).await;
            connection.write();
        });
        state.pool.run(join_all(turns));
    }

    /// Requeues connections that have more work, and removes those that are done.
    fn requeue(&mut self) {
        let Server { connections, queue, idle, state, poll, .. } = self;
        queue.retain(|&at| {
            let connection = &mut connections[at];
            if connection.is_done() {
                let mut gone = connections.remove(at);
                gone.say_goodbye();
                // Closing the connection would also deregister it.
                let _ = poll.registry().deregister(gone.stream());
                state.clients.set(state.clients.get() - 1);
                idle.push(gone.talk.client);
                return false;
            }
            connection.is_queued = connection.has_work();
            connection.is_queued
        });
    }

    /// Deletes expired keys, a few buckets at a time.
    fn reap(&mut self) {
        let Server { janitor, state, reaping, .. } = self;
        if !state.keys_may_end.get() || state.absence().is_some() {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < REAPING {
            let mut keyspace = Keyspace { client: janitor, now_ms: unix_ms() };
            let step = async {
                let scanned = keyspace.client.scan(*reaping, REAPED_BUCKETS).await?;
                let mut reaped = 0;
                for key in scanned.keys {
                    if keyspace.is_over(key.tag) && keyspace.reap(&key.bytes).await? {
                        reaped += 1;
                    }
                }
                Ok::<_, ethermem_kv::Error>((scanned.cursor, reaped))
            };
            match state.pool.run(step) {
                Ok((cursor, reaped)) => {
                    add(&state.expired, reaped);
                    *reaping = cursor;
                    if cursor == 0 {
                        return;
                    }
                }
                // Clients do not see expired keys; the next tick retries.
                Err(error) => {
                    if let Some(error) = Fault::from(error).of_pool() {
                        state.failed(error);
                    }
                    return;
                }
            }
        }
    }
}
