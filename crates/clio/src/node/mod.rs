//! How a memory node handles each datagram (sections 4.4 and 4.5 of Clio's paper).
//!
//! A request is executed as a whole when it arrives, and answered by one packet. No state grows
//! with the number of clients. Processes have places in a table of fixed size, and so do requests
//! that must not be executed twice. `docs/internals/clio-node.md` has the invariants.

mod answers;
mod config;
mod execute;
mod extend;
mod machine;
mod operator;
mod process_index;
mod processes;
mod recent;
mod runs;
mod sealed;
mod slow;
mod tenants;

pub use answers::{Answer, Landing, WRITE_FRONT_BYTES};
pub use config::{NodeConfig, NodeConfigError, Quota, RECENT_WAYS};
pub use machine::{Busy, Node, NodeCounters};
pub use operator::ProcessFacts;
pub use sealed::{Seal, SealRefused};
pub use tenants::TenantUse;
