//! The least time of a program, whatever the network.

use ethermem_units::{Bytes, Ps};

use super::graph::{Program, StepId, Work};

/// One direction of a node's link: the bytes that pass, and what must come before and after them.
#[derive(Clone, Copy)]
struct Direction {
    busy: Ps,
    /// The earliest begin of one of its messages.
    before: Ps,
    /// The least time from the end of one of its messages to the end of the program.
    after: Ps,
}

impl Direction {
    const IDLE: Direction = Direction { busy: Ps::ZERO, before: Ps::MAX, after: Ps::MAX };

    fn add(&mut self, busy: Ps, before: Ps, after: Ps) {
        self.busy += busy;
        self.before = self.before.min(before);
        self.after = self.after.min(after);
    }

    fn least(&self) -> Ps {
        if self.busy == Ps::ZERO { Ps::ZERO } else { self.before + self.busy + self.after }
    }
}

impl Program {
    /// The longest chain of steps, each of which takes what `cost` says: no network is faster.
    #[must_use]
    pub fn critical_path(&self, cost: impl Fn(&Work) -> Ps) -> Ps {
        let costs: Vec<_> = self.steps().iter().map(|step| cost(&step.work)).collect();
        let begins = self.begins(&costs);
        begins.iter().zip(&costs).map(|(&begin, &cost)| begin + cost).max().unwrap_or(Ps::ZERO)
    }

    /// The least time on a network of links without latency, where a node's link takes `cost` to
    /// carry a message's bytes, one message after the other in each direction.
    ///
    /// It is the larger of the longest chain and the busiest direction of a link. A direction is
    /// idle before the first of its messages can begin, and after the last one has ended.
    #[must_use]
    pub fn least_time(&self, cost: impl Fn(Bytes) -> Ps) -> Ps {
        let cost_of = |work: &Work| match work {
            Work::Message { bytes, .. } => cost(*bytes),
            Work::Compute { duration, .. } => *duration,
        };
        let costs: Vec<_> = self.steps().iter().map(|step| cost_of(&step.work)).collect();
        let begins = self.begins(&costs);
        let afters = self.afters(&costs);
        let mut links = vec![[Direction::IDLE; 2]; usize::from(self.nodes())];
        let mut longest = Ps::ZERO;
        for (at, step) in self.steps().iter().enumerate() {
            longest = longest.max(begins[at] + costs[at] + afters[at]);
            if let Some((from, to, _)) = step.work.moves() {
                links[usize::from(from)][0].add(costs[at], begins[at], afters[at]);
                links[usize::from(to)][1].add(costs[at], begins[at], afters[at]);
            }
        }
        links.iter().flatten().map(Direction::least).fold(longest, Ps::max)
    }

    /// By step: the earliest begin.
    fn begins(&self, costs: &[Ps]) -> Vec<Ps> {
        let mut begins = vec![Ps::ZERO; costs.len()];
        for (at, &cost) in costs.iter().enumerate() {
            let ends = begins[at] + cost;
            for follower in self.followers(StepId(at as u32)) {
                let begin = &mut begins[follower.0 as usize];
                *begin = (*begin).max(ends);
            }
        }
        begins
    }

    /// By step: the longest chain of steps behind it.
    fn afters(&self, costs: &[Ps]) -> Vec<Ps> {
        let mut afters = vec![Ps::ZERO; costs.len()];
        for at in (0..costs.len()).rev() {
            let followers = self.followers(StepId(at as u32)).iter().map(|step| step.0 as usize);
            let behind = followers.map(|step| costs[step] + afters[step]);
            afters[at] = behind.max().unwrap_or(Ps::ZERO);
        }
        afters
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Supersteps, all_to_all, gather, ring_allreduce};
    use super::*;

    fn least(program: &Program) -> Ps {
        program.least_time(|bytes| Ps(bytes.0))
    }

    #[test]
    fn a_link_carries_one_message_after_the_other() {
        // The root's downlink carries four messages; none waits for another.
        assert_eq!(least(&gather(5, 3, Bytes(1200)).unwrap()), Ps(4 * 1200));
        // Chains and links are busy equally long.
        assert_eq!(least(&all_to_all(5, Bytes(10)).unwrap()), Ps(4 * 10));
        // 2 (n - 1) / n of the vector.
        assert_eq!(least(&ring_allreduce(12, Bytes(1200)).unwrap()), Ps(22 * 100));
        // Each superstep: the computation, then three messages into every node.
        let graph = Supersteps { nodes: 4, supersteps: 1, compute: Ps(7), bytes: Bytes(100) };
        assert_eq!(least(&graph.program().unwrap()), Ps(7 + 300));
    }

    #[test]
    fn what_comes_before_and_after_a_busy_link_counts() {
        let mut builder = Builder::new(3);
        let first = builder.compute(0, Ps(50), 0, &[]).unwrap();
        let sent = [1, 2].map(|to| builder.send(0, to, Bytes(10), 0, &[first]).unwrap());
        builder.compute(1, Ps(5), 0, &[sent[0]]).unwrap();
        builder.compute(2, Ps(9), 0, &[sent[1]]).unwrap();
        // Either message may be last on node 0's uplink; the one before the shorter computation.
        assert_eq!(least(&builder.build()), Ps(50 + 20 + 5));
        assert_eq!(least(&Builder::new(2).build()), Ps::ZERO);
    }
}
