//! Writes the inputs and outputs of a `BlockSwitch` under random traffic, for the RTL's equivalence
//! test. Standard input has the parameters on one line: `PORTS POLICY SLOTS FAILURES SEED`.
//!
//! A row is `slot,event,port,first,last,ending,header,payload`. Its event is a memory block `in`
//! with the receiver's verdict, a memory block `out`, or a port that goes `up` or `down`. Control
//! blocks are not charged: the time at which a downlink's control blocks count depends on the
//! latency of the egress.

mod draws;
#[path = "../../tests/support/rng.rs"]
mod rng;

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use ethermem_edm::phy::{ABORT, LineBlock, LinkFaults, LinkSlot};
use ethermem_edm::port::BlockSwitch;
use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{Arbitration, EdmConfig, Policy};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::{Block, Deframer, Event, GrantKind, Message, NodeId, StatusCode};

use draws::{Draws, Ending, Unit, link_status, status};
use rng::Rng;

const SLOT: Ps = Ps(1_000);
const CHUNK_BYTES: u64 = 128;
/// Slots between failures, before the slot of a failure without demands, and until the port is
/// back.
const FAILURE_SLOTS: u64 = 2_000;
const QUIET_SLOTS: u64 = 150;
const DOWN_SLOTS: u64 = 300;

/// A node as the switch sees it. It sends requests, and answers its grants, mostly in order.
struct Node {
    id: NodeId,
    faults: LinkFaults,
    hears: Deframer,
    asks: VecDeque<Unit>,
    answers: VecDeque<(u64, Unit)>,
    sending: Unit,
    first: bool,
}

impl Node {
    fn new(port: u16) -> Node {
        Node {
            id: NodeId::at(port),
            faults: LinkFaults::new(),
            hears: Deframer::new(),
            asks: VecDeque::new(),
            answers: VecDeque::new(),
            sending: (VecDeque::new(), Ending::Sound),
            first: true,
        }
    }

    fn start_anew(&mut self) {
        *self = Node { id: self.id, ..std::mem::replace(self, Node::new(self.id.number())) };
        self.hears = Deframer::new();
        self.asks.clear();
        self.answers.clear();
        self.sending.0.clear();
    }

    /// The next block, whether it begins or ends its message, and the ending.
    fn send(&mut self, slot: u64, draws: &mut Draws) -> Option<(Block, bool, bool, Ending)> {
        if self.sending.0.is_empty() {
            if draws.below(4) == 0 {
                return None;
            }
            let due = self.answers.front().is_some_and(|&(at, _)| at <= slot);
            self.sending = if due && (draws.below(3) > 0 || self.asks.is_empty()) {
                self.answers.pop_front()?.1
            } else {
                self.asks.pop_front()?
            };
            self.first = true;
        }
        let block = self.sending.0.pop_front()?;
        let first = std::mem::replace(&mut self.first, false);
        Some((block, first, self.sending.0.is_empty(), self.sending.1))
    }

    /// Answers a block of the switch.
    fn hear(&mut self, slot: u64, block: Block, draws: &mut Draws) {
        if block == ABORT {
            self.hears = Deframer::new();
        }
        let Ok(Some(Event::Message(message))) = self.hears.push(block) else { return };
        let id = self.id;
        let (peer, of, response, bytes) = match message {
            Message::Grant(grant) => {
                let response = grant.kind == GrantKind::Response;
                (grant.peer, grant.id, response, u64::from(grant.bytes.get()))
            }
            Message::ReadRequest(read) => (read.peer(), read.id(), true, read.bytes().0),
            Message::RmwRequest(rmw) => (rmw.peer, rmw.id, true, 8),
            Message::AcknowledgedWrite(write) if write.last => {
                self.asks.push_back(status(4, write.source, write.id, StatusCode::Ok));
                return;
            }
            Message::Status(status) if status.opcode.bits() == 0 => {
                if status.code == StatusCode::LinkDisabled {
                    let heard = link_status(status.peer, StatusCode::LinkDisabled);
                    self.asks.push_back(heard);
                }
                return;
            }
            _ => return,
        };
        let bytes = bytes.min(CHUNK_BYTES);
        draws.granted(id, peer, response, bytes);
        let at = slot + 1 + draws.below(60);
        for answer in draws.answer(id, peer, of, response, bytes) {
            self.answers.push_back((at, answer));
        }
    }
}

struct Bench {
    switch: BlockSwitch,
    nodes: Vec<Node>,
    draws: Draws,
    rows: String,
    /// A node sends a request once in this many slots.
    thinned: u64,
}

impl Bench {
    fn row(&mut self, slot: u64, event: &str, port: NodeId, rest: &str) {
        writeln!(self.rows, "{slot},{event},{}{rest}", port.number()).expect("a string");
    }

    fn slot(&mut self, slot: u64, quiet: bool) {
        let now = Ps(SLOT.0 * slot);
        if slot.is_multiple_of(500) {
            self.thinned = [4, 12, 40, 200][self.draws.below(4) as usize];
        }
        for port in 0..self.nodes.len() {
            let node = &mut self.nodes[port];
            let (id, was_up) = (node.id, self.switch.is_up(node.id));
            if !quiet && node.asks.len() < 4 && self.draws.below(self.thinned) == 0 {
                let ask = self.draws.ask(id);
                node.asks.extend(ask);
            }
            let fault = node.faults.transmit();
            let sent = match fault {
                None => node.send(slot, &mut self.draws),
                Some(_) => None,
            };
            let block = fault.or(sent.map(|(block, ..)| block)).unwrap_or(Block::IDLE);
            self.switch.receive(now, id, Some(LineBlock::from(block)));
            if let Some((block, first, last, ending)) = sent.filter(|_| was_up) {
                let (sync, payload) = (block.sync() as u8, block.payload());
                let (first, last) = (u8::from(first), u8::from(last));
                let ending = ending as u8;
                self.row(slot, "in", id, &format!(",{first},{last},{ending},{sync},{payload:x}"));
            }
            if self.switch.is_up(id) && !was_up {
                self.row(slot, "up", id, ",,,,,");
            }
        }
        self.switch.schedule(now);
        for port in 0..self.nodes.len() {
            let id = self.nodes[port].id;
            let block = self.switch.transmit(now, id, None).line;
            let node = &mut self.nodes[port];
            match node.faults.receive(Some(LineBlock::from(block))) {
                LinkSlot::Up(_) => node.hear(slot, block, &mut self.draws),
                LinkSlot::Failed => {
                    node.start_anew();
                    node.faults.allow_start();
                }
                LinkSlot::Down | LinkSlot::Started => {}
            }
            if self.switch.is_up(id) && !block.is_idle() {
                let (sync, payload) = (block.sync() as u8, block.payload());
                self.row(slot, "out", id, &format!(",,,,{sync},{payload:x}"));
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let [ports, policy, slots, failures, seed] = line.split_whitespace().collect::<Vec<_>>()[..]
    else {
        return Err("expected PORTS POLICY SLOTS FAILURES SEED".into());
    };
    let policy = match policy {
        "fcfs" => Policy::Fcfs,
        "srpt" => Policy::Srpt,
        _ => Policy::SrptPublished,
    };
    let (ports, failures) = (ports.parse::<u16>()?, failures == "1");
    let slots: u64 = slots.parse()?;
    let edm = EdmConfig { chunk: Bytes(CHUNK_BYTES), policy, ..EdmConfig::default() };
    let config = SchedulerConfig {
        control_blocks_free: None,
        ahead_blocks: 16,
        ..SchedulerConfig::new(ports, &edm, SLOT, SLOT)
    };
    let mut bench = Bench {
        switch: BlockSwitch::new(&config, Arbitration::Fair),
        nodes: (0..ports).map(Node::new).collect(),
        draws: Draws { rng: Rng(seed.parse()?), ports, open: BTreeMap::new(), shunned: None },
        rows: String::new(),
        thinned: 4,
    };
    let mut out = io::stdout().lock();
    let mut failed = NodeId::at(0);
    for slot in 0..slots {
        let phase = slot % FAILURE_SLOTS;
        let quiet = failures && phase >= FAILURE_SLOTS - QUIET_SLOTS;
        if failures && slot > 0 && phase == 0 {
            failed = NodeId::at(bench.draws.below(ports.into()) as u16);
            bench.row(slot, "down", failed, ",,,,,");
            bench.switch.fail_port(failed);
            bench.draws.open.retain(|&(from, to, _), _| from != failed && to != failed);
            bench.draws.shunned = Some(failed);
        }
        if failures && slot > FAILURE_SLOTS && phase == DOWN_SLOTS {
            bench.switch.restore_port(failed);
        }
        if phase == 2 * DOWN_SLOTS {
            bench.draws.shunned = None;
        }
        bench.slot(slot, quiet || slot + QUIET_SLOTS * 4 > slots);
        out.write_all(bench.rows.as_bytes())?;
        bench.rows.clear();
    }
    writeln!(out, "# {:?}", bench.switch.counters())?;
    Ok(())
}
