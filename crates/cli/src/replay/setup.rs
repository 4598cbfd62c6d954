//! How a trace is replayed: what `replay` and `study` let people choose.

use std::path::Path;

use clap::{Args, ValueEnum};
use ethermem_sim::scenario::Setting;
use ethermem_sim::workload::InputError;
use ethermem_study::{Arrivals, Blades, Machine, Part, Plan, Scope};
use ethermem_units::{Bytes, Ns};

#[derive(Args, Clone, Debug)]
pub(crate) struct Setup {
    /// Blades of a cluster, a multiple of 3: a compute, a memory and a disk blade for each machine
    #[arg(long, value_name = "BLADES", default_value = "15", value_parser = blades)]
    cluster: Blades,

    /// Nodes of the network that clusters are embedded in
    #[arg(long, value_name = "NODES", default_value = "144",
          value_parser = clap::value_parser!(u16).range(3..=512))]
    embed: u16,

    /// Nodes of a rack
    #[arg(long, value_name = "NODES", default_value = "16",
          value_parser = clap::value_parser!(u16).range(1..=512))]
    rack_nodes: u16,

    /// Where the blades of a cluster are
    #[arg(long, value_name = "SCOPE", default_value = "datacenter")]
    scope: ScopeName,

    /// How accesses of a trace become arrivals
    #[arg(long, value_name = "HOW", default_value = "drawn")]
    arrivals: ArrivalsName,

    /// About how many accesses are simulated, of all clusters together
    #[arg(long, value_name = "COUNT", default_value = "100000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
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
          value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    block_kib: u64,

    /// Seed of every random draw, 0 to 2^64 - 1
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,

    /// Set a key of the network's scenario, scenarios/study-clos.toml, as if its file said so:
    /// fabric.packet.forwarding_ns=100. Repeat it for more keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// Within one rack
    Rack,
    /// Anywhere in the network
    Datacenter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalsName {
    /// Sizes and gaps of each pair of blades drawn from those of the trace, as the study does
    Drawn,
    /// As in the trace, each machine from an instant drawn for it
    AsTraced,
}

impl Setup {
    pub(crate) fn plan(&self, link_gbps: u64) -> Plan {
        Plan {
            blades: self.cluster,
            nodes: self.embed,
            rack_nodes: self.rack_nodes,
            scope: match self.scope {
                ScopeName::Rack => Scope::Rack,
                ScopeName::Datacenter => Scope::Datacenter,
            },
            link_gbps,
            arrivals: match self.arrivals {
                ArrivalsName::Drawn => Arrivals::Drawn,
                ArrivalsName::AsTraced => Arrivals::AsTraced,
            },
            messages: self.messages,
            seed: self.seed,
            settings: self.settings.clone(),
        }
    }

    /// All of it, as flags.
    pub(crate) fn words(&self) -> String {
        let plan = self.plan(0);
        let length = self.length_ms.map_or_else(|| "to the end".to_owned(), |ns| ns.0.to_string());
        let mut words = format!(
            "--cluster {} --embed {} --rack-nodes {} --scope {} --arrivals {} --messages {} \
             --speed {} --block-kib {} --seed {}, from {} ns, length in ns: {length}",
            plan.blades.count(),
            plan.nodes,
            plan.rack_nodes,
            plan.scope.name(),
            plan.arrivals.name(),
            plan.messages,
            self.speed,
            self.block_kib,
            plan.seed,
            self.from_ms.0,
        );
        for setting in &self.settings {
            words.push_str(&format!(" --set {setting}"));
        }
        words
    }

    /// The machine that was traced.
    pub(crate) fn load(&self, trace: &Path) -> Result<Machine, InputError> {
        let part = Part { from: self.from_ms, length: self.length_ms, speed: self.speed };
        Machine::load(trace, part, Bytes(self.block_kib << 10))
    }
}

fn blades(text: &str) -> Result<Blades, String> {
    let count = text.parse().map_err(|_| "allowed are multiples of 3".to_owned())?;
    Blades::of(count)
}

/// A time in ms, to the nanosecond.
fn ms(text: &str) -> Result<Ns, String> {
    let ms = text.parse::<f64>().ok().filter(|ms| (0.0..=1e12).contains(ms));
    let ns = ms.map(|ms| Ns((ms * 1e6).round() as u64));
    ns.ok_or_else(|| "allowed are 0 to 1000000000000".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| (1e-6..=1e6).contains(speed));
    speed.ok_or_else(|| "allowed are 0.000001 to 1000000".to_owned())
}
