//! Bits change on the line, links are cut: whatever the receiver sees ends the link, what hung on
//! it ends with an error or goes on by the other switch, and no data is ever wrong.

use ethermem_edm::{EdmConfig, Event, FailReason, NodeId, Token};
use ethermem_units::Ps;
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
    /// Bits flip on the line, in one direction: (slots from then, bit of the block).
    Bits { upwards: bool, bits: Vec<(u64, u32)> },
    /// The link is cut.
    Cut,
}

/// A fault of a link, so many slots into the run.
#[derive(Clone, Debug)]
struct Strike {
    slot: u64,
    switch: usize,
    node: usize,
    fault: Fault,
}

/// Whether two nodes have a switch to which both have a link that nothing happened to.
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
    for slot in 0..(TIMEOUT.0 * 2 / SLOT.0) {
        for strike in strikes.iter().filter(|strike| strike.slot == slot) {
            let link = network.link(strike.switch, strike.node);
            match &strike.fault {
                Fault::Bits { upwards, bits } => network.damage(link, *upwards, bits),
                Fault::Cut => network.cut(link),
            }
        }
        if token < REQUESTS && rng.percent(5) {
            let node = NodeId::at(rng.below(u64::from(NODES)) as u16);
            let (request, data) = random_request(&mut rng, Token(token), node, NODES);
            if network.submit(node, request, data.clone()) {
                submitted.push(Submitted { node, request, data, at: network.now });
            }
            token += 1;
        }
        network.step();
        let done = token == REQUESTS && network.events.len() == submitted.len();
        if done && strikes.iter().all(|strike| slot > strike.slot + 500) {
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

/// One or two bits anywhere, or a burst of up to three: each is three after the descrambler.
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
        .prop_map(|(slot, switch, node, fault)| Strike { slot, switch, node, fault })
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
}

#[test]
fn an_error_in_any_block_that_means_something_disables_the_link() {
    let mut disabled = 0;
    for slot in 0..300 {
        let fault = Fault::Bits { upwards: slot % 2 == 0, bits: vec![(0, (slot % 66) as u32)] };
        let network = run(7, 1, &[Strike { slot: slot * 4, switch: 0, node: 1, fault }]);
        disabled += usize::from(!network.switches[0].is_up(NodeId::at(1)));
    }
    // Most of a link that carries little is idles, and an idle with a wrong character is no more
    // than that.
    assert!(disabled > 30, "{disabled} of 300 errors were noticed");
}
