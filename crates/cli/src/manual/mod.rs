//! Completions, manual pages, schemas and the reference of the commands, made from clap's tree.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod reference;
pub(crate) mod schema;
