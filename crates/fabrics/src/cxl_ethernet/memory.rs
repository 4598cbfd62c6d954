//! The memory side of a node: the pace of its FIFO, and the time of its memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_cxl::MemoryNode;
use ethermem_cxl::dram::{Dram, Geometry, Timing};
use ethermem_cxl::memory::AccessHandle;
use ethermem_cxl::stages::StageLatencies;
use ethermem_frames::FlowId;
use ethermem_units::Ps;
use ethermem_wire::cxl::{ByteMask, LINE_BYTES, LineAddress, LineData, Request, Sequence};
use ethermem_workload::NodeIndex;

use super::config::{MemoryKind, managers};
use super::placed::PlacedLine;
use super::{CxlEthernetConfig, SECTION_LINES, mac};

/// The first sequence number of each pair; the global memory manager's in a real system.
pub(super) const INITIAL: Sequence = Sequence(0);

/// The pool's page of a compute node, and where its lines are in that node's CMem.
#[derive(Clone, Copy, Debug)]
struct Page {
    compute: NodeIndex,
    /// The page of CMem.
    page: u64,
    /// The address of the memory node where it begins, if its accesses have addresses.
    base: Option<u64>,
}

/// A compute node that a memory node serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// The flow of the frames between the two.
    pub(super) flow: FlowId,
}

/// An access that the memory has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) compute: NodeIndex,
    /// The line in the compute node's CMem.
    pub(super) line: LineAddress,
    pub(super) is_read: bool,
    /// The access, if it has an address.
    pub(super) placed: Option<PlacedLine>,
}

/// The memory side of a node.
pub(super) struct Memory {
    pub(super) node: MemoryNode,
    /// By node of the network.
    pub(super) clients: Vec<Option<Client>>,
    /// The pages of the pool, by number.
    pages: Vec<Page>,
    /// Time at which the data path takes the next frame out of the FIFO.
    free: Ps,
    dram: Option<Dram>,
    /// The time of the last access to it: accesses behind one that waits for the page table wait.
    dram_at: Ps,
    /// Accesses under way, by the time of their end and their order.
    under_way: BinaryHeap<Reverse<(Ps, u64, AccessHandle)>>,
    begun: Vec<(AccessHandle, Begun)>,
    /// Accesses with addresses that are under way.
    placed: Vec<PlacedLine>,
    number: u64,
    /// The time of the pending wake.
    pub(super) woken: Ps,
}

/// The times of a memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// A read, and a write, with what the two packet managers take for a request more than for a
    /// response, and for a response with data.
    read: Ps,
    write: Ps,
    /// A line of the page table.
    table: Ps,
    /// The clock of the data path.
    cycle: Ps,
    /// Bytes of it.
    width: u64,
}

impl Times {
    pub(super) fn of(config: &CxlEthernetConfig, memory_access: Ps) -> Times {
        let stages = StageLatencies::published();
        let request = stages.request_build + stages.to_memory();
        let more = config.cycles(request) - config.cycles(managers());
        let memory = |is_read| match config.memory {
            // As in every fabric, a write ends when it is there.
            MemoryKind::Fabric if is_read => memory_access,
            MemoryKind::Fabric => Ps::ZERO,
            MemoryKind::Ddr4 if config.at_best => controller(config, is_read) + open_row(is_read),
            MemoryKind::Ddr4 => controller(config, is_read),
        };
        Times {
            read: memory(true) + more + config.cycles(stages.response_data),
            write: memory(false) + more,
            table: if config.at_best { Ps::ZERO } else { memory(true) },
            cycle: config.memory_clock.period,
            width: config.width.0,
        }
    }
}

/// What the prototype's controller takes beside the DRAM itself: the published stage less a read
/// of a closed row, or less a write that is accepted at once.
fn controller(config: &CxlEthernetConfig, is_read: bool) -> Ps {
    let stage = config.cycles(StageLatencies::published().memory(is_read));
    let closed = Timing::ddr4_2400().rcd + open_row(is_read);
    Ps(stage.0.saturating_sub(closed.0))
}

/// An access to an open row of an idle memory.
fn open_row(is_read: bool) -> Ps {
    let timing = Timing::ddr4_2400();
    timing.burst + if is_read { timing.cl } else { timing.cwl }
}

impl Memory {
    pub(super) fn new(config: &CxlEthernetConfig, at: NodeIndex, nodes: u16) -> Memory {
        let node = MemoryNode::new(config.memory(mac(at), nodes));
        let dram = || Dram::new(Geometry::published(), Timing::ddr4_2400());
        let dram = (config.memory == MemoryKind::Ddr4 && !config.at_best).then(dram);
        Memory {
            node: node.expect("the scenario was checked"),
            clients: vec![None; usize::from(nodes)],
            pages: Vec::new(),
            free: Ps::ZERO,
            dram: dram.transpose().expect("the published geometry"),
            dram_at: Ps::ZERO,
            under_way: BinaryHeap::new(),
            begun: Vec::new(),
            placed: Vec::new(),
            number: 0,
            woken: Ps::MAX,
        }
    }

    /// Takes requests of a compute node, and gives it a page of the pool.
    pub(super) fn attach(&mut self, compute: NodeIndex, page: u64, flow: FlowId) {
        self.node.attach(mac(compute), INITIAL).expect("each compute node is attached once");
        self.map(Page { compute, page, base: None });
        self.clients[usize::from(compute)] = Some(Client { flow });
    }

    /// Gives a compute node a page of the pool, for memory that begins at this address.
    pub(super) fn place(&mut self, compute: NodeIndex, page: u64, address: u64) {
        self.map(Page { compute, page, base: Some(address) });
    }

    fn map(&mut self, page: Page) {
        let frame = self.pages.len() as u64;
        self.pages.push(page);
        let mapped = self.node.map(mac(page.compute), page.page, frame);
        mapped.expect("each page is mapped once, and the table grows");
    }

    /// Takes a line that an access reads.
    pub(super) fn supply(&mut self, number: u64, data: LineData) {
        let placed = self.placed.iter_mut().find(|placed| placed.number == number);
        placed.expect("the access is under way").data = data;
    }

    /// Takes frames out of the FIFO, at the pace of the data path.
    pub(super) fn drain(&mut self, now: Ps, times: &Times) {
        while self.free <= now && self.node.fifo_used() > 0 {
            let before = self.node.fifo_used();
            self.node.drain(now);
            let octets = u64::from(before - self.node.fifo_used()) * LINE_BYTES as u64;
            self.free = now + times.cycle * octets.div_ceil(times.width);
        }
    }

    /// Begins the next access.
    pub(super) fn access(&mut self, now: Ps, times: &Times) -> Option<Begun> {
        let access = self.node.poll_access()?;
        let is_read = matches!(access.request, Request::Read);
        let table = times.table * u64::from(access.table_reads);
        let start = now + table;
        let fixed = if is_read { times.read } else { times.write };
        let end = match &mut self.dram {
            Some(dram) => {
                self.dram_at = self.dram_at.max(start);
                dram.access(self.dram_at, access.line, !is_read).data_end + fixed
            }
            None => start + fixed,
        };
        self.number += 1;
        self.under_way.push(Reverse((end, self.number, access.handle)));
        let Page { compute, page, base } =
            self.pages[(access.line.number() / SECTION_LINES) as usize];
        let at = access.line.number() % SECTION_LINES;
        let line = LineAddress::new(page * SECTION_LINES + at).expect("a line of CMem");
        let placed = base.map(|base| {
            let address = base + at * LINE_BYTES as u64;
            let (mask, data) = match access.request {
                Request::Read => (None, [0; LINE_BYTES]),
                Request::Write(data) => (Some(ByteMask::FULL), data),
                Request::MaskedWrite(mask, data) => (Some(mask), data),
            };
            PlacedLine { number: self.number, address, mask, data }
        });
        self.placed.extend(placed);
        let begun = Begun { compute, line, is_read, placed };
        self.begun.push((access.handle, begun));
        Some(begun)
    }

    /// Ends the next access whose time has come.
    pub(super) fn ended(&mut self, now: Ps) -> Option<Begun> {
        let Reverse((_, number, handle)) = *self.under_way.peek().filter(|next| next.0.0 <= now)?;
        self.under_way.pop();
        let at = self.begun.iter().position(|begun| begun.0 == handle).expect("it was begun");
        let (_, begun) = self.begun.swap_remove(at);
        let mut data = [0; LINE_BYTES];
        if begun.placed.is_some() {
            let at = self.placed.iter().position(|placed| placed.number == number);
            data = self.placed.swap_remove(at.expect("it was begun")).data;
        }
        match begun.is_read {
            true => self.node.on_read(handle, Some(data)),
            false => self.node.on_written(handle),
        }
        Some(begun)
    }

    /// When something of it is due.
    pub(super) fn next_wake(&self) -> Option<Ps> {
        let access = self.under_way.peek().map(|next| next.0.0);
        let drain = (self.node.fifo_used() > 0).then_some(self.free);
        [access, drain, self.node.next_wake()].into_iter().flatten().min()
    }

    /// True if nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.node.fifo_used() == 0
    }
}
