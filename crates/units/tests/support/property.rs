//! The number of cases with which a property is tested.

use proptest::prelude::ProptestConfig;

/// A configuration of `usual` cases, or of as many as `PROPTEST_CASES` says: a number in the code
/// alone would override that variable.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let said = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig::default();
    ProptestConfig { cases: if said { config.cases } else { usual }, ..config }
}
