//! `node:`: UDP or raw Ethernet, as measured.

use ethermem::Pool;
use ethermem_node::NodeOptions;

use crate::namespace::Namespace;
use crate::network::Served;
use crate::ring::{NODE, RW, Two, use_all};

const HOST: &str = "192.0.2.2:7400";

/// Two machines that also have IP addresses.
fn two(what: &str) -> Option<Two> {
    let two = Two::new(what, 1500)?;
    two.client.ip("addr add 192.0.2.1/24 dev c0");
    two.node.ip("addr add 192.0.2.2/24 dev n0");
    Some(two)
}

/// A node at [`HOST`], and on an interface's raw Ethernet.
fn serve(two: &Two, ring: Option<&str>) -> Served {
    let mut options: NodeOptions = two.options("n0");
    options.listen.udp = Some(HOST.parse().unwrap());
    options.listen.ring = ring.map(|interface| interface.parse().unwrap());
    two.node.enter(|| Served::serve(&options))
}

/// The choice of a pool that is opened and used.
fn choice(two: &Two, parameters: &str) -> String {
    let pool = two.open_url(&format!("node://{HOST}"), parameters).unwrap();
    use_all(&pool);
    let choice = pool.choice().expect("there were two ways").to_owned();
    two.client.enter(|| pool.close()).unwrap();
    choice
}

/// The first and the second round trip in a choice, in us.
fn times(choice: &str) -> [f64; 2] {
    let words: Vec<&str> = choice.split(' ').collect();
    let times: Vec<f64> = words
        .windows(2)
        .filter(|pair| pair[1].trim_end_matches(',') == "us")
        .map(|pair| pair[0].parse().unwrap())
        .collect();
    times.try_into().unwrap_or_else(|_| panic!("two times in `{choice}`"))
}

#[test]
fn where_udp_is_slow_raw_ethernet_is_taken() {
    let Some(two) = two("raw Ethernet beside slow UDP") else { return };
    let _node = serve(&two, Some("n0"));
    // Frames of raw Ethernet bypass the queue.
    two.client.slow_down("c0");
    let choice = choice(&two, "");
    assert!(choice.starts_with(&format!("by ring://c0/{NODE}, ")), "{choice}");
    assert!(choice.contains(&format!(" us a round trip, by udp://{HOST} ")), "{choice}");
    let [ring, udp] = times(&choice);
    assert!(ring < udp, "{choice}");
}

#[test]
fn where_raw_ethernet_is_slow_udp_is_taken() {
    let Some((two, middle)) = two("UDP beside slow raw Ethernet")
        .and_then(|two| Some((two, Namespace::new("a slow bridge")?)))
    else {
        return;
    };
    two.client.connect("c1", &middle, "b0", 1500);
    two.node.connect("n1", &middle, "b1", 1500);
    middle.ip("link add both type bridge");
    for words in ["set b0 master both", "set b1 master both", "set both up"] {
        middle.ip(&format!("link {words}"));
    }
    two.node.ip("link set n1 address 02:00:00:00:00:0d");
    let _node = serve(&two, Some("n1"));
    middle.slow_down("b0");
    middle.slow_down("b1");
    let choice = choice(&two, "&ring=c1");
    let by_udp = choice.strip_prefix(&format!("by udp://{HOST}")).expect(&choice);
    assert!(by_udp.contains("ring://c1/02:00:00:00:00:0d"), "{choice}");
    // The link is so slow that a response may miss its time.
    if !(by_udp.contains(", not measured: ") && by_udp.contains(" did not answer within ")) {
        let [udp, ring] = times(&choice);
        assert!(udp < ring, "{choice}");
    }
}

#[test]
fn a_node_of_udp_alone_is_told_from_others_on_raw_ethernet() {
    let Some(two) = two("nodes of UDP alone") else { return };
    let _node = serve(&two, None);
    assert_eq!(choice(&two, ""), format!("by udp://{HOST}; ring://c0: no answer"));
    let other = two.serve();
    let not_this = "other nodes answer, and not this one";
    assert_eq!(choice(&two, ""), format!("by udp://{HOST}; ring://c0: {not_this}"));
    drop(other);
    let none = choice(&two, "&ring=x0");
    let because = "interface `x0`: there is none of that name";
    assert_eq!(none, format!("by udp://{HOST}; {because}"));
}

/// This holds with any privileges, and whichever other nodes are on the loopback.
#[test]
fn a_node_of_this_machine_is_found_without_privileges() {
    let node = Served::new(None);
    let pool = Pool::open(&format!("node://{}", node.address)).unwrap();
    assert!(pool.choice().unwrap().starts_with(&format!("by udp://{}; ", node.address)));
    let region = pool.thread().unwrap().alloc(64, RW).wait().unwrap();
    region.write(0, b"by either").wait().unwrap();
    assert_eq!(region.read(0, 9).wait().unwrap(), b"by either");
    pool.close().unwrap();
    assert_eq!(Pool::open("local:").unwrap().choice(), None);
}
