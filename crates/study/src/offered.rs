//! The load offered to the network's links.

use ethermem_sim::{Message, NodeIndex};
use ethermem_units::{BitsPerSecond, Ps};
use serde::Serialize;

/// Direction of data on a node's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the node to the network.
    Up,
    /// From the network to the node.
    Down,
}

/// Load that messages offer to the busiest link: only data, without headers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Offered {
    /// Node with the busiest link.
    pub busiest_node: NodeIndex,
    /// Busier direction of that link.
    pub busiest_direction: Direction,
    /// Its offered data over its capacity; above 1, queues grow as long as messages arrive.
    pub busiest_load: f64,
    /// Mean load of all link directions that carry any data.
    pub mean_load: f64,
    /// Number of offered messages.
    pub messages: u64,
    /// Duration of the arrivals in ns.
    pub duration_ns: f64,
}

/// Counters of data by link.
pub(crate) struct Tally {
    up: Vec<u64>,
    down: Vec<u64>,
    messages: u64,
}

impl Tally {
    pub(crate) fn new(nodes: u16) -> Tally {
        let links = || vec![0; usize::from(nodes)];
        Tally { up: links(), down: links(), messages: 0 }
    }

    pub(crate) fn add(&mut self, message: &Message) {
        self.up[usize::from(message.data_source())] += message.bytes.0;
        self.down[usize::from(message.data_destination())] += message.bytes.0;
        self.messages += 1;
    }

    /// The load that messages of `duration` offer to links of this rate.
    pub(crate) fn over(&self, duration: Ps, link: BitsPerSecond) -> Offered {
        let carried = link.as_gbps_f64() * duration.as_ns_f64() / 8.0;
        let directions = [(Direction::Up, &self.up), (Direction::Down, &self.down)];
        let all = directions.iter().flat_map(|(direction, links)| {
            (0..).zip(links.iter()).map(move |(node, &bytes)| (bytes, node, *direction))
        });
        let used: Vec<_> = all.filter(|(bytes, ..)| *bytes > 0).collect();
        let total: u64 = used.iter().map(|(bytes, ..)| bytes).sum();
        // Of equal ones, the first counts.
        let busiest = used.iter().rev().max_by_key(|(bytes, ..)| *bytes);
        let (bytes, node, direction) = busiest.copied().unwrap_or((0, 0, Direction::Up));
        Offered {
            busiest_node: node,
            busiest_direction: direction,
            busiest_load: bytes as f64 / carried,
            mean_load: total as f64 / used.len().max(1) as f64 / carried,
            messages: self.messages,
            duration_ns: duration.as_ns_f64(),
        }
    }
}

impl Offered {
    /// True if a link is offered more than its capacity.
    #[must_use]
    pub fn is_overload(&self) -> bool {
        self.busiest_load > 1.0
    }

    /// A caveat for readers of the times, if there is an overload.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        if !self.is_overload() {
            return None;
        }
        let way = match self.busiest_direction {
            Direction::Up => "from",
            Direction::Down => "to",
        };
        Some(format!(
            "overload: the link {way} node {} is asked for {:.2} times what it carries; times grow \
             as long as messages come",
            self.busiest_node, self.busiest_load
        ))
    }
}

#[cfg(test)]
mod tests {
    use ethermem_sim::Kind;
    use ethermem_units::Bytes;

    use super::*;

    #[test]
    fn reads_load_the_way_to_the_compute_node_and_writes_the_other() {
        let mut tally = Tally::new(4);
        let read = Message {
            index: 0,
            arrival: Ps::ZERO,
            kind: Kind::Read,
            compute: 1,
            memory: 2,
            bytes: Bytes(1_000),
        };
        tally.add(&read);
        tally.add(&read);
        tally.add(&Message { kind: Kind::Write, bytes: Bytes(500), ..read });
        let link = BitsPerSecond::from_gbps(10).unwrap();
        // 10 Gb/s carry 1,250 B in 1 us.
        let offered = tally.over(Ps(1_000_000), link);
        assert_eq!(
            (offered.busiest_node, offered.busiest_direction, offered.messages),
            (2, Direction::Up, 3)
        );
        assert!((offered.busiest_load - 1.6).abs() < 1e-12);
        assert!((offered.mean_load - (2_000.0 * 2.0 + 500.0 * 2.0) / 4.0 / 1_250.0).abs() < 1e-12);
        let notice = offered.notice().unwrap();
        assert!(notice.contains("from node 2 is asked for 1.60 times"), "{notice}");
        assert_eq!(tally.over(Ps(2_000_000), link).notice(), None);
    }
}
