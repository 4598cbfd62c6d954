//! One row of a trace in any format: its values, and their ranges.

use ethermem_units::{Bytes, Ps};
use ethermem_wire::RMW_BYTES;

use crate::message::{Kind, Message, NodeIndex};
use crate::{MESSAGE_BYTES_MAX, found};

/// Maximum arrival time, 53 days: a quarter of what [`Ps`] holds, so that no sum of times wraps.
const ARRIVAL_PS_MAX: u64 = 1 << 62;

/// The values of a row before they are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) arrival: Ps,
    pub(super) kind: Kind,
    pub(super) compute: u64,
    pub(super) memory: u64,
    pub(super) bytes: u64,
}

/// Turns rows into messages, in order.
#[derive(Clone, Debug)]
pub(super) struct RowChecker {
    nodes: u16,
    last_arrival: Ps,
    next_index: u64,
}

impl RowChecker {
    pub(super) fn new(nodes: u16) -> RowChecker {
        RowChecker { nodes, last_arrival: Ps::ZERO, next_index: 0 }
    }

    /// Number of rows that became messages.
    pub(super) fn messages(&self) -> u64 {
        self.next_index
    }

    /// The message of `row`, or an error: what was found in it and what it must be.
    pub(super) fn check(&mut self, row: Row) -> Result<Message, String> {
        let compute = self.node("compute", row.compute)?;
        let memory = self.node("memory", row.memory)?;
        if compute == memory {
            return Err(format!("compute = memory = {compute}: must be two different nodes"));
        }
        let bytes_max = match row.kind {
            Kind::Read | Kind::Write => MESSAGE_BYTES_MAX,
            Kind::ReadModifyWrite => RMW_BYTES.0,
        };
        if !(1..=bytes_max).contains(&row.bytes) {
            let (bytes, kind) = (row.bytes, row.kind.name());
            return Err(format!("bytes = {bytes} of a {kind}: must be 1 to {bytes_max}"));
        }
        if row.arrival < self.last_arrival {
            let (arrival, last) = (row.arrival, self.last_arrival);
            return Err(format!("arrival {arrival} after {last}: must not be earlier"));
        }
        if row.arrival.0 > ARRIVAL_PS_MAX {
            let (arrival, last) = (row.arrival, Ps(ARRIVAL_PS_MAX));
            return Err(format!("arrival {arrival}: must be 0 to {last}"));
        }
        self.last_arrival = row.arrival;
        let index = self.next_index;
        self.next_index += 1;
        let (arrival, kind, bytes) = (row.arrival, row.kind, Bytes(row.bytes));
        Ok(Message { index, arrival, kind, compute, memory, bytes })
    }

    fn node(&self, name: &str, node: u64) -> Result<NodeIndex, String> {
        match NodeIndex::try_from(node) {
            Ok(node) if node < self.nodes => Ok(node),
            _ => Err(format!("{name} = {node}: must be 0 to {}", self.nodes - 1)),
        }
    }
}

pub(super) fn parse_integer(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name} = {}: must be a whole number", found(text)))
}

pub(super) fn parse_kind(text: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        format!("kind = {}: must be one of {names}", found(text))
    })
}

/// Parses a time in nanoseconds, rounded to the nearest picosecond; exact with up to three
/// decimals.
pub(super) fn parse_ns(name: &str, text: &str) -> Result<Ps, String> {
    let time = decimal_ns(text).or_else(|| text.parse().ok().and_then(Ps::from_ns_f64));
    time.ok_or_else(|| format!("{name} = {}: must be a number from 0", found(text)))
}

/// Parses digits with at most three behind the point, without a float of 53 bits in between.
fn decimal_ns(text: &str) -> Option<Ps> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 3 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let ps = whole.parse::<u64>().ok()?.checked_mul(1_000)?;
    let scale = [0, 100, 10, 1][decimals.len()];
    let rest = if decimals.is_empty() { 0 } else { decimals.parse::<u64>().ok()? * scale };
    ps.checked_add(rest).map(Ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row { arrival: Ps(5_000), kind: Kind::Read, compute: 0, memory: 7, bytes: 64 };

    #[test]
    fn rows_become_messages_in_order() {
        let mut checker = RowChecker::new(8);
        for index in 0..3 {
            let message = checker.check(ROW).expect("a good row");
            assert_eq!((message.index, message.memory, message.bytes), (index, 7, Bytes(64)));
        }
        assert_eq!(checker.messages(), 3);
    }

    #[test]
    fn rows_that_no_network_can_carry_are_refused() {
        let cases = [
            (Row { compute: 8, ..ROW }, "compute = 8: must be 0 to 7"),
            (Row { memory: 65_536, ..ROW }, "memory = 65536: must be 0 to 7"),
            (Row { compute: 7, ..ROW }, "compute = memory = 7: must be two different nodes"),
            (Row { bytes: 0, ..ROW }, "bytes = 0 of a read: must be 1 to 1073741824"),
            (
                Row { bytes: (1 << 30) + 1, ..ROW },
                "bytes = 1073741825 of a read: must be 1 to 1073741824",
            ),
            (
                Row { bytes: 9, kind: Kind::ReadModifyWrite, ..ROW },
                "bytes = 9 of a rmw: must be 1 to 8",
            ),
            (
                Row { arrival: Ps(4_999), ..ROW },
                "arrival 4.999 ns after 5.000 ns: must not be earlier",
            ),
            (
                Row { arrival: Ps((1 << 62) + 1), ..ROW },
                "arrival 4611686018427387.905 ns: must be 0 to 4611686018427387.904 ns",
            ),
        ];
        for (row, expected) in cases {
            let mut checker = RowChecker::new(8);
            checker.check(ROW).expect("a good row");
            assert_eq!(checker.check(row), Err(expected.to_owned()));
            assert_eq!(checker.messages(), 1, "{expected}");
        }
    }

    #[test]
    fn nanoseconds_are_exact_to_the_picosecond() {
        let cases = [
            ("0", 0),
            ("12", 12_000),
            ("12.", 12_000),
            ("12.3", 12_300),
            ("12.34", 12_340),
            ("12.345", 12_345),
            ("12.3456", 12_346),
            ("1e3", 1_000_000),
            // Past 2^53 ps a float would be inexact.
            ("9007199254740.993", 9_007_199_254_740_993),
        ];
        for (text, ps) in cases {
            assert_eq!(parse_ns("arrival_ns", text), Ok(Ps(ps)), "{text}");
        }
        for bad in ["", "x", "-1", ".", "1.2.3", "nan", "inf", "+", "99999999999999999999"] {
            let expected = format!("arrival_ns = {bad}: must be a number from 0");
            assert_eq!(parse_ns("arrival_ns", bad), Err(expected));
        }
    }
}
