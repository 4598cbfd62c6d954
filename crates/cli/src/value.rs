//! Values of arguments that several commands take.

use bytesize::ByteSize;

/// A size, as `--memory` takes it.
pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "allowed is a size such as 64MiB".to_owned())
}
