//! Frames and requests that are wrong: a counter and a typed error, poison for a load that cannot
//! be answered in time, no hang, and nothing written twice.

use crate::world::{CALM, COMPUTE, Faults, Network, Setup, US, memory_mac};
use ethermem_cxl::agent::{AgentError, Req, ReqOpcode, Rwd, S2m, Tag};
use ethermem_cxl::compute::{
    Event, FrameDropped, LostBy, MaintenanceError, MaintenanceKind, NodeIndex, SectionError,
    SectionUse,
};
use ethermem_cxl::memory::FrameDropped as AtMemory;
use ethermem_units::Ps;
use ethermem_wire::cxl::{
    AccessId, ByteMask, Congestion, Frame, FrameFault, LineAddress, LineError, Mac, Packet, Pause,
    Request, RequestPacket, Response, ResponsePacket, Sequence,
};

fn read(tag: u16, address: u64) -> Req {
    Req { opcode: ReqOpcode::MemRd, tag: Tag(tag), address }
}

fn write(tag: u16, address: u64) -> Rwd {
    Rwd { tag: Tag(tag), address, mask: ByteMask(0xff), data: [tag as u8; 64] }
}

fn octets(frame: &Frame) -> Vec<u8> {
    let mut octets = vec![0; 128];
    let length = frame.emit_with_fcs(&mut octets).unwrap();
    octets.truncate(length);
    octets
}

fn uncached() -> Setup {
    let mut setup = Setup::new();
    setup.compute.cache = None;
    setup
}

/// A request of the compute node that the memory node waits for.
fn request() -> Frame {
    let packet = RequestPacket {
        sequence: Setup::new().initial,
        id: AccessId(0),
        line: LineAddress::new(3).unwrap(),
        request: Request::Write([7; 64]),
    };
    Frame { to: memory_mac(0), from: COMPUTE, packet: Packet::Request(packet) }
}

#[test]
fn every_wrong_bit_and_every_cut_of_a_request_is_dropped_and_counted() {
    let mut network = Network::new(1, &uncached(), CALM);
    let whole = octets(&request());
    let memory = &mut network.memories[0].node;
    let mut dropped = 0;
    for bit in 0..whole.len() * 8 {
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let check = AtMemory::Fault(FrameFault::Check(whole.len()));
        assert_eq!(memory.on_frame(Ps(0), &wrong), Err(check));
        dropped += 1;
    }
    for cut in 0..whole.len() {
        assert!(matches!(memory.on_frame(Ps(0), &whole[..cut]), Err(AtMemory::Fault(_))));
        dropped += 1;
    }
    assert_eq!(memory.counters().dropped, [dropped, 0, 0, 0, 0]);
    assert_eq!((memory.fifo_used(), memory.poll_access()), (0, None));
    // After all of it the right one is taken, once.
    for _ in 0..3 {
        memory.on_frame(Ps(0), &whole).unwrap();
        memory.drain(Ps(0));
    }
    let access = memory.poll_access().expect("it is executed");
    memory.on_written(access.handle);
    memory.on_frame(Ps(0), &whole).unwrap();
    memory.drain(Ps(0));
    assert_eq!((memory.poll_access(), memory.counters().accesses), (None, 1));
}

#[test]
fn frames_of_others_are_dropped_by_name() {
    let mut network = Network::new(1, &uncached(), CALM);
    let memory = &mut network.memories[0].node;
    let (other, stranger) = (Mac([2, 0, 0, 0, 9, 9]), Mac([2, 0, 0, 0, 8, 8]));
    let frame = |frame: Frame| octets(&frame);
    let not_for_us = frame(Frame { to: other, ..request() });
    assert_eq!(memory.on_frame(Ps(0), &not_for_us), Err(AtMemory::NotForUs(other)));
    let from_stranger = frame(Frame { from: stranger, ..request() });
    assert_eq!(memory.on_frame(Ps(0), &from_stranger), Err(AtMemory::Stranger(stranger)));
    let response = Packet::Congestion(Congestion { number: 1, entries: 1 });
    let upside_down = frame(Frame { packet: response, ..request() });
    assert_eq!(memory.on_frame(Ps(0), &upside_down), Err(AtMemory::Response));
    assert_eq!(memory.counters().dropped, [0, 1, 1, 1, 0]);

    let back = |packet| octets(&Frame { to: COMPUTE, from: memory_mac(0), packet });
    let compute = &mut network.compute;
    let misled = octets(&request());
    assert_eq!(compute.on_frame(Ps(0), &misled), Err(FrameDropped::NotForUs(memory_mac(0))));
    let from_stranger = Frame { to: COMPUTE, from: stranger, packet: response };
    let dropped = compute.on_frame(Ps(0), &octets(&from_stranger));
    assert_eq!(dropped, Err(FrameDropped::Stranger(stranger)));
    let asked = back(request().packet);
    assert_eq!(compute.on_frame(Ps(0), &asked), Err(FrameDropped::Request));
    let unasked = ResponsePacket {
        sequence: Sequence(1),
        id: AccessId(0),
        response: Response::Write(Ok(())),
    };
    let unasked = back(Packet::Response(unasked));
    assert!(matches!(compute.on_frame(Ps(0), &unasked), Err(FrameDropped::Response(_))));
    assert_eq!(compute.counters().dropped, [0, 1, 1, 1, 1]);
}

#[test]
fn congestion_is_heard_once_and_old_news_not_at_all() {
    let mut network = Network::new(1, &uncached(), CALM);
    let compute = &mut network.compute;
    let mut hear = |at_us: u64, number| {
        let packet = Packet::Congestion(Congestion { number, entries: 200 });
        let frame = octets(&Frame { to: COMPUTE, from: memory_mac(0), packet });
        compute.on_frame(Ps(at_us * US), &frame).unwrap();
        compute.rate().0.0
    };
    assert_eq!([hear(20, 5), hear(40, 5), hear(60, 4)], [50_000, 50_000, 50_000]);
    assert_eq!(hear(65, 6), 25_000);
    let pause = |priority, quanta| {
        let mut octets = [0; 64];
        Pause::of(memory_mac(0), priority, quanta).emit_with_fcs(&mut octets).unwrap();
        octets
    };
    compute.on_frame(Ps(80 * US), &pause(0, 9)).unwrap();
    compute.on_frame(Ps(80 * US), &pause(3, 0)).unwrap();
    assert_eq!(compute.rate().0.0, 25_000, "another priority, and the end of a pause");
    compute.on_frame(Ps(80 * US), &pause(3, 9)).unwrap();
    assert_eq!(compute.rate().0.0, 12_500);
    // A PFC frame does not pause: what is to go, goes.
    compute.on_req(Ps(80 * US), read(1, 0)).unwrap();
    assert!(compute.poll_transmit(Ps(80 * US), &mut [0; 128]).unwrap().is_some());
}

/// The option that the paper does not have: 1000 quanta of 512 bits at 100 Gb/s are 5.12 us.
#[test]
fn a_pause_that_is_obeyed_holds_frames_for_as_long_as_it_says() {
    let mut setup = uncached();
    setup.compute.pause = true;
    let mut network = Network::new(1, &setup, CALM);
    let compute = &mut network.compute;
    let mut octets = [0; 128];
    Pause::of(memory_mac(0), 3, 1000).emit_with_fcs(&mut octets).unwrap();
    compute.on_frame(Ps(0), &octets[..64]).unwrap();
    compute.on_req(Ps(0), read(1, 0)).unwrap();
    assert_eq!(compute.poll_transmit(Ps(5_119_999), &mut octets), Ok(None));
    assert_eq!(compute.next_wake(Ps(5_119_999)), Some(Ps(5_120_000)));
    assert_eq!(compute.poll_transmit(Ps(5_120_000), &mut octets), Ok(Some(64)));
}

#[test]
fn an_agent_that_outruns_its_credits_is_refused() {
    let mut network = Network::new(1, &uncached(), CALM);
    let compute = &mut network.compute;
    for tag in 0..256 {
        compute.on_req(Ps(0), read(tag, 0)).unwrap();
        compute.on_rwd(Ps(0), &write(tag, 64)).unwrap();
    }
    assert_eq!(compute.on_req(Ps(0), read(256, 0)), Err(AgentError::NoReadCredit));
    assert_eq!(compute.on_rwd(Ps(0), &write(256, 0)), Err(AgentError::NoWriteCredit));
    assert_eq!(compute.on_req(Ps(0), read(0, 65)), Err(LineError::Misaligned(65).into()));
    let counters = compute.counters();
    assert_eq!((counters.no_credit, counters.bad_address), (2, 1));
    // A host that takes no responses gets no credits back.
    let mut setup = Setup::new();
    setup.compute.cache.as_mut().unwrap().bytes = 1 << 14;
    let mut network = Network::new(1, &setup, CALM);
    let hits = (0..1000).map(|tag| network.compute.on_rwd(Ps(0), &write(tag, 0)));
    assert_eq!(hits.filter(Result::is_ok).count(), 256);
    assert!(network.compute.poll_response().is_some());
    assert_eq!(network.compute.on_rwd(Ps(0), &write(0, 0)), Ok(()));
}

#[test]
fn addresses_that_nobody_maps_are_poison_and_lost_writes() {
    let mut network = Network::new(1, &Setup::new(), CALM);
    let beyond = 4 * crate::world::SECTION_LINES * 64;
    network.compute.on_req(Ps(0), read(1, beyond)).unwrap();
    network.compute.on_rwd(Ps(0), &write(2, beyond)).unwrap();
    let said = [(); 2].map(|()| network.compute.poll_response().unwrap().message);
    let poison = S2m::Drs { tag: Tag(1), data: [0; 64], poison: true };
    assert_eq!(said, [poison, S2m::Ndr(Tag(2))]);
    let line = LineAddress::at(beyond).unwrap();
    let lost = Event::WriteLost { line, why: LostBy::Unmapped };
    assert_eq!(network.compute.poll_event(), Some(lost));

    // The compute node maps it and the memory node does not: the memory node says so.
    let mut network = Network::new(1, &uncached(), CALM);
    assert!(network.memories[0].node.unmap(COMPUTE, 0).is_some());
    network.compute.on_req(Ps(0), read(3, 0)).unwrap();
    network.compute.on_rwd(Ps(0), &write(4, 0)).unwrap();
    while network.compute.in_flight() != (0, 0) {
        assert!(network.step());
    }
    let said = [(); 2].map(|()| network.compute.poll_response().unwrap().message);
    let poison = S2m::Drs { tag: Tag(3), data: [0; 64], poison: true };
    assert_eq!(said, [poison, S2m::Ndr(Tag(4))]);
    let line = LineAddress::new(0).unwrap();
    let lost = Event::WriteLost { line, why: LostBy::Refused };
    assert_eq!(network.compute.poll_event(), Some(lost));
    assert_eq!(network.memories[0].node.counters().unmapped, 2);
}

/// The MAC takes no frames for ever, then takes them again: every access ends in time, with poison
/// or with a write that is named; afterwards all is as before, and nothing was executed twice.
#[test]
fn a_mac_that_pauses_for_ever_hangs_nothing() {
    let give_up_after = Ps(1000 * US);
    for cached in [false, true] {
        let mut setup = if cached { Setup::new() } else { uncached() };
        setup.compute.give_up_after = give_up_after;
        let mut network = Network::new(1, &setup, CALM);
        let compute = &mut network.compute;
        for tag in 0..200 {
            let address = u64::from(tag % 64) * 64;
            compute.on_req(Ps(0), read(tag, address)).unwrap();
            compute.on_rwd(Ps(0), &write(tag, address)).unwrap();
            while compute.poll_response().is_some() {}
        }
        let lines = LineAddress::new(0).unwrap()..=LineAddress::new(63).unwrap();
        let kind = MaintenanceKind::Flush;
        compute.begin_maintenance(Ps(0), kind, lines.clone()).unwrap();
        let busy = compute.begin_maintenance(Ps(0), kind, lines.clone());
        assert_eq!(busy, Err(MaintenanceError::Busy));
        for step in 1..=10 {
            compute.on_timer(Ps(step * 100 * US));
            while let Some(response) = compute.poll_response() {
                assert!(!matches!(response.message, S2m::Drs { poison: false, .. }) || cached);
            }
        }
        assert_eq!(compute.in_flight(), (0, 0), "an access hangs");
        let events: Vec<_> = std::iter::from_fn(|| compute.poll_event()).collect();
        let timed_out = Event::NotMaintained(MaintenanceError::TimedOut);
        assert!(events.contains(&timed_out), "{cached}: {events:?}");
        let lost = events.iter().filter(|event| matches!(event, Event::WriteLost { .. })).count();
        assert_eq!(lost, if cached { 0 } else { 200 });
        // The network takes frames again.
        network.now = give_up_after;
        network.compute.on_req(network.now, read(999, 0)).unwrap();
        let answered = loop {
            match network.compute.poll_response() {
                Some(response) => break response.message,
                None => assert!(network.step()),
            }
        };
        assert!(matches!(answered, S2m::Drs { tag: Tag(999), poison: false, .. }));
        for _ in 0..10_000 {
            network.step();
        }
        let (sent, executed) = network.sent_and_executed();
        assert_eq!(sent, executed);
    }
}

#[test]
fn a_memory_node_that_is_given_up_ends_what_waits_for_it() {
    let mut network = Network::new(1, &uncached(), Faults { lost: 1000, ..CALM });
    network.compute.on_req(Ps(0), read(1, 0)).unwrap();
    network.compute.on_rwd(Ps(0), &write(2, 64)).unwrap();
    for _ in 0..10 {
        network.step();
    }
    network.compute.detach(NodeIndex(0), Sequence(77));
    let said = [(); 2].map(|()| network.compute.poll_response().unwrap().message);
    let poison = S2m::Drs { tag: Tag(1), data: [0; 64], poison: true };
    assert_eq!(said, [poison, S2m::Ndr(Tag(2))]);
    let line = LineAddress::new(1).unwrap();
    let lost = Event::WriteLost { line, why: LostBy::NodeLost };
    assert_eq!(network.compute.poll_event(), Some(lost));
    // Attached anew, at both ends, it works; frames of before are outside its window.
    network.faults = CALM;
    let memory = &mut network.memories[0].node;
    memory.detach(COMPUTE);
    memory.attach(COMPUTE, Sequence(77)).unwrap();
    network.compute.on_req(network.now, read(3, 0)).unwrap();
    while network.compute.in_flight() != (0, 0) {
        assert!(network.step());
    }
    let said = network.compute.poll_response().unwrap().message;
    assert!(matches!(said, S2m::Drs { tag: Tag(3), poison: false, .. }));
}

#[test]
fn a_section_with_lines_in_the_cache_stays_mapped() {
    let mut network = Network::new(1, &Setup::new(), CALM);
    let compute = &mut network.compute;
    compute.on_rwd(Ps(0), &write(1, 0)).unwrap();
    assert_eq!(compute.unmap(0), Err(SectionError::Cached(0)));
    let used = SectionUse { node: NodeIndex(0), is_cached: true };
    assert_eq!(compute.map(0, used), Err(SectionError::Mapped(0)));
    let elsewhere = SectionUse { node: NodeIndex(1), ..used };
    let none = SectionError::NoSuchNode { node: 1, nodes: 1 };
    assert_eq!(compute.map(9, elsewhere), Err(none));
    let none = SectionError::NoSuchSection { section: 99, sections: 64 };
    assert_eq!(compute.map(99, used), Err(none));
    assert_eq!(compute.unmap(1), Ok(used));
    assert_eq!(compute.unmap(1), Err(SectionError::NotMapped(1)));
}
