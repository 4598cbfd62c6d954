use super::*;

const NODES: u16 = 8;

fn link() -> BitsPerSecond {
    BitsPerSecond::from_gbps(100).expect("an Ethernet rate")
}

fn config(pattern: Pattern) -> PoissonConfig {
    let sizes = SizeDistribution::from_points(&[(64, 0.5), (264, 1.0)]).expect("a distribution");
    PoissonConfig {
        pattern,
        load: 0.7,
        sizes,
        read_fraction: 0.5,
        rmw_fraction: 0.2,
        messages: 400_000,
    }
}

/// Data in blocks with two blocks of framing, and requests of different sizes for each kind.
fn blocks(kind: Kind, bytes: Bytes) -> LinkBlocks {
    let data = bytes.to_blocks().0 as f64 + 2.0;
    match kind {
        Kind::Write => LinkBlocks {
            compute_uplink: data + 1.0,
            compute_downlink: 1.0,
            memory_uplink: 0.0,
            memory_downlink: data,
        },
        Kind::Read | Kind::ReadModifyWrite => LinkBlocks {
            compute_uplink: 2.0,
            compute_downlink: data,
            memory_uplink: data,
            memory_downlink: 2.5,
        },
    }
}

fn draw_all(source: &mut Poisson) -> Vec<Message> {
    std::iter::from_fn(|| source.next_message().expect("synthetic messages never fail")).collect()
}

fn patterns() -> [Pattern; 4] {
    [
        Pattern::AllToAll,
        Pattern::Incast { fan_in: 3, receiver: 6 },
        Pattern::Permutation,
        Pattern::HotSpot { fraction: 0.4, node: 5 },
    ]
}

#[test]
fn the_busiest_link_gets_the_load() {
    for pattern in patterns() {
        let config = config(pattern);
        let mut source = Poisson::new(&config, NODES, link(), 3, &blocks).expect("a short run");
        let offered = source.offered();
        let messages = draw_all(&mut source);
        let mut uplink = [0.0; NODES as usize];
        let mut downlink = [0.0; NODES as usize];
        let mut bytes = 0;
        for message in &messages {
            let taken = blocks(message.kind, message.bytes);
            uplink[usize::from(message.compute)] += taken.compute_uplink;
            downlink[usize::from(message.compute)] += taken.compute_downlink;
            uplink[usize::from(message.memory)] += taken.memory_uplink;
            downlink[usize::from(message.memory)] += taken.memory_downlink;
            bytes += message.bytes.0;
        }
        let run_ps = messages.last().expect("messages").arrival.0 as f64;
        let busiest = uplink.into_iter().chain(downlink).fold(0.0, f64::max);
        let load = busiest * link().block_time().0 as f64 / run_ps;
        // The most loaded of 16 links is over its mean; 1 % is five standard deviations of the sum.
        assert!((load / 0.7 - 1.0).abs() < 0.01, "{pattern:?}: load {load}");
        let goodput_gbps = bytes as f64 * 8e3 / run_ps;
        let ratio = goodput_gbps / offered.goodput_gbps_total;
        assert!((ratio - 1.0).abs() < 0.01, "{pattern:?}: goodput {goodput_gbps} Gb/s");
        assert!(offered.goodput_gbps_busiest < 70.0, "{pattern:?}: {offered:?}");
    }
}

#[test]
fn the_offered_load_is_exact() {
    // 64 B writes, 8 nodes, all-to-all. An uplink carries 1/8 of the messages as compute node with
    // 11 blocks and 1/8 as memory node with 0; a downlink 10/8 + 1/8.
    let config = PoissonConfig {
        sizes: SizeDistribution::fixed(Bytes(64)),
        read_fraction: 0.0,
        rmw_fraction: 0.0,
        ..config(Pattern::AllToAll)
    };
    let source = Poisson::new(&config, NODES, link(), 1, &blocks).expect("a short run");
    let offered = source.offered();
    assert!((offered.blocks_per_message - 11.0 / 8.0).abs() < 1e-12, "{offered:?}");
    assert!((offered.messages_per_s / (0.7 * 8.0 / (11.0 * 640e-12)) - 1.0).abs() < 1e-12);
    assert!((offered.bytes_mean - 64.0).abs() < 1e-9);
    // 8 of 11 blocks are data, so 70 Gb/s are reduced by that ratio.
    assert!((offered.goodput_gbps_busiest - 70.0 * 8.0 / 11.0).abs() < 1e-9, "{offered:?}");
}

#[test]
fn kinds_come_in_their_shares_and_atomics_return_a_word() {
    let mut source =
        Poisson::new(&config(Pattern::AllToAll), NODES, link(), 5, &blocks).expect("a short run");
    let messages = draw_all(&mut source);
    let share = |kind| {
        messages.iter().filter(|message| message.kind == kind).count() as f64
            / messages.len() as f64
    };
    // Five standard deviations of a half over 400,000 draws are 0.004.
    assert!((share(Kind::Read) - 0.5).abs() < 0.004);
    assert!((share(Kind::Write) - 0.3).abs() < 0.004);
    assert!((share(Kind::ReadModifyWrite) - 0.2).abs() < 0.004);
    for message in &messages {
        if message.kind == Kind::ReadModifyWrite {
            assert_eq!(message.bytes, RMW_BYTES);
        }
    }
}

#[test]
fn gaps_are_exponential() {
    let mut source =
        Poisson::new(&config(Pattern::AllToAll), NODES, link(), 11, &blocks).expect("a short run");
    let mean = 1e12 / source.offered().messages_per_s;
    let messages = draw_all(&mut source);
    let gaps: Vec<f64> =
        messages.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival).0 as f64).collect();
    for multiple in [0.1, 0.5, 1.0, 2.0, 4.0] {
        let over = gaps.iter().filter(|&&gap| gap > multiple * mean).count() as f64;
        let expected = f64::exp(-multiple);
        assert!((over / gaps.len() as f64 - expected).abs() < 0.004, "gaps over {multiple} means");
    }
}

#[test]
fn a_rate_of_one_message_in_a_few_picoseconds_is_kept() {
    let config = PoissonConfig {
        sizes: SizeDistribution::fixed(Bytes(1)),
        load: 1.0,
        read_fraction: 0.0,
        rmw_fraction: 0.0,
        ..config(Pattern::AllToAll)
    };
    let link = BitsPerSecond::from_gbps(400).expect("an Ethernet rate");
    let one = |_, _| LinkBlocks { compute_uplink: 1.0, memory_downlink: 1.0, ..Default::default() };
    let mut source = Poisson::new(&config, 512, link, 1, &one).expect("a short run");
    // 160 ps x 1/512 a message is 0.3125 ps: whole picoseconds cannot hold it for each message.
    let run_ps = draw_all(&mut source).last().expect("messages").arrival.0 as f64;
    assert!((run_ps / (0.3125 * 400_000.0) - 1.0).abs() < 0.01, "{run_ps} ps");
}

#[test]
fn a_seed_draws_the_same_messages_at_any_load() {
    let draw = |load, seed| {
        let config = PoissonConfig { load, messages: 1_000, ..config(Pattern::Permutation) };
        let mut source = Poisson::new(&config, NODES, link(), seed, &blocks).expect("a short run");
        draw_all(&mut source)
    };
    let timeless = |messages: &[Message]| {
        messages.iter().map(|m| Message { arrival: Ps::ZERO, ..*m }).collect::<Vec<_>>()
    };
    assert_eq!(draw(0.5, 1), draw(0.5, 1));
    assert_ne!(draw(0.5, 1), draw(0.5, 2));
    assert_ne!(draw(0.5, 1), draw(0.25, 1));
    assert_eq!(timeless(&draw(0.5, 1)), timeless(&draw(0.25, 1)));
}

#[test]
fn the_first_messages_of_a_seed_stay_what_they_are() {
    let mut source =
        Poisson::new(&config(Pattern::AllToAll), NODES, link(), 1, &blocks).expect("a short run");
    let first: Vec<_> = std::iter::from_fn(|| source.next_message().expect("a message"))
        .take(3)
        .map(|m| (m.index, m.arrival.0, m.kind.name(), m.compute, m.memory, m.bytes.0))
        .collect();
    let expected =
        [(0, 378, "write", 0, 6, 163), (1, 3437, "rmw", 7, 6, 8), (2, 7671, "read", 7, 2, 64)];
    assert_eq!(first, expected);
}

#[test]
fn a_load_that_would_take_days_is_refused() {
    let config = PoissonConfig { load: 1e-12, ..config(Pattern::AllToAll) };
    let error = Poisson::new(&config, NODES, link(), 1, &blocks).expect_err("400,000 messages");
    assert!(error.0.starts_with("workload.load = 0.000000000001: the messages"), "{error}");
    assert!(error.0.ends_with("h: must be at most 40 h"), "{error}");
}
