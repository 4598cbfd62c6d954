//! Slow-path requests at a node. Work between two datagrams is bounded, each request is done once
//! whatever copies come, and nothing remains when a process ends at any time.

#[path = "support/client.rs"]
mod client;

use client::{Answer, Client, LIFETIME, PAGE, VecNode, config, deliver, node_of};
use ethermem_clio::node::{Busy, NodeConfig, Quota};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{ClioStatus, Permissions, Reply, Request, TenantId};
use proptest::prelude::*;

const DONE: Answer = Answer::Other(Reply::Done);
const RW: Permissions = Permissions::READ_WRITE;
/// Work of a slice, the excess of its last piece, and the pages that `tend` prepares.
const SLICE: u64 = 1024 + 300 + 64;

fn running() -> Answer {
    Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Running as u64))
}

fn node(pages: u64) -> VecNode {
    node_of(NodeConfig { processes_max: 64, recent_requests: 1 << 16, ..config(pages) })
}

fn allocation(pages: u64) -> Request<'static> {
    Request::Allocate { bytes: pages * PAGE, at: 0, permissions: RW }
}

/// The answer to a request that may take several slices, and their number. Its copies are told that
/// it is running, with `between` between slices. No step does more work than a slice.
fn ask(
    node: &mut VecNode,
    client: &mut Client,
    body: Request<'_>,
    between: &mut dyn FnMut(&mut VecNode),
) -> (Answer, u64) {
    let datagram = client.datagram(1, body, 0);
    for slices in 0..100_000 {
        let before = work(node);
        let answer = deliver(node, 1, &datagram).expect("every request is answered");
        let (began, did) = (work(node), work(node) - before);
        assert!(did <= SLICE, "{did} steps at once for {body:?}");
        if answer != running() {
            return (answer, slices);
        }
        node.tend(Ns(1), 64 << 10);
        let did = work(node) - began;
        assert!(did <= SLICE, "{did} steps between two datagrams for {body:?}");
        between(node);
    }
    panic!("{body:?} never ends");
}

fn work(node: &VecNode) -> u64 {
    node.memory().map().counters().slow_steps
}

fn address(answer: &Answer) -> u64 {
    let Answer::Other(Reply::Address(address)) = answer else { panic!("{answer:?}") };
    *address
}

fn zero() -> Answer {
    Answer::Bytes(vec![0])
}

fn whole(node: &mut VecNode, client: &mut Client, body: Request<'_>) -> Answer {
    ask(node, client, body, &mut |_| {}).0
}

/// Another tenant's requests are answered at once after each slice, and see their own effects.
#[test]
fn each_request_of_full_size_is_done_in_slices_beside_another_tenant() {
    const PAGES: u64 = 1 << 16;
    let mut node = node(4 * PAGES);
    let mut one = Client::with_process(&mut node, 0, 100, 1);
    let friend = Client::with_process(&mut node, 0, 101, 1);
    let mut other = Client::with_process(&mut node, 0, 200, 2);
    let at = address(&whole(&mut node, &mut other, allocation(1)));
    let mut turns = 0_u64;
    let mut between = |node: &mut VecNode| {
        turns += 1;
        let data = turns.to_le_bytes();
        assert_eq!(other.ask(node, 1, Request::Write { address: at, data: &data }), DONE);
        let read = other.ask(node, 1, Request::Read { address: at, bytes: 8 });
        assert_eq!(read, Answer::Bytes(data.to_vec()));
        let small = address(&other.ask(node, 1, allocation(3)));
        assert_eq!(other.ask(node, 1, Request::Free { address: small }), DONE);
    };
    let (answer, slices) = ask(&mut node, &mut one, allocation(PAGES), &mut between);
    let address = address(&answer);
    assert!(slices >= PAGES / 1024 - 1, "{slices} slices of an allocation");
    // Used pages must be zeroed before another process gets them.
    for page in 0..64 {
        node.tend(Ns(1), 1 << 20);
        let write = Request::Write { address: address + page * PAGE, data: &[0xee] };
        assert_eq!(one.ask(&mut node, 1, write), DONE);
    }
    let with = friend.process;
    let share = Request::Share { address, at: 0, with, permissions: RW };
    let (answer, slices) = ask(&mut node, &mut one, share, &mut between);
    assert_eq!(answer, Answer::Other(Reply::Address(address)));
    assert!(slices >= 2 * PAGES / 1024 - 1, "{slices} slices of a share");
    let (answer, slices) = ask(&mut node, &mut one, Request::Free { address }, &mut between);
    assert_eq!(answer, DONE);
    assert!(slices >= 2 * PAGES / 1024 - 1, "{slices} slices of a release");
    whole(&mut node, &mut one, allocation(PAGES));
    let (answer, slices) = ask(&mut node, &mut one, Request::EndProcess, &mut between);
    assert_eq!(answer, DONE);
    assert!(slices >= PAGES / 1024 - 1, "{slices} slices of an end");
    node.memory().map().check(true).unwrap();
    assert_eq!(node.memory().map().table_entries(), 1, "the other tenant's page");
}

/// The process is dead at its lease's end; its memory comes back in bounded steps.
#[test]
fn a_process_of_many_pages_whose_lease_is_over_is_taken_back_in_slices() {
    let mut node = node(1 << 16);
    let mut client = Client::with_process(&mut node, 1, 100, 1);
    whole(&mut node, &mut client, allocation(1 << 16));
    let late = client::LEASE + 2;
    let mut slices = 0;
    while node.processes() > 0 {
        let before = work(&node);
        if !node.tend(Ns(late), 64 << 10) {
            node.sweep(Ns(late));
        }
        assert!(work(&node) - before <= SLICE, "{} steps at once", work(&node) - before);
        slices += 1;
        assert!(slices < 1000, "it never ends");
    }
    assert!(slices >= 64, "{slices} slices");
    assert_eq!(node.memory().map().free_bytes(), (1 << 16) * PAGE);
    let (_, used) = node.tenant_uses().next().unwrap();
    assert_eq!((used.memory_bytes, used.processes), (0, 0));
}

#[test]
fn a_process_that_ends_takes_its_half_done_requests_with_it() {
    const PAGES: u64 = 1 << 14;
    let quota = Quota { memory_bytes: 2 * PAGES * PAGE, ..Quota::UNLIMITED };
    let mut node = node_of(NodeConfig {
        tenants: vec![(TenantId(1), quota), (TenantId(2), quota)],
        processes_max: 64,
        recent_requests: 1024,
        ..config(4 * PAGES)
    });
    let mut one = Client::with_process(&mut node, 0, 100, 1);
    let half_done = one.datagram(1, allocation(PAGES), 0);
    assert_eq!(deliver(&mut node, 1, &half_done), Some(running()));
    node.tend(Ns(1), 0);
    let end = one.datagram(1, Request::EndProcess, 0);
    assert_eq!(deliver(&mut node, 1, &end), Some(running()));
    // The process is dead at once, except for the request that it waits for.
    let refused = Answer::Other(Reply::Refused(ClioStatus::NoSuchProcess, one.process.0.into()));
    assert_eq!(one.ask(&mut node, 1, Request::KeepAlive), refused);
    for _ in 0..1000 {
        node.tend(Ns(1), 0);
    }
    assert_eq!(deliver(&mut node, 1, &end), Some(DONE), "its copy is told how it ended");
    let copy = deliver(&mut node, 1, &half_done);
    assert_eq!(copy, Some(refused), "a copy does not begin anew");
    node.memory().map().check(true).unwrap();
    assert_eq!(node.memory().map().free_bytes(), 4 * PAGES * PAGE);
    let (_, used) = node.tenant_uses().next().unwrap();
    assert_eq!((used.memory_bytes, used.processes), (0, 0));
}

/// An operator ends a process while its requests are half done, and while it shares with another.
/// It is dead at once, the other lives, and nothing remains.
#[test]
fn an_operator_ends_a_process_whatever_of_it_is_half_done() {
    const PAGES: u64 = 1 << 14;
    for half_done in 0..4 {
        let mut node = node(4 * PAGES);
        let mut one = Client::with_process(&mut node, 0, 100, 1);
        let mut friend = Client::with_process(&mut node, 0, 101, 1);
        let mut other = Client::with_process(&mut node, 0, 200, 2);
        let at = address(&whole(&mut node, &mut other, allocation(1)));
        let address = address(&whole(&mut node, &mut one, allocation(PAGES)));
        let with = friend.process;
        let request = match half_done {
            0 => allocation(PAGES),
            1 => Request::Share { address, at: 0, with, permissions: RW },
            2 => Request::Free { address },
            _ => Request::EndProcess,
        };
        let half_done = one.datagram(1, request, 0);
        assert_eq!(deliver(&mut node, 1, &half_done), Some(running()));
        node.tend(Ns(1), 0);
        let lived = !matches!(request, Request::EndProcess);
        assert_eq!(node.end(Ns(1), TenantId(1), one.process), lived, "{request:?}");
        assert!(!node.end(Ns(1), TenantId(1), one.process), "it is dead already");
        assert!(!node.end(Ns(1), TenantId(2), friend.process), "it is another tenant's");
        let refused =
            Answer::Other(Reply::Refused(ClioStatus::NoSuchProcess, one.process.0.into()));
        assert_eq!(one.ask(&mut node, 1, Request::KeepAlive), refused);
        let mut slices = 0;
        while node.processes() > 2 || node.runs_wait() {
            let before = work(&node);
            node.tend(Ns(1), 0);
            let did = work(&node) - before;
            assert!(did <= SLICE, "{did} steps between two datagrams");
            assert_eq!(other.ask(&mut node, 1, Request::Read { address: at, bytes: 1 }), zero());
            slices += 1;
            assert!(slices < 10_000, "{request:?} is never taken back");
        }
        let known: Vec<_> = (0..node.process_places())
            .filter_map(|place| node.process_facts(Ns(1), place))
            .map(|facts| (facts.tenant.0, facts.process, facts.memory.0, facts.lives))
            .collect();
        let expected = [(1, friend.process, 0, true), (2, other.process, PAGE, true)];
        assert_eq!(known, expected, "{request:?}");
        assert_eq!(friend.ask(&mut node, 1, Request::KeepAlive), DONE);
        node.memory().map().check(true).unwrap();
        assert_eq!(node.memory().map().free_bytes(), (4 * PAGES - 1) * PAGE);
        assert_eq!(node.counters().lapsed, 0, "no lease was over");
    }
}

/// One tenant has as many long requests in progress as it may. Another tenant's first request is as
/// fast as with only one of them.
#[test]
fn slices_are_given_to_tenants_in_turn() {
    const PAGES: u64 = 1 << 13;
    let mut node = node(64 * PAGES);
    let mut greedy: Vec<Client> =
        (0..16).map(|at| Client::with_process(&mut node, 0, 100 + at, 1)).collect();
    for client in &mut greedy {
        assert_eq!(client.ask(&mut node, 1, allocation(PAGES)), running());
    }
    let more = greedy[0].ask(&mut node, 1, allocation(PAGES));
    assert_eq!(more, Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Runs as u64)));
    let mut other = Client::with_process(&mut node, 0, 200, 2);
    let (_, slices) = ask(&mut node, &mut other, allocation(PAGES), &mut |_| {});
    // There are its own slices, and as many of the other tenant.
    assert!(slices <= 2 * (PAGES / 1024 + 2), "{slices} slices");
}

#[derive(Clone, Debug)]
enum Step {
    Begin {
        who: usize,
        what: u8,
        pages: u64,
        which: usize,
    },
    Again {
        which: usize,
    },
    Tend,
    End {
        who: usize,
    },
    /// An operator ends a process.
    Kill {
        who: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize, 0..3_u8, 1..3000_u64, any::<usize>())
            .prop_map(|(who, what, pages, which)| Step::Begin { who, what, pages, which }),
        3 => any::<usize>().prop_map(|which| Step::Again { which }),
        4 => Just(Step::Tend),
        1 => (0..4_usize).prop_map(|who| Step::End { who }),
        1 => (0..4_usize).prop_map(|who| Step::Kill { who }),
    ]
}

/// An allocation takes pages of a region of the same process that is being given back. Each page
/// counts once.
#[test]
fn a_page_that_was_given_back_is_nobodys() {
    const PAGES: u64 = 1 << 13;
    let mut node = node(PAGES);
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let first = address(&whole(&mut node, &mut client, allocation(4000)));
    whole(&mut node, &mut client, allocation(PAGES - 4000));
    let more = client.datagram(1, allocation(1000), 0);
    let (mut taken, mut most) = (0, Bytes(0));
    let mut between = |node: &mut VecNode| {
        let answer = deliver(node, 1, &more).expect("every request is answered");
        taken += u64::from(matches!(answer, Answer::Other(Reply::Address(_))));
        most = most.max(node.process_facts(Ns(1), 0).expect("its process").memory);
    };
    assert_eq!(ask(&mut node, &mut client, Request::Free { address: first }, &mut between).0, DONE);
    assert!(taken > 0, "it is taken before all is given back");
    assert!(most <= Bytes(PAGES * PAGE), "{most:?}");
    let left = node.process_facts(Ns(1), 0).expect("its process").memory;
    assert_eq!(left, Bytes((PAGES - 4000 + 1000) * PAGE));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every copy of a request gets an equal end, whatever else runs or ends meanwhile. At the end
    /// all memory is free again.
    #[test]
    fn requests_are_done_once_and_leave_nothing(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut node = node(1 << 13);
        let mut clients: Vec<Client> = (0..4)
            .map(|at| Client::with_process(&mut node, 0, 100 + at, 1 + at as u16 % 2))
            .collect();
        // Each datagram, and its end once it was answered.
        let mut asked: Vec<(Vec<u8>, Option<Answer>)> = Vec::new();
        let mut addresses: Vec<(usize, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Begin { who, what, pages, which } => {
                    let own: Vec<u64> =
                        addresses.iter().filter(|(of, _)| *of == who).map(|of| of.1).collect();
                    let address = own.get(which % own.len().max(1)).copied().unwrap_or(PAGE);
                    let with = clients[(who + 2) % 4].process;
                    let body = match what {
                        0 => allocation(pages),
                        1 => Request::Free { address },
                        _ => Request::Share { address, at: 0, with, permissions: RW },
                    };
                    asked.push((clients[who].datagram(1, body, 0), None));
                    let at = asked.len() - 1;
                    let answer = hear(&mut node, &mut asked[at]);
                    if let (0, Answer::Other(Reply::Address(address))) = (what, answer) {
                        addresses.push((who, address));
                    }
                }
                Step::Again { which } if !asked.is_empty() => {
                    let at = which % asked.len();
                    hear(&mut node, &mut asked[at]);
                }
                Step::Again { .. } => {}
                Step::Tend => {
                    node.tend(Ns(1), 1 << 16);
                }
                Step::Kill { who } => {
                    let tenant = TenantId(1 + who as u16 % 2);
                    node.end(Ns(1), tenant, clients[who].process);
                }
                Step::End { who } => {
                    asked.push((clients[who].datagram(1, Request::EndProcess, 0), None));
                    let at = asked.len() - 1;
                    hear(&mut node, &mut asked[at]);
                }
            }
            node.memory().map().check(!node.runs_wait()).unwrap();
            for place in 0..node.process_places() {
                if let Some(facts) = node.process_facts(Ns(1), place) {
                    prop_assert!(facts.memory.0 <= (1 << 13) * PAGE);
                }
            }
        }
        // No lease ends within the lifetime of the datagrams' copies.
        let late = client::LEASE + LIFETIME;
        for _ in 0..10_000 {
            if node.processes() == 0 {
                break;
            }
            node.tend(Ns(late), 1 << 16);
        }
        prop_assert_eq!(node.processes(), 0);
        while node.runs_wait() {
            node.tend(Ns(late), 1 << 16);
        }
        node.memory().map().check(true).unwrap();
        prop_assert_eq!(node.memory().map().free_bytes(), (1 << 13) * PAGE);
        for (_, used) in node.tenant_uses() {
            prop_assert_eq!((used.memory_bytes, used.processes), (0, 0));
        }
    }
}

/// Delivers a copy of a request: once the request has an end, each copy gets that end.
fn hear(node: &mut VecNode, asked: &mut (Vec<u8>, Option<Answer>)) -> Answer {
    let answer = deliver(node, 1, &asked.0).expect("every request is answered");
    let is_busy = matches!(answer, Answer::Other(Reply::Refused(ClioStatus::Busy, _)));
    // A request of a dead process is not done, and not kept.
    let is_gone = matches!(answer, Answer::Other(Reply::Refused(ClioStatus::NoSuchProcess, _)));
    match &asked.1 {
        Some(known) => assert_eq!(&answer, known, "a copy has another end"),
        None if !is_busy && !is_gone => asked.1 = Some(answer.clone()),
        None => {}
    }
    answer
}
