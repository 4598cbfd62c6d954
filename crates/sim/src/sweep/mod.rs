//! Sweeps: keys of a scenario varied, runs repeated over seeds, and what the seeds leave open.
//!
//! A sweep is a list of points, each one scenario on one fabric with one seed. A point is known by
//! the hash of all that its result depends on, so that a journal of finished points serves whatever
//! sweep asks for them again. Who runs the points, on which threads, is not known here.

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
