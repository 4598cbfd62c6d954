//! The switch node's data path: what is found in a queue is split, into the rack or to a NIC
//! (sections 4.3, 4.4 and 4.7).
//!
//! The world loads and stores entries, after their latencies; [`SwitchNode`] says which, and passes
//! references. A reference is passed when the store into the RxQ is decided: before that, it is the
//! source's, so a descriptor that dies with its queue loses nothing.

mod action;
mod receive;

use std::collections::BTreeMap;

use ethermem_placement::NodeId;
use ethermem_wire::dfabric::{
    Descriptor, DescriptorKind, DescriptorWords, FabricAddress, Identity,
};

use crate::address::Node;
use crate::fifo::Fifo;
use crate::nic::{NicConfig, NicId, NicPool, PostError, TxQueue};
use crate::poller::{PollMode, Poller};
use crate::pool::{Freed, Losses, MemoryPool, Obituary, PoolError};

pub use action::{Action, Lost, Refusal, SwitchCounters};

/// What a switch node is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// The SN as a member of the memory pool: it holds what NICs use.
    pub node: Node,
    /// Members of the rack; the pool's `nodes_max`.
    pub nodes: u16,
    /// TxQs, and RxQs, of each node.
    pub queues: u16,
    /// Entries of an RxQ.
    pub rx_entries: u32,
    /// How TxQs are polled.
    pub mode: PollMode,
    /// Most loads of tails at once.
    pub loads_max: u32,
}

/// Where an identity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Member(Node),
    OtherRack,
}

/// The data path of one rack's switch node.
#[derive(Clone, Debug)]
pub struct SwitchNode {
    config: SwitchConfig,
    poller: Poller,
    nics: NicPool,
    directory: BTreeMap<Identity, Place>,
    identities: Box<[Option<Identity>]>,
    /// By TxQ: what was found and waits for room.
    pending: Box<[Option<Descriptor>]>,
    /// TxQs with something pending, in their order.
    waiting: Fifo<u32>,
    /// By RxQ: entries that were stored and not consumed.
    rx_used: Box<[u32]>,
    counters: SwitchCounters,
}

impl SwitchNode {
    /// A switch node whose nodes have still to join.
    ///
    /// # Panics
    /// If nodes have no queues.
    #[must_use]
    pub fn new(config: SwitchConfig, nics: &[NicConfig]) -> SwitchNode {
        assert!(config.queues > 0, "a node has at least one pair of queues");
        let queues = u32::from(config.nodes) * u32::from(config.queues);
        let mut poller = Poller::new(queues, config.mode, config.loads_max);
        (0..queues).for_each(|queue| poller.close(queue));
        SwitchNode {
            poller,
            nics: NicPool::new(nics, queues),
            directory: BTreeMap::new(),
            identities: vec![None; usize::from(config.nodes)].into(),
            pending: vec![None; queues as usize].into(),
            waiting: Fifo::new(queues as usize),
            rx_used: vec![0; queues as usize].into(),
            counters: SwitchCounters::default(),
            config,
        }
    }

    /// The NICs of the rack.
    #[must_use]
    pub fn nics(&self) -> &NicPool {
        &self.nics
    }

    /// The NICs of the rack, for what a NIC does by itself: packets that come, receive buffers.
    pub fn nics_mut(&mut self) -> &mut NicPool {
        &mut self.nics
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> SwitchCounters {
        self.counters
    }

    /// Loads of tails since the start, and those that found an entry.
    #[must_use]
    pub fn poll_counters(&self) -> crate::poller::PollCounters {
        self.poller.counters()
    }

    /// A node's TxQ or RxQ by its number among all.
    #[must_use]
    pub fn queue(&self, node: Node, index: u16) -> u32 {
        u32::from(node.0) * u32::from(self.config.queues) + u32::from(index % self.config.queues)
    }

    fn node_of(&self, queue: u32) -> Node {
        Node((queue / u32::from(self.config.queues)) as u16)
    }

    fn queues_of(&self, node: Node) -> std::ops::Range<u32> {
        let first = self.queue(node, 0);
        first..first + u32::from(self.config.queues)
    }

    /// A node that has joined the memory pool gets its name, and its TxQs are polled.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn join(&mut self, node: Node, identity: Identity) {
        if let Some(old) = self.identities[usize::from(node.0)].replace(identity) {
            self.directory.remove(&old);
        }
        self.directory.insert(identity, Place::Member(node));
        self.queues_of(node).for_each(|queue| self.poller.open(queue));
    }

    /// An identity is of another rack: it is reached by NICs.
    pub fn add_remote(&mut self, identity: Identity) {
        self.directory.insert(identity, Place::OtherRack);
    }

    /// A node has died: its queues are no longer polled, its references come back.
    ///
    /// # Errors
    /// [`PoolError::NoSuchNode`].
    pub fn node_died(&mut self, pool: &mut MemoryPool, node: Node) -> Result<Obituary, PoolError> {
        let left = pool.node_died(node)?;
        if let Some(identity) = self.identities[usize::from(node.0)].take() {
            self.directory.remove(&identity);
        }
        for queue in self.queues_of(node) {
            self.poller.close(queue);
            self.pending[queue as usize] = None;
            self.rx_used[queue as usize] = 0;
        }
        let gone = self.queues_of(node);
        self.waiting.retain(|queue| !gone.contains(queue));
        Ok(left)
    }

    /// A memory device is gone: what NICs were to read or write there leaves their queues.
    ///
    /// # Errors
    /// [`PoolError::NoSuchDevice`].
    pub fn device_lost(
        &mut self,
        pool: &mut MemoryPool,
        device: NodeId,
    ) -> Result<Losses, PoolError> {
        self.nics.forget(|buffer| pool.device_of(buffer) == Some(device));
        pool.device_lost(device)
    }

    /// The TxQ whose tail is to be loaded next.
    pub fn poll(&mut self) -> Option<u32> {
        self.poller.poll()
    }

    /// Begins the load of this TxQ's tail: see [`Poller::poll_queue`].
    pub fn poll_queue(&mut self, queue: u32) -> bool {
        self.poller.poll_queue(queue)
    }

    /// The load of a TxQ's tail has ended: with an entry's words, or without.
    pub fn on_tail(
        &mut self,
        pool: &mut MemoryPool,
        queue: u32,
        words: Option<DescriptorWords>,
    ) -> Action {
        if !self.poller.loaded(queue, words.is_some()) {
            return Action::Idle;
        }
        let Some(words) = words else { return Action::Idle };
        match Descriptor::parse(&words) {
            Ok(descriptor) => self.split(pool, queue, descriptor),
            Err(fault) => self.refuse(queue, Refusal::Descriptor(fault)),
        }
    }

    /// Looks again at what waits for room; `None` if nothing of it can go on.
    pub fn retry(&mut self, pool: &mut MemoryPool) -> Option<Action> {
        for _ in 0..self.waiting.len() {
            let queue = self.waiting.pop()?;
            let Some(descriptor) = self.pending[queue as usize].take() else { continue };
            self.poller.unblock(queue);
            match self.split(pool, queue, descriptor) {
                Action::Waits => {}
                action => return Some(action),
            }
        }
        None
    }

    fn split(&mut self, pool: &mut MemoryPool, queue: u32, descriptor: Descriptor) -> Action {
        let node = self.node_of(queue);
        if descriptor.kind != DescriptorKind::Transfer {
            return self.refuse(queue, Refusal::Kind(descriptor.kind));
        }
        if self.identities[usize::from(node.0)] != Some(descriptor.source) {
            return self.refuse(queue, Refusal::Source(descriptor.source));
        }
        match self.directory.get(&descriptor.destination).copied() {
            Some(Place::Member(to)) => self.pass_to_member(pool, queue, to, descriptor),
            Some(Place::OtherRack) => self.pass_to_nic(pool, queue, descriptor),
            None => {
                self.counters.unreachable += 1;
                Action::Unreachable { node, descriptor }
            }
        }
    }

    fn pass_to_member(
        &mut self,
        pool: &mut MemoryPool,
        queue: u32,
        to: Node,
        descriptor: Descriptor,
    ) -> Action {
        let rx = self.queue(to, (queue % u32::from(self.config.queues)) as u16);
        if self.rx_used[rx as usize] == self.config.rx_entries {
            return self.wait(queue, descriptor);
        }
        let Descriptor { reference, length, .. } = descriptor;
        let passed = match pool.pass(self.node_of(queue), to, reference, length) {
            Ok(passed) => passed,
            Err(PoolError::NoReference) => return self.wait(queue, descriptor),
            Err(error) => return self.refuse(queue, Refusal::Reference(error)),
        };
        self.rx_used[rx as usize] += 1;
        self.counters.intra_rack += 1;
        let flush = passed.flush.then_some((self.node_of(queue), passed.buffer));
        Action::ToRx { node: to, queue: rx, descriptor, flush }
    }

    fn pass_to_nic(&mut self, pool: &mut MemoryPool, queue: u32, descriptor: Descriptor) -> Action {
        let node = self.node_of(queue);
        let work = Descriptor { kind: DescriptorKind::Send, ..descriptor };
        match self.nics.choose(TxQueue(queue), work.length) {
            Ok(_) => {}
            Err(PostError::Full(_)) => return self.wait(queue, descriptor),
            Err(PostError::NoNic) => {
                self.counters.unreachable += 1;
                return Action::Unreachable { node, descriptor };
            }
        }
        let passed = match pool.pass(node, self.config.node, work.reference, work.length) {
            Ok(passed) => passed,
            Err(PoolError::NoReference) => return self.wait(queue, descriptor),
            Err(error) => return self.refuse(queue, Refusal::Reference(error)),
        };
        let nic = self.nics.post(TxQueue(queue), work).expect("the NIC's queue had room");
        self.counters.inter_rack += 1;
        Action::ToNic { nic, work, flush: passed.flush.then_some((node, passed.buffer)) }
    }

    fn wait(&mut self, queue: u32, descriptor: Descriptor) -> Action {
        self.pending[queue as usize] = Some(descriptor);
        self.poller.block(queue);
        self.waiting.push(queue);
        self.counters.waits += 1;
        Action::Waits
    }

    fn refuse(&mut self, queue: u32, refusal: Refusal) -> Action {
        self.counters.refused += 1;
        Action::Refused { node: self.node_of(queue), refusal }
    }

    /// A node has taken an entry of an RxQ: there is room for another one, see
    /// [`SwitchNode::retry`].
    pub fn on_consumed(&mut self, queue: u32) {
        if let Some(used) = self.rx_used.get_mut(queue as usize) {
            *used = used.saturating_sub(1);
        }
    }

    /// A NIC has sent its first packet: the SN gives up its reference. What waits may go on, see
    /// [`SwitchNode::retry`]. `None`: the NIC had nothing, or is lost.
    pub fn on_sent(
        &mut self,
        pool: &mut MemoryPool,
        nic: NicId,
    ) -> Option<(Descriptor, Option<Freed>)> {
        let (work, _) = self.nics.complete(nic)?;
        Some((work, pool.release(self.config.node, work.reference).ok()))
    }

    /// A NIC is lost. Call [`SwitchNode::poll_lost`] until it returns nothing.
    pub fn lose_nic(&mut self, nic: NicId) {
        self.nics.lose(nic);
    }

    /// What a lost NIC had: its references are given up. A packet's subflow is to be told.
    pub fn poll_lost(&mut self, pool: &mut MemoryPool, nic: NicId) -> Option<Lost> {
        if let Some((work, _)) = self.nics.poll_lost(nic) {
            let freed = pool.release(self.config.node, work.reference).ok();
            return Some(Lost::Packet { work, freed });
        }
        let buffer: FabricAddress = self.nics.poll_lost_buffer(nic)?;
        Some(Lost::Receive { buffer, freed: pool.release(self.config.node, buffer).ok() })
    }
}
