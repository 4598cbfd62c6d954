//! Memory nodes and servers as their operators see them.

pub mod doctor;
pub mod limits;
pub mod processes;
pub mod status;
