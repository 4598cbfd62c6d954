//! A message alone in the fabric takes the budget of its path and its serialisation, to the
//! picosecond.
//!
//! The serialisation is derived here from first principles, in slots of the link. An item that is
//! stored costs its blocks except the first at every hop. An item that is cut through costs these
//! once. Back-to-back items cost all of their slots.

use ethermem_edm::budget as edm;
use ethermem_sim::budget::{Operation, Stack, Timing, edm_stages, mac_stages};
use ethermem_sim::engine::{Alone, Fabric};
use ethermem_sim::fabrics::cxl::CxlConfig;
use ethermem_sim::fabrics::cxl::{Cxl, Flit, Sharing};
use ethermem_sim::fabrics::edm::Edm;
use ethermem_sim::fabrics::fastpass::Fastpass;
use ethermem_sim::fabrics::fastpass::FastpassConfig;
use ethermem_sim::fabrics::ideal::Ideal;
use ethermem_sim::fabrics::ird::Ird;
use ethermem_sim::fabrics::output_queued::OutputQueued;
use ethermem_sim::fabrics::raw_ethernet::RawEthernet;
use ethermem_sim::topology::LinkTiming;
use ethermem_sim::{FabricConfig, Kind};
use ethermem_units::{Bytes, Cycles, Ps};

use crate::support::{LINK_GBPS, fabric_config, message, run_messages};

const SIZES: [u64; 6] = [1, 8, 64, 256, 257, 5_840];
const CHUNK: u64 = 256;
/// Number of data blocks, /MS/ and /MT/ of a full chunk.
const CHUNK_BLOCKS: u64 = 32 + 2;

/// Every message of the tests: an atomic returns one word.
fn cases() -> impl Iterator<Item = (Kind, u64)> {
    let sizes = |kind| SIZES.into_iter().map(move |bytes| (kind, bytes));
    sizes(Kind::Read).chain(sizes(Kind::Write)).chain([(Kind::ReadModifyWrite, 8)])
}

fn operation(kind: Kind) -> Operation {
    match kind {
        Kind::Write => Operation::Write,
        Kind::Read | Kind::ReadModifyWrite => Operation::Read,
    }
}

/// Number of slots from the first block of the first chunk to the last of the last: chunks follow
/// each other.
fn data_slots(bytes: u64) -> u64 {
    let chunks_before_last = (bytes - 1) / CHUNK;
    let last_bytes = bytes - chunks_before_last * CHUNK;
    let last_blocks = last_bytes.div_ceil(8) + 2;
    chunks_before_last * CHUNK_BLOCKS + last_blocks - 1
}

/// Number of slots for which a request is stored at one hop: its blocks except the first.
fn request_slots(kind: Kind) -> u64 {
    match kind {
        Kind::Write => 0,
        // /MS/ has opcode, node, id and length; /MT/ has the address.
        Kind::Read => 2 - 1,
        // A fetch-and-add has one operand in addition.
        Kind::ReadModifyWrite => 3 - 1,
    }
}

/// The time of a message alone in a fabric, as a run of its own and as the denominator.
fn alone<F: Fabric>(config: &FabricConfig, kind: Kind, bytes: u64) -> Ps {
    // The start is not zero, where an idle link could hide a wait.
    let arrival = Ps(1_234_567);
    let (finished, _) = run_messages::<F>(config, &[message(arrival, kind, 0, 1, bytes)]);
    let run = finished[0] - arrival;
    let denominator = Alone::<F>::new(config).time(kind, Bytes(bytes));
    assert_eq!(run, denominator, "the denominator of a {kind:?} of {bytes} B");
    run
}

fn check<F: Fabric>(configs: &[FabricConfig], expected: impl Fn(&FabricConfig, Kind, u64) -> Ps) {
    for config in configs {
        for (kind, bytes) in cases() {
            let expected = expected(config, kind, bytes);
            let gbps = config.link.as_gbps_f64();
            assert_eq!(
                alone::<F>(config, kind, bytes),
                expected,
                "{kind:?} of {bytes} B at {gbps} Gb/s"
            );
        }
    }
}

/// All rates, and at the testbed's rate one configuration for each changed delay.
fn configs() -> Vec<FabricConfig> {
    let rates = LINK_GBPS.map(|gbps| fabric_config(&format!("nodes = 4\nlink_gbps = {gbps}")));
    let odd = fabric_config(
        "nodes = 3\nlink_gbps = 25\npropagation_ns = 123.457\ntransceiver_ns = 7.001\n\
         memory_access_ns = 61.803\npcs_clock_ns = 3.1\n[fabric.edm]\nscheduler_clock_ns = 0.7",
    );
    rates.into_iter().chain([odd]).collect()
}

fn memory_access(config: &FabricConfig, kind: Kind) -> Ps {
    if kind == Kind::Write { Ps::ZERO } else { config.memory_access }
}

#[test]
fn edm_takes_its_budget_and_the_slots_of_request_and_data() {
    check::<Edm>(&configs(), |config, kind, bytes| {
        let timing = Timing::of(config);
        // The budget is for first blocks. A request is stored whole at the switch and at the memory
        // node; data is cut through. Grants come a chunk apart, and well before the previous chunk
        // has left, so the chunks of a long message are back to back.
        let slots = 2 * request_slots(kind) + data_slots(bytes);
        timing.total(&edm_stages(operation(kind), &timing))
            + memory_access(config, kind)
            + config.link.block_time() * slots
    });
}

#[test]
fn raw_ethernet_takes_its_budget_and_every_frame_twice() {
    const DATA_MAX: u64 = 1_500 - 16;
    // Ethernet's 18 B and the memory header's 16 B are added to the data, at least 64 B; 8 B of
    // preamble precede it, 12 B of gap follow it.
    let frame = |data: u64| (data + 34).max(64);
    let tail = |data: u64| (8 + frame(data)).div_ceil(8) - 1;
    let with_gap = |data: u64| (8 + frame(data) + 12).div_ceil(8);
    check::<RawEthernet>(&configs(), |config, kind, bytes| {
        let timing = Timing::of(config);
        let full = (bytes - 1) / DATA_MAX;
        let last = bytes - full * DATA_MAX;
        // The last frame is stored at the switch, where it arrives before the full one in front of
        // it is gone. So the full ones, back to back, are stored once, and the last is stored once
        // behind them.
        let data = match full {
            0 => 2 * tail(last),
            _ => tail(DATA_MAX) + full * with_gap(DATA_MAX) + tail(last),
        };
        let request = if kind == Kind::Write { 0 } else { 2 * tail(0) };
        timing.total(&mac_stages(operation(kind), Stack::RawEthernet, &timing))
            + memory_access(config, kind)
            + config.link.block_time() * (request + data)
    });
}

#[test]
fn output_queued_takes_edms_path_without_the_scheduler() {
    check::<OutputQueued>(&configs(), |config, kind, bytes| {
        let timing = Timing::of(config);
        let budget = timing.total(&edm_stages(operation(kind), &timing));
        let links = LinkTiming::of(config);
        let cycles = |stages: &[Cycles]| links.cycles(stages.iter().copied().sum());
        let scheduled = timing.scheduler.duration(edm::MATCH);
        let (unscheduled, slots) = match kind {
            // There is no /N/ to the switch and no /G/ back: neither the two hops nor their stages.
            Kind::Write => {
                let stages = [
                    edm::GENERATE_REQUEST,
                    edm::IDENTIFY,
                    edm::INSERT,
                    edm::GENERATE_GRANT,
                    edm::RECEIVE_GRANT,
                    edm::GRANT_QUEUE,
                ];
                (cycles(&stages) + links.hop(edm::PCS) * 2, 0)
            }
            // The request is forwarded like data: it is stored only at the memory node.
            Kind::Read | Kind::ReadModifyWrite => {
                let matched = cycles(&[edm::IDENTIFY, edm::INSERT, edm::GENERATE_GRANT]);
                (matched - links.cycles(edm::FORWARD), request_slots(kind))
            }
        };
        budget - scheduled - unscheduled
            + memory_access(config, kind)
            + config.link.block_time() * (slots + data_slots(bytes))
    });
}

#[test]
fn the_ideal_takes_light_transceivers_and_bare_data() {
    check::<Ideal>(&configs(), |config, kind, bytes| {
        let crossings = if kind == Kind::Write { 1 } else { 2 };
        let link = config.transceiver * 2 + config.propagation;
        link * (2 * crossings)
            + memory_access(config, kind)
            + config.link.block_time() * (bytes.div_ceil(8) - 1)
    });
}

#[test]
fn the_testbed_takes_the_published_latency_and_the_slots_of_64_bytes() {
    // 25 GbE, all delays as published: 299.52 ns and 296.96 ns for the first block. 64 B are 8 data
    // blocks with /MS/ and /MT/, so 9 slots of 2.56 ns behind the first. The request's second block
    // is waited for at two hops.
    let testbed = fabric_config("nodes = 2\nlink_gbps = 25");
    assert_eq!(alone::<Edm>(&testbed, Kind::Read, 64), Ps(299_520 + 11 * 2_560));
    assert_eq!(alone::<Edm>(&testbed, Kind::Write, 64), Ps(296_960 + 9 * 2_560));
    // 98 B of frame and 8 B of preamble are 14 blocks; a request's 64 B and 8 B are 9.
    assert_eq!(alone::<RawEthernet>(&testbed, Kind::Write, 64), Ps(557_440 + 26 * 2_560));
    assert_eq!(alone::<RawEthernet>(&testbed, Kind::Read, 64), Ps(1_114_880 + (26 + 16) * 2_560));
}

#[test]
fn chunks_of_any_size_follow_each_other() {
    for chunk in [64, 128, 512, 1_024] {
        let config = fabric_config(&format!(
            "nodes = 2\nlink_gbps = 100\n[fabric.edm]\nchunk_bytes = {chunk}"
        ));
        let timing = Timing::of(&config);
        for (kind, operation, request) in
            [(Kind::Read, Operation::Read, 2), (Kind::Write, Operation::Write, 0)]
        {
            // Four full chunks and 9 B, which are two data blocks.
            let slots = request + 4 * (chunk / 8 + 2) + (2 + 2 - 1);
            let expected = timing.total(&edm_stages(operation, &timing)) + Ps(640 * slots);
            assert_eq!(alone::<Edm>(&config, kind, 4 * chunk + 9), expected, "{chunk} {kind:?}");
        }
    }
}

#[test]
fn the_denominator_of_a_long_message_is_that_of_running_it() {
    // The time of 4 MB is computed from five periods and the step between them; a run has no steps.
    fn check<F: Fabric>(config: &FabricConfig) {
        for kind in [Kind::Read, Kind::Write] {
            for bytes in [5 * 1_484, 16_000, 65_535, 1_000_003] {
                alone::<F>(config, kind, bytes);
            }
        }
    }
    let config = fabric_config("nodes = 2\nlink_gbps = 100");
    check::<Edm>(&config);
    check::<RawEthernet>(&config);
    check::<OutputQueued>(&config);
    check::<Ideal>(&config);
    check::<Ird>(&config);
    check::<Fastpass>(&config);
    check::<Cxl>(&config);
}

/// The frame of a payload with a 16 B memory header, as `raw-ethernet` counts it: its blocks on the
/// line, and its blocks except the first until it is whole.
fn mac_frame(data: u64) -> (u64, u64) {
    let frame = (data + 34).max(64);
    ((8 + frame + 12).div_ceil(8), (8 + frame).div_ceil(8) - 1)
}

const FRAME_DATA_MAX: u64 = 1_500 - 16;

/// Number of slots of a message's frames through the switch: the full ones are stored once, and the
/// last one waits behind them at its egress.
fn frames_back_to_back(bytes: u64) -> u64 {
    let full = (bytes - 1) / FRAME_DATA_MAX;
    let last = bytes - full * FRAME_DATA_MAX;
    match full {
        0 => 2 * mac_frame(last).1,
        _ => mac_frame(FRAME_DATA_MAX).1 + full * mac_frame(FRAME_DATA_MAX).0 + mac_frame(last).1,
    }
}

#[test]
fn ird_takes_a_credit_across_and_the_data_back() {
    check::<Ird>(&configs(), |config, kind, bytes| {
        let timing = Timing::of(config);
        // This holds for a write, too: its receiver knows of it at once, but its sender waits for
        // the credit.
        let budget = timing.total(&mac_stages(Operation::Read, Stack::RawEthernet, &timing));
        // Credits are paced as the frames that they request, so these follow each other without a
        // gap.
        let data = frames_back_to_back(bytes);
        budget
            + memory_access(config, kind)
            + config.link.block_time() * (2 * mac_frame(0).1 + data)
    });
}

#[test]
fn fastpass_takes_a_demand_an_allocation_and_the_data_across() {
    let slow = fabric_config("nodes = 4\n[fabric.fastpass]\narbiter_gbps = 10");
    let configs: Vec<FabricConfig> = configs().into_iter().chain([slow]).collect();
    check::<Fastpass>(&configs, |config, kind, bytes| {
        let timing = Timing::of(config);
        // The decision takes no time, and the allocation of a read carries its request.
        let crossing = timing.total(&mac_stages(Operation::Write, Stack::RawEthernet, &timing));
        let arbiter = config.of::<FastpassConfig>().arbiter_link.unwrap_or(config.link);
        crossing * 3
            + memory_access(config, kind)
            + (arbiter.block_time() + config.link.block_time()) * (2 * mac_frame(0).1)
            + config.link.block_time() * frames_back_to_back(bytes)
    });
}

#[test]
fn cxl_takes_its_ports_the_switch_and_every_flit() {
    let keys = "nodes = 3\n[fabric.cxl]\n";
    let large = fabric_config(&format!("{keys}flit_bytes = 256"));
    let odd = fabric_config(&format!(
        "propagation_ns = 3.003\nmemory_access_ns = 80\n{keys}port_ns = 21.5\nswitch_ns = 93.001\n\
         credit_return_ns = 4"
    ));
    let mut configs: Vec<FabricConfig> = configs().into_iter().chain([large, odd]).collect();
    for config in &mut configs {
        // A round trip is 71 lines at 400 Gb/s.
        config.parameters.of_mut::<CxlConfig>().sharing = Sharing::Shared { entries: 128 };
    }
    check::<Cxl>(&configs, |config, kind, bytes| {
        // Slots of a flit and twice its blocks: 68 B are 8.5 blocks.
        let (slots, half_blocks) =
            if config.of::<CxlConfig>().flit == Flit::Bytes256 { (15, 64) } else { (4, 17) };
        let flit = Ps(half_blocks * config.link.block_time().0 / 2);
        let lines = bytes.div_ceil(64);
        let crossing = config.of::<CxlConfig>().port * 2
            + config.propagation * 2
            + config.of::<CxlConfig>().switch;
        // A line has a header and four slots of data; a partial line has byte enables.
        let enables = u64::from(kind == Kind::Write && !bytes.is_multiple_of(64));
        // The first line is whole at the switch before any of it goes on; the rest follow it.
        let data =
            crossing + flit * (5_u64.div_ceil(slots) + (5 * lines + enables).div_ceil(slots));
        if kind == Kind::Write {
            return data;
        }
        // The first requests, at most four, fit a flit.
        data + crossing + flit * 2 + config.memory_access
    });
}
