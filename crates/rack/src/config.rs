//! The rack's file: its name, its nodes, and how much memory its connections may use.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use serde::Deserialize;

use crate::Error;
use crate::offer::{NODES_MAX, RING_BYTES_MAX, RING_BYTES_MIN, is_ring, memory_bytes};

const RING_BYTES: u64 = 256 << 10;
const POOL_BYTES: u64 = 1 << 30;
const NAME_CHARS_MAX: usize = 32;
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A rack.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The rack's name; programs of racks with different names do not share memory.
    pub name: String,
    /// Bytes of each direction of a connection, a power of two.
    #[serde(default = "ring_bytes")]
    pub ring_bytes: u64,
    /// Most bytes of all connections together.
    #[serde(default = "pool_bytes")]
    pub pool_bytes: u64,
    /// The nodes.
    #[serde(rename = "node", default)]
    pub nodes: Vec<Node>,
}

/// A node of a rack: an address at which its programs listen and from which they connect.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The node's name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The interfaces of this machine that reach it.
    #[serde(default)]
    pub nics: Vec<String>,
}

fn ring_bytes() -> u64 {
    RING_BYTES
}

fn pool_bytes() -> u64 {
    POOL_BYTES
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`Error::File`], with what was found and what it must be.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let failed = |what: String| Error::File { path: path.to_owned(), what };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
        if read.map_err(|error| failed(error.to_string()))? as u64 > FILE_BYTES_MAX {
            return Err(failed(format!("more than {FILE_BYTES_MAX} B: must be a rack's file")));
        }
        let interfaces = getifaddrs().map_err(|error| failed(format!("interfaces: {error}")))?;
        let here = interfaces.map(|interface| interface.interface_name).collect();
        Config::parse(&text, &here).map_err(failed)
    }

    fn parse(text: &str, interfaces: &BTreeSet<String>) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| one_line(&error))?;
        config.check(interfaces)?;
        Ok(config)
    }

    fn check(&self, interfaces: &BTreeSet<String>) -> Result<(), String> {
        if !is_name(&self.name) {
            return Err(format!("name = {:?}: must be {NAMES}", self.name));
        }
        if !is_ring(self.ring_bytes) {
            let bounds = format!("{RING_BYTES_MIN} to {RING_BYTES_MAX}");
            let must = format!("must be a power of two, {bounds}");
            return Err(format!("ring_bytes = {}: {must}", self.ring_bytes));
        }
        let least = memory_bytes(self.ring_bytes) as u64;
        if self.pool_bytes < least {
            let must = format!("must be at least {least}, the memory of one connection");
            return Err(format!("pool_bytes = {}: {must}", self.pool_bytes));
        }
        if self.nodes.is_empty() || self.nodes.len() > NODES_MAX {
            return Err(format!("{} nodes: must be 1 to {NODES_MAX}", self.nodes.len()));
        }
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for node in &self.nodes {
            let what = format!("node {:?}", node.name);
            if !is_name(&node.name) {
                return Err(format!("{what}: its name must be {NAMES}"));
            }
            if !names.insert(&node.name) || !addresses.insert(node.address) {
                return Err(format!("{what}: its name and its address must be its own"));
            }
            if node.nics.is_empty() {
                return Err(format!("{what} has no NIC: `nics` must name an interface"));
            }
            if let Some(nic) = node.nics.iter().find(|nic| !interfaces.contains(*nic)) {
                let known: Vec<_> = interfaces.iter().map(String::as_str).collect();
                return Err(format!("{what}: NIC {nic:?} must be one of {}", known.join(", ")));
            }
        }
        Ok(())
    }

    /// The node of this name.
    ///
    /// # Errors
    /// [`Error::Node`].
    pub fn node(&self, name: &str) -> Result<&Node, Error> {
        self.nodes.iter().find(|node| node.name == name).ok_or_else(|| {
            let names: Vec<_> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            Error::Node { name: name.to_owned(), known: names.join(", ") }
        })
    }
}

const NAMES: &str = "1 to 32 lower-case letters, digits and hyphens";

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_part)
}

/// A parser's error without the lines that it draws.
fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text, &BTreeSet::from(["lo".to_owned()])).unwrap_err()
    }

    const NODE: &str = "[[node]]\nname = \"a\"\naddress = \"127.0.0.1\"\n";

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = Config::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("more than 1048576 B"), "{error}");
    }

    #[test]
    fn a_rack_has_defaults() {
        let text = format!("name = \"lab\"\n{NODE}nics = [\"lo\"]\n");
        let config = Config::parse(&text, &BTreeSet::from(["lo".to_owned()])).unwrap();
        assert_eq!((config.ring_bytes, config.pool_bytes), (RING_BYTES, POOL_BYTES));
        assert_eq!(config.node("a").unwrap().address, Ipv4Addr::LOCALHOST);
        assert_eq!(config.node("b").unwrap_err().to_string(), "node `b`: must be one of a");
    }

    #[test]
    fn wrong_files_have_one_line_each() {
        let lab = "name = \"lab\"\n";
        let cases = [
            (format!("{lab}{NODE}"), "node \"a\" has no NIC: `nics` must name an interface"),
            (format!("{lab}{NODE}nics = [\"x9\"]"), "node \"a\": NIC \"x9\" must be one of lo"),
            (lab.to_owned(), "0 nodes: must be 1 to 64"),
            (
                format!("{lab}pool_bytes = 1000\n{NODE}"),
                "pool_bytes = 1000: must be at least 528384, the memory of one connection",
            ),
            (
                format!("{lab}ring_bytes = 5000\n{NODE}"),
                "ring_bytes = 5000: must be a power of two, 4096 to 67108864",
            ),
            (
                format!("name = \"L\"\n{NODE}"),
                "name = \"L\": must be 1 to 32 lower-case letters, digits and hyphens",
            ),
            (
                format!("{lab}{NODE}nics = [\"lo\"]\n{NODE}nics = [\"lo\"]"),
                "node \"a\": its name and its address must be its own",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(error(&text), expected);
        }
        assert!(error("names = 1").contains("unknown field `names`"));
    }
}
