//! Memory nodes and servers, for their operators.

pub mod doctor;
pub mod limits;
pub mod processes;
pub mod status;
