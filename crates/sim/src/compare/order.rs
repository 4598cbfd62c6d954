//! Whether fabrics come in the order of the published values.

use super::Compared;

/// Published values that are closer than this say nothing of an order.
const GAP: f64 = 1.1;

/// Pairs of fabrics whose published values are more than 10 % apart, over all points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// How many there are.
    pub pairs: usize,
    /// Those that came out the other way round, or equal.
    pub reversed: Vec<Reversal>,
}

/// A pair in another order than published.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reversal {
    /// Where.
    pub experiment: String,
    /// Where in it.
    pub point: String,
    /// The fabric that has the lower published value.
    pub lower: String,
    /// The other one.
    pub higher: String,
}

impl Order {
    /// Holds the fabrics of each point against each other. `of` is the number that is held against
    /// the published one; pairs without it are not counted.
    #[must_use]
    pub fn of(rows: &[Compared], of: impl Fn(&Compared) -> Option<f64>) -> Order {
        let mut order = Order::default();
        for (at, first) in rows.iter().enumerate() {
            for second in rows[at + 1..].iter().filter(|second| second.is_with(first)) {
                let numbers = |row: &Compared| Some((row.published?, of(row)?));
                let (Some(one), Some(two)) = (numbers(first), numbers(second)) else { continue };
                let (lower, higher) = if one.0 < two.0 {
                    ((first, one), (second, two))
                } else {
                    ((second, two), (first, one))
                };
                if higher.1.0 <= lower.1.0 * GAP {
                    continue;
                }
                order.pairs += 1;
                if higher.1.1 <= lower.1.1 {
                    order.reversed.push(Reversal {
                        experiment: first.experiment.clone(),
                        point: first.point.clone(),
                        lower: lower.0.fabric.clone(),
                        higher: higher.0.fabric.clone(),
                    });
                }
            }
        }
        order
    }

    /// In a line, and the reversed pairs with how often each is, most often first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let kept = self.pairs - self.reversed.len();
        let mut lines = vec![format!(
            "order: as published in {kept} of {} pairs whose published values are over 10 % apart",
            self.pairs
        )];
        let mut counts: Vec<(usize, String)> = Vec::new();
        for pair in &self.reversed {
            let name = format!("{} not under {}", pair.lower, pair.higher);
            match counts.iter_mut().find(|(_, known)| *known == name) {
                Some((count, _)) => *count += 1,
                None => counts.push((1, name)),
            }
        }
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        lines.extend(counts.into_iter().map(|(count, name)| format!("order: {name} at {count}")));
        lines
    }
}
