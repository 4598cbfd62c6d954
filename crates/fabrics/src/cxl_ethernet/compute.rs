//! The compute side of a node: messages as accesses of a processor, in front of the protocol's
//! compute node.

use std::collections::VecDeque;

use ethermem_cxl::ComputeNode;
use ethermem_cxl::agent::{ACCESSES_MAX, Req, ReqOpcode, Rwd, S2m, Tag};
use ethermem_cxl::compute::{NodeIndex as PeerIndex, Path};
use ethermem_cxl::stages::StageLatencies;
use ethermem_frames::FlowId;
use ethermem_units::{Cycles, Ps};
use ethermem_wire::cxl::{ByteMask, LINE_BYTES, LineAddress, LineData};
use ethermem_workload::NodeIndex;

use super::placed::{Doing, Placing, Store, cache_cycles};
use super::{Access, CxlEthernetConfig, SECTION_LINES, mac};

/// Recent lines of which a compute node knows the message: eight times what can be under way, so
/// that one which is sent again is still known.
const RECENT: usize = 16 * ACCESSES_MAX;
/// The line of an access is its number times this, modulo a section: neighbours in time are in
/// different rows of the memory. An odd number, so that each number has its line.
const SPREAD: u64 = 5_001;
/// `SPREAD * UNSPREAD` is 1 modulo a section.
const UNSPREAD: u64 = inverse(SPREAD);

/// The inverse of an odd number modulo a section, by Newton's method: each step doubles the
/// number of right bits.
const fn inverse(of: u64) -> u64 {
    let mut inverse = of;
    let mut step = 0;
    while step < 4 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(of.wrapping_mul(inverse)));
        step += 1;
    }
    inverse % SECTION_LINES
}

/// A message at its compute node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) flow: FlowId,
    pub(super) generation: u32,
    pub(super) memory: NodeIndex,
    pub(super) bytes: u64,
    /// True if the accesses are writes.
    pub(super) is_write: bool,
    /// True if the message has addresses: [`Placing`] knows which.
    pub(super) is_placed: bool,
    /// Number of its accesses.
    pub(super) lines: u32,
    /// Accesses that were begun.
    pub(super) begun: u32,
}

/// What a tag in use is of.
#[derive(Clone, Copy, Debug)]
struct InUse {
    access: Access,
    /// The line of a message with addresses, counted in the message.
    line: Option<u32>,
}

impl Work {
    /// The accesses of a message without addresses.
    pub(super) fn of_lines(
        flow: FlowId,
        generation: u32,
        memory: NodeIndex,
        bytes: u64,
        is_write: bool,
    ) -> Work {
        let lines = Work::lines(bytes);
        Work { flow, generation, memory, bytes, is_write, is_placed: false, lines, begun: 0 }
    }

    /// Number of lines that bytes take, which begin with a line.
    pub(super) fn lines(bytes: u64) -> u32 {
        bytes.div_ceil(LINE_BYTES as u64) as u32
    }

    /// The bytes of its next line that it writes.
    fn mask(&self) -> ByteMask {
        let left = self.bytes - u64::from(self.begun) * LINE_BYTES as u64;
        if left >= LINE_BYTES as u64 { ByteMask::FULL } else { ByteMask((1 << left) - 1) }
    }
}

/// A memory node, as a compute node uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Its index at the protocol's compute node, and the number of its section.
    pub(super) index: PeerIndex,
    /// The flow of the frames between the two.
    pub(super) flow: FlowId,
}

/// The compute side of a node.
pub(super) struct Compute {
    pub(super) node: ComputeNode,
    /// By node of the network.
    pub(super) peers: Vec<Option<Peer>>,
    /// By index of a memory node: requests that were sent again, and those of them by a timeout.
    pub(super) resent: Vec<(u64, u64)>,
    /// Messages that have accesses to begin, in turn: reads, and writes.
    reads: VecDeque<Work>,
    writes: VecDeque<Work>,
    /// Number of accesses that were begun.
    accesses: u64,
    recent: Box<[Option<(u64, Access)>]>,
    /// The access of each tag in use.
    tags: Vec<Option<InUse>>,
    free: Vec<Tag>,
    /// Messages with addresses.
    pub(super) placing: Placing,
    stages: StageLatencies,
    /// Time at which the FIFO hands the next frame to the MAC.
    pub(super) mac_free: Ps,
    /// The time of the pending wake.
    pub(super) woken: Ps,
    /// While a switch pauses its link: the time of the next signal.
    pub(super) signal_at: Option<Ps>,
}

/// An access whose response the processor has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) access: Access,
    /// True if the access failed: poison, or a write that may be lost.
    pub(super) failed: bool,
    /// What the cache took.
    pub(super) cache: Cycles,
}

impl Compute {
    pub(super) fn new(
        config: &CxlEthernetConfig,
        at: NodeIndex,
        nodes: u16,
        is_placed: bool,
    ) -> Compute {
        let node = ComputeNode::new(config.compute(mac(at), nodes, is_placed), &[]);
        Compute {
            node: node.expect("the scenario was checked"),
            peers: vec![None; usize::from(nodes)],
            resent: Vec::new(),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            accesses: 0,
            recent: vec![None; RECENT].into(),
            tags: Vec::new(),
            free: Vec::new(),
            placing: Placing::new(nodes.into()),
            stages: StageLatencies::published(),
            mac_free: Ps::ZERO,
            woken: Ps::MAX,
            signal_at: None,
        }
    }

    /// Queues the accesses of a message.
    pub(super) fn queue(&mut self, work: Work) {
        if work.is_write { &mut self.writes } else { &mut self.reads }.push_back(work);
    }

    /// Begins accesses as far as the agent has credits. Messages take turns for them, a line each,
    /// as the threads of a processor do.
    pub(super) fn begin(&mut self, now: Ps) {
        self.store(now);
        while let Some(work) = self.next_work(false).or_else(|| self.next_work(true)) {
            let begun = work.begun + 1;
            if begun < work.lines {
                let queue = if work.is_write { &mut self.writes } else { &mut self.reads };
                queue.push_back(Work { begun, ..work });
            }
            match work.is_placed {
                true => self.access_placed(now, work),
                false => self.access(now, work, work.mask()),
            }
        }
    }

    /// The next message that may begin an access.
    fn next_work(&mut self, is_write: bool) -> Option<Work> {
        if !self.node.has_credit(is_write) {
            return None;
        }
        let queue = if is_write { &mut self.writes } else { &mut self.reads };
        if !self.placing.is_locking() {
            return queue.pop_front();
        }
        for _ in 0..queue.len() {
            let work = queue.pop_front()?;
            if !self.placing.must_wait(&work) {
                return Some(work);
            }
            queue.push_back(work);
        }
        None
    }

    /// Writes what atomics have made of their lines, as far as there are credits.
    fn store(&mut self, now: Ps) {
        while self.node.has_credit(true)
            && let Some(store) = self.placing.stores.pop_front()
        {
            let Store { access, address, mask, data } = store;
            let tag = self.tag(InUse { access, line: Some(0) });
            let taken = self.node.on_rwd(now, &Rwd { tag, address, mask, data });
            taken.expect("there is a credit, and the address is of a line");
            // Accesses are executed in order, so the next one sees this one's word.
            self.placing.unlock(address);
        }
    }

    fn tag(&mut self, of: InUse) -> Tag {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.tags.push(None);
            Tag((self.tags.len() - 1) as u16)
        });
        self.tags[usize::from(tag.0)] = Some(of);
        tag
    }

    fn access_placed(&mut self, now: Ps, work: Work) {
        let Work { flow, generation, is_write, begun, .. } = work;
        let address = self.placing.line(flow, begun);
        let tag = self.tag(InUse { access: Access { flow, generation }, line: Some(begun) });
        let message = &self.placing.messages[&flow];
        let part = message.part(begun);
        let taken = if is_write {
            let (mask, data) = (part.mask(), message.written(part));
            self.node.on_rwd(now, &Rwd { tag, address, mask, data })
        } else {
            if matches!(message.doing, Doing::Modify(_)) {
                self.placing.lock(address);
            }
            self.node.on_req(now, Req { opcode: ReqOpcode::MemRd, tag, address })
        };
        taken.expect("there is a credit, and the address is of a line");
    }

    fn access(&mut self, now: Ps, work: Work, mask: ByteMask) {
        let Work { flow, generation, memory, is_write, .. } = work;
        let access = Access { flow, generation };
        let tag = self.tag(InUse { access, line: None });
        let peer = self.peers[usize::from(memory)].expect("the pair was joined");
        let line = self.accesses * SPREAD % SECTION_LINES;
        self.recent[self.accesses as usize % RECENT] = Some((self.accesses, access));
        self.accesses += 1;
        let address = (u64::from(peer.index.0) * SECTION_LINES + line) * LINE_BYTES as u64;
        let taken = match is_write {
            false => self.node.on_req(now, Req { opcode: ReqOpcode::MemRd, tag, address }),
            true => self.node.on_rwd(now, &Rwd { tag, address, mask, data: [0; LINE_BYTES] }),
        };
        taken.expect("there is a credit, and the address is of a line");
    }

    /// The access of a line of its CMem without an address, if that is under way.
    pub(super) fn access_of(&self, line: LineAddress) -> Option<Access> {
        if self.placing.has(line) {
            return None;
        }
        let number = line.number() % SECTION_LINES * UNSPREAD % SECTION_LINES;
        let (accesses, access) = self.recent[number as usize % RECENT]?;
        (accesses % SECTION_LINES == number).then_some(access)
    }

    /// The next access that has its response. The read of an atomic is followed by its write.
    pub(super) fn answered(&mut self, now: Ps) -> Option<Answered> {
        loop {
            let response = self.node.poll_response()?;
            let tag = response.message.tag();
            let of = self.tags[usize::from(tag.0)].take().expect("a response has its request");
            self.free.push(tag);
            let InUse { access, line } = of;
            let poison = matches!(response.message, S2m::Drs { poison: true, .. });
            // A write without a way was given up.
            let failed = poison || response.path == Path::None;
            let Some(line) = line else {
                return Some(Answered { access, failed, cache: Cycles(0) });
            };
            let mut cache = cache_cycles(&self.stages, response.path);
            match response.message {
                S2m::Drs { data, .. } if self.is_followed(access, line, &data, cache, failed) => {
                    self.store(now);
                    continue;
                }
                S2m::Drs { .. } => {}
                S2m::Ndr(_) => cache = cache + self.placing.messages[&access.flow].before,
            }
            return Some(Answered { access, failed, cache });
        }
    }

    /// Takes a line that was read; true if it is an atomic's, whose write follows.
    fn is_followed(
        &mut self,
        access: Access,
        line: u32,
        data: &LineData,
        cache: Cycles,
        failed: bool,
    ) -> bool {
        let address = self.placing.line(access.flow, line);
        let message = self.placing.messages.get_mut(&access.flow).expect("it is under way");
        let part = message.part(line);
        message.read(part, data);
        if !matches!(message.doing, Doing::Modify(_)) {
            return false;
        }
        let after = message.modified(part, data).filter(|_| !failed);
        message.before = cache;
        match after {
            Some(data) => {
                let mask = part.mask();
                self.placing.stores.push_back(Store { access, address, mask, data });
            }
            None => self.placing.unlock(address),
        }
        after.is_some()
    }

    /// True if nothing waits or is under way.
    pub(super) fn is_idle(&self) -> bool {
        let is_idle = self.reads.is_empty() && self.writes.is_empty();
        is_idle && self.placing.is_idle() && self.node.in_flight() == (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_line() {
        assert_eq!(SPREAD * UNSPREAD % SECTION_LINES, 1);
        let mut lines = vec![false; SECTION_LINES as usize];
        for number in 0..SECTION_LINES {
            let line = number * SPREAD % SECTION_LINES;
            assert!(!std::mem::replace(&mut lines[line as usize], true), "line {line} twice");
            assert_eq!(line * UNSPREAD % SECTION_LINES, number);
        }
    }

    #[test]
    fn the_last_line_of_a_message_is_written_in_part() {
        let work = |bytes, begun| Work { begun, ..Work::of_lines(0, 0, 0, bytes, true) };
        assert_eq!([1, 63, 64, 65, 128].map(Work::lines), [1, 1, 1, 2, 2]);
        assert_eq!(work(64, 0).mask(), ByteMask::FULL);
        assert_eq!(work(65, 1).mask(), ByteMask(1));
        assert_eq!(work(127, 1).mask(), ByteMask(u64::MAX >> 1));
        assert_eq!(work(8, 0).mask(), ByteMask(0xff));
    }
}
