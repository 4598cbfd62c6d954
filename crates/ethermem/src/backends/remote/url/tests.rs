//! Tests: the effect of each parameter of a memory node's pool, at the ends of its range.

use super::*;
use crate::table::SCHEMES;

fn read(text: &str) -> Result<RemoteConfig, OpenError> {
    let url = Url::read(&SCHEMES, text)?;
    match url.scheme.name {
        "node" => node(&url),
        "ring" => ring(&url),
        _ => udp(&url),
    }
}

fn refused(url: &str) -> String {
    read(url).err().unwrap_or_else(|| panic!("{url} is taken")).to_string()
}

fn remote_of(url: &str) -> RemoteConfig {
    read(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[test]
fn parameters_of_a_memory_node_are_what_was_given_within_their_bounds() {
    let url = "udp://node:7400";
    type Value = fn(&RemoteConfig) -> u64;
    let parameters: [(&str, u64, u64, Value); 5] = [
        ("datagram_bytes", 256, 65_507, |config| config.datagram_bytes_max.unwrap_or(0) as u64),
        ("incast_bytes", 65_536, 1 << 40, |config| config.incast_window.0),
        ("poll_us", 0, 60_000_000, |config| config.poll_for.as_micros() as u64),
        ("timeout_ms", 10, 4_500, |config| config.give_up_after.as_millis() as u64),
        ("window", 1, 65_535, |config| config.window.into()),
    ];
    for (name, least, most, value) in parameters {
        for given in [least, most] {
            let config = remote_of(&format!("{url}?{name}={given}"));
            assert_eq!(value(&config), given, "{name}");
        }
        let beyond = [least.wrapping_sub(1), most + 1].into_iter().filter(|&given| given > least);
        for given in beyond.map(|given| given.to_string()).chain(["-1".to_owned()]) {
            let said = refused(&format!("{url}?{name}={given}"));
            let expected = format!("`{name}`: `{given}`: must be {least} to {most}");
            assert!(said.contains(&expected), "{said}");
        }
    }
    let plain = remote_of(url);
    assert_eq!((plain.window, plain.incast_window), (256, Bytes(4 << 20)));
    assert_eq!((plain.give_up_after.as_millis(), plain.poll_for.as_micros()), (2000, 1000));
    assert!(plain.key.is_none() && plain.datagram_bytes_max.is_none());
}

#[test]
fn a_parameter_is_given_once() {
    for scheme in ["udp://node:7400", "node://node:7400", "ring://eth0"] {
        let said = refused(&format!("{scheme}?window=1&poll_us=0&window=2"));
        assert_eq!(said, "parameter `window`: `1` and `2`: must be given once");
    }
}

#[test]
fn interfaces_are_a_list_of_names() {
    let url = "udp://node:7400";
    assert!(remote_of(url).via.is_empty());
    assert_eq!(remote_of(&format!("{url}?via=eth0")).via, ["eth0"]);
    assert_eq!(remote_of(&format!("{url}?via=eth0,eth1.5")).via, ["eth0", "eth1.5"]);
    let most: Vec<String> = (0..8).map(|at| format!("e{at}")).collect();
    assert_eq!(remote_of(&format!("{url}?via={}", most.join(","))).via, most);
    let names = "must be names of interfaces with commas between";
    for (given, problem) in [
        ("", names),
        (",", names),
        ("eth0,", names),
        ("eth0,,eth1", names),
        ("eth0,eth1,eth0", "`eth0` is given twice"),
        ("0,1,2,3,4,5,6,7,8", "9 interfaces: must be 1 to 8"),
    ] {
        let said = refused(&format!("{url}?via={given}"));
        assert_eq!(said, format!("parameter `via`: `{given}`: {problem}"));
    }
    for scheme in ["node://node:7400", "ring://eth0"] {
        assert!(refused(&format!("{scheme}?via=eth0")).contains("`via`"), "{scheme}");
    }
}

#[test]
fn a_key_is_for_its_tenant_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tenant.key");
    let made = KeyFile::generate(TenantId(7)).expect("there is randomness");
    made.write(&path).expect("there is room");
    let url = format!("udp://node:7400?key={}", path.display());
    for more in ["", "&tenant=7"] {
        let config = remote_of(&format!("{url}{more}"));
        assert_eq!(config.tenant, TenantId(7));
        assert!(config.key == Some(made.key));
    }
    for (tenant, order) in [(0, 0), (8, 1)] {
        let given = match order {
            0 => format!("{url}&tenant={tenant}"),
            _ => format!("udp://node:7400?tenant={tenant}&key={}", path.display()),
        };
        let expected = format!("parameter `tenant`: `{tenant}`: the key allows 7 alone");
        assert!(refused(&given).contains(&expected));
    }
    // Without a key a node knows no other tenant, and would not answer.
    assert_eq!(remote_of("udp://node:7400?tenant=0").tenant, TenantId(0));
    for tenant in [7, 65_535] {
        let said = refused(&format!("udp://node:7400?tenant={tenant}"));
        assert_eq!(said, format!("parameter `tenant`: `{tenant}`: must be 0 without a key"));
    }
    for wrong in ["65536", "-1"] {
        let said = refused(&format!("udp://node:7400?tenant={wrong}"));
        assert!(said.contains(&format!("`tenant`: `{wrong}`: must be 0 to 65535")), "{said}");
    }
}

#[test]
fn a_node_is_named_by_host_and_port() {
    for (place, node) in [
        ("node:1", "node:1"),
        ("127.0.0.1:65535", "127.0.0.1:65535"),
        ("[fd77::1]:7400", "[fd77::1]:7400"),
        ("node:7400/", "node:7400"),
    ] {
        let config = remote_of(&format!("udp://{place}"));
        assert!(matches!(&config.way, Way::Udp(found) if found == node), "{place}");
        let config = remote_of(&format!("node://{place}"));
        let is_it = |way: &Way| matches!(way, Way::Quicker { host, ring: None } if host == node);
        assert!(is_it(&config.way), "{place}");
    }
    let quicker = remote_of("node://node:1?ring=lo:3&window=9");
    let Way::Quicker { host, ring: Some(ring) } = &quicker.way else { panic!("no place") };
    assert_eq!((&host[..], &ring.to_string()[..], quicker.window), ("node:1", "lo:3", 9));
    let ring = remote_of("ring://lo:7401/02:00:00:00:00:01?window=9");
    let Way::Ring(place) = &ring.way else { panic!("no place") };
    assert_eq!((&place.to_string()[..], ring.window), ("lo:7401/02:00:00:00:00:01", 9));
}
