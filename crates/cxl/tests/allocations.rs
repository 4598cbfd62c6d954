//! Neither node allocates once it is built: not in traffic, not under loss, not in a flush.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use ethermem_cxl::agent::{Req, ReqOpcode, Rwd, Tag};
use ethermem_cxl::compute::{MaintenanceKind, MemoryNodeAt, NodeIndex, SectionUse};
use ethermem_cxl::{ComputeConfig, ComputeNode, MemoryConfig, MemoryNode};
use ethermem_units::Ps;
use ethermem_wire::cxl::{ByteMask, LineAddress, Mac, Request, Sequence};

const COMPUTE: Mac = Mac([2, 0, 0, 0, 0, 0x0c]);
const MEMORY: Mac = Mac([2, 0, 0, 0, 0, 0x0d]);

/// Frames between the two at once; every 13th of either direction is lost.
fn exchange(compute: &mut ComputeNode, memory: &mut MemoryNode, now: Ps, count: &mut u32) {
    let mut octets = [0; 128];
    let mut is_lost = || {
        *count += 1;
        count.is_multiple_of(13)
    };
    while let Some(length) = compute.poll_transmit(now, &mut octets).unwrap() {
        if !is_lost() {
            let _ = memory.on_frame(now, &octets[..length]);
        }
    }
    while memory.drain(now).is_some() {}
    while let Some(access) = memory.poll_access() {
        match access.request {
            Request::Read => memory.on_read(access.handle, Some([1; 64])),
            _ => memory.on_written(access.handle),
        }
    }
    while let Some(length) = memory.poll_transmit(&mut octets).unwrap() {
        if !is_lost() {
            let _ = compute.on_frame(now, &octets[..length]);
        }
    }
}

fn traffic(compute: &mut ComputeNode, memory: &mut MemoryNode) -> (u32, u32) {
    let (mut frames, mut begun, mut ended, mut flushed) = (0, 0, 0, 0);
    let (first, last) = (LineAddress::new(0).unwrap(), LineAddress::new(1 << 14).unwrap());
    for turn in 0..20_000_u64 {
        let now = Ps::from_ns(turn * 50);
        let (tag, address) = (Tag(turn as u16), turn * 7919 % (1 << 14) * 64);
        let taken = match turn % 2 {
            0 => compute.on_req(now, Req { opcode: ReqOpcode::MemRd, tag, address }),
            _ => compute.on_rwd(now, &Rwd { tag, address, mask: ByteMask(turn), data: [2; 64] }),
        };
        begun += u32::from(taken.is_ok());
        if turn % 5_000 == 0 {
            let kind = MaintenanceKind::Flush;
            let _ = compute.begin_maintenance(now, kind, first..=last);
        }
        compute.on_timer(now);
        exchange(compute, memory, now, &mut frames);
        ended += std::iter::from_fn(|| compute.poll_response()).count() as u32;
        flushed += std::iter::from_fn(|| compute.poll_event()).count() as u32;
    }
    assert!(flushed > 0, "a flush has ended");
    (begun, ended)
}

#[test]
fn nothing_allocates_after_construction() {
    let nodes = [MemoryNodeAt { mac: MEMORY, initial: Sequence(5) }];
    let mut compute = ComputeNode::new(ComputeConfig::published(COMPUTE), &nodes).unwrap();
    compute.map(0, SectionUse { node: NodeIndex(0), is_cached: true }).unwrap();
    let mut memory = MemoryNode::new(MemoryConfig::published(MEMORY)).unwrap();
    memory.attach(COMPUTE, Sequence(5)).unwrap();
    memory.map(COMPUTE, 0, 3).unwrap();
    let mut counts = (0, 0);
    let allocations = allocation_counter::measure(|| counts = traffic(&mut compute, &mut memory));
    assert_eq!(allocations.count_total, 0);
    assert!(counts.0 > 19_000 && counts.0 - counts.1 < 512, "{counts:?}");
}
