//! Messages with addresses, between the network and the boards' caches.

use std::collections::{BTreeMap, VecDeque};

use ethermem_cxl::compute::SectionUse;
use ethermem_engine::engine::{LineAccess, LineCaches, LineCounters, LineRange, Loss, Placed};
use ethermem_frames::{FlowId, Net};
use ethermem_wire::cxl::{LINE_BYTES, LineAddress};
use ethermem_workload::NodeIndex;

use super::compute::{Answered, Work};
use super::memory::Begun;
use super::placed::{Doing, Message};
use super::{Access, Boards, Progress};

/// What the boards have of messages with addresses.
#[derive(Default)]
pub(super) struct Placements {
    /// True if accesses may have addresses.
    pub(super) is_on: bool,
    /// What the message does that begins next.
    next: Option<(u64, Placed)>,
    /// What ended messages have read, by name.
    read: BTreeMap<u64, Vec<u8>>,
    /// Accesses to memory that the caller must do.
    asked: VecDeque<LineAccess>,
}

impl Placements {
    /// An access to a memory begins: a read needs its line.
    pub(super) fn begun(&mut self, memory: NodeIndex, begun: &Begun) {
        let Some(line) = begun.placed.filter(|_| begun.is_read) else { return };
        let (address, access) = (line.address, line.number);
        self.asked.push_back(LineAccess::Read { memory, address, access });
    }

    /// An access to a memory ends: what a write has written is there.
    pub(super) fn ended(&mut self, memory: NodeIndex, ended: &Begun) {
        let Some(line) = ended.placed else { return };
        let Some(mask) = line.mask else { return };
        let (address, mask, data) = (line.address, mask.0, line.data);
        self.asked.push_back(LineAccess::Write { memory, address, mask, data });
    }
}

impl Boards {
    /// Begins a message, if it has addresses.
    pub(super) fn begin_placed(&mut self, net: &mut Net<'_, Boards>, id: FlowId) -> bool {
        let Some((name, placed)) = self.placements.next.take() else { return false };
        let flow = net.flow(id);
        let (at, memory, bytes) = (flow.source, flow.destination, flow.state.bytes);
        let access = Access { flow: id, generation: flow.generation };
        let (address, data, doing) = match placed {
            Placed::Read(address) => (address, vec![0; bytes as usize], Doing::Read),
            Placed::Write(address, data) => (address, data, Doing::Write),
            Placed::Modify(address, modify) => {
                (address, vec![0; bytes as usize], Doing::Modify(Some(modify)))
            }
            Placed::Clean { ranges, drops } => {
                self.clean(net, at, access, &ranges, drops);
                return true;
            }
        };
        self.join(net, at, memory);
        self.map(at, memory, address, data.len() as u64);
        let is_write = matches!(doing, Doing::Write);
        let message = Message::new(name, memory, address, data, doing);
        let lines = message.lines();
        net.flow_mut(id).state = Progress { kind: None, lines, ..net.flow(id).state };
        let generation = access.generation;
        let work = Work {
            is_placed: true,
            lines,
            ..Work::of_lines(id, generation, memory, bytes, is_write)
        };
        let compute = self.compute(at);
        compute.placing.messages.insert(id, message);
        compute.queue(work);
        compute.begin(net.now());
        self.go_on(net, at);
        true
    }

    /// Maps the memory of a message at both ends, where it is not yet.
    fn map(&mut self, at: NodeIndex, memory: NodeIndex, address: u64, bytes: u64) {
        let near = self.computes[usize::from(at)].as_mut().expect("the pair was joined");
        let far = self.memories[usize::from(memory)].as_mut().expect("the pair was joined");
        let node = near.peers[usize::from(memory)].expect("the pair was joined").index;
        for (section, base) in near.placing.add(memory, address, bytes) {
            let used = SectionUse { node, is_cached: true };
            near.node.map(section as usize, used).expect("CMem has as many sections as lines");
            far.place(at, section, base);
        }
    }

    fn clean(
        &mut self,
        net: &mut Net<'_, Boards>,
        at: NodeIndex,
        access: Access,
        ranges: &[LineRange],
        drops: bool,
    ) {
        let nodes = self.computes.len() as u16;
        let (rules, is_on) = (&self.rules, self.placements.is_on);
        let compute = self.computes[usize::from(at)]
            .get_or_insert_with(|| Box::new(super::Compute::new(rules, at, nodes, is_on)));
        let lines = |range: &LineRange| {
            compute.placing.lines(range.memory, range.address, range.bytes).collect::<Vec<_>>()
        };
        let lines = if ranges.is_empty() {
            let line = |number| LineAddress::new(number).expect("40 bits name a line");
            VecDeque::from([line(0)..=line(LineAddress::LINES - 1)])
        } else {
            ranges.iter().flat_map(lines).collect()
        };
        compute.placing.clean(access, drops, lines);
        self.go_on(net, at);
    }

    /// Goes on with flushes, and ends those that are done.
    pub(super) fn maintain(&mut self, net: &mut Net<'_, Boards>, at: NodeIndex) {
        let now = net.now();
        let ended = now + self.rules.host + self.rules.cycles(self.stages.agent_response);
        loop {
            let compute = self.compute(at);
            while let Some(event) = compute.node.poll_event() {
                compute.placing.hear(event);
            }
            if let Some(clean) = compute.placing.cleaned() {
                let id = clean.access.flow;
                match clean.failed {
                    true => net.lose(id, Loss::Timeout),
                    false => net.end(id, ended),
                }
                net.settle(id);
            } else if let Some((kind, lines)) = compute.placing.next_clean() {
                let begun = compute.node.begin_maintenance(now, kind, lines);
                begun.expect("one flush is under way at a time");
            } else {
                return;
            }
        }
    }

    /// The processor has a response of a message with addresses.
    pub(super) fn answer_placed(
        &mut self,
        net: &mut Net<'_, Boards>,
        at: NodeIndex,
        answered: Answered,
    ) {
        let Answered { access: Access { flow: id, .. }, failed, cache } = answered;
        let board = self.rules.cycles(cache + self.stages.agent_response);
        let ended = net.now() + self.rules.host + board;
        let state = &mut net.flow_mut(id).state;
        state.answered += 1;
        state.failed |= failed;
        if state.answered < state.lines {
            return;
        }
        let failed = state.failed;
        let message = self.compute(at).placing.messages.remove(&id).expect("it is under way");
        if failed {
            net.lose(id, Loss::Timeout);
        } else {
            if !matches!(message.doing, Doing::Write) {
                self.placements.read.insert(message.name, message.data);
            }
            net.end(id, ended);
        }
        net.settle(id);
    }

    /// What happened in the caches.
    pub(super) fn line_counters(&self) -> LineCounters {
        let mut all = LineCounters::default();
        for compute in self.computes.iter().flatten() {
            let of = compute.node.cache_counters();
            all.read_hits += of.read_hits;
            all.read_misses += of.read_misses + of.read_merges;
            all.write_hits += of.write_hits;
            all.write_misses += of.write_allocations + of.write_replacements;
            all.evictions += of.evictions;
        }
        all
    }
}

impl LineCaches for Boards {
    fn begin(&mut self) {
        self.placements.is_on = true;
    }

    fn place(&mut self, name: u64, placed: Placed) {
        self.placements.next = Some((name, placed));
    }

    fn take(&mut self, name: u64) -> Option<Vec<u8>> {
        self.placements.read.remove(&name)
    }

    fn is_asking(&self) -> bool {
        !self.placements.asked.is_empty()
    }

    fn ask(&mut self) -> Option<LineAccess> {
        self.placements.asked.pop_front()
    }

    fn supply(&mut self, memory: NodeIndex, access: u64, data: [u8; LINE_BYTES]) {
        let memory = self.memories[usize::from(memory)].as_mut().expect("it has asked");
        memory.supply(access, data);
    }
}

/// The caches, where the scenario has any.
pub(super) fn of(boards: &mut Boards) -> Option<&mut dyn LineCaches> {
    if boards.rules.cache.0 == 0 { None } else { Some(boards) }
}
