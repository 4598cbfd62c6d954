//! Flows: one direction of one message, from its first packet to the last that names it.

use ethermem_engine::engine::Handle;
use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

/// A flow's place; valid while a packet, a timer or one of its ends holds it.
pub type FlowId = u32;

/// No flow.
pub(crate) const NO_FLOW: FlowId = FlowId::MAX;

/// What a flow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The message's data.
    Data,
    /// Asks the destination for this many bytes of data.
    Request {
        /// Bytes of the response.
        response_bytes: u64,
    },
}

/// A flow as the network knows it, and `state`, which only its transport does.
#[derive(Debug)]
pub struct Flow<S> {
    /// Who sends it.
    pub source: NodeIndex,
    /// Who receives it.
    pub destination: NodeIndex,
    /// What it is for.
    pub purpose: Purpose,
    /// Data bytes to move; 0 for a request.
    pub bytes: u64,
    /// Packets that carry them, at least one.
    pub packets: u32,
    /// The transport's own, both ends; what the flow before left, until the transport resets it.
    pub state: S,
    pub(crate) handle: Handle,
    /// The request that this one answers, until it has.
    pub request: FlowId,
    pub(crate) spine: u8,
    /// When the transport is to be woken; `Ps::MAX` for never.
    pub(crate) deadline: Ps,
    /// When a timer will look at `deadline`; `Ps::MAX` for none. Looks for later are void.
    pub(crate) look: Ps,
    /// How many flows had this id before.
    pub generation: u32,
    /// Packets, timers and ends that will still name this flow.
    references: u32,
    received: bool,
    settled: bool,
    lost: bool,
}

impl<S> Flow<S> {
    /// Whether a packet of it was dropped that nothing repairs: it has neither end any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether it answers a request, of which nothing has come yet.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.request != NO_FLOW
    }
}

/// All flows of a network; places are used again, with the memory of their state.
#[derive(Debug)]
pub(crate) struct Flows<S> {
    slots: Vec<Flow<S>>,
    free: Vec<FlowId>,
}

/// What a new flow is.
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
        Flows { slots: Vec::new(), free: Vec::new() }
    }

    /// Both of its ends hold it.
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
        };
        match self.slots.get_mut(id as usize) {
            Some(slot) => *slot = flow,
            None => self.slots.push(flow),
        }
        id
    }

    /// The receiver has all of it.
    pub(crate) fn receive(&mut self, id: FlowId) {
        let again = std::mem::replace(&mut self[id].received, true);
        assert!(!again, "flow {id} delivered twice");
        self.release(id);
    }

    /// The sender has nothing more to send, and waits for nothing.
    pub(crate) fn settle(&mut self, id: FlowId) {
        let flow = &mut self[id];
        let again = std::mem::replace(&mut flow.settled, true);
        assert!(!again, "flow {id} settled twice");
        flow.deadline = Ps::MAX;
        self.release(id);
    }

    /// It will never be delivered, and both ends give up what they have not.
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
            // Entries of the timers that still name this place see another generation.
            flow.generation = flow.generation.wrapping_add(1);
            self.free.push(id);
        }
    }

    /// Flows that something still holds.
    pub(crate) fn open_count(&self) -> usize {
        self.slots.len() - self.free.len()
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
