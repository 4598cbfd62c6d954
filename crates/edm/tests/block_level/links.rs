//! Nodes and switches on links of 66-bit blocks. The links are scrambled, have a flight time of
//! some slots, and can be damaged bit by bit.

use std::collections::{BTreeMap, VecDeque};

use ethermem_edm::phy::LineBlock;
use ethermem_edm::port::{BlockSwitch, Buffers, HostPort, HostPortConfig};
use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{EdmConfig, Event, Interface, MirroredConfig, NodeId, Request, Token};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::{Block, Descrambler, FrameAssembler, Scrambler};

use crate::ethernet::Encoder;

/// One block at 100 Gb/s.
pub(crate) const SLOT: Ps = Ps(640);
/// Number of slots that a block is on a link.
pub(crate) const FLIGHT_SLOTS: usize = 15;

/// One direction of a link: scrambler, line, descrambler.
pub(crate) struct Line {
    scrambler: Scrambler,
    descrambler: Descrambler,
    flying: VecDeque<(u8, u64)>,
    /// Bits to flip in later blocks: (blocks from now, bit of the 66).
    damage: Vec<(u64, u32)>,
    slot: u64,
    pub(crate) cut: bool,
}

impl Line {
    pub(crate) fn new() -> Line {
        let mut line = Line {
            scrambler: Scrambler::new(0),
            descrambler: Descrambler::new(0),
            flying: VecDeque::new(),
            damage: Vec::new(),
            slot: 0,
            cut: false,
        };
        (0..FLIGHT_SLOTS).for_each(|_| line.push(Block::IDLE));
        line
    }

    pub(crate) fn push(&mut self, block: Block) {
        let mut sync = block.sync() as u8;
        let mut payload = self.scrambler.scramble(block.payload());
        for &(_, bit) in self.damage.iter().filter(|&&(at, _)| at == self.slot) {
            match bit {
                0 | 1 => sync ^= 1 << bit,
                bit => payload ^= 1 << (bit - 2),
            }
        }
        self.slot += 1;
        self.flying.push_back((sync, payload));
    }

    /// Flips bits of later blocks: (slots from now, bit of the 66).
    pub(crate) fn damage(&mut self, bits: &[(u64, u32)]) {
        let from = self.slot;
        self.damage.extend(bits.iter().map(|&(after, bit)| (from + after, bit)));
    }

    pub(crate) fn pop(&mut self) -> Option<LineBlock> {
        let (sync, payload) = self.flying.pop_front().expect("a line is as long as it was");
        let payload = self.descrambler.descramble(payload);
        (!self.cut).then_some(LineBlock { sync, payload })
    }
}

/// The data of the callers of one node.
#[derive(Default)]
pub(crate) struct Data {
    pub(crate) writes: BTreeMap<Token, Vec<u8>>,
    pub(crate) reads: BTreeMap<Token, Vec<u8>>,
}

impl Buffers for Data {
    fn write_data(&self, token: Token, offset: Bytes, bytes: Bytes) -> &[u8] {
        &self.writes[&token][offset.0 as usize..(offset.0 + bytes.0) as usize]
    }

    fn deliver(&mut self, token: Token, offset: Bytes, data: &[u8]) {
        let read = self.reads.entry(token).or_default();
        let end = offset.0 as usize + data.len();
        read.resize(read.len().max(end), 0);
        read[offset.0 as usize..end].copy_from_slice(data);
    }
}

/// The Ethernet side of a port.
#[derive(Default)]
pub(crate) struct Mac {
    pub(crate) encoder: Encoder,
    assembler: FrameAssembler<16_384>,
    pub(crate) received: Vec<Vec<u8>>,
}

impl Mac {
    fn hear(&mut self, block: Block) {
        if let Ok(Some(frame)) = self.assembler.push(block) {
            self.received.push(frame.to_vec());
        }
    }
}

/// Nodes and one or two switches.
pub(crate) struct Network {
    pub(crate) now: Ps,
    pub(crate) hosts: Vec<HostPort<Vec<u8>>>,
    pub(crate) switches: Vec<BlockSwitch>,
    pub(crate) data: Vec<Data>,
    pub(crate) events: BTreeMap<Token, (Event, Ps)>,
    /// By switch and node.
    pub(crate) host_macs: Vec<Mac>,
    pub(crate) switch_macs: Vec<Mac>,
    up: Vec<Line>,
    down: Vec<Line>,
}

impl Network {
    pub(crate) fn new(nodes: u16, switches: u8, memory_bytes: usize, edm: &EdmConfig) -> Network {
        let host = |node| {
            let host = MirroredConfig {
                node: NodeId::at(node),
                nodes,
                edm,
                messages_max: 256,
                interfaces: switches,
                start: 0,
            };
            HostPort::new(
                HostPortConfig { host, read_bytes_max: memory_bytes },
                vec![0; memory_bytes],
            )
        };
        let config = SchedulerConfig::new(nodes, edm, Ps(2_560), SLOT);
        let links = usize::from(nodes) * usize::from(switches);
        Network {
            now: Ps::ZERO,
            hosts: (0..nodes).map(host).collect(),
            switches: (0..switches).map(|_| BlockSwitch::new(&config, edm.arbitration)).collect(),
            data: (0..nodes).map(|_| Data::default()).collect(),
            events: BTreeMap::new(),
            host_macs: (0..links).map(|_| Mac::default()).collect(),
            switch_macs: (0..links).map(|_| Mac::default()).collect(),
            up: (0..links).map(|_| Line::new()).collect(),
            down: (0..links).map(|_| Line::new()).collect(),
        }
    }

    /// The number of the link between a switch and a node.
    pub(crate) fn link(&self, switch: usize, node: usize) -> usize {
        switch * self.hosts.len() + node
    }

    /// Flips bits of blocks that enter a direction of a link: (slots from now, bit of the 66).
    pub(crate) fn damage(&mut self, link: usize, upwards: bool, bits: &[(u64, u32)]) {
        let line = if upwards { &mut self.up[link] } else { &mut self.down[link] };
        line.damage(bits);
    }

    /// Repairs a link, and lets one of its ends restart it, if that end has noticed the cut.
    pub(crate) fn restore(&mut self, switch: usize, node: usize, at_host: bool) {
        let link = self.link(switch, node);
        self.up[link].cut = false;
        self.down[link].cut = false;
        if at_host {
            self.hosts[node].restore(Interface(switch as u8));
        } else {
            self.switches[switch].restore_port(NodeId::at(node as u16));
        }
    }

    /// True if both ends of a link are up.
    pub(crate) fn is_up(&self, switch: usize, node: usize) -> bool {
        self.hosts[node].host().is_up(Interface(switch as u8))
            && self.switches[switch].is_up(NodeId::at(node as u16))
    }

    /// Cuts a link in both directions.
    pub(crate) fn cut(&mut self, link: usize) {
        self.up[link].cut = true;
        self.down[link].cut = true;
    }

    pub(crate) fn submit(&mut self, node: NodeId, request: Request, data: Vec<u8>) -> bool {
        let at = usize::from(node.number());
        self.data[at].writes.insert(request.token, data);
        self.hosts[at].submit(self.now, request).is_ok()
    }

    /// Runs one slot of every link.
    pub(crate) fn step(&mut self) {
        let now = self.now;
        for s in 0..self.switches.len() {
            for n in 0..self.hosts.len() {
                let link = self.link(s, n);
                let arrived = self.up[link].pop();
                let decoder = self.switches[s].receive(now, NodeId::at(n as u16), arrived);
                self.switch_macs[link].hear(decoder);
            }
            self.switches[s].schedule(now);
            for n in 0..self.hosts.len() {
                let link = self.link(s, n);
                let encoder = &mut self.switch_macs[link].encoder;
                let slot = self.switches[s].transmit(now, NodeId::at(n as u16), encoder.arrive());
                encoder.hear(slot.encoder_ready);
                let arrived = self.down[link].pop();
                self.down[link].push(slot.line);

                let mac = &mut self.host_macs[link];
                let slot = self.hosts[n].slot(
                    now,
                    Interface(s as u8),
                    arrived,
                    mac.encoder.arrive(),
                    &mut self.data[n],
                );
                mac.encoder.hear(slot.encoder_ready);
                mac.hear(slot.decoder);
                self.up[link].push(slot.line);
                while let Some(event) = self.hosts[n].poll_event() {
                    let before = self.events.insert(event.token(), (event, now));
                    assert_eq!(before, None, "{event:?} is a second end");
                }
            }
        }
        self.now += SLOT;
    }
}
