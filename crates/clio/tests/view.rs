//! The access of an operation at the node to the memory of its process: complete within its bounds,
//! and nothing beyond.

#[path = "support/client.rs"]
mod client;

use std::sync::{Arc, Mutex};

use client::{Answer, Client, PAGE, VecNode, config, deliver, node_of};
use ethermem_clio::Address;
use ethermem_clio::memory::ACCESS_BYTES_MAX;
use ethermem_clio::node::{NodeConfig, Quota};
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError, OffloadLimits};
use ethermem_units::Ns;
use ethermem_wire::clio::{ClioStatus, Permissions, ProcessId, Reply, Request, TenantId};

const RW: Permissions = Permissions::READ_WRITE;

type Code = dyn FnMut(&mut NodeMemory<'_>) -> Result<Vec<u8>, OffloadError> + Send;

/// An offload that runs the code which the test sets.
#[derive(Clone)]
struct Do(Arc<Mutex<Box<Code>>>, bool);

impl Offload for Do {
    fn run(&self, memory: &mut NodeMemory<'_>, _: &[u8]) -> Result<Vec<u8>, OffloadError> {
        (self.0.lock().expect("no test panics in it"))(memory)
    }

    fn has_own_space(&self) -> bool {
        self.1
    }
}

struct Side {
    node: VecNode,
    client: Client,
    at: u64,
}

impl Side {
    fn new(pages: u64) -> Side {
        let limits = OffloadLimits { loaded_max: 4, ..OffloadLimits::NONE };
        let quota = Quota { offload: limits, ..Quota::UNLIMITED };
        let tenants = vec![(TenantId(1), quota), (TenantId(2), Quota::UNLIMITED)];
        let mut node = node_of(NodeConfig { tenants, recent_requests: 1 << 10, ..config(pages) });
        let mut client = Client::with_process(&mut node, 0, 100, 1);
        let body = Request::Allocate { bytes: pages / 2 * PAGE, at: 0, permissions: RW };
        let call = client.datagram(0, body, 0);
        let mut made = deliver(&mut node, 0, &call);
        while node.runs_wait() {
            node.tend(Ns(0), 0);
            made = deliver(&mut node, 0, &call);
        }
        let Some(Answer::Other(Reply::Address(at))) = made else { panic!("no memory: {made:?}") };
        Side { node, client, at }
    }

    fn run(
        &mut self,
        code: impl FnMut(&mut NodeMemory<'_>) -> Result<Vec<u8>, OffloadError> + Send + 'static,
    ) -> Answer {
        self.node.register("do", Arc::new(Do(Arc::new(Mutex::new(Box::new(code))), false)));
        self.client.ask(&mut self.node, 0, Request::Offload { name: "do", arguments: &[] })
    }

    fn read(&mut self, at: u64, bytes: u32) -> Vec<u8> {
        match self.client.ask(&mut self.node, 0, Request::Read { address: at, bytes }) {
            Answer::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }
}

fn result(bytes: &[u8]) -> Answer {
    Answer::Bytes([&[0], bytes].concat())
}

/// Writes and reads are cut into accesses. Each octet arrives at its place, and its neighbours do
/// not change.
#[test]
fn what_is_longer_than_an_access_is_written_and_read_whole() {
    let mut side = Side::new(1024);
    let at = side.at;
    for bytes in [1, ACCESS_BYTES_MAX, ACCESS_BYTES_MAX + 1, 2 * ACCESS_BYTES_MAX + 77] {
        for all in [false, true] {
            let data: Vec<u8> = (0..bytes).map(|octet| (octet * 7 / 3) as u8 | 1).collect();
            let mine = data.clone();
            let done = side.run(move |memory| {
                let place = Address(at + 100);
                memory.write(Address(at), &vec![0; mine.len() + 200])?;
                if all {
                    memory.write_all(&[(place, &mine), (Address(at), b"front")])?;
                } else {
                    memory.write(place, &mine)?;
                }
                let same = memory.read(place, mine.len() as u64)? == mine;
                Ok(vec![u8::from(same)])
            });
            assert_eq!(done, result(&[1]), "{bytes} B, at once: {all}");
            let end = at + 100 + bytes as u64;
            let last = side.read(end - 1, 2);
            assert_eq!(last, [data[bytes - 1], 0], "{bytes} B");
            let front = side.read(at, 5);
            assert_eq!(front == b"front", all);
            assert_eq!(side.read(at + 99, 2), [0, data[0]]);
        }
    }
}

/// A transaction with one forbidden write does none of its writes.
#[test]
fn all_writes_of_a_transaction_are_done_or_none() {
    let mut side = Side::new(64);
    let at = side.at;
    let done = side.run(move |memory| {
        memory.write(Address(at), &[1; 16])?;
        let beyond = Address(at + 1000 * PAGE);
        let writes: [(Address, &[u8]); 2] = [(Address(at), &[2; 16]), (beyond, &[3])];
        let refused = memory.write_all(&writes);
        Ok(vec![u8::from(matches!(refused, Err(OffloadError::Unmapped { .. })))])
    });
    assert_eq!(done, result(&[1]));
    assert_eq!(side.read(at, 16), [1; 16]);
}

/// A first touch finds a page though none is ready: pages are prepared as long as there are any.
#[test]
fn an_operation_waits_for_no_page() {
    let mut side = Side::new(64);
    let at = side.at;
    let done = side.run(move |memory| {
        for page in 0..32 {
            memory.write(Address(at + page * PAGE), &[9])?;
        }
        Ok(vec![4])
    });
    assert_eq!(done, result(&[4]));
    assert_eq!(side.node.memory().map().used_pages(), 32);
}

/// An operation may allocate at once as much as a slice does; more is refused and not done.
#[test]
fn memory_is_allocated_up_to_a_bound_and_freed() {
    const MOST: u64 = 1 << 13;
    let mut side = Side::new(4 * MOST);
    let before = side.node.memory().map().free_bytes();
    for (pages, is_done) in [(1, true), (MOST - 1, true), (MOST, true), (MOST + 1, false)] {
        let done = side.run(move |memory| {
            let address = memory.allocate(pages * PAGE, RW)?;
            memory.write(address, &[7])?;
            memory.write(Address(address.0 + pages * PAGE - 1), &[8])?;
            let kept = memory.read(address, 1)? == [7];
            memory.free(address)?;
            Ok(vec![u8::from(kept)])
        });
        let tag = |answer: &Answer| match answer {
            Answer::Bytes(bytes) => bytes[0],
            other => panic!("{other:?}"),
        };
        assert_eq!(tag(&done) == 0, is_done, "{pages} pages: {done:?}");
        assert!(!is_done || done == result(&[1]));
        while side.node.runs_wait() {
            side.node.tend(Ns(0), 0);
        }
        assert_eq!(side.node.memory().map().free_bytes(), before, "{pages} pages");
    }
    let none = side.run(|memory| memory.free(Address(123 * PAGE)).map(|()| vec![]));
    assert!(matches!(none, Answer::Other(Reply::Refused(ClioStatus::Unmapped, _))), "{none:?}");
    let small = Quota { memory_bytes: 2 * PAGE, ..Quota::UNLIMITED };
    let tenants = vec![(TenantId(1), small)];
    let mut node = node_of(NodeConfig { tenants, ..config(64) });
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let code: Box<Code> = Box::new(|memory| {
        let full = memory.allocate(3 * PAGE, RW);
        Ok(vec![u8::from(matches!(full, Err(OffloadError::Full { .. })))])
    });
    node.register("do", Arc::new(Do(Arc::new(Mutex::new(code)), false)));
    let told = client.ask(&mut node, 0, Request::Offload { name: "do", arguments: &[] });
    assert_eq!(told, result(&[1]), "over the quota");
}

/// Operations are known only to the tenants for which they were registered.
#[test]
fn an_operation_for_one_tenant_is_not_there_for_another() {
    let mut side = Side::new(64);
    let code: Box<Code> = Box::new(|_| Ok(vec![5]));
    let offload = Arc::new(Do(Arc::new(Mutex::new(code)), false));
    side.node.register_for(TenantId(1), "mine", offload);
    let call = Request::Offload { name: "mine", arguments: &[] };
    assert_eq!(side.client.ask(&mut side.node, 0, call), result(&[5]));
    let mut other = Client::with_process(&mut side.node, 0, 200, 2);
    let unknown = Answer::Other(Reply::Refused(ClioStatus::NoSuchOffload, 0));
    assert_eq!(other.ask(&mut side.node, 0, call), unknown);
}

/// A node that is about to end creates no process, and keeps the existing ones.
#[test]
fn an_ending_node_takes_no_process() {
    let mut side = Side::new(64);
    side.node.take_no_more_processes();
    let refused = Client::new(300, 1).ask(&mut side.node, 0, Request::CreateProcess);
    assert!(matches!(refused, Answer::Other(Reply::Refused(ClioStatus::Busy, _))), "{refused:?}");
    assert_eq!(side.read(side.at, 1), [0]);
    assert_eq!(side.node.processes(), 1);
    let who = side.run(|memory| Ok(memory.process().0.to_le_bytes().to_vec()));
    let ProcessId(number) = side.client.process;
    assert_eq!(who, result(&number.to_le_bytes()));
}
