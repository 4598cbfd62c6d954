//! The bound of an ideal output-queued switch: senders and receivers have contention, the switch
//! has none.
//!
//! Path, framing and stage latencies are EDM's, but there is no scheduler. Data leaves its sender
//! at once, first come, first served at either end, and waits at the egress port as long as it
//! must. For messages of one size nothing that keeps their order is faster. No notification and no
//! grant is sent. The difference between this fabric and EDM is the price of matching.

use ethermem_edm::{Arbitration, budget as edm};
use ethermem_engine::FabricConfig;
use ethermem_engine::engine::{Fabric, Handle, Sim, Violation};
use ethermem_engine::metrics::FabricStats;
use ethermem_engine::output::{Timeline, TrackId};
use ethermem_engine::topology::LinkTiming;
use ethermem_engine::topology::{LinkTracks, Sharing, Star};
use ethermem_units::{Blocks, Bytes, Ps};
use ethermem_wire::{AddressWidth, ChunkKind, RmwKind};
use ethermem_workload::{Kind, LinkBlocks, Message, NodeIndex};

use crate::edm::EdmParameters;

/// The output-queued network.
pub struct OutputQueued {
    timing: LinkTiming,
    memory_access: Ps,
    chunk: u64,
    links: Star,
    tracks: Option<LinkTracks>,
    sent: u64,
    delivered: u64,
}

/// A request or a chunk on its way.
#[derive(Clone, Copy)]
pub struct Item {
    handle: Handle,
    source: NodeIndex,
    destination: NodeIndex,
    blocks: u16,
    data: u16,
    last: bool,
    response_bytes: u32,
}

/// The position of an item's first block.
#[derive(Clone, Copy)]
pub enum Event {
    /// It is at the transmitter of its egress port.
    AtEgress(Item),
    /// A whole request is at the transmitter of the memory node.
    Respond(Item),
}

impl OutputQueued {
    fn send(&mut self, sim: &mut Sim<Event>, ready: Ps, bytes: u64, item: Item) {
        let mut left = bytes;
        while left > 0 {
            let chunk = left.min(self.chunk);
            left -= chunk;
            let data = Bytes(chunk).to_blocks();
            let blocks = ethermem_wire::chunk_blocks(ChunkKind::ReadResponse, Bytes(chunk));
            let item =
                Item { blocks: blocks.0 as u16, data: data.0 as u16, last: left == 0, ..item };
            self.transmit(sim, ready, item);
        }
    }

    fn transmit(&mut self, sim: &mut Sim<Event>, ready: Ps, item: Item) {
        let (blocks, data) = (Blocks(item.blocks.into()), Blocks(item.data.into()));
        let link = self.links.up(item.source);
        let start = link.send(ready, blocks, data);
        if let Some(tracks) = &self.tracks {
            draw(sim.timeline(), tracks.up(item.source), &item, start, start + link.tail(blocks));
        }
        let forwarded = start + self.timing.hop(edm::PCS) + self.timing.cycles(edm::FORWARD);
        self.sent += 1;
        sim.at(forwarded, Event::AtEgress(item));
    }
}

fn draw(timeline: Option<&mut Timeline>, track: TrackId, item: &Item, start: Ps, end: Ps) {
    let Some(timeline) = timeline else { return };
    let args = [("from", u64::from(item.source)), ("to", u64::from(item.destination))];
    let name = if item.data == 0 { "request" } else { "chunk" };
    timeline.slice(track, name, start, end, &args);
}

impl Fabric for OutputQueued {
    type Event = Event;
    type Parameters = ();

    fn build(config: &FabricConfig, seed: u64) -> OutputQueued {
        OutputQueued {
            timing: LinkTiming::of(config),
            memory_access: config.memory_access,
            chunk: config.of::<EdmParameters>().chunk.0,
            links: Star::new(config, Sharing::in_phy(Arbitration::Strict), seed),
            tracks: None,
            sent: 0,
            delivered: 0,
        }
    }

    fn draw_on(&mut self, timeline: &mut Timeline) {
        self.tracks = Some(LinkTracks::new(timeline, self.links.nodes()));
    }

    fn submit(&mut self, sim: &mut Sim<Event>, handle: Handle, message: &Message) {
        let request = match message.kind {
            Kind::ReadModifyWrite => {
                ethermem_wire::rmw_request_blocks(RmwKind::FetchAndAdd, AddressWidth::Bits40)
            }
            Kind::Read | Kind::Write => ethermem_wire::read_request_blocks(AddressWidth::Bits40),
        };
        let request = Item {
            handle,
            source: message.compute,
            destination: message.memory,
            blocks: request.0 as u16,
            data: 0,
            last: true,
            response_bytes: 0,
        };
        if message.kind == Kind::Write {
            let ready = sim.now() + self.timing.cycles(edm::GENERATE_DATA);
            self.send(sim, ready, message.bytes.0, request);
        } else {
            let ready = sim.now() + self.timing.cycles(edm::GENERATE_REQUEST);
            let request = Item { response_bytes: message.bytes.0 as u32, ..request };
            self.transmit(sim, ready, request);
        }
    }

    fn handle(&mut self, sim: &mut Sim<Event>, event: Event) {
        match event {
            Event::AtEgress(item) => {
                let blocks = Blocks(item.blocks.into());
                let link = self.links.down(item.destination);
                let start = link.send(sim.now(), blocks, Blocks(item.data.into()));
                if let Some(tracks) = &self.tracks {
                    let (track, end) = (tracks.down(item.destination), start + link.tail(blocks));
                    draw(sim.timeline(), track, &item, start, end);
                }
                let whole = start + link.tail(blocks) + self.timing.hop(edm::PCS);
                self.delivered += 1;
                if item.response_bytes > 0 {
                    let stages = edm::RECEIVE_REQUEST + edm::GRANT_QUEUE + edm::GENERATE_DATA;
                    let ready = whole + self.timing.cycles(stages) + self.memory_access;
                    sim.at(ready, Event::Respond(item));
                } else if item.last {
                    sim.finish(item.handle, whole + self.timing.cycles(edm::RECEIVE_DATA));
                }
            }
            Event::Respond(item) => {
                let response = Item {
                    source: item.destination,
                    destination: item.source,
                    response_bytes: 0,
                    ..item
                };
                self.send(sim, sim.now(), u64::from(item.response_bytes), response);
            }
        }
    }

    fn period(&self) -> Bytes {
        Bytes(self.chunk)
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        // The load of a scenario is EDM's, so that both are compared at one rate.
        super::edm::Edm::blocks(config, kind, bytes)
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        if self.sent != self.delivered {
            return Err(Violation(format!(
                "{} items sent, {} delivered",
                self.sent, self.delivered
            )));
        }
        Ok(self.links.stats(ended))
    }
}
