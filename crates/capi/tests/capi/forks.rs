//! Tests of forks of a process that has a pool over a network.

use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem::{Error, Permissions, Pool, ProcessId};
use ethermem_node::NodeOptions;
use ethermem_udp::{ClientOptions, Driver, Forked, NodePlace};
use ethermem_units::Bytes;
use ethermem_wire::clio::{Request, TenantId};
use nix::libc;

const RW: Permissions = Permissions::READ_WRITE;

/// True if the code does not panic in a fork of this process.
fn is_right_in_a_fork(code: impl FnOnce()) -> bool {
    // SAFETY: the child runs the code, which waits for no thread of the parent, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = catch_unwind(AssertUnwindSafe(code)).is_ok();
        // SAFETY: the call ends the child at once.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = -1;
    // SAFETY: the call writes the status, which lives through the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

/// Only the parent makes datagrams with its key, sender name and numbers.
#[test]
fn a_fork_sends_nothing_by_its_parents_client() {
    let node = UdpSocket::bind("127.0.0.1:0").unwrap();
    node.set_nonblocking(true).unwrap();
    let mut driver = Driver::connect(&ClientOptions {
        node: NodePlace::Udp(node.local_addr().unwrap()),
        tenant: TenantId(1),
        key: None,
        datagram_bytes_max: None,
        window: 4,
        incast_window: Bytes(1 << 20),
        give_up_after: Duration::from_secs(1),
    })
    .unwrap();
    driver.client().submit(ProcessId(0), Request::CreateProcess);
    assert!(is_right_in_a_fork(|| {
        for _ in 0..100 {
            let refused = [driver.send().map(|()| false), driver.turn()];
            for error in refused.map(Result::unwrap_err) {
                assert_eq!(error.downcast::<Forked>().unwrap(), Forked);
            }
        }
    }));
    let mut octets = [0; 2048];
    assert!(node.recv(&mut octets).is_err(), "the child has sent nothing");
    driver.send().unwrap();
    assert!(node.recv(&mut octets).is_ok());
}

#[test]
fn a_fork_is_told_so_ends_nothing_of_its_parents_and_has_pools_of_its_own() {
    let mut server = ethermem_node::start(&NodeOptions::in_clear(Bytes(64 << 20))).unwrap().server;
    let url = format!("udp://{}", server.address().unwrap());
    let serve = move || server.run(Duration::from_millis(1), &AtomicBool::new(false));
    std::thread::spawn(serve);
    let pool = Pool::open(&url).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, RW).wait().unwrap();
    region.write(0, b"still here").wait().unwrap();
    let waits = thread.fetch_add(region.at(64), 1);
    let mut held = Some((pool, thread, region, waits));
    let child = is_right_in_a_fork(|| {
        // These are the child's copies, which it drops.
        let (pool, thread, region, waits) = held.take().unwrap();
        assert_eq!(region.read(0, 10).wait(), Err(Error::Forked));
        assert_eq!(region.write(0, b"gone").wait(), Err(Error::Forked));
        assert_eq!(region.read_into(0, &mut [0; 8]), Err(Error::Forked));
        assert_eq!(region.write_from(0, b"gone"), Err(Error::Forked));
        assert_eq!(thread.alloc(64, RW).wait().unwrap_err(), Error::Forked);
        assert_eq!(thread.lock(region.at(0)).wait(), Err(Error::Forked));
        assert_eq!(thread.unlock_wait(region.at(0)), Err(Error::Forked));
        assert_eq!(thread.fence().wait(), Err(Error::Forked));
        assert_eq!(thread.offload("chase", region.at(0), &[], &[]).wait(), Err(Error::Forked));
        assert_eq!(pool.thread().unwrap_err(), Error::Forked);
        assert!(!pool.step());
        assert_eq!(waits.wait(), Err(Error::Forked));
        assert_eq!(pool.clone().close(), Err(Error::Forked));
        drop((pool, thread, region));
        let own = Pool::open(&url).unwrap();
        let region = own.thread().unwrap().alloc(4096, RW).wait().unwrap();
        region.write(0, b"own").wait().unwrap();
        assert_eq!(region.read(0, 3).wait().unwrap(), b"own");
        own.close().unwrap();
    });
    assert!(child);
    let (_pool, thread, region, waits) = held.unwrap();
    assert_eq!(waits.wait(), Ok(0));
    assert_eq!(region.read(0, 10).wait().unwrap(), b"still here");
    assert_eq!(thread.fetch_add(region.at(64), 1).wait(), Ok(1), "by the parent, once");
}
