//! Ports that one message has for itself: what it does there depends on nothing else.

use ethermem_units::Ps;
use ethermem_workload::NodeIndex;

use super::link::{Line, LineRun};
use super::{Cxl, Event};

/// What a message does to the lines of two quiet ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairRun {
    up: LineRun,
    down: LineRun,
    lines: u64,
}

/// The state of two ports before a message.
pub(crate) struct PairBefore {
    up: Line,
    down: Line,
    lines: u64,
}

impl Cxl {
    /// True if no message is at the first node's transmitter, or at the switch's to the second.
    pub(crate) fn is_quiet(&self, from: NodeIndex, to: NodeIndex, now: Ps) -> bool {
        let (up, down) = (&self.ingress[usize::from(from)], &self.egress[usize::from(to)]);
        up.is_quiet(now) && down.is_quiet(now)
    }

    /// The state of two quiet ports, for [`Cxl::pair_run`].
    pub(crate) fn pair_before(&self, from: NodeIndex, to: NodeIndex) -> PairBefore {
        PairBefore {
            up: self.ingress[usize::from(from)].line.clone(),
            down: self.egress[usize::from(to)].line.clone(),
            lines: self.lines_delivered,
        }
    }

    /// What the only message since then has done, relative to its begin.
    pub(crate) fn pair_run(
        &self,
        (from, to): (NodeIndex, NodeIndex),
        before: &PairBefore,
        begin: Ps,
    ) -> PairRun {
        PairRun {
            up: self.ingress[usize::from(from)].line.since(&before.up, begin),
            down: self.egress[usize::from(to)].line.since(&before.down, begin),
            lines: self.lines_delivered - before.lines,
        }
    }

    /// A message that began at `begin` has done this to two quiet ports.
    pub(crate) fn add_pair_run(
        &mut self,
        (from, to): (NodeIndex, NodeIndex),
        run: &PairRun,
        begin: Ps,
    ) {
        self.ingress[usize::from(from)].line.add(&run.up, begin);
        self.egress[usize::from(to)].line.add(&run.down, begin);
        self.lines_asked += run.lines;
        self.lines_delivered += run.lines;
    }

    /// The node whose transmitter an event may act on, and the node to which the switch's
    /// transmitter may act. Others that it acts on have entries or credits out, so that they are
    /// not quiet.
    pub(crate) fn acts_on(&self, event: &Event) -> (Option<NodeIndex>, Option<NodeIndex>) {
        match *event {
            Event::Uplink(node) | Event::Credit(node) => (Some(node), None),
            Event::First(place) | Event::Left(place, _) => {
                let channel = &self.ingress[usize::from(place.port)].channels;
                let to = channel[usize::from(place.channel)].head_to(place.queue);
                (Some(place.port), to)
            }
            Event::Downlink(node) => (None, Some(node)),
            Event::Respond(handle, _) => {
                let flow = self.flows[handle as usize].as_ref();
                (flow.map(|flow| flow.memory), None)
            }
            Event::Returned => (None, None),
        }
    }
}
