//! CXL: flits, with hop-by-hop credits.
//!
//! A message consists of cache lines. A read sends one request per line, and gets a header and four
//! slots of data for each; a write sends these. Slots of 16 B are packed into flits across
//! messages. A link's sender has a credit for each entry of the buffer at its end; all destinations
//! share the credits. The switch keeps the entries from a port in one queue, or in one queue per
//! class of messages with its own credits. The first entry waits for its egress's turn and for a
//! credit, and all entries behind it wait too, wherever they go, unless each output has a queue.

mod config;
mod link;
mod port;
mod quiet;
mod transaction;

use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::{FabricStats, Utilisation};
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

pub use link::Flit;
use link::{Credits, Line, SLOT_BYTES};
use port::{Egress, Ingress, Waiting};
pub use port::{Place, Queues, Sharing};
use transaction::{Entry, Flow, LINE_BYTES, LINE_SLOTS};

pub use config::CxlConfig;
pub(crate) use quiet::PairRun;

/// The events of the fabric.
#[derive(Clone, Copy)]
pub enum Event {
    /// A node's transmitter can take the next transaction.
    Uplink(NodeIndex),
    /// A node's transmitter has a credit.
    Credit(NodeIndex),
    /// The first entry of a port's buffer, or of a class's part of it, can be forwarded.
    First(Place),
    /// An entry of a queue has left through an egress, which can take the next one.
    Left(Place, NodeIndex),
    /// An egress has a credit.
    Downlink(NodeIndex),
    /// Requests for this many lines have passed their memory and its port.
    Respond(Handle, u8),
    /// The last credit of a message is back: nothing of it is left.
    Returned,
}

/// How messages share a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All take turns, line by line.
    InTurn,
    /// Those of a kind follow each other: loads and stores of some lines in the order of their
    /// node, and packets of CXL.io, which a link carries in one piece. The two kinds take turns,
    /// as the multiplexer of CXL.io and CXL.mem lets them.
    Whole,
}

/// Number of lines after which the packing of either flit repeats.
const PACKING_LINES: u64 = 12;

/// The CXL network.
pub struct Cxl {
    config: CxlConfig,
    order: Order,
    propagation: Ps,
    memory_access: Ps,
    ingress: Vec<Ingress>,
    egress: Vec<Egress>,
    flows: Vec<Option<Flow>>,
    period: u64,
    /// Number of messages taken.
    flows_taken: u64,
    lines_asked: u64,
    lines_delivered: u64,
}

/// What the flits of a network are part of: its time, its memories, and the ends of its messages.
/// A whole fabric is one such part, and a rack of fabric `dfabric` is another.
pub(crate) trait World {
    /// The current time.
    fn now(&self) -> Ps;

    /// Schedules an event.
    fn at(&mut self, at: Ps, event: Event);

    /// The last line of a message arrives at `at`.
    fn finish(&mut self, handle: Handle, at: Ps);

    /// A message's request is at its memory at `at`.
    fn at_memory(&mut self, handle: Handle, at: Ps);

    /// Data of a message leaves its node at `at`.
    fn leaves(&mut self, handle: Handle, at: Ps);

    /// The time at which a message's memory, which takes `access`, has lines requested at `at`.
    fn memory_has(&mut self, _handle: Handle, _lines: u8, at: Ps, access: Ps) -> Ps {
        at + access
    }
}

impl World for Sim<Event> {
    fn now(&self) -> Ps {
        Sim::now(self)
    }

    fn at(&mut self, at: Ps, event: Event) {
        Sim::at(self, at, event);
    }

    fn finish(&mut self, handle: Handle, at: Ps) {
        Sim::finish(self, handle, at);
    }

    fn at_memory(&mut self, handle: Handle, at: Ps) {
        Sim::at_memory(self, handle, at);
    }

    fn leaves(&mut self, handle: Handle, at: Ps) {
        Sim::leaves(self, handle, at);
    }
}

/// Schedules a check for a credit, unless an earlier one is pending.
fn look(sim: &mut impl World, pending: &mut Option<Ps>, at: Ps, event: Event) {
    if pending.is_none_or(|pending| at < pending) {
        *pending = Some(at);
        sim.at(at, event);
    }
}

/// Updates the pending check after a check at `now`: a later one may remain.
fn looked(pending: &mut Option<Ps>, now: Ps) {
    if *pending == Some(now) {
        *pending = None;
    }
}

impl Cxl {
    /// An idle network of so many nodes.
    pub(crate) fn network(
        (own, order): (CxlConfig, Order),
        nodes: u16,
        link: BitsPerSecond,
        (propagation, memory_access): (Ps, Ps),
    ) -> Cxl {
        let line = || Line::new(own.flit, link);
        let ingress = |_| Ingress::new(&own, line());
        let egress = |_| Egress::new(&own, line());
        Cxl {
            config: own,
            order,
            propagation,
            memory_access,
            ingress: (0..nodes).map(ingress).collect(),
            egress: (0..nodes).map(egress).collect(),
            flows: Vec::new(),
            period: Cxl::period_bytes(&own, link, propagation),
            flows_taken: 0,
            lines_asked: 0,
            lines_delivered: 0,
        }
    }

    /// Takes a message that has passed its node's port.
    pub(crate) fn take(&mut self, sim: &mut impl World, handle: Handle, message: &Message) {
        let at = handle as usize;
        if at >= self.flows.len() {
            self.flows.resize_with(at + 1, || None);
        }
        self.flows_taken += 1;
        let flow = Flow::of(message, self.order, self.flows_taken);
        self.lines_asked += u64::from(flow.missing);
        let turn = flow.turn(handle, false);
        self.flows[at] = Some(flow);
        let channel = self.config.sharing.channel(turn.class);
        self.ingress[usize::from(message.compute)].push(channel, turn);
        self.uplink(sim, message.compute);
    }

    /// Handles an event whose time has come.
    pub(crate) fn on_event(&mut self, sim: &mut impl World, event: Event) {
        match event {
            Event::Uplink(node) => {
                self.ingress[usize::from(node)].busy = false;
                self.uplink(sim, node);
            }
            Event::Credit(node) => {
                looked(&mut self.ingress[usize::from(node)].look, sim.now());
                self.uplink(sim, node);
            }
            Event::First(place) => self.wait(sim, place),
            Event::Left(place, node) => {
                self.egress[usize::from(node)].busy = false;
                self.wait(sim, place);
                self.downlink(sim, node);
            }
            Event::Downlink(node) => {
                looked(&mut self.egress[usize::from(node)].look, sim.now());
                self.downlink(sim, node);
            }
            Event::Respond(handle, lines) => self.respond(sim, handle, lines),
            Event::Returned => {}
        }
    }

    fn flow(&mut self, handle: Handle) -> &mut Flow {
        self.flows[handle as usize].as_mut().expect("it has not ended")
    }

    /// Sends a node's next transaction, if it has one and a credit. Its messages take turns.
    fn uplink(&mut self, sim: &mut impl World, node: NodeIndex) {
        let now = sim.now();
        let requests_each = self.config.requests_each;
        let port = &mut self.ingress[usize::from(node)];
        if port.busy {
            return;
        }
        let Some(turn) = port.take(now) else {
            if let Some(next) = port.next_credit() {
                look(sim, &mut port.look, next, Event::Credit(node));
            }
            return;
        };
        let flow = self.flow(turn.handle);
        let (entry, more) = if turn.is_data {
            flow.data(turn.handle)
        } else {
            flow.request(turn.handle, requests_each)
        };
        let ready = self.propagation + self.config.switch;
        let at = self.config.sharing.channel(turn.class);
        let port = &mut self.ingress[usize::from(node)];
        if more {
            port.go_on(at, turn);
        }
        let sent = port.line.send(now, entry.slots.into());
        if turn.is_data {
            sim.leaves(turn.handle, now);
        }
        port.line.data_slots += u64::from(entry.data_slots);
        port.busy = true;
        sim.at(sent.next, Event::Uplink(node));
        let channel = &mut port.channels[usize::from(at)];
        let (queue, first) = channel.buffer(self.config.queues, sent.end + ready, entry);
        if first {
            sim.at(sent.end + ready, Event::First(Place { port: node, channel: at, queue }));
        }
    }

    /// Puts the first entry of a queue at its egress, if it can be forwarded.
    fn wait(&mut self, sim: &mut impl World, place: Place) {
        let port = &mut self.ingress[usize::from(place.port)];
        let queue = port.channels[usize::from(place.channel)].queue(place.queue);
        let Some(&(ready, entry)) = queue.entries.front() else {
            queue.forwarding = false;
            return;
        };
        if ready > sim.now() {
            sim.at(ready, Event::First(place));
            return;
        }
        self.egress[usize::from(entry.to)].waiting.push_back(Waiting::of(place, &entry));
        self.downlink(sim, entry.to);
    }

    /// Forwards the first entry of the next port in turn.
    fn downlink(&mut self, sim: &mut impl World, node: NodeIndex) {
        let now = sim.now();
        let egress = &mut self.egress[usize::from(node)];
        if egress.busy || egress.waiting.is_empty() {
            return;
        }
        let Some(place) = egress.take(now) else {
            // All its entries are on their way through: a node takes every arrival.
            let next = egress.next_credit().expect("a node's entries come free by themselves");
            look(sim, &mut egress.look, next, Event::Downlink(node));
            return;
        };
        let at = usize::from(place.channel);
        let ingress = &mut self.ingress[usize::from(place.port)];
        let channel = &mut ingress.channels[at];
        let entry = channel.forward(place.queue);
        let sent = egress.line.send(now, entry.slots.into());
        egress.line.data_slots += u64::from(entry.data_slots);
        egress.busy = true;
        sim.at(sent.next, Event::Left(place, node));
        let credit = self.config.credit_return + self.propagation;
        let arrived = sent.end + self.propagation + self.config.port;
        egress.credits[at].give(arrived + credit);
        channel.credits.give(sent.end + credit);
        if !ingress.busy && !channel.turns.is_empty() {
            // The port had no credit, and none on the way.
            look(sim, &mut ingress.look, sent.end + credit, Event::Credit(place.port));
        }
        if self.arrive(sim, entry, arrived) {
            sim.at(arrived + credit, Event::Returned);
        }
    }

    /// Processes an arrival at a node. Returns true if its message ends with it.
    fn arrive(&mut self, sim: &mut impl World, entry: Entry, at: Ps) -> bool {
        if entry.requests > 0 {
            sim.at_memory(entry.handle, at);
            let has = sim.memory_has(entry.handle, entry.requests, at, self.memory_access);
            let respond = has + self.config.port;
            sim.at(respond, Event::Respond(entry.handle, entry.requests));
            return false;
        }
        self.lines_delivered += 1;
        let flow = self.flow(entry.handle);
        flow.missing -= 1;
        if flow.missing == 0 {
            self.flows[entry.handle as usize] = None;
            sim.finish(entry.handle, at);
            return true;
        }
        false
    }

    fn respond(&mut self, sim: &mut impl World, handle: Handle, lines: u8) {
        let flow = self.flow(handle);
        let (node, first) = (flow.memory, flow.ready == 0);
        flow.ready += u32::from(lines);
        let turn = flow.turn(handle, true);
        if first {
            self.ingress[usize::from(node)].push(self.config.sharing.channel(turn.class), turn);
        }
        self.uplink(sim, node);
    }

    /// Number of data bytes after which the timing of a message alone repeats. It is the packing's
    /// period, or, where credits delay a message, the data of all credits.
    fn period_bytes(own: &CxlConfig, link: BitsPerSecond, propagation: Ps) -> u64 {
        let flit = own.flit.time(link);
        // A transaction may wait for the flit in progress.
        let flits = flit * (1 + (LINE_SLOTS + 1).div_ceil(own.flit.slots()));
        let hop = flits + propagation * 2 + own.credit_return;
        let circle = (hop + own.switch + flits).0.max((hop + own.port).0);
        let lines = circle * own.flit.slots() / (flit.0 * LINE_SLOTS) + 2;
        let held = |entries: u32| {
            let entries = u64::from(entries);
            if entries >= lines { 1 } else { entries }
        };
        let held = own.sharing.channels().into_iter().map(held).fold(1, lcm);
        PACKING_LINES * held * LINE_BYTES
    }
}

impl Fabric for Cxl {
    type Event = Event;
    type Parameters = CxlConfig;
    const FORGETS: bool = true;

    fn build(config: &FabricConfig, _seed: u64) -> Cxl {
        let times = (config.propagation, config.memory_access);
        let own = (*config.of::<CxlConfig>(), Order::InTurn);
        Cxl::network(own, config.nodes, config.link, times)
    }

    fn submit_delay(&self) -> Ps {
        self.config.port
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        self.take(sim, handle, message);
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        self.on_event(sim, event);
    }

    fn period(&self) -> Bytes {
        Bytes(self.period)
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        transaction::blocks(config.of::<CxlConfig>().flit, kind, bytes)
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        if self.lines_asked != self.lines_delivered {
            return Err(Violation(format!(
                "{} lines asked for, {} delivered",
                self.lines_asked, self.lines_delivered
            )));
        }
        let channels = || self.ingress.iter().flat_map(|port| &port.channels);
        let mut egress = self.egress.iter().flat_map(|port| &port.credits);
        if !channels().all(|of| of.credits.all_back()) || !egress.all(Credits::all_back) {
            return Err(Violation("a credit did not come back".to_owned()));
        }
        let holds = |port: &Ingress| port.channels.iter().any(|of| !of.is_empty());
        if let Some(port) = self.ingress.iter().position(holds) {
            return Err(Violation(format!("port {port} still holds an entry")));
        }
        let nodes = self.ingress.len() as u16;
        Ok(stats_of(std::iter::once((self, nodes)), ended))
    }
}

fn lcm(one: u64, other: u64) -> u64 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    one / divisor * other
}

/// The statistics of the first so many nodes of several networks.
pub(crate) fn stats_of<'n>(
    networks: impl Iterator<Item = (&'n Cxl, u16)> + Clone,
    ended: Ps,
) -> FabricStats {
    let up = networks.clone().flat_map(|(of, nodes)| &of.ingress[..usize::from(nodes)]);
    let down = networks.flat_map(|(of, nodes)| &of.egress[..usize::from(nodes)]);
    let up: Vec<&Line> = up.map(|port| &port.line).collect();
    let down: Vec<&Line> = down.map(|port| &port.line).collect();
    stats(&up, &down, ended)
}

fn stats(up: &[&Line], down: &[&Line], ended: Ps) -> FabricStats {
    let shares = |lines: &[&Line]| -> Vec<f64> { lines.iter().map(|l| l.share(ended)).collect() };
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    let max = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    let (ups, downs) = (shares(up), shares(down));
    let utilisation = Utilisation {
        uplink_mean: mean(&ups),
        uplink_max: max(&ups),
        downlink_mean: mean(&downs),
        downlink_max: max(&downs),
    };
    let all = || up.iter().chain(down);
    let data: u64 = all().map(|line| line.data_slots).sum();
    let sent: f64 = all().map(|line| line.bytes_sent()).sum();
    FabricStats {
        load_measured: Some(utilisation.uplink_mean.max(utilisation.downlink_mean)),
        control_overhead: (sent > 0.0).then(|| 1.0 - (data * SLOT_BYTES) as f64 / sent),
        utilisation: Some(utilisation),
        ..FabricStats::default()
    }
}
