//! The queue of a host's interface: control packets, then retransmissions, then new data, as in the
//! authors' simulators. In the later one the flows of a host take turns.

use std::collections::{HashMap, VecDeque};

use ethermem_frames::{Discipline, FlowId, PacketId, Packets};

use super::Header;

/// The rank of headers, requests and answers, which leave a host first.
pub(super) const CONTROL: u32 = 0;
/// The rank of data that was sent before.
pub(super) const AGAIN: u32 = 1;
/// The rank of other data.
pub(super) const NEW: u32 = 2;

/// The order in which data packets of one rank leave a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostQueue {
    /// Flows take turns, a packet each.
    Turns,
    /// The order of arrival.
    Arrival,
}

/// The queue of a host's interface, which the host's memory backs.
#[derive(Debug)]
pub struct Interface {
    control: VecDeque<PacketId>,
    again: Waiting,
    new: Waiting,
}

impl Interface {
    /// The empty queue.
    #[must_use]
    pub fn new(order: HostQueue) -> Interface {
        let control = VecDeque::new();
        Interface { control, again: Waiting::new(order), new: Waiting::new(order) }
    }
}

impl Discipline<Header> for Interface {
    fn offer(
        &mut self,
        packets: &mut Packets<Header>,
        id: PacketId,
        _queued_bytes: u64,
        _dropped: &mut Vec<PacketId>,
    ) -> bool {
        let packet = &packets[id];
        match packet.rank {
            CONTROL => self.control.push_back(id),
            AGAIN => self.again.push(packet.flow, id),
            _ => self.new.push(packet.flow, id),
        }
        true
    }

    /// Data changes whose turn is next.
    #[inline]
    fn passes(&self, packets: &Packets<Header>, id: PacketId) -> bool {
        packets[id].rank == CONTROL
    }

    fn take(&mut self, _packets: &Packets<Header>) -> Option<PacketId> {
        let urgent = self.control.pop_front().or_else(|| self.again.pop());
        urgent.or_else(|| self.new.pop())
    }
}

/// The waiting data packets of one rank.
#[derive(Debug)]
enum Waiting {
    Turns(Turns),
    Arrival(VecDeque<PacketId>),
}

impl Waiting {
    fn new(order: HostQueue) -> Waiting {
        match order {
            HostQueue::Turns => Waiting::Turns(Turns::default()),
            HostQueue::Arrival => Waiting::Arrival(VecDeque::new()),
        }
    }

    fn push(&mut self, flow: FlowId, id: PacketId) {
        match self {
            Waiting::Turns(turns) => turns.push(flow, id),
            Waiting::Arrival(packets) => packets.push_back(id),
        }
    }

    fn pop(&mut self) -> Option<PacketId> {
        match self {
            Waiting::Turns(turns) => turns.pop(),
            Waiting::Arrival(packets) => packets.pop_front(),
        }
    }
}

/// Flows that take turns. Each operation takes constant time, however many flows wait.
#[derive(Debug, Default)]
struct Turns {
    /// The packets of every flow that waits or has its turn, in the order of arrival.
    // tidy: order not observed
    flows: HashMap<FlowId, VecDeque<PacketId>>,
    /// The flows that wait, the next one first.
    order: VecDeque<FlowId>,
    /// The flow that had the last turn. It waits again when the next turn is given, behind flows
    /// that came meanwhile.
    sending: Option<FlowId>,
    /// Reused to avoid reallocation.
    spare: Vec<VecDeque<PacketId>>,
}

impl Turns {
    /// Adds a packet behind the others of its flow.
    #[inline]
    fn push(&mut self, flow: FlowId, id: PacketId) {
        let packets = self.flows.entry(flow).or_insert_with(|| {
            self.order.push_back(flow);
            self.spare.pop().unwrap_or_default()
        });
        packets.push_back(id);
    }

    /// Takes the next packet of the flow whose turn it is.
    #[inline]
    fn pop(&mut self) -> Option<PacketId> {
        if let Some(flow) = self.sending.take() {
            self.wait_again(flow);
        }
        let flow = self.order.pop_front()?;
        self.sending = Some(flow);
        self.flows.get_mut(&flow)?.pop_front()
    }

    /// Puts a flow behind all others, or forgets it if none of its packets waits.
    fn wait_again(&mut self, flow: FlowId) {
        if self.flows.get(&flow).is_some_and(|packets| !packets.is_empty()) {
            self.order.push_back(flow);
        } else {
            self.spare.extend(self.flows.remove(&flow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethermem_frames::{Frame, Packet};

    #[test]
    fn control_leaves_first_then_retransmissions_and_new_data_each_in_its_order() {
        for (order, again, new) in [
            (HostQueue::Turns, [3, 5, 4, 6], [0, 7, 1, 2]),
            (HostQueue::Arrival, [3, 4, 5, 6], [0, 1, 2, 7]),
        ] {
            let (mut packets, mut queue) = (Packets::default(), Interface::new(order));
            let mut offer = |flow, rank, header| {
                let packet = Packet::sample_with(flow, rank, Frame::of(1_500), header);
                let id = packets.insert(packet);
                assert!(queue.offer(&mut packets, id, u64::MAX, &mut Vec::new()));
                assert_eq!(queue.passes(&packets, id), rank == CONTROL);
                id
            };
            let data = [(1, NEW), (1, NEW), (1, NEW), (1, AGAIN), (1, AGAIN), (2, AGAIN)]
                .into_iter()
                .chain([(2, AGAIN), (2, NEW)]);
            let data: Vec<_> = data
                .zip(0..)
                .map(|((flow, rank), at)| offer(flow, rank, Header::Data(at)))
                .collect();
            // A NACK, an acknowledgement, more pulls than a switch sends at once, a request.
            let answers = [Header::Missing(3, None), Header::Acknowledgement(4, None)];
            let control = answers.into_iter().chain([0; 20].map(|_| Header::Pull(1)));
            let control: Vec<_> =
                control.chain([Header::Data(0)]).map(|header| offer(3, CONTROL, header)).collect();
            let left: Vec<_> = std::iter::from_fn(|| queue.take(&packets)).collect();
            let data = again.into_iter().chain(new).map(|place| data[place]);
            assert_eq!(left, control.into_iter().chain(data).collect::<Vec<_>>(), "{order:?}");
        }
    }

    fn push(turns: &mut Turns, flow: FlowId, ids: impl IntoIterator<Item = PacketId>) {
        ids.into_iter().for_each(|id| turns.push(flow, id));
    }

    fn pop(turns: &mut Turns, count: usize) -> Vec<PacketId> {
        (0..count).map_while(|_| turns.pop()).collect()
    }

    #[test]
    fn flows_take_turns_and_each_keeps_its_order() {
        let mut turns = Turns::default();
        push(&mut turns, 7, 70..74);
        push(&mut turns, 3, 30..32);
        push(&mut turns, 5, [50]);
        assert_eq!(pop(&mut turns, 9), [70, 30, 50, 71, 31, 72, 73]);
        assert_eq!(turns.pop(), None);
    }

    #[test]
    fn a_short_flow_waits_for_a_packet_of_every_other_and_not_for_their_windows() {
        let mut turns = Turns::default();
        for flow in 0..10 {
            push(&mut turns, flow, flow * 100..flow * 100 + 26);
        }
        assert_eq!(pop(&mut turns, 10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|flow| flow * 100));
        // The packet of flow 9 is on the link: the new flow comes before its next packet.
        push(&mut turns, 10, [1_000]);
        let next: Vec<_> = (0..9).map(|flow| flow * 100 + 1).chain([1_000, 901]).collect();
        assert_eq!(pop(&mut turns, 11), next);
    }

    #[test]
    fn a_flow_whose_packet_is_on_the_link_does_not_have_the_next_turn_too() {
        let mut turns = Turns::default();
        push(&mut turns, 1, [10]);
        push(&mut turns, 2, [20, 21]);
        assert_eq!(pop(&mut turns, 1), [10]);
        // A pull released another packet of flow 1.
        push(&mut turns, 1, [11]);
        assert_eq!(pop(&mut turns, 9), [20, 11, 21]);
        // Alone, a flow has every turn.
        push(&mut turns, 2, [22, 23]);
        assert_eq!(pop(&mut turns, 9), [22, 23]);
    }

    #[test]
    fn flows_that_left_are_forgotten() {
        let mut turns = Turns::default();
        for flow in 0..10_000 {
            push(&mut turns, flow, [flow, flow]);
        }
        assert_eq!(pop(&mut turns, 10_000).len(), 10_000);
        assert_eq!(turns.flows.len(), 10_000);
        assert_eq!(pop(&mut turns, 10_000).len(), 10_000);
        // Only the flow of the last packet is still known.
        assert!(turns.flows.len() == 1 && turns.order.is_empty(), "{}", turns.flows.len());
        assert_eq!(turns.pop(), None);
        assert!(turns.flows.is_empty() && turns.sending.is_none());
        // Their memory serves the next ones.
        let spare = turns.spare.len();
        push(&mut turns, 5, [5]);
        assert_eq!((spare, turns.spare.len()), (10_000, 9_999));
    }
}
