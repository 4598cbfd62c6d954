//! PageRank in timely dataflow: `app-timely EDGES SCALE ROUNDS WORKERS`.
//!
//! Reads pairs of 32-bit little-endian vertices, of which there are 2^SCALE, and ends with a line
//! `answer=DIGEST measured_s=SECONDS`. Ranks are fixed-point numbers: no order of messages changes
//! a bit of them.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::time::Instant;

use sha2::{Digest, Sha256};
use timely::dataflow::ProbeHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{ConnectLoop, Feedback, Probe, ToStream};
use timely::worker::Worker;

type Vertex = u32;
type Rank = u64;

const EDGE_BYTES: u64 = 8;
const RANK_ONE: Rank = 1 << 32;
const RANK_BASE: Rank = RANK_ONE - damped(RANK_ONE);

const fn damped(rank: Rank) -> Rank {
    rank * 17 / 20
}

/// What all workers are told.
#[derive(Clone)]
struct Job {
    path: String,
    vertices: usize,
    rounds: usize,
    workers: usize,
}

impl Job {
    fn parse(words: &[String]) -> Result<Job, String> {
        let [path, scale, rounds, workers] = words else {
            return Err("usage: app-timely EDGES SCALE ROUNDS WORKERS".to_owned());
        };
        let number = |word: &String, what: &str, allowed: std::ops::RangeInclusive<usize>| {
            let parsed = word.parse().ok().filter(|parsed| allowed.contains(parsed));
            parsed.ok_or(format!("{what} {word}: a number in {allowed:?}"))
        };
        let vertices = 1 << number(scale, "SCALE", 1..=28)?;
        let rounds = number(rounds, "ROUNDS", 1..=10_000)?;
        let workers = number(workers, "WORKERS", 1..=64)?;
        Ok(Job { path: path.clone(), vertices, rounds, workers })
    }

    /// The edges that one worker brings in.
    fn edges(
        &self,
        worker: usize,
    ) -> std::io::Result<impl Iterator<Item = (Vertex, Vertex)> + use<>> {
        let mut file = File::open(&self.path)?;
        let edges = file.metadata()?.len() / EDGE_BYTES;
        let (worker, workers) = (worker as u64, self.workers as u64);
        let (start, end) = (edges * worker / workers, edges * (worker + 1) / workers);
        file.seek(SeekFrom::Start(start * EDGE_BYTES))?;
        let mut reader = BufReader::new(file);
        Ok((start..end).map(move |_| {
            let mut half = [0; 4];
            reader.read_exact(&mut half).expect("the file is as long as it was");
            let source = Vertex::from_le_bytes(half);
            reader.read_exact(&mut half).expect("the file is as long as it was");
            (source, Vertex::from_le_bytes(half))
        }))
    }
}

/// The vertices of one worker: those whose number, divided by the number of workers, leaves its
/// index.
struct Part {
    workers: usize,
    edges: Vec<(Vertex, Vertex)>,
    /// Where in `targets` those of each vertex start.
    offsets: Vec<usize>,
    targets: Vec<Vertex>,
    ranks: Vec<Rank>,
    /// What came in for this round and, from workers that are ahead, for the next.
    sums: [Vec<Rank>; 2],
}

impl Part {
    fn new(job: &Job, index: usize) -> Part {
        let vertices = (job.vertices - index).div_ceil(job.workers);
        let sums = [vec![0; vertices], vec![0; vertices]];
        let ranks = vec![RANK_ONE; vertices];
        let (edges, offsets, targets) = (Vec::new(), Vec::new(), Vec::new());
        Part { workers: job.workers, edges, offsets, targets, ranks, sums }
    }

    fn local(&self, vertex: Vertex) -> usize {
        vertex as usize / self.workers
    }

    fn receive(&mut self, round: usize, messages: &mut Vec<(Vertex, Rank)>) {
        for (vertex, share) in messages.drain(..) {
            let local = self.local(vertex);
            self.sums[round % 2][local] += share;
        }
    }

    /// Begins a round, of which everything has come in.
    fn turn(&mut self, round: usize) {
        if round == 0 {
            return self.index_edges();
        }
        for (rank, sum) in self.ranks.iter_mut().zip(&mut self.sums[round % 2]) {
            *rank = RANK_BASE + damped(std::mem::take(sum));
        }
    }

    fn index_edges(&mut self) {
        let mut edges = std::mem::take(&mut self.edges);
        edges.sort_unstable();
        self.offsets = vec![0; self.ranks.len() + 1];
        for &(source, _) in &edges {
            let local = self.local(source);
            self.offsets[local + 1] += 1;
        }
        for vertex in 1..self.offsets.len() {
            self.offsets[vertex] += self.offsets[vertex - 1];
        }
        self.targets = edges.into_iter().map(|(_, target)| target).collect();
    }

    fn shares(&self) -> impl Iterator<Item = (Vertex, Rank)> + '_ {
        self.ranks.iter().zip(self.offsets.windows(2)).flat_map(|(rank, range)| {
            let targets = &self.targets[range[0]..range[1]];
            let share = rank / targets.len().max(1) as Rank;
            targets.iter().map(move |&target| (target, share))
        })
    }
}

/// Runs one worker's share of the dataflow; its ranks.
fn work(worker: &mut Worker, job: &Job) -> Vec<Rank> {
    let part = Rc::new(RefCell::new(Part::new(job, worker.index())));
    let shared = Rc::clone(&part);
    let edges = job.edges(worker.index()).unwrap_or_else(|error| {
        eprintln!("{}: {error}", job.path);
        std::process::exit(2);
    });
    let (rounds, probe) = (job.rounds, ProbeHandle::new());
    let ended = probe.clone();
    worker.dataflow::<usize, _, _>(move |scope| {
        let edges = edges.to_stream(scope).container::<Vec<_>>();
        let (handle, shares) = scope.feedback(1);
        edges
            .binary_frontier(
                shares,
                Exchange::new(|edge: &(Vertex, Vertex)| u64::from(edge.0)),
                Exchange::new(|message: &(Vertex, Rank)| u64::from(message.0)),
                "PageRank",
                move |capability, _| {
                    // Held so that a round is over only when this worker, too, has ended it.
                    let mut held = Some(capability);
                    move |(edges, edges_frontier), (shares, shares_frontier), output| {
                        let mut part = shared.borrow_mut();
                        edges.for_each_stamp(|_, data| {
                            data.for_each(|batch| part.edges.append(batch));
                        });
                        shares.for_each_stamp(|stamp, data| {
                            let capability = stamp.retain_least(output.output_index());
                            let round = *capability.expect("a message has a time").time();
                            data.for_each(|batch| part.receive(round, batch));
                        });
                        let Some(capability) = held.as_mut() else { return };
                        let round = *capability.time();
                        let open = edges_frontier.frontier().less_equal(&round)
                            || shares_frontier.frontier().less_equal(&round);
                        if open {
                            return;
                        }
                        part.turn(round);
                        if round == rounds {
                            held = None;
                            return;
                        }
                        output.session(&capability).give_iterator(part.shares());
                        capability.downgrade(&(round + 1));
                    }
                },
            )
            .probe_with(&probe)
            .connect_loop(handle);
    });
    while !ended.done() {
        worker.step_or_park(None);
    }
    std::mem::take(&mut part.borrow_mut().ranks)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let job = Job::parse(&words).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    let begun = Instant::now();
    let told = job.clone();
    let workers =
        timely::execute(timely::Config::process(job.workers), move |worker| work(worker, &told));
    let parts: Vec<Vec<Rank>> = match workers {
        Ok(workers) => workers.join().into_iter().map(|part| part.expect("worker ended")).collect(),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let measured_s = begun.elapsed().as_secs_f64();
    let mut sha = Sha256::new();
    for vertex in 0..job.vertices {
        sha.update(parts[vertex % job.workers][vertex / job.workers].to_le_bytes());
    }
    let answer: String = sha.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    println!("answer={answer} measured_s={measured_s:.6}");
}
