//! Two network namespaces joined by a link of limited rate.

use std::path::Path;
use std::process::Command;

/// Rate of the link each way, and how long a packet waits for it before it is dropped.
const RATE: &str = "50mbit";
const WAIT: &str = "2ms";
/// Addresses reserved for documentation (RFC 5737), which no other host has.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

/// An end of the link.
#[derive(Clone, Copy)]
pub(super) enum End {
    Node,
    Clients,
}

/// The namespaces; dropping the value removes them.
pub(super) struct Network {
    names: [String; 2],
}

impl Network {
    /// The network, or the reason why there is none: it needs root, `ip` and `tc`.
    pub(super) fn new() -> Result<Network, String> {
        let names = ["node", "clients"].map(|end| format!("em-{}-{end}", std::process::id()));
        let network = Network { names };
        let [node, clients] = &network.names;
        for name in &network.names {
            told("ip", &["netns", "add", name])?;
        }
        let peer = ["type", "veth", "peer", "name", "wire", "netns", clients];
        told("ip", &[&["-n", node, "link", "add", "wire"], &peer[..]].concat())?;
        for (name, address) in network.names.iter().zip(ADDRESSES) {
            let address = format!("{address}/24");
            told("ip", &["-n", name, "address", "add", &address, "dev", "wire"])?;
            told("ip", &["-n", name, "link", "set", "wire", "up"])?;
            let limit = ["tbf", "rate", RATE, "burst", "16kb", "latency", WAIT];
            told(
                "tc",
                &[&["-n", name, "qdisc", "add", "dev", "wire", "root"], &limit[..]].concat(),
            )?;
        }
        Ok(network)
    }

    /// A program at one end. The started process becomes that program.
    pub(super) fn command(&self, end: End, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end as usize]]).arg(program);
        command
    }

    pub(super) fn address(end: End) -> &'static str {
        ADDRESSES[end as usize]
    }

    /// Number of packets that were dropped after waiting too long.
    pub(super) fn dropped(&self) -> u64 {
        let of = |name: &String| {
            let shown = told("tc", &["-n", name, "-s", "qdisc", "show", "dev", "wire"]).ok()?;
            let count = shown.split("dropped ").nth(1)?.split(',').next()?;
            count.parse::<u64>().ok()
        };
        self.names.iter().filter_map(of).sum()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            // The namespace may not exist.
            let _ = told("ip", &["netns", "delete", name]);
        }
    }
}

/// Output of a command, or the reason of its failure.
fn told(program: &str, arguments: &[&str]) -> Result<String, String> {
    let words = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", words()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{}: {}", words(), String::from_utf8_lossy(&output.stderr).trim()))
}
