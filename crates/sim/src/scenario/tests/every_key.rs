//! Every key of a scenario, parsed into its meaning.

use ethermem_edm::{Arbitration, Order, Policy};

use super::*;
use crate::fabrics::Framing;
use crate::fabrics::cxl::{Flit, Queues, Sharing};
use crate::fabrics::cxl_ethernet::CxlEthernetConfig;
use crate::fabrics::dfabric::DfabricConfig;
use crate::fabrics::edm_artifact::Release;
use crate::fabrics::fastpass::Starts;
use crate::fabrics::ndp::{HostQueue, PullOrder};
use crate::fabrics::pfc::Thresholds;
use crate::packet::{ConnectionConfig, RenoConfig};
use crate::topology::{Balancing, LeafSpine, Switching};

/// A scenario in which no key has its default.
const EVERY_KEY: &str = r#"
        [fabric]
        kind = "raw-ethernet"
        nodes = 16
        topology = "leaf-spine"
        link_gbps = 25
        propagation_ns = 12.5
        transceiver_ns = 20
        memory_access_ns = 82
        pcs_clock_ns = 1.28
        [fabric.edm]
        chunk_bytes = 128
        notifications_max = 8
        policy = "auto"
        order = "relaxed"
        arbitration = "strict"
        batching = false
        read_timeout_us = 2.5
        scheduler_clock_ns = 0.333
        lookahead_iterations = 3
        ahead_blocks = 40
        egress_window_blocks = 500
        [fabric.edm_artifact]
        release = "sent"
        under_way_bytes = 512
        left_over = true
        [fabric.ird]
        framing = "phy"
        window_bytes = 9000
        [fabric.fastpass]
        arbiter_gbps = 400
        timeslot_bytes = 1000
        allocation_timeslots = 3
        epoch_timeslots = 5
        starts = "together"
        arbiter_beside = 9
        [fabric.cxl]
        flit_bytes = 256
        credits = "shared"
        queues = "per-output"
        buffer_entries = 7
        switch_ns = 100
        port_ns = 21.5
        credit_return_ns = 8
        requests_per_entry = 2
        [fabric.leaf_spine]
        rack_nodes = 8
        spines = 2
        propagation_ns = 30.5
        balancing = "spray"
        [fabric.packet]
        mtu_bytes = 9000
        memory_header_bytes = 8
        forwarding_ns = 250.5
        switching = "cut-through"
        stack_ns = 0
        [fabric.dctcp]
        header_bytes = 52
        buffer_bytes = 36864
        ecn_threshold_bytes = 30000
        gain = 0.25
        alpha_initial = 0
        window_packets_min = 3
        connections = "per-message"
        window_packets_initial = 3
        rto_min_us = 10000
        duplicate_acks = 4
        rto_doublings = 0
        [fabric.ndp]
        header_bytes = 48
        queue_packets = 6
        header_queue_bytes = 9000
        headers_per_data = 5
        trim_arriving_fraction = 0.25
        window_packets_initial = 30
        host_queue = "arrival"
        pull_order = "fewest-missing"
        rto_us = 400
        [fabric.pfabric]
        header_bytes = 44
        buffer_bytes = 36864
        window_packets_initial = 12
        window_packets_max = 15
        rto_us = 45
        probe_after = 6
        acknowledgements_first = false
        [fabric.tcp]
        header_bytes = 48
        buffer_bytes = 50000
        ack_packets = 3
        ack_delay_us = 5
        rto_min_us = 100
        duplicate_acks = 5
        rto_doublings = 16
        [fabric.pfc]
        header_bytes = 64
        thresholds = "static"
        xoff_bytes = 100000
        xon_bytes = 50000
        headroom_bytes = 30000
        ecn_min_bytes = 6000
        ecn_max_bytes = 70000
        ecn_chance_max = 0.5
        cnp_interval_us = 4
        gain = 0.125
        alpha_initial = 0.5
        alpha_timer_us = 5
        increase_timer_us = 6
        byte_counter_bytes = 150000
        recovery_stages = 3
        additive_mbps = 50.5
        hyper_mbps = 500
        rate_min_mbps = 1000
        ack_messages = 3
        ack_delay_us = 7
        [fabric.clio]
        header_bytes = 28
        buffer_bytes = 30000
        window_requests_initial = 20
        window_requests_max = 40
        queueing_target_us = 2
        incast_bytes = 9000
        retry_min_us = 20
        retry_max_us = 30
        clock_ns = 0.5
        width_bytes = 32
        tlb_entries = 8
        processes = 3
        pages = 7
        jitter_ns = 10
        [fabric.homa]
        header_bytes = 60
        buffer_bytes = 1000000
        priorities = 4
        unscheduled_priorities = 2
        unscheduled_bytes = 9700
        overcommitment = 5
        resend_us = 2000
        incast_requests = 12
        first_choice_messages = 3
        choice_messages = 7
        [fabric.phost]
        header_bytes = 42
        buffer_bytes = 20000
        free_packets = 4
        short_packets = 6
        token_lifetime_packets = 2.5
        tokens_unused_max = 12
        downgrade_packets = 30.5
        downgrade_ends_with_data = false
        timeout_us = 4.5
        timeout_growth = 1.5
        free_wait_packets = 3
        [fabric.roce]
        header_bytes = 60
        buffer_bytes = 40000
        timeout_us = 67
        ack_packets = 3
        [background]
        load = 0.25
        frame_bytes = 9018
        arbitration = "strict"
        [workload]
        kind = "poisson"
        pattern = "incast"
        incast_fan_in = 7
        incast_receiver = 15
        load = 0.75
        size_cdf = "workloads/memcached.csv"
        read_fraction = 0.6
        rmw_fraction = 0.4
        messages = 5
        [run]
        seed = 18446744073709551615
        warmup_fraction = 0
        cooldown_fraction = 0.5
    "#;

/// The packet parameters in `EVERY_KEY`.
fn packets_of_every_key() -> PacketConfig {
    PacketConfig {
        mtu: Bytes(9_000),
        memory_header: Bytes(8),
        forwarding: Ps(250_500),
        switching: Switching::CutThrough,
        stack: Some(Ps(0)),
    }
}

/// The parameters of `ndp` in it.
fn ndp_of_every_key() -> NdpConfig {
    NdpConfig {
        header: Bytes(48),
        queue_packets: 6,
        header_queue: Some(Bytes(9_000)),
        headers_per_data: 5,
        trim_arriving: 0.25,
        window_packets_initial: Some(30),
        host_queue: HostQueue::Arrival,
        pull_order: PullOrder::FewestMissing,
        timeout: Ps::from_ns(400_000),
    }
}

/// The parameters of `pfabric` in it.
fn pfabric_of_every_key() -> PfabricConfig {
    PfabricConfig {
        header: Bytes(44),
        buffer: Some(Bytes(36_864)),
        window_packets_initial: Some(12),
        window_packets_max: Some(15),
        timeout: Some(Ps::from_ns(45_000)),
        probe_after: 6,
        acknowledgements_first: false,
    }
}

/// The parameters of `pfc` in it.
fn pfc_of_every_key() -> PfcConfig {
    PfcConfig {
        header: Bytes(64),
        thresholds: Thresholds::Static,
        alpha: 1.0,
        buffer: None,
        xoff: Some(Bytes(100_000)),
        xon: Some(Bytes(50_000)),
        xon_offset: None,
        headroom: Some(Bytes(30_000)),
        ecn_min: Some(Bytes(6_000)),
        ecn_max: Some(Bytes(70_000)),
        ecn_chance: 0.5,
        cnp_interval: Ps::from_ns(4_000),
        gain: 0.125,
        alpha_initial: 0.5,
        alpha_timer: Ps::from_ns(5_000),
        increase_timer: Ps::from_ns(6_000),
        byte_counter: Some(Bytes(150_000)),
        recovery_stages: 3,
        additive_mbps: Some(50.5),
        hyper_mbps: Some(500.0),
        rate_min_mbps: Some(1_000.0),
        ack_messages: 3,
        ack_delay: Ps::from_ns(7_000),
    }
}

/// The parameters of `tcp` in it.
fn tcp_of_every_key() -> TcpConfig {
    TcpConfig {
        header: Bytes(48),
        buffer: Bytes(50_000),
        connections: ConnectionConfig {
            lasting: true,
            ack_packets: 3,
            ack_delay: Ps::from_ns(5_000),
        },
        reno: RenoConfig {
            window_packets_initial: 2,
            timeout_min: Ps::from_ns(100_000),
            duplicates: 5,
            doublings: 16,
        },
    }
}

/// The parameters of `dctcp` in it.
fn dctcp_of_every_key() -> DctcpConfig {
    DctcpConfig {
        header: Bytes(52),
        buffer: Bytes(36_864),
        ecn_threshold: Bytes(30_000),
        gain: 0.25,
        alpha_initial: 0.0,
        window_packets_min: 3,
        connections: ConnectionConfig::PER_MESSAGE,
        reno: RenoConfig {
            window_packets_initial: 3,
            timeout_min: Ps::from_ns(10_000_000),
            duplicates: 4,
            doublings: 0,
        },
    }
}

/// The parameters of `clio` in it.
fn clio_of_every_key() -> ClioConfig {
    ClioConfig {
        header: Bytes(28),
        buffer: Bytes(30_000),
        window_initial: Some(20),
        window_max: 40,
        queueing_target: Ps::from_ns(2_000),
        incast: Some(Bytes(9_000)),
        retry_min: Ps::from_ns(20_000),
        retry_max: Ps::from_ns(30_000),
        clock: Ps(500),
        width: Bytes(32),
        tlb_entries: 8,
        processes: 3,
        pages: 7,
        jitter: Ps::from_ns(10),
    }
}

/// The parameters of `roce` in it.
fn roce_of_every_key() -> RoceConfig {
    RoceConfig {
        header: Bytes(60),
        buffer: Bytes(40_000),
        timeout: Ps::from_ns(67_000),
        ack_packets: 3,
    }
}

/// The parameters of `homa` in it.
fn homa_of_every_key() -> HomaConfig {
    HomaConfig {
        header: Bytes(60),
        buffer: Bytes(1_000_000),
        priorities: 4,
        unscheduled_priorities: Some(2),
        unscheduled: Some(Bytes(9_700)),
        overcommitment: Some(5),
        resend: Ps::from_ns(2_000_000),
        incast_requests: Some(12),
        first_choice_messages: 3,
        choice_messages: 7,
    }
}

/// The parameters of `phost` in it.
fn phost_of_every_key() -> PhostConfig {
    PhostConfig {
        header: Bytes(42),
        buffer: Bytes(20_000),
        free_packets: 4,
        short_packets: 6,
        token_lifetime_packets: 2.5,
        tokens_unused_max: Some(12),
        downgrade_packets: 30.5,
        downgrade_ends_with_data: false,
        timeout: Ps::from_ns(4_500),
        timeout_growth: 1.5,
        free_wait_packets: 3.0,
    }
}

/// The parameters of all fabrics in it.
fn parameters_of_every_key() -> AllParameters {
    let edm = EdmConfig {
        chunk: Bytes(128),
        notifications_max: 8,
        policy: Policy::Auto,
        order: Order::Relaxed,
        arbitration: Arbitration::Strict,
        batching: false,
        read_timeout: Ps(2_500_000),
        scheduler_clock: Some(Ps(333)),
        lookahead_iterations: 3,
        ahead_blocks: 40,
        egress_window_blocks: Some(500),
    };
    // A fabric that is not in `EVERY_KEY` keeps its defaults.
    let mut parameters = default_parameters();
    parameters.set(EdmParameters(edm));
    parameters.set(ArtifactConfig {
        release: Release::Sent,
        under_way: Bytes(512),
        left_over: true,
    });
    parameters.set(IrdConfig { framing: Framing::Phy, window: Some(Bytes(9_000)) });
    parameters.set(FastpassConfig {
        arbiter_link: BitsPerSecond::from_gbps(400).ok(),
        timeslot: Bytes(1_000),
        allocation_timeslots: 3,
        epoch_timeslots: Some(5),
        starts: Starts::Together,
        arbiter_beside: 9,
    });
    parameters.set(CxlConfig {
        flit: Flit::Bytes256,
        sharing: Sharing::Shared { entries: 7 },
        queues: Queues::PerOutput,
        requests_each: 2,
        switch: Ps(100_000),
        port: Ps(21_500),
        credit_return: Ps(8_000),
    });
    parameters.set(clio_of_every_key());
    parameters.set(dctcp_of_every_key());
    parameters.set(homa_of_every_key());
    parameters.set(ndp_of_every_key());
    parameters.set(pfabric_of_every_key());
    parameters.set(pfc_of_every_key());
    parameters.set(phost_of_every_key());
    parameters.set(roce_of_every_key());
    parameters.set(tcp_of_every_key());
    // At a quarter of the paper's rate, its defaults are a quarter of the rate and four times as
    // patient.
    let cxl_ethernet = parameters.of_mut::<CxlEthernetConfig>();
    cxl_ethernet.retry_after = Ps::from_ns(80_000);
    cxl_ethernet.give_up_after = Ps::from_ns(40_000_000);
    (cxl_ethernet.control.line.0, cxl_ethernet.control.initial.0) = (25_000, 25_000);
    parameters.of_mut::<DfabricConfig>().timeout = Ps::from_ns(800_000);
    parameters
}

#[test]
fn every_key_is_read() {
    let text = EVERY_KEY;
    let scenario = parse(text).expect("a scenario");
    let fabric = FabricConfig {
        nodes: 16,
        topology: Topology::LeafSpine(LeafSpine {
            rack_nodes: 8,
            spines: 2,
            propagation: Ps(30_500),
            balancing: Some(Balancing::Spray),
            link: None,
        }),
        link: BitsPerSecond::from_gbps(25).expect("an Ethernet rate"),
        propagation: Ps(12_500),
        transceiver: Ps(20_000),
        memory_access: Ps(82_000),
        pcs_clock: Ps(1_280),
        packet: packets_of_every_key(),
        background: Background {
            load: 0.25,
            frame_bytes: 9018,
            arbitration: FrameArbitration::Strict,
        },
        parameters: parameters_of_every_key(),
    };
    let workload = WorkloadConfig::Poisson(PoissonConfig {
        pattern: Pattern::Incast { fan_in: 7, receiver: 15 },
        load: 0.75,
        sizes: built_in("memcached").expect("built in"),
        read_fraction: 0.6,
        rmw_fraction: 0.4,
        messages: 5,
    });
    let run = RunConfig {
        seed: u64::MAX,
        warmup_fraction: 0.0,
        cooldown_fraction: 0.5,
        length: Length::Given,
    };
    let expected = Scenario { fabric_kind: "raw-ethernet".into(), fabric, workload, run };
    assert_eq!(scenario, expected);
}

#[test]
fn keys_that_others_leave_no_room_for_are_read_too() {
    let text = "[fabric.pfc]\nthresholds = \"dynamic\"\nalpha = 0.25\nbuffer_bytes = 90000000\n\
                xon_offset_bytes = 5000\n\
                [fabric.cxl]\nrequest_entries = 3\nwrite_entries = 4\n\
                response_entries = 5";
    let fabric = parse(text).expect("a scenario").fabric;
    let pfc = PfcConfig {
        thresholds: Thresholds::Dynamic,
        alpha: 0.25,
        buffer: Some(Bytes(90_000_000)),
        xon_offset: Some(Bytes(5_000)),
        ..PfcConfig::default()
    };
    assert_eq!(fabric.of::<PfcConfig>(), &pfc);
    let own = Sharing::ByClass { request_entries: 3, write_entries: 4, response_entries: 5 };
    let cxl = CxlConfig { sharing: own, ..CxlConfig::default() };
    assert_eq!(fabric.of::<CxlConfig>(), &cxl);
}
