//! The workloads of a search.

use ethermem_sim::workload::{built_in, built_in_names};

/// Sizes of a workload's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Messages of this many bytes.
    Bytes(u64),
    /// Messages of an application.
    Application(&'static str),
}

/// Sizes of the default workloads.
const BYTES: [u64; 3] = [64, 1_024, 4_096];

impl Sizes {
    /// The name in tables: `64 B`, `hadoop`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Sizes::Bytes(bytes) if bytes % 1_024 == 0 => format!("{} KiB", bytes / 1_024),
            Sizes::Bytes(bytes) => format!("{bytes} B"),
            Sizes::Application(name) => (*name).to_owned(),
        }
    }

    /// The value of `--workloads` that selects it.
    pub(super) fn word(&self) -> String {
        match self {
            Sizes::Bytes(bytes) => bytes.to_string(),
            Sizes::Application(name) => (*name).to_owned(),
        }
    }

    /// Mean size of the message of a random byte; 0 if all sizes are equal.
    pub(super) fn bytes_of_the_mean_byte(&self) -> f64 {
        /// Number of quantiles that approximate the distribution.
        const QUANTILES: u32 = 10_000;
        let Sizes::Application(name) = self else { return 0.0 };
        let sizes = built_in(name).expect("a name of the list");
        let quantile = |at: u32| (f64::from(at) + 0.5) / f64::from(QUANTILES);
        let bytes = (0..QUANTILES).map(|at| sizes.quantile(quantile(at)).0 as f64);
        let (sum, squares) =
            bytes.fold((0.0, 0.0), |(sum, squares), bytes| (sum + bytes, squares + bytes * bytes));
        squares / sum
    }

    /// The scenario's key with its value.
    pub(super) fn key(&self) -> String {
        match self {
            Sizes::Bytes(bytes) => format!("message_bytes = {bytes}"),
            Sizes::Application(name) => format!("size_cdf = \"{name}\""),
        }
    }
}

/// The default workloads: 64 B, 1 KiB and 4 KiB. Applications take a hundred times as long.
#[must_use]
pub fn workloads() -> Vec<Sizes> {
    BYTES.map(Sizes::Bytes).into()
}

/// The workload of a name, or of so many bytes.
///
/// # Errors
///
/// One line with what is allowed.
pub fn workload(name: &str) -> Result<Sizes, String> {
    if let Some(name) = built_in_names().into_iter().find(|known| *known == name) {
        return Ok(Sizes::Application(name));
    }
    let bytes = name.parse().ok().filter(|bytes| (1..=1 << 22).contains(bytes));
    bytes.map(Sizes::Bytes).ok_or_else(|| {
        let names = built_in_names().into_iter().collect::<Vec<_>>().join(", ");
        format!("must be 1 to 4194304 (bytes) or one of {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_have_names() {
        let names: Vec<String> = workloads().iter().map(Sizes::name).collect();
        assert_eq!(names, ["64 B", "1 KiB", "4 KiB"]);
        assert_eq!(Sizes::Bytes(64).bytes_of_the_mean_byte(), 0.0);
        // Most bytes are of long messages.
        let hadoop = workload("hadoop").unwrap();
        assert!(hadoop.bytes_of_the_mean_byte() > 100_000.0, "{hadoop:?}");
        assert_eq!(workload("1000"), Ok(Sizes::Bytes(1_000)));
        assert_eq!(workload("spark"), Ok(Sizes::Application("spark")));
        assert!(workload("0").unwrap_err().starts_with("must be 1 to 4194304 (bytes) or one of "));
    }
}
