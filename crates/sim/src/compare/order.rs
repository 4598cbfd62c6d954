//! The order of fabrics, compared with the order of the published values.

use super::Place;

/// Published values with a smaller ratio do not define an order.
const GAP: f64 = 1.1;

/// Pairs of fabrics whose published values are more than 10 % apart, over all points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Number of pairs.
    pub pairs: usize,
    /// The pairs that came out in the other order, or equal.
    pub reversed: Vec<Reversal>,
}

/// A pair in another order than published.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reversal {
    /// The experiment.
    pub experiment: String,
    /// The point of the experiment.
    pub point: String,
    /// The fabric that has the lower published value.
    pub lower: String,
    /// The fabric that has the higher published value.
    pub higher: String,
}

impl Order {
    /// Compares the fabrics of each point by the number at each place; pairs without a number are
    /// not counted.
    #[must_use]
    pub fn of(rows: &[(&Place, Option<f64>)]) -> Order {
        let mut order = Order::default();
        for (at, (first, one)) in rows.iter().enumerate() {
            for (second, two) in rows[at + 1..].iter().filter(|(other, _)| other.is_with(first)) {
                let published = first.published.zip(second.published);
                let (Some(published), Some(found)) = (published, one.zip(*two)) else { continue };
                let rising = published.0 < published.1;
                let (lower, higher) = if rising { (first, second) } else { (second, first) };
                if published.0.max(published.1) <= published.0.min(published.1) * GAP {
                    continue;
                }
                order.pairs += 1;
                if (rising && found.1 <= found.0) || (!rising && found.0 <= found.1) {
                    order.reversed.push(Reversal {
                        experiment: first.experiment.clone(),
                        point: first.point.clone(),
                        lower: lower.fabric.clone(),
                        higher: higher.fabric.clone(),
                    });
                }
            }
        }
        order
    }

    /// A summary line, then the reversed pairs with their counts, most frequent first.
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
