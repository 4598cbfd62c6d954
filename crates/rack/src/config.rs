//! The rack's file: its name, its nodes, and how much memory its connections may use.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nix::ifaddrs::getifaddrs;
use serde::Deserialize;

use crate::Error;
use crate::nics::frame::SUBFLOWS_MAX;
use crate::offer::{
    NETWORKS_MAX, NODES_MAX, RING_BYTES_MAX, RING_BYTES_MIN, is_ring, memory_bytes,
};

const RING_BYTES: u64 = 256 << 10;
const POOL_BYTES: u64 = 1 << 30;
const NICS_PORT: u16 = 7410;
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
    /// TCP port at which the process of this rack's NICs waits for other racks.
    #[serde(default = "nics_port")]
    pub nics_port: u16,
    /// File with the secret that the processes of all racks share.
    #[serde(default)]
    pub nics_key_file: Option<PathBuf>,
    /// The other racks.
    #[serde(rename = "rack", default)]
    pub others: Vec<Other>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            name: String::new(),
            ring_bytes: RING_BYTES,
            pool_bytes: POOL_BYTES,
            nodes: Vec::new(),
            nics_port: NICS_PORT,
            nics_key_file: None,
            others: Vec::new(),
        }
    }
}

/// Another rack.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// The rack's name.
    pub name: String,
    /// Addresses and networks of its programs.
    pub programs: Vec<Network>,
    /// Addresses of its NICs, in the order of this rack's NICs that reach them.
    pub nics: Vec<Ipv4Addr>,
    /// TCP port of its process.
    #[serde(default = "nics_port")]
    pub port: u16,
}

/// An IPv4 network.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Network {
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of its prefix.
    pub bits: u8,
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Network, String> {
        let (address, bits) = text.split_once('/').unwrap_or((&text, "32"));
        let network = address.parse().ok().zip(bits.parse().ok().filter(|bits| *bits <= 32));
        let must = "must be an IPv4 address, or a network such as 10.2.0.0/16";
        let (address, bits) = network.ok_or_else(|| format!("programs: {text:?} {must}"))?;
        Ok(Network { address, bits })
    }
}

impl Network {
    /// True if the network has this address.
    #[must_use]
    pub fn has(self, address: Ipv4Addr) -> bool {
        let differs = u32::from(self.address) ^ u32::from(address);
        differs.leading_zeros() >= u32::from(self.bits)
    }
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

fn nics_port() -> u16 {
    NICS_PORT
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
        let at = |Problem { line, what }| Error::File { path: path.to_owned(), line, what };
        let failed = |what: String| at(Problem { line: None, what });
        let unread = |error: std::io::Error| failed(format!("cannot be read: {error}"));
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(unread)?;
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        if read.map_err(unread)? as u64 > FILE_BYTES_MAX {
            return Err(failed(format!("more than {FILE_BYTES_MAX} B: must be a rack's file")));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
            at(Problem { line: Some(line), what: "not UTF-8 text: must be TOML".to_owned() })
        })?;
        let interfaces = getifaddrs().map_err(|error| failed(format!("interfaces: {error}")))?;
        let here = interfaces.map(|interface| interface.interface_name).collect();
        Config::parse(&text, &here).map_err(at)
    }

    fn parse(text: &str, interfaces: &BTreeSet<String>) -> Result<Config, Problem> {
        let config: Config = toml::from_str(text).map_err(|error| Problem {
            line: error.span().map(|span| line_of(text.as_bytes(), span.start)),
            what: told(text, &error),
        })?;
        config.check(interfaces).map_err(|what| Problem { line: None, what })?;
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
        self.check_others()
    }

    fn check_others(&self) -> Result<(), String> {
        // The system would choose a port, and the other racks would look for 0.
        if self.nics_port == 0 {
            return Err("nics_port = 0: must be 1 to 65535".to_owned());
        }
        let mut names = BTreeSet::from([&self.name]);
        for other in &self.others {
            let what = format!("rack {:?}", other.name);
            if !is_name(&other.name) {
                return Err(format!("{what}: its name must be {NAMES}"));
            }
            if !names.insert(&other.name) {
                return Err(format!("{what}: its name must be its own"));
            }
            if other.port == 0 {
                return Err(format!("{what}: port = 0: must be 1 to 65535"));
            }
            if other.programs.is_empty() {
                return Err(format!("{what}: `programs` must name an address or a network"));
            }
            if other.nics.is_empty() || other.nics.len() > SUBFLOWS_MAX {
                let found = other.nics.len();
                return Err(format!("{what} has {found} NICs: must be 1 to {SUBFLOWS_MAX}"));
            }
            let holds = |node: &&Node| other.programs.iter().any(|it| it.has(node.address));
            if let Some(node) = self.nodes.iter().find(holds) {
                return Err(format!("{what}: its programs have the address of {:?}", node.name));
            }
        }
        let networks: usize = self.others.iter().map(|other| other.programs.len()).sum();
        if networks > NETWORKS_MAX {
            return Err(format!("{networks} networks of racks: must be at most {NETWORKS_MAX}"));
        }
        let nics = self.nics().len();
        if !self.others.is_empty() && nics > SUBFLOWS_MAX {
            return Err(format!("{nics} NICs: must be at most {SUBFLOWS_MAX} with other racks"));
        }
        Ok(())
    }

    /// The interfaces of all nodes, each once.
    #[must_use]
    pub fn nics(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let all = self.nodes.iter().flat_map(|node| &node.nics).map(String::as_str);
        all.filter(|nic| known.insert(*nic)).collect()
    }

    /// The number of the other rack that has this address.
    #[must_use]
    pub fn other_with(&self, address: Ipv4Addr) -> Option<usize> {
        self.others.iter().position(|other| other.programs.iter().any(|it| it.has(address)))
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

/// What is wrong with a rack's file.
#[derive(Debug)]
struct Problem {
    /// The line, counted from 1, if the problem has one.
    line: Option<usize>,
    /// What was found, and what it must be.
    what: String,
}

const NAMES: &str = "1 to 32 lower-case letters, digits and hyphens";

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_part)
}

/// The line of the byte at `start`, counted from 1.
fn line_of(text: &[u8], start: usize) -> usize {
    text[..start.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The keys of the file with what each must be. No two tables have a key with two meanings.
const KEYS: [(&str, &str); 9] = [
    ("name", "text in quotes"),
    ("ring_bytes", "a whole number of bytes, a power of two"),
    ("pool_bytes", "a whole number of bytes, at least the memory of one connection"),
    ("nics_port", "a whole number, 1 to 65535"),
    ("port", "a whole number, 1 to 65535"),
    ("nics_key_file", "a path in quotes"),
    ("address", "an IPv4 address in quotes, such as 10.1.0.1"),
    ("programs", "a list of IPv4 addresses and networks, such as [\"10.2.0.0/16\"]"),
    ("nics", "a list of interfaces of a node, or of IPv4 addresses of another rack, in quotes"),
];

/// A parser's error in one line, with the key of the value that it found, and what that must be.
fn told(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(name) = message.strip_prefix("missing field `") {
        return format!("no `{name}: must be given");
    }
    // An unknown key has a message that names those which are known, and an error of syntax may
    // be in a line that sets no key.
    let of_values = ["invalid type: ", "invalid value: ", "invalid IPv4 "];
    let is_of_value = of_values.iter().any(|begin| message.starts_with(begin));
    let key = error.span().and_then(|span| key_before(text, span.start));
    let known = KEYS.iter().find(|(name, _)| is_of_value && key == Some(*name));
    let Some((key, must)) = known else { return message };
    let found = message.rsplit_once(", expected ").map_or(message.as_str(), |(found, _)| found);
    format!("{key}: {found}: must be {must}")
}

/// The key whose value is at `start`: the last one that a line up to there sets, because a list may
/// take several lines.
fn key_before(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?;
    let keys = before.lines().filter_map(|line| Some(line.split_once('=')?.0.trim()));
    let is_key = |key: &&str| KEYS.iter().any(|(name, _)| name == key);
    keys.rev().find(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text, &BTreeSet::from(["lo".to_owned()])).unwrap_err().what
    }

    const NODE: &str = "[[node]]\nname = \"a\"\naddress = \"127.0.0.1\"\n";

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = Config::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("more than 1048576 B"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_read_or_parsed_is_named_with_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rack.toml");
        for (bytes, line) in [
            (
                &b"name = \"a\"\nring_bytes = \"4KiB\"\n"[..],
                ":2: ring_bytes: invalid type: string \"4KiB\": must be a whole number of bytes",
            ),
            (b"name = \"a\"\nports = 1\n", ":2: unknown field `ports`"),
            (b"name = \"a\"\n\n\xff", ":3: not UTF-8 text: must be TOML"),
            (b"name =\n", ":1: "),
        ] {
            std::fs::write(&file, bytes).unwrap();
            let error = Config::read(&file).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}{line}", file.display())), "{error}");
        }
        let error = Config::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(": cannot be read: Is a directory"), "{error}");
        let error = Config::read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none: cannot be read: No such file"), "{error}");
    }

    #[test]
    fn a_value_that_is_none_is_told_with_its_key_and_what_it_must_be() {
        let node = "[[node]]\nname = \"a\"\n";
        let rack = "[[rack]]\nname = \"b\"\nprograms = [\n\"10.0.0.2\",\n";
        for (rest, expected) in [
            (
                format!("{node}address = \"::1\"\n"),
                "address: invalid IPv4 address syntax: must be an IPv4 address in quotes, such as",
            ),
            (
                "pool_bytes = -1\n".to_owned(),
                "pool_bytes: invalid value: integer `-1`: must be a whole number of bytes, at",
            ),
            (
                "nics_port = 65536\n".to_owned(),
                "nics_port: invalid value: integer `65536`: must be a whole number, 1 to 65535",
            ),
            (
                "nics_key_file = 1\n".to_owned(),
                "nics_key_file: invalid type: integer `1`: must be a path in quotes",
            ),
            (
                format!("{rack}1]\n"),
                "programs: invalid type: integer `1`: must be a list of IPv4 addresses and",
            ),
            (format!("{rack}]\nnics = [\"::1\"]\n"), "nics: invalid IPv4 address syntax: must be"),
            (format!("{rack}]\n"), "no `nics`: must be given"),
            (node.to_owned(), "no `address`: must be given"),
        ] {
            let found = error(&format!("name = \"lab\"\n{rest}"));
            assert!(found.starts_with(expected) && !found.contains('\n'), "{rest:?}: {found}");
        }
        assert_eq!(error(""), "no `name`: must be given");
        assert_eq!(error("name = 1\n"), "name: invalid type: integer `1`: must be text in quotes");
    }

    #[test]
    fn ports_of_joined_racks_are_never_0() {
        let node = format!("name = \"lab\"\n{NODE}nics = [\"lo\"]\n");
        let other = "[[rack]]\nname = \"b\"\nprograms = [\"10.0.0.2\"]\nnics = [\"10.0.0.2\"]\n";
        let found = error(&format!("nics_port = 0\n{node}{other}"));
        assert_eq!(found, "nics_port = 0: must be 1 to 65535");
        let found = error(&format!("{node}{other}port = 0\n"));
        assert_eq!(found, "rack \"b\": port = 0: must be 1 to 65535");
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

    #[test]
    fn other_racks_have_programs_and_nics() {
        let lab = format!("name = \"lab\"\n{NODE}nics = [\"lo\"]\n[[rack]]\nname = \"b\"\n");
        let good =
            format!("{lab}programs = [\"10.2.0.0/16\", \"10.3.0.1\"]\nnics = [\"10.2.0.1\"]");
        let config = Config::parse(&good, &BTreeSet::from(["lo".to_owned()])).unwrap();
        assert_eq!((config.others[0].port, config.nics()), (NICS_PORT, vec!["lo"]));
        for (address, other) in [
            ([10, 2, 255, 255], Some(0)),
            ([10, 3, 0, 1], Some(0)),
            ([10, 3, 0, 2], None),
            ([10, 1, 255, 255], None),
        ] {
            assert_eq!(config.other_with(Ipv4Addr::from(address)), other, "{address:?}");
        }
        assert!(Network { address: Ipv4Addr::LOCALHOST, bits: 0 }.has(Ipv4Addr::BROADCAST));
        let nics = "nics = [\"10.2.0.1\"]";
        for (text, expected) in [
            (format!("{lab}programs = [\"10.2.0.0/33\"]\n{nics}"), "must be an IPv4 address, or"),
            (format!("{lab}programs = []\n{nics}"), "`programs` must name an address"),
            (format!("{lab}programs = [\"10.2.0.1\"]\nnics = []"), "0 NICs: must be 1 to 16"),
            (format!("{lab}programs = [\"127.0.0.0/8\"]\n{nics}"), "have the address of \"a\""),
        ] {
            assert!(error(&text).contains(expected), "{}", error(&text));
        }
    }
}
