//! Subflows to and from the processes of other racks: which are tried, and when.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::frame::SUBFLOWS_MAX;
use super::greet::{Greeting, OTHER_KEY, OTHER_PROTOCOL, Outcome};
use super::handshake::Hello;
use super::link::Link;
use super::process::{Attempt, GREETING_NS, Process, Source, ms};
use super::{Notice, wire};

/// Time between two attempts at a subflow: the first one, and the longest.
const WAIT_NS: u64 = ms(100);
const WAIT_NS_MAX: u64 = ms(400);
/// Most handshakes at a time that other processes began.
const GREETINGS_MAX: usize = 256;
/// Least time between two equal notices.
const TELL_NS: u64 = ms(10_000);

impl Process<'_> {
    /// Plans the subflows to all racks.
    pub(super) fn plan(&mut self) {
        for rack in 0..self.config.others.len() {
            self.plan_rack(rack);
        }
    }

    /// Begins a session with another rack.
    pub(super) fn plan_rack(&mut self, rack: usize) {
        self.attempts.retain(|it| it.rack != rack);
        let Ok(id) = Process::random() else { return };
        let subflows = self.config.nics().len().max(self.config.others[rack].nics.len());
        let subflows = subflows.min(SUBFLOWS_MAX);
        let number = self.number();
        self.links.insert(number, Link::new(rack, id, true, subflows));
        let next_ns = self.now_ns();
        for subflow in 0..subflows {
            let (greeting, wait_ns, incarnation) = (None, WAIT_NS, 0);
            self.attempts.push(Attempt { rack, subflow, greeting, next_ns, wait_ns, incarnation });
        }
    }

    /// A subflow is to be connected again, if this process connects it.
    pub(super) fn try_again(&mut self, number: u64, subflow: usize, now_ns: u64) {
        let Some(link) = self.links.get(&number).filter(|link| link.opens) else { return };
        let rack = link.rack;
        let is_it = |it: &&mut Attempt| it.rack == rack && it.subflow == subflow;
        if let Some(attempt) = self.attempts.iter_mut().find(is_it) {
            attempt.greeting = None;
            attempt.next_ns = now_ns;
            attempt.wait_ns = WAIT_NS;
        }
    }

    fn link_to(&self, rack: usize) -> Option<u64> {
        self.links.iter().find(|(_, it)| it.opens && it.rack == rack).map(|(number, _)| *number)
    }

    /// Begins the attempts that are due.
    pub(super) fn attempt(&mut self) {
        let now_ns = self.now_ns();
        for index in 0..self.attempts.len() {
            let attempt = &self.attempts[index];
            let (rack, subflow) = (attempt.rack, attempt.subflow);
            let Some(number) = self.link_to(rack) else { continue };
            let is_up = self.links[&number].session.stripe.is_up(subflow);
            if is_up || attempt.greeting.is_some() || now_ns < attempt.next_ns {
                continue;
            }
            let id = self.links[&number].id;
            let subflows = self.links[&number].paths.len();
            let token = self.begin(rack, subflow, subflows, id, attempt.incarnation + 1);
            let attempt = &mut self.attempts[index];
            attempt.incarnation += 1;
            attempt.greeting = token;
            attempt.next_ns = now_ns + attempt.wait_ns;
        }
    }

    fn begin(
        &mut self,
        rack: usize,
        subflow: usize,
        subflows: usize,
        session: [u8; 16],
        incarnation: u32,
    ) -> Option<u64> {
        let (config, other) = (self.config, &self.config.others[rack]);
        let nics = config.nics();
        let nic = nics[subflow % nics.len()];
        let to = other.nics[subflow % other.nics.len()];
        // Without a route there is nothing to wait for.
        let socket = wire::connect_by(nic, SocketAddrV4::new(to, other.port)).ok()?;
        // Acknowledgements and requests are short.
        socket.set_nodelay(true).ok()?;
        let (nonce, unused) = (Process::random().ok()?, Process::random().ok()?);
        let (subflow, subflows) = (subflow as u32, subflows as u32);
        let rack = config.name.clone();
        let hello = Hello { session, nonce, subflow, subflows, incarnation, rack };
        let token = self.watch(&socket, Source::Greeting).ok()?;
        let until_ns = self.now_ns() + GREETING_NS;
        let greeting = Greeting::new(socket, token, until_ns, to, Some(hello), unused);
        self.greetings.insert(token, greeting);
        Some(token)
    }

    /// Accepts connections of other racks' processes.
    pub(super) fn accept_racks(&mut self) {
        while let Ok((socket, from)) = self.racks.accept() {
            let SocketAddr::V4(from) = from else { continue };
            let is_known = (0..self.config.others.len()).any(|it| self.is_nic_of(it, *from.ip()));
            if !is_known || self.greetings.len() >= GREETINGS_MAX {
                self.tell_at_times(*from.ip(), None);
                continue;
            }
            let Ok(nonce) = Process::random() else { continue };
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            let Ok(token) = self.watch(&socket, Source::Greeting) else { continue };
            let until_ns = self.now_ns() + GREETING_NS;
            let greeting = Greeting::new(socket, token, until_ns, *from.ip(), None, nonce);
            self.greetings.insert(token, greeting);
        }
    }

    pub(super) fn greet(&mut self, token: u64) {
        let (config, secret) = (self.config, &self.secret);
        let is_known = |hello: &Hello, from: Ipv4Addr| {
            let is_subflow = hello.subflow < hello.subflows;
            let is_count = hello.subflows as usize <= SUBFLOWS_MAX;
            let mut racks = config.others.iter().filter(|it| it.name == hello.rack);
            is_subflow && is_count && racks.any(|it| it.nics.contains(&from))
        };
        let Some(greeting) = self.greetings.get_mut(&token) else { return };
        match greeting.advance(secret, is_known) {
            Outcome::Waits => {}
            Outcome::Failed(why) => self.greeting_failed(token, why),
            Outcome::Ready => {
                if let Some(greeting) = self.greetings.remove(&token) {
                    self.greeted(greeting);
                }
            }
        }
    }

    pub(super) fn greeting_failed(&mut self, token: u64, why: &'static str) {
        self.sources.remove(&token);
        let Some(greeting) = self.greetings.remove(&token) else { return };
        let is_it = |it: &&mut Attempt| it.greeting == Some(token);
        let is_own = match self.attempts.iter_mut().find(is_it) {
            Some(attempt) => {
                attempt.greeting = None;
                attempt.wait_ns = (attempt.wait_ns * 2).min(WAIT_NS_MAX);
                true
            }
            None => false,
        };
        // A process that is not there yet is no news.
        if !is_own || why == OTHER_KEY || why == OTHER_PROTOCOL {
            self.tell_at_times(greeting.from, Some(why));
        }
    }

    /// Tells why an address was refused, or that it is a stranger's: each at most every
    /// [`TELL_NS`], because attempts are repeated.
    fn tell_at_times(&mut self, from: Ipv4Addr, why: Option<&'static str>) {
        let now_ns = self.now_ns();
        if self.told_ns.get(&(from, why)).is_some_and(|told_ns| now_ns < told_ns + TELL_NS) {
            return;
        }
        if self.told_ns.len() >= GREETINGS_MAX {
            self.told_ns.clear();
        }
        self.told_ns.insert((from, why), now_ns);
        (self.tell)(match why {
            Some(why) => Notice::Refused { from, why },
            None => Notice::Stranger { from },
        });
    }

    /// A subflow has been agreed on.
    fn greeted(&mut self, greeting: Greeting) {
        let Some(hello) = greeting.hello.clone() else { return };
        self.told_ns.retain(|(from, _), _| *from != greeting.from);
        let (subflow, incarnation) = (hello.subflow as usize, hello.incarnation);
        let own = self.attempts.iter_mut().find(|it| it.greeting == Some(greeting.token));
        if let Some(attempt) = own {
            attempt.greeting = None;
            attempt.wait_ns = WAIT_NS;
            let rack = attempt.rack;
            match self.link_to(rack).filter(|it| self.links[it].id == hello.session) {
                Some(number) => self.add_path(number, subflow, incarnation, greeting),
                None => {
                    self.sources.remove(&greeting.token);
                }
            }
            return;
        }
        let Some(rack) = self.config.others.iter().position(|it| it.name == hello.rack) else {
            return;
        };
        let of_rack = |it: &Link| !it.opens && it.rack == rack;
        let known = self.links.iter().find(|(_, it)| of_rack(it) && it.id == hello.session);
        let number = match known.map(|(number, link)| (*number, link.paths.len())) {
            Some((number, subflows)) if subflows == hello.subflows as usize => number,
            Some(_) => {
                self.sources.remove(&greeting.token);
                return;
            }
            None => {
                let old: Vec<u64> =
                    self.links.iter().filter(|(_, it)| of_rack(it)).map(|(at, _)| *at).collect();
                for number in old {
                    self.end_link(number, "the other process has begun anew");
                }
                let link = Link::new(rack, hello.session, false, hello.subflows as usize);
                let number = self.number();
                self.links.insert(number, link);
                number
            }
        };
        if self.links[&number].session.incarnation(subflow) < incarnation {
            self.add_path(number, subflow, incarnation, greeting);
        } else {
            self.sources.remove(&greeting.token);
        }
    }
}
