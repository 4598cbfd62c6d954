//! Sweeps: varied keys of a scenario, runs repeated over seeds, and the remaining uncertainty.
//!
//! A sweep is a list of points, each one scenario on one fabric with one seed. A point is
//! identified by the hash of everything that its result depends on. So a journal of finished points
//! serves every sweep that requests them again. This module does not know which threads run the
//! points.

mod axis;
mod grid;
mod identity;
mod journal;
mod plan;
mod record;
mod rows;
mod session;
mod summary;
mod task;

pub use axis::AXIS_VALUES_MAX;
pub(crate) use axis::read as read_axes;
pub(crate) use grid::Grid;
pub use identity::Identity;
pub use journal::{Journal, JournalError};
pub use plan::{POINTS_MAX, Point, Sweep};
pub(crate) use plan::{fabric_list, fabrics_allowed};
pub use record::{METRICS, Metric, Record};
pub use rows::write_rows;
pub use session::{Session, SessionError};
pub use summary::{Estimate, Summary, summaries_table, summarise};
pub use task::{Task, TaskFailure};
