//! The generators of YCSB's core package, by its own rules.
//!
//! `ZipfianGenerator` is that of Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases" (SIGMOD 1994, section 3). YCSB's own deviations are kept, and commented, where they
//! change the draws.

use crate::draw::Draws;

/// Skew of the distribution: YCSB's default.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;
/// Number of items before scrambling, whatever the number of records.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
/// Zeta of these items, as YCSB defines it; summing it takes minutes.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// YCSB's 64-bit hash: FNV-1a over eight bytes, made positive.
#[must_use]
pub const fn fnv_hash(value: u64) -> u64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let (mut hash, mut at) = (OFFSET_BASIS, 0);
    while at < 8 {
        hash = (hash ^ ((value >> (8 * at)) & 0xff)).wrapping_mul(PRIME);
        at += 1;
    }
    (hash as i64).wrapping_abs() as u64
}

/// A distribution over items from 0 up, of which item 0 is the most likely.
#[derive(Clone, Debug)]
pub struct Zipfian {
    theta: f64,
    alpha: f64,
    zeta_2: f64,
    /// Initial number of items. YCSB's eta uses it even after the number has grown.
    items: u64,
    /// Number of items that `zeta` covers.
    counted: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// A distribution over `items` items.
    ///
    /// # Panics
    /// When `items` is 0.
    #[must_use]
    pub fn new(items: u64) -> Zipfian {
        assert!(items > 0, "a distribution of no items");
        Zipfian::with_zeta(items, zeta(0, items, ZIPFIAN_CONSTANT, 0.0))
    }

    fn with_zeta(items: u64, zeta_items: f64) -> Zipfian {
        let theta = ZIPFIAN_CONSTANT;
        let mut zipfian = Zipfian {
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta_2: zeta(0, 2, theta, 0.0),
            items,
            counted: items,
            zeta: zeta_items,
            eta: 0.0,
        };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        let of_items = libm::pow(2.0 / self.items as f64, 1.0 - self.theta);
        self.eta = (1.0 - of_items) / (1.0 - self.zeta_2 / self.zeta);
    }

    /// The next item.
    pub fn next(&mut self, draws: &mut Draws) -> u64 {
        self.next_of(self.items, draws)
    }

    /// The next item among `items`. The number may grow; when it shrinks, YCSB keeps the zeta of
    /// the largest.
    pub fn next_of(&mut self, items: u64, draws: &mut Draws) -> u64 {
        if items > self.counted {
            self.zeta = zeta(self.counted, items, self.theta, self.zeta);
            self.counted = items;
            self.set_eta();
        }
        self.item(items, draws.unit())
    }

    /// The item of a draw.
    fn item(&self, items: u64, unit: f64) -> u64 {
        let share = unit * self.zeta;
        if share < 1.0 {
            return 0;
        }
        if share < 1.0 + libm::pow(0.5, self.theta) {
            return 1;
        }
        (items as f64 * libm::pow(self.eta * unit - self.eta + 1.0, self.alpha)) as u64
    }
}

/// The sum of 1/i^theta for i up to `items`; `sum` holds the terms up to `from`.
fn zeta(from: u64, items: u64, theta: f64, sum: f64) -> f64 {
    (from..items).fold(sum, |sum, i| sum + 1.0 / libm::pow((i + 1) as f64, theta))
}

/// A Zipfian with hashed items, so that frequent ones are scattered: YCSB's `zipfian`.
#[derive(Clone, Debug)]
pub struct ScrambledZipfian {
    zipfian: Zipfian,
    items: u64,
}

impl ScrambledZipfian {
    /// A distribution over the items from 0 to `items` - 1.
    ///
    /// # Panics
    /// When `items` is 0.
    #[must_use]
    pub fn new(items: u64) -> ScrambledZipfian {
        assert!(items > 0, "a distribution of no items");
        // The range is from 0 to the count, inclusive.
        let zipfian = Zipfian::with_zeta(SCRAMBLED_ITEMS + 1, SCRAMBLED_ZETA);
        ScrambledZipfian { zipfian, items }
    }

    /// The next item.
    pub fn next(&mut self, draws: &mut Draws) -> u64 {
        fnv_hash(self.zipfian.next(draws)) % self.items
    }
}

/// A Zipfian over the age of records: YCSB's `latest`.
#[derive(Clone, Debug)]
pub struct Latest(Zipfian);

impl Latest {
    /// A distribution whose last record is `last`.
    #[must_use]
    pub fn new(last: u64) -> Latest {
        Latest(Zipfian::new(last.max(1)))
    }

    /// The next record, if the last one is `last`. Record 0 is never drawn: YCSB draws from `last`
    /// items, not from `last` + 1.
    pub fn next(&mut self, last: u64, draws: &mut Draws) -> u64 {
        last - self.0.next_of(last.max(1), draws).min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 2_000_000;

    /// Probability that a draw is below item `k`, solved from [`Zipfian::item`].
    fn below(zipfian: &Zipfian, items: u64, k: u64) -> f64 {
        match k {
            0 => 0.0,
            1 => 1.0 / zipfian.zeta,
            2 => (1.0 + 0.5_f64.powf(zipfian.theta)) / zipfian.zeta,
            _ => {
                let power = (k as f64 / items as f64).powf(1.0 - zipfian.theta);
                (power - 1.0 + zipfian.eta) / zipfian.eta
            }
        }
    }

    /// Checks a count to be within five standard deviations of its expectation.
    fn assert_drawn(counted: u64, of: u64, probability: f64, what: &str) {
        let expected = of as f64 * probability;
        let deviation = (expected * (1.0 - probability)).sqrt();
        let off = (counted as f64 - expected).abs();
        assert!(off <= 5.0 * deviation + 1.0, "{what}: {counted}, expected {expected}");
    }

    #[test]
    fn hashes_are_those_of_ycsb() {
        // Names of YCSB's first records, as in its documentation and in logs.
        assert_eq!(fnv_hash(0), 6_284_781_860_667_377_211);
        assert_eq!(fnv_hash(1), 8_517_097_267_634_966_620);
        assert_eq!(fnv_hash(2), 1_820_151_046_732_198_393);
    }

    #[test]
    fn a_zipfian_has_the_probabilities_of_its_formula() {
        let items = 1000;
        let (mut zipfian, mut draws) = (Zipfian::new(items), Draws::new(1, 0));
        let mut counts = vec![0_u64; items as usize];
        for _ in 0..DRAWS {
            counts[zipfian.next(&mut draws) as usize] += 1;
        }
        let mut chi_square = 0.0;
        for (item, &counted) in counts.iter().enumerate() {
            let item = item as u64;
            let probability = below(&zipfian, items, item + 1) - below(&zipfian, items, item);
            assert_drawn(counted, DRAWS, probability, &format!("item {item}"));
            let expected = DRAWS as f64 * probability;
            chi_square += (counted as f64 - expected).powi(2) / expected;
        }
        // 999 degrees of freedom: mean 999, deviation 44.7.
        assert!((chi_square - 999.0).abs() < 5.0 * 44.7, "{chi_square}");
        // The formula is close to the distribution that it approximates.
        for item in [0, 1, 10, 100, 900] {
            let asked = 1.0 / ((item + 1) as f64).powf(ZIPFIAN_CONSTANT) / zipfian.zeta;
            let had = below(&zipfian, items, item + 1) - below(&zipfian, items, item);
            assert!((had / asked - 1.0).abs() < 0.3, "item {item}: {had}, Zipf {asked}");
        }
    }

    #[test]
    fn a_zipfian_grows_with_its_items() {
        let (mut grown, mut draws) = (Zipfian::new(100), Draws::new(3, 0));
        grown.next_of(250, &mut draws);
        assert!((grown.zeta / Zipfian::new(250).zeta - 1.0).abs() < 1e-12);
        // YCSB's eta stays that of the initial items; its zeta term is updated.
        let eta = |zeta: f64| (1.0 - (2.0_f64 / 100.0).powf(0.01)) / (1.0 - grown.zeta_2 / zeta);
        assert!((grown.eta - eta(grown.zeta)).abs() < 1e-12);
        let zeta = grown.zeta;
        assert!(grown.next_of(50, &mut draws) < 50);
        assert_eq!(grown.zeta, zeta);
    }

    #[test]
    fn the_zeta_of_scrambling_is_that_of_its_items() {
        // Euler and Maclaurin: the sum up to n is n^(1-s)/(1-s) + zeta(s) + n^-s/2.
        let (n, s) = (SCRAMBLED_ITEMS as f64, ZIPFIAN_CONSTANT);
        let small = 1_000_000_u64;
        let tail = |n: f64| n.powf(1.0 - s) / (1.0 - s) + n.powf(-s) / 2.0;
        let sum = zeta(0, small, s, 0.0) - tail(small as f64) + tail(n);
        assert!((sum - SCRAMBLED_ZETA).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn scrambling_keeps_the_head_and_moves_it() {
        let items = 100_000;
        let (mut scrambled, mut draws) = (ScrambledZipfian::new(items), Draws::new(2, 0));
        let mut counts = vec![0_u64; items as usize];
        for _ in 0..DRAWS {
            counts[scrambled.next(&mut draws) as usize] += 1;
        }
        // The most likely items, plus their share of the items that hash to the same record.
        for rank in 0..3_u64 {
            let head = below(&scrambled.zipfian, SCRAMBLED_ITEMS + 1, rank + 1)
                - below(&scrambled.zipfian, SCRAMBLED_ITEMS + 1, rank);
            let counted = counts[(fnv_hash(rank) % items) as usize] as f64 / DRAWS as f64;
            assert!(counted > head * 0.98 && counted < head + 1e-3, "{rank}: {counted}, {head}");
        }
        // Half of all draws have ranks that many records share, so almost every record is drawn.
        assert!(counts.iter().filter(|&&count| count > 0).count() > 90_000);
    }

    #[test]
    fn latest_is_a_zipfian_backwards() {
        let (mut latest, mut draws) = (Latest::new(999), Draws::new(4, 0));
        let mut counts = vec![0_u64; 1000];
        for _ in 0..DRAWS {
            counts[latest.next(999, &mut draws) as usize] += 1;
        }
        assert_eq!(counts[0], 0, "record 0 is never drawn");
        for back in 0..50_u64 {
            let probability = below(&latest.0, 999, back + 1) - below(&latest.0, 999, back);
            assert_drawn(counts[999 - back as usize], DRAWS, probability, &format!("{back} back"));
        }
        for _ in 0..1000 {
            assert!((1..=1500).contains(&latest.next(1500, &mut draws)), "grown");
        }
    }
}
