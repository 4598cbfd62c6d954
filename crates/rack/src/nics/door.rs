//! Programs of the own rack: those that ask for a connection to another rack, and those that
//! another rack's programs connect to.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::getuid;

use super::handshake::Secret;
use super::link::{Link, Local};
use super::process::{PROGRAM_NS, Process, Source};
use super::session::Event;
use super::wire;
use crate::offer::{Address, Answer, Ask, NICS, VERSION};

const ASK_BYTES: usize = size_of::<Ask>();
const ASKERS_MAX: usize = 4096;
const SECRET_BYTES_MIN: usize = 16;
const SECRET_BYTES_MAX: u64 = 4096;

/// A library that waits for its answer.
pub(super) struct Asker {
    socket: UnixStream,
    /// The stream that it waits for.
    stream: Option<(u64, u32)>,
    client: Address,
}

/// Reads the racks' secret; only its owner may read the file.
pub(super) fn secret(path: &Path) -> io::Result<Secret> {
    let failed = |what: &str| io::Error::other(format!("nics_key_file {}: {what}", path.display()));
    let file = File::open(path).map_err(|error| failed(&error.to_string()))?;
    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 != 0 {
        let mode = mode & 0o777;
        return Err(failed(&format!("mode {mode:04o} lets others read it: must be 0600")));
    }
    let mut bytes = Vec::new();
    file.take(SECRET_BYTES_MAX).read_to_end(&mut bytes)?;
    if bytes.len() < SECRET_BYTES_MIN {
        let found = bytes.len();
        return Err(failed(&format!("{found} B: must have at least {SECRET_BYTES_MIN}")));
    }
    Ok(Secret::new(&bytes))
}

/// The Unix socket at which libraries ask.
pub(super) fn open(rack: &str) -> io::Result<UnixListener> {
    let (user, nics) = (getuid().as_raw(), NICS);
    let name = format!("ethermem-rack/{user:08x}{:08x}{:08x}{rack}", nics.ip, nics.port);
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn parse(bytes: &[u8; ASK_BYTES]) -> Option<(Address, Address)> {
    let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
    let version = [0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[byte]);
    let of = |at: usize| Address { ip: word(at), port: word(at + 4) };
    let is_port = |it: &Address| (1..=u32::from(u16::MAX)).contains(&it.port);
    let both = (of(8), of(16));
    (u64::from_ne_bytes(version) == VERSION && is_port(&both.0) && is_port(&both.1)).then_some(both)
}

impl Process<'_> {
    pub(super) fn accept_askers(&mut self) {
        while let Ok((socket, _)) = self.door.accept() {
            let peer = getsockopt(&socket, PeerCredentials);
            let is_own = peer.is_ok_and(|it| it.uid() == getuid().as_raw());
            if !is_own || self.askers.len() >= ASKERS_MAX || socket.set_nonblocking(true).is_err() {
                continue;
            }
            let Ok(token) = self.watch(&socket, Source::Asker) else { continue };
            let client = Address::default();
            self.askers.insert(token, Asker { socket, stream: None, client });
        }
    }

    /// A library has asked, or is gone.
    pub(super) fn asked(&mut self, token: u64) {
        let Some(asker) = self.askers.get_mut(&token) else { return };
        let mut bytes = [0; ASK_BYTES];
        let got = io::Read::read(&mut &asker.socket, &mut bytes);
        let ask = match got {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(ASK_BYTES) if asker.stream.is_none() => parse(&bytes),
            _ => {
                // It waits no longer.
                let stream = asker.stream;
                self.forget_asker(token);
                let link = stream.and_then(|it| Some((self.links.get_mut(&it.0)?, it.1)));
                return link.map_or((), |(link, stream)| link.session.reset(stream));
            }
        };
        let begun = ask.and_then(|(client, server)| {
            let rack = self.config.other_with(Ipv4Addr::from(server.ip))?;
            let is_way =
                |it: &Link| it.opens && it.rack == rack && it.session.stripe.count_up() > 0;
            let (number, link) = self.links.iter_mut().find(|(_, it)| is_way(it))?;
            Some((*number, link.session.open(client, server)?, client))
        });
        match begun {
            Some((link, stream, client)) => {
                let asker = self.askers.get_mut(&token);
                asker.into_iter().for_each(|it| {
                    it.stream = Some((link, stream));
                    it.client = client;
                });
            }
            None => self.answer(token, 0),
        }
    }

    fn forget_asker(&mut self, token: u64) {
        self.sources.remove(&token);
        self.askers.remove(&token);
    }

    fn answer(&mut self, token: u64, port: u16) {
        if let Some(asker) = self.askers.get(&token) {
            let answer = Answer { version: VERSION, port: u64::from(port) };
            let bytes = [answer.version.to_ne_bytes(), answer.port.to_ne_bytes()].concat();
            // A library that is gone needs no answer.
            let _ = io::Write::write(&mut &asker.socket, &bytes);
        }
        self.forget_asker(token);
    }

    fn asker_of(&self, link: u64, stream: u32) -> Option<u64> {
        let is_it = |it: &Asker| it.stream == Some((link, stream));
        self.askers.iter().find(|(_, it)| is_it(it)).map(|(token, _)| *token)
    }

    /// The kernel has to connect those that wait for streams of an ended session.
    pub(super) fn refuse_askers(&mut self, link: u64) {
        let of_link = |it: &Asker| it.stream.is_some_and(|(number, _)| number == link);
        let all = self.askers.iter().filter(|(_, it)| of_link(it));
        for token in all.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.answer(token, 0);
        }
    }

    /// Handles what has happened to a link's streams.
    pub(super) fn handle_events(&mut self, number: u64) {
        while let Some(event) = self.links.get_mut(&number).and_then(|it| it.session.next_event()) {
            match event {
                Event::Open { stream, client, server } => {
                    self.connect_server(number, stream, client, server);
                }
                Event::Opened(stream) => self.other_accepted(number, stream),
                Event::Refused(stream) => {
                    if let Some(token) = self.asker_of(number, stream) {
                        self.answer(token, 0);
                    }
                }
                Event::Readable(stream) => {
                    self.links.get_mut(&number).into_iter().for_each(|it| it.deliver(stream));
                }
                Event::Room(stream) => {
                    self.links.get_mut(&number).into_iter().for_each(|it| it.wake(stream));
                }
                Event::Reset(stream) => {
                    if let Some(token) = self.asker_of(number, stream) {
                        self.answer(token, 0);
                    }
                    self.links.get_mut(&number).into_iter().for_each(|it| it.was_reset(stream));
                    self.expected.retain(|_, it| (it.0, it.1) != (number, stream));
                }
            }
        }
    }

    fn other_accepted(&mut self, number: u64, stream: u32) {
        let port = self.programs.local_addr().map_or(0, |it| it.port());
        let asker = self.asker_of(number, stream);
        let client = asker.and_then(|token| self.askers.get(&token)).map(|it| it.client);
        match asker.zip(client) {
            Some((token, client)) => {
                let until_ns = self.now_ns() + PROGRAM_NS;
                self.expected.insert(wire::key(client), (number, stream, until_ns));
                self.answer(token, port);
            }
            None => {
                self.links.get_mut(&number).into_iter().for_each(|it| it.session.reset(stream));
            }
        }
    }

    /// Accepts programs that were told to connect, and no others.
    pub(super) fn accept_programs(&mut self) {
        while let Ok((socket, from)) = self.programs.accept() {
            let Some(from) = wire::address(from) else { continue };
            let Some((number, stream, _)) = self.expected.remove(&wire::key(from)) else {
                continue;
            };
            // A kill of this process must reset the program's connection.
            wire::set_reset(&socket, true);
            let is_ready = socket.set_nonblocking(true).is_ok() && socket.set_nodelay(true).is_ok();
            let token = self.watch(&socket, Source::Program(number, stream)).ok();
            let Some(link) = self.links.get_mut(&number) else { continue };
            match token.filter(|_| is_ready && link.session.has(stream)) {
                Some(token) => {
                    link.join(stream, Local::new(socket, token));
                    link.deliver(stream);
                }
                None => link.session.reset(stream),
            }
        }
    }

    /// Connects to a program of this rack for one of another rack.
    fn connect_server(&mut self, number: u64, stream: u32, client: Address, server: Address) {
        let (client_ip, server_ip) = (Ipv4Addr::from(client.ip), Ipv4Addr::from(server.ip));
        let Some(link) = self.links.get(&number) else { return };
        let is_client = self.config.other_with(client_ip) == Some(link.rack);
        let is_server = self.config.nodes.iter().any(|node| node.address == server_ip);
        let begun = (is_client && is_server).then(|| self.begin_server(client, server)).flatten();
        let Some((socket, shown)) = begun else {
            self.links.get_mut(&number).into_iter().for_each(|it| it.session.answer(stream, false));
            return;
        };
        match self.watch(&socket, Source::Server(number, stream)) {
            Ok(token) => {
                self.servers.insert((number, stream), (socket, token, shown));
                self.server_answers(number, stream);
            }
            Err(_) => {
                self.hide(shown);
                let link = self.links.get_mut(&number);
                link.into_iter().for_each(|it| it.session.answer(stream, false));
            }
        }
    }

    fn begin_server(
        &mut self,
        client: Address,
        server: Address,
    ) -> Option<(std::net::TcpStream, u64)> {
        let to = wire::socket_address(server);
        let (socket, own) = wire::prepare_to(to).ok()?;
        let key = wire::key(own);
        // Without a place, the program is told this process's address.
        let shown = if self.accounts.ledger().show(key, wire::key(client)) { key } else { 0 };
        let begun = wire::begin_to(socket, to).and_then(|socket| {
            socket.set_nodelay(true)?;
            wire::set_reset(&socket, true);
            Ok(socket)
        });
        if begun.is_err() {
            self.hide(shown);
        }
        Some((begun.ok()?, shown))
    }

    /// A program has accepted, or not.
    pub(super) fn server_answers(&mut self, number: u64, stream: u32) {
        let Some((socket, token, shown)) = self.servers.get(&(number, stream)) else { return };
        let accepts = match socket.take_error() {
            Ok(None) if socket.peer_addr().is_ok() => true,
            Ok(None) => return,
            _ => false,
        };
        let (token, shown) = (*token, *shown);
        let Some((socket, ..)) = self.servers.remove(&(number, stream)) else { return };
        let link = self.links.get_mut(&number).filter(|it| it.session.has(stream));
        let Some(link) = link.filter(|_| accepts) else {
            self.sources.remove(&token);
            self.hide(shown);
            let link = self.links.get_mut(&number);
            link.into_iter().for_each(|it| it.session.answer(stream, false));
            return;
        };
        self.sources.insert(token, Source::Program(number, stream));
        link.session.answer(stream, true);
        let mut local = Local::new(socket, token);
        local.shown = shown;
        link.join(stream, local);
        link.deliver(stream);
    }
}
