//! The server: one thread that waits for all connections at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem::Pool;
use ethermem_kv::{Client, Config, Index, Store};
use futures_util::future::join_all;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

use crate::clock::unix_ms;
use crate::connection::Connection;
use crate::info::{State, add};
use crate::keyspace::Keyspace;

const LISTENER: Token = Token(usize::MAX);
const EVENTS: usize = 1024;
/// How often what nobody asked for is done: the flag is looked at, keys that have ended go.
const TICK: Duration = Duration::from_millis(50);
/// Time of the machine for keys that have ended, each tick.
const REAPING: Duration = Duration::from_millis(1);
/// Buckets that are looked at at once.
const REAPED_BUCKETS: u64 = 64;
/// How long a stopping server waits for readers.
const FAREWELL: Duration = Duration::from_millis(200);

/// How a server is to be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where it listens; port 0 is any that is free.
    pub listen: SocketAddr,
    /// Who walks the index.
    pub index: Index,
    /// Most clients at once.
    pub clients_max: usize,
}

/// Why a server does not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot listen there.
    #[error("listening on {listen}: {source}")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// There is no store on the pool.
    #[error(transparent)]
    Store(#[from] ethermem_kv::Error),
    /// The system does not tell what happens on its sockets.
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
    store: Store,
    connections: Slab<Connection>,
    /// Those that have something to do.
    queue: Vec<usize>,
    /// Of connections that are gone: each brings a thread of the pool.
    idle: Vec<Client>,
    janitor: Client,
    reaping: u64,
    ticked: Instant,
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
        let state = State::new(pool.clone(), options.index, local.port());
        // Strangers choose the keys; what a fabric does is the same in every run.
        let hash_seed =
            if state.is_virtual { 0 } else { RandomState::new().build_hasher().finish() };
        let store = pool.run(Store::create(pool, Config { hash_seed, ..Config::default() }))?;
        let janitor = store.client(options.index);
        Ok(Server {
            poll,
            events: Events::with_capacity(EVENTS),
            listener,
            local,
            options,
            state,
            store,
            connections: Slab::new(),
            queue: Vec::new(),
            idle: Vec::new(),
            janitor,
            reaping: 0,
            ticked: Instant::now(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Serves until the flag is set; then sends what is to be sent, and ends.
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
                self.reap();
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

    /// Learns what happened, and queues whom it concerns.
    fn wait(&mut self) -> Result<(), Error> {
        let timeout = if self.queue.is_empty() { TICK } else { Duration::ZERO };
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(Error::Wait(error));
            }
            _ => {}
        }
        let mut accepts = false;
        for event in &self.events {
            if event.token() == LISTENER {
                accepts = true;
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
        Ok(())
    }

    /// Takes who knocks. Where the system has no more sockets, again with the next tick.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn welcome(&mut self, mut stream: TcpStream) {
        if self.connections.len() >= self.options.clients_max {
            add(&self.state.refused, 1);
            // Whether it is heard or not, the connection ends.
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        // Replies are whole when they are sent: none waits for more.
        let _ = stream.set_nodelay(true);
        let entry = self.connections.vacant_entry();
        let (at, both) = (entry.key(), Interest::READABLE | Interest::WRITABLE);
        if self.poll.registry().register(&mut stream, Token(at), both).is_err() {
            add(&self.state.refused, 1);
            return;
        }
        add(&self.state.accepted, 1);
        add(&self.state.clients, 1);
        let client = self.idle.pop().unwrap_or_else(|| self.store.client(self.options.index));
        let mut connection = Connection::new(stream, client, self.state.accepted.get());
        connection.is_queued = true;
        entry.insert(connection);
        self.queue.push(at);
    }

    /// Everyone's turn: one after the other where nothing takes time, all at once elsewhere.
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
        // Who is done early is answered early.
        let turns = queued.map(async |(_, connection)| {
            connection.talk.serve(state, now_ms).await;
            connection.write();
        });
        state.pool.run(join_all(turns));
    }

    /// Keeps those in the queue that go on by themselves, and forgets those that are done.
    fn requeue(&mut self) {
        let Server { connections, queue, idle, state, poll, .. } = self;
        queue.retain(|&at| {
            let connection = &mut connections[at];
            if connection.is_done() {
                let mut gone = connections.remove(at);
                // It is closed with the connection at the latest.
                let _ = poll.registry().deregister(gone.stream());
                state.clients.set(state.clients.get() - 1);
                idle.push(gone.talk.client);
                return false;
            }
            connection.is_queued = connection.has_work();
            connection.is_queued
        });
    }

    /// Drops keys that have ended, a few buckets at a time.
    fn reap(&mut self) {
        let Server { janitor, state, reaping, .. } = self;
        if !state.keys_may_end.get() {
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
                // Nobody sees them; the next tick tries again.
                Err(_) => return,
            }
        }
    }
}
