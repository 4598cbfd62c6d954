//! The slow requests: the state before each, how it begins, and how it must end.

use std::time::{Duration, Instant};

use ethermem_clio::transport::{Completed, OperationId};
use ethermem_udp::Driver;
use ethermem_units::Ns;
use ethermem_wire::clio::{ProcessId, Request};

use crate::served::{GREEDY, Outcome, PAGE, RW, Served, address, all, ask, process};

const NO_LEASE: Ns = Ns(u64::MAX);
const LEASE: Duration = Duration::from_secs(3);
/// How long before the end of a lease the neighbour's reads begin to count.
const BEFORE: Duration = Duration::from_millis(20);
/// Number of parts of memory in use beside the request.
const PARTS: u64 = 24;

/// A kind of slow request.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) what: What,
    /// Smallest and largest number of pages, as powers of two. Fewer have no full bucket; more
    /// exceed the machine's memory or take long to prepare.
    pub(crate) bits_min: u32,
    pub(crate) bits_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Allocates half of a memory, of which three eighths are in use.
    Allocate,
    /// Finds no free range, because a bucket of the page table is full.
    Refused,
    Free,
    Share,
    /// Frees pages that were used, so that they must be zeroed.
    Zero,
    End,
    Lease,
}

pub(crate) const KINDS: [Kind; 7] = [
    Kind { name: "allocate, 3/8 in use", what: What::Allocate, bits_min: 0, bits_max: 22 },
    Kind { name: "allocate, no range", what: What::Refused, bits_min: 16, bits_max: 16 },
    Kind { name: "free", what: What::Free, bits_min: 0, bits_max: 22 },
    Kind { name: "share", what: What::Share, bits_min: 0, bits_max: 22 },
    Kind { name: "share, zeroing used pages", what: What::Zero, bits_min: 0, bits_max: 18 },
    Kind { name: "end of a process", what: What::End, bits_min: 0, bits_max: 22 },
    Kind { name: "end of a lease", what: What::Lease, bits_min: 0, bits_max: 22 },
];

/// The requesting tenant, on a node prepared for its request.
pub(crate) struct Asker {
    what: What,
    pages: u64,
    client: Driver,
    process: ProcessId,
    /// Another process of the tenant.
    friend: ProcessId,
    /// Address allocated for the request, or by it.
    at: Option<u64>,
    /// The request in flight.
    asked: Option<OperationId>,
    outcome: Option<Outcome>,
    /// Start of the lease that is to expire.
    silent_since: Instant,
    pub(crate) served: Served,
}

impl Asker {
    pub(crate) fn new(what: What, bits: u32) -> Asker {
        let pages = 1_u64 << bits;
        // A share has page table entries of its own.
        let memory = match what {
            What::Refused | What::Share | What::Zero => 4 * pages,
            What::Allocate | What::Free | What::End | What::Lease => 2 * pages,
        };
        let lease = if what == What::Lease { Ns(LEASE.as_nanos() as u64) } else { NO_LEASE };
        let served = Served::new(memory, lease);
        let mut client = served.client(GREEDY);
        let (process, friend) = (process(&mut client), process(&mut client));
        let (at, asked, outcome) = (None, None, None);
        let silent_since = Instant::now();
        let mut asker = Asker {
            what,
            pages,
            client,
            process,
            friend,
            at,
            asked,
            outcome,
            silent_since,
            served,
        };
        match what {
            What::Allocate => asker.use_part(2 * pages * 3 / 8),
            What::Refused => asker.fill_a_bucket(),
            _ => {}
        }
        asker
    }

    fn allocation(pages: u64, at: u64) -> Request<'static> {
        Request::Allocate { bytes: pages * PAGE, at, permissions: RW }
    }

    fn use_part(&mut self, pages: u64) {
        let part = Asker::allocation(pages / PARTS, 0);
        let parts = all(&mut self.client, &vec![(self.friend, part); PARTS as usize]);
        for part in parts {
            let _ = address(part);
        }
    }

    /// Allocates single pages far apart, until a bucket is full.
    fn fill_a_bucket(&mut self) {
        let mut next = 1;
        loop {
            let some: Vec<_> = (next..next + 256)
                .map(|at| (self.friend, Asker::allocation(1, at * 4 * self.pages * PAGE)))
                .collect();
            next += 256;
            let failed = all(&mut self.client, &some).into_iter().any(|page| page.is_err());
            if failed {
                return;
            }
            assert!(next < 3 * self.pages, "no bucket is full");
        }
    }

    /// Prepares the state before the request.
    pub(crate) fn prepare(&mut self) {
        match self.what {
            What::Allocate | What::Refused => {}
            What::Free | What::Share => self.allocate(),
            What::Zero => {
                self.allocate();
                self.write_all();
                self.free();
                self.allocate();
            }
            What::End | What::Lease => {
                self.process = process(&mut self.client);
                self.allocate();
            }
        }
    }

    /// Largest number of requests in a round.
    pub(crate) fn requests_max(&self) -> u32 {
        if self.what == What::Lease { 1 } else { 300 }
    }

    fn allocate(&mut self) {
        let asked = Asker::allocation(self.pages, 0);
        self.at = Some(address(ask(&mut self.client, self.process, asked)));
    }

    fn free(&mut self) {
        if let Some(address) = self.at.take() {
            let done = ask(&mut self.client, self.process, Request::Free { address });
            assert!(done.is_ok(), "{done:?}");
        }
    }

    fn write_all(&mut self) {
        let first = self.at.expect("it was allocated");
        let page = |page| Request::Write { address: first + page * PAGE, data: &[0xee] };
        let pages: Vec<_> = (0..self.pages).map(|at| (self.process, page(at))).collect();
        assert!(all(&mut self.client, &pages).iter().all(Result::is_ok), "a page cannot be had");
    }

    pub(crate) fn begin(&mut self) {
        self.outcome = None;
        let address = self.at.unwrap_or(0);
        let (with, permissions) = (self.friend, RW);
        let request = match self.what {
            What::Allocate | What::Refused => Asker::allocation(self.pages, 0),
            What::Free => Request::Free { address },
            What::Share | What::Zero => Request::Share { address, at: 0, with, permissions },
            What::End => Request::EndProcess,
            What::Lease => {
                // The client is killed: it sends nothing more for its processes.
                self.client = self.served.client(GREEDY);
                self.silent_since = Instant::now();
                return;
            }
        };
        self.asked = Some(self.client.client().submit(self.process, request));
        self.client.send().expect("the socket takes it");
    }

    /// True if the node is working on the request, or soon will.
    pub(crate) fn is_due(&self) -> bool {
        self.what != What::Lease || self.silent_since.elapsed() >= LEASE - BEFORE
    }

    /// True if the request has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.what == What::Lease {
            // Only the neighbour's own process is left.
            return self.silent_since.elapsed() > LEASE && self.served.processes() == 1;
        }
        self.client.turn().expect("the socket gives it");
        while let Some(event) = self.client.client().poll_event() {
            if Some(event.operation) == self.asked {
                self.outcome = Some(event.outcome);
            }
        }
        self.outcome.is_some()
    }

    /// Removes what the request left, and returns whether the request was refused.
    pub(crate) fn clear(&mut self) -> bool {
        let is_refused = matches!(self.outcome, Some(Err(_)));
        // A node that tries one range after another may find none beside other allocations.
        let as_meant = self.what == What::Allocate || is_refused == (self.what == What::Refused);
        assert!(as_meant, "{:?}: {:?}", self.what, self.outcome);
        match self.what {
            What::Allocate => {
                if let Some(Ok(Completed::Address(address))) = self.outcome {
                    self.at = Some(address);
                }
                self.free();
            }
            What::Share | What::Zero => self.free(),
            What::Free | What::End | What::Lease | What::Refused => {}
        }
        self.at = None;
        is_refused
    }
}
