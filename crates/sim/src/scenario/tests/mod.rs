use ethermem_edm::EdmConfig;
use ethermem_units::{BitsPerSecond, Bytes, Ps};

use super::*;
use crate::config::AllParameters;
use crate::config::{Background, FrameArbitration};
use crate::fabrics::clio::ClioConfig;
use crate::fabrics::cxl::CxlConfig;
use crate::fabrics::dctcp::DctcpConfig;
use crate::fabrics::edm::EdmParameters;
use crate::fabrics::edm_artifact::ArtifactConfig;
use crate::fabrics::fastpass::FastpassConfig;
use crate::fabrics::homa::HomaConfig;
use crate::fabrics::ird::IrdConfig;
use crate::fabrics::ndp::NdpConfig;
use crate::fabrics::pfabric::PfabricConfig;
use crate::fabrics::pfc::PfcConfig;
use crate::fabrics::phost::PhostConfig;
use crate::fabrics::roce::RoceConfig;
use crate::fabrics::tcp::TcpConfig;
use crate::packet::PacketConfig;
use crate::registry::FABRIC_NAMES;
use crate::topology::Topology;
use crate::workload::{
    Pattern, PoissonConfig, SizeDistribution, TraceConfig, TraceFormat, built_in,
};

mod bad_input;
mod every_key;
mod programs;
mod settings;

const FABRICS: [&str; 2] = ["edm", "raw-ethernet"];

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("s.toml"), &FABRICS).map_err(|error| error.to_string())
}

fn poisson(scenario: &Scenario) -> &PoissonConfig {
    match &scenario.workload {
        WorkloadConfig::Poisson(poisson) => poisson,
        _ => panic!("a synthetic workload"),
    }
}

/// The defaults of all fabrics; fabrics that are not named here test their own.
fn default_parameters() -> AllParameters {
    // A fabric that is not named here is checked against its page, and has its own tests of its
    // keys.
    let mut all = parse("[fabric]\n").expect("a scenario").fabric.parameters;
    let edm = EdmConfig { scheduler_clock: Some(Ps(333)), ..EdmConfig::default() };
    all.set(EdmParameters(edm));
    all.set(ArtifactConfig::default());
    all.set(ClioConfig::default());
    all.set(CxlConfig::default());
    all.set(DctcpConfig::default());
    all.set(FastpassConfig::default());
    all.set(HomaConfig::default());
    all.set(IrdConfig::default());
    all.set(NdpConfig::default());
    all.set(PfabricConfig::default());
    all.set(PfcConfig::default());
    all.set(PhostConfig::default());
    all.set(RoceConfig::default());
    all.set(TcpConfig::default());
    all
}

#[test]
fn everything_has_a_default() {
    let expected = Scenario {
        fabric_kind: "edm".into(),
        fabric: FabricConfig {
            nodes: 144,
            topology: Topology::SingleSwitch,
            link: BitsPerSecond::from_gbps(100).expect("an Ethernet rate"),
            propagation: Ps(10_000),
            transceiver: Ps(19_000),
            memory_access: Ps(0),
            pcs_clock: Ps(2_560),
            packet: PacketConfig::default(),
            background: Background {
                load: 0.0,
                frame_bytes: 1518,
                arbitration: FrameArbitration::Fair,
            },
            parameters: default_parameters(),
        },
        workload: WorkloadConfig::Poisson(PoissonConfig {
            pattern: Pattern::AllToAll,
            load: 0.8,
            sizes: SizeDistribution::fixed(Bytes(64)),
            read_fraction: 0.5,
            rmw_fraction: 0.0,
            messages: 100_000,
        }),
        run: RunConfig {
            seed: 1,
            warmup_fraction: 0.05,
            cooldown_fraction: 0.05,
            length: Length::UntilKnown { events_max: 50_000_000 },
        },
    };
    assert_eq!(parse("[fabric]\n"), Ok(expected));
}

#[test]
fn patterns_have_defaults_that_fit_the_network() {
    let pattern = |text: &str| poisson(&parse(text).expect(text)).pattern;
    assert_eq!(
        pattern("[fabric]\nnodes = 9\n[workload]\npattern = \"incast\"\n"),
        Pattern::Incast { fan_in: 8, receiver: 0 }
    );
    assert_eq!(
        pattern("[workload]\npattern = \"hot-spot\"\nhot_spot_node = 143\n"),
        Pattern::HotSpot { fraction: 0.2, node: 143 }
    );
    assert_eq!(pattern("[workload]\npattern = \"permutation\"\n"), Pattern::Permutation);
}

#[test]
fn a_trace_alone_is_a_scenario() {
    let trace = TraceConfig { path: "t.csv".into(), format: TraceFormat::Csv };
    let text = "[workload]\nkind = \"trace\"\ntrace = \"t.csv\"\n";
    assert_eq!(parse(text), Ok(Scenario::of_trace(trace, &FABRICS)));
}

#[test]
fn more_longer_and_denser_messages_are_more_work_and_nobody_knows_of_a_trace() {
    let work =
        |workload: &str| parse(&format!("[workload]\n{workload}")).expect("a scenario").work();
    let base = work("messages = 1000\nload = 0.5\nmessage_bytes = 64");
    assert!(work("messages = 1001\nload = 0.5\nmessage_bytes = 64") > base);
    assert!(work("messages = 1000\nload = 0.6\nmessage_bytes = 64") > base);
    assert!(work("messages = 100\nload = 0.5\nmessage_bytes = 64000") > base);
    assert_eq!(work("kind = \"trace\"\ntrace = \"t.csv\""), f64::INFINITY);
}

#[test]
fn a_trace_may_share_its_links_with_any_background() {
    let text = "[background]\nload = 0.9\n[workload]\nkind = \"trace\"\ntrace = \"t.csv\"\n";
    assert_eq!(parse(text).expect("a scenario").fabric.background.load, 0.9);
}

#[test]
fn a_trace_is_measured_whole_and_looked_up_from_the_scenario() {
    let text = "[workload]\nkind = \"trace\"\ntrace = \"t.parquet\"\n";
    let scenario = Scenario::parse(text, Path::new("dir/s.toml"), &FABRICS).expect("a scenario");
    let trace = TraceConfig { path: "dir/t.parquet".into(), format: TraceFormat::Parquet };
    assert_eq!(scenario.workload, WorkloadConfig::Trace(trace));
    assert_eq!(scenario.run.warmup_fraction, 0.0);
    assert_eq!(scenario.run.cooldown_fraction, 0.0);
    let text = "[workload]\nkind=\"trace\"\ntrace = \"t.txt\"\ntrace_format = \"edm-artifact\"\n";
    let trace = TraceConfig { path: "t.txt".into(), format: TraceFormat::EdmArtifact };
    assert_eq!(parse(text).expect("a scenario").workload, WorkloadConfig::Trace(trace));
}

/// The rows of the reference page whose first cell is a key: name, default, valid values.
fn documented_keys(page: &str) -> Vec<[String; 3]> {
    let unquoted = |cell: &str| cell.trim().replace('`', "");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| row.trim_matches('|').split('|').map(unquoted).collect();
    let of_keys = |cells: &Vec<String>| {
        let tables = ["fabric", "background", "workload", "run"];
        let (table, _) = cells[0].split_once('.').unwrap_or_default();
        tables.contains(&table)
    };
    rows.map(cells)
        .filter(of_keys)
        .map(|cells: Vec<String>| {
            assert_eq!(cells.len(), 4, "{cells:?}");
            assert!(cells[3].len() > 10, "no meaning: {cells:?}");
            [0, 1, 2].map(|cell| cells[cell].clone())
        })
        .collect()
}

/// A page of `docs`.
fn page(path: &str) -> String {
    let path = format!("{}/../../docs/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The keys of a fabric's table are on the fabric's page, all others in the reference.
#[test]
fn the_pages_list_every_key_as_it_is() {
    let mut others = Scenario::keys(FABRIC_NAMES);
    for reader in crate::registry::FABRICS.iter().filter_map(|fabric| fabric.parameters) {
        let prefix = format!("fabric.{}.", reader.table);
        let (own, rest) =
            others.into_iter().partition::<Vec<_>, _>(|key| key.name.starts_with(&prefix));
        others = rest;
        let name = reader.table.replace('_', "-");
        let rows = documented_keys(&page(&format!("fabrics/{name}.md")));
        assert_eq!(rows, shown(own), "{name}");
    }
    // The command lists the fabrics: a new one changes only its own page.
    let kind = others.iter_mut().find(|key| key.name == "fabric.kind").expect("a key");
    kind.allowed = "a fabric of ethermem fabrics".to_owned();
    assert_eq!(documented_keys(&page("reference/scenario.md")), shown(others));
}

fn shown(keys: Vec<Key>) -> Vec<[String; 3]> {
    keys.into_iter().map(|key| [key.name, key.default, key.allowed]).collect()
}

/// The sentence before the keys of `[fabric.leaf_spine]` names the fabrics that refuse it.
#[test]
fn the_page_lists_the_fabrics_of_a_single_switch() {
    let page = page("reference/scenario.md");
    let section = page.split("## `[fabric.leaf_spine]`").nth(1).expect("a section");
    let (listed, _) = section.split_once(" run on a\nsingle switch only").expect("a list");
    let listed: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    let racks = "[fabric]\nnodes = 16\ntopology = \"leaf-spine\"\n";
    let racks = parse(racks).expect("a scenario");
    let refuse = crate::registry::FABRICS.iter().filter(|fabric| fabric.check(&racks).is_err());
    let mut refuse: Vec<&str> = refuse.map(|fabric| fabric.name).collect();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    refuse.sort_unstable();
    assert_eq!(sorted, refuse);
    // The example of links whose blocks take no whole picoseconds.
    let odd = "[fabric.leaf_spine]\nrack_nodes = 7\nspines = 3\n";
    let refused = parse(&format!("[fabric]\ntopology = \"leaf-spine\"\n{odd}")).unwrap_err();
    assert!(refused.contains("takes whole picoseconds"), "{refused}");
    assert!(page.contains("`spines = 3` is refused with `rack_nodes = 7`"));
}

#[test]
fn every_scenario_of_the_repository_is_read() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
    let (mut read, mut programs) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the scenarios") {
        let path = entry.expect("an entry").path();
        // Plans of `ethermem bench ycsb` have a parser of their own.
        if std::fs::read_to_string(&path).expect("text").contains("\n[figure]\n") {
            continue;
        }
        let scenario = Scenario::load(&path, FABRIC_NAMES).expect("a scenario");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        if let WorkloadConfig::Program(program) = &scenario.workload {
            assert_eq!(format!("program-{}", program.name()), name);
            programs += 1;
            continue;
        }
        let PoissonConfig { load, messages, sizes, .. } = poisson(&scenario);
        match (name, name.strip_prefix("app-")) {
            (_, Some(application)) => {
                assert_eq!((*load, *messages), (0.4, 20_000), "{name}");
                assert_eq!(Some(sizes), built_in(application).as_ref(), "{name}");
            }
            ("web-search-clos", _) => {
                assert_eq!((*load, *messages), (0.653, 10_000), "{name}");
                assert_eq!(Some(sizes), built_in("web-search").as_ref(), "{name}");
            }
            (_, None) if name.starts_with("fabric-") => {
                assert_eq!(format!("fabric-{}", scenario.fabric_kind), name);
            }
            ("study-clos", _) => assert_eq!((*load, *messages), (0.5, 20_000)),
            ("clio-figure7", _) => assert_eq!((*load, *messages), (0.001, 20_000)),
            // These are the keys that its points do not vary.
            ("figure8a", _) => assert_eq!((*load, *messages), (0.8, 20_000)),
            ("figure8b", _) => assert_eq!((*load, *messages), (0.8, 4_000)),
            ("load-64b", _) => assert_eq!((*load, *messages), (0.8, 50_000)),
            _ => assert_eq!((*load, *messages), (0.9, 1_000_000), "{name}"),
        }
        read += 1;
    }
    let all = crate::registry::FABRICS.iter();
    let rivals = all.filter(|fabric| fabric.name != "edm" && !fabric.is_bound);
    assert_eq!(read, 12 + rivals.count(), "a scenario for every rival");
    assert_eq!(programs, 8, "a scenario for every program");
}

#[test]
fn files_are_looked_up_from_the_scenario_before_those_built_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let path = write("s.toml", "[workload]\nsize_cdf = \"hadoop.csv\"\n");
    let scenario = Scenario::load(&path, &FABRICS).expect("a scenario");
    assert_eq!(Some(&poisson(&scenario).sizes), built_in("hadoop").as_ref());
    write("hadoop.csv", "application,size_bytes,cumulative_probability\na,5,1\nb,6,1\n");
    let error = Scenario::load(&path, &FABRICS).expect_err("of two applications").to_string();
    let expected = "hadoop.csv: sizes of several applications: choose one of a, b";
    assert!(error.ends_with(expected), "{error}");
    let text = "[workload]\nsize_cdf = \"hadoop.csv\"\nsize_application = \"b\"\n";
    let scenario = Scenario::load(&write("s.toml", text), &FABRICS).expect("a scenario");
    assert_eq!(poisson(&scenario).sizes, SizeDistribution::fixed(Bytes(6)));
}
