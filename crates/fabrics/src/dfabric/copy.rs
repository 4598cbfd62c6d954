//! Copies by loads and stores of nodes: line by line, or as a train.
//!
//! A store copy that has its two ports, its memory and its node's loads for itself takes a time
//! that depends on its bytes alone. Such a copy is a *train*: two events in place of thousands. Its
//! shape is measured once for each size, by the same code, in a rack of two nodes.
//!
//! Another message that acts on a port of a train *unfolds* it. The rack then plays the flits of
//! the train from its begin up to now, which gives the state that single flits would have left, and
//! schedules the others. A copy that finds its ports in use begins with single flits. So all times
//! are those of single flits; only two events at one picosecond may change their order.

use std::collections::BTreeMap;

use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Handle, Sim};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message};

use super::Event;
use super::config::DfabricConfig;
use super::memory::Memory;
use super::meter::{User, Way};
use super::rack::{Rack, RackId, Transfer, What};
use super::slab::Slab;
use crate::cxl::{self, PairRun, World};

/// Lines that share a request's flit.
const LINES_EACH: u32 = 4;
/// Bytes of a line.
pub(super) const LINE_BYTES: u64 = 64;
/// Shorter copies are never trains: they have few flits.
const TRAIN_BYTES_MIN: u64 = 512;
/// Sizes whose shapes are known at once.
const SHAPES_MAX: usize = 4_096;
/// Pause between two copies in the rack in which shapes are measured.
const PAUSE: Ps = Ps::from_ns(1_000_000);

/// What a node does once a copy has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// A message within the rack ends.
    Finish(Handle),
    /// A packet is read by its node's stack.
    Up(u32),
}

/// A copy by loads, or by stores, of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) kind: Kind,
    pub(super) memory: u16,
    /// Bytes whose loads have not begun.
    pub(super) bytes: u64,
    /// Lines that are not there.
    pub(super) missing: u32,
    pub(super) then: Then,
}

impl Ask {
    /// All of a message within a rack, to a node of it.
    pub(super) fn of(message: &Message, memory: u16, handle: Handle) -> Ask {
        let lines = message.bytes.0.div_ceil(LINE_BYTES).max(1) as u32;
        let (kind, then, bytes) = (message.kind, Then::Finish(handle), message.bytes.0.max(1));
        Ask { kind, memory, bytes, missing: lines, then }
    }
}

/// The time in which the flits of a rack move: of the whole simulation, or of one copy.
pub(super) trait Clock {
    fn now(&self) -> Ps;
    fn at(&mut self, at: Ps, event: Event);
    /// A message's request is at its memory.
    fn at_memory(&mut self, message: Handle, at: Ps);
    /// Data of a message leaves its node.
    fn leaves(&mut self, message: Handle, at: Ps);
}

impl Clock for Sim<Event> {
    fn now(&self) -> Ps {
        Sim::now(self)
    }

    fn at(&mut self, at: Ps, event: Event) {
        Sim::at(self, at, event);
    }

    fn at_memory(&mut self, message: Handle, at: Ps) {
        Sim::at_memory(self, message, at);
    }

    fn leaves(&mut self, message: Handle, at: Ps) {
        Sim::leaves(self, message, at);
    }
}

/// The time of one copy that is played apart from the simulation.
struct Private {
    now: Ps,
    /// By time and insertion, as in the simulation.
    events: BTreeMap<(Ps, u64), Event>,
    inserted: u64,
    leaves: Option<Ps>,
}

impl Private {
    fn new(now: Ps) -> Private {
        Private { now, events: BTreeMap::new(), inserted: 0, leaves: None }
    }
}

impl Clock for Private {
    fn now(&self) -> Ps {
        self.now
    }

    fn at(&mut self, at: Ps, event: Event) {
        self.events.insert((at, self.inserted), event);
        self.inserted += 1;
    }

    fn at_memory(&mut self, _message: Handle, _at: Ps) {}

    fn leaves(&mut self, _message: Handle, at: Ps) {
        self.leaves.get_or_insert(at);
    }
}

/// What a store copy of some size does alone. Times count from its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Its first data leaves.
    leaves: Ps,
    /// It ends.
    ends: Ps,
    /// Its last credit is back: its ports are quiet again.
    quiet: Ps,
    /// The end of its last write in the memory's bandwidth.
    written: Ps,
    run: PairRun,
}

/// A copy of which no flit is simulated.
#[derive(Clone, Copy, Debug)]
struct Train {
    number: u32,
    message: Handle,
    ask: Ask,
    begin: Ps,
    shape: Shape,
    has_ended: bool,
}

/// The trains of a rack.
pub(super) struct Trains {
    /// By the node that stores.
    from: Vec<Option<Train>>,
    /// By the node of the memory: which node stores.
    to: Vec<Option<u16>>,
    begun: u32,
    under_way: usize,
}

impl Trains {
    pub(super) fn new(nodes: u16) -> Trains {
        let nodes = usize::from(nodes);
        Trains { from: vec![None; nodes], to: vec![None; nodes], begun: 0, under_way: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.under_way
    }

    fn take(&mut self, from: u16) -> Option<Train> {
        let train = self.from.get_mut(usize::from(from))?.take()?;
        self.to[usize::from(train.ask.memory)] = None;
        self.under_way -= 1;
        Some(train)
    }

    fn put(&mut self, from: u16, train: Train) {
        self.from[usize::from(from)] = Some(train);
        self.to[usize::from(train.ask.memory)] = Some(from);
        self.under_way += 1;
    }
}

/// Shapes of copies by their bytes. A size that comes once is not measured.
pub(super) struct Shapes {
    config: FabricConfig,
    rules: DfabricConfig,
    /// A rack of two nodes, and the time there.
    rack: Option<Box<(Rack, Ps)>>,
    known: BTreeMap<u64, Option<Shape>>,
    /// False: all copies have single flits, with which a test compares.
    pub(super) are_used: bool,
}

impl Shapes {
    pub(super) fn new(config: &FabricConfig, rules: &DfabricConfig) -> Shapes {
        let (mut config, mut rules) = (config.clone(), rules.clone());
        config.nodes = 2;
        (rules.racks, rules.extra_nics) = (1, 0);
        rules.memory_slice = Ps::ZERO;
        Shapes { config, rules, rack: None, known: BTreeMap::new(), are_used: true }
    }

    /// The shape of a copy; `None` if it is not known, or the copy is not to be a train.
    pub(super) fn of(&mut self, ask: &Ask) -> Option<Shape> {
        if !self.are_used || ask.kind != Kind::Write || ask.bytes < TRAIN_BYTES_MIN {
            return None;
        }
        let is_full = self.known.len() >= SHAPES_MAX;
        match self.known.get(&ask.bytes) {
            Some(Some(shape)) => Some(*shape),
            Some(None) => {
                let shape = self.measure(ask);
                self.known.insert(ask.bytes, Some(shape));
                Some(shape)
            }
            None => {
                if !is_full {
                    self.known.insert(ask.bytes, None);
                }
                None
            }
        }
    }

    fn measure(&mut self, ask: &Ask) -> Shape {
        let build = || Box::new((Rack::new(&self.config, &self.rules, 0), Ps::ZERO));
        let (rack, now) = &mut **self.rack.get_or_insert_with(build);
        let begin = *now + PAUSE;
        let before = rack.fabric.pair_before(0, 1);
        let mut clock = Private::new(begin);
        rack.ask_lines(&mut clock, 0, Ask { memory: 1, ..*ask });
        let ended = rack.play(&mut clock, Ps::MAX).expect("a copy alone ends");
        *now = clock.now;
        Shape {
            leaves: clock.leaves.expect("it has data") - begin,
            ends: ended - begin,
            quiet: clock.now - begin,
            written: rack.memories[1].last_write() - begin,
            run: rack.fabric.pair_run((0, 1), &before, begin),
        }
    }
}

/// What the flits of a rack need of it.
struct InRack<'a, C> {
    clock: &'a mut C,
    rack: RackId,
    transfers: &'a mut Slab<Transfer>,
    memories: &'a mut [Memory],
}

impl<C: Clock> World for InRack<'_, C> {
    fn now(&self) -> Ps {
        self.clock.now()
    }

    fn at(&mut self, at: Ps, event: cxl::Event) {
        self.clock.at(at, Event::Flit(self.rack, event));
    }

    fn finish(&mut self, id: u32, at: Ps) {
        let Transfer { kind, memory, bytes, user, .. } = self.transfers[id];
        let end = match kind {
            Kind::Write => self.memories[usize::from(memory)].written(at, bytes, user),
            Kind::Read | Kind::ReadModifyWrite => at,
        };
        self.clock.at(end, Event::Done(self.rack, id));
    }

    fn at_memory(&mut self, id: u32, at: Ps) {
        if let Some(message) = self.transfers[id].message {
            self.clock.at_memory(message, at);
        }
    }

    fn leaves(&mut self, id: u32, at: Ps) {
        if let Some(message) = self.transfers[id].message {
            self.clock.leaves(message, at);
        }
    }

    fn memory_has(&mut self, id: u32, lines: u8, at: Ps, access: Ps) -> Ps {
        let Transfer { memory, bytes, read, user, .. } = &mut self.transfers[id];
        let memory = &mut self.memories[usize::from(*memory)];
        let (begin, asked) = read.get_or_insert_with(|| (memory.read(at, *bytes, *user), 0));
        *asked += u64::from(lines);
        let took = memory.rate.time((*asked * LINE_BYTES).min(*bytes));
        at.max(*begin + took) + memory.access.unwrap_or(access)
    }
}

/// Trains.
impl Rack {
    /// A node copies, as a train if the shape of the copy is known and its ports are quiet.
    pub(super) fn copy(&mut self, sim: &mut Sim<Event>, node: u16, ask: Ask, shape: Option<Shape>) {
        self.unfold(sim, node);
        let now = sim.now();
        let (Some(shape), Then::Finish(message)) = (shape, ask.then) else {
            return self.ask_lines(sim, node, ask);
        };
        if !self.is_quiet(node, ask.memory, now) {
            return self.ask_lines(sim, node, ask);
        }
        let number = self.trains.begun;
        self.trains.begun = number.wrapping_add(1);
        let train = Train { number, message, ask, begin: now, shape, has_ended: false };
        self.trains.put(node, train);
        sim.at(now + shape.ends, Event::Train(self.id, node, number));
    }

    fn is_quiet(&mut self, from: u16, to: u16, now: Ps) -> bool {
        if let Some(other) = self.trains.to[usize::from(to)] {
            let train = self.trains.from[usize::from(other)].as_ref().expect("it is under way");
            if now < train.begin + train.shape.quiet {
                return false;
            }
            self.settle(other);
        }
        self.members[usize::from(from)].loads.counts() == (0, 0)
            && self.memories[usize::from(to)].last_write() <= now
            && self.fabric.is_quiet(from, to, now)
    }

    /// A train has ended, or its ports are quiet.
    pub(super) fn train(&mut self, sim: &mut Sim<Event>, from: u16, number: u32) {
        let of = self.trains.from[usize::from(from)].as_mut();
        let Some(train) = of.filter(|train| train.number == number) else { return };
        if train.has_ended {
            return self.settle(from);
        }
        train.has_ended = true;
        sim.leaves(train.message, train.begin + train.shape.leaves);
        sim.finish(train.message, sim.now());
        let quiet = train.begin + train.shape.quiet;
        sim.at(quiet, Event::Train(self.id, from, number));
    }

    /// Puts the state that a whole train has left.
    fn settle(&mut self, from: u16) {
        let Some(train) = self.trains.take(from) else { return };
        let Train { ask, begin, shape, .. } = train;
        self.fabric.add_pair_run((from, ask.memory), &shape.run, begin);
        let memory = &mut self.memories[usize::from(ask.memory)];
        memory.set_last_write(begin + shape.written);
        let during = (begin + shape.leaves, begin + shape.written);
        memory.count(User::node(from), Way::Write, during, ask.bytes);
    }

    /// A message acts on the ports of the train from a node: single flits go on in its place.
    fn unfold(&mut self, sim: &mut Sim<Event>, from: u16) {
        let Some(Some(train)) = self.trains.from.get(usize::from(from)).copied() else { return };
        let Train { message, ask, begin, shape, has_ended, .. } = train;
        let now = sim.now();
        if now >= begin + shape.quiet && has_ended {
            return self.settle(from);
        }
        self.trains.take(from);
        let mut clock = Private::new(begin);
        self.ask_lines(&mut clock, from, ask);
        // An end that was told is not told again.
        let told = if has_ended { begin + shape.ends + Ps(1) } else { Ps::ZERO };
        self.play(&mut clock, now.max(told));
        if let Some(leaves) = clock.leaves.filter(|_| !has_ended) {
            sim.leaves(message, leaves);
        }
        for ((at, _), event) in clock.events {
            sim.at(at, event);
        }
    }

    /// A message acts on the memory of a node, or on the switch's transmitter to it.
    pub(super) fn unfold_to(&mut self, sim: &mut Sim<Event>, to: u16) {
        if let Some(Some(from)) = self.trains.to.get(usize::from(to)).copied() {
            self.unfold(sim, from);
        }
    }

    /// Handles the events of a copy before a time. Returns when the copy ended, if it has.
    fn play(&mut self, clock: &mut Private, until: Ps) -> Option<Ps> {
        let mut ended = None;
        while let Some(first) = clock.events.first_entry().filter(|first| first.key().0 < until) {
            let ((now, _), event) = first.remove_entry();
            clock.now = now;
            match event {
                Event::Flit(_, event) => self.flit_now(clock, event),
                Event::Start(_, id) => self.start_now(clock, id),
                Event::Done(_, id) => {
                    let Transfer { port, what, .. } = self.transfers.remove(id);
                    let What::Lines { ask, lines } = what else {
                        unreachable!("a copy has lines alone");
                    };
                    if self.loaded(clock, port, (ask, lines)).is_some() {
                        ended = Some(now);
                    }
                }
                _ => unreachable!("a copy has flits, their begins and their ends"),
            }
        }
        ended
    }
}

/// Transfers and copies.
impl Rack {
    /// Begins a transfer, which first passes its own port.
    pub(super) fn transfer(&mut self, clock: &mut impl Clock, transfer: Transfer) {
        let id = self.transfers.insert(transfer);
        clock.at(clock.now() + self.port, Event::Start(self.id, id));
    }

    /// A transfer has passed its port.
    pub(super) fn start(&mut self, sim: &mut Sim<Event>, id: u32) {
        self.unfold(sim, self.transfers[id].port);
        self.start_now(sim, id);
    }

    fn start_now(&mut self, clock: &mut impl Clock, id: u32) {
        let Transfer { kind, port, memory, bytes, .. } = self.transfers[id];
        let message = Message {
            index: 0,
            arrival: clock.now(),
            kind,
            compute: port,
            memory,
            bytes: Bytes(bytes),
        };
        let Rack { id: rack, fabric, transfers, memories, .. } = self;
        fabric.take(&mut InRack { clock, rack: *rack, transfers, memories }, id, &message);
    }

    /// An event of the memory fabric.
    pub(super) fn flit(&mut self, sim: &mut Sim<Event>, event: cxl::Event) {
        if self.trains.len() > 0 {
            let (from, to) = self.fabric.acts_on(&event);
            from.into_iter().for_each(|from| self.unfold(sim, from));
            to.into_iter().for_each(|to| self.unfold_to(sim, to));
        }
        self.flit_now(sim, event);
    }

    fn flit_now(&mut self, clock: &mut impl Clock, event: cxl::Event) {
        let Rack { id: rack, fabric, transfers, memories, .. } = self;
        fabric.on_event(&mut InRack { clock, rack: *rack, transfers, memories }, event);
    }

    /// A node copies: its loads and stores are bounded in number.
    fn ask_lines(&mut self, clock: &mut impl Clock, node: u16, ask: Ask) {
        let lines = ask.missing.into();
        let id = self.asks.insert(ask);
        let member = &mut self.members[usize::from(node)];
        member.asks.push_back(id);
        let go = member.loads.ask(lines);
        self.load(clock, node, go);
    }

    fn load(&mut self, clock: &mut impl Clock, node: u16, mut go: u32) {
        while go > 0 {
            let member = &mut self.members[usize::from(node)];
            let id = *member.asks.front().expect("a line waits in a copy");
            let ask = &mut self.asks[id];
            let lines = go.min(LINES_EACH).min(ask.bytes.div_ceil(LINE_BYTES) as u32);
            let bytes = ask.bytes.min(u64::from(lines) * LINE_BYTES);
            ask.bytes -= bytes;
            go -= lines;
            if ask.bytes == 0 {
                member.asks.pop_front();
            }
            let message = match ask.then {
                Then::Finish(message) => Some(message),
                Then::Up(_) => None,
            };
            let what = What::Lines { ask: id, lines };
            let (kind, memory) = (ask.kind, ask.memory);
            let (read, user) = (None, User::node(node));
            let transfer = Transfer { kind, port: node, memory, bytes, what, message, read, user };
            self.transfer(clock, transfer);
        }
    }

    /// Lines of a copy have come. Returns what follows if they were the last ones.
    pub(super) fn loaded(
        &mut self,
        clock: &mut impl Clock,
        node: u16,
        (id, lines): (u32, u32),
    ) -> Option<Then> {
        let window = &mut self.members[usize::from(node)].loads;
        let go = (0..lines).map(|_| window.end()).sum();
        self.load(clock, node, go);
        let ask = &mut self.asks[id];
        ask.missing -= lines;
        (ask.missing == 0).then(|| self.asks.remove(id).then)
    }
}
