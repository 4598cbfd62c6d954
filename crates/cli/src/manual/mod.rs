//! What shells, `man` and editors know of the commands, made from clap's tree.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod schema;
