//! The parameters of the cache in a URL.

use crate::open_error::OpenError;
use crate::scheme::Parameters;

/// Ways of a set, as in the paper (section IV).
pub(super) const WAYS: u32 = 4;

const CACHE_BYTES: &str = "cache_bytes";
const LINE_BYTES: &str = "line_bytes";

/// Size of the cache, and of what a miss fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSettings {
    pub(crate) bytes: u32,
    pub(crate) line_bytes: u32,
}

impl CacheSettings {
    /// The cache that a URL asks for, if it does.
    pub(crate) fn of(parameters: &Parameters<'_>) -> Result<Option<CacheSettings>, OpenError> {
        let refused =
            |problem: String| OpenError::BadParameter { name: LINE_BYTES.to_owned(), problem };
        let line_bytes = parameters.number(LINE_BYTES).unwrap_or(64);
        let Some(bytes) = parameters.number(CACHE_BYTES) else {
            return match parameters.text(LINE_BYTES) {
                Some(_) => Err(refused("must stand beside `cache_bytes`".to_owned())),
                None => Ok(None),
            };
        };
        if line_bytes > bytes / u64::from(WAYS) {
            let most = bytes / u64::from(WAYS);
            let problem = format!("`{line_bytes}`: must be at most {most}, a quarter of the cache");
            return Err(refused(problem));
        }
        Ok(Some(CacheSettings { bytes: bytes as u32, line_bytes: line_bytes as u32 }))
    }
}
