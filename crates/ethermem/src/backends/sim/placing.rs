//! Operations through the caches of a fabric's compute nodes.
//!
//! Their bytes are in the caches and in frames. This file gives the fabric what operations write,
//! takes what they read, and does the accesses of memory nodes to their memory.

use std::collections::BTreeMap;

use ethermem_pool::{Asker, OpId, Outcome, Reply, Segment};
use ethermem_sim::engine::{LineAccess, LineCaches, LineRange, Placed};
use ethermem_sim::{Kind, Message};
use ethermem_units::Bytes;
use ethermem_wire::RMW_BYTES;

use super::caching::{After, Caching, Key, Way};
use super::running::{MessageState, Part, Phase, Service, Work};
use super::{Due, Sim};

/// A message of an access, and its way.
type Placement = (Kind, Part, Way);

impl Sim {
    /// Begins an operation, or goes on with it, if it uses the caches. False if it sends its
    /// messages past them, now.
    pub(super) fn begin_cached(&mut self, id: OpId) -> bool {
        let Some(caching) = &self.caching else { return false };
        let running = self.running[id.place()].as_ref().expect("it is open");
        if running.is_clean {
            return false;
        }
        let Asker { process, compute } = running.asker;
        let (regions, after) = match running.work() {
            Work::Fence | Work::Flush => {
                if caching.has_used(compute) {
                    self.clean(id, BTreeMap::from([(compute, Vec::new())]), false);
                    return true;
                }
                return matches!(running.work(), Work::Flush) && self.wake(id);
            }
            Work::Sleep => return false,
            Work::Call(call) => match &call.service {
                Service::Alloc { .. } => return false,
                Service::Free(region) => (caching.at(process, region.address), After::Freed),
                Service::Share { region, .. } => {
                    (caching.at(process, region.address), After::Shared)
                }
                Service::Offload { .. } => (caching.of(process, call.memory), After::Restored),
            },
            _ => return self.access_cached(id),
        };
        if regions.is_empty() {
            return false;
        }
        self.pass(id, regions, after);
        true
    }

    /// Lets an operation without messages end now.
    fn wake(&mut self, id: OpId) -> bool {
        self.running[id.place()].as_mut().expect("it is open").waits = true;
        self.at(self.live.now(), Due::Wake(id));
        true
    }

    fn pass(&mut self, id: OpId, regions: Vec<Key>, after: After) {
        self.running[id.place()].as_mut().expect("it is open").waits = true;
        self.caching.as_mut().expect("passes are for caches").pass(id, regions, after);
        self.go_on_with_passes();
    }

    /// Begins an access, if any part of it is cached.
    fn access_cached(&mut self, id: OpId) -> bool {
        let placements = self.placements(id);
        let caching = self.caching.as_mut().expect("it was asked for");
        let running = self.running[id.place()].as_mut().expect("it is open");
        let compute = running.asker.compute;
        running.waits = true;
        for (_, _, way) in &placements {
            match *way {
                Way::Plain | Way::Cached(_) => {}
                Way::Blocked => {
                    caching.block(id);
                    return true;
                }
                Way::Mapped(key) => {
                    self.pass(id, vec![key], After::Mapped);
                    return true;
                }
            }
        }
        running.waits = false;
        if placements.iter().all(|(_, _, way)| *way == Way::Plain) {
            return false;
        }
        for (kind, part, way) in placements {
            match way {
                Way::Cached(key) => {
                    self.caching.as_mut().expect("seen above").opens(key, compute);
                    self.send_placed(id, kind, part, key);
                }
                _ => self.send(id, kind, part, Phase::Request, part.bytes),
            }
        }
        true
    }

    /// The messages of an access, and their ways.
    fn placements(&self, id: OpId) -> Vec<Placement> {
        let running = self.running[id.place()].as_ref().expect("it is open");
        let parts = match running.message(self.part_bytes_max) {
            Some((kind, part)) => vec![(kind, part)],
            None => {
                let (kind, parts, _) = running.messages(self.part_bytes_max, Vec::new);
                parts.into_iter().map(|part| (kind, part)).collect()
            }
        };
        let way = |(kind, part): (Kind, Part)| {
            let node = &self.nodes[usize::from(part.memory)];
            let Segment { address, bytes } = part.place;
            // What is not allowed goes to the memory node, which says so.
            let is_allowed = match kind {
                Kind::Read => node.read(running.asker.process, address, bytes).is_ok(),
                Kind::Write => node.may_write(running.asker.process, address, bytes),
                Kind::ReadModifyWrite => node.may_modify(running.asker.process, address),
            };
            let caching = self.caching.as_ref().expect("it was asked for");
            let is_placed = is_allowed && part.bytes > 0;
            let way = if is_placed { caching.way(running.asker, part.place) } else { Way::Plain };
            (kind, part, way)
        };
        parts.into_iter().map(way).collect()
    }

    fn send_placed(&mut self, id: OpId, kind: Kind, part: Part, key: Key) {
        let running = self.running[id.place()].as_ref().expect("it is open");
        let address = part.place.address.offset() + part.at;
        let placed = match (kind, running.work()) {
            (Kind::Read, _) => Placed::Read(address),
            (_, Work::Write { data, .. }) => {
                let bytes = part.offset as usize..(part.offset + part.bytes) as usize;
                Placed::Write(address, data[bytes].to_vec())
            }
            _ => {
                let operation = running.operation().expect("only atomics are left");
                Placed::Modify(address, Box::new(move |before| operation.apply(before)))
            }
        };
        let bytes = if kind == Kind::ReadModifyWrite { RMW_BYTES.0 } else { part.bytes };
        let memory = self.compute_nodes + part.memory;
        let compute = running.asker.compute;
        let state = MessageState { id, part, phase: Phase::Cached(key), acted: true };
        let index = self.name(state);
        let arrival = self.live.now();
        let message = Message { index, arrival, kind, compute, memory, bytes: Bytes(bytes) };
        self.live.submit_placed(message, placed);
    }

    /// Cleans caches for an operation: everything of a compute node, or ranges of its regions.
    fn clean(&mut self, id: OpId, caches: BTreeMap<u16, Vec<LineRange>>, drops: bool) {
        for (compute, mut ranges) in caches {
            ranges.iter_mut().for_each(|range| range.memory += self.compute_nodes);
            let part = Part::default();
            let state = MessageState { id, part, phase: Phase::Clean, acted: true };
            let index = self.name(state);
            let message = Message {
                index,
                arrival: self.live.now(),
                kind: Kind::Write,
                compute,
                memory: self.compute_nodes,
                bytes: Bytes(1),
            };
            self.live.submit_placed(message, Placed::Clean { ranges, drops });
        }
    }

    /// Empties caches for the next pass, if it need not wait.
    fn go_on_with_passes(&mut self) {
        let Some((id, caches)) = self.caching.as_mut().and_then(Caching::next_pass) else { return };
        let running = self.running[id.place()].as_mut().expect("its operation is open");
        running.waits = false;
        if caches.is_empty() {
            running.waits = true;
            self.at(self.live.now(), Due::Clean(id));
        } else {
            self.clean(id, caches, true);
        }
    }

    /// The caches have nothing dirty any more of what an operation needs at its memory node.
    pub(super) fn is_clean(&mut self, id: OpId, ended: &mut Vec<(OpId, Outcome)>) {
        let running = self.running[id.place()].as_mut().expect("its operation is open");
        running.waits = false;
        if running.has_failed() || matches!(running.work(), Work::Flush) {
            return self.end(id, ended);
        }
        let caching = self.caching.as_mut().expect("only caches are cleaned");
        if caching.pass_of(id) == Some(After::Mapped) {
            return self.end_pass(id, true, Some(id));
        }
        running.is_clean = true;
        self.send_all(id);
        let running = self.running[id.place()].as_ref().expect("it is open");
        if running.messages == 0 {
            // This is a fence of a process that has used no memory past the caches.
            self.at(self.live.now(), Due::Wake(id));
        }
    }

    /// Ends the pass of an operation, if it has one, and lets those go on that waited for it.
    /// `again` begins first.
    fn end_pass(&mut self, id: OpId, done: bool, again: Option<OpId>) {
        let Some(caching) = &mut self.caching else { return };
        let blocked = caching.end_pass(id, done);
        for waiting in again.into_iter().chain(blocked) {
            self.running[waiting.place()].as_mut().expect("it waits").waits = false;
            self.send_all(waiting);
        }
        self.go_on_with_passes();
    }

    /// Takes what a message through a cache has read, and ends its part.
    pub(super) fn take_placed(&mut self, message: u64, key: Key, lost: bool) {
        let MessageState { id, part, .. } = self.messages[message as usize];
        let read = self.live.caches().and_then(|caches| caches.take(message));
        let running = self.running[id.place()].as_mut().expect("its message was under way");
        if let Some(bytes) = read.filter(|_| !lost) {
            running.take(part, &bytes);
        }
        self.caching.as_mut().expect("it was cached").closes(key);
        self.go_on_with_passes();
    }

    /// Does what memory nodes do with lines of their memory.
    pub(super) fn access_lines(&mut self) {
        while let Some(access) = self.live.caches().and_then(LineCaches::ask) {
            match access {
                LineAccess::Read { memory, address, access } => {
                    let node = &self.nodes[usize::from(memory - self.compute_nodes)];
                    let line = node.line(address);
                    let caches = self.live.caches().expect("one has asked");
                    caches.supply(memory, access, line);
                }
                LineAccess::Write { memory, address, mask, data } => {
                    let node = &mut self.nodes[usize::from(memory - self.compute_nodes)];
                    node.write_line(address, mask, &data);
                }
            }
        }
    }

    /// Keeps account of regions when an operation has ended.
    pub(super) fn account(&mut self, id: OpId, asker: Asker, work: &Work, outcome: &Outcome) {
        let Some(caching) = &mut self.caching else { return };
        if let Work::Call(call) = work {
            match (&call.service, outcome) {
                (Service::Alloc { bytes, .. }, Ok(Reply::Address(address))) => {
                    caching.add(asker.process, Segment { address: *address, bytes: *bytes });
                }
                (Service::Offload { .. }, _) => {
                    let node = &self.nodes[usize::from(call.memory)];
                    let is_there = |region| node.is_region(asker.process, region);
                    caching.retain(asker.process, call.memory, is_there);
                }
                _ => {}
            }
        }
        self.end_pass(id, outcome.is_ok(), None);
    }
}
