//! Transports that repair losses, compared with known results.

use ethermem_sim::engine::{Alone, RunEnd};
use ethermem_sim::fabrics::roce::Roce;
use ethermem_sim::fabrics::tcp::Tcp;
use ethermem_sim::metrics::{PacketCounts, SteadyState};
use ethermem_sim::packet::Frame;
use ethermem_sim::{Kind, Message};
use ethermem_units::{Bytes, Ps};

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

/// Time of a frame from host to host across one switch, without stacks and serialisation (Table 1
/// of EDM).
const WAY: Ps = Ps(557_440);

/// Time of a full frame on a link of 100 Gb/s.
fn line() -> Ps {
    Ps(640) * u64::from(Frame::of(1_500).line)
}

fn counts(end: &RunEnd) -> &PacketCounts {
    end.stats.packets.as_ref().expect("packets")
}

/// Reads of EDM that are given up never end: they stay in the backlog. Alone
/// a read takes its time, however long one waits for it, so that bounds have something to be held
/// against.
#[test]
fn lost_reads_are_no_carried_load() {
    let scenario = scenario(
        "[fabric]\nnodes = 4\nedm.read_timeout_us = 0.1\n[workload]\nload = 0.5\nmessages = 20000",
    );
    let result = run_scenario(&scenario, "edm", None);
    assert_eq!(result.kinds.read.messages, 0);
    let share = result.messages_lost as f64 / 20_000.0;
    assert!((0.45..0.55).contains(&share), "every read: {share}");
    let steady = result.steady.as_ref().expect("synthetic messages");
    assert_eq!(steady.state, SteadyState::NotSustained);
    let carried = steady.load_carried.expect("a long run");
    assert!((carried / 0.5 - (1.0 - share)).abs() < 0.05, "{carried}");
    for bound in ["ideal", "output-queued"] {
        let result = run_scenario(&scenario, bound, None);
        assert_eq!((result.messages_finished, result.messages_lost), (20_000, 0), "{bound}");
        assert!(result.kinds.read.slowdown_mean.is_some(), "{bound}");
    }
}

#[test]
fn windows_of_tcp_are_saw_teeth_that_two_flows_share() {
    // A packet to the destination and its acknowledgement back each pass through two hosts' stacks.
    let tails = u64::from(Frame::of(1_500).tail + Frame::of(40).tail);
    let round_trip = (WAY + Ps(2 * 666_200)) * 2 + Ps(640) * (2 * tails);
    let path = (round_trip.0 / line().0) as f64;
    for buffer_packets in [60, 80, 120, 160, 240] {
        let buffer_bytes = buffer_packets * Frame::of(1_500).line_bytes();
        let config = fabric_config(&format!(
            "nodes = 3\n[fabric.tcp]\nconnections = \"per-message\"\nbuffer_bytes = {buffer_bytes}"
        ));
        let packets = [83_000, 166_000];
        let run = |each: u64| {
            let write = |node| message(Ps(1_000), Kind::Write, node, 2, each * 1_444);
            run_messages::<Tcp>(&config, &[0, 1].map(write))
        };
        let [(_, short), (finished, long)] = packets.map(run);
        // Losses of the first slow start are in both runs. After it the sum P of two windows fills
        // path and buffer, and both lose a packet. P / 2 grows by 2 per round trip: 3 P^2 / 16
        // packets for 2 losses. More are lost where a flow takes what the other has left.
        let dropped = (counts(&long).dropped - counts(&short).dropped) as f64;
        let most = path + buffer_packets as f64;
        let expected = 2.0 * 2.0 * (packets[1] - packets[0]) as f64 / (3.0 * most * most / 16.0);
        assert!((1.0..1.35).contains(&(dropped / expected)), "{dropped} for {expected}");
        assert_eq!(counts(&long).timeouts, 0);
        // A buffer larger than the path keeps the link busy through every tooth.
        let [first, last] =
            [finished.iter().min(), finished.iter().max()].map(|end| *end.expect("two"));
        let busy = line() * (2 * packets[1]);
        assert!(last.0 as f64 / (busy.0 as f64) < 1.01, "{last} for {busy}");
        // No flow has more than 54 % of the link for long: Jain's index is over 0.99.
        let share = (line() * packets[1]).0 as f64 / first.0 as f64;
        assert!(share < 0.54, "{share} of the link");
    }
}

#[test]
fn go_back_n_sends_all_from_the_first_that_is_missing() {
    let payload = 1_500 - 44 - 16;
    let config = |buffer_bytes: u64| {
        fabric_config(&format!("nodes = 3\n[fabric.roce]\nbuffer_bytes = {buffer_bytes}"))
    };
    let write = |at, from, packets| message(at, Kind::Write, from, 2, packets * payload);
    // The long write begins half a packet behind a burst of six, into a buffer of six: when the
    // last packet of the burst arrives, the long write's sixth has no room.
    let (began, late) = (Ps(1_000), Ps(61_000));
    let writes: [Message; 2] = [write(began, 0, 6), write(late, 1, 100)];
    let (finished, end) = run_messages::<Roce>(&config(10_000), &writes);
    let (undisturbed, _) = run_messages::<Roce>(&config(1_000_000), &writes);
    assert_eq!(finished[0], undisturbed[0]);

    // The two alternate: the seventh packet arrives at turn 11 of the port, and is answered by a
    // NAK. Everything from the sixth on was sent until then, and is sent again.
    let stacks = Ps(2 * 230_200);
    let alone = Alone::<Roce>::new(&config(10_000)).time(Kind::Write, Bytes(payload));
    let nak = WAY + stacks + Ps(640) * (2 * u64::from(Frame::of(44).tail));
    let told = began + alone + line() * 11 + nak;
    let again = (told - (late + line() * 5)).0.div_ceil(line().0);
    let counts = counts(&end);
    assert_eq!((counts.dropped, counts.timeouts, counts.retransmitted), (1, 0, again));
    // There are also 106 packets, two acknowledgements and the NAK.
    assert_eq!(counts.sent, 106 + 2 + 1 + again);
    // The port was never idle, so each of these packets except the dropped one cost its time.
    assert_eq!(finished[1], undisturbed[1] + line() * (again - 1));
}

#[test]
fn go_back_n_waits_for_its_timeout_where_nobody_can_tell() {
    // The last packet of a message is lost: no packet behind it would be out of order.
    let config = fabric_config("nodes = 3\n[fabric.roce]\nbuffer_bytes = 10000\ntimeout_us = 67");
    let payload = 1_500 - 44 - 16;
    let write = |from, packets| message(Ps(1_000), Kind::Write, from, 2, packets * payload);
    let (finished, end) = run_messages::<Roce>(&config, &[write(0, 100), write(1, 6)]);
    let counts = counts(&end);
    // An acknowledgement covers 256 packets, so all six are sent again.
    assert_eq!((counts.dropped, counts.timeouts, counts.retransmitted), (1, 1, 6));
    let alone = Alone::<Roce>::new(&config).time(Kind::Write, Bytes(6 * payload));
    let sent = Ps(1_000) + line() * 6;
    assert_eq!(finished[1], sent + Ps::from_ns(67_000) + alone);
}
