//! How a pool finds its node and learns the node's facts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Instant;

use ethermem_clio::transport::Completed;
use ethermem_pool::{Error, ProcessId};
use ethermem_udp::{ClientOptions, ConnectError, Driver, NodePlace, RingError};
use ethermem_wire::clio::{Epoch, Request};
use slab::Slab;

use super::asked::AskedFor;
use super::{Remote, RemoteConfig, Way};
use crate::open_error::OpenError;

impl Remote {
    /// Finds the node, and asks for its facts.
    pub(super) fn open(config: &RemoteConfig) -> Result<Remote, OpenError> {
        let host = match &config.way {
            Way::Udp(host) => host,
            Way::Ring(place) => return Remote::open_at(config, NodePlace::Ring(place.clone())),
            Way::Quicker { host, ring } => {
                return Remote::open_quicker(config, host, ring.as_ref());
            }
        };
        let node = config.way.to_string();
        let found = resolve(host);
        let found = found.map_err(|problem| OpenError::Unreachable { node, problem })?;
        Remote::open_any(config, &found)
    }

    /// Opens the first address of a name at which the node responds.
    fn open_any(config: &RemoteConfig, addresses: &[SocketAddr]) -> Result<Remote, OpenError> {
        let mut problems = Vec::new();
        for &address in addresses {
            let place = match config.via.as_slice() {
                [] => NodePlace::Udp(address),
                via => NodePlace::Via { node: address, interfaces: via.to_vec() },
            };
            match Remote::open_at(config, place) {
                Err(OpenError::Unreachable { problem, .. }) if addresses.len() > 1 => {
                    problems.push(format!("{address}: {problem}"));
                }
                opened => return opened,
            }
        }
        let (node, problem) = (config.way.to_string(), problems.join("; "));
        Err(OpenError::Unreachable { node, problem })
    }

    fn open_at(config: &RemoteConfig, node: NodePlace) -> Result<Remote, OpenError> {
        let unreachable =
            |problem: String| OpenError::Unreachable { node: config.way.to_string(), problem };
        let options = ClientOptions {
            node,
            tenant: config.tenant,
            key: config.key,
            datagram_bytes_max: config.datagram_bytes_max,
            window: config.window,
            incast_window: config.incast_window,
            give_up_after: config.give_up_after,
        };
        let driver = Driver::connect(&options).map_err(|error| not_connected(config, error))?;
        let now = Instant::now();
        let mut udp = Remote {
            driver,
            node: config.way.to_string(),
            choice: None,
            poll_for: config.poll_for,
            give_up_after: config.give_up_after,
            answers: 0,
            doubts: 0,
            epoch: Epoch::UNKNOWN,
            life: 0,
            lease: None,
            opened: now,
            looks: 0,
            beat: now,
            processes: BTreeMap::new(),
            running: Vec::new(),
            open: 0,
            gathered: 0,
            asked: AskedFor::default(),
            waiting: Vec::new(),
            lost_locks: BTreeSet::new(),
            alone: Slab::new(),
            ended_alone: Vec::new(),
            ended: Vec::new(),
            broken: None,
        };
        // The transport itself records the facts in the response.
        match udp.ask(ProcessId(0), Request::Hello) {
            Ok(Completed::Facts(_)) => {}
            Ok(other) => return Err(unreachable(format!("it answered {other:?}"))),
            Err(Error::NoAnswer { .. }) => {
                let ms = config.give_up_after.as_millis();
                // A node never responds to a sender without one of its keys, so the three reasons
                // look alike from here.
                let key = match config.key {
                    Some(_) => "the key is not one of its own",
                    None => "it has keys and answers nobody without one",
                };
                let silent = "no node is there, it was too busy to answer, or";
                return Err(unreachable(format!("no answer within {ms} ms: {silent} {key}")));
            }
            Err(error) => return Err(unreachable(error.to_string())),
        }
        Ok(udp)
    }
}

/// The reason why a pool has no transport.
fn not_connected(config: &RemoteConfig, error: ConnectError) -> OpenError {
    let problem = match error {
        ConnectError::Config(error) => error.to_string(),
        ConnectError::Interface(error) => format!("parameter `via`: {error}"),
        // Waiting does not help here: no node appears and nothing changes by itself.
        ConnectError::Ring(error)
            if !matches!(error, RingError::Silent(_) | RingError::Down(..)) =>
        {
            format!("{}: {error}", config.way)
        }
        error => {
            let (node, problem) = (config.way.to_string(), error.to_string());
            return OpenError::Unreachable { node, problem };
        }
    };
    OpenError::NotAllowed { problem }
}

/// The distinct addresses of a `host:port`. A link-local address has its interface's name behind a
/// `%`, or behind `%25` as URLs write it.
fn resolve(node: &str) -> Result<Vec<SocketAddr>, String> {
    let of_link = node.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    let found = match of_link.filter(|(host, _)| host.contains('%')) {
        Some((host, port)) => {
            let port: u16 = port.parse().map_err(|_| format!("port {port}"))?;
            (host.replace("%25", "%").as_str(), port).to_socket_addrs()
        }
        None => node.to_socket_addrs(),
    };
    let found = found.map_err(|error| error.to_string())?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err("it has no address".to_owned()) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use ethermem_node::NodeOptions;
    use ethermem_units::Bytes;

    use super::*;
    use crate::backends::remote::url;
    use crate::scheme::Url;
    use crate::table::SCHEMES;

    fn config(node: SocketAddr) -> RemoteConfig {
        let text = format!("udp://{node}?timeout_ms=200");
        let read = Url::read(&SCHEMES, &text).and_then(|url| url::udp(&url));
        read.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn of_several_addresses_the_one_that_answers_is_used() {
        let mut server =
            ethermem_node::start(&NodeOptions::in_clear(Bytes(1 << 20))).expect("it starts").server;
        let there = server.address().expect("it is bound");
        std::thread::spawn(move || {
            server.run(Duration::from_millis(1), &AtomicBool::new(false)).expect("it serves")
        });
        // The port is bound, so that no other program has it, and silent.
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let away = silent.local_addr().expect("it is bound");
        let config = config(away);
        assert!(Remote::open_any(&config, &[away, there]).is_ok());
        let Err(error) = Remote::open_any(&config, &[away, away]) else {
            panic!("nobody is there")
        };
        let none = "no answer within 200 ms: no node is there, it was too busy to answer, or it \
                    has keys and answers nobody without one";
        assert_eq!(error.to_string(), format!("{away}: {away}: {none}; {away}: {none}"));
        let Err(alone) = Remote::open_any(&config, &[away]) else { panic!("nobody is there") };
        assert_eq!(alone.to_string(), format!("{away}: {none}"));
    }

    #[test]
    fn a_name_has_each_of_its_addresses_once() {
        let found = resolve("localhost:7400").expect("every machine has it");
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(found.len(), once.len());
        assert!(resolve("127.0.0.1:1").is_ok_and(|found| found.len() == 1));
    }

    #[test]
    fn an_address_of_one_link_has_its_interface() {
        // The loopback is the first interface of every machine.
        for node in ["[fe80::1%lo]:7400", "[fe80::1%25lo]:7400", "[fe80::1%1]:7400"] {
            let found = resolve(node).unwrap_or_else(|error| panic!("{node}: {error}"));
            assert_eq!(found, ["[fe80::1%1]:7400".parse().expect("it is one")], "{node}");
        }
        assert!(resolve("[fe80::1%no-such]:7400").is_err());
    }
}
