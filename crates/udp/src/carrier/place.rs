//! A node's place on raw Ethernet, and errors of reaching it.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use ethermem_ring::{Interface, RingError as PacketError};
use ethermem_wire::clio::{CARRIES_MIN, ETHERNET_BYTES, Mac, PIECE_FRAME_BYTES};
use nix::ifaddrs::getifaddrs;
use thiserror::Error;

/// Default port of a node.
pub const RING_PORT: u16 = 7400;

/// A node's place on raw Ethernet: `INTERFACE`, `INTERFACE:PORT`, and either with `/MAC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// Interface of this machine.
    pub interface: String,
    /// Port, which distinguishes nodes at one address.
    pub port: u16,
    /// MAC address of the node; `None` is any node that answers.
    pub mac: Option<Mac>,
}

/// The text is not a place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}`: must be INTERFACE[:PORT][/MAC], port 1 to 65535, as eth0/02:00:00:00:00:01")]
pub struct NoRingPlace(String);

impl FromStr for RingPlace {
    type Err = NoRingPlace;

    fn from_str(text: &str) -> Result<RingPlace, NoRingPlace> {
        let wrong = || NoRingPlace(text.to_owned());
        let (front, mac) = match text.split_once('/') {
            Some((front, mac)) => (front, Some(mac.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        // Names of interfaces contain no colon.
        let (interface, port) = match front.split_once(':') {
            Some((interface, port)) => (interface, port.parse().map_err(|_| wrong())?),
            None => (front, RING_PORT),
        };
        let is_name = !interface.is_empty() && !interface.contains(char::is_whitespace);
        if !is_name || port == 0 || mac.is_some_and(Mac::is_multicast) {
            return Err(wrong());
        }
        Ok(RingPlace { interface: interface.to_owned(), port, mac })
    }
}

impl fmt::Display for RingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.interface)?;
        if self.port != RING_PORT {
            write!(f, ":{}", self.port)?;
        }
        self.mac.map_or(Ok(()), |mac| write!(f, "/{mac}"))
    }
}

/// The reason why a node cannot be reached over raw Ethernet.
#[derive(Debug, Error)]
pub enum RingError {
    /// The interface does not exist.
    #[error("interface `{0}`: there is none of that name")]
    NoInterface(String),
    /// The interface does not carry Ethernet frames.
    #[error("interface `{0}`: it carries no Ethernet")]
    NotEthernet(String),
    /// The interface's MTU is too small.
    #[error("interface `{0}`: an MTU of {1} B: must be at least {least}", least = MTU_MIN)]
    Mtu(String, usize),
    /// The interface's properties cannot be read.
    #[error("interface `{0}`: {1}")]
    Interface(String, io::Error),
    /// Another node has the port.
    #[error("interface `{0}`: port {1}: {2}; must be one that no other node has there")]
    Taken(String, u16, io::Error),
    /// The ring cannot be opened on the interface.
    #[error(transparent)]
    Ring(#[from] PacketError),
    /// The system gave no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
    /// No node answered within this time.
    #[error("no answer within {} ms", .0.as_millis())]
    Silent(Duration),
    /// The interface is down, so no node can answer.
    #[error("no answer within {ms} ms: interface `{name}` is down", name = .0, ms = .1.as_millis())]
    Down(String, Duration),
    /// The address is this machine's own, whose frames do not come back.
    #[error("{0} is this machine itself: its nodes are reached over `lo`")]
    Itself(Mac),
    /// Several nodes answered.
    #[error("several nodes answer; must be one of {}", list(.0))]
    Several(Vec<RingPlace>),
}

/// Smallest MTU in octets: a request must fit one frame, and the longest datagram 128.
pub(super) const MTU_MIN: usize = CARRIES_MIN as usize + OVERHEAD;
/// Octets of a frame's headers that count towards the MTU.
pub(super) const OVERHEAD: usize = PIECE_FRAME_BYTES - ETHERNET_BYTES;

fn list(places: &[RingPlace]) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("ring://{place}")).collect();
    places.join(", ")
}

/// The interface of that name, if it can have a ring.
pub(super) fn interface(name: &str) -> Result<Interface, RingError> {
    let found = Interface::find(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => RingError::NoInterface(name.to_owned()),
        io::ErrorKind::Unsupported => RingError::NotEthernet(name.to_owned()),
        _ => RingError::Interface(name.to_owned(), error),
    })?;
    with_room(found)
}

/// Checks the interface's MTU.
fn with_room(found: Interface) -> Result<Interface, RingError> {
    if found.mtu < MTU_MIN { Err(RingError::Mtu(found.name, found.mtu)) } else { Ok(found) }
}

/// Name of this machine's interface that has an address.
///
/// # Errors
/// When the system does not list its interfaces.
pub fn interface_of(address: IpAddr) -> io::Result<Option<String>> {
    let has = |found: &nix::ifaddrs::InterfaceAddress| {
        let own = found.address.as_ref()?;
        let v4 = own.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| own.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    Ok(getifaddrs()?.find(|found| has(found) == Some(address)).map(|found| found.interface_name))
}

/// True if nothing on that interface leaves the machine.
///
/// # Errors
/// [`RingError`]: the interface does not exist.
pub fn is_loopback(name: &str) -> Result<bool, RingError> {
    Ok(interface(name)?.is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_mtu_is_that_of_ip() {
        assert_eq!(MTU_MIN, 576);
    }

    #[test]
    fn an_address_has_the_interface_that_has_it() {
        assert_eq!(interface_of([127, 0, 0, 1].into()).unwrap().as_deref(), Some("lo"));
        // An address reserved for documentation.
        assert_eq!(interface_of([192, 0, 2, 77].into()).unwrap(), None);
    }

    #[test]
    fn an_interface_is_found_by_its_name_or_it_is_said_that_there_is_none() {
        assert_eq!(interface("lo").unwrap().name, "lo");
        assert!(is_loopback("lo").unwrap());
        let other = getifaddrs().unwrap().map(|found| found.interface_name);
        for name in other.filter(|name| name != "lo" && interface(name).is_ok()) {
            assert!(!is_loopback(&name).unwrap(), "{name}");
        }
        let refused = interface("none.77").unwrap_err();
        assert!(matches!(&refused, RingError::NoInterface(name) if name == "none.77"));
        assert_eq!(refused.to_string(), "interface `none.77`: there is none of that name");
    }

    #[test]
    fn frames_that_are_too_short_for_a_request_are_refused() {
        let lo = interface("lo").unwrap();
        for (mtu, good) in [(0, false), (MTU_MIN - 1, false), (MTU_MIN, true), (9000, true)] {
            let refused = with_room(Interface { mtu, ..lo.clone() }).err();
            assert_eq!(refused.is_none(), good, "{mtu}");
            let told = refused.map(|error| error.to_string());
            let expected = format!("interface `lo`: an MTU of {mtu} B: must be at least 576");
            assert_eq!(told, (!good).then_some(expected));
        }
    }

    #[test]
    fn of_several_nodes_each_is_named_as_a_url() {
        let places = ["lo:7401", "eth0/02:00:00:00:00:01"].map(|place| place.parse().unwrap());
        assert_eq!(
            RingError::Several(places.to_vec()).to_string(),
            "several nodes answer; must be one of ring://lo:7401, ring://eth0/02:00:00:00:00:01"
        );
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place =
            |interface: &str, port, mac| RingPlace { interface: interface.to_owned(), port, mac };
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        for (text, found) in [
            ("eth0", place("eth0", 7400, None)),
            ("lo:7401", place("lo", 7401, None)),
            ("eth0.5/02:00:00:00:00:01", place("eth0.5", 7400, Some(mac))),
            ("e:1/02:00:00:00:00:01", place("e", 1, Some(mac))),
        ] {
            assert_eq!(text.parse(), Ok(found.clone()), "{text}");
            assert_eq!(found.to_string(), text);
        }
        for bad in ["", "/", ":1", "e:0", "e:65536", "e:", "e/", "e/02:00:00:00:00", "a b"] {
            assert_eq!(bad.parse::<RingPlace>(), Err(NoRingPlace(bad.to_owned())), "{bad}");
        }
        assert!("e/ff:ff:ff:ff:ff:ff".parse::<RingPlace>().is_err());
    }
}
