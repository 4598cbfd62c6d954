//! The clients' side: windows, retries, and the waiting requests.

use std::collections::VecDeque;

use ethermem_clio::transport::{CongestionWindow, IncastWindow, RoundTrips};
use ethermem_frames::{End, FlowId, Net, Outgoing, Purpose};
use ethermem_units::{Bytes, Ns, Ps};
use ethermem_workload::NodeIndex;

use super::{ClioConfig, Header, Hosts};

/// A request that was sent and has no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    part: u32,
    /// Number of retries.
    attempt: u8,
    sent: Ns,
    due: Ns,
}

/// The state of a client towards one memory node.
struct Peer {
    congestion: CongestionWindow,
    trips: RoundTrips,
    /// Flows with parts that were not sent, in order.
    waiting: VecDeque<FlowId>,
    /// True while the next request waits for room for its answer.
    held: bool,
}

/// The state of a client towards all memory nodes.
struct Host {
    incast: IncastWindow,
    /// Memory nodes whose next request waits for room for its answer, in order.
    held: VecDeque<NodeIndex>,
}

/// The clients: every node.
pub(super) struct Clients {
    rules: ClioConfig,
    window_initial: u32,
    hosts: Vec<Host>,
    /// The peers by client and memory node, created at their first contact.
    peers: Vec<Option<Box<Peer>>>,
}

/// The time on the clock of windows and round trips.
fn ns(at: Ps) -> Ns {
    Ns(at.0 / 1_000)
}

impl Clients {
    pub(super) fn new(
        rules: ClioConfig,
        window_initial: u32,
        incast: Bytes,
        nodes: u16,
    ) -> Clients {
        let nodes = usize::from(nodes);
        let host = |_| Host { incast: IncastWindow::new(incast), held: VecDeque::new() };
        let peers = (0..nodes * nodes).map(|_| None).collect();
        Clients { rules, window_initial, hosts: (0..nodes).map(host).collect(), peers }
    }

    fn peer(&mut self, client: NodeIndex, memory: NodeIndex) -> &mut Peer {
        let at = usize::from(client) * self.hosts.len() + usize::from(memory);
        let (rules, initial) = (&self.rules, self.window_initial);
        self.peers[at].get_or_insert_with(|| {
            Box::new(Peer {
                congestion: CongestionWindow::new(
                    initial,
                    rules.window_max.max(initial),
                    ns(rules.queueing_target),
                ),
                trips: RoundTrips::new(ns(rules.retry_min), ns(rules.retry_max)),
                waiting: VecDeque::new(),
                held: false,
            })
        })
    }

    /// Begins a message.
    pub(super) fn begin(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let flow = net.flow(id);
        let (client, memory, purpose, packets) =
            (flow.source, flow.destination, flow.purpose, flow.packets);
        let parts = match purpose {
            Purpose::Data => packets,
            Purpose::Request { response_bytes } => net.packets(response_bytes),
        };
        net.flow_mut(id).state.reset(parts);
        self.peer(client, memory).waiting.push_back(id);
        self.pump(net, client, memory);
    }

    /// Sends the requests that wait for this memory node, as far as there is room.
    fn pump(&mut self, net: &mut Net<'_, Hosts>, client: NodeIndex, memory: NodeIndex) {
        let now = ns(net.now());
        while let Some(&id) = self.peer(client, memory).waiting.front() {
            let state = &net.flow(id).state;
            let (part, parts) = (state.next, state.parts);
            let answer = answer_bytes(net, id, part);
            let room = self.hosts[usize::from(client)].incast.has_room(answer);
            let peer = self.peer(client, memory);
            if !peer.congestion.has_room(now) {
                if let Some(next) = peer.congestion.next() {
                    look(net, id, next);
                }
                return;
            }
            if !room {
                if !std::mem::replace(&mut peer.held, true) {
                    self.hosts[usize::from(client)].held.push_back(memory);
                }
                return;
            }
            let due = now.saturating_add(peer.trips.retry_after(0));
            peer.congestion.sent(now, peer.trips.smoothed());
            if part + 1 == parts {
                peer.waiting.pop_front();
            }
            self.hosts[usize::from(client)].incast.sent(answer);
            let state = &mut net.flow_mut(id).state;
            state.next += 1;
            state.tries.push(Try { part, attempt: 0, sent: now, due });
            look(net, id, due);
            send(net, id, part, 0);
        }
    }

    /// Retries requests that have waited long enough for their answer.
    pub(super) fn on_timer(&mut self, net: &mut Net<'_, Hosts>, id: FlowId) {
        let now = ns(net.now());
        let flow = net.flow_mut(id);
        let (client, memory) = (flow.source, flow.destination);
        flow.state.look = Ns(u64::MAX);
        let mut tries = std::mem::take(&mut flow.state.tries);
        let peer = self.peer(client, memory);
        for own in tries.iter_mut().filter(|own| own.due <= now) {
            own.attempt = own.attempt.saturating_add(1);
            own.sent = now;
            own.due = now.saturating_add(peer.trips.retry_after(own.attempt.into()));
            peer.congestion.lost(now, peer.trips.smoothed());
            net.count_again(1, 1);
            send(net, id, own.part, own.attempt);
        }
        let next = tries.iter().map(|own| own.due).min();
        net.flow_mut(id).state.tries = tries;
        if let Some(next) = next {
            look(net, id, next);
        }
        self.pump(net, client, memory);
    }

    /// Processes an answer to a part of a message. Returns true if it was the last missing one.
    pub(super) fn on_answer(&mut self, net: &mut Net<'_, Hosts>, id: FlowId, to: Header) -> bool {
        let now = ns(net.now());
        let answer = answer_bytes(net, id, to.part);
        let flow = net.flow_mut(id);
        let (client, memory) = (flow.source, flow.destination);
        let state = &mut flow.state;
        if state.done || !state.answered.insert(to.part) {
            return false;
        }
        let place = state.tries.iter().position(|own| own.part == to.part);
        let own = state.tries.swap_remove(place.expect("a part without an answer is tried"));
        state.done = state.answered.count() == state.parts;
        let done = state.done;
        let peer = self.peer(client, memory);
        if own.attempt == to.attempt {
            let time = now.saturating_sub(own.sent);
            peer.trips.took(time);
            peer.congestion.took(now, time);
        }
        peer.congestion.ended();
        self.hosts[usize::from(client)].incast.ended(answer);
        done
    }

    /// Continues after an arrival at a client, which may have made room.
    pub(super) fn go_on(&mut self, net: &mut Net<'_, Hosts>, client: NodeIndex, memory: NodeIndex) {
        self.pump(net, client, memory);
        for _ in 0..self.hosts[usize::from(client)].held.len() {
            let Some(memory) = self.hosts[usize::from(client)].held.pop_front() else { return };
            self.peer(client, memory).held = false;
            self.pump(net, client, memory);
            if self.peer(client, memory).held {
                return;
            }
        }
    }
}

/// Number of bytes of the answer to a part that the incast window counts: the data.
fn answer_bytes(net: &Net<'_, Hosts>, id: FlowId, part: u32) -> Bytes {
    match net.flow(id).purpose {
        Purpose::Data => Bytes(0),
        Purpose::Request { response_bytes } => Bytes(net.part_bytes(response_bytes, part)),
    }
}

fn send(net: &mut Net<'_, Hosts>, id: FlowId, part: u32, attempt: u8) {
    let data_bytes = match net.flow(id).purpose {
        Purpose::Data => net.data_bytes(id, part),
        Purpose::Request { .. } => 0,
    };
    let header = Header { part, attempt };
    net.send(id, Outgoing { from: End::Source, data_bytes, rank: 0, header });
}

/// Requests a check of a flow at `at` at the latest.
fn look(net: &mut Net<'_, Hosts>, id: FlowId, at: Ns) {
    let state = &mut net.flow_mut(id).state;
    if at < state.look {
        state.look = at;
        net.arm(id, Ps(at.0.saturating_mul(1_000)));
    }
}
