//! Nodes with two interfaces, two switches and the links between them, in virtual time. Any
//! component can be killed at any moment, and its death is noticed some time later or never.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{
    Action, Chunk, ChunkKind, EdmConfig, Emission, Event, Grant, Interface, Memory, MemoryRequest,
    MessageId, MirroredConfig, MirroredHost, NodeId, Notice, Outbound, Request, Status, StatusCode,
    Streams, Switch, Token, Transmit,
};
use ethermem_units::{Bytes, Ps};

/// One block slot of a link.
pub(crate) const SLOT: Ps = Ps(640);
/// Time from one end of a link to the other, pipelines included.
const FLIGHT: Ps = Ps(40_000);

/// A message on a link.
#[derive(Clone)]
enum Item {
    Up(Outbound, Vec<u8>),
    Unused,
    Heard(NodeId),
    Streams(NodeId, Streams),
    Grant(Grant),
    Request(MemoryRequest),
    Chunk(Chunk, Vec<u8>),
    Status(Status),
    PeerDown(NodeId),
    PeerUp(NodeId),
}

#[derive(Clone)]
enum Happening {
    /// An item arrives at the switch from the node, or in the other direction, unless the link was
    /// cut since that count of cuts.
    AtSwitch(u8, NodeId, u32, Item),
    AtNode(u8, NodeId, u32, Item),
    Kill(Kill),
    /// The node, or the switch, notices that their link is dead.
    NodeNotices(u8, NodeId),
    SwitchNotices(u8, NodeId),
    /// A link is repaired. Its switch, then its node, put it back into use, unless it was cut since
    /// that count of cuts.
    Repair(u8, NodeId, u32),
    NodeRestores(u8, NodeId, u32),
    /// A switch starts, as after power-on, and restarts each of its links.
    Start(u8),
}

/// A component that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    /// A switch; all nodes notice its death.
    Switch(u8),
    /// A switch that stops while its links look alive.
    SilentSwitch(u8),
    /// The link of a node to a switch.
    Link(u8, NodeId),
    /// The link of a node to a switch, which is repaired after this time.
    Flap(u8, NodeId, Ps),
    /// A switch that stops without a sign and restarts after this time without its state.
    Restart(u8, Ps),
    /// A node.
    Node(NodeId),
}

pub(crate) struct Network {
    pub(crate) now: Ps,
    pub(crate) nodes: Vec<MirroredHost>,
    pub(crate) memories: Vec<Memory<Vec<u8>>>,
    pub(crate) events: BTreeMap<Token, (Event, Ps)>,
    /// The bytes that each read has received so far.
    pub(crate) reads: BTreeMap<Token, Vec<u8>>,
    pub(crate) writes: BTreeMap<Token, Vec<u8>>,
    responses: BTreeMap<(NodeId, NodeId, usize), (MessageId, Vec<u8>)>,
    switches: Vec<Switch>,
    config: SchedulerConfig,
    agenda: BinaryHeap<Reverse<(Ps, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    sequence: u64,
    /// The time at which each direction of each link is free, and how late its flights are.
    up_free: Vec<Ps>,
    down_free: Vec<Ps>,
    lateness: Vec<Ps>,
    dead_links: Vec<bool>,
    /// Links that are never repaired.
    broken: Vec<bool>,
    cuts: Vec<u32>,
    /// Links that their node still uses.
    used: Vec<bool>,
    dead_nodes: Vec<bool>,
    dead_switches: Vec<bool>,
}

impl Network {
    pub(crate) fn new(
        node_count: u16,
        memory_bytes: usize,
        edm: &EdmConfig,
        mut lateness: impl FnMut() -> Ps,
    ) -> Network {
        let node = |n| {
            MirroredHost::new(MirroredConfig {
                node: NodeId::at(n),
                nodes: node_count,
                edm,
                messages_max: 64,
                interfaces: 2,
                start: 0,
            })
        };
        let config = SchedulerConfig::new(node_count, edm, Ps(2_560), SLOT);
        let links = usize::from(node_count) * 2;
        Network {
            now: Ps::ZERO,
            nodes: (0..node_count).map(node).collect(),
            memories: vec![Memory::new(vec![0; memory_bytes]); usize::from(node_count)],
            events: BTreeMap::new(),
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            responses: BTreeMap::new(),
            switches: (0..2).map(|_| Switch::new(config.clone())).collect(),
            config,
            agenda: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            sequence: 0,
            up_free: vec![Ps::ZERO; links],
            down_free: vec![Ps::ZERO; links],
            lateness: (0..links).map(|_| lateness()).collect(),
            dead_links: vec![false; links],
            broken: vec![false; links],
            cuts: vec![0; links],
            used: vec![true; links],
            dead_nodes: vec![false; usize::from(node_count)],
            dead_switches: vec![false; 2],
        }
    }

    fn link(switch: u8, node: NodeId) -> usize {
        usize::from(node.number()) * 2 + usize::from(switch)
    }

    fn is_dead(&self, switch: u8, node: NodeId) -> bool {
        self.dead_links[Network::link(switch, node)]
            || self.dead_nodes[usize::from(node.number())]
            || self.dead_switches[usize::from(switch)]
    }

    fn at(&mut self, when: Ps, happening: Happening) {
        self.agenda.push(Reverse((when, self.sequence)));
        self.happenings.insert(self.sequence, happening);
        self.sequence += 1;
    }

    pub(crate) fn kill_at(&mut self, when: Ps, kill: Kill) {
        self.at(when, Happening::Kill(kill));
    }

    /// Submits a request; `data` is the data of a write.
    pub(crate) fn submit(&mut self, node: NodeId, request: Request, data: Vec<u8>) -> bool {
        let taken = self.nodes[usize::from(node.number())].submit(self.now, request).is_ok();
        if taken {
            self.writes.insert(request.token, data);
            self.drive(node);
        }
        taken
    }

    /// Runs to `until`, or to the end of everything in flight.
    pub(crate) fn run(&mut self, until: Ps) {
        while let Some(next) = self.next_time().filter(|&next| next <= until) {
            self.now = next;
            while let Some(&Reverse((when, key))) = self.agenda.peek() {
                if when > self.now {
                    break;
                }
                self.agenda.pop();
                let happening = self.happenings.remove(&key).expect("it was put there");
                self.happen(happening);
            }
            for node in 0..self.nodes.len() {
                let due = self.nodes[node].next_timeout().is_some_and(|at| at <= self.now);
                if due && !self.dead_nodes[node] {
                    self.nodes[node].on_timer(self.now);
                    self.drive(NodeId::at(node as u16));
                }
            }
            for switch in 0..2 {
                self.step_switch(switch);
            }
        }
        self.now = self.now.max(until);
    }

    fn next_time(&self) -> Option<Ps> {
        let agenda = self.agenda.peek().map(|&Reverse((when, _))| when);
        let nodes = self.nodes.iter().enumerate().filter(|&(n, _)| !self.dead_nodes[n]);
        let timers = nodes.filter_map(|(_, node)| node.next_timeout());
        let switches = self.switches.iter().enumerate().filter(|&(s, _)| !self.dead_switches[s]);
        let wakes = switches.filter_map(|(_, switch)| switch.next_wake());
        agenda.into_iter().chain(timers).chain(wakes).min().map(|next| next.max(self.now))
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::AtSwitch(switch, node, cuts, item) => {
                let same = cuts == self.cuts[Network::link(switch, node)];
                if same && !self.is_dead(switch, node) {
                    self.at_switch(switch, node, item);
                }
            }
            Happening::AtNode(switch, node, cuts, item) => {
                let same = cuts == self.cuts[Network::link(switch, node)];
                if same && !self.is_dead(switch, node) {
                    self.at_node(switch, node, item);
                    self.drive(node);
                }
            }
            Happening::Kill(kill) => self.kill(kill),
            Happening::NodeNotices(switch, node) => {
                if !self.dead_nodes[usize::from(node.number())] {
                    self.nodes[usize::from(node.number())]
                        .fail_interface(self.now, Interface(switch));
                    self.drive(node);
                }
            }
            Happening::SwitchNotices(switch, node) => {
                if !self.dead_switches[usize::from(switch)] {
                    self.fail_port(switch, node);
                }
            }
            Happening::Start(switch) => self.start(switch),
            Happening::Repair(switch, node, cuts) => self.repair(switch, node, cuts),
            Happening::NodeRestores(switch, node, cuts) => {
                let link = Network::link(switch, node);
                if cuts == self.cuts[link] && !self.is_dead(switch, node) {
                    self.nodes[usize::from(node.number())].restore_interface(Interface(switch));
                    self.used[link] = true;
                }
            }
        }
    }

    /// A link comes back when both ends have disabled it. The node's end restarts after the
    /// switch's end, and before everything that the switch sends from then on.
    fn repair(&mut self, switch: u8, node: NodeId, cuts: u32) {
        let link = Network::link(switch, node);
        let dead =
            self.dead_nodes[usize::from(node.number())] || self.dead_switches[usize::from(switch)];
        if dead || self.broken[link] || cuts != self.cuts[link] {
            return;
        }
        assert!(
            !self.nodes[usize::from(node.number())].is_up(Interface(switch)),
            "its node noticed"
        );
        self.dead_links[link] = false;
        let mut notices = Vec::new();
        self.switches[usize::from(switch)].restore_port(node, |notice| notices.push(notice));
        self.tell(switch, &notices);
        let clear = self.now + FLIGHT + self.lateness[link];
        self.at(clear, Happening::NodeRestores(switch, node, cuts));
    }

    fn kill(&mut self, kill: Kill) {
        let nodes = (0..self.nodes.len() as u16).map(NodeId::at);
        let soon = self.now + FLIGHT;
        match kill {
            Kill::Switch(switch) => {
                self.dead_switches[usize::from(switch)] = true;
                nodes.for_each(|node| self.at(soon, Happening::NodeNotices(switch, node)));
            }
            Kill::SilentSwitch(switch) => self.dead_switches[usize::from(switch)] = true,
            Kill::Link(switch, node) => {
                self.broken[Network::link(switch, node)] = true;
                self.cut(switch, node);
            }
            Kill::Flap(switch, node, down) => {
                let cuts = self.cut(switch, node);
                self.at(self.now + down, Happening::Repair(switch, node, cuts));
            }
            Kill::Restart(switch, down) => {
                self.dead_switches[usize::from(switch)] = true;
                self.at(self.now + down, Happening::Start(switch));
            }
            Kill::Node(node) => {
                self.dead_nodes[usize::from(node.number())] = true;
                (0..2).for_each(|switch| self.at(soon, Happening::SwitchNotices(switch, node)));
            }
        }
    }

    /// Cuts a link, which its switch notices first; returns the count of its cuts.
    fn cut(&mut self, switch: u8, node: NodeId) -> u32 {
        let link = Network::link(switch, node);
        self.dead_links[link] = true;
        self.cuts[link] += 1;
        self.at(self.now + FLIGHT, Happening::NodeNotices(switch, node));
        self.at(self.now + Ps(FLIGHT.0 / 3), Happening::SwitchNotices(switch, node));
        self.cuts[link]
    }

    fn start(&mut self, switch: u8) {
        self.dead_switches[usize::from(switch)] = false;
        let mut model = Switch::new(self.config.clone());
        let nodes = (0..self.nodes.len() as u16).map(NodeId::at);
        nodes.clone().for_each(|node| model.fail_port(node, |_| {}));
        self.switches[usize::from(switch)] = model;
        for node in nodes {
            let cuts = self.cut(switch, node);
            self.at(self.now + FLIGHT * 2, Happening::Repair(switch, node, cuts));
        }
    }

    fn fail_port(&mut self, switch: u8, port: NodeId) {
        let mut notices = Vec::new();
        self.switches[usize::from(switch)].fail_port(port, |notice| notices.push(notice));
        self.tell(switch, &notices);
    }

    fn tell(&mut self, switch: u8, notices: &[Notice]) {
        for &Notice { to, peer, joined } in notices {
            let item = if joined { Item::PeerUp(peer) } else { Item::PeerDown(peer) };
            self.send_down(switch, to, self.now, 1, item);
        }
    }

    fn step_switch(&mut self, switch: u8) {
        let at = usize::from(switch);
        if self.dead_switches[at] || self.switches[at].next_wake().is_none_or(|w| w > self.now) {
            return;
        }
        let mut emissions = Vec::new();
        self.switches[at].step(self.now, |when, emission| emissions.push((when, emission)));
        for (when, emission) in emissions {
            match emission {
                Emission::Grant { to, grant } => {
                    self.send_down(switch, to, when, 1, Item::Grant(grant));
                }
                Emission::Release { to, request } => {
                    self.send_down(switch, to, when, 3, Item::Request(request));
                }
            }
        }
    }

    fn send_down(&mut self, switch: u8, node: NodeId, from: Ps, blocks: u64, item: Item) {
        let link = Network::link(switch, node);
        let start = self.down_free[link].max(from).max(self.now);
        self.down_free[link] = start + SLOT * blocks;
        let arrival = self.down_free[link] + FLIGHT + self.lateness[link];
        if self.dead_links[link] {
            return;
        }
        self.at(arrival, Happening::AtNode(switch, node, self.cuts[link], item));
    }

    fn at_switch(&mut self, switch: u8, from: NodeId, item: Item) {
        let (now, model) = (self.now, &mut self.switches[usize::from(switch)]);
        match item {
            Item::Up(Outbound::Request(request), _) => {
                // A request to a failed port is forgotten: its node is told of the port.
                let _refused = model.on_request(now, from, request, 3);
            }
            Item::Up(Outbound::Notify(notification), _) => {
                let _refused = model.on_notification(now, from, notification);
            }
            Item::Up(Outbound::Chunk { chunk, .. }, data) => {
                let Some(to) = model.on_chunk(now, from, chunk.bytes) else {
                    return;
                };
                assert_eq!(to, chunk.peer, "switch {switch} sends a chunk of {from:?} astray");
                let blocks = 3 + chunk.bytes.to_blocks().0;
                let chunk = Chunk { peer: from, ..chunk };
                self.send_down(switch, to, now, blocks, Item::Chunk(chunk, data));
            }
            Item::Up(Outbound::Status(status), _) => {
                let to = status.peer;
                if !model.is_joined(from, to) {
                    return;
                }
                let status = Status { peer: from, ..status };
                self.send_down(switch, to, now, 1, Item::Status(status));
            }
            Item::Streams(to, streams) => {
                if model.is_joined(from, to) {
                    self.send_down(switch, to, now, 1, Item::Streams(from, streams));
                }
            }
            Item::Unused => model.on_unused_grant(from),
            Item::Heard(peer) => {
                let mut notices = Vec::new();
                model.on_heard(from, peer, |notice| notices.push(notice));
                self.tell(switch, &notices);
            }
            _ => unreachable!("only a switch sends it"),
        }
    }

    fn at_node(&mut self, switch: u8, node: NodeId, item: Item) {
        let (now, interface) = (self.now, Interface(switch));
        let host = &mut self.nodes[usize::from(node.number())];
        match item {
            Item::Grant(grant) => host.on_grant(now, interface, grant),
            Item::Status(status) => host.on_status(now, interface, status),
            Item::PeerDown(peer) => host.fail_peer(now, interface, peer),
            Item::PeerUp(peer) => host.restore_peer(interface, peer),
            Item::Streams(peer, streams) => host.on_streams(interface, peer, streams),
            Item::Request(request) => {
                if let Some(Action::Serve(request)) = host.on_request(now, interface, request) {
                    self.serve(node, request);
                }
            }
            Item::Chunk(chunk, data) => match host.on_chunk(now, interface, chunk) {
                Some(Action::Store(chunk)) => {
                    let memory = &mut self.memories[usize::from(node.number())];
                    let code = memory.write(chunk.address, &data);
                    let code = code.map_or_else(StatusCode::from, |()| StatusCode::Ok);
                    host.on_written(now, interface, &chunk, code);
                }
                Some(Action::Deliver { token, offset, bytes }) => {
                    assert_eq!(bytes.0 as usize, data.len());
                    let read = self.reads.entry(token).or_default();
                    let end = (offset.0 + bytes.0) as usize;
                    read.resize(read.len().max(end), 0);
                    read[offset.0 as usize..end].copy_from_slice(&data);
                }
                Some(Action::Serve(_)) => unreachable!("a chunk asks for nothing"),
                None => {}
            },
            Item::Up(..) | Item::Unused | Item::Heard(_) => unreachable!("only a node sends it"),
        }
    }

    fn serve(&mut self, node: NodeId, request: MemoryRequest) {
        let memory = &mut self.memories[usize::from(node.number())];
        let MemoryRequest { peer, id, address, bytes, modify } = request;
        let found = match modify {
            Some(modify) => {
                let modified = memory.modify(address, modify);
                modified.map(|modified| modified.old.to_le_bytes().to_vec())
            }
            None => memory.read(address, bytes.0 as usize).map(<[u8]>::to_vec),
        };
        match found {
            Ok(data) => {
                self.responses.insert((node, peer, usize::from(id.0 & 7)), (id, data));
            }
            Err(error) => self.nodes[usize::from(node.number())].refuse(peer, id, error.into()),
        }
    }

    /// Puts the messages of a node on its links, and takes the requests that ended.
    fn drive(&mut self, node: NodeId) {
        for switch in 0..2 {
            let link = Network::link(switch, node);
            let interface = Interface(switch);
            let up = self.nodes[usize::from(node.number())].is_up(interface);
            if !up && std::mem::take(&mut self.used[link]) && !self.dead_links[link] {
                // The node disabled the interface on its own, and disables its link.
                self.dead_links[link] = true;
                self.at(self.now + FLIGHT, Happening::SwitchNotices(switch, node));
            }
            loop {
                let sent =
                    self.nodes[usize::from(node.number())].poll_outbound(self.now, interface);
                let Some(transmit) = sent else {
                    break;
                };
                let (blocks, item) = match transmit {
                    Transmit::Unused { .. } => (1, Item::Unused),
                    Transmit::Heard { peer } => (1, Item::Heard(peer)),
                    Transmit::Streams { peer, streams } => (1, Item::Streams(peer, streams)),
                    Transmit::Message(outbound) => self.load(node, outbound),
                };
                let start = self.up_free[link].max(self.now);
                self.up_free[link] = start + SLOT * blocks;
                // What enters a dead link is lost, even if the link is back before the arrival.
                if self.dead_links[link] {
                    continue;
                }
                let arrival = self.up_free[link] + FLIGHT + self.lateness[link];
                self.at(arrival, Happening::AtSwitch(switch, node, self.cuts[link], item));
            }
        }
        while let Some(event) = self.nodes[usize::from(node.number())].poll_event() {
            let before = self.events.insert(event.token(), (event, self.now));
            assert_eq!(before, None, "{event:?} is a second end");
        }
    }

    /// A message with its bytes.
    fn load(&self, node: NodeId, outbound: Outbound) -> (u64, Item) {
        let Outbound::Chunk { chunk, token } = outbound else {
            let blocks = if matches!(outbound, Outbound::Request(_)) { 3 } else { 1 };
            return (blocks, Item::Up(outbound, Vec::new()));
        };
        let source = match token {
            Some(token) => &self.writes[&token],
            None => {
                let row = usize::from(chunk.id.0 & 7);
                let (id, data) = &self.responses[&(node, chunk.peer, row)];
                assert_eq!((*id, chunk.kind), (chunk.id, ChunkKind::ReadResponse));
                data
            }
        };
        let Bytes(offset) = chunk.offset;
        let data = source[offset as usize..(offset + chunk.bytes.0) as usize].to_vec();
        (3 + chunk.bytes.to_blocks().0, Item::Up(outbound, data))
    }
}
