//! EDM and its receiver-driven rival as modelled by the simulator of EDM's artifact
//! (github.com/wegul/EDM, `netsimu/src/edm.c` and `ird.c`), for numbers that were made with it.
//!
//! Only slots and propagation take time, and a chunk has no framing. Otherwise its rules differ
//! from the paper's in five points:
//!
//! - A message has one chunk in flight: it waits for its next grant from the last block of a chunk
//!   at the switch's egress. So alone it uses half of a link.
//! - A receiver and the sender of its last grant can be granted again while at most `under_way`
//!   bytes are in flight to it. In the receiver-driven scheme the receiver can when the sender has
//!   sent the chunk.
//! - Requests and notifications wait behind the granted chunks of their host.
//! - Chunks for one receiver alternate block by block.
//! - Bytes behind a message's last whole block are granted and never sent. In the artifact such a
//!   message never ends, and these bytes stay in flight; here it ends without them.

mod chunks;
mod config;
mod egress;
mod matching;
mod uplink;

use ethermem_edm::Arbitration;
use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::FabricStats;
use ethermem_engine::topology::{Sharing, Star};
use ethermem_units::{Blocks, Bytes, Ps};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use crate::edm::EdmParameters;

use chunks::{Chunk, Chunks};
pub use config::{ArtifactConfig, Release};
use egress::Egress;
use matching::{Matching, Waiting};
use uplink::{Class, ToSend, Uplink};

/// Number of blocks of a request.
const REQUEST_BLOCKS: Blocks = Blocks(2);
/// Number of blocks of a notification or a grant.
const CONTROL_BLOCKS: Blocks = Blocks(1);

/// A message that has not ended.
#[derive(Clone, Copy)]
struct Flow {
    kind: Kind,
    sender: NodeIndex,
    receiver: NodeIndex,
    /// Its number in the order of arrival at its host, then at the switch.
    order: u64,
    ungranted: u64,
    unsent: u64,
    /// True if its first grant was issued.
    granted: bool,
}

/// The events of the fabric.
#[derive(Clone, Copy)]
pub enum Event {
    /// An uplink has sent an item; for a chunk, its receiver.
    Sent(NodeIndex, Option<NodeIndex>),
    /// A request or a notification is at the switch.
    AtSwitch(Handle),
    /// The free ends are matched.
    Match,
    /// A grant for this many bytes is at the sender.
    Granted(Handle, u64),
    /// The first block of a chunk is at its egress.
    AtEgress(u32),
    /// The last block of a chunk has left, unless it was put off.
    Left(u32),
    /// Few enough bytes may be in flight to a receiver that it is granted to again.
    Free(NodeIndex),
}

/// The network of the artifact's rules.
pub struct EdmArtifact {
    config: ArtifactConfig,
    chunk: u64,
    slot: Ps,
    /// Time from the start of a block's slot to the next decision.
    hop: Ps,
    memory_access: Ps,
    links: Star,
    uplinks: Vec<Uplink>,
    egresses: Vec<Egress>,
    matching: Matching,
    /// The time at which a matching is due.
    match_at: Option<Ps>,
    flows: Vec<Option<Flow>>,
    chunks: Chunks,
    submitted: u64,
}

impl EdmArtifact {
    fn flow(&mut self, handle: Handle) -> &mut Flow {
        self.flows[handle as usize].as_mut().expect("it has not ended")
    }

    fn send(&mut self, sim: &mut Sim<Event>, node: NodeIndex, what: ToSend) {
        if self.uplinks[usize::from(node)].add(what) {
            self.send_next(sim, node);
        }
    }

    fn send_next(&mut self, sim: &mut Sim<Event>, node: NodeIndex) {
        let Some(next) = self.uplinks[usize::from(node)].next() else { return };
        let (now, handle) = (sim.now(), next.handle);
        let (blocks, data, to) = match next.class {
            Class::Chunk => {
                let blocks = self.config.blocks_of(next.chunk).0;
                let flow = self.flow(handle);
                flow.unsent -= next.chunk;
                let to = flow.receiver;
                let chunk = self.chunks.insert(Chunk { handle, blocks, leaves: Ps::ZERO });
                sim.leaves(handle, now);
                sim.at(now + self.hop, Event::AtEgress(chunk));
                (blocks, blocks, Some(to))
            }
            Class::Request | Class::Notification => {
                sim.at(now + self.hop, Event::AtSwitch(handle));
                let request = next.class == Class::Request;
                (if request { REQUEST_BLOCKS } else { CONTROL_BLOCKS }, Blocks(0), None)
            }
        };
        self.links.up(node).send(now, blocks, data);
        sim.at(now + self.slot * blocks.0, Event::Sent(node, to));
    }

    /// Queues a message for its next grant.
    fn wait(&mut self, sim: &mut Sim<Event>, handle: Handle) {
        let Flow { ungranted, order, sender, receiver, .. } = *self.flow(handle);
        self.matching.insert(Waiting { rank: (ungranted, order), handle, sender, receiver });
        self.match_soon(sim);
    }

    /// Schedules a matching of all ends that are free now.
    fn match_soon(&mut self, sim: &mut Sim<Event>) {
        if self.match_at != Some(sim.now()) {
            self.match_at = Some(sim.now());
            sim.at(sim.now(), Event::Match);
        }
    }

    fn grant(&mut self, sim: &mut Sim<Event>, waiting: Waiting) {
        let Waiting { handle, sender, receiver, .. } = waiting;
        let (now, whole) = (sim.now(), self.chunk);
        let flow = self.flow(handle);
        let bytes = flow.ungranted.min(whole);
        flow.ungranted -= bytes;
        let request = flow.kind != Kind::Write && !std::mem::replace(&mut flow.granted, true);
        let (blocks, left_over) = self.config.blocks_of(bytes);
        self.egresses[usize::from(receiver)].expect(blocks, left_over);
        let mut start = self.control(now, sender);
        if request {
            // The request goes before the grant.
            start = self.control(now, sender);
        }
        let access = if request { self.memory_access } else { Ps::ZERO };
        sim.at(start + self.hop + access, Event::Granted(handle, bytes));
        if self.config.release == Release::UnderWay {
            self.free_when_possible(sim, receiver, now + self.slot);
        }
    }

    fn control(&mut self, now: Ps, to: NodeIndex) -> Ps {
        self.links.down(to).send(now, CONTROL_BLOCKS, Blocks(0));
        self.egresses[usize::from(to)].control(now, self.slot)
    }

    /// Schedules the next check of a receiver that was granted to, not before `earliest`.
    fn free_when_possible(&mut self, sim: &mut Sim<Event>, node: NodeIndex, earliest: Ps) {
        let egress = &self.egresses[usize::from(node)];
        if let Some(at) = egress.within(sim.now(), self.slot, self.config.under_way) {
            sim.at(at.max(earliest), Event::Free(node));
        }
    }

    fn on_granted(&mut self, sim: &mut Sim<Event>, handle: Handle, chunk: u64) {
        let Flow { kind, sender, unsent, order, .. } = *self.flow(handle);
        if kind != Kind::Write {
            sim.at_memory(handle, sim.now());
        }
        self.send(sim, sender, ToSend { class: Class::Chunk, bytes: unsent, order, handle, chunk });
    }

    fn at_egress(&mut self, sim: &mut Sim<Event>, name: u32) {
        let Chunk { handle, blocks, .. } = self.chunks.get(name);
        let to = self.flow(handle).receiver;
        let now = sim.now();
        self.links.down(to).send(now, blocks, blocks);
        let EdmArtifact { egresses, chunks, slot, .. } = self;
        egresses[usize::from(to)].chunk(now, (name, blocks), *slot, |name, leaves| {
            chunks.put_off(name, leaves);
        });
        sim.at(self.chunks.get(name).leaves, Event::Left(name));
        if self.config.release == Release::UnderWay && self.matching.is_held(to) {
            self.free_when_possible(sim, to, now);
        }
    }

    fn left(&mut self, sim: &mut Sim<Event>, name: u32) {
        let Chunk { handle, leaves, .. } = self.chunks.get(name);
        if leaves > sim.now() {
            sim.at(leaves, Event::Left(name));
            return;
        }
        self.chunks.remove(name);
        let Flow { ungranted, unsent, .. } = *self.flow(handle);
        if ungranted > 0 {
            self.wait(sim, handle);
            return;
        }
        assert_eq!(unsent, 0, "a message has one chunk under way");
        self.flows[handle as usize] = None;
        sim.finish(handle, sim.now() + self.hop - self.slot);
    }
}

impl Fabric for EdmArtifact {
    type Event = Event;
    type Parameters = ArtifactConfig;
    const FORGETS: bool = true;

    fn build(config: &FabricConfig, seed: u64) -> EdmArtifact {
        let nodes = usize::from(config.nodes);
        let slot = config.link.block_time();
        EdmArtifact {
            config: *config.of::<ArtifactConfig>(),
            chunk: config.of::<EdmParameters>().chunk.0,
            slot,
            hop: slot + config.propagation,
            memory_access: config.memory_access,
            links: Star::new(config, Sharing::in_phy(Arbitration::Fair), seed),
            uplinks: (0..nodes).map(|_| Uplink::default()).collect(),
            egresses: (0..nodes).map(|_| Egress::default()).collect(),
            matching: Matching::new(nodes, config.of::<ArtifactConfig>().release),
            match_at: None,
            flows: Vec::new(),
            chunks: Chunks::default(),
            submitted: 0,
        }
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let at = handle as usize;
        if at >= self.flows.len() {
            self.flows.resize(at + 1, None);
        }
        let bytes = message.bytes.0;
        let order = self.submitted;
        self.submitted += 1;
        self.flows[at] = Some(Flow {
            kind: message.kind,
            sender: message.data_source(),
            receiver: message.data_destination(),
            order,
            ungranted: bytes,
            unsent: bytes,
            granted: false,
        });
        let (class, bytes) = match message.kind {
            Kind::Write => (Class::Notification, bytes),
            Kind::Read | Kind::ReadModifyWrite => (Class::Request, 0),
        };
        self.send(sim, message.compute, ToSend { class, bytes, order, handle, chunk: 0 });
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::Sent(node, to) => {
                if let (Some(to), Release::Sent) = (to, self.config.release) {
                    self.matching.give_back(to);
                    self.match_soon(sim);
                }
                self.send_next(sim, node);
            }
            Event::AtSwitch(handle) => {
                // From here on the order is the order of arrival at the switch.
                let order = self.submitted;
                self.submitted += 1;
                self.flow(handle).order = order;
                self.wait(sim, handle);
            }
            Event::Match => {
                self.match_at = None;
                while let Some(waiting) = self.matching.next() {
                    self.grant(sim, waiting);
                }
            }
            Event::Granted(handle, bytes) => self.on_granted(sim, handle, bytes),
            Event::AtEgress(chunk) => self.at_egress(sim, chunk),
            Event::Left(chunk) => self.left(sim, chunk),
            Event::Free(node) => {
                let egress = &self.egresses[usize::from(node)];
                let free = egress.within(sim.now(), self.slot, self.config.under_way);
                if !self.matching.is_held(node) {
                    return;
                }
                match free {
                    Some(at) if at > sim.now() => sim.at(at, Event::Free(node)),
                    Some(_) => {
                        self.matching.give_back(node);
                        self.match_soon(sim);
                    }
                    // It is checked again when a block arrives.
                    None => {}
                }
            }
        }
    }

    fn period(&self) -> Bytes {
        Bytes(self.chunk)
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        let grants =
            bytes.0.div_ceil(config.of::<EdmParameters>().chunk.0) as f64 * CONTROL_BLOCKS.0 as f64;
        let data = bytes.to_blocks().0 as f64;
        match kind {
            Kind::Write => LinkBlocks {
                compute_uplink: CONTROL_BLOCKS.0 as f64 + data,
                compute_downlink: grants,
                memory_uplink: 0.0,
                memory_downlink: data,
            },
            Kind::Read | Kind::ReadModifyWrite => LinkBlocks {
                compute_uplink: REQUEST_BLOCKS.0 as f64,
                compute_downlink: data,
                memory_uplink: data,
                memory_downlink: CONTROL_BLOCKS.0 as f64 + grants,
            },
        }
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        let waiting = self.matching.waiting();
        let expected: u64 = self.egresses.iter().map(|egress| egress.expected().0).sum();
        if waiting > 0 || expected > 0 || self.flows.iter().any(Option::is_some) {
            let what = format!("{waiting} messages left behind, {expected} blocks to come");
            return Err(Violation(what));
        }
        Ok(self.links.stats(ended))
    }
}
