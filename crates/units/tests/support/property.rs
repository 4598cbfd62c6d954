//! How many cases a property is tested with.

use proptest::prelude::ProptestConfig;

/// So many cases, or as many as `PROPTEST_CASES` says: a number in the code alone would hide it.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let said = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig::default();
    ProptestConfig { cases: if said { config.cases } else { usual }, ..config }
}
