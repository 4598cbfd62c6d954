//! Options of replaying a trace, for `replay` and `study`.

use clap::Args;
use ethermem_experiments::replay::{
    BLOCK_KIB, MESSAGES, NODES, RACK_NODES, Setup, blades, ms, speed,
};
use ethermem_sim::scenario::Setting;
use ethermem_study::{Arrivals, Blades, Scope};
use ethermem_units::Ns;

use crate::value::{Named, one_of};

const SCOPES: [Named<Scope>; 2] = [
    ("rack", "Within one rack", Scope::Rack),
    ("datacenter", "Anywhere in the network", Scope::Datacenter),
];
const ARRIVALS: [Named<Arrivals>; 2] = [
    (
        "drawn",
        "Sizes and gaps of each pair of blades drawn from those of the trace, as the study does",
        Arrivals::Drawn,
    ),
    ("as-traced", "As in the trace, each machine from an instant drawn for it", Arrivals::AsTraced),
];

#[derive(Args, Clone, Debug)]
pub(crate) struct SetupArguments {
    /// Number of blades of a cluster, a multiple of 3: a compute, a memory and a disk blade per
    /// machine
    #[arg(long, value_name = "BLADES", default_value = "15", value_parser = blades)]
    cluster: Blades,

    /// Number of nodes of the network in which clusters are embedded
    #[arg(long, value_name = "NODES", default_value = "144",
          value_parser = clap::value_parser!(u16).range(NODES))]
    embed: u16,

    /// Number of nodes per rack
    #[arg(long, value_name = "NODES", default_value = "16",
          value_parser = clap::value_parser!(u16).range(RACK_NODES))]
    rack_nodes: u16,

    /// Nodes that the blades of a cluster may use
    #[arg(long, value_name = "SCOPE", default_value = "datacenter", value_parser = one_of(&SCOPES))]
    scope: Scope,

    /// How accesses of a trace become arrivals
    #[arg(long, value_name = "HOW", default_value = "drawn", value_parser = one_of(&ARRIVALS))]
    arrivals: Arrivals,

    /// Approximate number of simulated accesses, of all clusters together
    #[arg(long, value_name = "COUNT", default_value = "100000",
          value_parser = clap::value_parser!(u64).range(MESSAGES))]
    messages: u64,

    /// Start of the used part of each trace, in ms
    #[arg(long, value_name = "MS", default_value = "0", value_parser = ms)]
    from_ms: Ns,

    /// Length of the used part of each trace, in ms [default: to its end]
    #[arg(long, value_name = "MS", value_parser = ms)]
    length_ms: Option<Ns>,

    /// Speed of machines relative to the traced ones
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,

    /// Size in KiB of the blocks in which memory is spread over memory blades
    #[arg(long, value_name = "KIB", default_value = "2048",
          value_parser = clap::value_parser!(u64).range(BLOCK_KIB))]
    block_kib: u64,

    /// Seed of every random draw, 0 to 2^64 - 1
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Override a key of the network's scenario, scenarios/study-clos.toml:
    /// fabric.packet.forwarding_ns=100. Repeat it for more keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
}

impl SetupArguments {
    pub(crate) fn request(&self) -> Setup {
        Setup {
            blades: self.cluster,
            nodes: self.embed,
            rack_nodes: self.rack_nodes,
            scope: self.scope,
            arrivals: self.arrivals,
            messages: self.messages,
            from: self.from_ms,
            length: self.length_ms,
            speed: self.speed,
            block_kib: self.block_kib,
            seed: self.seed,
            settings: self.settings.clone(),
        }
    }
}
