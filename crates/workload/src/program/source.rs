//! A program as a source of messages in the time of a network.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;

use ethermem_units::{Bytes, Ps};

use super::graph::{Program, StepId, Work, part_bytes, parts_of};
use super::run::ProgramRun;
use crate::message::{ClosedLoop, Message};

/// One run of a program: it computes by itself, and says when each message leaves.
///
/// A step begins when the last step that it depends on has ended. Computations take their time,
/// whatever else their node computes. The end of a message costs nothing to learn, at either node.
///
/// A network has a largest message. A longer step is cut into as few parts as that allows, equal up
/// to a byte, which leave together; the step ends with the last of them.
pub struct ProgramSource<'p> {
    program: &'p Program,
    run: ProgramRun<'p>,
    /// Most bytes of a message.
    most: Bytes,
    /// By step: the latest end of a step that it depends on, so far.
    begins: Vec<Ps>,
    /// Messages that may leave, by time, step, and number among the parts of the step.
    ready: BinaryHeap<Reverse<(Ps, StepId, u64)>>,
    /// By step that was cut, and is under way: how many parts have not ended, and the latest end.
    parts: BTreeMap<StepId, (u64, Ps)>,
    /// By message: its step.
    taken: Vec<StepId>,
    lost: BTreeSet<StepId>,
    finished: Ps,
}

/// Why a program came to no end: every step that is left waits for a lost message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The first lost message, and its step; `None` if it was never answered.
    lost: Option<(StepId, Work)>,
    lost_count: usize,
    in_flight: usize,
    waiting: usize,
    first_waiting: Option<(StepId, Work)>,
    steps: usize,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, steps) = (self.waiting, self.steps);
        if let Some((step, work)) = &self.lost {
            let (step, count) = (step.0, self.lost_count);
            write!(f, "{count} messages were lost, the first is step {step} ({work})")?;
        } else {
            write!(f, "{} messages were never answered", self.in_flight)?;
        }
        write!(f, "; {waiting} of {steps} steps wait for them")?;
        match &self.first_waiting {
            Some((step, work)) => write!(f, ", the first is step {} ({work})", step.0),
            None => Ok(()),
        }
    }
}

impl<'p> ProgramSource<'p> {
    /// A run that begins at time zero, on a network that moves at most so many bytes in a message.
    ///
    /// # Panics
    /// If `most` is zero.
    #[must_use]
    pub fn new(program: &'p Program, most: Bytes) -> ProgramSource<'p> {
        assert!(most > Bytes(0), "a message has data");
        let mut source = ProgramSource {
            program,
            run: ProgramRun::new(program),
            most,
            begins: vec![Ps::ZERO; program.steps().len()],
            ready: BinaryHeap::new(),
            parts: BTreeMap::new(),
            taken: Vec::new(),
            lost: BTreeSet::new(),
            finished: Ps::ZERO,
        };
        source.begin_ready();
        source
    }

    /// Begins every step that may begin. A computation also ends here: its end is known.
    fn begin_ready(&mut self) {
        while let Some((id, step)) = self.run.next_step() {
            let begin = self.begins[id.0 as usize];
            match step.work {
                Work::Message { bytes, .. } => {
                    let parts = parts_of(bytes, self.most);
                    if parts > 1 {
                        self.parts.insert(id, (parts, Ps::ZERO));
                    }
                    self.ready.extend((0..parts).map(|part| Reverse((begin, id, part))));
                }
                Work::Compute { duration, .. } => self.end(id, begin + duration),
            }
        }
    }

    fn end(&mut self, step: StepId, at: Ps) {
        self.finished = self.finished.max(at);
        for follower in self.program.followers(step) {
            let begin = &mut self.begins[follower.0 as usize];
            *begin = (*begin).max(at);
        }
        self.run.end(step).expect("a step under way ends");
    }

    /// The time at which the last step ended, so far.
    #[must_use]
    pub fn finished(&self) -> Ps {
        self.finished
    }

    /// By message, in the order in which they left: its step.
    #[must_use]
    pub fn order(&self) -> &[StepId] {
        &self.taken
    }

    /// Why the program came to no end; `None` if it did.
    #[must_use]
    pub fn unfinished(&self) -> Option<Unfinished> {
        if self.run.is_complete() {
            return None;
        }
        let steps = self.program.steps();
        let named = |step: StepId| (step, steps[step.0 as usize].work);
        let waiting = self.run.waiting();
        Some(Unfinished {
            lost: self.lost.first().map(|&step| named(step)),
            lost_count: self.lost.len(),
            in_flight: steps.len() - self.run.ended() - waiting.len() - self.lost.len(),
            waiting: waiting.len(),
            first_waiting: waiting.first().map(|&step| named(step)),
            steps: steps.len(),
        })
    }
}

impl ClosedLoop for ProgramSource<'_> {
    fn next_arrival(&mut self) -> Option<Ps> {
        self.ready.peek().map(|Reverse((at, ..))| *at)
    }

    fn take(&mut self) -> Message {
        let Reverse((arrival, id, part)) = self.ready.pop().expect("a message is known");
        let Work::Message { kind, compute, memory, bytes } =
            self.program.steps()[id.0 as usize].work
        else {
            unreachable!("only messages wait to leave");
        };
        let index = self.taken.len() as u64;
        self.taken.push(id);
        let bytes = part_bytes(bytes, parts_of(bytes, self.most), part);
        Message { index, arrival, kind, compute, memory, bytes }
    }

    fn ended(&mut self, index: u64, at: Option<Ps>) {
        let step = self.taken[index as usize];
        let Some(at) = at else {
            self.lost.insert(step);
            return;
        };
        let Some((left, latest)) = self.parts.get_mut(&step) else {
            self.end(step, at);
            return self.begin_ready();
        };
        (*left, *latest) = (*left - 1, at.max(*latest));
        if *left == 0 {
            let latest = *latest;
            self.parts.remove(&step);
            self.end(step, latest);
            self.begin_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, KeyValue, Shuffle};
    use super::*;

    /// Plays a program on a network on which a message takes a picosecond a byte.
    fn play(program: &Program, most: Bytes) -> ProgramSource<'_> {
        let mut source = ProgramSource::new(program, most);
        let mut in_flight = BinaryHeap::new();
        loop {
            let end = in_flight.peek().map(|&Reverse((at, _))| at);
            match source.next_arrival() {
                Some(at) if end.is_none_or(|end| at <= end) => {
                    let message = source.take();
                    assert_eq!(message.arrival, at);
                    in_flight.push(Reverse((at + Ps(message.bytes.0), message.index)));
                }
                _ => match in_flight.pop() {
                    Some(Reverse((at, index))) => source.ended(index, Some(at)),
                    None => return source,
                },
            }
        }
    }

    #[test]
    fn a_run_without_contention_takes_the_longest_chain() {
        let cost = |work: &Work| match work {
            Work::Message { bytes, .. } => Ps(bytes.0),
            Work::Compute { duration, .. } => *duration,
        };
        let shuffle = Shuffle {
            mappers: 3,
            reducers: 2,
            map: Ps(50),
            reduce: Ps(20),
            bytes: Bytes(1050),
            message_bytes: Bytes(100),
            in_flight: 2,
        };
        let store = KeyValue {
            clients: 3,
            servers: 2,
            requests: 40,
            in_flight: 3,
            value_bytes: Bytes(32),
            reads: 0.5,
            serve: Ps(5),
            think: Ps(11),
        };
        let shuffle = shuffle.program().unwrap();
        for program in [shuffle.repeated(3, Ps(7)).unwrap(), store.program(3).unwrap(), shuffle] {
            let source = play(&program, Bytes(u64::MAX));
            assert_eq!(source.unfinished(), None);
            assert_eq!(source.finished(), program.critical_path(cost));
            let mut order = source.order().to_vec();
            order.sort_unstable();
            order.dedup();
            assert_eq!(order.len(), source.order().len());
        }
    }

    #[test]
    fn a_step_begins_at_the_latest_end_in_whatever_order_ends_are_told() {
        let mut builder = Builder::new(3);
        let [one, two] = [1, 2].map(|to| builder.send(0, to, Bytes(1), 0, &[]).unwrap());
        builder.send(1, 2, Bytes(1), 0, &[one, two]).unwrap();
        let program = builder.build();
        let mut source = ProgramSource::new(&program, Bytes(100));
        source.take();
        source.take();
        assert_eq!(source.next_arrival(), None);
        source.ended(0, Some(Ps(90)));
        source.ended(1, Some(Ps(40)));
        assert_eq!(source.next_arrival(), Some(Ps(90)));
    }

    #[test]
    fn a_long_message_is_cut_and_ends_with_its_last_part() {
        let mut builder = Builder::new(3);
        let long = builder.send(0, 1, Bytes(26), 0, &[]).unwrap();
        builder.send(1, 2, Bytes(10), 0, &[long]).unwrap();
        let program = builder.build();
        let mut source = ProgramSource::new(&program, Bytes(10));
        let parts: Vec<_> = (0..3).map(|_| source.take()).collect();
        assert_eq!(parts.iter().map(|part| part.bytes.0).collect::<Vec<_>>(), [9, 9, 8]);
        assert!(parts.iter().all(|part| (part.compute, part.memory) == (0, 1)), "{parts:?}");
        for (part, at) in [(2, 30), (0, 70)] {
            source.ended(part, Some(Ps(at)));
            assert_eq!(source.next_arrival(), None);
        }
        source.ended(1, Some(Ps(50)));
        assert_eq!(source.next_arrival(), Some(Ps(70)));
        assert_eq!(source.take().bytes, Bytes(10));
        source.ended(3, Some(Ps(80)));
        assert_eq!((source.unfinished(), source.finished()), (None, Ps(80)));
        assert_eq!(source.order(), [long, long, long, StepId(1)]);
        assert_eq!((program.messages(Bytes(10)), program.messages(Bytes(26))), (4, 2));
        // Two lost parts are one lost step.
        let mut source = ProgramSource::new(&program, Bytes(10));
        (0..3).for_each(|_| {
            source.take();
        });
        (0..2).for_each(|part| source.ended(part, None));
        source.ended(2, Some(Ps(9)));
        let text = source.unfinished().unwrap().to_string();
        assert!(text.starts_with("1 messages were lost, the first is step 0 (write of 26 B"));
    }

    #[test]
    fn a_lost_message_says_what_waits_for_it() {
        let mut builder = Builder::new(3);
        let first = builder.send(0, 1, Bytes(64), 0, &[]).unwrap();
        let other = builder.send(0, 2, Bytes(64), 0, &[]).unwrap();
        let last = builder.compute(1, Ps(1_000), 0, &[first]).unwrap();
        builder.send(1, 2, Bytes(9), 0, &[last, other]).unwrap();
        let program = builder.build();
        let mut source = ProgramSource::new(&program, Bytes(100));
        source.take();
        source.take();
        source.ended(1, Some(Ps(10)));
        let text = source.unfinished().unwrap().to_string();
        let never = "1 messages were never answered; 2 of 4 steps wait for them, the first is \
                     step 2 (computation of 1 ns on node 1)";
        assert_eq!(text, never);
        source.ended(0, None);
        let text = source.unfinished().unwrap().to_string();
        let lost = "1 messages were lost, the first is step 0 (write of 64 B from node 0 to 1); 2 \
                    of 4 steps wait for them, the first is step 2 (computation of 1 ns on node 1)";
        assert_eq!(text, lost);
        assert_eq!(source.next_arrival(), None);
    }
}
