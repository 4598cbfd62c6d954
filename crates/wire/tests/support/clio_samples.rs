//! A packet of every opcode, with fields at the ends of their ranges.

use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    AcknowledgedIds, ClioOpcode, ClioStatus, Envelope, Epoch, NodeFacts, Permissions, ProcessId,
    Protection, Reply, Request, RequestId, RequestPacket, ResponsePacket, SenderId, TenantId,
};
use ethermem_wire::{RmwKind, RmwOperation};

const WIDE: u64 = 0xfedc_ba98_7654_3210;
const DATA: &[u8] = b"0123456789abcdef";
static ACKNOWLEDGED: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x32, 0x54, 0x76, 0, 0, 0, 0x80];

pub(crate) fn requests() -> Vec<RequestPacket<'static>> {
    let modify = |kind| Request::Modify {
        address: WIDE & !7,
        operation: RmwOperation::new(kind, [u64::MAX, 1]),
    };
    let with = ProcessId(0x0102_0304);
    let mut bodies = vec![
        Request::Read { address: WIDE, bytes: 1448 },
        Request::Write { address: WIDE, data: DATA },
        Request::Write { address: u64::MAX, data: &[] },
    ];
    bodies.extend(RmwKind::ALL.map(modify));
    bodies.extend([
        Request::TestAndSet { address: 8 },
        Request::Lock { address: 16, holder: u32::MAX },
        Request::Unlock { address: 16, holder: 7 },
        Request::Fence,
        Request::Allocate { bytes: 1 << 40, at: 0, permissions: Permissions::READ_WRITE },
        Request::Free { address: WIDE },
        Request::Share { address: WIDE, at: 1 << 22, with, permissions: Permissions::READ },
        Request::CreateProcess,
        Request::EndProcess,
        Request::Offload { name: "chase", arguments: DATA },
        Request::Offload { name: "", arguments: &[] },
        Request::Hello,
        Request::KeepAlive,
        Request::Acknowledge(AcknowledgedIds::new(&ACKNOWLEDGED).expect("two numbers")),
        Request::Probe { padding: 0 },
        Request::Probe { padding: 9 },
    ]);
    let packet = |(at, body)| RequestPacket {
        attempt: (at as u8).wrapping_mul(37),
        process: ProcessId(0xa000_0000 + at as u32),
        request: RequestId(WIDE - at as u64),
        acknowledged: if at % 2 == 0 { RequestId::NONE } else { RequestId(at as u64) },
        body,
    };
    bodies.into_iter().enumerate().map(packet).collect()
}

pub(crate) fn responses() -> Vec<ResponsePacket<'static>> {
    let facts = NodeFacts {
        epoch: Epoch(0x0506_0708),
        page_bytes: 1 << 22,
        data_bytes_max: 1408,
        lifetime_us_max: 10_000,
        memory: Bytes(1 << 42),
        lease_ms: 10_000,
    };
    let mut replies = vec![
        (ClioOpcode::Read, Reply::Bytes(DATA)),
        (ClioOpcode::Write, Reply::Done),
        (ClioOpcode::TestAndSet, Reply::Word(1)),
        (ClioOpcode::Lock, Reply::Done),
        (ClioOpcode::Lock, Reply::OwnerDied),
        (ClioOpcode::Unlock, Reply::Done),
        (ClioOpcode::Fence, Reply::Done),
        (ClioOpcode::Allocate, Reply::Address(WIDE)),
        (ClioOpcode::Free, Reply::Done),
        (ClioOpcode::Share, Reply::Address(1 << 22)),
        (ClioOpcode::CreateProcess, Reply::Created(ProcessId(9))),
        (ClioOpcode::EndProcess, Reply::Done),
        (ClioOpcode::Offload, Reply::Bytes(&[])),
        (ClioOpcode::Hello, Reply::Facts(facts)),
        (ClioOpcode::KeepAlive, Reply::Done),
        (ClioOpcode::Nack, Reply::Refused(ClioStatus::Corrupt, WIDE)),
    ];
    replies.extend(RmwKind::ALL.map(|kind| (ClioOpcode::from(kind), Reply::Word(WIDE))));
    let refusals = ClioStatus::ALL.into_iter().filter(|status| !status.is_done());
    replies.extend(refusals.map(|status| (ClioOpcode::Read, Reply::Refused(status, 3))));
    replies.push((ClioOpcode::Probe, Reply::Padding(17)));
    let packet = |(at, (opcode, reply))| ResponsePacket {
        opcode: opcode as u8,
        attempt: at as u8,
        request: RequestId(WIDE + at as u64),
        reply,
    };
    replies.into_iter().enumerate().map(packet).collect()
}

pub(crate) fn envelopes() -> Vec<Envelope> {
    let envelope = |protection: Protection| Envelope {
        protection,
        tenant: TenantId(0x0102 + protection as u16),
        epoch: Epoch(0x0304_0506),
        sender: SenderId(WIDE),
        sequence: 0x0123_4567_89ab_cdef,
        clock: Ns(0x1122_3344_5566_7788),
    };
    Protection::ALL.map(envelope).to_vec()
}
