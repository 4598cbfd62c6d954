//! One node on one or two switches (section 3.3, fault tolerance).
//!
//! A [`MirroredHost`] has a [`Host`] for each of its interfaces. Every request goes out on both,
//! each switch schedules its own copy, and a grant is answered on the interface that it came by.
//! What the memory node does, it does for the first copy of a message, and answers all later ones
//! alike; what the compute node takes, it takes from the first copy that is whole. So no switch has
//! to agree with the other on anything: the memory node alone orders what acts on its memory.
//! `docs/internals/edm-faults.md` says why the mirroring of the paper needs this, and shows that it
//! is enough.
//!
//! Like the hosts inside, it moves no bytes and reads no clock, and allocates nothing once built.

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

/// One of a node's links, by the switch it leads to: 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface(pub u8);

/// What a mirrored host is built from.
#[derive(Clone, Copy, Debug)]
pub struct MirroredConfig<'a> {
    /// This node.
    pub node: NodeId,
    /// Nodes of the network, this one included.
    pub nodes: u16,
    /// Parameters of the network. Small writes do not share notifications here, whatever it says:
    /// a member of a batch has no name that both switches' copies would have in common.
    pub edm: &'a EdmConfig,
    /// Most requests between their submission and the end of their last copy.
    pub messages_max: usize,
    /// Switches: 1 or 2.
    pub interfaces: u8,
    /// Which start of the node this is, modulo 4. One that has lost its state must not say the
    /// number of the start before, and must have been silent for longer than a message travels.
    pub start: u8,
}

/// What leaves by an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A message.
    Message(Outbound),
    /// To the switch: the oldest grant that this interface has not answered stays unused.
    Unused {
        /// Where its data would have gone.
        peer: NodeId,
        /// The message it was for.
        id: MessageId,
    },
    /// To the switch: what this interface had with `peer` is given up, as the switch said. Nothing
    /// older follows.
    Heard {
        /// The node that the switch does not reach any more.
        peer: NodeId,
    },
    /// To a node: which of this node's streams are its newest.
    Streams {
        /// The node to tell.
        peer: NodeId,
        /// Their numbers.
        streams: Streams,
    },
}

/// Copies that had no effect, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedundancyCounters {
    /// Requests that had been served when they came by the other interface.
    pub requests_again: u64,
    /// Chunks of writes that had been stored.
    pub chunks_again: u64,
    /// Chunks of responses to requests that had ended.
    pub responses_again: u64,
    /// Copies of messages whose row had gone to a later one.
    pub stale: u64,
    /// Requests and chunks of streams that their sender had given up.
    pub given_up: u64,
    /// Grants that were answered with nothing.
    pub grants_unused: u64,
}

/// The host stack of one node with one or two interfaces; see the module's description.
#[derive(Debug)]
pub struct MirroredHost {
    node: NodeId,
    read_timeout: Ps,
    sides: Vec<Side>,
    requests: Requests,
    queues: Vec<Queue>,
    /// Requests to each peer that have copies under way.
    under_way: Vec<u32>,
    ids: Ids,
    copies: Copies,
    /// This node's own, to each peer.
    streams: Vec<Streams>,
    peer_streams: PeerStreams,
    counters: RedundancyCounters,
}

/// One interface.
#[derive(Debug)]
struct Side {
    host: Host,
    ledger: Ledger,
    /// A chunk that grants before it have yet to be accounted for.
    staged: Option<Outbound>,
    link_down: bool,
    /// Peers that the switch has parted from this node, in as far as it was not answered.
    heard: VecDeque<NodeId>,
    /// Peers to be told which streams are the newest.
    telling: VecDeque<NodeId>,
    /// Peers that are reached again, but to which older requests have no copy here.
    joining: Vec<bool>,
}

impl Side {
    /// Whether a request to `peer` gets a copy here, older ones being under way or not.
    ///
    /// A copy here must not overtake an older request that goes by the other interface alone.
    fn takes(&mut self, peer: NodeId, others_under_way: bool) -> bool {
        let joining = &mut self.joining[usize::from(peer.number())];
        *joining &= others_under_way;
        !*joining && self.host.is_reachable(peer)
    }

    /// Has a peer told of this node's streams, once.
    fn tell(&mut self, peer: NodeId) {
        if self.host.is_reachable(peer) && !self.telling.contains(&peer) {
            self.telling.push_back(peer);
        }
    }
}

/// Grants that a switch may have open towards one port.
const GRANTS_MAX: usize = 1024;

impl MirroredHost {
    /// A node with nothing under way. All memory it will ever use is reserved here.
    ///
    /// # Panics
    /// If the configuration is out of the ranges that [`EdmConfig`] and [`MirroredConfig`] state.
    #[must_use]
    pub fn new(config: MirroredConfig<'_>) -> MirroredHost {
        let MirroredConfig { node, nodes, edm, messages_max, interfaces, start } = config;
        assert!((1..=2).contains(&interfaces), "{interfaces} interfaces");
        let edm = EdmConfig { batching: false, ..edm.clone() };
        // An id in quarantine holds an entry of a host that has none here any more.
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

    /// This node.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// What the host of an interface dropped, by cause.
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

    /// The link of an interface is disabled, or the switch behind it is gone. What has no other
    /// way ends with an error; everything else goes on by the other interface.
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

    /// The link of an interface has started anew: nothing that either end sent before is on it. No
    /// peer is reached by it until [`MirroredHost::restore_peer`] says so.
    pub fn restore_interface(&mut self, interface: Interface) {
        let side = self.side(interface);
        if std::mem::take(&mut side.link_down) {
            side.host.restore_link_alone();
        }
    }

    /// Whether an interface is in use. It may have failed without a call of
    /// [`MirroredHost::fail_interface`]: a copy was never answered though the other was, or more
    /// grants came than a switch gives. Its link is then to be disabled.
    #[must_use]
    pub fn is_up(&self, interface: Interface) -> bool {
        !self.sides[usize::from(interface.0)].link_down
    }

    /// The switch of an interface says that it does not reach `peer` any more. It is answered, and
    /// reaches the peer again only after that.
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

    /// The switch of an interface reaches `peer` again.
    pub fn restore_peer(&mut self, interface: Interface, peer: NodeId) {
        let side = self.side(interface);
        if let Some(joining) = side.joining.get_mut(usize::from(peer.number())) {
            *joining |= !side.host.is_reachable(peer);
            side.host.restore_peer(peer);
            side.tell(peer);
        }
    }

    /// An interface loses a peer: what it has sent must not act any more once the peer hears of it
    /// by the other, ahead of all that this sends from now on.
    fn begin_stream(&mut self, interface: Interface, peer: NodeId) {
        let lost = usize::from(interface.0);
        if peer == self.node || !self.sides[lost].host.is_reachable(peer) {
            return;
        }
        let streams = &mut self.streams[usize::from(peer.number())];
        streams.begin(lost);
        match self.sides.get_mut(1 - lost) {
            Some(other) => other.tell(peer),
            // With one interface all its streams have ended.
            None => streams.begin(1 - lost),
        }
    }

    /// A peer said which of its streams are the newest.
    pub fn on_streams(&mut self, interface: Interface, peer: NodeId, streams: Streams) {
        self.peer_streams.hear(peer, usize::from(interface.0), streams);
    }

    /// Whether a request or a chunk to write that came by an interface may act.
    fn acts(&mut self, interface: Interface, peer: NodeId) -> bool {
        let acts = self.peer_streams.is_newest(peer, usize::from(interface.0));
        self.counters.given_up += u64::from(!acts);
        acts
    }

    fn is_reachable(&self, peer: NodeId) -> bool {
        self.sides.iter().any(|side| side.host.is_reachable(peer))
    }
}
