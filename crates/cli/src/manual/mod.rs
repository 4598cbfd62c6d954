//! What shells, `man`, editors and the reference know of the commands, made from clap's tree.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod reference;
pub(crate) mod schema;
