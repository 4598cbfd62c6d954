//! Well-formed packets that no node sent, in both directions, beside real accesses.
//!
//! Goal: whatever a peer says in a frame with a right check sequence, no node panics, loops or
//! keeps an access for ever. Frames are not authenticated, so a forger can end an access with wrong
//! data. It cannot break a node's own state.

use crate::world::{CALM, COMPUTE, Network, Setup, US, memory_mac};
use ethermem_cxl::agent::{Req, ReqOpcode, Rwd, Tag};
use ethermem_units::Ps;
use ethermem_wire::cxl::{
    AccessId, ByteMask, Congestion, Failure, Frame, LineAddress, Negative, Packet, Request,
    RequestPacket, Response, ResponsePacket, Sequence,
};
use proptest::prelude::*;

/// Numbers near the window, which begins 41 before the wrap, and any others.
fn sequence() -> impl Strategy<Value = Sequence> {
    let near = (0..300_u32).prop_map(|ahead| Sequence((u32::MAX - 100).wrapping_add(ahead)));
    prop_oneof![4 => near, 1 => any::<u32>().prop_map(Sequence)]
}

fn request() -> impl Strategy<Value = RequestPacket> {
    let what = prop_oneof![
        Just(Request::Read),
        any::<u8>().prop_map(|byte| Request::Write([byte; 64])),
        (any::<u64>(), any::<u8>())
            .prop_map(|(mask, byte)| Request::MaskedWrite(ByteMask(mask), [byte; 64])),
    ];
    (sequence(), any::<u8>(), 0..128_u64, what).prop_map(|(sequence, id, line, request)| {
        let line = LineAddress::new(line).expect("a small number is a line");
        RequestPacket { sequence, id: AccessId(id), line, request }
    })
}

fn response() -> impl Strategy<Value = ResponsePacket> {
    let failure = prop_oneof![Just(Failure::Unmapped), Just(Failure::Poison)];
    let how = prop_oneof![
        any::<u8>().prop_map(|byte| Response::Read(Ok([byte; 64]))),
        failure.clone().prop_map(|failure| Response::Read(Err(failure))),
        Just(Response::Write(Ok(()))),
        failure.prop_map(|failure| Response::Write(Err(failure))),
    ];
    (sequence(), any::<u8>(), how).prop_map(|(sequence, id, response)| ResponsePacket {
        sequence,
        id: AccessId(id),
        response,
    })
}

fn negative() -> impl Strategy<Value = Negative> {
    (sequence(), sequence()).prop_map(|(nak, sack)| Negative { nak, sack })
}

fn packet() -> impl Strategy<Value = Packet> {
    let congestion = (any::<u32>(), any::<u16>())
        .prop_map(|(number, entries)| Packet::Congestion(Congestion { number, entries }));
    prop_oneof![
        3 => request().prop_map(Packet::Request),
        3 => response().prop_map(Packet::Response),
        2 => negative().prop_map(Packet::Negative),
        2 => (negative(), response()).prop_map(|(negative, ack)| Packet::Merged(negative, ack)),
        1 => congestion,
    ]
}

/// Gives a packet to the node that such packets are for, as if the other node had sent it.
fn forge(network: &mut Network, packet: Packet) {
    let to_memory = matches!(packet, Packet::Request(_));
    let (to, from) = if to_memory { (memory_mac(0), COMPUTE) } else { (COMPUTE, memory_mac(0)) };
    let mut octets = [0; 128];
    let length = Frame { to, from, packet }.emit_with_fcs(&mut octets).unwrap();
    if to_memory {
        let _ = network.memories[0].node.on_frame(network.now, &octets[..length]);
        network.memories[0].node.drain(network.now);
    } else {
        let _ = network.compute.on_frame(network.now, &octets[..length]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// A failure prints the seed and the packets.
    #[test]
    fn no_packet_breaks_a_node(
        seed: u64,
        cached: bool,
        packets in prop::collection::vec(packet(), 1..60),
    ) {
        let mut setup = Setup::new();
        if !cached {
            setup.compute.cache = None;
        }
        setup.compute.give_up_after = Ps(2_000 * US);
        let mut network = Network::new(seed, &setup, CALM);
        for (tag, &packet) in (0..).zip(&packets) {
            let (now, address) = (network.now, network.draw(64) * 64);
            let req = Req { opcode: ReqOpcode::MemRd, tag: Tag(tag), address };
            network.compute.on_req(now, req).unwrap();
            let rwd = Rwd { tag: Tag(tag), address, mask: ByteMask(0xff), data: [tag as u8; 64] };
            network.compute.on_rwd(now, &rwd).unwrap();
            forge(&mut network, packet);
            for _ in 0..network.draw(8) {
                network.step();
            }
            while network.compute.poll_response().is_some() {}
            while network.compute.poll_event().is_some() {}
        }
        let end = network.now + Ps(20_000 * US);
        while network.compute.in_flight() != (0, 0) {
            prop_assert!(network.step() && network.now < end, "an access hangs");
            while network.compute.poll_response().is_some() {}
            while network.compute.poll_event().is_some() {}
        }
        network.compute.check();
    }
}
