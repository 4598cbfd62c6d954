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
    /// Blades of a cluster, a multiple of 3: a compute, a memory and a disk blade for each machine
    #[arg(long, value_name = "BLADES", default_value = "15", value_parser = blades)]
    cluster: Blades,

    /// Nodes of the network that clusters are embedded in
    #[arg(long, value_name = "NODES", default_value = "144",
          value_parser = clap::value_parser!(u16).range(NODES))]
    embed: u16,

    /// Nodes of a rack
    #[arg(long, value_name = "NODES", default_value = "16",
          value_parser = clap::value_parser!(u16).range(RACK_NODES))]
    rack_nodes: u16,

    /// Where the blades of a cluster are
    #[arg(long, value_name = "SCOPE", default_value = "datacenter", value_parser = one_of(&SCOPES))]
    scope: Scope,

    /// How accesses of a trace become arrivals
    #[arg(long, value_name = "HOW", default_value = "drawn", value_parser = one_of(&ARRIVALS))]
    arrivals: Arrivals,

    /// About how many accesses are simulated, of all clusters together
    #[arg(long, value_name = "COUNT", default_value = "100000",
          value_parser = clap::value_parser!(u64).range(MESSAGES))]
    messages: u64,

    /// Leave out what was before this time of each trace, in ms
    #[arg(long, value_name = "MS", default_value = "0", value_parser = ms)]
    from_ms: Ns,

    /// Use so much of each trace, in ms [default: to its end]
    #[arg(long, value_name = "MS", value_parser = ms)]
    length_ms: Option<Ns>,

    /// How many times faster machines are than those that were traced
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,

    /// Memory is spread over memory blades in blocks of so many KiB
    #[arg(long, value_name = "KIB", default_value = "2048",
          value_parser = clap::value_parser!(u64).range(BLOCK_KIB))]
    block_kib: u64,

    /// Seed of every random draw, 0 to 2^64 - 1
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Set a key of the network's scenario, scenarios/study-clos.toml, as if its file said so:
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
