//! The process of a rack's NICs: its sockets, one thread, one epoll set.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::Notice;
use super::door::Asker;
use super::greet::Greeting;
use super::handshake::{NONCE_BYTES, Secret};
use super::link::{Found, Link, Path};
use super::wire;
use crate::accounts::Accounts;
use crate::{Config, Error};

const EVENTS_AT_ONCE: usize = 256;
/// How long an idle process sleeps, and one with bytes under way.
const IDLE_MS: u16 = 50;
const BUSY_MS: u16 = 5;
/// Time without any subflow after which a session ends.
const ALONE_NS: u64 = 10_000_000_000;

/// What a descriptor is.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Racks,
    Programs,
    Door,
    Asker,
    Greeting,
    Subflow(u64, usize),
    Program(u64, u32),
    /// A connection to a program that has not accepted yet.
    Server(u64, u32),
}

/// A subflow of this process to another rack.
pub(super) struct Attempt {
    pub(super) rack: usize,
    pub(super) subflow: usize,
    /// The handshake in progress.
    pub(super) greeting: Option<u64>,
    pub(super) next_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) incarnation: u32,
}

pub(super) struct Process<'a> {
    pub(super) config: &'a Config,
    pub(super) secret: Secret,
    pub(super) accounts: Accounts,
    pub(super) tell: &'a mut dyn FnMut(Notice),
    epoll: Epoll,
    begun: Instant,
    next: u64,
    pub(super) sources: HashMap<u64, Source>, // tidy: order not observed
    pub(super) racks: TcpListener,
    pub(super) programs: TcpListener,
    pub(super) door: UnixListener,
    pub(super) askers: BTreeMap<u64, Asker>,
    pub(super) greetings: BTreeMap<u64, Greeting>,
    pub(super) links: BTreeMap<u64, Link>,
    pub(super) attempts: Vec<Attempt>,
    /// When an address and the reason of its refusal were last told.
    pub(super) told_ns: BTreeMap<(Ipv4Addr, Option<&'static str>), u64>,
    /// Programs that were told to connect: by address, their stream and until when.
    pub(super) expected: BTreeMap<u64, (u64, u32, u64)>,
    /// Connections to programs that have not accepted yet.
    pub(super) servers: BTreeMap<(u64, u32), (TcpStream, u64, u64)>,
}

/// Carries flows between racks until `stop` is set. `tell` gets what people should know.
///
/// # Errors
/// [`Error`], if it cannot begin, or the system fails it.
pub fn serve(
    config: &Config,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Notice),
) -> Result<(), Error> {
    let failed = |error: io::Error| Error::Nics { what: error.to_string() };
    let accounts = Accounts::open(&config.name)?;
    let mut process = Process::open(config, accounts, tell).map_err(failed)?;
    let done = process.run(stop).map_err(failed);
    // The report is of the programs; this process's row has no counts.
    let _ = process.accounts.settle(&config.name);
    done
}

impl<'a> Process<'a> {
    fn open(
        config: &'a Config,
        accounts: Accounts,
        tell: &'a mut dyn FnMut(Notice),
    ) -> io::Result<Process<'a>> {
        let secret = match &config.nics_key_file {
            Some(path) => super::door::secret(path)?,
            None => Secret::new(&[]),
        };
        let at = |what: String| move |error| io::Error::other(format!("{what}: {error}"));
        let port = config.nics_port;
        let racks = wire::listener(port).map_err(at(format!("nics_port = {port}")))?;
        let door = super::door::open(&config.name)
            .map_err(at(format!("the process of rack `{}`, which may run already", config.name)))?;
        let programs = wire::listener(0)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut process = Process {
            config,
            secret,
            accounts,
            tell,
            epoll,
            begun: Instant::now(),
            next: 0,
            sources: HashMap::new(),
            racks,
            programs,
            door,
            askers: BTreeMap::new(),
            greetings: BTreeMap::new(),
            links: BTreeMap::new(),
            attempts: Vec::new(),
            told_ns: BTreeMap::new(),
            expected: BTreeMap::new(),
            servers: BTreeMap::new(),
        };
        let racks = process.racks.try_clone()?;
        process.watch(&racks, Source::Racks)?;
        let programs = process.programs.try_clone()?;
        process.watch(&programs, Source::Programs)?;
        let door = process.door.try_clone()?;
        process.watch(&door, Source::Door)?;
        process.plan();
        Ok(process)
    }

    pub(super) fn now_ns(&self) -> u64 {
        wire::ns(self.begun.elapsed())
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Adds a descriptor to the set.
    pub(super) fn watch(&mut self, socket: &impl AsFd, source: Source) -> io::Result<u64> {
        let token = self.number();
        let is_listener = matches!(source, Source::Racks | Source::Programs | Source::Door);
        let mut events = EpollFlags::EPOLLIN;
        if !is_listener {
            events |= EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        }
        self.epoll.add(socket, EpollEvent::new(events, token))?;
        self.sources.insert(token, source);
        Ok(token)
    }

    pub(super) fn random() -> io::Result<[u8; NONCE_BYTES]> {
        let mut bytes = [0; NONCE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(bytes)
    }

    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); EVENTS_AT_ONCE];
        let mut more = false;
        while !stop.load(Ordering::Relaxed) {
            let is_busy = self.links.values().any(|link| link.session.stripe.is_busy());
            let wait_ms = if more {
                0
            } else if is_busy || !self.greetings.is_empty() {
                BUSY_MS
            } else {
                IDLE_MS
            };
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(wait_ms)) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            for event in &events[..count] {
                self.event(event.data(), event.events());
            }
            more = self.turn();
            self.attempt();
            self.expire();
        }
        Ok(())
    }

    fn event(&mut self, token: u64, flags: EpollFlags) {
        let ends = EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR | EpollFlags::EPOLLRDHUP;
        let reads = flags.intersects(EpollFlags::EPOLLIN | ends);
        let writes = flags.intersects(EpollFlags::EPOLLOUT | ends);
        match self.sources.get(&token).copied() {
            None => {}
            Some(Source::Racks) => self.accept_racks(),
            Some(Source::Programs) => self.accept_programs(),
            Some(Source::Door) => self.accept_askers(),
            Some(Source::Asker) => self.asked(token),
            Some(Source::Greeting) => self.greet(token),
            Some(Source::Server(link, stream)) => self.server_answers(link, stream),
            Some(Source::Subflow(link, subflow)) => {
                let link = self.links.get_mut(&link);
                if let Some(path) = link.and_then(|it| it.paths[subflow].as_mut()) {
                    path.is_readable |= reads;
                    path.is_writable |= writes;
                }
            }
            Some(Source::Program(link, stream)) => {
                let Some(link) = self.links.get_mut(&link) else { return };
                let Some(local) = link.locals.get_mut(&stream) else { return };
                local.is_readable |= reads;
                local.is_writable |= writes;
                link.wake(stream);
                if writes {
                    link.deliver(stream);
                }
            }
        }
    }

    /// Lets each link receive and send. True if one has more to do at once.
    fn turn(&mut self) -> bool {
        let mut more = false;
        for number in self.links.keys().copied().collect::<Vec<u64>>() {
            let now_ns = self.now_ns();
            let mut found = Found::default();
            let Some(link) = self.links.get_mut(&number) else { continue };
            link.receive(now_ns, &mut found);
            self.handle_events(number);
            let Some(link) = self.links.get_mut(&number) else { continue };
            link.pump(now_ns, &mut found);
            let stalled = link.session.tick(now_ns);
            more |= found.more;
            self.forget_closed(number);
            if let Some(fault) = found.fault {
                self.end_link(number, &fault.to_string());
                continue;
            }
            for subflow in stalled {
                self.leave(number, subflow, now_ns);
            }
            for (subflow, by_peer) in found.lost {
                self.lost(number, subflow, by_peer, now_ns);
            }
        }
        more
    }

    /// Leaves a subflow that makes no progress.
    fn leave(&mut self, number: u64, subflow: usize, now_ns: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if link.session.stripe.count_up() < 2 {
            return;
        }
        link.session.down(subflow);
        let rack = link.rack;
        if let Some(path) = link.paths[subflow].take() {
            self.sources.remove(&path.token);
            // What the socket still holds goes by other subflows.
            wire::set_reset(&path.socket, true);
        }
        self.try_again(number, subflow, now_ns);
        self.notice(rack, subflow, false);
    }

    fn lost(&mut self, number: u64, subflow: usize, by_peer: bool, now_ns: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let Some(path) = link.paths[subflow].take() else { return };
        self.sources.remove(&path.token);
        link.session.down(subflow);
        let (rack, is_last) = (link.rack, link.session.stripe.count_up() == 0);
        if is_last {
            link.alone_ns = Some(now_ns);
        }
        self.notice(rack, subflow, false);
        if is_last && by_peer {
            self.end_link(number, "the other process has ended");
        } else {
            self.try_again(number, subflow, now_ns);
        }
    }

    pub(super) fn notice(&mut self, rack: usize, subflow: usize, is_up: bool) {
        let rack = self.config.others[rack].name.clone();
        (self.tell)(Notice::Subflow { rack, subflow, is_up });
    }

    /// A new subflow of a session.
    pub(super) fn add_path(
        &mut self,
        number: u64,
        subflow: usize,
        incarnation: u32,
        greeting: Greeting,
    ) {
        let now_ns = self.now_ns();
        self.sources.insert(greeting.token, Source::Subflow(number, subflow));
        let Some(link) = self.links.get_mut(&number) else { return };
        let rack = link.rack;
        let path = Path::new(greeting.socket, greeting.token, greeting.frames);
        let old = link.paths[subflow].replace(path);
        link.session.up(subflow, incarnation, now_ns);
        link.alone_ns = None;
        if let Some(old) = old {
            self.sources.remove(&old.token);
        }
        self.notice(rack, subflow, true);
    }

    /// Ends a session: its programs' connections are reset.
    pub(super) fn end_link(&mut self, number: u64, why: &str) {
        let Some(link) = self.links.remove(&number) else { return };
        let rack = self.config.others[link.rack].name.clone();
        let connections = link.locals.len();
        for path in link.paths.iter().flatten() {
            self.sources.remove(&path.token);
        }
        for local in link.locals.values().chain(&link.closed) {
            self.sources.remove(&local.token);
            self.hide(local.shown);
        }
        let of_link = |stream: &u64| *stream == number;
        self.servers.retain(|(it, _), _| !of_link(it));
        self.expected.retain(|_, (it, _, _)| !of_link(it));
        self.refuse_askers(number);
        if link.opens {
            self.plan_rack(link.rack);
        }
        (self.tell)(Notice::Ended { rack, connections, why: why.to_owned() });
    }

    pub(super) fn hide(&self, shown: u64) {
        if shown != 0 {
            self.accounts.ledger().hide(shown);
        }
    }

    fn forget_closed(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        for local in std::mem::take(&mut link.closed) {
            self.sources.remove(&local.token);
            self.hide(local.shown);
        }
    }

    /// Ends what takes too long.
    fn expire(&mut self) {
        let now_ns = self.now_ns();
        let late: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, it)| it.alone_ns.is_some_and(|at| now_ns > at + ALONE_NS))
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            self.end_link(number, "no NIC reaches the other process");
        }
        let late: Vec<u64> =
            self.expected.iter().filter(|(_, it)| now_ns > it.2).map(|(key, _)| *key).collect();
        for key in late {
            let Some((link, stream, _)) = self.expected.remove(&key) else { continue };
            if let Some(link) = self.links.get_mut(&link) {
                link.session.reset(stream);
            }
        }
        let late: Vec<u64> =
            self.greetings.values().filter(|it| now_ns > it.until_ns).map(|it| it.token).collect();
        for token in late {
            self.greeting_failed(token, "no answer in time");
        }
    }

    /// True if `from` is a NIC of this rack.
    pub(super) fn is_nic_of(&self, rack: usize, from: Ipv4Addr) -> bool {
        self.config.others[rack].nics.contains(&from)
    }
}

/// Time for a handshake, in nanoseconds.
pub(super) const GREETING_NS: u64 = 400_000_000;
/// Time for a program to connect after it was told to.
pub(super) const PROGRAM_NS: u64 = 2_000_000_000;

pub(super) const fn ms(count: u64) -> u64 {
    Duration::from_millis(count).as_nanos() as u64
}
