//! Comparisons: points of a scenario, several fabrics on each, and published values beside them.
//!
//! A scenario with a table `[compare]` holds experiments, each a few points: keys and the values
//! they take, by the axes of a [sweep](crate::sweep). Who runs them, on which threads, is not known
//! here.

mod flows;
mod method;
mod order;
mod plan;
mod rows;
mod values;

pub use flows::Counted;
pub use method::{Denominator, PublishedMethod, Reads, Stop};
pub use order::{Order, Reversal};
pub use plan::{ComparedPoint, Comparison, Experiment};
pub use rows::{
    ByMethod, Compared, LEAD_MEASURES, Lead, Place, leads, leads_rows, method_rows, points_rows,
};
pub use values::PublishedValues;
