//! The rules of section III.D one by one, and what each costs beside go-back-N.

use ethermem_cxl::Storage;
use ethermem_cxl::retry::{
    Arrival, Requester, RequesterConfig, Responder, ResponseFault, Retransmission,
};
use ethermem_units::Ps;
use ethermem_wire::cxl::{
    AccessId, LineAddress, Negative, Packet, Request, RequestPacket, Response, ResponsePacket,
    Sequence,
};

fn requester(retransmission: Retransmission) -> Requester<u32> {
    Requester::new(RequesterConfig {
        window: 16,
        backlog: 4,
        retransmission,
        retry_after: Ps(100),
        initial: Sequence(0),
        storage: Storage::OnDemand,
    })
}

/// Sends so many reads, and gives their packets.
fn send(requester: &mut Requester<u32>, count: u32) -> Vec<RequestPacket> {
    for origin in 0..count {
        let line = LineAddress::new(u64::from(origin)).unwrap();
        requester.submit(AccessId(origin as u8), line, Request::Read, origin);
    }
    sent(requester, Ps(0))
}

/// All that goes now.
fn sent(requester: &mut Requester<u32>, now: Ps) -> Vec<RequestPacket> {
    let mut packets = Vec::new();
    while let Some(packet) = requester.next_packet() {
        packets.push(*packet);
        requester.mark_sent(now);
    }
    packets
}

fn numbers(packets: &[RequestPacket]) -> Vec<u32> {
    packets.iter().map(|packet| packet.sequence.0).collect()
}

fn answer(packet: &RequestPacket) -> ResponsePacket {
    let RequestPacket { sequence, id, .. } = *packet;
    ResponsePacket { sequence, id, response: Response::Read(Ok([sequence.0 as u8; 64])) }
}

fn negative(nak: u32, sack: u32) -> Negative {
    Negative { nak: Sequence(nak), sack: Sequence(sack) }
}

fn delivered(requester: &mut Requester<u32>) -> Vec<u32> {
    std::iter::from_fn(|| requester.poll_delivery()).map(|delivery| delivery.origin).collect()
}

/// "Retransmits the packet between the marked packet and the last packet that has been
/// acknowledged. If there is more than one SACK mark, then retransmit all packets between the
/// current SACK mark and the previous one."
#[test]
fn between_the_marks_and_nothing_else() {
    let mut requester = requester(Retransmission::Selective);
    send(&mut requester, 12);
    requester.on_negative(negative(2, 5)).unwrap();
    assert_eq!(numbers(&sent(&mut requester, Ps(1))), [2, 3, 4]);
    requester.on_negative(negative(2, 9)).unwrap();
    assert_eq!(numbers(&sent(&mut requester, Ps(2))), [6, 7, 8]);
    requester.on_negative(negative(2, 10)).unwrap();
    assert_eq!(numbers(&sent(&mut requester, Ps(3))), [0_u32; 0]);
    assert_eq!(requester.counters().resent, [6, 0, 0]);
}

#[test]
fn go_back_n_sends_all_from_the_first_that_is_missing() {
    let mut requester = requester(Retransmission::GoBackN);
    send(&mut requester, 12);
    requester.on_negative(negative(2, 5)).unwrap();
    assert_eq!(numbers(&sent(&mut requester, Ps(1))), (2..12).collect::<Vec<_>>());
}

/// "If the subsequent ACK received at CN is correct, then immediately retransmit all request
/// packets in which sequence numbers are between this correct ACK and the previous one."
#[test]
fn a_gap_in_the_responses_is_asked_for_again_at_once() {
    let mut requester = requester(Retransmission::Selective);
    let packets = send(&mut requester, 8);
    requester.on_response(&answer(&packets[0])).unwrap();
    assert_eq!(delivered(&mut requester), [0]);
    requester.on_response(&answer(&packets[4])).unwrap();
    assert_eq!(delivered(&mut requester), [0_u32; 0], "responses are taken in order");
    assert_eq!(numbers(&sent(&mut requester, Ps(1))), [1, 2, 3]);
    requester.on_response(&answer(&packets[6])).unwrap();
    assert_eq!(numbers(&sent(&mut requester, Ps(2))), [5]);
    [1, 2, 3].into_iter().for_each(|at| requester.on_response(&answer(&packets[at])).unwrap());
    assert_eq!(delivered(&mut requester), [1, 2, 3, 4]);
    assert_eq!(requester.counters().resent, [0, 4, 0]);
}

/// "Otherwise wait for the timeout": 100, then 200, 400, up to 3200 ps between tries.
#[test]
fn the_timeout_is_last_and_doubles() {
    let mut requester = requester(Retransmission::Selective);
    send(&mut requester, 2);
    let mut now = 0;
    for wait in [100, 200, 400, 800, 1600, 3200, 3200] {
        assert_eq!(requester.next_wake(), Some(Ps(now + wait)));
        requester.on_timer(Ps(now + wait - 1));
        assert!(requester.next_packet().is_none());
        now += wait;
        requester.on_timer(Ps(now));
        assert_eq!(requester.next_wake(), None, "it is queued, and waits for the link");
        assert_eq!(numbers(&sent(&mut requester, Ps(now))), [0, 1]);
    }
    assert_eq!(requester.counters().resent, [0, 0, 14]);
}

#[test]
fn a_window_bounds_what_is_sent_and_a_backlog_what_waits() {
    let mut requester = requester(Retransmission::Selective);
    assert_eq!(send(&mut requester, 20).len(), 16);
    assert!(!requester.has_room(1));
    let first = send(&mut requester, 0);
    assert!(first.is_empty());
    let zero = ResponsePacket {
        sequence: Sequence(0),
        id: AccessId(0),
        response: Response::Read(Ok([0; 64])),
    };
    requester.on_response(&zero).unwrap();
    assert_eq!(delivered(&mut requester), [0]);
    assert_eq!(numbers(&sent(&mut requester, Ps(1))), [16]);
    assert!(requester.has_room(1));
}

#[test]
fn a_response_that_answers_nothing_is_told_why_and_changes_nothing() {
    let mut requester = requester(Retransmission::Selective);
    let packets = send(&mut requester, 3);
    let wrong =
        |requester: &mut Requester<u32>, packet| requester.on_response(&packet).unwrap_err();
    let future = ResponsePacket { sequence: Sequence(3), ..answer(&packets[0]) };
    let outside = ResponseFault::OutsideWindow { sequence: 3, oldest: 0, end: 3 };
    assert_eq!(wrong(&mut requester, future), outside);
    let other = ResponsePacket { id: AccessId(9), ..answer(&packets[0]) };
    assert_eq!(wrong(&mut requester, other), ResponseFault::Mismatch(0));
    let kind = ResponsePacket { response: Response::Write(Ok(())), ..answer(&packets[0]) };
    assert_eq!(wrong(&mut requester, kind), ResponseFault::Mismatch(0));
    requester.on_response(&answer(&packets[1])).unwrap();
    assert_eq!(wrong(&mut requester, answer(&packets[1])), ResponseFault::Duplicate(1));
    let outside = ResponseFault::OutsideWindow { sequence: 7, oldest: 0, end: 3 };
    assert_eq!(requester.on_negative(negative(0, 7)), Err(outside));
    assert_eq!(requester.counters().ignored, [2, 1, 2]);
}

fn responder(retransmission: Retransmission) -> Responder {
    Responder::new(8, retransmission, Sequence(0), Storage::Reserved)
}

fn request(sequence: u32) -> RequestPacket {
    let line = LineAddress::new(1).unwrap();
    let (id, request) = (AccessId(sequence as u8), Request::Read);
    RequestPacket { sequence: Sequence(sequence), id, line, request }
}

/// Executes what is there, and gives the numbers.
fn execute(responder: &mut Responder) -> Vec<u32> {
    let mut executed = Vec::new();
    while let Some(packet) = responder.next_request().copied() {
        responder.issue();
        responder.complete(&packet, Response::Read(Ok([0; 64])));
        executed.push(packet.sequence.0);
    }
    executed
}

/// "We will not return this NAK immediately but wait until the subsequent request arrives and send
/// a SACK+NAK packet. If there is an ACK being sent, we will also combine it."
#[test]
fn a_nak_waits_for_the_next_request_and_goes_with_an_ack_if_there_is_one() {
    let mut responder = responder(Retransmission::Selective);
    assert_eq!(responder.on_request(&request(0)), Arrival::Next);
    // Request 1 is lost: nothing says so yet.
    assert_eq!(responder.poll_transmit(), None);
    assert_eq!(responder.on_request(&request(2)), Arrival::Kept);
    assert_eq!(execute(&mut responder), [0]);
    let Some(Packet::Merged(merged, ack)) = responder.poll_transmit() else { panic!("merged") };
    assert_eq!((merged, ack.sequence), (negative(1, 2), Sequence(0)));
    assert_eq!(responder.on_request(&request(4)), Arrival::Kept);
    assert_eq!(responder.poll_transmit(), Some(Packet::Negative(negative(1, 4))));
    assert_eq!(responder.poll_transmit(), None);
    assert_eq!(responder.on_request(&request(1)), Arrival::Next);
    assert_eq!(execute(&mut responder), [1, 2], "in order, and not past what is missing");
    assert_eq!(responder.on_request(&request(3)), Arrival::Next);
    assert_eq!(execute(&mut responder), [3, 4]);
}

/// "A request packet in which the sequence number is smaller than the currently processed": its
/// response goes again, and it is not executed again.
#[test]
fn a_duplicate_request_gets_the_response_again_and_is_not_executed_again() {
    let mut responder = responder(Retransmission::Selective);
    (0..4).for_each(|at| assert_eq!(responder.on_request(&request(at)), Arrival::Next));
    assert_eq!(responder.on_request(&request(2)), Arrival::Duplicate, "it waits for its turn");
    assert_eq!(execute(&mut responder), [0, 1, 2, 3]);
    assert_eq!(std::iter::from_fn(|| responder.poll_transmit()).count(), 4);
    assert_eq!(responder.on_request(&request(1)), Arrival::Answered);
    assert_eq!(responder.on_request(&request(1)), Arrival::Answered);
    let again: Vec<_> = std::iter::from_fn(|| responder.poll_transmit()).collect();
    assert!(matches!(again[..], [Packet::Response(ack)] if ack.sequence == Sequence(1)));
    assert_eq!(execute(&mut responder), [0_u32; 0]);
    // Windows are of eight: what is further off is of another attachment.
    assert_eq!(responder.on_request(&request(12)), Arrival::OutsideWindow);
    assert_eq!(responder.on_request(&request(u32::MAX - 5)), Arrival::OutsideWindow);
}

#[test]
fn go_back_n_keeps_nothing_and_says_so_once() {
    let mut responder = responder(Retransmission::GoBackN);
    assert_eq!(responder.on_request(&request(1)), Arrival::Dropped);
    assert_eq!(responder.on_request(&request(2)), Arrival::Dropped);
    assert_eq!(responder.poll_transmit(), Some(Packet::Negative(negative(0, 1))));
    assert_eq!(responder.poll_transmit(), None);
    (0..3).for_each(|at| assert_eq!(responder.on_request(&request(at)), Arrival::Next));
}

/// Requests that are sent again for each that is lost, at 1 % loss and 64 in flight: 1 to 2 by
/// marks (a lost response also costs its request), and about as many as are in flight by
/// go-back-N.
#[test]
fn selective_retransmission_sends_less_again_than_go_back_n() {
    use ethermem_cxl::agent::{Req, ReqOpcode, Tag};
    let resent = crate::world::KINDS.map(|kind| {
        let mut setup = crate::world::Setup::new();
        (setup.compute.cache, setup.compute.retransmission) = (None, kind);
        let faults = crate::world::Faults { lost: 10, ..crate::world::CALM };
        let mut network = crate::world::Network::new(5, &setup, faults);
        let (mut begun, mut ended) = (0_u32, 0);
        while ended < 20_000 {
            while begun < 20_000 && begun - ended < 64 {
                let (tag, address) = (Tag(begun as u16), u64::from(begun % 64) * 64);
                let req = Req { opcode: ReqOpcode::MemRd, tag, address };
                network.compute.on_req(network.now, req).unwrap();
                begun += 1;
            }
            assert!(network.step());
            ended += std::iter::from_fn(|| network.compute.poll_response()).count() as u32;
        }
        let counters = network.compute.requester_counters(ethermem_cxl::compute::NodeIndex(0));
        counters.unwrap().resent.iter().sum::<u64>()
    });
    let [selective, go_back] = resent;
    // 20,000 requests and their responses, 1 % of each lost.
    assert!((300..900).contains(&selective), "selective: {selective}");
    assert!(go_back > 10 * selective, "go-back-N: {go_back}, selective: {selective}");
}
