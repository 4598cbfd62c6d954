//! Bits change on the line, and links are cut. Whatever the receiver sees disables the link. Its
//! requests end with an error or go on by the other switch, and no data is ever wrong.

use ethermem_edm::{Address, EdmConfig, Event, FailReason, NodeId, Op, Request, Token};
use ethermem_units::{Bytes, Ps};
use ethermem_wire::BLOCK_BITS;
use proptest::prelude::*;

use crate::cases;
use crate::history::{Outcome, Submitted, memory_bytes, random_request};
use crate::links::{Network, SLOT};
use crate::rng::Rng;

const NODES: u16 = 4;
const TIMEOUT: Ps = Ps::from_ns(60_000);
const REQUESTS: u32 = 40;

/// What happens to a link.
#[derive(Clone, Debug)]
enum Fault {
    /// Bits flip on the line in one direction: (slots from now, bit of the block).
    Bits { upwards: bool, bits: Vec<(u64, u32)> },
    /// The link is cut.
    Cut,
}

/// A fault of a link, with its slot in the run.
#[derive(Clone, Debug)]
struct Strike {
    slot: u64,
    switch: usize,
    node: usize,
    fault: Fault,
    /// The delays after which host and switch may restart the link, once they have noticed the
    /// fault.
    repair: Option<(u64, u64)>,
}

/// True if both nodes have an intact link to one switch.
fn has_path(switches: u8, strikes: &[Strike], a: NodeId, b: NodeId) -> bool {
    let sound = |switch, node: NodeId| {
        let node = usize::from(node.number());
        !strikes.iter().any(|strike| strike.switch == switch && strike.node == node)
    };
    (0..usize::from(switches)).any(|switch| sound(switch, a) && sound(switch, b))
}

fn run(seed: u64, switches: u8, strikes: &[Strike]) -> Network {
    let what = format!("seed {seed}, {switches} switches, {strikes:?}");
    let mut rng = Rng(seed);
    let edm = EdmConfig { read_timeout: TIMEOUT, ..EdmConfig::default() };
    let mut network = Network::new(NODES, switches, memory_bytes(NODES), &edm);
    let mut submitted: Vec<Submitted> = Vec::new();
    let mut token = 0;
    // Some requests are submitted after the repair.
    let repaired = strikes.iter().any(|strike| strike.repair.is_some());
    let requests = if repaired { 3 * REQUESTS } else { REQUESTS };
    for slot in 0..(TIMEOUT.0 * 2 / SLOT.0) {
        for strike in strikes.iter().filter(|strike| strike.slot == slot) {
            let link = network.link(strike.switch, strike.node);
            match &strike.fault {
                Fault::Bits { upwards, bits } => network.damage(link, *upwards, bits),
                Fault::Cut => network.cut(link),
            }
        }
        for strike in strikes {
            let Some((host, switch)) = strike.repair else {
                continue;
            };
            for (after, at_host) in [(host, true), (switch, false)] {
                if slot == strike.slot + after {
                    network.restore(strike.switch, strike.node, at_host);
                }
            }
        }
        if token < requests && rng.percent(5) {
            let node = NodeId::at(rng.below(u64::from(NODES)) as u16);
            let (request, data) = random_request(&mut rng, Token(token), node, NODES);
            if network.submit(node, request, data.clone()) {
                submitted.push(Submitted { node, request, data, at: network.now });
            }
            token += 1;
        }
        network.step();
        let done = token == requests && network.events.len() == submitted.len();
        if done && strikes.iter().all(|strike| slot > strike.slot + 900) {
            break;
        }
    }
    for Submitted { node, request, at, .. } in &submitted {
        let found = network.events.get(&request.token);
        let &(event, end) = found.unwrap_or_else(|| panic!("{request:?} hangs: {what}"));
        if has_path(switches, strikes, *node, request.peer) {
            let failed = matches!(event, Event::Failed { .. });
            assert!(!failed, "{event:?} of {request:?} though there is a path: {what}");
        }
        let null = matches!(event, Event::Failed { why: FailReason::Timeout, .. });
        assert!(!null, "{request:?} waited for its deadline: {what}");
        assert!(end.0 - at.0 < TIMEOUT.0 / 2, "{request:?} took long: {what}");
    }
    let reads = network.data.iter().flat_map(|data| &data.reads);
    let outcome = Outcome {
        submitted: &submitted,
        events: &network.events,
        reads: reads.map(|(&token, read)| (token, read.as_slice())).collect(),
        memories: network.hosts.iter().map(|host| host.memory().as_bytes()).collect(),
        all_acknowledged: switches == 2,
        what: &what,
    };
    outcome.check();
    network
}

/// One or two bits anywhere, or a burst of up to three: each bit is three after the descrambler.
fn bits() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let single = (0..BLOCK_BITS).prop_map(|bit| vec![(0, bit)]);
    let double = ((0..BLOCK_BITS), (0_u64..3), (0..BLOCK_BITS))
        .prop_map(|(first, after, second)| vec![(0, first), (after, second)]);
    let burst = (2..BLOCK_BITS - 2).prop_map(|bit| (bit..bit + 3).map(|bit| (0, bit)).collect());
    prop_oneof![single, double, burst]
}

fn strike(switches: usize) -> impl Strategy<Value = Strike> {
    let damage = (any::<bool>(), bits()).prop_map(|(upwards, bits)| Fault::Bits { upwards, bits });
    let fault = prop_oneof![4 => damage, 1 => Just(Fault::Cut)];
    (0_u64..1_500, 0..switches, 0..usize::from(NODES), fault)
        .prop_map(|(slot, switch, node, fault)| Strike { slot, switch, node, fault, repair: None })
}

/// A strike after which both ends may restart the link, either of them first.
fn flap(switches: usize) -> impl Strategy<Value = Strike> {
    let after = prop_oneof![4 => 20_u64..120, 1 => 20_u64..700];
    (strike(switches), after.clone(), after)
        .prop_map(|(strike, host, switch)| Strike { repair: Some((host, switch)), ..strike })
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn with_one_switch_errors_end_what_they_hit(seed: u64, strike in strike(1)) {
        run(seed, 1, &[strike]);
    }

    #[test]
    fn with_two_switches_one_error_ends_nothing(seed: u64, strike in strike(2)) {
        run(seed, 2, &[strike]);
    }

    #[test]
    fn with_two_switches_more_errors_end_what_has_no_path(
        seed: u64,
        strikes in prop::collection::vec(strike(2), 2..4),
    ) {
        run(seed, 2, &strikes);
    }

    #[test]
    fn with_one_switch_links_that_start_anew_pass_nothing_of_before(
        seed: u64,
        flaps in prop::collection::vec(flap(1), 1..5),
    ) {
        run(seed, 1, &flaps);
    }

    #[test]
    fn with_two_switches_links_that_start_anew_pass_nothing_of_before(
        seed: u64,
        flaps in prop::collection::vec(flap(2), 1..5),
    ) {
        run(seed, 2, &flaps);
    }
}

/// A link is cut amid traffic and repaired. It is up soon after both ends may restart it, whichever
/// may first, and carries copies again.
#[test]
fn a_repaired_link_carries_traffic_again() {
    for (host, switch) in (0..40).map(|n| (60 + 3 * n, 60 + 7 * (40 - n))).chain([(60, 700)]) {
        let repair = Some((host, switch));
        let cut = Strike { slot: 100 + host, switch: 0, node: 1, fault: Fault::Cut, repair };
        let mut network = run(host, 1, &[cut]);
        assert!(network.is_up(0, 1), "host after {host}, switch after {switch}");
        let before = network.events.len();
        for (token, node) in (0..NODES).enumerate() {
            let peer = NodeId::at(if node == 1 { 2 } else { 1 });
            let token = Token(1_000 + token as u32);
            let op = Op::Read { bytes: Bytes(300) };
            let request = Request { token, peer, address: Address(0), op, fence: false };
            assert!(network.submit(NodeId::at(node), request, Vec::new()), "{request:?}");
        }
        (0..1_000).for_each(|_| network.step());
        let ends = network.events.range(Token(1_000)..);
        let done = ends.filter(|(_, (event, _))| matches!(event, Event::ReadDone { .. })).count();
        assert_eq!((done, network.events.len() - before), (usize::from(NODES), usize::from(NODES)));
    }
}

#[test]
fn an_error_in_any_block_that_means_something_disables_the_link() {
    let mut disabled = 0;
    for slot in 0..300 {
        let fault = Fault::Bits { upwards: slot % 2 == 0, bits: vec![(0, (slot % 66) as u32)] };
        let strike = Strike { slot: slot * 4, switch: 0, node: 1, fault, repair: None };
        let network = run(7, 1, &[strike]);
        disabled += usize::from(!network.switches[0].is_up(NodeId::at(1)));
    }
    // Most blocks of a link with little traffic are idles, and an idle with a wrong character
    // changes nothing.
    assert!(disabled > 30, "{disabled} of 300 errors were noticed");
}
