//! Memory nodes and servers, for their operators.

pub mod doctor;
pub mod limits;
pub mod processes;
pub mod server;
pub mod service;
pub mod status;
