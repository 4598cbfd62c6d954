//! One node on one or two switches (section 3.3, fault tolerance).
//!
//! A [`MirroredHost`] has a [`Host`] for each of its interfaces. Every request goes out on both.
//! Each switch schedules its own copy, and a grant is answered on the interface that it came by.
//! The memory node acts on the first copy of a message, and answers all later copies alike. The
//! compute node takes the first response that is whole. So the switches need not agree on anything:
//! the memory node alone orders what acts on its memory. `docs/internals/edm-faults.md` says why
//! the mirroring of the paper needs this, and shows that it suffices.
//!
//! Like the hosts inside, it moves no bytes, reads no clock, and allocates nothing after
//! construction.

mod compute;
mod copies;
mod ledger;
mod memory;
mod pending;
mod streams;

use std::collections::VecDeque;

use ethermem_units::Ps;

use crate::config::EdmConfig;
use crate::host::{Counters, Host, HostConfig};
use crate::message::{MessageId, NodeId, Outbound};

use copies::Copies;
use ledger::Ledger;
use pending::{Ids, Queue, Requests};
use streams::PeerStreams;
pub use streams::Streams;

/// One of a node's links, numbered by the switch that it leads to: 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface(pub u8);

/// The parameters of a mirrored host.
#[derive(Clone, Copy, Debug)]
pub struct MirroredConfig<'a> {
    /// The node of this host.
    pub node: NodeId,
    /// Number of nodes of the network, this one included.
    pub nodes: u16,
    /// Parameters of the network. `batching` is ignored: a member of a batch has no id that both
    /// switches' copies would share.
    pub edm: &'a EdmConfig,
    /// Maximum requests between their submission and the end of their last copy.
    pub messages_max: usize,
    /// Number of switches: 1 or 2.
    pub interfaces: u8,
    /// Number of this start of the node, modulo 4. A node that has lost its state must not use the
    /// number of its previous start. It must have been silent for longer than a message travels.
    pub start: u8,
}

/// An output of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A message.
    Message(Outbound),
    /// Tells the switch that the oldest unanswered grant of this interface stays unused.
    Unused {
        /// The node that the data would have gone to.
        peer: NodeId,
        /// The message that the grant was for.
        id: MessageId,
    },
    /// Tells the switch that this interface dropped what it had with `peer`, as the switch said. No
    /// older message follows.
    Heard {
        /// The node that the switch cannot reach any more.
        peer: NodeId,
    },
    /// Tells a node which of this node's streams are its newest.
    Streams {
        /// The destination.
        peer: NodeId,
        /// The numbers of the streams.
        streams: Streams,
    },
}

/// Copies that had no effect, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedundancyCounters {
    /// Requests that were already served when they came by the other interface.
    pub requests_again: u64,
    /// Chunks of writes that were already stored.
    pub chunks_again: u64,
    /// Chunks of responses to requests that had ended.
    pub responses_again: u64,
    /// Copies of messages whose row belongs to a later message.
    pub stale: u64,
    /// Requests and chunks of streams that their sender had abandoned.
    pub given_up: u64,
    /// Grants that were answered without data.
    pub grants_unused: u64,
}

/// The host stack of one node with one or two interfaces, which the module's documentation
/// describes.
#[derive(Debug)]
pub struct MirroredHost {
    node: NodeId,
    read_timeout: Ps,
    sides: Vec<Side>,
    requests: Requests,
    queues: Vec<Queue>,
    /// Number of requests to each peer that have copies in flight.
    under_way: Vec<u32>,
    ids: Ids,
    copies: Copies,
    /// The streams of this node to each peer.
    streams: Vec<Streams>,
    peer_streams: PeerStreams,
    counters: RedundancyCounters,
}

/// The state of one interface.
#[derive(Debug)]
struct Side {
    host: Host,
    ledger: Ledger,
    /// A chunk whose predecessors in the ledger must be answered first.
    staged: Option<Outbound>,
    link_down: bool,
    /// Peers that the switch has parted from this node, as far as this was not answered.
    heard: VecDeque<NodeId>,
    /// Peers that must be told which streams are the newest.
    telling: VecDeque<NodeId>,
    /// True for peers that are reached again, but to which older requests have no copy here.
    joining: Vec<bool>,
}

impl Side {
    /// True if a request to `peer` gets a copy here; older requests may be in flight.
    ///
    /// A copy here must not overtake an older request that goes by the other interface alone.
    fn takes(&mut self, peer: NodeId, others_under_way: bool) -> bool {
        let joining = &mut self.joining[usize::from(peer.number())];
        *joining &= others_under_way;
        !*joining && self.host.is_reachable(peer)
    }

    /// Marks a peer, once, to be told of this node's streams.
    fn tell(&mut self, peer: NodeId) {
        if self.host.is_reachable(peer) && !self.telling.contains(&peer) {
            self.telling.push_back(peer);
        }
    }
}

/// Maximum number of grants that a switch may have open towards one port.
const GRANTS_MAX: usize = 1024;

impl MirroredHost {
    /// A node without requests. All memory that it will use is reserved here.
    ///
    /// # Panics
    /// If the configuration is out of the ranges that [`EdmConfig`] and [`MirroredConfig`] state.
    #[must_use]
    pub fn new(config: MirroredConfig<'_>) -> MirroredHost {
        let MirroredConfig { node, nodes, edm, messages_max, interfaces, start } = config;
        assert!((1..=2).contains(&interfaces), "{interfaces} interfaces");
        let edm = EdmConfig { batching: false, ..edm.clone() };
        // An id in quarantine holds an entry of its interface's host although its request has
        // ended.
        let rows = usize::from(nodes) * (MessageId::ROWS + usize::from(edm.notifications_max));
        let host = HostConfig { node, nodes, edm: &edm, messages_max: messages_max + rows };
        let side = || Side {
            host: Host::new(host),
            ledger: Ledger::new(GRANTS_MAX),
            staged: None,
            link_down: false,
            heard: VecDeque::with_capacity(usize::from(nodes)),
            telling: VecDeque::with_capacity(usize::from(nodes)),
            joining: vec![false; usize::from(nodes)],
        };
        MirroredHost {
            node,
            read_timeout: edm.read_timeout,
            sides: (0..interfaces).map(|_| side()).collect(),
            requests: Requests::new(messages_max),
            queues: vec![Queue::EMPTY; usize::from(nodes)],
            under_way: vec![0; usize::from(nodes)],
            ids: Ids::new(nodes, edm.notifications_max),
            copies: Copies::new(nodes),
            streams: vec![Streams::of_start(start); usize::from(nodes)],
            peer_streams: PeerStreams::new(nodes),
            counters: RedundancyCounters::default(),
        }
    }

    /// The number of this node.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// Inputs that the host of an interface dropped, by cause.
    #[must_use]
    pub fn host_counters(&self, interface: Interface) -> &Counters {
        self.sides[usize::from(interface.0)].host.counters()
    }

    /// Copies that had no effect, by cause.
    #[must_use]
    pub const fn counters(&self) -> &RedundancyCounters {
        &self.counters
    }

    fn side(&mut self, interface: Interface) -> &mut Side {
        &mut self.sides[usize::from(interface.0)]
    }

    /// Declares that the link of an interface is disabled, or that the switch behind it is gone. A
    /// request without another way ends with an error; all others go on by the other interface.
    pub fn fail_interface(&mut self, now: Ps, interface: Interface) {
        for peer in (0..self.queues.len() as u16).map(NodeId::at) {
            self.begin_stream(interface, peer);
        }
        let side = self.side(interface);
        side.host.fail_link(now);
        side.ledger.clear();
        side.staged = None;
        side.heard.clear();
        side.telling.clear();
        side.link_down = true;
        self.settle(now, interface);
        for peer in (0..self.queues.len() as u16).map(NodeId::at) {
            self.pump(now, peer);
        }
    }

    /// Declares that the link of an interface restarted, so nothing that either end sent before is
    /// on it. It reaches no peer until [`MirroredHost::restore_peer`].
    pub fn restore_interface(&mut self, interface: Interface) {
        let side = self.side(interface);
        if std::mem::take(&mut side.link_down) {
            side.host.restore_link_alone();
        }
    }

    /// True if an interface is in use. It may have failed without a call of
    /// [`MirroredHost::fail_interface`]: a copy stayed unanswered though the other was answered, or
    /// more grants came than a switch issues. Its link must then be disabled.
    #[must_use]
    pub fn is_up(&self, interface: Interface) -> bool {
        !self.sides[usize::from(interface.0)].link_down
    }

    /// Processes a notice of an interface's switch that it cannot reach `peer` any more. The notice
    /// is answered; only then does the switch join the peer again.
    pub fn fail_peer(&mut self, now: Ps, interface: Interface, peer: NodeId) {
        if usize::from(peer.number()) >= self.queues.len() || peer == self.node {
            return;
        }
        let side = self.side(interface);
        if !side.link_down && !side.heard.contains(&peer) {
            side.heard.push_back(peer);
        }
        self.begin_stream(interface, peer);
        self.side(interface).host.fail_peer(now, peer);
        self.settle(now, interface);
        self.pump(now, peer);
    }

    /// Processes a notice that the switch of an interface reaches `peer` again.
    pub fn restore_peer(&mut self, interface: Interface, peer: NodeId) {
        let side = self.side(interface);
        if let Some(joining) = side.joining.get_mut(usize::from(peer.number())) {
            *joining |= !side.host.is_reachable(peer);
            side.host.restore_peer(peer);
            side.tell(peer);
        }
    }

    /// Begins a stream, because an interface lost a peer. What the interface has sent must not act
    /// once the peer learns of the loss. The other interface announces the loss, ahead of
    /// everything that this node sends from now on.
    fn begin_stream(&mut self, interface: Interface, peer: NodeId) {
        let lost = usize::from(interface.0);
        if peer == self.node || !self.sides[lost].host.is_reachable(peer) {
            return;
        }
        let streams = &mut self.streams[usize::from(peer.number())];
        streams.begin(lost);
        match self.sides.get_mut(1 - lost) {
            Some(other) => other.tell(peer),
            // With one interface, all of its streams have ended.
            None => streams.begin(1 - lost),
        }
    }

    /// Records which of a peer's streams are the newest, as the peer said.
    pub fn on_streams(&mut self, interface: Interface, peer: NodeId, streams: Streams) {
        self.peer_streams.hear(peer, usize::from(interface.0), streams);
    }

    /// True if a request or a chunk to write that came by an interface may act.
    fn acts(&mut self, interface: Interface, peer: NodeId) -> bool {
        let acts = self.peer_streams.is_newest(peer, usize::from(interface.0));
        self.counters.given_up += u64::from(!acts);
        acts
    }

    fn is_reachable(&self, peer: NodeId) -> bool {
        self.sides.iter().any(|side| side.host.is_reachable(peer))
    }
}
