//! Flows: one direction of one message, from its first packet to the last packet that names it.

use ethermem_engine::engine::Handle;
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

/// The index of a flow; valid while a packet, a timer or one of its ends holds it.
pub type FlowId = u32;

/// The index that stands for no flow.
pub(crate) const NO_FLOW: FlowId = FlowId::MAX;

/// The purpose of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It carries the message's data.
    Data,
    /// It requests this many bytes of data from the destination.
    Request {
        /// Bytes of the response.
        response_bytes: u64,
    },
}

/// A flow as the network knows it; only its transport knows `state`.
#[derive(Debug)]
pub struct Flow<S> {
    /// The sender.
    pub source: NodeIndex,
    /// The receiver.
    pub destination: NodeIndex,
    /// The purpose of the flow.
    pub purpose: Purpose,
    /// Number of data bytes to move; 0 for a request.
    pub bytes: u64,
    /// Number of packets that carry the data, at least one.
    pub packets: u32,
    /// The transport's state of both ends. It holds the previous flow's state until the transport
    /// resets it.
    pub state: S,
    pub(crate) handle: Handle,
    /// The request that this flow answers, until the answer has arrived.
    pub request: FlowId,
    pub(crate) spine: u8,
    /// The time at which the transport must be woken; `Ps::MAX` for never.
    pub(crate) deadline: Ps,
    /// The time at which a timer will check `deadline`; `Ps::MAX` for none. Checks for later times
    /// are void.
    pub(crate) look: Ps,
    /// Number of flows that had this id before.
    pub generation: u32,
    /// Number of packets, timers and ends that still name this flow.
    references: u32,
    received: bool,
    settled: bool,
    lost: bool,
    /// True if the flow is of a pair of nodes, and outlives every message.
    standing: bool,
}

impl<S> Flow<S> {
    /// True if a packet of it was dropped that nothing repairs: the flow has no end any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// True if the flow carries packets of many messages, and lasts as long as the network.
    #[inline]
    #[must_use]
    pub fn is_standing(&self) -> bool {
        self.standing
    }

    /// True if it answers a request and nothing of it has arrived yet.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.request != NO_FLOW
    }
}

/// All flows of a network. Entries are reused, with the memory of their state.
#[derive(Debug)]
pub(crate) struct Flows<S> {
    slots: Vec<Flow<S>>,
    free: Vec<FlowId>,
    /// Number of standing flows, which are never released.
    standing: usize,
}

/// The parameters of a new flow.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    pub source: NodeIndex,
    pub destination: NodeIndex,
    pub purpose: Purpose,
    pub bytes: u64,
    pub packets: u32,
    pub(crate) handle: Handle,
    pub(crate) request: FlowId,
    pub(crate) spine: u8,
}

impl<S: Default> Flows<S> {
    pub(crate) fn new() -> Flows<S> {
        Flows { slots: Vec::new(), free: Vec::new(), standing: 0 }
    }

    /// Opens a flow, which both of its ends hold.
    pub(crate) fn open(&mut self, opening: Opening) -> FlowId {
        let (id, state, generation) = match self.free.pop() {
            Some(id) => {
                let old = &mut self.slots[id as usize];
                (id, std::mem::take(&mut old.state), old.generation)
            }
            None => (self.slots.len() as FlowId, S::default(), 0),
        };
        let flow = Flow {
            source: opening.source,
            destination: opening.destination,
            purpose: opening.purpose,
            bytes: opening.bytes,
            packets: opening.packets,
            state,
            handle: opening.handle,
            request: opening.request,
            spine: opening.spine,
            deadline: Ps::MAX,
            look: Ps::MAX,
            generation,
            references: 2,
            received: false,
            settled: false,
            lost: false,
            standing: false,
        };
        match self.slots.get_mut(id as usize) {
            Some(slot) => *slot = flow,
            None => self.slots.push(flow),
        }
        id
    }

    /// Opens a flow of no message, which is never released.
    pub(crate) fn open_standing(&mut self, opening: Opening) -> FlowId {
        let id = self.open(opening);
        self[id].standing = true;
        self.standing += 1;
        id
    }

    /// Records that the receiver has the whole flow.
    pub(crate) fn receive(&mut self, id: FlowId) {
        let again = std::mem::replace(&mut self[id].received, true);
        assert!(!again, "flow {id} delivered twice");
        self.release(id);
    }

    /// Records that the sender has nothing more to send and waits for nothing.
    pub(crate) fn settle(&mut self, id: FlowId) {
        let flow = &mut self[id];
        let again = std::mem::replace(&mut flow.settled, true);
        assert!(!again, "flow {id} settled twice");
        flow.deadline = Ps::MAX;
        self.release(id);
    }

    /// Records that the flow will never be delivered, and that the ends which still hold it give it
    /// up.
    pub(crate) fn lose(&mut self, id: FlowId) {
        let flow = &mut self[id];
        flow.lost = true;
        if !flow.settled {
            self.settle(id);
        }
        self.receive(id);
    }

    #[inline]
    pub(crate) fn hold(&mut self, id: FlowId) {
        self[id].references += 1;
    }

    #[inline]
    pub(crate) fn release(&mut self, id: FlowId) {
        let flow = &mut self[id];
        flow.references -= 1;
        if flow.references == 0 {
            // Timer entries that still name this place see another generation.
            flow.generation = flow.generation.wrapping_add(1);
            self.free.push(id);
        }
    }

    /// Number of flows of messages that are still held.
    pub(crate) fn open_count(&self) -> usize {
        self.slots.len() - self.free.len() - self.standing
    }
}

impl<S> std::ops::Index<FlowId> for Flows<S> {
    type Output = Flow<S>;

    #[inline]
    fn index(&self, id: FlowId) -> &Flow<S> {
        &self.slots[id as usize]
    }
}

impl<S> std::ops::IndexMut<FlowId> for Flows<S> {
    #[inline]
    fn index_mut(&mut self, id: FlowId) -> &mut Flow<S> {
        &mut self.slots[id as usize]
    }
}
